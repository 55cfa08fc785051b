#include "planner/base/logarithm.h"

#include "planner/base/random.h"

#include <check.h>
#include <float.h>
#include <math.h>

#define CLOSE 4e-16

static void check_at(double x)
{
    double natural = log(x), binary = log2(x);
    ck_assert_msg(fabs(het_log(x) - natural) <= CLOSE * fmax(fabs(natural), 1),
                  "log of %.17g: %.17g, not %.17g", x, het_log(x), natural);
    ck_assert_msg(fabs(het_log2(x) - binary) <= CLOSE * fmax(fabs(binary), 1),
                  "log2 of %.17g: %.17g, not %.17g", x, het_log2(x), binary);
}

START_TEST(logarithms_are_those_of_libm_but_for_the_last_bits)
{
    uint64_t state = 1;
    for (int i = 0; i < 200000; i++) {
        double mantissa = 1 + (double)(het_random_next(&state) >> 11) * 0x1p-53;
        check_at(ldexp(mantissa, (int)het_random_below(&state, 2000) - 1000));
        check_at(mantissa);
        check_at(mantissa / 2);
    }
    check_at(DBL_MAX);
    check_at(DBL_MIN);
    check_at(DBL_MIN / 3); /* subnormal */
    check_at(1 + DBL_EPSILON);
    check_at(1 - DBL_EPSILON / 2);
}
END_TEST

START_TEST(powers_of_two_are_exact)
{
    for (int exponent = -1074; exponent < 1024; exponent++)
        ck_assert(het_log2(ldexp(1, exponent)) == exponent);
    ck_assert(het_log(1) == 0);
    ck_assert(het_log(0) == -HUGE_VAL);
    ck_assert(het_log2(0) == -HUGE_VAL);
}
END_TEST

START_TEST(bits_are_those_written_here)
{
    /* Whatever machine this runs on. */
    ck_assert(het_log2(3) == 0x1.95c01a39fbd69p+0);
    ck_assert(het_log2(0.7) == -0x1.0776228967d14p-1);
    ck_assert(het_log(10) == 0x1.26bb1bbb55515p+1);
    ck_assert(het_log(1e-3) == -0x1.ba18a998fffap+2);
}
END_TEST

START_TEST(logarithm_never_falls)
{
    double before = -HUGE_VAL;
    for (double x = 1e-3; x < 1e3; x = x * (1 + 1e-4)) {
        ck_assert(het_log2(x) >= before);
        before = het_log2(x);
    }
}
END_TEST

Suite *test_logarithm_suite(void)
{
    Suite *suite = suite_create("logarithm");
    TCase *cases = tcase_create("logarithm");
    tcase_add_test(cases, logarithms_are_those_of_libm_but_for_the_last_bits);
    tcase_add_test(cases, powers_of_two_are_exact);
    tcase_add_test(cases, bits_are_those_written_here);
    tcase_add_test(cases, logarithm_never_falls);
    suite_add_tcase(suite, cases);
    return suite;
}
