#include "planner/algo/metis/metis_search.h"

#include "planner/algo/metis/paper_walk.h"
#include "planner/algo/metis/pipeline_draft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_VARIANCE 0.5 /* Metis, section 5.4 */
#define DEFAULT_PERMUTE  4u
/* Up to this many GPUs every group size is tried unless the options say otherwise. */
#define ANY_SIZE_GPUS    12u

/* What a look at a candidate costs beyond one unit: groups are walked node by node. */
#define GPUS_A_UNIT 256u

/* With more GPUs than this, higher degrees are not tried where the bound with lower ones
 * is REACH times the best plan's time: they would have to be that much faster. */
#define REACH_GPUS 32u
#define REACH      2.0

struct metis {
    struct het_search *search;
    enum het_metis_order order;
    struct het_pipeline_draft *draft;
    struct het_arena *arena;
    uint32_t type_count, gpu_count;

    struct het_device_group_row *rows; /* one for each order of types */
    size_t row_count;
    uint32_t *batches; /* divisors of the global batch, falling */
    size_t batch_count;

    uint32_t stage_limit, stage_count;
    struct het_device_group_slot *slots; /* scratch of a walk */
    bool *limited;                       /* [stage]: must fit in memory */
    bool *all_limited;                   /* [stage]: true */
    uint32_t *best_tp;                   /* [stage][type] of the plan kept last */
    uint32_t *last_tp; /* [stage][type] of the start tried last, trimmed or not */
    bool last_trim;
    double bound_s; /* of the candidate looked at last */
    uint32_t branches_left;
    uint64_t cells; /* of one split, for the effort */
};

/* ---- one candidate: groups, degrees, micro-batches ---- */

static void note_miss(struct metis *metis)
{
    struct het_search *search = metis->search;
    if (search->incumbent)
        return;
    struct het_pipeline_draft_miss miss = het_pipeline_draft_nearest(metis->draft);
    uint64_t taken = metis->cells / HET_EFFORT_CELLS_A_UNIT * 4;
    het_search_spend(search, taken);
    het_search_settle(search, het_pipeline_draft_take_pairs(metis->draft), taken);
    het_search_miss(search, miss.type, miss.needed_bytes,
                    "layers %u-%u, tensor-parallel degree %u, micro-batch %u, %u in "
                    "flight",
                    miss.first_layer, miss.first_layer + miss.layer_count - 1, miss.tp,
                    miss.samples, miss.in_flight);
}

/* The degrees of all stages into `ret_tp`; whether they differ from what was there. */
static bool copy_tp(struct metis *metis, uint32_t *ret_tp)
{
    bool differs = false;
    for (uint32_t stage = 0; stage < metis->stage_count; stage++)
        for (uint32_t type = 0; type < metis->type_count; type++, ret_tp++) {
            uint32_t tp = het_pipeline_draft_tp(metis->draft, stage, type);
            differs |= *ret_tp != tp;
            *ret_tp = tp;
        }
    return differs;
}

static bool offer(struct metis *metis)
{
    het_search_spend(metis->search, metis->gpu_count / HET_EFFORT_REPLICAS_A_UNIT + 1);
    if (!het_search_offer(metis->search, het_pipeline_draft_plan(metis->draft)))
        return false;
    copy_tp(metis, metis->best_tp);
    return true;
}

static bool is_promising(struct metis *metis)
{
    double worth_s = het_search_worth(metis->search);
    metis->bound_s = het_pipeline_draft_bound(metis->draft, worth_s);
    return metis->bound_s < worth_s;
}

/* Splits the layers with the memory limits of `limited`. */
static bool split(struct metis *metis, const bool *limited)
{
    struct het_search *search = metis->search;
    uint64_t taken = metis->cells / HET_EFFORT_CELLS_A_UNIT + 1;
    double seconds;
    search->statistics.strategies_tried++;
    het_search_spend(search, taken);
    bool found = het_pipeline_draft_balance(metis->draft, limited,
                                            het_search_worth(search), &seconds);
    het_search_settle(search, het_pipeline_draft_take_pairs(metis->draft), taken);
    if (found)
        return true;
    search->statistics.partitions_failed++;
    return false;
}

