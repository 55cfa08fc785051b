#include "planner/algo/metis/paper_walk.h"

#include "planner/algo/metis/proportional_split.h"
#include "planner/cost/memory.h"

#include <math.h>
#include <string.h>

/* Strategies cost less than splits. */
#define STRATEGIES_A_SPLIT 8u

/* The paper's rule of memory adds this to each stage. */
#define METIS_MEMORY_BYTES (0.001 * 0x1p20)

/* Replicas of one type with as many samples. */
struct part {
    uint32_t type, samples, count;
};

struct stage {
    uint32_t start, size; /* in the row */
    bool is_mixed;
    uint32_t first_type, first_node, last_node;
    double room_bytes;                           /* of all its GPUs */
    double uplink_bytes_per_s, link_bytes_per_s; /* the least of its nodes */

    uint32_t replicas, degree;
    bool is_allowed;
    double whole_s;           /* its slowest replica, for the whole model */
    const struct part *parts; /* of a mixed stage */
    uint32_t part_count;
    const double *seconds; /* of a stage of one type: prefix sums over layers */
    uint32_t samples;      /* likewise */
    double state_times, sample_times; /* in the paper's rule of memory */
};

/* Of a type at a degree: seconds by samples, made when first asked for. */
struct times {
    const double **seconds; /* [samples]: prefix sums over layers; NULL: none yet */
    uint32_t most;          /* measured micro-batch; 0: no such degree */
};

struct degree {
    uint32_t tp;
    const struct het_layer_bytes *bytes;
    struct times *types; /* [cluster type] */
};

struct walk {
    const struct het_paper_walk_question *question;
    const struct het_problem *problem;
    struct het_arena *arena;
    uint32_t layer_count, type_count, gpu_count, global_batch;
    struct degree *degrees; /* 1, 2, 4, ... */
    uint32_t degree_count;
    struct het_device_group_row *rows;
    size_t row_count;
    const struct het_device_group_slot ***rank_slots; /* [row][rank] */
    struct het_proportional_split *proportion;
    struct het_paper_walk_counts counts;
    uint64_t steps_before, done_before; /* when the candidate began */
    uint32_t first_lists; /* least number of stages above one that has lists; 0: none */
    bool is_stopped;

    const double *nothing;                      /* marks times that do not exist */
    const struct het_device_group_slot **slots; /* [rank] of the row at hand */
    uint32_t row_id;
    const uint32_t *sizes;
    uint32_t stage_count, microbatch_count, refused; /* stages that are not allowed */
    struct stage *stages;
    struct part *parts; /* [stage][type * 2] */
    uint32_t *cuts, *tp;
    double *speed, *needed, *room;
    double *spare, *first_spare; /* bytes after the last split, after the first one */
    bool has_spare, has_first_spare;
    bool is_whole; /* the last split */
};

/* ---- times ---- */

static const double *read_seconds(struct walk *walk, uint32_t type, uint32_t tp,
                                  uint32_t samples)
{
    uint32_t of_profile = walk->problem->profile_type[type];
    if (!het_profile_covers(walk->problem->profile, of_profile, tp, samples))
        return walk->nothing;
    double *sums = HET_ARENA_ARRAY(walk->arena, double, walk->layer_count + 1);
    for (uint32_t l = 0; l < walk->layer_count; l++) {
        double forward_s, backward_s;
        het_profile_times(walk->problem->profile, of_profile, tp, samples, 0, l + 1,
                          &forward_s, &backward_s, NULL);
        sums[l + 1] = forward_s + backward_s;
    }
    return sums;
}

/* Prefix sums over layers of a replica's seconds; NULL if the profile lacks them. */
static const double *find_seconds(struct walk *walk, uint32_t type, uint32_t degree,
                                  uint32_t samples)
{
    struct times *times = &walk->degrees[degree].types[type];
    if (!samples || samples > times->most)
        return NULL;
    const double **at = &times->seconds[samples];
    if (!*at)
        *at = read_seconds(walk, type, walk->degrees[degree].tp, samples);
    return *at == walk->nothing ? NULL : *at;
}

