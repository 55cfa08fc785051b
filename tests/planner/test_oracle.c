/* tests/oracle/price.py, a pricer and checker of its own, against `hetplan cost` on the
 * golden plans. */
#include <check.h>
#include <stdlib.h>

START_TEST(golden_plans_cost_what_a_pricer_of_its_own_says)
{
    ck_assert_int_eq(system("python3 -B tests/oracle/goldens.py"), 0);
}
END_TEST

Suite *test_oracle_suite(void)
{
    Suite *suite = suite_create("oracle");
    TCase *cases = tcase_create("oracle");
    tcase_add_test(cases, golden_plans_cost_what_a_pricer_of_its_own_says);
    suite_add_tcase(suite, cases);
    return suite;
}
