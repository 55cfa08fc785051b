#include "planner/algo/amp.h"

#include "planner/base/logarithm.h"

#include "planner/base/random.h"
#include "planner/search/balance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A place is a tensor-parallel group that a node has room for; it is told by the node, as
 * the GPUs of a node are alike. The places of one node are a column of the mesh. */
struct column {
    uint32_t first_place, height;
};

struct grid {
    uint32_t size, tp, dp, pp;
};

struct amp {
    struct het_search *search;
    const struct het_problem *problem;
    const struct het_cluster *cluster;
    struct het_arena *arena;
    struct het_balance_space *space;
    uint32_t layer_count, type_count, gpu_count, stage_limit;
    uint32_t *gpus;      /* 0, 1, 2, ... */
    uint32_t *used_gpus; /* [node] */

    /* Of the degree and micro-batch size at hand. */
    uint32_t *places; /* nodes, in their order */
    struct column *columns;
    uint32_t place_count, column_count;
    double *forward_s, *backward_s; /* [type_count + 1][layer_count + 1]: prefix sums; the
                                       last of the mean GPU */
    double least_s, largest_layer_s; /* of the whole model, of a layer: where fastest */
    uint32_t holders;                /* that `ends` is for */
    uint32_t *ends;                  /* [type][in flight - 1][layer] */
    bool *has_ends;                  /* [type][in flight - 1] */

    /* Of the strategy at hand; by stage. */
    struct het_replica *replicas;
    struct het_stage *stages;
    struct het_balance_stage *questions;
    struct het_balance_times *times; /* [type_count] */
    double *send_s;                  /* [layer_count + 1] */
    uint32_t *stage_ends;            /* [layer_count] */
    uint32_t *cuts;
    struct het_pipeline pipeline;

    /* What is done with a strategy that can be cut. */
    void (*found)(struct amp *amp, const struct grid *grid, double seconds);
    void *context;
};

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* ---- the GPUs ---- */

static bool is_used(const struct amp *amp, const struct het_node *node)
{
    return node->gpu_count && amp->problem->profile_type[node->type] != HET_NO_TYPE;
}

static void find_places(struct amp *amp, const struct grid *grid)
{
    amp->place_count = amp->column_count = 0;
    for (uint32_t n = 0; n < amp->cluster->node_count; n++) {
        const struct het_node *node = &amp->cluster->nodes[n];
        if (!is_used(amp, node) || node->gpu_count < grid->tp ||
            !het_profile_covers(amp->problem->profile,
                                amp->problem->profile_type[node->type], grid->tp,
                                grid->size))
            continue;
        struct column *column = &amp->columns[amp->column_count++];
        *column = (struct column){ amp->place_count, node->gpu_count / grid->tp };
        for (uint32_t i = 0; i < column->height; i++)
            amp->places[amp->place_count++] = n;
    }
}

static double *forward_of(const struct amp *amp, uint32_t type)
{
    return amp->forward_s + (size_t)type * (amp->layer_count + 1);
}

static double *backward_of(const struct amp *amp, uint32_t type)
{
    return amp->backward_s + (size_t)type * (amp->layer_count + 1);
}

static void fill_times(struct amp *amp, const struct grid *grid, uint32_t type)
{
    for (uint32_t l = 0; l <= amp->layer_count; l++)
        het_profile_times(amp->problem->profile, amp->problem->profile_type[type],
                          grid->tp, grid->size, 0, l, &forward_of(amp, type)[l],
                          &backward_of(amp, type)[l], NULL);
}

/* Least seconds of each layer over the types that have places. */
static void fill_least(struct amp *amp, const bool *has_type)
{
    amp->least_s = amp->largest_layer_s = 0;
    for (uint32_t l = 0; l < amp->layer_count; l++) {
        double layer_s = HUGE_VAL;
        for (uint32_t t = 0; t < amp->type_count; t++)
            if (has_type[t])
                layer_s = fmin(layer_s,
                               forward_of(amp, t)[l + 1] - forward_of(amp, t)[l] +
                                   backward_of(amp, t)[l + 1] - backward_of(amp, t)[l]);
        amp->least_s += layer_s;
        amp->largest_layer_s = fmax(amp->largest_layer_s, layer_s);
    }
}

static void forget_ends(struct amp *amp, uint32_t holders)
{
    memset(amp->has_ends, 0,
           (size_t)amp->type_count * amp->stage_limit * sizeof *amp->has_ends);
    amp->holders = holders;
}

