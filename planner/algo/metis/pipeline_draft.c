#include "planner/algo/metis/pipeline_draft.h"

#include "planner/base/memo.h"
#include "planner/cost/cost.h"
#include "planner/cost/memory.h"
#include "planner/search/stage_times.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Clusters up to this many GPUs have tables of uniform stages. */
#define MAX_UNIFORM_GPUS 1024u

/* One degree of one type. */
struct degree {
    uint32_t tp, max_samples; /* 0: the type lacks it */
    double *seconds; /* [max_samples + 1]: whole model, forward and backward; HUGE_VAL */
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
    enum het_pipeline_draft_share state;
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
    const struct het_device_group_slot *slots;
    size_t slot_count;
    uint32_t *tp;      /* [type] */
    bool *has_type;    /* [type] */
    bool is_like_last; /* the stage before has as many GPUs of the same types on as many
                          nodes, in the same order */
    bool is_uneven;    /* some degree does not divide the GPUs of some slot */
    bool trim;         /* rather leaves GPUs idle */
    double uplink_bytes_per_s, link_bytes_per_s; /* the least of its nodes */
    const struct sharing *sharing;
    double sync_s_per_byte; /* of the gradients of its layers */
};

/* Classes of layers that are looked for; further unlike layers are classes by themselves.
 */
#define MAX_CLASSES 16u

/* Caches are emptied when they hold this much. */
#define CACHE_BYTES ((size_t)96 << 20)

struct het_pipeline_draft {
    const struct het_problem *problem;
    const struct het_cluster *cluster;
    uint32_t layer_count, type_count, stage_limit, gpu_count;
    uint32_t *degrees;
    size_t degree_count;
    struct degree *table; /* [type][degree] */
    uint32_t max_samples;
    double *gradient_bytes; /* [layer_count + 1]: of a whole layer, prefix sums */
    /* Layers that cost alike: one of them, and how many they are. */
    struct layer_class {
        uint32_t layer, count;
    } * classes;
    size_t class_count;

    struct het_arena *arena; /* as long as the draft */
    struct het_arena *cache; /* what the memos hold */
    struct het_stage_table *times;
    struct het_memo sharings, sends;
    /* Sharings of replicas of one kind, at [type][degree][replicas], for the samples at
     * hand; NULL on clusters that are too large for it. One table for each number of
     * samples, in a memo of their own. */
    struct sharing **uniform;
    struct het_memo uniform_tables;
    uint32_t next_sharing;
    uint64_t work; /* het_pipeline_draft_take_work */

    const struct het_device_group_row *row;
    uint32_t row_id;
    uint32_t stage_count, microbatch_count, samples;
    struct stage *stages; /* [stage_limit] */
    struct het_device_group_slot *slots;
    struct kind *kinds; /* scratch [type * degree] */
    uint32_t *key;      /* scratch */
    uint32_t *left;     /* scratch [type * degree] */

    struct het_balance_space *space;
    struct het_balance_stage *balance; /* [stage_limit] */
    uint32_t *cuts;                    /* [stage_limit + 1] */
    uint32_t *tried_cuts;              /* [stage_limit + 1] */
    uint32_t *ends;                    /* scratch [stage_limit][layer_count] */

    /* The plan that het_pipeline_draft_plan hands out. */
    struct het_plan plan;
    struct het_pipeline pipeline;
    struct het_stage *plan_stages;
    struct het_replica *replicas; /* [GPUs] */
    uint32_t *gpus;               /* 0, 1, 2, ... */
    uint32_t *node_used;          /* [node]: GPUs given out */
};

/* ---- tables ---- */

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

static struct degree *degree_at(const struct het_pipeline_draft *draft, uint32_t type,
                                uint32_t index)
{
    return &draft->table[(size_t)type * draft->degree_count + index];
}

static void fill_degree(struct het_pipeline_draft *draft, uint32_t type, uint32_t index)
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
    degree->seconds = het_stage_times_by_samples(draft->arena, problem, type, degree->tp,
                                                 0, draft->layer_count, most);
    for (uint32_t n = 1; n <= most; n++)
        if (degree->seconds[n] < HUGE_VAL)
            degree->max_samples = n;
    if (degree->max_samples > draft->max_samples)
        draft->max_samples = degree->max_samples;
}

static bool cluster_has_type(const struct het_pipeline_draft *draft, uint32_t type)
{
    return draft->problem->profile_type[type] != HET_NO_TYPE &&
           het_cluster_type_gpu_count(draft->cluster, type) > 0;
}

static void add_degree(struct het_pipeline_draft *draft, uint32_t tp)
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

static void fill_tables(struct het_pipeline_draft *draft)
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
static void fill_gradients(struct het_pipeline_draft *draft)
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

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b));
}

