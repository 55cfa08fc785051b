#include "planner/cli/command.h"

/* Judges the plan of the operand; check leaves the price out. */
static int run_judge(const struct het_command *command, const struct het_options *options)
{
    struct het_asked asked;
    int code = het_command_ask(command, options, true, &asked);
    if (!code)
        code = het_command_tell(
            command, &asked,
            command->bit == HET_COMMAND_COST
                ? het_planner_cost(asked.planner, asked.plan, asked.form)
                : het_planner_check(asked.planner, asked.plan, asked.form));
    het_asked_fini(&asked);
    return code;
}

const struct het_command het_command_cost = {
    .name = "cost",
    .bit = HET_COMMAND_COST,
    .run = run_judge,
    .summary = "price a plan and list its violations",
    .synopsis = "hetplan cost --profile DIR|FILE --cluster FILE [OPTION]... PLAN.json",
    .description =
        "Prices any plan file, whoever made it: seconds of one iteration, simulated "
        "and in closed form, their parts, and the peak memory of each replica. Lists every violation of the "
        "rules that plans obey, with its place in the file. A plan that breaks a rule "
        "has no price; one that merely does not fit into memory has. The global batch "
        "size is the plan's. \"-\" reads the plan from standard input.",
    .output = "{\"valid\", \"violations\", \"iterationSeconds\", "
              "\"closedFormSeconds\", \"parts\", \"peakMemoryBytes\"}, and "
              "\"profile\" if it was not measured, \"extrapolated\" if a micro-batch "
              "is larger than any measured, \"assumedLinks\" if bandwidths are neither "
              "stated nor measured.",
    .exit_status = "0  the plan is valid\n1  it is not\n2  an option or another file "
                   "is wrong",
    .examples = "hetplan cost --profile profiles/OPT-350 --cluster cluster.json "
                "plan.json",
};

const struct het_command het_command_check = {
    .name = "check",
    .bit = HET_COMMAND_CHECK,
    .run = run_judge,
    .summary = "say whether a plan is valid",
    .synopsis = "hetplan check --profile DIR|FILE --cluster FILE [OPTION]... PLAN.json",
    .description =
        "Says whether a plan obeys the rules: layers covered once and in order, each "
        "GPU used once and there, a tensor-parallel group on one node, micro-batches "
        "that add up to the global batch, measurements for each replica, memory, and "
        "the limits given as options. \"-\" reads the plan from standard input.",
    .output = "{\"valid\", \"violations\"}.",
    .exit_status = "0  the plan is valid\n1  it is not\n2  an option or another file "
                   "is wrong",
    .examples = "hetplan check --profile profiles/OPT-350 --cluster cluster.json "
                "plan.json && echo fine",
};
