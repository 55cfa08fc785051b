#include "planner/algo/autohet/autohet.h"

#include "planner/algo/autohet/pipeline_grouping.h"
#include "planner/search/balance.h"
#include "planner/search/stage_times.h"

#include <math.h>
#include <string.h>

#define WORK_A_UNIT      16u /* groups looked at */
#define MAX_RAISES       6u  /* of MIN_mem, by: */
#define RAISE            1.15
/* A degree and size are left alone if all GPUs at full power take this share of the best
 * plan's time: layers may suit a type better than the whole model does. */
#define FLOOR_SHARE      0.9
#define BISECTION_ROUNDS 60u

/* Stages of one pipeline, and its place. */
struct pipe {
    const uint32_t *counts;     /* [type] */
    uint32_t stage_count, like; /* the first pipeline of the same counts */
    uint32_t *types, *nodes;    /* [stage]: type index; node, HET_UNBOUND: none yet */
    uint32_t *cuts;             /* [stage + 1] */
    double sum_s, bottleneck_s;
    uint32_t microbatch_count;
};

struct autohet {
    struct het_search *search;
    const struct het_problem *problem;
    const struct het_cluster *cluster;
    struct het_stage_table *table;
    struct het_arena *arena; /* of one attempt */
    uint32_t layer_count;
    uint32_t *gpus; /* 0, 1, 2, ... */

    /* One attempt. */
    uint32_t tp, size, batches;
    uint32_t types[HET_MAX_TYPES]; /* cluster types, the weakest first */
    struct het_pipeline_grouping_type members[HET_MAX_TYPES];
    uint32_t type_count, member_count;
    double least_memory;

    struct pipe *pipes; /* of one grouping */
    uint32_t pipe_count;
};

static bool can_run(const struct autohet *autohet, enum het_freedom freedom)
{
    return het_runtime_has(autohet->problem->workload->runtime, freedom);
}

/* ---- types ---- */

static double needed_bytes(const struct autohet *autohet, uint32_t type, uint32_t first,
                           uint32_t count, uint32_t in_flight, uint32_t holders)
{
    const struct het_memory_question question = { .type = type,
                                                  .tp = autohet->tp,
                                                  .first_layer = first,
                                                  .layer_count = count,
                                                  .samples = autohet->size,
                                                  .in_flight = in_flight,
                                                  .holders = holders };
    return het_memory_replica_bytes(autohet->problem, &question);
}

/* m_i of the type and MIN_mem, which is the same of all types. */
static double member_memory(struct autohet *autohet, uint32_t type)
{
    uint32_t layers = autohet->layer_count, holders = autohet->member_count;
    double whole = needed_bytes(autohet, type, 0, layers, 1, holders);
    double activations = needed_bytes(autohet, type, 0, layers, 2, holders) - whole;
    double workspace = 0;
    if (layers > 1)
        workspace = fmax(0, needed_bytes(autohet, type, 0, 1, 1, holders) +
                                needed_bytes(autohet, type, 1, layers - 1, 1, holders) -
                                whole);
    autohet->least_memory = whole - workspace - activations / 2;
    return het_memory_usable_bytes(autohet->problem, type) - workspace - activations / 2;
}

static bool can_take(const struct autohet *autohet, uint32_t type)
{
    uint32_t profile_type = autohet->problem->profile_type[type];
    return profile_type != HET_NO_TYPE &&
           het_profile_covers(autohet->problem->profile, profile_type, autohet->tp,
                              autohet->size);
}

static void add_type(struct autohet *autohet, uint32_t type, uint32_t count)
{
    double forward_s = 0, backward_s = 0;
    het_profile_times(autohet->problem->profile, autohet->problem->profile_type[type],
                      autohet->tp, autohet->size, 0, autohet->layer_count, &forward_s,
                      &backward_s, NULL);
    double power = autohet->size / (forward_s + backward_s);
    uint32_t at = autohet->type_count++;
    for (; at && autohet->members[at - 1].power > power; at--) {
        autohet->members[at] = autohet->members[at - 1];
        autohet->types[at] = autohet->types[at - 1];
    }
    autohet->types[at] = type;
    autohet->members[at] =
        (struct het_pipeline_grouping_type){ .count = count, .power = power };
    autohet->member_count += count;
}

