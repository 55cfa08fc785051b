#include "planner/algo/ditto/pipeline_template.h"

#include "planner/base/random.h"

#include "tests/scale.h"

#include <check.h>
#include <math.h>

#define MAX_LAYERS 8u
#define MAX_KINDS  6u

static uint32_t below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)het_random_below(state, limit);
}

/* ---- every template there is ---- */

struct brute {
    const struct het_pipeline_template_question *question;
    uint32_t left[4], used;
    double seconds[MAX_LAYERS];
    double best_s, best_by_count_s[MAX_LAYERS + 1];
};

static void finish(struct brute *brute, uint32_t stages)
{
    const struct het_pipeline_template_question *question = brute->question;
    for (size_t r = 0; question->use_all && r < question->resource_count; r++)
        if (brute->left[r])
            return;
    double seconds =
        het_pipeline_template_seconds(brute->seconds, stages, question->microbatch_count);
    brute->best_s = fmin(brute->best_s, seconds);
    brute->best_by_count_s[stages] = fmin(brute->best_by_count_s[stages], seconds);
}

static void descend(struct brute *brute, uint32_t first, uint32_t stages)
{
    const struct het_pipeline_template_question *question = brute->question;
    if (first == question->layer_count) {
        finish(brute, stages);
        return;
    }
    if (question->stage_limit && stages == question->stage_limit)
        return;
    for (size_t k = 0; k < question->kind_count; k++) {
        const struct het_pipeline_template_kind *kind = &question->kinds[k];
        if (brute->left[kind->resource] < kind->amount)
            continue;
        brute->left[kind->resource] -= kind->amount;
        for (uint32_t end = first + 1; end <= question->layer_count; end++) {
            bool fits = (!kind->most || end - first <= kind->most) &&
                        (!kind->ends || end <= kind->ends[first]);
            brute->seconds[stages] = kind->seconds[end] - kind->seconds[first];
            if (fits)
                descend(brute, end, stages + 1);
        }
        brute->left[kind->resource] += kind->amount;
    }
}

static struct brute try_all(const struct het_pipeline_template_question *question)
{
    struct brute brute = { .question = question, .best_s = HUGE_VAL };
    for (size_t s = 0; s <= MAX_LAYERS; s++)
        brute.best_by_count_s[s] = HUGE_VAL;
    for (size_t r = 0; r < question->resource_count; r++)
        brute.left[r] = question->available[r];
    descend(&brute, 0, 0);
    return brute;
}

/* ---- random questions ---- */

struct random_question {
    struct het_pipeline_template_question question;
    struct het_pipeline_template_kind kinds[MAX_KINDS];
    uint32_t available[3];
    double seconds[MAX_KINDS][MAX_LAYERS + 1];
    uint32_t ends[MAX_KINDS][MAX_LAYERS];
};

static void fill_kind(struct random_question *random, uint64_t *state, size_t k,
                      bool has_limits, const double *layer_s)
{
    struct het_pipeline_template_kind *kind = &random->kinds[k];
    uint32_t layers = random->question.layer_count;
    kind->resource = below(state, (uint32_t)random->question.resource_count);
    kind->amount = 1 + below(state, 2);
    kind->most = has_limits ? 1 + below(state, 4) : 0;
    kind->seconds = random->seconds[k];
    double factor = 0.25 * (1 + below(state, 8)) / kind->amount;
    for (uint32_t l = 0; l < layers; l++)
        random->seconds[k][l + 1] = random->seconds[k][l] + factor * layer_s[l];
    if (below(state, 3))
        return;
    kind->ends = random->ends[k];
    for (uint32_t l = 0, end = 0; l < layers; l++) {
        uint32_t here = l + below(state, 5);
        end = end > here ? end : here;
        random->ends[k][l] = end < layers ? end : layers;
    }
}

