/* reconcile.h - snapshot -> actions. Pure: no network, no clock, no failure. What follows
 * depends on what is there, never on how it came about, so a crash between any two
 * actions is harmless: the next pass starts again from what is there.
 *
 * A generation of pods is decided by creating its plan ConfigMap; from then on the newest
 * ConfigMap says what should be. Older pods go first; when none of them can hold a GPU or
 * run a rank any more, the Service turns to the new generation and its pods are created.
 */
#ifndef CONTROLLER_RECONCILE_H
#define CONTROLLER_RECONCILE_H

#include "controller/desired.h"

#define FIELD_MANAGER        "heterotrain.io-controller"
#define STATUS_FIELD_MANAGER "heterotrain.io-controller-status"
#define PLANS_KEPT           3 /* ConfigMaps of old generations that stay for people to read */

enum action_kind {
    ACTION_CREATE, /* POST; AlreadyExists with our uid as controller is success */
    ACTION_APPLY,  /* server-side apply */
    ACTION_DELETE, /* with uid precondition */
    ACTION_STATUS, /* server-side apply of the status subresource */
    ACTION_EVENT,  /* POST; failure is logged, nothing more */
    ACTION_PLAN,   /* ask the planner; not a write */
};

struct action {
    enum action_kind kind;
    /* Actions of one phase may run at the same time; a phase starts when the one before
     * it has succeeded. Phases ascend. */
    int phase;
    const struct kube_resource *resource;
    const char *ns, *name;
    const char *uid; /* ACTION_DELETE: precondition */
    int64_t grace_s; /* ACTION_DELETE: -1 the object's own */
    json_t *
        object; /* owned by the decision; CREATE, APPLY, STATUS, EVENT, PLAN (question) */
    uint64_t digest, spec_digest; /* ACTION_PLAN: of the question */
    int64_t timeout_ms;           /* ACTION_PLAN */
};

struct decision {
    struct action *actions;
    size_t action_count, action_capacity;
    int64_t
        requeue_ms; /* look again at this (monotonic) time; INT64_MAX: only on change */
    /* The job wants GPUs and has not been told yet whether it gets them: younger jobs
     * wait. */
    bool is_unanswered;
    struct job_memory
        memory;          /* to remember; the answer is borrowed from the snapshot's */
    const char *summary; /* one line for the log: what state the job is in, and why */
};

/* `arena` holds strings and the array of actions; objects are given back by
 * decision_fini. */
void reconcile(struct het_arena *arena, const struct snapshot *snapshot,
               struct decision *ret);
void decision_fini(struct decision *decision);

#endif
