#include "planner/search/search.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* How often the caller hears of the search's progress. */
#define PROGRESS_UNITS 65536u

bool het_search_spend(struct het_search *search, uint64_t units)
{
    if (search->options->stop && *search->options->stop) {
        search->is_cut_short = true;
        search->effort_left = 0;
        return false;
    }
    uint64_t before = search->effort_spent / PROGRESS_UNITS;
    uint64_t taken = units < search->effort_left ? units : search->effort_left;
    search->effort_left -= taken;
    search->effort_spent += taken;
    if (search->options->progress && search->effort_spent / PROGRESS_UNITS != before)
        search->options->progress(search->options->progress_context, search);
    return taken == units;
}

void het_search_settle(struct het_search *search, uint64_t pairs, uint64_t taken)
{
    uint64_t units = pairs / HET_EFFORT_CELLS_A_UNIT;
    if (units > taken)
        het_search_spend(search, units - taken);
}

double het_search_worth(const struct het_search *search)
{
    return search->incumbent ? search->incumbent_cost.iteration_s : HUGE_VAL;
}

/* ---- offers ---- */

static bool is_within(uint32_t used, uint32_t least, uint32_t most)
{
    return used >= least && (!most || used <= most);
}

static bool keeps_gpu_limits(const struct het_search *search, struct het_arena *arena,
                             const struct het_plan *plan)
{
    const struct het_workload *workload = search->problem->workload;
    const struct het_cluster *cluster = search->problem->cluster;
    const uint32_t *used = het_plan_type_gpus(arena, plan, cluster->type_count);
    for (size_t i = 0; i < workload->type_limit_count; i++) {
        const struct het_type_limit *limit = &workload->type_limits[i];
        uint32_t type = het_cluster_find_type(cluster, limit->type);
        if (!is_within(type == HET_NO_TYPE ? 0 : used[type], limit->min_gpus,
                       limit->max_gpus))
            return false;
    }
    return is_within(het_plan_gpu_count(plan), workload->min_gpus, workload->max_gpus);
}

static bool beats_incumbent(const struct het_search *search, const struct het_plan *plan,
                            const struct het_cost *cost)
{
    if (!search->incumbent || cost->iteration_s < search->incumbent_cost.iteration_s)
        return true;
    return cost->iteration_s == search->incumbent_cost.iteration_s &&
           het_plan_compare(plan, search->incumbent) < 0;
}

/* Whether `plan` is worth keeping; prices it. */
static bool is_wanted(struct het_search *search, const struct het_plan *plan,
                      struct het_cost *ret_cost)
{
    search->statistics.plans_priced++;
    int priced =
        search->algorithm->is_simulated
            ? het_schedule_simulate(NULL, search->problem, plan, ret_cost, NULL, NULL)
            : het_cost_plan(search->problem, plan, ret_cost, NULL);
    assert(priced == 0);
    return beats_incumbent(search, plan, ret_cost) ||
           (search->shortlist &&
            het_shortlist_wants(search->shortlist, plan, ret_cost->iteration_s)) ||
           (search->preference &&
            het_preference_wants(search->preference, plan, ret_cost->iteration_s));
}

static bool keeps_activations(const struct het_plan *plan)
{
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++)
            if (plan->pipelines[p].stages[s].recompute != HET_RECOMPUTE_NONE)
                return false;
    return true;
}

static bool is_allowed(struct het_search *search, struct het_arena *arena,
                       const struct het_plan *plan)
{
    struct het_violations violations = { 0 };
    struct het_peak_memory *peaks;
    size_t peak_count;
    if (!keeps_gpu_limits(search, arena, plan) ||
        (search->problem->workload->no_recompute && !keeps_activations(plan)))
        return false;
    size_t violation_count = het_plan_check(arena, search->problem, plan, &violations);
    assert(violation_count == 0);
    return !het_memory_plan(arena, search->problem, plan, &peaks, &peak_count, NULL);
}

/* `plan` as the workload's runtime can run it, if it is allowed then and still wanted;
 * else NULL. */
static const struct het_plan *accept(struct het_search *search, struct het_arena *arena,
                                     const struct het_plan *plan,
                                     struct het_cost *ret_cost)
{
    const struct het_plan *found = het_runtime_express(
        arena, search->problem->workload->runtime, plan, &search->missing_freedom);
    search->inexpressible_count += !found;
    if (!found || (found != plan && !is_wanted(search, found, ret_cost)) ||
        !is_allowed(search, arena, found))
        return NULL;
    return found;
}

/* Keeps `plan`, which is allowed, wherever it belongs. Returns whether it is the new
 * incumbent. */
static bool keep(struct het_search *search, const struct het_plan *plan,
                 const struct het_cost *cost)
{
    if (search->shortlist)
        het_shortlist_add(search->shortlist, plan, cost->iteration_s);
    if (search->preference)
        het_preference_add(search->preference, plan, cost->iteration_s);
    if (!beats_incumbent(search, plan, cost))
        return false;
    search->incumbent = het_plan_copy(search->arena, plan);
    search->incumbent_cost = *cost;
    return true;
}

static bool offer_here(struct het_search *search, const struct het_plan *plan)
{
    struct het_plan offered = *plan;
    offered.algorithm = search->algorithm->name;
    offered.global_batch = search->problem->workload->global_batch;
    offered.layer_count = search->problem->profile->layer_count;
    offered.sequence_length = search->problem->workload->sequence_length;
    offered.precision = search->problem->workload->precision;
    offered.optimizer = search->problem->workload->optimizer;
    struct het_cost cost;
    if (!is_wanted(search, &offered, &cost))
        return false;
    struct het_arena *arena = het_arena_new();
    const struct het_plan *accepted = accept(search, arena, &offered, &cost);
    bool is_better = accepted && keep(search, accepted, &cost);
    het_arena_free(arena);
    if (is_better && search->options->progress)
        search->options->progress(search->options->progress_context, search);
    return is_better;
}

bool het_search_offer(struct het_search *search, const struct het_plan *plan)
{
    /* One that is to stay where it ran stays. */
    if (!search->preference || search->algorithm->needs_from)
        return offer_here(search, plan);
    struct het_arena *arena = het_arena_new();
    bool is_better =
        offer_here(search, het_preference_place(arena, search->preference, plan));
    het_arena_free(arena);
    return is_better;
}

void het_search_miss(struct het_search *search, uint32_t type, double needed_bytes,
                     const char *format, ...)
{
    double usable_bytes = het_memory_usable_bytes(search->problem, type);
    double ratio = needed_bytes / usable_bytes;
    if (search->nearest_miss_ratio > 0 && ratio >= search->nearest_miss_ratio)
        return;
    search->nearest_miss_ratio = ratio;
    char text[sizeof search->nearest_miss / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const struct het_cluster_type *at = &search->problem->cluster->types[type];
    snprintf(search->nearest_miss, sizeof search->nearest_miss,
             "needs %.1f GiB on %.100s (%.1f GiB, %.1f usable) for %s",
             needed_bytes / 0x1p30, at->name, (double)at->memory_bytes / 0x1p30,
             usable_bytes / 0x1p30, text);
}
