#include "planner/cli/command.h"

static void print_migration(const json_t *migration)
{
    const json_t *bytes = json_object_get(migration, "bytes");
    const json_t *bottleneck = json_object_get(migration, "bottleneck");
    const char *node = json_string_value(json_object_get(bottleneck, "node"));
    size_t ranks = json_array_size(json_object_get(migration, "ranks"));
    if (json_object_get(migration, "fromIterationSeconds"))
        printf("%.6g s a step now, %.6g s then\n",
               het_command_number(migration, "fromIterationSeconds"),
               het_command_number(migration, "iterationSeconds"));
    else
        printf("the running plan cannot go on; %.6g s a step then\n",
               het_command_number(migration, "iterationSeconds"));
    printf("%.0f of %zu ranks keep their layers\n",
           het_command_number(migration, "ranksKept"), ranks);
    printf("%.3f GB from local disks, %.3f from other nodes, %.3f from the cloud (the "
           "state is %.3f)\n",
           het_command_number(bytes, "local") / 1e9,
           het_command_number(bytes, "peer") / 1e9,
           het_command_number(bytes, "cloud") / 1e9,
           het_command_number(bytes, "state") / 1e9);
    printf("%.3g s, by %s%s%s\n", het_command_number(migration, "seconds"),
           json_string_value(json_object_get(bottleneck, "resource")), node ? " of " : "",
           node ? node : "");
}

static int run_diff(const struct het_command *command, const struct het_options *options)
{
    struct het_arena *arena = het_arena_new();
    struct het_error err;
    json_auto_t *plan = NULL, *migration = NULL;
    struct het_question question;
    int code = HET_EXIT_DONE;
    if (het_command_read_plan(command, options, arena, &plan, &question, &err) < 0 ||
        het_question_diff(arena, &question, plan, &migration, &err) < 0)
        code = het_command_fail(command, &err);
    else if (het_command_wants_table(options))
        print_migration(migration);
    else
        het_command_print(migration);
    het_arena_free(arena);
    return het_command_finish(command, code);
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
