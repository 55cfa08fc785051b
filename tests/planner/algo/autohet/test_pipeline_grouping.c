#include "planner/algo/autohet/pipeline_grouping.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_GPUS 72

static uint32_t next_random(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

/* ---- eq. 2 and 3 as printed: every GPU in every group ---- */

struct brute {
    const struct het_pipeline_grouping_question *question;
    uint32_t types[MAX_GPUS], group[MAX_GPUS], count;
    double best;
};

static double objective_of(const struct brute *brute, uint32_t groups)
{
    const struct het_pipeline_grouping_question *question = brute->question;
    double least = HUGE_VAL, microbatches = question->microbatches[groups];
    for (uint32_t j = 0; j < groups; j++) {
        double power = 0, memory = 0;
        uint32_t size = 0;
        for (uint32_t i = 0; i < brute->count; i++)
            if (brute->group[i] == j) {
                power += question->types[brute->types[i]].power;
                memory += question->types[brute->types[i]].memory;
                size++;
            }
        double bubble = (size - 1) / (microbatches + size - 1);
        if (memory < question->least_memory ||
            (question->size_limit && size > question->size_limit) ||
            (question->is_even && size * groups != brute->count))
            return 0;
        least = fmin(least, power * (1 - bubble));
    }
    return groups * least;
}

static void try_all(struct brute *brute, uint32_t gpu, uint32_t groups)
{
    if (gpu == brute->count) {
        if (groups <= brute->question->most_groups &&
            brute->question->microbatches[groups] > 0)
            brute->best = fmax(brute->best, objective_of(brute, groups));
        return;
    }
    for (uint32_t j = 0; j <= groups; j++) {
        brute->group[gpu] = j;
        try_all(brute, gpu + 1, j == groups ? groups + 1 : groups);
    }
}

static double brute_force(const struct het_pipeline_grouping_question *question)
{
    struct brute brute = { .question = question };
    for (uint32_t t = 0; t < question->type_count; t++)
        for (uint32_t i = 0; i < question->types[t].count; i++)
            brute.types[brute.count++] = t;
    try_all(&brute, 0, 0);
    return brute.best;
}

/* What the answer is worth, and that each GPU is in one group. */
static void check_answer(const struct het_pipeline_grouping_question *question,
                         const struct het_pipeline_grouping *answer)
{
    double least = HUGE_VAL;
    for (uint32_t t = 0; t < question->type_count; t++) {
        uint32_t count = 0;
        for (uint32_t j = 0; j < answer->group_count; j++)
            count += answer->members[j * question->type_count + t];
        ck_assert_uint_eq(count, question->types[t].count);
    }
    for (uint32_t j = 0; j < answer->group_count; j++)
        least = fmin(least, het_pipeline_grouping_power(
                                question, answer->members + j * question->type_count,
                                question->microbatches[answer->group_count]));
    ck_assert_double_eq_tol(answer->objective, answer->group_count * least,
                            1e-9 * answer->objective);
}

START_TEST(the_best_grouping_is_that_of_trying_all)
{
    uint32_t state = 7, feasible = 0;
    for (int round = 0; round < 600; round++) {
        struct het_pipeline_grouping_type types[3];
        double microbatches[9];
        uint32_t type_count = 1 + next_random(&state, 3), left = 8;
        for (uint32_t t = 0; t < type_count; t++) {
            uint32_t count = 1 + next_random(&state, left - (type_count - t) + 1);
            count = count > 4 ? 4 : count;
            types[t] = (struct het_pipeline_grouping_type){
                .count = count,
                .power = 0.05 + 0.05 * next_random(&state, 80),
                .memory = (double)next_random(&state, 12) - 1,
            };
            left -= count;
        }
        double batch = 1 + next_random(&state, 40);
        bool is_fixed = next_random(&state, 2);
        for (uint32_t d = 0; d <= 8; d++)
            microbatches[d] = next_random(&state, 9) == 0 ? 0
                              : is_fixed || !d            ? batch
                                                          : batch / d;
        struct het_pipeline_grouping_question question = {
            .types = types,
            .type_count = type_count,
            .microbatches = microbatches,
            .most_groups = 1 + next_random(&state, 8),
            .size_limit = next_random(&state, 3) ? 0 : 1 + next_random(&state, 4),
            .is_even = next_random(&state, 5) == 0,
            .least_memory = next_random(&state, 24),
        };
        struct het_arena *arena = het_arena_new();
        struct het_pipeline_grouping answer;
        double best = brute_force(&question);
        bool found = het_pipeline_grouping_find(arena, &question, &answer);
        ck_assert_msg(found == (best > 0), "round %d: found %d, best %g", round, found,
                      best);
        if (found) {
            feasible++;
            check_answer(&question, &answer);
            ck_assert_msg(fabs(answer.objective - best) <= 1e-8 * best,
                          "round %d: %.12g, best %.12g", round, answer.objective, best);
            ck_assert(answer.is_proved);
        }
        het_arena_free(arena);
    }
    ck_assert_uint_gt(feasible, 200);
}
END_TEST

/* ---- the paper's examples (section V.A) ----
 *
 * Relative power A100 1, H800 2, H20 0.5, memory 80, 80 and 100 GB as the paper says.
 * MIN_mem: LLaMA with 6.7 billion parameters at 18 bytes each, 120.6 GB. K = 8 for every
 * number of groups. */

static const double fixed_batches[] = { 0, 8, 8, 8, 8, 8, 8 };

START_TEST(four_a100_and_two_h800_are_one_pipeline_of_a_type_each)
{
    /* Degree two: members of two GPUs. 2 * min(4, 2 * 2 * 8 / 9) = 7.11; three groups
     * have 3 * 2 = 6, one 8 * 8 / 10 = 6.4. */
    const struct het_pipeline_grouping_type types[] = { { 2, 2, 160 }, { 1, 4, 160 } };
    const struct het_pipeline_grouping_question question = { .types = types,
                                                             .type_count = 2,
                                                             .microbatches =
                                                                 fixed_batches,
                                                             .most_groups = 3,
                                                             .least_memory = 120.6 };
    struct het_arena *arena = het_arena_new();
    struct het_pipeline_grouping answer;
    ck_assert(het_pipeline_grouping_find(arena, &question, &answer));
    ck_assert_uint_eq(answer.group_count, 2);
    ck_assert_double_eq_tol(answer.objective, 2 * 4 * 8.0 / 9, 1e-9);
    for (uint32_t j = 0; j < 2; j++) {
        const uint32_t *group = answer.members + 2 * j;
        ck_assert((group[0] == 2 && group[1] == 0) || (group[0] == 0 && group[1] == 1));
    }
    het_arena_free(arena);
}
END_TEST

START_TEST(one_a100_and_four_h20_are_two_unequal_pipelines)
{
    /* {A100, H20}: 1.5 * 8 / 9; {3 H20}: 1.5 * 8 / 10 = 1.2, twice that 2.4. {A100} alone
     * has too little memory; {A100, 2 H20}, {2 H20}: 2 * 1 * 8 / 9; one group: 3 * 8
     * / 12.
     */
    const struct het_pipeline_grouping_type types[] = { { 1, 1, 80 }, { 4, 0.5, 100 } };
    struct het_pipeline_grouping_question question = { .types = types,
                                                       .type_count = 2,
                                                       .microbatches = fixed_batches,
                                                       .most_groups = 5,
                                                       .least_memory = 120.6 };
    struct het_arena *arena = het_arena_new();
    struct het_pipeline_grouping answer;
    ck_assert(het_pipeline_grouping_find(arena, &question, &answer));
    ck_assert_uint_eq(answer.group_count, 2);
    ck_assert_double_eq_tol(answer.objective, 2.4, 1e-9);
    for (uint32_t j = 0; j < 2; j++) {
        const uint32_t *group = answer.members + 2 * j;
        ck_assert((group[0] == 1 && group[1] == 1) || (group[0] == 0 && group[1] == 3));
    }
    het_arena_free(arena);
}
END_TEST

START_TEST(with_the_batch_shared_out_equal_ways_are_told_apart_by_their_groups)
{
    /* The first example with 16 micro-batches in all: 8 * 16 / 18 with one group and with
     * two. */
    const struct het_pipeline_grouping_type types[] = { { 2, 2, 160 }, { 1, 4, 160 } };
    const double microbatches[] = { 0, 16, 8, 16.0 / 3 };
    const struct het_pipeline_grouping_question question = { .types = types,
                                                             .type_count = 2,
                                                             .microbatches = microbatches,
                                                             .most_groups = 3,
                                                             .least_memory = 120.6 };
    struct het_arena *arena = het_arena_new();
    struct het_pipeline_grouping answer;
    ck_assert(het_pipeline_grouping_find(arena, &question, &answer));
    ck_assert_uint_eq(answer.group_count, 2);
    het_arena_free(arena);
}
END_TEST

START_TEST(a_limit_on_the_work_leaves_a_bound)
{
    const struct het_pipeline_grouping_type types[] = { { 9, 1.01, 10 },
                                                        { 11, 0.63, 9 } };
    double microbatches[21];
    for (uint32_t d = 1; d <= 20; d++)
        microbatches[d] = 128.0 / d;
    struct het_pipeline_grouping_question question = { .types = types,
                                                       .type_count = 2,
                                                       .microbatches = microbatches,
                                                       .most_groups = 20,
                                                       .least_memory = 20 };
    struct het_arena *arena = het_arena_new();
    struct het_pipeline_grouping whole, part;
    ck_assert(het_pipeline_grouping_find(arena, &question, &whole));
    ck_assert(whole.is_proved);
    for (question.work_limit = 1; question.work_limit < whole.work;
         question.work_limit = question.work_limit * 2) {
        het_pipeline_grouping_find(arena, &question, &part);
        ck_assert_double_le(part.objective, whole.objective * (1 + 1e-9));
        ck_assert_double_ge(part.bound, whole.objective * (1 - 1e-9));
        ck_assert_uint_le(part.work, question.work_limit);
    }
    het_arena_free(arena);
}
END_TEST

/* GROUPING_TABLE=1: eq. 3 at the paper's numbers of GPUs, milliseconds of CPU. */
static void print_row(const char *name, const struct het_pipeline_grouping_type *types,
                      size_t type_count, double batch, double least_memory)
{
    double microbatches[MAX_GPUS];
    uint32_t gpus = 0;
    for (size_t t = 0; t < type_count; t++)
        gpus += types[t].count;
    for (uint32_t d = 1; d <= gpus; d++)
        microbatches[d] = batch / d;
    const struct het_pipeline_grouping_question question = { .types = types,
                                                             .type_count = type_count,
                                                             .microbatches = microbatches,
                                                             .most_groups = gpus,
                                                             .least_memory =
                                                                 least_memory };
    struct het_arena *arena = het_arena_new();
    struct het_pipeline_grouping answer = { 0 };
    clock_t start = clock();
    het_pipeline_grouping_find(arena, &question, &answer);
    double milliseconds = (double)(clock() - start) * 1e3 / CLOCKS_PER_SEC;
    printf("| %u | %s | %g | %g | %u | %.4f | %s | %llu | %llu | %.2f |\n", gpus, name,
           batch, least_memory, answer.group_count, answer.objective,
           answer.is_proved ? "yes" : "no", (unsigned long long)answer.nodes,
           (unsigned long long)answer.work, milliseconds);
    het_arena_free(arena);
}

static void print_rows(double batch, double least_memory)
{
    static const struct {
        const char *name;
        struct het_pipeline_grouping_type types[3];
        size_t count;
    } rows[] = {
        { "8 A100 + 8 H800", { { 8, 1, 80 }, { 8, 2, 80 } }, 2 },
        { "8 A100 + 8 H800 + 8 H20", { { 8, 1, 80 }, { 8, 2, 80 }, { 8, 0.5, 100 } }, 3 },
        { "16 A100 + 8 H800 + 8 H20",
          { { 16, 1, 80 }, { 8, 2, 80 }, { 8, 0.5, 100 } },
          3 },
        { "32 A100 + 16 H800 + 16 H20",
          { { 32, 1, 80 }, { 16, 2, 80 }, { 16, 0.5, 100 } },
          3 },
        { "27 A100 + 18 H800 + 19 H20, uneven powers",
          { { 27, 1, 80 }, { 18, 1.93, 80 }, { 19, 0.47, 100 } },
          3 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        print_row(rows[i].name, rows[i].types, rows[i].count, batch, least_memory);
}

START_TEST(table)
{
    if (!getenv("GROUPING_TABLE"))
        return;
    printf("| GPUs | | micro-batches | MIN_mem | D | D z | proved | nodes | work | ms |\n"
           "|---|---|---|---|---|---|---|---|---|---|\n");
    print_rows(128, 120.6);
    print_rows(512, 120.6);
    print_rows(128, 350);
}
END_TEST

Suite *test_pipeline_grouping_suite(void)
{
    Suite *suite = suite_create("pipeline_grouping");
    TCase *cases = tcase_create("grouping");
    tcase_add_test(cases, the_best_grouping_is_that_of_trying_all);
    tcase_add_test(cases, four_a100_and_two_h800_are_one_pipeline_of_a_type_each);
    tcase_add_test(cases, one_a100_and_four_h20_are_two_unequal_pipelines);
    tcase_add_test(cases,
                   with_the_batch_shared_out_equal_ways_are_told_apart_by_their_groups);
    tcase_add_test(cases, a_limit_on_the_work_leaves_a_bound);
    tcase_add_test(cases, table);
    suite_add_tcase(suite, cases);
    return suite;
}
