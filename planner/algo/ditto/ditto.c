#include "planner/algo/ditto/ditto.h"

#include "planner/algo/ditto/equal_gpus.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Cells of one table, before it is taken as it is. */
#define MAX_CELLS         (1u << 22)
#define CELLS_A_UNIT      128u /* theirs: some 5 ns each */
/* Numbers of pipelines: all up to this, then powers of two, three times such, and those
 * that share all types out evenly. */
#define COUNTED_PIPELINES 8u

/* A way to run a stage: `dp` tensor-parallel groups of `tp` GPUs of a type. */
struct way {
    uint32_t type, tp, dp;
    uint32_t samples; /* of the groups that take most */
    uint32_t *ends;   /* as in het_template_kind */
};

struct ditto {
    struct het_search *search;
    const struct het_problem *problem;
    const struct het_cluster *cluster;
    struct het_arena *arena; /* of one attempt */
    bool is_greedy;
    uint32_t layer_count;
    uint32_t *counts;  /* [type]: GPUs that can be used */
    uint32_t *largest; /* [type]: GPUs of its largest node */
    uint32_t *gpus;    /* 0, 1, 2, ... */

    /* One attempt. */
    uint32_t size;           /* samples of a micro-batch */
    uint32_t pipeline_count; /* and their micro-batches, at most: */
    uint32_t microbatch_count;
    struct het_equal_gpus_question question;
    struct way *ways; /* [kind] */
};

/* ---- ways to run a stage ---- */

static bool can_take(const struct ditto *ditto, uint32_t type, uint32_t tp,
                     uint32_t samples)
{
    return het_workload_allows_microbatch(ditto->problem->workload, samples) &&
           het_profile_covers(ditto->problem->profile, ditto->problem->profile_type[type],
                              tp, samples);
}

static bool is_way(const struct ditto *ditto, uint32_t type, uint32_t tp, uint32_t dp)
{
    const struct het_workload *workload = ditto->problem->workload;
    uint64_t holders = (uint64_t)ditto->pipeline_count * dp;
    if (dp > ditto->size || holders < workload->min_data_parallel ||
        (workload->max_data_parallel && holders > workload->max_data_parallel))
        return false;
    uint32_t few = ditto->size / dp, many = few + (ditto->size % dp > 0);
    return can_take(ditto, type, tp, few) && can_take(ditto, type, tp, many);
}

/* Prefix sums over layers of forward and backward. */
static double *layer_seconds(struct ditto *ditto, const struct way *way)
{
    double *seconds =
        HET_ARENA_ARRAY(ditto->arena, double, (size_t)ditto->layer_count + 1);
    for (uint32_t l = 0; l < ditto->layer_count; l++) {
        double forward_s = 0, backward_s = 0;
        het_profile_times(ditto->problem->profile,
                          ditto->problem->profile_type[way->type], way->tp, way->samples,
                          l, 1, &forward_s, &backward_s, NULL);
        seconds[l + 1] = seconds[l] + forward_s + backward_s;
    }
    return seconds;
}

static double needed_bytes(const struct ditto *ditto, const struct way *way,
                           uint32_t first, uint32_t layer_count, uint32_t in_flight)
{
    const struct het_memory_question question = {
        .type = way->type,
        .tp = way->tp,
        .first_layer = first,
        .layer_count = layer_count,
        .samples = way->samples,
        .in_flight = in_flight,
        .holders = ditto->pipeline_count * way->dp,
    };
    return het_memory_replica_bytes(ditto->problem, &question);
}

static void note_miss(struct ditto *ditto, const struct way *way, uint32_t first,
                      uint32_t layer_count, uint32_t in_flight)
{
    if (!ditto->search->incumbent)
        het_search_miss(ditto->search, way->type,
                        needed_bytes(ditto, way, first, layer_count, in_flight),
                        "layers %u-%u, tensor-parallel degree %u, micro-batch %u, %u in "
                        "flight",
                        first, first + layer_count - 1, way->tp, way->samples, in_flight);
}

