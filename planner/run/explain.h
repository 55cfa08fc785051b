/* explain.h - why a plan is as it is: what bounds its step, why each cut is where it is,
 * what more GPUs would gain, and what each freedom of plans has gained. All of it comes
 * from pricing other plans (schedule.h) or searching again; the `predicted` of a plan's
 * file is not read. */
#ifndef HET_RUN_EXPLAIN_H
#define HET_RUN_EXPLAIN_H

#include "planner/run/run_all.h"

/* A pipeline with a layer moved over a border, and the same done in all pipelines of its
 * shape. */
struct het_explain_move {
    bool is_possible; /* the stage that gives has more than one layer, times are known */
    bool fits;        /* in memory, within the job's limits, in the runtime */
    double iteration_s;
};

struct het_explain_stage {
    uint32_t pipeline; /* the first of its shape */
    uint32_t stage;
    uint32_t pipeline_count; /* of that shape */
    double compute_s;        /* forward and backward of a micro-batch */
    double send_s;           /* of a micro-batch, both neighbours and directions, alone */
    double busy_share;       /* of the pipeline's bottleneck */
    double pipeline_s;       /* T_p, closed form */
    uint64_t peak_bytes, capacity_bytes; /* of the GPU that is fullest */
    /* Over the border behind the stage; not possible behind the last. */
    struct het_explain_move take_from_next, give_to_next;
};

/* What this and all earlier steps of freedom have gained. */
struct het_explain_freedom {
    const char *name, *text;
    double iteration_s; /* HUGE_VAL: no plan */
};
#define HET_EXPLAIN_FREEDOMS 6u

struct het_explain_more {
    uint32_t type; /* cluster type */
    uint32_t gpus; /* on one new node: 1, or as many as the type's largest node has */
    double iteration_s;
};

struct het_explanation {
    struct het_cost cost; /* simulated */
    double lower_bound_s;
    uint32_t busiest_uplink; /* of the gradients; cluster node, or node_count + domain;
                                HET_UNBOUND: GPUs' own links, or no gradients */
    const struct het_explain_stage *stages;
    size_t stage_count;
    const struct het_explain_freedom
        *freedoms; /* [HET_EXPLAIN_FREEDOMS]; NULL: not asked */
    const struct het_explain_more *more;
    size_t more_count;
};

/* Explains a bound plan that is valid for `problem`. With `options` the searches are run,
 * which share its effort evenly, so that all together take about as long as the one that
 * found the plan; NULL leaves them out. Errors: as het_schedule_simulate. */
int het_explain(struct het_arena *arena, const struct het_problem *problem,
                const struct het_plan *plan, const struct het_search_options *options,
                struct het_explanation *ret, struct het_error *err);

#endif