/* Layers mostly alike, so that many times are equal. */
static void fill_question(struct random_question *random, uint64_t seed)
{
    uint64_t state = seed;
    *random = (struct random_question){ 0 };
    struct het_pipeline_template_question *question = &random->question;
    question->layer_count = 1 + below(&state, MAX_LAYERS);
    question->resource_count = 1 + below(&state, 3);
    question->kinds = random->kinds;
    question->kind_count = 1 + below(&state, MAX_KINDS);
    question->available = random->available;
    question->use_all = below(&state, 2);
    question->stage_limit = below(&state, 2) ? 1 + below(&state, MAX_LAYERS) : 0;
    question->microbatch_count = MAX_LAYERS + below(&state, 40);
    for (size_t r = 0; r < question->resource_count; r++)
        random->available[r] = below(&state, 4);
    double layer_s[MAX_LAYERS];
    for (size_t l = 0; l < MAX_LAYERS; l++)
        layer_s[l] = below(&state, 3) ? 0.3 : 0.1 * (1 + below(&state, 9));
    bool has_limits = below(&state, 2);
    for (size_t k = 0; k < question->kind_count; k++)
        fill_kind(random, &state, k, has_limits, layer_s);
}

static void check_template(uint64_t seed,
                           const struct het_pipeline_template_question *question,
                           const struct het_pipeline_template *found)
{
    double seconds[MAX_LAYERS];
    uint32_t next = 0, left[3];
    for (size_t r = 0; r < question->resource_count; r++)
        left[r] = question->available[r];
    for (uint32_t s = 0; s < found->stage_count; s++) {
        const struct het_pipeline_template_stage *stage = &found->stages[s];
        const struct het_pipeline_template_kind *kind = &question->kinds[stage->kind];
        uint32_t end = stage->first_layer + stage->layer_count;
        ck_assert_msg(stage->first_layer == next && stage->layer_count, "seed %llu",
                      (unsigned long long)seed);
        ck_assert_uint_ge(left[kind->resource], kind->amount);
        ck_assert(!kind->most || stage->layer_count <= kind->most);
        ck_assert(!kind->ends || end <= kind->ends[next]);
        left[kind->resource] -= kind->amount;
        seconds[s] = kind->seconds[end] - kind->seconds[next];
        next = end;
    }
    ck_assert_uint_eq(next, question->layer_count);
    double again = het_pipeline_template_seconds(seconds, found->stage_count,
                                                 question->microbatch_count);
    ck_assert_double_eq(again, found->seconds);
}

static void check_equal(uint64_t seed, const char *what, double found_s, double brute_s)
{
    bool equal = found_s == brute_s || fabs(found_s - brute_s) < 1e-6 * brute_s;
    ck_assert_msg(equal, "seed %llu, %s: %.9g, all templates: %.9g",
                  (unsigned long long)seed, what, found_s, brute_s);
}

START_TEST(template_is_the_best_of_all)
{
    uint32_t found_count = 0;
    for (uint64_t seed = 1; seed <= SCALED(2000u); seed++) {
        struct random_question random;
        struct het_pipeline_template found, list[MAX_LAYERS + 1];
        uint64_t cells = 0;
        struct het_arena *arena = het_arena_new();
        fill_question(&random, seed);
        struct brute brute = try_all(&random.question);
        bool is_found =
            het_pipeline_template_find(arena, &random.question, &found, &cells);
        check_equal(seed, "best", is_found ? found.seconds : HUGE_VAL, brute.best_s);
        if (is_found) {
            check_template(seed, &random.question, &found);
            random.question.worth_s = found.seconds * (1 + 1e-5);
            ck_assert(
                het_pipeline_template_find(arena, &random.question, &found, &cells));
            check_equal(seed, "worth", found.seconds, brute.best_s);
            random.question.worth_s = found.seconds * (1 - 1e-5);
            ck_assert(
                !het_pipeline_template_find(arena, &random.question, &found, &cells));
            random.question.worth_s = 0;
        }
        found_count += is_found;
        random.question.stage_limit = MAX_LAYERS;
        brute = try_all(&random.question);
        het_pipeline_template_list(arena, &random.question, list, &cells);
        for (uint32_t s = 1; s <= MAX_LAYERS; s++)
            check_equal(seed, "by count", list[s].seconds, brute.best_by_count_s[s]);
        het_arena_free(arena);
    }
    ck_assert_uint_gt(found_count, SCALED(2000u) / 4);
}
END_TEST

