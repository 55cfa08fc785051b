#include "planner/cli/command.h"

#include "planner/run/run_all.h"

#include <math.h>
#include <time.h>

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

static int run_compare(const struct het_command *command,
                       const struct het_options *options)
{
    struct het_arena *arena = het_arena_new();
    struct het_error err;
    struct het_question question;
    struct contestant contestants[MAX_CONTESTANTS] = { 0 };
    size_t count = 0;
    int code = HET_EXIT_DONE;
    if (het_command_read(command, options, arena, &question, &err) < 0) {
        code = het_command_fail(command, &err);
        het_arena_free(arena);
        return code;
    }
    for (const struct het_algorithm *const *a = het_search_algorithms();
         *a && count < MAX_CONTESTANTS; a++)
        if (!(*a)->is_apart && !(*a)->needs_from) {
            contestants[count].algorithm = *a;
            compete(arena, &question, &contestants[count++]);
        }
    if (het_command_wants_table(options)) {
        print_contestants(contestants, count);
    } else {
        json_auto_t *json = contestants_json(contestants, count);
        het_command_print(json);
    }
    het_arena_free(arena);
    return het_command_finish(command, code);
}

const struct het_command het_command_compare = {
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
};