/* ---- samples over the replicas of mixed stages ---- */

/* Shares `samples` out over replicas of GPUs [start, start + size) in proportion to the
 * speed of each one's first GPU with one sample; what rounding leaves goes to the largest
 * fractions. At most two parts a type. False if a degree was not measured. */
static bool share_samples(struct walk *walk, uint32_t start, uint32_t size,
                          uint32_t replicas, uint32_t degree, uint32_t samples,
                          struct part *parts, uint32_t *ret_count)
{
    uint32_t count = 0, left = samples, width = size / replicas;
    double total = 0, speed[HET_MAX_TYPES], fraction[HET_MAX_TYPES];
    for (uint32_t r = 0; r < replicas; r++) {
        uint32_t type = walk->slots[start + r * width]->type;
        if (!count || parts[count - 1].type != type) {
            const double *seconds = find_seconds(walk, type, degree, 1);
            if (!seconds)
                return false;
            speed[count] = 1 / seconds[walk->layer_count];
            parts[count++] = (struct part){ .type = type };
        }
        parts[count - 1].count++;
        total += speed[count - 1];
    }
    for (uint32_t p = 0; p < count; p++) {
        double share = samples * (speed[p] / total);
        parts[p].samples = (uint32_t)share;
        fraction[p] = share - parts[p].samples;
        left -= parts[p].samples * parts[p].count;
    }
    uint32_t types = count;
    while (left) {
        uint32_t most = UINT32_MAX;
        for (uint32_t p = 0; p < types; p++)
            if (fraction[p] >= 0 && (most == UINT32_MAX || fraction[p] > fraction[most]))
                most = p;
        uint32_t more = left < parts[most].count ? left : parts[most].count;
        parts[count++] = (struct part){ parts[most].type, parts[most].samples + 1, more };
        parts[most].count -= more;
        fraction[most] = -1;
        left -= more;
    }
    *ret_count = count;
    return true;
}

/* How often the paper's rule counts the state of a layer, and samples, in a mixed stage.
 */
static bool count_metis_memory(struct walk *walk, struct stage *stage, uint32_t samples)
{
    struct part parts[HET_MAX_TYPES * 2];
    uint32_t count;
    if (!share_samples(walk, 0, walk->gpu_count, stage->replicas, stage->degree, samples,
                       parts, &count))
        return false;
    stage->state_times = stage->sample_times = 0;
    for (uint32_t p = 0; p < count; p++) {
        for (uint32_t rest = parts[p].samples; rest; rest &= rest - 1)
            stage->state_times += parts[p].count;
        stage->sample_times += (double)parts[p].samples * parts[p].count;
    }
    return true;
}

static bool enter_mixed(struct walk *walk, struct stage *stage, struct part *parts)
{
    uint32_t samples = walk->global_batch / walk->microbatch_count;
    if (!share_samples(walk, stage->start, stage->size, stage->replicas, stage->degree,
                       samples, parts, &stage->part_count))
        return false;
    stage->parts = parts;
    stage->whole_s = 0;
    for (uint32_t p = 0; p < stage->part_count; p++) {
        if (!parts[p].samples || !parts[p].count)
            continue;
        const double *seconds =
            find_seconds(walk, parts[p].type, stage->degree, parts[p].samples);
        if (!seconds)
            return false;
        stage->whole_s = fmax(stage->whole_s, seconds[walk->layer_count]);
    }
    return count_metis_memory(walk, stage, samples);
}

/* ---- strategies ---- */

static bool enter_plain(struct walk *walk, struct stage *stage)
{
    stage->seconds = find_seconds(walk, stage->first_type, stage->degree, stage->samples);
    if (!stage->seconds)
        return false;
    stage->whole_s = stage->seconds[walk->layer_count];
    stage->state_times = 1;
    stage->sample_times = stage->samples;
    return true;
}

