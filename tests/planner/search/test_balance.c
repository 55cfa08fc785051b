#include "planner/search/balance.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LAYERS_MAX 9
#define STAGES_MAX 5

static uint32_t next_random(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % below);
}

/* ---- layers ---- */

/* A random question with its arrays; stages with one or two kinds of replicas. */
struct instance {
    struct het_balance_layers question;
    struct het_balance_stage stages[STAGES_MAX];
    struct het_balance_times times[STAGES_MAX][2];
    double forward_s[STAGES_MAX][2][LAYERS_MAX + 1];
    double backward_s[STAGES_MAX][2][LAYERS_MAX + 1];
    double send_s[STAGES_MAX][LAYERS_MAX + 1];
    uint32_t ends[STAGES_MAX][LAYERS_MAX];
};

static void make_instance(struct instance *in, uint64_t *seed)
{
    memset(in, 0, sizeof *in);
    in->question.layer_count = 1 + next_random(seed, LAYERS_MAX);
    in->question.stage_count = 1 + next_random(seed, STAGES_MAX);
    if (in->question.stage_count > in->question.layer_count)
        in->question.stage_count = in->question.layer_count;
    in->question.microbatch_count = 1 + next_random(seed, 12);
    in->question.stages = in->stages;
    bool sends = next_random(seed, 2);
    in->question.hides_sends = next_random(seed, 3) == 0;
    for (uint32_t s = 0; s < in->question.stage_count; s++) {
        in->stages[s].times = in->times[s];
        in->stages[s].times_count = 1 + next_random(seed, 2);
        for (size_t k = 0; k < 2; k++) {
            in->times[s][k].forward_s = in->forward_s[s][k];
            in->times[s][k].backward_s = in->backward_s[s][k];
            for (uint32_t l = 0; l < in->question.layer_count; l++) {
                in->forward_s[s][k][l + 1] = in->forward_s[s][k][l] + 1 +
                                             next_random(seed, 9);
                in->backward_s[s][k][l + 1] = in->backward_s[s][k][l] + 1 +
                                              next_random(seed, 9);
            }
        }
        in->stages[s].send_s = sends ? in->send_s[s] : NULL;
        for (uint32_t l = 0; l <= in->question.layer_count; l++)
            in->send_s[s][l] = next_random(seed, 6);
        in->stages[s].ends = next_random(seed, 3) ? NULL : in->ends[s];
        uint32_t end = 0;
        for (uint32_t l = 0; l < in->question.layer_count; l++) {
            uint32_t fits = l + next_random(seed, in->question.layer_count + 1);
            end = fits > end ? fits : end;
            in->ends[s][l] = end < in->question.layer_count ? end
                                                            : in->question.layer_count;
        }
    }
}

static double price(const struct instance *in, const uint32_t *cuts)
{
    double sum = 0, bottleneck = 0, received = 0;
    for (uint32_t s = 0; s < in->question.stage_count; s++) {
        const struct het_balance_stage *stage = &in->stages[s];
        if (stage->ends && stage->ends[cuts[s]] < cuts[s + 1])
            return HUGE_VAL;
        double forward = 0, backward = 0;
        for (size_t k = 0; k < stage->times_count; k++) {
            forward = fmax(forward, in->forward_s[s][k][cuts[s + 1]] -
                                        in->forward_s[s][k][cuts[s]]);
            backward = fmax(backward, in->backward_s[s][k][cuts[s + 1]] -
                                          in->backward_s[s][k][cuts[s]]);
        }
        bool sends = s + 1 < in->question.stage_count && stage->send_s;
        double send = sends ? stage->send_s[cuts[s + 1]] : 0;
        sum += forward + backward + 2 * send;
        double exposed = in->question.hides_sends ? 0 : received + send;
        bottleneck = fmax(bottleneck, forward + backward + 2 * exposed);
        received = send;
    }
    return sum + (in->question.microbatch_count - 1.0) * bottleneck;
}

static double best_of_all(const struct instance *in, uint32_t *cuts, uint32_t stage)
{
    if (stage == in->question.stage_count) {
        cuts[stage] = in->question.layer_count;
        return cuts[stage] > cuts[stage - 1] ? price(in, cuts) : HUGE_VAL;
    }
    double best = HUGE_VAL;
    for (uint32_t cut = cuts[stage - 1] + 1; cut < in->question.layer_count; cut++) {
        cuts[stage] = cut;
        best = fmin(best, best_of_all(in, cuts, stage + 1));
    }
    return best;
}

