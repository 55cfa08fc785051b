#include "planner/base/simplex.h"

#include <check.h>
#include <string.h>

#define MAX_COLUMNS 4
#define MAX_ROWS    3

/* Minimise costs * y, such that sum y_j columns[j] <= limits: slacks are the units. */
struct example {
    size_t rows, columns;
    double limits[MAX_ROWS];
    double costs[MAX_COLUMNS];
    double column[MAX_COLUMNS][MAX_ROWS];
};

static double reduced_cost(const struct example *example, size_t j, const double *prices)
{
    double cost = example->costs[j];
    for (size_t r = 0; r < example->rows; r++)
        cost -= example->column[j][r] * prices[r];
    return cost;
}

/* Enters the column with the least reduced cost until there is none below zero; returns
 * the steps that it took. */
static int solve(const struct example *example, struct het_simplex *simplex)
{
    int steps = 0;
    het_simplex_init(simplex, example->rows, 1e-9);
    memcpy(simplex->amounts, example->limits, example->rows * sizeof(double));
    for (;; steps++) {
        const double *prices = het_simplex_price(simplex);
        size_t best = 0;
        for (size_t j = 1; j < example->columns; j++)
            if (reduced_cost(example, j, prices) < reduced_cost(example, best, prices))
                best = j;
        if (reduced_cost(example, best, prices) > -1e-9)
            return steps;
        memcpy(simplex->column, example->column[best], example->rows * sizeof(double));
        ck_assert_uint_lt(het_simplex_enter(simplex, example->costs[best]),
                          example->rows);
        ck_assert_int_lt(steps, 20);
    }
}

static double value(const struct het_simplex *simplex)
{
    double sum = 0;
    for (size_t r = 0; r < simplex->rows; r++)
        sum += simplex->costs[r] * simplex->amounts[r];
    return sum;
}

START_TEST(optimum_and_prices_are_those_worked_by_hand)
{
    /* Most of 3 x + 5 y with x <= 4, 2 y <= 12, 3 x + 2 y <= 18: x = 2, y = 6. */
    static const struct example example = {
        .rows = 3,
        .columns = 2,
        .limits = { 4, 12, 18 },
        .costs = { -3, -5 },
        .column = { { 1, 0, 3 }, { 0, 2, 2 } },
    };
    struct het_simplex simplex;
    ck_assert_int_eq(solve(&example, &simplex), 2); /* y, then x */
    ck_assert_double_eq_tol(value(&simplex), -(3 * 2 + 5 * 6), 1e-12);
    /* Prices are the dual's: 0, 3/2, 1; 12 * 3/2 + 18 * 1 = 36 proves the optimum. */
    ck_assert_double_eq_tol(simplex.prices[0], 0, 1e-12);
    ck_assert_double_eq_tol(simplex.prices[1], -1.5, 1e-12);
    ck_assert_double_eq_tol(simplex.prices[2], -1, 1e-12);
    ck_assert_double_eq_tol(simplex.amounts[0], 4 - 2, 1e-12); /* slack of x <= 4 */
    het_simplex_fini(&simplex);
}
END_TEST

START_TEST(program_that_makes_the_simplex_method_go_round_ends)
{
    /* Beale's: with ties broken by position the basis comes back after six steps. */
    static const struct example example = {
        .rows = 3,
        .columns = 4,
        .limits = { 0, 0, 1 },
        .costs = { -0.75, 150, -0.02, 6 },
        .column = { { 0.25, 0.5, 0 }, { -60, -90, 0 }, { -0.04, -0.02, 1 }, { 9, 3, 0 } },
    };
    struct het_simplex simplex;
    solve(&example, &simplex);
    ck_assert_double_eq_tol(value(&simplex), -0.05, 1e-12); /* at y = (0.04, 0, 1, 0) */
    het_simplex_fini(&simplex);
}
END_TEST

START_TEST(column_without_end_changes_nothing)
{
    struct het_simplex simplex;
    het_simplex_init(&simplex, 2, 1e-9);
    simplex.amounts[0] = simplex.amounts[1] = 1;
    simplex.column[0] = -1;
    ck_assert_uint_eq(het_simplex_enter(&simplex, -1), 2);
    ck_assert_double_eq(simplex.amounts[0], 1);
    ck_assert_double_eq(simplex.costs[0], 0);
    het_simplex_fini(&simplex);
}
END_TEST

START_TEST(of_equal_places_the_largest_pivot_is_taken)
{
    struct het_simplex simplex;
    het_simplex_init(&simplex, 2, 1e-9);
    simplex.amounts[0] = 1; /* 1 / 2 and 2 / 4 are equal */
    simplex.amounts[1] = 2;
    simplex.column[0] = 2;
    simplex.column[1] = 4;
    ck_assert_uint_eq(het_simplex_enter(&simplex, -1), 1);
    ck_assert_double_eq(simplex.amounts[1], 0.5);
    ck_assert_double_eq(simplex.amounts[0], 1 - 2 * 0.5);
    het_simplex_fini(&simplex);
}
END_TEST

START_TEST(replaced_place_need_not_be_feasible)
{
    /* As a start from a known basis: amounts solve 2 y = 1, s = 0 - 3 y. */
    struct het_simplex simplex;
    het_simplex_init(&simplex, 2, 1e-9);
    simplex.amounts[1] = 1;
    simplex.column[0] = 3;
    simplex.column[1] = 2;
    het_simplex_replace(&simplex, 1, 7);
    ck_assert_double_eq(simplex.amounts[1], 0.5);
    ck_assert_double_eq(simplex.amounts[0], -1.5);
    const double *prices = het_simplex_price(&simplex); /* of the row: 7 / 2 */
    ck_assert_double_eq(prices[0], 0);
    ck_assert_double_eq(prices[1], 3.5);
    het_simplex_fini(&simplex);
}
END_TEST

Suite *test_simplex_suite(void)
{
    Suite *suite = suite_create("simplex");
    TCase *cases = tcase_create("simplex");
    tcase_add_test(cases, optimum_and_prices_are_those_worked_by_hand);
    tcase_add_test(cases, program_that_makes_the_simplex_method_go_round_ends);
    tcase_add_test(cases, column_without_end_changes_nothing);
    tcase_add_test(cases, of_equal_places_the_largest_pivot_is_taken);
    tcase_add_test(cases, replaced_place_need_not_be_feasible);
    suite_add_tcase(suite, cases);
    return suite;
}
