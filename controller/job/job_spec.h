/* job_spec.h - a HeteroTrainingJob object as C: defaults, validation. Pure.
 *
 * The defaults here equal those of the schema in crds/ (a test compares them), so a job
 * read from a server without the schema behaves the same. */
#ifndef CONTROLLER_JOB_JOB_SPEC_H
#define CONTROLLER_JOB_JOB_SPEC_H

#include "controller/job/input_change.h"
#include "controller/job/settings.h"
#include "planner/modules.h"

#include <jansson.h>

#define JOB_SPEC_MAX_BYTES     ((size_t)256 << 10)
#define JOB_SPEC_MAX_GPU_TYPES 16
#define JOB_SPEC_MANAGED_BY    "heterotrain.io/controller"
#define JOB_SPEC_MAX_TOPOLOGY  8
/* The resources by which GPUs are requested if a job does not say: the first that a node
 * offers. */
#define JOB_SPEC_GPU_RESOURCE  "nvidia.com/gpu"
#define JOB_SPEC_AMD_RESOURCE  "amd.com/gpu"

/* Labels of all children of a job. */
#define LABEL_JOB_NAME      "heterotrain.io/job-name"
#define LABEL_JOB_UID       "heterotrain.io/job-uid"
#define LABEL_PLAN_REVISION "heterotrain.io/plan-revision"
#define LABEL_POD_INDEX     "heterotrain.io/pod-index"
#define LABEL_GPU_TYPE      "heterotrain.io/gpu-type"
#define LABEL_MANAGED_BY    "app.kubernetes.io/managed-by"
#define MANAGED_BY          "heterotrain"
#define LABEL_COMPONENT     "app.kubernetes.io/component"
#define COMPONENT_PROFILER  "profiler" /* of measurements (measurement.h) */

/* Gate of our pods: they are all scheduled together when the whole plan fits. */
#define SCHEDULING_GATE "heterotrain.io/placement"

/* Annotations of a plan ConfigMap: why this generation exists. */
#define ANNOTATION_TRIGGER       "heterotrain.io/trigger"
#define ANNOTATION_INPUT_DIGEST  "heterotrain.io/input-digest"
#define ANNOTATION_RESTARTS      "heterotrain.io/restarts"
#define ANNOTATION_REPLANS       "heterotrain.io/replans"
#define ANNOTATION_COMPUTED_AT   "heterotrain.io/computed-at"
/* The GPUs of other jobs that the plan claims (other_jobs.h). */
#define ANNOTATION_PREEMPTS      "heterotrain.io/preempts"
#define ANNOTATION_PLAN_HASH     "heterotrain.io/plan-hash"
/* "identity/transitions" of the replica that decided on the plan. */
#define ANNOTATION_LEADER        "heterotrain.io/leader"
/* On a gated pod: when the pods bound to its generation's nodes were last verified
 * (gang.h). */
#define ANNOTATION_FIT_MARK      "heterotrain.io/fit-checked-at"
/* When the scheduling gates of the generation were first lifted. */
#define ANNOTATION_RELEASED      "heterotrain.io/released-at"
/* Nodes (comma-separated) that could not take the generation's pods, and until when plans
 * leave them out. */
#define ANNOTATION_AVOID         "heterotrain.io/avoid-nodes"
#define NODE_LEASES              "kube-node-lease" /* the namespace of heartbeats */
#define ANNOTATION_AVOID_UNTIL   "heterotrain.io/avoid-until"
/* How many generations in a row were given up for that, this one included. */
#define ANNOTATION_GANG_TIMEOUTS "heterotrain.io/gang-timeouts"
/* Digest of what the generation's pods were made from besides the plan. */
#define ANNOTATION_POD_DIGEST    "heterotrain.io/pod-digest"
/* Set when a generation is stopped for good: why, and when. It never starts again. */
#define ANNOTATION_RETIRED       "heterotrain.io/retired"
#define ANNOTATION_RETIRED_AT    "heterotrain.io/retired-at"

/* The milliseconds that the search took. */
#define ANNOTATION_PLANNER_MS   "heterotrain.io/planner-milliseconds"
/* What the plan was made for, by parts (input_change.h). */
#define ANNOTATION_INPUT_PARTS  "heterotrain.io/input-parts"
/* Seconds since 1970 of the voluntary re-plans of the last hour, up to this one. */
#define ANNOTATION_REPLAN_TIMES "heterotrain.io/replan-times"