static bool cost_alike(const struct het_pipeline_draft *draft, uint32_t a, uint32_t b)
{
    const struct het_profile *profile = draft->problem->profile;
    const double *bytes = draft->gradient_bytes;
    if (!is_near(bytes[a + 1] - bytes[a], bytes[b + 1] - bytes[b]))
        return false;
    for (size_t i = 0; i < profile->measurement_count; i++) {
        const struct het_measurement *point = &profile->measurements[i];
        if (!is_near(point->forward_s[a + 1] - point->forward_s[a],
                     point->forward_s[b + 1] - point->forward_s[b]) ||
            !is_near(point->backward_s[a + 1] - point->backward_s[a],
                     point->backward_s[b + 1] - point->backward_s[b]))
            return false;
    }
    return true;
}

static void fill_classes(struct het_pipeline_draft *draft)
{
    draft->classes =
        HET_ARENA_ARRAY(draft->arena, struct layer_class, draft->layer_count);
    for (uint32_t l = 0; l < draft->layer_count; l++) {
        size_t c = 0;
        while (c < draft->class_count && c < MAX_CLASSES &&
               !cost_alike(draft, draft->classes[c].layer, l))
            c++;
        if (c == draft->class_count || c == MAX_CLASSES) {
            c = draft->class_count++;
            draft->classes[c].layer = l;
        }
        draft->classes[c].count++;
    }
}

static void empty_cache(struct het_pipeline_draft *draft)
{
    draft->cache = het_arena_new();
    draft->sharings = het_memo_make(draft->cache, 0);
    draft->sends = het_memo_make(draft->cache, 0);
    draft->uniform_tables = het_memo_make(draft->cache, 0);
}

struct het_pipeline_draft *het_pipeline_draft_new(const struct het_problem *problem,
                                                  const struct het_cluster *cluster,
                                                  uint32_t stage_limit)
{
    struct het_pipeline_draft *draft = xcalloc(1, sizeof *draft);
    draft->gpu_count = het_cluster_gpu_count(cluster);
    draft->problem = problem;
    draft->cluster = cluster;
    draft->layer_count = problem->profile->layer_count;
    draft->type_count = (uint32_t)cluster->type_count;
    draft->stage_limit = stage_limit;
    draft->arena = het_arena_new();
    draft->times = het_stage_table_new(problem);
    empty_cache(draft);
    fill_tables(draft);
    fill_gradients(draft);
    fill_classes(draft);
    draft->stages = HET_ARENA_ARRAY(draft->arena, struct stage, stage_limit);
    for (uint32_t s = 0; s < stage_limit; s++) {
        draft->stages[s].tp = HET_ARENA_ARRAY(draft->arena, uint32_t, draft->type_count);
        draft->stages[s].has_type =
            HET_ARENA_ARRAY(draft->arena, bool, draft->type_count);
    }
    /* Groups cut a row in at most one more piece each. */
    draft->slots = HET_ARENA_ARRAY(draft->arena, struct het_device_group_slot,
                                   cluster->node_count + stage_limit);
    size_t kind_count = draft->type_count * draft->degree_count;
    draft->kinds = HET_ARENA_ARRAY(draft->arena, struct kind, kind_count);
    draft->left = HET_ARENA_ARRAY(draft->arena, uint32_t, kind_count);
    draft->key = HET_ARENA_ARRAY(draft->arena, uint32_t,
                                 3 * kind_count + 2 * (size_t)draft->type_count + 8);
    draft->space = het_balance_space_new(draft->layer_count, stage_limit);
    draft->balance = HET_ARENA_ARRAY(draft->arena, struct het_balance_stage, stage_limit);
    draft->cuts = HET_ARENA_ARRAY(draft->arena, uint32_t, (size_t)stage_limit + 1);
    draft->tried_cuts = HET_ARENA_ARRAY(draft->arena, uint32_t, (size_t)stage_limit + 1);
    draft->ends =
        HET_ARENA_ARRAY(draft->arena, uint32_t, (size_t)stage_limit * draft->layer_count);
    draft->plan_stages = HET_ARENA_ARRAY(draft->arena, struct het_stage, stage_limit);
    draft->replicas = HET_ARENA_ARRAY(draft->arena, struct het_replica, draft->gpu_count);
    draft->node_used = HET_ARENA_ARRAY(draft->arena, uint32_t, cluster->node_count);
    uint32_t largest = 0;
    for (size_t n = 0; n < cluster->node_count; n++)
        if (cluster->nodes[n].gpu_count > largest)
            largest = cluster->nodes[n].gpu_count;
    draft->gpus = HET_ARENA_ARRAY(draft->arena, uint32_t, largest);
    for (uint32_t i = 0; i < largest; i++)
        draft->gpus[i] = i;
    return draft;
}

