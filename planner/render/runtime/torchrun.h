/* torchrun.h - a plan as torchrun and plain torch.distributed read it: one set of
 * environment variables per rank-node (one pod), and a hostfile.
 *
 * The rendezvous is static: the plan fixes which GPU is which rank, so nothing may be
 * decided by who arrives first. The generation stands in the rendezvous id and in every
 * host name, so that a late pod of an old generation cannot join a new one. RANK and
 * WORLD_SIZE are left out, because torchrun sets them for each process it starts. */
#ifndef HET_RENDER_RUNTIME_TORCHRUN_H
#define HET_RENDER_RUNTIME_TORCHRUN_H

#include "planner/model/plan.h"

#include <stdbool.h>

struct het_env {
    const char *name, *value;
};

/* Facts about the job that the plan does not carry. The pod of rank-node i is called
 * <job>-<generation>-<i> and resolves as <that>.<service>.<ns>.svc. */
struct het_render_job {
    const char *job, *ns, *service;
    uint32_t generation;
    const char *plan_hash;      /* HETPLAN_HASH */
    const char *plan_path;      /* HETPLAN_FILE: where the pod finds plan.json */
    const char *checkpoint_dir; /* CHECKPOINT_DIR; NULL or "": not set */
    uint16_t master_port;
};

/* The environment of rank-node `rank_node_index` (het_plan_rank_nodes' order) into `ret`,
 * an array in `arena`; returns how many. TP_SIZE, PP_SIZE and DP_SIZE are there only when
 * the plan is a full grid: one tp, one stage count, and as many replicas in each stage.
 * An index beyond the plan's nodes gives 0. */
size_t het_render_torchrun(struct het_arena *arena, const struct het_plan *plan,
                           const struct het_render_job *job, size_t rank_node_index,
                           struct het_env **ret);

/* The name under which the other pods resolve the pod of a rank-node; in `arena`. */
char *het_render_host(struct het_arena *arena, const struct het_render_job *job,
                      size_t rank_node_index);

/* Whether `name` belongs to us or to torchrun, so that a user may not set it: what
 * het_render_torchrun writes, everything that starts with HETPLAN_, and what would turn
 * the rendezvous or the ranks around. */
bool het_render_is_reserved(const char *name);

/* One line a rank-node, in rank order: "<host> slots=<GPUs> type=<GPU type>", where host
 * is the name under which the other pods resolve it. In `arena`. */
char *het_render_hostfile(struct het_arena *arena, const struct het_plan *plan,
                          const struct het_render_job *job);

#endif
