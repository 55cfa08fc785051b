/* One Check runner for all unit suites. `run-tests [-j N] [SUITE]...` runs those named,
 * or all, in N processes at a time. It says "1..N", N being the number of suites, and for
 * each a line "ok SUITE (TESTS, CPU TIME)" or "not ok SUITE: ..." with its failures
 * below. Every failure has a line "FAILED SUITE.TEST (FILE:LINE): ..." at the end; the
 * last line is "N passed, N failed, N skipped".
 *
 * A test may use TEST_CPU_S seconds of CPU time (environment; CPU_S), and so may each
 * program that it starts: what else the machine does is no failure. Only what hangs
 * without using any is ended by the clock, after HANG_S. */
#include "controller/base/log.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SUITE(name) Suite *test_##name##_suite(void);
#include "suites.inc"
#undef SUITE

static const struct {
    const char *name;
    Suite *(*make)(void);
} suites[] = {
#define SUITE(name) { #name, test_##name##_suite },
#include "suites.inc"
#undef SUITE
};

enum {
    SUITES = sizeof suites / sizeof *suites,
    MOST_PROCESSES = 64,
    CPU_S = 300,
    NO_SUITE = -1,
};

#define HANG_S "3600" /* for CK_DEFAULT_TIMEOUT */

/* What the processes share: what they have counted, the suite that each is in, and their
 * failures as text. */
struct state {
    struct {
        int run, failed, suite;
    } processes[MOST_PROCESSES];
    int failures; /* a file */
};

static bool is_wanted(const char *name, int count, char **wanted)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(wanted[i], name))
            return true;
    return !count;
}

static void limit_cpu_time(void)
{
    const char *text = getenv("TEST_CPU_S");
    rlim_t seconds = (rlim_t)(text ? atoi(text) : CPU_S);
    setrlimit(RLIMIT_CPU, &(struct rlimit){ seconds, seconds + 10 });
}

/* FILE:LINE:F:CASE:TEST:0: MESSAGE, with E for errors, as Check tells of a failure: TEST
 * (FILE:LINE): MESSAGE. Lines that are something else, such as a message's second one,
 * stay as they are. */
static bool read_failure(const char *line, char *ret_text, size_t size)
{
    char file[256], name[256];
    int line_number, message = 0;
    if (sscanf(line, "%255[^:]:%d:%*1[FE]:%*[^:]:%255[^:]:%*d:%n", file, &line_number,
               name, &message) != 3 ||
        !message)
        return false;
    snprintf(ret_text, size, "%s (%s:%d):%s", name, file, line_number, line + message);
    return true;
}

/* Each test of a suite that failed: its name, where, why. Only Check's own report has
 * them all; its first line is a count without a name. */
static void report(SRunner *runner, const char *suite, int failures)
{
    int out = dup(STDOUT_FILENO), copy = memfd_create("report", 0);
    dup2(copy, STDOUT_FILENO);
    srunner_print(runner, CK_NORMAL);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    close(out);
    FILE *lines = fdopen(copy, "r");
    rewind(lines);
    char *line = NULL, text[4096];
    size_t size = 0;
    bool is_first = true;
    while (getline(&line, &size, lines) > 0) {
        bool is_failure = read_failure(line, text, sizeof text);
        if (!is_first)
            printf("    %s", is_failure ? text : line);
        is_first = false;
        if (is_failure)
            dprintf(failures, "FAILED %s.%s", suite, text);
    }
    free(line);
    fclose(lines);
}

/* CPU time of this process and of what it has waited for: that of the tests. */
static double cpu_s(void)
{
    struct rusage self, children;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    return (double)(self.ru_utime.tv_sec + self.ru_stime.tv_sec +
                    children.ru_utime.tv_sec + children.ru_stime.tv_sec) +
           (double)(self.ru_utime.tv_usec + self.ru_stime.tv_usec +
                    children.ru_utime.tv_usec + children.ru_stime.tv_usec) /
               1e6;
}

