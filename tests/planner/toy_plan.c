#include "tests/planner/toy_plan.h"

static uint32_t next_random(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % below);
}

/* A replica on a random node that has room; tp 0 if none has. */
static struct het_replica random_replica(struct toy *toy, uint32_t *used, uint64_t *state,
                                         uint32_t samples)
{
    uint32_t node = next_random(state, 3), tp = 1 + next_random(state, 2);
    if (used[node] + tp > toy->nodes[node].gpu_count)
        return (struct het_replica){ 0 };
    used[node] += tp;
    return toy_replica(toy, node, used[node] - tp, tp, samples);
}

/* One or two replicas that take `samples` together. */
static bool random_stage(struct toy *toy, uint32_t *used, uint64_t *state,
                         uint32_t samples, struct het_stage *stage)
{
    struct het_replica *replicas = HET_ARENA_ARRAY(toy->arena, struct het_replica, 2);
    uint32_t first = samples > 1 && next_random(state, 2)
                         ? 1 + next_random(state, samples - 1)
                         : samples;
    replicas[0] = random_replica(toy, used, state, first);
    stage->replica_count = 1;
    if (first < samples)
        replicas[stage->replica_count++] =
            random_replica(toy, used, state, samples - first);
    stage->replicas = replicas;
    return replicas[0].tp && replicas[stage->replica_count - 1].tp;
}

bool toy_random_plan(struct toy *toy, uint64_t *state, struct het_plan *plan)
{
    uint32_t used[3] = { 0 };
    struct het_pipeline *pipelines = HET_ARENA_ARRAY(toy->arena, struct het_pipeline, 3);
    size_t count = 1 + next_random(state, 3);
    toy->workload.global_batch = 0;
    for (size_t p = 0; p < count; p++) {
        struct het_stage *stages = HET_ARENA_ARRAY(toy->arena, struct het_stage, 4);
        uint32_t samples = 1 + next_random(state, 4), layer = 0;
        for (size_t s = 0; layer < 4; s++) {
            stages[s].first_layer = layer;
            stages[s].layer_count = 1 + next_random(state, 4 - layer);
            layer += stages[s].layer_count;
            if (!random_stage(toy, used, state, samples, &stages[s]))
                return false;
            pipelines[p].stage_count = s + 1;
        }
        pipelines[p].stages = stages;
        pipelines[p].microbatch_count = 1 + next_random(state, 5);
        toy->workload.global_batch += samples * pipelines[p].microbatch_count;
    }
    *plan = (struct het_plan){ .global_batch = toy->workload.global_batch,
                               .layer_count = 4,
                               .pipelines = pipelines,
                               .pipeline_count = count };
    return true;
}
