#include "planner/cli/command.h"

#include <string.h>

static enum het_form timeline_form(const struct het_options *options)
{
    const char *output = het_options_text(options, "output");
    return output && !strcmp(output, "svg")     ? HET_FORM_SVG
           : output && !strcmp(output, "trace") ? HET_FORM_TRACE
                                                : HET_FORM_TEXT;
}

static int run_simulate(const struct het_command *command,
                        const struct het_options *options)
{
    struct het_asked asked;
    int code = het_command_ask(command, options, true, &asked);
    asked.form = timeline_form(options);
    if (!code)
        code = het_command_tell(
            command, &asked, het_planner_simulate(asked.planner, asked.plan, asked.form));
    het_asked_fini(&asked);
    return code;
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
