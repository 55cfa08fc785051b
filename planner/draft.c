#include "planner/draft.h"

#include "planner/cost.h"
#include "planner/memory.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is remembered ---- */

/* Values by a key of numbers. Grows; never forgets. */
struct memo {
    struct memo_entry {
        const uint32_t *key; /* NULL: free */
        uint32_t length;
        void *value;
    } * entries;
    size_t count, capacity;
};

static size_t memo_slot(const struct memo *memo, const uint32_t *key, uint32_t length)
{
    uint64_t hash = 14695981039346656037u;
    for (uint32_t i = 0; i < length; i++)
        hash = (hash ^ key[i]) * 1099511628211u;
    hash ^= hash >> 32;
    size_t slot = hash & (memo->capacity - 1);
    while (memo->entries[slot].key &&
           (memo->entries[slot].length != length ||
            memcmp(memo->entries[slot].key, key, length * sizeof *key) != 0))
        slot = (slot + 1) & (memo->capacity - 1);
    return slot;
}

static void memo_grow(struct memo *memo)
{
    struct memo larger = { .capacity = memo->capacity ? 2 * memo->capacity : 256 };
    larger.entries = xcalloc(larger.capacity, sizeof *larger.entries);
    for (size_t i = 0; i < memo->capacity; i++) {
        const struct memo_entry *entry = &memo->entries[i];
        if (entry->key)
            larger.entries[memo_slot(&larger, entry->key, entry->length)] = *entry;
    }
    free(memo->entries);
    larger.count = memo->count;
    *memo = larger;
}

/* The place of the value of `key`: NULL in it when it is new. */
static void **memo_at(struct memo *memo, struct het_arena *arena, const uint32_t *key,
                      uint32_t length)
{
    if (2 * (memo->count + 1) > memo->capacity)
        memo_grow(memo);
    struct memo_entry *entry = &memo->entries[memo_slot(memo, key, length)];
    if (!entry->key) {
        uint32_t *kept = HET_ARENA_ARRAY(arena, uint32_t, length);
        memcpy(kept, key, length * sizeof *key);
        *entry = (struct memo_entry){ .key = kept, .length = length };
        memo->count++;
    }
    return &entry->value;
}

static void memo_clear(struct memo *memo)
{
    free(memo->entries);
    *memo = (struct memo){ 0 };
}

/* One degree of one type. */
struct degree {
    uint32_t tp, max_samples; /* 0: the type lacks it */
    double *seconds; /* [max_samples + 1]: whole model, forward and backward; HUGE_VAL */
    struct het_balance_times
        *times; /* [max_samples + 1]; forward_s NULL: not asked yet */
};

struct kind {
    uint32_t type, degree, count;
};

/* Replicas of a stage that take the same number of samples. */
struct part {
    uint32_t type, degree, samples;
};

/* A micro-batch shared out over a set of replicas; one for all stages that hold the same
 * kinds and as many samples. */
struct sharing {
    uint32_t id;
    enum het_draft_share state;
    uint32_t replica_count, kind_count, part_count;
    const struct kind *kinds;
    const uint32_t *samples;               /* [replica], by kinds */
    const struct part *parts;              /* distinct */
    const struct het_balance_times *times; /* [part] */
    const struct het_balance_times *slowest;
    double seconds;        /* of the slowest part, whole model */
    const uint32_t **ends; /* [in flight]: NULL: not asked yet (balance.h) */
};

struct stage {
    uint32_t start, size; /* in the row */
    const struct het_group_slot *slots;
    size_t slot_count;
    uint32_t *tp;   /* [type] */
    bool *has_type; /* [type] */
    const struct sharing *sharing;
    double sync_s_per_byte; /* of the gradients of its layers */
};

/* Caches are emptied when they hold this much. */
#define CACHE_BYTES ((size_t)96 << 20)

struct het_draft {
    const struct het_problem *problem;
    const struct het_cluster *cluster;
    uint32_t layer_count, type_count, stage_limit;
    uint32_t *degrees;
    size_t degree_count;
    struct degree *table; /* [type][degree] */
    uint32_t max_samples;
    double *gradient_bytes; /* [layer_count + 1]: of a whole layer, prefix sums */

    struct het_arena *arena; /* as long as the draft */
    struct het_arena *cache; /* what the memos hold */
    struct memo sharings, sends;
    uint32_t next_sharing;

    const struct het_group_row *row;
    uint32_t row_id;
    uint32_t stage_count, microbatch_count, samples;
    struct stage *stages; /* [stage_limit] */
    struct het_group_slot *slots;
    struct kind *kinds; /* scratch [type * degree] */
    uint32_t *key;      /* scratch */
    uint32_t *taken;    /* scratch [type * degree] */

    struct het_balance_space *space;
    struct het_balance_stage *balance; /* [stage_limit] */
    uint32_t *cuts;                    /* [stage_limit + 1] */
    uint32_t *tried_cuts;              /* [stage_limit + 1] */
    uint32_t *ends;                    /* scratch [stage_limit][layer_count] */

