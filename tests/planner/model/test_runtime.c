#include "planner/model/runtime.h"

#include "tests/planner/toy.h"

#include <check.h>
#include <string.h>

#define NONE HET_FREEDOM_COUNT

/* What `name` lacks for the plan; NONE: nothing. */
static enum het_freedom missing(const struct toy *toy, const char *name,
                                const struct het_plan *plan)
{
    enum het_freedom freedom = NONE;
    const struct het_runtime *runtime = het_runtime_find(name, NULL);
    const struct het_plan *found =
        het_runtime_express(toy->arena, runtime, plan, &freedom);
    ck_assert_int_eq(!found, freedom != NONE);
    return freedom;
}

/* One pipeline of two stages, on f0 and s0, each of two replicas of `tp0` and `tp1`. */
static struct het_plan grid(const struct toy *toy, uint32_t layers, uint32_t tp0,
                            uint32_t tp1)
{
    return TOY_PLAN(
        toy, TOY_PIPELINE(toy, 4,
                          TOY_STAGE(toy, 0, layers, toy_replica(toy, TOY_F0, 0, tp0, 1),
                                    toy_replica(toy, TOY_F0, tp0, tp0, 1)),
                          TOY_STAGE(toy, layers, 4 - layers,
                                    toy_replica(toy, TOY_S0, 0, tp1, 1),
                                    toy_replica(toy, TOY_S0, tp1, tp1, 1))));
}

START_TEST(runtimes_are_found_by_name)
{
    struct het_error err;
    ck_assert_str_eq(het_runtime_find("megatron", NULL)->title, "Megatron-LM");
    ck_assert_ptr_eq(het_runtime_find("torchrun", NULL), het_runtimes());
    ck_assert_ptr_eq(het_runtime_find("custom", NULL), het_runtimes());
    ck_assert_ptr_null(het_runtime_find("megatrn", &err));
    ck_assert_ptr_nonnull(strstr(err.message,
                                 "no runtime \"megatrn\"; there are generic, torchrun, "
                                 "custom, megatron, flagscale, hetu, sailor, deepspeed, "
                                 "torchtitan"));
    ck_assert_ptr_null(het_runtime_find("Megatron", &err));
    for (const struct het_runtime *r = het_runtimes(); r->name; r++)
        ck_assert_ptr_eq(het_runtime_find(r->name, NULL), r);
}
END_TEST

START_TEST(even_cuts_give_the_first_stages_one_more)
{
    static const uint32_t expected[] = { 4, 4, 3, 3 };
    for (uint32_t s = 0; s < 4; s++)
        ck_assert_uint_eq(het_runtime_even_layers(14, 4, s), expected[s]);
}
END_TEST

START_TEST(an_even_grid_runs_everywhere)
{
    struct toy *toy = toy_new();
    struct het_plan plan = grid(toy, 2, 1, 1);
    for (const struct het_runtime *r = het_runtimes(); r->name; r++)
        ck_assert_int_eq(missing(toy, r->name, &plan), NONE);
    toy_free(toy);
}
END_TEST

START_TEST(each_runtime_is_asked_for_what_the_plan_takes)
{
    struct toy *toy = toy_new();
    struct het_plan uneven = grid(toy, 3, 1, 1), degrees = grid(toy, 2, 2, 1);
    ck_assert_int_eq(missing(toy, "deepspeed", &uneven), HET_UNEVEN_LAYERS);
    ck_assert_int_eq(missing(toy, "megatron", &uneven), NONE);
    ck_assert_int_eq(missing(toy, "torchtitan", &uneven), NONE);
    ck_assert_int_eq(missing(toy, "megatron", &degrees), HET_TP_PER_STAGE);
    ck_assert_int_eq(missing(toy, "flagscale", &degrees), NONE);
    ck_assert_int_eq(missing(toy, "hetu", &degrees), NONE);
    ck_assert_int_eq(missing(toy, "sailor", &degrees), NONE);

    struct het_plan shares =
        TOY_PLAN(toy, TOY_PIPELINE(toy, 2,
                                   TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 3),
                                             toy_replica(toy, TOY_S0, 0, 1, 1))));
    for (const struct het_runtime *r = het_runtimes() + 1; r->name; r++)
        ck_assert_int_eq(missing(toy, r->name, &shares), HET_UNEVEN_SHARES);
    ck_assert_int_eq(missing(toy, "generic", &shares), NONE);

    struct het_plan replicas = TOY_PLAN(
        toy, TOY_PIPELINE(toy, 4,
                          TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 1),
                                    toy_replica(toy, TOY_F0, 1, 1, 1)),
                          TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_S0, 0, 1, 2))));
    ck_assert_int_eq(missing(toy, "flagscale", &replicas), NONE);
    ck_assert_int_eq(missing(toy, "megatron", &replicas), HET_DP_PER_STAGE);
    ck_assert_int_eq(missing(toy, "hetu", &replicas), HET_DP_PER_STAGE);
    ck_assert_int_eq(missing(toy, "sailor", &replicas), HET_DP_PER_STAGE);
    toy_free(toy);
}
END_TEST

