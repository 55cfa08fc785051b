/* decision.h - what one pass over a job decided: actions in phases, and what to remember.
 * It is a value: reconcile.h produces it, apply.h and loop.h carry it out. Pure. */
#ifndef CONTROLLER_DECISION_DECISION_H
#define CONTROLLER_DECISION_DECISION_H

#include "controller/decision/snapshot.h"

#define FIELD_MANAGER            "heterotrain.io-controller"
#define STATUS_FIELD_MANAGER     "heterotrain.io-controller-status"
/* Owns the one condition of a job that cannot be read. */
#define UNREADABLE_FIELD_MANAGER "heterotrain.io-controller-unreadable"
#define PLANS_KEPT               3 /* ConfigMaps of old generations kept for people */

enum action_kind {
    ACTION_CREATE, /* POST; AlreadyExists with our uid as controller is success */
    ACTION_APPLY,  /* server-side apply */
    ACTION_PATCH,  /* object: merge patch, with metadata.uid and resourceVersion where the
                      decision depended on them; array: JSON patch, with its tests. An
                      object that is gone is skipped */
    ACTION_DELETE, /* with uid precondition */
    ACTION_STATUS, /* server-side apply of the status subresource */
    ACTION_EVENT,  /* POST; failure is logged, nothing more */
    ACTION_REFRESH, /* GET: reads the collection that `query` selects from the server's
                       storage and updates the store with it */
    ACTION_PLAN,    /* ask the planner; not a write */
    ACTION_HOOK,    /* ask pod `name` for a checkpoint (checkpoint_hook.h); not a write */
};

struct action {
    enum action_kind kind;
    /* Actions of one phase may run concurrently; a phase starts when the previous one has
     * succeeded. Phases ascend. */
    int phase;
    const struct kube_resource *resource;
    const char *ns, *name;
    const char *uid;   /* ACTION_DELETE: precondition; ACTION_PATCH: whose it is */
    const char *query; /* ACTION_REFRESH: "fieldSelector=..." */
    int64_t grace_s;   /* ACTION_DELETE: -1 the object's own */
    bool may_fail;     /* later actions run even if this one fails */
    json_t *object;    /* owned by the decision; NULL for DELETE and REFRESH */
    uint64_t digest, spec_digest; /* ACTION_PLAN: of the question */
    struct input_state parts;     /* ACTION_PLAN: of what it asks about */
    bool is_what_if;              /* ACTION_PLAN: about GPUs that are not free */
    bool is_urgent;               /* ACTION_PLAN: the job cannot run without an answer */
    int64_t timeout_ms;           /* ACTION_PLAN, ACTION_HOOK */
    int64_t patience_ms;          /* ACTION_STATUS: longest delay of the write
                                     (status.h) */
    /* ACTION_HOOK; `object` is what is posted. */
    const char *address, *path;
    int64_t port;
};

/* What a running job would gain from the free GPUs. */
enum bid_state {
    BID_NONE,   /* it wants none now */
    BID_ASKING, /* the planner is computing it */
    BID_OPEN,   /* `value` is known */
};
struct bid {
    enum bid_state state;
    double value; /* increase in the logarithm of its throughput per GPU taken */
};

/* A question that was not asked because no planner is free for it. */
enum planner_wish {
    WISH_NONE,
    WISH_LATER, /* the job keeps running meanwhile */
    WISH_NOW,
};

struct decision {
    struct action *actions;
    size_t action_count, action_capacity;
    int64_t
        requeue_ms; /* look again at this (monotonic) time; INT64_MAX: only on change */
    /* The job wants GPUs, and it is not yet decided whether it gets them: younger jobs
     * wait. */
    bool is_unanswered;
    /* snapshot.blocked_by keeps the job from acting: the loop looks at it again when its
     * turn comes. */
    bool is_held_up;
    /* Until then (monotonic time), GPUs freed or taken on nodes where the job holds none
     * need not wake it; INT64_MAX: until something else about it changes. */
    int64_t deaf_until_ms;
    enum planner_wish planner_wish; /* the loop looks at the job again when a planner is
                                       free */
    struct bid bid;
    struct job_memory
        memory;          /* what to remember; the answer is borrowed from the snapshot */
    const char *summary; /* one line for the log: what state the job is in, and why */
};

/* Sorts the actions by phase; actions of one phase keep their order. */
void decision_sort(struct decision *decision);
/* Releases the objects of the actions; the array belongs to the arena. */
void decision_fini(struct decision *decision);

#endif
