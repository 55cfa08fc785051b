#include "planner/algo/optimal/build_plan.h"

#include "planner/algo/optimal/batch_share.h"
#include "planner/cost/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A pipeline to be. */
struct lane {
    const struct het_pipeline_shape_split *split;
    uint32_t node_class, node; /* of those of the class: the lane's, if it is on one */
    uint32_t first_nodes[HET_MAX_NODE_CLASSES]; /* of a cell of whole nodes */
};

struct assembly {
    const struct het_shape_catalog *catalog;
    struct het_arena *arena;
    struct lane *lanes;
    struct het_batch_share_lane
        *batch; /* [lane]: the same lanes' times and micro-batches */
    size_t lane_count;
    double pipeline_s;
};

static uint64_t lane_samples(const struct het_batch_share_lane *lane)
{
    return (uint64_t)lane->count * lane->samples;
}

/* ---- lanes on nodes ---- */

static void set_lanes(struct assembly *assembly, const struct het_shape_count *mixture)
{
    uint32_t next_node[HET_MAX_NODE_CLASSES] = { 0 };
    size_t count = 0;
    for (uint32_t i = 0; i < mixture->group_count; i++)
        count += (size_t)mixture->groups[i].count * mixture->groups[i].split_count;
    assembly->lanes = HET_ARENA_ARRAY(assembly->arena, struct lane, count);
    assembly->batch =
        HET_ARENA_ARRAY(assembly->arena, struct het_batch_share_lane, count);
    for (uint32_t i = 0; i < mixture->group_count; i++) {
        const struct het_shape_count_group *group = &mixture->groups[i];
        for (uint32_t n = 0; n < group->count; n++) {
            for (uint32_t s = 0; s < group->split_count; s++) {
                const struct het_pipeline_shape_split *split = group->splits[s];
                assembly->batch[assembly->lane_count] = het_pipeline_shape_split_lane(
                    split,
                    het_pipeline_shape_split_microbatches(split, assembly->pipeline_s));
                struct lane *lane = &assembly->lanes[assembly->lane_count++];
                *lane = (struct lane){ .split = split, .node_class = group->node_class };
                memcpy(lane->first_nodes, next_node, sizeof next_node);
                if (group->node_class != HET_UNBOUND)
                    lane->node = next_node[group->node_class];
            }
            if (group->node_class != HET_UNBOUND)
                next_node[group->node_class]++;
            for (uint32_t c = 0;
                 group->node_class == HET_UNBOUND && c < HET_MAX_NODE_CLASSES; c++)
                next_node[c] += group->splits[0]->cell->nodes[c];
        }
    }
}

/* ---- the exact batch ---- */

static uint64_t count_microbatches(const struct assembly *assembly, uint32_t samples)
{
    uint64_t count = 0;
    for (size_t i = 0; i < assembly->lane_count; i++)
        if (assembly->batch[i].samples == samples)
            count += assembly->batch[i].count;
    return count;
}

/* Replaces one lane by one with smaller micro-batches, so that the rest can be taken
 * whole. */
static bool take_with_shrunk_lane(struct assembly *assembly,
                                  const struct het_batch_share_change *change,
                                  uint32_t excess, size_t index)
{
    const struct het_pipeline_shape_market *market = &assembly->catalog->market;
    struct lane *lane = &assembly->lanes[index];
    struct het_batch_share_lane *batch = &assembly->batch[index];
    const struct het_batch_share_lane kept = *batch;
    for (uint32_t samples = kept.samples - 1; samples && samples + 24 > kept.samples;
         samples--) {
        struct het_pipeline_shape_split *shrunk =
            het_arena_alloc(assembly->arena, sizeof *shrunk);
        if (!het_pipeline_shape_split_shrink(market, lane->split, samples, shrunk))
            continue;
        uint32_t most =
            het_pipeline_shape_split_microbatches(shrunk, assembly->pipeline_s);
        for (uint32_t count = most; count && most - count < 2 * kept.samples; count--) {
            uint64_t now = (uint64_t)count * samples;
            if (now > lane_samples(&kept) || lane_samples(&kept) - now > excess)
                continue;
            uint32_t left = excess - (uint32_t)(lane_samples(&kept) - now);
            if (left && !change->last[left])
                continue;
            /* The lane itself must not be needed for the change. */
            batch->count = 0;
            bool possible = true;
            for (uint32_t rest = left; rest; rest -= change->last[rest])
                possible = possible && count_microbatches(assembly, change->last[rest]) *
                                               change->last[rest] >=
                                           left;
            if (!possible) {
                *batch = kept;
                continue;
            }
            het_batch_share_take_change(assembly->batch, assembly->lane_count, change,
                                        left);
            lane->split = shrunk;
            *batch = het_pipeline_shape_split_lane(shrunk, count);
            return true;
        }
    }
    return false;
}

