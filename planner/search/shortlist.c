#include "planner/search/shortlist.h"

#include <assert.h>
#include <string.h>

/* Where the plan belongs; count + 1 if it is there already. */
static size_t find_position(const struct het_shortlist *list, const struct het_plan *plan,
                            double offered_s)
{
    size_t at = 0;
    for (; at < list->count && list->plans[at].offered_s <= offered_s; at++) {
        if (list->plans[at].offered_s < offered_s)
            continue;
        int order = het_plan_compare(list->plans[at].plan, plan);
        if (order == 0)
            return list->count + 1;
        if (order > 0)
            break;
    }
    return at;
}

bool het_shortlist_wants(const struct het_shortlist *list, const struct het_plan *plan,
                         double offered_s)
{
    if (list->count && offered_s > list->plans[0].offered_s * (1 + HET_SHORTLIST_SLACK))
        return false;
    if (list->count == HET_SHORTLIST_PLANS &&
        offered_s > list->plans[list->count - 1].offered_s)
        return false;
    size_t at = find_position(list, plan, offered_s);
    return at <= list->count && at < HET_SHORTLIST_PLANS;
}

static void drop_last(struct het_shortlist *list)
{
    het_arena_free(list->plans[--list->count].arena);
}

void het_shortlist_add(struct het_shortlist *list, const struct het_plan *plan,
                       double offered_s)
{
    if (!het_shortlist_wants(list, plan, offered_s))
        return;
    size_t at = find_position(list, plan, offered_s);
    if (list->count == HET_SHORTLIST_PLANS)
        drop_last(list);
    memmove(list->plans + at + 1, list->plans + at,
            (list->count++ - at) * sizeof *list->plans);
    struct het_arena *arena = het_arena_new();
    list->plans[at] =
        (struct het_shortlist_plan){ het_plan_copy(arena, plan), offered_s, arena };
    double worst_s = list->plans[0].offered_s * (1 + HET_SHORTLIST_SLACK);
    while (list->plans[list->count - 1].offered_s > worst_s)
        drop_last(list);
}

void het_shortlist_clear(struct het_shortlist *list)
{
    while (list->count)
        drop_last(list);
}

const struct het_plan *het_shortlist_best(const struct het_shortlist *list,
                                          const struct het_problem *problem,
                                          struct het_cost *ret)
{
    const struct het_plan *best = NULL;
    for (size_t i = 0; i < list->count; i++) {
        struct het_cost cost;
        int priced =
            het_schedule_simulate(NULL, problem, list->plans[i].plan, &cost, NULL, NULL);
        assert(priced == 0);
        if (best && cost.iteration_s >= ret->iteration_s)
            continue;
        best = list->plans[i].plan;
        *ret = cost;
    }
    return best;
}
