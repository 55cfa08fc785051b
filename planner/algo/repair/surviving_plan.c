#include "planner/algo/repair/surviving_plan.h"

#include "planner/cost/cost.h"
#include "planner/model/runtime.h"
#include "planner/search/stage_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A pipeline of the old plan, as far as it is left. */
struct rest {
    struct het_stage *stages;
    struct het_replica **replicas; /* [stage]: those of stages[stage], to be changed */
    size_t stage_count;
    uint32_t microbatch; /* samples */
    uint32_t lanes;      /* of equal shares; 0: shares are unequal */
    double first_s;      /* of an iteration with one micro-batch */
    double next_s;       /* for each further one */
    uint32_t count;      /* micro-batches given */
};

struct repair {
    struct het_arena *arena;
    const struct het_problem *problem;
    const struct het_node_name *names; /* of the cluster's nodes */
    struct rest *rests;
    size_t rest_count;
};

/* ---- what is left ---- */

/* Binds the replica; false if it cannot be where it was. */
static bool bind(const struct repair *repair, struct het_replica *replica)
{
    const struct het_problem *problem = repair->problem;
    const struct het_cluster *cluster = problem->cluster;
    replica->node = het_cluster_find_node(cluster, repair->names, replica->node_name);
    replica->type = het_cluster_find_type(cluster, replica->type_name);
    if (replica->node == HET_NO_NODE || replica->type == HET_NO_TYPE || !replica->tp ||
        cluster->nodes[replica->node].type != replica->type ||
        problem->profile_type[replica->type] == HET_NO_TYPE)
        return false;
    for (uint32_t i = 0; i < replica->tp; i++)
        if (replica->gpus[i] >= cluster->nodes[replica->node].gpu_count)
            return false;
    return true;
}

/* The number of lanes of a pipeline whose replicas all take as many samples; 0 of
 * another. */
static uint32_t count_lanes(const struct het_pipeline *pipeline)
{
    const struct het_stage *first = &pipeline->stages[0];
    for (size_t s = 0; s < pipeline->stage_count; s++) {
        const struct het_stage *stage = &pipeline->stages[s];
        if (stage->replica_count != first->replica_count)
            return 0;
        for (size_t r = 0; r < stage->replica_count; r++)
            if (stage->replicas[r].microbatch_size != first->replicas[0].microbatch_size)
                return 0;
    }
    return (uint32_t)first->replica_count;
}

static void copy_pipeline(struct repair *repair, const struct het_pipeline *from,
                          struct rest *rest)
{
    struct het_arena *arena = repair->arena;
    *rest = (struct rest){
        .stages = HET_ARENA_ARRAY(arena, struct het_stage, from->stage_count),
        .replicas = HET_ARENA_ARRAY(arena, struct het_replica *, from->stage_count),
        .stage_count = from->stage_count,
        .lanes = count_lanes(from),
    };
    for (size_t s = 0; s < from->stage_count; s++) {
        size_t count = from->stages[s].replica_count;
        rest->replicas[s] = HET_ARENA_ARRAY(arena, struct het_replica, count);
        memcpy(rest->replicas[s], from->stages[s].replicas,
               count * sizeof(struct het_replica));
        rest->stages[s] = from->stages[s];
        rest->stages[s].replicas = rest->replicas[s];
    }
}

/* Leaves out every lane that has lost a replica. False if none is left. */
static bool drop_lanes(const struct repair *repair, struct rest *rest)
{
    uint32_t kept = 0;
    for (uint32_t lane = 0; lane < rest->lanes; lane++) {
        bool lives = true;
        for (size_t s = 0; s < rest->stage_count; s++)
            lives &= bind(repair, &rest->replicas[s][lane]);
        if (!lives)
            continue;
        for (size_t s = 0; s < rest->stage_count; s++)
            rest->replicas[s][kept] = rest->replicas[s][lane];
        kept++;
    }
    rest->lanes = kept;
    for (size_t s = 0; s < rest->stage_count; s++)
        rest->stages[s].replica_count = kept;
    if (kept)
        rest->microbatch = kept * rest->replicas[0][0].microbatch_size;
    return kept > 0;
}