START_TEST(layer_balance_equals_brute_force)
{
    struct het_balance_space *space = het_balance_space_new(LAYERS_MAX, STAGES_MAX);
    for (uint64_t seed = 1; seed <= 5000; seed++) {
        uint64_t state = seed;
        struct instance in;
        make_instance(&in, &state);
        uint32_t cuts[STAGES_MAX + 1] = { 0 }, found[STAGES_MAX + 1];
        double expected = best_of_all(&in, cuts, 1), seconds = HUGE_VAL;
        bool fits = het_balance_layers(space, &in.question, HUGE_VAL, found, &seconds);
        ck_assert_msg(fits == (expected < HUGE_VAL), "seed %lu", (unsigned long)seed);
        if (!fits)
            continue;
        ck_assert_msg(seconds == expected, "seed %lu: %f instead of %f",
                      (unsigned long)seed, seconds, expected);
        ck_assert_uint_eq(found[0], 0);
        ck_assert_uint_eq(found[in.question.stage_count], in.question.layer_count);
        ck_assert_msg(price(&in, found) == expected, "seed %lu", (unsigned long)seed);
        /* Worth more than the best: found; worth the best: nothing faster. */
        ck_assert(het_balance_layers(space, &in.question, expected * 1.01 + 1, found,
                                     &seconds));
        ck_assert(seconds == expected);
        ck_assert(!het_balance_layers(space, &in.question, expected, found, &seconds));
    }
    het_balance_space_free(space);
}
END_TEST

static double share_of_room(void *context, uint32_t stage, uint32_t first, uint32_t end)
{
    const double *room = context;
    return (end - first) / room[stage];
}

START_TEST(nearest_split_minimises_the_worst_share)
{
    /* 10 layers, room for 2, 4 and 2: 2.5 + 5 + 2.5 layers would be even; whole layers
     * give at best max(3/2, 5/4, 2/2) = 1.5. */
    double room[] = { 2, 4, 2 }, share;
    uint32_t cuts[4], stage;
    struct het_balance_space *space = het_balance_space_new(10, 3);
    het_balance_nearest(space, 10, 3, share_of_room, room, cuts, &stage, &share);
    ck_assert(share == 1.5);
    ck_assert_uint_eq(cuts[0], 0);
    ck_assert_uint_eq(cuts[3], 10);
    ck_assert(share_of_room(room, stage, cuts[stage], cuts[stage + 1]) == share);
    het_balance_space_free(space);
}
END_TEST

struct counted_room {
    double room[2];
    uint64_t asked;
};

static double counted_share(void *context, uint32_t stage, uint32_t first, uint32_t end)
{
    struct counted_room *counted = context;
    counted->asked++;
    return share_of_room(counted->room, stage, first, end);
}

START_TEST(nearest_split_of_many_layers_asks_little)
{
    /* 4,096 layers, room for 1,000 and 24: 4000 and 96 layers fill 4 times as much. */
    struct counted_room counted = { .room = { 1000, 24 } };
    uint32_t cuts[3], stage;
    double share;
    struct het_balance_space *space = het_balance_space_new(4096, 2);
    het_balance_nearest(space, 4096, 2, counted_share, &counted, cuts, &stage, &share);
    ck_assert(share == 4);
    ck_assert_uint_eq(cuts[1], 4000);
    /* Two stages, 4,096 ends each, bisected: 12 questions and two more. */
    ck_assert_uint_le(counted.asked, 2 * 4096 * 14 + 2);
    ck_assert_uint_ge(het_balance_space_take_work(space), counted.asked - 2);
    ck_assert_uint_eq(het_balance_space_take_work(space), 0);
    het_balance_space_free(space);
}
END_TEST

START_TEST(split_of_many_layers_looks_at_a_bounded_number_of_pairs)
{
    enum { LAYERS = 4096, STAGES = 24 };
    double *forward_s = calloc(LAYERS + 1, sizeof *forward_s);
    double *backward_s = calloc(LAYERS + 1, sizeof *backward_s);
    double *send_s = calloc(LAYERS + 1, sizeof *send_s);
    struct het_balance_stage stages[STAGES];
    uint32_t cuts[STAGES + 1];
    uint64_t seed = 5;
    for (uint32_t l = 0; l < LAYERS; l++) {
        forward_s[l + 1] = forward_s[l] + 1 + next_random(&seed, 1000);
        backward_s[l + 1] = backward_s[l] + 1 + next_random(&seed, 1000);
        send_s[l] = next_random(&seed, 50000);
    }
    const struct het_balance_times times = { forward_s, backward_s };
    for (size_t s = 0; s < STAGES; s++)
        stages[s] = (struct het_balance_stage){ .times = &times,
                                                .times_count = 1,
                                                .send_s = send_s };
    const struct het_balance_layers question = { .layer_count = LAYERS,
                                                 .stages = stages,
                                                 .stage_count = STAGES,
                                                 .microbatch_count = 3 };
    struct het_balance_space *space = het_balance_space_new(LAYERS, STAGES);
    double seconds;
    ck_assert(het_balance_layers(space, &question, HUGE_VAL, cuts, &seconds));
    ck_assert_uint_eq(cuts[STAGES], LAYERS);
    /* What is counted is one stage of a pass more at most. */
    ck_assert_uint_le(het_balance_space_take_work(space),
                      HET_BALANCE_MAX_PAIRS + (uint64_t)LAYERS * LAYERS / 2);
    het_balance_space_free(space);
    free(forward_s);
    free(backward_s);
    free(send_s);
}
END_TEST