void het_pipeline_draft_free(struct het_pipeline_draft *draft)
{
    if (!draft)
        return;
    het_balance_space_free(draft->space);
    het_stage_table_free(draft->times);
    het_arena_free(draft->cache);
    het_arena_free(draft->arena);
    xfree(draft);
}

const uint32_t *het_pipeline_draft_degrees(const struct het_pipeline_draft *draft,
                                           size_t *ret_count)
{
    *ret_count = draft->degree_count;
    return draft->degrees;
}

uint32_t het_pipeline_draft_max_samples(const struct het_pipeline_draft *draft)
{
    return draft->max_samples;
}

/* ---- what is drafted ---- */

static bool has_like_slots(const struct stage *a, const struct stage *b)
{
    if (a->slot_count != b->slot_count)
        return false;
    for (size_t i = 0; i < a->slot_count; i++)
        if (a->slots[i].type != b->slots[i].type ||
            a->slots[i].gpu_count != b->slots[i].gpu_count)
            return false;
    return true;
}

static bool is_uneven(const struct het_pipeline_draft *draft, uint32_t gpus)
{
    for (size_t i = 0; i < draft->degree_count && draft->degrees[i] <= gpus; i++)
        if (gpus % draft->degrees[i])
            return true;
    return false;
}

void het_pipeline_draft_groups(struct het_pipeline_draft *draft,
                               const struct het_device_group_row *row, uint32_t row_id,
                               const uint32_t *sizes, uint32_t stage_count)
{
    assert(stage_count <= draft->stage_limit);
    if (het_arena_bytes(draft->cache) > CACHE_BYTES) {
        het_arena_free(draft->cache);
        empty_cache(draft);
    }
    draft->row = row;
    draft->row_id = row_id;
    draft->stage_count = stage_count;
    uint32_t start = 0;
    struct het_device_group_slot *slots = draft->slots;
    for (uint32_t s = 0; s < stage_count; s++) {
        struct stage *stage = &draft->stages[s];
        stage->start = start;
        stage->size = sizes[s];
        stage->slots = slots;
        stage->slot_count = het_device_group_cut(row, start, sizes[s], slots);
        stage->sharing = NULL;
        stage->trim = false;
        memset(stage->tp, 0, draft->type_count * sizeof *stage->tp);
        memset(stage->has_type, false, draft->type_count * sizeof *stage->has_type);
        stage->is_like_last = s && has_like_slots(stage, stage - 1);
        stage->is_uneven = false;
        stage->uplink_bytes_per_s = stage->link_bytes_per_s = HUGE_VAL;
        for (size_t i = 0; i < stage->slot_count; i++) {
            const struct het_node *node = &draft->cluster->nodes[slots[i].node];
            stage->uplink_bytes_per_s =
                lesser(stage->uplink_bytes_per_s, node->uplink_bytes_per_s);
            stage->link_bytes_per_s =
                lesser(stage->link_bytes_per_s, node->intra_bytes_per_s);
            stage->has_type[slots[i].type] = true;
            stage->is_uneven |= is_uneven(draft, slots[i].gpu_count);
        }
        slots += stage->slot_count;
        start += sizes[s];
    }
    for (uint32_t s = 0; s < stage_count; s++)
        for (uint32_t type = 0; type < draft->type_count; type++)
            het_pipeline_draft_set_tp(draft, s, type, 1);
}

void het_pipeline_draft_batch(struct het_pipeline_draft *draft, uint32_t microbatch_count)
{
    draft->microbatch_count = microbatch_count;
    draft->samples = draft->problem->workload->global_batch / microbatch_count;
    for (uint32_t s = 0; s < draft->stage_count; s++)
        draft->stages[s].sharing = NULL;
    draft->uniform = NULL;
    if (draft->gpu_count > MAX_UNIFORM_GPUS)
        return;
    void **found =
        &het_memo_at(&draft->uniform_tables, &draft->samples, sizeof draft->samples)
             ->pointer;
    if (!*found)
        *found = HET_ARENA_ARRAY(draft->cache, struct sharing *,
                                 draft->type_count * draft->degree_count *
                                     ((size_t)draft->gpu_count + 1));
    draft->uniform = *found;
}

/* Index of the degree of replicas in `slot` when the stage's is `limit`: the largest up
 * to it that `type` has and that divides the GPUs (trimmed stages: that is not above
 * them); degree_count if there is none. */
