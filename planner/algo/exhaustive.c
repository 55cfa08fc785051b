#include "planner/algo/exhaustive.h"

#include "planner/cost/bound.h"

#include <math.h>
#include <string.h>

/* Each pass may look at plans this much slower than the one before it; after
 * MAX_LIMITED_PASSES at any. */
#define PASS_GROWTH        1.25
#define MAX_LIMITED_PASSES 8u

/* Replicas looked at for one unit of effort. */
#define REPLICAS_A_UNIT 8u
/* Nodes, eight at a time, and numbers of samples that are thought of. */
#define LOOKS_A_UNIT    64u

/* A stage as the walk knows it; its replicas are the walk's from `first_replica` on. */
struct open_stage {
    size_t first_replica;
    double forward_s, backward_s; /* slowest replica */
    double send_s;                /* to the next stage; 0 until that is there */
    bool fits[3];                 /* by enum het_recompute */
};

struct walk {
    struct het_search *search;
    const struct het_problem *problem;
    const struct het_cluster *cluster;
    uint32_t layer_count;
    double pass_limit; /* seconds; plans that are not faster are left out */
    bool was_limited;  /* something was left out by a bound */
    bool is_spent;
    uint32_t tried;  /* replicas since effort was last taken for them */
    uint32_t looked; /* likewise */

    uint32_t *node_class; /* [node]: equal nodes have equal classes */
    uint32_t *degrees;    /* tensor-parallel degrees of any type, rising */
    size_t degree_count;
    uint32_t *gpu_ids;   /* 0, 1, 2, ... */
    double *layer_floor; /* [type][layer]: least GPU seconds of a sample */
    double *weights;     /* [type], of the area bound */
    double *tail_s;      /* [layer]: least seconds of a micro-batch from there on */

    uint32_t *used;      /* [node]: GPUs of the plan */
    uint32_t *type_used; /* [type] */
    uint32_t total_used;
    uint32_t rest_batch; /* samples that no pipeline has yet, the open one's included */
    double tail_done_s;  /* synchronisation and optimizer step, at least */

    /* The plan: pipelines, their stages and replicas behind one another. */
    struct het_pipeline *pipelines;
    size_t pipeline_count;
    struct het_stage *stages;
    struct open_stage *open; /* [stage] */
    size_t stage_count;
    struct het_replica *replicas;
    size_t replica_count;
    uint32_t *microbatch; /* [pipeline]: samples */
};

static double limit(const struct walk *walk)
{
    return fmin(het_search_worth(walk->search), walk->pass_limit);
}

/* Whether a plan that takes `seconds` before synchronisation can be left out. */
static bool is_too_slow(struct walk *walk, double seconds)
{
    if (seconds + walk->tail_done_s < limit(walk))
        return false;
    walk->was_limited = true;
    return true;
}

static bool spend(struct walk *walk, uint64_t units)
{
    if (!walk->is_spent && !het_search_spend(walk->search, units))
        walk->is_spent = true;
    return !walk->is_spent;
}

/* Takes effort for `count` nodes or samples that are looked at, whatever comes of it. */
static bool look(struct walk *walk, uint32_t count)
{
    walk->looked += count;
    uint64_t units = walk->looked / LOOKS_A_UNIT;
    walk->looked %= LOOKS_A_UNIT;
    return spend(walk, units);
}

/* ---- bounds ---- */

/* The header's bound on the last pipeline, as far as it is known. */
static double pipeline_bound(const struct walk *walk)
{
    const struct het_pipeline *pipeline = &walk->pipelines[walk->pipeline_count - 1];
    size_t first = (size_t)(pipeline->stages - walk->stages);
    double count = pipeline->microbatch_count;
    double way_s = 0, before_s = 0, largest_s = 0;
    for (size_t s = first; s < walk->stage_count; s++) {
        const struct open_stage *stage = &walk->open[s];
        double compute_s = stage->forward_s + stage->backward_s;
        double busy_s = count * (compute_s + 2 * stage->send_s) +
                        (count - 1) * 2 * before_s;
        largest_s = fmax(largest_s, way_s + busy_s);
        way_s += compute_s + 2 * stage->send_s;
        before_s = stage->send_s;
    }
    const struct het_stage *last = &walk->stages[walk->stage_count - 1];
    return fmax(largest_s, way_s + walk->tail_s[last->first_layer + last->layer_count]);
}