/* Narrows way->ends to the layers that fit with `in_flight[first]` micro-batches. */
static void narrow(struct ditto *ditto, struct way *way, const uint32_t *in_flight)
{
    double usable_bytes = het_memory_usable_bytes(ditto->problem, way->type);
    uint32_t end = 0;
    for (uint32_t first = 0; first < ditto->layer_count; first++) {
        if (end < first)
            end = first;
        while (end < way->ends[first] && needed_bytes(ditto, way, first, end + 1 - first,
                                                      in_flight[first]) <= usable_bytes)
            end++;
        if (end < way->ends[first])
            way->ends[first] = end;
        else
            end = way->ends[first];
    }
    for (uint32_t first = ditto->layer_count - 1; first-- > 0;)
        if (way->ends[first] > way->ends[first + 1])
            way->ends[first] = way->ends[first + 1];
    het_search_spend(ditto->search, ditto->layer_count / 32 + 1);
}

static void narrow_all(struct ditto *ditto, const uint32_t *in_flight)
{
    for (size_t k = 0; k < ditto->question.kind_count; k++)
        narrow(ditto, &ditto->ways[k], in_flight);
}

static void add_way(struct ditto *ditto, struct het_equal_gpus_kind *kinds,
                    size_t *capacity, uint32_t type, uint32_t tp, uint32_t dp)
{
    size_t count = ditto->question.kind_count;
    if (!is_way(ditto, type, tp, dp) || count == *capacity)
        return;
    struct way *way = &ditto->ways[ditto->question.kind_count++];
    *way = (struct way){ .type = type,
                         .tp = tp,
                         .dp = dp,
                         .samples = (ditto->size + dp - 1) / dp,
                         .ends = HET_ARENA_ARRAY(ditto->arena, uint32_t,
                                                 ditto->layer_count) };
    for (uint32_t l = 0; l < ditto->layer_count; l++)
        way->ends[l] = ditto->layer_count;
    kinds[count] = (struct het_equal_gpus_kind){ .type = type,
                                                 .gpus = tp * dp,
                                                 .seconds = layer_seconds(ditto, way),
                                                 .ends = way->ends };
}

/* All ways of all types, by type, GPUs and degree. */
static void find_ways(struct ditto *ditto)
{
    const struct het_profile *profile = ditto->problem->profile;
    size_t capacity = 0;
    for (uint32_t t = 0; t < ditto->cluster->type_count; t++)
        capacity += ditto->largest[t] * profile->bytes_count;
    struct het_equal_gpus_kind *kinds =
        HET_ARENA_ARRAY(ditto->arena, struct het_equal_gpus_kind, capacity);
    ditto->ways = HET_ARENA_ARRAY(ditto->arena, struct way, capacity);
    ditto->question.kinds = kinds;
    for (uint32_t t = 0; t < ditto->cluster->type_count; t++) {
        uint32_t share = ditto->counts[t] / ditto->pipeline_count;
        for (uint32_t gpus = 1; gpus <= ditto->largest[t] && gpus <= share; gpus++)
            for (size_t i = 0; i < profile->bytes_count; i++) {
                uint32_t tp = profile->bytes[i].tp;
                if (gpus % tp == 0 &&
                    het_workload_allows_tensor_parallel(ditto->problem->workload, tp))
                    add_way(ditto, kinds, &capacity, t, tp, gpus / tp);
            }
    }
    het_search_spend(ditto->search,
                     ditto->question.kind_count * ditto->layer_count / 64 + 1);
}

/* ---- folding ---- */

/* GPU seconds of the whole model on the fewest GPUs of the type; 0: it cannot run it. */
static double whole_model_s(const struct ditto *ditto, uint32_t type)
{
    double best_s = 0;
    uint32_t fewest = 0;
    for (size_t k = 0; k < ditto->question.kind_count; k++) {
        const struct het_equal_gpus_kind *kind = &ditto->question.kinds[k];
        double seconds = kind->seconds[ditto->layer_count] * kind->gpus;
        if (kind->type != type || (fewest && kind->gpus > fewest) ||
            (fewest && seconds >= best_s))
            continue;
        fewest = kind->gpus;
        best_s = seconds;
    }
    return best_s;
}

/* What a layer's output takes to be summed inside a node of the weakest type, forward and
 * backward, and to be sent to another. */
