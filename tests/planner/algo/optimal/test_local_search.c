#include "planner/algo/optimal/local_search.h"

#include "planner/cost/cost.h"
#include "tests/planner/toy.h"

#include <check.h>

static const struct het_algorithm by_hand = { .name = "by hand" };
static const struct het_search_options defaults;

/* What becomes of `plan`. */
static const struct het_plan *polish(struct toy *toy, const struct het_plan *plan,
                                     uint64_t effort)
{
    struct het_search search = { .problem = &toy->problem,
                                 .available = &toy->cluster,
                                 .algorithm = &by_hand,
                                 .options = &defaults,
                                 .arena = toy->arena,
                                 .scratch = toy->arena,
                                 .effort_left = effort };
    struct het_stage_table *table = het_stage_table_new(&toy->problem);
    ck_assert(het_search_offer(&search, plan));
    plan = het_local_search(&search, table, toy->arena, plan, effort);
    het_stage_table_free(table);
    return plan;
}

static double seconds_of(const struct toy *toy, const struct het_plan *plan)
{
    struct het_cost cost;
    ck_assert_int_eq(het_cost_plan(&toy->problem, plan, &cost, NULL), 0);
    return cost.iteration_s;
}

/* The first stage takes 3 ms a sample forward and backward, the second 27: layer 0 alone
 * against layers 1 to 3. */
static struct het_plan lopsided(const struct toy *toy)
{
    return TOY_PLAN(
        toy, TOY_PIPELINE(toy, 8, TOY_STAGE(toy, 0, 1, toy_replica(toy, TOY_F0, 0, 1, 1)),
                          TOY_STAGE(toy, 1, 3, toy_replica(toy, TOY_F0, 1, 1, 1))));
}

static struct toy *roomy_toy(void)
{
    struct toy *toy = toy_new();
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)80 << 30;
    return toy;
}

START_TEST(without_effort_the_plan_stays)
{
    struct toy *toy = roomy_toy();
    struct het_plan plan = lopsided(toy);
    ck_assert_ptr_eq(polish(toy, &plan, 0), &plan);
    toy_free(toy);
}
END_TEST

START_TEST(layers_move_to_the_stage_that_waits)
{
    struct toy *toy = roomy_toy();
    toy->workload.max_gpus = 2;
    toy->workload.max_data_parallel = 1;
    static const uint32_t degrees[] = { 1 }, sizes[] = { 1 };
    toy->workload.tensor_parallel = degrees;
    toy->workload.tensor_parallel_count = 1;
    toy->workload.microbatch_sizes = sizes;
    toy->workload.microbatch_size_count = 1;
    struct het_plan plan = lopsided(toy);
    const struct het_plan *better = polish(toy, &plan, 100000);
    /* Of one sample at a time on two GPUs the cut behind layer 2 is best: 18 and 12 ms. */
    ck_assert_uint_eq(better->pipeline_count, 1);
    ck_assert_uint_eq(better->pipelines[0].stage_count, 2);
    ck_assert_uint_eq(better->pipelines[0].stages[0].layer_count, 3);
    ck_assert_double_lt(seconds_of(toy, better), seconds_of(toy, &plan));
    toy_free(toy);
}
END_TEST

START_TEST(idle_gpus_are_put_to_work)
{
    struct toy *toy = roomy_toy();
    struct het_plan plan = lopsided(toy);
    const struct het_plan *better = polish(toy, &plan, 100000);
    ck_assert_uint_gt(het_plan_gpu_count(better), 2);
    ck_assert_double_lt(seconds_of(toy, better), seconds_of(toy, &plan) / 2);
    struct het_violations violations = { 0 };
    ck_assert_uint_eq(het_plan_check(toy->arena, &toy->problem, better, &violations), 0);
    toy_free(toy);
}
END_TEST

Suite *test_local_search_suite(void)
{
    Suite *suite = suite_create("local_search");
    TCase *cases = tcase_create("polish");
    tcase_add_test(cases, without_effort_the_plan_stays);
    tcase_add_test(cases, layers_move_to_the_stage_that_waits);
    tcase_add_test(cases, idle_gpus_are_put_to_work);
    suite_add_tcase(suite, cases);
    return suite;
}
