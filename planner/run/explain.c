#include "planner/run/explain.h"

#include "planner/cost/bound.h"
#include "planner/cost/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- pipelines of one shape ---- */

static bool is_like_stage(const struct het_stage *a, const struct het_stage *b)
{
    if (a->first_layer != b->first_layer || a->layer_count != b->layer_count ||
        a->recompute != b->recompute || a->replica_count != b->replica_count)
        return false;
    for (size_t r = 0; r < a->replica_count; r++)
        if (a->replicas[r].type != b->replicas[r].type ||
            a->replicas[r].tp != b->replicas[r].tp ||
            a->replicas[r].microbatch_size != b->replicas[r].microbatch_size)
            return false;
    return true;
}

static bool is_like(const struct het_pipeline *a, const struct het_pipeline *b)
{
    if (a->stage_count != b->stage_count)
        return false;
    for (size_t s = 0; s < a->stage_count; s++)
        if (!is_like_stage(&a->stages[s], &b->stages[s]))
            return false;
    return true;
}

/* ---- a layer moved ---- */

/* The plan with `layers` more in stage `stage` of every pipeline like `shape`, taken from
 * the next stage (or given to it, if negative). */
static const struct het_plan *move_layer(struct het_arena *arena,
                                         const struct het_plan *plan,
                                         const struct het_pipeline *shape, uint32_t stage,
                                         int layers)
{
    struct het_plan *moved = het_arena_alloc(arena, sizeof *moved);
    struct het_pipeline *pipelines =
        HET_ARENA_ARRAY(arena, struct het_pipeline, plan->pipeline_count);
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        pipelines[p] = plan->pipelines[p];
        if (!is_like(&plan->pipelines[p], shape))
            continue;
        struct het_stage *stages =
            HET_ARENA_ARRAY(arena, struct het_stage, pipelines[p].stage_count);
        memcpy(stages, pipelines[p].stages, pipelines[p].stage_count * sizeof *stages);
        stages[stage].layer_count += (uint32_t)layers;
        stages[stage + 1].first_layer += (uint32_t)layers;
        stages[stage + 1].layer_count -= (uint32_t)layers;
        pipelines[p].stages = stages;
    }
    *moved = *plan;
    moved->pipelines = pipelines;
    return moved;
}

static struct het_explain_move try_move(const struct het_problem *problem,
                                        const struct het_plan *plan,
                                        const struct het_pipeline *shape, uint32_t stage,
                                        int layers)
{
    const struct het_stage *giver = &shape->stages[layers > 0 ? stage + 1 : stage];
    struct het_explain_move move = { 0 };
    if (giver->layer_count < 2)
        return move;
    struct het_arena *arena = het_arena_new();
    const struct het_plan *moved = move_layer(arena, plan, shape, stage, layers);
    struct het_violations violations = { 0 };
    struct het_peak_memory *peaks;
    size_t peak_count;
    struct het_cost cost;
    if (!het_schedule_simulate(arena, problem, moved, &cost, NULL, NULL)) {
        move.is_possible = true;
        move.iteration_s = cost.iteration_s;
        move.fits = !het_plan_check(arena, problem, moved, &violations) &&
                    !het_memory_plan(arena, problem, moved, &peaks, &peak_count, NULL) &&
                    het_runtime_express(arena, problem->workload->runtime, moved, NULL);
    }
    het_arena_free(arena);
    return move;
}

/* ---- stages ---- */

struct explain {
    struct het_arena *arena;
    const struct het_problem *problem;
    const struct het_plan *plan;
    const struct het_peak_memory *peaks;
    struct het_explain_stage *stages;
    size_t stage_count;
};

/* The fullest GPU of the stage in all pipelines of the shape. */
static void find_peak(const struct explain *explain, const struct het_pipeline *shape,
                      struct het_explain_stage *stage)
{
    const struct het_peak_memory *peak = explain->peaks;
    double fullest = -1;
    for (size_t p = 0; p < explain->plan->pipeline_count; p++) {
        const struct het_pipeline *pipeline = &explain->plan->pipelines[p];
        bool like = is_like(pipeline, shape);
        for (size_t s = 0; s < pipeline->stage_count; s++)
            for (size_t r = 0; r < pipeline->stages[s].replica_count; r++, peak++) {
                double share = (double)peak->bytes / (double)peak->capacity_bytes;
                if (!like || s != stage->stage || share <= fullest)
                    continue;
                fullest = share;
                stage->peak_bytes = peak->bytes;
                stage->capacity_bytes = peak->capacity_bytes;
            }
    }
}