/* Seconds that the free GPUs need at least for all samples of the layers from `layer` on
 * of the open pipeline (`samples` of them), and all layers of the rest. */
static double area_bound(const struct walk *walk, uint32_t layer, uint32_t samples)
{
    const struct het_cluster *cluster = walk->cluster;
    double weights = 0, work = 0;
    double price[HET_MAX_TYPES] = { 0 };
    for (size_t t = 0; t < cluster->type_count; t++) {
        uint32_t have = het_cluster_type_gpu_count(cluster, (uint32_t)t);
        if (have > walk->type_used[t])
            price[t] = walk->weights[t];
        weights += price[t] * (have - walk->type_used[t]);
    }
    uint32_t others = walk->rest_batch - samples;
    for (uint32_t l = others ? 0 : layer; l < walk->layer_count; l++) {
        double least = HUGE_VAL;
        for (size_t t = 0; t < cluster->type_count; t++)
            if (price[t] > 0)
                least =
                    fmin(least, price[t] * walk->layer_floor[t * walk->layer_count + l]);
        work += least * (l < layer ? others : walk->rest_batch);
    }
    if (work <= 0)
        return 0;
    return weights > 0 ? work / weights * (1 - 1e-9) : HUGE_VAL;
}

/* Seconds of synchronisation and optimizer step that more pipelines cannot take away.
 * With measured curves more holders may make better use of a link, and with a distributed
 * optimizer they share the step. */
static double tail_bound(const struct walk *walk, const struct het_plan *plan)
{
    const struct het_problem *problem = walk->problem;
    double sync_s = problem->cluster->network ? 0 : het_cost_sync(problem, plan);
    bool is_sharded = problem->workload->optimizer == HET_ADAM_DISTRIBUTED;
    return sync_s + (is_sharded ? 0 : het_cost_step(problem, plan));
}

/* ---- memory ---- */

/* Whether all replicas of the stage fit, as far as is known: `in_flight` and the holders
 * of its layers are the best case. */
static bool stage_fits(const struct walk *walk, size_t s, uint32_t in_flight,
                       enum het_recompute recompute)
{
    const struct het_stage *stage = &walk->stages[s];
    for (size_t r = 0; r < stage->replica_count; r++) {
        const struct het_replica *replica = &stage->replicas[r];
        const struct het_memory_question question = {
            .type = replica->type,
            .tp = replica->tp,
            .first_layer = stage->first_layer,
            .layer_count = stage->layer_count,
            .samples = replica->microbatch_size,
            .in_flight = in_flight,
            .holders = 2 * het_cluster_gpu_count(walk->cluster),
            .recompute = recompute,
        };
        double bytes = het_memory_replica_bytes(walk->problem, &question);
        if (bytes > het_memory_usable_bytes(walk->problem, replica->type)) {
            if (!walk->search->incumbent)
                het_search_miss(walk->search, replica->type, bytes,
                                "layers %u-%u, tensor-parallel degree %u, micro-batch %u",
                                stage->first_layer,
                                stage->first_layer + stage->layer_count - 1, replica->tp,
                                replica->microbatch_size);
            return false;
        }
    }
    return true;
}

/* Whether selective recomputation was measured for all replicas. */
static bool has_selective(const struct walk *walk, const struct het_stage *stage)
{
    double backward_s;
    for (size_t r = 0; r < stage->replica_count; r++) {
        const struct het_replica *replica = &stage->replicas[r];
        if (!het_profile_selective_s(walk->problem->profile,
                                     walk->problem->profile_type[replica->type],
                                     replica->tp, replica->microbatch_size,
                                     stage->first_layer, stage->layer_count, &backward_s))
            return false;
    }
    return true;
}

