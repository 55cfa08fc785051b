#include "planner/cli/command.h"

static int run_diff(const struct het_command *command, const struct het_options *options)
{
    struct het_asked asked;
    int code = het_command_ask(command, options, true, &asked);
    if (!code) /* the running plan is in the question */
        code = het_command_tell(
            command, &asked,
            het_planner_diff(asked.planner, NULL, asked.plan, asked.form));
    het_asked_fini(&asked);
    return code;
}

const struct het_command het_command_diff = {
    .name = "diff",
    .bit = HET_COMMAND_DIFF,
    .run = run_diff,
    .summary = "say what it takes to go from one plan to another",
    .synopsis = "hetplan diff --profile DIR|FILE --cluster FILE --from OLD.json "
                "[OPTION]... NEW.json",
    .description =
        "Says which ranks keep their layers, how many bytes of the model's state move "
        "from local disks, other nodes and the cloud, how long that takes at least, "
        "and what limits it. Nodes of the old plan that the cluster lacks are lost. "
        "The new plan must be valid.",
    .output = "{\"seconds\", \"bottleneck\", \"bytes\", \"ranksKept\", \"ranks\", "
              "\"fromIterationSeconds\", \"iterationSeconds\"}, or the same as text.",
    .exit_status = "0  done\n1  the cluster lacks a GPU type of the profile\n2  an "
                   "option or a file is wrong",
    .examples = "hetplan diff --profile profiles/OPT-350 --cluster cluster.json \\\n"
                "    --from old.json new.json",
};
