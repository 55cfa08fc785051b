/* migrate.h - what it takes to go from a running plan to another: which ranks keep their
 * layers, which bytes move from where, and how long that takes.
 *
 * A job's state is what a checkpoint holds: weights and optimizer state, cut by layer and
 * tensor-parallel shard (het_workload_checkpoint_bytes a parameter). A node that ran part
 * of the old plan holds the shards of its GPUs. A node of the new plan needs the shards
 * of its GPUs: what it holds it reads from its own disk, once for all of its GPUs; what
 * another surviving node holds comes from there, over both uplinks; the rest is
 * downloaded once from the cloud, by one node, and passed on by nodes that have it. Nodes
 * that the cluster lacks are lost.
 *
 *   seconds = max over (a node's disk, its uplink out, its uplink in, the cloud) of
 *             bytes / bandwidth
 *
 * a lower bound of the time, as all of it overlaps. With rates->is_shared every node
 * reads all that its GPUs need from shared storage,
 *
 *   seconds = max over (a node's uplink in, the storage) of bytes / bandwidth
 *
 * or 0 if nothing changes; the bytes still say what is where. Source: AutoHet, section
 * III.C (layer bitmap, local before peers before the cloud). Differs: shards that more
 * than one node lacks are downloaded once. */
#ifndef HET_COST_MIGRATE_H
#define HET_COST_MIGRATE_H

#include "planner/model/plan.h"

#include <stdbool.h>

/* AutoHet, section V.C: a local NVMe disk, and cloud storage; bytes a second. */
#define HET_MIGRATE_DISK_BYTES_PER_S  3.5e9
#define HET_MIGRATE_CLOUD_BYTES_PER_S 1.2e9

struct het_migrate_rates {
    double disk_bytes_per_s;  /* of a node */
    double cloud_bytes_per_s; /* of the job */
    bool is_shared; /* one copy of the checkpoints is on storage that all nodes read at
                       the cloud's rate; the nodes' own disks hold none */
};

enum het_migrate_resource {
    HET_MIGRATE_NOTHING,
    HET_MIGRATE_DISK,
    HET_MIGRATE_UPLINK_OUT,
    HET_MIGRATE_UPLINK_IN,
    HET_MIGRATE_CLOUD
};

/* A rank of the new plan. */
struct het_migrate_rank {
    uint32_t node; /* cluster index */
    uint32_t local_index;
    bool keeps; /* the same GPU held all of it */
    double local_bytes, peer_bytes, cloud_bytes;
};

struct het_migration {
    double seconds;
    enum het_migrate_resource bottleneck;
    uint32_t bottleneck_node; /* HET_UNBOUND: the cloud, or nothing */
    /* Local bytes count for each GPU that reads them; peer and cloud bytes once for each
     * node that gets them over its uplink. */
    double local_bytes, peer_bytes, cloud_bytes;
    double state_bytes; /* of the whole model once */
    double write_s;     /* to write that to the storage, or the cloud */
    uint32_t ranks_kept;
    size_t rank_count;
    const struct het_migrate_rank *ranks; /* in rank order of the new plan */
};

/* From `old` (unbound: its nodes are found by name) to the bound plan `new`; both are of
 * problem->profile's layers. `rates` NULL: the constants above. */
struct het_migration het_migrate(struct het_arena *arena,
                                 const struct het_problem *problem,
                                 const struct het_plan *old, const struct het_plan *new,
                                 const struct het_migrate_rates *rates);

/* `plan` with its nodes exchanged for equal ones (type, GPUs, bandwidths, domains), so
 * that as many bytes as possible stay where `old` had them; the time of an iteration does
 * not change. Pairs of (node of the plan, node of the cluster) are taken greedily, the
 * most bytes first. Bound, in `arena`. */
const struct het_plan *het_migrate_place(struct het_arena *arena,
                                         const struct het_problem *problem,
                                         const struct het_plan *old,
                                         const struct het_plan *plan);

/* "disk", "uplinkOut", ... */
const char *het_migrate_resource_name(enum het_migrate_resource resource);

#endif