    /* The plan that het_draft_plan hands out. */
    struct het_plan plan;
    struct het_pipeline pipeline;
    struct het_stage *plan_stages;
    struct het_replica *replicas; /* [GPUs] */
    uint32_t *gpus;               /* 0, 1, 2, ... */
};

/* ---- tables ---- */

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

static struct degree *degree_at(const struct het_draft *draft, uint32_t type,
                                uint32_t index)
{
    return &draft->table[(size_t)type * draft->degree_count + index];
}

static void fill_degree(struct het_draft *draft, uint32_t type, uint32_t index)
{
    const struct het_problem *problem = draft->problem;
    const struct het_profile *profile = problem->profile;
    uint32_t profile_type = problem->profile_type[type];
    struct degree *degree = degree_at(draft, type, index);
    degree->tp = draft->degrees[index];
    if (profile_type == HET_NO_TYPE || !het_profile_bytes(profile, degree->tp))
        return;
    uint32_t most = het_profile_max_microbatch(profile, profile_type, degree->tp);
    if (most > problem->workload->global_batch)
        most = problem->workload->global_batch;
    degree->seconds = HET_ARENA_ARRAY(draft->arena, double, (size_t)most + 1);
    degree->times =
        HET_ARENA_ARRAY(draft->arena, struct het_balance_times, (size_t)most + 1);
    for (uint32_t n = 1; n <= most; n++) {
        double forward_s, backward_s;
        degree->seconds[n] = HUGE_VAL;
        if (!het_workload_allows_microbatch(problem->workload, n) ||
            het_profile_times(profile, profile_type, degree->tp, n, 0, draft->layer_count,
                              &forward_s, &backward_s, NULL) < 0)
            continue;
        degree->seconds[n] = forward_s + backward_s;
        degree->max_samples = n;
    }
    if (degree->max_samples > draft->max_samples)
        draft->max_samples = degree->max_samples;
}

static bool cluster_has_type(const struct het_draft *draft, uint32_t type)
{
    return draft->problem->profile_type[type] != HET_NO_TYPE &&
           het_cluster_type_gpu_count(draft->cluster, type) > 0;
}

static void add_degree(struct het_draft *draft, uint32_t tp)
{
    size_t at = draft->degree_count;
    for (size_t i = 0; i < draft->degree_count; i++)
        if (draft->degrees[i] == tp)
            return;
    for (; at && draft->degrees[at - 1] > tp; at--)
        draft->degrees[at] = draft->degrees[at - 1];
    draft->degrees[at] = tp;
    draft->degree_count++;
}

static void fill_tables(struct het_draft *draft)
{
    const struct het_profile *profile = draft->problem->profile;
    draft->degrees = HET_ARENA_ARRAY(draft->arena, uint32_t, profile->measurement_count);
    for (uint32_t type = 0; type < draft->type_count; type++)
        for (size_t i = 0; i < profile->measurement_count; i++) {
            const struct het_measurement *point = &profile->measurements[i];
            if (cluster_has_type(draft, type) &&
                point->type == draft->problem->profile_type[type] &&
                het_workload_allows_tensor_parallel(draft->problem->workload, point->tp))
                add_degree(draft, point->tp);
        }
    draft->table = HET_ARENA_ARRAY(draft->arena, struct degree,
                                   draft->type_count * draft->degree_count);
    for (uint32_t type = 0; type < draft->type_count; type++)
        for (uint32_t i = 0; cluster_has_type(draft, type) && i < draft->degree_count;
             i++)
            fill_degree(draft, type, i);
}

/* Least over the degrees, so that bounds stay below. The last layer of a shared embedding
 * is summed together with the first (cost.h). */
static void fill_gradients(struct het_draft *draft)
{
    const struct het_profile *profile = draft->problem->profile;
    double element = het_workload_gradient_bytes(draft->problem->workload);
    draft->gradient_bytes =
        HET_ARENA_ARRAY(draft->arena, double, (size_t)draft->layer_count + 1);
    for (uint32_t l = 0; l < draft->layer_count; l++) {
        double least = profile->bytes_count ? HUGE_VAL : 0;
        for (size_t i = 0; i < profile->bytes_count; i++) {
            const struct het_layer_bytes *bytes = &profile->bytes[i];
            least = fmin(least, bytes->tp * element *
                                    (bytes->parameters[l + 1] - bytes->parameters[l]));
        }
        if (profile->shared_embedding && l && l + 1 == draft->layer_count)
            least = 0;
        draft->gradient_bytes[l + 1] = draft->gradient_bytes[l] + least;
    }
}

