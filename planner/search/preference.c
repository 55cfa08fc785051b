#include "planner/search/preference.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- nodes ---- */

static int64_t preference_of_type(const struct het_problem *problem, uint32_t type)
{
    const struct het_type_limit *limit =
        het_workload_find_limit(problem->workload, problem->cluster->types[type].name);
    return limit ? limit->preference : 0;
}

static int compare_positions(const void *left, const void *right, void *context)
{
    const struct het_preference *preference = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    const struct het_node *nodes = preference->problem->cluster->nodes;
    int kinds = het_node_compare(&nodes[a], &nodes[b]);
    if (kinds)
        return kinds;
    if (preference->of_node[a] != preference->of_node[b])
        return preference->of_node[a] > preference->of_node[b] ? -1 : 1;
    return a < b ? -1 : a > b;
}

static void group_nodes(struct het_arena *arena, struct het_preference *preference)
{
    const struct het_cluster *cluster = preference->problem->cluster;
    uint32_t count = (uint32_t)cluster->node_count;
    uint32_t *order = HET_ARENA_ARRAY(arena, uint32_t, count);
    uint32_t *group_end = HET_ARENA_ARRAY(arena, uint32_t, count);
    for (uint32_t n = 0; n < count; n++)
        order[n] = n;
    qsort_r(order, count, sizeof *order, compare_positions, preference);
    for (uint32_t i = count; i-- > 0;) {
        bool is_last = i + 1 == count || het_node_compare(&cluster->nodes[order[i]],
                                                          &cluster->nodes[order[i + 1]]);
        group_end[i] = is_last ? i + 1 : group_end[i + 1];
    }
    preference->order = order;
    preference->group_end = group_end;
}

struct het_preference *het_preference_new(struct het_arena *arena,
                                          const struct het_problem *problem)
{
    const struct het_cluster *cluster = problem->cluster;
    int64_t *of_node = HET_ARENA_ARRAY(arena, int64_t, cluster->node_count);
    bool differ = false;
    for (size_t n = 0; n < cluster->node_count; n++) {
        of_node[n] = preference_of_type(problem, cluster->nodes[n].type) +
                     cluster->nodes[n].preference;
        differ = differ || of_node[n] != of_node[0];
    }
    if (!differ)
        return NULL;
    struct het_preference *preference = het_arena_alloc(arena, sizeof *preference);
    *preference = (struct het_preference){ .problem = problem, .of_node = of_node };
    group_nodes(arena, preference);
    return preference;
}

/* ---- a plan ---- */

double het_preference_of(const struct het_preference *preference,
                         const struct het_plan *plan)
{
    double sum = 0, gpus = 0;
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++) {
                const struct het_replica *replica = &stage->replicas[r];
                sum += (double)preference->of_node[replica->node] * replica->tp;
                gpus += replica->tp;
            }
        }
    return sum / gpus;
}

/* Where the nodes of a plan go: `goes`, [node], is HET_UNBOUND for those not in use.
 * Among equal nodes the least liked ones in use change places with the best liked free
 * ones, as long as that gains. */
static bool exchange_nodes(const struct het_preference *preference, uint32_t *goes)
{
    const uint32_t *order = preference->order;
    size_t count = preference->problem->cluster->node_count;
    bool any = false;
    for (size_t first = 0; first < count; first = preference->group_end[first]) {
        size_t better = first, worse = preference->group_end[first] - 1;
        while (better < worse) {
            if (goes[order[better]] != HET_UNBOUND) {
                better++;
            } else if (goes[order[worse]] == HET_UNBOUND) {
                worse--;
            } else if (preference->of_node[order[better]] >
                       preference->of_node[order[worse]]) {
                goes[order[worse--]] = order[better++];
                any = true;
            } else {
                break;
            }
        }
    }
    return any;
}

