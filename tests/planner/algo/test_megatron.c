#include "planner/algo/megatron.h"

#include "tests/planner/toy.h"

#include <check.h>
#include <string.h>

static const struct het_search_options options;

/* Runs the algorithm on the whole cluster alone. */
static struct het_search run(struct toy *toy)
{
    struct het_error err = { 0 };
    ck_assert_msg(het_problem_init(toy->arena, &toy->cluster, &toy->profile,
                                   &toy->workload, &toy->problem, &err) == 0,
                  "%s", err.message);
    struct het_search search = { .problem = &toy->problem,
                                 .available = &toy->cluster,
                                 .algorithm = &het_algo_megatron,
                                 .options = &options,
                                 .arena = toy->arena,
                                 .scratch = toy->arena,
                                 .effort_left = HET_DEFAULT_EFFORT };
    ck_assert_int_eq(het_algo_megatron.run(&search, &err), 0);
    return search;
}

/* tp, stages, replicas a stage, samples of a replica, micro-batches. */
static void check_grid(const struct het_plan *plan, uint32_t tp, size_t pp, size_t dp,
                       uint32_t size, uint32_t microbatches)
{
    ck_assert_ptr_nonnull(plan);
    ck_assert_uint_eq(plan->pipeline_count, 1);
    const struct het_pipeline *pipeline = &plan->pipelines[0];
    ck_assert_uint_eq(pipeline->stage_count, pp);
    ck_assert_uint_eq(pipeline->microbatch_count, microbatches);
    for (size_t s = 0; s < pp; s++) {
        ck_assert_uint_eq(pipeline->stages[s].replica_count, dp);
        for (size_t r = 0; r < dp; r++) {
            ck_assert_uint_eq(pipeline->stages[s].replicas[r].tp, tp);
            ck_assert_uint_eq(pipeline->stages[s].replicas[r].microbatch_size, size);
        }
    }
}

START_TEST(what_fits_on_one_gpu_is_not_cut)
{
    struct toy *toy = toy_new();
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)80 << 30;
    toy->workload.global_batch = 40;
    /* 10 GPUs, and micro-batches of 1, 2 or 4: dp 10. The slow GPUs' 30 ms a sample
     * become 2.5 * 60 ms for 4, so one micro-batch of 4 each is the fastest. */
    check_grid(run(toy).incumbent, 1, 1, 10, 4, 1);
    toy_free(toy);
}
END_TEST

START_TEST(tensor_parallelism_comes_before_stages)
{
    struct toy *toy = toy_new();
    /* One sample: 1100e6 * 16 bytes = 16.4 GiB, 600 MB of activations and 1 GiB on one
     * GPU; 9.5 GiB on two of a tensor-parallel group. */
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)10 << 30;
    toy->workload.global_batch = 5;
    toy->workload.microbatch_sizes = (const uint32_t[]){ 1 };
    toy->workload.microbatch_size_count = 1;
    check_grid(run(toy).incumbent, 2, 1, 5, 1, 1);
    toy_free(toy);
}
END_TEST

START_TEST(layers_are_cut_evenly_whatever_they_cost)
{
    struct toy *toy = toy_new();
    /* 4.5 GiB: layer 0 by itself fits, on two ranks: 400e6 / 2 * 16 = 3.0 GiB, 0.2 for
     * four samples in flight, 1 of workspace; layers 2 and 3 together need 4.9. */
    toy->workload.microbatch_sizes = (const uint32_t[]){ 1 };
    toy->workload.microbatch_size_count = 1;
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)9 << 29;
    toy->nodes[TOY_F1].gpu_count = 4;
    const struct het_plan *plan = run(toy).incumbent;
    check_grid(plan, 2, 4, 1, 1, 8);
    for (uint32_t s = 0; s < 4; s++)
        ck_assert_uint_eq(plan->pipelines[0].stages[s].first_layer, s);
    toy_free(toy);
}
END_TEST

START_TEST(degrees_stay_inside_the_smallest_node)
{
    struct toy *toy = toy_new();
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)11 << 30;
    toy->nodes[TOY_F1].gpu_count = 1;
    /* tp 2 would do, but one node has one GPU: so two stages on one GPU each, and of the
     * 9 GPUs one is left over. 8 samples: dp 4, two micro-batches of 1. */
    toy->workload.microbatch_sizes = (const uint32_t[]){ 1 };
    toy->workload.microbatch_size_count = 1;
    check_grid(run(toy).incumbent, 1, 2, 4, 1, 2);
    toy_free(toy);
}
END_TEST

START_TEST(a_prime_batch_leaves_gpus_idle)
{
    struct toy *toy = toy_new();
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)80 << 30;
    toy->workload.global_batch = 7;
    check_grid(run(toy).incumbent, 1, 1, 7, 1, 1);
    toy_free(toy);
}
END_TEST

START_TEST(what_does_not_fit_is_a_noted_miss)
{
    struct toy *toy = toy_new();
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)2 << 30;
    struct het_search search = run(toy);
    ck_assert_ptr_null(search.incumbent);
    ck_assert(search.nearest_miss_ratio > 1);
    ck_assert_ptr_nonnull(strstr(search.nearest_miss, "(2.0 GiB, 2.0 usable)"));
    toy_free(toy);
}
END_TEST

Suite *test_megatron_suite(void)
{
    Suite *suite = suite_create("megatron");
    TCase *cases = tcase_create("megatron");
    tcase_add_test(cases, what_fits_on_one_gpu_is_not_cut);
    tcase_add_test(cases, tensor_parallelism_comes_before_stages);
    tcase_add_test(cases, layers_are_cut_evenly_whatever_they_cost);
    tcase_add_test(cases, degrees_stay_inside_the_smallest_node);
    tcase_add_test(cases, a_prime_batch_leaves_gpus_idle);
    tcase_add_test(cases, what_does_not_fit_is_a_noted_miss);
    suite_add_tcase(suite, cases);
    return suite;
}