/* Places and times for `grid`'s degree and micro-batch size. False: there is no place. */
static bool begin(struct amp *amp, const struct grid *grid)
{
    bool has_type[HET_MAX_TYPES] = { false };
    find_places(amp, grid);
    for (uint32_t i = 0; i < amp->place_count; i++)
        has_type[amp->cluster->nodes[amp->places[i]].type] = true;
    for (uint32_t t = 0; t < amp->type_count; t++)
        if (has_type[t])
            fill_times(amp, grid, t);
    fill_least(amp, has_type);
    forget_ends(amp, 0);
    return amp->place_count > 0;
}

/* ---- one strategy ---- */

static uint32_t microbatch_count(const struct amp *amp, const struct grid *grid)
{
    return amp->problem->workload->global_batch / grid->size / grid->dp;
}

static void place_replicas(struct amp *amp, const struct grid *grid,
                           const uint32_t *places)
{
    memset(amp->used_gpus, 0, amp->cluster->node_count * sizeof *amp->used_gpus);
    for (uint32_t i = 0; i < grid->pp * grid->dp; i++) {
        amp->replicas[i] = het_plan_replica(amp->cluster, places[i],
                                            amp->gpus + amp->used_gpus[places[i]],
                                            grid->tp, grid->size);
        amp->used_gpus[places[i]] += grid->tp;
    }
    for (uint32_t s = 0; s < grid->pp; s++)
        amp->stages[s] = (struct het_stage){
            .layer_count = 1,
            .replicas = amp->replicas + (size_t)s * grid->dp,
            .replica_count = grid->dp,
        };
    amp->pipeline = (struct het_pipeline){
        .microbatch_count = microbatch_count(amp, grid),
        .stages = amp->stages,
        .stage_count = grid->pp,
    };
}

/* Times of the mean GPU of those that the strategy uses. */
static void fill_mean(struct amp *amp, const struct grid *grid)
{
    double *forward_s = forward_of(amp, amp->type_count);
    double *backward_s = backward_of(amp, amp->type_count);
    uint32_t count = grid->pp * grid->dp, of_type[HET_MAX_TYPES] = { 0 };
    for (uint32_t i = 0; i < count; i++)
        of_type[amp->replicas[i].type]++;
    for (uint32_t l = 0; l <= amp->layer_count; l++) {
        forward_s[l] = backward_s[l] = 0;
        for (uint32_t t = 0; t < amp->type_count; t++) {
            if (!of_type[t])
                continue;
            forward_s[l] += forward_of(amp, t)[l] * of_type[t] / count;
            backward_s[l] += backward_of(amp, t)[l] * of_type[t] / count;
        }
    }
}

/* Types of the stage's replicas into `ret_types`. */
static size_t find_types(const struct amp *amp, const struct het_stage *stage,
                         uint32_t *ret_types)
{
    bool has_type[HET_MAX_TYPES] = { false };
    for (size_t r = 0; r < stage->replica_count; r++)
        has_type[stage->replicas[r].type] = true;
    size_t count = 0;
    for (uint32_t t = 0; t < amp->type_count; t++)
        if (has_type[t])
            ret_types[count++] = t;
    return count;
}

/* Layers first .. end - 1 in stage `s`, as a replica of `type` holds them. */
static struct het_memory_question memory_question(const struct amp *amp, uint32_t s,
                                                  uint32_t type, uint32_t first,
                                                  uint32_t end)
{
    const struct het_stage *stage = &amp->stages[s];
    return (struct het_memory_question){
        .type = type,
        .tp = stage->replicas[0].tp,
        .first_layer = first,
        .layer_count = end - first,
        .samples = stage->replicas[0].microbatch_size,
        .in_flight = least(amp->pipeline.microbatch_count,
                           (uint32_t)amp->pipeline.stage_count - s),
        .holders = (uint32_t)stage->replica_count,
    };
}