static uint32_t find_degree(const struct het_pipeline_draft *draft,
                            const struct stage *stage,
                            const struct het_device_group_slot *slot, uint32_t limit)
{
    for (uint32_t i = (uint32_t)draft->degree_count; i-- > 0;) {
        uint32_t tp = draft->degrees[i];
        bool matches = stage->trim ? tp <= slot->gpu_count : slot->gpu_count % tp == 0;
        if (tp <= limit && matches && degree_at(draft, slot->type, i)->max_samples)
            return i;
    }
    return (uint32_t)draft->degree_count;
}

void het_pipeline_draft_set_tp(struct het_pipeline_draft *draft, uint32_t stage,
                               uint32_t type, uint32_t tp)
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

uint32_t het_pipeline_draft_tp(const struct het_pipeline_draft *draft, uint32_t stage,
                               uint32_t type)
{
    return draft->stages[stage].tp[type];
}

bool het_pipeline_draft_has_type(const struct het_pipeline_draft *draft, uint32_t stage,
                                 uint32_t type)
{
    return draft->stages[stage].has_type[type];
}

bool het_pipeline_draft_raise_tp(struct het_pipeline_draft *draft, uint32_t stage,
                                 uint32_t type)
{
    const struct stage *at = &draft->stages[stage];
    for (size_t d = 0; d < draft->degree_count; d++) {
        uint32_t tp = draft->degrees[d];
        if (tp <= at->tp[type])
            continue;
        for (size_t i = 0; i < at->slot_count; i++) {
            const struct het_device_group_slot *slot = &at->slots[i];
            if (slot->type == type && find_degree(draft, at, slot, tp) !=
                                          find_degree(draft, at, slot, at->tp[type])) {
                het_pipeline_draft_set_tp(draft, stage, type, tp);
                return true;
            }
        }
    }
    return false;
}

/* ---- samples ---- */

static uint32_t most_replicas(const struct het_pipeline_draft *draft)
{
    uint32_t most = draft->problem->workload->max_data_parallel;
    return most && most < draft->samples ? most : draft->samples;
}

/* Seconds of one sample on a replica of the kind, in the largest micro-batch. */
static double kind_seconds(const struct het_pipeline_draft *draft,
                           const struct kind *kind)
{
    const struct degree *degree = degree_at(draft, kind->type, kind->degree);
    return degree->seconds[degree->max_samples] / degree->max_samples;
}

/* Replicas of one kind, at most `most`, that share the samples evenly and are done first;
 * `most` if no number of them can. */
static uint32_t even_replicas(const struct het_pipeline_draft *draft,
                              const struct kind *kind, uint32_t most)
{
    const struct degree *degree = degree_at(draft, kind->type, kind->degree);
    uint32_t best = most;
    double best_s = HUGE_VAL;
    for (uint32_t n = 1; n <= most; n++) {
        uint32_t share = draft->samples / n;
        if (draft->samples % n == 0 && share <= degree->max_samples &&
            degree->seconds[share] < best_s) {
            best_s = degree->seconds[share];
            best = n;
        }
    }
    return best;
}

/* Leaves out replicas of the slowest kinds until there are not too many; of a single kind
 * so many that the rest share the samples evenly. Returns how many kinds are left. */
static size_t trim_kinds(struct het_pipeline_draft *draft, size_t count)
{
    uint64_t replicas = 0, most = most_replicas(draft);
    for (size_t k = 0; k < count; k++)
        replicas += draft->kinds[k].count;
    while (replicas > most) {
        size_t slowest = 0;
        for (size_t k = 1; k < count; k++)
            if (kind_seconds(draft, &draft->kinds[k]) >
                kind_seconds(draft, &draft->kinds[slowest]))
                slowest = k;
        struct kind *kind = &draft->kinds[slowest];
        uint64_t over = replicas - most;
        if (kind->count > over) {
            kind->count -= (uint32_t)over;
            break;
        }
        replicas -= kind->count;
        count--;
        memmove(kind, kind + 1, (count - slowest) * sizeof *kind);
    }
    if (count == 1)
        draft->kinds->count = even_replicas(draft, draft->kinds, draft->kinds->count);
    return count;
}

/* Kinds of replicas of the stage, by type and degree, into draft->kinds; returns how
 * many. 0 if some GPUs have no degree, or all are left out. */
static size_t find_kinds(struct het_pipeline_draft *draft, const struct stage *stage)
{
    size_t count = 0, at = 0;
    const struct het_device_group_slot *last = NULL;
    for (size_t i = 0; i < stage->slot_count; i++) {
        const struct het_device_group_slot *slot = &stage->slots[i];
        if (last && slot->type == last->type && slot->gpu_count == last->gpu_count) {
            draft->kinds[at].count += slot->gpu_count /
                                      draft->degrees[draft->kinds[at].degree];
            continue; /* most nodes are like the one before */
        }
        uint32_t degree = find_degree(draft, stage, slot, stage->tp[slot->type]);
        if (degree == draft->degree_count) {
            if (stage->trim)
                continue;
            return 0;
        }
        at = 0;
        while (at < count &&
               (draft->kinds[at].type != slot->type || draft->kinds[at].degree != degree))
            at++;
        if (at == count)
            draft->kinds[count++] = (struct kind){ slot->type, degree, 0 };
        draft->kinds[at].count += slot->gpu_count / draft->degrees[degree];
        last = slot;
    }
    return stage->trim ? trim_kinds(draft, count) : count;
}

