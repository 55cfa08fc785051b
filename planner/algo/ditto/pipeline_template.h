/* pipeline_template.h - pipeline templates: which stages a pipeline has when its time is
 * counted as Oobleck and Ditto count it. What a stage may run on is the caller's list of
 * kinds.
 *
 *   T  = T1 + T2 + T3
 *   T1 = sum_k t_k                            the pipeline fills and drains
 *   T2 = (N_b - S + k* - 1) t_k*              the slowest stage sets the pace
 *   T3 = sum_{k >= k*} t_k
 *
 *   t_k  seconds forward and backward of one micro-batch in stage k = 1 .. S
 *   k*   the slowest stage; of equal ones the last, as in Oobleck
 *   N_b  micro-batches an iteration
 *
 * Source: Ditto, section 3, eq. 1 to 3 (Oobleck, SOSP 2023, section 4.1.2). Sends between
 * stages cost nothing in it. For even stages T is (N_b + S) t, one t above what a
 * one-forward-one-backward pipeline takes; where short stages follow the slowest one, T
 * falls below N_b t_k*, which no pipeline can do; for N_b < S - k* + 1 T2 is negative. So
 * it chooses templates here, and cost.h prices the plans. */
#ifndef HET_ALGO_DITTO_PIPELINE_TEMPLATE_H
#define HET_ALGO_DITTO_PIPELINE_TEMPLATE_H

#include "planner/base/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* One way to run a stage. */
struct het_pipeline_template_kind {
    uint32_t resource;     /* what it takes: a GPU type; */
    uint32_t amount;       /* and how much: GPUs */
    uint32_t most;         /* layers that such a stage may have; 0: any number */
    const double *seconds; /* [layer_count + 1] prefix sums, forward and backward */
    /* [layer_count]: layers first .. ends[first] - 1 fit in memory, one more would not.
     * Never falls as `first` rises. NULL: all fit. */
    const uint32_t *ends;
};

struct het_pipeline_template_question {
    uint32_t layer_count;
    const struct het_pipeline_template_kind *kinds;
    size_t kind_count;
    const uint32_t *available; /* [resource] */
    size_t resource_count;
    bool use_all;              /* nothing may be left over */
    uint32_t stage_limit;      /* 0: none */
    uint32_t stage_least;      /* of a list: fewer stages are not asked for */
    uint32_t microbatch_count; /* N_b; the time is meaningless below the stage count */
    double worth_s;            /* only templates with a lower T are looked for; 0: any */
    double pace_s;             /* only those in which no stage takes more; 0: any */
    uint64_t cell_limit;       /* 0: none; see below */
};

struct het_pipeline_template_stage {
    uint32_t kind, first_layer, layer_count;
};

struct het_pipeline_template {
    double seconds; /* T; HUGE_VAL: there is none */
    const struct het_pipeline_template_stage *stages;
    uint32_t stage_count;
};

/* T of `stage_count` stages that take seconds[stage]. */
double het_pipeline_template_seconds(const double *stage_s, uint32_t stage_count,
                                     uint32_t microbatch_count);

/* Cells that a table may have: some 48 bytes each. */
#define HET_PIPELINE_TEMPLATE_MAX_CELLS (1u << 20)

/* The template with the least T, in `arena`; of equal ones the most even. Adds the cells
 * that were worked on to `*cells`. False: there is none, or the table is too large
 * (HET_PIPELINE_TEMPLATE_MAX_CELLS: product of the available amounts plus one, times
 * layers).
 *
 * Method. With t = t_k* fixed, T is a sum over stages: t_k before k*, 2 t_k at it,
 * 2 t_k - t behind it, and (N_b - 1) t. So for each t a table over (amounts taken, layers
 * done, before or behind k*) holds the least sum, where stages before k* take at most t,
 * k* takes t, and those behind it less. t rises from the least with which the layers can
 * be reached to where T >= sum_l min_kind t(l) + (N_b - S_max + 1) t is no better than
 * the best found. Exact if that end is reached before `cell_limit` cells were worked on
 * (`ret->seconds` is then the optimum). Source: ours; Oobleck divides and conquers over
 * all cuts, stages and GPUs, from the best halves, which need not make the best whole. */
bool het_pipeline_template_find(struct het_arena *arena,
                                const struct het_pipeline_template_question *question,
                                struct het_pipeline_template *ret, uint64_t *cells);

/* The best template of each number of stages: `ret[stages]` up to stage_limit, which may
 * not be 0; seconds HUGE_VAL where there is none, or not asked for. Returns how many. */
uint32_t het_pipeline_template_list(struct het_arena *arena,
                                    const struct het_pipeline_template_question *question,
                                    struct het_pipeline_template *ret, uint64_t *cells);

#endif