/* het_balance_stage.ends of a replica of `type` in stage `s`. */
static const uint32_t *type_ends(struct amp *amp, uint32_t s, uint32_t type)
{
    uint32_t in_flight = memory_question(amp, s, type, 0, 1).in_flight;
    size_t at = (size_t)type * amp->stage_limit + in_flight - 1;
    uint32_t *ends = amp->ends + at * amp->layer_count;
    if (amp->has_ends[at])
        return ends;
    double usable_bytes = het_memory_usable_bytes(amp->problem, type);
    uint32_t end = 0;
    for (uint32_t first = 0; first < amp->layer_count; first++) {
        for (end = end < first ? first : end; end < amp->layer_count; end++) {
            struct het_memory_question question =
                memory_question(amp, s, type, first, end + 1);
            if (het_memory_replica_bytes(amp->problem, &question) > usable_bytes)
                break;
        }
        ends[first] = end;
    }
    amp->has_ends[at] = true;
    return ends;
}

static const uint32_t *stage_ends(struct amp *amp, uint32_t s, const uint32_t *types,
                                  size_t type_count)
{
    if (type_count == 1)
        return type_ends(amp, s, types[0]);
    uint32_t *ends = amp->stage_ends + (size_t)s * amp->layer_count;
    for (size_t t = 0; t < type_count; t++) {
        const uint32_t *of_type = type_ends(amp, s, types[t]);
        for (uint32_t l = 0; l < amp->layer_count; l++)
            ends[l] = t ? least(ends[l], of_type[l]) : of_type[l];
    }
    return ends;
}

static bool can_run(const struct amp *amp, enum het_freedom freedom)
{
    return het_runtime_has(amp->problem->workload->runtime, freedom);
}

/* Seconds of a send behind stage `s`, by the layer that the next one starts at; without
 * end where the runtime cannot cut. */
static const double *stage_sends(struct amp *amp, uint32_t s)
{
    double *send_s = amp->send_s + (size_t)s * (amp->layer_count + 1);
    het_cost_sends(amp->problem, &amp->stages[s], &amp->stages[s + 1], send_s);
    if (!s && !can_run(amp, HET_EMPTY_STAGES))
        send_s[1] = HUGE_VAL;
    if (s + 2 == amp->pipeline.stage_count && !can_run(amp, HET_EMPTY_STAGES))
        send_s[amp->layer_count - 1] = HUGE_VAL;
    return send_s;
}

static void ask_stage(struct amp *amp, uint32_t s)
{
    uint32_t types[HET_MAX_TYPES];
    size_t count = find_types(amp, &amp->stages[s], types);
    const uint32_t *ends = stage_ends(amp, s, types, count);
    struct het_balance_times *times = amp->times + (size_t)s * amp->type_count;
    if (amp->search->options->amp_speeds == HET_AMP_MEAN_SPEEDS) {
        types[0] = amp->type_count;
        count = 1;
    }
    for (size_t t = 0; t < count; t++)
        times[t] = (struct het_balance_times){ forward_of(amp, types[t]),
                                               backward_of(amp, types[t]) };
    amp->questions[s] = (struct het_balance_stage){
        .times = times,
        .times_count = count,
        .ends = ends,
        .send_s = s + 1 < amp->pipeline.stage_count ? stage_sends(amp, s) : NULL,
    };
}

/* Share of its memory that the fullest GPU of a stage needs. */
static double needed_share(void *context, uint32_t stage, uint32_t first, uint32_t end)
{
    struct amp *amp = context;
    uint32_t types[HET_MAX_TYPES];
    size_t count = find_types(amp, &amp->stages[stage], types);
    double share = 0;
    for (size_t t = 0; t < count; t++) {
        struct het_memory_question question =
            memory_question(amp, stage, types[t], first, end);
        share = fmax(share, het_memory_replica_bytes(amp->problem, &question) /
                                het_memory_usable_bytes(amp->problem, types[t]));
    }
    return share;
}

static void note_miss(struct amp *amp, const struct grid *grid)
{
    uint32_t stage, types[HET_MAX_TYPES];
    double share;
    het_balance_nearest(amp->space, amp->layer_count, grid->pp, needed_share, amp,
                        amp->cuts, &stage, &share);
    uint32_t first = amp->cuts[stage], end = amp->cuts[stage + 1];
    size_t count = find_types(amp, &amp->stages[stage], types);
    for (size_t t = 0; t < count; t++) {
        struct het_memory_question question =
            memory_question(amp, stage, types[t], first, end);
        double bytes = het_memory_replica_bytes(amp->problem, &question);
        if (bytes > het_memory_usable_bytes(amp->problem, types[t]))
            het_search_miss(amp->search, types[t], bytes,
                            "layers %u-%u, tensor-parallel degree %u, micro-batch %u, %u "
                            "in flight",
                            first, end - 1, grid->tp, grid->size, question.in_flight);
    }
}