/* ---- samples ---- */

#define KINDS_MAX    3
#define REPLICAS_MAX 6
#define SHARE_MAX    7

static double best_sharing(const double *seconds[], size_t replicas, uint32_t samples)
{
    if (!replicas)
        return samples ? HUGE_VAL : 0;
    double best = HUGE_VAL;
    for (uint32_t share = 1; share <= SHARE_MAX && share <= samples; share++)
        best = fmin(best, fmax(seconds[replicas - 1][share],
                               best_sharing(seconds, replicas - 1, samples - share)));
    return best;
}

START_TEST(sample_balance_equals_brute_force)
{
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        uint64_t state = seed;
        double times[KINDS_MAX][SHARE_MAX + 1];
        struct het_balance_replicas kinds[KINDS_MAX];
        const double *seconds[REPLICAS_MAX];
        size_t kind_count = 1 + next_random(&state, KINDS_MAX), replicas = 0;
        for (size_t k = 0; k < kind_count; k++) {
            kinds[k] = (struct het_balance_replicas){ next_random(&state, 3), times[k],
                                                      SHARE_MAX };
            for (uint32_t n = 0; n <= SHARE_MAX; n++)
                times[k][n] = next_random(&state, 4) ? 1 + next_random(&state, 20)
                                                     : HUGE_VAL;
            for (uint32_t r = 0; r < kinds[k].count; r++)
                seconds[replicas++] = times[k];
        }
        uint32_t samples = 1 + next_random(&state, 24), shares[REPLICAS_MAX];
        double expected = best_sharing(seconds, replicas, samples), found = 0;
        bool can = het_balance_samples(kinds, kind_count, samples, shares, &found, NULL);
        ck_assert_msg(can == (replicas && expected < HUGE_VAL), "seed %lu",
                      (unsigned long)seed);
        if (!can)
            continue;
        ck_assert_msg(found == expected, "seed %lu", (unsigned long)seed);
        uint32_t sum = 0;
        for (size_t r = 0; r < replicas; r++) {
            ck_assert_uint_ge(shares[r], 1);
            ck_assert_msg(seconds[r][shares[r]] <= found, "seed %lu",
                          (unsigned long)seed);
            sum += shares[r];
        }
        ck_assert_uint_eq(sum, samples);
    }
}
END_TEST

START_TEST(equal_replicas_share_evenly)
{
    double seconds[9] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };
    struct het_balance_replicas kind = { 16, seconds, 8 };
    uint32_t shares[16];
    double slowest;
    ck_assert(het_balance_samples(&kind, 1, 97, shares, &slowest, NULL));
    ck_assert(slowest == 7);
    /* 97 = 7 + 15 * 6 */
    ck_assert_uint_eq(shares[0], 7);
    for (int r = 1; r < 16; r++)
        ck_assert_uint_eq(shares[r], 6);
    ck_assert(!het_balance_samples(&kind, 1, 15, shares, &slowest, NULL));
    ck_assert(!het_balance_samples(&kind, 1, 129, shares, &slowest, NULL));
}
END_TEST

START_TEST(a_slow_sum_of_binary_parts_is_avoided)
{
    /* 8 samples take 5 s, 7 = 4 + 2 + 1 take 3 + 2 + 1 = 6 s: 56 samples over 8 replicas
     * are better shared as 8 and less than as 7 each. */
    double seconds[9] = { 0, 1, 2, 3, 3, 4, 5, 6, 5 };
    struct het_balance_replicas kind = { 8, seconds, 8 };
    uint32_t shares[8], sum = 0;
    double slowest;
    ck_assert(het_balance_samples(&kind, 1, 56, shares, &slowest, NULL));
    ck_assert(slowest == 5);
    for (int r = 0; r < 8; r++) {
        ck_assert_uint_ne(shares[r], 7);
        sum += shares[r];
    }
    ck_assert_uint_eq(sum, 56);
}
END_TEST

