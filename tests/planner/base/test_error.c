#include "planner/base/error.h"

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

START_TEST(message_is_one_line_of_utf8_whatever_it_quotes)
{
    struct het_error err = { 0 };
    het_fail(&err, HET_BAD_INPUT, "a\nb\x1b[2Jc\x7f");
    ck_assert_str_eq(err.message, "a?b?[2Jc?");
    het_fail(&err, HET_BAD_INPUT, "\u00e9\u20ac\U0001f600");
    ck_assert_str_eq(err.message, "\u00e9\u20ac\U0001f600");
    /* Alone, overlong, a surrogate, beyond U+10FFFF, C1 control, cut short. */
    static const char *const bad[][2] = {
        { "\xffz", "?z" },           { "\xc0\xafz", "??z" },
        { "\xed\xa0\x80z", "???z" }, { "\xf4\x90z", "??z" },
        { "\xc2\x9bz", "??z" },      { "z\xe2\x82", "z??" },
        { "\xe0\x9f\x80z", "???z" }, { "\xf0\x9f\x98", "???" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        het_fail(&err, HET_BAD_INPUT, "%s", bad[i][0]);
        ck_assert_str_eq(err.message, bad[i][1]);
    }
    het_fail(&err, HET_BAD_INPUT, "b");
    het_wrap(&err, "a\r");
    ck_assert_str_eq(err.message, "a?: b");
}
END_TEST

Suite *test_error_suite(void)
{
    Suite *suite = suite_create("error");
    TCase *cases = tcase_create("error");
    tcase_add_test(cases, message_reads_outside_in);
    tcase_add_test(cases, long_message_is_cut_and_says_so);
    tcase_add_test(cases, message_is_one_line_of_utf8_whatever_it_quotes);
    suite_add_tcase(suite, cases);
    return suite;
}
