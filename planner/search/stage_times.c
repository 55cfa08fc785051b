#include "planner/search/stage_times.h"

#include <stdlib.h>

/* Layers that fit, for one number of micro-batches in flight and holders. */
struct room {
    uint32_t in_flight, holders;
    const uint32_t *ends;
    struct room *next;
};

struct entry {
    struct het_stage_kind kind;
    struct het_balance_times times; /* forward_s NULL: cannot be had */
    struct room *rooms;
    struct entry *next;
};

#define BUCKETS 1024u

struct het_stage_table {
    const struct het_problem *problem;
    struct het_arena *arena;
    struct entry *buckets[BUCKETS];
};

struct het_stage_table *het_stage_table_new(const struct het_problem *problem)
{
    struct het_stage_table *table = xcalloc(1, sizeof *table);
    table->problem = problem;
    table->arena = het_arena_new();
    return table;
}

void het_stage_table_free(struct het_stage_table *table)
{
    if (!table)
        return;
    het_arena_free(table->arena);
    free(table);
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

static void fill_times(struct het_stage_table *table, struct entry *entry)
{
    const struct het_problem *problem = table->problem;
    const struct het_stage_kind kind = entry->kind;
    uint32_t layers = problem->profile->layer_count;
    if (!is_allowed(problem, kind))
        return;
    double *forward_s = HET_ARENA_ARRAY(table->arena, double, (size_t)layers + 1);
    double *backward_s = HET_ARENA_ARRAY(table->arena, double, (size_t)layers + 1);
    for (uint32_t l = 1; l <= layers; l++) {
        het_profile_times(problem->profile, problem->profile_type[kind.type], kind.tp,
                          kind.samples, 0, l, &forward_s[l], &backward_s[l], NULL);
        if (kind.recompute == HET_RECOMPUTE_FULL)
            backward_s[l] += forward_s[l];
    }
    entry->times = (struct het_balance_times){ forward_s, backward_s };
}

static bool is_same(struct het_stage_kind a, struct het_stage_kind b)
{
    return a.type == b.type && a.tp == b.tp && a.samples == b.samples &&
           a.recompute == b.recompute;
}

static struct entry *find_entry(struct het_stage_table *table, struct het_stage_kind kind)
{
    uint32_t hash = ((kind.type * 31 + kind.tp) * 31 + (uint32_t)kind.recompute) * 131 +
                    kind.samples;
    struct entry **at = &table->buckets[hash % BUCKETS];
    for (; *at; at = &(*at)->next)
        if (is_same((*at)->kind, kind))
            return *at;
    *at = het_arena_alloc(table->arena, sizeof **at);
    (*at)->kind = kind;
    fill_times(table, *at);
    return *at;
}

const struct het_balance_times *het_stage_table_times(struct het_stage_table *table,
                                                      struct het_stage_kind kind)
{
    const struct entry *entry = find_entry(table, kind);
    return entry->times.forward_s ? &entry->times : NULL;
}

static bool fits(const struct het_problem *problem, struct het_stage_kind kind,
                 const struct room *room, uint32_t first, uint32_t count)
{
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
static const uint32_t *find_ends(struct het_stage_table *table,
                                 struct het_stage_kind kind, const struct room *room)
{
    uint32_t layers = table->problem->profile->layer_count, end = 0;
    uint32_t *ends = HET_ARENA_ARRAY(table->arena, uint32_t, layers);
    for (uint32_t first = 0; first < layers; first++) {
        if (end < first)
            end = first;
        while (end < layers && fits(table->problem, kind, room, first, end + 1 - first))
            end++;
        ends[first] = end;
    }
    return ends;
}

const uint32_t *het_stage_table_ends(struct het_stage_table *table,
                                     struct het_stage_kind kind, uint32_t in_flight,
                                     uint32_t holders)
{
    struct entry *entry = find_entry(table, kind);
    if (!entry->times.forward_s)
        return NULL;
    if (table->problem->workload->optimizer != HET_ADAM_DISTRIBUTED)
        holders = 1; /* no matter */
    struct room **at = &entry->rooms;
    for (; *at; at = &(*at)->next)
        if ((*at)->in_flight == in_flight && (*at)->holders == holders)
            return (*at)->ends;
    *at = het_arena_alloc(table->arena, sizeof **at);
    **at = (struct room){ .in_flight = in_flight, .holders = holders };
    (*at)->ends = find_ends(table, kind, *at);
    return (*at)->ends;
}
