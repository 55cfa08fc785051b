#include "planner/cli/command.h"

#include "planner/render/people/explanation.h"

static int run_explain(const struct het_command *command,
                       const struct het_options *options)
{
    struct het_arena *arena = het_arena_new();
    struct het_error err;
    json_auto_t *plan_json = NULL;
    struct het_question question;
    struct het_explanation explanation;
    const struct het_plan *plan;
    bool searches = !json_object_get(options->values, "noSearch");
    int code = HET_EXIT_DONE;
    if (het_command_read_plan(command, options, arena, &plan_json, &question, &err) < 0 ||
        het_question_explain(arena, &question, plan_json, searches, &plan, &explanation,
                             &err) < 0) {
        code = het_command_fail(command, &err);
    } else if (het_command_wants_table(options)) {
        fputs(het_render_explanation(arena, &question.problem, plan, &explanation,
                                     het_terminal_width()),
              stdout);
    } else {
        json_auto_t *json = het_question_explanation_json(&question, &explanation);
        het_command_print(json);
    }
    het_arena_free(arena);
    return het_command_finish(command, code);
}

const struct het_command het_command_explain = {
    .name = "explain",
    .bit = HET_COMMAND_EXPLAIN,
    .run = run_explain,
    .summary = "say why a plan is as it is, and what would make it faster",
    .synopsis = "hetplan explain --profile DIR|FILE --cluster FILE [OPTION]... PLAN.json",
    .description =
        "Says what bounds the step (pipelines, gradients, optimizer; the bottleneck "
        "stage, the uplink that gradients wait for, memory), for each cut what a "
        "layer more or less would do, and, by searching again, what each freedom of "
        "plans brings (uneven layers, degrees by stage, uneven micro-batches, "
        "asymmetric pipelines) and what one more GPU or node of each type would "
        "bring.",
    .output = "Sentences and tables, or the same figures as JSON.",
    .exit_status = "0  done\n2  an option or a file is wrong, or the plan is not "
                   "valid",
    .examples = "hetplan explain --profile profiles/OPT-350 --cluster cluster.json "
                "plan.json",
};
