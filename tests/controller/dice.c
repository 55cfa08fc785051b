#include "tests/controller/dice.h"

/* splitmix64, Steele et al. 2014: any counter gives well mixed bits. */
static uint64_t next(struct dice *dice)
{
    uint64_t value = (dice->state += 0x9e3779b97f4a7c15u);
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

struct dice dice_of(uint64_t seed, uint64_t purpose)
{
    struct dice dice = { .state = seed };
    dice.state = next(&dice) + purpose;
    dice.state = next(&dice);
    return dice;
}

uint64_t dice_throw(struct dice *dice, uint64_t sides)
{
    return next(dice) % sides;
}

int64_t dice_between(struct dice *dice, int64_t from, int64_t to)
{
    return from + (int64_t)dice_throw(dice, (uint64_t)(to - from + 1));
}

bool dice_chance(struct dice *dice, unsigned per_mille)
{
    return dice_throw(dice, 1000) < per_mille;
}