static int time_stages(const struct explain *explain, const struct het_pipeline *shape,
                       struct het_explain_stage *stages, struct het_error *err)
{
    const struct het_problem *problem = explain->problem;
    double before_s = 0, largest_s = 0, sum_s = 0;
    for (size_t s = 0; s < shape->stage_count; s++) {
        double forward_s, backward_s, after_s = 0;
        if (het_cost_stage(problem, &shape->stages[s], &forward_s, &backward_s, err) < 0)
            return -1;
        if (s + 1 < shape->stage_count)
            after_s = het_cost_send(problem, &shape->stages[s], &shape->stages[s + 1]);
        stages[s].compute_s = forward_s + backward_s;
        stages[s].send_s = 2 * (before_s + after_s);
        stages[s].busy_share = stages[s].compute_s + stages[s].send_s;
        largest_s = fmax(largest_s, stages[s].busy_share);
        sum_s += stages[s].compute_s + 2 * after_s;
        before_s = after_s;
    }
    for (size_t s = 0; s < shape->stage_count; s++) {
        stages[s].busy_share /= largest_s;
        stages[s].pipeline_s = sum_s + (shape->microbatch_count - 1.0) * largest_s;
    }
    return 0;
}

static int explain_shape(struct explain *explain, uint32_t pipeline,
                         struct het_error *err)
{
    const struct het_plan *plan = explain->plan;
    const struct het_pipeline *shape = &plan->pipelines[pipeline];
    struct het_explain_stage *stages = explain->stages + explain->stage_count;
    uint32_t count = 0;
    for (size_t p = 0; p < plan->pipeline_count; p++)
        count += is_like(&plan->pipelines[p], shape);
    if (time_stages(explain, shape, stages, err) < 0)
        return -1;
    for (uint32_t s = 0; s < shape->stage_count; s++) {
        stages[s].pipeline = pipeline;
        stages[s].stage = s;
        stages[s].pipeline_count = count;
        find_peak(explain, shape, &stages[s]);
        if (s + 1 == shape->stage_count)
            continue;
        stages[s].take_from_next = try_move(explain->problem, plan, shape, s, 1);
        stages[s].give_to_next = try_move(explain->problem, plan, shape, s, -1);
    }
    explain->stage_count += shape->stage_count;
    return 0;
}

