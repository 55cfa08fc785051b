/* capacity.h - what can be had of each node: exact accounting of GPUs and of all else
 * that pods ask for (cpu, memory, storage, number of pods, further devices) over all pods
 * and all plans, kept up to date event by event. Pure: the same events give the same
 * table.
 *
 * For each resource r of a node
 *
 *   left(r, job) = allocatable(r) - foreign(r) - sum over other jobs k of reserved(k, r)
 *   reserved(k, r) = live pods of k's older generations there
 *                  + max(live pods of k's newest generation there, its plan's there)
 *
 * and the GPUs that a job may plan with are the most that fit what is left of everything,
 * one pod of the job taking pod_need.h's need(g) with g of them. A resource of cpu,
 * memory, ephemeral-storage and pods that the node does not report is not limited.
 *
 * A pod is live once it is bound, nominated, or pinned by us and free of scheduling
 * gates, until it is gone or Succeeded or Failed; terminating pods count. Whoever may
 * create pods can write a pin and our ownerReference: one that is neither bound nor
 * nominated counts only as the pod of a place in a plan of its job, by name
 * (<job>-<generation>-<index>), labels and node, and as no more than the plan's GPUs
 * there and what the job's pods ask for besides. A plan counts
 * from the creation of its ConfigMap until it is retired, or its job is finished or gone:
 * it is the reservation that keeps two jobs from planning the same GPU. Where its pods
 * are not there, it counts as those that the job's present spec makes of it; of what they
 * would need more of than the node has at all, it takes nothing: they do not come.
 *
 * Nothing is remembered but for objects that are there: a node while it, a pod or a plan
 * that speaks of it is there, a job while it, its pods or plans are, and the name of a
 * resource while a node offers it or something is held of what one has offered. Names
 * that only pods and jobs speak of, which anybody can invent, are not counted; they are
 * once a node offers them.
 *
 * A pod event costs a look at the pods of its job on its node; if it touches no GPU, and
 * the node has some, one number a job as well. */
#ifndef CONTROLLER_CLUSTER_CAPACITY_H
#define CONTROLLER_CLUSTER_CAPACITY_H

#include "controller/job/job_spec.h"
#include "controller/job/settings.h"

/* Names of resources that nodes offer at one time, and that one node does beside cpu,
 * memory, ephemeral-storage, pods and the GPUs of NVIDIA and AMD; further ones are not
 * counted, as if the node had none. */
#define CAPACITY_MAX_RESOURCES      4096
#define CAPACITY_MAX_NODE_RESOURCES 256

struct capacity;

struct capacity *capacity_new(void);
void capacity_free(struct capacity *capacity);

/* The GPU table, and the rules of nodes; nodes are read again, and jobs, which call types
 * by the table's names. Both must outlive the capacity. */
void capacity_set_hardware(struct capacity *capacity, const struct het_hardware *hardware,
                           int64_t now_ms);
void capacity_set_settings(struct capacity *capacity, const struct settings *settings,
                           int64_t now_ms);
/* The GPU table that holds now. */
const struct het_hardware *capacity_hardware(const struct capacity *capacity);

/* Each takes an object after (or NULL for removed) under its name or uid. They return
 * true if what a planner may use may have changed: some node's type, usability, labels,
 * free GPUs. Heartbeats do not, nor do pods that take no GPU from any job. Malformed
 * objects count nothing. */
bool capacity_set_node(struct capacity *capacity, const char *name, json_t *node,
                       int64_t now_ms);
bool capacity_set_pod(struct capacity *capacity, const char *uid, json_t *pod);
/* `config_map` holds a plan (label heterotrain.io/plan-generation). */
bool capacity_set_plan(struct capacity *capacity, const char *uid, json_t *config_map);
/* `job`: the HeteroTrainingJob, while it is there and not finished, else NULL: only then
 * its plan holds GPUs. `job_key` is "namespace/uid" of the job: whoever copies an
 * ownerReference into another namespace does not become one of its pods. */
bool capacity_set_job(struct capacity *capacity, const char *job_key, json_t *job);

/* One node as one job sees it. */
struct capacity_node {
    const char *name;
    const char *type;       /* canonical GPU type; "": not known */
    const char *resource;   /* by which its GPUs are asked for */
    const char *vendor;     /* of the GPUs, if `type` does not say it; else NULL */
    const json_t *labels;   /* borrowed; NULL: none */
    uint64_t memory_bytes;  /* of one GPU; 0: from the hardware table */
    int64_t allocatable;    /* GPUs */
    int64_t free;           /* GPUs this job may plan with, its own included; 0 if
                               unusable */
    int64_t most_free;      /* what `free` would be if no other job held anything there */
    int64_t claimed;        /* GPUs that others hold and this job has laid claim to
                               (other_jobs.h); filled by whoever knows of claims */
    const char *limited_by; /* the resource for want of which `free` is not more, if that
                               is not the GPUs; else NULL */
    const char *unusable;   /* reason (unused_gpus.h), "Tainted (key)"; NULL: usable */
    int64_t unusable_since_ms;
    int preference; /* below 0: to be used last (spotPolicy) */
    bool is_spot;
    /* The node says that it will go (spot notice, drain): what runs there must leave. It
     * is unusable as well. */
    bool is_leaving;
    const char *leaving_by; /* the key of the taint or annotation; NULL: not leaving */
    int64_t leaving_since_ms;
};

