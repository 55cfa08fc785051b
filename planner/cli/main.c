/* hetplan - searches, prices and checks parallelism plans on clusters of unequal GPUs.
 * Files in, JSON or text out; the only reader of files, terminal and clock here. */
#include "planner/cli/cmd_profile.h"
#include "planner/cli/options.h"
#include "planner/cli/question_document.h"
#include "planner/format/document/read_file.h"
#include "planner/hetplan.h"
#include "planner/render/people/table.h"
#include "planner/render/people/timeline.h"
#include "planner/system_call_filter.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_DONE = 0, EXIT_NO_PLAN = 1, EXIT_BAD_INPUT = 2, EXIT_CUT_SHORT = 3 };

struct command {
    const char *name;
    enum het_command_bit bit;
    const char *synopsis, *summary, *description, *output, *exit_status, *examples;
    int (*run)(const struct command *command, const struct het_options *options);
};

/* ---- terminal ---- */

#define WIDTH_DEFAULT 100
#define WIDTH_LEAST   70
#define WIDTH_MOST    160

static int terminal_width(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int width = columns ? atoi(columns) : 0;
    if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
        width = size.ws_col;
    if (width <= 0)
        width = WIDTH_DEFAULT;
    return width < WIDTH_LEAST ? WIDTH_LEAST : width > WIDTH_MOST ? WIDTH_MOST : width;
}

static enum het_charset terminal_charset(void)
{
    static const char *const variables[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8") ? HET_UTF8
                                                                           : HET_ASCII;
    }
    return HET_ASCII;
}

static bool wants_table(const struct het_options *options)
{
    const char *output = het_options_text(options, "output");
    return output ? !strcmp(output, "table") : isatty(STDOUT_FILENO);
}

/* ---- ends of a command ---- */

static int exit_code(const struct het_error *err)
{
    return err->code == HET_NO_PLAN     ? EXIT_NO_PLAN
           : err->code == HET_CUT_SHORT ? EXIT_CUT_SHORT
                                        : EXIT_BAD_INPUT;
}

static int fail(const struct command *command, const struct het_error *err)
{
    fprintf(stderr, "hetplan %s: %s\n", command->name, err->message);
    return exit_code(err);
}

/* Whether all that was printed has arrived. */
static bool printed(const struct command *command)
{
    if (!fflush(stdout) && !ferror(stdout))
        return true;
    fprintf(stderr, "hetplan %s: standard output: %s\n", command->name, strerror(errno));
    return false;
}

static int finish(const struct command *command, int code)
{
    return printed(command) ? code : EXIT_BAD_INPUT;
}

static void print_json(const json_t *json)
{
    auto_free char *text = het_json_canonical(json);
    puts(text);
}

/* ---- plan ---- */

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

