#include "planner/algo/megatron.h"

/* A tensor-parallel group that a node has room for. */
struct place {
    uint32_t node, first_gpu;
};

struct megatron {
    struct het_search *search;
    const struct het_cluster *cluster;
    uint32_t layer_count, gpu_count, smallest_node;
    bool is_free;         /* its candidates are looked at even without effort */
    struct place *places; /* [gpu_count] for the degree at hand */
    uint32_t place_count;
    uint32_t *gpus; /* 0, 1, 2, ... */
    struct het_replica *replicas;
    struct het_stage *stages;
};

/* Micro-batches of `size` samples, in a grid of tp x pp x dp. */
struct grid {
    uint32_t size, tp, pp, dp;
};

static bool is_used(const struct megatron *megatron, const struct het_node *node)
{
    return node->gpu_count &&
           megatron->search->problem->profile_type[node->type] != HET_NO_TYPE;
}

static void find_places(struct megatron *megatron, uint32_t tp)
{
    megatron->place_count = 0;
    for (uint32_t n = 0; n < megatron->cluster->node_count; n++) {
        const struct het_node *node = &megatron->cluster->nodes[n];
        for (uint32_t gpu = 0; is_used(megatron, node) && gpu + tp <= node->gpu_count;
             gpu += tp)
            megatron->places[megatron->place_count++] = (struct place){ n, gpu };
    }
}

/* Whether all types are profiled with this degree and micro-batch. */
static bool is_profiled(const struct megatron *megatron, uint32_t tp, uint32_t size)
{
    const struct het_problem *problem = megatron->search->problem;
    if (!het_workload_allows_tensor_parallel(problem->workload, tp) ||
        !het_workload_allows_microbatch(problem->workload, size))
        return false;
    for (size_t n = 0; n < megatron->cluster->node_count; n++) {
        const struct het_node *node = &megatron->cluster->nodes[n];
        if (is_used(megatron, node) &&
            !het_profile_covers(problem->profile, problem->profile_type[node->type], tp,
                                size))
            return false;
    }
    return true;
}

/* The largest dp with whole micro-batches; 0 if there is none. */
static uint32_t find_dp(const struct megatron *megatron, const struct grid *grid)
{
    const struct het_workload *workload = megatron->search->problem->workload;
    uint32_t batches = workload->global_batch / grid->size;
    uint32_t dp = megatron->place_count / grid->pp;
    if (workload->max_data_parallel && dp > workload->max_data_parallel)
        dp = workload->max_data_parallel;
    while (dp && batches % dp)
        dp--;
    return dp >= workload->min_data_parallel ? dp : 0;
}

static struct het_plan make_plan(struct megatron *megatron, const struct grid *grid,
                                 struct het_pipeline *pipeline)
{
    const struct het_cluster *cluster = megatron->cluster;
    for (uint32_t i = 0; i < grid->pp * grid->dp; i++) {
        const struct place *place = &megatron->places[i];
        megatron->replicas[i] = het_plan_replica(cluster, place->node,
                                                 megatron->gpus + place->first_gpu,
                                                 grid->tp, grid->size);
    }
    uint32_t first = 0;
    for (uint32_t s = 0; s < grid->pp; s++) {
        uint32_t count = het_runtime_even_layers(megatron->layer_count, grid->pp, s);
        megatron->stages[s] = (struct het_stage){
            .first_layer = first,
            .layer_count = count,
            .replicas = megatron->replicas + (size_t)s * grid->dp,
            .replica_count = grid->dp,
        };
        first += count;
    }
    uint32_t global_batch = megatron->search->problem->workload->global_batch;
    *pipeline = (struct het_pipeline){
        .microbatch_count = global_batch / grid->size / grid->dp,
        .stages = megatron->stages,
        .stage_count = grid->pp,
    };
    return (struct het_plan){ .pipelines = pipeline, .pipeline_count = 1 };
}

static void note_miss(struct het_search *search, const struct het_plan *plan,
                      const struct het_peak_memory *peak)
{
    const struct het_stage *stage = &plan->pipelines[0].stages[peak->stage];
    const struct het_replica *replica = &stage->replicas[peak->replica];
    het_search_miss(search, replica->type, (double)peak->bytes,
                    "layers %u-%u, tensor-parallel degree %u, micro-batch %u",
                    stage->first_layer, stage->first_layer + stage->layer_count - 1,
                    replica->tp, replica->microbatch_size);
}