/* All GPU nodes in the order of their names, as the job of `spec` sees them, which is
 * accounted for under `job_key`; the spec calls GPU types by their names in the table
 * (job_spec_name_types). A node is seen by one resource: that of the first entry of
 * gpuTypes whose type and resource it offers; without gpuTypes nvidia.com/gpu, or else
 * amd.com/gpu. It is usable if its own state is (ready, schedulable, not leaving, ...),
 * the template tolerates its taints (those of the GPU resources always), it matches the
 * job's and the template's selectors and affinity, its GPUs are of one type that its
 * labels say, and the job's policies admit it.
 * Allocated in `arena`. */
/*
 * `kept` (zero at first) remembers what one job saw with one spec, so that only nodes on
 * which something has changed since are looked at; whoever has another spec, hardware or
 * job gives an empty one. NULL: all are looked at. */
struct capacity_kept {
    struct het_arena *arena;
    struct capacity_node *nodes;
    struct {
        uint64_t serial, version;
    } * places; /* which node it was, and as of when */
    size_t count, node_capacity, place_capacity;
    uint64_t names_version;
    uint64_t viewed; /* nodes looked at so far */
};
void capacity_kept_fini(struct capacity_kept *kept);
size_t capacity_view(const struct capacity *capacity, struct het_arena *arena,
                     const char *job_key, const struct job_spec *spec,
                     struct capacity_kept *kept, struct capacity_node **ret);
/* What the spec of a job that is there says about giving GPUs up, before the
 * administrator's limits; not readable: it is refused, or there is none. */
struct capacity_rules {
    bool is_readable;
    int64_t min_gpus;
    int64_t termination_grace_s, hook_timeout_ms, planner_timeout_ms;
    int64_t cooldown_ms, max_replans_per_hour;
    enum replan_mode replan_mode;
};
void capacity_rules_of(const struct capacity *capacity, const char *job_key,
                       struct capacity_rules *ret);
/* Whether any plan is a claim (other_jobs.h). */
bool capacity_has_claims(const struct capacity *capacity);
/* GPUs that a job which is there and not finished holds, or has reserved, by node; none
 * for any other. Returns how many nodes. */
struct capacity_share {
    const char *node;
    int64_t gpus;
};
size_t capacity_holdings(const struct capacity *capacity, struct het_arena *arena,
                         const char *job_key, struct capacity_share **ret);
/* Whether it holds, or has reserved, GPUs of `node`. */
bool capacity_holds(const struct capacity *capacity, const char *job_key,
                    const char *node);
/* A node as nobody in particular sees it: whose its GPUs are. */
struct capacity_use {
    const char *job; /* job_key */
    int64_t gpus;    /* held or reserved */
};
struct capacity_place {
    const char *name;
    const char *type;    /* of the resource that offers most of its GPUs; "": not known */
    int64_t allocatable; /* GPUs; 0 of a node that is not there */
    int64_t foreign;     /* held by pods that are not ours */
    const char *unusable; /* by its own state and labels; NULL: usable */
    bool is_there;        /* else jobs are still counted on it, and nothing more */
    const struct capacity_use *uses; /* by job_key */
    size_t use_count;
};
/* All nodes that have GPUs, or a job's, by name; in `arena`. Returns how many. */
size_t capacity_places(const struct capacity *capacity, struct het_arena *arena,
                       struct capacity_place **ret);
/* GPUs of one type on all nodes, whoever looks: `used` are held or reserved by anybody,
 * `unusable` are those of nodes that are not usable by their own state and hold
 * nothing. */
struct capacity_total {
    const char *type;
    int64_t used, free, unusable;
};
/* By the names of the types. Returns how many. */
size_t capacity_totals(const struct capacity *capacity, struct het_arena *arena,
                       struct capacity_total **ret);
/* What it remembers, for whoever looks after its bounds: of `resources`, the names beside
 * those that are always known. */
struct capacity_size {
    size_t nodes, pods, plans, jobs, resources;
};
struct capacity_size capacity_size(const struct capacity *capacity);
/* Whether a node object exists at all. */
bool capacity_has_node(const struct capacity *capacity, const char *name);
/* Whether the node has the out-of-service taint. */
bool capacity_is_out_of_service(const struct capacity *capacity, const char *name);

/* Invariant for tests: on each node that is there, neither the pods that hold GPUs now
 * nor the newest generations of all jobs take more GPUs than are allocatable, foreign
 * pods included. (Old pods and the plan that waits for their end may be more together.)
 * Returns the name of a node that breaks it, or NULL. */
const char *capacity_find_overcommit(const struct capacity *capacity);

#endif
