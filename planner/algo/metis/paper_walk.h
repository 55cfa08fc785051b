/* paper_walk.h - the search of the Metis paper step by step, as its authors' program and
 * that of the OOM-first paper walk it: the same candidates in the same order of degrees,
 * with layers in proportion (proportional_split.h), so that it counts the steps that they
 * count. It is for comparing searches; metis_search.h finds better plans.
 *
 * Sources: T. Um et al., Metis, USENIX ATC 2024, Algorithm 1; J. Shong et al., Improved
 * Intra-Operator Parallelism for Distributed LLM Training (the OOM-first paper), section
 * 3.4 and Table 1. Neither paper defines a step; the rules here follow the released
 * programs, in our words:
 *
 *  - For each order of the types, number of stages, list of group sizes (device_group.h;
 *    powers of two not below variance * floor(GPUs / stages)) and divisor of the global
 *    batch, from the largest: all stages start with data parallelism only.
 *  - A strategy is allowed if each stage has a whole sample for each replica, not more
 *    than was measured, and a measured degree. It then splits the layers in proportion,
 *    up to HET_PAPER_WALK_SPLITS times, shifting shares away from stages that are short
 *    of memory; each split that does not fit is a step.
 *  - A first split that fits is a plan, and ends the candidate. A later one is a plan,
 *    and the search goes on.
 *  - Each continuation is a step: one stage with more than one replica gets half as many
 *    of twice the degree. The order says which stage; of equal ones, the first.
 *  - In every order of types but the first, one stage is left out, and the least number
 *    of stages above it that has lists is walked twice: a defect of the released program.
 *    This walk does not repeat it but counts its steps.
 *  - Steps behind a candidate's last plan are not counted, nor are those of a candidate
 *    without any.
 *
 * Differs: splits that lose layers, or leave a stage without any, are counted as plans
 * but not priced; a replica that spans types takes the time of its slowest (the programs
 * take its first GPU's). */
#ifndef HET_ALGO_METIS_PAPER_WALK_H
#define HET_ALGO_METIS_PAPER_WALK_H

#include "planner/algo/metis/device_group.h"
#include "planner/model/plan.h"
#include "planner/search/search.h"

#define HET_PAPER_WALK_SPLITS 3u

enum het_paper_walk_order {
    /* The stage with least memory to spare after the last split, if that fitted; else the
     * one with most replicas. */
    HET_PAPER_WALK_LAST_SPLIT,
    /* The stage shortest of memory in the first split that did not fit, of the last
     * strategy that was allowed; without one, as above. OOM-first, section 3.4. */
    HET_PAPER_WALK_OOM_FIRST,
};

/* The factor of HET_WALK_MEMORY_METIS (search.h). */
#define HET_PAPER_WALK_METIS_FACTOR 5.0

struct het_paper_walk_plan {
    const struct het_device_group_row *row;
    uint32_t row_id;
    const uint32_t *sizes; /* [stage_count]: GPUs */
    const uint32_t *tp;    /* [stage_count]; may span nodes and types */
    const uint32_t *cuts;  /* [stage_count + 1] */
    uint32_t stage_count, microbatch_count;
    /* Metis, equation 1:
     *   sum_i (e_i + 2 c_i) + (m - 1) * max_i (e_i + 2 c_i) + max_i y_i
     * e_i seconds of the stage's slowest replica, c_i of sending a micro-batch's
     * activations on at the slowest link or uplink of both stages, y_i of a ring of
     * 4-byte gradients at the slowest of the stage. No uplink is shared, a replica may
     * span nodes: lower than cost.h's, which is what a plan is judged by. */
    double seconds;
};

struct het_paper_walk_counts {
    uint64_t lists;      /* of group sizes, in all orders of types */
    uint64_t candidates; /* lists x numbers of micro-batches */
    uint64_t strategies; /* tried beyond each candidate's first */
    uint64_t failures;   /* splits that did not fit */
    uint64_t steps;      /* strategies + failures up to each candidate's last plan: what
                            the programs count */
    uint64_t plans;      /* splits that fitted; */
    uint64_t broken;     /* of these, with layers lost or stages without any */
};

struct het_paper_walk_question {
    const struct het_problem *problem;
    const struct het_cluster *cluster; /* problem's, or some of its GPUs */
    double variance;
    uint32_t permute, stage_limit;
    enum het_paper_walk_order order;
    enum het_walk_memory memory;
    void *context;
    /* Called with each plan that has all layers; may be NULL. */
    void (*visit)(void *context, const struct het_paper_walk_plan *plan);
    /* Called for work done, in splits (eight strategies count as one); false stops the
     * walk. May be NULL. */
    bool (*spend)(void *context, uint64_t splits);
};

/* Walks all candidates. Returns false if `spend` stopped it. No allocation after the
 * start. */
bool het_paper_walk_run(const struct het_paper_walk_question *question,
                        struct het_paper_walk_counts *ret_counts);

#endif