static bool share_out(struct assembly *assembly, uint64_t batch)
{
    uint64_t total = 0;
    for (size_t i = 0; i < assembly->lane_count; i++)
        total += lane_samples(&assembly->batch[i]);
    if (total < batch)
        return false;
    uint64_t excess =
        het_batch_share_take_bulk(assembly->batch, assembly->lane_count, total - batch);
    if (!excess)
        return true;
    if (excess > HET_BATCH_SHARE_EXACT)
        return false;
    struct het_batch_share_change change;
    het_batch_share_find_change(assembly->batch, assembly->lane_count, (uint32_t)excess,
                                &change);
    if (change.last[excess]) {
        het_batch_share_take_change(assembly->batch, assembly->lane_count, &change,
                                    (uint32_t)excess);
        return true;
    }
    const struct het_pipeline_shape_split *tried = NULL;
    for (size_t i = assembly->lane_count; i-- > 0;) {
        const struct lane *lane = &assembly->lanes[i];
        if (!assembly->batch[i].count || lane->split == tried)
            continue;
        tried = lane->split;
        if (take_with_shrunk_lane(assembly, &change, (uint32_t)excess, i))
            return true;
    }
    return false;
}

/* ---- the plan ---- */

static void add_replicas(struct assembly *assembly, const struct lane *lane,
                         const struct het_pipeline_shape_part *part, uint32_t first_gpu,
                         uint32_t *extra, struct het_replica *replicas, size_t *count)
{
    const struct het_problem *problem = assembly->catalog->market.problem;
    const struct het_node_class *class =
        &assembly->catalog->market.inventory->classes[part->class];
    for (uint32_t n = 0; n < part->node_count; n++) {
        uint32_t ordinal = lane->node_class == HET_UNBOUND
                               ? lane->first_nodes[part->class] + part->first_node + n
                               : lane->node;
        uint32_t node = class->nodes[ordinal];
        for (uint32_t gpu = 0; gpu + part->tp <= part->gpu_count; gpu += part->tp) {
            uint32_t *gpus = HET_ARENA_ARRAY(assembly->arena, uint32_t, part->tp);
            for (uint32_t t = 0; t < part->tp; t++)
                gpus[t] = first_gpu + part->first_gpu + gpu + t;
            bool is_short = *extra == 0;
            replicas[(*count)++] = het_plan_replica(problem->cluster, node, gpus,
                                                    part->tp, part->samples - is_short);
            *extra -= !is_short;
        }
    }
}

static uint32_t stage_replica_count(const struct het_pipeline_shape_stage *stage)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < stage->part_count; i++)
        count += het_pipeline_shape_part_replicas(&stage->parts[i]);
    return count;
}

/* Replicas that take the whole of their part's samples; the others one less. */
static uint32_t full_shares(const struct het_pipeline_shape *cell,
                            const struct het_pipeline_shape_stage *stage)
{
    uint32_t replicas = stage_replica_count(stage), over = 0;
    for (uint32_t i = 0; i < stage->part_count; i++)
        over += het_pipeline_shape_part_replicas(&stage->parts[i]) *
                stage->parts[i].samples;
    return replicas - (over - cell->samples);
}

