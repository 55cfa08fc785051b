/* decision.h - what one pass over a job decided: actions in phases, and what to remember.
 * A value; reconcile.h makes it, apply.h and loop.h carry it out. Pure. */
#ifndef CONTROLLER_DECISION_DECISION_H
#define CONTROLLER_DECISION_DECISION_H

#include "controller/decision/snapshot.h"

#define FIELD_MANAGER            "heterotrain.io-controller"
#define STATUS_FIELD_MANAGER     "heterotrain.io-controller-status"
/* Of the one condition of a job that cannot be read. */
#define UNREADABLE_FIELD_MANAGER "heterotrain.io-controller-unreadable"
#define PLANS_KEPT               3 /* ConfigMaps of old generations that stay for people to read */

enum action_kind {
    ACTION_CREATE, /* POST; AlreadyExists with our uid as controller is success */
    ACTION_APPLY,  /* server-side apply */
    ACTION_PATCH,  /* object: merge patch, with metadata.uid and resourceVersion where the
                      decision depended on them; array: JSON patch, with its tests. One
                      that is gone is left alone */
    ACTION_DELETE, /* with uid precondition */
    ACTION_STATUS, /* server-side apply of the status subresource */
    ACTION_EVENT,  /* POST; failure is logged, nothing more */
    ACTION_REFRESH, /* GET: the collection that `query` selects is read anew from the
                       server's storage, and what comes is taken into the store */
    ACTION_PLAN,    /* ask the planner; not a write */
    ACTION_HOOK,    /* ask pod `name` for a checkpoint (checkpoint_hook.h); not a write */
};

struct action {
    enum action_kind kind;
    /* Actions of one phase may run at the same time; a phase starts when the one before
     * it has succeeded. Phases ascend. */
    int phase;
    const struct kube_resource *resource;
    const char *ns, *name;
    const char *uid;   /* ACTION_DELETE: precondition; ACTION_PATCH: whose it is */
    const char *query; /* ACTION_REFRESH: "fieldSelector=..." */
    int64_t grace_s;   /* ACTION_DELETE: -1 the object's own */
    bool may_fail;     /* what comes after it is done all the same */
    json_t *object;    /* owned by the decision; not of DELETE and REFRESH */
    uint64_t digest, spec_digest; /* ACTION_PLAN: of the question */
    struct input_state parts;     /* ACTION_PLAN: of what it asks about */
    bool is_what_if;              /* ACTION_PLAN: about GPUs that are not free */
    bool is_urgent;               /* ACTION_PLAN: the job cannot run without an answer */
    int64_t timeout_ms;           /* ACTION_PLAN, ACTION_HOOK */
    int64_t patience_ms; /* ACTION_STATUS: it may be written as much later (status.h) */
    /* ACTION_HOOK; `object` is what is posted. */
    const char *address, *path;
    int64_t port;
};

/* What a job that runs would gain by GPUs that are free. */
enum bid_state {
    BID_NONE,   /* it does not want any now */
    BID_ASKING, /* the planner is at work on it */
    BID_OPEN,   /* `value` is known */
};
struct bid {
    enum bid_state state;
    double
        value; /* rise of the logarithm of its throughput, for each GPU that it takes */
};

/* A question that was not asked, as no planner is free for it. */
enum planner_wish {
    WISH_NONE,
    WISH_LATER, /* the job runs meanwhile */
    WISH_NOW,
};

struct decision {
    struct action *actions;
    size_t action_count, action_capacity;
    int64_t
        requeue_ms; /* look again at this (monotonic) time; INT64_MAX: only on change */
    /* The job wants GPUs and has not been told yet whether it gets them: younger jobs
     * wait. */
    bool is_unanswered;
    /* snapshot.blocked_by keeps the job from what it wants to do: it is looked at again
     * in its turn. */
    bool is_held_up;
    /* Until then (monotonic) it need not be looked at when GPUs come free or are taken
     * where it has nothing; INT64_MAX: until something else happens to it. */
    int64_t deaf_until_ms;
    enum planner_wish planner_wish; /* the job is looked at again when one is free */
    struct bid bid;
    struct job_memory
        memory;          /* to remember; the answer is borrowed from the snapshot's */
    const char *summary; /* one line for the log: what state the job is in, and why */
};

/* Brings the actions into the order of their phases; those of one phase keep theirs. */
void decision_sort(struct decision *decision);
/* Gives the objects of the actions back; the array is its arena's. */
void decision_fini(struct decision *decision);

#endif
