/* dice.h - chance out of a seed: the same seed throws the same numbers. */
#ifndef TESTS_CONTROLLER_DICE_H
#define TESTS_CONTROLLER_DICE_H

#include <stdbool.h>
#include <stdint.h>

struct dice {
    uint64_t state;
};

/* Dice of `seed` for one `purpose`: what is thrown for one does not move another. */
struct dice dice_of(uint64_t seed, uint64_t purpose);
/* 0 to `sides` - 1; `sides` > 0. */
uint64_t dice_throw(struct dice *dice, uint64_t sides);
/* `from` to `to`, both included. */
int64_t dice_between(struct dice *dice, int64_t from, int64_t to);
bool dice_chance(struct dice *dice, unsigned per_mille);
#define dice_pick(dice, array)                                                           \
    ((array)[dice_throw(dice, sizeof(array) / sizeof *(array))])

#endif
