#include "controller/placement/what_if.h"

#include "controller/placement/fit.h"
#include "controller/placement/resharding.h"

static struct snapshot view_of(const struct pass *pass, const struct what_if *question)
{
    struct snapshot view = *pass->snapshot;
    view.nodes = question->nodes;
    view.node_count = question->node_count;
    view.spec.max_gpus = question->max_gpus;
    return view;
}

void what_if_ask(struct pass *pass, const struct what_if *question, bool is_urgent)
{
    struct snapshot view = view_of(pass, question);
    if (view.memory.is_planning || !children_can_ask(&view) ||
        !pass_may_ask(pass, is_urgent))
        return;
    struct action *action =
        pass_ask_planner(pass, children_question(&view), question->digest);
    action->is_what_if = true;
    action->is_urgent = is_urgent;
}

bool what_if_is_answered(const struct pass *pass, const struct what_if *question)
{
    const struct planner_answer *answer = &pass->snapshot->memory.what_if;
    return answer->kind != ANSWER_NONE && answer->digest == question->digest;
}

const struct het_plan *what_if_plan(struct pass *pass, const struct what_if *question)
{
    const struct planner_answer *answer = &pass->snapshot->memory.what_if;
    const struct het_plan *plan;
    if (!what_if_is_answered(pass, question) || answer->kind != ANSWER_PLAN ||
        het_plan_json_text(pass->arena, answer->text, "plan", &plan, NULL) < 0)
        return NULL;
    struct snapshot view = view_of(pass, question);
    struct pass of_view = { .arena = pass->arena, .snapshot = &view };
    return fit_holds(&of_view, plan) && resharding_allows(pass, plan) ? plan : NULL;
}
