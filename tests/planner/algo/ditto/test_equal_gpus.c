#include "planner/algo/ditto/equal_gpus.h"

#include "planner/base/random.h"
#include "planner/format/document/question.h"
#include "tests/planner/files.h"
#include "tests/scale.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the five configurations of Ditto's figure 8 ---- */

#define MAX_TYPES 4u
#define MAX_KINDS 16u

struct configuration {
    struct het_arena *arena;
    struct het_equal_gpus_question question;
    struct het_equal_gpus_type types[MAX_TYPES];
    struct het_equal_gpus_kind kinds[MAX_KINDS];
};

static const double *prefix_sums(struct het_arena *arena,
                                 const struct het_profile *profile, uint32_t type,
                                 uint32_t tp)
{
    double *sums = HET_ARENA_ARRAY(arena, double, (size_t)profile->layer_count + 1);
    for (uint32_t l = 1; l <= profile->layer_count; l++) {
        double forward_s, backward_s;
        int result =
            het_profile_times(profile, type, tp, 1, 0, l, &forward_s, &backward_s, NULL);
        ck_assert_int_eq(result, 0);
        sums[l] = forward_s + backward_s;
    }
    return sums;
}

/* GPT2-XL on configuration `number`, one sample a micro-batch; a stage has 1, 2 or 4 GPUs
 * of a node. */
static void configuration_init(struct configuration *to, int number)
{
    *to = (struct configuration){ .arena = het_arena_new() };
    char path[60];
    snprintf(path, sizeof path, "tests/data/gpt2-xl/ex%d.json", number);
    json_auto_t *document = json_pack(
        "{s:o, s:o, s:{s:i}}", "cluster", test_read_json(path), "profile",
        test_read_json("tests/data/gpt2-xl/profile.json"), "job", "globalBatchSize", 64);
    struct het_question read;
    struct het_error err;
    ck_assert_msg(het_question_read(to->arena, document, &read, &err) == 0, "%s",
                  err.message);
    const struct het_cluster *cluster = read.problem.cluster;
    struct het_equal_gpus_question *question = &to->question;
    question->layer_count = read.problem.profile->layer_count;
    question->types = to->types;
    question->type_count = cluster->type_count;
    question->kinds = to->kinds;
    const double *whole[MAX_TYPES];
    ck_assert_uint_le(cluster->type_count, MAX_TYPES);
    for (uint32_t t = 0; t < cluster->type_count; t++) {
        uint32_t type = read.problem.profile_type[t];
        to->types[t].gpu_count = het_cluster_type_gpu_count(cluster, t);
        for (uint32_t tp = 1; tp <= cluster->nodes[0].gpu_count; tp *= 2) {
            const double *sums = prefix_sums(to->arena, read.problem.profile, type, tp);
            to->kinds[question->kind_count++] =
                (struct het_equal_gpus_kind){ .type = t, .gpus = tp, .seconds = sums };
            if (tp == 1)
                whole[t] = sums;
        }
    }
    double weakest_s = 0;
    for (uint32_t t = 0; t < cluster->type_count; t++)
        if (whole[t][question->layer_count] > weakest_s) {
            weakest_s = whole[t][question->layer_count];
            question->weakest = t;
        }
    for (uint32_t t = 0; t < cluster->type_count; t++)
        to->types[t].weight =
            het_equal_gpus_weight(weakest_s, whole[t][question->layer_count]);
}

/* The bar is 8 % (the most that the paper's figure 10 shows) for recovery by dynamic
 * program; the greedy one is for comparison, and its figures are in docs/planner.md. N_b
 * is four times the virtual GPUs, as Oobleck takes it for so many stages. */
START_TEST(recovered_templates_are_near_the_best_of_all)
{
    static const uint32_t virtual_gpus[] = { 12, 24, 48, 48, 48 };
    static const double above[] = { 1.011, 1.007, 1.003, 1.007, 1.002 };
    static const double greedy_above[] = { 1.011, 1.19, 1.14, 1.29, 1.45 };
    for (int number = 1; number <= 5; number++) {
        struct configuration of;
        struct het_pipeline_template recovered, greedy, best;
        uint64_t cells = 0;
        configuration_init(&of, number);
        ck_assert_uint_eq(het_equal_gpus_gpu_count(&of.question),
                          virtual_gpus[number - 1]);
        of.question.microbatch_count = 4 * virtual_gpus[number - 1];
        ck_assert(het_equal_gpus_recover(of.arena, &of.question, &recovered, &cells));
        ck_assert(
            het_equal_gpus_recover_greedily(of.arena, &of.question, &greedy, &cells));
        ck_assert(het_equal_gpus_extend(of.arena, &of.question, &best, &cells));
        ck_assert_uint_lt(cells, 40000000); /* some 5 ns each */
        if (getenv("DITTO_TABLE"))
            printf("| Ex%d | %.4f | %.4f | %.1f %% | %.4f | %.1f %% |\n", number,
                   best.seconds, recovered.seconds,
                   (recovered.seconds / best.seconds - 1) * 100, greedy.seconds,
                   (greedy.seconds / best.seconds - 1) * 100);
        ck_assert_double_ge(recovered.seconds, best.seconds * (1 - 1e-6));
        ck_assert_double_ge(greedy.seconds, best.seconds * (1 - 1e-6));
        ck_assert_double_le(recovered.seconds, best.seconds * above[number - 1]);
        ck_assert_double_le(greedy.seconds, best.seconds * greedy_above[number - 1]);
        het_arena_free(of.arena);
    }
}
END_TEST

/* ---- folding ---- */

