/* preference.h - chooses, among plans that are about equally fast, the one whose GPUs are
 * preferred. The preference of a GPU is its type's in the job (het_type_limit) plus its
 * node's (het_node); that of a plan is the mean of its GPUs'. */
#ifndef HET_SEARCH_PREFERENCE_H
#define HET_SEARCH_PREFERENCE_H

#include "planner/search/shortlist.h"

#include <stdbool.h>

/* Plans at most this share slower than the fastest count as equally fast: predictions are
 * no more exact (docs/planner.md, Time of an iteration). */
#define HET_PREFERENCE_SLACK 0.01
/* Plans that are kept for the choice. */
#define HET_PREFERENCE_PLANS 8u

struct het_preference {
    const struct het_problem *problem;
    const int64_t *of_node; /* [node]: of each of its GPUs */
    /* The nodes, in groups that are equal in all but name and preference; in a group the
     * most preferred first, then by index. group_end: where the group of that position
     * ends. */
    const uint32_t *order;
    const uint32_t *group_end; /* [position in order] */
    /* Plans as offered, the fastest first; each has a higher preference than those
     * before. */
    struct het_preferred_plan {
        const struct het_plan *plan;
        double offered_s, preference;
        struct het_arena *arena; /* the plan's own */
    } plans[HET_PREFERENCE_PLANS];
    size_t count;
};

/* NULL if all GPUs of the problem have the same preference. In `arena`, but for the
 * plans. */
struct het_preference *het_preference_new(struct het_arena *arena,
                                          const struct het_problem *problem);
void het_preference_clear(struct het_preference *preference);

/* The preference of a bound plan. */
double het_preference_of(const struct het_preference *preference,
                         const struct het_plan *plan);
/* `plan` moved to free nodes that are equal to its own and preferred to them; `plan`
 * itself if there are none. */
const struct het_plan *het_preference_place(struct het_arena *arena,
                                            const struct het_preference *preference,
                                            const struct het_plan *plan);

/* Whether het_preference_add would keep the plan: no kept plan is both as fast and as
 * preferred, and it is slower than the fastest by at most HET_SHORTLIST_SLACK. */
bool het_preference_wants(const struct het_preference *preference,
                          const struct het_plan *plan, double offered_s);
/* Keeps a copy if the plan is wanted; drops the slowest if there are too many. */
void het_preference_add(struct het_preference *preference, const struct het_plan *plan,
                        double offered_s);

/* Chooses among `best` and the kept plans, by simulation: the most preferred of those
 * within HET_PREFERENCE_SLACK of the fastest; of equals the fastest, then the first.
 * `cost` holds the price of `best` on entry, of the result on return. */
const struct het_plan *het_preference_choose(const struct het_preference *preference,
                                             const struct het_plan *best,
                                             struct het_cost *cost);

#endif
