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
/* `config_map` holds a plan (label heterotrain.io/plan-revision). */
bool capacity_set_plan(struct capacity *capacity, const char *uid, json_t *config_map);
/* `job`: the HeteroTrainingJob, while it is there and not finished, else NULL: only then
 * its plan holds GPUs. `job_key` is "namespace/uid" of the job: whoever copies an
 * ownerReference into another namespace does not become one of its pods. */
bool capacity_set_job(struct capacity *capacity, const char *job_key, json_t *job);

/* Invariant for tests: on each node that is there, neither the pods that hold GPUs now
 * nor the newest generations of all jobs take more GPUs than are allocatable, foreign
 * pods included. (Old pods and the plan that waits for their end may be more together.)
 * Returns the name of a node that breaks it, or NULL. */
const char *capacity_find_overcommit(const struct capacity *capacity);

#endif
