/* settings.h - what the administrator decides for all jobs: the file of --config. Every
 * field has a default, so the file may be empty or absent. Pure: the caller reads the
 * file and passes the JSON. docs/operations.md describes every field. */
#ifndef CONTROLLER_JOB_SETTINGS_H
#define CONTROLLER_JOB_SETTINGS_H

#include "controller/job/pod_security.h"
#include "planner/modules.h"

#include <jansson.h>
#include <stdbool.h>

/* The most entries of a list. */
#define SETTINGS_MAX_LIST       ((size_t)64)
/* The most namespaces with settings of their own. */
#define SETTINGS_MAX_NAMESPACES ((size_t)1024)

struct settings_label {
    const char *key, *value;
};

struct settings_level {
    const char *ns;
    enum pod_security_level level;
};

struct settings_accounts {
    const char *ns;
    const char *const *names;
    size_t name_count;
};

/* The program that measures GPU types that a profile lacks (measurement.h). */
struct settings_profiler {
    const char *image;          /* NULL: nothing is measured */
    const char *const *command; /* none: the image's own */
    size_t command_count;
    /* Resources of its pod besides GPUs, as request and limit. */
    const struct settings_label *resources;
    size_t resource_count;
    int64_t deadline_s;         /* of one measurement, its retries included */
    int64_t largest_microbatch; /* to measure */
};

/* Whether the planner's process has access only to its question (planner_child.h). */
enum planner_confinement {
    PLANNER_CONFINED,             /* or it is not started */
    PLANNER_CONFINED_IF_POSSIBLE, /* where the system can do it */
    PLANNER_UNCONFINED,
};

/* Work budgets of the search (hetplan --effort) for the names that jobs use. */
#define EFFORT_LOW    ((int64_t)100000)
#define EFFORT_NORMAL ((int64_t)1000000)
#define EFFORT_HIGH   ((int64_t)10000000)

/* How the planner runs for all jobs. */
struct settings_planner {
    enum planner_confinement confinement;
    /* maxEffort, maxTimeoutSeconds: upper limits of spec.planner. */
    int64_t most_effort, most_timeout_ms;
    /* mixedVendorRuntimes: runtimes whose programs combine GPUs of different vendors. */
    const char *const *mixed_vendor_runtimes;
    size_t mixed_vendor_runtime_count;
};

/* Upper limits of the times in which a job holds GPUs without using them or keeps other
 * jobs waiting. */
struct settings_limits {
    int64_t checkpoint_s;        /* checkpoint.onDisruption.timeoutSeconds */
    int64_t gang_s;              /* scheduling.gangTimeoutSeconds */
    int64_t termination_grace_s; /* terminationGracePeriodSeconds of its pods */
    int64_t node_failure_s;      /* replanPolicy.nodeFailureGraceSeconds */
};

struct settings {
    /* unhealthyNodeConditions: conditions of nodes whose GPUs must not be used. */
    const struct het_node_condition *unhealthy_conditions;
    size_t unhealthy_condition_count;
    /* leavingTaints, leavingAnnotations: keys that announce that the node will go soon. A
     * key that ends in "*" stands for all keys with that prefix. */
    const char *const *leaving_taints;
    size_t leaving_taint_count;
    const char *const *leaving_annotations;
    size_t leaving_annotation_count;
    /* spotLabels: any of them marks a node that may be taken away at any time. */
    const struct settings_label *spot_labels;
    size_t spot_label_count;
    /* topologyKeys: node labels, closest first; none: the levels of the hardware
     * settings in their order. */
    const char *const *topology_keys;
    size_t topology_key_count;
    /* allowLoopbackHooks: the operator may call programs at 127.0.0.0/8 and ::1
     * (checkpoint_hook.h). For clusters whose pods are processes on one machine. */
    bool allow_loopback_hooks;
    /* podSecurity: the level that pods of jobs must comply with, and exceptions by
     * namespace. */
    enum pod_security_level pod_security;
    const struct settings_level *pod_security_levels;
    size_t pod_security_level_count;
    /* serviceAccounts: the accounts that jobs of a namespace may run as, with
     * credentials. */
    const struct settings_accounts *service_accounts;
    size_t service_account_count;
    /* runtimeClasses: those that jobs may name; one that ends in "*" stands for all with
     * that prefix. */
    const char *const *runtime_classes;
    size_t runtime_class_count;
    /* profiler: measures GPU types for jobs with profilePolicy OnDemand. */
    struct settings_profiler profiler;
    struct settings_planner planner;
    struct settings_limits limits;
    /* allowedHosts: names by which browsers may call the dashboard and the metrics
     * (server.h). */
    const char *const *allowed_hosts;
    size_t allowed_host_count;
};

/* The settings that apply without a file. */
const struct settings *settings_default(void);
/* Reads `json`, with defaults for what it omits; a list in it replaces the default list.
 * Everything is in `arena`. Errors: HET_BAD_INPUT names the field. */
int settings_parse(struct het_arena *arena, const json_t *json, struct settings *ret,
                   struct het_error *err);
/* Whether `key` is one of `patterns`, or has the prefix of one that ends in "*". */
bool settings_match_key(const char *const *patterns, size_t count, const char *key);
/* The level that pods of jobs in `ns` must comply with. */
enum pod_security_level settings_pod_security(const struct settings *settings,
                                              const char *ns);
/* Whether jobs of `ns` may run as service account `name` and have its token. */
bool settings_allow_account(const struct settings *settings, const char *ns,
                            const char *name);

#endif