/* The first stage that does not fit; notes where that is not the one that is short of
 * most bytes. */
static bool find_first(struct metis *metis, uint32_t *ret_stage, uint32_t *ret_type)
{
    uint32_t stage, type;
    if (!het_pipeline_draft_short(metis->draft, ret_stage, ret_type))
        return false;
    if (!metis->search->has_short_stages &&
        (!het_pipeline_draft_shortest(metis->draft, &stage, &type) ||
         stage != *ret_stage || type != *ret_type))
        metis->search->has_short_stages = true;
    return true;
}

/* Of the stages that do not fit, the one to be dealt with next; false if all fit. */
static bool find_short(struct metis *metis, uint32_t *ret_stage, uint32_t *ret_type)
{
    switch (metis->order) {
    case HET_METIS_FIRST_STAGE:
        return find_first(metis, ret_stage, ret_type);
    case HET_METIS_SHORTEST_STAGE:
        return het_pipeline_draft_shortest(metis->draft, ret_stage, ret_type);
    }
    return false;
}

/* Follows both ways out of memory from here, depth first. Returns whether a plan was
 * kept. */
static bool branch(struct metis *metis)
{
    if (!metis->branches_left || !metis->search->effort_left)
        return false;
    metis->branches_left--;
    uint32_t stage, type;
    if (!split(metis, metis->limited)) {
        note_miss(metis);
        return false;
    }
    if (!find_short(metis, &stage, &type))
        return offer(metis);

    metis->limited[stage] = true;
    bool kept = branch(metis);
    metis->limited[stage] = false;

    uint32_t tp = het_pipeline_draft_tp(metis->draft, stage, type);
    if (het_pipeline_draft_raise_tp(metis->draft, stage, type)) {
        if (het_pipeline_draft_share(metis->draft, stage) == HET_PIPELINE_DRAFT_SHARED)
            kept = branch(metis) || kept;
        het_pipeline_draft_set_tp(metis->draft, stage, type, tp);
        het_pipeline_draft_share(metis->draft, stage);
    }
    return kept;
}

/* Raises the lowest degree of the stage that can be raised. */
static bool raise_lowest(struct metis *metis, uint32_t stage)
{
    uint32_t tried_tp = 0;
    for (;;) {
        uint32_t next_tp = UINT32_MAX;
        for (uint32_t type = 0; type < metis->type_count; type++) {
            uint32_t tp = het_pipeline_draft_tp(metis->draft, stage, type);
            if (het_pipeline_draft_has_type(metis->draft, stage, type) && tp > tried_tp &&
                tp < next_tp)
                next_tp = tp;
        }
        if (next_tp == UINT32_MAX)
            return false;
        for (uint32_t type = 0; type < metis->type_count; type++)
            if (het_pipeline_draft_has_type(metis->draft, stage, type) &&
                het_pipeline_draft_tp(metis->draft, stage, type) == next_tp &&
                het_pipeline_draft_raise_tp(metis->draft, stage, type))
                return true;
        tried_tp = next_tp;
    }
}

/* Raises degrees where a stage has more replicas than samples, or replicas that cannot
 * take the samples, until they can; false if they never can. */
static bool settle(struct metis *metis)
{
    for (uint32_t stage = 0; stage < metis->stage_count; stage++)
        while (het_pipeline_draft_share(metis->draft, stage) != HET_PIPELINE_DRAFT_SHARED)
            if (!raise_lowest(metis, stage))
                return false;
    return true;
}