struct het_draft *het_draft_new(const struct het_problem *problem,
                                const struct het_cluster *cluster, uint32_t stage_limit)
{
    struct het_draft *draft = xcalloc(1, sizeof *draft);
    uint32_t gpu_count = het_cluster_gpu_count(cluster);
    draft->problem = problem;
    draft->cluster = cluster;
    draft->layer_count = problem->profile->layer_count;
    draft->type_count = (uint32_t)cluster->type_count;
    draft->stage_limit = stage_limit;
    draft->arena = het_arena_new();
    draft->cache = het_arena_new();
    fill_tables(draft);
    fill_gradients(draft);
    draft->stages = HET_ARENA_ARRAY(draft->arena, struct stage, stage_limit);
    for (uint32_t s = 0; s < stage_limit; s++) {
        draft->stages[s].tp = HET_ARENA_ARRAY(draft->arena, uint32_t, draft->type_count);
        draft->stages[s].has_type =
            HET_ARENA_ARRAY(draft->arena, bool, draft->type_count);
    }
    /* Groups cut a row in at most one more piece each. */
    draft->slots = HET_ARENA_ARRAY(draft->arena, struct het_group_slot,
                                   cluster->node_count + stage_limit);
    size_t kind_count = draft->type_count * draft->degree_count;
    draft->kinds = HET_ARENA_ARRAY(draft->arena, struct kind, kind_count);
    draft->taken = HET_ARENA_ARRAY(draft->arena, uint32_t, kind_count);
    draft->key = HET_ARENA_ARRAY(draft->arena, uint32_t, 3 * kind_count + 8);
    draft->space = het_balance_space_new(draft->layer_count, stage_limit);
    draft->balance = HET_ARENA_ARRAY(draft->arena, struct het_balance_stage, stage_limit);
    draft->cuts = HET_ARENA_ARRAY(draft->arena, uint32_t, (size_t)stage_limit + 1);
    draft->tried_cuts = HET_ARENA_ARRAY(draft->arena, uint32_t, (size_t)stage_limit + 1);
    draft->ends =
        HET_ARENA_ARRAY(draft->arena, uint32_t, (size_t)stage_limit * draft->layer_count);
    draft->plan_stages = HET_ARENA_ARRAY(draft->arena, struct het_stage, stage_limit);
    draft->replicas = HET_ARENA_ARRAY(draft->arena, struct het_replica, gpu_count);
    uint32_t largest = 0;
    for (size_t n = 0; n < cluster->node_count; n++)
        if (cluster->nodes[n].gpu_count > largest)
            largest = cluster->nodes[n].gpu_count;
    draft->gpus = HET_ARENA_ARRAY(draft->arena, uint32_t, largest);
    for (uint32_t i = 0; i < largest; i++)
        draft->gpus[i] = i;
    return draft;
}

void het_draft_free(struct het_draft *draft)
{
    if (!draft)
        return;
    memo_clear(&draft->sharings);
    memo_clear(&draft->sends);
    het_balance_space_free(draft->space);
    het_arena_free(draft->cache);
    het_arena_free(draft->arena);
    free(draft);
}

const uint32_t *het_draft_degrees(const struct het_draft *draft, size_t *ret_count)
{
    *ret_count = draft->degree_count;
    return draft->degrees;
}

uint32_t het_draft_max_samples(const struct het_draft *draft)
{
    return draft->max_samples;
}

/* ---- what is drafted ---- */

void het_draft_groups(struct het_draft *draft, const struct het_group_row *row,
                      uint32_t row_id, const uint32_t *sizes, uint32_t stage_count)
{
    assert(stage_count <= draft->stage_limit);
    if (het_arena_bytes(draft->cache) > CACHE_BYTES) {
        memo_clear(&draft->sharings);
        memo_clear(&draft->sends);
        het_arena_free(draft->cache);
        draft->cache = het_arena_new();
    }
    draft->row = row;
    draft->row_id = row_id;
    draft->stage_count = stage_count;
    uint32_t start = 0;
    struct het_group_slot *slots = draft->slots;
    for (uint32_t s = 0; s < stage_count; s++) {
        struct stage *stage = &draft->stages[s];
        stage->start = start;
        stage->size = sizes[s];
        stage->slots = slots;
        stage->slot_count = het_group_cut(row, start, sizes[s], slots);
        stage->sharing = NULL;
        memset(stage->tp, 0, draft->type_count * sizeof *stage->tp);
        memset(stage->has_type, false, draft->type_count * sizeof *stage->has_type);
        for (size_t i = 0; i < stage->slot_count; i++)
            stage->has_type[slots[i].type] = true;
        slots += stage->slot_count;
        start += sizes[s];
    }
    for (uint32_t s = 0; s < stage_count; s++)
        for (uint32_t type = 0; type < draft->type_count; type++)
            het_draft_set_tp(draft, s, type, 1);
}

void het_draft_batch(struct het_draft *draft, uint32_t microbatch_count)
{
    draft->microbatch_count = microbatch_count;
    draft->samples = draft->problem->workload->global_batch / microbatch_count;
    for (uint32_t s = 0; s < draft->stage_count; s++)
        draft->stages[s].sharing = NULL;
}

/* Index of the largest degree up to `limit` that `type` has and that divides `gpus`;
 * degree_count if there is none. */