static uint64_t split_effort(const struct amp *amp, const struct grid *grid)
{
    return (uint64_t)amp->layer_count * amp->layer_count * grid->pp /
               HET_EFFORT_CELLS_A_UNIT +
           grid->pp * grid->dp / HET_EFFORT_REPLICAS_A_UNIT + 1;
}

/* Seconds that no cut of the layers is below: every layer where it is fastest. */
static double grid_bound(const struct amp *amp, const struct grid *grid)
{
    return amp->least_s + (microbatch_count(amp, grid) - 1.0) *
                              fmax(amp->least_s / grid->pp, amp->largest_layer_s);
}

/* Layers into the stages at hand, by amp->cuts. */
static void fill_layers(struct amp *amp)
{
    for (uint32_t s = 0; s < amp->pipeline.stage_count; s++) {
        amp->stages[s].first_layer = amp->cuts[s];
        amp->stages[s].layer_count = amp->cuts[s + 1] - amp->cuts[s];
    }
}

/* For a runtime that has even stages only: those, if they fit. */
static bool cut_evenly(struct amp *amp, const struct grid *grid, double *ret_seconds)
{
    amp->cuts[0] = 0;
    for (uint32_t s = 0; s < grid->pp; s++) {
        amp->cuts[s + 1] = amp->cuts[s] +
                           het_runtime_even_layers(amp->layer_count, grid->pp, s);
        if (amp->questions[s].ends[amp->cuts[s]] < amp->cuts[s + 1])
            return false;
    }
    fill_layers(amp);
    struct het_plan plan = { .pipelines = &amp->pipeline, .pipeline_count = 1 };
    struct het_cost cost;
    if (het_cost_plan(amp->problem, &plan, &cost, NULL) < 0)
        return false;
    *ret_seconds = cost.pipeline_s;
    return true;
}

static bool cut_layers(struct amp *amp, const struct grid *grid, double worth_s,
                       double *ret_seconds)
{
    if (!can_run(amp, HET_UNEVEN_LAYERS))
        return cut_evenly(amp, grid, ret_seconds);
    const struct het_balance_layers question = {
        .layer_count = amp->layer_count,
        .stages = amp->questions,
        .stage_count = grid->pp,
        .microbatch_count = amp->pipeline.microbatch_count,
        .hides_sends = amp->search->options->amp_sends == HET_AMP_HIDDEN,
    };
    if (!het_balance_layers(amp->space, &question, worth_s, amp->cuts, ret_seconds))
        return false;
    fill_layers(amp);
    return true;
}

/* Cuts the layers so that an estimate below `worth_s` comes out, and hands the strategy
 * to amp->found; pp * dp `places`, stage by stage. */
static void try_grid(struct amp *amp, const struct grid *grid, const uint32_t *places,
                     double worth_s)
{
    struct het_search *search = amp->search;
    if (grid_bound(amp, grid) >= worth_s)
        return;
    bool means = search->options->amp_speeds == HET_AMP_MEAN_SPEEDS;
    place_replicas(amp, grid, places);
    if (means) {
        fill_mean(amp, grid);
        worth_s = HUGE_VAL; /* the estimate may be above the price */
    }
    if (amp->problem->workload->optimizer == HET_ADAM_DISTRIBUTED &&
        amp->holders != grid->dp)
        forget_ends(amp, grid->dp);
    for (uint32_t s = 0; s < grid->pp; s++)
        ask_stage(amp, s);
    double seconds;
    uint64_t taken = split_effort(amp, grid);
    search->statistics.strategies_tried++;
    het_search_spend(search, taken);
    bool fits = cut_layers(amp, grid, worth_s, &seconds);
    search->statistics.partitions_failed += !fits;
    if (!fits && worth_s == HUGE_VAL && !search->incumbent)
        note_miss(amp, grid);
    het_search_settle(search, het_balance_space_take_work(amp->space), taken);
    if (fits)
        amp->found(amp, grid, seconds);
}

static struct het_plan plan_of(struct amp *amp)
{
    return (struct het_plan){ .pipelines = &amp->pipeline, .pipeline_count = 1 };
}