/* Each lane as a pipeline of its own, so that each can do its own number of
 * micro-batches. Appended behind `rest`, which becomes the first. */
static void part_lanes(struct repair *repair, struct rest *rest)
{
    struct rest whole = *rest;
    for (uint32_t lane = 0; lane < whole.lanes; lane++) {
        struct rest *one = &rest[lane];
        *one = whole;
        one->stages = HET_ARENA_ARRAY(repair->arena, struct het_stage, whole.stage_count);
        one->replicas =
            HET_ARENA_ARRAY(repair->arena, struct het_replica *, whole.stage_count);
        for (size_t s = 0; s < whole.stage_count; s++) {
            one->replicas[s] = &whole.replicas[s][lane];
            one->stages[s] = whole.stages[s];
            one->stages[s].replicas = one->replicas[s];
            one->stages[s].replica_count = 1;
        }
        one->lanes = 1;
        one->microbatch = whole.microbatch / whole.lanes;
    }
}

/* Shares a stage's samples out over the replicas that are left. */
static bool share_stage(const struct repair *repair, struct rest *rest, size_t s)
{
    struct het_replica *replicas = rest->replicas[s];
    size_t count = rest->stages[s].replica_count;
    struct het_balance_replicas *kinds =
        HET_ARENA_ARRAY(repair->arena, struct het_balance_replicas, count);
    uint32_t *shares = HET_ARENA_ARRAY(repair->arena, uint32_t, count);
    double slowest_s;
    for (size_t r = 0; r < count; r++)
        kinds[r] = (struct het_balance_replicas){
            .count = 1,
            .seconds = het_stage_times_by_samples(
                repair->arena, repair->problem, replicas[r].type, replicas[r].tp,
                rest->stages[s].first_layer, rest->stages[s].layer_count,
                rest->microbatch),
            .max_samples = rest->microbatch,
        };
    if (!het_balance_samples(kinds, count, rest->microbatch, shares, &slowest_s, NULL))
        return false;
    for (size_t r = 0; r < count; r++)
        replicas[r].microbatch_size = shares[r];
    return true;
}

/* Samples of a micro-batch beyond which shares are not worked out anew. */
#define MAX_SHARED 1024u

static bool drop_replicas(const struct repair *repair, struct rest *rest)
{
    uint64_t samples = 0;
    for (size_t r = 0; r < rest->stages[0].replica_count; r++)
        samples += rest->replicas[0][r].microbatch_size;
    if (!samples || samples > MAX_SHARED)
        return false;
    rest->microbatch = (uint32_t)samples;
    for (size_t s = 0; s < rest->stage_count; s++) {
        size_t kept = 0, before = rest->stages[s].replica_count;
        for (size_t r = 0; r < before; r++)
            if (bind(repair, &rest->replicas[s][r]))
                rest->replicas[s][kept++] = rest->replicas[s][r];
        rest->stages[s].replica_count = kept;
        if (!kept || (kept < before && !share_stage(repair, rest, s)))
            return false;
    }
    return true;
}

/* ---- who does how much ---- */

/* Seconds of the pipeline alone, by the closed form; false if something of it is not
 * measured. */
static bool price(const struct repair *repair, struct rest *rest)
{
    double seconds[2];
    for (uint32_t i = 0; i < 2; i++) {
        const struct het_pipeline pipeline = { .microbatch_count = 1 + i,
                                               .stages = rest->stages,
                                               .stage_count = rest->stage_count };
        const struct het_plan alone = { .pipelines = &pipeline, .pipeline_count = 1 };
        struct het_cost cost;
        if (het_cost_plan(repair->problem, &alone, &cost, NULL) < 0)
            return false;
        seconds[i] = cost.pipeline_s;
    }
    rest->first_s = seconds[0];
    rest->next_s = seconds[1] - seconds[0];
    return true;
}

static double end_after(const struct rest *rest, uint32_t count)
{
    return count ? rest->first_s + (count - 1.0) * rest->next_s : 0;
}

/* Time within which all of the batch is done, if micro-batches could be had by halves:
 * a start for give_out. */
static uint32_t count_within(const struct rest *rest, double seconds)
{
    if (seconds < rest->first_s)
        return 0;
    double more = rest->next_s > 0 ? floor((seconds - rest->first_s) / rest->next_s) : 0;
    return 1 + (uint32_t)fmin(more, UINT32_MAX / 2);
}