START_TEST(time_is_the_papers)
{
    /* Stages of 1, 3, 2 s, 10 micro-batches; the second is slowest:
     * T1 = 6, T2 = (10 - 3 + 2 - 1) * 3, T3 = 3 + 2. */
    ck_assert_double_eq_tol(
        het_pipeline_template_seconds((const double[]){ 1, 3, 2 }, 3, 10), 6 + 8 * 3 + 5,
        1e-12);
    /* Of equal ones the last: T1 = 6, T2 = (10 - 3 + 3 - 1) * 2, T3 = 2. */
    ck_assert_double_eq_tol(
        het_pipeline_template_seconds((const double[]){ 2, 2, 2 }, 3, 10), 6 + 9 * 2 + 2,
        1e-12);
}
END_TEST

/* Oobleck's generator on 6 layers of 30 ms and two one-GPU nodes gives T1 = 180 and
 * T3 = 90 ms; its own T2, with k* from 0, is (2 * 2 + k* + 1) * 90 = 540 (the program
 * run), the papers' with N_b = 4 S is (8 - 2 + 2 - 1) * 90 = 630. */
START_TEST(template_is_the_one_that_oobleck_makes)
{
    const double seconds[] = { 0, 0.03, 0.06, 0.09, 0.12, 0.15, 0.18 };
    const struct het_pipeline_template_kind kind = { .amount = 1, .seconds = seconds };
    const struct het_pipeline_template_question question = { .layer_count = 6,
                                                             .kinds = &kind,
                                                             .kind_count = 1,
                                                             .available =
                                                                 (const uint32_t[]){ 2 },
                                                             .resource_count = 1,
                                                             .use_all = true,
                                                             .microbatch_count = 8 };
    struct het_arena *arena = het_arena_new();
    struct het_pipeline_template found;
    uint64_t cells = 0;
    ck_assert(het_pipeline_template_find(arena, &question, &found, &cells));
    ck_assert_uint_eq(found.stage_count, 2);
    ck_assert_uint_eq(found.stages[0].layer_count, 3);
    ck_assert_double_eq_tol(found.seconds, 0.18 + 0.63 + 0.09, 1e-12);
    het_arena_free(arena);
}
END_TEST

START_TEST(a_table_too_large_is_refused)
{
    const double seconds[] = { 0, 1 };
    const struct het_pipeline_template_kind kind = { .amount = 1, .seconds = seconds };
    struct het_pipeline_template_question question = {
        .layer_count = 1,
        .kinds = &kind,
        .kind_count = 1,
        .available = (const uint32_t[]){ HET_PIPELINE_TEMPLATE_MAX_CELLS },
        .resource_count = 1,
        .microbatch_count = 8
    };
    struct het_arena *arena = het_arena_new();
    struct het_pipeline_template found;
    uint64_t cells = 0;
    ck_assert(!het_pipeline_template_find(arena, &question, &found, &cells));
    ck_assert_uint_eq(cells, 0);
    het_arena_free(arena);
}
END_TEST

Suite *test_pipeline_template_suite(void)
{
    Suite *suite = suite_create("pipeline_template");
    TCase *cases = tcase_create("template");
    tcase_add_test(cases, template_is_the_best_of_all);
    tcase_add_test(cases, time_is_the_papers);
    tcase_add_test(cases, template_is_the_one_that_oobleck_makes);
    tcase_add_test(cases, a_table_too_large_is_refused);
    suite_add_tcase(suite, cases);
    return suite;
}
