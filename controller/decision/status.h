/* status.h - the status of a job as a pure function of what is there: conditions with
 * observedGeneration and reasons, plan summary, allocation, pods, counters. */
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
    const char *candidate_hash; /* NULL: there was no plan, and there are no numbers */
    double current_s, candidate_s, gain, cost_s, benefit_s, horizon_s;
};

/* What reconcile found out; status_build turns it into JSON. */
struct status_facts {
    struct status_condition conditions[STATUS_MAX_CONDITIONS];
    size_t condition_count;
    const struct snapshot_plan *plan; /* the newest generation; NULL: none yet */
    bool holds_gpus;                  /* its GPUs are held, or about to be */
    struct status_decision decision;  /* trigger NULL: the last one stands */
    /* A plan that is shown and not carried out; NULL: the one shown stands, while its job
     * is one of those that show any (Manual mode, planOnly). */
    const struct het_plan *candidate;
    bool candidate_is_dropped;
    struct status_demand demands[STATUS_MAX_DEMANDS];
    size_t demand_count;
    bool demands_stand; /* what is missing is not known yet: those shown before stand */
    /* GPUs that a job cannot have which waits for a plan, or has one only to be shown;
     * NULL: those of `plan`, or what was shown before if there is none or that stands. */
    const struct het_unused_list *unused;
    bool unused_stand;
};

void status_set(struct status_facts *facts, const char *type, const char *status,
                const char *reason, const char *message);
/* Whether `type` was set; and what to, NULL: it was not. */
bool status_has(const struct status_facts *facts, const char *type);
const struct status_condition *status_find(const struct status_facts *facts,
                                           const char *type);
/* The hash of the plan that the status is going to show only; "": of none. */
const char *status_candidate(struct het_arena *arena, const struct snapshot *snapshot,
                             const struct status_facts *facts);
/* The whole status object; times of conditions that did not change are kept from the
 * job's present status, others are snapshot->wall_ms. A new reference. */
json_t *status_build(struct het_arena *arena, const struct snapshot *snapshot,
                     const struct status_facts *facts);
/* Which pods of `plan` have succeeded, by index, into `ret`[plan->rank_node_count]: what
 * pods say, and what status.pods.succeededIndexes remembers of pods that went with their
 * node since. */
void status_find_succeeded(const struct snapshot *snapshot,
                           const struct snapshot_plan *plan, bool *ret);
/* The present status of a finished job with its pods counted anew, as they end after it,
 * the spec's generation, and the conditions of `facts`. A new reference. */
json_t *status_recount(struct het_arena *arena, const struct snapshot *snapshot,
                       const struct status_facts *facts);
/* What the conditions of a status say, in a word (docs/api.md, State): status.state.
 * `status` may be NULL, as of a job that nobody has looked at: "Pending". */
const char *status_state(const json_t *status);
/* All words that it may say, by i below STATUS_STATES. */
enum { STATUS_STATES = 12 };
const char *status_state_name(size_t i);
/* Whether the job shows another decision than `decision`, or none. */
bool status_decision_is_new(const json_t *job, const struct status_decision *decision);
/* How long `status` may wait to be written over the job's present one, so that a person
 * misses nothing and steps that follow each other are one write: 0 where something
 * happened that people or programs wait for; STATUS_PROGRESS_MS where it only tells of
 * steps on the way to running. */
#define STATUS_PROGRESS_MS ((int64_t)3000)
int64_t status_patience_ms(const json_t *job, const json_t *status);
/* Whether writing `status` over the job's present status would change anything. */
bool status_differs(const json_t *job, const json_t *status);

#endif