static void run_suite(int index, struct state *state, int process)
{
    double begin_s = cpu_s();
    printf("# %s\n", suites[index].name);
    fflush(stdout);
    SRunner *runner = srunner_create(suites[index].make());
    srunner_run_all(runner, CK_SILENT);
    int run = srunner_ntests_run(runner), failed = srunner_ntests_failed(runner);
    state->processes[process].run += run;
    state->processes[process].failed += failed;
    if (failed)
        printf("not ok %s: %d of %d tests failed\n", suites[index].name, failed, run);
    else
        printf("ok %s (%d test%s, %.1f s of CPU time)\n", suites[index].name, run,
               run == 1 ? "" : "s", cpu_s() - begin_s);
    fflush(stdout);
    if (failed)
        report(runner, suites[index].name, state->failures);
    fflush(stdout);
    srunner_free(runner);
}

/* Takes the next suite from `next`, a pipe that holds one byte for each, until it is
 * empty; so a process that is done early takes more. */
static void run_suites(int next, int wanted_count, char **wanted, struct state *state,
                       int process)
{
    unsigned char index;
    while (read(next, &index, 1) == 1) {
        if (!is_wanted(suites[index].name, wanted_count, wanted))
            continue;
        state->processes[process].suite = index;
        run_suite(index, state, process);
        state->processes[process].suite = NO_SUITE;
    }
}

static void start_process(int next, int wanted_count, char **wanted, struct state *state,
                          int process)
{
    state->processes[process].suite = NO_SUITE;
    fflush(stdout);
    if (fork())
        return;
    limit_cpu_time();
    run_suites(next, wanted_count, wanted, state, process);
    _exit(0);
}

/* A process that died in a suite is one failure. */
static void count_the_dead(struct state *state, int process_count)
{
    for (int i = 0; i < process_count; i++) {
        if (state->processes[i].suite == NO_SUITE)
            continue;
        state->processes[i].run++;
        state->processes[i].failed++;
        dprintf(state->failures, "FAILED %s: its process died, outside a test\n",
                suites[state->processes[i].suite].name);
    }
}

static void print_failures(const struct state *state)
{
    char text[4096];
    ssize_t length;
    lseek(state->failures, 0, SEEK_SET);
    while ((length = read(state->failures, text, sizeof text)) > 0)
        fwrite(text, 1, (size_t)length, stdout);
}

int main(int argc, char **argv)
{
    int processes = 1, first = 1;
    if (argc > 2 && !strcmp(argv[1], "-j")) {
        processes = atoi(argv[2]);
        first = 3;
    }
    for (int i = first; i < argc; i++) {
        bool exists = false;
        for (int k = 0; k < SUITES; k++)
            exists |= !strcmp(suites[k].name, argv[i]);
        if (!exists) {
            fprintf(stderr, "run-tests: there is no suite %s\n", argv[i]);
            return 2;
        }
    }
    if (processes < 1 || processes > MOST_PROCESSES) {
        fprintf(stderr, "run-tests: -j takes 1 to %d\n", MOST_PROCESSES);
        return 2;
    }
    log_set_levels("off", NULL); /* who tests logs turns them on */
    setenv("CK_DEFAULT_TIMEOUT", HANG_S, 0);
    struct state *state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int next[2];
    if (state == MAP_FAILED || pipe(next))
        return 2;
    state->failures = memfd_create("failures", 0);
    int wanted = 0;
    for (int i = 0; i < SUITES; i++)
        wanted += is_wanted(suites[i].name, argc - first, argv + first);
    printf("1..%d\n", wanted);
    fflush(stdout);
    for (unsigned char i = 0; i < SUITES; i++)
        if (write(next[1], &i, 1) != 1)
            return 2;
    close(next[1]);
    for (int i = 0; i < processes; i++)
        start_process(next[0], argc - first, argv + first, state, i);
    while (wait(NULL) > 0)
        ;
    count_the_dead(state, processes);
    int run = 0, failed = 0;
    for (int i = 0; i < processes; i++) {
        run += state->processes[i].run;
        failed += state->processes[i].failed;
    }
    print_failures(state);
    printf("%d passed, %d failed, 0 skipped\n", run - failed, failed);
    return failed ? 1 : 0;
}
