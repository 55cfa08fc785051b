#include "planner/algo/ditto/equal_gpus.h"

#include <math.h>
#include <stdlib.h>

/* Weights beyond this mean that a type is of no use. */
#define MAX_WEIGHT 65536.0

uint32_t het_equal_gpus_weight(double weakest_s, double type_s)
{
    double weight = round(weakest_s / type_s);
    return weight < 1 ? 1 : weight > MAX_WEIGHT ? (uint32_t)MAX_WEIGHT : (uint32_t)weight;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* p(d) */
static double folded_s(double weakest_s, uint32_t gpus,
                       const struct het_equal_gpus_communication *communication)
{
    uint32_t full = gpus / communication->node_gpus;
    uint32_t rest = gpus - full * communication->node_gpus;
    uint32_t borders = full + (rest > 0) - 1;
    double inside_s = rest * communication->inside_s[rest] +
                      (double)full * communication->node_gpus *
                          communication->inside_s[communication->node_gpus];
    return weakest_s / gpus + borders * communication->across_s +
           communication->layer_count * inside_s / gpus;
}

uint32_t het_equal_gpus_weight_with_communication(
    double weakest_s, double type_s,
    const struct het_equal_gpus_communication *communication)
{
    uint32_t most = het_equal_gpus_weight(weakest_s, type_s), best = 1;
    double best_error_s = HUGE_VAL;
    for (uint32_t gpus = 1; gpus <= most; gpus++) {
        double error_s = fabs(folded_s(weakest_s, gpus, communication) - type_s);
        if (error_s < best_error_s) {
            best_error_s = error_s;
            best = gpus;
        }
    }
    return best;
}

uint64_t het_equal_gpus_gpu_count(const struct het_equal_gpus_question *question)
{
    uint64_t count = 0;
    for (size_t t = 0; t < question->type_count; t++)
        count += (uint64_t)question->types[t].gpu_count * question->types[t].weight;
    return count;
}

/* ---- by dynamic program ---- */

/* The weakest type's seconds on one GPU; where a stage needs several, their sum. */
static const double *virtual_seconds(struct het_arena *arena,
                                     const struct het_equal_gpus_question *question)
{
    const struct het_equal_gpus_kind *least = NULL;
    for (size_t k = 0; k < question->kind_count; k++) {
        const struct het_equal_gpus_kind *kind = &question->kinds[k];
        if (kind->type == question->weakest && (!least || kind->gpus < least->gpus))
            least = kind;
    }
    if (!least)
        return NULL;
    double *seconds = HET_ARENA_ARRAY(arena, double, (size_t)question->layer_count + 1);
    for (uint32_t l = 0; l <= question->layer_count; l++)
        seconds[l] = least->seconds[l] * least->gpus;
    return seconds;
}

/* Layers at which the `stage_count` stages of the virtual template start, and the end;
 * NULL: there is none. */
static uint32_t *virtual_cuts(struct het_arena *arena,
                              const struct het_equal_gpus_question *question,
                              uint32_t stage_count, uint64_t *cells)
{
    const struct het_pipeline_template_kind kind = {
        .amount = 1, .seconds = virtual_seconds(arena, question)
    };
    const struct het_pipeline_template_question virtual = {
        .layer_count = question->layer_count,
        .kinds = &kind,
        .kind_count = 1,
        .available = &stage_count,
        .resource_count = 1,
        .use_all = true,
        .microbatch_count = question->microbatch_count > stage_count
                                ? question->microbatch_count
                                : stage_count,
        .cell_limit = question->cell_limit,
    };
    struct het_pipeline_template template;
    if (!kind.seconds || !het_pipeline_template_find(arena, &virtual, &template, cells))
        return NULL;
    uint32_t *cuts = HET_ARENA_ARRAY(arena, uint32_t, (size_t)stage_count + 1);
    for (uint32_t s = 0; s < stage_count; s++)
        cuts[s] = template.stages[s].first_layer;
    cuts[stage_count] = question->layer_count;
    return cuts;
}

/* `kind` over virtual stages instead of layers. */
static struct het_pipeline_template_kind
over_stages(struct het_arena *arena, const struct het_equal_gpus_question *question,
            const struct het_equal_gpus_kind *kind, const uint32_t *cuts,
            uint32_t stage_count)
{
    double *seconds = HET_ARENA_ARRAY(arena, double, (size_t)stage_count + 1);
    uint32_t *ends = kind->ends ? HET_ARENA_ARRAY(arena, uint32_t, stage_count) : NULL;
    uint32_t end = 0;
    for (uint32_t s = 0; s <= stage_count; s++)
        seconds[s] = kind->seconds[cuts[s]];
    for (uint32_t s = 0; ends && s < stage_count; s++) {
        if (end < s)
            end = s;
        while (end < stage_count && cuts[end + 1] <= kind->ends[cuts[s]])
            end++;
        ends[s] = end;
    }
    return (struct het_pipeline_template_kind){
        .resource = kind->type,
        .amount = kind->gpus,
        .most = kind->gpus * question->types[kind->type].weight,
        .seconds = seconds,
        .ends = ends,
    };
}

static uint32_t *gpu_counts(struct het_arena *arena,
                            const struct het_equal_gpus_question *question)
{
    uint32_t *counts = HET_ARENA_ARRAY(arena, uint32_t, question->type_count);
    for (size_t t = 0; t < question->type_count; t++)
        counts[t] = question->types[t].gpu_count;
    return counts;
}

/* The best way to give the stages that start at `cuts` to the GPUs, if it is better than
 * `worth_s` (0: any). */
static bool recover_stages(struct het_arena *arena,
                           const struct het_equal_gpus_question *question,
                           const uint32_t *cuts, uint32_t stage_count, double worth_s,
                           struct het_pipeline_template *ret, uint64_t *cells)
{
    struct het_pipeline_template_kind *kinds =
        HET_ARENA_ARRAY(arena, struct het_pipeline_template_kind, question->kind_count);
    for (size_t k = 0; k < question->kind_count; k++)
        kinds[k] = over_stages(arena, question, &question->kinds[k], cuts, stage_count);
    const struct het_pipeline_template_question recovery = {
        .layer_count = stage_count,
        .kinds = kinds,
        .kind_count = question->kind_count,
        .available = gpu_counts(arena, question),
        .resource_count = question->type_count,
        .stage_limit = question->stage_limit,
        .microbatch_count = question->microbatch_count,
        .worth_s = worth_s,
        .pace_s = question->pace_s,
        .cell_limit = question->cell_limit,
    };
    struct het_pipeline_template found;
    if (!het_pipeline_template_find(arena, &recovery, &found, cells))
        return false;
    struct het_pipeline_template_stage *stages =
        HET_ARENA_ARRAY(arena, struct het_pipeline_template_stage, found.stage_count);
    for (uint32_t s = 0; s < found.stage_count; s++) {
        const struct het_pipeline_template_stage *merged = &found.stages[s];
        uint32_t first = cuts[merged->first_layer];
        uint32_t end = cuts[merged->first_layer + merged->layer_count];
        stages[s] =
            (struct het_pipeline_template_stage){ merged->kind, first, end - first };
    }
    found.stages = stages;
    *ret = found;
    return true;
}

bool het_equal_gpus_recover(struct het_arena *arena,
                            const struct het_equal_gpus_question *question,
                            struct het_pipeline_template *ret, uint64_t *cells)
{
    uint64_t gpus = het_equal_gpus_gpu_count(question), before = *cells;
    uint32_t most = gpus < question->layer_count ? (uint32_t)gpus : question->layer_count;
    bool found = false;
    for (uint32_t stages = most; stages && stages >= most / 2; stages--) {
        const uint32_t *cuts = virtual_cuts(arena, question, stages, cells);
        if (cuts && recover_stages(arena, question, cuts, stages,
                                   found ? ret->seconds : 0, ret, cells))
            found = true;
        if (question->cell_limit && *cells - before >= question->cell_limit)
            break;
    }
    return found;
}

/* ---- greedily ---- */

struct greedy {
    const struct het_equal_gpus_question *question;
    const struct het_pipeline_template *virtual;
    const uint32_t *virtual_gpus; /* [stage] */
    uint32_t *kinds;              /* [stage]: UINT32_MAX: not given yet */
    double *seconds;              /* [stage] */
};

/* The fastest kind of `gpus` GPUs of `type` in which the stage's layers fit. */
static bool find_kind(const struct het_equal_gpus_question *question, uint32_t type,
                      uint32_t gpus, const struct het_pipeline_template_stage *stage,
                      uint32_t *ret_kind, double *ret_s)
{
    uint32_t first = stage->first_layer, end = first + stage->layer_count;
    bool found = false;
    for (uint32_t k = 0; k < question->kind_count; k++) {
        const struct het_equal_gpus_kind *kind = &question->kinds[k];
        double seconds = kind->seconds[end] - kind->seconds[first];
        if (kind->type != type || kind->gpus != gpus ||
            (kind->ends && kind->ends[first] < end) || (found && seconds >= *ret_s))
            continue;
        found = true;
        *ret_kind = k;
        *ret_s = seconds;
    }
    return found;
}

/* Gives one stage to GPUs of `type`, of which `*left` are left. */
static bool give_stage(struct greedy *greedy, uint32_t type, uint32_t *left)
{
    const struct het_equal_gpus_question *question = greedy->question;
    uint32_t count = greedy->virtual->stage_count, best = count, best_kind = 0;
    double best_s = HUGE_VAL, best_stage_s = 0;
    for (uint32_t j = 0; j < count; j++) {
        uint32_t weight = question->types[type].weight, kind = 0;
        uint32_t gpus = (greedy->virtual_gpus[j] + weight - 1) / weight;
        double stage_s = 0, before_s = greedy->seconds[j];
        if (greedy->kinds[j] != UINT32_MAX || gpus > *left ||
            !find_kind(question, type, gpus, &greedy->virtual->stages[j], &kind,
                       &stage_s))
            continue;
        greedy->seconds[j] = stage_s;
        double seconds = het_pipeline_template_seconds(greedy->seconds, count,
                                                       question->microbatch_count);
        greedy->seconds[j] = before_s;
        if (seconds < best_s) {
            best_s = seconds;
            best = j;
            best_kind = kind;
            best_stage_s = stage_s;
        }
    }
    if (best == count)
        return false;
    greedy->kinds[best] = best_kind;
    greedy->seconds[best] = best_stage_s;
    *left -= question->kinds[best_kind].gpus;
    return true;
}

/* Types by weight, the strongest first; of equal ones the weakest type last. */
static uint32_t *strongest_first(struct het_arena *arena,
                                 const struct het_equal_gpus_question *question)
{
    uint32_t *order = HET_ARENA_ARRAY(arena, uint32_t, question->type_count);
    for (uint32_t t = 0; t < question->type_count; t++) {
        uint32_t at = t;
        for (; at; at--) {
            uint32_t before = order[at - 1];
            if (question->types[before].weight > question->types[t].weight ||
                (question->types[before].weight == question->types[t].weight &&
                 before != question->weakest))
                break;
            order[at] = before;
        }
        order[at] = t;
    }
    return order;
}

static double slowest(const struct greedy *greedy)
{
    double slowest_s = 0;
    for (uint32_t j = 0; j < greedy->virtual->stage_count; j++)
        slowest_s = fmax(slowest_s, greedy->seconds[j]);
    return slowest_s;
}

/* Recovers one template; `gpus[kind]` are the virtual GPUs of its kinds. */
static bool recover_one(struct het_arena *arena,
                        const struct het_equal_gpus_question *question,
                        const struct het_pipeline_template *virtual,
                        const struct het_pipeline_template_kind *virtual_kinds,
                        struct het_pipeline_template *ret)
{
    uint32_t count = virtual->stage_count;
    uint32_t *virtual_gpus = HET_ARENA_ARRAY(arena, uint32_t, count);
    struct greedy greedy = { .question = question,
                             .virtual = virtual,
                             .virtual_gpus = virtual_gpus,
                             .kinds = HET_ARENA_ARRAY(arena, uint32_t, count),
                             .seconds = HET_ARENA_ARRAY(arena, double, count) };
    for (uint32_t j = 0; j < count; j++) {
        const struct het_pipeline_template_stage *stage = &virtual->stages[j];
        const struct het_pipeline_template_kind *kind = &virtual_kinds[stage->kind];
        virtual_gpus[j] = kind->amount;
        greedy.kinds[j] = UINT32_MAX;
        greedy.seconds[j] = kind->seconds[stage->first_layer + stage->layer_count] -
                            kind->seconds[stage->first_layer];
    }
    const uint32_t *order = strongest_first(arena, question);
    uint32_t given = 0;
    for (size_t i = 0; i < question->type_count; i++) {
        uint32_t left = question->types[order[i]].gpu_count;
        while (left && give_stage(&greedy, order[i], &left))
            given++;
    }
    if (given < count || (question->pace_s > 0 && slowest(&greedy) > question->pace_s))
        return false;
    struct het_pipeline_template_stage *stages =
        HET_ARENA_ARRAY(arena, struct het_pipeline_template_stage, count);
    for (uint32_t j = 0; j < count; j++) {
        stages[j] = virtual->stages[j];
        stages[j].kind = greedy.kinds[j];
    }
    *ret = (struct het_pipeline_template){
        .seconds = het_pipeline_template_seconds(greedy.seconds, count,
                                                 question->microbatch_count),
        .stages = stages,
        .stage_count = count,
    };
    return true;
}

static bool is_power_of_two(uint32_t number)
{
    return number && !(number & (number - 1));
}

/* Kinds of the weakest type with a power of two of GPUs. */
static size_t virtual_kinds(struct het_arena *arena,
                            const struct het_equal_gpus_question *question,
                            struct het_pipeline_template_kind **ret)
{
    size_t count = 0;
    *ret =
        HET_ARENA_ARRAY(arena, struct het_pipeline_template_kind, question->kind_count);
    for (size_t k = 0; k < question->kind_count; k++) {
        const struct het_equal_gpus_kind *kind = &question->kinds[k];
        if (kind->type == question->weakest && is_power_of_two(kind->gpus))
            (*ret)[count++] =
                (struct het_pipeline_template_kind){ .amount = kind->gpus,
                                                     .seconds = kind->seconds };
    }
    return count;
}

/* As many stages of the most virtual GPUs have room on the real ones. */
static uint32_t certain_stages(const struct het_equal_gpus_question *question,
                               const struct het_pipeline_template_question *virtual)
{
    uint32_t largest = 1, stages = 0;
    for (size_t k = 0; k < virtual->kind_count; k++)
        if (virtual->kinds[k].amount > largest)
            largest = virtual->kinds[k].amount;
    for (size_t t = 0; t < question->type_count; t++) {
        uint32_t weight = question->types[t].weight;
        stages += question->types[t].gpu_count / ((largest + weight - 1) / weight);
    }
    return stages;
}

/* Recovers the first that it can of the `count` templates in `list`, by their T. */
static bool recover_first(struct het_arena *arena,
                          const struct het_equal_gpus_question *question,
                          struct het_pipeline_template *list, uint32_t count,
                          const struct het_pipeline_template_kind *kinds,
                          struct het_pipeline_template *ret)
{
    for (; count; count--) {
        struct het_pipeline_template *best = NULL;
        for (uint32_t s = 1; s <= question->layer_count; s++)
            if (list[s].seconds < (best ? best->seconds : HUGE_VAL))
                best = &list[s];
        if (!best || recover_one(arena, question, best, kinds, ret))
            return best;
        best->seconds = HUGE_VAL;
    }
    return false;
}

bool het_equal_gpus_recover_greedily(struct het_arena *arena,
                                     const struct het_equal_gpus_question *question,
                                     struct het_pipeline_template *ret, uint64_t *cells)
{
    uint64_t gpus = het_equal_gpus_gpu_count(question), real_gpus = 0;
    if (!gpus || gpus > UINT32_MAX)
        return false;
    for (size_t t = 0; t < question->type_count; t++)
        real_gpus += question->types[t].gpu_count;
    uint64_t most = real_gpus < question->layer_count ? real_gpus : question->layer_count;
    if (question->stage_limit && question->stage_limit < most)
        most = question->stage_limit;
    uint32_t available = (uint32_t)gpus;
    struct het_pipeline_template_kind *kinds;
    struct het_pipeline_template_question virtual = {
        .layer_count = question->layer_count,
        .kind_count = virtual_kinds(arena, question, &kinds),
        .available = &available,
        .resource_count = 1,
        .use_all = true,
        .stage_limit = (uint32_t)most,
        .microbatch_count = question->microbatch_count,
        .cell_limit = question->cell_limit,
    };
    virtual.kinds = kinds;
    virtual.stage_least = least(certain_stages(question, &virtual), (uint32_t)most);
    struct het_pipeline_template *list =
        HET_ARENA_ARRAY(arena, struct het_pipeline_template, question->layer_count + 1);
    for (uint32_t s = 0; s <= question->layer_count; s++)
        list[s].seconds = HUGE_VAL;
    for (int all = 1; all >= 0; all--) {
        virtual.use_all = all;
        uint32_t count = het_pipeline_template_list(arena, &virtual, list, cells);
        if (recover_first(arena, question, list, count, kinds, ret))
            return true;
    }
    return false;
}

/* ---- without folding ---- */

bool het_equal_gpus_extend(struct het_arena *arena,
                           const struct het_equal_gpus_question *question,
                           struct het_pipeline_template *ret, uint64_t *cells)
{
    struct het_pipeline_template_kind *kinds =
        HET_ARENA_ARRAY(arena, struct het_pipeline_template_kind, question->kind_count);
    for (size_t k = 0; k < question->kind_count; k++)
        kinds[k] = (struct het_pipeline_template_kind){
            .resource = question->kinds[k].type,
            .amount = question->kinds[k].gpus,
            .seconds = question->kinds[k].seconds,
            .ends = question->kinds[k].ends,
        };
    const struct het_pipeline_template_question all = {
        .layer_count = question->layer_count,
        .kinds = kinds,
        .kind_count = question->kind_count,
        .available = gpu_counts(arena, question),
        .resource_count = question->type_count,
        .stage_limit = question->stage_limit,
        .microbatch_count = question->microbatch_count,
        .pace_s = question->pace_s,
        .cell_limit = question->cell_limit,
    };
    return het_pipeline_template_find(arena, &all, ret, cells);
}
