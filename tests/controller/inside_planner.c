#include "tests/controller/inside_planner.h"

#include <stdlib.h>
#include <string.h>

/* Enough for the small clusters of simulations; `auto` would run all algorithms. */
#define EFFORT    500u
#define ALGORITHM "megatron"

void inside_planner_fini(struct inside_planner *planner)
{
    free(planner->output);
    free(planner->message);
}

static void say(struct inside_planner *planner, enum planner_child_outcome outcome,
                char *output, char *message, struct planner_child_reply *ret)
{
    inside_planner_fini(planner);
    planner->output = output ? output : xstrdup("");
    planner->message = message ? message : xstrdup("");
    ret->outcome = outcome;
    ret->output = planner->output;
    ret->message = planner->message;
}

/* What a child can do instead of answering; all but the last two end as planner_child.h
 * says they do. */
static void go_wrong(struct inside_planner *planner, int64_t timeout_ms,
                     struct planner_child_reply *ret)
{
    planner->faults++;
    switch (dice_throw(&planner->dice, 5)) {
    case 0:
        say(planner, PLANNER_CHILD_BROKE, NULL,
            xstrdup("the planner was ended by signal 11"), ret);
        return;
    case 1:
        ret->took_ms = planner_child_wall_ms(timeout_ms);
        say(planner, PLANNER_CHILD_BROKE, NULL, xstrdup("the planner did not answer"),
            ret);
        return;
    case 2:
        say(planner, PLANNER_CHILD_BROKE, NULL, xstrdup("the planner printed nothing"),
            ret);
        return;
    case 3:
        say(planner, PLANNER_CHILD_PLAN, xstrdup("{\"rubbish\": [1, 2"), NULL, ret);
        return;
    default:
        say(planner, PLANNER_CHILD_PLAN,
            xstrdup("{\"kind\": \"Plan\", \"pipelines\": []}"), NULL, ret);
    }
}

void inside_planner_answer(void *context, const json_t *document, int64_t timeout_ms,
                           struct planner_child_reply *ret)
{
    struct inside_planner *planner = context;
    planner->questions++;
    ret->took_ms =
        planner->latency_ms ? dice_between(&planner->dice, 0, planner->latency_ms) : 0;
    ret->first_ms = ret->took_ms / 2;
    if (dice_chance(&planner->dice, planner->fault_per_mille)) {
        go_wrong(planner, timeout_ms, ret);
        return;
    }
    struct het_arena *arena = het_arena_new();
    struct het_question question;
    struct het_error err = { 0 };
    const struct het_plan *plan;
    int failed = het_question_read(arena, document, &question, &err);
    if (!failed) {
        question.options.effort = EFFORT;
        if (!question.options.algorithm || !strcmp(question.options.algorithm, "auto"))
            question.options.algorithm = ALGORITHM;
        failed = het_question_plan(arena, &question, &plan, &err);
    }
    if (failed) {
        say(planner,
            err.code == HET_NO_PLAN ? PLANNER_CHILD_NO_PLAN : PLANNER_CHILD_REFUSED, NULL,
            xstrdup(err.message), ret);
    } else {
        json_auto_t *json = het_plan_json(plan);
        say(planner, PLANNER_CHILD_PLAN, het_json_canonical(json), NULL, ret);
    }
    het_arena_free(arena);
}
