/* capacity_view.h - the accounting of capacity.h, as one job sees it, and as nobody in
 * particular does. Pure. */
#ifndef CONTROLLER_CLUSTER_CAPACITY_VIEW_H
#define CONTROLLER_CLUSTER_CAPACITY_VIEW_H

#include "controller/cluster/capacity.h"

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
/* Of a job that is there, before the administrator's limits; not readable: its spec is
 * refused, or there is none. */
void capacity_rules_of(const struct capacity *capacity, const char *job_key,
                       struct job_rules *ret);
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

#endif
