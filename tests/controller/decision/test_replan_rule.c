#include "controller/decision/replan_rule.h"

#include <check.h>
#include <math.h>
#include <string.h>

static const struct {
    struct replan_rule_input input;
    double cost_s, benefit_s;
    const char *reason;
} cases[] = {
    /* 2.0 / 1.6 - 1 = 25 %; an hour of it is 900 s, and 10 + 60 + 30 + 200 s are lost:
     * 25 - 300 / 3600 = 16.7 %. */
    { { 2.0, 1.6, 0.15, 3600, HUGE_VAL, 10, 60, 30, 200 }, 300, 900, "BetterPlan" },
    /* 25 - 400 / 3600 = 13.9 %: more gained than lost, but not by the threshold. */
    { { 2.0, 1.6, 0.15, 3600, HUGE_VAL, 10, 160, 30, 200 },
      400,
      900,
      "NotWorthTheRestart" },
    /* Half an hour until the deadline: 450 s gained, 300 lost, 8.3 %. */
    { { 2.0, 1.6, 0.15, 3600, 1800, 10, 60, 30, 200 }, 300, 450, "NotWorthTheRestart" },
    { { 2.0, 1.6, 0.08, 3600, 1800, 10, 60, 30, 200 }, 300, 450, "BetterPlan" },
    /* A longer horizon than the deadline's does not make it longer. */
    { { 2.0, 1.6, 0.15, 3600, 7200, 10, 60, 30, 200 }, 300, 900, "BetterPlan" },
    /* Exactly what it costs is no gain. */
    { { 2.0, 1.6, 0, 400, HUGE_VAL, 0, 100, 0, 0 }, 100, 100, "NotWorthTheRestart" },
    { { 2.0, 1.6, 0, 400, HUGE_VAL, 0, 99, 0, 0 }, 99, 100, "BetterPlan" },
    /* Exactly the threshold is enough: 25 - 36 / 360 = 15 %. */
    { { 2.0, 1.6, 0.15, 360, HUGE_VAL, 0, 36, 0, 0 }, 36, 90, "BetterPlan" },
    { { 2.0, 1.9, 0.15, 3600, HUGE_VAL, 0, 0, 0, 0 },
      0,
      (2.0 / 1.9 - 1) * 3600,
      "BelowThreshold" },
    { { 2.0, 2.0, 0, 3600, HUGE_VAL, 0, 0, 0, 0 }, 0, 0, "BelowThreshold" },
    { { 2.0, 2.5, 0, 3600, HUGE_VAL, 0, 0, 0, 0 }, 0, -720, "BelowThreshold" },
    /* The deadline is over, or there is nothing to compare with. */
    { { 2.0, 1.0, 0, 3600, -5, 0, 60, 0, 0 }, 60, 0, "NotWorthTheRestart" },
    { { 2.0, 1.0, 0, 3600, -5, 0, 0, 0, 0 }, 0, 0, "NotWorthTheRestart" },
    { { 2.0, 0, 0, 3600, HUGE_VAL, 0, 0, 0, 0 }, 0, 0, "BelowThreshold" },
};

START_TEST(verdict_weighs_gain_over_the_horizon_against_cost)
{
    struct replan_rule_verdict verdict = replan_rule_judge(&cases[_i].input);
    ck_assert_str_eq(verdict.reason, cases[_i].reason);
    ck_assert_double_eq_tol(verdict.cost_s, cases[_i].cost_s, 1e-9);
    ck_assert_double_eq_tol(verdict.benefit_s, cases[_i].benefit_s, 1e-9);
    ck_assert(verdict.is_worth_it == !strcmp(cases[_i].reason, "BetterPlan"));
    if (verdict.is_worth_it)
        ck_assert_double_gt(verdict.benefit_s, verdict.cost_s);
}
END_TEST

START_TEST(lost_work_is_half_an_interval_unless_the_program_says_that_it_is_done)
{
    ck_assert_double_eq(replan_rule_lost_work_s(true, true, 600, 1e6), 0);
    ck_assert_double_eq(replan_rule_lost_work_s(false, true, 600, 1e6), 300);
    ck_assert_double_eq(replan_rule_lost_work_s(false, false, 600, 1e6), 300);
    ck_assert_double_eq(replan_rule_lost_work_s(false, true, 600, 40), 40);
    ck_assert_double_eq(replan_rule_lost_work_s(false, true, 0, 1e6), 0);
    ck_assert_double_eq(replan_rule_lost_work_s(false, false, 0, 5000), 5000);
}
END_TEST

START_TEST(hourly_cap_waits_until_the_oldest_that_counts_is_an_hour_old)
{
    const int64_t hour = 3600000, now = 10 * hour;
    const int64_t times[] = { now - 2 * hour, now - hour, now - 3000, now - 2000,
                              now + 5000 };
    ck_assert_int_eq(replan_rule_allowed_ms(times, 0, 1, now), 0);
    ck_assert_int_eq(replan_rule_allowed_ms(times, 5, 3, now), 0);
    ck_assert_int_eq(replan_rule_allowed_ms(times, 5, 2, now), now - 3000 + hour);
    ck_assert_int_eq(replan_rule_allowed_ms(times, 5, 1, now), now - 2000 + hour);
    ck_assert_int_eq(replan_rule_allowed_ms(times, 2, 1, now), 0);
    /* A millisecond earlier the second one still counted. */
    ck_assert_int_eq(replan_rule_allowed_ms(times, 2, 1, now - 1), now);
}
END_TEST

Suite *test_replan_rule_suite(void)
{
    Suite *suite = suite_create("replan_rule");
    TCase *tests = tcase_create("replan_rule");
    tcase_add_loop_test(tests, verdict_weighs_gain_over_the_horizon_against_cost, 0,
                        sizeof cases / sizeof *cases);
    tcase_add_test(tests,
                   lost_work_is_half_an_interval_unless_the_program_says_that_it_is_done);
    tcase_add_test(tests, hourly_cap_waits_until_the_oldest_that_counts_is_an_hour_old);
    suite_add_tcase(suite, tests);
    return suite;
}
