/* run_all.h - the table of algorithms; runs one or all of them on the cluster and on
 * parts of it, and checks the winner. */
#ifndef HET_RUN_RUN_ALL_H
#define HET_RUN_RUN_ALL_H

#include "planner/search/search.h"

/* All algorithms in the order in which `auto` runs them; ends with NULL. */
const struct het_algorithm *const *het_search_algorithms(void);

/* Whether `name` is "auto" or in the table. Errors: HET_BAD_INPUT lists all names. */
int het_search_check_name(const char *name, struct het_error *err);

/* Parts of the cluster that are searched besides the whole, at most. */
#define HET_SEARCH_MAX_PARTS 256u

/* The best plan for `problem` by simulation (schedule.h) of the best few of each
 * algorithm (shortlist.h), with predicted, search, algorithm and idle filled, in `arena`;
 * `algorithm` is the one that found it. NULL or "auto" runs all independently of each
 * other, and then "optimal" from the best plan of the others; so does "optimal" by
 * itself. Each has the whole effort, so that the best of all is never worse than any of
 * them alone. "oomfirst" is left out where "metis" never had a choice that it makes
 * differently: it would find the same.
 *
 * Plans may leave GPUs idle: besides the whole cluster, parts of it are searched. For
 * each type a part takes all its GPUs (as many as the job's limits allow), a power of
 * two, half as many and so on down to none, those of its first one, two, ... nodes if
 * they are few, or trims its nodes to a multiple of a tensor-parallel degree. Nodes are
 * taken whole, the larger ones before the smaller, then the better connected. The whole
 * comes first, then parts inside a node, where nothing crosses a link between nodes, then
 * the others, from the one that can compute most to the least; parts are left out once
 * their lower bound shows that they cannot win.
 *
 * Effort: three quarters of it are for a first look at every part, half of that for the
 * first, then a sixteenth of what is left for each, or an even share among the last
 * sixteen; then each part not yet searched to its end gets half of what is left, the part
 * of the best plan first. Same input, same result, unless options->stop ends the search:
 * then it returns the best plan so far, which says so (is_cut_short).
 *
 * Where nodes of several vendors have GPUs that the job may use, but not together
 * (vendor_group.h), each vendor's GPUs are searched as if there were no others, and the
 * best plan is taken; of those about equally fast, the preferred one. Effort is shared by
 * the number of GPUs, an eighth of it for each at the least: a sixteenth of that for a
 * first look, so that a search that is stopped early has looked at all; the rest for
 * those that have not been searched to the end and whose bound can win, the one with the
 * best plan first. The bound is the least of all, and there is no plan if none has one.
 *
 * Errors: HET_CUT_SHORT; HET_NO_PLAN with the reason: a proof that there is none
 * (infeasible.h, limits that cannot be met), else the nearest miss, and whether more
 * effort may find one; HET_BAD_INPUT for an unknown algorithm (all names listed). */
int het_search_run(struct het_arena *arena, const struct het_problem *problem,
                   const struct het_search_options *options, const struct het_plan **ret,
                   struct het_search_statistics *ret_statistics, struct het_error *err);

#endif
