/* shape_count.h - how many of which cells (pipeline_shape.h): shares the nodes of a
 * cluster out among cells so that the batch is done in a given time. */
#ifndef HET_ALGO_OPTIMAL_SHAPE_COUNT_H
#define HET_ALGO_OPTIMAL_SHAPE_COUNT_H

#include "planner/algo/optimal/shape_catalog.h"

/* Time allowed for each part of an iteration: every cell of a mixture keeps within
 * each. */
struct het_shape_count_budget {
    double pipeline_s, sync_s, step_s;
};

/* `count` times the same pipelines: those of one whole-node cell, or all that share a
 * node of class `node_class`. */
struct het_shape_count_group {
    const struct het_pipeline_shape_split **splits;
    uint32_t split_count;
    uint32_t node_class; /* HET_UNBOUND: a cell of whole nodes */
    uint32_t count;
    uint64_t samples; /* an iteration, of one of them */
};

struct het_shape_count {
    struct het_shape_count_group *groups;
    uint32_t group_count;
    uint64_t samples; /* an iteration, of all: at least the batch */
};

/* Fills the nodes with cells so that they do `batch` samples or more within the budget:
 * a linear program over the best cell of each signature, rounded down, the rest of the
 * nodes filled one cell at a time by the program's prices. False if that is impossible.
 * In `arena`. With limits of the job on GPUs or data parallelism, nodes may be used in
 * part.
 */
bool het_shape_count_find(const struct het_shape_catalog *catalog,
                          struct het_arena *arena,
                          const struct het_shape_count_budget *budget, uint64_t batch,
                          struct het_shape_count *ret);

#endif