/* Notes how stage `s` can fit when `later` stages follow it; false if it cannot. */
static bool find_fit(struct walk *walk, size_t s, uint32_t later)
{
    uint32_t count = walk->pipelines[walk->pipeline_count - 1].microbatch_count;
    uint32_t in_flight = count < later + 1 ? count : later + 1;
    bool *fits = walk->open[s].fits;
    bool may_recompute = !walk->problem->workload->no_recompute;
    fits[HET_RECOMPUTE_NONE] = stage_fits(walk, s, in_flight, HET_RECOMPUTE_NONE);
    fits[HET_RECOMPUTE_FULL] = may_recompute &&
                               stage_fits(walk, s, in_flight, HET_RECOMPUTE_FULL);
    fits[HET_RECOMPUTE_SELECTIVE] =
        may_recompute && has_selective(walk, &walk->stages[s]) &&
        stage_fits(walk, s, in_flight, HET_RECOMPUTE_SELECTIVE);
    return fits[HET_RECOMPUTE_NONE] || fits[HET_RECOMPUTE_SELECTIVE] ||
           fits[HET_RECOMPUTE_FULL];
}

/* ---- whole plans ---- */

/* The job's limits on the data-parallel degree. */
static bool keeps_holder_limits(const struct walk *walk)
{
    const struct het_workload *workload = walk->problem->workload;
    for (uint32_t l = 0; l < walk->layer_count; l++) {
        uint32_t holders = 0;
        for (size_t s = 0; s < walk->stage_count; s++) {
            const struct het_stage *stage = &walk->stages[s];
            if (l >= stage->first_layer && l < stage->first_layer + stage->layer_count)
                holders += (uint32_t)stage->replica_count;
        }
        if (holders < workload->min_data_parallel ||
            (workload->max_data_parallel && holders > workload->max_data_parallel))
            return false;
    }
    return true;
}

static void offer(struct walk *walk)
{
    const struct het_plan plan = { .pipelines = walk->pipelines,
                                   .pipeline_count = walk->pipeline_count };
    walk->search->statistics.strategies_tried++;
    if (spend(walk, 4 + walk->replica_count))
        het_search_offer(walk->search, &plan);
}

/* Offers the plan with every choice of recomputation from stage `s` on. */
static void choose_recompute(struct walk *walk, size_t s)
{
    if (s == walk->stage_count) {
        offer(walk);
        return;
    }
    static const enum het_recompute choices[] = { HET_RECOMPUTE_NONE,
                                                  HET_RECOMPUTE_SELECTIVE,
                                                  HET_RECOMPUTE_FULL };
    for (size_t c = 0; c < sizeof choices / sizeof *choices; c++) {
        if (!walk->open[s].fits[choices[c]])
            continue;
        walk->stages[s].recompute = choices[c];
        choose_recompute(walk, s + 1);
    }
    walk->stages[s].recompute = HET_RECOMPUTE_NONE;
}

/* ---- the walk: pipelines, stages, replicas ---- */

static void try_pipelines(struct walk *walk);
static void try_stages(struct walk *walk, uint32_t first_layer);

/* Whether the last pipeline comes where it must among equal ones: by samples, then
 * micro-batch, then the node of its first replica. */
static bool is_in_order(const struct walk *walk, uint32_t samples, uint32_t size)
{
    if (walk->pipeline_count < 2)
        return true;
    size_t before = walk->pipeline_count - 2;
    uint32_t samples_before = walk->microbatch[before] *
                              walk->pipelines[before].microbatch_count;
    if (samples != samples_before)
        return samples < samples_before;
    return size <= walk->microbatch[before];
}