static int answer(struct het_arena *arena, const json_t *document,
                  struct het_question *question, struct progress *progress,
                  const struct het_plan **ret, struct het_error *err)
{
    if (het_question_read(arena, document, question, err) < 0)
        return -1;
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
static int plan_document(const struct command *command)
{
    static const char *const codes[] = { [EXIT_NO_PLAN] = "NoPlan",
                                         [EXIT_BAD_INPUT] = "BadInput",
                                         [EXIT_CUT_SHORT] = "CutShort" };
    struct het_arena *arena = het_arena_new();
    struct het_error err;
    json_auto_t *document = NULL, *json = NULL;
    auto_free char *text = NULL;
    size_t length;
    struct het_question question;
    const struct het_plan *plan;
    int code = EXIT_DONE;
    answer_early();
    confine();
    if (het_input_read_stream(stdin, "standard input", &text, &length, &err) < 0 ||
        het_json_decode(text, length, "standard input", &document, &err) < 0 ||
        answer(arena, document, &question, NULL, &plan, &err) < 0) {
        code = exit_code(&err);
        json = json_pack("{s:{s:s, s:o}}", "error", "code", codes[code], "message",
                         het_json_text(err.message));
    } else {
        json = het_codec_plan_json(plan);
    }
    print_json(json);
    het_arena_free(arena);
    return finish(command, code);
}

static void print_table(struct het_arena *arena, const struct het_problem *problem,
                        const struct het_plan *plan)
{
    fputs(het_render_table(arena, problem, plan, terminal_width(), terminal_charset()),
          stdout);
}

/* Where the plan is no table, what nobody knows of GPUs is said beside it. */
static void warn_of_unknown(struct het_arena *arena, const struct command *command,
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

static int run_plan(const struct command *command, const struct het_options *options)
{
    struct het_error err;
    if (options->operand && !strcmp(options->operand, "-")) {
        if (!json_object_size(options->values))
            return plan_document(command);
        het_fail(&err, HET_BAD_INPUT,
                 "\"-\" takes no options; the document on standard input says it all");
        return fail(command, &err);
    }
    if (options->operand) {
        het_fail(&err, HET_BAD_INPUT, "unexpected argument \"%.60s\"; see --help",
                 options->operand);
        return fail(command, &err);
    }
    struct het_arena *arena = het_arena_new();
    json_auto_t *document = NULL;
    struct het_question question;
    const struct het_plan *plan;
    struct progress progress = { 0 };
    bool quiet = json_object_get(options->values, "quiet") || !isatty(STDERR_FILENO);
    int code;
    if (het_options_need(command->bit, options, &err) < 0 ||
        het_document_build(options, NULL, &document, &err) < 0 ||
        answer(arena, document, &question, quiet ? NULL : &progress, &plan, &err) < 0) {
        code = fail(command, &err);
    } else {
        if (wants_table(options)) {
            print_table(arena, &question.problem, plan);
        } else {
            json_auto_t *json = het_codec_plan_json(plan);
            warn_of_unknown(arena, command, plan);
            print_json(json);
        }
        code = finish(command, EXIT_DONE);
    }
    het_arena_free(arena);
    return code;
}

/* ---- cost, check ---- */

static void print_violations(const json_t *verdict)
{
    const json_t *list = json_object_get(verdict, "violations");
    for (size_t i = 0; i < json_array_size(list); i++)
        printf("  %s\n", json_string_value(json_array_get(list, i)));
}

static double get_real(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void print_assumed_links(const json_t *links)
{
    for (size_t i = 0; i < json_array_size(links); i++) {
        const json_t *link = json_array_get(links, i);
        const char *where = json_string_value(json_object_get(link, "link"));
        printf("  %.4g GB/s %s %s is assumed, not measured\n", get_real(link, "GBs"),
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
           get_real(verdict, "iterationSeconds"), get_real(parts, "pipelineSeconds"),
           get_real(parts, "gradientSyncSeconds"), get_real(parts, "optimizerSeconds"),
           get_real(verdict, "closedFormSeconds"));
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
               get_real(peak, "pipeline"), get_real(peak, "stage"),
               get_real(peak, "replica"), get_real(peak, "bytes") / 0x1p30,
               get_real(peak, "capacityBytes") / 0x1p30);
    }
}

static void print_verdict(const struct command *command, const json_t *verdict)
{
    bool valid = json_is_true(json_object_get(verdict, "valid"));
    puts(valid ? "The plan is valid." : "The plan is not valid:");
    print_violations(verdict);
    if (command->bit == HET_COMMAND_COST)
        print_price(verdict);
}

/* Judges the plan of the operand; check leaves the price out. */
static int run_judge(const struct command *command, const struct het_options *options)
{
    struct het_arena *arena = het_arena_new();
    struct het_error err;
    json_auto_t *document = NULL, *plan = NULL;
    struct het_question question;
    int code;
    if (!options->operand)
        het_fail(&err, HET_BAD_INPUT, "PLAN.json is missing; see --help");
    if (!options->operand || het_options_need(command->bit, options, &err) < 0 ||
        het_input_read(options->operand, &plan, &err) < 0 ||
        het_document_build(options, plan, &document, &err) < 0 ||
        het_question_read(arena, document, &question, &err) < 0) {
        code = fail(command, &err);
    } else {
        json_auto_t *verdict = het_question_judge(arena, &question, plan);
        code = json_is_true(json_object_get(verdict, "valid")) ? EXIT_DONE : EXIT_NO_PLAN;
        if (command->bit == HET_COMMAND_CHECK) {
            json_object_del(verdict, "iterationSeconds");
            json_object_del(verdict, "closedFormSeconds");
            json_object_del(verdict, "parts");
            json_object_del(verdict, "peakMemoryBytes");
            json_object_del(verdict, "profile");
            json_object_del(verdict, "extrapolated");
            json_object_del(verdict, "assumedLinks");
        }
        if (wants_table(options))
            print_verdict(command, verdict);
        else
            print_json(verdict);
        code = finish(command, code);
    }
    het_arena_free(arena);
    return code;
}

/* ---- diff ---- */

static void print_migration(const json_t *migration)
{
    const json_t *bytes = json_object_get(migration, "bytes");
    const json_t *bottleneck = json_object_get(migration, "bottleneck");
    const char *node = json_string_value(json_object_get(bottleneck, "node"));
    size_t ranks = json_array_size(json_object_get(migration, "ranks"));
    if (json_object_get(migration, "fromIterationSeconds"))
        printf("%.6g s a step now, %.6g s then\n",
               get_real(migration, "fromIterationSeconds"),
               get_real(migration, "iterationSeconds"));
    else
        printf("the running plan cannot go on; %.6g s a step then\n",
               get_real(migration, "iterationSeconds"));
    printf("%.0f of %zu ranks keep their layers\n", get_real(migration, "ranksKept"),
           ranks);
    printf("%.3f GB from local disks, %.3f from other nodes, %.3f from the cloud (the "
           "state is %.3f)\n",
           get_real(bytes, "local") / 1e9, get_real(bytes, "peer") / 1e9,
           get_real(bytes, "cloud") / 1e9, get_real(bytes, "state") / 1e9);
    printf("%.3g s, by %s%s%s\n", get_real(migration, "seconds"),
           json_string_value(json_object_get(bottleneck, "resource")), node ? " of " : "",
           node ? node : "");
}

static int run_diff(const struct command *command, const struct het_options *options)
{
    struct het_arena *arena = het_arena_new();
    struct het_error err;
    json_auto_t *document = NULL, *plan = NULL, *migration = NULL;
    struct het_question question;
    int code = EXIT_DONE;
    if (!options->operand)
        het_fail(&err, HET_BAD_INPUT, "PLAN.json is missing; see --help");
    if (!options->operand || het_options_need(command->bit, options, &err) < 0 ||
        het_input_read(options->operand, &plan, &err) < 0 ||
        het_document_build(options, plan, &document, &err) < 0 ||
        het_question_read(arena, document, &question, &err) < 0 ||
        het_question_diff(arena, &question, plan, &migration, &err) < 0)
        code = fail(command, &err);
    else if (wants_table(options))
        print_migration(migration);
    else
        print_json(migration);
    het_arena_free(arena);
    return finish(command, code);
}

/* ---- explain ---- */

static int run_explain(const struct command *command, const struct het_options *options)
{
    struct het_arena *arena = het_arena_new();
    struct het_error err;
    json_auto_t *document = NULL, *plan_json = NULL;
    struct het_question question;
    struct het_explanation explanation;
    const struct het_plan *plan;
    bool searches = !json_object_get(options->values, "noSearch");
    int code = EXIT_DONE;
    if (!options->operand)
        het_fail(&err, HET_BAD_INPUT, "PLAN.json is missing; see --help");
    if (!options->operand || het_options_need(command->bit, options, &err) < 0 ||
        het_input_read(options->operand, &plan_json, &err) < 0 ||
        het_document_build(options, plan_json, &document, &err) < 0 ||
        het_question_read(arena, document, &question, &err) < 0 ||
        het_question_explain(arena, &question, plan_json, searches, &plan, &explanation,
                             &err) < 0) {
        code = fail(command, &err);
    } else if (wants_table(options)) {
        fputs(het_render_explanation(arena, &question.problem, plan, &explanation,
                                     terminal_width()),
              stdout);
    } else {
        json_auto_t *json = het_question_explanation_json(&question, &explanation);
        print_json(json);
    }
    het_arena_free(arena);
    return finish(command, code);
}

/* ---- compare ---- */

/* What one algorithm came to. */
struct contestant {
    const struct het_algorithm *algorithm;
    const struct het_plan *plan; /* NULL: none */
    struct het_search_statistics statistics;
    double cpu_s;
    char message[256]; /* why there is none */
};

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void compete(struct het_arena *arena, const struct het_question *question,
                    struct contestant *contestant)
{
    const struct het_problem problem = het_question_problem(arena, question);
    struct het_search_options options = question->options;
    struct het_error err;
    double before_s = cpu_seconds();
    options.algorithm = contestant->algorithm->name;
    if (het_search_run(arena, &problem, &options, &contestant->plan,
                       &contestant->statistics, &err) < 0)
        snprintf(contestant->message, sizeof contestant->message, "%.250s", err.message);
    contestant->cpu_s = cpu_seconds() - before_s;
}

static void print_contestants(const struct contestant *contestants, size_t count)
{
    double best_s = HUGE_VAL;
    for (size_t i = 0; i < count; i++)
        if (contestants[i].plan)
            best_s = fmin(best_s, contestants[i].plan->predicted.iteration_s);
    printf("%-14s %10s %8s %10s %7s %6s %9s %9s %8s\n", "algorithm", "s a step",
           "to best", "bound s", "gap", "GPUs", "pipelines", "priced", "CPU s");
    for (size_t i = 0; i < count; i++) {
        const struct contestant *c = &contestants[i];
        if (!c->plan) {
            printf("%-14s no plan: %.100s\n", c->algorithm->name, c->message);
            continue;
        }
        const struct het_prediction *predicted = &c->plan->predicted;
        printf("%-14s %10.5g %+7.1f%% %10.5g %6.1f%% %6u %9zu %9llu %8.3f\n",
               c->algorithm->name, predicted->iteration_s,
               100 * (predicted->iteration_s / best_s - 1), predicted->lower_bound_s,
               100 * (predicted->iteration_s / predicted->lower_bound_s - 1),
               het_plan_gpu_count(c->plan), c->plan->pipeline_count,
               (unsigned long long)c->statistics.plans_priced, c->cpu_s);
    }
}

/* Without seconds of the search: the same input gives the same bytes. */
static json_t *contestants_json(const struct contestant *contestants, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct contestant *c = &contestants[i];
        json_t *json = json_pack("{s:s}", "algorithm", c->algorithm->name);
        if (c->plan) {
            json_object_set_new(json, "iterationSeconds",
                                json_real(c->plan->predicted.iteration_s));
            json_object_set_new(json, "lowerBoundSeconds",
                                json_real(c->plan->predicted.lower_bound_s));
            json_object_set_new(json, "gpus", json_integer(het_plan_gpu_count(c->plan)));
            json_object_set_new(json, "pipelines",
                                json_integer((json_int_t)c->plan->pipeline_count));
            json_object_set_new(json, "plansPriced",
                                json_integer((json_int_t)c->statistics.plans_priced));
        } else {
            json_object_set_new(json, "message", het_json_text(c->message));
        }
        json_array_append_new(list, json);
    }
    return list;
}

#define MAX_CONTESTANTS 32

static int run_compare(const struct command *command, const struct het_options *options)
{
    struct het_arena *arena = het_arena_new();
    struct het_error err;
    json_auto_t *document = NULL;
    struct het_question question;
    struct contestant contestants[MAX_CONTESTANTS] = { 0 };
    size_t count = 0;
    int code = EXIT_DONE;
    if (het_options_need(command->bit, options, &err) < 0 ||
        het_document_build(options, NULL, &document, &err) < 0 ||
        het_question_read(arena, document, &question, &err) < 0) {
        code = fail(command, &err);
        het_arena_free(arena);
        return code;
    }
    for (const struct het_algorithm *const *a = het_search_algorithms();
         *a && count < MAX_CONTESTANTS; a++)
        if (!(*a)->is_apart && !(*a)->needs_from) {
            contestants[count].algorithm = *a;
            compete(arena, &question, &contestants[count++]);
        }
    if (wants_table(options)) {
        print_contestants(contestants, count);
    } else {
        json_auto_t *json = contestants_json(contestants, count);
        print_json(json);
    }
    het_arena_free(arena);
    return finish(command, code);
}

/* ---- simulate ---- */

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
                                             : terminal_width(),
                                       terminal_charset()),
              stdout);
}