static size_t find_degree(const struct het_draft *draft, uint32_t type, uint32_t limit,
                          uint32_t gpus)
{
    for (size_t i = draft->degree_count; i-- > 0;)
        if (draft->degrees[i] <= limit && gpus % draft->degrees[i] == 0 &&
            degree_at(draft, type, (uint32_t)i)->max_samples)
            return i;
    return draft->degree_count;
}

void het_draft_set_tp(struct het_draft *draft, uint32_t stage, uint32_t type, uint32_t tp)
{
    /* The lowest degree, where the profile has none as low as `tp`. */
    for (size_t i = 0; i < draft->degree_count; i++)
        if (degree_at(draft, type, (uint32_t)i)->max_samples) {
            tp = tp > draft->degrees[i] ? tp : draft->degrees[i];
            break;
        }
    if (draft->stages[stage].tp[type] == tp)
        return;
    draft->stages[stage].tp[type] = tp;
    draft->stages[stage].sharing = NULL;
}

uint32_t het_draft_tp(const struct het_draft *draft, uint32_t stage, uint32_t type)
{
    return draft->stages[stage].tp[type];
}

bool het_draft_has_type(const struct het_draft *draft, uint32_t stage, uint32_t type)
{
    return draft->stages[stage].has_type[type];
}

bool het_draft_raise_tp(struct het_draft *draft, uint32_t stage, uint32_t type)
{
    const struct stage *at = &draft->stages[stage];
    for (size_t d = 0; d < draft->degree_count; d++) {
        uint32_t tp = draft->degrees[d];
        if (tp <= at->tp[type])
            continue;
        for (size_t i = 0; i < at->slot_count; i++) {
            const struct het_group_slot *slot = &at->slots[i];
            if (slot->type == type &&
                find_degree(draft, type, tp, slot->gpu_count) !=
                    find_degree(draft, type, at->tp[type], slot->gpu_count)) {
                het_draft_set_tp(draft, stage, type, tp);
                return true;
            }
        }
    }
    return false;
}

/* ---- samples ---- */

/* Kinds of replicas of the stage, by type and degree, into draft->kinds; returns how
 * many. SIZE_MAX if some GPUs have no degree. */
static size_t find_kinds(struct het_draft *draft, const struct stage *stage)
{
    size_t count = 0, at = 0;
    for (size_t i = 0; i < stage->slot_count; i++) {
        const struct het_group_slot *slot = &stage->slots[i];
        if (i && slot->type == slot[-1].type && slot->gpu_count == slot[-1].gpu_count) {
            draft->kinds[at].count += slot->gpu_count /
                                      draft->degrees[draft->kinds[at].degree];
            continue; /* most nodes are like the one before */
        }
        uint32_t degree = (uint32_t)find_degree(draft, slot->type, stage->tp[slot->type],
                                                slot->gpu_count);
        if (degree == draft->degree_count)
            return SIZE_MAX;
        uint32_t replicas = slot->gpu_count / draft->degrees[degree];
        at = 0;
        while (at < count &&
               (draft->kinds[at].type != slot->type || draft->kinds[at].degree != degree))
            at++;
        if (at == count)
            draft->kinds[count++] = (struct kind){ slot->type, degree, 0 };
        draft->kinds[at].count += replicas;
    }
    return count;
}

static const struct het_balance_times *part_times(struct het_draft *draft,
                                                  const struct part *part)
{
    struct degree *degree = degree_at(draft, part->type, part->degree);
    struct het_balance_times *times = &degree->times[part->samples];
    if (times->forward_s)
        return times;
    const struct het_problem *problem = draft->problem;
    size_t size = (size_t)draft->layer_count + 1;
    double *forward_s = HET_ARENA_ARRAY(draft->arena, double, size);
    double *backward_s = HET_ARENA_ARRAY(draft->arena, double, size);
    for (uint32_t l = 1; l <= draft->layer_count; l++) {
        int known = het_profile_times(problem->profile, problem->profile_type[part->type],
                                      degree->tp, part->samples, 0, l, &forward_s[l],
                                      &backward_s[l], NULL);
        assert(known == 0);
    }
    times->forward_s = forward_s;
    times->backward_s = backward_s;
    return times;
}

/* Distinct (type, degree, samples), with their times. */
static void find_parts(struct het_draft *draft, struct sharing *sharing)
{
    struct part *parts =
        HET_ARENA_ARRAY(draft->cache, struct part, sharing->replica_count);
    struct het_balance_times *times =
        HET_ARENA_ARRAY(draft->cache, struct het_balance_times, sharing->replica_count);
    const uint32_t *samples = sharing->samples;
    uint32_t count = 0;
    for (uint32_t k = 0; k < sharing->kind_count; k++) {
        const struct kind *kind = &sharing->kinds[k];
        for (uint32_t r = 0; r < kind->count; r++) {
            if (r && samples[r] == samples[r - 1])
                continue;
            parts[count] = (struct part){ kind->type, kind->degree, samples[r] };
            times[count] = *part_times(draft, &parts[count]);
            double seconds =
                degree_at(draft, kind->type, kind->degree)->seconds[samples[r]];
            if (seconds > sharing->seconds || !count) {
                sharing->seconds = seconds;
                sharing->slowest = &times[count];
            }
            count++;
        }
        samples += kind->count;
    }
    sharing->parts = parts;
    sharing->times = times;
    sharing->part_count = count;
}

