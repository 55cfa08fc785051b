#include "planner/model/profile.h"

#include "tests/planner/toy.h"

#include <check.h>
#include <math.h>
#include <string.h>

#define ck_near(a, b) ck_assert_double_eq_tol((a), (b), 1e-12)

START_TEST(times_are_sums_over_layers)
{
    struct toy *toy = toy_new();
    double forward, backward;
    /* Slow, tp 2, four samples, layers 1-2: (2 + 3) ms * 2 * 0.6 * 2.5. */
    ck_assert_int_eq(
        het_profile_times(&toy->profile, 1, 2, 4, 1, 2, &forward, &backward, NULL), 0);
    ck_near(forward, 0.005 * 2 * 0.6 * 2.5);
    ck_near(backward, 2 * 0.005 * 2 * 0.6 * 2.5);
    ck_assert_int_eq(
        het_profile_times(&toy->profile, 1, 2, 0, 1, 2, &forward, &backward, NULL), 0);
    ck_assert(forward == 0 && backward == 0);
    toy_free(toy);
}
END_TEST

START_TEST(unmeasured_size_is_the_sum_of_its_binary_parts)
{
    struct toy *toy = toy_new();
    double forward, backward;
    /* Three samples: 2 + 1, factors 1.5 + 1, all layers 10 ms. */
    ck_assert_int_eq(
        het_profile_times(&toy->profile, 0, 1, 3, 0, 4, &forward, &backward, NULL), 0);
    ck_near(forward, 0.010 * (1.5 + 1));
    ck_near(backward, 0.020 * (1.5 + 1));
    toy_free(toy);
}
END_TEST

START_TEST(nothing_is_extrapolated)
{
    struct toy *toy = toy_new();
    struct het_error err = { 0 };
    double forward = 7, backward = 7;
    ck_assert_int_eq(
        het_profile_times(&toy->profile, 0, 1, 5, 0, 4, &forward, &backward, &err), -1);
    ck_assert_int_eq(err.code, HET_NO_PROFILE);
    ck_assert(forward == 7);
    ck_assert(!het_profile_covers(&toy->profile, 0, 1, 5));
    ck_assert(!het_profile_covers(&toy->profile, 0, 4, 1));
    ck_assert(!het_profile_covers(&toy->profile, HET_NO_TYPE, 1, 1));
    ck_assert(het_profile_covers(&toy->profile, 0, 1, 3));
    /* Without the size 1, three cannot be had though four can. */
    toy->profile.measurements++;
    toy->profile.measurement_count--;
    ck_assert(!het_profile_covers(&toy->profile, 0, 1, 3));
    ck_assert(!het_profile_covers(&toy->profile, 0, 1, 1));
    ck_assert(het_profile_covers(&toy->profile, 0, 1, 4));
    ck_assert_uint_eq(het_profile_min_microbatch(&toy->profile, 0, 1), 2);
    toy_free(toy);
}
END_TEST

START_TEST(missing_power_of_two_is_twice_its_half)
{
    struct toy *toy = toy_new();
    double forward, backward;
    /* Fast, tp 1, sizes 1 and 4: two samples are 1 + 1, three 1 + 1 + 1. */
    struct het_measurement *m =
        toy_copy(toy, toy->profile.measurements, 3 * sizeof(struct het_measurement));
    m[1] = m[2];
    toy->profile.measurements = m;
    toy->profile.measurement_count = 2;
    ck_assert_int_eq(
        het_profile_times(&toy->profile, 0, 1, 2, 0, 4, &forward, &backward, NULL), 0);
    ck_near(forward, 0.010 * (1 + 1));
    ck_assert_int_eq(
        het_profile_times(&toy->profile, 0, 1, 3, 0, 4, &forward, &backward, NULL), 0);
    ck_near(backward, 0.020 * (2 * 1 + 1));
    toy_free(toy);
}
END_TEST

START_TEST(extrapolation_repeats_the_largest_measured_size)
{
    struct toy *toy = toy_new();
    double forward, backward;
    toy->profile.extrapolation = 3;
    ck_assert_uint_eq(het_profile_max_microbatch(&toy->profile, 0, 1), 3 * 4);
    /* Eleven samples: twice four, and 2 + 1 of the other three. */
    ck_assert_int_eq(
        het_profile_times(&toy->profile, 0, 1, 11, 0, 4, &forward, &backward, NULL), 0);
    ck_near(forward, 0.010 * (2 * 2.5 + 1.5 + 1));
    ck_near(backward, 0.020 * (2 * 2.5 + 1.5 + 1));
    /* Twelve: three times four, nothing else. */
    ck_assert_int_eq(
        het_profile_times(&toy->profile, 0, 1, 12, 0, 4, &forward, &backward, NULL), 0);
    ck_near(forward, 0.010 * 3 * 2.5);
    ck_assert(!het_profile_covers(&toy->profile, 0, 1, 13));
    ck_assert(het_profile_extrapolates(&toy->profile, 0, 1, 5));
    ck_assert(!het_profile_extrapolates(&toy->profile, 0, 1, 3));
    toy_free(toy);
}
END_TEST

