/* One Check runner for all unit suites. `run-tests [-j N] [SUITE]...` runs those named,
 * or all, in N processes at a time. The last line is "N passed, N failed, N skipped". */
#include "controller/log.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

enum { SUITES = sizeof suites / sizeof *suites, MOST_PROCESSES = 64 };

struct count {
    int run, failed;
};

static bool is_wanted(const char *name, int count, char **wanted)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(wanted[i], name))
            return true;
    return !count;
}

/* Takes the next suite from `next`, a pipe that holds one byte for each, until it is
 * empty; so a process that is done early takes more. */
static struct count run_suites(int next, int wanted_count, char **wanted)
{
    struct count count = { 0 };
    unsigned char index;
    while (read(next, &index, 1) == 1) {
        if (!is_wanted(suites[index].name, wanted_count, wanted))
            continue;
        SRunner *runner = srunner_create(suites[index].make());
        srunner_run_all(runner, CK_SILENT);
        count.run += srunner_ntests_run(runner);
        count.failed += srunner_ntests_failed(runner);
        if (srunner_ntests_failed(runner))
            srunner_print(runner, CK_NORMAL);
        fflush(stdout);
        srunner_free(runner);
    }
    return count;
}

static void start_process(int next, int results, int wanted_count, char **wanted)
{
    fflush(stdout);
    if (fork())
        return;
    struct count count = run_suites(next, wanted_count, wanted);
    _exit(write(results, &count, sizeof count) != sizeof count);
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
    log_set_levels("off", NULL);           /* who tests logs turns them on */
    setenv("CK_DEFAULT_TIMEOUT", "60", 0); /* a busy machine is no failure */
    int next[2], results[2];
    if (pipe(next) || pipe(results))
        return 2;
    for (unsigned char i = 0; i < SUITES; i++)
        if (write(next[1], &i, 1) != 1)
            return 2;
    close(next[1]);
    for (int i = 0; i < processes; i++)
        start_process(next[0], results[1], argc - first, argv + first);
    close(results[1]);

    struct count all = { 0 }, one;
    int answered = 0;
    while (read(results[0], &one, sizeof one) == sizeof one) {
        all.run += one.run;
        all.failed += one.failed;
        answered++;
    }
    while (wait(NULL) > 0)
        ;
    all.failed += processes - answered; /* a process that died is a failure */
    all.run += processes - answered;
    printf("%d passed, %d failed, 0 skipped\n", all.run - all.failed, all.failed);
    return all.failed ? 1 : 0;
}
