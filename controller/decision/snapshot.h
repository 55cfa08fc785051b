/* snapshot.h - everything that one decision may depend on: the job, its children, the
 * nodes as the job sees them, the planner's last answer, and the time. It is a value,
 * built from the store and the capacity table and never changed. Pure. */
#ifndef CONTROLLER_DECISION_SNAPSHOT_H
#define CONTROLLER_DECISION_SNAPSHOT_H

#include "controller/base/object_store.h"
#include "controller/cluster/capacity_view.h"
#include "controller/cluster/kueue_quota.h"
#include "controller/cluster/measurement.h"
#include "controller/decision/other_jobs.h"
#include "controller/job/job_spec.h"
#include "controller/job/settings.h"
#include "controller/job/tenancy.h"

/* The planner's answer to one question. */
enum answer_kind {
    ANSWER_NONE,
    ANSWER_PLAN,
    ANSWER_NO_PLAN, /* nothing fits; until the input changes */
    ANSWER_REFUSED, /* the question is wrong (profile, limits); until the input changes */
    ANSWER_FAILED,  /* the planner broke; it is asked again after a back-off */
};
struct planner_answer {
    enum answer_kind kind;
    uint64_t digest;          /* of the question */
    uint64_t spec_digest;     /* of its part without the nodes */
    struct input_state parts; /* of the input asked about */
    int64_t asked_ms;
    const char *text;    /* the plan (canonical JSON), or "" */
    const char *message; /* why there is none */
    int64_t planner_ms;
    /* The search was cut short because other jobs waited: the plan is good enough to run,
     * and a longer search may find a better one. */
    bool is_cut;
};

/* The checkpoint hook (drain.h) started last: its generation, the time of its request,
 * and its outcome. */
enum hook_outcome {
    HOOK_IDLE,
    HOOK_RUNNING,
    HOOK_ACKNOWLEDGED, /* the checkpoint is written */
    HOOK_REFUSED,      /* the program declined to write one */
};
struct hook_memory {
    enum hook_outcome outcome;
    int64_t generation, requested_wall_ms;
    const char *message; /* of HOOK_REFUSED: the reply; NULL otherwise */
};

/* What the process remembers of a job between two decisions. Losing any of it is harmless
 * (a debounce starts again, a plan is computed again). */
struct job_memory {
    uint64_t input_digest;
    int64_t input_changed_ms;
    int64_t
        input_unsettled_ms; /* first change since the planner was last asked; 0: none */
    /* When the present generation was first seen unable to run as planned; 0: it can. */
    int64_t lost_since_ms;
    struct planner_answer answer;
    /* The answer last decided on, and snapshot_digest_terms at that time. */
    uint64_t considered_digest, considered_terms;
    /* The check of what is bound to the nodes of this generation (gang.h): its generation
     * and time, and the time of the mark on one of its pods; 0: the pods were read
     * instead. */
    int64_t checked_generation, checked_ms, fit_mark_wall_ms;
    /* The generation that lacked pods, and when the job's pods were read again for it. */
    int64_t searched_generation, searched_ms;
    /* Whether the nodes of this generation were alive when one of its ranks failed
     * (heartbeat.h): the progress of that check, since when, and the digest of the lease
     * in doubt. */
    int64_t heard_generation, heard_ms;
    enum hearing {
        HEARING_NONE,
        HEARING_ASKED,
        HEARING_DOUBT,
        HEARING_AGAIN,
        HEARING_OVER
    } hearing;
    uint64_t doubt_digest;
    /* The answer to a question about GPUs that are not free (preemption.h). */
    struct planner_answer what_if;
    bool is_planning; /* a planner process works on planning_digest */
    bool is_what_if;  /* on a question about GPUs that are not free */
    uint64_t planning_digest, planning_spec_digest;
    struct input_state planning_parts;
    int64_t planning_asked_ms;
    int planner_failures; /* in a row */
    int64_t planner_failed_ms;
    struct hook_memory hook;
    /* Writes that the API server refuses permanently (invalid, quota, admission): how
     * many in a row, since when, for which metadata.generation, and the server's message
     * (borrowed). */
    int refusals;
    int64_t refused_ms, refused_generation;
    const char *refusal;
    /* The last generation whose objects could not be created because foreign objects have
     * their names; how often in a row, and when (generation.h). 0: none. */
    int64_t taken_generation, taken_ms;
    int taken;
    /* The same counters for measurements of GPU types (profiling.h), for any failure. */
    int profiling_refusals;
    int64_t profiling_refused_ms;
    const char *profiling_refusal;
};

