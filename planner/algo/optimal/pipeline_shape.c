#include "planner/algo/optimal/pipeline_shape.h"

#include "planner/cost/cost.h"

#include <math.h>
#include <string.h>

/* A ring over many holders sends and receives nearly twice its bytes (cost.h). */
#define RING_SHARE 2.0

uint32_t het_pipeline_shape_part_replicas(const struct het_pipeline_shape_part *part)
{
    return part->node_count * (part->gpu_count / part->tp);
}

static uint32_t stage_samples(const struct het_pipeline_shape_stage *stage)
{
    uint32_t samples = 0;
    for (uint32_t i = 0; i < stage->part_count; i++)
        samples += het_pipeline_shape_part_replicas(&stage->parts[i]) *
                   stage->parts[i].samples;
    return samples;
}

static uint32_t stage_replicas(const struct het_pipeline_shape_stage *stage)
{
    uint32_t replicas = 0;
    for (uint32_t i = 0; i < stage->part_count; i++)
        replicas += het_pipeline_shape_part_replicas(&stage->parts[i]);
    return replicas;
}

void het_pipeline_shape_count(struct het_pipeline_shape *cell)
{
    cell->samples = stage_samples(&cell->stages[0]);
    cell->replicas = 0;
    for (uint32_t s = 0; s < cell->stage_count; s++)
        if (stage_replicas(&cell->stages[s]) > cell->replicas)
            cell->replicas = stage_replicas(&cell->stages[s]);
}

/* ---- sends ---- */

/* The stage as it would stand on the first nodes of its classes. */
static struct het_stage stand_in(const struct het_pipeline_shape_market *market,
                                 struct het_arena *scratch,
                                 const struct het_pipeline_shape_stage *from)
{
    struct het_replica *replicas =
        HET_ARENA_ARRAY(scratch, struct het_replica, stage_replicas(from));
    size_t count = 0;
    for (uint32_t i = 0; i < from->part_count; i++) {
        const struct het_pipeline_shape_part *part = &from->parts[i];
        const struct het_node_class *class = &market->inventory->classes[part->class];
        uint32_t a_node = part->gpu_count / part->tp;
        for (uint32_t r = 0; r < het_pipeline_shape_part_replicas(part); r++)
            replicas[count++] = het_plan_replica(
                market->problem->cluster, class->nodes[part->first_node + r / a_node],
                NULL, part->tp, part->samples);
    }
    return (struct het_stage){ .replicas = replicas, .replica_count = count };
}

/* [layer_count + 1]: seconds of a send to the next stage when that begins at a layer. */
static const double *find_sends(const struct het_pipeline_shape_market *market,
                                struct het_arena *scratch,
                                const struct het_pipeline_shape_stage *from)
{
    const struct het_profile *profile = market->problem->profile;
    double *send_s = HET_ARENA_ARRAY(scratch, double, profile->layer_count + (size_t)1);
    struct het_stage sender = stand_in(market, scratch, from);
    struct het_stage receiver = stand_in(market, scratch, from + 1);
    het_cost_sends(market->problem, &sender, &receiver, send_s);
    return send_s;
}

/* ---- gradients and optimizer ---- */

/* Seconds that a byte of a layer's gradients, per parameter of one rank, keeps links
 * busy.
 */
static double part_sync_s(const struct het_pipeline_shape_market *market,
                          const struct het_pipeline_shape_part *part, double parameters,
                          double *ret_uplink_s)
{
    const struct het_node_class *class = &market->inventory->classes[part->class];
    double bytes = RING_SHARE * parameters *
                   het_workload_gradient_bytes(market->problem->workload);
    bool is_alone = market->inventory->node_count == 1;
    *ret_uplink_s = is_alone ? 0 : bytes * part->tp / class->uplink_bytes_per_s;
    double flow_s = is_alone ? 0 : bytes / class->flow_bytes_per_s;
    return fmax(bytes / class->intra_bytes_per_s, flow_s);
}

static double part_parameters(const struct het_pipeline_shape_market *market,
                              const struct het_pipeline_shape_part *part, uint32_t first,
                              uint32_t end)
{
    const struct het_layer_bytes *bytes =
        het_profile_bytes(market->problem->profile, part->tp);
    return bytes->parameters[end] - bytes->parameters[first];
}

/* Stages of the cell that have `part`'s first node: their parameters meet on its uplink.
 */
static bool is_on_node_of(const struct het_pipeline_shape_stage *stage,
                          const struct het_pipeline_shape_part *part)
{
    for (uint32_t i = 0; i < stage->part_count; i++)
        if (stage->parts[i].class == part->class &&
            stage->parts[i].first_node <= part->first_node &&
            part->first_node < stage->parts[i].first_node + stage->parts[i].node_count)
            return true;
    return false;
}

