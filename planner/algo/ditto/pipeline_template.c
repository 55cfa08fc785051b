#include "planner/algo/ditto/pipeline_template.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Times that differ by less are equal: prefix sums are rounded. */
#define EQUAL    1e-9
/* Weight of the stages' squares in a sum: enough to prefer even ones, too little to
 * outweigh a difference in time. */
#define EVENNESS 1e-7
#define HALVINGS 12

double het_pipeline_template_seconds(const double *stage_s, uint32_t stage_count,
                                     uint32_t microbatch_count)
{
    uint32_t slowest = 0;
    double sum = 0, rest = 0;
    for (uint32_t k = 0; k < stage_count; k++) {
        sum += stage_s[k];
        if (stage_s[k] >= stage_s[slowest] * (1 - EQUAL))
            slowest = k;
    }
    for (uint32_t k = slowest; k < stage_count; k++)
        rest += stage_s[k];
    double rounds = (double)microbatch_count - stage_count + slowest;
    return sum + rounds * stage_s[slowest] + rest;
}

/* How a cell was reached. */
struct step {
    uint32_t kind, first;
    bool was_before; /* the cell it comes from is before k* */
};

enum { BEFORE, BEHIND, PHASES };

#define NOT_ASKED UINT32_MAX

/* Layers that can be done when certain amounts are taken. */
struct range {
    uint32_t low, high; /* low > high: none */
};

struct space {
    const struct het_pipeline_template_question *question;
    struct het_arena *arena, *results;
    uint32_t layers;
    size_t *strides;        /* [resource]; the stages' is behind the last */
    size_t *kind_strides;   /* [kind]: index a stage of it adds */
    size_t vectors;         /* amounts taken */
    size_t vectors_a_stage; /* 0: stages are not counted */
    uint32_t *taken;        /* [vector][resource] */
    struct range *done;     /* [vector]: layers reached from the start */
    struct range *open;     /* [vector]: layers from which the end can be reached */
    /* [kind][layer]: farthest, earliest of it under the limit at hand; NOT_ASKED. */
    uint32_t *farthest, *earliest;
    double *values[PHASES]; /* [vector][layer] */
    struct step *steps[PHASES];
    double floor_s; /* sum over layers of the fastest kind's seconds */
    uint32_t stage_most;
    bool *has_slot; /* [slot]: such a template can be, whatever it takes */
    uint64_t cells;
};

/* ---- amounts ---- */

static bool lay_out(struct space *space)
{
    const struct het_pipeline_template_question *question = space->question;
    size_t count = question->resource_count, vectors = 1;
    space->strides = HET_ARENA_ARRAY(space->arena, size_t, count + 1);
    for (size_t r = 0; r <= count; r++) {
        space->strides[r] = vectors;
        if (r == count && !question->stage_limit)
            break;
        uint32_t most = r < count ? question->available[r] : question->stage_limit;
        if (r == count)
            space->vectors_a_stage = vectors;
        vectors *= (size_t)most + 1;
        if (vectors * (space->layers + 1) > HET_PIPELINE_TEMPLATE_MAX_CELLS)
            return false;
    }
    space->vectors = vectors;
    space->kind_strides = HET_ARENA_ARRAY(space->arena, size_t, question->kind_count);
    for (size_t k = 0; k < question->kind_count; k++) {
        const struct het_pipeline_template_kind *kind = &question->kinds[k];
        space->kind_strides[k] = space->strides[kind->resource] * kind->amount;
        if (space->vectors_a_stage)
            space->kind_strides[k] += space->vectors_a_stage;
    }
    return true;
}

static void fill_taken(struct space *space)
{
    const struct het_pipeline_template_question *question = space->question;
    size_t count = question->resource_count;
    space->taken = HET_ARENA_ARRAY(space->arena, uint32_t, space->vectors * count);
    for (size_t v = 0; v < space->vectors; v++)
        for (size_t r = 0; r < count; r++)
            space->taken[v * count + r] =
                (uint32_t)(v / space->strides[r] % ((size_t)question->available[r] + 1));
}

static uint32_t taken(const struct space *space, size_t vector, uint32_t resource)
{
    return space->taken[vector * space->question->resource_count + resource];
}

/* Whether the last stage of `vector` may be of `kind`; then where it came from. */
static bool comes_from(const struct space *space, size_t vector, size_t kind,
                       size_t *ret_from)
{
    const struct het_pipeline_template_kind *of = &space->question->kinds[kind];
    if (taken(space, vector, of->resource) < of->amount ||
        (space->vectors_a_stage && vector < space->vectors_a_stage))
        return false;
    *ret_from = vector - space->kind_strides[kind];
    return true;
}

