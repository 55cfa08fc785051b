#include "planner/algo/repair/repair.h"

#include "planner/algo/repair/surviving_plan.h"

/* A plan from outside may break any rule. */
static void offer(struct het_search *search, const struct het_plan *plan)
{
    struct het_violations violations = { 0 };
    if (!het_plan_check(search->scratch, search->problem, plan, &violations))
        het_search_offer(search, plan);
}

/* The running plan as it is, bound to this cluster; NULL if a node of it is gone, or if
 * it does another batch. */
static const struct het_plan *find_unchanged(struct het_search *search)
{
    const struct het_problem *problem = search->problem;
    const struct het_plan *from = search->options->from, *bound;
    if (from->layer_count != problem->profile->layer_count ||
        from->global_batch != problem->workload->global_batch ||
        het_plan_bind(search->scratch, from, problem->cluster, &bound, NULL) < 0)
        return NULL;
    struct het_plan *plan = het_plan_copy(search->scratch, bound);
    plan->idle_count = 0; /* what the plan left idle then; the cluster may have grown */
    plan->precision = problem->workload->precision;
    plan->optimizer = problem->workload->optimizer;
    return plan;
}

static int run_repair(struct het_search *search, struct het_error *err)
{
    if (!search->options->from)
        return het_fail(err, HET_BAD_INPUT, "needs a running plan to start from");
    const struct het_plan *plan = find_unchanged(search);
    if (plan)
        offer(search, plan);
    plan = het_repair(search->scratch, search->problem, search->options->from);
    if (plan)
        offer(search, plan);
    return 0;
}

const struct het_algorithm het_algo_repair = {
    .name = "repair",
    .source = "docs/planner.md, Change",
    .summary =
        "The running plan with what is gone left out, its samples done by the rest; "
        "needs --from",
    .run = run_repair,
    .is_whole = true,
    .needs_from = true,
};
