#include "planner/algo/optimal/layer_front.h"

#include "planner/base/random.h"

#include <check.h>
#include <math.h>

enum { LAYERS = 9, STAGES = 4 };

static double next_random(uint64_t *state)
{
    return (double)(het_random_next(state) >> 11) * 0x1p-53;
}

struct problem {
    double forward_s[STAGES][2][LAYERS + 1], backward_s[STAGES][2][LAYERS + 1];
    double send_s[STAGES][LAYERS + 1];
    uint32_t ends[STAGES][LAYERS];
    struct het_balance_times times[STAGES][2];
    struct het_balance_stage stages[STAGES];
    struct het_balance_layers layers;
};

static void fill(struct problem *problem, uint64_t seed, uint32_t stage_count)
{
    uint64_t state = seed;
    problem->layers = (struct het_balance_layers){ .layer_count = LAYERS,
                                                   .stages = problem->stages,
                                                   .stage_count = stage_count };
    for (uint32_t s = 0; s < stage_count; s++) {
        uint32_t kinds = 1 + (next_random(&state) < 0.3), room = 2;
        for (uint32_t k = 0; k < kinds; k++) {
            for (uint32_t l = 0; l < LAYERS; l++) {
                problem->forward_s[s][k][l + 1] = problem->forward_s[s][k][l] +
                                                  next_random(&state);
                problem->backward_s[s][k][l + 1] = problem->backward_s[s][k][l] +
                                                   next_random(&state);
            }
            problem->times[s][k] =
                (struct het_balance_times){ problem->forward_s[s][k],
                                            problem->backward_s[s][k] };
        }
        room += (uint32_t)(next_random(&state) * LAYERS);
        for (uint32_t l = 0; l < LAYERS; l++) {
            problem->send_s[s][l + 1] = next_random(&state) * 0.3;
            problem->ends[s][l] = l + room < LAYERS ? l + room : LAYERS;
        }
        problem->stages[s] = (struct het_balance_stage){ .times = problem->times[s],
                                                         .times_count = kinds,
                                                         .ends = problem->ends[s],
                                                         .send_s = problem->send_s[s] };
    }
}

struct best {
    double bottleneck_s, sum_s;
    double limit_s;
};

/* All splits of the layers from `first` on over the stages from `s` on. */
static void try_all(const struct problem *problem, uint32_t s, uint32_t first, double sum,
                    double bottleneck, struct best *best)
{
    uint32_t stage_count = problem->layers.stage_count;
    if (s == stage_count) {
        if (first < LAYERS)
            return;
        best->bottleneck_s = fmin(best->bottleneck_s, bottleneck);
        if (bottleneck <= best->limit_s)
            best->sum_s = fmin(best->sum_s, sum);
        return;
    }
    for (uint32_t end = first + 1; first < LAYERS && end <= problem->ends[s][first];
         end++) {
        double forward = 0, backward = 0;
        for (size_t k = 0; k < problem->stages[s].times_count; k++) {
            forward = fmax(forward, problem->forward_s[s][k][end] -
                                        problem->forward_s[s][k][first]);
            backward = fmax(backward, problem->backward_s[s][k][end] -
                                          problem->backward_s[s][k][first]);
        }
        double ahead = s ? problem->send_s[s - 1][first] : 0;
        double behind = s + 1 < stage_count ? problem->send_s[s][end] : 0;
        double busy = forward + backward + 2 * (ahead + behind);
        try_all(problem, s + 1, end, sum + forward + backward + 2 * behind,
                fmax(bottleneck, busy), best);
    }
}

START_TEST(front_begins_at_the_least_bottleneck_and_ends_at_the_least_sum)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct het_arena *arena = het_arena_new();
        struct problem *problem = het_arena_alloc(arena, sizeof *problem);
        fill(problem, seed, 1 + (uint32_t)(seed % STAGES));
        struct best best = { HUGE_VAL, HUGE_VAL, HUGE_VAL };
        try_all(problem, 0, 0, 0, 0, &best);
        struct het_layer_front_point points[HET_LAYER_FRONT_MAX_POINTS];
        uint64_t work = 0;
        size_t count = het_layer_front_find(arena, &problem->layers, points, &work);
        ck_assert_msg((count > 0) == (best.bottleneck_s < HUGE_VAL), "seed %d",
                      (int)seed);
        if (count) {
            ck_assert_double_eq_tol(points[0].bottleneck_s, best.bottleneck_s, 1e-9);
            ck_assert_double_eq_tol(points[count - 1].sum_s, best.sum_s, 1e-9);
            best = (struct best){ HUGE_VAL, HUGE_VAL, best.bottleneck_s * (1 + 1e-9) };
            try_all(problem, 0, 0, 0, 0, &best);
            ck_assert_double_eq_tol(points[0].sum_s, best.sum_s, 1e-9);
        }
        for (size_t i = 1; i < count; i++) {
            ck_assert(points[i].sum_s < points[i - 1].sum_s);
            ck_assert(points[i].bottleneck_s > points[i - 1].bottleneck_s);
        }
        het_arena_free(arena);
    }
}
END_TEST

Suite *test_layer_front_suite(void)
{
    Suite *suite = suite_create("layer_front");
    TCase *cases = tcase_create("front");
    tcase_add_test(cases, front_begins_at_the_least_bottleneck_and_ends_at_the_least_sum);
    suite_add_tcase(suite, cases);
    return suite;
}