/* Whether a stage of `kind` may follow `vector`; then where that leads. */
static bool leads_to(const struct space *space, size_t vector, size_t kind,
                     size_t *ret_to)
{
    const struct het_pipeline_template_question *question = space->question;
    const struct het_pipeline_template_kind *of = &question->kinds[kind];
    *ret_to = vector + space->kind_strides[kind];
    return taken(space, vector, of->resource) + of->amount <=
               question->available[of->resource] &&
           *ret_to < space->vectors;
}

static bool is_final(const struct space *space, size_t vector)
{
    const struct het_pipeline_template_question *question = space->question;
    for (uint32_t r = 0; question->use_all && r < question->resource_count; r++)
        if (taken(space, vector, r) < question->available[r])
            return false;
    return true;
}

/* ---- layers that can be reached with stages of at most `limit_s` ---- */

static double stage_s(const struct het_pipeline_template_kind *kind, uint32_t first,
                      uint32_t end)
{
    return kind->seconds[end] - kind->seconds[first];
}

/* The last end of a stage of `kind` that starts at `first`; `first` if there is none. */
static uint32_t farthest(const struct space *space,
                         const struct het_pipeline_template_kind *kind, uint32_t first,
                         double limit_s)
{
    uint32_t low = first, high = space->layers;
    if (kind->ends && kind->ends[first] < high)
        high = kind->ends[first];
    if (kind->most && high - first > kind->most)
        high = first + kind->most;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (stage_s(kind, first, middle) <= limit_s)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The first start of a stage of `kind` that ends at `end`; `end` if there is none. */
static uint32_t earliest(const struct het_pipeline_template_kind *kind, uint32_t end,
                         double limit_s)
{
    uint32_t low = kind->most && end > kind->most ? end - kind->most : 0, high = end;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        bool fits = stage_s(kind, middle, end) <= limit_s &&
                    (!kind->ends || kind->ends[middle] >= end);
        if (fits)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static uint32_t *asked(const struct space *space, uint32_t *layers, size_t kind,
                       uint32_t layer)
{
    return &layers[kind * ((size_t)space->layers + 1) + layer];
}

/* Many vectors ask for the same few layers. */
static void forget_asked(struct space *space)
{
    size_t bytes = space->question->kind_count * ((size_t)space->layers + 1) *
                   sizeof *space->farthest;
    memset(space->farthest, 0xff, bytes);
    memset(space->earliest, 0xff, bytes);
}

static void widen(struct range *range, uint32_t low, uint32_t high)
{
    if (low < range->low)
        range->low = low;
    if (high > range->high)
        range->high = high;
}

static const struct range nothing = { UINT32_MAX, 0 };

/* Both ends of what can be done: an interval around it. */
static void reach_forward(struct space *space, double limit_s)
{
    for (size_t v = 0; v < space->vectors; v++) {
        struct range *done = &space->done[v];
        *done = v ? nothing : (struct range){ 0, 0 };
        for (size_t k = 0; k < space->question->kind_count; k++) {
            const struct het_pipeline_template_kind *kind = &space->question->kinds[k];
            size_t from;
            if (!comes_from(space, v, k, &from) ||
                space->done[from].low > space->done[from].high)
                continue;
            uint32_t low = space->done[from].low + 1, start = space->done[from].high;
            if (start == space->layers)
                start--; /* stages that start before reach no farther */
            uint32_t *high = asked(space, space->farthest, k, start);
            if (*high == NOT_ASKED)
                *high = farthest(space, kind, start, limit_s);
            if (low <= *high)
                widen(done, low, *high);
        }
    }
}

static void reach_back(struct space *space, double limit_s)
{
    for (size_t v = space->vectors; v-- > 0;) {
        struct range *open = &space->open[v];
        *open = is_final(space, v) ? (struct range){ space->layers, space->layers }
                                   : nothing;
        for (size_t k = 0; k < space->question->kind_count; k++) {
            const struct het_pipeline_template_kind *kind = &space->question->kinds[k];
            size_t to;
            if (!leads_to(space, v, k, &to) ||
                space->open[to].low > space->open[to].high || !space->open[to].high)
                continue;
            uint32_t *low = asked(space, space->earliest, k, space->open[to].low);
            uint32_t high = space->open[to].high - 1;
            if (*low == NOT_ASKED)
                *low = earliest(kind, space->open[to].low, limit_s);
            if (*low <= high)
                widen(open, *low, high);
        }
    }
}

/* Whether all layers can perhaps be reached. */
static bool reach(struct space *space, double limit_s)
{
    uint64_t work = space->vectors * space->question->kind_count;
    forget_asked(space);
    reach_back(space, limit_s);
    space->cells += work;
    if (space->open[0].low > 0)
        return false;
    reach_forward(space, limit_s);
    space->cells += work;
    return true;
}

/* ---- the table for one time of the slowest stage ---- */

/* Layers that can be reached and from which the end can be. */
static struct range overlap(const struct space *space, size_t vector)
{
    struct range done = space->done[vector], open = space->open[vector];
    return (struct range){ done.low > open.low ? done.low : open.low,
                           done.high < open.high ? done.high : open.high };
}

struct cell {
    double value;
    struct step step;
};

static void improve(struct cell *cell, double value, size_t kind, uint32_t first,
                    bool was_before)
{
    if (value < cell->value)
        *cell = (struct cell){ value, { (uint32_t)kind, first, was_before } };
}

/* The last stage of `kind` and what was before it, from table row `from`. */
static void extend(struct space *space, size_t from, size_t index, uint32_t end,
                   double slowest_s, struct cell cells[PHASES])
{
    const struct het_pipeline_template_kind *kind = &space->question->kinds[index];
    struct range both = overlap(space, from);
    uint32_t low = both.low, high = both.high;
    uint32_t first = end - 1 < high ? end - 1 : high;
    if (kind->most && end > kind->most && low < end - kind->most)
        low = end - kind->most;
    const double *before = space->values[BEFORE] + from * (space->layers + 1);
    const double *behind = space->values[BEHIND] + from * (space->layers + 1);
    for (; first >= low; first--) {
        double seconds = stage_s(kind, first, end);
        if (seconds > slowest_s * (1 + EQUAL) || (kind->ends && kind->ends[first] < end))
            return;
        space->cells++;
        double uneven = EVENNESS * seconds * seconds / slowest_s;
        improve(&cells[BEFORE], before[first] + seconds + uneven, index, first, true);
        if (seconds >= slowest_s * (1 - EQUAL))
            improve(&cells[BEHIND], before[first] + 2 * seconds + uneven, index, first,
                    true);
        else
            improve(&cells[BEHIND], behind[first] + 2 * seconds - slowest_s + uneven,
                    index, first, false);
        if (!first)
            return;
    }
}

static void fill_row(struct space *space, size_t vector, double slowest_s)
{
    size_t row = vector * (space->layers + 1);
    struct range both = overlap(space, vector);
    uint32_t low = both.low, high = both.high;
    if (!vector) {
        space->values[BEFORE][0] = 0;
        space->values[BEHIND][0] = HUGE_VAL;
    }
    for (uint32_t end = low > 1 ? low : 1; end <= high; end++) {
        struct cell cells[PHASES] = { { HUGE_VAL, { 0 } }, { HUGE_VAL, { 0 } } };
        for (size_t k = 0; k < space->question->kind_count; k++) {
            size_t from;
            if (comes_from(space, vector, k, &from))
                extend(space, from, k, end, slowest_s, cells);
        }
        for (int phase = 0; phase < PHASES; phase++) {
            space->values[phase][row + end] = cells[phase].value;
            space->steps[phase][row + end] = cells[phase].step;
        }
    }
}

/* The stages that lead to `vector` with all layers done, in `results`. */
static struct het_pipeline_template trace(struct space *space, size_t vector)
{
    uint32_t count = 0, end = space->layers, phase = BEHIND;
    struct het_pipeline_template_stage *stages = HET_ARENA_ARRAY(
        space->results, struct het_pipeline_template_stage, space->stage_most);
    double *seconds = HET_ARENA_ARRAY(space->arena, double, space->stage_most);
    while (end) {
        struct step step = space->steps[phase][vector * (space->layers + 1) + end];
        stages[count++] = (struct het_pipeline_template_stage){ step.kind, step.first,
                                                                end - step.first };
        vector -= space->kind_strides[step.kind];
        end = step.first;
        phase = step.was_before ? BEFORE : BEHIND;
    }
    for (uint32_t k = 0; k < count / 2; k++) {
        struct het_pipeline_template_stage other = stages[k];
        stages[k] = stages[count - 1 - k];
        stages[count - 1 - k] = other;
    }
    for (uint32_t k = 0; k < count; k++)
        seconds[k] = stage_s(&space->question->kinds[stages[k].kind],
                             stages[k].first_layer,
                             stages[k].first_layer + stages[k].layer_count);
    return (struct het_pipeline_template){
        .seconds = het_pipeline_template_seconds(seconds, count,
                                                 space->question->microbatch_count),
        .stages = stages,
        .stage_count = count,
    };
}

/* Where results of as many stages as `vector` has are kept. */
static size_t slot_of(const struct space *space, size_t vector)
{
    return space->vectors_a_stage ? vector / space->vectors_a_stage : 0;
}

/* Keeps, for each number of stages (or all in results[0]), the best with `slowest_s`. */
static void solve(struct space *space, double slowest_s, double *worths,
                  struct het_pipeline_template *results)
{
    if (!reach(space, slowest_s * (1 + EQUAL)))
        return;
    for (size_t v = 0; v < space->vectors; v++)
        fill_row(space, v, slowest_s);
    for (size_t v = 0; v < space->vectors; v++) {
        struct range both = overlap(space, v);
        if (both.low > both.high || both.high < space->layers || !is_final(space, v))
            continue;
        double value = space->values[BEHIND][v * (space->layers + 1) + space->layers];
        value += (space->question->microbatch_count - 1.0) * slowest_s;
        size_t slot = slot_of(space, v);
        if (space->has_slot[slot] && value < worths[slot]) {
            worths[slot] = value;
            results[slot] = trace(space, v);
        }
    }
}

/* ---- times of the slowest stage ---- */

/* The least time above `than_s` that a stage can take; HUGE_VAL: none. */
static double next_slowest(const struct space *space, double than_s)
{
    double next_s = HUGE_VAL, limit_s = than_s * (1 + 2 * EQUAL);
    for (size_t k = 0; k < space->question->kind_count; k++) {
        const struct het_pipeline_template_kind *kind = &space->question->kinds[k];
        uint32_t end = 1;
        for (uint32_t first = 0; first < space->layers; first++) {
            if (end <= first)
                end = first + 1;
            while (end <= space->layers && stage_s(kind, first, end) <= limit_s)
                end++;
            if (end > space->layers)
                break; /* a later start takes less */
            if (!kind->most || end - first <= kind->most)
                next_s = fmin(next_s, stage_s(kind, first, end));
        }
    }
    return next_s;
}

/* The most that the slowest stage may take in a template that is worth it. */
static double most_slowest(const struct space *space)
{
    const struct het_pipeline_template_question *question = space->question;
    double rounds = (double)question->microbatch_count - space->stage_most, most_s = 0;
    for (size_t k = 0; k < question->kind_count; k++)
        most_s = fmax(most_s, question->kinds[k].seconds[space->layers]);
    if (question->worth_s > 0 && rounds >= 0)
        most_s = fmin(most_s, (question->worth_s - space->floor_s) / (rounds + 1));
    return question->pace_s > 0 ? fmin(most_s, question->pace_s) : most_s;
}

/* A time with which not all layers can be reached, near the least with which they can. */
static double least_slowest(struct space *space, double high_s)
{
    double low_s = 0;
    for (int i = 0; i < HALVINGS; i++) {
        double middle_s = (low_s + high_s) / 2;
        if (reach(space, middle_s))
            high_s = middle_s;
        else
            low_s = middle_s;
    }
    return low_s;
}

static void set_bounds(struct space *space)
{
    const struct het_pipeline_template_question *question = space->question;
    for (uint32_t l = 0; l < space->layers; l++) {
        double least_s = HUGE_VAL;
        for (size_t k = 0; k < question->kind_count; k++)
            least_s = fmin(least_s, stage_s(&question->kinds[k], l, l + 1));
        space->floor_s += least_s;
    }
    uint64_t amount = 0;
    for (size_t r = 0; r < question->resource_count; r++)
        amount += question->available[r];
    space->stage_most = amount < space->layers ? (uint32_t)amount : space->layers;
    if (question->stage_limit && question->stage_limit < space->stage_most)
        space->stage_most = question->stage_limit;
}

/* Whether no template of `stages` or fewer, with the slowest at `slowest_s` or more, can
 * be better than `worth`. */
static bool is_beyond(const struct space *space, uint32_t stages, double slowest_s,
                      double worth)
{
    double rounds = (double)space->question->microbatch_count - stages;
    return rounds >= 0 && space->floor_s + (rounds + 1) * slowest_s >= worth;
}

/* Whether the rest of the times of the slowest stage cannot bring anything. */
static bool is_done(const struct space *space, double slowest_s, bool by_count,
                    const double *worths)
{
    size_t slots = slot_of(space, space->vectors - 1) + 1;
    double best = HUGE_VAL;
    if (space->question->cell_limit && space->cells >= space->question->cell_limit)
        return true;
    for (size_t s = 0; s < slots; s++) {
        best = fmin(best, worths[s]);
        if (by_count && space->has_slot[s] &&
            !is_beyond(space, (uint32_t)s, slowest_s, worths[s]))
            return false;
    }
    return by_count || is_beyond(space, space->stage_most, slowest_s, best);
}

/* Notes which numbers of stages can be at all; whether any can. */
static bool find_slots(struct space *space)
{
    bool any = false;
    space->has_slot =
        HET_ARENA_ARRAY(space->arena, bool, slot_of(space, space->vectors - 1) + 1);
    if (!reach(space, HUGE_VAL))
        return false;
    for (size_t v = 0; v < space->vectors; v++)
        if (is_final(space, v) && space->done[v].low <= space->done[v].high &&
            space->done[v].high == space->layers &&
            slot_of(space, v) >= space->question->stage_least)
            any = space->has_slot[slot_of(space, v)] = true;
    return any;
}

static void search(struct space *space, bool by_count, double *worths,
                   struct het_pipeline_template *results)
{
    size_t cells = space->vectors * (space->layers + 1);
    fill_taken(space);
    space->done = HET_ARENA_ARRAY(space->arena, struct range, space->vectors);
    size_t layers = space->question->kind_count * ((size_t)space->layers + 1);
    space->farthest = HET_ARENA_ARRAY(space->arena, uint32_t, layers);
    space->earliest = HET_ARENA_ARRAY(space->arena, uint32_t, layers);
    space->open = HET_ARENA_ARRAY(space->arena, struct range, space->vectors);
    for (int phase = 0; phase < PHASES; phase++) {
        space->values[phase] = HET_ARENA_ARRAY(space->arena, double, cells);
        space->steps[phase] = HET_ARENA_ARRAY(space->arena, struct step, cells);
    }
    set_bounds(space);
    double most_s = most_slowest(space);
    if (most_s <= 0 || !reach(space, most_s) || !find_slots(space))
        return;
    double slowest_s = least_slowest(space, most_s) * (1 - 4 * EQUAL);
    while ((slowest_s = next_slowest(space, slowest_s)) <= most_s * (1 + EQUAL) &&
           !is_done(space, slowest_s, by_count, worths))
        solve(space, slowest_s, worths, results);
}

static uint32_t run(struct het_arena *arena,
                    const struct het_pipeline_template_question *question, bool by_count,
                    struct het_pipeline_template *results, uint64_t *cells)
{
    struct space space = { .question = question,
                           .arena = het_arena_new(),
                           .results = arena,
                           .layers = question->layer_count };
    size_t slots = question->stage_limit ? (size_t)question->stage_limit + 1 : 1;
    double *worths = HET_ARENA_ARRAY(space.arena, double, slots);
    for (size_t s = 0; s < slots; s++) {
        worths[s] = question->worth_s > 0 ? question->worth_s : HUGE_VAL;
        results[s] = (struct het_pipeline_template){ .seconds = HUGE_VAL };
    }
    if (lay_out(&space))
        search(&space, by_count, worths, results);
    *cells += space.cells;
    uint32_t found = 0;
    for (size_t s = 0; s < slots; s++)
        found += results[s].stage_count > 0;
    het_arena_free(space.arena);
    return found;
}

bool het_pipeline_template_find(struct het_arena *arena,
                                const struct het_pipeline_template_question *question,
                                struct het_pipeline_template *ret, uint64_t *cells)
{
    size_t slots = question->stage_limit ? (size_t)question->stage_limit + 1 : 1;
    auto_free struct het_pipeline_template *results = xcalloc(slots, sizeof *results);
    bool found = run(arena, question, false, results, cells);
    *ret = results[0];
    for (size_t s = 1; s < slots; s++)
        if (results[s].seconds < ret->seconds)
            *ret = results[s];
    return found;
}

uint32_t het_pipeline_template_list(struct het_arena *arena,
                                    const struct het_pipeline_template_question *question,
                                    struct het_pipeline_template *ret, uint64_t *cells)
{
    return run(arena, question, true, ret, cells);
}
