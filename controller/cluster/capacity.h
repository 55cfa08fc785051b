/* capacity.h - what is available on each node: exact accounting of GPUs and of everything
 * else that pods request (cpu, memory, storage, number of pods, other devices) over all
 * pods and all plans, updated event by event. Pure: the same events give the same table.
 *
 * For each resource r of a node
 *
 *   left(r, job) = allocatable(r) - foreign(r) - sum over other jobs k of reserved(k, r)
 *   reserved(k, r) = live pods of k's older generations there
 *                  + max(live pods of k's newest generation there, its plan's there)
 *
 * A job may plan with the most GPUs that fit what is left of every resource, where one
 * pod of the job with g GPUs takes pod_need.h's need(g). If the node does not report cpu,
 * memory, ephemeral-storage or pods, that resource is not limited.
 *
 * A pod is live once it is bound, nominated, or pinned by us and free of scheduling
 * gates, until it is gone or Succeeded or Failed; terminating pods count. Any user who
 * may create pods can write a pin and our ownerReference. So a pod that is neither bound
 * nor nominated counts only if its name (<job>-<generation>-<index>), labels and node
 * match a place in a plan of its job, and for no more than the plan's GPUs there and what
 * else the job's pods request. A plan counts from the creation of its ConfigMap until it
 * is retired, or its job is finished or gone: it is the reservation that keeps two jobs
 * from planning the same GPU. Where its pods are missing, it counts as the pods that the
 * job's present spec would make. A resource that they need more of than the node has in
 * all counts as 0: such pods never come.
 *
 * The table keeps only what present objects need: a node while it exists or a pod or plan
 * refers to it, a job while it or its pods or plans exist, and a resource name while a
 * node offers it or something offered before is still held. Resource names that only pods
 * and jobs use are not counted until a node offers them, as any user can invent them.
 *
 * A pod event costs a look at the pods of its job on its node, plus one number per job if
 * the node has GPUs and the pod takes none. */
#ifndef CONTROLLER_CLUSTER_CAPACITY_H
#define CONTROLLER_CLUSTER_CAPACITY_H

#include "controller/job/job_spec.h"
#include "controller/job/settings.h"

/* The most resource names that all nodes together, and one node, may offer at once
 * besides cpu, memory, ephemeral-storage, pods and the GPUs of NVIDIA and AMD. Further
 * ones are not counted, as if the node had none. */
#define CAPACITY_MAX_RESOURCES      4096
#define CAPACITY_MAX_NODE_RESOURCES 256

struct capacity;

struct capacity *capacity_new(void);
void capacity_free(struct capacity *capacity);

/* Set the GPU table and the rules for nodes. Nodes are read again, and so are jobs, which
 * name types as the table does. Both must outlive the capacity. */
void capacity_set_hardware(struct capacity *capacity, const struct het_hardware *hardware,
                           int64_t now_ms);
void capacity_set_settings(struct capacity *capacity, const struct settings *settings,
                           int64_t now_ms);
/* The present GPU table. */
const struct het_hardware *capacity_hardware(const struct capacity *capacity);

/* Each takes the new version of an object (NULL: it was removed) under its name or uid,
 * and returns true if the planner's input may have changed: some node's type, usability,
 * labels or free GPUs. Heartbeats do not change it, and neither do pods that take no GPU
 * from any job. Malformed objects count nothing. */
bool capacity_set_node(struct capacity *capacity, const char *name, json_t *node,
                       int64_t now_ms);
bool capacity_set_pod(struct capacity *capacity, const char *uid, json_t *pod);
/* `config_map` holds a plan (label heterotrain.io/plan-revision). */
bool capacity_set_plan(struct capacity *capacity, const char *uid, json_t *config_map);
/* `job`: the HeteroTrainingJob while it exists and is not finished, else NULL; its plan
 * holds GPUs only meanwhile. `job_key` is the job's "namespace/uid", so a pod in another
 * namespace with a copied ownerReference does not count as the job's. */
bool capacity_set_job(struct capacity *capacity, const char *job_key, json_t *job);

/* Invariant for tests: on each node that is there, neither the pods that hold GPUs now
 * nor the newest generations of all jobs take more GPUs than are allocatable, foreign
 * pods included. (Old pods and the plan that waits for them to end may exceed it
 * together.) Returns the name of a node that violates it, or NULL. */
const char *capacity_find_overcommit(const struct capacity *capacity);

#endif