static bool is_before_its_equal(const struct walk *walk, uint32_t node)
{
    if (walk->pipeline_count < 2)
        return false;
    size_t now = walk->pipeline_count - 1;
    return walk->microbatch[now] == walk->microbatch[now - 1] &&
           walk->pipelines[now].microbatch_count ==
               walk->pipelines[now - 1].microbatch_count &&
           node < walk->pipelines[now - 1].stages[0].replicas[0].node;
}

/* All layers of the last pipeline are there. */
static void close_pipeline(struct walk *walk)
{
    struct het_pipeline *pipeline = &walk->pipelines[walk->pipeline_count - 1];
    size_t first = (size_t)(pipeline->stages - walk->stages);
    pipeline->stage_count = walk->stage_count - first;
    for (size_t s = first; s < walk->stage_count; s++)
        if (!find_fit(walk, s, (uint32_t)(walk->stage_count - s - 1)))
            return;
    double tail_before_s = walk->tail_done_s;
    const struct het_plan plan = { .pipelines = walk->pipelines,
                                   .pipeline_count = walk->pipeline_count };
    walk->tail_done_s = tail_bound(walk, &plan);
    uint32_t samples = walk->microbatch[walk->pipeline_count - 1] *
                       pipeline->microbatch_count;
    walk->rest_batch -= samples;
    double slowest_s = pipeline_bound(walk);
    if (spend(walk, 1 + walk->replica_count) && !is_too_slow(walk, slowest_s) &&
        !is_too_slow(walk, area_bound(walk, walk->layer_count, 0)))
        try_pipelines(walk);
    walk->rest_batch += samples;
    walk->tail_done_s = tail_before_s;
}

/* The micro-batch of the last stage is shared out. */
static void close_stage(struct walk *walk)
{
    const struct het_pipeline *pipeline = &walk->pipelines[walk->pipeline_count - 1];
    size_t at = walk->stage_count - 1, first = (size_t)(pipeline->stages - walk->stages);
    struct het_stage *stage = &walk->stages[at];
    uint32_t end = stage->first_layer + stage->layer_count;
    stage->replica_count = walk->replica_count - walk->open[at].first_replica;
    if (at > first)
        walk->open[at - 1].send_s = het_cost_send(walk->problem, stage - 1, stage);
    uint32_t samples = walk->microbatch[walk->pipeline_count - 1] *
                       pipeline->microbatch_count;
    if (!is_too_slow(walk, pipeline_bound(walk)) &&
        !is_too_slow(walk, area_bound(walk, end, samples)) &&
        find_fit(walk, at, end < walk->layer_count)) {
        if (end == walk->layer_count)
            close_pipeline(walk);
        else
            try_stages(walk, end);
    }
    if (at > first)
        walk->open[at - 1].send_s = 0;
}

/* Whether an equal node that is as free comes before `node`. */
static bool repeats_a_node(const struct walk *walk, uint32_t node)
{
    if (walk->used[node])
        return false;
    for (uint32_t n = 0; n < node; n++)
        if (!walk->used[n] && walk->node_class[n] == walk->node_class[node])
            return true;
    return false;
}

/* Whether the order of replicas in the last stage makes no difference. */
static bool is_unordered(const struct walk *walk)
{
    return walk->cluster->node_count == 1 ||
           walk->stages[walk->stage_count - 1].layer_count == walk->layer_count;
}

static int compare_replicas(const struct het_replica *a, const struct het_replica *b)
{
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    if (a->tp != b->tp)
        return a->tp < b->tp ? -1 : 1;
    if (a->microbatch_size != b->microbatch_size)
        return a->microbatch_size < b->microbatch_size ? -1 : 1;
    return 0;
}

static bool keeps_gpu_limits(const struct walk *walk, uint32_t type, uint32_t more)
{
    const struct het_workload *workload = walk->problem->workload;
    if (workload->max_gpus && walk->total_used + more > workload->max_gpus)
        return false;
    const struct het_type_limit *limit =
        het_workload_find_limit(workload, walk->cluster->types[type].name);
    return !limit || !limit->max_gpus || walk->type_used[type] + more <= limit->max_gpus;
}