const struct het_plan *het_preference_place(struct het_arena *arena,
                                            const struct het_preference *preference,
                                            const struct het_plan *plan)
{
    const struct het_cluster *cluster = preference->problem->cluster;
    struct het_replica *replicas;
    uint32_t *goes = HET_ARENA_ARRAY(arena, uint32_t, cluster->node_count);
    memset(goes, 0xff, cluster->node_count * sizeof *goes);
    struct het_plan *placed = het_plan_copy_replicas(arena, plan, &replicas);
    size_t count = het_plan_replica_count(plan);
    for (size_t i = 0; i < count; i++)
        goes[replicas[i].node] = replicas[i].node;
    if (!exchange_nodes(preference, goes))
        return plan;
    for (size_t i = 0; i < count; i++) {
        replicas[i].node = goes[replicas[i].node];
        replicas[i].node_name = cluster->nodes[replicas[i].node].name;
    }
    placed->idle_count = 0;
    return placed;
}

/* ---- the plans to choose from ---- */

/* Whether a plan is worth a place beside those that are kept. */
static bool is_wanted(const struct het_preference *preference, double offered_s,
                      double liking)
{
    const struct het_preferred_plan *plans = preference->plans;
    if (!preference->count)
        return true;
    if (offered_s > plans[0].offered_s * (1 + HET_SHORTLIST_SLACK))
        return false;
    if (preference->count == HET_PREFERENCE_PLANS &&
        offered_s > plans[preference->count - 1].offered_s)
        return false;
    for (size_t i = 0; i < preference->count; i++)
        if (plans[i].offered_s <= offered_s && plans[i].preference >= liking)
            return false;
    return true;
}

bool het_preference_wants(const struct het_preference *preference,
                          const struct het_plan *plan, double offered_s)
{
    return is_wanted(preference, offered_s, het_preference_of(preference, plan));
}

static void drop(struct het_preference *preference, size_t at)
{
    het_arena_free(preference->plans[at].arena);
    preference->count--;
    memmove(preference->plans + at, preference->plans + at + 1,
            (preference->count - at) * sizeof *preference->plans);
}

void het_preference_add(struct het_preference *preference, const struct het_plan *plan,
                        double offered_s)
{
    struct het_preferred_plan *plans = preference->plans;
    double liking = het_preference_of(preference, plan);
    if (!is_wanted(preference, offered_s, liking))
        return;
    for (size_t i = preference->count; i-- > 0;)
        if (plans[i].offered_s >= offered_s && plans[i].preference <= liking)
            drop(preference, i);
    if (preference->count == HET_PREFERENCE_PLANS)
        drop(preference, preference->count - 1);
    size_t at = 0;
    while (at < preference->count && plans[at].offered_s <= offered_s)
        at++;
    memmove(plans + at + 1, plans + at, (preference->count++ - at) * sizeof *plans);
    struct het_arena *arena = het_arena_new();
    plans[at] = (struct het_preferred_plan){ het_plan_copy(arena, plan), offered_s,
                                             liking, arena };
    double worst_s = plans[0].offered_s * (1 + HET_SHORTLIST_SLACK);
    while (plans[preference->count - 1].offered_s > worst_s)
        drop(preference, preference->count - 1);
}

void het_preference_clear(struct het_preference *preference)
{
    while (preference && preference->count)
        drop(preference, preference->count - 1);
}

const struct het_plan *het_preference_choose(const struct het_preference *preference,
                                             const struct het_plan *best,
                                             struct het_cost *cost)
{
    struct het_cost costs[HET_PREFERENCE_PLANS] = { 0 };
    double fastest_s = cost->iteration_s;
    for (size_t i = 0; i < preference->count; i++) {
        int priced = het_schedule_simulate(
            NULL, preference->problem, preference->plans[i].plan, &costs[i], NULL, NULL);
        assert(priced == 0);
        if (costs[i].iteration_s < fastest_s)
            fastest_s = costs[i].iteration_s;
    }
    double most_s = fastest_s * (1 + HET_PREFERENCE_SLACK);
    const struct het_plan *chosen = cost->iteration_s <= most_s ? best : NULL;
    double liking = het_preference_of(preference, best);
    for (size_t i = 0; i < preference->count; i++) {
        const struct het_preferred_plan *plan = &preference->plans[i];
        if (costs[i].iteration_s > most_s ||
            (chosen &&
             (plan->preference < liking ||
              (plan->preference == liking && costs[i].iteration_s >= cost->iteration_s))))
            continue;
        chosen = plan->plan;
        liking = plan->preference;
        *cost = costs[i];
    }
    return chosen;
}
