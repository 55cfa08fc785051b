#include "planner/cost/bound_program.h"

#include <check.h>

/* Prices come from a simplex whose numbers are rounded. */
#define ck_near(a, b) ck_assert_double_eq_tol((a), (b), 1e-6 * (b))

/* Layers of 50 bytes that take a GPU of the first type 1 s a sample, of the second 2 s;
 * four GPUs of each, on nodes of one and on a node of four; eight samples. */
struct program {
    double compute[2][3], crossing[2][3], bytes[3], wait_s[3];
    struct het_bound_program_type types[2];
    struct het_bound_program covering;
};

static void start(struct program *program, uint32_t layers, size_t types)
{
    *program = (struct program){ .bytes = { 0, 50, 100 } };
    for (size_t t = 0; t < 2; t++) {
        for (size_t l = 0; l <= 2; l++)
            program->compute[t][l] = (double)(l * (t + 1));
        program->types[t] = (struct het_bound_program_type){
            .gpus = 4,
            .node_gpus = t ? 4 : 1,
            .compute = program->compute[t],
            .crossing = program->crossing[t],
        };
    }
    program->covering = (struct het_bound_program){
        .layer_count = layers,
        .samples = 8,
        .types = program->types,
        .type_count = types,
        .bytes = program->bytes,
        .wait_s = program->wait_s,
    };
    het_bound_program_prepare(&program->covering);
}

static double solve(struct program *program, double budget_s)
{
    double prices[2] = { 0 };
    double bytes = het_bound_program_solve(&program->covering, budget_s, prices);
    /* What is said to be proved is proved by the prices that are given. */
    ck_near(het_bound_program_prove(&program->covering, budget_s, prices), bytes);
    return bytes;
}

START_TEST(one_layer_is_held_by_as_many_gpus_as_its_samples_need)
{
    struct program program;
    start(&program, 1, 1);
    ck_near(solve(&program, 4), 2 * 50); /* four samples a GPU: two of them */
    ck_near(solve(&program, 2), 4 * 50);
    ck_assert_double_gt(solve(&program, 1), 4 * 50); /* four GPUs do four samples */
    het_bound_program_fini(&program.covering);
}
END_TEST

START_TEST(bytes_that_are_free_do_not_count)
{
    struct program program;
    start(&program, 1, 1);
    program.types[0].free_bytes = 20;
    het_bound_program_prepare(&program.covering);
    ck_near(solve(&program, 4), 2 * (50 - 20));
    het_bound_program_fini(&program.covering);
}
END_TEST

START_TEST(node_of_many_gpus_holds_a_layer_once)
{
    struct program program;
    start(&program, 1, 2);
    /* In 4 s the slow GPUs of the node do two samples each: all. */
    ck_near(solve(&program, 4), 50);
    /* In 2 s they do four; two fast ones do two each. */
    ck_near(solve(&program, 2), 50 + 2 * 50);
    het_bound_program_fini(&program.covering);
}
END_TEST

START_TEST(sends_make_it_dear_to_hold_little)
{
    struct program program;
    start(&program, 2, 1);
    /* Each layer is on two GPUs that do four samples of it each. */
    ck_near(solve(&program, 4), 4 * 50);
    /* What crosses takes both sides 1 s: two samples a GPU, as with both layers and
     * nothing sent. There are no eight GPUs for that. */
    program.crossing[0][1] = 1;
    het_bound_program_prepare(&program.covering);
    ck_near(solve(&program, 4), 4 * 100);
    het_bound_program_fini(&program.covering);
}
END_TEST

START_TEST(gpus_that_wait_do_less)
{
    struct program program;
    start(&program, 1, 1);
    program.wait_s[0] = 2;
    ck_near(solve(&program, 4), 4 * 50); /* as in 2 s */
    het_bound_program_fini(&program.covering);
}
END_TEST

Suite *test_bound_program_suite(void)
{
    Suite *suite = suite_create("bound_program");
    TCase *cases = tcase_create("program");
    tcase_add_test(cases, one_layer_is_held_by_as_many_gpus_as_its_samples_need);
    tcase_add_test(cases, bytes_that_are_free_do_not_count);
    tcase_add_test(cases, node_of_many_gpus_holds_a_layer_once);
    tcase_add_test(cases, sends_make_it_dear_to_hold_little);
    tcase_add_test(cases, gpus_that_wait_do_less);
    suite_add_tcase(suite, cases);
    return suite;
}
