#include "tests/planner/random_plan.h"

#include "planner/base/random.h"
#include "planner/cost/memory.h"

/* The plan as it is drawn. */
struct draw {
    struct het_arena *arena;
    const struct het_problem *problem;
    uint64_t state;
    uint32_t *used;          /* [node] */
    const uint32_t *gpu_ids; /* 0, 1, 2, ... */
};

static uint32_t below(struct draw *draw, uint32_t limit)
{
    return (uint32_t)het_random_below(&draw->state, limit);
}

/* A replica for at most `samples` on GPUs that are free. */
static bool draw_replica(struct draw *draw, uint32_t samples, struct het_replica *ret)
{
    const struct het_cluster *cluster = draw->problem->cluster;
    const struct het_profile *profile = draw->problem->profile;
    uint32_t node = below(draw, (uint32_t)cluster->node_count);
    const struct het_node *at = &cluster->nodes[node];
    uint32_t tp = profile->bytes[below(draw, (uint32_t)profile->bytes_count)].tp;
    uint32_t size = below(draw, 2) ? samples : 1 + below(draw, samples);
    uint32_t type = draw->problem->profile_type[at->type];
    if (type == HET_NO_TYPE || tp > at->gpu_count - draw->used[node] ||
        !het_workload_allows_tensor_parallel(draw->problem->workload, tp) ||
        !het_workload_allows_microbatch(draw->problem->workload, size) ||
        !het_profile_covers(profile, type, tp, size))
        return false;
    *ret = (struct het_replica){ .node_name = at->name,
                                 .type_name = cluster->types[at->type].name,
                                 .node = node,
                                 .type = at->type,
                                 .gpus = draw->gpu_ids + draw->used[node],
                                 .tp = tp,
                                 .microbatch_size = size };
    draw->used[node] += tp;
    return true;
}

/* Draws of a replica before a stage is given up. */
#define REPLICA_TRIES 40

static bool draw_stage(struct draw *draw, uint32_t samples, struct het_stage *stage)
{
    struct het_replica *replicas =
        HET_ARENA_ARRAY(draw->arena, struct het_replica, samples);
    stage->replicas = replicas;
    for (int i = 0; samples && i < REPLICA_TRIES; i++) {
        struct het_replica *replica = &replicas[stage->replica_count];
        if (!draw_replica(draw, samples, replica))
            continue;
        samples -= replica->microbatch_size;
        stage->replica_count++;
    }
    static const enum het_recompute choices[] = { HET_RECOMPUTE_FULL,
                                                  HET_RECOMPUTE_SELECTIVE };
    if (below(draw, 3) == 0 && !draw->problem->workload->no_recompute)
        stage->recompute = choices[below(draw, 2)];
    return !samples;
}

static bool draw_pipeline(struct draw *draw, uint32_t rest_batch, uint32_t *ret_samples,
                          struct het_pipeline *pipeline)
{
    uint32_t layers = draw->problem->profile->layer_count;
    uint32_t total = below(draw, 2) ? rest_batch : 1 + below(draw, rest_batch);
    uint32_t size = 1 + below(draw, total < 16 ? total : 16);
    struct het_stage *stages = HET_ARENA_ARRAY(draw->arena, struct het_stage, layers);
    pipeline->microbatch_count = total / size;
    pipeline->stages = stages;
    for (uint32_t layer = 0; layer < layers;) {
        uint32_t left = layers - layer;
        struct het_stage *stage = &stages[pipeline->stage_count++];
        stage->first_layer = layer;
        stage->layer_count = below(draw, 2) ? left : 1 + below(draw, left);
        layer += stage->layer_count;
        if (!draw_stage(draw, size, stage))
            return false;
    }
    *ret_samples = pipeline->microbatch_count * size;
    return true;
}

static bool draw_plan(struct draw *draw, struct het_plan *plan)
{
    uint32_t rest = draw->problem->workload->global_batch;
    struct het_pipeline *pipelines =
        HET_ARENA_ARRAY(draw->arena, struct het_pipeline, rest);
    draw->used =
        HET_ARENA_ARRAY(draw->arena, uint32_t, draw->problem->cluster->node_count);
    plan->pipelines = pipelines;
    while (rest) {
        uint32_t samples;
        if (!draw_pipeline(draw, rest, &samples, &pipelines[plan->pipeline_count++]))
            return false;
        rest -= samples;
    }
    return true;
}

const struct het_plan *random_plan(struct het_arena *arena,
                                   const struct het_problem *problem, uint64_t seed,
                                   uint32_t tries)
{
    uint32_t gpus = het_cluster_gpu_count(problem->cluster);
    uint32_t *gpu_ids = HET_ARENA_ARRAY(arena, uint32_t, gpus);
    for (uint32_t i = 0; i < gpus; i++)
        gpu_ids[i] = i;
    struct draw draw = {
        .arena = arena, .problem = problem, .state = seed, .gpu_ids = gpu_ids
    };
    while (tries--) {
        struct het_plan *plan = het_arena_alloc(arena, sizeof *plan);
        *plan = (struct het_plan){ .algorithm = "random",
                                   .global_batch = problem->workload->global_batch,
                                   .layer_count = problem->profile->layer_count,
                                   .precision = problem->workload->precision,
                                   .optimizer = problem->workload->optimizer };
        struct het_violations violations = { 0 };
        struct het_peak_memory *peaks;
        size_t peak_count;
        if (draw_plan(&draw, plan) &&
            !het_plan_check(arena, problem, plan, &violations) &&
            !het_memory_plan(arena, problem, plan, &peaks, &peak_count, NULL))
            return plan;
    }
    return NULL;
}
