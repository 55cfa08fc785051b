/* build_plan.h - turns a mixture of cells into a plan: shares the batch out exactly and
 * puts the cells on nodes. */
#ifndef HET_ALGO_OPTIMAL_BUILD_PLAN_H
#define HET_ALGO_OPTIMAL_BUILD_PLAN_H

#include "planner/algo/optimal/shape_count.h"

/* The bound plan of `mixture` with exactly `batch` samples, every pipeline within
 * `pipeline_s`, in `arena`; NULL if that is impossible. Samples of the mixture beyond the
 * batch are removed from the slowest pipelines, micro-batch by micro-batch; if that does
 * not come out even, one pipeline takes smaller micro-batches. Pipelines without a
 * micro-batch are left out, and their GPUs idle. */
const struct het_plan *het_build_plan(const struct het_shape_catalog *catalog,
                                      struct het_arena *arena,
                                      const struct het_shape_count *mixture,
                                      double pipeline_s, uint64_t batch);

/* Sets split->bottleneck_s so that `count` micro-batches, alone on their nodes, take as
 * long as by simulation (schedule.h): unlike stages wait for each other in ways that the
 * closed form misses. To be called once a split. Returns whether it then takes noticeably
 * longer. */
bool het_build_plan_simulate(const struct het_shape_catalog *catalog,
                             struct het_pipeline_shape_split *split, uint32_t count);

#endif
