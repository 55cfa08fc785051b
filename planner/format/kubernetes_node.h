/* kubernetes_node.h - Kubernetes Node and Pod objects -> what a planner may use: GPU type
 * from labels, counts from allocatable less requests, usable or not and why. The same
 * code serves `hetplan --cluster nodes.json` and the controller. */
#ifndef HET_FORMAT_KUBERNETES_NODE_H
#define HET_FORMAT_KUBERNETES_NODE_H

#include "planner/format/json.h"
#include "planner/model/hardware.h"
#include "planner/model/unused_gpus.h"

struct het_node_facts {
    const char *name;      /* NULL: it has none */
    const char *type;      /* canonical GPU type; NULL: the node has no GPU we know of */
    const char *label;     /* the label text that the type was read from */
    uint64_t memory_bytes; /* of one GPU, from labels or hardware; 0: unknown */
    int64_t allocatable;   /* of the resource asked for */
    /* Why nothing may run there, the first that holds, or NULL: as of het_node_state,
     * NoGPU, SharedGPU, NoGPULabel, MixedGPUs. Taints are the caller's question. */
    const char *unusable;
    const json_t *taints; /* spec.taints, borrowed, or NULL */
};

/* A condition of status.conditions. */
struct het_node_condition {
    const char *type, *status;
};
/* Conditions that say that a GPU is broken: GKE's, EKS's, NVSentinel's
 * (GoogleCloudPlatform/container-engine-accelerators#497,
 * aws/eks-node-monitoring-agent#272, NVIDIA/NVSentinel#911). */
#define HET_NODE_UNHEALTHY_COUNT 3
extern const struct het_node_condition het_node_unhealthy[HET_NODE_UNHEALTHY_COUNT];

/* Why nothing at all may run on the node, the first that holds, or NULL: NotReady,
 * Unschedulable, VirtualMachine, Repartitioning, GPUUnhealthy (one of `unhealthy`); the
 * names of unused_gpus.h. */
const char *het_node_state(const json_t *node, const struct het_node_condition *unhealthy,
                           size_t unhealthy_count);

/* A node that says that it has more has none: its word is not to be trusted. */
#define HET_NODE_MAX_GPUS 4096

/* The GPUs that a node offers by one resource. */
struct het_node_gpus {
    const char *type;      /* canonical; NULL: no label says it, in plain characters */
    const char *label;     /* the label text that the type was read from */
    uint64_t memory_bytes; /* of one, as it may be used; 0: unknown */
    int64_t allocatable;
    bool is_shared; /* time-sliced, shared by MPS, or slices of MIG */
    bool is_stated; /* heterotrain.io/gpu-type says the type */
    /* The labels count fewer whole GPUs of the type than are allocatable: GPU Feature
     * Discovery found several types and wrote the labels of one of them. Never of a type
     * that is stated. */
    bool is_mixed;
};
/* GPU type from, in this order: heterotrain.io/gpu-type, nvidia.com/gpu.product,
 * amd.com/gpu.product-name, karpenter.k8s.aws/instance-gpu-name,
 * cloud.google.com/gke-accelerator, k8s.amazonaws.com/accelerator, instance-type alias;
 * through the alias table of `hardware`. MIG slices are a type of their own,
 * "A100-SXM4-40GB-MIG-1g.5gb", by the product label (strategy single) or by `resource`
 * (strategy mixed, whose labels are called after the resource). The memory of a GPU that
 * n pods share is divided by n. Strings in `arena` or borrowed from `node`. Never fails.
 */
void het_node_read_gpus(struct het_arena *arena, const json_t *node, const char *resource,
                        const struct het_hardware *hardware, struct het_node_gpus *ret);

/* Both in one, with the default conditions; shared GPUs are unusable. */
void het_node_read(struct het_arena *arena, const json_t *node, const char *resource,
                   const struct het_hardware *hardware, struct het_node_facts *ret);

/* Whose GPUs `resource` says that those of `type` are, if that is not what the type says
 * by itself (its entry in `hardware`, or its name); else NULL. */
const char *het_node_vendor(const struct het_hardware *hardware, const char *type,
                            const char *resource);

/* What machine it is by the labels of a node, as its cloud or the admin calls it; else
 * NULL. Borrowed from `labels`. */
const char *het_node_instance_type(const json_t *labels);

/* The parts of a pod's effective request for one resource,
 *
 *   max(running, starting) + overhead
 *
 *   running   sum of containers and sidecars; or, if `is_whole`, the pod-level request
 *   starting  running max over init containers, on top of the sidecars before them
 *
 * limits count where requests are missing. Milli-units if `milli`, else whole units. */
struct het_pod_request {
    int64_t running, starting, overhead;
    bool is_whole;
};
struct het_pod_request het_pod_request_parts(const json_t *pod, const char *resource,
                                             int milli);
/* Sets `names`[r] (an object) for every resource that some part of the pod names. */
void het_pod_resources(const json_t *pod, json_t *names);

/* Effective request of a Pod for `resource`: max(sum of containers + sidecars, running
 * max over init containers) + overhead; limits count where requests are missing;
 * pod-level resources win. Milli-units (for cpu) if `milli`, else whole units (devices,
 * bytes). */
int64_t het_pod_request(const json_t *pod, const char *resource, int milli);
/* Whether the pod holds its resources: bound to a node and not Succeeded or Failed. */
int het_pod_holds(const json_t *pod);

/* A quantity ("4", "500m", "16Gi", "1e3") in milli-units or units, rounded up; -1 if it
 * is none, saturated at int64. */
int64_t het_quantity_parse(const char *text, int milli);

/* Whether `json` is a list of nodes, or one node, as kubectl prints them. */
bool het_node_is_list(const json_t *json);
/* NodeList (and optional PodList, may be NULL) -> the short form of the cluster with the
 * free GPUs of usable nodes whose NoSchedule/NoExecute taints are only for GPUs
 * (nvidia.com/gpu, amd.com/gpu), and their labels that are levels of `hardware`. A new
 * reference. All other GPUs are added to `left_out` (may be NULL), whose strings are in
 * `arena` or borrowed from `nodes`. Errors: HET_NO_PLAN when no GPU is left, with the
 * reasons counted. */
int het_node_list_cluster(struct het_arena *arena, const json_t *nodes,
                          const json_t *pods, const struct het_hardware *hardware,
                          json_t **ret, struct het_unused_list *left_out,
                          struct het_error *err);

#endif