static struct het_pipeline make_pipeline(struct assembly *assembly,
                                         const struct lane *lane,
                                         uint32_t microbatch_count, uint32_t first_gpu)
{
    const struct het_pipeline_shape *cell = lane->split->cell;
    struct het_stage *stages =
        HET_ARENA_ARRAY(assembly->arena, struct het_stage, cell->stage_count);
    for (uint32_t s = 0; s < cell->stage_count; s++) {
        const struct het_pipeline_shape_stage *from = &cell->stages[s];
        uint32_t extra = full_shares(cell, from);
        size_t count = 0;
        struct het_replica *replicas = HET_ARENA_ARRAY(
            assembly->arena, struct het_replica, stage_replica_count(from));
        for (uint32_t i = 0; i < from->part_count; i++)
            add_replicas(assembly, lane, &from->parts[i], first_gpu, &extra, replicas,
                         &count);
        stages[s] = (struct het_stage){
            .first_layer = lane->split->cuts[s],
            .layer_count = lane->split->cuts[s + 1] - lane->split->cuts[s],
            .recompute = cell->recompute,
            .replicas = replicas,
            .replica_count = count,
        };
    }
    return (struct het_pipeline){ .microbatch_count = microbatch_count,
                                  .stages = stages,
                                  .stage_count = cell->stage_count };
}

static const struct het_plan *make_plan(struct assembly *assembly)
{
    const struct het_problem *problem = assembly->catalog->market.problem;
    struct het_plan *plan = het_arena_alloc(assembly->arena, sizeof *plan);
    *plan = (struct het_plan){
        .global_batch = problem->workload->global_batch,
        .layer_count = problem->profile->layer_count,
        .precision = problem->workload->precision,
        .optimizer = problem->workload->optimizer,
    };
    struct het_pipeline *pipelines =
        HET_ARENA_ARRAY(assembly->arena, struct het_pipeline, assembly->lane_count);
    const struct lane *before = NULL;
    uint32_t next_gpu = 0;
    plan->pipelines = pipelines;
    for (size_t i = 0; i < assembly->lane_count; i++) {
        const struct lane *lane = &assembly->lanes[i];
        if (!before || lane->node_class == HET_UNBOUND ||
            lane->node_class != before->node_class || lane->node != before->node)
            next_gpu = 0;
        before = lane;
        if (!assembly->batch[i].count)
            continue;
        pipelines[plan->pipeline_count++] =
            make_pipeline(assembly, lane, assembly->batch[i].count, next_gpu);
        next_gpu += lane->split->cell->gpus;
    }
    return plan;
}

const struct het_plan *het_build_plan(const struct het_shape_catalog *catalog,
                                      struct het_arena *arena,
                                      const struct het_shape_count *mixture,
                                      double pipeline_s, uint64_t batch)
{
    struct assembly assembly = { .catalog = catalog,
                                 .arena = arena,
                                 .pipeline_s = pipeline_s };
    set_lanes(&assembly, mixture);
    return share_out(&assembly, batch) ? make_plan(&assembly) : NULL;
}

/* ---- the truth about a cell ---- */

/* Longer by this share is noticed. */
#define NOTICED 2e-3

bool het_build_plan_simulate(const struct het_shape_catalog *catalog,
                             struct het_pipeline_shape_split *split, uint32_t count)
{
    if (split->is_simulated || split->cell->stage_count == 1 || count < 2)
        return false;
    split->is_simulated = true;
    struct het_arena *arena = het_arena_new();
    const struct het_pipeline_shape_split *splits[] = { split };
    struct het_shape_count_group group = {
        .splits = splits,
        .split_count = 1,
        .node_class = split->cell->gpus ? split->cell->gpu_class : HET_UNBOUND,
        .count = 1,
    };
    const struct het_shape_count mixture = { .groups = &group, .group_count = 1 };
    struct assembly assembly = { .catalog = catalog, .arena = arena };
    struct het_cost cost;
    set_lanes(&assembly, &mixture);
    assembly.batch[0].count = count;
    double before = het_pipeline_shape_split_seconds(split, count);
    if (het_schedule_simulate(NULL, catalog->market.problem, make_plan(&assembly), &cost,
                              NULL, NULL) == 0)
        split->bottleneck_s =
            fmax((cost.pipeline_s - split->sum_s) / (count - 1.0), 1e-9);
    het_arena_free(arena);
    return het_pipeline_shape_split_seconds(split, count) > before * (1 + NOTICED);
}