static int run_simulate(const struct command *command, const struct het_options *options)
{
    struct het_arena *arena = het_arena_new();
    struct het_error err;
    json_auto_t *document = NULL, *json = NULL;
    struct het_question question;
    const struct het_plan *plan;
    struct het_timeline timeline;
    int code = EXIT_DONE;
    if (!options->operand)
        het_fail(&err, HET_BAD_INPUT, "PLAN.json is missing; see --help");
    if (!options->operand || het_options_need(command->bit, options, &err) < 0 ||
        het_input_read(options->operand, &json, &err) < 0 ||
        het_document_build(options, json, &document, &err) < 0 ||
        het_question_read(arena, document, &question, &err) < 0 ||
        het_question_simulate(arena, &question, json, &plan, &timeline, &err) < 0)
        code = fail(command, &err);
    else
        print_timeline(arena, options, plan, &timeline);
    het_arena_free(arena);
    return finish(command, code);
}

/* ---- render ---- */

static const char *text_or(const struct het_options *options, const char *key,
                           const char *otherwise)
{
    const json_t *render = json_object_get(options->values, "render");
    const char *text = json_string_value(json_object_get(render, key));
    return text ? text : otherwise;
}

static uint32_t number_or(const struct het_options *options, const char *key,
                          uint32_t otherwise)
{
    const json_t *number =
        json_object_get(json_object_get(options->values, "render"), key);
    return number ? (uint32_t)json_integer_value(number) : otherwise;
}

