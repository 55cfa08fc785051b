/* surviving_plan.h - the running plan on what is left of its cluster, with as little
 * changed as can be: what a node that is gone took with it is left out, the others do its
 * samples. The plan moves no layers; whether it is a good plan is the search's
 * question. */
#ifndef HET_ALGO_REPAIR_SURVIVING_PLAN_H
#define HET_ALGO_REPAIR_SURVIVING_PLAN_H

#include "planner/model/plan.h"

/* `old` (unbound: nodes are found by name) for `problem`, bound, in `arena`; NULL if
 * nothing is left of it or the batch does not come out.
 *
 *  1. Replicas whose node is gone, is of another type now, or has too few GPUs are left
 *     out. Where every stage of a pipeline has as many replicas and they take equal
 *     samples, so are the other replicas of the same lane (runtime.h), and the lanes left
 *     are pipelines of their own, or the micro-batch is smaller, if the runtime wants one
 *     number of micro-batches for all; elsewhere the other replicas of the stage share
 * its samples so that the slowest is as fast as can be. A pipeline with a stage without
 * replicas goes.
 *  2. The global batch is shared out anew, micro-batch by micro-batch, each to the
 *     pipeline that would end first; what does not come out even is done by one pipeline
 *     with smaller micro-batches. Pipelines that get none are left out.
 *  3. GPUs of each node are numbered from 0 on.
 *
 * Memory is not looked at. */
const struct het_plan *het_repair(struct het_arena *arena,
                                  const struct het_problem *problem,
                                  const struct het_plan *old);

#endif