/* Tries one other degree of one type in one stage; keeps it if that is the best plan. */
static bool step(struct metis *metis, uint32_t stage, uint32_t type, uint32_t tp)
{
    uint32_t before = het_pipeline_draft_tp(metis->draft, stage, type);
    if (tp == before)
        return false;
    het_pipeline_draft_set_tp(metis->draft, stage, type, tp);
    if (het_pipeline_draft_share(metis->draft, stage) == HET_PIPELINE_DRAFT_SHARED &&
        is_promising(metis) && split(metis, metis->all_limited) && offer(metis))
        return true;
    het_pipeline_draft_set_tp(metis->draft, stage, type, before);
    het_pipeline_draft_share(metis->draft, stage);
    return false;
}

/* From the plan kept last: changes one stage's degree at a time as long as it helps. */
static void climb(struct metis *metis)
{
    size_t degree_count;
    const uint32_t *degrees = het_pipeline_draft_degrees(metis->draft, &degree_count);
    for (uint32_t stage = 0; stage < metis->stage_count; stage++) {
        for (uint32_t type = 0; type < metis->type_count; type++)
            het_pipeline_draft_set_tp(metis->draft, stage, type,
                                      metis->best_tp[stage * metis->type_count + type]);
        het_pipeline_draft_share(metis->draft, stage);
    }
    for (bool better = true; better && metis->search->effort_left;) {
        better = false;
        for (uint32_t stage = 0; stage < metis->stage_count; stage++)
            for (uint32_t type = 0; type < metis->type_count; type++)
                for (size_t d = 0;
                     het_pipeline_draft_has_type(metis->draft, stage, type) &&
                     d < degree_count;
                     d++)
                    better = step(metis, stage, type, degrees[d]) || better;
    }
}

/* All stages at degree `tp` at least. */
static void set_start(struct metis *metis, uint32_t tp, bool trim)
{
    het_pipeline_draft_set_trim(metis->draft, trim);
    for (uint32_t stage = 0; stage < metis->stage_count; stage++)
        for (uint32_t type = 0; type < metis->type_count; type++)
            het_pipeline_draft_set_tp(metis->draft, stage, type, tp);
}

/* Follows one start to its plans, unless it settled where the last one did. */
static void try_start(struct metis *metis, bool trim)
{
    if (!settle(metis))
        return;
    bool differs = copy_tp(metis, metis->last_tp) || trim != metis->last_trim;
    metis->last_trim = trim;
    if (!differs || !is_promising(metis))
        return;
    metis->branches_left = HET_METIS_SEARCH_MAX_BRANCHES;
    memset(metis->limited, 0, metis->stage_count * sizeof *metis->limited);
    if (branch(metis))
        climb(metis);
}

static bool try_batch(struct metis *metis, uint32_t microbatch_count)
{
    size_t degree_count;
    const uint32_t *degrees = het_pipeline_draft_degrees(metis->draft, &degree_count);
    het_pipeline_draft_batch(metis->draft, microbatch_count);
    metis->last_tp[0] = 0; /* no start yet */
    metis->bound_s = 0;
    for (size_t d = 0; d < degree_count; d++) {
        if (metis->gpu_count > REACH_GPUS &&
            metis->bound_s > REACH * het_search_worth(metis->search))
            break;
        uint64_t shared = het_pipeline_draft_take_work(metis->draft) /
                          HET_EFFORT_WORDS_A_UNIT;
        if (!het_search_spend(metis->search, 1 + metis->gpu_count / GPUS_A_UNIT + shared))
            return false;
        set_start(metis, degrees[d], false);
        bool can_trim = het_pipeline_draft_can_trim(metis->draft);
        try_start(metis, false);
        if (can_trim) {
            set_start(metis, degrees[d], true);
            try_start(metis, true);
        }
    }
    return metis->search->effort_left > 0;
}

/* ---- enumeration ---- */

static bool visit_groups(void *context, const uint32_t *sizes, uint32_t count)
{
    struct metis *metis = context;
    metis->search->statistics.groups_enumerated++;
    /* One group of all GPUs is the same in every order of types. */
    size_t rows = count == 1 ? 1 : metis->row_count;
    for (size_t r = 0; r < rows; r++) {
        het_pipeline_draft_groups(metis->draft, &metis->rows[r], (uint32_t)r, sizes,
                                  count);
        for (size_t b = 0; b < metis->batch_count; b++)
            if (!try_batch(metis, metis->batches[b]))
                return false;
    }
    return true;
}

