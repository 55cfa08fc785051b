#include "planner/cli/command.h"

#include <string.h>

static void print_violations(const json_t *verdict)
{
    const json_t *list = json_object_get(verdict, "violations");
    for (size_t i = 0; i < json_array_size(list); i++)
        printf("  %s\n", json_string_value(json_array_get(list, i)));
}

static void print_assumed_links(const json_t *links)
{
    for (size_t i = 0; i < json_array_size(links); i++) {
        const json_t *link = json_array_get(links, i);
        const char *where = json_string_value(json_object_get(link, "link"));
        printf("  %.4g GB/s %s %s is assumed, not measured\n",
               het_command_number(link, "GBs"),
               !strcmp(where, "BetweenNodes") ? "out of a node of" : "between GPUs of",
               json_string_value(json_object_get(link, "gpuType")));
    }
}

static void print_price(const json_t *verdict)
{
    if (!json_object_get(verdict, "iterationSeconds"))
        return;
    const json_t *parts = json_object_get(verdict, "parts");
    printf("%.6g s a step: pipelines %.6g, gradients %.6g, optimizer %.6g\n"
           "%.6g s in closed form\n",
           het_command_number(verdict, "iterationSeconds"),
           het_command_number(parts, "pipelineSeconds"),
           het_command_number(parts, "gradientSyncSeconds"),
           het_command_number(parts, "optimizerSeconds"),
           het_command_number(verdict, "closedFormSeconds"));
    const char *origin = json_string_value(json_object_get(verdict, "profile"));
    if (origin)
        printf("  the profile is %s, not measured\n", origin);
    if (json_object_get(verdict, "extrapolated"))
        puts("  a micro-batch is larger than any that was measured");
    print_assumed_links(json_object_get(verdict, "assumedLinks"));
    const json_t *peaks = json_object_get(verdict, "peakMemoryBytes");
    for (size_t i = 0; i < json_array_size(peaks); i++) {
        const json_t *peak = json_array_get(peaks, i);
        printf("  pipeline %.0f, stage %.0f, replica %.0f: %.2f of %.2f GiB a GPU\n",
               het_command_number(peak, "pipeline"), het_command_number(peak, "stage"),
               het_command_number(peak, "replica"),
               het_command_number(peak, "bytes") / 0x1p30,
               het_command_number(peak, "capacityBytes") / 0x1p30);
    }
}

static void print_verdict(const struct het_command *command, const json_t *verdict)
{
    bool valid = json_is_true(json_object_get(verdict, "valid"));
    puts(valid ? "The plan is valid." : "The plan is not valid:");
    print_violations(verdict);
    if (command->bit == HET_COMMAND_COST)
        print_price(verdict);
}

static const char *const price_fields[] = {
    "iterationSeconds", "closedFormSeconds", "parts",        "peakMemoryBytes",
    "profile",          "extrapolated",      "assumedLinks",
};

/* Judges the plan of the operand; check leaves the price out. */
static int run_judge(const struct het_command *command, const struct het_options *options)
{
    struct het_arena *arena = het_arena_new();
    struct het_error err;
    json_auto_t *plan = NULL;
    struct het_question question;
    int code;
    if (het_command_read_plan(command, options, arena, &plan, &question, &err) < 0) {
        code = het_command_fail(command, &err);
    } else {
        json_auto_t *verdict = het_question_judge(arena, &question, plan);
        code = json_is_true(json_object_get(verdict, "valid")) ? HET_EXIT_DONE
                                                               : HET_EXIT_NO_PLAN;
        size_t left_out = sizeof price_fields / sizeof *price_fields;
        for (size_t i = 0; command->bit == HET_COMMAND_CHECK && i < left_out; i++)
            json_object_del(verdict, price_fields[i]);
        if (het_command_wants_table(options))
            print_verdict(command, verdict);
        else
            het_command_print(verdict);
        code = het_command_finish(command, code);
    }
    het_arena_free(arena);
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
