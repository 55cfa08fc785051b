/* build_plan.h - a mixture of cells made a plan: the batch shared out exactly, the cells
 * put on nodes. */
#ifndef HET_ALGO_OPTIMAL_BUILD_PLAN_H
#define HET_ALGO_OPTIMAL_BUILD_PLAN_H

#include "planner/algo/optimal/shape_count.h"

/* The bound plan of `mixture` with exactly `batch` samples, every pipeline within
 * `pipeline_s`, in `arena`; NULL if the batch cannot be had so. What the mixture does
 * more is taken from the pipelines that take longest, micro-batch by micro-batch; where
 * that does not come out even, one pipeline takes smaller micro-batches. Pipelines
 * without a micro-batch are left out, and their GPUs idle. */
const struct het_plan *het_build_plan(const struct het_shape_catalog *catalog,
                                      struct het_arena *arena,
                                      const struct het_shape_count *mixture,
                                      double pipeline_s, uint64_t batch);

/* Sets split->bottleneck_s to what it would have to be for `count` micro-batches, alone
 * on their nodes, to take as long as by simulation (schedule.h): stages that are not
 * alike wait for each other in ways that the closed form does not see. Once a split.
 * Returns whether it then takes noticeably longer. */
bool het_build_plan_simulate(const struct het_shape_catalog *catalog,
                             struct het_pipeline_shape_split *split, uint32_t count);

#endif
