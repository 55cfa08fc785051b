#include "planner/algo/metis/proportional_split.h"

#include "planner/base/arena.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLICES      HET_PROPORTIONAL_SPLIT_SLICES
/* The first pass leaves these to the last stage. */
#define LAST_SLICES (SLICES + 1)
/* Shares smaller than this are not moved, nor given out. */
#define LEAST_MOVED 0.01
#define LEAST_GIVEN 0.001
/* Of what the memory of a stage that is short allows, this much is used. */
#define SAFE_SHARE  0.9

/* Layers this alike count as equal: prefix sums round. */
#define ALIKE 1e-9

#define NOBODY (-1)

/* Slices or layers of one stage: first and last, and how many of those between. */
struct holding {
    int32_t first, last, count;
};

struct het_proportional_split {
    int32_t layer_count, slice_count;
    uint32_t stage_limit;
    double *layers;          /* [layer_count]: share of the model */
    double *slices;          /* [slice_count] */
    int32_t *slice_owner;    /* [slice_count] */
    int32_t *layer_owner;    /* [layer_count] */
    double *left;            /* [stage]: of its share */
    double *moved_left;      /* [stage] */
    struct holding *held;    /* [stage]: slices */
    struct holding *layered; /* [stage]: layers */
};

struct het_proportional_split *het_proportional_split_new(const double *layer_s,
                                                          uint32_t layer_count,
                                                          uint32_t stage_limit)
{
    struct het_proportional_split *space = xcalloc(1, sizeof *space);
    space->layer_count = (int32_t)layer_count;
    space->slice_count = (int32_t)(layer_count * SLICES);
    space->stage_limit = stage_limit;
    space->layers = xcalloc(layer_count, sizeof *space->layers);
    space->slices = xcalloc((size_t)layer_count * SLICES, sizeof *space->slices);
    space->slice_owner =
        xcalloc((size_t)layer_count * SLICES, sizeof *space->slice_owner);
    space->layer_owner = xcalloc(layer_count, sizeof *space->layer_owner);
    space->left = xcalloc(stage_limit, sizeof *space->left);
    space->moved_left = xcalloc(stage_limit, sizeof *space->moved_left);
    space->held = xcalloc(stage_limit, sizeof *space->held);
    space->layered = xcalloc(stage_limit, sizeof *space->layered);
    double sum = 0;
    for (uint32_t l = 0; l < layer_count; l++) {
        bool alike = l && fabs(layer_s[l] - space->layers[l - 1]) < ALIKE * layer_s[l];
        space->layers[l] = alike ? space->layers[l - 1] : layer_s[l];
        sum += space->layers[l];
    }
    for (uint32_t l = 0; l < layer_count; l++) {
        space->layers[l] /= sum;
        for (uint32_t i = 0; i < SLICES; i++)
            space->slices[l * SLICES + i] = space->layers[l] / SLICES;
    }
    return space;
}

void het_proportional_split_free(struct het_proportional_split *space)
{
    if (!space)
        return;
    xfree(space->layers);
    xfree(space->slices);
    xfree(space->slice_owner);
    xfree(space->layer_owner);
    xfree(space->left);
    xfree(space->moved_left);
    xfree(space->held);
    xfree(space->layered);
    xfree(space);
}

/* ---- slices ---- */

/* Slices from the front for all stages but the last. Returns the first that none of them
 * was offered. */
static int32_t fill_from_front(struct het_proportional_split *space, const double *speed,
                               int32_t stages)
{
    int32_t at = 0, end = space->slice_count - (int32_t)LAST_SLICES;
    for (int32_t s = 0; s < stages - 1; s++) {
        double left = speed[s];
        int32_t first = at;
        for (; at < end && left > space->slices[at]; at++) {
            left -= space->slices[at];
            space->slice_owner[at] = s;
        }
        space->left[s] = left;
        space->held[s] = (struct holding){ first, at - 1, at - first };
        if (at < end)
            space->slice_owner[at++] = NOBODY;
    }
    return at;
}

/* Slices from the back for the last stage, as far as no stage has them (from `start` on
 * none has). */