static struct het_render_job render_job(const struct het_options *options)
{
    const char *job = text_or(options, "job", "job");
    return (struct het_render_job){
        .job = job,
        .ns = text_or(options, "namespace", "default"),
        .service = text_or(options, "service", job),
        .generation = number_or(options, "generation", 1),
        .master_port = (uint16_t)number_or(options, "masterPort", 29500),
        .plan_path = "/etc/hetero-plan/plan.json",
    };
}

/* Words for a shell: each in single quotes where it needs them. */
static void put_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789-_./:=,@+";
    if (*word && strspn(word, plain) == strlen(word)) {
        fputs(word, out);
        return;
    }
    putc('\'', out);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (char[]){ *word, 0 }, out);
    putc('\'', out);
}

static void put_arguments(FILE *out, const json_t *pod)
{
    const json_t *list = json_object_get(pod, "arguments");
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (i)
            putc(' ', out);
        put_word(out, json_string_value(json_array_get(list, i)));
    }
    putc('\n', out);
}

static void put_environment(FILE *out, const json_t *pod)
{
    const char *name;
    json_t *value;
    json_object_foreach (json_object_get(pod, "environment"), name, value)
        fprintf(out, "%s=%s\n", name, json_string_value(value));
}

static void print_rendering(const json_t *rendering)
{
    const char *name;
    json_t *text;
    json_object_foreach (json_object_get(rendering, "files"), name, text)
        printf("# %s\n%s\n", name, json_string_value(text));
    const json_t *pods = json_object_get(rendering, "pods");
    for (size_t i = 0; i < json_array_size(pods); i++) {
        const json_t *pod = json_array_get(pods, i);
        printf("# %s on node %s\n", json_string_value(json_object_get(pod, "host")),
               json_string_value(json_object_get(pod, "node")));
        put_environment(stdout, pod);
        put_arguments(stdout, pod);
        putchar('\n');
    }
}

