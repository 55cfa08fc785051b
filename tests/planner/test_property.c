/* What must hold for any problem: over random small ones, each from its own seed. A
 * failure prints the seed; HET_SEED=n in the environment runs that one alone. */
#include "planner/cost/bound.h"
#include "planner/run/run_all.h"
#include "tests/planner/random_problem.h"

#include "tests/scale.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define INSTANCES SCALED(1200u)
#define EFFORT    1500u

#define CLAIM(seed, what, condition)                                                     \
    ck_assert_msg(condition, "seed %llu, %s: " #condition, (unsigned long long)(seed),   \
                  what)

/* The plan, or NULL with a message that says why there is none. */
static const struct het_plan *search(struct het_arena *arena, uint64_t seed,
                                     const struct het_problem *problem,
                                     const char *algorithm)
{
    const struct het_search_options options = { .algorithm = algorithm,
                                                .effort = EFFORT };
    const struct het_plan *plan = NULL;
    struct het_error err = { 0 };
    if (het_search_run(arena, problem, &options, &plan, NULL, &err) == 0)
        return plan;
    CLAIM(seed, algorithm, err.code == HET_NO_PLAN);
    CLAIM(seed, algorithm, strlen(err.message) > 40);
    return NULL;
}

static void check_plan(struct het_arena *arena, uint64_t seed,
                       const struct het_problem *problem, const char *algorithm,
                       const struct het_plan *plan)
{
    struct het_violations violations = { 0 };
    struct het_peak_memory *peaks;
    size_t peak_count;
    struct het_cost cost;
    het_plan_check(arena, problem, plan, &violations);
    ck_assert_msg(violations.count == 0, "seed %llu, %s: %s", (unsigned long long)seed,
                  algorithm, violations.count ? violations.messages[0] : "");
    CLAIM(seed, algorithm,
          het_memory_plan(arena, problem, plan, &peaks, &peak_count, NULL) == 0);
    CLAIM(seed, algorithm,
          het_schedule_simulate(NULL, problem, plan, &cost, NULL, NULL) == 0);
    CLAIM(seed, algorithm, plan->predicted.iteration_s == cost.iteration_s);
    CLAIM(seed, algorithm, plan->predicted.lower_bound_s <= cost.iteration_s);
    CLAIM(seed, algorithm, het_bound_iteration(problem) <= cost.iteration_s * (1 + 1e-9));
}

static void check_same(uint64_t seed, const struct het_plan *a, const struct het_plan *b)
{
    CLAIM(seed, "twice", !a == !b);
    if (!a)
        return;
    CLAIM(seed, "twice", het_plan_compare(a, b) == 0);
    CLAIM(seed, "twice", a->predicted.iteration_s == b->predicted.iteration_s);
    CLAIM(seed, "twice", a->search.plans_priced == b->search.plans_priced);
}

/* Returns whether there is a plan. */
static bool check_seed(uint64_t seed)
{
    struct het_arena *arena = het_arena_new();
    const struct het_problem *problem = random_problem(arena, seed);
    const struct het_plan *best = search(arena, seed, problem, "auto");
    if (best)
        check_plan(arena, seed, problem, "auto", best);
    check_same(seed, best, search(arena, seed, problem, "auto"));
    for (const struct het_algorithm *const *a = het_search_algorithms(); *a; a++) {
        if ((*a)->needs_from)
            continue;
        if ((*a)->is_apart)
            continue;
        const struct het_plan *plan = search(arena, seed, problem, (*a)->name);
        if (!plan)
            continue;
        check_plan(arena, seed, problem, (*a)->name, plan);
        CLAIM(seed, (*a)->name, best);
        CLAIM(seed, (*a)->name,
              best->predicted.iteration_s <= plan->predicted.iteration_s);
    }
    het_arena_free(arena);
    return best;
}

START_TEST(any_problem_has_a_valid_plan_or_a_reason)
{
    const char *single = getenv("HET_SEED");
    if (single) {
        check_seed(strtoull(single, NULL, 10));
        return;
    }
    uint32_t planned = 0;
    for (uint64_t seed = 1; seed <= INSTANCES; seed++)
        planned += check_seed(seed);
    /* The generator makes problems that have plans, and some that have none. */
    ck_assert_uint_gt(planned, INSTANCES / 2);
    ck_assert_uint_lt(planned, INSTANCES);
}
END_TEST

Suite *test_property_suite(void)
{
    Suite *suite = suite_create("property");
    TCase *cases = tcase_create("property");
    tcase_add_test(cases, any_problem_has_a_valid_plan_or_a_reason);
    suite_add_tcase(suite, cases);
    return suite;
}