static void try_replicas(struct walk *walk, uint32_t rest_samples);

static void count_gpus(struct walk *walk, const struct het_replica *replica, int sign)
{
    uint32_t change = sign > 0 ? replica->tp : -replica->tp;
    walk->used[replica->node] += change;
    walk->type_used[replica->type] += change;
    walk->total_used += change;
}

/* The stage with one more replica, and all that can follow. */
static void add_replica(struct walk *walk, struct het_replica replica,
                        uint32_t rest_samples)
{
    const struct het_problem *problem = walk->problem;
    struct open_stage *open = &walk->open[walk->stage_count - 1];
    const struct het_stage *stage = &walk->stages[walk->stage_count - 1];
    if (is_unordered(walk) && walk->replica_count > open->first_replica &&
        compare_replicas(&replica, &walk->replicas[walk->replica_count - 1]) < 0)
        return;
    double forward_s, backward_s;
    if (!het_workload_allows_microbatch(problem->workload, replica.microbatch_size) ||
        het_profile_times(problem->profile, problem->profile_type[replica.type],
                          replica.tp, replica.microbatch_size, stage->first_layer,
                          stage->layer_count, &forward_s, &backward_s, NULL) < 0)
        return;
    double selective_s;
    if (het_profile_selective_s(problem->profile, problem->profile_type[replica.type],
                                replica.tp, replica.microbatch_size, stage->first_layer,
                                stage->layer_count, &selective_s))
        backward_s = fmin(backward_s, selective_s);
    struct open_stage before = *open;
    open->forward_s = fmax(open->forward_s, forward_s);
    open->backward_s = fmax(open->backward_s, backward_s);
    walk->tried = (walk->tried + 1) % REPLICAS_A_UNIT;
    if (spend(walk, !walk->tried) && !is_too_slow(walk, pipeline_bound(walk))) {
        walk->replicas[walk->replica_count++] = replica;
        count_gpus(walk, &replica, 1);
        try_replicas(walk, rest_samples - replica.microbatch_size);
        count_gpus(walk, &replica, -1);
        walk->replica_count--;
    }
    *open = before;
}

static void try_node(struct walk *walk, uint32_t node, uint32_t rest_samples)
{
    const struct het_node *at = &walk->cluster->nodes[node];
    for (size_t d = 0; d < walk->degree_count; d++) {
        uint32_t tp = walk->degrees[d];
        if (tp > at->gpu_count - walk->used[node] ||
            !keeps_gpu_limits(walk, at->type, tp))
            break;
        for (uint32_t samples = rest_samples; samples && look(walk, 1); samples--)
            add_replica(walk,
                        het_plan_replica(walk->cluster, node,
                                         walk->gpu_ids + walk->used[node], tp, samples),
                        rest_samples);
    }
}

static void try_replicas(struct walk *walk, uint32_t rest_samples)
{
    if (!rest_samples) {
        close_stage(walk);
        return;
    }
    const struct het_pipeline *pipeline = &walk->pipelines[walk->pipeline_count - 1];
    bool is_first = walk->replica_count ==
                        walk->open[walk->stage_count - 1].first_replica &&
                    pipeline->stages == &walk->stages[walk->stage_count - 1];
    for (uint32_t n = 0; n < walk->cluster->node_count && look(walk, 1 + n / 8); n++) {
        if (walk->problem->profile_type[walk->cluster->nodes[n].type] == HET_NO_TYPE ||
            repeats_a_node(walk, n) || (is_first && is_before_its_equal(walk, n)))
            continue;
        try_node(walk, n, rest_samples);
    }
}

