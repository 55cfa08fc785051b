#include "planner/model/runtime.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define BIT(freedom) (1u << (freedom))
#define ALL_FREEDOMS (BIT(HET_FREEDOM_COUNT) - 1)

/* Megatron-LM: --pipeline-model-parallel-layout; world = tp x pp x dp; one number of
 * micro-batches; tp-cp-ep-dp-pp, or tp-cp-ep-pp-dp by --use-tp-pp-dp-mapping.
 * FlagScale: hetero_process_meshes, hetero_pipeline_layer_split, recompute by stage;
 * meshes take consecutive ranks, a mesh has Megatron's order. Hetu: its paper's
 * asymmetric pipelines; no program of its repository reads arguments that say them.
 * Sailor: layers_per_stage, dist_config.json with the ranks of each group, asserted to be
 * of 1, 2 or 4. DeepSpeed: PipelineModule with partition_method uniform, axes pipe, data,
 * model. TorchTitan: module_fqns_per_model_part; mesh pp, dp, tp. */
static const struct het_runtime runtimes[] = {
    { .name = "generic",
      .title = "a program that reads the plan",
      .freedoms = ALL_FREEDOMS },
    { .name = "megatron",
      .title = "Megatron-LM",
      .version = "Megatron-LM of August 2026 (d98e8a6)",
      .freedoms = BIT(HET_UNEVEN_LAYERS) | BIT(HET_EMPTY_STAGES) | BIT(HET_ANY_TP),
      .rank_orders = HET_STAGE_MAJOR | HET_LANE_MAJOR },
    { .name = "flagscale",
      .title = "FlagScale",
      .version = "FlagScale 0.8.0",
      .freedoms = BIT(HET_UNEVEN_LAYERS) | BIT(HET_TP_PER_STAGE) | BIT(HET_DP_PER_STAGE) |
                  BIT(HET_RECOMPUTE_PER_STAGE) | BIT(HET_ANY_TP),
      .rank_orders = HET_STAGE_MAJOR,
      .mesh_a_node = true },
    { .name = "hetu",
      .title = "Hetu",
      .freedoms = BIT(HET_UNEVEN_LAYERS) | BIT(HET_TP_PER_STAGE) |
                  BIT(HET_TP_PER_REPLICA) | BIT(HET_COUNT_PER_PIPELINE) |
                  BIT(HET_LAYERS_PER_PIPELINE) | BIT(HET_STAGES_PER_PIPELINE) |
                  BIT(HET_RECOMPUTE_PER_STAGE) | BIT(HET_ANY_RANK_ORDER) |
                  BIT(HET_ANY_TP) },
    { .name = "sailor",
      .title = "Sailor",
      .version = "Sailor cf2c8e3",
      .freedoms = BIT(HET_UNEVEN_LAYERS) | BIT(HET_TP_PER_STAGE) |
                  BIT(HET_TP_PER_REPLICA) | BIT(HET_EMPTY_STAGES) |
                  BIT(HET_ANY_RANK_ORDER),
      .max_tp = 4 },
    { .name = "deepspeed",
      .title = "DeepSpeed",
      .version = "DeepSpeed of February 2025 (38327e0)",
      .freedoms = BIT(HET_EMPTY_STAGES) | BIT(HET_ANY_TP),
      .rank_orders = HET_STAGE_MAJOR },
    { .name = "torchtitan",
      .title = "TorchTitan",
      .version = "TorchTitan 0.2.2",
      .freedoms = BIT(HET_UNEVEN_LAYERS) | BIT(HET_EMPTY_STAGES) | BIT(HET_ANY_TP),
      .rank_orders = HET_STAGE_MAJOR },
    { 0 },
};