static void share_samples(struct het_draft *draft, struct sharing *sharing)
{
    const struct het_workload *workload = draft->problem->workload;
    uint32_t most = workload->max_data_parallel ? workload->max_data_parallel
                                                : UINT32_MAX;
    if (sharing->replica_count > draft->samples || sharing->replica_count > most) {
        sharing->state = HET_DRAFT_CROWDED;
        return;
    }
    sharing->state = HET_DRAFT_OVERFULL;
    if (sharing->replica_count < workload->min_data_parallel)
        return;
    auto_free struct het_balance_replicas *kinds =
        xcalloc(sharing->kind_count, sizeof *kinds);
    for (uint32_t k = 0; k < sharing->kind_count; k++) {
        const struct degree *degree =
            degree_at(draft, sharing->kinds[k].type, sharing->kinds[k].degree);
        kinds[k] = (struct het_balance_replicas){ sharing->kinds[k].count,
                                                  degree->seconds, degree->max_samples };
    }
    uint32_t *samples = HET_ARENA_ARRAY(draft->cache, uint32_t, sharing->replica_count);
    double seconds;
    if (!het_balance_samples(kinds, sharing->kind_count, draft->samples, samples,
                             &seconds))
        return;
    sharing->samples = samples;
    sharing->state = HET_DRAFT_SHARED;
    find_parts(draft, sharing);
    sharing->ends =
        HET_ARENA_ARRAY(draft->cache, const uint32_t *, (size_t)draft->stage_limit + 1);
}

/* Ring all-reduce over the replicas of a stage, seconds for each byte of its layers: each
 * node's uplink, or each GPU's link, carries 2 (n - 1) / n of it (cost.h). */
static double find_sync(const struct het_draft *draft, const struct stage *stage)
{
    double n = stage->sharing->replica_count, slowest = HUGE_VAL;
    uint32_t largest_tp = 1;
    for (uint32_t k = 0; k < stage->sharing->kind_count; k++) {
        uint32_t tp = draft->degrees[stage->sharing->kinds[k].degree];
        largest_tp = tp > largest_tp ? tp : largest_tp;
    }
    for (size_t i = 0; i < stage->slot_count; i++) {
        const struct het_node *node = &draft->cluster->nodes[stage->slots[i].node];
        slowest = lesser(slowest, stage->slot_count > 1
                                      ? node->uplink_bytes_per_s
                                      : node->intra_bytes_per_s * largest_tp);
    }
    return 2 * (n - 1) / n / slowest;
}

enum het_draft_share het_draft_share(struct het_draft *draft, uint32_t stage)
{
    struct stage *at = &draft->stages[stage];
    if (at->sharing)
        return at->sharing->state;
    size_t kind_count = find_kinds(draft, at);
    if (kind_count == SIZE_MAX)
        return HET_DRAFT_UNUSABLE;
    uint32_t length = 0, *key = draft->key;
    key[length++] = draft->samples;
    for (size_t k = 0; k < kind_count; k++) {
        key[length++] = draft->kinds[k].type;
        key[length++] = draft->kinds[k].degree;
        key[length++] = draft->kinds[k].count;
    }
    void **found = memo_at(&draft->sharings, draft->cache, key, length);
    if (!*found) {
        struct sharing *sharing = het_arena_alloc(draft->cache, sizeof *sharing);
        struct kind *kinds = HET_ARENA_ARRAY(draft->cache, struct kind, kind_count);
        memcpy(kinds, draft->kinds, kind_count * sizeof *kinds);
        sharing->id = draft->next_sharing++;
        sharing->kinds = kinds;
        sharing->kind_count = (uint32_t)kind_count;
        for (size_t k = 0; k < kind_count; k++)
            sharing->replica_count += kinds[k].count;
        *found = sharing;
        share_samples(draft, sharing);
    }
    at->sharing = *found;
    if (at->sharing->state == HET_DRAFT_SHARED)
        at->sync_s_per_byte = find_sync(draft, at);
    return at->sharing->state;
}

/* ---- memory ---- */

static uint32_t in_flight(const struct het_draft *draft, uint32_t stage)
{
    uint32_t behind = draft->stage_count - stage;
    return behind < draft->microbatch_count ? behind : draft->microbatch_count;
}

