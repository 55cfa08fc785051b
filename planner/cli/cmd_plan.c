#include "planner/cli/command.h"

#include "planner/cost/bound.h"
#include "planner/format/document/plan_json.h"
#include "planner/format/document/read_file.h"
#include "planner/render/people/table.h"
#include "planner/system_call_filter.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A line on standard error that is written over, from half a second on. */
struct progress {
    struct timespec started;
    bool shown;
    double bound_s; /* the compute floor, when shown first */
};

static void show_progress(void *context, const struct het_search *search)
{
    struct progress *progress = context;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds = (double)(now.tv_sec - progress->started.tv_sec) +
                     (double)(now.tv_nsec - progress->started.tv_nsec) * 1e-9;
    if (seconds < 0.5)
        return;
    if (!progress->shown)
        progress->bound_s = het_bound_floor(search->problem);
    progress->shown = true;
    fprintf(stderr, "\r\033[K%s: %llu plans priced",
            search->algorithm ? search->algorithm->name : "search",
            (unsigned long long)search->statistics.plans_priced);
    if (search->incumbent)
        fprintf(stderr, ", best so far %.4g s a step, none below %.4g s (gap %.0f %%)",
                search->incumbent_cost.iteration_s, progress->bound_s,
                100 * (search->incumbent_cost.iteration_s / progress->bound_s - 1));
    fprintf(stderr, " (%.0f s)", seconds);
    fflush(stderr);
}

static void hide_progress(const struct progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
}

/* Set by SIGTERM, and by SIGXCPU when the CPU time is over (`hetplan plan -`). */
static volatile sig_atomic_t told_to_stop;

static void stop(int number)
{
    (void)number;
    told_to_stop = 1;
}

/* The search then ends with the best plan that it has. */
static void answer_early(void)
{
    static const int signals[] = { SIGTERM, SIGXCPU };
    struct sigaction action = { .sa_handler = stop, .sa_flags = SA_RESTART };
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
}

static int answer(struct het_arena *arena, struct het_question *question,
                  struct progress *progress, const struct het_plan **ret,
                  struct het_error *err)
{
    if (progress) {
        clock_gettime(CLOCK_MONOTONIC, &progress->started);
        question->options.progress = show_progress;
        question->options.progress_context = progress;
    }
    question->options.stop = &told_to_stop;
    int result = het_question_plan(arena, question, ret, err);
    if (progress)
        hide_progress(progress);
    return result;
}

/* From now on this process can read, write and compute (system_call_filter.h). Where it
 * cannot be held to that it goes on: whether that is good enough is for who started
 * it. */
static void confine(void)
{
    struct sock_filter filter[HET_CONFINE_MAX];
    if (het_confine_is_possible())
        het_confine_enter(filter, het_confine_filter(false, filter));
}

/* `hetplan plan -`: a document in, JSON out whatever happens. */
static int plan_document(const struct het_command *command)
{
    static const char *const codes[] = { [HET_EXIT_NO_PLAN] = "NoPlan",
                                         [HET_EXIT_BAD_INPUT] = "BadInput",
                                         [HET_EXIT_CUT_SHORT] = "CutShort" };
    struct het_arena *arena = het_arena_new();
    struct het_error err;
    json_auto_t *document = NULL, *json = NULL;
    auto_free char *text = NULL;
    size_t length;
    struct het_question question;
    const struct het_plan *plan;
    int code = HET_EXIT_DONE;
    answer_early();
    confine();
    if (het_input_read_stream(stdin, "standard input", &text, &length, &err) < 0 ||
        het_json_decode(text, length, "standard input", &document, &err) < 0 ||
        het_question_read(arena, document, &question, &err) < 0 ||
        answer(arena, &question, NULL, &plan, &err) < 0) {
        code = het_command_exit_code(&err);
        json = json_pack("{s:{s:s, s:o}}", "error", "code", codes[code], "message",
                         het_json_text(err.message));
    } else {
        json = het_codec_plan_json(plan);
    }
    het_command_print(json);
    het_arena_free(arena);
    return het_command_finish(command, code);
}

static void print_table(struct het_arena *arena, const struct het_problem *problem,
                        const struct het_plan *plan)
{
    fputs(het_render_table(arena, problem, plan, het_terminal_width(),
                           het_terminal_charset()),
          stdout);
}

/* Where the plan is no table, what nobody knows of GPUs is said beside it. */
static void warn_of_unknown(struct het_arena *arena, const struct het_command *command,
                            const struct het_plan *plan)
{
    for (size_t i = 0; i < plan->unused_count; i++) {
        const struct het_unused *group = &plan->unused[i];
        if (het_unused_is_unknown(group->reason))
            fprintf(stderr, "hetplan %s: warning: %u %s%sGPU%s on %s%s: %s\n",
                    command->name, group->gpus, group->type, *group->type ? " " : "",
                    group->gpus == 1 ? "" : "s", group->nodes[0],
                    group->node_count > 1 ? " and others" : "",
                    het_unused_text(arena, group));
    }
}

static int run_plan(const struct het_command *command, const struct het_options *options)
{
    struct het_error err;
    if (options->operand && !strcmp(options->operand, "-")) {
        if (!json_object_size(options->values))
            return plan_document(command);
        het_fail(&err, HET_BAD_INPUT,
                 "\"-\" takes no options; the document on standard input says it all");
        return het_command_fail(command, &err);
    }
    if (options->operand) {
        het_fail(&err, HET_BAD_INPUT, "unexpected argument \"%.60s\"; see --help",
                 options->operand);
        return het_command_fail(command, &err);
    }
    struct het_arena *arena = het_arena_new();
    struct het_question question;
    const struct het_plan *plan;
    struct progress progress = { 0 };
    bool quiet = json_object_get(options->values, "quiet") || !isatty(STDERR_FILENO);
    int code;
    if (het_command_read(command, options, NULL, arena, &question, &err) < 0 ||
        answer(arena, &question, quiet ? NULL : &progress, &plan, &err) < 0) {
        code = het_command_fail(command, &err);
    } else {
        if (het_command_wants_table(options)) {
            print_table(arena, &question.problem, plan);
        } else {
            json_auto_t *json = het_codec_plan_json(plan);
            warn_of_unknown(arena, command, plan);
            het_command_print(json);
        }
        code = het_command_finish(command, HET_EXIT_DONE);
    }
    het_arena_free(arena);
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
