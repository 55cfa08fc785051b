#include "planner/algo/optimal/batch_share.h"

#include <check.h>

START_TEST(batch_is_shared_out_exactly_and_evenly)
{
    /* 3 x 4 samples take 0.5 + 2 * 0.5 = 1.5 s, 4 x 2 take 0.4 + 3 * 0.4 = 1.6 s: 20. */
    struct het_batch_share_lane lanes[] = { { 4, 0.5, 0.5, 0 }, { 2, 0.4, 0.4, 0 } };
    double seconds;
    ck_assert(het_batch_share(lanes, 2, 20, &seconds));
    ck_assert_uint_eq(lanes[0].count * 4 + lanes[1].count * 2, 20);
    ck_assert_double_eq_tol(seconds, 1.6, 1e-9);
}
END_TEST

START_TEST(batch_that_does_not_come_out_is_refused)
{
    struct het_batch_share_lane lanes[] = { { 4, 0.5, 0.5, 0 }, { 6, 0.4, 0.4, 0 } };
    double seconds;
    ck_assert(!het_batch_share(lanes, 2, 21, &seconds));
    ck_assert(het_batch_share(lanes, 2, 22, &seconds));
}
END_TEST

START_TEST(what_is_taken_away_comes_from_the_slowest)
{
    struct het_batch_share_lane lanes[] = { { 3, 1, 1, 5 },
                                            { 3, 2, 2, 5 },
                                            { 5, 1, 1, 2 } };
    ck_assert(het_batch_share_take(lanes, 3, 6));
    ck_assert_uint_eq(lanes[0].count, 5);
    ck_assert_uint_eq(lanes[1].count, 3);
    ck_assert(!het_batch_share_take(lanes, 3, 1));
    ck_assert_uint_eq(lanes[2].count, 2);
}
END_TEST

START_TEST(more_samples_than_are_taken_exactly_are_taken_one_by_one)
{
    struct het_batch_share_lane lanes[] = { { 7, 1, 1, 1000 }, { 2, 1, 1, 1000 } };
    ck_assert(het_batch_share_take(lanes, 2, 8001));
    ck_assert_uint_eq(7 * lanes[0].count + 2 * lanes[1].count, 9000 - 8001);
}
END_TEST

Suite *test_batch_share_suite(void)
{
    Suite *suite = suite_create("batch_share");
    TCase *cases = tcase_create("batch");
    tcase_add_test(cases, batch_is_shared_out_exactly_and_evenly);
    tcase_add_test(cases, batch_that_does_not_come_out_is_refused);
    tcase_add_test(cases, what_is_taken_away_comes_from_the_slowest);
    tcase_add_test(cases, more_samples_than_are_taken_exactly_are_taken_one_by_one);
    suite_add_tcase(suite, cases);
    return suite;
}