static double node_sync_s(const struct het_pipeline_shape_market *market,
                          const struct het_pipeline_shape *cell,
                          const struct het_pipeline_shape_part *part,
                          const uint32_t *cuts)
{
    double total = 0;
    for (uint32_t s = 0; s < cell->stage_count; s++) {
        double uplink_s = 0;
        if (!is_on_node_of(&cell->stages[s], part))
            continue;
        part_sync_s(market, part, part_parameters(market, part, cuts[s], cuts[s + 1]),
                    &uplink_s);
        total += uplink_s;
    }
    return total;
}

static void fill_sync_and_step(const struct het_pipeline_shape_market *market,
                               struct het_pipeline_shape_split *split)
{
    const struct het_pipeline_shape *cell = split->cell;
    const struct het_problem *problem = market->problem;
    split->sync_s = split->step_s = 0;
    for (uint32_t s = 0; s < cell->stage_count; s++)
        for (uint32_t i = 0; i < cell->stages[s].part_count; i++) {
            const struct het_pipeline_shape_part *part = &cell->stages[s].parts[i];
            uint32_t first = split->cuts[s], end = split->cuts[s + 1];
            uint32_t type = market->inventory->classes[part->class].type;
            double unused,
                gpu_s = part_sync_s(market, part,
                                    part_parameters(market, part, first, end), &unused);
            split->sync_s = fmax(split->sync_s, gpu_s);
            split->sync_s =
                fmax(split->sync_s, node_sync_s(market, cell, part, split->cuts));
            split->step_s = fmax(split->step_s,
                                 het_profile_optimizer_s(problem->profile,
                                                         problem->profile_type[type],
                                                         part->tp, first, end - first));
        }
}

/* ---- the question to layer_front.h ---- */

struct question {
    struct het_balance_layers layers;
    struct het_balance_stage stages[HET_PIPELINE_SHAPE_MAX_STAGES];
    struct het_balance_times times[HET_PIPELINE_SHAPE_MAX_STAGES]
                                  [HET_PIPELINE_SHAPE_MAX_PARTS];
};

static struct het_stage_kind part_kind(const struct het_pipeline_shape_market *market,
                                       const struct het_pipeline_shape *cell,
                                       const struct het_pipeline_shape_part *part)
{
    return (struct het_stage_kind){
        .type = market->inventory->classes[part->class].type,
        .tp = part->tp,
        .samples = part->samples,
        .recompute = cell->recompute,
    };
}

static uint32_t stages_beside(const struct het_pipeline_shape *cell, uint32_t stage)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < cell->stage_count; s++)
        count += is_on_node_of(&cell->stages[s], &cell->stages[stage].parts[0]);
    return count;
}

/* Narrows ends to layers whose gradients keep the uplink busy for `limit_s` at most. */
static void narrow_by_sync(const struct het_pipeline_shape_market *market,
                           const struct het_pipeline_shape_part *part, double limit_s,
                           uint32_t *ends)
{
    uint32_t layers = market->problem->profile->layer_count;
    for (uint32_t first = 0; first < layers; first++)
        while (ends[first] > first) {
            double uplink_s,
                gpu_s = part_sync_s(market, part,
                                    part_parameters(market, part, first, ends[first]),
                                    &uplink_s);
            if (fmax(uplink_s, gpu_s) <= limit_s)
                break;
            ends[first]--;
        }
}

/* The least of the parts' ends; NULL if the profile lacks a part. */
static const uint32_t *find_ends(const struct het_pipeline_shape_market *market,
                                 struct het_arena *scratch,
                                 const struct het_pipeline_shape *cell, uint32_t stage,
                                 double sync_limit_s)
{
    const struct het_pipeline_shape_stage *at = &cell->stages[stage];
    uint32_t layers = market->problem->profile->layer_count;
    uint32_t *ends = NULL;
    for (uint32_t i = 0; i < at->part_count; i++) {
        const uint32_t *part_ends =
            het_stage_table_ends(market->table, part_kind(market, cell, &at->parts[i]),
                                 cell->stage_count - stage, stage_replicas(at));
        if (!part_ends)
            return NULL;
        if (at->part_count == 1 && sync_limit_s >= HUGE_VAL)
            return part_ends;
        if (!ends) {
            ends = HET_ARENA_ARRAY(scratch, uint32_t, layers);
            memcpy(ends, part_ends, layers * sizeof *ends);
        }
        for (uint32_t l = 0; l < layers; l++)
            if (part_ends[l] < ends[l])
                ends[l] = part_ends[l];
        if (sync_limit_s < HUGE_VAL)
            narrow_by_sync(market, &at->parts[i],
                           sync_limit_s / stages_beside(cell, stage), ends);
    }
    return ends;
}

