/* capacity_view.h - the accounting of capacity.h as one job sees it, and independent of
 * any job. Pure. */
#ifndef CONTROLLER_CLUSTER_CAPACITY_VIEW_H
#define CONTROLLER_CLUSTER_CAPACITY_VIEW_H

#include "controller/cluster/capacity.h"

/* One node as one job sees it. */
struct capacity_node {
    const char *name;
    const char *type;       /* canonical GPU type; "": not known */
    const char *resource;   /* by which pods request its GPUs */
    const char *vendor;     /* of the GPUs, if `type` does not give it; else NULL */
    const json_t *labels;   /* borrowed; NULL: none */
    uint64_t memory_bytes;  /* of one GPU; 0: from the hardware table */
    int64_t allocatable;    /* GPUs */
    int64_t free;           /* GPUs this job may plan with, its own included; 0 if
                               unusable */
    int64_t most_free;      /* what `free` would be if no other job held anything there */
    int64_t claimed;        /* GPUs that others hold and this job claims (other_jobs.h);
                               set by the caller that knows the claims */
    const char *limited_by; /* the resource that limits `free`, unless it is the GPUs;
                               else NULL */
    const char *unusable;   /* reason (unused_gpus.h), "Tainted (key)"; NULL: usable */
    int64_t unusable_since_ms;
    int preference; /* below 0: used last (spotPolicy) */
    bool is_spot;
    /* The node has announced that it will go (spot notice, drain), so its pods must
     * leave. It is also unusable. */
    bool is_leaving;
    const char *leaving_by; /* the key of the taint or annotation; NULL: not leaving */
    int64_t leaving_since_ms;
};

/* All GPU nodes by name, as the job with `spec` and `job_key` sees them; the spec names
 * GPU types as the table does (job_spec_name_types). A node shows GPUs of one resource:
 * that of the first entry of gpuTypes whose type and resource it offers; without gpuTypes
 * nvidia.com/gpu, or else amd.com/gpu. It is usable if its own state is (ready,
 * schedulable, not leaving, ...), the template tolerates its taints (those of the GPU
 * resources always), it matches the selectors and affinity of the job and the template,
 * its labels give one type for its GPUs, and the job's policies admit it. Allocated in
 * `arena`. */
/* `kept` (zero at first) remembers what one job saw with one spec, so that only changed
 * nodes are computed again. For another spec, hardware or job, pass an empty one. NULL:
 * all nodes are computed. */
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
/* The rules of a present job before the administrator's limits; not readable: its spec is
 * refused, or there is none. */
void capacity_rules_of(const struct capacity *capacity, const char *job_key,
                       struct job_rules *ret);
/* Whether any plan is a claim (other_jobs.h). */
bool capacity_has_claims(const struct capacity *capacity);
/* GPUs that a job holds or has reserved, by node; none if it is gone or finished. Returns
 * how many nodes. */
struct capacity_share {
    const char *node;
    int64_t gpus;
};
size_t capacity_holdings(const struct capacity *capacity, struct het_arena *arena,
                         const char *job_key, struct capacity_share **ret);
/* Whether it holds, or has reserved, GPUs of `node`. */
bool capacity_holds(const struct capacity *capacity, const char *job_key,
                    const char *node);
/* A node independent of any job: which jobs have its GPUs. */
struct capacity_use {
    const char *job; /* job_key */
    int64_t gpus;    /* held or reserved */
};
struct capacity_place {
    const char *name;
    const char *type;     /* of the resource with most of its GPUs; "": not known */
    int64_t allocatable;  /* GPUs; 0 if there is no such node */
    int64_t foreign;      /* held by pods that are not ours */
    const char *unusable; /* by its own state and labels; NULL: usable */
    bool is_there;        /* else only jobs are still counted on it */
    const struct capacity_use *uses; /* by job_key */
    size_t use_count;
};
/* All nodes that have GPUs or a job's pods or plan, by name; in `arena`. Returns how
 * many. */
size_t capacity_places(const struct capacity *capacity, struct het_arena *arena,
                       struct capacity_place **ret);
/* GPUs of one type on all nodes, independent of any job: `used` are held or reserved,
 * `unusable` are not used and on nodes that are unusable by their own state. */
struct capacity_total {
    const char *type;
    int64_t used, free, unusable;
};
/* By type name. Returns how many. */
size_t capacity_totals(const struct capacity *capacity, struct het_arena *arena,
                       struct capacity_total **ret);
/* How much the table keeps, to check its bounds. `resources` counts the names besides
 * those that are always known. */
struct capacity_size {
    size_t nodes, pods, plans, jobs, resources;
};
struct capacity_size capacity_size(const struct capacity *capacity);
/* Whether a node object exists at all. */
bool capacity_has_node(const struct capacity *capacity, const char *name);
/* Whether the node has the out-of-service taint. */
bool capacity_is_out_of_service(const struct capacity *capacity, const char *name);

#endif