START_TEST(pipelines_that_differ_need_a_runtime_that_lets_them)
{
    struct toy *toy = toy_new();
    struct het_plan plan = TOY_PLAN(
        toy,
        TOY_PIPELINE(toy, 6, TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 1))),
        TOY_PIPELINE(toy, 2, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_S0, 0, 1, 1)),
                     TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_S0, 1, 1, 1))));
    uint32_t taken = het_runtime_freedoms_of(&plan);
    ck_assert_uint_eq(taken,
                      1u << HET_COUNT_PER_PIPELINE | 1u << HET_STAGES_PER_PIPELINE);
    ck_assert_int_eq(missing(toy, "hetu", &plan), NONE);
    ck_assert_int_eq(missing(toy, "megatron", &plan), HET_COUNT_PER_PIPELINE);
    struct het_pipeline *second = (struct het_pipeline *)(uintptr_t)&plan.pipelines[1];
    struct het_stage *stages = (struct het_stage *)(uintptr_t)second->stages;
    stages[1].recompute = HET_RECOMPUTE_FULL;
    ck_assert_uint_eq(het_runtime_freedoms_of(&plan),
                      taken | 1u << HET_RECOMPUTE_PER_STAGE);
    ck_assert_int_eq(missing(toy, "hetu", &plan), NONE);
    /* Lists of stages say full or nothing. */
    stages[1].recompute = HET_RECOMPUTE_SELECTIVE;
    ck_assert_int_eq(missing(toy, "hetu", &plan), HET_SELECTIVE_PER_STAGE);
    toy_free(toy);
}
END_TEST

START_TEST(degrees_that_a_runtime_asserts_are_kept)
{
    struct toy *toy = toy_new();
    toy->nodes[TOY_F0].gpu_count = 8;
    struct het_plan plan = TOY_PLAN(
        toy,
        TOY_PIPELINE(toy, 8, TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 8, 1))));
    ck_assert_int_eq(missing(toy, "sailor", &plan), HET_ANY_TP);
    ck_assert_int_eq(missing(toy, "megatron", &plan), NONE);
    plan = TOY_PLAN(
        toy,
        TOY_PIPELINE(toy, 8, TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 3, 1))));
    ck_assert_int_eq(missing(toy, "sailor", &plan), HET_ANY_TP);
    toy_free(toy);
}
END_TEST

/* By whoever knows the cluster, and by whoever knows the plan alone. */
static void check_is_expressed_as_it_is(const struct toy *toy, const char *name,
                                        const struct het_plan *plan)
{
    const struct het_runtime *runtime = het_runtime_find(name, NULL);
    const struct het_plan *bound = het_runtime_express(toy->arena, runtime, plan, NULL);
    const struct het_plan *alone =
        het_runtime_express_alone(toy->arena, runtime, plan, NULL);
    ck_assert_ptr_nonnull(bound);
    ck_assert_ptr_nonnull(alone);
    ck_assert_int_eq(het_plan_compare(bound, plan), 0);
    ck_assert_int_eq(het_plan_compare(alone, plan), 0);
}

/* Rank of the first GPU of a replica, counted as het_plan_rank_nodes does. */
static uint32_t rank_of(const struct toy *toy, const struct het_plan *plan,
                        const struct het_replica *replica)
{
    struct het_rank_node *nodes;
    size_t count = het_plan_rank_nodes(toy->arena, plan, &nodes);
    for (size_t n = 0; n < count; n++)
        if (!strcmp(nodes[n].node_name, replica->node_name))
            return nodes[n].rank_offset + replica->gpus[0];
    ck_abort_msg("no such node");
}

