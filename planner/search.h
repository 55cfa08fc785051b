/* search.h - the table of algorithms; runs one or all of them and checks the winner. */
#ifndef HET_SEARCH_H
#define HET_SEARCH_H

#include "planner/algo.h"

/* All algorithms in the order in which `auto` runs them; ends with NULL. */
const struct het_algorithm *const *het_search_algorithms(void);

/* The best plan for `problem`, with predicted, search, algorithm and idle filled, in
 * `arena`. Plans may leave GPUs idle: besides the whole cluster, sub-clusters are
 * searched (subsets of types; at most max_gpus GPUs; limits per type). Errors:
 * HET_NO_PLAN with the reason and the nearest miss; HET_BAD_INPUT for an unknown
 * algorithm (all names listed). */
int het_search_run(struct het_arena *arena, const struct het_problem *problem,
                   const struct het_search_options *options, const struct het_plan **ret,
                   struct het_search_statistics *ret_statistics, struct het_error *err);

#endif
