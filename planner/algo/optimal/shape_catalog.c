#include "planner/algo/optimal/shape_catalog.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void het_shape_catalog_init(struct het_shape_catalog *catalog, struct het_search *search,
                            const struct het_node_classes *inventory,
                            struct het_stage_table *table, struct het_arena *arena)
{
    *catalog = (struct het_shape_catalog){
        .market = { .problem = search->problem,
                    .inventory = inventory,
                    .table = table,
                    .arena = arena },
        .search = search,
    };
    for (uint32_t c = 0; c < inventory->class_count; c++)
        catalog->gpu_count += inventory->classes[c].gpu_count *
                              inventory->classes[c].node_count;
}

void het_shape_catalog_fini(struct het_shape_catalog *catalog)
{
    xfree(catalog->splits);
    xfree(catalog->signatures);
    *catalog = (struct het_shape_catalog){ 0 };
}

static bool spend(struct het_shape_catalog *catalog, uint64_t units)
{
    catalog->spent += units;
    return het_search_spend(catalog->search, units);
}

/* ---- keeping splits ---- */

static uint32_t find_signature(struct het_shape_catalog *catalog,
                               const struct het_pipeline_shape *cell)
{
    struct het_signature signature = { .gpus = cell->gpus, .gpu_class = cell->gpu_class };
    memcpy(signature.nodes, cell->nodes, sizeof signature.nodes);
    for (size_t i = 0; i < catalog->signature_count; i++)
        if (!memcmp(&catalog->signatures[i], &signature, sizeof signature))
            return (uint32_t)i;
    ARRAY_RESERVE(catalog->signatures, &catalog->signature_capacity,
                  catalog->signature_count + 1);
    catalog->signatures[catalog->signature_count] = signature;
    return (uint32_t)catalog->signature_count++;
}

/* Whether `a` is as good as `b` in everything. */
static bool dominates(const struct het_pipeline_shape_split *a,
                      const struct het_pipeline_shape_split *b)
{
    const double slack = 1 + 1e-9;
    return a->signature == b->signature &&
           a->bottleneck_s / a->cell->samples <=
               b->bottleneck_s / b->cell->samples * slack &&
           a->sum_s <= b->sum_s * slack && a->bottleneck_s <= b->bottleneck_s * slack &&
           a->sync_s <= b->sync_s * slack && a->step_s <= b->step_s * slack &&
           a->cell->replicas <= b->cell->replicas;
}

static void keep(struct het_shape_catalog *catalog,
                 const struct het_pipeline_shape_split *split)
{
    size_t kept = 0;
    for (size_t i = 0; i < catalog->split_count; i++)
        if (dominates(&catalog->splits[i], split))
            return;
    for (size_t i = 0; i < catalog->split_count; i++)
        if (!dominates(split, &catalog->splits[i]))
            catalog->splits[kept++] = catalog->splits[i];
    catalog->split_count = kept;
    ARRAY_RESERVE(catalog->splits, &catalog->split_capacity, kept + 1);
    catalog->splits[catalog->split_count++] = *split;
}

/* ---- sizes of micro-batches ---- */

