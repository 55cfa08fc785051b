#include "planner/search/preference.h"

#include "planner/format/document/question.h"
#include "tests/controller/quoted.h"
#include "tests/planner/toy.h"

#include <check.h>
#include <string.h>

/* The toy's nodes as two kinds: f0, f1, f2 are equal, of 4 fast GPUs. */
static const struct het_problem *problem_of(struct toy *toy, const int32_t likings[4])
{
    static const char *const names[] = { "f0", "f1", "f2", "s0" };
    struct het_node *nodes = HET_ARENA_ARRAY(toy->arena, struct het_node, 4);
    for (size_t n = 0; n < 4; n++) {
        nodes[n] = toy->nodes[n < 3 ? TOY_F0 : TOY_S0];
        nodes[n].name = names[n];
        nodes[n].preference = likings[n];
    }
    toy->cluster.nodes = nodes;
    toy->cluster.node_count = 4;
    struct het_error err = { 0 };
    ck_assert_msg(het_problem_init(toy->arena, &toy->cluster, &toy->profile,
                                   &toy->workload, &toy->problem, &err) == 0,
                  "%s", err.message);
    return &toy->problem;
}

/* A stage of one GPU each of nodes f0 and s0 (the third one of the new list). */
static struct het_plan plan_on(struct toy *toy, uint32_t fast, uint32_t microbatches)
{
    struct het_replica replica = toy_replica(toy, TOY_F0, 0, 2, 1);
    replica.node = fast;
    replica.node_name = toy->cluster.nodes[fast].name;
    return TOY_PLAN(toy, TOY_PIPELINE(toy, microbatches, TOY_STAGE(toy, 0, 4, replica)));
}

START_TEST(equal_liking_is_none)
{
    struct toy *toy = toy_new();
    const int32_t likings[] = { 5, 5, 5, 5 };
    ck_assert_ptr_null(het_preference_new(toy->arena, problem_of(toy, likings)));
    toy_free(toy);
}
END_TEST

START_TEST(plan_moves_to_equal_nodes_that_are_liked_better)
{
    struct toy *toy = toy_new();
    const int32_t likings[] = { -1, 0, 3, 9 }; /* s0 is of another kind */
    struct het_preference *preference =
        het_preference_new(toy->arena, problem_of(toy, likings));
    struct het_plan plan = plan_on(toy, 0, 8), good = plan_on(toy, 2, 8);
    ck_assert(het_preference_of(preference, &plan) == -1);
    const struct het_plan *placed = het_preference_place(toy->arena, preference, &plan);
    ck_assert_str_eq(placed->pipelines[0].stages[0].replicas[0].node_name, "f2");
    ck_assert(het_preference_of(preference, placed) == 3);
    ck_assert_ptr_eq(het_preference_place(toy->arena, preference, &good), &good);
    toy_free(toy);
}
END_TEST

START_TEST(slower_plans_are_kept_if_they_are_liked_better)
{
    struct toy *toy = toy_new();
    const int32_t likings[] = { 0, 1, 2, 0 };
    struct het_preference *preference =
        het_preference_new(toy->arena, problem_of(toy, likings));
    struct het_plan a = plan_on(toy, 0, 8), b = plan_on(toy, 1, 8),
                    c = plan_on(toy, 2, 8);
    het_preference_add(preference, &a, 100);
    ck_assert(!het_preference_wants(preference, &a, 101)); /* no better in anything */
    het_preference_add(preference, &b, 105);
    het_preference_add(preference, &c, 111); /* more than a tenth slower */
    ck_assert_uint_eq(preference->count, 2);
    het_preference_add(preference, &c, 104); /* better than b in both */
    ck_assert_uint_eq(preference->count, 2);
    ck_assert(preference->plans[1].preference == 2);
    het_preference_add(preference, &b, 90); /* the others are too slow beside it */
    ck_assert_uint_eq(preference->count, 1);
    het_preference_clear(preference);
    toy_free(toy);
}
END_TEST

/* 18 ms a micro-batch on two GPUs: 8 take 8 * 18 + 6.6 = 150.6 ms. */
START_TEST(liking_decides_among_plans_that_are_nearly_as_fast)
{
    struct toy *toy = toy_new();
    const int32_t likings[] = { 0, 1, 2, 0 };
    const struct het_problem *problem = problem_of(toy, likings);
    struct het_preference *preference = het_preference_new(toy->arena, problem);
    struct het_plan best = plan_on(toy, 0, 8), equal = plan_on(toy, 1, 8),
                    slower = plan_on(toy, 2, 9);
    struct het_cost cost;
    ck_assert_int_eq(het_schedule_simulate(NULL, problem, &best, &cost, NULL, NULL), 0);
    double best_s = cost.iteration_s;
    het_preference_add(preference, &equal, 1.00);
    het_preference_add(preference, &slower, 1.01); /* in truth an eighth */
    const struct het_plan *chosen = het_preference_choose(preference, &best, &cost);
    ck_assert(het_preference_of(preference, chosen) == 1);
    ck_assert(cost.iteration_s == best_s);
    het_preference_clear(preference);
    toy_free(toy);
}
END_TEST