static void fill_from_back(struct het_proportional_split *space, double speed,
                           int32_t last, int32_t start)
{
    for (int32_t i = start; i < space->slice_count; i++)
        space->slice_owner[i] = NOBODY;
    int32_t at = space->slice_count;
    double left = speed;
    while (at && space->slice_owner[at - 1] == NOBODY &&
           (space->slice_count - at < (int32_t)SLICES || left > space->slices[at - 1])) {
        left -= space->slices[--at];
        space->slice_owner[at] = last;
    }
    space->left[last] = left;
    space->held[last] =
        (struct holding){ at, space->slice_count - 1, space->slice_count - at };
}

/* The stage whose slices all lie before slice `at`, nearest to it; else the first. Every
 * slice before `at` has an owner. */
static int32_t stage_before(const struct het_proportional_split *space, int32_t at)
{
    for (int32_t i = at - 1; i >= 0; i--) {
        int32_t owner = space->slice_owner[i];
        if (space->held[owner].last == i)
            return owner;
    }
    return 0;
}

/* The stage whose slices all lie behind slice `at`, nearest to it; else the last. */
static int32_t stage_behind(const struct het_proportional_split *space, int32_t at,
                            int32_t stages)
{
    for (int32_t i = at + 1; i < space->slice_count; i++) {
        int32_t owner = space->slice_owner[i];
        if (owner != NOBODY && space->held[owner].first == i)
            return owner;
    }
    return stages - 1;
}

static void give_slice(struct het_proportional_split *space, int32_t at, int32_t stage)
{
    struct holding *held = &space->held[stage];
    space->left[stage] -= space->slices[at];
    space->slice_owner[at] = stage;
    if (!held->count || at < held->first)
        held->first = at;
    if (!held->count || at > held->last)
        held->last = at;
    held->count++;
}

static void give_left_over(struct het_proportional_split *space, int32_t stages)
{
    for (int32_t at = 0; at < space->slice_count; at++) {
        if (space->slice_owner[at] != NOBODY)
            continue;
        int32_t low = stage_before(space, at), high = stage_behind(space, at, stages);
        int32_t best = low;
        for (int32_t s = low + 1; s <= high; s++)
            if (space->left[s] > space->left[best])
                best = s;
        give_slice(space, at, best);
    }
}

/* ---- layers ---- */

/* Who has more than half of the layer's slices. */
static int32_t majority(const int32_t *owners)
{
    for (uint32_t i = SLICES / 2; i < SLICES; i++) {
        uint32_t count = 0;
        for (uint32_t j = 0; j < SLICES; j++)
            count += owners[j] == owners[i];
        if (count > SLICES / 2)
            return owners[i];
    }
    return NOBODY;
}

static void join_layers(struct het_proportional_split *space, const double *speed,
                        int32_t stages)
{
    memset(space->layered, 0, (size_t)stages * sizeof *space->layered);
    for (int32_t l = 0; l < space->layer_count; l++) {
        int32_t owner = majority(space->slice_owner + l * (int32_t)SLICES);
        space->layer_owner[l] = owner;
        if (owner == NOBODY)
            continue;
        struct holding *layered = &space->layered[owner];
        if (!layered->count++)
            layered->first = l;
        layered->last = l;
    }
    for (int32_t s = 0; s < stages; s++) {
        const struct holding *layered = &space->layered[s];
        double sum = 0;
        for (int32_t l = layered->first; layered->count && l <= layered->last; l++)
            sum += space->layers[l];
        space->left[s] = speed[s] - sum;
    }
}

/* Takes the last (or first) layer off a stage; returns it. */
static int32_t take_layer(struct het_proportional_split *space, int32_t stage,
                          bool is_last)
{
    struct holding *layered = &space->layered[stage];
    int32_t layer = is_last ? layered->last : layered->first, step = is_last ? -1 : 1;
    space->layer_owner[layer] = NOBODY;
    if (--layered->count) {
        int32_t at = layer;
        while (space->layer_owner[at] != stage)
            at += step;
        *(is_last ? &layered->last : &layered->first) = at;
    }
    return layer;
}

static void give_layer(struct het_proportional_split *space, int32_t stage, int32_t layer)
{
    struct holding *layered = &space->layered[stage];
    space->layer_owner[layer] = stage;
    if (!layered->count || layer < layered->first)
        layered->first = layer;
    if (!layered->count || layer > layered->last)
        layered->last = layer;
    layered->count++;
}

