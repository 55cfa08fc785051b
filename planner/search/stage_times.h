/* stage_times.h - a cache of what a replica takes and holds for runs of layers: seconds
 * by (GPU type, tensor-parallel degree, samples) as prefix sums over layers, and up to
 * which layer a stage fits in memory. Each is computed once. */
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

/* Seconds of a replica, forward and backward, for layers first .. first + count - 1 and
 * 1 .. `most` samples, as het_balance_replicas has them: [most + 1] in `arena`; HUGE_VAL
 * where the profile has none, or the job does not allow that many. */
double *het_stage_times_by_samples(struct het_arena *arena,
                                   const struct het_problem *problem, uint32_t type,
                                   uint32_t tp, uint32_t first, uint32_t count,
                                   uint32_t most);

/* [layer_count]: layers first .. ends[first] - 1 fit, one more would not, with
 * `in_flight` micro-batches and `holders` replicas that hold the layers; NULL as above.
 */
const uint32_t *het_stage_table_ends(struct het_stage_table *table,
                                     struct het_stage_kind kind, uint32_t in_flight,
                                     uint32_t holders);

/* Fills `ret` with a stage of replicas of `count` kinds, for balance.h, without its
 * sends: the times of each kind, and the least of their ends. The caller provides times
 * [count] and ends [layer_count]. False: the table has nothing for one of the kinds. */
bool het_stage_table_ask(struct het_stage_table *table,
                         const struct het_stage_kind *kinds, size_t count,
                         uint32_t in_flight, uint32_t holders,
                         struct het_balance_times *times, uint32_t *ends,
                         struct het_balance_stage *ret);

#endif
