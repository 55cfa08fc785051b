#include "planner/error.h"

#include <check.h>
#include <string.h>

START_TEST(message_reads_outside_in)
{
    struct het_error err = { 0 };
    ck_assert_int_eq(het_fail(&err, HET_NO_PROFILE, "tp=%d", 3), -1);
    ck_assert_int_eq(het_wrap(&err, "stage %d", 1), -1);
    ck_assert_int_eq(err.code, HET_NO_PROFILE);
    ck_assert_str_eq(err.message, "stage 1: tp=3");
}
END_TEST

START_TEST(long_message_is_cut_and_says_so)
{
    struct het_error err = { 0 };
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    het_fail(&err, HET_BAD_INPUT, "%s", text);
    ck_assert_uint_eq(strlen(err.message), sizeof err.message - 1);
    ck_assert_str_eq(err.message + sizeof err.message - 4, "...");
    het_wrap(&err, "file");
    ck_assert_str_eq(err.message + sizeof err.message - 4, "...");
}
END_TEST

Suite *test_error_suite(void)
{
    Suite *suite = suite_create("error");
    TCase *cases = tcase_create("error");
    tcase_add_test(cases, message_reads_outside_in);
    tcase_add_test(cases, long_message_is_cut_and_says_so);
    suite_add_tcase(suite, cases);
    return suite;
}
