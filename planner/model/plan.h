/* plan.h - a parallelism plan: pipelines x stages x replicas (docs/planner.md). Whether
 * it is well formed is het_plan_check's question; whether it fits is memory.h's, how fast
 * it is cost.h's. */
#ifndef HET_MODEL_PLAN_H
#define HET_MODEL_PLAN_H

#include "planner/base/arena.h"
#include "planner/base/error.h"
#include "planner/model/cluster.h"
#include "planner/model/profile.h"
#include "planner/model/unused_gpus.h"
#include "planner/model/workload.h"

#include <stdbool.h>

/* GPUs of a plan that is read, at most. */
#define HET_MAX_PLAN_GPUS 1048576u

/* What a plan is made for, and priced with. */
struct het_problem {
    const struct het_cluster *cluster;
    const struct het_profile *profile;
    const struct het_workload *workload;
    const uint32_t
        *profile_type; /* [cluster type]: type in the profile, HET_NO_TYPE: none. NULL: no
                          measurements, for het_plan_check of a plan alone */
};

/* Binds the three (profile_type in `arena`): a cluster type takes the profile's type of
 * its name, else of its profile_name, else one that the aliases of cluster->hardware say
 * is the same part. Types that the workload's type limits leave out get none. Errors:
 * HET_BAD_INPUT when any of the three fails its check, or when the memory of a type that
 * is in the profile is unknown; HET_NO_PLAN when no type of the cluster is in the profile
 * (both lists are in the message). */
int het_problem_init(struct het_arena *arena, const struct het_cluster *cluster,
                     const struct het_profile *profile,
                     const struct het_workload *workload, struct het_problem *ret,
                     struct het_error *err);

enum het_recompute { HET_RECOMPUTE_NONE, HET_RECOMPUTE_SELECTIVE, HET_RECOMPUTE_FULL };

#define HET_UNBOUND UINT32_MAX

/* A tensor-parallel group: its GPUs are on one node. */
struct het_replica {
    const char *node_name, *type_name;
    uint32_t node, type;  /* cluster indices; HET_UNBOUND before het_plan_bind */
    const uint32_t *gpus; /* [tp] local indices inside the pod on that node */
    uint32_t tp;
    uint32_t microbatch_size; /* samples of a micro-batch that this replica takes */
};

/* Bound to a node of the cluster. */
struct het_replica het_plan_replica(const struct het_cluster *cluster, uint32_t node,
                                    const uint32_t *gpus, uint32_t tp, uint32_t samples);

struct het_stage {
    uint32_t first_layer, layer_count;
    enum het_recompute recompute;
    const struct het_replica *replicas;
    size_t replica_count;
};

struct het_pipeline {
    uint32_t microbatch_count; /* micro-batches an iteration */
    const struct het_stage *stages;
    size_t stage_count;
};

struct het_idle {
    const char *node_name;
    const uint32_t *gpus;
    size_t gpu_count;
};

struct het_peak_memory {
    uint32_t pipeline, stage, replica;
    uint64_t bytes, capacity_bytes; /* of one GPU; capacity without the headroom */
    /* Of the bytes: */
    uint64_t state_bytes, activation_bytes; /* what the framework's allocator reports */
    uint64_t workspace_bytes;               /* the rest: context, kernels, communicator */
};

struct het_migration;
struct het_plan;

struct het_prediction {
    bool is_read; /* copied from a document and not checked; the figures may be anything
                   */
    double iteration_s, samples_per_s;
    double closed_form_s;    /* the iteration by cost.h; 0: not known */
    double lower_bound_s;    /* 0: none proved */
    double from_iteration_s; /* of the running plan, for the same input; 0: not asked, or
                                it can no longer run */
    /* If a runtime limits the plan: the best time found without its limits, and the
     * freedoms that plan needs (bits 1 << enum het_freedom, runtime.h). 0: not asked, or
     * no better. */
    double unrestricted_s;
    uint32_t unrestricted_needs;
    /* What it takes to get here from the running plan; NULL: none. */
    const struct het_migration *migration;
    /* The fastest plan found among those that are reached within the time allowed, or
     * that move less and are nearly as fast; NULL: not asked, or this one is it. */
    const struct het_plan *stable;
    double pipeline_s, gradient_sync_s, optimizer_s;
    enum het_profile_origin profile_origin; /* where its times come from */
    bool extrapolated; /* a micro-batch is larger than what was measured */
    /* Bandwidths behind the plan that are neither measured nor stated. */
    const struct het_assumed_link *assumed_links;
    size_t assumed_link_count;
    const struct het_peak_memory *peak_memory;
    size_t peak_memory_count;
};

/* What a search did. */
struct het_search_statistics {
    uint64_t groups_enumerated; /* device group lists looked at */
    uint64_t strategies_tried;  /* (dp, tp) assignments */
    uint64_t partitions_failed; /* no layer split fits */
    uint64_t plans_priced;
    /* Of the walks of paper_walk.h, as counted there; 0 and NULL of other searches. */
    uint64_t walk_steps, walk_plans, walk_broken;
    double walk_best_s;    /* least seconds under the walk's own rules */
    const char *walk_best; /* that plan in short */
};

