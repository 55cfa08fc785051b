#include "controller/placement/resharding.h"

#include "controller/base/object.h"

#include <string.h>

/* Whether there may be a checkpoint that not every plan can load. */
static bool is_bound(const struct pass *pass)
{
    return pass->snapshot->spec.resharding != RESHARDING_ANY && pass->current &&
           pass->current->plan && object_at(pass->snapshot->job, "status.startTime");
}

bool resharding_is_fixed(const struct pass *pass)
{
    return is_bound(pass) && pass->snapshot->spec.resharding == RESHARDING_SAME_PLAN;
}

static bool is_cut_alike(const struct het_pipeline *a, const struct het_pipeline *b)
{
    if (a->stage_count != b->stage_count)
        return false;
    for (size_t s = 0; s < a->stage_count; s++)
        if (a->stages[s].first_layer != b->stages[s].first_layer ||
            a->stages[s].layer_count != b->stages[s].layer_count)
            return false;
    return true;
}

static bool has_cuts_of(const struct het_plan *plan, const struct het_plan *before)
{
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        bool found = false;
        for (size_t k = 0; !found && k < before->pipeline_count; k++)
            found = is_cut_alike(&plan->pipelines[p], &before->pipelines[k]);
        if (!found)
            return false;
    }
    return true;
}

/* `plan` with its nodes, which are `places`, called `names`. */
static struct het_plan *renamed(struct het_arena *arena, const struct het_plan *plan,
                                const struct het_rank_node *places, size_t count,
                                const char *const *names)
{
    struct het_replica *replicas;
    struct het_plan *copy = het_plan_copy_replicas(arena, plan, &replicas);
    for (size_t r = 0; r < het_plan_replica_count(plan); r++)
        for (size_t i = 0; i < count; i++)
            if (!strcmp(places[i].node_name, replicas[r].node_name)) {
                replicas[r].node_name = names[i];
                break;
            }
    return copy;
}

/* `plan` with its nodes named by the order of their first appearance. */
static const struct het_plan *without_names(struct het_arena *arena,
                                            const struct het_plan *plan)
{
    struct het_rank_node *places;
    size_t count = het_plan_rank_nodes(arena, plan, &places);
    const char **names = HET_ARENA_ARRAY(arena, const char *, count);
    for (size_t i = 0; i < count; i++)
        names[i] = het_arena_printf(arena, "%zu", i);
    return renamed(arena, plan, places, count, names);
}

bool resharding_allows(const struct pass *pass, const struct het_plan *plan)
{
    if (!is_bound(pass))
        return true;
    const struct het_plan *before = pass->current->plan;
    if (pass->snapshot->spec.resharding == RESHARDING_SAME_PIPELINE)
        return has_cuts_of(plan, before);
    return !het_plan_compare(without_names(pass->arena, plan),
                             without_names(pass->arena, before));
}

static bool can_hold(const struct capacity_node *node, const struct het_rank_node *place)
{
    return node && node->free >= place->gpu_count &&
           !strcmp(node->type, place->type_name);
}

static bool is_named(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

/* The names of nodes that can hold the current plan, place by place; NULL if some place
 * has none. */
static const char **find_places(const struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct snapshot_plan *current = pass->current;
    size_t count = current->rank_node_count;
    const char **names = HET_ARENA_ARRAY(pass->arena, const char *, count);
    for (size_t i = 0; i < count; i++)
        names[i] = current->rank_nodes[i].node_name;
    for (size_t i = 0; i < count; i++) {
        const struct het_rank_node *place = &current->rank_nodes[i];
        if (can_hold(snapshot_find_node(snapshot, place->node_name), place))
            continue;
        size_t k = 0;
        while (k < snapshot->node_count &&
               (!can_hold(&snapshot->nodes[k], place) ||
                is_named(names, count, snapshot->nodes[k].name)))
            k++;
        if (k == snapshot->node_count)
            return NULL;
        names[i] = snapshot->nodes[k].name;
    }
    return names;
}

const struct het_plan *resharding_move(const struct pass *pass)
{
    const struct snapshot_plan *current = pass->current;
    const char **names = find_places(pass);
    if (!names)
        return NULL;
    struct het_plan *plan = renamed(pass->arena, current->plan, current->rank_nodes,
                                    current->rank_node_count, names);
    plan->idle_count = 0; /* the plan was made for another cluster */
    return plan;
}

const char *resharding_message(struct pass *pass)
{
    bool is_fixed = resharding_is_fixed(pass);
    return pass_text(pass,
                     "spec.checkpoint.resharding is %s: only %s as that of revision "
                     "%lld can load its checkpoint",
                     is_fixed ? "SamePlan" : "SamePipeline",
                     is_fixed ? "the same plan on equal nodes"
                              : "plans with the same layers in each stage",
                     (long long)pass->current->generation);
}