/* Works out what the stage's replicas and degree mean. */
static void enter_strategy(struct walk *walk, uint32_t s)
{
    struct stage *stage = &walk->stages[s];
    stage->samples = walk->global_batch / stage->replicas / walk->microbatch_count;
    stage->is_allowed = false;
    if (stage->samples && stage->degree < walk->degree_count) {
        struct part *parts = walk->parts + (size_t)s * walk->type_count * 2;
        walk->tp[s] = walk->degrees[stage->degree].tp;
        stage->is_allowed = stage->is_mixed ? enter_mixed(walk, stage, parts)
                                            : enter_plain(walk, stage);
    }
    walk->refused += !stage->is_allowed;
}

/* The stage that the order's rule names, of those with more than one replica;
 * stage_count if there is none. */
static uint32_t choose_stage(const struct walk *walk)
{
    bool first = walk->question->order == HET_PAPER_WALK_OOM_FIRST &&
                 walk->has_first_spare;
    const double *spare = first             ? walk->first_spare
                          : walk->has_spare ? walk->spare
                                            : NULL;
    uint32_t best = walk->stage_count;
    double least = HUGE_VAL;
    for (uint32_t s = 0; s < walk->stage_count; s++) {
        if (walk->stages[s].replicas == 1)
            continue;
        double key = spare ? spare[s] : 1.0 / walk->stages[s].replicas;
        if (key < least) {
            least = key;
            best = s;
        }
    }
    return best;
}

static bool spend(struct walk *walk, uint64_t splits)
{
    const struct het_paper_walk_question *question = walk->question;
    walk->is_stopped |= question->spend && !question->spend(question->context, splits);
    return !walk->is_stopped;
}

static bool next_strategy(struct walk *walk)
{
    if (++walk->counts.strategies % STRATEGIES_A_SPLIT == 0 && !spend(walk, 1))
        return false;
    uint32_t s = choose_stage(walk);
    if (s == walk->stage_count)
        return false;
    struct stage *stage = &walk->stages[s];
    walk->refused -= !stage->is_allowed;
    stage->replicas /= 2;
    stage->degree++;
    enter_strategy(walk, s);
    return true;
}

/* ---- memory ---- */

static void need_metis(struct walk *walk, uint32_t s)
{
    const struct stage *stage = &walk->stages[s];
    const struct het_layer_bytes *bytes = walk->degrees[stage->degree].bytes;
    uint32_t first = walk->cuts[s], end = walk->cuts[s + 1];
    double state = bytes->state[end] - bytes->state[first];
    double activations = bytes->activations[end] - bytes->activations[first];
    walk->needed[s] = METIS_MEMORY_BYTES +
                      HET_PAPER_WALK_METIS_FACTOR * (stage->state_times * state +
                                                     stage->sample_times * activations);
    walk->room[s] = stage->room_bytes;
}

static void need_ours(struct walk *walk, uint32_t s)
{
    const struct stage *stage = &walk->stages[s];
    struct part plain = { stage->first_type, stage->samples, stage->replicas };
    const struct part *parts = stage->is_mixed ? stage->parts : &plain;
    uint32_t count = stage->is_mixed ? stage->part_count : 1;
    uint32_t behind = walk->stage_count - s;
    double worst = -1;
    for (uint32_t p = 0; p < count; p++) {
        if (!parts[p].count)
            continue;
        struct het_memory_question question = {
            .type = parts[p].type,
            .tp = walk->tp[s],
            .first_layer = walk->cuts[s],
            .layer_count = walk->cuts[s + 1] - walk->cuts[s],
            .samples = parts[p].samples,
            .in_flight = walk->microbatch_count < behind ? walk->microbatch_count
                                                         : behind,
            .holders = stage->replicas,
        };
        double needed = het_memory_replica_bytes(walk->problem, &question);
        double room = het_memory_usable_bytes(walk->problem, parts[p].type);
        if (needed / room > worst) {
            worst = needed / room;
            walk->needed[s] = needed;
            walk->room[s] = room;
        }
    }
}