static struct het_equal_gpus_communication communication_of(struct ditto *ditto,
                                                            uint32_t type)
{
    double bytes = 0, link = HUGE_VAL, uplink = HUGE_VAL;
    for (uint32_t l = 0; l < ditto->layer_count; l++)
        bytes += ditto->problem->profile->boundary_bytes[l] * ditto->size;
    bytes /= ditto->layer_count;
    for (uint32_t n = 0; n < ditto->cluster->node_count; n++) {
        const struct het_node *node = &ditto->cluster->nodes[n];
        if (node->type != type || !node->gpu_count)
            continue;
        link = fmin(link, node->intra_bytes_per_s);
        uplink = fmin(uplink, node->uplink_bytes_per_s);
        if (node->flow_bytes_per_s > 0)
            uplink = fmin(uplink, node->flow_bytes_per_s);
    }
    uint32_t most = ditto->largest[type];
    double *inside_s = HET_ARENA_ARRAY(ditto->arena, double, (size_t)most + 1);
    for (uint32_t gpus = 2; gpus <= most; gpus++)
        inside_s[gpus] = 2 * (2 * (gpus - 1.0) / gpus * bytes / link);
    return (struct het_equal_gpus_communication){ .layer_count = ditto->layer_count,
                                                  .node_gpus = most,
                                                  .inside_s = inside_s,
                                                  .across_s = 2 * bytes / uplink };
}

/* False if no type can run the micro-batch. */
static bool fold(struct ditto *ditto)
{
    uint32_t type_count = (uint32_t)ditto->cluster->type_count;
    struct het_equal_gpus_type *types =
        HET_ARENA_ARRAY(ditto->arena, struct het_equal_gpus_type, type_count);
    double *whole_s = HET_ARENA_ARRAY(ditto->arena, double, type_count), weakest_s = 0;
    for (uint32_t t = 0; t < type_count; t++) {
        whole_s[t] = whole_model_s(ditto, t);
        if (whole_s[t] > weakest_s) {
            weakest_s = whole_s[t];
            ditto->question.weakest = t;
        }
    }
    if (weakest_s <= 0)
        return false;
    struct het_equal_gpus_communication communication =
        communication_of(ditto, ditto->question.weakest);
    bool communicates = ditto->search->options->ditto_folding ==
                        HET_DITTO_FOLD_COMMUNICATION;
    for (uint32_t t = 0; t < type_count; t++)
        types[t] = (struct het_equal_gpus_type){
            .gpu_count = whole_s[t] > 0 ? ditto->counts[t] / ditto->pipeline_count : 0,
            .weight = whole_s[t] <= 0 ? 1
                      : communicates  ? het_equal_gpus_weight_with_communication(
                                            weakest_s, whole_s[t], &communication)
                                     : het_equal_gpus_weight(weakest_s, whole_s[t]),
        };
    ditto->question.types = types;
    ditto->question.type_count = type_count;
    return true;
}

/* ---- a template as a plan ---- */

struct builder {
    struct ditto *ditto;
    const struct het_pipeline_template *template;
    uint32_t *used; /* [node] */
    struct het_replica *replicas;
    size_t replica_count;
};

/* The first node of the type with room for `gpus`; the node count if there is none. */
static uint32_t find_node(const struct builder *builder, uint32_t type, uint32_t gpus)
{
    const struct het_cluster *cluster = builder->ditto->cluster;
    uint32_t n = 0;
    while (n < cluster->node_count &&
           (cluster->nodes[n].type != type ||
            cluster->nodes[n].gpu_count - builder->used[n] < gpus))
        n++;
    return n;
}

static void place(struct builder *builder, struct het_replica *replica, uint32_t node,
                  uint32_t tp)
{
    const struct het_cluster *cluster = builder->ditto->cluster;
    replica->node = node;
    replica->node_name = cluster->nodes[node].name;
    replica->gpus = builder->ditto->gpus + builder->used[node];
    replica->tp = tp;
    builder->used[node] += tp;
}

/* Replicas of one stage, on one node if there is room. */
static bool place_stage(struct builder *builder, struct het_replica *replicas,
                        const struct way *way)
{
    uint32_t node = find_node(builder, way->type, way->tp * way->dp);
    bool is_together = node < builder->ditto->cluster->node_count;
    for (uint32_t r = 0; r < way->dp; r++) {
        if (!is_together)
            node = find_node(builder, way->type, way->tp);
        if (node == builder->ditto->cluster->node_count)
            return false;
        place(builder, &replicas[r], node, way->tp);
    }
    return true;
}

/* Replicas of the next stage, in the order of the plan, without a place. */
static struct het_replica *fill_replicas(struct builder *builder, const struct way *way)
{
    struct het_replica *replicas = builder->replicas + builder->replica_count;
    uint32_t size = builder->ditto->size;
    for (uint32_t r = 0; r < way->dp; r++)
        replicas[r] = (struct het_replica){
            .type = way->type,
            .type_name = builder->ditto->cluster->types[way->type].name,
            .microbatch_size = size / way->dp + (r < size % way->dp),
        };
    builder->replica_count += way->dp;
    return replicas;
}

