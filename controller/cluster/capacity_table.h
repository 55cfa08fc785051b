/* capacity_table.h - the table behind capacity.h: capacity.c updates it and
 * capacity_view.c reads it. No other file includes this one. */
#ifndef CONTROLLER_CLUSTER_CAPACITY_TABLE_H
#define CONTROLLER_CLUSTER_CAPACITY_TABLE_H

#include "controller/base/strmap.h"
#include "controller/cluster/node_state.h"
#include "controller/cluster/pod_need.h"
#include "controller/job/settings.h"

/* Inside, resource names are small numbers; the first ones are always known. */
enum { CPU, MEMORY, STORAGE, PODS, NVIDIA, AMD, KNOWN_RESOURCES };
#define NO_RESOURCE UINT32_MAX

struct amount {
    uint32_t resource;
    int64_t amount;
};

/* One resource of a node. */
struct stock {
    uint32_t resource;
    bool is_offered;     /* else it stays while some of it is held */
    int64_t allocatable; /* INT64_MAX: not limited */
    int64_t foreign;     /* of pods that are not ours */
    int64_t reserved;    /* of all our jobs */
};

struct node {
    char *name;
    json_t *object; /* NULL: pods or plans refer to it, but there is no such node */
    size_t pod_count, plan_count; /* that refer to it */
    struct node_state state;
    struct stock *stocks;
    size_t stock_count, stock_capacity;
    struct share **shares; /* of all jobs, in any order */
    size_t share_count, share_capacity;
    bool has_gpus;
    int64_t state_changed_ms; /* last change of usability, taints or allocatable GPUs */
    int64_t leaving_since_ms;
    /* Identify this node, as its address may be reused, and the version of what views
     * show. */
    uint64_t serial, version;
};

/* A job on one node: its pods there, and what its plan will place there. */
struct share {
    struct job *job;
    struct node *node;
    struct pod *pods;     /* linked by next */
    int64_t planned_gpus; /* 0: none */
    const char *planned_type;
    struct amount *counted; /* what is added to the node's stocks */
    size_t counted_count;
};

/* What pods of a job request; see pod_need.h. */
struct shape {
    struct {
        uint32_t resource; /* NO_RESOURCE: no node offers it */
        char *name;
        struct pod_need need; /* its name is not set */
    } * needs;
    size_t need_count;
    struct {
        char *type, *name; /* name NULL: the node's own resource */
        uint32_t resource; /* NO_RESOURCE: that, or no node offers it */
    } * rules;
    size_t rule_count;
};

/* One of our jobs. */
struct job {
    char *key;
    json_t *object; /* while it exists and is not finished: its plan holds resources */
    struct shape shape;
    struct job_rules rules;
    struct plan **plans;
    size_t plan_count, plan_capacity;
    struct share **shares; /* by the names of their nodes */
    size_t share_count, share_capacity;
    size_t pod_count;
};

struct pod {
    struct pod *next; /* of its share */
    struct node *node;
    struct job *job; /* NULL: foreign */
    int64_t generation;
    /* For a pod that is neither bound nor nominated: it counts as the pod of place
     * `index` in the plan of its generation, if its name matches. */
    char *job_name; /* prefix of its name; NULL: it is not pinned */
    int64_t index;
    json_t *unknown; /* { NAME: amount } of resources that no node offers; NULL: none */
    uint32_t amount_count;
    struct amount amounts[]; /* with room for what is unknown */
};

struct plan_share {
    struct node *node;
    char *type;
    int64_t gpus;
};

struct plan {
    struct job *job;
    char *job_name;
    int64_t generation;
    bool is_retired; /* stopped for good: reserves nothing */
    bool is_claim;   /* on GPUs that others hold (other_jobs.h) */
    struct plan_share *shares;
    size_t share_count;
};

struct capacity {
    const struct het_hardware *hardware;
    const struct settings *settings;
    struct node **nodes; /* by name */
    size_t node_count, node_capacity;
    struct strmap pods, plans, jobs; /* by uid, uid, key */
    struct strmap resources;         /* name -> &resource_names[number] */
    char **resource_names;           /* [CAPACITY_MAX_RESOURCES], NULL: free */
    size_t *resource_uses;           /* stocks, and amounts of pods */
    size_t resource_count;
    bool has_learned; /* a new name that pods and jobs may already use */
    uint64_t next_serial, names_version;
    size_t claim_count; /* plans that are claims */
};

/* Who else counts when computing what a job can use of a node. */
enum others { ALL_OTHERS, FOREIGN_PODS };

uint32_t capacity_find_resource(const struct capacity *capacity, const char *name);
struct stock *capacity_find_stock(const struct node *node, uint32_t resource);
/* How much a node has of a resource that it does not report. */
int64_t capacity_unreported(uint32_t resource);
/* Where `name` is, or belongs, in nodes[]. */
size_t capacity_node_position(const struct capacity *capacity, const char *name,
                              bool *found);
struct node *capacity_find_node(const struct capacity *capacity, const char *name);
struct share *capacity_find_share(const struct job *job, const struct node *node);
int64_t capacity_counted(const struct share *share, uint32_t resource);
/* What `others` leave of a resource for the job with `share` on the node (NULL: none). */
int64_t capacity_left(const struct node *node, const struct share *share,
                      enum others others, uint32_t resource);
/* The most GPUs, 0 to `most`, for which the node has everything else that a pod needs. If
 * that is less than `most`, `*ret_limit` is the resource that runs short, borrowed from
 * the shape. */
int64_t capacity_fit(const struct node *node, const struct share *share,
                     enum others others, const struct shape *shape, int64_t most,
                     const char **ret_limit);
void capacity_shape_fini(struct shape *shape);
/* Looks up the numbers of the shape's resources. True if one has changed. */
bool capacity_shape_resolve(const struct capacity *capacity, struct shape *shape);
void capacity_shape_init(struct shape *shape, const struct capacity *capacity,
                         const struct job_spec *spec);
const json_t *capacity_taints(const json_t *node);
const json_t *capacity_labels(const json_t *node);

#endif