static const struct {
    const char *reason, *text;
} freedoms[] = {
    [HET_UNEVEN_LAYERS] = { "UnevenLayers", "stages of unequal numbers of layers" },
    [HET_TP_PER_STAGE] = { "PerStageTensorParallel",
                           "a tensor-parallel degree for each stage" },
    [HET_TP_PER_REPLICA] = { "PerReplicaTensorParallel",
                             "a tensor-parallel degree for each replica of a stage" },
    [HET_DP_PER_STAGE] = { "PerStageDataParallel",
                           "a data-parallel degree for each stage" },
    [HET_UNEVEN_SHARES] = { "UnevenShares",
                            "replicas of a stage that take unequal numbers of samples" },
    [HET_MICROBATCH_PER_PIPELINE] = { "PerPipelineMicroBatch",
                                      "a micro-batch size for each pipeline" },
    [HET_COUNT_PER_PIPELINE] = { "PerPipelineMicroBatchCount",
                                 "a number of micro-batches for each pipeline" },
    [HET_LAYERS_PER_PIPELINE] = { "PerPipelineLayers",
                                  "pipelines cut at different layers" },
    [HET_STAGES_PER_PIPELINE] = { "PerPipelineStages",
                                  "pipelines of different numbers of stages" },
    [HET_RECOMPUTE_PER_STAGE] = { "PerStageRecompute",
                                  "recomputation in some stages only" },
    [HET_SELECTIVE_PER_STAGE] = { "PerStageSelectiveRecompute",
                                  "selective recomputation in some stages only" },
    [HET_ANY_RANK_ORDER] = { "RankOrder", "ranks placed in any order over the nodes" },
    [HET_EMPTY_STAGES] = { "EmptyStages", "stages of the embedding or the head alone" },
    [HET_ANY_TP] = { "TensorParallelDegree", "any tensor-parallel degree" },
};

const struct het_runtime *het_runtimes(void)
{
    return runtimes;
}

/* Further names of the first. */
static const char *const generic_names[] = { "torchrun", "custom" };
#define GENERIC_NAME_COUNT (sizeof generic_names / sizeof *generic_names)

static void fail_unknown(const char *name, struct het_error *err)
{
    char names[256];
    int length = snprintf(names, sizeof names, "%s", runtimes->name);
    for (size_t i = 0; i < GENERIC_NAME_COUNT; i++)
        length += snprintf(names + length, sizeof names - (size_t)length, ", %s",
                           generic_names[i]);
    for (const struct het_runtime *r = runtimes + 1; r->name; r++)
        length +=
            snprintf(names + length, sizeof names - (size_t)length, ", %s", r->name);
    assert((size_t)length < sizeof names);
    het_fail(err, HET_BAD_INPUT, "no runtime \"%.60s\"; there are %s", name, names);
}

const struct het_runtime *het_runtime_find(const char *name, struct het_error *err)
{
    for (size_t i = 0; i < GENERIC_NAME_COUNT; i++)
        if (!strcmp(generic_names[i], name))
            return runtimes;
    for (const struct het_runtime *r = runtimes; r->name; r++)
        if (!strcmp(r->name, name))
            return r;
    fail_unknown(name, err);
    return NULL;
}

const struct het_runtime *het_runtime_without(struct het_arena *arena,
                                              const struct het_runtime *runtime,
                                              uint32_t without)
{
    if (!without)
        return runtime;
    struct het_runtime *less = het_arena_alloc(arena, sizeof *less);
    *less = runtime ? *runtime : runtimes[0];
    less->title =
        het_arena_printf(arena, "%s, under the job's constraints,", less->title);
    less->freedoms &= ~without;
    return less;
}

bool het_runtime_runs_all(const struct het_runtime *runtime)
{
    return !runtime || runtime->freedoms == ALL_FREEDOMS;
}

bool het_runtime_has(const struct het_runtime *runtime, enum het_freedom freedom)
{
    return !runtime || runtime->freedoms & BIT(freedom);
}

const char *het_freedom_reason(enum het_freedom freedom)
{
    return freedoms[freedom].reason;
}

const char *het_freedom_text(enum het_freedom freedom)
{
    return freedoms[freedom].text;
}

const char *het_runtime_lack(struct het_arena *arena, const struct het_runtime *runtime,
                             enum het_freedom missing)
{
    return het_arena_printf(arena, "%s has no way to run %s (%s)", runtime->title,
                            het_freedom_text(missing), het_freedom_reason(missing));
}

uint32_t het_runtime_even_layers(uint32_t layer_count, uint32_t stage_count,
                                 uint32_t stage)
{
    return layer_count / stage_count + (stage < layer_count % stage_count);
}

/* ---- what a plan takes ---- */

