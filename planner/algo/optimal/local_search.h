/* local_search.h - a plan made better step by step: small changes to its pipelines, each
 * kept if the plan is faster by cost.h and takes the search's offer. It starts from any
 * bound plan, whoever found it.
 *
 * A change takes one pipeline or two and puts others in their place, of the same GPUs or
 * with idle ones; layers are split anew by layer_front.h, samples by balance.h, the batch
 * over all pipelines by batch_share.h. */
#ifndef HET_ALGO_OPTIMAL_LOCAL_SEARCH_H
#define HET_ALGO_OPTIMAL_LOCAL_SEARCH_H

#include "planner/search/search.h"
#include "planner/search/stage_times.h"

/* Changes `plan` as long as that helps and `effort` lasts, and offers what it finds.
 * Returns the best plan, in `arena`; `plan` itself if nothing helped.
 *
 * Changes: replicas of a stage joined to a higher tensor-parallel degree, or parted; two
 * neighbouring stages made one, or a stage parted; neighbouring stages exchanged; a
 * replica moved to another pipeline, or left idle, as may be a whole pipeline; idle GPUs
 * made a replica or a pipeline; two pipelines made one, one after the other or side by
 * side, or one made two behind one of its stages; other sizes of micro-batches; one layer
 * over a cut; recomputation on and off. Not among them: a replica moved to another stage
 * of its own pipeline. */
const struct het_plan *het_local_search(struct het_search *search,
                                        struct het_stage_table *table,
                                        struct het_arena *arena,
                                        const struct het_plan *plan, uint64_t effort);

#endif