static void try_stages(struct walk *walk, uint32_t first_layer)
{
    const struct het_pipeline *pipeline = &walk->pipelines[walk->pipeline_count - 1];
    size_t stage_count = (size_t)(&walk->stages[walk->stage_count] - pipeline->stages);
    uint32_t most = walk->problem->workload->max_pipeline_parallel;
    uint32_t gpus = het_cluster_gpu_count(walk->cluster);
    if ((most && stage_count >= most) || walk->total_used == gpus)
        return;
    for (uint32_t count = walk->layer_count - first_layer; count && !walk->is_spent;
         count--) {
        walk->open[walk->stage_count] =
            (struct open_stage){ .first_replica = walk->replica_count };
        walk->stages[walk->stage_count] =
            (struct het_stage){ .first_layer = first_layer,
                                .layer_count = count,
                                .replicas = walk->replicas + walk->replica_count };
        walk->stage_count++;
        try_replicas(walk, walk->microbatch[walk->pipeline_count - 1]);
        walk->stage_count--;
    }
}

static void try_pipelines(struct walk *walk)
{
    if (!walk->rest_batch) {
        if (keeps_holder_limits(walk))
            choose_recompute(walk, 0);
        return;
    }
    if (walk->total_used == het_cluster_gpu_count(walk->cluster))
        return;
    size_t at = walk->pipeline_count++;
    for (uint32_t size = 1; size <= walk->rest_batch && look(walk, 1); size++)
        for (uint32_t count = 1; count <= walk->rest_batch / size && look(walk, 1);
             count++) {
            if (!is_in_order(walk, count * size, size))
                continue;
            walk->microbatch[at] = size;
            walk->pipelines[at] =
                (struct het_pipeline){ .microbatch_count = count,
                                       .stages = walk->stages + walk->stage_count };
            try_stages(walk, 0);
        }
    walk->pipeline_count--;
}

/* ---- before the walk ---- */

static void find_node_classes(struct walk *walk)
{
    for (uint32_t n = 0; n < walk->cluster->node_count; n++) {
        uint32_t same = 0;
        while (het_node_compare(&walk->cluster->nodes[same], &walk->cluster->nodes[n]))
            same++;
        walk->node_class[n] = same;
    }
}

static void find_degrees(struct walk *walk)
{
    const struct het_profile *profile = walk->problem->profile;
    for (size_t i = 0; i < profile->bytes_count; i++)
        if (het_workload_allows_tensor_parallel(walk->problem->workload,
                                                profile->bytes[i].tp))
            walk->degrees[walk->degree_count++] = profile->bytes[i].tp;
}

/* Least seconds of a layer at a measured point. */
static double least_seconds(const struct het_measurement *m, uint32_t l)
{
    double backward_s = m->backward_s[l + 1] - m->backward_s[l];
    const double *selective = m->selective_backward_s;
    if (selective)
        backward_s = fmin(backward_s, selective[l + 1] - selective[l]);
    return fmax(m->forward_s[l + 1] - m->forward_s[l] + backward_s, 0);
}

/* Least seconds of each layer, for a sample and for a micro-batch. */
static void find_floors(struct walk *walk)
{
    const struct het_profile *profile = walk->problem->profile;
    uint32_t layers = walk->layer_count;
    for (size_t t = 0; t < walk->cluster->type_count; t++)
        for (uint32_t l = 0; l < layers; l++)
            walk->layer_floor[t * layers + l] = HUGE_VAL;
    for (uint32_t l = 0; l < layers; l++) {
        double least = HUGE_VAL;
        for (size_t i = 0; i < profile->measurement_count; i++) {
            const struct het_measurement *m = &profile->measurements[i];
            double seconds = least_seconds(m, l);
            least = fmin(least, seconds);
            for (size_t t = 0; t < walk->cluster->type_count; t++) {
                double *at = &walk->layer_floor[t * layers + l];
                if (walk->problem->profile_type[t] == m->type)
                    *at = fmin(*at, m->tp * seconds / m->microbatch);
            }
        }
        walk->tail_s[l] = least;
    }
    for (uint32_t l = layers; l-- > 0;)
        walk->tail_s[l] += walk->tail_s[l + 1];
    for (size_t t = 0; t < walk->cluster->type_count; t++) {
        double sum = 0;
        for (uint32_t l = 0; l < layers; l++)
            sum += walk->layer_floor[t * layers + l];
        walk->weights[t] = sum > 0 && sum < HUGE_VAL ? 1 / sum : 0;
    }
}