/* Types that have the degree and size, with their members. */
static void find_types(struct autohet *autohet)
{
    autohet->type_count = autohet->member_count = 0;
    for (uint32_t t = 0; t < autohet->cluster->type_count; t++) {
        uint32_t count = 0;
        for (size_t n = 0; n < autohet->cluster->node_count; n++)
            if (autohet->cluster->nodes[n].type == t)
                count += autohet->cluster->nodes[n].gpu_count / autohet->tp;
        if (count && can_take(autohet, t))
            add_type(autohet, t, count);
    }
    for (uint32_t i = 0; i < autohet->type_count; i++)
        autohet->members[i].memory = member_memory(autohet, autohet->types[i]);
}

/* ---- nodes and stages (III.C) ---- */

static uint32_t room(const struct autohet *autohet, const uint32_t *used, uint32_t node)
{
    return autohet->cluster->nodes[node].gpu_count / autohet->tp - used[node];
}

/* The node of the type with the least room for `count` members; HET_UNBOUND: none. */
static uint32_t find_node(const struct autohet *autohet, const uint32_t *used,
                          uint32_t type, uint32_t count)
{
    uint32_t best = HET_UNBOUND;
    for (uint32_t n = 0; n < autohet->cluster->node_count; n++)
        if (autohet->cluster->nodes[n].type == type && room(autohet, used, n) >= count &&
            (best == HET_UNBOUND || room(autohet, used, n) < room(autohet, used, best)))
            best = n;
    return best;
}

/* The first stage of the type that has no node; the stage count: none. */
static uint32_t next_stage(const struct pipe *pipe, uint32_t type)
{
    uint32_t s = 0;
    while (s < pipe->stage_count &&
           (pipe->types[s] != type || pipe->nodes[s] != HET_UNBOUND))
        s++;
    return s;
}

/* While each pipeline has a stage of the type left, and a node has room for all of these,
 * they are put there: gradients stay inside the node. */
static void place_together(struct autohet *autohet, uint32_t *used, uint32_t type)
{
    for (;;) {
        uint32_t node =
            find_node(autohet, used, autohet->types[type], autohet->pipe_count);
        for (uint32_t j = 0; j < autohet->pipe_count && node != HET_UNBOUND; j++)
            if (next_stage(&autohet->pipes[j], type) == autohet->pipes[j].stage_count)
                node = HET_UNBOUND;
        if (node == HET_UNBOUND)
            return;
        for (uint32_t j = 0; j < autohet->pipe_count; j++) {
            struct pipe *pipe = &autohet->pipes[j];
            pipe->nodes[next_stage(pipe, type)] = node;
            used[node]++;
        }
    }
}

/* What has no node yet, pipeline by pipeline: on one node where there is room. */
static void place_rest(struct autohet *autohet, uint32_t *used, struct pipe *pipe)
{
    for (uint32_t s = 0; s < pipe->stage_count; s++) {
        uint32_t count = 0, type = autohet->types[pipe->types[s]];
        if (pipe->nodes[s] != HET_UNBOUND)
            continue;
        for (uint32_t u = s; u < pipe->stage_count; u++)
            count += pipe->types[u] == pipe->types[s] && pipe->nodes[u] == HET_UNBOUND;
        uint32_t before = s ? pipe->nodes[s - 1] : HET_UNBOUND, node = HET_UNBOUND;
        if (before != HET_UNBOUND && autohet->cluster->nodes[before].type == type &&
            room(autohet, used, before))
            node = before;
        for (; node == HET_UNBOUND; count--)
            node = find_node(autohet, used, type, count);
        pipe->nodes[s] = node;
        used[node]++;
    }
}