/* Whether all stages fit; fills needed, room and `spare`. */
static bool check_memory(struct walk *walk, double *spare)
{
    bool fits = true;
    for (uint32_t s = 0; s < walk->stage_count; s++) {
        if (walk->question->memory == HET_WALK_MEMORY_METIS)
            need_metis(walk, s);
        else
            need_ours(walk, s);
        spare[s] = walk->room[s] - walk->needed[s];
        fits &= spare[s] >= 0;
    }
    return fits;
}

/* ---- splits ---- */

static void set_speed(struct walk *walk)
{
    double total = 0;
    for (uint32_t s = 0; s < walk->stage_count; s++)
        total += walk->speed[s] = 1 / walk->stages[s].whole_s;
    for (uint32_t s = 0; s < walk->stage_count; s++)
        walk->speed[s] /= total;
}

/* Which of the splits fitted, from 1; 0: none. */
static uint32_t split(struct walk *walk)
{
    walk->has_spare = walk->has_first_spare = false;
    set_speed(walk);
    for (uint32_t attempt = 1; attempt <= HET_PAPER_WALK_SPLITS; attempt++) {
        walk->is_whole = het_proportional_split_whole(walk->proportion, walk->speed,
                                                      walk->stage_count, walk->cuts);
        if (!spend(walk, 1))
            return 0;
        if (check_memory(walk, walk->spare)) {
            walk->has_spare = true;
            return attempt;
        }
        walk->counts.failures++;
        if (attempt == 1) {
            memcpy(walk->first_spare, walk->spare,
                   walk->stage_count * sizeof *walk->spare);
            walk->has_first_spare = true;
        }
        if (!het_proportional_split_shift(walk->proportion, walk->speed, walk->needed,
                                          walk->room, walk->stage_count))
            return 0;
    }
    return 0;
}

/* ---- price ---- */

/* Whether a replica's GPUs are of several types. */
static bool has_mixed_replica(const struct walk *walk, const struct stage *stage)
{
    uint32_t width = stage->size / stage->replicas;
    for (uint32_t r = 0; r < stage->replicas; r++) {
        const struct het_device_group_slot **slots = walk->slots + stage->start +
                                                     r * width;
        if (slots[0]->type != slots[width - 1]->type)
            return true;
    }
    return false;
}

static double part_seconds(struct walk *walk, const struct stage *stage, uint32_t type,
                           uint32_t samples, uint32_t first, uint32_t end)
{
    const double *seconds = find_seconds(walk, type, stage->degree, samples);
    return seconds ? seconds[end] - seconds[first] : HUGE_VAL;
}

static double stage_seconds(struct walk *walk, const struct stage *stage, uint32_t first,
                            uint32_t end)
{
    if (!stage->is_mixed)
        return stage->seconds[end] - stage->seconds[first];
    double slowest = 0;
    bool any_type = has_mixed_replica(walk, stage);
    for (uint32_t p = 0; p < stage->part_count; p++) {
        const struct part *part = &stage->parts[p];
        if (!part->samples || !part->count)
            continue;
        slowest = fmax(slowest,
                       part_seconds(walk, stage, part->type, part->samples, first, end));
        for (uint32_t i = 0; any_type && i < stage->size; i++)
            slowest = fmax(slowest,
                           part_seconds(walk, stage, walk->slots[stage->start + i]->type,
                                        part->samples, first, end));
    }
    return slowest;
}

static double send_seconds(const struct walk *walk, uint32_t s)
{
    const struct stage *from = &walk->stages[s], *to = from + 1;
    double samples = walk->global_batch / walk->microbatch_count;
    double bytes = samples *
                   walk->problem->profile->boundary_bytes[walk->cuts[s + 1] - 1];
    bool inside = from->first_node == to->last_node;
    return bytes / (inside ? from->link_bytes_per_s
                           : fmin(from->uplink_bytes_per_s, to->uplink_bytes_per_s));
}