START_TEST(a_gpu_is_worth_its_speed_rounded)
{
    ck_assert_uint_eq(het_equal_gpus_weight(6, 6), 1);
    ck_assert_uint_eq(het_equal_gpus_weight(6, 6 / 2.95), 3);
    ck_assert_uint_eq(het_equal_gpus_weight(6, 6 / 2.4), 2);
    ck_assert_uint_eq(het_equal_gpus_weight(6, 5), 1);
}
END_TEST

START_TEST(communication_makes_a_gpu_worth_less)
{
    /* Nodes of 2; layers 10; all-reduce 0.05 s over two, 0.2 s between nodes.
     * p(1) = 6; p(2) = 3 + 10 * 0.05 = 3.5;
     * p(3) = 2 + 0.2 + 10 * 2 * 0.05 / 3 = 2.533; p(4) = 1.5 + 0.2 + 0.5 = 2.2. */
    const double inside_s[] = { 0, 0, 0.05 };
    const struct het_equal_gpus_communication communication = {
        .layer_count = 10, .node_gpus = 2, .inside_s = inside_s, .across_s = 0.2
    };
    ck_assert_uint_eq(het_equal_gpus_weight_with_communication(6, 6, &communication), 1);
    ck_assert_uint_eq(het_equal_gpus_weight_with_communication(6, 3, &communication), 2);
    ck_assert_uint_eq(het_equal_gpus_weight_with_communication(6, 2, &communication), 3);
    ck_assert_uint_eq(het_equal_gpus_weight_with_communication(6, 1.5, &communication),
                      4);
    /* Slow links: two GPUs take 3 + 10 * 0.5, one is nearer to 2. */
    const double slow_s[] = { 0, 0, 0.5 };
    const struct het_equal_gpus_communication slow = {
        .layer_count = 10, .node_gpus = 2, .inside_s = slow_s, .across_s = 2
    };
    ck_assert_uint_eq(het_equal_gpus_weight_with_communication(6, 2, &slow), 1);
}
END_TEST

/* ---- recovery, against all assignments ---- */

struct all {
    const struct het_equal_gpus_question *question;
    uint32_t left[2];
    double seconds[12], best_s;
};

/* Every way to give equal virtual stages from `first` on: x GPUs take up to x d. */
static void try_all(struct all *all, uint32_t first, uint32_t stages)
{
    const struct het_equal_gpus_question *question = all->question;
    if (first == question->layer_count)
        all->best_s =
            fmin(all->best_s, het_pipeline_template_seconds(all->seconds, stages,
                                                            question->microbatch_count));
    for (size_t k = 0; k < question->kind_count; k++) {
        const struct het_equal_gpus_kind *kind = &question->kinds[k];
        uint32_t most = kind->gpus * question->types[kind->type].weight;
        if (all->left[kind->type] < kind->gpus)
            continue;
        all->left[kind->type] -= kind->gpus;
        for (uint32_t end = first + 1;
             end <= question->layer_count && end - first <= most; end++) {
            all->seconds[stages] = kind->seconds[end] - kind->seconds[first];
            try_all(all, end, stages + 1);
        }
        all->left[kind->type] += kind->gpus;
    }
}

/* With as many equal layers as virtual GPUs, a virtual stage is a layer. */
START_TEST(recovery_is_the_best_assignment)
{
    for (uint64_t seed = 1; seed <= SCALED(300u); seed++) {
        uint64_t state = seed;
        struct het_arena *arena = het_arena_new();
        double seconds[3][13];
        const struct het_equal_gpus_type types[] = {
            { 1 + (uint32_t)(het_random_below(&state, 3)), 1 },
            { 1 + (uint32_t)(het_random_below(&state, 2)),
              2 + (uint32_t)(het_random_below(&state, 3)) },
        };
        double faster = types[1].weight + 0.2 * (double)(het_random_below(&state, 5)) -
                        0.4;
        for (uint32_t l = 0; l <= 12; l++) {
            seconds[0][l] = l;
            seconds[1][l] = l / faster;
            seconds[2][l] = l / (faster * 1.7);
        }
        const struct het_equal_gpus_kind kinds[] = { { 0, 1, seconds[0], NULL },
                                                     { 1, 1, seconds[1], NULL },
                                                     { 1, 2, seconds[2], NULL } };
        struct het_equal_gpus_question question = { .types = types,
                                                    .type_count = 2,
                                                    .kinds = kinds,
                                                    .kind_count = 3,
                                                    .microbatch_count = 12 + seed % 30 };
        question.layer_count = (uint32_t)het_equal_gpus_gpu_count(&question);
        ck_assert_uint_le(question.layer_count, 12);
        struct all all = { .question = &question,
                           .left = { types[0].gpu_count, types[1].gpu_count },
                           .best_s = HUGE_VAL };
        try_all(&all, 0, 0);
        struct het_pipeline_template found;
        uint64_t cells = 0;
        ck_assert(het_equal_gpus_recover(arena, &question, &found, &cells));
        ck_assert_msg(found.seconds <= all.best_s * (1 + 1e-6), "seed %llu: %g, best %g",
                      (unsigned long long)seed, found.seconds, all.best_s);
        het_arena_free(arena);
    }
}
END_TEST

Suite *test_equal_gpus_suite(void)
{
    Suite *suite = suite_create("equal_gpus");
    TCase *cases = tcase_create("fold");
    tcase_add_test(cases, a_gpu_is_worth_its_speed_rounded);
    tcase_add_test(cases, communication_makes_a_gpu_worth_less);
    tcase_add_test(cases, recovery_is_the_best_assignment);
    tcase_add_test(cases, recovered_templates_are_near_the_best_of_all);
    suite_add_tcase(suite, cases);
    return suite;
}