static void place(struct autohet *autohet, bool together)
{
    uint32_t *used =
        HET_ARENA_ARRAY(autohet->arena, uint32_t, autohet->cluster->node_count);
    for (uint32_t j = 0; j < autohet->pipe_count; j++)
        for (uint32_t s = 0; s < autohet->pipes[j].stage_count; s++)
            autohet->pipes[j].nodes[s] = HET_UNBOUND;
    for (uint32_t t = 0; t < autohet->type_count && together; t++)
        place_together(autohet, used, t);
    for (uint32_t j = 0; j < autohet->pipe_count; j++)
        place_rest(autohet, used, &autohet->pipes[j]);
}

/* The weakest first. */
static void fill_pipes(struct autohet *autohet,
                       const struct het_pipeline_grouping *grouping)
{
    autohet->pipe_count = grouping->group_count;
    autohet->pipes = HET_ARENA_ARRAY(autohet->arena, struct pipe, grouping->group_count);
    for (uint32_t j = 0; j < autohet->pipe_count; j++) {
        struct pipe *pipe = &autohet->pipes[j];
        pipe->counts = grouping->members + (size_t)j * autohet->type_count;
        size_t bytes = autohet->type_count * sizeof *pipe->counts;
        while (memcmp(grouping->members + (size_t)pipe->like * autohet->type_count,
                      pipe->counts, bytes) != 0)
            pipe->like++;
        for (uint32_t t = 0; t < autohet->type_count; t++)
            pipe->stage_count += pipe->counts[t];
        pipe->types = HET_ARENA_ARRAY(autohet->arena, uint32_t, pipe->stage_count);
        pipe->nodes = HET_ARENA_ARRAY(autohet->arena, uint32_t, pipe->stage_count);
        pipe->cuts = HET_ARENA_ARRAY(autohet->arena, uint32_t, pipe->stage_count + 1);
        uint32_t s = 0;
        for (uint32_t t = 0; t < autohet->type_count; t++)
            for (uint32_t i = 0; i < pipe->counts[t]; i++)
                pipe->types[s++] = t;
    }
}

/* ---- layers (eq. 4) ---- */

static uint32_t in_flight_of(const struct autohet *autohet, const struct pipe *pipe,
                             uint32_t s)
{
    uint32_t behind = pipe->stage_count - s;
    uint32_t most = autohet->batches - (autohet->pipe_count - 1);
    return behind < most ? behind : most;
}

static struct het_stage one_stage(const struct autohet *autohet, const struct pipe *pipe,
                                  uint32_t s, struct het_replica *replica)
{
    *replica = het_plan_replica(autohet->problem->cluster, pipe->nodes[s], autohet->gpus,
                                autohet->tp, autohet->size);
    return (
        struct het_stage){ .layer_count = 1, .replicas = replica, .replica_count = 1 };
}

/* Seconds of a send behind stage `s`, by the layer that the next one starts at; without
 * end where the runtime cannot cut. */
static double *stage_sends(const struct autohet *autohet, const struct pipe *pipe,
                           uint32_t s)
{
    double *send_s = HET_ARENA_ARRAY(autohet->arena, double, autohet->layer_count + 1);
    struct het_replica sender, receiver;
    struct het_stage from = one_stage(autohet, pipe, s, &sender);
    struct het_stage to = one_stage(autohet, pipe, s + 1, &receiver);
    het_cost_sends(autohet->problem, &from, &to, send_s);
    if (!s && !can_run(autohet, HET_EMPTY_STAGES))
        send_s[1] = HUGE_VAL;
    if (s + 2 == pipe->stage_count && !can_run(autohet, HET_EMPTY_STAGES))
        send_s[autohet->layer_count - 1] = HUGE_VAL;
    return send_s;
}

