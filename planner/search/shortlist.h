/* shortlist.h - the best few plans of a search by its own prices, mostly in closed form.
 * The simulation, which differs by a few percent, picks the winner among them. */
#ifndef HET_SEARCH_SHORTLIST_H
#define HET_SEARCH_SHORTLIST_H

#include "planner/cost/schedule.h"

#include <stdbool.h>

#define HET_SHORTLIST_PLANS 8u
/* Plans more than this share slower than the first are left out. */
#define HET_SHORTLIST_SLACK 0.1

/* Plans by price, the fastest first, equal ones by het_plan_compare; no two of them
 * equal. Zero is empty. */
struct het_shortlist {
    struct het_shortlist_plan {
        const struct het_plan *plan;
        double offered_s;
        struct het_arena *arena; /* the plan's own */
    } plans[HET_SHORTLIST_PLANS];
    size_t count;
};

/* Whether het_shortlist_add would keep the plan. */
bool het_shortlist_wants(const struct het_shortlist *list, const struct het_plan *plan,
                         double offered_s);
/* Keeps a copy, if the plan is wanted. Names are borrowed. */
void het_shortlist_add(struct het_shortlist *list, const struct het_plan *plan,
                       double offered_s);
void het_shortlist_clear(struct het_shortlist *list);

/* The plan of the list that takes the least time by simulation, the first of equal ones;
 * NULL if it is empty. `ret` is its price by simulation. */
const struct het_plan *het_shortlist_best(const struct het_shortlist *list,
                                          const struct het_problem *problem,
                                          struct het_cost *ret);

#endif