static double part_bytes(const struct het_draft *draft, const struct sharing *sharing,
                         const struct part *part, uint32_t microbatches, uint32_t first,
                         uint32_t end)
{
    const struct het_memory_question question = {
        .type = part->type,
        .tp = draft->degrees[part->degree],
        .first_layer = first,
        .layer_count = end - first,
        .samples = part->samples,
        .in_flight = microbatches,
        .holders = sharing->replica_count,
    };
    return het_memory_replica_bytes(draft->problem, &question);
}

/* Lowers ends[first] to what fits a replica of `part`; both ends walk forward. */
static void limit_ends(const struct het_draft *draft, const struct sharing *sharing,
                       const struct part *part, uint32_t microbatches, uint32_t *ends)
{
    double usable = het_memory_usable_bytes(draft->problem, part->type);
    uint32_t end = 0;
    for (uint32_t first = 0; first < draft->layer_count; first++) {
        end = end > first ? end : first;
        while (end < draft->layer_count &&
               part_bytes(draft, sharing, part, microbatches, first, end + 1) <= usable)
            end++;
        ends[first] = ends[first] < end ? ends[first] : end;
    }
}

static const uint32_t *stage_ends(struct het_draft *draft, uint32_t stage)
{
    const struct sharing *sharing = draft->stages[stage].sharing;
    uint32_t microbatches = in_flight(draft, stage);
    if (sharing->ends[microbatches])
        return sharing->ends[microbatches];
    uint32_t *ends = HET_ARENA_ARRAY(draft->cache, uint32_t, draft->layer_count);
    for (uint32_t l = 0; l < draft->layer_count; l++)
        ends[l] = draft->layer_count;
    for (uint32_t p = 0; p < sharing->part_count; p++)
        limit_ends(draft, sharing, &sharing->parts[p], microbatches, ends);
    return sharing->ends[microbatches] = ends;
}

/* ---- replicas and sends ---- */

/* Writes the replicas of a stage, slot by slot; a kind's shares fall in this order. */
static void write_replicas(const struct het_draft *draft, const struct stage *stage,
                           struct het_replica *replicas)
{
    const struct sharing *sharing = stage->sharing;
    uint32_t written = 0, *taken = draft->taken;
    memset(taken, 0, sharing->kind_count * sizeof *taken);
    for (size_t i = 0; i < stage->slot_count; i++) {
        const struct het_group_slot *slot = &stage->slots[i];
        uint32_t degree = (uint32_t)find_degree(draft, slot->type, stage->tp[slot->type],
                                                slot->gpu_count);
        const uint32_t *samples = sharing->samples;
        uint32_t k = 0;
        for (; sharing->kinds[k].type != slot->type || sharing->kinds[k].degree != degree;
             k++)
            samples += sharing->kinds[k].count;
        uint32_t tp = draft->degrees[degree];
        for (uint32_t gpu = 0; gpu < slot->gpu_count; gpu += tp)
            replicas[written++] = (struct het_replica){
                .node_name = draft->cluster->nodes[slot->node].name,
                .type_name = draft->cluster->types[slot->type].name,
                .node = slot->node,
                .type = slot->type,
                .gpus = draft->gpus + slot->first_gpu + gpu,
                .tp = tp,
                .microbatch_size = samples[taken[k]++],
            };
    }
    assert(written == sharing->replica_count);
}

/* Seconds to send to stage + 1, by the layer that it starts with (balance.h, send_s).
 * Layers with outputs of the same size are asked about once. Entry 0 is the least. */
static const double *stage_sends(struct het_draft *draft, uint32_t stage)
{
    const struct stage *from = &draft->stages[stage], *to = from + 1;
    const uint32_t key[] = { draft->row_id, from->start,       from->size,
                             to->size,      from->sharing->id, to->sharing->id };
    void **found = memo_at(&draft->sends, draft->cache, key, sizeof key / sizeof *key);
    const double *known = *found;
    if (known)
        return known;
    write_replicas(draft, from, draft->replicas);
    write_replicas(draft, to, draft->replicas + from->sharing->replica_count);
    struct het_stage sender = { .replicas = draft->replicas,
                                .replica_count = from->sharing->replica_count };
    const struct het_stage receiver = { .replicas = draft->replicas +
                                                    from->sharing->replica_count,
                                        .replica_count = to->sharing->replica_count,
                                        .first_layer = 1,
                                        .layer_count = 1 };
    const double *boundary = draft->problem->profile->boundary_bytes;
    double *sends = HET_ARENA_ARRAY(draft->cache, double, (size_t)draft->layer_count + 1);
    for (uint32_t cut = 1; cut < draft->layer_count; cut++) {
        uint32_t same = 1;
        while (same < cut && boundary[same - 1] != boundary[cut - 1])
            same++;
        sender.layer_count = cut;
        sends[cut] = same < cut ? sends[same]
                                : het_cost_send(draft->problem, &sender, &receiver);
    }
    sends[0] = HUGE_VAL;
    for (uint32_t cut = 1; cut < draft->layer_count; cut++)
        sends[0] = fmin(sends[0], sends[cut]);
    *found = sends;
    return sends;
}