/* ---- a whole question ---- */

/* One GPU is enough for a batch of 1; `nodes` and `types` are JSON lists. X and Y are
 * `x_us` and 1000 us fast. */
static const char *chosen_node(struct het_arena *arena, const char *nodes,
                               const char *types, int x_us)
{
    json_auto_t *document = quoted(
        "{'cluster': {'nodes': %s}, 'job': {'globalBatchSize': 1, 'gpuTypes': %s}, "
        "'profile': {'kind': 'ModelProfile', 'spec': {'model': {'name': 'm', "
        "'precision': 'BF16', 'optimizer': 'Adam'}, 'layerGroups': [{'name': 'all', "
        "'count': 1, 'parameterBytes': 1000000, 'activationOutputBytes': 1000}], "
        "'gpuTypes': [{'name': 'X', 'measurements': [{'layerGroup': 'all', "
        "'tensorParallel': 1, 'microBatchSize': 1, 'forwardMicroseconds': %d, "
        "'backwardMicroseconds': %d, 'activationBytes': 1}]}, {'name': 'Y', "
        "'measurements': [{'layerGroup': 'all', 'tensorParallel': 1, 'microBatchSize': "
        "1, 'forwardMicroseconds': 1000, 'backwardMicroseconds': 1000, "
        "'activationBytes': 1}]}]}}}",
        nodes, types, x_us, x_us);
    struct het_question question;
    const struct het_plan *plan;
    struct het_error err = { 0 };
    ck_assert_msg(!het_question_read(arena, document, &question, &err), "%s",
                  err.message);
    ck_assert_msg(!het_question_plan(arena, &question, &plan, &err), "%s", err.message);
    return het_arena_strdup(arena, plan->pipelines[0].stages[0].replicas[0].node_name);
}

#define TWO_TYPES                                                                        \
    "[{'name': 'x', 'type': 'X', 'gpus': 1, 'memory_gb': 16}, "                          \
    "{'name': 'y', 'type': 'Y', 'gpus': 1, 'memory_gb': 16}]"
#define Y_IS_LIKED "[{'name': 'X', 'preference': 1}, {'name': 'Y', 'preference': 2}]"

START_TEST(type_that_is_liked_better_wins_within_one_percent)
{
    struct het_arena *arena = het_arena_new();
    const char *none = "[{'name': 'X'}, {'name': 'Y'}]";
    ck_assert_str_eq(chosen_node(arena, TWO_TYPES, none, 995), "x");
    ck_assert_str_eq(chosen_node(arena, TWO_TYPES, Y_IS_LIKED, 995), "y");
    ck_assert_str_eq(chosen_node(arena, TWO_TYPES, Y_IS_LIKED, 985), "x");
    het_arena_free(arena);
}
END_TEST

START_TEST(node_that_is_liked_less_is_used_last)
{
    struct het_arena *arena = het_arena_new();
    const char *types = "[{'name': 'X'}]";
    ck_assert_str_eq(
        chosen_node(arena,
                    "[{'name': 'spot', 'type': 'X', 'gpus': 1, 'memory_gb': 16, "
                    "'preference': -1}, {'name': 'bought', 'type': 'X', 'gpus': 1, "
                    "'memory_gb': 16}]",
                    types, 1000),
        "bought");
    ck_assert_str_eq(chosen_node(arena,
                                 "[{'name': 'spot', 'type': 'X', 'gpus': 1, 'memory_gb': "
                                 "16, 'preference': -1}]",
                                 types, 1000),
                     "spot");
    het_arena_free(arena);
}
END_TEST

Suite *test_preference_suite(void)
{
    Suite *suite = suite_create("preference");
    TCase *cases = tcase_create("preference");
    tcase_add_test(cases, equal_liking_is_none);
    tcase_add_test(cases, plan_moves_to_equal_nodes_that_are_liked_better);
    tcase_add_test(cases, slower_plans_are_kept_if_they_are_liked_better);
    tcase_add_test(cases, liking_decides_among_plans_that_are_nearly_as_fast);
    tcase_add_test(cases, type_that_is_liked_better_wins_within_one_percent);
    tcase_add_test(cases, node_that_is_liked_less_is_used_last);
    suite_add_tcase(suite, cases);
    return suite;
}
