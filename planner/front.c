#include "planner/front.h"

#include <math.h>
#include <string.h>

struct walk {
    const struct het_balance_layers *question;
    uint32_t layers, stages;
    double *value;  /* [stages + 1][layers + 1]: least for layers 0 .. j-1 in s stages */
    uint32_t *from; /* [stages + 1][layers + 1]: where the last of them begins */
    uint64_t work;
};

static double stage_seconds(const struct het_balance_stage *stage, uint32_t first,
                            uint32_t end)
{
    double forward = 0, backward = 0;
    for (size_t k = 0; k < stage->times_count; k++) {
        const struct het_balance_times *times = &stage->times[k];
        forward = fmax(forward, times->forward_s[end] - times->forward_s[first]);
        backward = fmax(backward, times->backward_s[end] - times->backward_s[first]);
    }
    return forward + backward;
}

static double send_seconds(const struct walk *walk, uint32_t stage, uint32_t cut)
{
    const double *send_s = walk->question->stages[stage].send_s;
    return stage + 1 < walk->stages && send_s ? send_s[cut] : 0;
}

/* Values of stage `s` (ending at each layer) from those of the stage before. With
 * `by_sum` the least sum with no stage busier than `limit`, else the least bottleneck. */
static void extend(struct walk *walk, uint32_t s, bool by_sum, double limit)
{
    const struct het_balance_stage *stage = &walk->question->stages[s];
    uint32_t layers = walk->layers;
    const double *before = walk->value + (size_t)s * (layers + 1);
    double *after = walk->value + (size_t)(s + 1) * (layers + 1);
    uint32_t *from = walk->from + (size_t)(s + 1) * (layers + 1);
    uint32_t last_end = layers - (walk->stages - 1 - s);
    for (uint32_t end = s + 1; end <= last_end; end++) {
        double best = HUGE_VAL, behind = send_seconds(walk, s, end);
        uint32_t best_from = 0;
        for (uint32_t first = end; first-- > s;) {
            if (stage->ends && stage->ends[first] < end)
                break;
            walk->work++;
            double seconds = stage_seconds(stage, first, end);
            double ahead = s ? send_seconds(walk, s - 1, first) : 0;
            double busy = seconds + 2 * (ahead + behind);
            if (seconds > (by_sum ? limit : best))
                break;
            if (before[first] >= HUGE_VAL || busy > limit)
                continue;
            double value = by_sum ? before[first] + seconds + 2 * behind
                                  : fmax(before[first], busy);
            if (value < best) {
                best = value;
                best_from = first;
            }
        }
        after[end] = best;
        from[end] = best_from;
    }
}

/* The optimum, HUGE_VAL if there is none. */
static double run(struct walk *walk, bool by_sum, double limit)
{
    size_t row = walk->layers + (size_t)1;
    for (size_t i = 0; i < row * (walk->stages + (size_t)1); i++)
        walk->value[i] = HUGE_VAL;
    walk->value[0] = 0;
    for (uint32_t s = 0; s < walk->stages; s++)
        extend(walk, s, by_sum, limit);
    return walk->value[row * walk->stages + walk->layers];
}

static struct het_front_point read_point(struct walk *walk, struct het_arena *arena)
{
    uint32_t *cuts = HET_ARENA_ARRAY(arena, uint32_t, walk->stages + (size_t)1);
    cuts[walk->stages] = walk->layers;
    for (uint32_t s = walk->stages; s; s--)
        cuts[s - 1] = walk->from[s * (walk->layers + (size_t)1) + cuts[s]];
    struct het_front_point point = { .cuts = cuts };
    double ahead = 0;
    for (uint32_t s = 0; s < walk->stages; s++) {
        double behind = send_seconds(walk, s, cuts[s + 1]);
        double seconds = stage_seconds(&walk->question->stages[s], cuts[s], cuts[s + 1]);
        point.sum_s += seconds + 2 * behind;
        point.bottleneck_s = fmax(point.bottleneck_s, seconds + 2 * (ahead + behind));
        ahead = behind;
    }
    return point;
}

static size_t walk_up(struct walk *walk, struct het_arena *arena, double least,
                      struct het_front_point *ret_points)
{
    static const double steps[HET_FRONT_MAX_POINTS] = { 1 + 1e-9, 1.02, 1.06,
                                                        1.15,     1.4,  1e30 };
    size_t count = 0, limit = walk->stages > 1 ? HET_FRONT_MAX_POINTS : 1;
    for (size_t i = 0; i < limit; i++) {
        double sum = run(walk, true, least * steps[i]);
        if (sum >= HUGE_VAL || (count && sum >= ret_points[count - 1].sum_s * (1 - 1e-9)))
            continue;
        ret_points[count++] = read_point(walk, arena);
    }
    return count;
}

size_t het_front_find(struct het_arena *arena, const struct het_balance_layers *question,
                      struct het_front_point *ret_points, uint64_t *ret_work)
{
    struct walk walk = { .question = question,
                         .layers = question->layer_count,
                         .stages = question->stage_count };
    if (walk.stages > walk.layers)
        return 0;
    size_t cells = (walk.layers + (size_t)1) * (walk.stages + (size_t)1);
    walk.value = xcalloc(cells, sizeof *walk.value);
    walk.from = xcalloc(cells, sizeof *walk.from);
    double least = run(&walk, false, HUGE_VAL);
    size_t count = least < HUGE_VAL ? walk_up(&walk, arena, least, ret_points) : 0;
    *ret_work += walk.work;
    het_free_pointer(&walk.value);
    het_free_pointer(&walk.from);
    return count;
}
