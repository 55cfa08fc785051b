#include "planner/algo/optimal/optimal.h"

#include "planner/algo/optimal/build_plan.h"
#include "planner/algo/optimal/local_search.h"
#include "planner/algo/optimal/shape_neighbour.h"
#include "planner/cost/bound.h"
#include "planner/cost/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Cells whose neighbours are looked at, at most. */
#define MAX_USED 16u

struct optimal {
    struct het_search *search;
    struct het_arena *arena;
    struct het_node_classes inventory;
    struct het_shape_catalog catalog;
    double floor_s; /* no plan is faster */
    /* Cells of the plans offered, and the most that the last one's nodes synchronise. */
    const struct het_pipeline_shape *used[MAX_USED];
    uint32_t used_count;
    double used_sync_s;
};

/* ---- one rung of the ladder ---- */

/* Limits on the gradients and the optimizer. */
struct rung {
    double sync_s, step_s;
};

/* Splits that one unit of effort pays for. */
#define SPLITS_A_UNIT 256u

static bool is_enough(struct optimal *optimal, const struct rung *rung, double pipeline_s)
{
    const struct het_shape_count_budget budget = { pipeline_s, rung->sync_s,
                                                   rung->step_s };
    struct het_arena *arena = het_arena_new();
    struct het_shape_count mixture;
    bool enough = het_shape_count_find(&optimal->catalog, arena, &budget,
                                       optimal->search->problem->workload->global_batch,
                                       &mixture);
    het_arena_free(arena);
    return enough;
}

static bool can_go_on(struct optimal *optimal)
{
    return het_search_spend(optimal->search,
                            1 + optimal->catalog.split_count / SPLITS_A_UNIT);
}

/* What a rung says is too high by the rounding of its limits, and as rings over few
 * holders send less than twice their bytes: plans are priced up to this above the best.
 */
#define SLACK 1.03

/* Relative precision of the bisection. */
#define PRECISION 2e-4

/* Most doublings of the floor before a rung is given up. */
#define MAX_DOUBLINGS 40