/* Places all stages of all pipelines: in order; or stages of more GPUs first, so that the
 * small ones fill what they leave. */
static bool place_all(struct builder *builder, const struct het_stage *stages,
                      bool large_first)
{
    struct ditto *ditto = builder->ditto;
    const struct het_pipeline_template *template = builder->template;
    uint32_t most = 1;
    for (size_t k = 0; large_first && k < ditto->question.kind_count; k++)
        if (ditto->question.kinds[k].gpus > most)
            most = ditto->question.kinds[k].gpus;
    memset(builder->used, 0, ditto->cluster->node_count * sizeof *builder->used);
    for (uint32_t gpus = most; gpus; gpus--)
        for (uint32_t p = 0; p < ditto->pipeline_count; p++)
            for (uint32_t s = 0; s < template->stage_count; s++) {
                const struct way *way = &ditto->ways[template->stages[s].kind];
                const struct het_stage *stage =
                    &stages[(size_t)p * template->stage_count + s];
                ptrdiff_t first = stage->replicas - builder->replicas;
                if (large_first && way->tp * way->dp != gpus)
                    continue;
                if (!place_stage(builder, builder->replicas + first, way))
                    return false;
            }
    return true;
}

/* NULL: the stages do not go into the nodes. */
static const struct het_plan *build(struct ditto *ditto,
                                    const struct het_pipeline_template *template)
{
    uint32_t stage_count = template->stage_count, groups = 0;
    for (uint32_t s = 0; s < stage_count; s++)
        groups += ditto->ways[template->stages[s].kind].dp;
    struct builder builder = {
        .ditto = ditto,
        .template = template,
        .used = HET_ARENA_ARRAY(ditto->arena, uint32_t, ditto->cluster->node_count),
        .replicas = HET_ARENA_ARRAY(ditto->arena, struct het_replica,
                                    (size_t)groups * ditto->pipeline_count),
    };
    struct het_pipeline *pipelines =
        HET_ARENA_ARRAY(ditto->arena, struct het_pipeline, ditto->pipeline_count);
    struct het_stage *stages = HET_ARENA_ARRAY(
        ditto->arena, struct het_stage, (size_t)stage_count * ditto->pipeline_count);
    uint32_t batches = ditto->problem->workload->global_batch / ditto->size;
    for (uint32_t p = 0; p < ditto->pipeline_count; p++) {
        struct het_stage *first = stages + (size_t)p * stage_count;
        for (uint32_t s = 0; s < stage_count; s++) {
            const struct het_pipeline_template_stage *from = &template->stages[s];
            const struct way *way = &ditto->ways[from->kind];
            first[s] = (struct het_stage){ .first_layer = from->first_layer,
                                           .layer_count = from->layer_count,
                                           .replicas = fill_replicas(&builder, way),
                                           .replica_count = way->dp };
        }
        pipelines[p] = (struct het_pipeline){
            .microbatch_count = batches / ditto->pipeline_count +
                                (p < batches % ditto->pipeline_count),
            .stages = first,
            .stage_count = stage_count,
        };
    }
    if (!place_all(&builder, stages, false) && !place_all(&builder, stages, true))
        return NULL;
    struct het_plan *plan = het_arena_alloc(ditto->arena, sizeof *plan);
    *plan = (struct het_plan){ .pipelines = pipelines,
                               .pipeline_count = ditto->pipeline_count };
    return plan;
}

/* ---- search ---- */

static uint32_t in_flight_of(const struct ditto *ditto,
                             const struct het_pipeline_template *template, uint32_t stage)
{
    uint32_t behind = template->stage_count - stage;
    return behind < ditto->microbatch_count ? behind : ditto->microbatch_count;
}

/* Whether all stages fit; if not, notes the worst. `in_flight[layer]` rises to what the
 * template has there. */