/* Stage `s` of the pipeline alone, or, if `shared`, of all pipelines at once. */
static void ask_stage(struct autohet *autohet, const struct pipe *pipe, uint32_t s,
                      bool shared, struct het_balance_stage *ret)
{
    struct het_stage_kind kinds[HET_MAX_TYPES];
    size_t count = 0;
    for (uint32_t t = 0; t < autohet->type_count; t++) {
        bool is_there = pipe->types[s] == t;
        for (uint32_t j = 0; shared && j < autohet->pipe_count; j++)
            is_there |= autohet->pipes[j].types[s] == t;
        if (is_there)
            kinds[count++] = (struct het_stage_kind){ .type = autohet->types[t],
                                                      .tp = autohet->tp,
                                                      .samples = autohet->size };
    }
    het_stage_table_ask(
        autohet->table, kinds, count, in_flight_of(autohet, pipe, s), autohet->pipe_count,
        HET_ARENA_ARRAY(autohet->arena, struct het_balance_times, count),
        HET_ARENA_ARRAY(autohet->arena, uint32_t, autohet->layer_count), ret);
    if (s + 1 < pipe->stage_count)
        ret->send_s = stage_sends(autohet, pipe, s);
}

static bool cut_evenly(const struct autohet *autohet, struct pipe *pipe,
                       const struct het_balance_stage *stages)
{
    for (uint32_t s = 0; s < pipe->stage_count; s++) {
        pipe->cuts[s + 1] = pipe->cuts[s] + het_runtime_even_layers(autohet->layer_count,
                                                                    pipe->stage_count, s);
        if (stages[s].ends[pipe->cuts[s]] < pipe->cuts[s + 1])
            return false;
    }
    return true;
}

struct miss {
    const struct autohet *autohet;
    const struct pipe *pipe;
};

static double share_of_room(void *context, uint32_t stage, uint32_t first, uint32_t end)
{
    const struct miss *miss = context;
    const struct autohet *autohet = miss->autohet;
    uint32_t type = autohet->types[miss->pipe->types[stage]];
    return needed_bytes(autohet, type, first, end - first,
                        in_flight_of(autohet, miss->pipe, stage), autohet->pipe_count) /
           het_memory_usable_bytes(autohet->problem, type);
}

static void note_miss(struct autohet *autohet, const struct pipe *pipe)
{
    struct miss miss = { autohet, pipe };
    uint32_t stage, *cuts = pipe->cuts;
    double share;
    if (autohet->search->incumbent || autohet->search->seed_count)
        return; /* there is a plan */
    struct het_balance_space *space =
        het_balance_space_new(autohet->layer_count, pipe->stage_count);
    het_balance_nearest(space, autohet->layer_count, pipe->stage_count, share_of_room,
                        &miss, cuts, &stage, &share);
    het_search_settle(autohet->search, het_balance_space_take_work(space), 0);
    het_balance_space_free(space);
    uint32_t type = autohet->types[pipe->types[stage]];
    het_search_miss(autohet->search, type,
                    share * het_memory_usable_bytes(autohet->problem, type),
                    "layers %u-%u, tensor-parallel degree %u, micro-batch %u, %u in "
                    "flight",
                    cuts[stage], cuts[stage + 1] - 1, autohet->tp, autohet->size,
                    in_flight_of(autohet, pipe, stage));
}

static bool cut_pipe(struct autohet *autohet, struct pipe *pipe, bool shared)
{
    struct het_balance_stage *stages =
        HET_ARENA_ARRAY(autohet->arena, struct het_balance_stage, pipe->stage_count);
    for (uint32_t s = 0; s < pipe->stage_count; s++)
        ask_stage(autohet, pipe, s, shared, &stages[s]);
    const struct het_balance_layers question = {
        .layer_count = autohet->layer_count,
        .stages = stages,
        .stage_count = pipe->stage_count,
        .microbatch_count = (autohet->batches + autohet->pipe_count - 1) /
                            autohet->pipe_count,
    };
    uint64_t layers = autohet->layer_count;
    uint64_t taken = 4 * layers * layers * pipe->stage_count / HET_EFFORT_CELLS_A_UNIT +
                     1;
    het_search_spend(autohet->search, taken);
    struct het_balance_space *space =
        het_balance_space_new(autohet->layer_count, pipe->stage_count);
    double seconds;
    bool fits = can_run(autohet, HET_UNEVEN_LAYERS)
                    ? het_balance_layers(space, &question, HUGE_VAL, pipe->cuts, &seconds)
                    : cut_evenly(autohet, pipe, stages);
    het_search_settle(autohet->search, het_balance_space_take_work(space), taken);
    het_balance_space_free(space);
    if (fits)
        het_balance_pipeline(stages, pipe->stage_count, pipe->cuts, &pipe->sum_s,
                             &pipe->bottleneck_s);
    else
        note_miss(autohet, pipe);
    return fits;
}