/* Whether a planner is available for a question now. */
enum planner_load {
    PLANNER_FREE,
    PLANNER_BUSY, /* only for a job that cannot run without an answer */
    PLANNER_FULL, /* for nobody */
};

struct snapshot_pod {
    const json_t *object;
    const char *name, *uid, *node;
    int64_t generation, index;
    enum { POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED } phase;
    bool is_ready, is_scheduled, is_deleting;
    bool is_gated;        /* has our scheduling gate */
    bool has_other_gates; /* has a gate of another controller (quota) */
    bool is_gone;         /* can neither hold a GPU nor run a rank */
    bool is_disrupted;    /* failed or lost by infrastructure: not counted as a restart */
    bool is_on_lost_node;
    int64_t exit_code; /* of a failed pod's main container; -1 unknown */
};

struct snapshot_plan {
    const json_t *config_map;
    const char *name, *uid, *hash;
    const char *retired;     /* why it was stopped for good; "": it was not */
    int64_t retired_wall_ms; /* when; 0: not known */
    uint64_t pod_digest;     /* of what its pods were made from; 0: not known */
    int64_t generation;
    int64_t created_wall_ms;
    int64_t released_wall_ms; /* the gates of its pods were lifted; 0: not yet */
    int64_t gang_timeouts;    /* consecutive ones of the job up to this one; 0 if it was
                                 bound in time */
    uint64_t input_digest;
    int64_t restarts, replans;
    const char *input_parts;     /* input_change.h; "": not known */
    const char *replan_times;    /* ANNOTATION_REPLAN_TIMES */
    int64_t claim_until_wall_ms; /* of a plan that preempts; 0: none (other_jobs.h) */
    int64_t claims_in_vain;      /* consecutive claims given up right before it */
    const struct het_plan *plan; /* NULL if plan.json cannot be read */
    struct het_rank_node *rank_nodes;
    size_t rank_node_count;
    size_t pod_count; /* of its gang; 0 if the ConfigMap does not give it */
    /* When its program was last asked for a checkpoint; 0: it was not. */
    int64_t checkpoint_requested_wall_ms;
    bool checkpoint_is_for_notice; /* the pods were meant to stay
                                      (CHECKPOINT_FOR_NOTICE) */
    bool checkpoint_is_over;       /* acknowledged, or no answer will come */
};

struct snapshot {
    int64_t now_ms;  /* monotonic */
    int64_t wall_ms; /* since 1970 */

    const json_t *job;
    struct job_spec spec;
    const char *refused_reason; /* NULL: the spec is accepted */
    const char *refused;        /* what is wrong with it; NULL: nothing */

    const json_t *profile; /* ModelProfile object; NULL: not there */
    /* If the job's profile grows: the measurements that the profile lacks, and the job's
     * measurement Jobs that are no longer wanted. */
    const struct measurement *measurements;
    size_t measurement_count;
    const json_t *const *spent_measurements;
    size_t spent_measurement_count;
    const json_t *hardware; /* the admin's hardware file; NULL: built in only */
    const struct settings *settings;
    const char *leader; /* "identity/transitions" of the deciding replica; NULL: no
                           election */

    const struct snapshot_plan *plans; /* newest first */
    size_t plan_count;
    const json_t *candidate; /* ConfigMap of a plan that is only shown; NULL: none */
    const struct snapshot_pod *pods; /* all our pods, by (generation, index) */
    size_t pod_count;
    const json_t *const *leases; /* of the nodes of the newest plan, as far as known */
    size_t lease_count;
    const json_t *service;             /* NULL: absent; may be foreign */
    const struct capacity_node *nodes; /* by name; their GPUs limited to the quota */
    size_t node_count;
    struct kueue_quota quota;
    int64_t avoided_until_wall_ms; /* some nodes are left out until then; 0: none */
    int64_t server_minor;          /* of the API server: Kubernetes 1.server_minor */
    struct pod_security_policy namespace_policy; /* by the labels of the namespace */
    /* The API server's version up to which every change of every pod is known
     * (watch_version); NULL: not known. */
    const char *pods_version;
    /* Labels of the hardware's levels that the planner is told of, in order. */
    const char *levels[HET_MAX_LEVELS];
    size_t level_count;