/* Notes the worst replica of a plan that does not fit. */
static bool fits(struct megatron *megatron, const struct het_plan *plan)
{
    struct het_search *search = megatron->search;
    struct het_arena *arena = het_arena_new();
    struct het_peak_memory *peaks;
    size_t peak_count, worst = 0;
    bool fits = !het_memory_plan(arena, search->problem, plan, &peaks, &peak_count, NULL);
    for (size_t i = 1; i < peak_count; i++)
        if ((double)peaks[i].bytes * (double)peaks[worst].capacity_bytes >
            (double)peaks[worst].bytes * (double)peaks[i].capacity_bytes)
            worst = i;
    if (!fits && !search->incumbent)
        note_miss(search, plan, &peaks[worst]);
    het_arena_free(arena);
    return fits;
}

/* Offers the grid if it is one and fits. */
static bool try_grid(struct megatron *megatron, struct grid *grid)
{
    if (!is_profiled(megatron, grid->tp, grid->size))
        return false;
    find_places(megatron, grid->tp);
    grid->dp = find_dp(megatron, grid);
    if (!grid->dp)
        return false;
    struct het_pipeline pipeline;
    struct het_plan plan = make_plan(megatron, grid, &pipeline);
    megatron->search->statistics.strategies_tried++;
    het_search_spend(megatron->search,
                     megatron->gpu_count / HET_EFFORT_REPLICAS_A_UNIT + 1);
    if (!fits(megatron, &plan))
        return false;
    het_search_offer(megatron->search, &plan);
    return true;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The smallest tp x pp that fits with micro-batches of `size`. */
static void try_size(struct megatron *megatron, uint32_t size)
{
    const struct het_workload *workload = megatron->search->problem->workload;
    uint32_t most = megatron->layer_count;
    if (workload->max_pipeline_parallel)
        most = least(most, workload->max_pipeline_parallel);
    for (uint32_t product = 1;
         product <= megatron->gpu_count && product / megatron->smallest_node <= most;
         product++)
        for (uint32_t tp = least(product, megatron->smallest_node); tp; tp--) {
            struct grid grid = { .size = size, .tp = tp, .pp = product / tp };
            if (product % tp || grid.pp > most)
                continue;
            bool has_effort = het_search_spend(megatron->search, 1);
            if ((!has_effort && !megatron->is_free) || try_grid(megatron, &grid))
                return;
        }
}

static void find_extremes(struct megatron *megatron, uint32_t *ret_largest_node,
                          uint32_t *ret_largest_size)
{
    const struct het_problem *problem = megatron->search->problem;
    megatron->smallest_node = UINT32_MAX;
    for (size_t n = 0; n < megatron->cluster->node_count; n++) {
        const struct het_node *node = &megatron->cluster->nodes[n];
        if (!is_used(megatron, node))
            continue;
        megatron->gpu_count += node->gpu_count;
        if (node->gpu_count < megatron->smallest_node)
            megatron->smallest_node = node->gpu_count;
        if (node->gpu_count > *ret_largest_node)
            *ret_largest_node = node->gpu_count;
    }
    for (size_t i = 0; i < problem->profile->measurement_count; i++)
        if (problem->profile->measurements[i].microbatch > *ret_largest_size)
            *ret_largest_size = problem->profile->measurements[i].microbatch;
}

static int megatron_run(struct het_search *search, struct het_error *err)
{
    (void)err;
    struct het_arena *arena = het_arena_new();
    struct megatron megatron = { .search = search,
                                 .cluster = search->available,
                                 .layer_count = search->problem->profile->layer_count,
                                 .is_free = !search->effort_spent };
    uint32_t largest_node = 0, largest_size = 0;
    find_extremes(&megatron, &largest_node, &largest_size);
    megatron.places = HET_ARENA_ARRAY(arena, struct place, megatron.gpu_count);
    megatron.replicas = HET_ARENA_ARRAY(arena, struct het_replica, megatron.gpu_count);
    megatron.stages = HET_ARENA_ARRAY(arena, struct het_stage, megatron.layer_count);
    megatron.gpus = HET_ARENA_ARRAY(arena, uint32_t, largest_node);
    for (uint32_t i = 0; i < largest_node; i++)
        megatron.gpus[i] = i;
    for (uint32_t size = 1; size <= largest_size; size++) {
        uint64_t tried = search->statistics.strategies_tried;
        if (search->problem->workload->global_batch % size == 0)
            try_size(&megatron, size);
        if (search->statistics.strategies_tried > tried)
            megatron.is_free = false;
    }
    het_arena_free(arena);
    return 0;
}

const struct het_algorithm het_algo_megatron = {
    .name = "megatron",
    .source = "AMP (NeurIPS 2022), section 4.1",
    .summary = "the rule of thumb: the smallest tp x pp that fits, tp inside a node, as "
               "many layers in each stage",
    .run = megatron_run,
};