START_TEST(faster_replicas_take_more)
{
    double fast[9] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };
    double slow[9] = { 0, 3, 6, 9, 12, 15, 18, 21, 24 };
    struct het_balance_replicas kinds[] = { { 1, fast, 8 }, { 1, slow, 8 } };
    uint32_t shares[2];
    double slowest;
    ck_assert(het_balance_samples(kinds, 2, 8, shares, &slowest, NULL));
    ck_assert_uint_eq(shares[0], 6);
    ck_assert_uint_eq(shares[1], 2);
    ck_assert(slowest == 6);
}
END_TEST

/* 4,096 sizes, of which every 64th is fast: 64 runs of one, and runs of 63 between. */
START_TEST(sharing_many_samples_costs_by_runs_of_sizes_and_says_what)
{
    enum { SIZES = 4096, REPLICAS = 128, SAMPLES = 131072 };
    double *seconds = calloc(SIZES + 1, sizeof *seconds);
    uint32_t *shares = calloc(REPLICAS, sizeof *shares);
    for (uint32_t n = 1; n <= SIZES; n++)
        seconds[n] = n % 64 ? 2.0 * n : n;
    const struct het_balance_replicas kind = { REPLICAS, seconds, SIZES };
    double slowest;
    uint64_t work = 0, sum = 0;
    ck_assert(het_balance_samples(&kind, 1, SAMPLES, shares, &slowest, &work));
    ck_assert_double_eq(slowest, 1024); /* 131072 / 128, a multiple of 64 */
    for (size_t r = 0; r < REPLICAS; r++)
        sum += shares[r];
    ck_assert_uint_eq(sum, SAMPLES);
    ck_assert_uint_gt(work, 0);
    /* A shift for each size and row, in one table, would be so many words already. */
    ck_assert_uint_lt(work, UINT64_C(4096) * 128 * 2049);
    free(seconds);
    free(shares);
}
END_TEST

START_TEST(pipeline_is_summed_up_and_its_bottleneck_found)
{
    /* Prefix sums over three layers. Two kinds of replicas in the first stage: the one is
     * slow forward, the other backward. */
    static const double slow_s[] = { 0, 3, 6, 9 }, fast_s[] = { 0, 1, 2, 3 };
    static const double send_s[] = { 0, 0.5, 0.25, 0 };
    static const struct het_balance_times mixed[] = { { slow_s, fast_s },
                                                      { fast_s, slow_s } };
    static const struct het_balance_times alike[] = { { fast_s, fast_s } };
    const struct het_balance_stage stages[] = {
        { .times = mixed, .times_count = 2, .send_s = send_s },
        { .times = alike, .times_count = 1, .send_s = send_s },
        { .times = alike, .times_count = 1, .send_s = send_s },
    };
    static const uint32_t cuts[] = { 0, 1, 2, 3 };
    double sum_s, bottleneck_s;
    ck_assert_double_eq(het_balance_stage_seconds(&stages[0], 0, 2), 6 + 6);
    het_balance_pipeline(stages, 3, cuts, &sum_s, &bottleneck_s);
    ck_assert_double_eq(sum_s, (3 + 3) + 2 * 0.5 + (1 + 1) + 2 * 0.25 + (1 + 1));
    ck_assert_double_eq(bottleneck_s, 3 + 3 + 2 * 0.5);
    het_balance_pipeline(stages + 1, 2, cuts + 1, &sum_s, &bottleneck_s);
    ck_assert_double_eq(sum_s, (1 + 1) + 2 * 0.25 + (1 + 1));
    /* The stage behind has the send before it, and none after. */
    ck_assert_double_eq(bottleneck_s, 1 + 1 + 2 * 0.25);
}
END_TEST

Suite *test_balance_suite(void)
{
    Suite *suite = suite_create("balance");
    TCase *cases = tcase_create("balance");
    tcase_add_test(cases, sharing_many_samples_costs_by_runs_of_sizes_and_says_what);
    tcase_add_test(cases, pipeline_is_summed_up_and_its_bottleneck_found);
    tcase_add_test(cases, layer_balance_equals_brute_force);
    tcase_add_test(cases, nearest_split_minimises_the_worst_share);
    tcase_add_test(cases, nearest_split_of_many_layers_asks_little);
    tcase_add_test(cases, split_of_many_layers_looks_at_a_bounded_number_of_pairs);
    tcase_add_test(cases, sample_balance_equals_brute_force);
    tcase_add_test(cases, equal_replicas_share_evenly);
    tcase_add_test(cases, a_slow_sum_of_binary_parts_is_avoided);
    tcase_add_test(cases, faster_replicas_take_more);
    suite_add_tcase(suite, cases);
    return suite;
}