/* The least pipeline seconds that are enough, below `worth_s`; HUGE_VAL: none. */
static double find_least(struct optimal *optimal, const struct rung *rung, double worth_s)
{
    double low = fmax(optimal->floor_s - rung->sync_s - rung->step_s, 0), high = worth_s;
    if (worth_s >= HUGE_VAL) {
        high = fmax(optimal->floor_s, 1e-9);
        for (int i = 0; i < MAX_DOUBLINGS && !is_enough(optimal, rung, high); i++) {
            low = high;
            high *= 2;
        }
    }
    if (high <= low || !is_enough(optimal, rung, high))
        return HUGE_VAL;
    while (high - low > high * PRECISION && can_go_on(optimal)) {
        double middle = (low + high) / 2;
        if (is_enough(optimal, rung, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* Rounds in which the simulation corrects the closed form; micro-batches and tasks. */
#define MAX_CORRECTIONS 12
#define MAX_SIMULATED   256u
#define TASKS_A_UNIT    4u

/* Where the batch does not come out, a little more time is given this often. */
#define MAX_SLACKS 6

/* Remembers the cells of a mixture, and what it takes of the rung's limit. */
static void note_used(struct optimal *optimal, const struct het_shape_count *mixture)
{
    optimal->used_sync_s = 0;
    for (uint32_t g = 0; g < mixture->group_count; g++)
        for (uint32_t s = 0; s < mixture->groups[g].split_count; s++) {
            const struct het_pipeline_shape *cell = mixture->groups[g].splits[s]->cell;
            optimal->used_sync_s =
                fmax(optimal->used_sync_s, mixture->groups[g].splits[s]->sync_s);
            bool is_new = optimal->used_count < MAX_USED;
            for (uint32_t i = 0; i < optimal->used_count; i++)
                is_new = is_new && optimal->used[i] != cell;
            if (is_new)
                optimal->used[optimal->used_count++] = cell;
        }
}

static void offer_rung(struct optimal *optimal, const struct rung *rung,
                       double pipeline_s)
{
    uint64_t batch = optimal->search->problem->workload->global_batch;
    for (int i = 0; i < MAX_SLACKS; i++) {
        const struct het_shape_count_budget budget = { pipeline_s, rung->sync_s,
                                                       rung->step_s };
        struct het_arena *arena = het_arena_new();
        struct het_shape_count mixture;
        const struct het_plan *plan = NULL;
        if (het_shape_count_find(&optimal->catalog, arena, &budget, batch, &mixture))
            plan = het_build_plan(&optimal->catalog, arena, &mixture, pipeline_s, batch);
        struct het_violations violations = { 0 };
        if (plan && !het_plan_check(arena, optimal->search->problem, plan, &violations)) {
            het_search_offer(optimal->search, plan);
            note_used(optimal, &mixture);
        }
        het_arena_free(arena);
        if (plan)
            return;
        pipeline_s *= 1 + 2e-3 * (1 << i);
    }
}

/* Simulates the pipelines that would be used in the time found, those that have not been
 * yet; whether any takes longer than was thought. */
static bool was_too_hopeful(struct optimal *optimal, const struct rung *rung,
                            double pipeline_s)
{
    const struct het_shape_count_budget budget = { pipeline_s, rung->sync_s,
                                                   rung->step_s };
    struct het_shape_catalog *catalog = &optimal->catalog;
    struct het_arena *arena = het_arena_new();
    struct het_shape_count mixture;
    bool was = false;
    if (!het_shape_count_find(catalog, arena, &budget,
                              optimal->search->problem->workload->global_batch, &mixture))
        mixture.group_count = 0;
    for (uint32_t g = 0; g < mixture.group_count; g++)
        for (uint32_t s = 0; s < mixture.groups[g].split_count; s++) {
            const struct het_pipeline_shape_split *split = mixture.groups[g].splits[s];
            uint32_t count = het_pipeline_shape_split_microbatches(split, pipeline_s);
            if (split->is_simulated)
                continue;
            het_search_spend(optimal->search,
                             1 + (uint64_t)split->cell->stage_count *
                                     (count < MAX_SIMULATED ? count : MAX_SIMULATED) /
                                     TASKS_A_UNIT);
            was |= het_build_plan_simulate(catalog,
                                           &catalog->splits[split - catalog->splits],
                                           count < MAX_SIMULATED ? count : MAX_SIMULATED);
        }
    het_arena_free(arena);
    return was;
}

static void try_rung(struct optimal *optimal, const struct rung *rung)
{
    for (int round = 0; round < MAX_CORRECTIONS; round++) {
        double worth = het_search_worth(optimal->search) * SLACK;
        double pipeline_s =
            find_least(optimal, rung, worth - rung->sync_s - rung->step_s);
        if (pipeline_s >= HUGE_VAL)
            return;
        if (round + 1 < MAX_CORRECTIONS && was_too_hopeful(optimal, rung, pipeline_s))
            continue;
        offer_rung(optimal, rung, pipeline_s);
        return;
    }
}

/* ---- the ladder ---- */

static int compare_seconds(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Distinct values of a field of all splits, falling, at most `most`, spread over them. */
static size_t find_values(const struct optimal *optimal, bool is_step, size_t most,
                          double *ret)
{
    const struct het_shape_catalog *catalog = &optimal->catalog;
    auto_free double *values = xcalloc(catalog->split_count + 1, sizeof *values);
    size_t distinct = 0;
    for (size_t i = 0; i < catalog->split_count; i++)
        values[i] = is_step ? catalog->splits[i].step_s : catalog->splits[i].sync_s;
    qsort(values, catalog->split_count, sizeof *values, compare_seconds);
    /* Values within 1 % are one: the largest of them. */
    for (size_t i = 0; i < catalog->split_count; i++) {
        if (distinct && values[i] <= values[distinct - 1] * 1.01 + 1e-9)
            values[distinct - 1] = fmax(values[distinct - 1], values[i]);
        else
            values[distinct++] = values[i];
    }
    size_t count = distinct < most ? distinct : most;
    for (size_t i = 0; i < count; i++)
        ret[i] =
            values[distinct - 1 - (count > 1 ? i * (distinct - 1) / (count - 1) : 0)];
    return count;
}

#define MAX_SYNC_RUNGS 64
#define MAX_STEP_RUNGS 4

static void climb(struct optimal *optimal)
{
    double syncs[MAX_SYNC_RUNGS], steps[MAX_STEP_RUNGS];
    size_t sync_count = find_values(optimal, false, MAX_SYNC_RUNGS, syncs);
    size_t step_count = find_values(optimal, true, MAX_STEP_RUNGS, steps);
    for (size_t j = 0; j < step_count; j++) {
        double limit_s = HUGE_VAL; /* as good with this as with more */
        for (size_t i = 0; i < sync_count; i++) {
            const struct rung rung = { syncs[i], steps[j] };
            if (syncs[i] >= limit_s)
                continue;
            if (!can_go_on(optimal))
                return;
            optimal->used_sync_s = HUGE_VAL;
            try_rung(optimal, &rung);
            limit_s = optimal->used_sync_s;
        }
    }
}

/* ---- cells like those of the best plan ---- */

#define MAX_REFINEMENTS 6
/* Refining has this part of the effort. */
#define REFINE_SHARE    8u

/* Adds the neighbours of the cells used last, as long as the plan gets better. */
static void refine(struct optimal *optimal, uint64_t effort)
{
    for (int round = 0; round < MAX_REFINEMENTS && optimal->used_count; round++) {
        const struct het_pipeline_shape *used[MAX_USED];
        uint32_t count = optimal->used_count;
        memcpy(used, optimal->used, sizeof used);
        optimal->used_count = 0;
        for (uint32_t i = 0; i < count; i++)
            het_shape_neighbour_add(&optimal->catalog, used[i],
                                    effort / MAX_REFINEMENTS / count);
        climb(optimal);
    }
    optimal->used_count = 0;
}

/* ---- the whole cluster, and single nodes of it ---- */

static void plan_inventory(struct optimal *optimal, struct het_stage_table *table,
                           uint64_t effort)
{
    het_shape_catalog_init(&optimal->catalog, optimal->search, &optimal->inventory, table,
                           optimal->arena);
    bool (*const fills[])(struct het_shape_catalog *,
                          uint64_t) = { het_shape_catalog_fill_nodes,
                                        het_shape_catalog_fill_chains,
                                        het_shape_catalog_fill_mixed };
    size_t fill_count = optimal->inventory.node_count > 1 ? 3 : 1;
    for (size_t i = 0; i < fill_count; i++) {
        if (!fills[i](&optimal->catalog, effort / 4))
            optimal->search->has_run_out = true;
        climb(optimal);
    }
    refine(optimal, effort / REFINE_SHARE);
    het_shape_catalog_fini(&optimal->catalog);
}

/* The floor of a single node of the class. */
static double node_floor(const struct optimal *optimal, struct het_arena *arena,
                         const struct het_node_class *class)
{
    struct het_cluster cluster = *optimal->search->problem->cluster;
    struct het_problem problem = *optimal->search->problem;
    struct het_node *node = het_arena_alloc(arena, sizeof *node);
    *node = cluster.nodes[class->nodes[0]];
    cluster.nodes = node;
    cluster.node_count = 1;
    problem.cluster = &cluster;
    return het_bound_floor(&problem);
}

/* A plan inside a node sends nothing over uplinks: with slow ones, that can be best. */
static void plan_single_nodes(struct optimal *optimal, struct het_stage_table *table,
                              uint64_t effort)
{
    const struct het_node_classes whole = optimal->inventory;
    for (uint32_t c = 0; c < whole.class_count && whole.node_count > 1; c++) {
        struct het_node_class class = whole.classes[c];
        class.node_count = 1;
        optimal->inventory = (struct het_node_classes){ .classes = &class,
                                                        .class_count = 1,
                                                        .node_count = 1 };
        optimal->floor_s = node_floor(optimal, optimal->arena, &class);
        if (optimal->floor_s < het_search_worth(optimal->search))
            plan_inventory(optimal, table, effort / whole.class_count);
    }
    optimal->inventory = whole;
}

/* The polish has this part of the effort. */
#define POLISH_SHARE 8u

/* Seeds that are slower than the best plan by more than this are not polished. */
#define SEED_REACH 1.03

/* The best plan, and the plans that the others came to: where they are polished to may be
 * better, though the way there is not. */
static void polish_all(struct optimal *optimal, struct het_stage_table *table,
                       uint64_t effort)
{
    struct het_search *search = optimal->search;
    het_local_search(search, table, optimal->arena, search->incumbent, effort / 2);
    const struct het_plan *best = search->incumbent;
    struct het_cost best_cost = search->incumbent_cost;
    for (size_t i = 0; i < search->seed_count; i++) {
        if (search->seed_s[i] > best_cost.iteration_s * SEED_REACH ||
            het_schedule_simulate(NULL, search->problem, search->seeds[i],
                                  &search->incumbent_cost, NULL, NULL) < 0)
            continue;
        search->incumbent = search->seeds[i];
        het_local_search(search, table, optimal->arena, search->incumbent,
                         effort / 2 / search->seed_count);
        if (search->incumbent_cost.iteration_s < best_cost.iteration_s) {
            best = search->incumbent;
            best_cost = search->incumbent_cost;
        }
    }
    search->incumbent = best;
    search->incumbent_cost = best_cost;
}

static int run_optimal(struct het_search *search, struct het_error *err)
{
    (void)err;
    struct optimal optimal = { .search = search, .arena = het_arena_new() };
    struct het_stage_table *table = het_stage_table_new(search->problem);
    uint64_t effort = search->effort_left;
    optimal.inventory =
        het_node_classes_of(optimal.arena, search->problem, search->available);
    optimal.floor_s = het_bound_floor(search->problem);
    if (optimal.inventory.class_count) {
        plan_inventory(&optimal, table, effort);
        plan_single_nodes(&optimal, table, effort / 4);
    }
    if (search->incumbent)
        polish_all(&optimal, table, effort / POLISH_SHARE);
    het_stage_table_free(table);
    het_arena_free(optimal.arena);
    return 0;
}

const struct het_algorithm het_algo_optimal = {
    .name = "optimal",
    .source = "docs/planner.md, optimal",
    .summary = "asymmetric pipelines of like bricks, counted by a linear program",
    .is_whole = true,
    .starts_from_others = true,
    .is_simulated = true,
    .run = run_optimal,
};