/* ---- bound ---- */

/* Seconds that the gradients of all layers take at least: B(y) of the header. */
static double sync_bound(const struct het_draft *draft)
{
    double speed = 0;
    for (uint32_t s = 0; s < draft->stage_count; s++) {
        if (!(draft->stages[s].sync_s_per_byte > 0))
            return 0;
        speed += 1 / draft->stages[s].sync_s_per_byte;
    }
    return draft->gradient_bytes[draft->layer_count] / speed;
}

/* What sends add at least: (m - 1) * C + 2 sum_s c_s of the header. */
static double send_bound(struct het_draft *draft, double speed)
{
    double sum_s = 0, weighted_s = 0;
    for (uint32_t s = 0; s + 1 < draft->stage_count; s++) {
        double least_s = stage_sends(draft, s)[0];
        sum_s += 2 * least_s;
        weighted_s += 2 * least_s *
                      (1 / draft->stages[s].sharing->seconds +
                       1 / draft->stages[s + 1].sharing->seconds);
    }
    return sum_s + (draft->microbatch_count - 1.0) * weighted_s / speed;
}

double het_draft_bound(struct het_draft *draft, double worth_s)
{
    double more = draft->microbatch_count - 1.0;
    double speed = 0, compute_s = 0, joint_s = 0, sum_s = 0;
    for (uint32_t s = 0; s < draft->stage_count; s++)
        speed += 1 / draft->stages[s].sharing->seconds;
    for (uint32_t l = 0; l < draft->layer_count; l++) {
        double bytes = draft->gradient_bytes[l + 1] - draft->gradient_bytes[l];
        double least_s = HUGE_VAL, least_compute = HUGE_VAL, least_joint = HUGE_VAL;
        for (uint32_t s = 0; s < draft->stage_count; s++) {
            const struct sharing *sharing = draft->stages[s].sharing;
            const struct het_balance_times *times = sharing->slowest;
            double layer_s = times->forward_s[l + 1] - times->forward_s[l] +
                             times->backward_s[l + 1] - times->backward_s[l];
            double sync_s = bytes * draft->stages[s].sync_s_per_byte;
            least_s = lesser(least_s, layer_s);
            least_compute = lesser(least_compute, layer_s / sharing->seconds);
            least_joint =
                lesser(least_joint, (more * layer_s + sync_s) / sharing->seconds);
        }
        sum_s += least_s;
        compute_s += least_compute;
        joint_s += least_joint;
    }
    double bound_s = sum_s +
                     fmax(more * compute_s / speed + sync_bound(draft), joint_s / speed);
    return bound_s < worth_s ? bound_s + send_bound(draft, speed) : bound_s;
}

/* ---- layers ---- */

/* Seconds that the gradients of the most loaded stage take. */
static double cuts_sync(const struct het_draft *draft, const uint32_t *cuts)
{
    double largest_s = 0;
    for (uint32_t s = 0; s < draft->stage_count; s++)
        largest_s = fmax(largest_s, draft->stages[s].sync_s_per_byte *
                                        (draft->gradient_bytes[cuts[s + 1]] -
                                         draft->gradient_bytes[cuts[s]]));
    return largest_s;
}

/* Ends of `stage` so that its gradients take at most `limit_s`, and not beyond `ends`. */
static const uint32_t *sync_ends(struct het_draft *draft, uint32_t stage, double limit_s,
                                 const uint32_t *ends)
{
    uint32_t *lower = draft->ends + (size_t)stage * draft->layer_count, end = 0;
    double bytes = limit_s / draft->stages[stage].sync_s_per_byte;
    for (uint32_t first = 0; first < draft->layer_count; first++) {
        end = end > first ? end : first;
        while (end < draft->layer_count &&
               draft->gradient_bytes[end + 1] - draft->gradient_bytes[first] <= bytes)
            end++;
        lower[first] = ends && ends[first] < end ? ends[first] : end;
    }
    return lower;
}

/* The best split by T_p with gradients of at most `sync_limit_s` a stage (HUGE_VAL: any)
 * into tried_cuts; T_p and gradients together into `ret_seconds`. */
static bool try_split(struct het_draft *draft, const bool *limited, double sync_limit_s,
                      double worth_s, double *ret_seconds)
{
    for (uint32_t s = 0; s < draft->stage_count; s++) {
        const struct sharing *sharing = draft->stages[s].sharing;
        struct het_balance_stage *balance = &draft->balance[s];
        *balance = (struct het_balance_stage){
            .times = sharing->times,
            .times_count = sharing->part_count,
            .ends = limited[s] ? stage_ends(draft, s) : NULL,
            .send_s = s + 1 < draft->stage_count ? stage_sends(draft, s) : NULL,
        };
        if (sync_limit_s < HUGE_VAL && draft->stages[s].sync_s_per_byte > 0)
            balance->ends = sync_ends(draft, s, sync_limit_s, balance->ends);
    }
    const struct het_balance_layers question = {
        .layer_count = draft->layer_count,
        .stages = draft->balance,
        .stage_count = draft->stage_count,
        .microbatch_count = draft->microbatch_count,
    };
    if (!het_balance_layers(draft->space, &question, worth_s, draft->tried_cuts,
                            ret_seconds))
        return false;
    *ret_seconds += cuts_sync(draft, draft->tried_cuts);
    return true;
}