static bool fits(struct ditto *ditto, const struct het_pipeline_template *template,
                 uint32_t *in_flight)
{
    double worst = 0;
    uint32_t worst_stage = 0;
    for (uint32_t s = 0; s < template->stage_count; s++) {
        const struct het_pipeline_template_stage *stage = &template->stages[s];
        const struct way *way = &ditto->ways[stage->kind];
        uint32_t count = in_flight_of(ditto, template, s);
        double share =
            needed_bytes(ditto, way, stage->first_layer, stage->layer_count, count) /
            het_memory_usable_bytes(ditto->problem, way->type);
        if (share > worst) {
            worst = share;
            worst_stage = s;
        }
        for (uint32_t l = stage->first_layer; l < stage->first_layer + stage->layer_count;
             l++)
            if (in_flight[l] < count)
                in_flight[l] = count;
    }
    const struct het_pipeline_template_stage *stage = &template->stages[worst_stage];
    if (worst > 1)
        note_miss(ditto, &ditto->ways[stage->kind], stage->first_layer,
                  stage->layer_count, in_flight_of(ditto, template, worst_stage));
    return worst <= 1;
}

/* Seconds that no stage may take if the plan is to be better than the best so far: an
 * iteration takes all layers once, and the slowest stage m - 1 times more. 0: any. */
static double pace(const struct ditto *ditto)
{
    double worth_s = het_search_worth(ditto->search), floor_s = 0;
    if (worth_s == HUGE_VAL || ditto->microbatch_count < 2)
        return 0;
    for (uint32_t l = 0; l < ditto->layer_count; l++) {
        double least_s = HUGE_VAL;
        for (size_t k = 0; k < ditto->question.kind_count; k++)
            least_s = fmin(least_s, ditto->question.kinds[k].seconds[l + 1] -
                                        ditto->question.kinds[k].seconds[l]);
        floor_s += least_s;
    }
    return fmax((worth_s - floor_s) / (ditto->microbatch_count - 1), DBL_MIN);
}

static bool make_template(struct ditto *ditto, struct het_pipeline_template *ret)
{
    struct het_search *search = ditto->search;
    bool found;
    uint64_t cells = 0, room = search->effort_left * CELLS_A_UNIT / 4 + 1;
    ditto->question.pace_s = pace(ditto);
    ditto->question.cell_limit = room < MAX_CELLS ? room : MAX_CELLS;
    if (ditto->is_greedy)
        found =
            het_equal_gpus_recover_greedily(ditto->arena, &ditto->question, ret, &cells);
    else if (search->options->ditto_folding == HET_DITTO_FOLD_NONE)
        found = het_equal_gpus_extend(ditto->arena, &ditto->question, ret, &cells);
    else
        found = het_equal_gpus_recover(ditto->arena, &ditto->question, ret, &cells);
    search->statistics.strategies_tried++;
    search->statistics.partitions_failed += !found;
    het_search_spend(search, cells / CELLS_A_UNIT + 1);
    return found;
}

/* Makes templates until one fits. */
static void recover(struct ditto *ditto)
{
    uint32_t *in_flight = HET_ARENA_ARRAY(ditto->arena, uint32_t, ditto->layer_count);
    for (uint32_t round = 0; round < HET_DITTO_MAX_ROUNDS; round++) {
        struct het_pipeline_template template;
        if (!ditto->search->effort_left || !make_template(ditto, &template))
            return;
        if (fits(ditto, &template, in_flight)) {
            const struct het_plan *plan = build(ditto, &template);
            if (plan)
                het_search_offer(ditto->search, plan);
            return;
        }
        narrow_all(ditto, in_flight);
    }
}

static void try_one(struct ditto *ditto, uint32_t size, uint32_t pipeline_count)
{
    const struct het_workload *workload = ditto->problem->workload;
    uint32_t batches = workload->global_batch / size;
    ditto->arena = het_arena_new();
    ditto->size = size;
    ditto->pipeline_count = pipeline_count;
    ditto->microbatch_count = (batches + pipeline_count - 1) / pipeline_count;
    ditto->question = (struct het_equal_gpus_question){
        .layer_count = ditto->layer_count,
        .stage_limit = workload->max_pipeline_parallel,
    };
    find_ways(ditto);
    if (fold(ditto)) {
        uint64_t stages = 0;
        for (size_t t = 0; t < ditto->question.type_count; t++)
            stages += ditto->question.types[t].gpu_count;
        if (stages > ditto->layer_count)
            stages = ditto->layer_count;
        ditto->question.microbatch_count =
            ditto->microbatch_count > stages ? ditto->microbatch_count : (uint32_t)stages;
        recover(ditto);
    }
    het_arena_free(ditto->arena);
}

