#include "planner/run/explain.h"

#include "planner/cost/bound.h"
#include "planner/cost/schedule.h"
#include "planner/render/people/explanation.h"
#include "tests/planner/toy_plan.h"

#include <check.h>
#include <math.h>
#include <string.h>

#define ck_near(a, b) ck_assert_double_eq_tol((a), (b), 1e-9)

/* Batch 8 on two GPUs of f0: layers 0-1 and 2-3. A micro-batch of two samples takes
 * (1 + 2) 1.5 = 4.5 and 9 ms on the first, (3 + 4) 1.5 = 10.5 and 21 ms on the second. */
static struct het_plan two_stages(const struct toy *toy)
{
    return TOY_PLAN(
        toy, TOY_PIPELINE(toy, 4, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 2)),
                          TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 1, 1, 2))));
}

static struct het_explanation explain(const struct toy *toy, const struct het_plan *plan,
                                      const struct het_search_options *options)
{
    struct het_explanation explanation;
    ck_assert_int_eq(
        het_explain(toy->arena, &toy->problem, plan, options, &explanation, NULL), 0);
    return explanation;
}

START_TEST(stages_say_how_busy_they_are)
{
    struct toy *toy = toy_new();
    struct het_plan plan = two_stages(toy);
    struct het_explanation e = explain(toy, &plan, NULL);
    ck_assert_uint_eq(e.stage_count, 2);
    ck_near(e.stages[0].compute_s, 0.0135);
    ck_near(e.stages[1].compute_s, 0.0315);
    /* Two samples of 10 MB at 100 GB/s, both ways. */
    ck_near(e.stages[0].send_s, 2 * 2 * 10e6 / 100e9);
    ck_near(e.stages[0].busy_share, (0.0135 + 0.0004) / (0.0315 + 0.0004));
    ck_near(e.stages[1].busy_share, 1);
    ck_assert_uint_eq(e.cost.bottleneck_stage, 1);
    ck_assert_ptr_null(e.freedoms);
    toy_free(toy);
}
END_TEST

START_TEST(what_a_plan_says_of_itself_is_not_believed)
{
    struct toy *toy = toy_new();
    struct het_plan plan = two_stages(toy);
    struct het_explanation honest = explain(toy, &plan, NULL);
    ck_assert(honest.lower_bound_s == het_bound_iteration(&toy->problem));
    plan.predicted.lower_bound_s = 1000 * honest.cost.iteration_s;
    plan.predicted.iteration_s = honest.cost.iteration_s / 1000;
    plan.search.optimal = 1;
    struct het_explanation e = explain(toy, &plan, NULL);
    ck_assert(e.lower_bound_s == honest.lower_bound_s);
    ck_assert(e.cost.iteration_s == honest.cost.iteration_s);
    toy_free(toy);
}
END_TEST

START_TEST(moves_are_priced_and_checked)
{
    struct toy *toy = toy_new();
    struct het_plan plan = two_stages(toy);
    struct het_explanation e = explain(toy, &plan, NULL);
    /* Layers 0-2 take 27 ms, layer 3 takes 18: faster. */
    const struct het_explain_move *take = &e.stages[0].take_from_next;
    ck_assert(take->is_possible);
    ck_assert_double_lt(take->iteration_s, e.cost.iteration_s);
    const struct het_explain_move *give = &e.stages[0].give_to_next;
    ck_assert(give->is_possible);
    ck_assert_double_gt(give->iteration_s, e.cost.iteration_s);
    ck_assert(!e.stages[1].take_from_next.is_possible);
    /* Layers 0-2 hold 800 million parameters: 11.9 GiB of state. */
    ck_assert(take->fits);
    toy->types[0].memory_bytes = (uint64_t)12 << 30;
    e = explain(toy, &plan, NULL);
    ck_assert(!e.stages[0].take_from_next.fits);
    toy_free(toy);
}
END_TEST

START_TEST(pipelines_that_are_alike_are_told_once)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    struct het_explanation e = explain(toy, &plan, NULL);
    ck_assert_uint_eq(e.stage_count, 2);
    ck_assert_uint_eq(e.stages[0].pipeline_count, 2);
    /* Both ends of the sends are on nodes whose uplinks the gradients do not need: every
     * layer's two holders are on one node. */
    ck_assert_uint_eq(e.busiest_uplink, HET_UNBOUND);
    toy_free(toy);
}
END_TEST

