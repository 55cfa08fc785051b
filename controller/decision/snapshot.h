/* snapshot.h - all that one decision may know: the job, its children, the nodes as the
 * job sees them, what the planner last answered, and the time. A value: built from the
 * store and the capacity table, never changed. Pure. */
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
    uint64_t spec_digest;     /* of its part that is not about nodes */
    struct input_state parts; /* of what was asked about */
    int64_t asked_ms;
    const char *text;    /* the plan (canonical JSON), or "" */
    const char *message; /* why there is none */
    int64_t planner_ms;
    /* A plan of a search that was cut short as others waited: it is good enough to run,
     * and a longer search may find a better one. */
    bool is_cut;
};

/* The checkpoint hook (drain.h) that was started last: of which generation, for the
 * request of which time, and what came of it. */
enum hook_outcome {
    HOOK_IDLE,
    HOOK_RUNNING,
    HOOK_ACKNOWLEDGED, /* the checkpoint is written */
    HOOK_REFUSED,      /* the program says that it writes none */
};
struct hook_memory {
    enum hook_outcome outcome;
    int64_t generation, requested_wall_ms;
    const char *message; /* of HOOK_REFUSED: what came back; NULL otherwise */
};

/* What the process remembers of a job between two decisions; all of it may be lost at any
 * time without harm (a debounce starts again, a plan is computed again). */
struct job_memory {
    uint64_t input_digest;
    int64_t input_changed_ms;
    int64_t
        input_unsettled_ms; /* first change since the planner was asked last; 0: none */
    /* When the present generation was first seen unable to run as planned; 0: it can. */
    int64_t lost_since_ms;
    struct planner_answer answer;
    /* Of the answer that a decision was made on last; snapshot_digest_terms then. */
    uint64_t considered_digest, considered_terms;
    /* What is bound to the nodes of this generation was made sure of, to see whether it
     * fits: by a mark of this time on one of its pods; 0: it was read. */
    int64_t checked_generation, checked_ms, fit_mark_wall_ms;
    /* Pods of this generation were missing and the job's were read anew. */
    int64_t searched_generation, searched_ms;
    /* Whether the nodes of this generation still spoke when a rank of it failed
     * (heartbeat.h): how far that is known, since when, and of the lease in
     * doubt what it was. */
    int64_t heard_generation, heard_ms;
    enum hearing {
        HEARING_NONE,
        HEARING_ASKED,
        HEARING_DOUBT,
        HEARING_AGAIN,
        HEARING_OVER
    } hearing;
    uint64_t doubt_digest;
    /* To a question about GPUs that are not free (claim.h). */
    struct planner_answer what_if;
    bool is_planning; /* a child works on planning_digest */
    bool is_what_if;  /* and it is a question of that kind */
    uint64_t planning_digest, planning_spec_digest;
    struct input_state planning_parts;
    int64_t planning_asked_ms;
    int planner_failures; /* in a row */
    int64_t planner_failed_ms;
    struct hook_memory hook;
    /* Writes that the API server refuses for good (invalid, quota, admission): how often
     * in a row, since when, for which metadata.generation, and its words (borrowed). */
    int refusals;
    int64_t refused_ms, refused_generation;
    const char *refusal;
    /* The generation whose objects could not be created last, as somebody else's have
     * their names; how often in a row, and when (generation.h). 0: none. */
    int64_t taken_generation, taken_ms;
    int taken;
    /* The same of what has GPU types measured (profiling.h), whatever failed.
     */
    int profiling_refusals;
    int64_t profiling_refused_ms;
    const char *profiling_refusal;
};

/* Whether there is a planner for a question now. */
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
    bool has_other_gates; /* has one of somebody else (quota) */
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
    int64_t gang_timeouts;    /* of the job up to this one; 0 if it was bound in time */
    uint64_t input_digest;
    int64_t restarts, replans;
    const char *input_parts;     /* input_change.h; "": not known */
    const char *replan_times;    /* ANNOTATION_REPLAN_TIMES */
    int64_t claim_until_wall_ms; /* of a plan that preempts; 0: none (other_jobs.h) */
    int64_t claims_in_vain;      /* given up right before it, in a row */
    const struct het_plan *plan; /* NULL if plan.json cannot be read */
    struct het_rank_node *rank_nodes;
    size_t rank_node_count;
    size_t pod_count; /* of its gang; 0 if the ConfigMap does not say */
    /* When its program was asked for a checkpoint; 0: it was not, or was not since. */
    int64_t checkpoint_requested_wall_ms;
    bool checkpoint_is_for_notice; /* the pods were to stay (CHECKPOINT_FOR_NOTICE) */
    bool checkpoint_is_over;       /* acknowledged, or there will be none */
};

struct snapshot {
    int64_t now_ms;  /* monotonic */
    int64_t wall_ms; /* since 1970 */