static int32_t find_most(const double *left, int32_t stages)
{
    int32_t most = 0;
    for (int32_t s = 1; s < stages; s++)
        if (left[s] > left[most])
            most = s;
    return most;
}

/* The neighbour of `stage` with least left, if it can spare a layer; else NOBODY. */
static int32_t find_giver(const struct het_proportional_split *space, int32_t stage,
                          int32_t stages)
{
    int32_t giver = stage ? stage - 1 : NOBODY;
    if (stage + 1 < stages &&
        (giver == NOBODY || space->left[stage + 1] < space->left[giver]))
        giver = stage + 1;
    return giver == NOBODY || space->layered[giver].count <= 1 ? NOBODY : giver;
}

static void move_layers(struct het_proportional_split *space, int32_t stages)
{
    double *left = space->left, *moved_left = space->moved_left;
    for (uint32_t move = 0; move < HET_PROPORTIONAL_SPLIT_MOVES; move++) {
        int32_t taker = find_most(left, stages);
        int32_t giver = find_giver(space, taker, stages);
        if (giver == NOBODY)
            return;
        const struct holding *layered = &space->layered[giver];
        double share = space->layers[giver < taker ? layered->last : layered->first];
        memcpy(moved_left, left, (size_t)stages * sizeof *left);
        moved_left[taker] -= share;
        moved_left[giver] += share;
        if (moved_left[find_most(moved_left, stages)] > left[taker])
            return;
        left[taker] = moved_left[taker];
        left[giver] = moved_left[giver];
        give_layer(space, taker, take_layer(space, giver, giver < taker));
    }
}

bool het_proportional_split_whole(struct het_proportional_split *space,
                                  const double *speed, uint32_t stage_count,
                                  uint32_t *ret_cuts)
{
    int32_t stages = (int32_t)stage_count;
    bool is_whole = true;
    int32_t start = fill_from_front(space, speed, stages);
    fill_from_back(space, speed[stages - 1], stages - 1, start);
    give_left_over(space, stages);
    join_layers(space, speed, stages);
    move_layers(space, stages);
    ret_cuts[0] = 0;
    for (int32_t s = 0; s < stages; s++) {
        ret_cuts[s + 1] = ret_cuts[s] + (uint32_t)space->layered[s].count;
        is_whole &= space->layered[s].count > 0;
    }
    return is_whole && ret_cuts[stages] == (uint32_t)space->layer_count;
}

/* ---- memory ---- */

/* Gives `wanted` out over the stages with something to spare, in proportion to their
 * speed, into `given`. */
static void give_shares(const double *speed, double *spare, double *given, double wanted,
                        uint32_t stages)
{
    while (wanted > LEAST_MOVED) {
        double total = 0;
        for (uint32_t s = 0; s < stages; s++)
            total += spare[s] > LEAST_GIVEN ? speed[s] : 0;
        if (total <= 0)
            return;
        for (uint32_t s = 0; s < stages; s++) {
            double share = spare[s] > LEAST_GIVEN ? wanted * (speed[s] / total) : 0;
            if (share > spare[s])
                share = spare[s];
            given[s] += share;
            spare[s] -= share;
            wanted -= share;
        }
    }
}

bool het_proportional_split_shift(struct het_proportional_split *space, double *speed,
                                  const double *needed, const double *room,
                                  uint32_t stage_count)
{
    double *spare = space->left, *given = space->moved_left;
    double wanted = 0, total_spare = 0;
    for (uint32_t s = 0; s < stage_count; s++) {
        given[s] = spare[s] = 0;
        if (room[s] > needed[s]) {
            spare[s] = speed[s] * room[s] / needed[s] - speed[s];
            total_spare += spare[s];
        } else {
            wanted += speed[s] - speed[s] * (room[s] / needed[s]) * SAFE_SHARE;
        }
    }
    if (total_spare < wanted)
        return false;
    give_shares(speed, spare, given, wanted, stage_count);
    for (uint32_t s = 0; s < stage_count; s++) {
        bool is_short = !(room[s] > needed[s]);
        double kept = is_short ? speed[s] * (room[s] / needed[s]) * SAFE_SHARE : speed[s];
        speed[s] = given[s] + kept;
    }
    return true;
}
