/* measurement.h - GPU types that the profile of a job lacks (spec.model.profilePolicy
 * OnDemand): the batch Job that measures one, what its pod says in the end, and what
 * becomes of that in the ModelProfile. Pure.
 *
 * A measurement belongs to (profile, GPU type, architecture, profiler): jobs that want
 * the same one share one Job, whose name says which it is. It is owned by the job that
 * was first to ask, and goes with it.
 *
 * What a pod says comes out of a namespace of users, and nothing in it is trusted.
 * Whoever may create pods there can say something false; what it spoils is a profile of
 * that namespace. */
#ifndef CONTROLLER_CLUSTER_MEASUREMENT_H
#define CONTROLLER_CLUSTER_MEASUREMENT_H

#include "controller/base/object_store.h"
#include "controller/cluster/capacity_view.h"
#include "controller/job/job_spec.h"
#include "controller/job/settings.h"

enum {
    MEASUREMENT_RESULT_BYTES = 4096,   /* a termination message has no more */
    MEASUREMENT_MAX_DEGREE = 8,        /* of tensor parallelism: GPUs of one Job */
    MEASUREMENT_RETRIES = 2,           /* of a pod, by Kubernetes */
    MEASUREMENT_FAILED_TTL_S = 604800, /* then the failed Job goes, and is made anew */
};

/* On the Job: what it is for, and with how many GPUs. */
#define ANNOTATION_MODEL_PROFILE "heterotrain.io/model-profile"
#define ANNOTATION_GPUS          "heterotrain.io/gpus"

/* A type of GPU that the profile lacks. */
struct measurement {
    const char *type;  /* as nodes and plans call it; so does the profile's new entry */
    const char *name;  /* of its Job */
    const json_t *job; /* NULL: there is none */
    const json_t *pod; /* of it: one that succeeded, else the newest; NULL: none */
};

/* What there is to know of a job that wants measurements. */
struct measurement_sources {
    const struct store *store;
    const struct job_spec *spec;
    const struct settings *settings;
    const struct het_hardware *hardware; /* other names of types */
    const json_t *profile;               /* NULL: it is not there */
};
/* The types that the job may use and the profile lacks, of usable nodes and of those that
 * are being measured, in the order of their names; in `arena`, or borrowed. Returns how
 * many. */
size_t measurement_list(struct het_arena *arena,
                        const struct measurement_sources *sources,
                        const struct capacity_node *nodes, size_t node_count,
                        struct measurement **ret);
/* Jobs for measurements that the job owns and does not want (any more): all of them, if
 * it `wants_none`. Returns how many. */
size_t measurement_list_spent(struct het_arena *arena,
                              const struct measurement_sources *sources, bool wants_none,
                              const json_t *const **ret);

/* Whether `profile` (may be NULL) has an entry that the planner takes for `type`: of its
 * name, of its name in profiles, or of another name of the same part. */
bool measurement_is_profiled(const struct het_hardware *hardware, const json_t *profile,
                             const char *type);
/* GPUs that a measurement of the type takes: the largest degree of tensor parallelism
 * that is worth knowing. A power of two: at most what most usable nodes of the type have
 * (of equally many the smaller number), and a divisor of the heads. 0: no usable node. */
int64_t measurement_gpus(const struct job_spec *spec, const char *type,
                         const struct capacity_node *nodes, size_t node_count);

/* The Job that measures on `node`; `queue` is that of Kueue (NULL: none). A new
 * reference. */
json_t *measurement_job(const struct job_spec *spec, const struct settings *settings,
                        const struct measurement *measurement,
                        const struct capacity_node *node, int64_t gpus,
                        const char *queue);

/* How far a measurement is. */
enum measurement_state {
    MEASUREMENT_FOREIGN, /* the Job of its name is none of ours */
    MEASUREMENT_WAITING, /* its pod does not run yet */
    MEASUREMENT_STUCK,   /* its pod cannot start */
    MEASUREMENT_RUNNING,
    MEASUREMENT_DONE, /* the pod has said something */
    MEASUREMENT_LOST, /* it is complete, and there is no pod to ask */
    MEASUREMENT_FAILED,
};
/* Of one that has a Job; why, in `arena`, "" if there is nothing to say. */
enum measurement_state measurement_look(struct het_arena *arena,
                                        const struct measurement *measurement,
                                        const char **ret_why);
/* When its Job was complete; 0: it is not. */
int64_t measurement_completed_ms(const struct measurement *measurement);

/* What a pod found out: parts of a ModelProfile. */
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
/* The same of what its pod said. */
int measurement_read_pod(const struct job_spec *spec,
                         const struct measurement *measurement,
                         struct measurement_result *ret, struct het_error *err);

/* A profile of that one type. A new reference. */
json_t *measurement_profile(const struct job_spec *spec,
                            const struct measurement_result *result);
/* A JSON patch that adds the entry to `profile`, if that is as we see it: nothing in it
 * is ever changed. A new reference. Errors: HET_BAD_INPUT when the profile is of another
 * model. */
int measurement_patch(const json_t *profile, const struct measurement_result *result,
                      json_t **ret, struct het_error *err);

/* What to keep of Jobs in the store. A new reference. */
json_t *measurement_trim_job(json_t *job);

#endif