START_TEST(gradients_name_the_uplink_that_they_wait_for)
{
    struct toy *toy = toy_new();
    struct het_plan plan = TOY_PLAN(
        toy,
        TOY_PIPELINE(toy, 4, TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 1))),
        TOY_PIPELINE(toy, 4, TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_S0, 0, 1, 1))));
    struct het_explanation e = explain(toy, &plan, NULL);
    ck_assert_uint_eq(e.busiest_uplink, TOY_S0);
    toy_free(toy);
}
END_TEST

START_TEST(freedoms_never_make_it_slower)
{
    struct toy *toy = toy_new();
    struct het_plan plan = two_stages(toy);
    const struct het_search_options options = { .algorithm = "auto", .effort = 20000 };
    struct het_explanation e = explain(toy, &plan, &options);
    for (size_t i = 1; i < HET_EXPLAIN_FREEDOMS; i++)
        ck_assert_double_le(e.freedoms[i].iteration_s, e.freedoms[i - 1].iteration_s);
    /* One GPU, and a node of four, of each type. */
    ck_assert_uint_eq(e.more_count, 4);
    for (size_t i = 0; i < e.more_count; i++)
        ck_assert_double_le(e.more[i].iteration_s, e.cost.iteration_s);
    const char *text = het_render_explanation(toy->arena, &toy->problem, &plan, &e, 100);
    ck_assert_ptr_nonnull(strstr(text, "stage 1 (1 x fast) is busy longest"));
    ck_assert_ptr_nonnull(strstr(text, "+ uneven layers"));
    ck_assert_ptr_nonnull(strstr(text, "What one more node would bring"));
    ck_assert_ptr_nonnull(strstr(text, "one layer more would make the step"));
    toy_free(toy);
}
END_TEST

/* The most that one run of an algorithm has spent. */
static void note_effort(void *context, const struct het_search *search)
{
    uint64_t *most = context;
    *most = search->effort_spent > *most ? search->effort_spent : *most;
}

START_TEST(all_searches_share_the_effort_of_one)
{
    struct toy *toy = toy_new();
    struct het_plan plan = two_stages(toy);
    uint64_t most = 0;
    const struct het_search_options options = { .effort = 20000,
                                                .progress = note_effort,
                                                .progress_context = &most };
    struct het_explanation e = explain(toy, &plan, &options);
    /* Six steps of freedom, and one GPU and a node more of each of two types. */
    ck_assert_uint_gt(most, 0);
    ck_assert_uint_le(most, 20000 / (HET_EXPLAIN_FREEDOMS + e.more_count));
    toy_free(toy);
}
END_TEST

START_TEST(step_that_has_the_freedoms_of_the_plan_is_as_good)
{
    struct toy *toy = toy_new();
    struct het_plan plan = two_stages(toy);
    const struct het_search_options options = { .algorithm = "metis", .effort = 1 };
    struct het_explanation e = explain(toy, &plan, &options);
    /* Two stages of two layers, one GPU each: a grid. */
    ck_assert_double_le(e.freedoms[0].iteration_s, e.cost.iteration_s);
    toy_free(toy);
}
END_TEST

Suite *test_explain_suite(void)
{
    Suite *suite = suite_create("explain");
    TCase *tcase = tcase_create("explain");
    tcase_add_test(tcase, stages_say_how_busy_they_are);
    tcase_add_test(tcase, what_a_plan_says_of_itself_is_not_believed);
    tcase_add_test(tcase, moves_are_priced_and_checked);
    tcase_add_test(tcase, pipelines_that_are_alike_are_told_once);
    tcase_add_test(tcase, gradients_name_the_uplink_that_they_wait_for);
    tcase_add_test(tcase, freedoms_never_make_it_slower);
    tcase_add_test(tcase, all_searches_share_the_effort_of_one);
    tcase_add_test(tcase, step_that_has_the_freedoms_of_the_plan_is_as_good);
    suite_add_tcase(suite, tcase);
    return suite;
}
