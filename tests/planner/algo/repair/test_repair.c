#include "planner/algo/repair/surviving_plan.h"

#include "planner/model/runtime.h"

#include "planner/run/run_all.h"
#include "tests/planner/random_problem.h"
#include "tests/planner/toy_plan.h"

#include <check.h>
#include <string.h>

static void check_valid(const struct toy *toy, const struct het_plan *plan)
{
    struct het_violations violations = { 0 };
    ck_assert_ptr_nonnull(plan);
    size_t count = het_plan_check(toy->arena, &toy->problem, plan, &violations);
    ck_assert_msg(!count, "%s", count ? violations.messages[0] : "");
}

static void lose(struct het_plan *plan, size_t pipeline, size_t stage, size_t replica)
{
    struct het_replica *r = (struct het_replica *)(uintptr_t)&plan->pipelines[pipeline]
                                .stages[stage]
                                .replicas[replica];
    r->node_name = "gone";
}

START_TEST(plan_that_lost_nothing_stays_as_it_is)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    const struct het_plan *repaired = het_repair(toy->arena, &toy->problem, &plan);
    check_valid(toy, repaired);
    ck_assert_int_eq(het_plan_compare(repaired, &plan), 0);
    toy_free(toy);
}
END_TEST

START_TEST(samples_of_a_lost_pipeline_are_done_by_the_others)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    lose(&plan, 0, 1, 0);
    const struct het_plan *repaired = het_repair(toy->arena, &toy->problem, &plan);
    check_valid(toy, repaired);
    ck_assert_uint_eq(repaired->pipeline_count, 1);
    ck_assert_uint_eq(repaired->pipelines[0].microbatch_count, 4);
    /* The GPUs that the first pipeline had are numbered from 0 again. */
    ck_assert_uint_eq(repaired->pipelines[0].stages[0].replicas[0].gpus[0], 0);
    toy_free(toy);
}
END_TEST

/* Two lanes on f0 -> f1; one loses its second stage: the other does all. */
START_TEST(lane_that_lost_a_stage_goes_whole)
{
    struct toy *toy = toy_new();
    struct het_plan plan =
        TOY_PLAN(toy, TOY_PIPELINE(toy, 4,
                                   TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 1),
                                             toy_replica(toy, TOY_F0, 1, 1, 1)),
                                   TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F1, 0, 1, 1),
                                             toy_replica(toy, TOY_F1, 1, 1, 1))));
    lose(&plan, 0, 1, 1);
    const struct het_plan *repaired = het_repair(toy->arena, &toy->problem, &plan);
    check_valid(toy, repaired);
    ck_assert_uint_eq(repaired->pipeline_count, 1);
    ck_assert_uint_eq(repaired->pipelines[0].stages[0].replica_count, 1);
    ck_assert_uint_eq(repaired->pipelines[0].microbatch_count, 8);
    toy_free(toy);
}
END_TEST

/* Three lanes of one sample, batch 8: after a loss two lanes as pipelines of their own do
 * 4 each. With three left of four, 3 + 3 + 2. */
START_TEST(lanes_left_do_as_many_as_come_out)
{
    struct toy *toy = toy_new();
    struct het_plan plan =
        TOY_PLAN(toy, TOY_PIPELINE(toy, 2,
                                   TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 1),
                                             toy_replica(toy, TOY_F0, 1, 1, 1),
                                             toy_replica(toy, TOY_F0, 2, 1, 1),
                                             toy_replica(toy, TOY_F0, 3, 1, 1))));
    lose(&plan, 0, 0, 3);
    const struct het_plan *repaired = het_repair(toy->arena, &toy->problem, &plan);
    check_valid(toy, repaired);
    ck_assert_uint_eq(repaired->pipeline_count, 3);
    /* A runtime with one number of micro-batches for all: 8 = 2 lanes x 4. */
    toy->workload.runtime = het_runtime_find("megatron", NULL);
    repaired = het_repair(toy->arena, &toy->problem, &plan);
    check_valid(toy, repaired);
    ck_assert_uint_eq(repaired->pipeline_count, 1);
    ck_assert_uint_eq(repaired->pipelines[0].stages[0].replica_count, 2);
    ck_assert_uint_eq(repaired->pipelines[0].microbatch_count, 4);
    toy_free(toy);
}
END_TEST