static uint32_t freedoms_of_stage(const struct het_pipeline *pipeline, size_t s,
                                  uint32_t layer_count)
{
    const struct het_stage *stage = &pipeline->stages[s], *first = pipeline->stages;
    uint32_t taken = 0;
    if (stage->layer_count != het_runtime_even_layers(layer_count,
                                                      (uint32_t)pipeline->stage_count,
                                                      (uint32_t)s))
        taken |= BIT(HET_UNEVEN_LAYERS);
    bool is_end = !stage->first_layer || stage->first_layer + 1 == layer_count;
    if (stage->layer_count == 1 && is_end)
        taken |= BIT(HET_EMPTY_STAGES);
    if (stage->replicas[0].tp != first->replicas[0].tp)
        taken |= BIT(HET_TP_PER_STAGE);
    if (stage->replica_count != first->replica_count)
        taken |= BIT(HET_DP_PER_STAGE);
    for (size_t r = 1; r < stage->replica_count; r++) {
        if (stage->replicas[r].tp != stage->replicas[0].tp)
            taken |= BIT(HET_TP_PER_REPLICA);
        if (stage->replicas[r].microbatch_size != stage->replicas[0].microbatch_size)
            taken |= BIT(HET_UNEVEN_SHARES);
    }
    return taken;
}

/* What pipeline `p` takes by not being as the first one. */
static uint32_t freedoms_between(const struct het_pipeline *a,
                                 const struct het_pipeline *b)
{
    uint32_t taken = 0;
    if (a->microbatch_count != b->microbatch_count)
        taken |= BIT(HET_COUNT_PER_PIPELINE);
    if (a->stages[0].replicas[0].tp != b->stages[0].replicas[0].tp)
        taken |= BIT(HET_TP_PER_REPLICA);
    if (a->stage_count != b->stage_count)
        return taken | BIT(HET_STAGES_PER_PIPELINE);
    for (size_t s = 0; s < a->stage_count; s++) {
        if (a->stages[s].first_layer != b->stages[s].first_layer)
            taken |= BIT(HET_LAYERS_PER_PIPELINE);
        if (a->stages[s].replicas[0].tp != b->stages[s].replicas[0].tp)
            taken |= BIT(HET_TP_PER_REPLICA);
    }
    return taken;
}

static uint32_t freedoms_of_recompute(enum het_recompute a, enum het_recompute b)
{
    if (a == b)
        return 0;
    bool is_selective = a == HET_RECOMPUTE_SELECTIVE || b == HET_RECOMPUTE_SELECTIVE;
    return BIT(HET_RECOMPUTE_PER_STAGE) |
           (is_selective ? BIT(HET_SELECTIVE_PER_STAGE) : 0);
}

uint32_t het_runtime_freedoms_of(const struct het_plan *plan)
{
    const struct het_pipeline *first = plan->pipelines;
    uint32_t taken = 0;
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        const struct het_pipeline *pipeline = &plan->pipelines[p];
        for (size_t s = 0; s < pipeline->stage_count; s++) {
            taken |= freedoms_of_stage(pipeline, s, plan->layer_count);
            taken |= freedoms_of_recompute(first->stages[0].recompute,
                                           pipeline->stages[s].recompute);
        }
        taken |= freedoms_between(first, pipeline);
        if (pipeline->stages[0].replicas[0].microbatch_size !=
            first->stages[0].replicas[0].microbatch_size)
            taken |= BIT(HET_MICROBATCH_PER_PIPELINE);
    }
    return taken;
}

static bool has_degree(const struct het_runtime *runtime, uint32_t tp)
{
    return het_runtime_has(runtime, HET_ANY_TP) ||
           (tp <= runtime->max_tp && !(tp & (tp - 1)));
}

static uint32_t freedoms_of_degrees(const struct het_runtime *runtime,
                                    const struct het_plan *plan)
{
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++)
                if (!has_degree(runtime, stage->replicas[r].tp))
                    return BIT(HET_ANY_TP);
        }
    return 0;
}

/* ---- order of ranks ---- */

