/* random.h - numbers drawn from a seed: the same seed gives the same numbers, everywhere.
 * Nothing here is secret. */
#ifndef HET_BASE_RANDOM_H
#define HET_BASE_RANDOM_H

#include <stdint.h>

/* The next number of the sequence at `state`, which may start as any number. Source:
 * Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators, 2014 (SplitMix64):
 * a counter gives well mixed bits, so neighbouring seeds have nothing in common. */
uint64_t het_random_next(uint64_t *state);
/* The same, from 0 to `bound` - 1; `bound` > 0. The low numbers of a large bound are a
 * little more likely. */
uint64_t het_random_below(uint64_t *state, uint64_t bound);

#endif