static uint64_t samples_within(const struct repair *repair, double seconds)
{
    uint64_t samples = 0;
    for (size_t i = 0; i < repair->rest_count; i++)
        samples += (uint64_t)count_within(&repair->rests[i], seconds) *
                   repair->rests[i].microbatch;
    return samples;
}

#define MAX_BISECTIONS 64

/* Gives out as many micro-batches as fit into the batch; returns the samples left. */
static uint32_t give_out(struct repair *repair)
{
    uint32_t batch = repair->problem->workload->global_batch;
    double low = 0, high = 1e-6;
    for (int i = 0; i < MAX_BISECTIONS && samples_within(repair, high) <= batch; i++)
        high *= 2;
    for (int i = 0; i < MAX_BISECTIONS; i++) {
        double middle = (low + high) / 2;
        *(samples_within(repair, middle) <= batch ? &low : &high) = middle;
    }
    uint32_t left = batch;
    for (size_t i = 0; i < repair->rest_count; i++) {
        struct rest *rest = &repair->rests[i];
        rest->count = count_within(rest, low);
        left -= rest->count * rest->microbatch;
    }
    for (;;) {
        struct rest *best = NULL;
        for (size_t i = 0; i < repair->rest_count; i++) {
            struct rest *rest = &repair->rests[i];
            if (rest->microbatch <= left &&
                (!best ||
                 end_after(rest, rest->count + 1) < end_after(best, best->count + 1)))
                best = rest;
        }
        if (!best)
            return left;
        best->count++;
        left -= best->microbatch;
    }
}

/* Gives each of the first `lanes` lanes `share` samples of a micro-batch. */
static void set_shares(struct rest *rest, uint32_t lanes, uint32_t share)
{
    for (size_t s = 0; s < rest->stage_count; s++) {
        rest->stages[s].replica_count = lanes;
        for (size_t r = 0; r < lanes; r++)
            rest->replicas[s][r].microbatch_size = share;
    }
    rest->lanes = lanes;
    rest->microbatch = share * lanes;
}

struct shares {
    double seconds; /* HUGE_VAL: none */
    uint32_t lanes, share;
};

/* The fastest way for a pipeline to do `samples` in micro-batches of equal shares, if
 * need be on fewer lanes. */
static struct shares try_shares(const struct repair *repair, struct rest *rest,
                                uint32_t samples)
{
    const struct het_workload *workload = repair->problem->workload;
    const struct rest before = *rest;
    uint32_t share = rest->replicas[0][0].microbatch_size;
    struct shares best = { .seconds = HUGE_VAL };
    for (uint32_t lanes = before.lanes; lanes >= 1; lanes--)
        for (uint32_t n = share; n >= 1; n--) {
            if (samples % (n * lanes) || !het_workload_allows_microbatch(workload, n))
                continue;
            set_shares(rest, lanes, n);
            if (!price(repair, rest))
                continue;
            double seconds = end_after(rest, samples / rest->microbatch);
            if (seconds < best.seconds)
                best = (struct shares){ seconds, lanes, n };
        }
    set_shares(rest, before.lanes, share);
    *rest = before;
    return best;
}

/* Has one pipeline do the `left` samples besides its own. */
static bool do_rest(struct repair *repair, uint32_t left)
{
    struct rest *best = NULL;
    struct shares best_shares = { .seconds = HUGE_VAL };
    for (size_t i = 0; i < repair->rest_count; i++) {
        struct rest *rest = &repair->rests[i];
        if (!rest->lanes)
            continue;
        struct shares shares =
            try_shares(repair, rest, rest->count * rest->microbatch + left);
        if (shares.seconds < best_shares.seconds) {
            best = rest;
            best_shares = shares;
        }
    }
    if (!best)
        return false;
    uint32_t samples = best->count * best->microbatch + left;
    set_shares(best, best_shares.lanes, best_shares.share);
    best->count = samples / best->microbatch;
    return true;
}

/* ---- the plan ---- */

