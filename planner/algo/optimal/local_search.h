/* local_search.h - improves a plan step by step: it keeps a small change to the pipelines
 * if the plan is faster by cost.h and the search takes the offer. It starts from any
 * bound plan of any algorithm.
 *
 * A change replaces one or two pipelines by others on the same GPUs, or on these and idle
 * ones; layers are split anew by layer_front.h, samples by balance.h, the batch over all
 * pipelines by batch_share.h. */
#ifndef HET_ALGO_OPTIMAL_LOCAL_SEARCH_H
#define HET_ALGO_OPTIMAL_LOCAL_SEARCH_H

#include "planner/search/search.h"
#include "planner/search/stage_times.h"

/* Changes `plan` while that helps and `effort` lasts, and offers each improvement.
 * Returns the best plan, in `arena`; `plan` itself if nothing helped.
 *
 * Changes: replicas of a stage joined to a higher tensor-parallel degree, or split; two
 * neighbouring stages joined, or a stage split; neighbouring stages exchanged; a replica
 * moved to another pipeline, or a replica or whole pipeline left idle; idle GPUs used as
 * a replica or a pipeline; two pipelines joined, in sequence or side by side, or one
 * split behind one of its stages; other sizes of micro-batches; one layer moved over a
 * cut; recomputation on and off. Not among them: a replica moved to another stage of its
 * own pipeline. */
const struct het_plan *het_local_search(struct het_search *search,
                                        struct het_stage_table *table,
                                        struct het_arena *arena,
                                        const struct het_plan *plan, uint64_t effort);

#endif
