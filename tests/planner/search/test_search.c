#include "planner/search/search.h"

#include "tests/planner/toy.h"

#include <check.h>
#include <math.h>
#include <string.h>

static const struct het_algorithm by_hand = { .name = "by hand" };
static const struct het_search_options defaults;

static struct het_search search_of(const struct toy *toy)
{
    return (struct het_search){ .problem = &toy->problem,
                                .available = &toy->cluster,
                                .algorithm = &by_hand,
                                .options = &defaults,
                                .arena = toy->arena,
                                .scratch = toy->arena };
}

/* Eight micro-batches of a sample in two stages of two layers, on two fast GPUs or two
 * slow ones. */
static struct het_plan two_stages(const struct toy *toy, uint32_t node)
{
    return TOY_PLAN(
        toy, TOY_PIPELINE(toy, 8, TOY_STAGE(toy, 0, 2, toy_replica(toy, node, 0, 1, 1)),
                          TOY_STAGE(toy, 2, 2, toy_replica(toy, node, 1, 1, 1))));
}

static void widen_memory(struct toy *toy)
{
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)80 << 30;
}

START_TEST(effort_is_taken_until_there_is_none)
{
    struct toy *toy = toy_new();
    struct het_search search = search_of(toy);
    search.effort_left = 10;
    ck_assert(het_search_spend(&search, 7));
    ck_assert(!het_search_spend(&search, 4)); /* three are left, and taken */
    ck_assert_uint_eq(search.effort_left, 0);
    ck_assert_uint_eq(search.effort_spent, 10);
    ck_assert(het_search_spend(&search, 0));
    toy_free(toy);
}
END_TEST

START_TEST(pairs_of_layers_cost_what_was_not_taken_for_them)
{
    struct toy *toy = toy_new();
    struct het_search search = search_of(toy);
    search.effort_left = 100;
    het_search_settle(&search, 10 * HET_EFFORT_CELLS_A_UNIT, 4);
    ck_assert_uint_eq(search.effort_spent, 10 - 4);
    het_search_settle(&search, 3 * HET_EFFORT_CELLS_A_UNIT, 4);
    ck_assert_uint_eq(search.effort_spent, 10 - 4);
    toy_free(toy);
}
END_TEST

START_TEST(search_that_is_told_to_stop_has_no_effort_left)
{
    struct toy *toy = toy_new();
    const atomic_bool stop = true;
    const struct het_search_options options = { .stop = &stop };
    struct het_search search = search_of(toy);
    search.options = &options;
    search.effort_left = 10;
    ck_assert(!het_search_spend(&search, 1));
    ck_assert_uint_eq(search.effort_left, 0);
    ck_assert(search.is_cut_short);
    toy_free(toy);
}
END_TEST

START_TEST(faster_plan_takes_the_place_of_a_slower_one)
{
    struct toy *toy = toy_new();
    widen_memory(toy);
    struct het_search search = search_of(toy);
    struct het_plan fast = two_stages(toy, TOY_F0), slow = two_stages(toy, TOY_S0);
    ck_assert(het_search_worth(&search) == HUGE_VAL);
    ck_assert(het_search_offer(&search, &slow));
    double slow_s = het_search_worth(&search);
    ck_assert(!het_search_offer(&search, &slow)); /* equal is not better */
    ck_assert(het_search_offer(&search, &fast));
    ck_assert(het_search_worth(&search) < slow_s);
    ck_assert(!het_search_offer(&search, &slow));
    ck_assert_uint_eq(search.incumbent->pipelines[0].stages[0].replicas[0].node, TOY_F0);
    ck_assert_str_eq(search.incumbent->algorithm, "by hand");
    ck_assert_uint_eq(search.incumbent->global_batch, 8);
    ck_assert_uint_eq(search.statistics.plans_priced, 4);
    toy_free(toy);
}
END_TEST

START_TEST(plans_outside_the_limits_on_gpus_are_turned_away)
{
    static const struct {
        uint32_t min_gpus, max_gpus, fast_min, fast_max;
        bool is_kept;
    } cases[] = {
        { 0, 0, 0, 0, true },  { 2, 2, 2, 2, true },  { 3, 0, 0, 0, false },
        { 0, 1, 0, 0, false }, { 0, 0, 3, 0, false }, { 0, 0, 0, 1, false },
    };
    struct toy *toy = toy_new();
    widen_memory(toy);
    struct het_plan plan = two_stages(toy, TOY_F0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct het_type_limit limit = { .type = "fast",
                                              .min_gpus = cases[i].fast_min,
                                              .max_gpus = cases[i].fast_max };
        toy->workload.min_gpus = cases[i].min_gpus;
        toy->workload.max_gpus = cases[i].max_gpus;
        toy->workload.type_limits = &limit;
        toy->workload.type_limit_count = 1;
        struct het_search search = search_of(toy);
        ck_assert_msg(het_search_offer(&search, &plan) == cases[i].is_kept, "case %zu",
                      i);
    }
    toy_free(toy);
}
END_TEST

START_TEST(plan_that_the_runtime_cannot_run_is_counted)
{
    struct toy *toy = toy_new();
    widen_memory(toy);
    struct het_search search = search_of(toy);
    /* Three layers and one: DeepSpeed cuts evenly. */
    struct het_plan plan = TOY_PLAN(
        toy, TOY_PIPELINE(toy, 8, TOY_STAGE(toy, 0, 3, toy_replica(toy, TOY_F0, 0, 1, 1)),
                          TOY_STAGE(toy, 3, 1, toy_replica(toy, TOY_F0, 1, 1, 1))));
    toy->workload.runtime = het_runtime_find("deepspeed", NULL);
    ck_assert(!het_search_offer(&search, &plan));
    ck_assert_uint_eq(search.inexpressible_count, 1);
    ck_assert_int_eq(search.missing_freedom, HET_UNEVEN_LAYERS);
    toy_free(toy);
}
END_TEST

START_TEST(nearest_miss_is_the_one_with_the_least_share_over)
{
    struct toy *toy = toy_new();
    struct het_search search = search_of(toy);
    het_search_miss(&search, 0, 30 * 0x1p30, "all %d layers", 4); /* 30 / 20 */
    het_search_miss(&search, 1, 20 * 0x1p30, "two layers");       /* 20 / 10 */
    ck_assert_str_eq(search.nearest_miss,
                     "needs 30.0 GiB on fast (20.0 GiB, 20.0 usable) for all 4 layers");
    het_search_miss(&search, 1, 11 * 0x1p30, "one layer"); /* 11 / 10 */
    ck_assert_str_eq(search.nearest_miss,
                     "needs 11.0 GiB on slow (10.0 GiB, 10.0 usable) for one layer");
    toy_free(toy);
}
END_TEST

Suite *test_search_suite(void)
{
    Suite *suite = suite_create("search");
    TCase *cases = tcase_create("search");
    tcase_add_test(cases, effort_is_taken_until_there_is_none);
    tcase_add_test(cases, pairs_of_layers_cost_what_was_not_taken_for_them);
    tcase_add_test(cases, search_that_is_told_to_stop_has_no_effort_left);
    tcase_add_test(cases, faster_plan_takes_the_place_of_a_slower_one);
    tcase_add_test(cases, plans_outside_the_limits_on_gpus_are_turned_away);
    tcase_add_test(cases, plan_that_the_runtime_cannot_run_is_counted);
    tcase_add_test(cases, nearest_miss_is_the_one_with_the_least_share_over);
    suite_add_tcase(suite, cases);
    return suite;
}