static uint32_t greatest_divisor(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Up to this many GPUs, sizes made of parts are looked at too. */
#define FEW_GPUS 32u

/* Sets the samples of each replica; false if none of them is a measured size. Sizes made
 * of parts are never faster a sample than the best part, and only help a batch to come
 * out where GPUs are few. */
static bool set_samples(const struct het_shape_catalog *catalog,
                        struct het_pipeline_shape *cell, uint32_t samples)
{
    const struct het_problem *problem = catalog->market.problem;
    bool is_measured = catalog->gpu_count <= FEW_GPUS;
    for (uint32_t s = 0; s < cell->stage_count; s++) {
        struct het_pipeline_shape_part *part = &cell->stages[s].parts[0];
        uint32_t type = catalog->market.inventory->classes[part->class].type;
        part->samples = samples / het_pipeline_shape_part_replicas(part);
        is_measured = is_measured ||
                      het_profile_find(problem->profile, problem->profile_type[type],
                                       part->tp, part->samples);
    }
    het_pipeline_shape_count(cell);
    return is_measured;
}

/* The largest micro-batch that the profile has for every stage. */
static uint32_t most_samples(const struct het_shape_catalog *catalog,
                             const struct het_pipeline_shape *cell)
{
    const struct het_problem *problem = catalog->market.problem;
    uint32_t most = problem->workload->global_batch;
    for (uint32_t s = 0; s < cell->stage_count; s++) {
        const struct het_pipeline_shape_part *part = &cell->stages[s].parts[0];
        uint32_t type = catalog->market.inventory->classes[part->class].type;
        uint64_t here = (uint64_t)het_profile_max_microbatch(
                            problem->profile, problem->profile_type[type], part->tp) *
                        het_pipeline_shape_part_replicas(part);
        if (here < most)
            most = (uint32_t)here;
    }
    return most;
}

/* ---- one list of stages ---- */

/* Splits with ever less on the busiest node. */
#define MAX_SYNC_LIMITS 4

static bool add_splits(struct het_shape_catalog *catalog,
                       const struct het_pipeline_shape *pattern, bool *ret_spent)
{
    struct het_pipeline_shape_split splits[HET_LAYER_FRONT_MAX_POINTS];
    struct het_pipeline_shape *cell = NULL;
    double limit = HUGE_VAL;
    int rounds = pattern->gpus || pattern->stage_count == 1 ? 1 : MAX_SYNC_LIMITS;
    for (int round = 0; round < rounds; round++) {
        uint64_t work = 0;
        if (!cell) {
            cell = het_arena_alloc(catalog->market.arena, sizeof *cell);
            *cell = *pattern;
        }
        size_t count =
            het_pipeline_shape_splits(&catalog->market, cell, limit, splits, &work);
        if (!spend(catalog, 1 + work / HET_EFFORT_CELLS_A_UNIT))
            *ret_spent = true;
        uint32_t signature = count ? find_signature(catalog, cell) : 0;
        double least = HUGE_VAL;
        for (size_t i = 0; i < count; i++) {
            splits[i].signature = signature;
            keep(catalog, &splits[i]);
            least = fmin(least, splits[i].sync_s);
        }
        if (!count)
            return round > 0;
        limit = least * 0.93;
    }
    return true;
}

static bool add_sizes(struct het_shape_catalog *catalog,
                      struct het_pipeline_shape *pattern, uint32_t multiple)
{
    static const uint32_t factors[] = { 1,  2,  3,  4,  5,  6,  7,  8,
                                        12, 16, 24, 32, 48, 64, 128 };
    uint32_t most = most_samples(catalog, pattern);
    bool has_any = false, is_spent = false;
    for (size_t i = 0; i < sizeof factors / sizeof *factors && !is_spent; i++) {
        if ((uint64_t)factors[i] * multiple > most)
            break;
        if (!set_samples(catalog, pattern, factors[i] * multiple))
            continue;
        if (!add_splits(catalog, pattern, &is_spent)) {
            if (has_any)
                break;
            continue;
        }
        has_any = true;
    }
    return has_any;
}

static bool is_degree(const struct het_shape_catalog *catalog, uint32_t class,
                      uint32_t tp)
{
    const struct het_problem *problem = catalog->market.problem;
    uint32_t type = catalog->market.inventory->classes[class].type;
    return het_workload_allows_tensor_parallel(problem->workload, tp) &&
           het_profile_max_microbatch(problem->profile, problem->profile_type[type], tp);
}

void het_shape_catalog_add(struct het_shape_catalog *catalog,
                           struct het_pipeline_shape *pattern)
{
    const struct het_workload *workload = catalog->market.problem->workload;
    uint32_t multiple = 1;
    for (uint32_t s = 0; s < pattern->stage_count; s++)
        if (!is_degree(catalog, pattern->stages[s].parts[0].class,
                       pattern->stages[s].parts[0].tp))
            return;
    if (pattern->stage_count > catalog->market.problem->profile->layer_count ||
        (workload->max_pipeline_parallel &&
         pattern->stage_count > workload->max_pipeline_parallel))
        return;
    for (uint32_t s = 0; s < pattern->stage_count; s++) {
        uint32_t replicas =
            het_pipeline_shape_part_replicas(&pattern->stages[s].parts[0]);
        multiple = multiple / greatest_divisor(multiple, replicas) * replicas;
    }
    pattern->recompute = HET_RECOMPUTE_NONE;
    if (add_sizes(catalog, pattern, multiple) || workload->no_recompute)
        return;
    pattern->recompute = HET_RECOMPUTE_FULL;
    add_sizes(catalog, pattern, multiple);
}

/* ---- inside a node ---- */

static void push_stage(struct het_pipeline_shape *cell,
                       struct het_pipeline_shape_part part)
{
    cell->stages[cell->stage_count++] =
        (struct het_pipeline_shape_stage){ .parts = { part }, .part_count = 1 };
}

/* All lists of stages for `left` more GPUs. As several like pipelines are as good as one
 * with more replicas, those whose replica counts share a divisor are left out. */
static void enumerate_stages(struct het_shape_catalog *catalog,
                             struct het_pipeline_shape *cell, uint32_t left,
                             uint64_t effort)
{
    uint32_t divisor = 0;
    if (catalog->spent >= effort)
        return;
    if (!left) {
        for (uint32_t s = 0; s < cell->stage_count; s++)
            divisor = greatest_divisor(
                divisor, het_pipeline_shape_part_replicas(&cell->stages[s].parts[0]));
        if (divisor == 1)
            het_shape_catalog_add(catalog, cell);
        return;
    }
    for (uint32_t gpus = 1; gpus <= left; gpus++)
        for (uint32_t tp = 1; tp <= gpus; tp++) {
            if (gpus % tp || !is_degree(catalog, cell->gpu_class, tp))
                continue;
            push_stage(cell,
                       (struct het_pipeline_shape_part){ .class = cell->gpu_class,
                                                         .node_count = 1,
                                                         .first_gpu = cell->gpus - left,
                                                         .gpu_count = gpus,
                                                         .tp = tp });
            enumerate_stages(catalog, cell, left - gpus, effort);
            cell->stage_count--;
        }
}

static void add_like_stages(struct het_shape_catalog *catalog,
                            struct het_pipeline_shape *cell)
{
    for (uint32_t tp = 1; tp <= cell->gpus; tp++) {
        if (cell->gpus % tp || cell->gpus / tp > HET_PIPELINE_SHAPE_MAX_STAGES ||
            !is_degree(catalog, cell->gpu_class, tp))
            continue;
        for (uint32_t gpu = 0; gpu < cell->gpus; gpu += tp)
            push_stage(cell, (struct het_pipeline_shape_part){ .class = cell->gpu_class,
                                                               .node_count = 1,
                                                               .first_gpu = gpu,
                                                               .gpu_count = tp,
                                                               .tp = tp });
        het_shape_catalog_add(catalog, cell);
        cell->stage_count = 0;
    }
}

bool het_shape_catalog_fill_nodes(struct het_shape_catalog *catalog, uint64_t effort)
{
    const struct het_node_classes *inventory = catalog->market.inventory;
    effort += catalog->spent;
    for (uint32_t gpus = 1; gpus <= HET_SHAPE_CATALOG_MAX_GPUS; gpus++)
        for (uint32_t c = 0; c < inventory->class_count; c++) {
            struct het_pipeline_shape cell = { .gpus = gpus, .gpu_class = c };
            if (gpus > inventory->classes[c].gpu_count)
                continue;
            if (gpus <= HET_SHAPE_CATALOG_MIXED_GPUS)
                enumerate_stages(catalog, &cell, gpus, effort);
            else
                add_like_stages(catalog, &cell);
            if (catalog->spent >= effort)
                return false;
        }
    return true;
}

/* ---- over nodes ---- */

/* `count` nodes of a class, `per_node` stages of degree tp on each; or, `is_wide`, one
 * stage on all of them. */
struct block {
    uint32_t class, first_node, count, per_node, tp;
    bool is_wide;
};

static bool push_block(const struct het_shape_catalog *catalog,
                       struct het_pipeline_shape *cell, const struct block *block)
{
    uint32_t gpus = catalog->market.inventory->classes[block->class].gpu_count;
    uint32_t per_stage = gpus / block->per_node / block->tp * block->tp;
    uint32_t stages = block->is_wide ? 1 : block->count * block->per_node;
    if (!per_stage || cell->stage_count + stages > HET_PIPELINE_SHAPE_MAX_STAGES)
        return false;
    for (uint32_t s = 0; s < stages; s++)
        push_stage(cell,
                   (struct het_pipeline_shape_part){
                       .class = block->class,
                       .first_node = block->first_node +
                                     (block->is_wide ? 0 : s / block->per_node),
                       .node_count = block->is_wide ? block->count : 1,
                       .first_gpu = block->is_wide ? 0 : s % block->per_node * per_stage,
                       .gpu_count = per_stage,
                       .tp = block->tp });
    cell->nodes[block->class] += block->count;
    return true;
}

static void add_blocks(struct het_shape_catalog *catalog, const struct block *blocks,
                       uint32_t count)
{
    struct het_pipeline_shape cell = { 0 };
    for (uint32_t i = 0; i < count; i++) {
        if (!is_degree(catalog, blocks[i].class, blocks[i].tp) ||
            !push_block(catalog, &cell, &blocks[i]))
            return;
    }
    het_shape_catalog_add(catalog, &cell);
}

bool het_shape_catalog_fill_chains(struct het_shape_catalog *catalog, uint64_t effort)
{
    const struct het_node_classes *inventory = catalog->market.inventory;
    effort += catalog->spent;
    for (uint32_t nodes = 2; nodes <= HET_SHAPE_CATALOG_MAX_NODES; nodes++)
        for (uint32_t c = 0; c < inventory->class_count; c++) {
            const struct het_node_class *class = &inventory->classes[c];
            for (uint32_t per_node = 1; nodes <= class->node_count && per_node <= 4 &&
                                        per_node <= class->gpu_count;
                 per_node *= 2)
                for (uint32_t tp = 1; tp <= class->gpu_count / per_node; tp++) {
                    struct block block = { c, 0, nodes, per_node, tp, false };
                    if (catalog->spent >= effort)
                        return false;
                    add_blocks(catalog, &block, 1);
                }
        }
    return true;
}

/* Two classes, in this order: one stage a node, or one for all nodes of the class. */
static bool add_pair(struct het_shape_catalog *catalog, uint32_t a, uint32_t b,
                     uint64_t effort)
{
    const struct het_node_class *classes = catalog->market.inventory->classes;
    for (uint32_t total = 2; total <= 4; total++)
        for (uint32_t of_a = 1; of_a < total; of_a++)
            for (uint32_t shape = 0; shape < (total > 2 ? 2u : 1u); shape++)
                for (uint32_t tp_a = 1; tp_a <= classes[a].gpu_count; tp_a++)
                    for (uint32_t tp_b = 1; tp_b <= classes[b].gpu_count; tp_b++) {
                        uint32_t of_b = total - of_a;
                        const struct block blocks[] = {
                            { a, 0, of_a, 1, tp_a, shape && of_a > 1 },
                            { b, 0, of_b, 1, tp_b, shape && of_b > 1 },
                        };
                        if (catalog->spent >= effort)
                            return false;
                        if (of_a <= classes[a].node_count &&
                            of_b <= classes[b].node_count)
                            add_blocks(catalog, blocks, 2);
                    }
    return true;
}

static bool add_triple(struct het_shape_catalog *catalog, uint32_t a, uint32_t b,
                       uint32_t c, uint64_t effort)
{
    for (uint32_t tp = 1; tp <= 8; tp *= 2) {
        const struct block blocks[] = {
            { a, 0, 1, 1, tp, false },
            { b, 0, 1, 1, tp, false },
            { c, 0, 1, 1, tp, false },
        };
        if (catalog->spent >= effort)
            return false;
        add_blocks(catalog, blocks, 3);
    }
    return true;
}

bool het_shape_catalog_fill_mixed(struct het_shape_catalog *catalog, uint64_t effort)
{
    uint32_t count = catalog->market.inventory->class_count;
    effort += catalog->spent;
    for (uint32_t a = 0; a < count; a++)
        for (uint32_t b = 0; b < count; b++)
            if (a != b && !add_pair(catalog, a, b, effort))
                return false;
    for (uint32_t a = 0; a < count; a++)
        for (uint32_t b = 0; b < count; b++)
            for (uint32_t c = 0; c < count; c++)
                if (a != b && b != c && a != c && !add_triple(catalog, a, b, c, effort))
                    return false;
    return true;
}
