#include "planner/cli/command.h"

#include "planner/format/document/read_file.h"
#include "planner/format/document/unused_json.h"
#include "planner/system_call_filter.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A line on standard error that is written over, from half a second on. */
struct progress_line {
    struct timespec started;
    bool shown;
};

static void show_progress(void *context, const struct het_progress *progress)
{
    struct progress_line *line = context;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds = (double)(now.tv_sec - line->started.tv_sec) +
                     (double)(now.tv_nsec - line->started.tv_nsec) * 1e-9;
    if (seconds < 0.5)
        return;
    line->shown = true;
    fprintf(stderr, "\r\033[K%s: %llu plans priced",
            *progress->algorithm ? progress->algorithm : "search",
            progress->plans_priced);
    if (progress->best_s > 0)
        fprintf(stderr, ", best so far %.4g s a step, none below %.4g s (gap %.0f %%)",
                progress->best_s, progress->bound_s,
                100 * (progress->best_s / progress->bound_s - 1));
    fprintf(stderr, " (%.0f s)", seconds);
    fflush(stderr);
}

static void hide_progress(const struct progress_line *line)
{
    if (line->shown)
        fputs("\r\033[K", stderr);
}

static struct het_planner *told_to_stop;

static void stop(int number)
{
    (void)number;
    het_planner_cancel(told_to_stop);
}

/* SIGTERM, and SIGXCPU when the CPU time is over (`hetplan plan -`), end the search of
 * `planner` with the best plan that it has. */
static void answer_early(struct het_planner *planner)
{
    static const int signals[] = { SIGTERM, SIGXCPU };
    struct sigaction action = { .sa_handler = stop, .sa_flags = SA_RESTART };
    told_to_stop = planner;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
}

/* From now on this process can read, write and compute (system_call_filter.h). Where it
 * cannot be held to that it goes on: whether that is good enough is for who started
 * it. */
static void confine(void)
{
    struct sock_filter filter[HET_SYSTEM_CALL_FILTER_MAX];
    if (het_system_call_filter_is_possible())
        het_system_call_filter_enter(filter, het_system_call_filter_build(false, filter));
}

static int read_question(struct het_planner *planner, struct het_error *err)
{
    auto_free char *text = NULL;
    size_t length;
    if (het_read_file_stream(stdin, "standard input", &text, &length, err) < 0)
        return -1;
    if (strlen(text) != length)
        return het_fail(err, HET_BAD_INPUT,
                        "standard input: has a NUL byte; take it out");
    het_planner_set(planner, "question", text);
    return 0;
}

/* The question as a whole is what standard input is. */
static char *message_of(const struct het_planner *planner)
{
    const char *message = het_planner_message(planner);
    bool is_whole = !strcmp(het_planner_path(planner), "question");
    return is_whole ? xasprintf("standard input%s", message + strlen("question"))
                    : xstrdup(message);
}

static void print_error(int code, const char *message)
{
    static const char *const codes[] = { [HET_EXIT_NO_PLAN] = "NoPlan",
                                         [HET_EXIT_BAD_INPUT] = "BadInput",
                                         [HET_EXIT_CUT_SHORT] = "CutShort" };
    json_auto_t *json = json_pack("{s:{s:s, s:o}}", "error", "code", codes[code],
                                  "message", het_json_text(message));
    het_command_print(json);
}

/* `hetplan plan -`: a document in, JSON out whatever happens but that memory is out. */
static int plan_document(const struct het_command *command,
                         const struct het_options *options)
{
    struct het_error err;
    struct het_asked asked = { .planner = het_asked_planner(options),
                               .form = HET_FORM_JSON };
    const char *answer;
    int code = HET_EXIT_BAD_INPUT;
    answer_early(asked.planner);
    confine();
    if (read_question(asked.planner, &err) < 0) {
        print_error(code, err.message);
    } else if ((answer = het_planner_plan(asked.planner, asked.form))) {
        puts(answer);
        code = HET_EXIT_DONE;
    } else if (het_planner_status(asked.planner) == HET_STATUS_OUT_OF_MEMORY) {
        return het_asked_fail(command, asked.planner);
    } else {
        code = (int)het_planner_status(asked.planner);
        auto_free char *message = message_of(asked.planner);
        print_error(code, message);
    }
    het_asked_fini(&asked);
    return het_command_finish(command, code);
}