void het_pipeline_draft_set_trim(struct het_pipeline_draft *draft, bool trim)
{
    for (uint32_t s = 0; s < draft->stage_count; s++) {
        if (draft->stages[s].trim != trim)
            draft->stages[s].sharing = NULL;
        draft->stages[s].trim = trim;
    }
}

uint64_t het_pipeline_draft_take_work(struct het_pipeline_draft *draft)
{
    uint64_t work = draft->work;
    draft->work = 0;
    return work;
}

uint64_t het_pipeline_draft_take_pairs(struct het_pipeline_draft *draft)
{
    return het_balance_space_take_work(draft->space);
}

bool het_pipeline_draft_can_trim(struct het_pipeline_draft *draft)
{
    for (uint32_t s = 0; s < draft->stage_count; s++)
        if (draft->stages[s].is_uneven ||
            het_pipeline_draft_share(draft, s) == HET_PIPELINE_DRAFT_CROWDED)
            return true;
    return false;
}

/* Distinct (type, degree, samples), with their times. */
static void find_parts(struct het_pipeline_draft *draft, struct sharing *sharing)
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
            times[count] = *het_stage_table_times(
                draft->times, (struct het_stage_kind){ .type = kind->type,
                                                       .tp = draft->degrees[kind->degree],
                                                       .samples = samples[r] });
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

static void share_samples(struct het_pipeline_draft *draft, struct sharing *sharing)
{
    if (sharing->replica_count > most_replicas(draft)) {
        sharing->state = HET_PIPELINE_DRAFT_CROWDED;
        return;
    }
    sharing->state = HET_PIPELINE_DRAFT_OVERFULL;
    if (sharing->replica_count < draft->problem->workload->min_data_parallel)
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
                             &seconds, &draft->work))
        return;
    sharing->samples = samples;
    sharing->state = HET_PIPELINE_DRAFT_SHARED;
    find_parts(draft, sharing);
    sharing->ends =
        HET_ARENA_ARRAY(draft->cache, const uint32_t *, (size_t)draft->stage_limit + 1);
}

/* Index of the kind that the slot's replicas belong to; kind_count if it has none. */
static uint32_t slot_kind(const struct het_pipeline_draft *draft,
                          const struct stage *stage,
                          const struct het_device_group_slot *slot)
{
    const struct sharing *sharing = stage->sharing;
    uint32_t degree = find_degree(draft, stage, slot, stage->tp[slot->type]), k = 0;
    while (k < sharing->kind_count &&
           (sharing->kinds[k].type != slot->type || sharing->kinds[k].degree != degree))
        k++;
    return k;
}

/* How many of its nodes a stage uses, and what the slowest of them have. */
static size_t used_nodes(const struct het_pipeline_draft *draft,
                         const struct stage *stage, double *ret_uplink, double *ret_link)
{
    *ret_uplink = stage->uplink_bytes_per_s;
    *ret_link = stage->link_bytes_per_s;
    if (!stage->trim)
        return stage->slot_count;
    const struct sharing *sharing = stage->sharing;
    uint32_t *left = draft->left;
    for (uint32_t k = 0; k < sharing->kind_count; k++)
        left[k] = sharing->kinds[k].count;
    *ret_uplink = *ret_link = HUGE_VAL;
    size_t nodes = 0;
    for (size_t i = 0; i < stage->slot_count; i++) {
        const struct het_device_group_slot *slot = &stage->slots[i];
        uint32_t k = slot_kind(draft, stage, slot);
        if (k == sharing->kind_count || !left[k])
            continue;
        uint32_t room = slot->gpu_count / draft->degrees[sharing->kinds[k].degree];
        left[k] -= left[k] < room ? left[k] : room;
        const struct het_node *node = &draft->cluster->nodes[slot->node];
        *ret_uplink = lesser(*ret_uplink, node->uplink_bytes_per_s);
        *ret_link = lesser(*ret_link, node->intra_bytes_per_s);
        nodes++;
    }
    return nodes;
}

/* Ring all-reduce over the replicas of a stage, seconds for each byte of its layers: each
 * node's uplink, or each GPU's link, carries 2 (n - 1) / n of it (cost.h). */
