#include "planner/search/stage_times.h"

#include "planner/base/memo.h"

#include <math.h>
#include <stdlib.h>

/* Of what it is asked how many layers fit. */
struct room {
    struct het_stage_kind kind;
    uint32_t in_flight, holders;
};

struct het_stage_table {
    const struct het_problem *problem;
    struct het_arena *arena;
    struct het_memo times; /* by kind: struct het_balance_times */
    struct het_memo ends;  /* by room: const uint32_t [layer] */
};

struct het_stage_table *het_stage_table_new(const struct het_problem *problem)
{
    struct het_stage_table *table = xcalloc(1, sizeof *table);
    table->problem = problem;
    table->arena = het_arena_new();
    table->times = het_memo_make(table->arena, 0);
    table->ends = het_memo_make(table->arena, 0);
    return table;
}

void het_stage_table_free(struct het_stage_table *table)
{
    if (!table)
        return;
    het_arena_free(table->arena);
    xfree(table);
}

static bool is_allowed(const struct het_problem *problem, struct het_stage_kind kind)
{
    return kind.samples && problem->profile_type[kind.type] != HET_NO_TYPE &&
           het_workload_allows_tensor_parallel(problem->workload, kind.tp) &&
           het_workload_allows_microbatch(problem->workload, kind.samples) &&
           het_profile_bytes(problem->profile, kind.tp) &&
           het_profile_covers(problem->profile, problem->profile_type[kind.type], kind.tp,
                              kind.samples);
}

static struct het_balance_times *make_times(struct het_stage_table *table,
                                            struct het_stage_kind kind)
{
    const struct het_problem *problem = table->problem;
    uint32_t layers = problem->profile->layer_count;
    struct het_balance_times *times = het_arena_alloc(table->arena, sizeof *times);
    if (!is_allowed(problem, kind))
        return times;
    double *forward_s = HET_ARENA_ARRAY(table->arena, double, (size_t)layers + 1);
    double *backward_s = HET_ARENA_ARRAY(table->arena, double, (size_t)layers + 1);
    for (uint32_t l = 1; l <= layers; l++) {
        het_profile_times(problem->profile, problem->profile_type[kind.type], kind.tp,
                          kind.samples, 0, l, &forward_s[l], &backward_s[l], NULL);
        if (kind.recompute == HET_RECOMPUTE_FULL)
            backward_s[l] += forward_s[l];
    }
    *times = (struct het_balance_times){ forward_s, backward_s };
    return times;
}

const struct het_balance_times *het_stage_table_times(struct het_stage_table *table,
                                                      struct het_stage_kind kind)
{
    union het_memo_value *known = het_memo_at(&table->times, &kind, sizeof kind);
    if (!known->pointer)
        known->pointer = make_times(table, kind);
    const struct het_balance_times *times = known->pointer;
    return times->forward_s ? times : NULL;
}

static bool fits(const struct het_problem *problem, const struct room *room,
                 uint32_t first, uint32_t count)
{
    const struct het_stage_kind kind = room->kind;
    const struct het_memory_question question = {
        .type = kind.type,
        .tp = kind.tp,
        .first_layer = first,
        .layer_count = count,
        .samples = kind.samples,
        .in_flight = room->in_flight,
        .holders = room->holders,
        .recompute = kind.recompute,
    };
    return het_memory_replica_bytes(problem, &question) <=
           het_memory_usable_bytes(problem, kind.type);
}

/* Bytes only rise with more layers, so that the ends never fall. */
static uint32_t *find_ends(struct het_stage_table *table, const struct room *room)
{
    uint32_t layers = table->problem->profile->layer_count, end = 0;
    uint32_t *ends = HET_ARENA_ARRAY(table->arena, uint32_t, layers);
    for (uint32_t first = 0; first < layers; first++) {
        if (end < first)
            end = first;
        while (end < layers && fits(table->problem, room, first, end + 1 - first))
            end++;
        ends[first] = end;
    }
    return ends;
}

const uint32_t *het_stage_table_ends(struct het_stage_table *table,
                                     struct het_stage_kind kind, uint32_t in_flight,
                                     uint32_t holders)
{
    if (table->problem->workload->optimizer != HET_ADAM_DISTRIBUTED)
        holders = 1; /* no matter */
    const struct room room = { kind, in_flight, holders };
    union het_memo_value *known = het_memo_at(&table->ends, &room, sizeof room);
    if (!known->pointer && het_stage_table_times(table, kind))
        known->pointer = find_ends(table, &room);
    return known->pointer;
}

bool het_stage_table_ask(struct het_stage_table *table,
                         const struct het_stage_kind *kinds, size_t count,
                         uint32_t in_flight, uint32_t holders,
                         struct het_balance_times *times, uint32_t *ends,
                         struct het_balance_stage *ret)
{
    uint32_t layers = table->problem->profile->layer_count;
    *ret = (struct het_balance_stage){ .times = times, .times_count = count };
    for (size_t i = 0; i < count; i++) {
        const struct het_balance_times *own = het_stage_table_times(table, kinds[i]);
        const uint32_t *fit = het_stage_table_ends(table, kinds[i], in_flight, holders);
        if (!own || !fit)
            return false;
        times[i] = *own;
        ret->ends = count == 1 ? fit : ends;
        for (uint32_t l = 0; count > 1 && l < layers; l++)
            ends[l] = i && ends[l] < fit[l] ? ends[l] : fit[l];
    }
    return true;
}

double *het_stage_times_by_samples(struct het_arena *arena,
                                   const struct het_problem *problem, uint32_t type,
                                   uint32_t tp, uint32_t first, uint32_t count,
                                   uint32_t most)
{
    double *seconds = HET_ARENA_ARRAY(arena, double, (size_t)most + 1);
    for (uint32_t n = 1; n <= most; n++) {
        double forward_s, backward_s;
        bool is_had = het_workload_allows_microbatch(problem->workload, n) &&
                      het_profile_times(problem->profile, problem->profile_type[type], tp,
                                        n, first, count, &forward_s, &backward_s,
                                        NULL) == 0;
        seconds[n] = is_had ? forward_s + backward_s : HUGE_VAL;
    }
    return seconds;
}
