/* search.h - what an algorithm is, and the search it runs in: a budget counted in work,
 * the best plan so far, statistics. An algorithm offers plans; the search checks, prices
 * and keeps the best. Same input, same result: no clock, no address, no hash order. */
#ifndef HET_SEARCH_SEARCH_H
#define HET_SEARCH_SEARCH_H

#include "planner/cost/cost.h"
#include "planner/cost/memory.h"
#include "planner/model/plan.h"
#include "planner/model/runtime.h"
#include "planner/search/preference.h"
#include "planner/search/shortlist.h"

#include <stdatomic.h>
#include <stdbool.h>

struct het_search;
struct het_algorithm;

/* One unit is about a microsecond or two: a candidate looked at costs one, work that
 * grows with layers, stages or GPUs costs more (HET_EFFORT_*). */
#define HET_DEFAULT_EFFORT         1000000u
#define HET_EFFORT_CELLS_A_UNIT    512u   /* layer pairs of a dynamic program */
#define HET_EFFORT_WORDS_A_UNIT    16384u /* of bit sets of samples (balance.h) */
#define HET_EFFORT_REPLICAS_A_UNIT 8u     /* replicas of a plan built or priced */

enum het_metis_sizes {
    HET_METIS_DEFAULT_SIZES, /* every size on a small cluster, else as the next */
    HET_METIS_POWER_SIZES,   /* powers of two, and what the cluster suggests
                                (device_group.h) */
    HET_METIS_ANY_SIZE,
};

enum het_amp_speeds { HET_AMP_OWN_SPEEDS, HET_AMP_MEAN_SPEEDS };
enum het_amp_sends { HET_AMP_EXPOSED, HET_AMP_HIDDEN };
enum het_metis_rows {
    HET_METIS_TYPE_ROWS,  /* the nodes of a type together */
    HET_METIS_MIXED_ROWS, /* and with those of all types taking turns (device_group.h) */
};

enum het_ditto_folding {
    HET_DITTO_FOLD,               /* by the model's seconds alone */
    HET_DITTO_FOLD_COMMUNICATION, /* with what virtual GPUs would communicate */
    HET_DITTO_FOLD_NONE,          /* all assignments of GPUs to stages instead */
};

/* How metis-walk and oomfirst-walk decide that a stage fits (paper_walk.h). */
enum het_walk_memory {
    /* memory.h: each GPU by itself; activations in flight, workspace, headroom. */
    HET_WALK_MEMORY_OURS,
    /* HET_PAPER_WALK_METIS_FACTOR times the memory of the layers against the sum of the
     * memory of all GPUs of the stage. A stage of several types counts it once for each
     * binary part of each replica's samples, which are shared out over the types of the
     * whole cluster. */
    HET_WALK_MEMORY_METIS,
};

struct het_search_options {
    const char *algorithm; /* "auto", or a name of run_all.h's table */
    uint64_t effort;       /* work units; 0: HET_DEFAULT_EFFORT */
    uint64_t seed;
    const struct het_plan *from; /* running plan, unbound; NULL: none */
    /* Options of single algorithms; 0 means the default. */
    double metis_variance; /* min group scale variance, (0, 1]; default 0.5 */
    uint32_t
        metis_permute; /* longest list of device groups that is permuted; default 4 */
    enum het_metis_sizes metis_sizes; /* of device groups */
    enum het_amp_speeds amp_speeds;   /* in its search: each GPU's own, or their mean */
    enum het_amp_sends amp_sends;     /* in its search: in the bottleneck, or not */
    enum het_ditto_folding ditto_folding;
    enum het_metis_rows metis_rows;   /* in which nodes are laid out */
    enum het_walk_memory walk_memory; /* of metis-walk and oomfirst-walk */
    bool statistics;                  /* put into the plan's search report */
    bool no_bound; /* no lower bound is wanted: the plan's is 0, unless the search proves
                      that it is the best */
    void (*progress)(void *context, const struct het_search *search); /* may be NULL */
    void *progress_context;
    /* When a signal handler or another thread sets it, the search ends at once with the
     * best plan so far (het_search_run). NULL: the search is never stopped. */
    const atomic_bool *stop;
};

#define HET_SEARCH_MAX_SEEDS 4u

