/* preference.h - which of several plans that are about equally fast is liked best: the
 * one whose GPUs are. The preference of a GPU is its type's in the job (het_type_limit)
 * plus its node's (het_node); that of a plan is the mean of its GPUs'. */
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
    /* The nodes, those equal in all but name and preference together, of these the one
     * that is liked best first, then by index; and where each one's like end. */
    const uint32_t *order;
    const uint32_t *group_end; /* [position in order] */
    /* Plans as offered, the fastest first; each is liked better than those before it. */
    struct het_preferred_plan {
        const struct het_plan *plan;
        double offered_s, preference;
        struct het_arena *arena; /* the plan's own */
    } plans[HET_PREFERENCE_PLANS];
    size_t count;
};

/* NULL if all GPUs of the problem are liked equally. In `arena`, but for the plans. */
struct het_preference *het_preference_new(struct het_arena *arena,
                                          const struct het_problem *problem);
void het_preference_clear(struct het_preference *preference);

/* Of a bound plan. */
double het_preference_of(const struct het_preference *preference,
                         const struct het_plan *plan);
/* `plan` on nodes that are equal to its own and liked better, where such are free; `plan`
 * itself if there are none. */
const struct het_plan *het_preference_place(struct het_arena *arena,
                                            const struct het_preference *preference,
                                            const struct het_plan *plan);

/* Whether het_preference_add would keep the plan: no other one is as fast and liked as
 * well, and it is not slower than the fastest by more than HET_SHORTLIST_SLACK. */
bool het_preference_wants(const struct het_preference *preference,
                          const struct het_plan *plan, double offered_s);
/* Keeps a copy, if the plan is wanted; the slowest goes where there are too many. */
void het_preference_add(struct het_preference *preference, const struct het_plan *plan,
                        double offered_s);

/* Of `best` and the plans that are kept, by simulation: of those within
 * HET_PREFERENCE_SLACK of the fastest the one liked best, of these the fastest, of equal
 * ones the first. `cost` is the price of `best`, then of the result. */
const struct het_plan *het_preference_choose(const struct het_preference *preference,
                                             const struct het_plan *best,
                                             struct het_cost *cost);

#endif
