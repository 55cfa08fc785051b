/* random_plan.h - plans out of a seed, of any shape that a plan may have: for claims
 * about all plans of a problem. */
#ifndef TEST_RANDOM_PLAN_H
#define TEST_RANDOM_PLAN_H

#include "planner/model/plan.h"

/* A bound plan that the checker passes and that fits in memory, in `arena`; NULL if
 * `tries` draws make none. */
const struct het_plan *random_plan(struct het_arena *arena,
                                   const struct het_problem *problem, uint64_t seed,
                                   uint32_t tries);

#endif
