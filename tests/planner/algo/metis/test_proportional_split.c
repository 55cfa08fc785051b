#include "planner/algo/metis/proportional_split.h"

#include <check.h>

static const double alike[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };

START_TEST(layers_follow_the_speed_of_the_stages)
{
    struct het_proportional_split *space = het_proportional_split_new(alike, 8, 4);
    uint32_t cuts[5];
    /* A little more than whole layers, so that the last slice is not on the border. */
    ck_assert(het_proportional_split_whole(space, (double[]){ 0.26, 0.24, 0.26, 0.24 }, 4,
                                           cuts));
    for (uint32_t s = 0; s <= 4; s++)
        ck_assert_uint_eq(cuts[s], 2 * s);
    ck_assert(het_proportional_split_whole(space, (double[]){ 0.63, 0.37 }, 2, cuts));
    ck_assert_uint_eq(cuts[1], 5);
    ck_assert(het_proportional_split_whole(space, (double[]){ 1 }, 1, cuts));
    ck_assert_uint_eq(cuts[1], 8);
    het_proportional_split_free(space);
}
END_TEST

START_TEST(last_stage_has_a_layer_however_slow_it_is)
{
    struct het_proportional_split *space = het_proportional_split_new(alike, 8, 2);
    uint32_t cuts[3];
    ck_assert(het_proportional_split_whole(space, (double[]){ 0.999, 0.001 }, 2, cuts));
    ck_assert_uint_eq(cuts[1], 7);
    het_proportional_split_free(space);
}
END_TEST

START_TEST(more_stages_than_layers_is_no_split_of_all)
{
    struct het_proportional_split *space = het_proportional_split_new(alike, 2, 3);
    uint32_t cuts[4];
    ck_assert(!het_proportional_split_whole(space, (double[]){ 0.3, 0.3, 0.4 }, 3, cuts));
    ck_assert_uint_le(cuts[3], 2);
    het_proportional_split_free(space);
}
END_TEST

START_TEST(stages_short_of_memory_give_speed_to_those_with_room)
{
    struct het_proportional_split *space = het_proportional_split_new(alike, 8, 2);
    double speed[] = { 0.5, 0.5 };
    /* The first may have 10 of the 20 it needs: 0.5 / 2 * 0.9; the other, with room for
     * four times as much, takes the rest but what is not worth moving. */
    ck_assert(het_proportional_split_shift(space, speed, (double[]){ 20, 20 },
                                           (double[]){ 10, 80 }, 2));
    ck_assert_double_eq_tol(speed[0], 0.225, 1e-12);
    ck_assert_double_eq_tol(speed[1], 0.775, 0.01);
    double kept[] = { 0.5, 0.5 };
    ck_assert(!het_proportional_split_shift(space, kept, (double[]){ 20, 20 },
                                            (double[]){ 10, 21 }, 2));
    ck_assert_double_eq(kept[0], 0.5);
    het_proportional_split_free(space);
}
END_TEST

Suite *test_proportional_split_suite(void)
{
    Suite *suite = suite_create("proportional_split");
    TCase *cases = tcase_create("proportion");
    tcase_add_test(cases, layers_follow_the_speed_of_the_stages);
    tcase_add_test(cases, last_stage_has_a_layer_however_slow_it_is);
    tcase_add_test(cases, more_stages_than_layers_is_no_split_of_all);
    tcase_add_test(cases, stages_short_of_memory_give_speed_to_those_with_room);
    suite_add_tcase(suite, cases);
    return suite;
}