/* Set when its program is asked for a checkpoint (when, and what for), and when the
 * request ends: the time of the acknowledgement, or why there is none. */
#define ANNOTATION_CHECKPOINT_REQUESTED    "heterotrain.io/checkpoint-requested"
#define ANNOTATION_CHECKPOINT_FOR          "heterotrain.io/checkpoint-for"
#define ANNOTATION_CHECKPOINT_ACKNOWLEDGED "heterotrain.io/checkpoint-acknowledged"
#define ANNOTATION_CHECKPOINT_FAILED       "heterotrain.io/checkpoint-failed"
/* Values of ANNOTATION_CHECKPOINT_FOR. */
#define CHECKPOINT_FOR_STOP                "Stop"
#define CHECKPOINT_FOR_NOTICE              "NodeNotice"

enum replan_mode { REPLAN_AUTOMATIC, REPLAN_MANUAL, REPLAN_NEVER };
enum hook_method { HOOK_SIGNAL, HOOK_HTTP, HOOK_NONE };

/* Which plans can load a checkpoint of another plan. */
enum resharding { RESHARDING_ANY, RESHARDING_SAME_PIPELINE, RESHARDING_SAME_PLAN };
enum spot_policy { SPOT_ALLOW, SPOT_FORBID, SPOT_PREFER_ON_DEMAND };

struct job_gpu_type {
    const char *name;
    const char *resource;       /* NULL: the node's own, nvidia.com/gpu or amd.com/gpu */
    int64_t min_gpus, max_gpus; /* max 0: no limit */
    int64_t preference;
};

/* A transformer whose times are estimated or measured. */
struct job_architecture {
    int64_t layers; /* without embedding and head; 0: not given by the job */
    int64_t hidden, heads, kv_heads, ffn_hidden, vocabulary;
    int64_t sequence_length; /* that of training; 0: not given */
    const char *precision;   /* as hetplan calls it: "bf16" */
};

struct job_spec {
    const char *ns, *name, *uid;
    int64_t generation;      /* metadata.generation */
    int64_t created_wall_ms; /* metadata.creationTimestamp; 0: not set */

    bool profile_is_cluster;  /* ClusterModelProfile */
    const char *profile_name; /* NULL: architecture is given instead */
    /* profilePolicy OnDemand: GPU types that the profile lacks are measured with
     * `architecture`, which is then also given. */
    bool profile_grows;
    struct job_architecture architecture;

    int64_t global_batch;
    int64_t sequence_length;        /* 0: that of the profile or architecture */
    const json_t *microbatch_sizes; /* array or NULL */

    int64_t min_gpus, max_gpus; /* max 0: no limit */
    struct job_gpu_type gpu_types[JOB_SPEC_MAX_GPU_TYPES];
    size_t gpu_type_count;       /* 0: any type in the profile */
    const json_t *node_selector; /* labels, or NULL */
    const json_t *node_affinity; /* v1.NodeSelector, or NULL */
    enum spot_policy spot_policy;
    bool allows_shared_gpus;

    const char *algorithm; /* as hetplan calls it: "auto", "metis", "megatron" */
    int64_t seed, effort, planner_timeout_ms;
    int64_t memory_headroom_percent;                  /* -1: the planner's default */
    const json_t *constraints;                        /* object or NULL */
    const char *topology_keys[JOB_SPEC_MAX_TOPOLOGY]; /* closest first */
    size_t topology_key_count;                        /* 0: the installation's */

    enum replan_mode replan_mode;
    int64_t debounce_ms, cooldown_ms, node_failure_grace_ms;
    int64_t min_improvement_percent; /* below it there is no voluntary re-plan */
    int64_t max_slowdown_percent;    /* of a plan that moves less than the best one */
    int64_t amortization_ms, max_replans_per_hour;
    unsigned replan_triggers;  /* bits of enum input_change (input_change.h) */
    const char *approved_hash; /* of a candidate; "": none */

