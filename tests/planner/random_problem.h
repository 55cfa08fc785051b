/* random_problem.h - small planning problems out of a seed: odd node sizes, gaps in the
 * profile, tight memory, prime batches, limits; in some of them zones and racks, measured
 * curves of any shape, micro-batches beyond the measured ones, selective recomputation,
 * gradients that the backward pass hides, GPUs of two vendors. The same seed gives the
 * same problem. */
#ifndef TEST_RANDOM_PROBLEM_H
#define TEST_RANDOM_PROBLEM_H

#include "planner/model/plan.h"

/* In `arena`, bound. */
struct het_problem *random_problem(struct het_arena *arena, uint64_t seed);
/* The same, but that GPUs of all vendors may be together: for an algorithm by itself, as
 * the search gives it those of one vendor. */
struct het_problem *random_joined_problem(struct het_arena *arena, uint64_t seed);
/* The first with at most 6 GPUs, 6 layers and a batch of 8, for the exhaustive search. */
struct het_problem *random_small_problem(struct het_arena *arena, uint64_t seed);

#endif
