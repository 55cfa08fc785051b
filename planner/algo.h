/* algo.h - what an algorithm is, and the search it runs in: a budget counted in work, the
 * best plan so far, statistics. An algorithm offers plans; the search checks, prices and
 * keeps the best. Same input, same result: no clock, no address, no hash order. */
#ifndef HET_ALGO_H
#define HET_ALGO_H

#include "planner/cost.h"
#include "planner/memory.h"
#include "planner/plan.h"

struct het_search;

struct het_search_options {
    const char *algorithm; /* "auto", or a name of search.h's table */
    uint64_t effort;       /* candidate evaluations; 0: the default, 1,000,000 */
    uint64_t seed;
    /* Options of single algorithms; 0 means the default. */
    double metis_variance; /* min group scale variance, (0, 1]; default 0.5 */
    uint32_t
        metis_permute; /* longest list of device groups that is permuted; default 4 */
    void (*progress)(void *context, const struct het_search *search); /* may be NULL */
    void *progress_context;
};

struct het_search_statistics {
    uint64_t groups_enumerated; /* device group lists looked at */
    uint64_t strategies_tried;  /* (dp, tp) assignments */
    uint64_t partitions_failed; /* no layer split fits */
    uint64_t plans_priced;
};

struct het_search {
    const struct het_problem *problem;
    const struct het_search_options *options;
    struct het_arena *arena;   /* lives as long as the search; plans kept are in it */
    struct het_arena *scratch; /* an algorithm may use it between offers */
    uint64_t effort_left;
    struct het_search_statistics statistics;
    const struct het_plan *incumbent; /* NULL: none yet */
    struct het_cost incumbent_cost;
    /* What came nearest, if nothing fits: shown with "no plan fits". */
    char nearest_miss[512];
    double nearest_miss_ratio; /* bytes needed / bytes there, of the best miss; 0: none */
};

struct het_algorithm {
    const char *name;   /* "metis" */
    const char *source; /* paper, section */
    const char *summary;
    int (*run)(struct het_search *search, struct het_error *err);
};

/* Takes one unit of effort; false when the budget is spent, and the algorithm returns. */
int het_search_spend(struct het_search *search, uint64_t units);

/* Offers a bound plan (copied if kept). It is checked, must fit, and is priced; it
 * becomes the incumbent if it is faster, or equally fast and smaller by het_plan_compare.
 * Returns 1 if it was kept. A plan that the checker refuses is a defect of the algorithm:
 * assert. */
int het_search_offer(struct het_search *search, const struct het_plan *plan);

/* Notes that a candidate missed by memory: `needed` against `usable` bytes. */
void het_search_miss(struct het_search *search, double needed, double usable,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
