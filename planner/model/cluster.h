/* cluster.h - the available GPUs: nodes of one GPU type each, the links between them, and
 * the bandwidth of a send between two nodes. */
#ifndef HET_MODEL_CLUSTER_H
#define HET_MODEL_CLUSTER_H

#include "planner/base/arena.h"
#include "planner/base/error.h"
#include "planner/model/hardware.h"
#include "planner/model/network.h"

#include <stddef.h>
#include <stdint.h>

#define HET_MAX_NODES     65536u
#define HET_MAX_NODE_GPUS 1024u
#define HET_MAX_TYPES     64u
#define HET_MAX_LEVELS    4u
#define HET_MAX_DOMAINS   4096u

struct het_cluster_type {
    const char *name;         /* as in the plan's gpuType */
    const char *profile_name; /* as in the profile; often equal to `name` */
    uint64_t memory_bytes;    /* of one GPU; 0: unknown */
    uint64_t workspace_bytes; /* framework and communicator, off the memory of each GPU */
    double price_per_hour;    /* 0: unknown */
};

/* Source of a link's bandwidth, the most reliable first. */
enum het_link_source {
    HET_LINK_STATED,   /* the cluster file or the hardware settings */
    HET_LINK_MEASURED, /* curves */
    HET_LINK_INSTANCE, /* the table of instance types */
    HET_LINK_GPU_TYPE, /* the built-in table of GPU types */
    HET_LINK_DEFAULT   /* none of these */
};

struct het_node {
    const char *name; /* unique in the cluster */
    uint32_t type;    /* index into types */
    uint32_t gpu_count;
    double intra_bytes_per_s;  /* between GPUs of the node, each direction */
    double uplink_bytes_per_s; /* shared by all that leaves (or enters) the node */
    double flow_bytes_per_s;   /* the most that one flow gets; 0: the whole uplink */
    double latency_s;          /* per message that leaves the node */
    /* Where the node is on each level: domains[that - 1]; 0: in none. */
    uint32_t domain[HET_MAX_LEVELS];
    const char *instance_type; /* NULL: unknown */
    const char *vendor; /* of its GPUs (vendor.h); NULL: unknown, may be mixed with any */
    enum het_link_source intra_source, uplink_source;
    int32_t preference; /* between equal plans, higher first: below 0 for spot nodes */
    uint32_t place;     /* in the network's places, plus one; 0: in none of them */
};

/* A zone, a rack: nodes that share an uplink to all that is outside. */
struct het_domain {
    const char *name; /* unique on its level */
    uint32_t level;
    double uplink_bytes_per_s; /* each direction */
};

struct het_cluster {
    const struct het_cluster_type *types; /* sorted by name */
    size_t type_count;
    const struct het_node *nodes; /* in input order */
    size_t node_count;
    const struct het_domain *domains;
    size_t domain_count;
    uint32_t level_count; /* at most HET_MAX_LEVELS; 0: only nodes have uplinks */
    const struct het_network *network; /* measured curves; NULL: the nodes' figures */
    /* Aliases that tell which type names mean the same part; NULL: the built-in table. */
    const struct het_hardware *hardware;
};

/* All GPUs; those of one type. */
uint32_t het_cluster_gpu_count(const struct het_cluster *cluster);
uint32_t het_cluster_type_gpu_count(const struct het_cluster *cluster, uint32_t type);

/* A link that is neither measured nor stated, of all nodes with one GPU type and one rate
 * (and one instance type, if that gives the rate). */
struct het_assumed_link {
    const char *type;          /* of the GPUs */
    const char *instance_type; /* if it says the rate; else NULL */
    bool leaves_node;          /* the node's uplink; else between GPUs of the node */
    enum het_link_source source;
    double bytes_per_s;
};
/* More than one cluster has, one rule for each. */
#define HET_MAX_ASSUMED_LINKS 256u
/* Those that a plan on the cluster may use: uplinks if it has several nodes, links inside
 * of nodes with several GPUs. Sorted by type, the uplinks first; in `arena`. Those beyond
 * the maximum are left out. */
size_t het_cluster_assumed_links(struct het_arena *arena,
                                 const struct het_cluster *cluster,
                                 const struct het_assumed_link **ret);
/* "Default", "GPUType", "InstanceType", "Measured", "Stated". */
const char *het_link_source_name(enum het_link_source source);

/* The order of nodes by all that a plan's time and memory depend on; 0: they are alike
 * but for name and preference. */
int het_node_compare(const struct het_node *a, const struct het_node *b);

/* The largest node of a type, the first of equal ones; NULL if there is none. */
const struct het_node *het_cluster_largest_node(const struct het_cluster *cluster,
                                                uint32_t type);

/* Nodes by name: for many look-ups. In `arena`. */
struct het_node_name {
    const char *name;
    uint32_t node;
};
const struct het_node_name *het_cluster_sort_names(struct het_arena *arena,
                                                   const struct het_cluster *cluster);
/* Index of the node called `name`; HET_NO_NODE if absent. */
#define HET_NO_NODE UINT32_MAX
uint32_t het_cluster_find_node(const struct het_cluster *cluster,
                               const struct het_node_name *names, const char *name);

/* GPUs of the largest node of a type; 0 if there is none. */
uint32_t het_cluster_largest_node_gpus(const struct het_cluster *cluster, uint32_t type);

/* Index of the type called `name`; HET_NO_TYPE if absent. */
uint32_t het_cluster_find_type(const struct het_cluster *cluster, const char *name);

/* Bandwidths in bytes a second, each direction: measured curves where the network has
 * them, else the nodes' figures. `message_bytes` is what one flow sends.
 *
 * What the GPUs of a node together get of its uplink when `gpus` of them communicate. */
double het_cluster_uplink(const struct het_cluster *cluster, uint32_t node, uint32_t gpus,
                          double message_bytes);
/* The most that `flows` flows together get from node `from` to another, `to`, however
 * wide the uplinks; HUGE_VAL if nothing limits them. With curves it is the slower
 * direction's, so that a send takes equally long both ways. */
double het_cluster_pair(const struct het_cluster *cluster, uint32_t from, uint32_t to,
                        uint32_t flows, double message_bytes);
/* What one GPU of a node sends to others of it, when `gpus` of them communicate. */
double het_cluster_gpu_link(const struct het_cluster *cluster, uint32_t node,
                            uint32_t gpus, double message_bytes);

/* Shared links are numbered: 2 * i is what leaves node i, 2 * i + 1 what enters it; then
 * the same for the domains, from 2 * node_count on. The other direction of link k is
 * k ^ 1. */
static inline uint32_t het_cluster_link_count(const struct het_cluster *cluster)
{
    return (uint32_t)(2 * (cluster->node_count + cluster->domain_count));
}

/* Refuses (HET_BAD_INPUT, naming the node and field) what no planner can use: no nodes,
 * nodes without GPUs, duplicate names, bandwidths that are not finite and positive, types
 * that are not sorted by name, more than the limits above. A type without known memory is
 * an error only if it is used (het_problem_init). */
int het_cluster_check(const struct het_cluster *cluster, struct het_error *err);

#endif
