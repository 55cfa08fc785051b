#include "planner/algo/autohet/autohet.h"

#include "planner/search/balance.h"
#include "tests/planner/toy.h"

#include <check.h>
#include <math.h>

static const struct het_search_options plain;

static struct het_search run_on(struct toy *toy)
{
    struct het_error err = { 0 };
    ck_assert_msg(het_problem_init(toy->arena, &toy->cluster, &toy->profile,
                                   &toy->workload, &toy->problem, &err) == 0,
                  "%s", err.message);
    struct het_search search = { .problem = &toy->problem,
                                 .available = &toy->cluster,
                                 .algorithm = &het_algo_autohet,
                                 .options = &plain,
                                 .arena = toy->arena,
                                 .scratch = toy->arena,
                                 .effort_left = HET_DEFAULT_EFFORT };
    ck_assert_int_eq(het_algo_autohet.run(&search, &err), 0);
    return search;
}

/* `fast` and `slow` GPUs on one node each, fast links, one sample a micro-batch. */
static struct toy *two_nodes(uint32_t fast, uint32_t slow)
{
    struct toy *toy = toy_new();
    toy->nodes[1] = toy->nodes[TOY_S0];
    toy->nodes[0].gpu_count = fast;
    toy->nodes[1].gpu_count = slow;
    toy->cluster.node_count = 2;
    for (size_t n = 0; n < 2; n++)
        toy->nodes[n].uplink_bytes_per_s = 1e15;
    static const uint32_t sizes[] = { 1 };
    toy->workload.microbatch_sizes = sizes;
    toy->workload.microbatch_size_count = 1;
    toy->workload.tensor_parallel = sizes;
    toy->workload.tensor_parallel_count = 1;
    toy->workload.global_batch = 16;
    return toy;
}

START_TEST(pipelines_differ_in_shape_where_a_type_alone_does)
{
    /* Fast GPUs hold the whole model, slow ones only half of it. */
    struct toy *toy = two_nodes(2, 4);
    toy->types[0].memory_bytes = (uint64_t)80 << 30;
    toy->types[1].memory_bytes = (uint64_t)20 << 30;
    const struct het_plan *plan = run_on(toy).incumbent;
    ck_assert_ptr_nonnull(plan);
    bool has_single = false, has_longer = false;
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        has_single |= plan->pipelines[p].stage_count == 1;
        has_longer |= plan->pipelines[p].stage_count > 1;
    }
    ck_assert(has_single);
    ck_assert(has_longer);
    toy_free(toy);
}
END_TEST

START_TEST(a_faster_pipeline_runs_more_microbatches)
{
    /* Each GPU a pipeline: the fast one is twice as fast. 16 micro-batches: 11 and 5, or
     * 10 and 6. */
    struct toy *toy = two_nodes(1, 1);
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)80 << 30;
    toy->workload.max_pipeline_parallel = 1;
    const struct het_plan *plan = run_on(toy).incumbent;
    ck_assert_ptr_nonnull(plan);
    ck_assert_uint_eq(plan->pipeline_count, 2);
    uint32_t sum = 0;
    for (size_t p = 0; p < 2; p++) {
        const struct het_pipeline *pipeline = &plan->pipelines[p];
        sum += pipeline->microbatch_count;
        if (pipeline->stages[0].replicas[0].type == 0)
            ck_assert_uint_ge(pipeline->microbatch_count, 10);
    }
    ck_assert_uint_eq(sum, 16);
    toy_free(toy);
}
END_TEST

START_TEST(weak_gpus_take_the_first_stages)
{
    struct toy *toy = two_nodes(1, 1);
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)80 << 30;
    toy->workload.max_data_parallel = 1;
    const struct het_plan *plan = run_on(toy).incumbent;
    ck_assert_ptr_nonnull(plan);
    const struct het_pipeline *pipeline = &plan->pipelines[0];
    ck_assert_uint_eq(pipeline->stage_count, 2);
    ck_assert_str_eq(pipeline->stages[0].replicas[0].type_name, "slow");
    ck_assert_str_eq(pipeline->stages[1].replicas[0].type_name, "fast");
    ck_assert_uint_ge(pipeline->stages[1].layer_count, 1);
    toy_free(toy);
}
END_TEST

START_TEST(layers_are_in_proportion_to_power)
{
    /* Eq. 4 on 12 equal layers, g = 1, 1, 2: 3, 3, 6 layers have l / g = 3 everywhere. */
    const double power[] = { 1, 1, 2 };
    struct het_arena *arena = het_arena_new();
    struct het_balance_times times[3];
    struct het_balance_stage stages[3];
    double *zero = HET_ARENA_ARRAY(arena, double, 13);
    for (uint32_t s = 0; s < 3; s++) {
        double *seconds = HET_ARENA_ARRAY(arena, double, 13);
        for (uint32_t l = 0; l <= 12; l++)
            seconds[l] = l / power[s];
        times[s] = (struct het_balance_times){ seconds, zero };
        stages[s] = (struct het_balance_stage){ .times = &times[s], .times_count = 1 };
    }
    const struct het_balance_layers question = {
        .layer_count = 12, .stages = stages, .stage_count = 3, .microbatch_count = 1000
    };
    struct het_balance_space *space = het_balance_space_new(12, 3);
    uint32_t cuts[4];
    double seconds;
    ck_assert(het_balance_layers(space, &question, HUGE_VAL, cuts, &seconds));
    ck_assert_uint_eq(cuts[1], 3);
    ck_assert_uint_eq(cuts[2], 6);
    het_balance_space_free(space);
    het_arena_free(arena);
}
END_TEST

START_TEST(what_came_nearest_is_noted)
{
    struct toy *toy = two_nodes(1, 1);
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)2 << 30;
    struct het_search search = run_on(toy);
    ck_assert_ptr_null(search.incumbent);
    ck_assert_double_gt(search.nearest_miss_ratio, 1);
    toy_free(toy);
}
END_TEST

Suite *test_autohet_suite(void)
{
    Suite *suite = suite_create("autohet");
    TCase *cases = tcase_create("autohet");
    tcase_add_test(cases, pipelines_differ_in_shape_where_a_type_alone_does);
    tcase_add_test(cases, a_faster_pipeline_runs_more_microbatches);
    tcase_add_test(cases, weak_gpus_take_the_first_stages);
    tcase_add_test(cases, layers_are_in_proportion_to_power);
    tcase_add_test(cases, what_came_nearest_is_noted);
    suite_add_tcase(suite, cases);
    return suite;
}
