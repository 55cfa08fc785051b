#include "planner/algo/optimal/optimal.h"

#include "planner/algo/optimal/local_search.h"
#include "planner/cost/schedule.h"
#include "planner/format/document/question.h"
#include "planner/run/run_all.h"
#include "tests/planner/files.h"
#include "tests/planner/random_problem.h"

#include <check.h>
#include <math.h>
#include <string.h>

static struct het_question read_question(struct het_arena *arena, const char *cluster,
                                         int batch)
{
    json_auto_t *document = json_pack("{s:o, s:{s:o}, s:{s:i}}", "cluster",
                                      test_read_json(cluster), "profile", "files",
                                      test_read_directory("tests/data/sailor/opt-350"),
                                      "job", "globalBatchSize", batch);
    struct het_question question;
    struct het_error err;
    ck_assert_msg(het_question_read(arena, document, &question, &err) == 0, "%s",
                  err.message);
    return question;
}

static double seconds_of(struct het_arena *arena, const struct het_problem *problem,
                         const char *algorithm, uint64_t effort)
{
    const struct het_search_options options = { .algorithm = algorithm,
                                                .effort = effort };
    const struct het_plan *plan;
    struct het_error err;
    if (het_search_run(arena, problem, &options, &plan, NULL, &err) < 0)
        return HUGE_VAL;
    ck_assert_str_eq(plan->algorithm, algorithm);
    return plan->predicted.iteration_s;
}

/* What the best plan of Sailor's candidates takes, with the same profile and sharing. */
START_TEST(large_clusters_are_planned_better_than_by_search_over_candidates)
{
    static const struct {
        const char *cluster;
        double bar_s;
    } cases[] = {
        { "tests/data/clusters/a100x16_v100x16.json", 11.42 },
        { "tests/data/clusters/a100x32_v100x96.json", 5.38 },
        { "tests/data/clusters/a100x128_v100x384.json", 2.16 },
    };
    struct het_arena *arena = het_arena_new();
    struct het_question question = read_question(arena, cases[_i].cluster, 1024);
    double seconds = seconds_of(arena, &question.problem, "optimal", 200000);
    ck_assert_msg(seconds < 0.97 * cases[_i].bar_s, "%s: %g s", cases[_i].cluster,
                  seconds);
    het_arena_free(arena);
}
END_TEST

START_TEST(no_other_algorithm_is_better_with_the_same_effort)
{
    for (uint64_t seed = 5001; seed <= 5030; seed++) {
        struct het_arena *arena = het_arena_new();
        const struct het_problem *problem = random_problem(arena, seed);
        double optimal = seconds_of(arena, problem, "optimal", 3000);
        for (const struct het_algorithm *const *a = het_search_algorithms(); *a; a++) {
            if ((*a)->is_apart || (*a)->needs_from || *a == &het_algo_optimal)
                continue;
            double other = seconds_of(arena, problem, (*a)->name, 3000);
            ck_assert_msg(optimal <= other, "seed %d: %g s, %s %g s", (int)seed, optimal,
                          (*a)->name, other);
        }
        het_arena_free(arena);
    }
}
END_TEST

START_TEST(every_batch_comes_out_exactly)
{
    static const int batches[] = { 1, 2, 7, 96, 97, 101, 1021 };
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        struct het_arena *arena = het_arena_new();
        struct het_question question =
            read_question(arena, "tests/data/clusters/a100x32_v100x96.json", batches[i]);
        struct het_search_options options = { .algorithm = "optimal", .effort = 60000 };
        const struct het_plan *plan;
        struct het_error err;
        ck_assert_msg(
            het_search_run(arena, &question.problem, &options, &plan, NULL, &err) == 0,
            "batch %d: %s", batches[i], err.message);
        het_arena_free(arena); /* het_search_run has had the plan checked */
    }
}
END_TEST

/* One pipeline on one GPU of 16, which the polish is to make a plan of all of them. */
START_TEST(polish_makes_any_plan_better)
{
    struct het_arena *arena = het_arena_new();
    struct het_question question =
        read_question(arena, "tests/data/clusters/a100x8_v100x8.json", 64);
    const struct het_problem *problem = &question.problem;
    const struct het_search_options options = { 0 };
    struct het_search search = { .problem = problem,
                                 .available = problem->cluster,
                                 .algorithm = &het_algo_optimal,
                                 .options = &options,
                                 .arena = arena,
                                 .effort_left = 200000 };
    const uint32_t gpus[] = { 0 };
    struct het_replica replica = { .node_name = "a100-0",
                                   .type_name = "A100",
                                   .node = 0,
                                   .type = 0,
                                   .gpus = gpus,
                                   .tp = 1,
                                   .microbatch_size = 1 };
    struct het_stage stage = { .layer_count = problem->profile->layer_count,
                               .replicas = &replica,
                               .replica_count = 1 };
    struct het_pipeline pipeline = { .microbatch_count = 64,
                                     .stages = &stage,
                                     .stage_count = 1 };
    struct het_plan plan = { .global_batch = 64,
                             .layer_count = problem->profile->layer_count,
                             .precision = problem->workload->precision,
                             .optimizer = problem->workload->optimizer,
                             .pipelines = &pipeline,
                             .pipeline_count = 1 };
    struct het_stage_table *table = het_stage_table_new(problem);
    ck_assert(het_search_offer(&search, &plan));
    double before = search.incumbent_cost.iteration_s;
    const struct het_plan *better =
        het_local_search(&search, table, arena, &plan, 200000);
    struct het_cost cost;
    ck_assert_int_eq(het_schedule_simulate(NULL, problem, better, &cost, NULL, NULL), 0);
    ck_assert_double_lt(cost.iteration_s, before / 4);
    ck_assert_double_eq(cost.iteration_s, search.incumbent_cost.iteration_s);
    het_stage_table_free(table);
    het_arena_free(arena);
}
END_TEST

Suite *test_optimal_suite(void)
{
    Suite *suite = suite_create("optimal");
    TCase *cases = tcase_create("optimal");
    tcase_add_loop_test(
        cases, large_clusters_are_planned_better_than_by_search_over_candidates, 0, 3);
    tcase_add_test(cases, no_other_algorithm_is_better_with_the_same_effort);
    tcase_add_test(cases, every_batch_comes_out_exactly);
    tcase_add_test(cases, polish_makes_any_plan_better);
    suite_add_tcase(suite, cases);
    return suite;
}