    const json_t *job;
    struct job_spec spec;
    const char *refused_reason; /* NULL: the spec is accepted */
    const char *refused;        /* what is wrong with it; NULL: nothing */

    const json_t *profile; /* ModelProfile object; NULL: not there */
    /* What the profile lacks, of a job whose profile grows; Jobs for measurements that
     * are the job's and not wanted any more. */
    const struct measurement *measurements;
    size_t measurement_count;
    const json_t *const *spent_measurements;
    size_t spent_measurement_count;
    const json_t *hardware; /* the admin's hardware file; NULL: built in only */
    const struct settings *settings;
    const char *leader; /* "identity/transitions" of who decides; NULL: no election */

    const struct snapshot_plan *plans; /* newest first */
    size_t plan_count;
    const json_t *candidate; /* ConfigMap of a plan that is shown only; NULL: none */
    const struct snapshot_pod *pods; /* all our pods, by (generation, index) */
    size_t pod_count;
    const json_t *const *leases; /* of the nodes of the newest plan, as far as known */
    size_t lease_count;
    const json_t *service;             /* NULL: not there; may be somebody else's */
    const struct capacity_node *nodes; /* by name; of their GPUs, what the quota allows */
    size_t node_count;
    struct kueue_quota quota;
    int64_t avoided_until_wall_ms; /* some nodes are left out until then; 0: none is */
    int64_t server_minor;          /* of the API server: Kubernetes 1.server_minor */
    struct pod_security_policy namespace_policy; /* by the labels of the namespace */
    /* The version of the API server up to which every change of any pod is known, as
     * watch_version; NULL: not known. */
    const char *pods_version;
    /* Labels of the hardware's levels that the planner is told of, in order. */
    const char *levels[HET_MAX_LEVELS];
    size_t level_count;

    /* Filled by the caller: the best bid of another job for GPUs that are free (0: none),
     * whose it is, and a job that may yet bid or has not been answered; NULL: none. */
    double rival_bid;
    const char *rival, *rival_asking;
    struct precedence precedence;
    const struct claim *claimed_by; /* somebody wants GPUs of this job; NULL: nobody */
    const struct other_job *peers; /* by precedence; only of a job that may lay a claim */
    size_t peer_count;

    uint64_t input_digest; /* of all that the planner's answer depends on */
    uint64_t spec_digest;  /* of that without the nodes */
    /* Of what the spec says about pods besides the plan; fields left out count as their
     * defaults. 0: the spec is refused. */
    uint64_t pod_digest;
    struct input_state input_parts;
    struct job_memory memory;
    const char
        *blocked_by; /* older job that has not been answered yet ("ns/name"), NULL */
    enum planner_load planner_load;
};

/* What need not be read again of one job's objects as long as they are the same; zero:
 * nothing is known. */
struct snapshot_memo {
    json_t *job; /* of which spec, its digests and `kept` are */
    struct job_spec spec;
    const char *refused_reason;
    char *refused;
    uint64_t pod_digest, planning_digest;
    uint64_t parses; /* of the spec, so far */
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
    /* Of this job, and of `hardware` and `settings` of capacity; NULL: all is read.
     * Outlives the snapshot. */
    struct snapshot_memo *memo;
};

/* Whether two snapshots of one job tell the same to the planner, and show the same
 * nodes. For tests: a memo changes nothing. */
bool snapshot_is_same(const struct snapshot *a, const struct snapshot *b);

/* What holds for the job's pods. */
struct tenancy snapshot_tenancy(const struct snapshot *snapshot);

/* Builds the snapshot of the job with `ns` and `name`; false if the store has no such
 * job. `memory` may be NULL (nothing remembered yet). Everything is in `arena` or
 * borrowed from the store or the memo. What concerns other jobs (rivals, blocked_by,
 * planner_load) is filled by the caller. */
bool snapshot_take(struct het_arena *arena, const struct snapshot_sources *sources,
                   const char *ns, const char *name, const struct job_memory *memory,
                   struct snapshot *ret);

/* Reads `spec` out of the job, its GPU types by their names in `table`, or what is wrong
 * with it. True if it can be acted on. */
bool snapshot_read_spec(struct het_arena *arena, const struct het_hardware *table,
                        struct snapshot *snapshot);
/* Reads `plan`, and where its ranks are, out of its ConfigMap; `plan->plan` stays NULL if
 * that cannot be read. */
void snapshot_read_plan(struct het_arena *arena, struct snapshot_plan *plan);

/* The node of that name; NULL if there is none. */
/* Of what the job's spec says; approvedPlanHash is no part of it, as an approval is about
 * a plan that was weighed already. */
uint64_t snapshot_digest_terms(const struct snapshot *snapshot);
const struct capacity_node *snapshot_find_node(const struct snapshot *snapshot,
                                               const char *name);
/* Whether the job is over: condition Complete or Failed is True. */
bool snapshot_job_is_finished(const json_t *job);

#endif
