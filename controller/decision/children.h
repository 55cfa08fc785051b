/* children.h - builds a job's child objects from a plan, and the planner's question from
 * a job. Pure. */
#ifndef CONTROLLER_DECISION_CHILDREN_H
#define CONTROLLER_DECISION_CHILDREN_H

#include "controller/decision/snapshot.h"

#define PLAN_MAX_BYTES      ((size_t)900 << 10)
/* Linux limits one variable to 128 KiB (MAX_ARG_STRLEN), and every pod carries the
 * arguments. */
#define ARGUMENTS_MAX_BYTES ((size_t)64 << 10)

/* What the ConfigMap of a new generation records. */
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

/* Whether some usable node has a free GPU. Without one there is no question to ask. */
bool children_can_ask(const struct snapshot *snapshot);
/* The document for `hetplan plan -`: cluster (usable nodes with free GPUs), profile,
 * hardware, job, and the reasons why all other GPUs are left out. Returns a new
 * reference, or NULL if there is nothing to ask. */
json_t *children_question(const struct snapshot *snapshot);
/* The GPUs that the job cannot use now, with the reasons, sorted; in `arena`. */
void children_unused(struct het_arena *arena, const struct snapshot *snapshot,
                     struct het_unused_list *ret);

/* Whether the job's runtime can run `plan` unchanged, with the ranks in this order. If
 * not, sets `*ret_why` (`ret_why` may be NULL; the text is in `arena`) to the reason. */
bool children_runs(struct het_arena *arena, const struct job_spec *spec,
                   const struct het_plan *plan, const char **ret_why);
/* Immutable ConfigMap with plan.json, rankmap.json, hostfile, and the files that the
 * job's runtime reads. Returns a new reference. Errors: HET_BAD_INPUT, with `*ret_reason`
 * "NotExpressible" for a plan that the runtime cannot run, "PlanTooLarge" for one that
 * would exceed PLAN_MAX_BYTES or ARGUMENTS_MAX_BYTES. */
int children_config_map(const struct snapshot *snapshot,
                        const struct children_generation *generation, json_t **ret,
                        const char **ret_reason, struct het_error *err);
/* Immutable ConfigMap with the plan.json of a plan that is only shown. Returns a new
 * reference, or NULL if it would exceed PLAN_MAX_BYTES. */
json_t *children_candidate(const struct snapshot *snapshot, const struct het_plan *plan,
                           const char *hash);
/* Headless Service of the job, selecting the pods of `generation`. */
json_t *children_service(const struct snapshot *snapshot, int64_t generation);
/* Whether pods are created with our scheduling gate: the job asks for it and the API
 * server supports it. */
bool children_has_gates(const struct snapshot *snapshot);
/* The stored plan `plan` as the job's runtime reads it, for the pods of its generation;
 * in `arena`. Errors: HET_BAD_INPUT, with "NotExpressible", when the plan was made for
 * another runtime. */
int children_rendering(const struct snapshot *snapshot, const struct snapshot_plan *plan,
                       struct het_arena *arena, struct het_rendering *ret,
                       const char **ret_reason, struct het_error *err);
/* Builds pod `index` of a generation. Returns a new reference. Errors: HET_BAD_INPUT,
 * when the template conflicts with what the operator sets (reserved environment names, no
 * such container, ...), or the pod exceeds what its tenant may ask for; `*ret_reason` is
 * the condition reason: "InvalidSpec", or one of tenancy.h. */
int children_pod(const struct snapshot *snapshot, const struct snapshot_plan *plan,
                 const struct het_rendering *rendering, size_t index, json_t **ret,
                 const char **ret_reason, struct het_error *err);
/* Checks what is known of a job's pods before there is a plan: the template as
 * children_pod will use it, what the tenant may ask for, and whether a growing profile
 * can be measured ("ProfilerNotConfigured"). The other reasons are those of
 * children_pod. */
int children_check_job(const struct tenancy *tenancy, const struct job_spec *spec,
                       const json_t *job, const char **ret_reason, struct het_error *err);

#endif
