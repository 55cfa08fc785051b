/* surviving_plan.h - the running plan on what is left of its cluster, changed as little
 * as possible: what ran on a lost node is left out, and the others take its samples. No
 * layers move; the search judges whether the plan is good. */
#ifndef HET_ALGO_REPAIR_SURVIVING_PLAN_H
#define HET_ALGO_REPAIR_SURVIVING_PLAN_H

#include "planner/model/plan.h"

/* `old` (unbound: nodes are found by name) for `problem`, bound, in `arena`; NULL if
 * nothing is left of it or the batch cannot be shared out exactly.
 *
 *  1. Replicas whose node is gone, is of another type now, or has too few GPUs are left
 *     out. Where every stage of a pipeline has as many replicas and they take equal
 *     samples, so are the other replicas of the same lane (runtime.h), and the lanes left
 *     are pipelines of their own, or the micro-batch is smaller, if the runtime wants one
 *     number of micro-batches for all; elsewhere the other replicas of the stage share
 *     its samples so that the slowest is as fast as possible. A pipeline that has a stage
 *     without replicas is left out.
 *  2. The global batch is shared out anew, micro-batch by micro-batch, each to the
 *     pipeline that would end first; one pipeline takes any remainder in smaller
 *     micro-batches. Pipelines that get none are left out.
 *  3. GPUs of each node are numbered from 0 on.
 *
 * Memory is not looked at. */
const struct het_plan *het_repair(struct het_arena *arena,
                                  const struct het_problem *problem,
                                  const struct het_plan *old);

#endif