/* Cuts of all pipelines; those with the same GPUs have the same. */
static bool cut_all(struct autohet *autohet)
{
    bool shared = !can_run(autohet, HET_LAYERS_PER_PIPELINE);
    for (uint32_t j = 0; j < autohet->pipe_count; j++) {
        struct pipe *pipe = &autohet->pipes[j];
        uint32_t like = shared ? 0 : pipe->like;
        if (like == j && !cut_pipe(autohet, pipe, shared))
            return false;
        pipe->cuts = autohet->pipes[like].cuts;
        pipe->sum_s = autohet->pipes[like].sum_s;
        pipe->bottleneck_s = autohet->pipes[like].bottleneck_s;
    }
    return true;
}

/* ---- the batch ---- */

static double pipe_seconds(const struct pipe *pipe, uint32_t count)
{
    return pipe->sum_s + (count - 1) * pipe->bottleneck_s;
}

/* What each pipeline can do in `seconds`, one micro-batch at least; their sum. */
static uint64_t fill_counts(struct autohet *autohet, double seconds)
{
    uint64_t sum = 0;
    for (uint32_t j = 0; j < autohet->pipe_count; j++) {
        struct pipe *pipe = &autohet->pipes[j];
        double more = floor((seconds - pipe->sum_s) / pipe->bottleneck_s);
        pipe->microbatch_count = 1 +
                                 (uint32_t)fmin(fmax(more, 0), (double)autohet->batches);
        sum += pipe->microbatch_count;
    }
    return sum;
}

static void share_evenly(struct autohet *autohet)
{
    for (uint32_t j = 0; j < autohet->pipe_count; j++)
        autohet->pipes[j].microbatch_count = autohet->batches / autohet->pipe_count;
}

/* So that the last pipeline to end does so as early as can be: bisection, then one by one
 * where it ends earliest. */
static void share_batches(struct autohet *autohet)
{
    double low_s = 0, high_s = 0;
    for (uint32_t j = 0; j < autohet->pipe_count; j++)
        high_s = fmax(high_s, pipe_seconds(&autohet->pipes[j], autohet->batches));
    for (uint32_t i = 0; i < BISECTION_ROUNDS; i++) {
        double middle_s = (low_s + high_s) / 2;
        if (fill_counts(autohet, middle_s) > autohet->batches)
            high_s = middle_s;
        else
            low_s = middle_s;
    }
    for (uint64_t sum = fill_counts(autohet, low_s); sum < autohet->batches; sum++) {
        struct pipe *first = &autohet->pipes[0];
        for (uint32_t j = 1; j < autohet->pipe_count; j++) {
            struct pipe *pipe = &autohet->pipes[j];
            if (pipe_seconds(pipe, pipe->microbatch_count + 1) <
                pipe_seconds(first, first->microbatch_count + 1))
                first = pipe;
        }
        first->microbatch_count++;
    }
}

/* ---- plans ---- */