/* Divisors of `number`, falling. */
static size_t find_divisors(struct het_arena *arena, uint32_t number, uint32_t **ret)
{
    size_t count = 0;
    for (uint64_t d = 1; d * d <= number; d++)
        if (number % d == 0)
            count += d * d == number ? 1 : 2;
    uint32_t *divisors = HET_ARENA_ARRAY(arena, uint32_t, count);
    size_t low = 0, high = count;
    for (uint64_t d = 1; d * d <= number; d++)
        if (number % d == 0) {
            divisors[low++] = number / (uint32_t)d;
            if (d * d != number)
                divisors[--high] = (uint32_t)d;
        }
    *ret = divisors;
    return count;
}

/* A row for each order of the types; then, if `mixed`, one in which they take turns. */
static void fill_rows(struct metis *metis, bool mixed)
{
    const struct het_cluster *cluster = metis->search->available;
    const uint32_t *orders;
    size_t types;
    size_t count = het_device_group_type_orders(metis->arena, cluster, &orders, &types);
    metis->rows = HET_ARENA_ARRAY(metis->arena, struct het_device_group_row, 2 * count);
    for (size_t r = 0; r < count; r++)
        metis->rows[metis->row_count++] =
            het_device_group_row_of(metis->arena, cluster, orders + r * types, types);
    for (size_t r = 0; mixed && types > 1 && r < count; r++)
        metis->rows[metis->row_count++] =
            het_device_group_row_mixed(metis->arena, cluster, orders + r * types, types);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Fills `metis` for a run; het_metis_* give it back with stop(). */
static void start(struct metis *metis, struct het_search *search,
                  enum het_metis_order order)
{
    const struct het_workload *workload = search->problem->workload;
    *metis = (struct metis){
        .search = search,
        .order = order,
        .arena = het_arena_new(),
        .type_count = (uint32_t)search->available->type_count,
        .gpu_count = het_cluster_gpu_count(search->available),
    };
    metis->batch_count =
        find_divisors(metis->arena, workload->global_batch, &metis->batches);
    uint32_t limit = least(search->problem->profile->layer_count, metis->gpu_count);
    if (workload->max_pipeline_parallel)
        limit = least(limit, workload->max_pipeline_parallel);
    metis->stage_limit = limit;
    metis->limited = HET_ARENA_ARRAY(metis->arena, bool, limit);
    metis->all_limited = HET_ARENA_ARRAY(metis->arena, bool, limit);
    memset(metis->all_limited, true, limit * sizeof *metis->all_limited);
    metis->best_tp = HET_ARENA_ARRAY(metis->arena, uint32_t, limit * metis->type_count);
    metis->last_tp = HET_ARENA_ARRAY(metis->arena, uint32_t, limit * metis->type_count);
    if (limit)
        metis->draft = het_pipeline_draft_new(search->problem, search->available, limit);
}

static void stop(struct metis *metis)
{
    if (metis->draft)
        het_pipeline_draft_free(metis->draft);
    het_arena_free(metis->arena);
}

static double variance(const struct het_search_options *options)
{
    return options->metis_variance > 0 ? options->metis_variance : DEFAULT_VARIANCE;
}

static uint32_t permute(const struct het_search_options *options)
{
    return options->metis_permute ? options->metis_permute : DEFAULT_PERMUTE;
}

static void enumerate(struct metis *metis)
{
    const struct het_search_options *options = metis->search->options;
    uint32_t layers = metis->search->problem->profile->layer_count;
    bool any_size = options->metis_sizes == HET_METIS_ANY_SIZE ||
                    (options->metis_sizes == HET_METIS_DEFAULT_SIZES &&
                     metis->gpu_count <= ANY_SIZE_GPUS);
    struct het_device_group_question question = {
        .gpu_count = metis->gpu_count,
        .sizes =
            het_device_group_sizes_of(metis->arena, metis->search->available, any_size),
        .variance = variance(options),
        .permute = permute(options),
    };
    for (uint32_t stages = 1; stages <= metis->stage_limit; stages++) {
        question.group_count = metis->stage_count = stages;
        metis->cells = (uint64_t)layers * layers * stages;
        if (!het_device_group_lists(&question, visit_groups, metis))
            break;
    }
}

int het_metis_search(struct het_search *search, enum het_metis_order order)
{
    struct metis metis;
    start(&metis, search, order);
    if (metis.draft) {
        fill_rows(&metis, search->options->metis_rows == HET_METIS_MIXED_ROWS);
        enumerate(&metis);
    }
    stop(&metis);
    return 0;
}

/* ---- the paper's own walk ---- */

/* A plan of the walk that can be built. */
struct kept {
    uint32_t *sizes, *tp; /* [stage] */
    uint32_t row_id, stage_count, microbatch_count;
    double seconds;
};

struct walk {
    struct metis *metis;
    struct kept kept[HET_METIS_WALK_KEPT]; /* the fastest first */
    uint32_t kept_count;
    uint64_t splits;  /* since effort was last taken */
    uint64_t reserve; /* effort left for what is kept */
};

/* Whether replicas of the plan's degrees stand inside nodes. */
static bool can_be_built(struct metis *metis, const struct het_paper_walk_plan *plan)
{
    struct het_device_group_slot *slots = metis->slots;
    uint32_t start_gpu = 0;
    for (uint32_t s = 0; s < plan->stage_count; s++) {
        size_t count = het_device_group_cut(&metis->rows[plan->row_id], start_gpu,
                                            plan->sizes[s], slots);
        for (size_t i = 0; i < count; i++)
            if (slots[i].gpu_count % plan->tp[s])
                return false;
        start_gpu += plan->sizes[s];
    }
    return true;
}

/* "V100 A100, 8 micro-batches: 16/4/3 16/2/7": GPUs, degree, layers of each stage. */
static const char *describe(struct het_arena *arena, const struct metis *metis,
                            const struct het_paper_walk_plan *plan)
{
    const struct het_device_group_row *row = &metis->rows[plan->row_id];
    const char *text = "";
    for (size_t i = 0; i < row->slot_count; i++)
        if (!i || row->slots[i].type != row->slots[i - 1].type)
            text = het_arena_printf(
                arena, "%s%s%s", text, i ? " " : "",
                metis->search->available->types[row->slots[i].type].name);
    text = het_arena_printf(arena, "%s, %u micro-batches:", text, plan->microbatch_count);
    for (uint32_t s = 0; s < plan->stage_count; s++)
        text = het_arena_printf(arena, "%s %u/%u/%u", text, plan->sizes[s], plan->tp[s],
                                plan->cuts[s + 1] - plan->cuts[s]);
    return text;
}

static void keep(struct walk *walk, const struct het_paper_walk_plan *plan)
{
    uint32_t at = walk->kept_count;
    if (at < HET_METIS_WALK_KEPT) {
        uint32_t limit = walk->metis->stage_limit;
        walk->kept[at].sizes = HET_ARENA_ARRAY(walk->metis->arena, uint32_t, limit);
        walk->kept[at].tp = HET_ARENA_ARRAY(walk->metis->arena, uint32_t, limit);
        walk->kept_count++;
    } else {
        at--;
    }
    struct kept kept = walk->kept[at]; /* its arrays are used again */
    for (; at && walk->kept[at - 1].seconds > plan->seconds; at--)
        walk->kept[at] = walk->kept[at - 1];
    kept.row_id = plan->row_id;
    kept.stage_count = plan->stage_count;
    kept.microbatch_count = plan->microbatch_count;
    kept.seconds = plan->seconds;
    memcpy(kept.sizes, plan->sizes, plan->stage_count * sizeof *kept.sizes);
    memcpy(kept.tp, plan->tp, plan->stage_count * sizeof *kept.tp);
    walk->kept[at] = kept;
}

static void visit_plan(void *context, const struct het_paper_walk_plan *plan)
{
    struct walk *walk = context;
    struct het_search *search = walk->metis->search;
    struct het_search_statistics *statistics = &search->statistics;
    if (!statistics->walk_best || plan->seconds < statistics->walk_best_s) {
        statistics->walk_best_s = plan->seconds;
        statistics->walk_best = describe(search->arena, walk->metis, plan);
    }
    bool is_full = walk->kept_count == HET_METIS_WALK_KEPT;
    if (is_full && plan->seconds >= walk->kept[walk->kept_count - 1].seconds)
        return;
    if (can_be_built(walk->metis, plan))
        keep(walk, plan);
}

static bool spend_splits(void *context, uint64_t splits)
{
    struct walk *walk = context;
    walk->splits += splits;
    if (walk->splits < HET_METIS_WALK_SPLITS_A_UNIT)
        return true;
    uint64_t units = walk->splits / HET_METIS_WALK_SPLITS_A_UNIT;
    walk->splits %= HET_METIS_WALK_SPLITS_A_UNIT;
    struct het_search *search = walk->metis->search;
    return het_search_spend(search, units) && search->effort_left > walk->reserve;
}

/* Groups, degrees and micro-batches of a kept plan; layers split anew. */
static void offer_kept(struct metis *metis, const struct kept *kept)
{
    uint32_t layers = metis->search->problem->profile->layer_count;
    metis->stage_count = kept->stage_count;
    metis->cells = (uint64_t)layers * layers * kept->stage_count;
    het_pipeline_draft_groups(metis->draft, &metis->rows[kept->row_id], kept->row_id,
                              kept->sizes, kept->stage_count);
    het_pipeline_draft_batch(metis->draft, kept->microbatch_count);
    for (uint32_t s = 0; s < kept->stage_count; s++) {
        for (uint32_t type = 0; type < metis->type_count; type++)
            het_pipeline_draft_set_tp(metis->draft, s, type, kept->tp[s]);
        if (het_pipeline_draft_share(metis->draft, s) != HET_PIPELINE_DRAFT_SHARED)
            return;
    }
    if (!is_promising(metis))
        return;
    if (split(metis, metis->all_limited))
        offer(metis);
    else
        note_miss(metis);
}

static void walk_rows(struct metis *metis, enum het_metis_order order)
{
    struct het_search *search = metis->search;
    struct walk walk = { .metis = metis, .reserve = search->effort_left / 8 };
    const struct het_paper_walk_question question = {
        .problem = search->problem,
        .cluster = search->available,
        .variance = variance(search->options),
        .permute = permute(search->options),
        .stage_limit = metis->stage_limit,
        .order = order == HET_METIS_SHORTEST_STAGE ? HET_PAPER_WALK_OOM_FIRST
                                                   : HET_PAPER_WALK_LAST_SPLIT,
        .memory = search->options->walk_memory,
        .context = &walk,
        .visit = visit_plan,
        .spend = spend_splits,
    };
    struct het_paper_walk_counts counts;
    het_paper_walk_run(&question, &counts);
    for (uint32_t i = 0; i < walk.kept_count && search->effort_left; i++)
        offer_kept(metis, &walk.kept[i]);
    search->statistics.groups_enumerated = counts.lists;
    search->statistics.strategies_tried = counts.strategies;
    search->statistics.partitions_failed = counts.failures;
    search->statistics.walk_steps = counts.steps;
    search->statistics.walk_plans = counts.plans;
    search->statistics.walk_broken = counts.broken;
}

int het_metis_search_walk(struct het_search *search, enum het_metis_order order)
{
    struct metis metis;
    start(&metis, search, order);
    if (metis.draft) {
        fill_rows(&metis, false);
        metis.slots = HET_ARENA_ARRAY(metis.arena, struct het_device_group_slot,
                                      metis.rows[0].slot_count);
        walk_rows(&metis, order);
    }
    stop(&metis);
    return 0;
}