static double ring_seconds(const struct walk *walk, const struct stage *stage,
                           uint32_t first, uint32_t end)
{
    const struct het_layer_bytes *bytes = walk->degrees[stage->degree].bytes;
    double gradients = (bytes->parameters[end] - bytes->parameters[first]) *
                       het_workload_gradient_bytes(walk->problem->workload);
    bool inside = stage->first_node == stage->last_node;
    return 2.0 * (stage->replicas - 1) / stage->replicas * gradients /
           (inside ? stage->link_bytes_per_s : stage->uplink_bytes_per_s);
}

static double price(struct walk *walk)
{
    double sum = 0, slowest = 0, ring = 0;
    for (uint32_t s = 0; s < walk->stage_count; s++) {
        const struct stage *stage = &walk->stages[s];
        uint32_t first = walk->cuts[s], end = walk->cuts[s + 1];
        double seconds = stage_seconds(walk, stage, first, end);
        if (s + 1 < walk->stage_count)
            seconds += 2 * send_seconds(walk, s);
        sum += seconds;
        slowest = fmax(slowest, seconds);
        ring = fmax(ring, ring_seconds(walk, stage, first, end));
    }
    return sum + (walk->microbatch_count - 1) * slowest + ring;
}

static void visit_plan(struct walk *walk)
{
    const struct het_paper_walk_question *question = walk->question;
    walk->counts.steps = walk->steps_before + walk->counts.strategies +
                         walk->counts.failures - walk->done_before;
    walk->counts.plans++;
    walk->counts.broken += !walk->is_whole;
    if (!walk->is_whole || !question->visit)
        return;
    const struct het_paper_walk_plan plan = {
        .row = &walk->rows[walk->row_id],
        .row_id = walk->row_id,
        .sizes = walk->sizes,
        .tp = walk->tp,
        .cuts = walk->cuts,
        .stage_count = walk->stage_count,
        .microbatch_count = walk->microbatch_count,
        .seconds = price(walk),
    };
    question->visit(question->context, &plan);
}

/* ---- candidates ---- */

static void walk_candidate(struct walk *walk, uint32_t microbatch_count)
{
    walk->counts.candidates++;
    walk->microbatch_count = microbatch_count;
    walk->steps_before = walk->counts.steps;
    walk->done_before = walk->counts.strategies + walk->counts.failures;
    walk->refused = 0;
    walk->has_spare = walk->has_first_spare = false;
    for (uint32_t s = 0; s < walk->stage_count; s++) {
        walk->stages[s].replicas = walk->stages[s].size;
        walk->stages[s].degree = 0;
        enter_strategy(walk, s);
    }
    do {
        uint32_t fitted = walk->refused ? 0 : split(walk);
        if (walk->is_stopped)
            return;
        if (fitted)
            visit_plan(walk);
        if (fitted == 1)
            return;
    } while (next_strategy(walk));
}

static void set_stages(struct walk *walk, size_t row, const uint32_t *sizes,
                       uint32_t count)
{
    uint32_t start = 0;
    walk->row_id = (uint32_t)row;
    walk->slots = walk->rank_slots[row];
    walk->sizes = sizes;
    walk->stage_count = count;
    for (uint32_t s = 0; s < count; s++) {
        struct stage *stage = &walk->stages[s];
        *stage = (struct stage){ .start = start,
                                 .size = sizes[s],
                                 .first_type = walk->slots[start]->type,
                                 .first_node = walk->slots[start]->node,
                                 .uplink_bytes_per_s = HUGE_VAL,
                                 .link_bytes_per_s = HUGE_VAL };
        for (; start < stage->start + stage->size; start++) {
            const struct het_device_group_slot *slot = walk->slots[start];
            const struct het_node *node = &walk->question->cluster->nodes[slot->node];
            stage->is_mixed |= slot->type != stage->first_type;
            stage->last_node = slot->node;
            stage->room_bytes +=
                (double)walk->question->cluster->types[slot->type].memory_bytes;
            stage->uplink_bytes_per_s =
                fmin(stage->uplink_bytes_per_s, node->uplink_bytes_per_s);
            stage->link_bytes_per_s =
                fmin(stage->link_bytes_per_s, node->intra_bytes_per_s);
        }
    }
}

