#include "planner/base/random.h"

uint64_t het_random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t het_random_below(uint64_t *state, uint64_t bound)
{
    return het_random_next(state) % bound;
}
