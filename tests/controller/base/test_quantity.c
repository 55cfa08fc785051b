#include "controller/base/quantity.h"

#include <check.h>

START_TEST(quantities_are_read_as_whole_thousandths)
{
    static const struct {
        const char *text;
        int64_t milli;
    } cases[] = {
        { "0", 0 },
        { "8", 8000 },
        { "500m", 500 },
        { "0.5", 500 },
        { ".5", 500 },
        { "1.", 1000 },
        { "+3", 3000 },
        { "1k", 1000 * 1000 },
        { "1Ki", 1024 * 1000 },
        { "64Gi", 64LL * 1024 * 1024 * 1024 * 1000 },
        { "1e3", 1000 * 1000 },
        { "1E3", 1000 * 1000 },
        { "1E", INT64_MAX },                          /* 1e18 * 1000 > 2^63 */
        { "100u", 1 },                                /* rounded up */
        { "528000816Ki", 528000816LL * 1024 * 1000 }, /* a real node's memory */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t milli = -1;
        ck_assert_msg(quantity_parse(cases[i].text, &milli) == 0, "%s", cases[i].text);
        ck_assert_msg(milli == cases[i].milli, "%s is %lld", cases[i].text,
                      (long long)milli);
    }
}
END_TEST

START_TEST(what_is_not_a_quantity_is_refused)
{
    static const char *const bad[] = {
        "", "-1", "x", "1x", "1 Gi", "1e", "1ki", ".", "1.2.3", "Gi",
    };
    int64_t milli = 5;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(quantity_parse(bad[i], &milli) < 0, "%s was accepted", bad[i]);
    ck_assert_int_eq(milli, 5);
}
END_TEST

START_TEST(json_values_may_be_text_or_numbers)
{
    json_auto_t *text = json_string("2");
    json_auto_t *number = json_integer(2);
    json_auto_t *wrong = json_string("two");
    ck_assert_int_eq(quantity_of(text, -1), 2000);
    ck_assert_int_eq(quantity_of(number, -1), 2000);
    ck_assert_int_eq(quantity_of(wrong, -1), -1);
    ck_assert_int_eq(quantity_of(NULL, 7), 7);
    ck_assert_int_eq(quantity_add(INT64_MAX - 1, 2), INT64_MAX);
}
END_TEST

Suite *test_quantity_suite(void)
{
    Suite *suite = suite_create("quantity");
    TCase *cases = tcase_create("all");
    tcase_add_test(cases, quantities_are_read_as_whole_thousandths);
    tcase_add_test(cases, what_is_not_a_quantity_is_refused);
    tcase_add_test(cases, json_values_may_be_text_or_numbers);
    suite_add_tcase(suite, cases);
    return suite;
}
