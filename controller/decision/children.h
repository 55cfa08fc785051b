/* children.h - plan -> child objects, and job -> the planner's question. Pure. */
#ifndef CONTROLLER_DECISION_CHILDREN_H
#define CONTROLLER_DECISION_CHILDREN_H

#include "controller/decision/snapshot.h"

#define PLAN_MAX_BYTES      ((size_t)900 << 10)
/* Linux takes 128 KiB as one variable (MAX_ARG_STRLEN), and every pod has them. */
#define ARGUMENTS_MAX_BYTES ((size_t)64 << 10)

/* Facts of a new generation that its ConfigMap records. */
struct children_generation {
    int64_t generation;
    const struct het_plan *plan; /* unbound */
    const char *trigger;         /* "JobCreated", "NodeLost", ... */
    uint64_t input_digest;
    const char *input_parts;  /* input_change.h */
    const char *replan_times; /* ANNOTATION_REPLAN_TIMES; "": none */
    int64_t planner_ms;       /* -1: no search led to this generation */
    int64_t restarts, replans;
    const char *claim; /* ANNOTATION_PREEMPTS; NULL: none */
};

/* Whether a node is usable that has a free GPU: without one there is nothing to ask. */
bool children_can_ask(const struct snapshot *snapshot);
/* The document for `hetplan plan -`: cluster (usable nodes with free GPUs), profile,
 * hardware, job, and of all other GPUs why they are not there. A new reference; NULL if
 * nothing can be asked. */
json_t *children_question(const struct snapshot *snapshot);
/* The GPUs that the job cannot have now, with their reasons, sorted; in `arena`. */
void children_unused(struct het_arena *arena, const struct snapshot *snapshot,
                     struct het_unused_list *ret);

/* Whether the job's runtime runs `plan` as it is, ranks in this order; else `*ret_why`
 * (may be NULL; in `arena`) says why not. */
bool children_runs(struct het_arena *arena, const struct job_spec *spec,
                   const struct het_plan *plan, const char **ret_why);
/* Immutable ConfigMap with plan.json, rankmap.json, hostfile, and the files that the
 * job's runtime reads. A new reference. Errors: HET_BAD_INPUT, and `*ret_reason`:
 * "NotExpressible" for a plan that the runtime cannot run, "PlanTooLarge" when it would
 * pass PLAN_MAX_BYTES or ARGUMENTS_MAX_BYTES. */
int children_config_map(const struct snapshot *snapshot,
                        const struct children_generation *generation, json_t **ret,
                        const char **ret_reason, struct het_error *err);
/* Immutable ConfigMap with the plan.json of a plan that is shown only. A new reference;
 * NULL: it would pass PLAN_MAX_BYTES. */
json_t *children_candidate(const struct snapshot *snapshot, const struct het_plan *plan,
                           const char *hash);
/* Headless Service of the job, selecting the pods of `generation`. */
json_t *children_service(const struct snapshot *snapshot, int64_t generation);
/* Whether pods are created with our scheduling gate: the job wants it, the server can. */
bool children_has_gates(const struct snapshot *snapshot);
/* The stored plan `plan` as the job's runtime reads it, for the pods of its generation;
 * in `arena`. Errors: HET_BAD_INPUT, with "NotExpressible", when the plan was made for
 * another runtime. */
int children_rendering(const struct snapshot *snapshot, const struct snapshot_plan *plan,
                       struct het_arena *arena, struct het_rendering *ret,
                       const char **ret_reason, struct het_error *err);
/* Pod `index` of a generation, a new reference. Errors: HET_BAD_INPUT, when the template
 * clashes with what we must set (reserved environment names, no such container, ...), or
 * the pod is more than its tenant may ask for; `*ret_reason` is the condition reason:
 * "InvalidSpec", or one of tenancy.h. */
int children_pod(const struct snapshot *snapshot, const struct snapshot_plan *plan,
                 const struct het_rendering *rendering, size_t index, json_t **ret,
                 const char **ret_reason, struct het_error *err);
/* Checks what can be known of a job's pods without a plan: its template the way
 * children_pod will use it, what its tenant may ask for, and whether a growing profile can
 * be measured ("ProfilerNotConfigured"). Other reasons as of children_pod. */
int children_check_job(const struct tenancy *tenancy, const struct job_spec *spec,
                       const json_t *job, const char **ret_reason, struct het_error *err);

#endif