static void offer(struct autohet *autohet)
{
    const struct het_cluster *cluster = autohet->cluster;
    uint32_t *used = HET_ARENA_ARRAY(autohet->arena, uint32_t, cluster->node_count);
    struct het_pipeline *pipelines =
        HET_ARENA_ARRAY(autohet->arena, struct het_pipeline, autohet->pipe_count);
    for (uint32_t j = 0; j < autohet->pipe_count; j++) {
        const struct pipe *pipe = &autohet->pipes[j];
        struct het_replica *replicas =
            HET_ARENA_ARRAY(autohet->arena, struct het_replica, pipe->stage_count);
        struct het_stage *stages =
            HET_ARENA_ARRAY(autohet->arena, struct het_stage, pipe->stage_count);
        for (uint32_t s = 0; s < pipe->stage_count; s++) {
            uint32_t node = pipe->nodes[s];
            stages[s] = one_stage(autohet, pipe, s, &replicas[s]);
            stages[s].first_layer = pipe->cuts[s];
            stages[s].layer_count = pipe->cuts[s + 1] - pipe->cuts[s];
            replicas[s].gpus = autohet->gpus + used[node];
            used[node] += autohet->tp;
        }
        pipelines[j] = (struct het_pipeline){ .microbatch_count = pipe->microbatch_count,
                                              .stages = stages,
                                              .stage_count = pipe->stage_count };
    }
    struct het_plan plan = { .pipelines = pipelines,
                             .pipeline_count = autohet->pipe_count };
    het_search_spend(autohet->search,
                     autohet->member_count / HET_EFFORT_REPLICAS_A_UNIT + 1);
    het_search_offer(autohet->search, &plan);
}

/* False: no split of the layers fits. */
static bool build(struct autohet *autohet, const struct het_pipeline_grouping *grouping)
{
    fill_pipes(autohet, grouping);
    for (int together = 1; together >= 0; together--) {
        place(autohet, together);
        if (!cut_all(autohet))
            return false;
        if (can_run(autohet, HET_COUNT_PER_PIPELINE))
            share_batches(autohet);
        else
            share_evenly(autohet);
        offer(autohet);
    }
    return true;
}

/* ---- search (Algorithm 1) ---- */

/* What would be missing if all GPUs were one pipeline. */
static void note_whole_miss(struct autohet *autohet, uint32_t size_limit)
{
    uint32_t counts[HET_MAX_TYPES], left = size_limit;
    for (uint32_t t = autohet->type_count; t-- > 0;) {
        uint32_t count = autohet->members[t].count;
        counts[t] = count < left ? count : left;
        left -= counts[t];
    }
    const struct het_pipeline_grouping grouping = { .group_count = 1, .members = counts };
    fill_pipes(autohet, &grouping);
    note_miss(autohet, &autohet->pipes[0]);
}

static double *microbatch_counts(const struct autohet *autohet, uint32_t *ret_most)
{
    const struct het_workload *workload = autohet->problem->workload;
    uint32_t most = autohet->member_count;
    if (autohet->batches < most)
        most = autohet->batches;
    if (workload->max_data_parallel && workload->max_data_parallel < most)
        most = workload->max_data_parallel;
    double *counts = HET_ARENA_ARRAY(autohet->arena, double, (size_t)most + 1);
    for (uint32_t d = 1; d <= most; d++)
        if (d >= workload->min_data_parallel &&
            (autohet->batches % d == 0 || can_run(autohet, HET_COUNT_PER_PIPELINE)))
            counts[d] = (double)autohet->batches / d;
    *ret_most = most;
    return counts;
}

static bool is_worth(const struct autohet *autohet)
{
    double power = 0, batch = autohet->problem->workload->global_batch;
    for (uint32_t t = 0; t < autohet->type_count; t++)
        power += autohet->members[t].count * autohet->members[t].power;
    return autohet->member_count &&
           FLOOR_SHARE * batch / power < het_search_worth(autohet->search);
}

