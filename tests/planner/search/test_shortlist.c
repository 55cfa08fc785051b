#include "planner/search/shortlist.h"

#include "tests/planner/toy.h"

#include <check.h>
#include <string.h>

/* One stage, `microbatches` of one sample: plans that differ, and take longer the more.
 */
static struct het_plan plan_of(struct toy *toy, uint32_t microbatches)
{
    return TOY_PLAN(
        toy, TOY_PIPELINE(toy, microbatches,
                          TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 1))));
}

START_TEST(the_fastest_are_kept_in_order)
{
    struct toy *toy = toy_new();
    struct het_shortlist list = { 0 };
    static const uint32_t counts[] = { 105, 103, 101, 108, 102, 107, 104, 100, 109, 106 };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct het_plan plan = plan_of(toy, counts[i]);
        het_shortlist_add(&list, &plan, counts[i]);
    }
    ck_assert_uint_eq(list.count, HET_SHORTLIST_PLANS);
    for (size_t i = 0; i < list.count; i++)
        ck_assert(list.plans[i].offered_s == 100.0 + (double)i);
    struct het_plan slower = plan_of(toy, 109), same = plan_of(toy, 103);
    ck_assert(!het_shortlist_wants(&list, &slower, 109));
    ck_assert(!het_shortlist_wants(&list, &same, 103));
    /* Another that is as fast. */
    ck_assert(het_shortlist_wants(&list, &slower, 103));
    het_shortlist_clear(&list);
    ck_assert_uint_eq(list.count, 0);
    toy_free(toy);
}
END_TEST

START_TEST(plans_much_slower_than_the_first_are_left_out)
{
    struct toy *toy = toy_new();
    struct het_shortlist list = { 0 };
    struct het_plan a = plan_of(toy, 100), b = plan_of(toy, 111), c = plan_of(toy, 105);
    het_shortlist_add(&list, &b, 111);
    het_shortlist_add(&list, &c, 105);
    ck_assert_uint_eq(list.count, 2);
    het_shortlist_add(&list, &a, 100); /* 111 is more than a tenth slower */
    ck_assert_uint_eq(list.count, 2);
    ck_assert(!het_shortlist_wants(&list, &b, 111));
    het_shortlist_clear(&list);
    toy_free(toy);
}
END_TEST

START_TEST(the_simulation_picks_the_winner)
{
    struct toy *toy = toy_new();
    struct het_shortlist list = { 0 };
    struct het_cost cost;
    ck_assert_ptr_null(het_shortlist_best(&list, &toy->problem, &cost));
    /* What was said of their time is wrong. 30 ms a micro-batch, 11 for the optimizer. */
    struct het_plan a = plan_of(toy, 9), b = plan_of(toy, 7), c = plan_of(toy, 8);
    het_shortlist_add(&list, &a, 100);
    het_shortlist_add(&list, &b, 101);
    het_shortlist_add(&list, &c, 102);
    const struct het_plan *best = het_shortlist_best(&list, &toy->problem, &cost);
    ck_assert_uint_eq(best->pipelines[0].microbatch_count, 7);
    ck_assert_double_eq_tol(cost.iteration_s, 7 * 0.030 + 0.011, 1e-12);
    het_shortlist_clear(&list);
    toy_free(toy);
}
END_TEST

Suite *test_shortlist_suite(void)
{
    Suite *suite = suite_create("shortlist");
    TCase *cases = tcase_create("shortlist");
    tcase_add_test(cases, the_fastest_are_kept_in_order);
    tcase_add_test(cases, plans_much_slower_than_the_first_are_left_out);
    tcase_add_test(cases, the_simulation_picks_the_winner);
    suite_add_tcase(suite, cases);
    return suite;
}
