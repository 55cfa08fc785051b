/* One Check runner for all unit suites. `run-tests [SUITE]...` runs those named, or all.
 * The last line is "N passed, N failed, N skipped". */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static bool is_wanted(const char *name, int count, char **wanted)
{
    for (int i = 1; i < count; i++)
        if (!strcmp(wanted[i], name))
            return true;
    return count < 2;
}

int main(int argc, char **argv)
{
    SRunner *runner = srunner_create(NULL);
    int added = 0;
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        if (is_wanted(suites[i].name, argc, argv)) {
            srunner_add_suite(runner, suites[i].make());
            added++;
        }
    }
    if (!added) {
        fprintf(stderr, "run-tests: no suite of that name\n");
        return 2;
    }
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    int run = srunner_ntests_run(runner);
    srunner_free(runner);
    printf("%d passed, %d failed, 0 skipped\n", run - failed, failed);
    return failed ? 1 : 0;
}