START_TEST(replicas_of_an_uneven_stage_share_what_is_left)
{
    struct toy *toy = toy_new();
    struct het_plan plan = TOY_PLAN(
        toy, TOY_PIPELINE(toy, 2,
                          TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 2),
                                    toy_replica(toy, TOY_F0, 1, 1, 1),
                                    toy_replica(toy, TOY_S0, 0, 1, 1)),
                          TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F1, 0, 1, 4))));
    lose(&plan, 0, 0, 2);
    const struct het_plan *repaired = het_repair(toy->arena, &toy->problem, &plan);
    check_valid(toy, repaired);
    const struct het_stage *stage = &repaired->pipelines[0].stages[0];
    ck_assert_uint_eq(stage->replica_count, 2);
    ck_assert_uint_eq(stage->replicas[0].microbatch_size, 2);
    ck_assert_uint_eq(stage->replicas[1].microbatch_size, 2);
    toy_free(toy);
}
END_TEST

START_TEST(nothing_left_is_no_plan)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    lose(&plan, 0, 1, 0);
    lose(&plan, 1, 1, 0);
    ck_assert_ptr_null(het_repair(toy->arena, &toy->problem, &plan));
    plan = TOY_PLAN(
        toy,
        TOY_PIPELINE(toy, 8, TOY_STAGE(toy, 1, 3, toy_replica(toy, TOY_F0, 0, 1, 1))));
    ck_assert_ptr_null(het_repair(toy->arena, &toy->problem, &plan));
    toy_free(toy);
}
END_TEST

/* Random clusters that lose a node: the repair, if there is one, keeps every rule but
 * memory and limits on degrees. */
START_TEST(repairs_of_random_plans_are_plans)
{
    size_t repaired_count = 0;
    for (uint64_t seed = 0; seed < 150; seed++) {
        struct het_arena *arena = het_arena_new();
        struct het_problem *problem = random_problem(arena, seed);
        struct het_workload workload = *problem->workload;
        workload.min_data_parallel = workload.max_data_parallel = 0;
        workload.min_gpus = 0;
        problem->workload = &workload;
        struct het_search_options options = { .algorithm = "metis", .effort = 2000 };
        const struct het_plan *plan, *repaired;
        if (problem->cluster->node_count > 1 &&
            het_search_run(arena, problem, &options, &plan, NULL, NULL) == 0) {
            struct het_cluster *smaller = het_arena_alloc(arena, sizeof *smaller);
            *smaller = *problem->cluster;
            smaller->node_count--;
            problem->cluster = smaller;
            repaired = het_repair(arena, problem, plan);
            if (repaired) {
                struct het_violations violations = { 0 };
                size_t count = het_plan_check(arena, problem, repaired, &violations);
                ck_assert_msg(!count || strstr(violations.messages[0], "minGPUs"),
                              "seed %llu: %s", (unsigned long long)seed,
                              count ? violations.messages[0] : "");
                repaired_count++;
            }
        }
        het_arena_free(arena);
    }
    ck_assert_uint_gt(repaired_count, 20);
}
END_TEST

Suite *test_repair_suite(void)
{
    Suite *suite = suite_create("repair");
    TCase *tcase = tcase_create("repair");
    tcase_add_test(tcase, plan_that_lost_nothing_stays_as_it_is);
    tcase_add_test(tcase, samples_of_a_lost_pipeline_are_done_by_the_others);
    tcase_add_test(tcase, lane_that_lost_a_stage_goes_whole);
    tcase_add_test(tcase, lanes_left_do_as_many_as_come_out);
    tcase_add_test(tcase, replicas_of_an_uneven_stage_share_what_is_left);
    tcase_add_test(tcase, nothing_left_is_no_plan);
    tcase_add_test(tcase, repairs_of_random_plans_are_plans);
    suite_add_tcase(suite, tcase);
    return suite;
}