struct het_search_report {
    uint64_t effort;
    uint64_t plans_priced;
    uint64_t seed;
    int optimal;         /* 1: proved */
    bool has_run_out;    /* of effort, before the search was complete */
    bool is_cut_short;   /* told to stop: the best plan so far */
    bool has_statistics; /* asked for */
    struct het_search_statistics statistics;
};

struct het_plan {
    const char *algorithm;
    uint32_t global_batch, layer_count;
    uint32_t sequence_length; /* tokens of a sample that it was made for; 0: any */
    enum het_precision precision;
    enum het_optimizer optimizer;
    const struct het_pipeline *pipelines;
    size_t pipeline_count;
    const struct het_idle *idle; /* per node, in cluster order */
    size_t idle_count;
    /* Why GPUs of the whole cluster are not used, including those that the planner was
     * never offered; not part of what the plan decides. */
    const struct het_unused *unused;
    size_t unused_count;
    struct het_prediction predicted;
    struct het_search_report search;
};

/* A copy of `plan` with node and type indices of `cluster`, in `arena`. Errors:
 * HET_BAD_INPUT names the replica whose node or type the cluster lacks. */
int het_plan_bind(struct het_arena *arena, const struct het_plan *plan,
                  const struct het_cluster *cluster, const struct het_plan **ret,
                  struct het_error *err);

/* The nodes that `plan` names, each with the GPUs that the plan uses; in `arena`. */
const struct het_cluster *het_plan_own_cluster(struct het_arena *arena,
                                               const struct het_plan *plan);

/* What `plan` decides, and its lists of idle and unused GPUs and peaks of memory, copied
 * into `arena`; names are borrowed as they were. */
struct het_plan *het_plan_copy(struct het_arena *arena, const struct het_plan *plan);

/* A copy of `plan` whose replicas, het_plan_replica_count of them in plan order, are one
 * array that may be changed; the rest is borrowed. */
struct het_plan *het_plan_copy_replicas(struct het_arena *arena,
                                        const struct het_plan *plan,
                                        struct het_replica **ret_replicas);

size_t het_plan_replica_count(const struct het_plan *plan);
uint32_t het_plan_gpu_count(const struct het_plan *plan); /* that it uses */
/* The same of a bound plan by type, [type]; in `arena`. */
const uint32_t *het_plan_type_gpus(struct het_arena *arena, const struct het_plan *plan,
                                   size_t type_count);

/* GPUs of a type that the cluster has and the limits of the type allow; the limit of the
 * whole plan is not looked at. */
uint32_t het_problem_usable_gpus(const struct het_problem *problem, uint32_t type);

/* Messages kept; further ones are not counted. */
#define HET_MAX_VIOLATIONS 1000u

struct het_violations {
    const char **messages; /* "pipelines[0].stages[1].replicas[0].gpus: GPU 3 of node a is
                              used twice" */
    size_t count, capacity;
};

/* The independent checker: everything that docs/planner.md, Plan, demands of a bound
 * plan, and the workload's limits: layers covered once in order, GPUs on one node, of its
 * type, in range, each once (used ones are 0..k-1 of a node), micro-batch sums equal over
 * stages, global batch exact, profile has every (type, tp, micro-batch), limits kept (the
 * data-parallel degree of a layer is the number of replicas that hold it), `idle`, if the
 * plan has any, is what is left; memory aside. Adds a message for each violation; returns
 * how many it added. */
size_t het_plan_check(struct het_arena *arena, const struct het_problem *problem,
                      const struct het_plan *plan, struct het_violations *violations);
void het_violations_add(struct het_arena *arena, struct het_violations *violations,
                        const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Whether a replica of a bound plan takes more samples than the profile measured. */
bool het_plan_extrapolates(const struct het_problem *problem,
                           const struct het_plan *plan);

/* How many replicas, of all pipelines, hold each layer; [layer_count]. */
void het_plan_count_holders(const struct het_plan *plan, uint32_t layer_count,
                            uint32_t *ret_holders);

/* Fills plan->idle (in `arena`) from what the pipelines of a bound plan leave of
 * `cluster`. */
void het_plan_fill_idle(struct het_arena *arena, const struct het_cluster *cluster,
                        struct het_plan *plan);

/* Nodes of a plan in rank order (docs/planner.md, Plan): by first appearance over
 * pipelines, stages, replicas; a node's ranks are its used GPUs in local order. Works on
 * unbound plans. */
struct het_rank_node {
    const char *node_name, *type_name;
    uint32_t gpu_count;   /* used GPUs = ranks = processes */
    uint32_t rank_offset; /* rank of local GPU 0 */
};
size_t het_plan_rank_nodes(struct het_arena *arena, const struct het_plan *plan,
                           struct het_rank_node **ret_nodes);
/* GPUs of `node` among them; 0 if it is none of them. */
uint32_t het_plan_gpus_on(const struct het_rank_node *nodes, size_t count,
                          const char *node);

/* Order of two plans for equal cost: the smaller in (pipeline count, stage counts,
 * layers, replicas, node names, GPUs, ...) wins; never depends on addresses. */
int het_plan_compare(const struct het_plan *a, const struct het_plan *b);

#endif
