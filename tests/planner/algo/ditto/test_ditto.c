#include "planner/algo/ditto/ditto.h"

#include "tests/planner/toy.h"

#include <check.h>

static struct het_search run_with(struct toy *toy, const struct het_algorithm *algorithm,
                                  const struct het_search_options *options)
{
    struct het_error err = { 0 };
    ck_assert_msg(het_problem_init(toy->arena, &toy->cluster, &toy->profile,
                                   &toy->workload, &toy->problem, &err) == 0,
                  "%s", err.message);
    struct het_search search = { .problem = &toy->problem,
                                 .available = &toy->cluster,
                                 .algorithm = algorithm,
                                 .options = options,
                                 .arena = toy->arena,
                                 .scratch = toy->arena,
                                 .effort_left = HET_DEFAULT_EFFORT };
    ck_assert_int_eq(algorithm->run(&search, &err), 0);
    return search;
}

/* One pipeline on one fast and one slow GPU, with room for everything. */
static struct toy *two_gpus(void)
{
    struct toy *toy = toy_new();
    toy->nodes[1] = toy->nodes[TOY_S0];
    toy->nodes[0].gpu_count = toy->nodes[1].gpu_count = 1;
    toy->cluster.node_count = 2;
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)80 << 30;
    for (size_t n = 0; n < 2; n++)
        toy->nodes[n].uplink_bytes_per_s = 1e15;
    toy->workload.max_data_parallel = 1;
    toy->workload.global_batch = 16;
    static const uint32_t sizes[] = { 1 };
    toy->workload.microbatch_sizes = sizes;
    toy->workload.microbatch_size_count = 1;
    return toy;
}

static const struct het_search_options plain;

START_TEST(a_faster_gpu_takes_the_stages_of_as_many_slow_ones)
{
    struct toy *toy = two_gpus();
    /* The fast GPU counts as two slow ones. Layers take 6, 12, 18, 24 ms on a slow one;
     * three stages are 0-1 | 2 | 3. Together on the fast GPU: 1 and 2, 15 + 12 = 21 ms
     * beside 18 (0-1 on the slow one), which no other order betters. */
    const struct het_plan *plan = run_with(toy, &het_algo_ditto, &plain).incumbent;
    ck_assert_ptr_nonnull(plan);
    const struct het_pipeline *pipeline = &plan->pipelines[0];
    ck_assert_uint_eq(plan->pipeline_count, 1);
    ck_assert_uint_eq(pipeline->stage_count, 2);
    ck_assert_str_eq(pipeline->stages[0].replicas[0].type_name, "slow");
    ck_assert_uint_eq(pipeline->stages[0].layer_count, 2);
    ck_assert_str_eq(pipeline->stages[1].replicas[0].type_name, "fast");
    toy_free(toy);
}
END_TEST

START_TEST(a_template_that_does_not_fit_is_made_anew)
{
    struct toy *toy = two_gpus();
    /* Layers 2-3 on the fast GPU need 500e6 * 16 bytes, 300 MB of activations and 1 GiB
     * of workspace: 8.7 GiB; layer 3 alone 5.6; 0-2 on the slow one 2 * 500 MB and 13.9
     * in all. */
    toy->types[0].memory_bytes = (uint64_t)8 << 30;
    const struct het_plan *plan = run_with(toy, &het_algo_ditto, &plain).incumbent;
    ck_assert_ptr_nonnull(plan);
    const struct het_stage *stages = plan->pipelines[0].stages;
    for (size_t s = 0; s < plan->pipelines[0].stage_count; s++)
        if (stages[s].replicas[0].type == 0)
            ck_assert_uint_eq(stages[s].layer_count, 1);
    toy_free(toy);
}
END_TEST

START_TEST(a_cluster_is_filled_with_copies_of_a_pipeline)
{
    struct toy *toy = toy_new();
    toy->workload.global_batch = 64;
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)80 << 30;
    const struct het_plan *plan = run_with(toy, &het_algo_ditto, &plain).incumbent;
    ck_assert_ptr_nonnull(plan);
    ck_assert_uint_gt(plan->pipeline_count, 1);
    for (size_t p = 1; p < plan->pipeline_count; p++)
        ck_assert_uint_eq(plan->pipelines[p].stage_count, plan->pipelines[0].stage_count);
    toy_free(toy);
}
END_TEST

START_TEST(every_variant_has_a_plan_and_none_is_above_all_assignments_by_its_time)
{
    const struct het_search_options communication = { .ditto_folding =
                                                          HET_DITTO_FOLD_COMMUNICATION };
    const struct het_search_options none = { .ditto_folding = HET_DITTO_FOLD_NONE };
    struct toy *toy = two_gpus();
    double best_s = run_with(toy, &het_algo_ditto, &none).incumbent_cost.pipeline_s;
    ck_assert_double_gt(best_s, 0);
    const struct het_search found[] = {
        run_with(toy, &het_algo_ditto, &plain),
        run_with(toy, &het_algo_ditto, &communication),
        run_with(toy, &het_algo_ditto_greedy, &plain),
        run_with(toy, &het_algo_ditto_greedy, &communication),
    };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        ck_assert_ptr_nonnull(found[i].incumbent);
    ck_assert_double_le(found[0].incumbent_cost.iteration_s,
                        found[2].incumbent_cost.iteration_s);
    toy_free(toy);
}
END_TEST

START_TEST(what_came_nearest_is_noted)
{
    struct toy *toy = two_gpus();
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)2 << 30;
    struct het_search search = run_with(toy, &het_algo_ditto, &plain);
    ck_assert_ptr_null(search.incumbent);
    ck_assert_double_gt(search.nearest_miss_ratio, 1);
    search = run_with(toy, &het_algo_ditto_greedy, &plain);
    ck_assert_double_gt(search.nearest_miss_ratio, 1);
    toy_free(toy);
}
END_TEST

Suite *test_ditto_suite(void)
{
    Suite *suite = suite_create("ditto");
    TCase *cases = tcase_create("ditto");
    tcase_add_test(cases, a_faster_gpu_takes_the_stages_of_as_many_slow_ones);
    tcase_add_test(cases, a_template_that_does_not_fit_is_made_anew);
    tcase_add_test(cases, a_cluster_is_filled_with_copies_of_a_pipeline);
    tcase_add_test(
        cases, every_variant_has_a_plan_and_none_is_above_all_assignments_by_its_time);
    tcase_add_test(cases, what_came_nearest_is_noted);
    suite_add_tcase(suite, cases);
    return suite;
}
