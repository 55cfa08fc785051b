#include "planner/cost/bound.h"

#include "planner/cost/schedule.h"
#include "planner/run/run_all.h"
#include "tests/planner/random_plan.h"
#include "tests/planner/random_problem.h"
#include "tests/planner/toy.h"
#include "tests/scale.h"

#include <check.h>
#include <math.h>
#include <string.h>

#define ck_near(a, b) ck_assert_double_eq_tol((a), (b), 1e-12)

START_TEST(bound_of_one_type_is_its_compute_floor)
{
    struct toy *toy = toy_new();
    toy->cluster.node_count = 2; /* f0, f1: six fast GPUs */
    /* Best rate: four samples, tp 1: 30 ms * 2.5 / 4 a sample; tp 2 takes 1.2 times. */
    ck_near(het_bound_floor(&toy->problem), 8 * 0.030 * 2.5 / 4 / 6 * (1 - 1e-12));
    toy_free(toy);
}
END_TEST

START_TEST(bound_of_two_alike_types_adds_their_speeds)
{
    struct toy *toy = toy_new();
    /* Slow takes twice as long for every layer: 6 + 4 / 2 = 8 fast GPUs. */
    ck_near(het_bound_floor(&toy->problem), 8 * 0.030 * 2.5 / 4 / 8 * (1 - 1e-12));
    toy_free(toy);
}
END_TEST

/* A hundred parts, but the largest node has one or two fast GPUs, and none to two slow
 * ones: layers are looked at five times. */
START_TEST(floors_of_parts_look_at_layers_once)
{
    struct toy *toy = toy_new();
    struct het_bound_rows *rows = het_bound_rows_new(&toy->problem);
    struct het_node nodes[3];
    struct het_cluster part = toy->cluster;
    struct het_problem problem = toy->problem;
    part.nodes = nodes;
    problem.cluster = &part;
    for (uint32_t i = 0; i < 100; i++) {
        memcpy(nodes, toy->nodes, sizeof nodes);
        nodes[TOY_F0].gpu_count = 1 + i % 2;
        nodes[TOY_F1].gpu_count = 1;
        nodes[TOY_S0].gpu_count = i / 2 % 3;
        ck_assert(het_bound_floor_of_part(rows, &problem) == het_bound_floor(&problem));
    }
    ck_assert_uint_eq(het_bound_rows_count(rows), 2 + 3);
    het_bound_rows_free(rows);
    toy_free(toy);
}
END_TEST

/* max over w of sum_l min_t w_t c_lt for two types by trying each breakpoint. */
static double bound_by_breakpoints(const double *a, const double *b, size_t layers,
                                   double n_a, double n_b)
{
    double best = 0;
    for (size_t k = 0; k < layers; k++) {
        /* w_a a_k = w_b b_k, n_a w_a + n_b w_b = 1 */
        double w_a = b[k] / (n_a * b[k] + n_b * a[k]);
        double w_b = a[k] / (n_a * b[k] + n_b * a[k]);
        double sum = 0;
        for (size_t l = 0; l < layers; l++)
            sum += fmin(w_a * a[l], w_b * b[l]);
        best = fmax(best, sum);
    }
    return best;
}

START_TEST(bound_of_unlike_types_solves_the_linear_program)
{
    struct toy *toy = toy_new();
    uint64_t random = (uint64_t)_i;
    double cost[2][4];
    /* One degree and one size are measured, with random times. */
    struct het_measurement measurements[2];
    double forward[2][5] = { 0 }, backward[5] = { 0 };
    for (uint32_t type = 0; type < 2; type++) {
        for (size_t l = 0; l < 4; l++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            cost[type][l] = 1 + (double)(random >> 40);
            forward[type][l + 1] = forward[type][l] + cost[type][l];
        }
        measurements[type] = (struct het_measurement){ .type = type,
                                                       .tp = 1,
                                                       .microbatch = 1,
                                                       .forward_s = forward[type],
                                                       .backward_s = backward };
    }
    toy->profile.measurements = measurements;
    toy->profile.measurement_count = 2;
    double expected = 8 * bound_by_breakpoints(cost[0], cost[1], 4, 6, 4);
    ck_assert_double_eq_tol(het_bound_floor(&toy->problem) / expected, 1, 1e-9);
    toy_free(toy);
}
END_TEST

