#include "planner/cli/command.h"

#include "planner/render/people/timeline.h"

#include <string.h>

static void print_timeline(struct het_arena *arena, const struct het_options *options,
                           const struct het_plan *plan,
                           const struct het_timeline *timeline)
{
    const char *output = het_options_text(options, "output");
    const json_t *width = json_object_get(options->values, "width");
    if (output && !strcmp(output, "svg"))
        fputs(het_render_timeline_svg(arena, plan, timeline), stdout);
    else if (output && !strcmp(output, "trace"))
        fputs(het_render_timeline_trace(arena, plan, timeline), stdout);
    else
        fputs(het_render_timeline_text(arena, plan, timeline,
                                       width ? (int)json_integer_value(width)
                                             : het_terminal_width(),
                                       het_terminal_charset()),
              stdout);
}

static int run_simulate(const struct het_command *command,
                        const struct het_options *options)
{
    struct het_arena *arena = het_arena_new();
    struct het_error err;
    json_auto_t *json = NULL;
    struct het_question question;
    const struct het_plan *plan;
    struct het_timeline timeline;
    int code = HET_EXIT_DONE;
    if (het_command_read_plan(command, options, arena, &json, &question, &err) < 0 ||
        het_question_simulate(arena, &question, json, &plan, &timeline, &err) < 0)
        code = het_command_fail(command, &err);
    else
        print_timeline(arena, options, plan, &timeline);
    het_arena_free(arena);
    return het_command_finish(command, code);
}

const struct het_command het_command_simulate = {
    .name = "simulate",
    .bit = HET_COMMAND_SIMULATE,
    .run = run_simulate,
    .summary = "show what every stage does during an iteration",
    .synopsis =
        "hetplan simulate --profile DIR|FILE --cluster FILE [OPTION]... PLAN.json",
    .description =
        "Simulates one iteration of any valid plan file: the forwards and backwards of "
        "each micro-batch on each stage, the sends between stages, which share the "
        "uplinks of the nodes, gradients and optimizer; and shows when each stage "
        "works and when it waits. Pipelines that do the same are shown once. \"-\" "
        "reads the plan from standard input.",
    .output = "Lines of text, an SVG picture, or a trace in Chrome's Trace Event "
              "Format, where a pipeline is a process and a stage a thread.",
    .exit_status = "0  the timeline is printed\n2  the plan is not valid, or an option "
                   "or a file is wrong",
    .examples = "hetplan simulate --profile profiles/OPT-350 --cluster cluster.json "
                "plan.json\n"
                "hetplan simulate --profile profiles/OPT-350 --cluster cluster.json \\\n"
                "    --output svg plan.json > timeline.svg",
};