    const char *checkpoint_uri; /* NULL: none */
    enum resharding resharding;
    int64_t checkpoint_interval_ms; /* 0: not known */
    enum hook_method hook_method;
    int64_t hook_timeout_ms;
    int64_t hook_port; /* HOOK_HTTP */
    const char *hook_path;
    int64_t termination_grace_s; /* of the pod template */
    const char *runtime;         /* a name for het_runtime_find */
    bool runtime_appends_arguments;
    const char *container_name; /* NULL: the first container */
    int64_t master_port;
    const char *plan_mount_path;
    const json_t *pod_template; /* object with "spec" */
    const json_t *per_gpu_resources;
    const char *priority_class, *scheduler_name; /* NULL: not set */
    bool gang_has_gates;                         /* spec.scheduling.gang is Gate */
    int64_t gang_timeout_ms;

    bool is_suspended;
    bool is_plan_only;      /* its plan is only shown */
    bool rank_zero_decides; /* its success is enough; else all pods must succeed */
    int64_t deadline_ms;    /* of running, from status.startTime; 0: none */
    int64_t ttl_ms;         /* from status.completionTime; -1: the job is kept */

    int64_t max_restarts, backoff_ms, backoff_max_ms;
    int64_t reset_after_ms;      /* of running, after which restarts are forgotten */
    const json_t *failure_rules; /* of failure_policy.h, or NULL */
};

/* Whether this controller manages the job: spec.managedBy is absent or has our name. */
bool job_spec_is_ours(const json_t *job);
/* Reads what is readable even if the spec is refused: ns, name, uid, generation,
 * created_wall_ms, is_suspended, is_plan_only, and the defaults needed to end the job.
 * Strings are borrowed from `job`. */
void job_spec_read_identity(const json_t *job, struct job_spec *ret);
/* The ownerReference of the HeteroTrainingJob that is the controller of `object`; NULL if
 * none is. */
const json_t *job_spec_find_owner(const json_t *object);
/* The ownerReferences of what a job controls. A new reference. */
json_t *job_spec_owner_references(const struct job_spec *spec);
/* Lowers the spec's times to the administrator's limits. A job that exceeds them is
 * refused (tenancy.h), but it may already run. */
void job_spec_limit(struct job_spec *spec, const struct settings_limits *limits);
/* Replaces aliases in gpuTypes with the names in `hardware`, as nodes and plans use them.
 * `hardware` must outlive `spec`. */
void job_spec_name_types(struct job_spec *spec, const struct het_hardware *hardware);
/* Whether the job may use GPUs of `type`, named as in nodes and plans. */
bool job_spec_allows_type(const struct job_spec *spec, const char *type);
/* A spec's rules for giving GPUs up; not readable: there is no spec, or it is refused. */
struct job_rules {
    bool is_readable;
    int64_t min_gpus;
    int64_t termination_grace_s, hook_timeout_ms, planner_timeout_ms;
    int64_t cooldown_ms, max_replans_per_hour;
    enum replan_mode replan_mode;
};
struct job_rules job_spec_rules(const struct job_spec *spec);
/* Whether GPUs are requested by the resource: by default, and in this job. */
bool job_spec_is_default_resource(const char *resource);
bool job_spec_is_gpu_resource(const struct job_spec *spec, const char *resource);
/* The entry of spec.resources.gpuTypes for `type`; NULL if there is none. */
const struct job_gpu_type *job_spec_find_gpu_type(const struct job_spec *spec,
                                                  const char *type);
/* The model's config.json, as a Llama, which counts more weights than other kinds of the
 * same shape: RMS norms, a gated feed-forward block, a head with its own weights. Returns
 * a new reference. */
json_t *job_spec_model_config(const struct job_architecture *model);
/* What the job's runtime can run; NULL (everything) for a refused spec. */
const struct het_runtime *job_spec_runtime(const struct job_spec *spec);
/* The template's own required node affinity (v1.NodeSelector), or NULL. */
const json_t *job_spec_template_affinity(const struct job_spec *spec);
/* Reads and validates. On failure `*ret_reason` is the condition reason, "InvalidSpec"
 * (the user must change the named field), and `err` says which field and what to change.
 * Everything is borrowed from `job`. */
int job_spec_parse(const json_t *job, struct job_spec *ret, const char **ret_reason,
                   struct het_error *err);

#endif