/* f0 holds the first stage of both lanes, s0 the second: by pipelines the ranks of f0 are
 * 0 and 1, those of s0 2 and 3, which is the stage-major order whatever the local
 * indices were. */
START_TEST(gpus_of_a_node_are_told_apart_as_the_ranks_need)
{
    struct toy *toy = toy_new();
    struct het_plan plan = TOY_PLAN(
        toy,
        TOY_PIPELINE(toy, 4, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 1, 1, 1)),
                     TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_S0, 1, 1, 1))),
        TOY_PIPELINE(toy, 4, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 1)),
                     TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_S0, 0, 1, 1))));
    const struct het_plan *found =
        het_runtime_express(toy->arena, het_runtime_find("megatron", NULL), &plan, NULL);
    ck_assert_ptr_nonnull(found);
    for (uint32_t p = 0; p < 2; p++)
        for (uint32_t s = 0; s < 2; s++)
            ck_assert_uint_eq(
                rank_of(toy, found, &found->pipelines[p].stages[s].replicas[0]),
                2 * s + p);
    check_is_expressed_as_it_is(toy, "megatron", found);
    toy_free(toy);
}
END_TEST

/* Lane 0 is on f0 and f1, lane 1 on s0: the only order is by lanes, which Megatron-LM has
 * and DeepSpeed has not. */
START_TEST(lanes_one_after_the_other_are_an_order_of_megatron_only)
{
    struct toy *toy = toy_new();
    struct het_plan plan = TOY_PLAN(
        toy,
        TOY_PIPELINE(toy, 4, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 1)),
                     TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F1, 0, 1, 1))),
        TOY_PIPELINE(toy, 4, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_S0, 0, 1, 1)),
                     TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_S0, 1, 1, 1))));
    ck_assert_int_eq(missing(toy, "megatron", &plan), NONE);
    ck_assert_int_eq(missing(toy, "deepspeed", &plan), HET_ANY_RANK_ORDER);
    ck_assert_int_eq(missing(toy, "sailor", &plan), NONE);
    toy_free(toy);
}
END_TEST

/* Pipelines on f0 and f1, then on s0 and f1: nodes by first appearance are f0, f1, s0,
 * but stages want f0, s0, f1. Written as one pipeline they are. */
START_TEST(equal_pipelines_are_written_as_one_where_that_gives_the_order)
{
    struct toy *toy = toy_new();
    struct het_plan plan = TOY_PLAN(
        toy,
        TOY_PIPELINE(toy, 4, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 1)),
                     TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F1, 0, 1, 1))),
        TOY_PIPELINE(toy, 4, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_S0, 0, 1, 1)),
                     TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F1, 1, 1, 1))));
    const struct het_plan *found =
        het_runtime_express(toy->arena, het_runtime_find("deepspeed", NULL), &plan, NULL);
    ck_assert_ptr_nonnull(found);
    ck_assert_uint_eq(found->pipeline_count, 1);
    ck_assert_uint_eq(found->pipelines[0].microbatch_count, 4);
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t r = 0; r < 2; r++)
            ck_assert_uint_eq(
                rank_of(toy, found, &found->pipelines[0].stages[s].replicas[r]),
                2 * s + r);
    check_is_expressed_as_it_is(toy, "deepspeed", found);
    toy_free(toy);
}
END_TEST

Suite *test_runtime_suite(void)
{
    Suite *suite = suite_create("runtime");
    TCase *tcase = tcase_create("runtime");
    tcase_add_test(tcase, runtimes_are_found_by_name);
    tcase_add_test(tcase, even_cuts_give_the_first_stages_one_more);
    tcase_add_test(tcase, an_even_grid_runs_everywhere);
    tcase_add_test(tcase, each_runtime_is_asked_for_what_the_plan_takes);
    tcase_add_test(tcase, pipelines_that_differ_need_a_runtime_that_lets_them);
    tcase_add_test(tcase, degrees_that_a_runtime_asserts_are_kept);
    tcase_add_test(tcase, gpus_of_a_node_are_told_apart_as_the_ranks_need);
    tcase_add_test(tcase, lanes_one_after_the_other_are_an_order_of_megatron_only);
    tcase_add_test(tcase, equal_pipelines_are_written_as_one_where_that_gives_the_order);
    suite_add_tcase(suite, tcase);
    return suite;
}