/* GPUs of a node are 0 .. k-1 in plan order. */
static void number_gpus(struct repair *repair)
{
    uint32_t *next =
        HET_ARENA_ARRAY(repair->arena, uint32_t, repair->problem->cluster->node_count);
    for (size_t i = 0; i < repair->rest_count; i++) {
        struct rest *rest = &repair->rests[i];
        for (size_t s = 0; rest->count && s < rest->stage_count; s++)
            for (size_t r = 0; r < rest->stages[s].replica_count; r++) {
                struct het_replica *replica = &rest->replicas[s][r];
                uint32_t *gpus = HET_ARENA_ARRAY(repair->arena, uint32_t, replica->tp);
                for (uint32_t k = 0; k < replica->tp; k++)
                    gpus[k] = next[replica->node]++;
                replica->gpus = gpus;
            }
    }
}

static const struct het_plan *make_plan(struct repair *repair, const struct het_plan *old)
{
    const struct het_workload *workload = repair->problem->workload;
    struct het_plan *plan = het_arena_alloc(repair->arena, sizeof *plan);
    struct het_pipeline *pipelines =
        HET_ARENA_ARRAY(repair->arena, struct het_pipeline, repair->rest_count);
    number_gpus(repair);
    *plan = (struct het_plan){
        .algorithm = "repair",
        .global_batch = workload->global_batch,
        .layer_count = old->layer_count,
        .precision = workload->precision,
        .optimizer = workload->optimizer,
        .pipelines = pipelines,
    };
    for (size_t i = 0; i < repair->rest_count; i++) {
        const struct rest *rest = &repair->rests[i];
        if (rest->count)
            pipelines[plan->pipeline_count++] =
                (struct het_pipeline){ .microbatch_count = rest->count,
                                       .stages = rest->stages,
                                       .stage_count = rest->stage_count };
    }
    return plan;
}

/* Whether the pipeline can be looked at at all: plans come from outside. */
static bool covers_layers(const struct het_pipeline *pipeline, uint32_t layer_count)
{
    uint64_t next = 0;
    for (size_t s = 0; s < pipeline->stage_count; s++) {
        const struct het_stage *stage = &pipeline->stages[s];
        if (stage->first_layer != next || !stage->layer_count)
            return false;
        next += stage->layer_count;
    }
    return pipeline->stage_count && next == layer_count;
}

/* What is left of a pipeline. */
static void add_rest(struct repair *repair, const struct het_pipeline *pipeline)
{
    const struct het_runtime *runtime = repair->problem->workload->runtime;
    struct rest *rest = &repair->rests[repair->rest_count];
    copy_pipeline(repair, pipeline, rest);
    uint32_t lanes = rest->lanes;
    bool lives = lanes ? drop_lanes(repair, rest) : drop_replicas(repair, rest);
    if (!lives || !rest->microbatch || !price(repair, rest))
        return;
    if (rest->lanes > 1 && rest->lanes < lanes &&
        het_runtime_has(runtime, HET_COUNT_PER_PIPELINE)) {
        uint32_t left = rest->lanes;
        part_lanes(repair, rest);
        for (uint32_t lane = 0; lane < left; lane++)
            price(repair, &rest[lane]);
        repair->rest_count += left;
    } else {
        repair->rest_count++;
    }
}

const struct het_plan *het_repair(struct het_arena *arena,
                                  const struct het_problem *problem,
                                  const struct het_plan *old)
{
    size_t most = 0;
    if (old->layer_count != problem->profile->layer_count)
        return NULL;
    for (size_t p = 0; p < old->pipeline_count; p++) {
        if (!covers_layers(&old->pipelines[p], old->layer_count))
            return NULL;
        most += 1 + old->pipelines[p].stages[0].replica_count;
    }
    struct repair repair = { .arena = arena,
                             .problem = problem,
                             .names = het_cluster_sort_names(arena, problem->cluster),
                             .rests = HET_ARENA_ARRAY(arena, struct rest, most) };
    for (size_t p = 0; p < old->pipeline_count; p++)
        add_rest(&repair, &old->pipelines[p]);
    if (!repair.rest_count)
        return NULL;
    uint32_t left = give_out(&repair);
    if (left && !do_rest(&repair, left))
        return NULL;
    return make_plan(&repair, old);
}