/* Gradients and optimizer beside the pipeline's seconds. */
static double estimate(struct amp *amp, double pipeline_s)
{
    struct het_plan plan = plan_of(amp);
    return pipeline_s + het_cost_sync(amp->problem, &plan) +
           het_cost_step(amp->problem, &plan);
}

/* ---- enumeration ---- */

/* The largest dp with whole micro-batches; 0 if there is none. */
static uint32_t find_dp(const struct amp *amp, const struct grid *grid)
{
    const struct het_workload *workload = amp->problem->workload;
    uint32_t batches = workload->global_batch / grid->size;
    uint32_t dp = least(amp->place_count / grid->pp, batches);
    if (workload->max_data_parallel)
        dp = least(dp, workload->max_data_parallel);
    while (dp && batches % dp)
        dp--;
    return dp >= workload->min_data_parallel ? dp : 0;
}

/* All numbers of stages for one degree and micro-batch size; false without effort. */
static bool try_stages(struct amp *amp, struct grid grid)
{
    if (!begin(amp, &grid))
        return true;
    for (grid.pp = 1; grid.pp <= least(amp->stage_limit, amp->place_count); grid.pp++) {
        if (!het_search_spend(amp->search, 1))
            return false;
        grid.dp = find_dp(amp, &grid);
        if (grid.dp)
            try_grid(amp, &grid, amp->places, het_search_worth(amp->search));
    }
    return true;
}

static bool is_size(const struct amp *amp, uint32_t size)
{
    return amp->problem->workload->global_batch % size == 0 &&
           het_workload_allows_microbatch(amp->problem->workload, size);
}

/* Degrees stand rising in the profile. */
static void enumerate(struct amp *amp)
{
    const struct het_profile *profile = amp->problem->profile;
    uint32_t largest_size = 0;
    for (size_t i = 0; i < profile->measurement_count; i++)
        if (profile->measurements[i].microbatch > largest_size)
            largest_size = profile->measurements[i].microbatch;
    for (uint32_t size = 1; size <= largest_size; size++)
        for (size_t i = 0; is_size(amp, size) && i < profile->bytes_count; i++) {
            struct grid grid = { .size = size, .tp = profile->bytes[i].tp };
            if (het_workload_allows_tensor_parallel(amp->problem->workload, grid.tp) &&
                !try_stages(amp, grid))
                return;
        }
}

static void count_gpus(struct amp *amp, uint32_t *ret_largest_node)
{
    *ret_largest_node = 0;
    for (size_t n = 0; n < amp->cluster->node_count; n++) {
        const struct het_node *node = &amp->cluster->nodes[n];
        if (!is_used(amp, node))
            continue;
        amp->gpu_count += node->gpu_count;
        if (node->gpu_count > *ret_largest_node)
            *ret_largest_node = node->gpu_count;
    }
}

static void amp_init(struct amp *amp, struct het_search *search)
{
    struct het_arena *arena = het_arena_new();
    uint32_t largest_node, layers = search->problem->profile->layer_count;
    *amp = (struct amp){ .search = search,
                         .problem = search->problem,
                         .cluster = search->available,
                         .arena = arena,
                         .layer_count = layers,
                         .type_count = (uint32_t)search->available->type_count };
    count_gpus(amp, &largest_node);
    amp->stage_limit = least(layers, amp->gpu_count);
    if (search->problem->workload->max_pipeline_parallel)
        amp->stage_limit =
            least(amp->stage_limit, search->problem->workload->max_pipeline_parallel);
    size_t types = amp->type_count, stages = amp->stage_limit;
    amp->space = het_balance_space_new(layers, amp->stage_limit);
    amp->gpus = HET_ARENA_ARRAY(arena, uint32_t, largest_node);
    for (uint32_t i = 0; i < largest_node; i++)
        amp->gpus[i] = i;
    amp->used_gpus = HET_ARENA_ARRAY(arena, uint32_t, amp->cluster->node_count);
    amp->places = HET_ARENA_ARRAY(arena, uint32_t, amp->gpu_count);
    amp->columns = HET_ARENA_ARRAY(arena, struct column, amp->cluster->node_count);
    amp->forward_s = HET_ARENA_ARRAY(arena, double, (types + 1) * (layers + 1));
    amp->backward_s = HET_ARENA_ARRAY(arena, double, (types + 1) * (layers + 1));
    amp->ends = HET_ARENA_ARRAY(arena, uint32_t, types * stages * layers);
    amp->has_ends = HET_ARENA_ARRAY(arena, bool, types *stages);
    amp->replicas = HET_ARENA_ARRAY(arena, struct het_replica, amp->gpu_count);
    amp->stages = HET_ARENA_ARRAY(arena, struct het_stage, stages);
    amp->questions = HET_ARENA_ARRAY(arena, struct het_balance_stage, stages);
    amp->times = HET_ARENA_ARRAY(arena, struct het_balance_times, stages * types);
    amp->send_s = HET_ARENA_ARRAY(arena, double, stages *(layers + 1));
    amp->stage_ends = HET_ARENA_ARRAY(arena, uint32_t, stages * layers);
    amp->cuts = HET_ARENA_ARRAY(arena, uint32_t, stages + 1);
}