/* A file of its own for each thing; -1 and the cause if one cannot be written. */
static int write_file(const char *directory, const char *name,
                      void (*put)(FILE *out, const json_t *what), const json_t *what,
                      struct het_error *err)
{
    auto_free char *path = xasprintf("%s/%s", directory, name);
    FILE *file = fopen(path, "we");
    if (file)
        put(file, what);
    bool failed = !file || ferror(file);
    if ((file && fclose(file)) || failed)
        return het_fail(err, HET_BAD_INPUT, "%.300s: %s", path, strerror(errno));
    return 0;
}

static void put_text(FILE *out, const json_t *text)
{
    fputs(json_string_value(text), out);
}

static void put_json_line(FILE *out, const json_t *json)
{
    auto_free char *text = het_json_canonical(json);
    fprintf(out, "%s\n", text);
}

static int write_rendering(const char *directory, const json_t *rendering,
                           struct het_error *err)
{
    const char *name;
    json_t *text;
    const json_t *pods = json_object_get(rendering, "pods");
    if (write_file(directory, "plan.json", put_json_line,
                   json_object_get(rendering, "plan"), err) < 0)
        return -1;
    json_object_foreach (json_object_get(rendering, "files"), name, text)
        if (write_file(directory, name, put_text, text, err) < 0)
            return -1;
    for (size_t i = 0; i < json_array_size(pods); i++) {
        const json_t *pod = json_array_get(pods, i);
        auto_free char *arguments = xasprintf("pod-%zu.args", i);
        auto_free char *environment = xasprintf("pod-%zu.env", i);
        if (write_file(directory, arguments, put_arguments, pod, err) < 0 ||
            write_file(directory, environment, put_environment, pod, err) < 0)
            return -1;
    }
    return 0;
}

static int run_render(const struct command *command, const struct het_options *options)
{
    struct het_arena *arena = het_arena_new();
    struct het_error err;
    json_auto_t *plan = NULL, *rendering = NULL;
    const char *directory = het_options_text(options, "directory");
    const json_t *job = json_object_get(options->values, "job");
    const char *name = json_string_value(json_object_get(job, "runtime"));
    const struct het_runtime *runtime = NULL;
    int code = EXIT_DONE;
    if (!options->operand)
        het_fail(&err, HET_BAD_INPUT, "PLAN.json is missing; see --help");
    if (!options->operand || het_options_need(command->bit, options, &err) < 0 ||
        !(runtime = het_runtime_find(name, &err)) ||
        het_input_read(options->operand, &plan, &err) < 0 ||
        het_render_json(arena, runtime, plan, render_job(options), &rendering, &err) <
            0 ||
        (directory && write_rendering(directory, rendering, &err) < 0))
        code = fail(command, &err);
    else if (!directory && wants_table(options))
        print_rendering(rendering);
    else if (!directory)
        print_json(rendering);
    het_arena_free(arena);
    return finish(command, code);
}

/* ---- profile ---- */

static int write_object(const struct het_options *options, const json_t *object,
                        struct het_error *err)
{
    const char *output = het_options_text(options, "output");
    const char *path = het_options_text(options, "outputFile");
    bool is_json = output && !strcmp(output, "json");
    auto_free char *text = is_json ? het_json_canonical(object) : het_yaml_text(object);
    FILE *file = path ? fopen(path, "we") : stdout;
    if (!file)
        return het_fail(err, HET_BAD_INPUT, "%.300s: %s", path, strerror(errno));
    fprintf(file, is_json ? "%s\n" : "%s", text);
    bool failed = ferror(file);
    if (path && (fclose(file) || failed))
        return het_fail(err, HET_BAD_INPUT, "%.300s: %s", path, strerror(errno));
    return 0;
}

static int run_convert(const struct command *command, const struct het_options *options)
{
    struct het_error err;
    json_auto_t *object = NULL;
    if (het_convert(command->bit, options, &object, &err) < 0 ||
        write_object(options, object, &err) < 0)
        return fail(command, &err);
    return finish(command, EXIT_DONE);
}

/* ---- commands ---- */

#define CONVERTED                                                                          \
    "A ModelProfile (docs/api.md) as YAML or JSON. Layers in a row that are equal are "    \
    "one layer group; times that are no whole microseconds are decimals in quotes, exact " \
    "to the last bit."
#define CONVERT_EXIT_STATUS                                                              \
    "0  done\n2  an option or a file is wrong; standard error names file and field"