static double find_sync(const struct het_pipeline_draft *draft, const struct stage *stage)
{
    const struct sharing *sharing = stage->sharing;
    double n = sharing->replica_count, uplink, link;
    if (sharing->replica_count == 1)
        return 0;
    if (used_nodes(draft, stage, &uplink, &link) > 1)
        return 2 * (n - 1) / (n * uplink);
    uint32_t largest_tp = 1;
    for (uint32_t k = 0; k < sharing->kind_count; k++) {
        uint32_t tp = draft->degrees[sharing->kinds[k].degree];
        largest_tp = tp > largest_tp ? tp : largest_tp;
    }
    return 2 * (n - 1) / (n * link * largest_tp);
}

static bool is_used_alike(const struct het_pipeline_draft *draft, const struct stage *a,
                          const struct stage *b)
{
    for (uint32_t type = 0; type < draft->type_count; type++)
        if (a->tp[type] != b->tp[type])
            return false;
    return b->sharing && a->trim == b->trim;
}

/* The place of the sharing of draft->kinds. */
static struct sharing **sharing_at(struct het_pipeline_draft *draft, size_t kind_count)
{
    const struct kind *kinds = draft->kinds;
    if (kind_count == 1 && draft->uniform)
        return &draft->uniform[((size_t)kinds->type * draft->degree_count +
                                kinds->degree) *
                                   ((size_t)draft->gpu_count + 1) +
                               kinds->count];
    uint32_t length = 0, *key = draft->key;
    key[length++] = draft->samples;
    for (size_t k = 0; k < kind_count; k++) {
        key[length++] = kinds[k].type;
        key[length++] = kinds[k].degree;
        key[length++] = kinds[k].count;
    }
    void **found = &het_memo_at(&draft->sharings, key, length * sizeof *key)->pointer;
    if (!*found)
        *found = het_arena_alloc(draft->cache, sizeof(struct sharing *));
    return *found;
}

static struct sharing *make_sharing(struct het_pipeline_draft *draft, size_t kind_count)
{
    struct sharing *sharing = het_arena_alloc(draft->cache, sizeof *sharing);
    struct kind *kinds = HET_ARENA_ARRAY(draft->cache, struct kind, kind_count);
    memcpy(kinds, draft->kinds, kind_count * sizeof *kinds);
    sharing->id = draft->next_sharing++;
    sharing->kinds = kinds;
    sharing->kind_count = (uint32_t)kind_count;
    for (size_t k = 0; k < kind_count; k++)
        sharing->replica_count += kinds[k].count;
    share_samples(draft, sharing);
    return sharing;
}

enum het_pipeline_draft_share het_pipeline_draft_share(struct het_pipeline_draft *draft,
                                                       uint32_t stage)
{
    struct stage *at = &draft->stages[stage];
    if (at->sharing)
        return at->sharing->state;
    if (at->is_like_last && is_used_alike(draft, at, at - 1)) {
        at->sharing = at[-1].sharing;
    } else {
        size_t kind_count = find_kinds(draft, at);
        if (!kind_count)
            return HET_PIPELINE_DRAFT_UNUSABLE;
        struct sharing **sharing = sharing_at(draft, kind_count);
        if (!*sharing)
            *sharing = make_sharing(draft, kind_count);
        at->sharing = *sharing;
    }
    if (at->sharing->state == HET_PIPELINE_DRAFT_SHARED)
        at->sync_s_per_byte = find_sync(draft, at);
    return at->sharing->state;
}

/* ---- memory ---- */

static uint32_t in_flight(const struct het_pipeline_draft *draft, uint32_t stage)
{
    uint32_t behind = draft->stage_count - stage;
    return behind < draft->microbatch_count ? behind : draft->microbatch_count;
}

static double part_bytes(const struct het_pipeline_draft *draft,
                         const struct sharing *sharing, const struct part *part,
                         uint32_t microbatches, uint32_t first, uint32_t end)
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
static void limit_ends(const struct het_pipeline_draft *draft,
                       const struct sharing *sharing, const struct part *part,
                       uint32_t microbatches, uint32_t *ends)
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

static const uint32_t *stage_ends(struct het_pipeline_draft *draft, uint32_t stage)
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

/* Writes the replicas of a stage, slot by slot; a kind's shares fall in this order. Their
 * GPUs are given out later (assign_gpus). */