static void amp_fini(struct amp *amp)
{
    het_balance_space_free(amp->space);
    het_arena_free(amp->arena);
}

/* ---- amp ---- */

static void offer(struct amp *amp, const struct grid *grid, double pipeline_s)
{
    (void)grid;
    (void)pipeline_s;
    struct het_plan plan = plan_of(amp);
    het_search_offer(amp->search, &plan);
}

static int amp_run(struct het_search *search, struct het_error *err)
{
    (void)err;
    struct amp amp;
    amp_init(&amp, search);
    amp.found = offer;
    if (amp.gpu_count)
        enumerate(&amp);
    amp_fini(&amp);
    return 0;
}

/* ---- the list of strategies ---- */

struct ranking {
    struct het_arena *arena;
    struct het_amp_strategy *items;
    size_t count, capacity;
};

static void rank(struct amp *amp, const struct grid *grid, double pipeline_s)
{
    struct ranking *ranking = amp->context;
    uint32_t *cuts = HET_ARENA_ARRAY(ranking->arena, uint32_t, grid->pp + (size_t)1);
    memcpy(cuts, amp->cuts, (grid->pp + (size_t)1) * sizeof *cuts);
    struct het_amp_strategy strategy = {
        .tp = grid->tp,
        .dp = grid->dp,
        .pp = grid->pp,
        .microbatch_size = grid->size,
        .microbatch_count = amp->pipeline.microbatch_count,
        .idle_gpus = amp->gpu_count - grid->tp * grid->dp * grid->pp,
        .seconds = estimate(amp, pipeline_s),
        .cuts = cuts,
    };
    ARRAY_RESERVE(ranking->items, &ranking->capacity, ranking->count + 1);
    size_t at = ranking->count++;
    for (; at && ranking->items[at - 1].seconds > strategy.seconds; at--)
        ranking->items[at] = ranking->items[at - 1];
    ranking->items[at] = strategy;
}

size_t het_amp_rank(struct het_arena *arena, const struct het_problem *problem,
                    const struct het_search_options *options,
                    const struct het_amp_strategy **ret)
{
    struct het_search search = { .problem = problem,
                                 .available = problem->cluster,
                                 .options = options,
                                 .effort_left = UINT64_MAX };
    struct ranking ranking = { .arena = arena };
    struct amp amp;
    amp_init(&amp, &search);
    amp.found = rank;
    amp.context = &ranking;
    if (amp.gpu_count)
        enumerate(&amp);
    amp_fini(&amp);
    struct het_amp_strategy *strategies =
        HET_ARENA_ARRAY(arena, struct het_amp_strategy, ranking.count);
    if (ranking.count)
        memcpy(strategies, ranking.items, ranking.count * sizeof *strategies);
    xfree(ranking.items);
    *ret = strategies;
    return ranking.count;
}

/* ---- annealing ---- */

#define FIRST_TEMPERATURE 1.0 /* as a share of the present strategy's seconds */
#define COOLING           0.98

/* Places of a tiling that are worth a unit of effort. */
#define PLACES_A_UNIT 64u

struct annealing {
    struct amp *amp;
    uint64_t random;
    double temperature;
    struct grid present;
    double present_s;
    bool was_found;    /* the strategy tried last was cut ... */
    double found_s;    /* ... and takes this long */
    uint32_t *degrees; /* of data parallelism: divisors of the batch, rising */
    uint32_t degree_count;
    uint32_t *tiles;  /* places, stage by stage */
    bool *is_covered; /* [place] */
};

static uint32_t draw_below(struct annealing *annealing, uint32_t count)
{
    return (uint32_t)((het_random_next(&annealing->random) >> 32) * count >> 32);
}

