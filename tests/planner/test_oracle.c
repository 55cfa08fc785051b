/* tests/oracle/price.py, a pricer and checker of its own, against `hetplan` on the golden
 * plans and on others; and measured peaks. */
#include <check.h>
#include <stdlib.h>

START_TEST(golden_plans_cost_what_a_pricer_of_its_own_says)
{
    ck_assert_int_eq(system("python3 -B tests/oracle/goldens.py"), 0);
}
END_TEST

START_TEST(plans_without_options_fit_and_peaks_are_near_measured_ones)
{
    ck_assert_int_eq(system("python3 -B tests/oracle/memory.py"), 0);
}
END_TEST

Suite *test_oracle_suite(void)
{
    Suite *suite = suite_create("oracle");
    TCase *cases = tcase_create("oracle");
    tcase_add_test(cases, golden_plans_cost_what_a_pricer_of_its_own_says);
    tcase_add_test(cases, plans_without_options_fit_and_peaks_are_near_measured_ones);
    suite_add_tcase(suite, cases);
    return suite;
}