static int explain_stages(struct explain *explain, struct het_error *err)
{
    const struct het_plan *plan = explain->plan;
    size_t most = 0, peak_count;
    struct het_peak_memory *peaks;
    for (size_t p = 0; p < plan->pipeline_count; p++)
        most += plan->pipelines[p].stage_count;
    explain->stages = HET_ARENA_ARRAY(explain->arena, struct het_explain_stage, most);
    het_memory_plan(explain->arena, explain->problem, plan, &peaks, &peak_count, NULL);
    explain->peaks = peaks;
    for (uint32_t p = 0; p < plan->pipeline_count; p++) {
        bool is_new = true;
        for (uint32_t q = 0; q < p && is_new; q++)
            is_new = !is_like(&plan->pipelines[p], &plan->pipelines[q]);
        if (is_new && explain_shape(explain, p, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- searching again ---- */

/* Seconds of the best plan. */
static double search_again(const struct het_problem *problem,
                           const struct het_search_options *options)
{
    struct het_arena *arena = het_arena_new();
    const struct het_plan *found;
    double seconds = HUGE_VAL;
    if (!het_search_run(arena, problem, options, &found, NULL, NULL))
        seconds = found->predicted.iteration_s;
    het_arena_free(arena);
    return seconds;
}

#define BIT(freedom) (1u << (freedom))
#define GRID_BITS    (BIT(HET_EMPTY_STAGES) | BIT(HET_ANY_TP) | BIT(HET_ANY_RANK_ORDER))
#define STAGE_BITS                                                                       \
    (BIT(HET_TP_PER_STAGE) | BIT(HET_DP_PER_STAGE) | BIT(HET_TP_PER_REPLICA))
#define BATCH_BITS                                                                       \
    (BIT(HET_UNEVEN_SHARES) | BIT(HET_COUNT_PER_PIPELINE) |                              \
     BIT(HET_MICROBATCH_PER_PIPELINE))
#define SHAPE_BITS (BIT(HET_LAYERS_PER_PIPELINE) | BIT(HET_STAGES_PER_PIPELINE))

/* Each step has the freedoms of those before it as well. */
static const struct {
    const char *name, *text;
    uint32_t bits;
} freedom_steps[HET_EXPLAIN_FREEDOMS] = {
    { "grid", "even layers, one tensor- and one data-parallel degree", GRID_BITS },
    { "unevenLayers", "+ uneven layers", BIT(HET_UNEVEN_LAYERS) },
    { "perStageDegrees", "+ degrees by stage", STAGE_BITS },
    { "unevenBatches", "+ uneven micro-batches", BATCH_BITS },
    { "asymmetric", "+ pipelines of different shapes", SHAPE_BITS },
    { "perStageRecompute", "+ recomputation by stage", BIT(HET_RECOMPUTE_PER_STAGE) },
};

/* What each step of freedom brings, within what the job's runtime has. From the step on
 * that has all freedoms that the plan takes, it is as good as the plan. */
static const struct het_explain_freedom *
find_freedoms(struct het_arena *arena, const struct het_problem *problem,
              const struct het_plan *plan, double plan_s,
              const struct het_search_options *options)
{
    struct het_explain_freedom *freedoms =
        HET_ARENA_ARRAY(arena, struct het_explain_freedom, HET_EXPLAIN_FREEDOMS);
    struct het_runtime runtime = { .name = "steps", .title = "this step" };
    struct het_workload workload = *problem->workload;
    struct het_problem limited = *problem;
    double best_s = HUGE_VAL;
    limited.workload = &workload;
    workload.runtime = &runtime;
    for (size_t i = 0; i < HET_EXPLAIN_FREEDOMS; i++) {
        runtime.freedoms |= freedom_steps[i].bits;
        best_s = fmin(best_s, search_again(&limited, options));
        if (het_runtime_express(arena, &runtime, plan, NULL))
            best_s = fmin(best_s, plan_s);
        freedoms[i] = (struct het_explain_freedom){ freedom_steps[i].name,
                                                    freedom_steps[i].text, best_s };
    }
    return freedoms;
}

/* Iteration seconds with one more node like `like`, but of `gpus` GPUs. */
static double search_with(const struct het_problem *problem, const struct het_node *like,
                          uint32_t gpus, const struct het_search_options *options)
{
    struct het_arena *arena = het_arena_new();
    struct het_cluster cluster = *problem->cluster;
    struct het_node *nodes =
        HET_ARENA_ARRAY(arena, struct het_node, cluster.node_count + 1);
    memcpy(nodes, cluster.nodes, cluster.node_count * sizeof *nodes);
    nodes[cluster.node_count] = *like;
    nodes[cluster.node_count].name = "one more";
    nodes[cluster.node_count].gpu_count = gpus;
    cluster.nodes = nodes;
    cluster.node_count++;
    struct het_problem larger = *problem;
    larger.cluster = &cluster;
    double seconds = search_again(&larger, options);
    het_arena_free(arena);
    return seconds;
}

/* The nodes that there might be more of; what they bring is not known yet. */
static struct het_explain_more *
list_more(struct het_arena *arena, const struct het_problem *problem, size_t *ret_count)
{
    const struct het_cluster *cluster = problem->cluster;
    struct het_explain_more *more =
        HET_ARENA_ARRAY(arena, struct het_explain_more, 2 * cluster->type_count);
    *ret_count = 0;
    for (uint32_t t = 0; t < cluster->type_count; t++) {
        const struct het_node *like = het_cluster_largest_node(cluster, t);
        if (!like || problem->profile_type[t] == HET_NO_TYPE)
            continue;
        more[(*ret_count)++] = (struct het_explain_more){ .type = t, .gpus = 1 };
        if (like->gpu_count > 1)
            more[(*ret_count)++] =
                (struct het_explain_more){ .type = t, .gpus = like->gpu_count };
    }
    return more;
}

/* All searches together have the effort of one. */
static void search_further(struct het_arena *arena, const struct het_problem *problem,
                           const struct het_plan *plan,
                           const struct het_search_options *options,
                           struct het_explanation *ret)
{
    struct het_explain_more *more = list_more(arena, problem, &ret->more_count);
    struct het_search_options share = *options;
    uint64_t effort = options->effort ? options->effort : HET_DEFAULT_EFFORT;
    share.effort = effort / (HET_EXPLAIN_FREEDOMS + ret->more_count);
    share.effort = share.effort ? share.effort : 1;
    share.no_bound = true;
    ret->freedoms = find_freedoms(arena, problem, plan, ret->cost.iteration_s, &share);
    for (size_t i = 0; i < ret->more_count; i++) {
        const struct het_node *like =
            het_cluster_largest_node(problem->cluster, more[i].type);
        /* More GPUs are never worse: they may stay idle. */
        more[i].iteration_s =
            fmin(ret->cost.iteration_s, search_with(problem, like, more[i].gpus, &share));
    }
    ret->more = more;
}

/* ---- the whole ---- */

int het_explain(struct het_arena *arena, const struct het_problem *problem,
                const struct het_plan *plan, const struct het_search_options *options,
                struct het_explanation *ret, struct het_error *err)
{
    struct explain explain = { .arena = arena, .problem = problem, .plan = plan };
    struct het_explanation explanation = { .busiest_uplink = HET_UNBOUND };
    if (het_schedule_simulate(arena, problem, plan, &explanation.cost, NULL, err) < 0 ||
        explain_stages(&explain, err) < 0)
        return -1;
    explanation.stages = explain.stages;
    explanation.stage_count = explain.stage_count;
    explanation.lower_bound_s = het_bound_iteration(problem);
    explanation.busiest_uplink = explanation.cost.sync_uplink;
    if (options)
        search_further(arena, problem, plan, options, &explanation);
    *ret = explanation;
    return 0;
}
