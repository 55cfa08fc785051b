/* Every folder tests/golden/ALGORITHM/CASE: the plan is still the one expected, to the
 * byte. tests/golden/README.md says how to renew them. */
#include "planner/base/arena.h"

#include <check.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_all(FILE *file, size_t *ret_length)
{
    char *text = NULL;
    size_t capacity = 0, got;
    *ret_length = 0;
    do {
        ARRAY_RESERVE(text, &capacity, *ret_length + 65536);
        got = fread(text + *ret_length, 1, 65535, file);
        *ret_length += got;
    } while (got);
    text[*ret_length] = '\0';
    return text;
}

static char *read_expected(const char *folder, const char *name, size_t *ret_length)
{
    auto_free char *path = xasprintf("%s%s", folder, name);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s is missing: make golden", path);
    char *text = read_all(file, ret_length);
    fclose(file);
    return text;
}

static void check_answer(const char *folder, const char *output, const char *name)
{
    auto_free char *command = xasprintf("tests/golden/plan %s %s", folder, output);
    size_t length, expected_length;
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    auto_free char *text = read_all(pipe, &length);
    ck_assert_int_eq(pclose(pipe), 0);
    auto_free char *expected = read_expected(folder, name, &expected_length);
    ck_assert_msg(length == expected_length && !memcmp(text, expected, length),
                  "%s%s has changed; see the difference with make golden. Now:\n%.3000s",
                  folder, name, text);
}

START_TEST(plans_are_the_ones_expected)
{
    glob_t folders;
    ck_assert_int_eq(glob("tests/golden/*/*/", 0, NULL, &folders), 0);
    ck_assert_uint_gt(folders.gl_pathc, 10);
    for (size_t i = 0; i < folders.gl_pathc; i++) {
        check_answer(folders.gl_pathv[i], "table", "plan.txt");
        check_answer(folders.gl_pathv[i], "json", "plan.json");
    }
    globfree(&folders);
}
END_TEST

Suite *test_golden_suite(void)
{
    Suite *suite = suite_create("golden");
    TCase *cases = tcase_create("golden");
    tcase_add_test(cases, plans_are_the_ones_expected);
    suite_add_tcase(suite, cases);
    return suite;
}
