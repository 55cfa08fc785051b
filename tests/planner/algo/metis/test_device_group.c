#include "planner/algo/metis/device_group.h"
#include "tests/planner/toy.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

struct text {
    char lists[8192];
    size_t count, limit;
};

/* "2 4,4 2," */
static bool write_list(void *context, const uint32_t *sizes, uint32_t count)
{
    struct text *text = context;
    size_t at = strlen(text->lists);
    for (uint32_t i = 0; i < count && at < sizeof text->lists - 16; i++)
        at += (size_t)sprintf(text->lists + at, "%s%u", i ? " " : "", sizes[i]);
    strcat(text->lists, ",");
    text->count++;
    return !text->limit || text->count < text->limit;
}

static struct text lists(uint32_t gpus, uint32_t groups, double variance,
                         uint32_t permute, const uint32_t *sizes, size_t count)
{
    struct text text = { .lists = "" };
    const struct het_device_group_question question = {
        .gpu_count = gpus,
        .group_count = groups,
        .sizes = { sizes, count },
        .variance = variance,
        .permute = permute,
    };
    ck_assert(het_device_group_lists(&question, write_list, &text));
    return text;
}

static const uint32_t powers[] = { 1, 2, 4, 8, 16 };

START_TEST(lists_go_from_even_to_uneven_in_all_orders)
{
    ck_assert_str_eq(lists(8, 3, 0.5, 4, powers, 5).lists, "2 2 4,2 4 2,4 2 2,");
    ck_assert_str_eq(lists(8, 2, 0.5, 4, powers, 5).lists, "4 4,");
    ck_assert_str_eq(lists(8, 1, 0.5, 4, powers, 5).lists, "8,");
    /* variance 0.25: no group below 0.25 * 8 / 4 = 0.5, so 1 is allowed. One entry is
     * left of 1 1 2 4: (1 1) stands behind 2, then (2 1 1) behind 4. */
    ck_assert_str_eq(lists(8, 4, 0.25, 1, powers, 5).lists, "2 2 2 2,4 2 1 1,");
}
END_TEST

START_TEST(long_lists_are_fused_before_they_are_permuted)
{
    /* Metis, section 4.2.2: of 1 1 1 1 2, at most three entries: (1 1), (1 1), 2 in the
     * three places that the 2 can have. */
    uint32_t sizes[] = { 1, 2 };
    ck_assert_str_eq(lists(6, 5, 0.5, 3, sizes, 2).lists,
                     "2 1 1 1 1,1 1 2 1 1,1 1 1 1 2,");
}
END_TEST

START_TEST(totals_that_no_sizes_reach_are_split_evenly)
{
    ck_assert_str_eq(lists(7, 2, 0.5, 4, powers, 5).lists, "3 4,4 3,");
    ck_assert_str_eq(lists(12, 1, 0.5, 4, powers, 5).lists, "12,");
    ck_assert_str_eq(lists(3, 4, 0.5, 4, powers, 5).lists, "");
}
END_TEST

START_TEST(every_list_sums_up_and_keeps_the_variance)
{
    uint32_t all[24];
    for (uint32_t i = 0; i < 24; i++)
        all[i] = i + 1;
    for (uint32_t gpus = 1; gpus <= 24; gpus++)
        for (uint32_t groups = 1; groups <= gpus && groups <= 6; groups++) {
            struct text text = { .lists = "" };
            const struct het_device_group_question question = {
                .gpu_count = gpus,
                .group_count = groups,
                .sizes = { all, gpus },
                .variance = 0.5,
                .permute = 3,
            };
            text.limit = 150;
            het_device_group_lists(&question, write_list, &text);
            ck_assert_uint_ge(text.count, 1);
            for (char *list = strtok(text.lists, ","); list; list = strtok(NULL, ",")) {
                uint32_t sum = 0, count = 0, size;
                int length;
                for (char *at = list; sscanf(at, "%u%n", &size, &length) == 1;
                     at += length) {
                    ck_assert(2.0 * size * groups >= gpus);
                    sum += size;
                    count++;
                }
                ck_assert_uint_eq(sum, gpus);
                ck_assert_uint_eq(count, groups);
            }
        }
}
END_TEST

START_TEST(a_visitor_can_stop)
{
    struct text text = { .lists = "", .limit = 2 };
    const struct het_device_group_question question = { .gpu_count = 8,
                                                        .group_count = 3,
                                                        .sizes = { powers, 5 },
                                                        .variance = 0.5,
                                                        .permute = 4 };
    ck_assert(!het_device_group_lists(&question, write_list, &text));
    ck_assert_str_eq(text.lists, "2 2 4,2 4 2,");
}
END_TEST