static void write_replicas(const struct het_pipeline_draft *draft,
                           const struct stage *stage, struct het_replica *replicas)
{
    const struct sharing *sharing = stage->sharing;
    uint32_t written = 0, *left = draft->left;
    for (uint32_t k = 0; k < sharing->kind_count; k++)
        left[k] = sharing->kinds[k].count;
    for (size_t i = 0; i < stage->slot_count; i++) {
        const struct het_device_group_slot *slot = &stage->slots[i];
        uint32_t kind = slot_kind(draft, stage, slot);
        if (kind == sharing->kind_count)
            continue;
        const uint32_t *samples_end = sharing->samples;
        for (uint32_t k = 0; k <= kind; k++)
            samples_end += sharing->kinds[k].count;
        uint32_t tp = draft->degrees[sharing->kinds[kind].degree];
        for (uint32_t gpu = 0; gpu + tp <= slot->gpu_count && left[kind]; gpu += tp) {
            uint32_t samples = samples_end[-(ptrdiff_t)left[kind]--];
            replicas[written++] =
                het_plan_replica(draft->cluster, slot->node, NULL, tp, samples);
        }
    }
    assert(written == sharing->replica_count);
}

/* A node's GPUs are used from 0 on, in the order of the plan, also where a stage left
 * some out. */
static void assign_gpus(struct het_pipeline_draft *draft, uint32_t replica_count)
{
    memset(draft->node_used, 0, draft->cluster->node_count * sizeof *draft->node_used);
    for (uint32_t r = 0; r < replica_count; r++) {
        struct het_replica *replica = &draft->replicas[r];
        replica->gpus = draft->gpus + draft->node_used[replica->node];
        draft->node_used[replica->node] += replica->tp;
    }
}

/* What, besides its place, says which replicas a stage has. */
static uint32_t add_stage_key(const struct het_pipeline_draft *draft,
                              const struct stage *stage, uint32_t *key, uint32_t length)
{
    key[length++] = stage->sharing->id;
    /* Untrimmed stages of equal kinds have equal degrees on every node. */
    key[length++] = stage->trim;
    for (uint32_t type = 0; stage->trim && type < draft->type_count; type++)
        key[length++] = stage->tp[type];
    return length;
}

/* Seconds to send to stage + 1, by the layer that it starts with (balance.h, send_s).
 * Layers with outputs of the same size are asked about once. Entry 0 is the least. */
static const double *stage_sends(struct het_pipeline_draft *draft, uint32_t stage)
{
    const struct stage *from = &draft->stages[stage], *to = from + 1;
    uint32_t length = 0, *key = draft->key;
    key[length++] = draft->row_id;
    key[length++] = from->start;
    key[length++] = from->size;
    key[length++] = to->size;
    length = add_stage_key(draft, from, key, length);
    length = add_stage_key(draft, to, key, length);
    void **found = &het_memo_at(&draft->sends, key, length * sizeof *key)->pointer;
    const double *known = *found;
    if (known)
        return known;
    write_replicas(draft, from, draft->replicas);
    write_replicas(draft, to, draft->replicas + from->sharing->replica_count);
    const struct het_stage sender = { .replicas = draft->replicas,
                                      .replica_count = from->sharing->replica_count };
    const struct het_stage receiver = { .replicas = draft->replicas +
                                                    from->sharing->replica_count,
                                        .replica_count = to->sharing->replica_count };
    double *sends = HET_ARENA_ARRAY(draft->cache, double, (size_t)draft->layer_count + 1);
    het_cost_sends(draft->problem, &sender, &receiver, sends);
    sends[0] = HUGE_VAL;
    for (uint32_t cut = 1; cut < draft->layer_count; cut++)
        sends[0] = fmin(sends[0], sends[cut]);
    *found = sends;
    return sends;
}

/* ---- bound ---- */

/* Seconds that the gradients of all layers take at least: B(y) of the header. */
static double sync_bound(const struct het_pipeline_draft *draft)
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
static double send_bound(struct het_pipeline_draft *draft, double speed)
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

double het_pipeline_draft_bound(struct het_pipeline_draft *draft, double worth_s)
{
    double more = draft->microbatch_count - 1.0;
    double speed = 0, compute_s = 0, joint_s = 0, sum_s = 0;
    for (uint32_t s = 0; s < draft->stage_count; s++)
        speed += 1 / draft->stages[s].sharing->seconds;
    for (size_t c = 0; c < draft->class_count; c++) {
        uint32_t l = draft->classes[c].layer, layers = draft->classes[c].count;
        double bytes = draft->gradient_bytes[l + 1] - draft->gradient_bytes[l];
        double least_s = HUGE_VAL, least_compute = HUGE_VAL, least_joint = HUGE_VAL;
        for (uint32_t s = 0; s < draft->stage_count; s++) {
            const struct sharing *sharing = draft->stages[s].sharing;
            if (s && sharing == draft->stages[s - 1].sharing &&
                draft->stages[s].sync_s_per_byte == draft->stages[s - 1].sync_s_per_byte)
                continue;
            const struct het_balance_times *times = sharing->slowest;
            double layer_s = times->forward_s[l + 1] - times->forward_s[l] +
                             times->backward_s[l + 1] - times->backward_s[l];
            double sync_s = bytes * draft->stages[s].sync_s_per_byte;
            least_s = lesser(least_s, layer_s);
            least_compute = lesser(least_compute, layer_s / sharing->seconds);
            least_joint =
                lesser(least_joint, (more * layer_s + sync_s) / sharing->seconds);
        }
        sum_s += layers * least_s;
        compute_s += layers * least_compute;
        joint_s += layers * least_joint;
    }
    double bound_s = sum_s +
                     fmax(more * compute_s / speed + sync_bound(draft), joint_s / speed);
    return bound_s < worth_s ? bound_s + send_bound(draft, speed) : bound_s;
}

