/* Random lives of a cluster under the real controller (controller/random_run.h).
 * `sim [-j PROCESSES] [FIRST-]LAST` lives those seeds, `sim SEED` with --trace that one,
 * and shows all that happens; --each writes "1..N" and then a line "ok seed SEED" or "not
 * ok seed SEED" for each, --record FILE each decision (controller/record/record_file.h).
 * The last line is "N passed, N failed, N skipped". */
#include "controller/base/log.h"
#include "controller/record/record_file.h"
#include "tests/controller/random_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_PROCESSES = 64 };

struct options {
    uint64_t first, last;
    int processes;
    bool is_traced, tells_each;
    struct record_file *recorder; /* NULL: nothing is recorded */
};

struct sum {
    uint64_t passed, failed, plans, ran, jobs, partial, writes, faults, restarts,
        questions, events, virtual_s;
};

static void live(uint64_t seed, const struct options *options, struct sum *sum)
{
    struct random_run_config config = { .seed = seed,
                                        .trace = options->is_traced ? stdout : NULL,
                                        .on_decision = options->recorder ? record_file_add
                                                                         : NULL,
                                        .decision_context = options->recorder };
    struct random_run_result result = random_run(&config);
    sum->passed += !result.broken;
    sum->failed += result.broken != NULL;
    sum->plans += result.seen.plans;
    sum->jobs += result.seen.jobs_seen;
    sum->ran += result.seen.jobs_that_ran;
    sum->partial += result.seen.partial_gangs;
    sum->writes += result.writes;
    sum->faults += result.faults;
    sum->restarts += result.restarts;
    sum->questions += result.planner_questions;
    sum->events += result.events;
    sum->virtual_s += (uint64_t)result.virtual_ms / 1000;
    if (result.broken)
        printf("FAILED seed %" PRIu64 " (make sim SEED=%" PRIu64 "): %s\n", seed, seed,
               result.broken);
    if (options->tells_each)
        printf("%s seed %" PRIu64 "\n", result.broken ? "not ok" : "ok", seed);
    if (options->is_traced)
        printf("digest %016" PRIx64 "\n", result.digest);
    fflush(stdout);
    free(result.broken);
}

static void add(struct sum *all, const struct sum *one)
{
    uint64_t *total = (uint64_t *)all;
    const uint64_t *part = (const uint64_t *)one;
    for (size_t i = 0; i < sizeof *all / sizeof *total; i++)
        total[i] += part[i];
}

/* Process `index` lives every so many-th seed. */
static int start(const struct options *options, int index, pid_t *ret_pid)
{
    int ends[2];
    if (pipe(ends))
        return -1;
    fflush(stdout);
    *ret_pid = fork();
    if (*ret_pid)
        return close(ends[1]), ends[0];
    struct sum sum = { 0 };
    for (uint64_t seed = options->first + (uint64_t)index; seed <= options->last;
         seed += (uint64_t)options->processes)
        live(seed, options, &sum);
    _exit(write(ends[1], &sum, sizeof sum) != sizeof sum);
}

/* "FIRST-LAST", or "LAST" alone. */
static bool read_seeds(const char *text, struct options *ret)
{
    char *end;
    ret->first = ret->last = strtoull(text, &end, 10);
    if (*end == '-')
        ret->last = strtoull(end + 1, &end, 10);
    return !*end && ret->first && ret->first <= ret->last;
}

static bool read_options(int argc, char **argv, struct options *ret)
{
    bool has_seeds = false;
    *ret = (struct options){ .processes = 1 };
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--trace")) {
            ret->is_traced = true;
        } else if (!strcmp(argv[i], "--each")) {
            ret->tells_each = true;
        } else if (!strcmp(argv[i], "-j") && i + 1 < argc) {
            ret->processes = atoi(argv[++i]);
        } else if (!strcmp(argv[i], "--record") && i + 1 < argc) {
            ret->recorder = record_file_new(argv[++i], 0, true, NULL);
            if (!ret->recorder)
                return false;
        } else if (!has_seeds && read_seeds(argv[i], ret)) {
            has_seeds = true;
        } else {
            return false;
        }
    }
    return has_seeds && ret->processes > 0 && ret->processes <= MOST_PROCESSES;
}

int main(int argc, char **argv)
{
    struct options options;
    struct sum all = { 0 };
    int ends[MOST_PROCESSES];
    pid_t pids[MOST_PROCESSES];
    if (!read_options(argc, argv, &options)) {
        fprintf(
            stderr,
            "usage: sim [-j PROCESSES] [--each] [--trace] [--record FILE] [FIRST-]LAST\n");
        return 2;
    }
    log_set_levels(options.is_traced ? "info" : "off", NULL);
    if (options.tells_each)
        printf("1..%" PRIu64 "\n", options.last - options.first + 1);
    for (int i = 0; i < options.processes; i++)
        ends[i] = start(&options, i, &pids[i]);
    for (int i = 0; i < options.processes; i++) {
        struct sum sum = { 0 };
        int status;
        if (read(ends[i], &sum, sizeof sum) != sizeof sum) {
            sum.failed = 1;
            printf("FAILED process %d of %d: it died in one of its seeds\n", i + 1,
                   options.processes);
        }
        waitpid(pids[i], &status, 0);
        add(&all, &sum);
    }
    printf("%" PRIu64 " s of %" PRIu64 " jobs, %" PRIu64 " of them ran; %" PRIu64
           " events, %" PRIu64 " faults, %" PRIu64 " deaths; %" PRIu64
           " questions, %" PRIu64 " plans, %" PRIu64 " gangs in parts, %" PRIu64
           " writes\n",
           all.virtual_s, all.jobs, all.ran, all.events, all.faults, all.restarts,
           all.questions, all.plans, all.partial, all.writes);
    printf("%" PRIu64 " passed, %" PRIu64 " failed, 0 skipped\n", all.passed, all.failed);
    record_file_free(options.recorder);
    return all.failed ? 1 : 0;
}