/* The best plan that a search finds. */
static double planned_s(const struct toy *toy)
{
    const struct het_search_options options = { .effort = 2000 };
    const struct het_plan *plan;
    struct het_error err = { 0 };
    ck_assert_msg(
        het_search_run(toy->arena, &toy->problem, &options, &plan, NULL, &err) == 0, "%s",
        err.message);
    return plan->predicted.iteration_s;
}

START_TEST(bound_holds_where_measured_bandwidth_falls)
{
    struct toy *toy = toy_new();
    struct het_error err = { 0 };
    /* 10 - 0.5 x GB/s between nodes: all messages of a plan are of a few MB, and get
     * nearly 10 GB/s. */
    const struct het_place places[] = { { .type = "fast" }, { .type = "slow" } };
    const struct het_curve line = {
        .b = -0.5e9, .c = 10e9, .most_bytes_per_s = 10e9, .from_gpus = 1, .to_gpus = 1
    };
    struct het_curve curves[4] = { line, line, line, line };
    for (uint32_t i = 0; i < 4; i++) {
        curves[i].from = i / 2;
        curves[i].to = i % 2;
    }
    const struct het_network network = {
        .places = places, .place_count = 2, .curves = curves, .curve_count = 4
    };
    for (size_t n = 0; n < 3; n++)
        toy->nodes[n].place = toy->nodes[n].type + 1;
    toy->cluster.network = &network;
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)80 << 30;
    toy->workload.global_batch = 64;
    toy->workload.gradient_overlap = 0.999;
    ck_assert_int_eq(het_problem_init(toy->arena, &toy->cluster, &toy->profile,
                                      &toy->workload, &toy->problem, &err),
                     0);
    ck_assert_double_le(het_bound_iteration(&toy->problem), planned_s(toy));
    toy_free(toy);
}
END_TEST

#define PROBLEMS SCALED(600u)
#define PLANS    6u

/* Fails if the bound is above the plan, priced either way. */
static void compare(struct het_arena *arena, uint64_t seed,
                    const struct het_problem *problem, const struct het_plan *plan)
{
    struct het_cost closed, simulated;
    ck_assert_int_eq(het_cost_plan(problem, plan, &closed, NULL), 0);
    ck_assert_int_eq(het_schedule_simulate(arena, problem, plan, &simulated, NULL, NULL),
                     0);
    double least_s = fmin(closed.iteration_s, simulated.iteration_s) * (1 + 1e-9);
    ck_assert_msg(het_bound_floor(problem) <= least_s, "seed %llu: floor",
                  (unsigned long long)seed);
    ck_assert_msg(het_bound_iteration(problem) <= least_s, "seed %llu",
                  (unsigned long long)seed);
}

START_TEST(no_random_plan_is_below_the_bound)
{
    uint32_t made = 0;
    for (uint64_t seed = 1; seed <= PROBLEMS; seed++) {
        struct het_arena *arena = het_arena_new();
        const struct het_problem *problem = seed % 2 ? random_problem(arena, seed)
                                                     : random_small_problem(arena, seed);
        for (uint64_t i = 0; i < PLANS; i++) {
            const struct het_plan *plan =
                random_plan(arena, problem, seed * PLANS + i, 20);
            if (plan)
                compare(arena, seed, problem, plan);
            made += plan != NULL;
        }
        het_arena_free(arena);
    }
    ck_assert_uint_gt(made, PROBLEMS);
}
END_TEST

Suite *test_bound_suite(void)
{
    Suite *suite = suite_create("bound");
    TCase *cases = tcase_create("bound");
    tcase_add_test(cases, bound_of_one_type_is_its_compute_floor);
    tcase_add_test(cases, bound_of_two_alike_types_adds_their_speeds);
    tcase_add_test(cases, floors_of_parts_look_at_layers_once);
    tcase_add_loop_test(cases, bound_of_unlike_types_solves_the_linear_program, 0, 20);
    tcase_add_test(cases, bound_holds_where_measured_bandwidth_falls);
    tcase_add_test(cases, no_random_plan_is_below_the_bound);
    suite_add_tcase(suite, cases);
    return suite;
}