/* Whether the cluster is tried as so many pipelines. */
static bool is_number(const struct ditto *ditto, uint32_t number)
{
    bool is_even = true;
    for (size_t t = 0; t < ditto->cluster->type_count; t++)
        is_even &= ditto->counts[t] % number == 0;
    uint32_t half = number % 3 ? number : number / 3;
    return is_even || number <= COUNTED_PIPELINES || !(half & (half - 1));
}

static void count_gpus(struct ditto *ditto, struct het_arena *arena)
{
    const struct het_cluster *cluster = ditto->cluster;
    uint32_t largest = 0;
    ditto->counts = HET_ARENA_ARRAY(arena, uint32_t, cluster->type_count);
    ditto->largest = HET_ARENA_ARRAY(arena, uint32_t, cluster->type_count);
    for (size_t n = 0; n < cluster->node_count; n++) {
        const struct het_node *node = &cluster->nodes[n];
        if (ditto->problem->profile_type[node->type] == HET_NO_TYPE)
            continue;
        ditto->counts[node->type] += node->gpu_count;
        if (node->gpu_count > ditto->largest[node->type])
            ditto->largest[node->type] = node->gpu_count;
        if (node->gpu_count > largest)
            largest = node->gpu_count;
    }
    ditto->gpus = HET_ARENA_ARRAY(arena, uint32_t, largest);
    for (uint32_t i = 0; i < largest; i++)
        ditto->gpus[i] = i;
}

/* The most samples that a stage on one node can take. */
static uint64_t largest_size(const struct ditto *ditto)
{
    const struct het_profile *profile = ditto->problem->profile;
    uint64_t most = 0;
    for (uint32_t t = 0; t < ditto->cluster->type_count; t++)
        for (size_t i = 0; i < profile->bytes_count; i++) {
            uint32_t tp = profile->bytes[i].tp, type = ditto->problem->profile_type[t];
            if (type == HET_NO_TYPE)
                continue;
            uint64_t size = (uint64_t)(ditto->largest[t] / tp) *
                            het_profile_max_microbatch(profile, type, tp);
            if (size > most)
                most = size;
        }
    return most;
}

/* Numbers of pipelines: one, as in the paper; then the many small ones first, whose
 * tables are small. */
static size_t pipeline_numbers(const struct ditto *ditto, struct het_arena *arena,
                               uint32_t **ret)
{
    uint32_t most = het_cluster_gpu_count(ditto->cluster);
    uint32_t batch = ditto->problem->workload->global_batch;
    size_t count = 0;
    if (batch < most)
        most = batch;
    for (uint32_t number = 1; number <= most; number++)
        count += is_number(ditto, number);
    *ret = HET_ARENA_ARRAY(arena, uint32_t, count);
    size_t at = 0;
    for (uint32_t number = 1; number <= most; number++)
        if (is_number(ditto, number))
            (*ret)[at++ ? count - at + 1 : 0] = number;
    return count;
}

static int run(struct het_search *search, bool is_greedy)
{
    struct het_arena *arena = het_arena_new();
    struct ditto ditto = { .search = search,
                           .problem = search->problem,
                           .cluster = search->available,
                           .is_greedy = is_greedy,
                           .layer_count = search->problem->profile->layer_count };
    count_gpus(&ditto, arena);
    uint32_t *numbers, batch = search->problem->workload->global_batch;
    size_t count = pipeline_numbers(&ditto, arena, &numbers);
    uint64_t largest = largest_size(&ditto);
    for (size_t i = 0; i < count; i++)
        for (uint32_t size = 1; size <= batch / numbers[i] && size <= largest; size++)
            if (batch % size == 0 && het_search_spend(search, 1))
                try_one(&ditto, size, numbers[i]);
    het_arena_free(arena);
    return 0;
}

static int ditto_run(struct het_search *search, struct het_error *err)
{
    (void)err;
    return run(search, false);
}

static int greedy_run(struct het_search *search, struct het_error *err)
{
    (void)err;
    return run(search, true);
}

const struct het_algorithm het_algo_ditto = {
    .name = "ditto",
    .source = "Ditto (2024), sections 3, 5 and 6.2",
    .summary = "a pipeline for as many equal, weakest GPUs, its stages given to the real "
               "ones by dynamic program",
    .run = ditto_run,
};

const struct het_algorithm het_algo_ditto_greedy = {
    .name = "ditto-greedy",
    .source = "Ditto (2024), sections 5 and 6.1",
    .summary = "as ditto, the strongest GPUs taking what helps most, one stage at a time",
    .run = greedy_run,
};