static bool set_stage(const struct het_pipeline_shape_market *market,
                      struct het_arena *scratch, const struct het_pipeline_shape *cell,
                      uint32_t stage, double sync_limit_s, struct question *question)
{
    const struct het_pipeline_shape_stage *at = &cell->stages[stage];
    struct het_balance_stage *into = &question->stages[stage];
    *into = (struct het_balance_stage){ .times = question->times[stage],
                                        .times_count = at->part_count };
    for (uint32_t i = 0; i < at->part_count; i++) {
        const struct het_balance_times *times =
            het_stage_table_times(market->table, part_kind(market, cell, &at->parts[i]));
        if (!times)
            return false;
        question->times[stage][i] = *times;
    }
    into->ends = find_ends(market, scratch, cell, stage, sync_limit_s);
    if (!into->ends || stage + 1 == cell->stage_count)
        return into->ends;
    into->send_s = find_sends(market, scratch, at);
    return true;
}

static bool make_question(const struct het_pipeline_shape_market *market,
                          struct het_arena *scratch,
                          const struct het_pipeline_shape *cell, double sync_limit_s,
                          struct question *ret)
{
    ret->layers = (struct het_balance_layers){
        .layer_count = market->problem->profile->layer_count,
        .stages = ret->stages,
        .stage_count = cell->stage_count,
    };
    for (uint32_t s = 0; s < cell->stage_count; s++)
        if (!set_stage(market, scratch, cell, s, sync_limit_s, ret))
            return false;
    return true;
}

size_t het_pipeline_shape_splits(const struct het_pipeline_shape_market *market,
                                 const struct het_pipeline_shape *cell,
                                 double sync_limit_s,
                                 struct het_pipeline_shape_split *ret_splits,
                                 uint64_t *ret_work)
{
    struct het_arena *scratch = het_arena_new();
    struct question question;
    struct het_layer_front_point points[HET_LAYER_FRONT_MAX_POINTS];
    size_t count = 0;
    if (make_question(market, scratch, cell, sync_limit_s, &question))
        count = het_layer_front_find(market->arena, &question.layers, points, ret_work);
    for (size_t i = 0; i < count; i++) {
        ret_splits[i] = (struct het_pipeline_shape_split){
            .cell = cell,
            .sum_s = points[i].sum_s,
            .bottleneck_s = points[i].bottleneck_s,
            .cuts = points[i].cuts,
        };
        fill_sync_and_step(market, &ret_splits[i]);
    }
    het_arena_free(scratch);
    return count;
}

struct het_batch_share_lane
het_pipeline_shape_split_lane(const struct het_pipeline_shape_split *split,
                              uint32_t count)
{
    return (struct het_batch_share_lane){ .samples = split->cell->samples,
                                          .sum_s = split->sum_s,
                                          .bottleneck_s = split->bottleneck_s,
                                          .count = count };
}

uint32_t
het_pipeline_shape_split_microbatches(const struct het_pipeline_shape_split *split,
                                      double seconds)
{
    const struct het_batch_share_lane lane = het_pipeline_shape_split_lane(split, 0);
    return het_batch_share_lane_fit(&lane, seconds);
}

double het_pipeline_shape_split_seconds(const struct het_pipeline_shape_split *split,
                                        uint32_t count)
{
    const struct het_batch_share_lane lane = het_pipeline_shape_split_lane(split, count);
    return het_batch_share_lane_seconds(&lane);
}

/* ---- smaller micro-batches ---- */

/* The even share of a stage of one part: the largest, as long as the smaller one can be
 * had too. */
static bool shrink_stage(const struct het_pipeline_shape_market *market,
                         const struct het_pipeline_shape *cell,
                         struct het_pipeline_shape_stage *stage, uint32_t samples)
{
    uint32_t replicas = stage_replicas(stage);
    if (samples < replicas || stage->part_count > 1)
        return false;
    struct het_stage_kind kind = part_kind(market, cell, &stage->parts[0]);
    kind.samples = samples / replicas;
    stage->parts[0].samples = (samples + replicas - 1) / replicas;
    return het_stage_table_times(market->table, kind);
}

bool het_pipeline_shape_split_shrink(const struct het_pipeline_shape_market *market,
                                     const struct het_pipeline_shape_split *split,
                                     uint32_t samples,
                                     struct het_pipeline_shape_split *ret_split)
{
    struct het_pipeline_shape *cell = het_arena_alloc(market->arena, sizeof *cell);
    *cell = *split->cell;
    for (uint32_t s = 0; s < cell->stage_count; s++)
        if (!shrink_stage(market, cell, &cell->stages[s], samples))
            return false;
    cell->samples = samples;
    struct het_arena *scratch = het_arena_new();
    struct question question;
    *ret_split = *split;
    ret_split->cell = cell;
    bool is_had = make_question(market, scratch, cell, HUGE_VAL, &question);
    if (is_had)
        /* The slowest share may be a size made of parts, e.g. 3 = 2 + 1. */
        het_balance_pipeline(question.stages, cell->stage_count, split->cuts,
                             &ret_split->sum_s, &ret_split->bottleneck_s);
    for (uint32_t s = 0; is_had && s < cell->stage_count; s++)
        is_had = question.stages[s].ends[split->cuts[s]] >= split->cuts[s + 1];
    het_arena_free(scratch);
    return is_had;
}