/* In (0, 1]. */
static double draw_share(struct annealing *annealing)
{
    return ((double)(het_random_next(&annealing->random) >> 11) + 1) * 0x1p-53;
}

/* Takes one of what it is shown, each as likely as any other: the i-th, i from 1 on, in
 * one of i cases. */
static bool draw_ith(struct annealing *annealing, uint32_t *seen)
{
    return draw_below(annealing, ++*seen) == 0;
}

/* The degree of another grid with the same dp. */
static uint32_t draw_tp(struct annealing *annealing)
{
    const struct het_problem *problem = annealing->amp->problem;
    uint32_t tp = annealing->present.tp, seen = 0;
    for (size_t i = 0; i < problem->profile->bytes_count; i++) {
        uint32_t candidate = problem->profile->bytes[i].tp;
        if (het_workload_allows_tensor_parallel(problem->workload, candidate) &&
            draw_ith(annealing, &seen))
            tp = candidate;
    }
    return tp;
}

/* A micro-batch size that has measured times and divides each pipeline's samples; 0 if
 * there is none. */
static uint32_t draw_size(struct annealing *annealing, const struct grid *grid)
{
    const struct amp *amp = annealing->amp;
    uint32_t samples = amp->problem->workload->global_batch / grid->dp, size = 0,
             seen = 0;
    for (uint32_t candidate = 1; candidate <= least(samples, HET_MAX_MICROBATCH);
         candidate++) {
        if (samples % candidate ||
            !het_workload_allows_microbatch(amp->problem->workload, candidate))
            continue;
        bool is_covered = false;
        for (uint32_t t = 0; t < amp->type_count && !is_covered; t++)
            is_covered = amp->problem->profile_type[t] != HET_NO_TYPE &&
                         het_profile_covers(amp->problem->profile,
                                            amp->problem->profile_type[t], grid->tp,
                                            candidate);
        if (is_covered && draw_ith(annealing, &seen))
            size = candidate;
    }
    return size;
}

/* Whether `height` x `width` places from row `row` of `column` on are free. */
static bool is_free(const struct annealing *annealing, uint32_t column, uint32_t row,
                    uint32_t height, uint32_t width)
{
    const struct amp *amp = annealing->amp;
    if (column + width > amp->column_count)
        return false;
    for (uint32_t c = column; c < column + width; c++)
        for (uint32_t r = row; r < row + height; r++)
            if (r >= amp->columns[c].height ||
                annealing->is_covered[amp->columns[c].first_place + r])
                return false;
    return true;
}

/* Height of a domino of `dp` places that fits here, drawn; 0 if none does. */
static uint32_t draw_height(struct annealing *annealing, uint32_t column, uint32_t row,
                            uint32_t dp)
{
    uint32_t height = 0, seen = 0;
    for (uint32_t h = 1; h <= least(dp, annealing->amp->columns[column].height); h++)
        if (dp % h == 0 && is_free(annealing, column, row, h, dp / h) &&
            draw_ith(annealing, &seen))
            height = h;
    return height;
}

static void cover(struct annealing *annealing, uint32_t column, uint32_t row,
                  uint32_t height, uint32_t width, uint32_t *ret_tile)
{
    const struct amp *amp = annealing->amp;
    for (uint32_t c = column; c < column + width; c++)
        for (uint32_t r = row; r < row + height; r++) {
            uint32_t place = amp->columns[c].first_place + r;
            annealing->is_covered[place] = true;
            *ret_tile++ = amp->places[place];
        }
}

/* Tiles the mesh with dominoes of `dp` places; places where none fits stay free. Returns
 * their number. */
static uint32_t draw_tiling(struct annealing *annealing, uint32_t dp)
{
    const struct amp *amp = annealing->amp;
    uint32_t count = 0;
    memset(annealing->is_covered, 0, amp->place_count * sizeof *annealing->is_covered);
    for (uint32_t column = 0; column < amp->column_count; column++)
        for (uint32_t row = 0; row < amp->columns[column].height; row++) {
            if (count == amp->stage_limit)
                return count;
            uint32_t height = is_free(annealing, column, row, 1, 1)
                                  ? draw_height(annealing, column, row, dp)
                                  : 0;
            if (height)
                cover(annealing, column, row, height, dp / height,
                      annealing->tiles + (size_t)count++ * dp);
        }
    return count;
}