/* Where the plan is no table, what nobody knows of GPUs is said beside it. */
static void warn_of_unknown(const struct het_command *command, const char *plan)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *json = json_loads(plan, 0, NULL);
    const struct het_view root = het_view_root(json);
    const struct het_view unused = het_view_get(&root, "unused");
    struct het_unused_list list = { 0 };
    het_unused_json_read(arena, &unused, &list, NULL);
    for (size_t i = 0; i < list.count; i++) {
        const struct het_unused *group = &list.groups[i];
        if (het_unused_is_unknown(group->reason))
            fprintf(stderr, "hetplan %s: warning: %u %s%sGPU%s on %s%s: %s\n",
                    command->name, group->gpus, group->type, *group->type ? " " : "",
                    group->gpus == 1 ? "" : "s", group->nodes[0],
                    group->node_count > 1 ? " and others" : "",
                    het_unused_text(arena, group));
    }
    het_arena_free(arena);
}

static int run_plan(const struct het_command *command, const struct het_options *options)
{
    struct het_error err;
    if (options->operand && !strcmp(options->operand, "-")) {
        if (!json_object_size(options->values))
            return plan_document(command, options);
        het_fail(&err, HET_BAD_INPUT,
                 "\"-\" takes no options; the document on standard input says it all");
        return het_command_fail(command, &err);
    }
    if (options->operand) {
        het_fail(&err, HET_BAD_INPUT, "unexpected argument \"%.60s\"; see --help",
                 options->operand);
        return het_command_fail(command, &err);
    }
    struct het_asked asked;
    struct progress_line line = { 0 };
    bool quiet = json_object_get(options->values, "quiet") || !isatty(STDERR_FILENO);
    int code = het_command_ask(command, options, false, &asked);
    if (!code) {
        clock_gettime(CLOCK_MONOTONIC, &line.started);
        if (!quiet)
            het_planner_on_progress(asked.planner, show_progress, &line);
        answer_early(asked.planner);
        const char *plan = het_planner_plan(asked.planner, asked.form);
        hide_progress(&line);
        if (plan && asked.form == HET_FORM_JSON)
            warn_of_unknown(command, plan);
        code = het_command_tell(command, &asked, plan);
    }
    het_asked_fini(&asked);
    return code;
}

const struct het_command het_command_plan = {
    .name = "plan",
    .bit = HET_COMMAND_PLAN,
    .run = run_plan,
    .summary = "search the plan with the shortest iteration",
    .synopsis =
        "hetplan plan --profile DIR|FILE --cluster FILE --global-batch-size N "
        "[OPTION]...\nhetplan plan -\nhetplan plan --kubeconfig FILE --job NAME|FILE "
        "[--context C] [--namespace NS]",
    .description =
        "Searches how to train a model on a cluster of unequal GPUs: which GPUs form "
        "which pipeline, where the layers are cut into stages, how many replicas and "
        "which tensor-parallel degree a stage has, how many samples each takes. The "
        "plan printed is the fastest one found that fits into the memory of every "
        "GPU; it may leave GPUs idle. The same input gives the same plan, byte for "
        "byte.\n\n"
        "With \"-\" one JSON document is read from standard input, {\"cluster\", "
        "\"pods\", \"profile\", \"hardware\", \"network\", \"job\"}, each part in the form of its "
        "file, and the answer on standard output is always JSON: the plan, or "
        "{\"error\": {\"code\": \"NoPlan\", \"BadInput\" or \"CutShort\", \"message\"}}; "
        "SIGTERM ends the search with the best plan so far.\n\n"
        "With --kubeconfig the plan is that which a HeteroTrainingJob, of the cluster or "
        "of a file, would get on the live cluster now; nothing there is written. That "
        "is \"kubectl-htj plan\", a program beside this one that asks through kubectl, "
        "and takes its options; the answer is JSON unless standard output is a terminal.",
    .output = "The plan as one line of canonical JSON, or as a table and a picture. "
              "predicted.lowerBoundSeconds is proved: no plan for this input is "
              "faster under the same cost model.",
    .exit_status = "0  a plan was found\n1  no plan fits; standard error says why, "
                   "and what came nearest\n2  an option or a file is wrong; standard "
                   "error names file, field and what to change\n3  \"-\" was told to "
                   "stop before there was a plan",
    .examples = "hetplan plan --profile profiles/OPT-350 --cluster cluster.json \\\n"
                "    --global-batch-size 256\n"
                "kubectl get nodes -o json > nodes.json\n"
                "kubectl get pods -A -o json > pods.json\n"
                "hetplan plan --profile model-profile.yaml --cluster nodes.json \\\n"
                "    --pods pods.json --global-batch-size 1024 --output json > plan.json",
};
