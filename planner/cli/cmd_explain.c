#include "planner/cli/command.h"

static int run_explain(const struct het_command *command,
                       const struct het_options *options)
{
    struct het_asked asked;
    bool searches = !json_object_get(options->values, "noSearch");
    int code = het_command_ask(command, options, true, &asked);
    if (!code)
        code = het_command_tell(
            command, &asked,
            het_planner_explain(asked.planner, asked.plan, searches, asked.form));
    het_asked_fini(&asked);
    return code;
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
