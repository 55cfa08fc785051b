#include "tests/controller/dice.h"

#include "planner/base/random.h"

struct dice dice_of(uint64_t seed, uint64_t purpose)
{
    struct dice dice = { .state = seed };
    dice.state = het_random_next(&dice.state) + purpose;
    dice.state = het_random_next(&dice.state);
    return dice;
}

uint64_t dice_throw(struct dice *dice, uint64_t sides)
{
    return het_random_below(&dice->state, sides);
}

int64_t dice_between(struct dice *dice, int64_t from, int64_t to)
{
    return from + (int64_t)dice_throw(dice, (uint64_t)(to - from + 1));
}

bool dice_chance(struct dice *dice, unsigned per_mille)
{
    return dice_throw(dice, 1000) < per_mille;
}