static void try_groupings(struct autohet *autohet)
{
    struct het_search *search = autohet->search;
    uint32_t longest = autohet->problem->workload->max_pipeline_parallel, raises = 0;
    if (!longest || longest > autohet->layer_count)
        longest = autohet->layer_count;
    struct het_pipeline_grouping_question question = {
        .types = autohet->members,
        .type_count = autohet->type_count,
        .size_limit = longest,
        .is_even = !can_run(autohet, HET_STAGES_PER_PIPELINE) ||
                   !can_run(autohet, HET_LAYERS_PER_PIPELINE),
        .least_memory = autohet->least_memory,
    };
    double *counts = microbatch_counts(autohet, &question.most_groups), best = 0;
    question.microbatches = counts;
    for (uint32_t plans = 0; plans < HET_AUTOHET_MAX_PLANS && search->effort_left;) {
        struct het_pipeline_grouping grouping;
        question.work_limit = search->effort_left * WORK_A_UNIT / 4 + 1;
        bool found = het_pipeline_grouping_find(autohet->arena, &question, &grouping);
        het_search_spend(search, grouping.work / WORK_A_UNIT + 1);
        search->statistics.groups_enumerated += grouping.work;
        if (!found && !plans && !raises)
            note_whole_miss(autohet, longest);
        if (!found || grouping.objective < HET_AUTOHET_WORTH * best)
            return;
        best = fmax(best, grouping.objective);
        search->statistics.strategies_tried++;
        if (!build(autohet, &grouping)) {
            search->statistics.partitions_failed++;
            question.least_memory *= RAISE;
            if (++raises <= MAX_RAISES)
                continue;
        }
        counts[grouping.group_count] = 0;
        plans++;
    }
}

static void try_one(struct autohet *autohet, uint32_t tp, uint32_t size)
{
    autohet->arena = het_arena_new();
    autohet->tp = tp;
    autohet->size = size;
    autohet->batches = autohet->problem->workload->global_batch / size;
    find_types(autohet);
    if (is_worth(autohet))
        try_groupings(autohet);
    het_arena_free(autohet->arena);
}

static uint32_t largest_size(const struct autohet *autohet, uint32_t tp)
{
    uint32_t most = 0;
    for (uint32_t t = 0; t < autohet->cluster->type_count; t++) {
        uint32_t type = autohet->problem->profile_type[t];
        uint32_t size = type == HET_NO_TYPE ? 0
                                            : het_profile_max_microbatch(
                                                  autohet->problem->profile, type, tp);
        most = size > most ? size : most;
    }
    return most;
}

static void count_gpus(struct autohet *autohet, struct het_arena *arena)
{
    uint32_t largest = 0;
    for (size_t n = 0; n < autohet->cluster->node_count; n++)
        if (autohet->cluster->nodes[n].gpu_count > largest)
            largest = autohet->cluster->nodes[n].gpu_count;
    autohet->gpus = HET_ARENA_ARRAY(arena, uint32_t, largest);
    for (uint32_t i = 0; i < largest; i++)
        autohet->gpus[i] = i;
}

static int run(struct het_search *search, struct het_error *err)
{
    (void)err;
    struct het_arena *arena = het_arena_new();
    struct autohet autohet = { .search = search,
                               .problem = search->problem,
                               .cluster = search->available,
                               .table = het_stage_table_new(search->problem),
                               .layer_count = search->problem->profile->layer_count };
    const struct het_workload *workload = search->problem->workload;
    const struct het_profile *profile = search->problem->profile;
    count_gpus(&autohet, arena);
    for (size_t i = 0; i < profile->bytes_count; i++) {
        uint32_t tp = profile->bytes[i].tp, largest = largest_size(&autohet, tp);
        for (uint32_t size = 1; size <= largest && size <= workload->global_batch; size++)
            if (workload->global_batch % size == 0 &&
                het_workload_allows_tensor_parallel(workload, tp) &&
                het_workload_allows_microbatch(workload, size) &&
                het_search_spend(search, 1))
                try_one(&autohet, tp, size);
    }
    het_stage_table_free(autohet.table);
    het_arena_free(arena);
    return 0;
}

const struct het_algorithm het_algo_autohet = {
    .name = "autohet",
    .source = "AutoHet, section III, Algorithm 1",
    .summary =
        "pipelines of different shape and like power, found exactly over counts of "
        "GPU types; weak GPUs first, layers by speed",
    .run = run,
};
