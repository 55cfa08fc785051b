/* kueue_quota.h - a job in one of Kueue's queues (label kueue.x-k8s.io/queue-name): how
 * many GPUs its queue can give it, the labels by which Kueue sees its pods as one group,
 * and what Kueue reports about them. Pure. Nothing here writes quota: Kueue admits,
 * preempts and accounts; the planner is only offered what Kueue would admit.
 *
 * Source: Kueue 0.16, API kueue.x-k8s.io/v1beta2; its pod groups
 * (pkg/controller/jobs/pod) and its quota tree (pkg/cache/scheduler/resource_node.go). */
#ifndef CONTROLLER_CLUSTER_KUEUE_QUOTA_H
#define CONTROLLER_CLUSTER_KUEUE_QUOTA_H

#include "controller/base/object_store.h"
#include "controller/cluster/capacity_view.h"
#include "controller/job/job_spec.h"

#define KUEUE_GROUP_VERSION        "kueue.x-k8s.io/v1beta2"
#define KUEUE_LABEL_QUEUE          "kueue.x-k8s.io/queue-name"
#define KUEUE_LABEL_PRIORITY       "kueue.x-k8s.io/priority-class"
#define KUEUE_LABEL_GROUP          "kueue.x-k8s.io/pod-group-name"
#define KUEUE_LABEL_MANAGED        "kueue.x-k8s.io/managed"
#define KUEUE_ANNOTATION_COUNT     "kueue.x-k8s.io/pod-group-total-count"
#define KUEUE_ANNOTATION_ROLE      "kueue.x-k8s.io/role-hash"
/* "false": ended pods of the group are not replaced, so a group whose pods have all ended
 * is over and returns its quota. */
#define KUEUE_ANNOTATION_RETRIABLE "kueue.x-k8s.io/retriable-in-group"
#define KUEUE_GATE_PREFIX          "kueue.x-k8s.io/"

/* The most podSets that Kueue accepts in one group. */
#define KUEUE_MAX_ROLES 8

/* What is known of Kueue in this cluster. */
enum kueue_presence {
    KUEUE_ABSENT,     /* not served: queue labels mean nothing */
    KUEUE_UNREADABLE, /* served, but its queues have not been read (yet) */
    KUEUE_PRESENT,
};

/* Quota of one resource in one flavor. */
struct kueue_flavor {
    const char *name, *resource;
    const json_t *node_labels; /* of the nodes it covers; NULL: all */
    /* What this job may hold of it, including what it holds now: nominal quota plus what
     * may be borrowed in the cohort, minus what others hold. Never negative. */
    int64_t available;
};

struct kueue_quota {
    const char *queue;         /* NULL: the job is in no queue, and the rest is unused */
    const char *cluster_queue; /* "" if that is not known */
    /* Why nothing can be admitted now, as condition reason and message; NULL: it can. */
    const char *reason, *message;
    struct kueue_flavor *flavors; /* in the order of the ClusterQueue */
    size_t flavor_count;
    const json_t *const *nodes; /* objects of the limited nodes, in the same order */
    size_t node_count;
    /* Workloads of the job's generations, not necessarily admitted. */
    const json_t *const *workloads;
    size_t workload_count;
};

/* The queue named by the label of `job` or of its pod template; NULL: none. */
const char *kueue_queue_of(const json_t *job);

/* Reads what the queue of `job` can give it; `workloads` are the job's own (kueue_quota).
 * Results are in `arena` or borrowed from the store. */
void kueue_read_quota(struct het_arena *arena, const struct store *store,
                      enum kueue_presence presence, const json_t *job,
                      const json_t *const *workloads, size_t workload_count,
                      struct kueue_quota *ret);

/* Lowers `free` of nodes until the total is within the quota. Quota goes first to what
 * the existing plan (`kept`, may be NULL) has on its nodes, then to the nodes with the
 * most free GPUs, by name where equal. Kueue can admit any plan for the result. A node
 * that no flavor covers has none free. */
void kueue_limit_nodes(struct het_arena *arena, const struct store *store,
                       struct kueue_quota *quota, const struct het_rank_node *kept,
                       size_t kept_count, struct capacity_node *nodes, size_t node_count);

/* What the queue can give, for people: "a100: 4, v100: 0". In `arena`. */
const char *kueue_describe(struct het_arena *arena, const struct kueue_quota *quota);

/* ---- pods ---- */

/* Name of the group, and thus of the Workload, of a generation; in `arena`. */
const char *kueue_group(struct het_arena *arena, const char *job, int64_t generation);

/* Makes `pod` a member of a group of `count` pods in the job's queue. Pods of one GPU
 * type and number of GPUs on nodes of one flavor form one podSet: Kueue applies the
 * requests of the first to all. `node` (may be NULL) is the pod's future node: the pod
 * selects the labels by which the queue's flavors differ, so that Kueue finds the flavor
 * of that node. */
void kueue_decorate_pod(const struct kueue_quota *quota, const json_t *job,
                        const json_t *node, const char *group, size_t count,
                        const char *gpu_type, int64_t gpus, json_t *pod);

enum kueue_admission {
    KUEUE_UNMANAGED, /* Kueue does not manage the pod: it is not set up for its
                        namespace */
    KUEUE_WAITING,
    KUEUE_ADMITTED,
};
enum kueue_admission kueue_pod_admission(const json_t *pod);
/* Whether Kueue itself ended the pod: preempted, drained, or its Workload deleted. */
bool kueue_pod_is_evicted(const json_t *pod);
/* Whether only a finalizer holds `pod`: it is deleted and its grace is over or it was
 * never bound, so no kubelet will report its end. */
bool kueue_pod_is_stuck(const json_t *pod);

/* ---- workloads ---- */

/* The job's Workload for a generation; NULL: there is none. */
const json_t *kueue_find_workload(const struct kueue_quota *quota, const char *group);
bool kueue_workload_is_finished(const json_t *workload);
bool kueue_workload_has_quota(const json_t *workload);
/* Why `workload` (may be NULL) has no quota, in Kueue's words; "" if Kueue gives no
 * reason. */
const char *kueue_pending_message(const json_t *workload);
/* Why Kueue evicted the pods of `workload` (may be NULL): its reason ("Preempted",
 * "InactiveWorkload", ...), or "Evicted". */
const char *kueue_eviction_reason(const json_t *workload);
/* The same as a sentence, from `workload` or else from its `pod`; "" if neither has
 * one. */
const char *kueue_eviction_message(const json_t *workload, const json_t *pod);

/* The parts of Kueue's objects that the store keeps (watch.h's trim). New references. */
json_t *kueue_trim_workload(json_t *workload);
json_t *kueue_trim_queue(json_t *queue); /* ClusterQueue, LocalQueue, ResourceFlavor */

#endif