static void walk_list(struct walk *walk, size_t row, const uint32_t *sizes,
                      uint32_t count)
{
    walk->counts.lists++;
    set_stages(walk, row, sizes, count);
    for (uint32_t m = walk->global_batch; m && !walk->is_stopped; m--)
        if (walk->global_batch % m == 0)
            walk_candidate(walk, m);
}

static void add_twice(struct het_paper_walk_counts *counts,
                      const struct het_paper_walk_counts *before)
{
    counts->lists += counts->lists - before->lists;
    counts->candidates += counts->candidates - before->candidates;
    counts->steps += counts->steps - before->steps;
    counts->strategies += counts->strategies - before->strategies;
    counts->failures += counts->failures - before->failures;
    counts->plans += counts->plans - before->plans;
    counts->broken += counts->broken - before->broken;
}

static bool visit_list(void *context, const uint32_t *sizes, uint32_t count)
{
    struct walk *walk = context;
    for (uint32_t s = 0; s < count; s++)
        if (sizes[s] & (sizes[s] - 1))
            return false; /* device_group.h's even split, where nothing sums up */
    if (count > 1 && !walk->first_lists)
        walk->first_lists = count;
    for (size_t row = 0; row < walk->row_count && !walk->is_stopped; row++) {
        if (row && count == 1)
            break;
        struct het_paper_walk_counts before = walk->counts;
        walk_list(walk, row, sizes, count);
        if (row && count == walk->first_lists)
            add_twice(&walk->counts, &before);
    }
    return !walk->is_stopped;
}

/* ---- start ---- */

static void add_degree(struct walk *walk, uint32_t tp)
{
    const struct het_problem *problem = walk->problem;
    struct degree *degree = &walk->degrees[walk->degree_count];
    *degree =
        (struct degree){ .tp = tp, .bytes = het_profile_bytes(problem->profile, tp) };
    degree->types = HET_ARENA_ARRAY(walk->arena, struct times, walk->type_count);
    bool is_measured = false;
    for (uint32_t t = 0; t < walk->type_count; t++) {
        uint32_t of_profile = problem->profile_type[t];
        if (of_profile == HET_NO_TYPE)
            continue;
        uint32_t most = het_profile_max_microbatch(problem->profile, of_profile, tp);
        if (most > walk->global_batch)
            most = walk->global_batch;
        degree->types[t].most = most;
        degree->types[t].seconds = HET_ARENA_ARRAY(walk->arena, const double *, most + 1);
        is_measured |= most > 0;
    }
    if (is_measured && degree->bytes && degree->bytes->state &&
        het_workload_allows_tensor_parallel(problem->workload, tp))
        walk->degree_count++;
}

static void fill_degrees(struct walk *walk)
{
    walk->degrees = HET_ARENA_ARRAY(walk->arena, struct degree, 32);
    for (uint32_t tp = 1, count = 0; tp <= walk->gpu_count && walk->degree_count == count;
         tp *= 2, count++)
        add_degree(walk, tp);
}

static void fill_rows(struct walk *walk)
{
    const struct het_cluster *cluster = walk->question->cluster;
    const uint32_t *orders;
    size_t types;
    walk->row_count = het_device_group_type_orders(walk->arena, cluster, &orders, &types);
    walk->rows =
        HET_ARENA_ARRAY(walk->arena, struct het_device_group_row, walk->row_count);
    walk->rank_slots = HET_ARENA_ARRAY(walk->arena, const struct het_device_group_slot **,
                                       walk->row_count);
    for (size_t r = 0; r < walk->row_count; r++) {
        struct het_device_group_row row =
            het_device_group_row_of(walk->arena, cluster, orders + r * types, types);
        const struct het_device_group_slot **slots = HET_ARENA_ARRAY(
            walk->arena, const struct het_device_group_slot *, row.gpu_count);
        uint32_t rank = 0;
        for (size_t i = 0; i < row.slot_count; i++)
            for (uint32_t g = 0; g < row.slots[i].gpu_count; g++)
                slots[rank++] = &row.slots[i];
        walk->rows[r] = row;
        walk->rank_slots[r] = slots;
    }
}