START_TEST(sizes_come_from_powers_of_two_and_the_cluster)
{
    struct toy *toy = toy_new(); /* fast: 4 + 2, slow: 4 */
    struct het_device_group_sizes sizes =
        het_device_group_sizes_of(toy->arena, &toy->cluster, false);
    /* powers 1 2 4 8; 6 fast GPUs in nodes of 4 and 2; 10 in all */
    const uint32_t expected[] = { 1, 2, 4, 6, 8, 10 };
    ck_assert_uint_eq(sizes.count, 6);
    ck_assert_mem_eq(sizes.sizes, expected, sizeof expected);
    ck_assert_uint_eq(het_device_group_sizes_of(toy->arena, &toy->cluster, true).count,
                      10);
    toy_free(toy);
}
END_TEST

START_TEST(rows_keep_types_together_and_larger_nodes_first)
{
    struct toy *toy = toy_new();
    const uint32_t *orders;
    size_t types;
    size_t count =
        het_device_group_type_orders(toy->arena, &toy->cluster, &orders, &types);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(types, 2);
    ck_assert_uint_eq(orders[0], 0);
    ck_assert_uint_eq(orders[2], 1);

    toy->nodes[TOY_F0].gpu_count = 1; /* now f1, with 2, comes before it */
    struct het_device_group_row row =
        het_device_group_row_of(toy->arena, &toy->cluster, orders + 2, types);
    ck_assert_uint_eq(row.slot_count, 3);
    ck_assert_uint_eq(row.gpu_count, 7);
    ck_assert_uint_eq(row.slots[0].node, TOY_S0);
    ck_assert_uint_eq(row.slots[1].node, TOY_F1);
    ck_assert_uint_eq(row.slots[2].node, TOY_F0);

    /* GPUs 3 to 5: the last of s0, both of f1 */
    struct het_device_group_slot slots[3];
    ck_assert_uint_eq(het_device_group_cut(&row, 3, 3, slots), 2);
    ck_assert_uint_eq(slots[0].node, TOY_S0);
    ck_assert_uint_eq(slots[0].first_gpu, 3);
    ck_assert_uint_eq(slots[0].gpu_count, 1);
    ck_assert_uint_eq(slots[1].node, TOY_F1);
    ck_assert_uint_eq(slots[1].first_gpu, 0);
    ck_assert_uint_eq(slots[1].gpu_count, 2);
    toy_free(toy);
}
END_TEST

START_TEST(types_take_turns_in_mixed_rows)
{
    struct toy *toy = toy_new();
    const uint32_t *orders;
    size_t types;
    het_device_group_type_orders(toy->arena, &toy->cluster, &orders, &types);
    /* Fast nodes f0, f1; one slow: after f0 half of the fast are laid out, none of the
     * slow. */
    struct het_device_group_row row =
        het_device_group_row_mixed(toy->arena, &toy->cluster, orders, types);
    ck_assert_uint_eq(row.slot_count, 3);
    ck_assert_uint_eq(row.gpu_count, 10);
    ck_assert_uint_eq(row.slots[0].node, TOY_F0);
    ck_assert_uint_eq(row.slots[1].node, TOY_S0);
    ck_assert_uint_eq(row.slots[2].node, TOY_F1);
    toy_free(toy);
}
END_TEST

START_TEST(nodes_without_gpus_are_left_out)
{
    struct toy *toy = toy_new();
    toy->nodes[TOY_S0].gpu_count = 0;
    const uint32_t *orders;
    size_t types;
    ck_assert_uint_eq(
        het_device_group_type_orders(toy->arena, &toy->cluster, &orders, &types), 1);
    ck_assert_uint_eq(types, 1);
    struct het_device_group_row row =
        het_device_group_row_of(toy->arena, &toy->cluster, orders, types);
    ck_assert_uint_eq(row.slot_count, 2);
    toy_free(toy);
}
END_TEST

Suite *test_device_group_suite(void)
{
    Suite *suite = suite_create("device_group");
    TCase *cases = tcase_create("group");
    tcase_add_test(cases, lists_go_from_even_to_uneven_in_all_orders);
    tcase_add_test(cases, long_lists_are_fused_before_they_are_permuted);
    tcase_add_test(cases, totals_that_no_sizes_reach_are_split_evenly);
    tcase_add_test(cases, every_list_sums_up_and_keeps_the_variance);
    tcase_add_test(cases, a_visitor_can_stop);
    tcase_add_test(cases, sizes_come_from_powers_of_two_and_the_cluster);
    tcase_add_test(cases, rows_keep_types_together_and_larger_nodes_first);
    tcase_add_test(cases, types_take_turns_in_mixed_rows);
    tcase_add_test(cases, nodes_without_gpus_are_left_out);
    suite_add_tcase(suite, cases);
    return suite;
}
