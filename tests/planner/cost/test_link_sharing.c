#include "planner/cost/link_sharing.h"

#include "planner/cost/schedule.h"
#include "tests/planner/toy_plan.h"
#include "tests/scale.h"

#include <check.h>
#include <math.h>

#define ck_near(a, b) ck_assert_double_eq_tol((a), (b), 1e-12)

START_TEST(pipelines_that_go_in_step_divide_the_link)
{
    struct toy *toy = toy_new();
    /* Both send 20 MB at once through the 5 GB/s of s0, and back. */
    struct het_plan plan = toy_two_pipelines(toy);
    struct het_stage_times times[4] = { { .compute_s = 0.0270 },
                                        { .compute_s = 0.0315 },
                                        { .compute_s = 0.0270 },
                                        { .compute_s = 0.0315 } };
    het_link_sharing_plan(&toy->problem, &plan, times);
    for (size_t p = 0; p < 2; p++) {
        ck_near(times[2 * p].send_s, 2 * 20e6 / 5e9);
        ck_near(times[2 * p].send_backward_s, 2 * 20e6 / 5e9);
        ck_assert(times[2 * p + 1].send_s == 0);
    }
    /* A latency is waited for by both at the same time. */
    toy->nodes[TOY_S0].latency_s = 0.001;
    het_link_sharing_plan(&toy->problem, &plan, times);
    ck_near(times[0].send_s, 2 * 20e6 / 5e9 + 0.001);
    toy_free(toy);
}
END_TEST

START_TEST(ways_that_do_not_meet_share_nothing)
{
    struct toy *toy = toy_new();
    /* One pipeline goes from s0 to f0, the other, as slow, from f0 to s0: the first sends
     * out of s0 while the second sends into it. */
    struct het_stage s0 = TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_S0, 0, 1, 2));
    struct het_stage f0 = TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 0, 1, 2));
    struct het_stage back_f0 = TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 1, 1, 2));
    struct het_stage back_s0 = TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_S0, 1, 1, 2));
    struct het_plan plan = TOY_PLAN(toy, TOY_PIPELINE(toy, 2, s0, f0),
                                    TOY_PIPELINE(toy, 2, back_f0, back_s0));
    struct het_stage_times times[4] = { { .compute_s = 0.03 },
                                        { .compute_s = 0.03 },
                                        { .compute_s = 0.03 },
                                        { .compute_s = 0.03 } };
    het_link_sharing_plan(&toy->problem, &plan, times);
    ck_near(times[0].send_s, 20e6 / 5e9);
    ck_near(times[2].send_s, 20e6 / 5e9);
    toy_free(toy);
}
END_TEST

START_TEST(pipelines_that_are_not_alike_meet_by_chance)
{
    struct toy *toy = toy_new();
    /* The second is slower, and keeps s0's uplink busy each way for 4 ms of each of its
     * two micro-batches: by itself it takes 40 + 30 + 8 + (40 + 8) = 126 ms. The first:
     * 30 + 30 + 8 + (30 + 8) = 106. */
    struct het_plan plan = toy_two_pipelines(toy);
    struct het_stage_times times[4] = { { .compute_s = 0.03 },
                                        { .compute_s = 0.03 },
                                        { .compute_s = 0.04 },
                                        { .compute_s = 0.03 } };
    het_link_sharing_plan(&toy->problem, &plan, times);
    ck_near(times[0].send_s, 0.004 * (1 + 2 * 0.004 / 0.126));
    ck_near(times[2].send_backward_s, 0.004 * (1 + 2 * 0.004 / 0.106));
    toy_free(toy);
}
END_TEST

/* `copies` pipelines of two stages, each on a GPU of s0 and one of f0, `microbatches` of
 * two samples each. */
static struct het_plan copies_of_two_stages(struct toy *toy, uint32_t copies,
                                            uint32_t microbatches)
{
    struct het_pipeline *pipelines =
        HET_ARENA_ARRAY(toy->arena, struct het_pipeline, copies);
    for (uint32_t p = 0; p < copies; p++)
        pipelines[p] = TOY_PIPELINE(
            toy, microbatches, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_S0, p, 1, 2)),
            TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, p, 1, 2)));
    toy->workload.global_batch = copies * microbatches * 2;
    return (struct het_plan){ .global_batch = toy->workload.global_batch,
                              .layer_count = 4,
                              .pipelines = pipelines,
                              .pipeline_count = copies };
}

START_TEST(closed_form_is_exact_for_two_stages_in_step)
{
    for (uint32_t copies = 1; copies <= 4; copies++)
        for (uint32_t microbatches = 1; microbatches <= 20; microbatches++) {
            struct toy *toy = toy_new();
            struct het_plan plan = copies_of_two_stages(toy, copies, microbatches);
            struct het_cost closed, simulated;
            ck_assert_int_eq(het_cost_plan(&toy->problem, &plan, &closed, NULL), 0);
            ck_assert_int_eq(het_schedule_simulate(toy->arena, &toy->problem, &plan,
                                                   &simulated, NULL, NULL),
                             0);
            ck_near(closed.iteration_s, simulated.iteration_s);
            toy_free(toy);
        }
}
END_TEST

/* Random plans on a toy with slow uplinks, which run five micro-batches at most: filling
 * and emptying the pipelines, where the closed form is above, is much of their time. Most
 * are within 3 % of the simulation all the same, and hardly one is 15 % away. */
START_TEST(closed_form_is_near_the_simulation)
{
    size_t made = 0, near = 0, far = 0;
    for (int seed = 1; seed <= SCALED(4000); seed++) {
        struct toy *toy = toy_new();
        struct het_plan plan;
        uint64_t state = (uint64_t)seed;
        struct het_cost closed, simulated;
        if (toy_random_plan(toy, &state, &plan)) {
            made++;
            ck_assert_int_eq(het_cost_plan(&toy->problem, &plan, &closed, NULL), 0);
            ck_assert_int_eq(het_schedule_simulate(toy->arena, &toy->problem, &plan,
                                                   &simulated, NULL, NULL),
                             0);
            double away = fabs(closed.pipeline_s / simulated.pipeline_s - 1);
            near += away <= 0.03;
            far += away > 0.15;
        }
        toy_free(toy);
    }
    ck_assert_uint_gt(near * 100, made * 75);
    ck_assert_uint_lt(far * 100, made);
}
END_TEST

Suite *test_link_sharing_suite(void)
{
    Suite *suite = suite_create("link_sharing");
    TCase *cases = tcase_create("sharing");
    tcase_add_test(cases, pipelines_that_go_in_step_divide_the_link);
    tcase_add_test(cases, ways_that_do_not_meet_share_nothing);
    tcase_add_test(cases, pipelines_that_are_not_alike_meet_by_chance);
    tcase_add_test(cases, closed_form_is_exact_for_two_stages_in_step);
    tcase_add_test(cases, closed_form_is_near_the_simulation);
    suite_add_tcase(suite, cases);
    return suite;
}
