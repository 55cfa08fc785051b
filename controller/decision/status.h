/* status.h - the status of a job as a pure function of the present objects: conditions
 * with observedGeneration and reasons, plan summary, allocation, pods, counters. */
#ifndef CONTROLLER_DECISION_STATUS_H
#define CONTROLLER_DECISION_STATUS_H

#include "controller/decision/children.h"

struct status_condition {
    const char *type;   /* "PlanFeasible" */
    const char *status; /* "True", "False", "Unknown" */
    const char *reason; /* CamelCase, not empty */
    const char *message;
};

#define STATUS_MAX_CONDITIONS 16
#define STATUS_MAX_DEMANDS    64 /* as in the schema */

/* GPUs that are missing. */
struct status_demand {
    const char *type;
    int64_t gpus;
};

/* A new plan weighed against the running one (replan_rule.h). */
struct status_decision {
    const char *trigger, *result, *reason;
    const char *candidate_hash; /* NULL: there was no plan, so there are no numbers */
    double current_s, candidate_s, gain, cost_s, benefit_s, horizon_s;
};

/* What a pass found; status_build turns it into JSON. */
struct status_facts {
    struct status_condition conditions[STATUS_MAX_CONDITIONS];
    size_t condition_count;
    const struct snapshot_plan *plan; /* the newest generation; NULL: none yet */
    bool holds_gpus;                  /* its GPUs are held, or about to be */
    struct status_decision decision;  /* trigger NULL: the last one stands */
    /* A plan that is only shown; NULL: the one shown before stays, as long as the job is
     * of a kind that shows one (Manual mode, planOnly). */
    const struct het_plan *candidate;
    bool candidate_is_dropped;
    struct status_demand demands[STATUS_MAX_DEMANDS];
    size_t demand_count;
    bool demands_stand; /* what is missing is not known yet: the demands shown before
                           stay */
    /* GPUs that the job cannot use, when it waits for a plan or its plan is only shown.
     * NULL: those of `plan`, or those shown before if there is no plan or `unused_stand`
     * is set. */
    const struct het_unused_list *unused;
    bool unused_stand;
};

void status_set(struct status_facts *facts, const char *type, const char *status,
                const char *reason, const char *message);
/* Whether `type` was set (has), and the condition it was set to (find; NULL: it was
 * not). */
bool status_has(const struct status_facts *facts, const char *type);
const struct status_condition *status_find(const struct status_facts *facts,
                                           const char *type);
/* The hash of the plan that the status will show without carrying it out; "": none. */
const char *status_candidate(struct het_arena *arena, const struct snapshot *snapshot,
                             const struct status_facts *facts);
/* Builds the whole status object. Unchanged conditions keep their times from the job's
 * present status, others get snapshot->wall_ms. Returns a new reference. */
json_t *status_build(struct het_arena *arena, const struct snapshot *snapshot,
                     const struct status_facts *facts);
/* Fills `ret`[plan->rank_node_count] with which pods of `plan` have succeeded, by index:
 * by the pods themselves, and by status.pods.succeededIndexes for pods that have since
 * gone with their node. */
void status_find_succeeded(const struct snapshot *snapshot,
                           const struct snapshot_plan *plan, bool *ret);
/* The present status of a finished job with its pods counted again (they may end after
 * the job), the spec's generation, and the conditions of `facts`. Returns a new
 * reference. */
json_t *status_recount(struct het_arena *arena, const struct snapshot *snapshot,
                       const struct status_facts *facts);
/* Sums up the conditions of a status in one word, status.state (docs/api.md, State).
 * `status` is NULL for a job that no pass has seen yet: "Pending". */
const char *status_state(const json_t *status);
/* All words that status_state returns, for i below STATUS_STATES. */
enum { STATUS_STATES = 12 };
const char *status_state_name(size_t i);
/* Whether the job's status shows a decision other than `decision`, or none. */
bool status_decision_is_new(const json_t *job, const struct status_decision *decision);
/* How long the write of `status` may be delayed so that successive steps become one
 * write: 0 if it reports something that people or programs wait for, STATUS_PROGRESS_MS
 * if it only reports steps on the way to running. */
#define STATUS_PROGRESS_MS ((int64_t)3000)
int64_t status_patience_ms(const json_t *job, const json_t *status);
/* Whether writing `status` over the job's present status would change anything. */
bool status_differs(const json_t *job, const json_t *status);

#endif
