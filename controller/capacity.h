/* capacity.h - which GPUs can be had: exact accounting of every node's GPUs over all pods
 * and all plans, kept up to date event by event (kubernetes-api.md 6.6). Pure: the same
 * events give the same table.
 *
 *   free(n, job) = allocatable(n) - foreign(n) - sum over other jobs k of reserved(k, n)
 *   reserved(k, n) = live pods of k's older generations on n
 *                  + max(live pods of k's newest generation on n, its plan's GPUs on n)
 *
 * A pod is live once it is bound, nominated, or pinned by us and free of scheduling
 * gates, until it is gone or Succeeded or Failed; terminating pods count. A plan counts
 * from the creation of its ConfigMap until it is retired, or its job is finished or gone:
 * it is the reservation that keeps two jobs from planning the same GPU. */
#ifndef CONTROLLER_CAPACITY_H
#define CONTROLLER_CAPACITY_H

#include "planner/hetplan.h"

#include <jansson.h>

struct capacity;

struct capacity *capacity_new(void);
void capacity_free(struct capacity *capacity);

/* The GPU table; nodes are read again. `hardware` must outlive the capacity. */
void capacity_set_hardware(struct capacity *capacity, const struct het_hardware *hardware,
                           int64_t now_ms);

/* Each takes an object after (or NULL for removed) under its name or uid. They return
 * true if what a planner may use changed: (type, node, free, usable) of some node.
 * Heartbeats do not. Malformed objects count nothing. */
bool capacity_set_node(struct capacity *capacity, const char *name, json_t *node,
                       int64_t now_ms);
bool capacity_set_pod(struct capacity *capacity, const char *uid, json_t *pod);
/* `config_map` holds a plan (label heterotrain.io/plan-generation). */
bool capacity_set_plan(struct capacity *capacity, const char *uid, json_t *config_map);
/* Only the plan of a job that is there and not finished (`alive`) holds GPUs. `job_key`
 * is "namespace/uid" of the job: whoever copies an ownerReference into another namespace
 * does not become one of its pods. */
bool capacity_set_job(struct capacity *capacity, const char *job_key, bool alive);

/* One node as one job sees it. */
struct capacity_node {
    const char *name;
    const char *type;      /* canonical GPU type */
    uint64_t memory_bytes; /* of one GPU; 0: from the hardware table */
    int64_t allocatable;   /* GPUs */
    int64_t free;    /* GPUs this job may plan with, its own included; 0 if unusable */
    int64_t claimed; /* GPUs that others hold and this job has laid claim to (peers.h);
                        filled by whoever knows of claims */
    const char *unusable; /* reason, NULL: usable */
    int64_t unusable_since_ms;
};

/* All GPU nodes in the order of their names, as `job_key` sees them. A node is usable if
 * its own state is (ready, schedulable, GPUs not shared, ...), `tolerations` (pod spec
 * array, may be NULL) tolerate its taints (nvidia.com/gpu:NoSchedule always), and its
 * labels match `node_selector` (may be NULL). Allocated in `arena`. */
size_t capacity_view(const struct capacity *capacity, struct het_arena *arena,
                     const char *job_key, const json_t *node_selector,
                     const json_t *tolerations, struct capacity_node **ret);
/* GPUs that a job which is there and not finished holds, or has reserved, by node; none
 * for any other. Returns how many nodes. */
struct capacity_share {
    const char *node;
    int64_t gpus;
};
size_t capacity_holdings(const struct capacity *capacity, struct het_arena *arena,
                         const char *job_key, struct capacity_share **ret);
/* Whether a node object exists at all. */
bool capacity_has_node(const struct capacity *capacity, const char *name);
/* Whether the node has the out-of-service taint. */
bool capacity_is_out_of_service(const struct capacity *capacity, const char *name);

/* What to keep of Node and Pod objects in the store (watch.h's trim). New references. */
json_t *capacity_trim_node(json_t *node);
json_t *capacity_trim_pod(json_t *pod);

/* Invariant for tests: on each node that is there, neither the pods that hold GPUs now
 * nor the newest generations of all jobs take more than is allocatable, foreign pods
 * included. (Old pods and the plan that waits for their end may be more together.)
 * Returns the name of a node that breaks it, or NULL. */
const char *capacity_find_overcommit(const struct capacity *capacity);

#endif