static void walk_init(struct walk *walk, struct het_arena *arena,
                      struct het_search *search)
{
    const struct het_cluster *cluster = search->problem->cluster;
    uint32_t layers = search->problem->profile->layer_count;
    size_t gpus = het_cluster_gpu_count(cluster), types = cluster->type_count;
    *walk = (struct walk){
        .search = search,
        .problem = search->problem,
        .cluster = cluster,
        .layer_count = layers,
        .rest_batch = search->problem->workload->global_batch,
        .node_class = HET_ARENA_ARRAY(arena, uint32_t, cluster->node_count),
        .degrees =
            HET_ARENA_ARRAY(arena, uint32_t, search->problem->profile->bytes_count),
        .gpu_ids = HET_ARENA_ARRAY(arena, uint32_t, gpus),
        .layer_floor = HET_ARENA_ARRAY(arena, double, types *layers),
        .weights = HET_ARENA_ARRAY(arena, double, types),
        .tail_s = HET_ARENA_ARRAY(arena, double, (size_t)layers + 1),
        .used = HET_ARENA_ARRAY(arena, uint32_t, cluster->node_count),
        .type_used = HET_ARENA_ARRAY(arena, uint32_t, types),
        .pipelines = HET_ARENA_ARRAY(arena, struct het_pipeline, gpus),
        .stages = HET_ARENA_ARRAY(arena, struct het_stage, gpus),
        .open = HET_ARENA_ARRAY(arena, struct open_stage, gpus),
        .replicas = HET_ARENA_ARRAY(arena, struct het_replica, gpus),
        .microbatch = HET_ARENA_ARRAY(arena, uint32_t, gpus),
    };
    for (uint32_t i = 0; i < gpus; i++)
        walk->gpu_ids[i] = i;
    find_node_classes(walk);
    find_degrees(walk);
    find_floors(walk);
}

static int exhaustive_run(struct het_search *search, struct het_error *err)
{
    struct het_arena *arena = het_arena_new();
    struct walk walk;
    walk_init(&walk, arena, search);
    double pass_limit = het_bound_floor(search->problem) * PASS_GROWTH;
    for (uint32_t pass = 0; pass <= MAX_LIMITED_PASSES; pass++) {
        walk.pass_limit = pass < MAX_LIMITED_PASSES && pass_limit > 0 ? pass_limit
                                                                      : HUGE_VAL;
        walk.was_limited = false;
        try_pipelines(&walk);
        /* Recomputation may have brought an incumbent that is above the limit. */
        if (walk.is_spent || het_search_worth(search) <= walk.pass_limit ||
            !walk.was_limited)
            break;
        pass_limit *= PASS_GROWTH;
    }
    het_arena_free(arena);
    if (walk.is_spent)
        return het_fail(err, HET_BAD_INPUT,
                        "the input is too large to look at all plans with --effort %llu; "
                        "it is for about 6 GPUs, 6 layers and a batch of 8: take another "
                        "algorithm, or more effort",
                        (unsigned long long)search->effort_spent);
    search->is_optimal = true; /* also that there is no plan */
    return 0;
}

const struct het_algorithm het_algo_exhaustive = {
    .name = "exhaustive",
    .source = "every plan of docs/planner.md, What a plan is",
    .summary = "looks at every plan: for small input, to measure the others by",
    .run = exhaustive_run,
    .is_whole = true,
    .is_apart = true,
    .is_simulated = true,
};
