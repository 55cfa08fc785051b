/* measurement.h - GPU types that the profile of a job lacks (spec.model.profilePolicy
 * OnDemand): the batch Job that measures one, the result that its pod reports, and the
 * entry it becomes in the ModelProfile. Pure.
 *
 * A measurement belongs to (profile, GPU type, architecture, profiler): training jobs
 * that want the same one share one Job, whose name identifies it. The first to ask owns
 * it, and it is deleted with its owner.
 *
 * A pod's result comes from a user namespace and is not trusted. A user who may create
 * pods there can forge one; that spoils only a profile of that namespace. */
#ifndef CONTROLLER_CLUSTER_MEASUREMENT_H
#define CONTROLLER_CLUSTER_MEASUREMENT_H

#include "controller/base/object_store.h"
#include "controller/cluster/capacity_view.h"
#include "controller/job/job_spec.h"
#include "controller/job/settings.h"

enum {
    MEASUREMENT_RESULT_BYTES = 4096,   /* the limit of a termination message */
    MEASUREMENT_MAX_DEGREE = 8,        /* of tensor parallelism: GPUs of one Job */
    MEASUREMENT_RETRIES = 2,           /* of a pod, by Kubernetes */
    MEASUREMENT_FAILED_TTL_S = 604800, /* then the failed Job is deleted and made again */
};

/* On the Job: its profile and its number of GPUs. */
#define ANNOTATION_MODEL_PROFILE "heterotrain.io/model-profile"
#define ANNOTATION_GPUS          "heterotrain.io/gpus"

/* A type of GPU that the profile lacks. */
struct measurement {
    const char *type;  /* as nodes, plans and the profile's new entry name it */
    const char *name;  /* of its Job */
    const json_t *job; /* NULL: there is none */
    const json_t *pod; /* of the Job: one that succeeded, else the newest; NULL: none */
};

/* The inputs for a job that wants measurements. */
struct measurement_sources {
    const struct store *store;
    const struct job_spec *spec;
    const struct settings *settings;
    const struct het_hardware *hardware; /* other names of types */
    const json_t *profile;               /* NULL: there is none */
};
/* The types that the job may use and the profile lacks, if usable nodes have them or they
 * are being measured, by name; in `arena` or borrowed. Returns how many. */
size_t measurement_list(struct het_arena *arena,
                        const struct measurement_sources *sources,
                        const struct capacity_node *nodes, size_t node_count,
                        struct measurement **ret);
/* Measurement Jobs that the job owns and does not want, or no longer wants; all of them
 * if `wants_none`. Returns how many. */
size_t measurement_list_spent(struct het_arena *arena,
                              const struct measurement_sources *sources, bool wants_none,
                              const json_t *const **ret);

/* Whether `profile` (may be NULL) has an entry that the planner uses for `type`: under
 * its name, its name in profiles, or another name of the same part. */
bool measurement_is_profiled(const struct het_hardware *hardware, const json_t *profile,
                             const char *type);
/* GPUs that a measurement of the type takes: the largest useful degree of tensor
 * parallelism. It is a power of two that divides the heads and is at most the GPU count
 * that most usable nodes of the type have (the smaller one on a tie). 0: no usable
 * node. */
int64_t measurement_gpus(const struct job_spec *spec, const char *type,
                         const struct capacity_node *nodes, size_t node_count);

/* The Job that measures on `node`; `queue` is a Kueue queue (NULL: none). Returns a new
 * reference. */
json_t *measurement_job(const struct job_spec *spec, const struct settings *settings,
                        const struct measurement *measurement,
                        const struct capacity_node *node, int64_t gpus,
                        const char *queue);

/* How far a measurement is. */
enum measurement_state {
    MEASUREMENT_FOREIGN, /* the Job with its name is foreign */
    MEASUREMENT_WAITING, /* its pod does not run yet */
    MEASUREMENT_STUCK,   /* its pod cannot start */
    MEASUREMENT_RUNNING,
    MEASUREMENT_DONE, /* the pod has reported something */
    MEASUREMENT_LOST, /* it is complete, and there is no pod to ask */
    MEASUREMENT_FAILED,
};
/* The state of a measurement that has a Job; `*ret_why` is the reason, in `arena`, "" if
 * none. */
enum measurement_state measurement_look(struct het_arena *arena,
                                        const struct measurement *measurement,
                                        const char **ret_why);
/* When its Job completed; 0: it has not. */
int64_t measurement_completed_ms(const struct measurement *measurement);

/* A pod's result: parts of a ModelProfile. */
struct measurement_result {
    json_t *model;        /* spec.model without a name */
    json_t *layer_groups; /* spec.layerGroups */
    json_t *entry;        /* of spec.gpuTypes */
};
void measurement_result_fini(struct measurement_result *result);
/* Reads `text` as the result of `measurement` (docs/api.md, "What the profiler says").
 * Errors: HET_BAD_INPUT. */
int measurement_read(const char *text, size_t length, const struct job_spec *spec,
                     const struct measurement *measurement,
                     struct measurement_result *ret, struct het_error *err);
/* The same, from the result that its pod reported. */
int measurement_read_pod(const struct job_spec *spec,
                         const struct measurement *measurement,
                         struct measurement_result *ret, struct het_error *err);

/* A profile of only that type. Returns a new reference. */
json_t *measurement_profile(const struct job_spec *spec,
                            const struct measurement_result *result);
/* A JSON patch that adds the entry to `profile`, provided the profile has not changed
 * since; existing entries are never changed. Returns a new reference. Errors:
 * HET_BAD_INPUT when the profile is for another model. */
int measurement_patch(const json_t *profile, const struct measurement_result *result,
                      json_t **ret, struct het_error *err);

/* The parts of Jobs that the store keeps. Returns a new reference. */
json_t *measurement_trim_job(json_t *job);

#endif