/* Equal pipelines written as one whose stages have the replicas of all. */
static const struct het_plan *merge(struct het_arena *arena, const struct het_plan *plan)
{
    const struct het_pipeline *first = plan->pipelines;
    struct het_plan *merged = het_arena_alloc(arena, sizeof *merged);
    struct het_pipeline *pipeline = het_arena_alloc(arena, sizeof *pipeline);
    struct het_stage *stages =
        HET_ARENA_ARRAY(arena, struct het_stage, first->stage_count);
    for (size_t s = 0; s < first->stage_count; s++) {
        size_t count = 0;
        for (size_t p = 0; p < plan->pipeline_count; p++)
            count += plan->pipelines[p].stages[s].replica_count;
        struct het_replica *replicas = HET_ARENA_ARRAY(arena, struct het_replica, count);
        stages[s] = first->stages[s];
        stages[s].replicas = replicas;
        stages[s].replica_count = count;
        for (size_t p = 0; p < plan->pipeline_count; p++) {
            const struct het_stage *from = &plan->pipelines[p].stages[s];
            memcpy(replicas, from->replicas, from->replica_count * sizeof *replicas);
            replicas += from->replica_count;
        }
    }
    *pipeline = *first;
    pipeline->stages = stages;
    *merged = *plan;
    merged->pipelines = pipeline;
    merged->pipeline_count = 1;
    return merged;
}

/* A plan whose GPUs are being told apart anew, in the order of its ranks. */
struct walk {
    struct het_arena *arena;
    struct het_plan *plan;        /* a copy */
    struct het_replica *replicas; /* of that copy, in plan order */
    uint32_t *first;              /* [node] rank of its first used GPU */
    uint32_t *taken;              /* [node] GPUs given out */
    uint32_t next_rank;
};

/* Calls `visit` for each replica in plan order. */
static void each_replica(struct walk *walk,
                         void (*visit)(struct walk *, const struct het_replica *))
{
    const struct het_plan *plan = walk->plan;
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++)
                visit(walk, &stage->replicas[r]);
        }
}

static void count_gpus(struct walk *walk, const struct het_replica *replica)
{
    walk->taken[replica->node] += replica->tp;
}

/* Nodes are numbered by their first appearance (het_plan_rank_nodes). */
static void number_node(struct walk *walk, const struct het_replica *replica)
{
    if (!walk->taken[replica->node])
        return;
    walk->first[replica->node] = walk->next_rank;
    walk->next_rank += walk->taken[replica->node];
    walk->taken[replica->node] = 0;
}

static void walk_init(struct walk *walk, struct het_arena *arena, size_t node_count,
                      const struct het_plan *plan)
{
    *walk = (struct walk){ .arena = arena,
                           .first = HET_ARENA_ARRAY(arena, uint32_t, node_count),
                           .taken = HET_ARENA_ARRAY(arena, uint32_t, node_count) };
    walk->plan = het_plan_copy_replicas(arena, plan, &walk->replicas);
    each_replica(walk, count_gpus);
    each_replica(walk, number_node);
    walk->next_rank = 0;
}

/* Gives the replica the next ranks; false if its node's next ones are others. */
static bool take_ranks(struct walk *walk, const struct het_replica *at)
{
    struct het_replica *replica = walk->replicas + (at - walk->replicas);
    uint32_t node = replica->node;
    if (walk->first[node] + walk->taken[node] != walk->next_rank)
        return false;
    uint32_t *gpus = HET_ARENA_ARRAY(walk->arena, uint32_t, replica->tp);
    for (uint32_t i = 0; i < replica->tp; i++)
        gpus[i] = walk->taken[node]++;
    replica->gpus = gpus;
    walk->next_rank += replica->tp;
    return true;
}

static bool walk_stages(struct walk *walk)
{
    const struct het_plan *plan = walk->plan;
    for (size_t s = 0; s < plan->pipelines[0].stage_count; s++)
        for (size_t p = 0; p < plan->pipeline_count; p++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++)
                if (!take_ranks(walk, &stage->replicas[r]))
                    return false;
        }
    return true;
}

static bool walk_lanes(struct walk *walk)
{
    const struct het_plan *plan = walk->plan;
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        const struct het_pipeline *pipeline = &plan->pipelines[p];
        for (size_t r = 0; r < pipeline->stages[0].replica_count; r++)
            for (size_t s = 0; s < pipeline->stage_count; s++)
                if (!take_ranks(walk, &pipeline->stages[s].replicas[r]))
                    return false;
    }
    return true;
}