    /* Filled by the caller: the best bid of another job for free GPUs (0: none), the job
     * that made it, and a job that may still bid or waits for its answer; NULL: none. */
    double rival_bid;
    const char *rival, *rival_asking;
    struct precedence precedence;
    const struct claim *claimed_by; /* the claim on GPUs of this job; NULL: none */
    const struct other_job *peers;  /* by precedence; only if this job may make a claim */
    size_t peer_count;

    uint64_t input_digest; /* of all that the planner's answer depends on */
    uint64_t spec_digest;  /* of the same without the nodes */
    /* Digest of what the spec says about pods besides the plan; omitted fields count as
     * their defaults. 0: the spec is refused. */
    uint64_t pod_digest;
    struct input_state input_parts;
    struct job_memory memory;
    const char
        *blocked_by; /* older job that still waits for its answer ("ns/name"), or NULL */
    enum planner_load planner_load;
};

/* Parsed forms of one job's objects, reused as long as the objects are the same; zero:
 * nothing is known. */
struct snapshot_memo {
    json_t *job; /* the source of spec, its digests and `kept` */
    struct job_spec spec;
    const char *refused_reason;
    char *refused;
    uint64_t pod_digest, planning_digest;
    uint64_t parses; /* of the spec so far */
    struct capacity_kept kept;
    json_t *profile;
    uint64_t profile_digest;
    json_t *config_map; /* of the newest plan */
    struct het_arena *arena;
    const struct het_plan *plan;
    struct het_rank_node *rank_nodes;
    size_t rank_node_count;
};
void snapshot_memo_fini(struct snapshot_memo *memo);

/* What the controller knows besides the store. */
struct snapshot_sources {
    const struct store *store;
    const struct capacity *capacity;
    const json_t *hardware; /* may be NULL */
    uint64_t hardware_digest;
    const struct settings *settings; /* NULL: the default */
    const char *leader; /* "identity/transitions"; NULL: there are no other replicas */
    enum kueue_presence kueue;
    int64_t server_minor;
    const char *pods_version; /* of watch_version; NULL: there is no watch */
    int64_t now_ms, wall_ms;
    /* The memo of this job, for capacity's `hardware` and `settings`; NULL: everything is
     * parsed. It outlives the snapshot. */
    struct snapshot_memo *memo;
};

/* Whether two snapshots of one job give the planner the same input and show the same
 * nodes. For tests that a memo changes nothing. */
bool snapshot_is_same(const struct snapshot *a, const struct snapshot *b);

/* The tenancy rules for the job's pods. */
struct tenancy snapshot_tenancy(const struct snapshot *snapshot);

/* Builds the snapshot of the job with `ns` and `name`; false if the store has no such
 * job. `memory` may be NULL (nothing remembered yet). All results are in `arena` or
 * borrowed from the store or the memo. The caller fills in what concerns other jobs
 * (rivals, blocked_by, planner_load). */
bool snapshot_take(struct het_arena *arena, const struct snapshot_sources *sources,
                   const char *ns, const char *name, const struct job_memory *memory,
                   struct snapshot *ret);

/* Reads `spec` from the job, with GPU types named as in `table`, or records why it is
 * refused. True if it is accepted. */
bool snapshot_read_spec(struct het_arena *arena, const struct het_hardware *table,
                        struct snapshot *snapshot);
/* Reads `plan` and the places of its ranks from its ConfigMap; `plan->plan` stays NULL if
 * the ConfigMap cannot be read. */
void snapshot_read_plan(struct het_arena *arena, struct snapshot_plan *plan);

/* The node of that name; NULL if there is none. */
/* Digest of the job's spec without approvedPlanHash: an approval concerns a plan that was
 * already weighed. */
uint64_t snapshot_digest_terms(const struct snapshot *snapshot);
const struct capacity_node *snapshot_find_node(const struct snapshot *snapshot,
                                               const char *name);
/* Whether the job is over: condition Complete or Failed is True. */
bool snapshot_job_is_finished(const json_t *job);

#endif
