#include "controller/base/log.h"

#include <check.h>
#include <string.h>

static char captured[LOG_LINE_BYTES + 1];
static int line_count;

static void capture(void *context, const char *line, size_t length)
{
    (void)context;
    ck_assert_uint_lt(length, sizeof captured);
    memcpy(captured, line, length);
    captured[length] = '\0';
    line_count++;
}

static void set_up(void)
{
    log_set_levels("info", NULL);
    log_set_sink(capture, NULL);
    captured[0] = '\0';
    line_count = 0;
}

START_TEST(line_has_time_level_component_event_and_fields)
{
    log_set_time(1767225600123);
    log_event(LOG_INFO, "apply", "created", LOG_STR("pod", "train-1-0"),
              LOG_INT("revision", 1), LOG_REAL("seconds", 0.25), LOG_BOOL("gated", true));
    ck_assert_str_eq(captured, "time=2026-01-01T00:00:00.123000Z level=info "
                               "component=apply event=created pod=train-1-0 revision=1 "
                               "seconds=0.25 gated=true");
}
END_TEST

START_TEST(line_without_fields_or_time_is_complete)
{
    log_event(LOG_ERROR, "main", "stopped");
    ck_assert_str_eq(captured, "level=error component=main event=stopped");
}
END_TEST

static const struct {
    const char *value, *written;
} escapes[] = {
    { "plain-1.2/3:4", "plain-1.2/3:4" },
    { "", "\"\"" },
    { NULL, "\"\"" },
    { "two words", "\"two words\"" },
    { "a=b", "\"a=b\"" },
    { "say \"hi\"", "\"say \\\"hi\\\"\"" },
    { "back\\slash", "\"back\\\\slash\"" },
    { "x\nlevel=error", "\"x\\nlevel=error\"" },
    { "\r\t", "\"\\r\\t\"" },
    { "\x1b[31m", "\"\\u{1b}[31m\"" },
    { "\x7f", "\"\\u{7f}\"" },
    { "caf\xc3\xa9", "\"caf\xc3\xa9\"" },
    { "\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\"" },
    { "\xc2\x85", "\"\\u{85}\"" }, /* next line */
    { "\xe2\x80\xae"
      "evil",
      "\"\\u{202e}evil\"" },             /* right-to-left override */
    { "\xe2\x80\xa8", "\"\\u{2028}\"" }, /* line separator */
    { "\xff", "\"\\xff\"" },
    { "\xc0\xaf", "\"\\xc0\\xaf\"" },                  /* overlong */
    { "\xed\xa0\x80", "\"\\xed\\xa0\\x80\"" },         /* surrogate */
    { "\xe2\x82", "\"\\xe2\\x82\"" },                  /* cut short */
    { "\xf5\x80\x80\x80", "\"\\xf5\\x80\\x80\\x80\"" } /* beyond U+10FFFF */
};

START_TEST(value_cannot_forge_a_line_or_field)
{
    log_event(LOG_INFO, "c", "e", LOG_STR("k", escapes[_i].value));
    char expected[200];
    snprintf(expected, sizeof expected, "level=info component=c event=e k=%s",
             escapes[_i].written);
    ck_assert_str_eq(captured, expected);
}
END_TEST

START_TEST(long_value_is_cut_and_says_so)
{
    char value[LOG_VALUE_BYTES + 2];
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    log_event(LOG_INFO, "c", "e", LOG_STR("k", value));
    ck_assert_str_eq(captured + strlen(captured) - 5, "x...\"");
    /* 31 bytes before the value, two quotes, three dots. */
    ck_assert_uint_eq(strlen(captured),
                      strlen("level=info component=c event=e k=") + LOG_VALUE_BYTES + 5);
}
END_TEST

START_TEST(long_line_is_cut_between_characters_and_says_so)
{
    char value[LOG_VALUE_BYTES + 1];
    memset(value, '\x01', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    log_event(LOG_INFO, "c", "e", LOG_STR("a", value), LOG_STR("b", value));
    ck_assert_str_eq(captured + strlen(captured) - 14, "\\u{1} cut=true");
    ck_assert_uint_lt(strlen(captured), LOG_LINE_BYTES);
}
END_TEST

START_TEST(levels_are_by_component)
{
    struct het_error err = { 0 };
    ck_assert_int_eq(log_set_levels("watch=debug,http=error,warning", &err), 0);
    static const struct {
        enum log_level level;
        const char *component;
        bool is_written;
    } cases[] = {
        { LOG_DEBUG, "watch", true },    { LOG_WARNING, "http", false },
        { LOG_ERROR, "http", true },     { LOG_INFO, "apply", false },
        { LOG_WARNING, "apply", true },  { LOG_DEBUG, "watc", false },
        { LOG_DEBUG, "watches", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        line_count = 0;
        log_event(cases[i].level, cases[i].component, "e");
        ck_assert_msg(line_count == cases[i].is_written, "case %zu", i);
    }
    ck_assert_int_eq(log_set_levels("watch=off", &err), 0);
    line_count = 0;
    log_event(LOG_ERROR, "watch", "e");
    ck_assert_int_eq(line_count, 0);
}
END_TEST

START_TEST(bad_levels_change_nothing)
{
    static const char *const bad[] = { "loud",
                                       "watch=",
                                       "=debug",
                                       "debug,,",
                                       "debug,http=loud",
                                       "debug,a b c=",
                                       "warning ",
                                       "a_name_of_more_than_23_chars=info" };
    struct het_error err = { 0 };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(log_set_levels(bad[i], &err) == -1, "%s", bad[i]);
    ck_assert(!log_is_enabled(LOG_DEBUG, "http"));
    ck_assert(log_is_enabled(LOG_INFO, "http"));
    ck_assert_ptr_nonnull(strstr(err.message, "23 characters"));
}
END_TEST

START_TEST(unwanted_line_does_not_evaluate_its_fields)
{
    int calls = 0;
    log_event(LOG_DEBUG, "c", "e", LOG_INT("n", ++calls));
    ck_assert_int_eq(calls, 0);
}
END_TEST

Suite *test_log_suite(void)
{
    Suite *suite = suite_create("log");
    TCase *cases = tcase_create("log");
    tcase_add_checked_fixture(cases, set_up, NULL);
    tcase_add_test(cases, line_has_time_level_component_event_and_fields);
    tcase_add_test(cases, line_without_fields_or_time_is_complete);
    tcase_add_loop_test(cases, value_cannot_forge_a_line_or_field, 0,
                        sizeof escapes / sizeof *escapes);
    tcase_add_test(cases, long_value_is_cut_and_says_so);
    tcase_add_test(cases, long_line_is_cut_between_characters_and_says_so);
    tcase_add_test(cases, levels_are_by_component);
    tcase_add_test(cases, bad_levels_change_nothing);
    tcase_add_test(cases, unwanted_line_does_not_evaluate_its_fields);
    suite_add_tcase(suite, cases);
    return suite;
}
