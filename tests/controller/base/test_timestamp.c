#include "controller/base/timestamp.h"

#include <check.h>

static const int64_t new_year_2026_ms = 1767225600000; /* date -u -d 2026-01-01 +%s */

START_TEST(a_time_is_written_as_kubernetes_does)
{
    char text[TIMESTAMP_SIZE];
    timestamp_format(new_year_2026_ms + 999, text);
    ck_assert_str_eq(text, "2026-01-01T00:00:00Z");
    timestamp_format_micro(new_year_2026_ms + 7, text);
    ck_assert_str_eq(text, "2026-01-01T00:00:00.007000Z");
    timestamp_format(-1, text);
    ck_assert_str_eq(text, "1969-12-31T23:59:59Z");
}
END_TEST

START_TEST(every_day_of_four_centuries_survives_the_way_there_and_back)
{
    for (int64_t day = -80000; day < 80000; day++) {
        char text[TIMESTAMP_SIZE];
        int64_t back = 0;
        timestamp_format(day * 86400000 + 45296000, text);
        ck_assert_int_eq(timestamp_parse(text, &back), 0);
        ck_assert_int_eq(back, day * 86400000 + 45296000);
    }
}
END_TEST

START_TEST(fractions_and_offsets_are_read)
{
    int64_t ms = 0;
    ck_assert_int_eq(timestamp_parse("2026-01-01T01:00:00.5+01:00", &ms), 0);
    ck_assert_int_eq(ms, new_year_2026_ms + 500);
    ck_assert_int_eq(timestamp_parse("2025-12-31T23:30:00.123456789-00:30", &ms), 0);
    ck_assert_int_eq(ms, new_year_2026_ms + 123);
}
END_TEST

START_TEST(what_is_not_a_time_is_refused)
{
    static const char *const bad[] = {
        "",
        "2026",
        "2026-01-01",
        "2026-13-01T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:00",
        "2026-01-01T00:00:00Zx",
        "2026-01-01T00:00:00+1:00",
        "2026-02-29T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "9999-12-31T23:59:60Z",
        "9999-12-31T23:59:59-00:01",
        "0000-01-01T00:00:00+00:01",
    };
    int64_t ms = 5;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(timestamp_parse(bad[i], &ms) < 0, "%s was accepted", bad[i]);
    ck_assert_int_eq(timestamp_parse(NULL, &ms), -1);
    ck_assert_int_eq(ms, 5);
}
END_TEST

Suite *test_timestamp_suite(void)
{
    Suite *suite = suite_create("timestamp");
    TCase *cases = tcase_create("all");
    tcase_add_test(cases, a_time_is_written_as_kubernetes_does);
    tcase_add_test(cases, every_day_of_four_centuries_survives_the_way_there_and_back);
    tcase_add_test(cases, fractions_and_offsets_are_read);
    tcase_add_test(cases, what_is_not_a_time_is_refused);
    suite_add_tcase(suite, cases);
    return suite;
}