START_TEST(no_size_is_faster_a_sample_than_the_best_measured)
{
    struct toy *toy = toy_new();
    toy->profile.extrapolation = HET_MAX_EXTRAPOLATION;
    double best = HUGE_VAL, forward, backward;
    for (uint32_t b = 1; b <= 4; b *= 2)
        best = fmin(best, het_profile_find(&toy->profile, 0, 1, b)->forward_s[4] / b);
    for (uint32_t b = 1; b <= 4 * HET_MAX_EXTRAPOLATION; b++) {
        ck_assert_int_eq(
            het_profile_times(&toy->profile, 0, 1, b, 0, 4, &forward, &backward, NULL),
            0);
        ck_assert_double_ge(forward / b, best * (1 - 1e-12));
    }
    toy_free(toy);
}
END_TEST

START_TEST(what_is_measured_is_found)
{
    struct toy *toy = toy_new();
    const struct het_profile *profile = &toy->profile;
    ck_assert_uint_eq(het_profile_find_type(profile, "fast"), 0);
    ck_assert_uint_eq(het_profile_find_type(profile, "slow"), 1);
    ck_assert_uint_eq(het_profile_find_type(profile, "medium"), HET_NO_TYPE);
    ck_assert_uint_eq(het_profile_find(profile, 1, 2, 4)->microbatch, 4);
    ck_assert_ptr_null(het_profile_find(profile, 1, 2, 3));
    ck_assert_uint_eq(het_profile_bytes(profile, 2)->tp, 2);
    ck_assert_ptr_null(het_profile_bytes(profile, 3));
    ck_assert_uint_eq(het_profile_max_microbatch(profile, 1, 2), 4);
    ck_assert_uint_eq(het_profile_max_microbatch(profile, 1, 3), 0);
    /* 400 of 1100 million parameters of the 22 ms of slow. */
    ck_near(het_profile_optimizer_s(profile, 1, 1, 1, 2), 0.022 * 400 / 1100);
    toy_free(toy);
}
END_TEST

static void refuses(const struct het_profile *profile, const char *part)
{
    struct het_error err = { 0 };
    ck_assert_int_eq(het_profile_check(profile, &err), -1);
    ck_assert_msg(strstr(err.message, part), "%s", err.message);
}

START_TEST(inconsistent_profile_is_refused)
{
    struct toy *toy = toy_new();
    ck_assert_int_eq(het_profile_check(&toy->profile, NULL), 0);
    struct het_measurement m[2] = { toy->profile.measurements[0],
                                    toy->profile.measurements[0] };
    struct het_profile bad = toy->profile;
    bad.measurements = m;
    bad.measurement_count = 2;
    refuses(&bad, "profile of fast, tp 1, micro-batch 1: not sorted, or twice");
    const double falling[] = { 0, 1, 0.5, 2, 3 }, endless[] = { 0, 1, 2, 3, INFINITY };
    bad.measurement_count = 1;
    m[0].forward_s = falling;
    refuses(&bad, "times must be finite and not negative");
    m[0].forward_s = endless;
    refuses(&bad, "times must be finite and not negative");
    m[0] = toy->profile.measurements[0];
    m[0].tp = 3;
    refuses(&bad, "tp 3: no layer sizes");
    bad.measurement_count = 0;
    refuses(&bad, "no measurements");
    bad = toy->profile;
    bad.layer_count = HET_MAX_LAYERS + 1;
    refuses(&bad, "4097 layers, must be 1 to 4096");
    toy_free(toy);
}
END_TEST

Suite *test_profile_suite(void)
{
    Suite *suite = suite_create("profile");
    TCase *cases = tcase_create("profile");
    tcase_add_test(cases, times_are_sums_over_layers);
    tcase_add_test(cases, unmeasured_size_is_the_sum_of_its_binary_parts);
    tcase_add_test(cases, nothing_is_extrapolated);
    tcase_add_test(cases, missing_power_of_two_is_twice_its_half);
    tcase_add_test(cases, extrapolation_repeats_the_largest_measured_size);
    tcase_add_test(cases, no_size_is_faster_a_sample_than_the_best_measured);
    tcase_add_test(cases, what_is_measured_is_found);
    tcase_add_test(cases, inconsistent_profile_is_refused);
    suite_add_tcase(suite, cases);
    return suite;
}