static void anneal_found(struct amp *amp, const struct grid *grid, double pipeline_s)
{
    (void)grid;
    struct annealing *annealing = amp->context;
    struct het_plan plan = plan_of(amp);
    annealing->was_found = true;
    annealing->found_s = estimate(amp, pipeline_s);
    het_search_offer(amp->search, &plan);
}

/* One step of Algorithm 2. It draws the chance first: a neighbour is accepted if it takes
 * less than present_s + t * -ln(chance), so none that takes longer need be worked out. */
static void step(struct annealing *annealing)
{
    struct grid next = annealing->present;
    if (draw_below(annealing, 2))
        next.tp = draw_tp(annealing);
    else
        next.dp = annealing->degrees[draw_below(annealing, annealing->degree_count)];
    next.size = draw_size(annealing, &next);
    double accepted_s = annealing->present_s *
                        (1 - annealing->temperature * het_log(draw_share(annealing)));
    annealing->temperature *= COOLING;
    if (!next.size || !begin(annealing->amp, &next))
        return;
    next.pp = draw_tiling(annealing, next.dp);
    annealing->was_found = false;
    if (next.pp)
        try_grid(annealing->amp, &next, annealing->tiles, accepted_s);
    if (annealing->was_found && annealing->found_s < accepted_s) {
        annealing->present = next;
        annealing->present_s = annealing->found_s;
    }
}

static void start_found(struct amp *amp, const struct grid *grid, double pipeline_s)
{
    struct annealing *annealing = amp->context;
    anneal_found(amp, grid, pipeline_s);
    if (annealing->found_s < annealing->present_s) {
        annealing->present = *grid;
        annealing->present_s = annealing->found_s;
    }
}

/* Divisors of the batch that the job allows as data-parallel degrees. */
static void find_degrees(struct annealing *annealing)
{
    const struct amp *amp = annealing->amp;
    const struct het_workload *workload = amp->problem->workload;
    uint32_t most = least(amp->gpu_count, workload->global_batch);
    if (workload->max_data_parallel)
        most = least(most, workload->max_data_parallel);
    annealing->degrees = HET_ARENA_ARRAY(amp->arena, uint32_t, most);
    for (uint32_t dp = workload->min_data_parallel ? workload->min_data_parallel : 1;
         dp <= most; dp++)
        if (workload->global_batch % dp == 0)
            annealing->degrees[annealing->degree_count++] = dp;
}

/* From the best grid of the enumeration. */
static void anneal(struct annealing *annealing)
{
    struct amp *amp = annealing->amp;
    amp->found = start_found;
    enumerate(amp);
    find_degrees(annealing);
    if (!(annealing->present_s < HUGE_VAL) || !annealing->degree_count)
        return;
    amp->found = anneal_found;
    uint64_t tiling_effort = 1 + amp->gpu_count / PLACES_A_UNIT;
    for (uint32_t i = 0;
         i < HET_AMP_ITERATIONS && het_search_spend(amp->search, tiling_effort); i++)
        step(annealing);
}

static int amp_sa_run(struct het_search *search, struct het_error *err)
{
    (void)err;
    struct amp amp;
    amp_init(&amp, search);
    struct annealing annealing = {
        .amp = &amp,
        .random = search->options->seed,
        .temperature = FIRST_TEMPERATURE,
        .present_s = HUGE_VAL,
        .tiles = HET_ARENA_ARRAY(amp.arena, uint32_t, amp.gpu_count),
        .is_covered = HET_ARENA_ARRAY(amp.arena, bool, amp.gpu_count),
    };
    amp.context = &annealing;
    if (amp.gpu_count)
        anneal(&annealing);
    amp_fini(&amp);
    return 0;
}

const struct het_algorithm het_algo_amp = {
    .name = "amp",
    .source = "AMP (NeurIPS 2022), Algorithm 1, sections 3 and 6.2",
    .summary = "every uniform tp x dp x pp grid and micro-batch size, ranks placed in "
               "that order, layers cut exactly",
    .run = amp_run,
};

const struct het_algorithm het_algo_amp_sa = {
    .name = "amp-sa",
    .source = "AMP (NeurIPS 2022), Algorithm 2, section 6.3",
    .summary = "from the best of amp, annealing over degrees, micro-batch sizes and "
               "placements as domino tilings",
    .run = amp_sa_run,
};