bool het_draft_balance(struct het_draft *draft, const bool *limited, double worth_s,
                       double *ret_seconds)
{
    /* How much less the gradients may take than in the best split by T_p. */
    static const double shares[] = { HUGE_VAL, 0.8, 0.6, 0.4, 0.2 };
    double floor_s = draft->stage_count > 1 ? sync_bound(draft) : 0;
    double pipeline_s = 0, sync_s = 0, best_s = worth_s;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        double limit_s = i ? floor_s + (sync_s - floor_s) * shares[i] : HUGE_VAL;
        double seconds;
        if (i && (draft->stage_count == 1 || pipeline_s + floor_s >= best_s))
            break;
        if (!try_split(draft, limited, limit_s, best_s - floor_s, &seconds)) {
            if (!i)
                return false;
            continue;
        }
        if (!i) {
            sync_s = cuts_sync(draft, draft->tried_cuts);
            pipeline_s = seconds - sync_s;
        }
        if (seconds < best_s) {
            best_s = seconds;
            memcpy(draft->cuts, draft->tried_cuts,
                   (draft->stage_count + 1) * sizeof *draft->cuts);
        }
    }
    *ret_seconds = best_s;
    return best_s < worth_s;
}

/* The largest share of its memory that a replica of the stage needs, and which. */
static double worst_share(const struct het_draft *draft, uint32_t stage, uint32_t first,
                          uint32_t end, const struct part **ret_part)
{
    const struct sharing *sharing = draft->stages[stage].sharing;
    double worst = -1;
    for (uint32_t p = 0; p < sharing->part_count; p++) {
        const struct part *part = &sharing->parts[p];
        double share =
            part_bytes(draft, sharing, part, in_flight(draft, stage), first, end) /
            het_memory_usable_bytes(draft->problem, part->type);
        if (share > worst) {
            worst = share;
            *ret_part = part;
        }
    }
    return worst;
}

bool het_draft_short(struct het_draft *draft, uint32_t *ret_stage, uint32_t *ret_type)
{
    for (uint32_t s = 0; s < draft->stage_count; s++) {
        if (stage_ends(draft, s)[draft->cuts[s]] >= draft->cuts[s + 1])
            continue;
        const struct part *part = NULL;
        worst_share(draft, s, draft->cuts[s], draft->cuts[s + 1], &part);
        *ret_stage = s;
        *ret_type = part->type;
        return true;
    }
    return false;
}

static double needed_share(void *context, uint32_t stage, uint32_t first, uint32_t end)
{
    const struct part *part;
    return worst_share(context, stage, first, end, &part);
}

struct het_draft_miss het_draft_nearest(struct het_draft *draft)
{
    struct het_draft_miss miss = { 0 };
    double share;
    het_balance_nearest(draft->space, draft->layer_count, draft->stage_count,
                        needed_share, draft, draft->cuts, &miss.stage, &share);
    uint32_t first = draft->cuts[miss.stage], end = draft->cuts[miss.stage + 1];
    const struct part *part = NULL;
    worst_share(draft, miss.stage, first, end, &part);
    const struct sharing *sharing = draft->stages[miss.stage].sharing;
    miss.in_flight = in_flight(draft, miss.stage);
    miss.needed_bytes = part_bytes(draft, sharing, part, miss.in_flight, first, end);
    miss.type = part->type;
    miss.tp = draft->degrees[part->degree];
    miss.samples = part->samples;
    miss.first_layer = first;
    miss.layer_count = end - first;
    return miss;
}

/* ---- plan ---- */

const struct het_plan *het_draft_plan(struct het_draft *draft)
{
    struct het_replica *replicas = draft->replicas;
    for (uint32_t s = 0; s < draft->stage_count; s++) {
        const struct sharing *sharing = draft->stages[s].sharing;
        write_replicas(draft, &draft->stages[s], replicas);
        draft->plan_stages[s] = (struct het_stage){
            .first_layer = draft->cuts[s],
            .layer_count = draft->cuts[s + 1] - draft->cuts[s],
            .replicas = replicas,
            .replica_count = sharing->replica_count,
        };
        replicas += sharing->replica_count;
    }
    draft->pipeline = (struct het_pipeline){
        .microbatch_count = draft->microbatch_count,
        .stages = draft->plan_stages,
        .stage_count = draft->stage_count,
    };
    draft->plan =
        (struct het_plan){ .global_batch = draft->problem->workload->global_batch,
                           .layer_count = draft->layer_count,
                           .pipelines = &draft->pipeline,
                           .pipeline_count = 1 };
    return &draft->plan;
}
