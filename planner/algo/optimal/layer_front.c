#include "planner/algo/optimal/layer_front.h"

#include <math.h>
#include <string.h>

struct walk {
    const struct het_balance_layers *question;
    uint32_t layers, stages;
    double *value;   /* [stages + 1][layers + 1]: least for layers 0 .. j-1 in s stages */
    uint32_t *from;  /* [stages + 1][layers + 1]: where the last of them begins */
    double *seconds; /* [stages][layers + 1]: prefix sums, of stages of one kind */
    uint64_t work;
};

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Prefix sums, forward and backward, of a stage whose replicas are all alike; NULL of the
 * others. */
static const double *sums_of(const struct walk *walk, uint32_t stage)
{
    return walk->question->stages[stage].times_count == 1
               ? walk->seconds + (size_t)stage * (walk->layers + 1)
               : NULL;
}

static double send_seconds(const struct walk *walk, uint32_t stage, uint32_t cut)
{
    const double *send_s = walk->question->stages[stage].send_s;
    return stage + 1 < walk->stages && send_s ? send_s[cut] : 0;
}

/* The best way to end stage `s` before layer `end`. With `by_sum` the least sum with no
 * stage busier than `limit`, else the least bottleneck. `least_first`: the first layer
 * that the stages before can end at. */
static void end_stage(struct walk *walk, uint32_t s, uint32_t end, uint32_t least_first,
                      bool by_sum, double limit)
{
    const struct het_balance_stage *stage = &walk->question->stages[s];
    size_t row = walk->layers + (size_t)1;
    const double *before = walk->value + s * row, *sums = sums_of(walk, s);
    const double *ahead_s = s ? walk->question->stages[s - 1].send_s : NULL;
    double best = HUGE_VAL, behind = send_seconds(walk, s, end);
    uint32_t best_from = 0, first = end;
    while (first-- > least_first) {
        if (stage->ends && stage->ends[first] < end)
            break;
        double seconds = sums ? sums[end] - sums[first]
                              : het_balance_stage_seconds(stage, first, end);
        if (seconds > (by_sum ? limit : best))
            break;
        double busy = seconds + 2 * ((ahead_s ? ahead_s[first] : 0) + behind);
        if (busy > limit)
            continue;
        double value = by_sum ? before[first] + seconds + 2 * behind
                              : larger(before[first], busy);
        if (value < best) {
            best = value;
            best_from = first;
        }
    }
    walk->work += end - first;
    walk->value[(s + 1) * row + end] = best;
    walk->from[(s + 1) * row + end] = best_from;
}

/* The optimum, HUGE_VAL if there is none. */
static double run(struct walk *walk, bool by_sum, double limit)
{
    size_t row = walk->layers + (size_t)1;
    walk->value[0] = 0;
    uint32_t least_first = 0;
    for (uint32_t s = 0; s < walk->stages; s++) {
        uint32_t last_end = walk->layers - (walk->stages - 1 - s);
        uint32_t least_end = walk->layers + 1;
        if (s + 1 == walk->stages)
            walk->value[(s + 1) * row + walk->layers] = HUGE_VAL;
        for (uint32_t end = s + 1; end <= last_end; end++) {
            walk->value[(s + 1) * row + end] = HUGE_VAL;
            if (end <= least_first || (s + 1 == walk->stages && end < last_end))
                continue;
            end_stage(walk, s, end, least_first, by_sum, limit);
            if (least_end > walk->layers && walk->value[(s + 1) * row + end] < HUGE_VAL)
                least_end = end;
        }
        if (least_end > walk->layers)
            return HUGE_VAL;
        least_first = least_end;
    }
    return walk->value[row * walk->stages + walk->layers];
}

static struct het_layer_front_point read_point(struct walk *walk, struct het_arena *arena)
{
    uint32_t *cuts = HET_ARENA_ARRAY(arena, uint32_t, walk->stages + (size_t)1);
    cuts[walk->stages] = walk->layers;
    for (uint32_t s = walk->stages; s; s--)
        cuts[s - 1] = walk->from[s * (walk->layers + (size_t)1) + cuts[s]];
    struct het_layer_front_point point = { .cuts = cuts };
    het_balance_pipeline(walk->question->stages, walk->stages, cuts, &point.sum_s,
                         &point.bottleneck_s);
    return point;
}

static size_t walk_up(struct walk *walk, struct het_arena *arena, double least,
                      struct het_layer_front_point *ret_points)
{
    static const double steps[HET_LAYER_FRONT_MAX_POINTS] = { 1 + 1e-9, 1.02, 1.06,
                                                              1.15,     1.4,  1e30 };
    size_t count = 0, limit = walk->stages > 1 ? HET_LAYER_FRONT_MAX_POINTS : 1;
    for (size_t i = 0; i < limit && walk->work < HET_BALANCE_MAX_PAIRS; i++) {
        double sum = run(walk, true, least * steps[i]);
        if (sum >= HUGE_VAL || (count && sum >= ret_points[count - 1].sum_s * (1 - 1e-9)))
            continue;
        ret_points[count++] = read_point(walk, arena);
    }
    return count;
}

size_t het_layer_front_find(struct het_arena *arena,
                            const struct het_balance_layers *question,
                            struct het_layer_front_point *ret_points, uint64_t *ret_work)
{
    struct walk walk = { .question = question,
                         .layers = question->layer_count,
                         .stages = question->stage_count };
    if (walk.stages > walk.layers)
        return 0;
    size_t row = walk.layers + (size_t)1, cells = row * (walk.stages + (size_t)1);
    walk.value = xcalloc(cells, sizeof *walk.value);
    walk.from = xcalloc(cells, sizeof *walk.from);
    walk.seconds = xcalloc(cells, sizeof *walk.seconds);
    for (size_t i = 0; i < cells; i++)
        walk.value[i] = HUGE_VAL;
    for (uint32_t s = 0; s < walk.stages; s++)
        for (uint32_t l = 0; l <= walk.layers && sums_of(&walk, s); l++)
            walk.seconds[s * row + l] = question->stages[s].times[0].forward_s[l] +
                                        question->stages[s].times[0].backward_s[l];
    double least = run(&walk, false, HUGE_VAL);
    size_t count = least < HUGE_VAL ? walk_up(&walk, arena, least, ret_points) : 0;
    *ret_work += walk.work;
    het_free_pointer(&walk.value);
    het_free_pointer(&walk.from);
    het_free_pointer(&walk.seconds);
    return count;
}
