/* toy_plan.h - random plans for the toy. */
#ifndef TEST_TOY_PLAN_H
#define TEST_TOY_PLAN_H

#include "tests/planner/toy.h"

#include <stdbool.h>

/* A valid plan of one to three pipelines out of `state`, which moves on; the toy's global
 * batch becomes the plan's. False when the dice give none. The same state gives the same
 * plan. */
bool toy_random_plan(struct toy *toy, uint64_t *state, struct het_plan *plan);

#endif