static void allocate_stages(struct walk *walk, uint32_t limit)
{
    struct het_arena *arena = walk->arena;
    walk->stages = HET_ARENA_ARRAY(arena, struct stage, limit);
    walk->parts = HET_ARENA_ARRAY(arena, struct part, limit * walk->type_count * 2);
    walk->cuts = HET_ARENA_ARRAY(arena, uint32_t, limit + 1);
    walk->tp = HET_ARENA_ARRAY(arena, uint32_t, limit);
    walk->speed = HET_ARENA_ARRAY(arena, double, limit);
    walk->needed = HET_ARENA_ARRAY(arena, double, limit);
    walk->room = HET_ARENA_ARRAY(arena, double, limit);
    walk->spare = HET_ARENA_ARRAY(arena, double, limit);
    walk->first_spare = HET_ARENA_ARRAY(arena, double, limit);
}

/* Seconds of each layer alone, on the first type that was measured with one sample. */
static const double *layer_seconds(struct walk *walk)
{
    double *layers = HET_ARENA_ARRAY(walk->arena, double, walk->layer_count);
    for (uint32_t t = 0; t < walk->type_count; t++) {
        const double *sums = find_seconds(walk, t, 0, 1);
        if (!sums)
            continue;
        for (uint32_t l = 0; l < walk->layer_count; l++)
            layers[l] = sums[l + 1] - sums[l];
        return layers;
    }
    return NULL;
}

/* Sizes below the mean, rounded down, are left out: the released program's reading of
 * the paper's bound. */
static double floored_variance(double variance, uint32_t gpus, uint32_t stages)
{
    return variance * (gpus / stages) * stages / gpus;
}

static void enumerate(struct walk *walk, uint32_t limit)
{
    const struct het_paper_walk_question *question = walk->question;
    uint32_t *powers = HET_ARENA_ARRAY(walk->arena, uint32_t, 32);
    struct het_device_group_question groups = { .gpu_count = walk->gpu_count,
                                                .sizes = { powers, 0 },
                                                .permute = question->permute };
    for (uint32_t size = 1; size <= walk->gpu_count; size *= 2)
        powers[groups.sizes.count++] = size;
    for (uint32_t stages = 1; stages <= limit && !walk->is_stopped; stages++) {
        groups.group_count = stages;
        groups.variance = floored_variance(question->variance, walk->gpu_count, stages);
        het_device_group_lists(&groups, visit_list, walk);
    }
}

bool het_paper_walk_run(const struct het_paper_walk_question *question,
                        struct het_paper_walk_counts *ret_counts)
{
    struct walk walk = {
        .question = question,
        .problem = question->problem,
        .arena = het_arena_new(),
        .layer_count = question->problem->profile->layer_count,
        .type_count = (uint32_t)question->cluster->type_count,
        .gpu_count = het_cluster_gpu_count(question->cluster),
        .global_batch = question->problem->workload->global_batch,
    };
    uint32_t limit = question->stage_limit;
    double nothing;
    walk.nothing = &nothing;
    if (limit > walk.gpu_count)
        limit = walk.gpu_count;
    if (limit > walk.layer_count)
        limit = walk.layer_count;
    fill_degrees(&walk);
    fill_rows(&walk);
    allocate_stages(&walk, limit);
    const double *layer_s = walk.degree_count ? layer_seconds(&walk) : NULL;
    if (layer_s && limit) {
        walk.proportion = het_proportional_split_new(layer_s, walk.layer_count, limit);
        enumerate(&walk, limit);
        het_proportional_split_free(walk.proportion);
    }
    het_arena_free(walk.arena);
    *ret_counts = walk.counts;
    return !walk.is_stopped;
}