static const struct command commands[] = {
    {
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
        .examples =
            "hetplan plan --profile profiles/OPT-350 --cluster cluster.json \\\n"
            "    --global-batch-size 256\n"
            "kubectl get nodes -o json > nodes.json\n"
            "kubectl get pods -A -o json > pods.json\n"
            "hetplan plan --profile model-profile.yaml --cluster nodes.json \\\n"
            "    --pods pods.json --global-batch-size 1024 --output json > plan.json",
    },
    {
        .name = "cost",
        .bit = HET_COMMAND_COST,
        .run = run_judge,
        .summary = "price a plan and list its violations",
        .synopsis =
            "hetplan cost --profile DIR|FILE --cluster FILE [OPTION]... PLAN.json",
        .description =
            "Prices any plan file, whoever made it: seconds of one iteration, simulated "
            "and in closed form, their parts, and the peak memory of each replica. Lists every violation of the "
            "rules that plans obey, with its place in the file. A plan that breaks a rule "
            "has no price; one that merely does not fit into memory has. The global batch "
            "size is the plan's. \"-\" reads the plan from standard input.",
        .output =
            "{\"valid\", \"violations\", \"iterationSeconds\", "
            "\"closedFormSeconds\", \"parts\", \"peakMemoryBytes\"}, and "
            "\"profile\" if it was not measured, \"extrapolated\" if a micro-batch "
            "is larger than any measured, \"assumedLinks\" if bandwidths are neither "
            "stated nor measured.",
        .exit_status = "0  the plan is valid\n1  it is not\n2  an option or another file "
                       "is wrong",
        .examples = "hetplan cost --profile profiles/OPT-350 --cluster cluster.json "
                    "plan.json",
    },
    {
        .name = "check",
        .bit = HET_COMMAND_CHECK,
        .run = run_judge,
        .summary = "say whether a plan is valid",
        .synopsis =
            "hetplan check --profile DIR|FILE --cluster FILE [OPTION]... PLAN.json",
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
    },
    {
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
        .exit_status =
            "0  the timeline is printed\n2  the plan is not valid, or an option "
            "or a file is wrong",
        .examples =
            "hetplan simulate --profile profiles/OPT-350 --cluster cluster.json "
            "plan.json\n"
            "hetplan simulate --profile profiles/OPT-350 --cluster cluster.json \\\n"
            "    --output svg plan.json > timeline.svg",
    },
    {
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
    },
    {
        .name = "explain",
        .bit = HET_COMMAND_EXPLAIN,
        .run = run_explain,
        .summary = "say why a plan is as it is, and what would make it faster",
        .synopsis =
            "hetplan explain --profile DIR|FILE --cluster FILE [OPTION]... PLAN.json",
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
    },
    {
        .name = "compare",
        .bit = HET_COMMAND_COMPARE,
        .run = run_compare,
        .summary = "run all algorithms on one input",
        .synopsis = "hetplan compare --profile DIR|FILE --cluster FILE "
                    "--global-batch-size N [OPTION]...",
        .description = "Runs each algorithm by itself with the same effort, and prints "
                       "what they came to, all priced by the same simulation.",
        .output = "A table with the CPU seconds of each search, or JSON without.",
        .exit_status = "0  done\n2  an option or a file is wrong",
        .examples = "hetplan compare --profile profiles/OPT-350 --cluster cluster.json "
                    "\\\n    --global-batch-size 256",
    },
    {
        .name = "render",
        .bit = HET_COMMAND_RENDER,
        .run = run_render,
        .summary = "write a plan as a training runtime reads it",
        .synopsis = "hetplan render --runtime NAME [OPTION]... PLAN.json",
        .description =
            "Writes what a training runtime needs to run the plan: its own files, and for "
            "each pod the arguments of the program and the environment of torchrun. A "
            "plan that the runtime cannot run is refused with the reason. \"-\" reads the "
            "plan from standard input.",
        .output =
            "{\"runtime\", \"plan\", \"files\", \"pods\": [ { \"host\", \"node\", "
            "\"gpus\", \"arguments\", \"environment\" } ] }, or the same as text; with "
            "--directory files.",
        .exit_status = "0  the plan was rendered\n1  the runtime cannot run it\n2  an "
                       "option or a file is wrong",
        .examples = "hetplan render --runtime megatron plan.json\n"
                    "hetplan render --runtime flagscale --directory out plan.json",
    },
    {
        .name = "profile from-config",
        .bit = HET_COMMAND_FROM_CONFIG,
        .run = run_convert,
        .summary = "estimate a ModelProfile from a model's config.json",
        .synopsis = "hetplan profile from-config --name NAME --sequence-length N\n"
                    "    (--cluster FILE | --gpu-types LIST) [OPTION]... CONFIG.json",
        .description =
            "Works out what each layer of a model takes on each GPU type, from the model's "
            "config.json and data sheets, as \"hetplan plan --profile CONFIG.json\" does, "
            "and writes it as a ModelProfile. It says of itself that it is estimated, and "
            "so will plans, and the status of jobs. Types whose rate in that precision is "
            "not known are left out.",
        .output = CONVERTED,
        .exit_status = CONVERT_EXIT_STATUS,
        .examples = "hetplan profile from-config --name llama --sequence-length 4096 \\\n"
                    "    --gpu-types A100-SXM4-80GB,H100-SXM5-80GB config.json | kubectl "
                    "apply -f -",
    },
    {
        .name = "profile from-metis",
        .bit = HET_COMMAND_FROM_METIS,
        .run = run_convert,
        .summary = "turn a folder of Metis-format measurements into a ModelProfile",
        .synopsis = "hetplan profile from-metis --name NAME [OPTION]... DIR",
        .description =
            "Reads a folder of files called DeviceType.<TYPE>_tp<T>_bs<B>.json, and writes "
            "them as one ModelProfile, with which plans are the same as with the folder. "
            "GPU types keep their names.",
        .output = CONVERTED,
        .exit_status = CONVERT_EXIT_STATUS,
        .examples =
            "hetplan profile from-metis --name opt-350 --layer-times times/OPT-350 "
            "\\\n    --output-file opt-350.yaml profiles/OPT-350",
    },
    {
        .name = "profile from-sailor",
        .bit = HET_COMMAND_FROM_SAILOR,
        .run = run_convert,
        .summary = "turn measurements in Sailor's form into a ModelProfile",
        .synopsis = "hetplan profile from-sailor --name NAME [OPTION]... DIR",
        .description =
            "Reads a folder of Sailor's <TYPE>.json files, with llm_info.json there or in "
            "one of the two folders above, and writes them as one ModelProfile, with which "
            "plans are the same as with the folder. GPU types keep their names.",
        .output = CONVERTED,
        .exit_status = CONVERT_EXIT_STATUS,
        .examples = "hetplan profile from-sailor --name opt-350 --sequence-length 2048 "
                    "profiles/OPT-350",
    },
    {
        .name = "profile from-megatron-timers",
        .bit = HET_COMMAND_FROM_TIMERS,
        .run = run_convert,
        .summary = "turn logs of Megatron-LM's timers into a ModelProfile",
        .synopsis = "hetplan profile from-megatron-timers --name NAME [OPTION]... "
                    "TYPE=LOG...",
        .description =
            "Reads what runs of Megatron-LM with --timing-log-level 2 printed: the list of "
            "their arguments, and the times of forward-compute, backward-compute and "
            "optimizer. Each log is of one GPU type, degree and micro-batch size; several "
            "become one profile. Runs with several stages need --timing-log-option all. "
            "Two runs with different numbers of layers tell blocks from embedding and "
            "head; of one run they are told apart by an estimate. Sizes of layers are "
            "worked out from the arguments. Where ranks write logs of their own, put that "
            "of rank 0 before that of the last one.",
        .output = CONVERTED,
        .exit_status = CONVERT_EXIT_STATUS,
        .examples =
            "hetplan profile from-megatron-timers --name gpt \\\n"
            "    A100-SXM4-80GB=a100-tp1.log A100-SXM4-80GB=a100-tp2.log V100=v100.log",
    },
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

/* ---- help ---- */

static void print_section(const char *title, const char *text)
{
    printf("\n%s\n", title);
    het_options_wrap(stdout, 2, text);
}

/* Text whose lines stay as they are. */
static void print_lines(const char *title, const char *text)
{
    printf("\n%s\n", title);
    while (*text) {
        int length = (int)strcspn(text, "\n");
        printf("  %.*s\n", length, text);
        text += length + (text[length] == '\n');
    }
}

static void print_algorithms(void)
{
    puts("\nALGORITHMS");
    for (const struct het_algorithm *const *a = het_search_algorithms(); *a; a++) {
        printf("  %s\n", (*a)->name);
        auto_free char *text = xasprintf("%s. %s.", (*a)->summary, (*a)->source);
        het_options_wrap(stdout, 6, text);
    }
}

static void print_files(void)
{
    print_section(
        "FILES",
        "A cluster in the short form: { \"nodes\": [ { \"name\": \"a100\", \"type\": "
        "\"A100\", \"gpus\": 4, \"memory_gb\": 40, \"intra_gb_s\": 240, \"inter_gb_s\": 3, "
        "\"repeat\": 8 }, ... ] }. memory_gb is GiB of one GPU; bandwidths are GB/s each "
        "way: between the GPUs of the node, and the node's uplink, shared by all that "
        "leaves it. All but type and gpus may be left out where the hardware table knows "
        "the type. Also: inter_flow_gb_s, latency_us, workspace_gb, profile.\n\n"
        "A hardware file: { \"gpuTypes\": [ { \"name\": \"A100-SXM4-40GB\", \"aliases\": "
        "[...], \"profile\": \"A100\", \"memoryGiB\": 40, \"intraGBs\": 240, \"interGBs\": "
        "3, \"workspaceGiB\": 4, \"pricePerHour\": \"3.67\" } ] }.\n\n"
        "Files may be YAML or JSON. docs/planner.md has the formats of all files and the "
        "cost model.");
}

static void print_help(const struct command *command)
{
    printf("NAME\n  hetplan %s - %s\n", command->name, command->summary);
    print_lines("SYNOPSIS", command->synopsis);
    print_section("DESCRIPTION", command->description);
    puts("\nOPTIONS");
    het_options_print(stdout, command->bit);
    if (command->bit == HET_COMMAND_PLAN)
        print_algorithms();
    print_files();
    print_section("OUTPUT", command->output);
    print_lines("EXIT STATUS", command->exit_status);
    print_lines("EXAMPLES", command->examples);
}

static void print_usage(FILE *out)
{
    fputs("Usage: hetplan COMMAND [OPTION]...\n\n"
          "Plans the training of a model on a cluster of unequal GPUs.\n\nCommands:\n",
          out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-28s %s\n", commands[i].name, commands[i].summary);
    fputs("\n\"hetplan COMMAND --help\" explains a command.\n", out);
}

/* The command that the words begin with, one of them or two ("profile from-metis"), and
 * how many those are. */
static const struct command *find_command(int count, char *const *words,
                                          int *ret_word_count)
{
    auto_free char *pair =
        xasprintf("%s %s", count > 0 ? words[0] : "", count > 1 ? words[1] : "");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        bool is_pair = !strcmp(commands[i].name, pair);
        if (is_pair || (count > 0 && !strcmp(commands[i].name, words[0]))) {
            *ret_word_count = is_pair ? 2 : 1;
            return &commands[i];
        }
    }
    return NULL;
}

static int run_command(const struct command *command, int count, char *const *arguments)
{
    struct het_options options = { 0 };
    struct het_error err;
    if (het_options_parse(command->bit, count, arguments, &options, &err) < 0)
        return fail(command, &err);
    int code = EXIT_DONE;
    if (options.help) {
        print_help(command);
        code = finish(command, EXIT_DONE);
    } else {
        code = command->run(command, &options);
    }
    json_decref(options.values);
    return code;
}

/* Whether `plan` is asked about a live cluster, which kubectl-htj knows. */
static bool is_about_live_cluster(int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (!strcmp(argv[i], "--kubeconfig") ||
            !strncmp(argv[i], "--kubeconfig=", strlen("--kubeconfig=")))
            return argc > 2 && !strcmp(argv[1], "plan");
    return false;
}

/* Becomes `kubectl-htj plan` with the same options: there a job is no option, and a table
 * is the rule. */
static int plan_for_live_cluster(int argc, char **argv)
{
    char path[PATH_MAX], as_json[] = "--output=json";
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length < 0 ? 0 : length] = '\0';
    char *slash = strrchr(path, '/');
    auto_free char *program =
        xasprintf("%.*s/kubectl-htj", slash ? (int)(slash - path) : 0, path);
    auto_free char **words = xcalloc((size_t)argc + 3, sizeof *words);
    int count = 0;
    bool has_output = isatty(STDOUT_FILENO);
    words[count++] = program;
    for (int i = 1; i < argc; i++) {
        bool has_value = !strncmp(argv[i], "--job=", strlen("--job="));
        has_output = has_output || !strncmp(argv[i], "--output", strlen("--output"));
        if (strcmp(argv[i], "--job") != 0)
            words[count++] = has_value ? argv[i] + strlen("--job=") : argv[i];
    }
    if (!has_output)
        words[count++] = as_json;
    execv(program, words);
    fprintf(stderr, "hetplan plan: --kubeconfig needs %s: %s\n", program,
            strerror(errno));
    return EXIT_BAD_INPUT;
}

int main(int argc, char **argv)
{
    json_set_alloc_funcs(xmalloc, free);
    /* A reader that went away is a failed write, to be reported like any other. */
    signal(SIGPIPE, SIG_IGN);
    if (is_about_live_cluster(argc, argv))
        return plan_for_live_cluster(argc, argv);
    const char *name = argc > 1 ? argv[1] : "";
    int words = 0;
    const struct command *command = find_command(argc - 1, argv + 1, &words);
    if (command)
        return run_command(command, argc - 1 - words, argv + 1 + words);
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        command = find_command(argc - 2, argv + 2, &words);
        if (command)
            print_help(command);
        else
            print_usage(stdout);
        return fflush(stdout) ? EXIT_BAD_INPUT : EXIT_DONE;
    }
    if (*name)
        fprintf(stderr, "hetplan: no command \"%.60s\"\n\n", name);
    print_usage(stderr);
    return EXIT_BAD_INPUT;
}
