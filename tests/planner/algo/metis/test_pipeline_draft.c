#include "planner/algo/metis/pipeline_draft.h"

#include "planner/cost/cost.h"
#include "tests/planner/toy.h"

#include <check.h>
#include <math.h>

/* Groups of the toy's GPUs, all fast ones before the slow ones. */
struct drafting {
    struct toy *toy;
    struct het_pipeline_draft *draft;
    struct het_device_group_row row;
};

static struct drafting start(void)
{
    static const uint32_t types[] = { 0, 1 };
    struct drafting drafting = { .toy = toy_new() };
    struct toy *toy = drafting.toy;
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)80 << 30;
    drafting.draft = het_pipeline_draft_new(&toy->problem, &toy->cluster, 4);
    drafting.row = het_device_group_row_of(toy->arena, &toy->cluster, types, 2);
    return drafting;
}

static void stop(struct drafting *drafting)
{
    het_pipeline_draft_free(drafting->draft);
    toy_free(drafting->toy);
}

START_TEST(degrees_and_samples_are_those_of_the_profile)
{
    struct drafting at = start();
    size_t count;
    const uint32_t *degrees = het_pipeline_draft_degrees(at.draft, &count);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(degrees[0], 1);
    ck_assert_uint_eq(degrees[1], 2);
    ck_assert_uint_eq(het_pipeline_draft_max_samples(at.draft), 4);
    stop(&at);
}
END_TEST

START_TEST(groups_have_the_types_of_their_nodes_and_the_least_degree)
{
    struct drafting at = start();
    het_pipeline_draft_groups(at.draft, &at.row, 0, (const uint32_t[]){ 6, 4 }, 2);
    ck_assert(het_pipeline_draft_has_type(at.draft, 0, 0));
    ck_assert(!het_pipeline_draft_has_type(at.draft, 0, 1));
    ck_assert(het_pipeline_draft_has_type(at.draft, 1, 1));
    ck_assert_uint_eq(het_pipeline_draft_tp(at.draft, 0, 0), 1);
    ck_assert(het_pipeline_draft_raise_tp(at.draft, 0, 0));
    ck_assert_uint_eq(het_pipeline_draft_tp(at.draft, 0, 0), 2);
    ck_assert(!het_pipeline_draft_raise_tp(at.draft, 0, 0)); /* there is no higher one */
    stop(&at);
}
END_TEST

START_TEST(more_replicas_than_samples_are_too_many)
{
    struct drafting at = start();
    het_pipeline_draft_groups(at.draft, &at.row, 0, (const uint32_t[]){ 6, 4 }, 2);
    het_pipeline_draft_batch(at.draft, 2); /* of four samples */
    ck_assert_int_eq(het_pipeline_draft_share(at.draft, 0), HET_PIPELINE_DRAFT_CROWDED);
    ck_assert_int_eq(het_pipeline_draft_share(at.draft, 1), HET_PIPELINE_DRAFT_SHARED);
    het_pipeline_draft_set_tp(at.draft, 0, 0, 2);
    ck_assert_int_eq(het_pipeline_draft_share(at.draft, 0), HET_PIPELINE_DRAFT_SHARED);
    stop(&at);
}
END_TEST

START_TEST(plan_of_a_draft_takes_what_the_draft_says)
{
    struct drafting at = start();
    struct het_cost cost;
    double seconds;
    het_pipeline_draft_groups(at.draft, &at.row, 0, (const uint32_t[]){ 6, 4 }, 2);
    het_pipeline_draft_batch(at.draft, 2);
    het_pipeline_draft_set_tp(at.draft, 0, 0, 2);
    for (uint32_t stage = 0; stage < 2; stage++)
        ck_assert_int_eq(het_pipeline_draft_share(at.draft, stage),
                         HET_PIPELINE_DRAFT_SHARED);
    double bound_s = het_pipeline_draft_bound(at.draft, HUGE_VAL);
    ck_assert(het_pipeline_draft_balance(at.draft, (const bool[]){ true, true }, HUGE_VAL,
                                         &seconds));
    ck_assert_double_le(bound_s, seconds);
    /* One below what was found is not had. */
    ck_assert(!het_pipeline_draft_balance(at.draft, (const bool[]){ true, true }, seconds,
                                          &seconds));
    struct het_plan plan = *het_pipeline_draft_plan(at.draft);
    ck_assert_uint_eq(plan.pipeline_count, 1);
    ck_assert_uint_eq(plan.pipelines[0].microbatch_count, 2);
    ck_assert_uint_eq(plan.pipelines[0].stage_count, 2);
    ck_assert_uint_eq(plan.pipelines[0].stages[0].replica_count, 3); /* of two fast */
    ck_assert_uint_eq(plan.pipelines[0].stages[1].replica_count, 4); /* of one slow */
    ck_assert_uint_eq(het_plan_gpu_count(&plan), 10);
    ck_assert_int_eq(het_cost_plan(&at.toy->problem, &plan, &cost, NULL), 0);
    ck_assert_double_eq_tol(cost.pipeline_s, seconds - cost.sync_s, 1e-3 * seconds);
    stop(&at);
}
END_TEST

START_TEST(stage_that_is_short_of_memory_is_found)
{
    struct drafting at = start();
    uint32_t stage, type;
    double seconds;
    het_pipeline_draft_groups(at.draft, &at.row, 0, (const uint32_t[]){ 6, 4 }, 2);
    het_pipeline_draft_batch(at.draft, 1); /* of eight samples */
    for (uint32_t s = 0; s < 2; s++)
        ck_assert_int_eq(het_pipeline_draft_share(at.draft, s),
                         HET_PIPELINE_DRAFT_SHARED);
    const bool unlimited[] = { false, false };
    at.toy->types[1].memory_bytes = (uint64_t)2 << 30; /* not one layer's state */
    ck_assert(het_pipeline_draft_balance(at.draft, unlimited, HUGE_VAL, &seconds));
    ck_assert(het_pipeline_draft_short(at.draft, &stage, &type));
    ck_assert_uint_eq(stage, 1);
    ck_assert_uint_eq(type, 1);
    stop(&at);
}
END_TEST

Suite *test_pipeline_draft_suite(void)
{
    Suite *suite = suite_create("pipeline_draft");
    TCase *cases = tcase_create("draft");
    tcase_add_test(cases, degrees_and_samples_are_those_of_the_profile);
    tcase_add_test(cases, groups_have_the_types_of_their_nodes_and_the_least_degree);
    tcase_add_test(cases, more_replicas_than_samples_are_too_many);
    tcase_add_test(cases, plan_of_a_draft_takes_what_the_draft_says);
    tcase_add_test(cases, stage_that_is_short_of_memory_is_found);
    suite_add_tcase(suite, cases);
    return suite;
}
