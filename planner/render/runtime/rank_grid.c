#include "planner/render/runtime/rank_grid.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int compare_names(const void *left, const void *right)
{
    const struct het_rank_node *a = left, *b = right;
    return strcmp(a->node_name, b->node_name);
}

/* Rank nodes sorted by name. */
struct ranks {
    struct het_rank_node *nodes;
    size_t node_count;
};

static struct ranks find_ranks(struct het_arena *arena, const struct het_plan *plan)
{
    struct ranks ranks;
    ranks.node_count = het_plan_rank_nodes(arena, plan, &ranks.nodes);
    qsort(ranks.nodes, ranks.node_count, sizeof *ranks.nodes, compare_names);
    return ranks;
}

static uint32_t rank_offset(const struct ranks *ranks, const char *node_name)
{
    const struct het_rank_node key = { .node_name = node_name };
    const struct het_rank_node *found =
        bsearch(&key, ranks->nodes, ranks->node_count, sizeof key, compare_names);
    assert(found);
    return found->rank_offset;
}

static const uint32_t *ranks_of(struct het_arena *arena, const struct ranks *ranks,
                                const struct het_replica *replica)
{
    uint32_t *list = HET_ARENA_ARRAY(arena, uint32_t, replica->tp);
    uint32_t offset = rank_offset(ranks, replica->node_name);
    for (uint32_t i = 0; i < replica->tp; i++)
        list[i] = offset + replica->gpus[i];
    return list;
}

struct het_rank_grid het_rank_grid_of(struct het_arena *arena,
                                      const struct het_plan *plan)
{
    struct ranks ranks = find_ranks(arena, plan);
    struct het_rank_grid lanes = { 0 };
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        const struct het_pipeline *pipeline = &plan->pipelines[p];
        lanes.lane_count += pipeline->stages[0].replica_count;
        if (pipeline->stage_count > lanes.stage_count)
            lanes.stage_count = pipeline->stage_count;
    }
    struct het_rank_grid_replica *replicas = HET_ARENA_ARRAY(
        arena, struct het_rank_grid_replica, lanes.lane_count * lanes.stage_count);
    lanes.pipelines =
        HET_ARENA_ARRAY(arena, const struct het_pipeline *, lanes.lane_count);
    size_t lane = 0;
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        const struct het_pipeline *pipeline = &plan->pipelines[p];
        for (size_t r = 0; r < pipeline->stages[0].replica_count; r++, lane++) {
            lanes.pipelines[lane] = pipeline;
            for (size_t s = 0; s < pipeline->stage_count; s++) {
                const struct het_replica *replica = &pipeline->stages[s].replicas[r];
                replicas[lane * lanes.stage_count + s] =
                    (struct het_rank_grid_replica){ replica,
                                                    ranks_of(arena, &ranks, replica) };
            }
        }
    }
    lanes.replicas = replicas;
    return lanes;
}

const struct het_rank_grid_replica *het_rank_grid_at(const struct het_rank_grid *lanes,
                                                     size_t lane, size_t stage)
{
    return &lanes->replicas[lane * lanes->stage_count + stage];
}

uint32_t het_rank_grid_blocks(const struct het_plan *plan, const struct het_stage *stage)
{
    uint32_t end = stage->first_layer + stage->layer_count;
    return stage->layer_count - (stage->first_layer == 0) - (end == plan->layer_count);
}
