/* The exhaustive search is the measure of the others: no plan may be faster, found by
 * another algorithm or drawn at random. HET_ORACLE=n in the environment looks at n random
 * problems instead of a few, and prints how far the algorithms stay above it. */
#include "planner/algo/exhaustive.h"

#include "planner/cost/bound.h"
#include "planner/cost/schedule.h"
#include "planner/run/run_all.h"
#include "tests/planner/random_plan.h"
#include "tests/planner/random_problem.h"
#include "tests/planner/toy.h"
#include "tests/scale.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INSTANCES    (60u / (unsigned)one_round_of(4, 4))
#define EFFORT       20000u   /* of the oracle, in the few; */
#define LARGE_EFFORT 4000000u /* with HET_ORACLE */
#define OTHER_EFFORT 20000u
#define RANDOM_PLANS 40u
#define MAX_ROWS     16u

#define CLAIM(seed, what, condition)                                                     \
    ck_assert_msg(condition, "seed %llu, %s: " #condition, (unsigned long long)(seed),   \
                  what)

/* How far an algorithm stays above the oracle. */
struct row {
    const char *name;
    uint32_t planned, equal;
    double sum, most; /* of T / T_oracle - 1 */
};

struct tally {
    struct row rows[MAX_ROWS];
    uint32_t solved, infeasible, too_large;
    double bound_sum, bound_most;
};

static const struct het_plan *plan_by(struct het_arena *arena,
                                      const struct het_problem *problem,
                                      const char *algorithm, uint64_t effort,
                                      struct het_error *err)
{
    const struct het_search_options options = { .algorithm = algorithm,
                                                .effort = effort };
    const struct het_plan *plan = NULL;
    return het_search_run(arena, problem, &options, &plan, NULL, err) < 0 ? NULL : plan;
}

static void add(struct row *row, const char *name, double gap)
{
    row->name = name;
    row->planned++;
    row->equal += gap < 1e-6;
    row->sum += gap;
    row->most = fmax(row->most, gap);
}

static void check_best(struct het_arena *arena, uint64_t seed,
                       const struct het_problem *problem, const struct het_plan *best)
{
    struct het_violations violations = { 0 };
    struct het_peak_memory *peaks;
    size_t peak_count;
    het_plan_check(arena, problem, best, &violations);
    ck_assert_msg(violations.count == 0, "seed %llu: %s", (unsigned long long)seed,
                  violations.count ? violations.messages[0] : "");
    CLAIM(seed, "exhaustive",
          het_memory_plan(arena, problem, best, &peaks, &peak_count, NULL) == 0);
    CLAIM(seed, "exhaustive", best->search.optimal);
    CLAIM(seed, "exhaustive",
          best->predicted.lower_bound_s == best->predicted.iteration_s);
}

static void compare_random_plans(struct het_arena *arena, uint64_t seed,
                                 const struct het_problem *problem,
                                 const struct het_plan *best)
{
    for (uint32_t i = 0; i < RANDOM_PLANS; i++) {
        struct het_cost cost;
        const struct het_plan *plan = random_plan(arena, problem, seed * 1000 + i, 20);
        if (!plan)
            continue;
        CLAIM(seed, "a random plan", best);
        CLAIM(seed, "a random plan",
              het_schedule_simulate(arena, problem, plan, &cost, NULL, NULL) == 0);
        CLAIM(seed, "a random plan",
              best->predicted.iteration_s <= cost.iteration_s * (1 + 1e-9));
    }
}

static void compare_algorithms(struct het_arena *arena, uint64_t seed,
                               const struct het_problem *problem,
                               const struct het_plan *best, struct tally *tally)
{
    struct row *row = tally->rows;
    for (const struct het_algorithm *const *a = het_search_algorithms(); *a; a++) {
        if ((*a)->needs_from)
            continue;
        if (*a == &het_algo_exhaustive)
            continue;
        ck_assert_ptr_ne(row, tally->rows + MAX_ROWS);
        const struct het_plan *plan =
            plan_by(arena, problem, (*a)->name, OTHER_EFFORT, NULL);
        row->name = (*a)->name;
        if (plan) {
            double gap = plan->predicted.iteration_s / best->predicted.iteration_s - 1;
            CLAIM(seed, (*a)->name, gap >= -1e-9);
            add(row, (*a)->name, gap);
        }
        row++;
    }
}