struct het_search {
    const struct het_problem *problem;
    /* The GPUs that the running algorithm may use: problem->cluster with the same node
     * and type indices, but fewer GPUs, or none, on some nodes. GPUs of a node are used
     * from 0 on. */
    const struct het_cluster *available;
    const struct het_algorithm *algorithm; /* running */
    const struct het_search_options *options;
    struct het_arena *arena;   /* lives as long as the search; plans kept are in it */
    struct het_arena *scratch; /* an algorithm may use it between offers */
    uint64_t effort_left;      /* of this run; */
    uint64_t effort_spent;     /* of the whole search */
    struct het_search_statistics statistics;
    const struct het_plan *incumbent; /* NULL: none yet */
    struct het_cost incumbent_cost;   /* as offers are priced */
    /* For an algorithm that starts from others: the best plan of each of those, by
     * simulated time, the fastest (the incumbent) first. */
    const struct het_plan *seeds[HET_SEARCH_MAX_SEEDS];
    double seed_s[HET_SEARCH_MAX_SEEDS];
    size_t seed_count;
    struct het_shortlist *shortlist;   /* of the running algorithm; NULL: not kept */
    struct het_preference *preference; /* of all algorithms; NULL: none */
    bool is_optimal;       /* the running algorithm has proved that no plan is faster, or
                              that there is none */
    bool has_run_out;      /* with more effort an algorithm would have looked at more */
    bool has_short_stages; /* "metis" met a split in which two or more stages do not fit,
                              and "oomfirst" would take another of them first */
    bool is_cut_short;     /* options->stop was set before the search was done */
    /* The nearest miss, if nothing fits; shown with "no plan fits". */
    char nearest_miss[512];
    double nearest_miss_ratio; /* bytes needed / bytes available, of that miss; 0: none */
    /* Plans offered that the runtime cannot express, and what the last one needed. */
    uint64_t inexpressible_count;
    enum het_freedom missing_freedom;
};

struct het_algorithm {
    const char *name;   /* "metis" */
    const char *source; /* paper, section */
    const char *summary;
    int (*run)(struct het_search *search, struct het_error *err);
    bool is_whole;   /* leaves GPUs idle by itself: it runs on the whole cluster only */
    bool needs_from; /* "auto" runs it only with options->from */
    bool starts_from_others; /* others run first, and their best plan is its incumbent */
    bool repeats_metis;      /* finds what "metis" finds unless search->has_short_stages;
                           "auto" runs it only then, after "metis" */
    bool is_apart;           /* runs only when named, not in "auto" */
    bool is_simulated;       /* its offers are priced by simulation, not in closed form */
};

/* Takes `units` of effort; false when the budget is spent: the algorithm then returns. */
bool het_search_spend(struct het_search *search, uint64_t units);

/* Takes the effort of `pairs` pairs of layers (HET_EFFORT_CELLS_A_UNIT), less the `taken`
 * units that were taken for them before they were counted. */
void het_search_settle(struct het_search *search, uint64_t pairs, uint64_t taken);

/* Offers a bound plan (copied if kept; algorithm, batch, precision and the like are
 * filled in). It is priced, checked and must fit; it becomes the incumbent if it is
 * faster, or equally fast and smaller by het_plan_compare. Returns true if it did; if
 * not, the shortlist may still keep it. A plan that the checker refuses is a defect of
 * the algorithm: assert. An algorithm may ignore the limits on GPU counts (min_gpus,
 * max_gpus, type_limits) and the workload's runtime: a plan outside those limits, or that
 * the runtime cannot express, is turned away. A plan whose ranks alone are in the wrong
 * order is kept in the right one. */
bool het_search_offer(struct het_search *search, const struct het_plan *plan);

/* Seconds that a plan must stay below to become the incumbent; HUGE_VAL without one. */
double het_search_worth(const struct het_search *search);

/* Notes that a candidate missed by memory: a GPU of cluster type `type` would need
 * `needed_bytes`. The text says for what ("layers 0-12, ..."): "needs 23.1 GiB on V100
 * (16.0 GiB, 14.7 usable) for layers 0-12, ...". The miss with the least ratio is kept.
 */
void het_search_miss(struct het_search *search, uint32_t type, double needed_bytes,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
