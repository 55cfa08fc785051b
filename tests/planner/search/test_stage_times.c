#include "planner/search/stage_times.h"

#include "tests/planner/toy.h"

#include <check.h>
#include <math.h>

#define ck_near(a, b) ck_assert_double_eq_tol((a), (b), 1e-12)

/* Cluster types of the toy, whose order is the profile's. */
static struct het_stage_kind kind_on(const struct toy *toy, uint32_t node,
                                     uint32_t samples)
{
    return (struct het_stage_kind){ .type = toy->nodes[node].type,
                                    .tp = 1,
                                    .samples = samples };
}

START_TEST(times_are_sums_over_layers)
{
    struct toy *toy = toy_new();
    struct het_stage_table *table = het_stage_table_new(&toy->problem);
    struct het_stage_kind kind = kind_on(toy, TOY_F0, 4);
    /* Layers 1-2, four samples on a fast GPU: (2 + 3) * 2.5 ms, backward twice that. */
    const struct het_balance_times *times = het_stage_table_times(table, kind);
    ck_near(times->forward_s[3] - times->forward_s[1], 0.0125);
    ck_near(times->backward_s[3] - times->backward_s[1], 0.025);
    ck_assert_ptr_eq(het_stage_table_times(table, kind), times);
    kind.recompute = HET_RECOMPUTE_FULL;
    times = het_stage_table_times(table, kind);
    ck_near(times->backward_s[3] - times->backward_s[1], 0.025 + 0.0125);
    kind.samples = 8; /* not measured */
    ck_assert_ptr_null(het_stage_table_times(table, kind));
    ck_assert_ptr_null(het_stage_table_ends(table, kind, 1, 1));
    het_stage_table_free(table);
    toy_free(toy);
}
END_TEST

START_TEST(seconds_by_samples_leave_out_what_cannot_be_had)
{
    struct toy *toy = toy_new();
    const double *seconds = het_stage_times_by_samples(
        toy->arena, &toy->problem, toy->nodes[TOY_F0].type, 1, 1, 2, 8);
    ck_near(seconds[4], 0.0125 + 0.025);
    ck_assert_double_eq(seconds[8], HUGE_VAL);
    toy_free(toy);
}
END_TEST

START_TEST(stage_of_two_kinds_ends_where_the_first_is_full)
{
    struct toy *toy = toy_new();
    struct het_stage_table *table = het_stage_table_new(&toy->problem);
    struct het_stage_kind kinds[] = { kind_on(toy, TOY_F0, 4), kind_on(toy, TOY_S0, 1) };
    struct het_balance_times times[2];
    uint32_t ends[4];
    struct het_balance_stage stage;
    ck_assert(het_stage_table_ask(table, kinds, 2, 1, 1, times, ends, &stage));
    ck_assert_uint_eq(stage.times_count, 2);
    const uint32_t *fast = het_stage_table_ends(table, kinds[0], 1, 1);
    const uint32_t *slow = het_stage_table_ends(table, kinds[1], 1, 1);
    for (uint32_t l = 0; l < 4; l++)
        ck_assert_uint_eq(stage.ends[l], fast[l] < slow[l] ? fast[l] : slow[l]);
    /* Fast 12.5 ms, slow (2 + 3) * 2 ms; backward twice that. */
    ck_near(het_balance_stage_seconds(&stage, 1, 3), 0.0125 + 0.025);
    kinds[1].samples = 8;
    ck_assert(!het_stage_table_ask(table, kinds, 2, 1, 1, times, ends, &stage));
    het_stage_table_free(table);
    toy_free(toy);
}
END_TEST

Suite *test_stage_times_suite(void)
{
    Suite *suite = suite_create("stage_times");
    TCase *cases = tcase_create("stage_times");
    tcase_add_test(cases, times_are_sums_over_layers);
    tcase_add_test(cases, seconds_by_samples_leave_out_what_cannot_be_had);
    tcase_add_test(cases, stage_of_two_kinds_ends_where_the_first_is_full);
    suite_add_tcase(suite, cases);
    return suite;
}