/* ---- layers ---- */

/* Seconds that the gradients of the most loaded stage take. */
static double cuts_sync(const struct het_pipeline_draft *draft, const uint32_t *cuts)
{
    double largest_s = 0;
    for (uint32_t s = 0; s < draft->stage_count; s++)
        largest_s = fmax(largest_s, draft->stages[s].sync_s_per_byte *
                                        (draft->gradient_bytes[cuts[s + 1]] -
                                         draft->gradient_bytes[cuts[s]]));
    return largest_s;
}

/* Ends of `stage` so that its gradients take at most `limit_s`, and not beyond `ends`. */
static const uint32_t *sync_ends(struct het_pipeline_draft *draft, uint32_t stage,
                                 double limit_s, const uint32_t *ends)
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
 * into tried_cuts. */
static bool try_split(struct het_pipeline_draft *draft, const bool *limited,
                      double sync_limit_s, double worth_s, double *ret_pipeline_s)
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
    return het_balance_layers(draft->space, &question, worth_s, draft->tried_cuts,
                              ret_pipeline_s);
}

/* Less room for gradients can only raise T_p. So once T_p is known for some room, only
 * splits whose gradients take less than what T_p leaves of the best time can be better,
 * and that is the next room. */
bool het_pipeline_draft_balance(struct het_pipeline_draft *draft, const bool *limited,
                                double worth_s, double *ret_seconds)
{
    double floor_s = sync_bound(draft), limit_s = HUGE_VAL, best_s = worth_s, pipeline_s;
    for (int round = 0; round < HET_PIPELINE_DRAFT_MAX_ROUNDS; round++) {
        if (limit_s < floor_s ||
            !try_split(draft, limited, limit_s, best_s - floor_s, &pipeline_s))
            break;
        double sync_s = cuts_sync(draft, draft->tried_cuts);
        if (pipeline_s + sync_s < best_s) {
            best_s = pipeline_s + sync_s;
            memcpy(draft->cuts, draft->tried_cuts,
                   (draft->stage_count + 1) * sizeof *draft->cuts);
        }
        limit_s = nextafter(fmin(sync_s, best_s - pipeline_s), 0);
    }
    *ret_seconds = best_s;
    return best_s < worth_s;
}

/* The largest share of its memory that a replica of the stage needs, and which. */
static double worst_share(const struct het_pipeline_draft *draft, uint32_t stage,
                          uint32_t first, uint32_t end, const struct part **ret_part)
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

bool het_pipeline_draft_short(struct het_pipeline_draft *draft, uint32_t *ret_stage,
                              uint32_t *ret_type)
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

bool het_pipeline_draft_shortest(struct het_pipeline_draft *draft, uint32_t *ret_stage,
                                 uint32_t *ret_type)
{
    double most = 0;
    for (uint32_t s = 0; s < draft->stage_count; s++) {
        const struct sharing *sharing = draft->stages[s].sharing;
        uint32_t first = draft->cuts[s], end = draft->cuts[s + 1];
        if (stage_ends(draft, s)[first] >= end)
            continue;
        for (uint32_t p = 0; p < sharing->part_count; p++) {
            const struct part *part = &sharing->parts[p];
            double missing =
                part_bytes(draft, sharing, part, in_flight(draft, s), first, end) -
                het_memory_usable_bytes(draft->problem, part->type);
            if (missing > most) {
                most = missing;
                *ret_stage = s;
                *ret_type = part->type;
            }
        }
    }
    return most > 0;
}

static double needed_share(void *context, uint32_t stage, uint32_t first, uint32_t end)
{
    const struct part *part;
    return worst_share(context, stage, first, end, &part);
}

struct het_pipeline_draft_miss
het_pipeline_draft_nearest(struct het_pipeline_draft *draft)
{
    struct het_pipeline_draft_miss miss = { 0 };
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

const struct het_plan *het_pipeline_draft_plan(struct het_pipeline_draft *draft)
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
    assign_gpus(draft, (uint32_t)(replicas - draft->replicas));
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