static void look_at(uint64_t seed, uint64_t effort, struct tally *tally)
{
    struct het_arena *arena = het_arena_new();
    const struct het_problem *problem = random_small_problem(arena, seed);
    struct het_error err = { 0 };
    const struct het_plan *best = plan_by(arena, problem, "exhaustive", effort, &err);
    bool is_too_large = !best && strstr(err.message, "too large");
    if (!best)
        CLAIM(seed, "exhaustive",
              err.code == (is_too_large ? HET_BAD_INPUT : HET_NO_PLAN));
    if (best) {
        double gap = best->predicted.iteration_s / het_bound_iteration(problem) - 1;
        CLAIM(seed, "lower bound", gap >= -1e-9);
        tally->bound_sum += gap;
        tally->bound_most = fmax(tally->bound_most, gap);
        tally->solved++;
        check_best(arena, seed, problem, best);
        compare_algorithms(arena, seed, problem, best, tally);
    } else if (is_too_large) {
        tally->too_large++;
    } else {
        tally->infeasible++;
    }
    if (!is_too_large)
        compare_random_plans(arena, seed, problem, best);
    het_arena_free(arena);
}

static void print_tally(const struct tally *tally)
{
    printf(
        "Random problems: %u with a best plan, %u without a plan, %u too large for the "
        "effort.\n\n",
        tally->solved, tally->infeasible, tally->too_large);
    printf("| Algorithm | plan found | equal | mean above | most above |\n");
    printf("|---|---|---|---|---|\n");
    for (const struct row *row = tally->rows; row->name; row++)
        printf("| `%s` | %.1f %% | %.1f %% | %.1f %% | %.1f %% |\n", row->name,
               100.0 * row->planned / tally->solved,
               100.0 * row->equal / (row->planned ? row->planned : 1),
               100.0 * row->sum / (row->planned ? row->planned : 1), 100.0 * row->most);
    printf("\nThe lower bound lies below the best time by a gap of %.1f %% in the mean, "
           "%.1f %% at most.\n",
           100 * tally->bound_sum / tally->solved, 100 * tally->bound_most);
}

START_TEST(no_plan_is_faster)
{
    const char *many = getenv("HET_ORACLE"), *single = getenv("HET_SEED");
    struct tally tally = { 0 };
    if (single) {
        look_at(strtoull(single, NULL, 10), LARGE_EFFORT, &tally);
        return;
    }
    uint64_t count = many ? strtoull(many, NULL, 10) : INSTANCES;
    for (uint64_t seed = 1; seed <= count; seed++)
        look_at(seed, many ? LARGE_EFFORT : EFFORT, &tally);
    if (many)
        print_tally(&tally);
    /* Most problems have a plan, some have none. */
    ck_assert_uint_gt(tally.solved, count / 3);
    ck_assert_uint_gt(tally.infeasible, 0);
}
END_TEST

START_TEST(input_that_is_too_large_is_refused)
{
    struct toy *toy = toy_new();
    struct het_error err = { 0 };
    toy->workload.global_batch = 64;
    ck_assert_int_eq(het_problem_init(toy->arena, &toy->cluster, &toy->profile,
                                      &toy->workload, &toy->problem, &err),
                     0);
    ck_assert_ptr_null(plan_by(toy->arena, &toy->problem, "exhaustive", 1000, &err));
    ck_assert_int_eq(err.code, HET_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "too large to look at all plans"));
    toy_free(toy);
}
END_TEST

START_TEST(samples_are_shared_out_unevenly)
{
    struct toy *toy = toy_new();
    struct het_error err = { 0 };
    /* One fast GPU and one slow, each large enough for the model, and links on which
     * gradients take no time. */
    toy->cluster.nodes =
        TOY_ARRAY(toy, struct het_node, toy->nodes[TOY_F1], toy->nodes[TOY_S0]);
    toy->cluster.node_count = 2;
    struct het_node *nodes = (struct het_node *)(uintptr_t)toy->cluster.nodes;
    for (int n = 0; n < 2; n++) {
        nodes[n].gpu_count = 1;
        nodes[n].uplink_bytes_per_s = nodes[n].intra_bytes_per_s = 1e18;
        nodes[n].latency_s = 0;
    }
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)80 << 30;
    toy->workload.global_batch = 6;
    ck_assert_int_eq(het_problem_init(toy->arena, &toy->cluster, &toy->profile,
                                      &toy->workload, &toy->problem, &err),
                     0);
    const struct het_plan *plan =
        plan_by(toy->arena, &toy->problem, "exhaustive", 1000000, &err);
    ck_assert_ptr_nonnull(plan);
    ck_assert(plan->search.optimal);
    /* Fast: 4 samples in 2.5 * 30 ms; slow: 2 in 1.5 * 60 ms = 90 ms. */
    ck_assert_double_eq_tol(plan->predicted.pipeline_s, 0.090, 1e-9);
    toy_free(toy);
}
END_TEST

Suite *test_exhaustive_suite(void)
{
    Suite *suite = suite_create("exhaustive");
    TCase *cases = tcase_create("exhaustive");
    tcase_add_test(cases, no_plan_is_faster);
    tcase_add_test(cases, input_that_is_too_large_is_refused);
    tcase_add_test(cases, samples_are_shared_out_unevenly);
    suite_add_tcase(suite, cases);
    return suite;
}
