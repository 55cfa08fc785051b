/* stage_times.h - what a replica takes and holds for runs of layers, remembered: seconds
 * by (GPU type, tensor-parallel degree, samples) as prefix sums over layers, and up to
 * which layer a stage fits in memory. Every question is worked out once. */
#ifndef HET_SEARCH_STAGE_TIMES_H
#define HET_SEARCH_STAGE_TIMES_H

#include "planner/cost/memory.h"
#include "planner/model/plan.h"
#include "planner/search/balance.h"

struct het_stage_table;

struct het_stage_table *het_stage_table_new(const struct het_problem *problem);
void het_stage_table_free(struct het_stage_table *table);

/* A replica's samples of a micro-batch, and whether it recomputes. */
struct het_stage_kind {
    uint32_t type; /* cluster type, in the profile */
    uint32_t tp, samples;
    enum het_recompute recompute;
};

/* Prefix sums of seconds (with full recomputation, backward has the second forward).
 * NULL: the profile has no such point, or the job does not allow it. */
const struct het_balance_times *het_stage_table_times(struct het_stage_table *table,
                                                      struct het_stage_kind kind);

/* [layer_count]: layers first .. ends[first] - 1 fit, one more would not, with
 * `in_flight` micro-batches and `holders` replicas that hold the layers; NULL as above.
 */
const uint32_t *het_stage_table_ends(struct het_stage_table *table,
                                     struct het_stage_kind kind, uint32_t in_flight,
                                     uint32_t holders);

#endif