/* The plan with local indices of GPUs that put its ranks into `order`; NULL if none do.
 */
static const struct het_plan *put_in_order(struct het_arena *arena, size_t node_count,
                                           const struct het_plan *plan,
                                           enum het_rank_order order)
{
    struct walk walk;
    walk_init(&walk, arena, node_count, plan);
    bool done = order == HET_STAGE_MAJOR ? walk_stages(&walk) : walk_lanes(&walk);
    return done ? walk.plan : NULL;
}

static size_t largest_node(const struct het_plan *plan)
{
    size_t largest = 0;
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++)
                if (stage->replicas[r].node > largest)
                    largest = stage->replicas[r].node;
        }
    return largest;
}

/* Whether stages next to each other that differ in degrees share no node. */
static bool keeps_meshes_apart(const struct het_plan *plan)
{
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 1; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            const struct het_stage *before = stage - 1;
            uint32_t node = stage->replicas[0].node;
            if (stage->replicas[0].tp == before->replicas[0].tp &&
                stage->replica_count == before->replica_count)
                continue;
            for (size_t r = 0; r < before->replica_count; r++)
                if (before->replicas[r].node == node)
                    return false;
        }
    return true;
}

static const struct het_plan *find_order(struct het_arena *arena,
                                         const struct het_runtime *runtime,
                                         const struct het_plan *plan)
{
    const struct het_plan *forms[] = { plan, plan->pipeline_count > 1 ? merge(arena, plan)
                                                                      : NULL };
    const enum het_rank_order orders[] = { HET_STAGE_MAJOR, HET_LANE_MAJOR };
    size_t node_count = largest_node(plan) + 1;
    for (size_t f = 0; f < 2 && forms[f]; f++)
        for (size_t o = 0; o < 2; o++) {
            const struct het_plan *found = NULL;
            if (runtime->rank_orders & orders[o])
                found = put_in_order(arena, node_count, forms[f], orders[o]);
            if (found && (!runtime->mesh_a_node || keeps_meshes_apart(found)))
                return found;
        }
    return NULL;
}

/* Without the order of ranks. */
static uint32_t lacking(const struct het_runtime *runtime, const struct het_plan *plan)
{
    return (het_runtime_freedoms_of(plan) | freedoms_of_degrees(runtime, plan)) &
           ~runtime->freedoms;
}

uint32_t het_runtime_needs(const struct het_runtime *runtime, const struct het_plan *plan)
{
    if (het_runtime_runs_all(runtime))
        return 0;
    uint32_t missing = lacking(runtime, plan);
    struct het_arena *arena = het_arena_new();
    if (!missing && !het_runtime_express(arena, runtime, plan, NULL))
        missing = BIT(HET_ANY_RANK_ORDER);
    het_arena_free(arena);
    return missing;
}

const struct het_plan *het_runtime_express(struct het_arena *arena,
                                           const struct het_runtime *runtime,
                                           const struct het_plan *plan,
                                           enum het_freedom *ret_missing)
{
    if (het_runtime_runs_all(runtime))
        return plan;
    uint32_t missing = lacking(runtime, plan);
    const struct het_plan *found = NULL;
    if (!missing && het_runtime_has(runtime, HET_ANY_RANK_ORDER))
        return plan;
    if (!missing)
        found = find_order(arena, runtime, plan);
    if (!found && ret_missing)
        *ret_missing = missing ? (enum het_freedom)__builtin_ctz(missing)
                               : HET_ANY_RANK_ORDER;
    return found;
}

const struct het_plan *het_runtime_express_alone(struct het_arena *arena,
                                                 const struct het_runtime *runtime,
                                                 const struct het_plan *plan,
                                                 enum het_freedom *ret_missing)
{
    if (het_runtime_runs_all(runtime))
        return plan;
    if (ret_missing)
        *ret_missing = HET_FREEDOM_COUNT;
    if (het_plan_bind(arena, plan, het_plan_own_cluster(arena, plan), &plan, NULL) < 0)
        return NULL;
    return het_runtime_express(arena, runtime, plan, ret_missing);
}
