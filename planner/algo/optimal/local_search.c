#include "planner/algo/optimal/local_search.h"

#include "planner/algo/optimal/batch_share.h"
#include "planner/algo/optimal/layer_front.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- a plan that can be changed ---- */

struct replica {
    uint32_t node, type, tp, samples;
};

struct stage {
    struct replica *replicas;
    uint32_t count;
    uint32_t first, layers;
    enum het_recompute recompute;
};

struct pipe {
    struct stage *stages;
    uint32_t stage_count;
    uint32_t samples, microbatch_count;
    double sum_s, bottleneck_s;
};

struct polish {
    struct het_search *search;
    const struct het_problem *problem;
    struct het_stage_table *table;
    struct het_arena *arena;   /* of the state */
    struct het_arena *scratch; /* of the change at hand */
    struct pipe **pipes;
    size_t pipe_count, pipe_capacity;
    uint32_t *idle; /* [node] */
    double best_s;
    const struct het_plan *plan;
    uint64_t effort;
};

static bool spend(struct polish *polish, uint64_t units)
{
    uint64_t taken = units < polish->effort ? units : polish->effort;
    polish->effort -= taken;
    return het_search_spend(polish->search, taken) && taken == units;
}

static struct stage copy_stage(struct het_arena *arena, const struct stage *from,
                               uint32_t more)
{
    struct stage stage = *from;
    stage.replicas = HET_ARENA_ARRAY(arena, struct replica, from->count + (size_t)more);
    memcpy(stage.replicas, from->replicas, from->count * sizeof *from->replicas);
    return stage;
}

/* A copy with room for `more` stages and as many more replicas a stage. */
static struct pipe *copy_pipe(struct het_arena *arena, const struct pipe *from,
                              uint32_t more)
{
    struct pipe *pipe = het_arena_alloc(arena, sizeof *pipe);
    *pipe = *from;
    pipe->stages = HET_ARENA_ARRAY(arena, struct stage, from->stage_count + (size_t)more);
    for (uint32_t s = 0; s < from->stage_count; s++)
        pipe->stages[s] = copy_stage(arena, &from->stages[s], more);
    return pipe;
}

static struct pipe *read_pipe(struct het_arena *arena, const struct het_pipeline *from)
{
    struct pipe *pipe = het_arena_alloc(arena, sizeof *pipe);
    *pipe = (struct pipe){
        .stages = HET_ARENA_ARRAY(arena, struct stage, from->stage_count),
        .stage_count = (uint32_t)from->stage_count,
        .microbatch_count = from->microbatch_count,
    };
    for (uint32_t s = 0; s < from->stage_count; s++) {
        const struct het_stage *stage = &from->stages[s];
        pipe->stages[s] = (struct stage){
            .replicas = HET_ARENA_ARRAY(arena, struct replica, stage->replica_count),
            .count = (uint32_t)stage->replica_count,
            .first = stage->first_layer,
            .layers = stage->layer_count,
            .recompute = stage->recompute,
        };
        for (size_t r = 0; r < stage->replica_count; r++)
            pipe->stages[s].replicas[r] =
                (struct replica){ stage->replicas[r].node, stage->replicas[r].type,
                                  stage->replicas[r].tp,
                                  stage->replicas[r].microbatch_size };
    }
    for (size_t r = 0; r < from->stages[0].replica_count; r++)
        pipe->samples += from->stages[0].replicas[r].microbatch_size;
    return pipe;
}

/* ---- back to a plan ---- */

static void write_stage(struct het_arena *arena, const struct het_problem *problem,
                        const struct stage *from, uint32_t *next_gpu,
                        struct het_stage *ret)
{
    struct het_replica *replicas =
        HET_ARENA_ARRAY(arena, struct het_replica, from->count);
    for (uint32_t r = 0; r < from->count; r++) {
        const struct replica *replica = &from->replicas[r];
        uint32_t *gpus = HET_ARENA_ARRAY(arena, uint32_t, replica->tp);
        for (uint32_t t = 0; next_gpu && t < replica->tp; t++)
            gpus[t] = next_gpu[replica->node]++;
        replicas[r] = het_plan_replica(problem->cluster, replica->node, gpus, replica->tp,
                                       replica->samples);
    }
    *ret = (struct het_stage){
        .first_layer = from->first,
        .layer_count = from->layers,
        .recompute = from->recompute,
        .replicas = replicas,
        .replica_count = from->count,
    };
}

static struct het_plan *write_plan(struct het_arena *arena,
                                   const struct het_problem *problem,
                                   struct pipe *const *pipes, size_t pipe_count)
{
    uint32_t *next_gpu = HET_ARENA_ARRAY(arena, uint32_t, problem->cluster->node_count);
    struct het_plan *plan = het_arena_alloc(arena, sizeof *plan);
    struct het_pipeline *pipelines =
        HET_ARENA_ARRAY(arena, struct het_pipeline, pipe_count);
    *plan = (struct het_plan){
        .global_batch = problem->workload->global_batch,
        .layer_count = problem->profile->layer_count,
        .precision = problem->workload->precision,
        .optimizer = problem->workload->optimizer,
        .pipelines = pipelines,
    };
    for (size_t p = 0; p < pipe_count; p++) {
        if (!pipes[p]->microbatch_count)
            continue;
        struct het_stage *stages =
            HET_ARENA_ARRAY(arena, struct het_stage, pipes[p]->stage_count);
        for (uint32_t s = 0; s < pipes[p]->stage_count; s++)
            write_stage(arena, problem, &pipes[p]->stages[s], next_gpu, &stages[s]);
        pipelines[plan->pipeline_count++] =
            (struct het_pipeline){ .microbatch_count = pipes[p]->microbatch_count,
                                   .stages = stages,
                                   .stage_count = pipes[p]->stage_count };
    }
    return plan;
}

/* ---- samples over the replicas of a stage ---- */

static bool is_like(const struct replica *a, const struct replica *b)
{
    return a->type == b->type && a->tp == b->tp;
}

/* Like replicas stand together, in the order in which their kinds first appear. */
static void group_replicas(struct stage *stage)
{
    for (uint32_t i = 1; i < stage->count; i++) {
        struct replica moved = stage->replicas[i];
        uint32_t at = i;
        while (at && !is_like(&stage->replicas[at - 1], &moved))
            at--;
        if (!at)
            continue;
        memmove(&stage->replicas[at + 1], &stage->replicas[at],
                (i - at) * sizeof *stage->replicas);
        stage->replicas[at] = moved;
    }
}

#define MAX_KINDS 8u

/* Shares `samples` out over the replicas; false if they cannot. */
static bool share_stage(struct polish *polish, struct stage *stage, uint32_t samples)
{
    struct het_balance_replicas kinds[MAX_KINDS];
    size_t kind_count = 0;
    if (stage->count > samples)
        return false;
    group_replicas(stage);
    for (uint32_t r = 0; r < stage->count; r++) {
        if (r && is_like(&stage->replicas[r - 1], &stage->replicas[r])) {
            kinds[kind_count - 1].count++;
            continue;
        }
        if (kind_count == MAX_KINDS)
            return false;
        uint32_t most = het_profile_max_microbatch(
            polish->problem->profile,
            polish->problem->profile_type[stage->replicas[r].type],
            stage->replicas[r].tp);
        most = most < samples - stage->count + 1 ? most : samples - stage->count + 1;
        kinds[kind_count++] = (struct het_balance_replicas){
            .count = 1,
            .seconds = het_stage_times_by_samples(
                polish->scratch, polish->problem, stage->replicas[r].type,
                stage->replicas[r].tp, 0, polish->problem->profile->layer_count, most),
            .max_samples = most,
        };
    }
    uint32_t *shares = HET_ARENA_ARRAY(polish->scratch, uint32_t, stage->count);
    double slowest;
    uint64_t work = 0;
    bool shared =
        het_balance_samples(kinds, kind_count, samples, shares, &slowest, &work);
    spend(polish, work / HET_EFFORT_WORDS_A_UNIT);
    if (!shared)
        return false;
    for (uint32_t r = 0; r < stage->count; r++)
        stage->replicas[r].samples = shares[r];
    return true;
}

/* ---- layers over the stages of a pipeline ---- */

#define MAX_STAGES 64u

static bool set_times(struct polish *polish, const struct pipe *pipe, uint32_t s,
                      struct het_balance_stage *ret)
{
    const struct stage *stage = &pipe->stages[s];
    struct het_stage_kind *kinds =
        HET_ARENA_ARRAY(polish->scratch, struct het_stage_kind, stage->count);
    size_t count = 0;
    for (uint32_t r = 0; r < stage->count; r++) {
        const struct replica *replica = &stage->replicas[r];
        if (!r || !is_like(replica, replica - 1) ||
            replica->samples != replica[-1].samples)
            kinds[count++] = (struct het_stage_kind){ replica->type, replica->tp,
                                                      replica->samples,
                                                      stage->recompute };
    }
    return het_stage_table_ask(
        polish->table, kinds, count, pipe->stage_count - s, stage->count,
        HET_ARENA_ARRAY(polish->scratch, struct het_balance_times, count),
        HET_ARENA_ARRAY(polish->scratch, uint32_t, polish->problem->profile->layer_count),
        ret);
}

static void set_sends(struct polish *polish, const struct pipe *pipe, uint32_t s,
                      struct het_balance_stage *ret)
{
    const struct het_profile *profile = polish->problem->profile;
    double *send_s =
        HET_ARENA_ARRAY(polish->scratch, double, profile->layer_count + (size_t)1);
    struct het_stage from, to;
    write_stage(polish->scratch, polish->problem, &pipe->stages[s], NULL, &from);
    write_stage(polish->scratch, polish->problem, &pipe->stages[s + 1], NULL, &to);
    het_cost_sends(polish->problem, &from, &to, send_s);
    ret->send_s = send_s;
}

/* The pipeline's times with its layers as they are; false if the profile lacks them, or,
 * if it `must_fit`, do not fit. */
static bool time_pipe(struct polish *polish, struct pipe *pipe, bool must_fit)
{
    struct het_balance_stage *stages =
        HET_ARENA_ARRAY(polish->scratch, struct het_balance_stage, pipe->stage_count);
    uint32_t *cuts =
        HET_ARENA_ARRAY(polish->scratch, uint32_t, pipe->stage_count + (size_t)1);
    for (uint32_t s = 0; s < pipe->stage_count; s++) {
        const struct stage *stage = &pipe->stages[s];
        cuts[s] = stage->first;
        cuts[s + 1] = stage->first + stage->layers;
        if (!set_times(polish, pipe, s, &stages[s]) ||
            (must_fit && stages[s].ends[cuts[s]] < cuts[s + 1]))
            return false;
        if (s + 1 < pipe->stage_count)
            set_sends(polish, pipe, s, &stages[s]);
    }
    het_balance_pipeline(stages, pipe->stage_count, cuts, &pipe->sum_s,
                         &pipe->bottleneck_s);
    return true;
}

/* Splits the layers anew so that `samples_aim` samples an iteration are done soonest;
 * samples are shared out already. */
static bool cut_pipe(struct polish *polish, struct pipe *pipe, double samples_aim)
{
    struct het_balance_stage stages[MAX_STAGES];
    const struct het_balance_layers question = {
        .layer_count = polish->problem->profile->layer_count,
        .stages = stages,
        .stage_count = pipe->stage_count,
    };
    struct het_layer_front_point points[HET_LAYER_FRONT_MAX_POINTS];
    uint64_t work = 0;
    if (pipe->stage_count > MAX_STAGES || pipe->stage_count > question.layer_count)
        return false;
    for (uint32_t s = 0; s < pipe->stage_count; s++)
        if (!set_times(polish, pipe, s, &stages[s]))
            return false;
    for (uint32_t s = 0; s + 1 < pipe->stage_count; s++)
        set_sends(polish, pipe, s, &stages[s]);
    size_t count = het_layer_front_find(polish->scratch, &question, points, &work);
    spend(polish, 1 + work / HET_EFFORT_CELLS_A_UNIT);
    double best = HUGE_VAL, more = fmax(samples_aim / pipe->samples - 1, 0);
    for (size_t i = 0; i < count; i++) {
        double seconds = points[i].sum_s + more * points[i].bottleneck_s;
        if (seconds >= best)
            continue;
        best = seconds;
        pipe->sum_s = points[i].sum_s;
        pipe->bottleneck_s = points[i].bottleneck_s;
        for (uint32_t s = 0; s < pipe->stage_count; s++) {
            pipe->stages[s].first = points[i].cuts[s];
            pipe->stages[s].layers = points[i].cuts[s + 1] - points[i].cuts[s];
        }
    }
    return best < HUGE_VAL;
}

static bool set_samples(struct polish *polish, struct pipe *pipe, uint32_t samples)
{
    for (uint32_t s = 0; s < pipe->stage_count; s++)
        if (!share_stage(polish, &pipe->stages[s], samples))
            return false;
    pipe->samples = samples;
    return true;
}

static uint32_t most_replicas(const struct pipe *pipe)
{
    uint32_t most = 1;
    for (uint32_t s = 0; s < pipe->stage_count; s++)
        if (pipe->stages[s].count > most)
            most = pipe->stages[s].count;
    return most;
}

/* The pipeline with the micro-batch size and the layers that do `aim` samples soonest;
 * sizes near that it has, and multiples of its replicas. NULL: it cannot be. */
static struct pipe *fit_pipe(struct polish *polish, const struct pipe *pattern,
                             double aim)
{
    uint32_t replicas = most_replicas(pattern), has = pattern->samples;
    const uint32_t sizes[] = { has,          replicas,      2 * replicas, 4 * replicas,
                               8 * replicas, 16 * replicas, has / 2,      2 * has };
    struct pipe *best = NULL;
    double best_s = HUGE_VAL;
    uint32_t batch = polish->problem->workload->global_batch;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bool is_new = sizes[i] >= replicas && sizes[i] <= batch;
        for (size_t j = 0; j < i; j++)
            is_new = is_new && sizes[j] != sizes[i];
        if (!is_new || !polish->effort)
            continue;
        struct pipe *pipe = copy_pipe(polish->scratch, pattern, 0);
        spend(polish, 2 + pipe->stage_count);
        if (!set_samples(polish, pipe, sizes[i]) || !cut_pipe(polish, pipe, aim))
            continue;
        double seconds = pipe->sum_s +
                         fmax(ceil(aim / sizes[i]) - 1, 0) * pipe->bottleneck_s;
        if (seconds < best_s) {
            best_s = seconds;
            best = pipe;
        }
    }
    return best;
}

/* ---- trying a change ---- */

static double pipe_aim(const struct pipe *pipe)
{
    return (double)pipe->samples * pipe->microbatch_count;
}

static uint64_t count_replicas(struct pipe *const *pipes, size_t count)
{
    uint64_t replicas = 0;
    for (size_t p = 0; p < count; p++)
        for (uint32_t s = 0; s < pipes[p]->stage_count; s++)
            replicas += pipes[p]->stages[s].count;
    return replicas;
}

static void count_idle(struct polish *polish)
{
    const struct het_cluster *cluster = polish->search->available;
    for (size_t n = 0; n < cluster->node_count; n++)
        polish->idle[n] = polish->problem->profile_type[cluster->nodes[n].type] ==
                                  HET_NO_TYPE
                              ? 0
                              : cluster->nodes[n].gpu_count;
    for (size_t p = 0; p < polish->pipe_count; p++)
        for (uint32_t s = 0; s < polish->pipes[p]->stage_count; s++)
            for (uint32_t r = 0; r < polish->pipes[p]->stages[s].count; r++) {
                const struct replica *replica = &polish->pipes[p]->stages[s].replicas[r];
                polish->idle[replica->node] -= replica->tp;
            }
}

/* The pipelines as they would be: those of the state but `out`, then `in`. */
struct change {
    size_t out[2];
    size_t out_count;
    struct pipe *in[2];
    size_t in_count;
};

static struct pipe **list_pipes(struct polish *polish, const struct change *change,
                                size_t *ret_count)
{
    struct pipe **pipes = HET_ARENA_ARRAY(polish->scratch, struct pipe *,
                                          polish->pipe_count + change->in_count);
    size_t count = 0, replaced = 0;
    for (size_t p = 0; p < polish->pipe_count; p++) {
        bool is_out = false;
        for (size_t i = 0; i < change->out_count; i++)
            is_out = is_out || change->out[i] == p;
        if (!is_out)
            pipes[count++] = polish->pipes[p];
        else if (replaced < change->in_count)
            pipes[count++] = change->in[replaced++];
    }
    while (replaced < change->in_count)
        pipes[count++] = change->in[replaced++];
    *ret_count = count;
    return pipes;
}

/* Copies of the pipelines with the batch shared out; false if it cannot be, or takes
 * longer than the best plan in all. */
static bool share_batch(struct polish *polish, struct pipe **pipes, size_t count)
{
    struct het_batch_share_lane *lanes =
        HET_ARENA_ARRAY(polish->scratch, struct het_batch_share_lane, count);
    double seconds;
    for (size_t p = 0; p < count; p++)
        lanes[p] = (struct het_batch_share_lane){ pipes[p]->samples, pipes[p]->sum_s,
                                                  pipes[p]->bottleneck_s, 0 };
    if (!het_batch_share(lanes, count, polish->problem->workload->global_batch,
                         &seconds) ||
        seconds >= polish->best_s)
        return false;
    for (size_t p = 0; p < count; p++) {
        struct pipe *copy = het_arena_alloc(polish->scratch, sizeof *copy);
        *copy = *pipes[p];
        copy->microbatch_count = lanes[p].count;
        pipes[p] = copy;
    }
    return true;
}

static bool fits(struct polish *polish, const struct het_plan *plan)
{
    struct het_violations violations = { 0 };
    struct het_peak_memory *peaks;
    size_t peak_count;
    return !het_plan_check(polish->scratch, polish->problem, plan, &violations) &&
           !het_memory_plan(polish->scratch, polish->problem, plan, &peaks, &peak_count,
                            NULL);
}

/* Better by so much is better. */
#define MARGIN 1e-6

static void take_over(struct polish *polish, struct pipe **pipes, size_t count,
                      const struct het_plan *plan, double seconds)
{
    ARRAY_RESERVE(polish->pipes, &polish->pipe_capacity, count);
    polish->pipe_count = 0;
    for (size_t p = 0; p < count; p++)
        if (pipes[p]->microbatch_count)
            polish->pipes[polish->pipe_count++] = copy_pipe(polish->arena, pipes[p], 0);
    polish->best_s = seconds;
    polish->plan = het_plan_copy(polish->arena, plan);
    count_idle(polish);
}

/* Whether the change was made: it is only if the plan is faster and allowed. */
static bool try_change(struct polish *polish, const struct change *change)
{
    size_t count;
    for (size_t i = 0; i < change->in_count; i++)
        if (!change->in[i])
            return false;
    struct pipe **pipes = list_pipes(polish, change, &count);
    spend(polish, 2 + count / 2);
    if (!count || !share_batch(polish, pipes, count))
        return false;
    struct het_cost cost;
    const struct het_plan *plan =
        write_plan(polish->scratch, polish->problem, pipes, count);
    spend(polish, 4 + count_replicas(pipes, count) / 4);
    polish->search->statistics.strategies_tried++;
    if (het_cost_plan(polish->problem, plan, &cost, NULL) < 0 ||
        cost.iteration_s >= polish->best_s * (1 - MARGIN) || !fits(polish, plan))
        return false;
    spend(polish, 8 + count_replicas(pipes, count));
    if (!het_search_offer(polish->search, plan))
        return false; /* slower by simulation, or beyond what the job or the runtime allow
                       */
    take_over(polish, pipes, count, plan, cost.iteration_s);
    return true;
}

static bool try_one(struct polish *polish, size_t out, struct pipe *in)
{
    const struct change change = {
        .out = { out }, .out_count = 1, .in = { in }, .in_count = 1
    };
    return try_change(polish, &change);
}

/* ---- changes of one pipeline ---- */

static bool change_size(struct polish *polish, size_t p)
{
    const struct pipe *now = polish->pipes[p];
    double aim = pipe_aim(now);
    if (try_one(polish, p, fit_pipe(polish, now, aim)))
        return true;
    for (int step = -1; step <= 1; step += 2) {
        struct pipe *pipe = copy_pipe(polish->scratch, now, 0);
        uint32_t samples = now->samples + (uint32_t)step;
        if (samples >= most_replicas(now) && set_samples(polish, pipe, samples) &&
            cut_pipe(polish, pipe, aim) && try_one(polish, p, pipe))
            return true;
    }
    return false;
}

static bool change_recompute(struct polish *polish, size_t p)
{
    if (polish->search->problem->workload->no_recompute)
        return false;
    struct pipe *pipe = copy_pipe(polish->scratch, polish->pipes[p], 0);
    bool is_on = pipe->stages[0].recompute == HET_RECOMPUTE_FULL;
    for (uint32_t s = 0; s < pipe->stage_count; s++)
        pipe->stages[s].recompute = is_on ? HET_RECOMPUTE_NONE : HET_RECOMPUTE_FULL;
    return try_one(polish, p, fit_pipe(polish, pipe, pipe_aim(pipe)));
}

/* One layer over the cut behind stage `s`, as it stands. */
static bool shift_layer(struct polish *polish, size_t p, uint32_t s, bool forward)
{
    struct pipe *pipe = copy_pipe(polish->scratch, polish->pipes[p], 0);
    struct stage *a = &pipe->stages[s], *b = a + 1;
    if (forward ? a->layers < 2 : b->layers < 2)
        return false;
    a->layers += forward ? -1u : 1u;
    b->layers += forward ? 1u : -1u;
    b->first += forward ? -1u : 1u;
    return time_pipe(polish, pipe, true) && try_one(polish, p, pipe);
}

static void remove_replica(struct stage *stage, uint32_t r)
{
    memmove(&stage->replicas[r], &stage->replicas[r + 1],
            (stage->count - r - 1) * sizeof *stage->replicas);
    stage->count--;
}

static void remove_stage(struct pipe *pipe, uint32_t s)
{
    memmove(&pipe->stages[s], &pipe->stages[s + 1],
            (pipe->stage_count - s - 1) * sizeof *pipe->stages);
    pipe->stage_count--;
}

static void insert_stage(struct pipe *pipe, uint32_t s, struct stage stage)
{
    memmove(&pipe->stages[s + 1], &pipe->stages[s],
            (pipe->stage_count - s) * sizeof *pipe->stages);
    pipe->stages[s] = stage;
    pipe->stage_count++;
}

/* Two replicas of one node joined, or one parted in two of half the degree. */
static bool change_degree(struct polish *polish, size_t p, uint32_t s, bool join)
{
    const struct stage *now = &polish->pipes[p]->stages[s];
    for (uint32_t r = 0; r < now->count; r++) {
        bool repeats = r && is_like(&now->replicas[r], &now->replicas[r - 1]) &&
                       now->replicas[r].node == now->replicas[r - 1].node;
        if (join ? !repeats : repeats || now->replicas[r].tp % 2)
            continue;
        struct pipe *pipe = copy_pipe(polish->scratch, polish->pipes[p], 2);
        struct stage *stage = &pipe->stages[s];
        if (join) {
            stage->replicas[r].tp *= 2;
            remove_replica(stage, r - 1);
        } else {
            stage->replicas[r].tp /= 2;
            stage->replicas[stage->count++] = stage->replicas[r];
        }
        if (try_one(polish, p, fit_pipe(polish, pipe, pipe_aim(pipe))))
            return true;
    }
    return false;
}

/* All replicas of a stage to another degree, where its nodes' GPUs allow. */
static bool change_all_degrees(struct polish *polish, size_t p, uint32_t s, bool join)
{
    struct pipe *pipe =
        copy_pipe(polish->scratch, polish->pipes[p], polish->pipes[p]->stages[s].count);
    struct stage *stage = &pipe->stages[s];
    uint32_t count = stage->count;
    if (count < 2)
        return false;
    if (!join) {
        for (uint32_t r = 0; r < count; r++) {
            if (stage->replicas[r].tp % 2)
                return false;
            stage->replicas[r].tp /= 2;
            stage->replicas[count + r] = stage->replicas[r];
        }
        stage->count = 2 * count;
    } else {
        for (uint32_t r = 0; r + 1 < stage->count; r++) {
            if (stage->replicas[r].node != stage->replicas[r + 1].node ||
                !is_like(&stage->replicas[r], &stage->replicas[r + 1]))
                return false;
            stage->replicas[r].tp *= 2;
            remove_replica(stage, r + 1);
        }
        if (count % 2)
            return false;
    }
    return try_one(polish, p, fit_pipe(polish, pipe, pipe_aim(pipe)));
}

/* Stages s and s + 1 as one. */
static bool join_stages(struct polish *polish, size_t p, uint32_t s)
{
    const struct pipe *now = polish->pipes[p];
    struct pipe *pipe = copy_pipe(polish->scratch, now, now->stages[s + 1].count);
    for (uint32_t r = 0; r < now->stages[s + 1].count; r++)
        pipe->stages[s].replicas[pipe->stages[s].count++] =
            now->stages[s + 1].replicas[r];
    remove_stage(pipe, s + 1);
    return try_one(polish, p, fit_pipe(polish, pipe, pipe_aim(pipe)));
}

/* Stage s as two: its first `count` replicas, and the others; or a single replica's
 * GPUs halved. */
static bool part_stage(struct polish *polish, size_t p, uint32_t s, uint32_t count)
{
    struct pipe *pipe = copy_pipe(polish->scratch, polish->pipes[p], 2);
    struct stage *stage = &pipe->stages[s];
    struct stage behind = copy_stage(polish->scratch, stage, 1);
    if (stage->count == 1) {
        if (stage->replicas[0].tp % 2)
            return false;
        stage->replicas[0].tp /= 2;
        behind.replicas[0].tp /= 2;
    } else {
        behind.count = stage->count - count;
        memmove(behind.replicas, behind.replicas + count,
                behind.count * sizeof *behind.replicas);
        stage->count = count;
    }
    insert_stage(pipe, s + 1, behind);
    return try_one(polish, p, fit_pipe(polish, pipe, pipe_aim(pipe)));
}

static bool exchange_stages(struct polish *polish, size_t p, uint32_t s)
{
    struct pipe *pipe = copy_pipe(polish->scratch, polish->pipes[p], 0);
    struct stage kept = pipe->stages[s];
    pipe->stages[s] = pipe->stages[s + 1];
    pipe->stages[s + 1] = kept;
    return try_one(polish, p, fit_pipe(polish, pipe, pipe_aim(pipe)));
}

/* The pipeline as two: its stages up to s, and those behind. */
static bool part_pipe(struct polish *polish, size_t p, uint32_t s)
{
    struct pipe *front = copy_pipe(polish->scratch, polish->pipes[p], 0);
    struct pipe *back = copy_pipe(polish->scratch, polish->pipes[p], 0);
    double aim = pipe_aim(front) / 2;
    front->stage_count = s + 1;
    back->stage_count -= s + 1;
    back->stages += s + 1;
    const struct change change = { .out = { p },
                                   .out_count = 1,
                                   .in = { fit_pipe(polish, front, aim),
                                           fit_pipe(polish, back, aim) },
                                   .in_count = 2 };
    return try_change(polish, &change);
}

/* A replica of a stage left out; with its stage, if it is the last. */
static struct pipe *without_replica(struct polish *polish, size_t p, uint32_t s,
                                    uint32_t r)
{
    struct pipe *pipe = copy_pipe(polish->scratch, polish->pipes[p], 1);
    if (pipe->stages[s].count > 1)
        remove_replica(&pipe->stages[s], r);
    else if (pipe->stage_count > 1)
        remove_stage(pipe, s);
    else
        return NULL;
    return pipe;
}

static bool drop_replica(struct polish *polish, size_t p, uint32_t s, uint32_t r)
{
    struct pipe *pipe = without_replica(polish, p, s, r);
    return pipe && try_one(polish, p, fit_pipe(polish, pipe, pipe_aim(pipe)));
}

static bool drop_pipe(struct polish *polish, size_t p)
{
    const struct change change = { .out = { p }, .out_count = 1 };
    return polish->pipe_count > 1 && try_change(polish, &change);
}

/* ---- changes with other pipelines, and with idle GPUs ---- */

/* `replica` joins stage s, or is a stage of its own before it. */
static struct pipe *with_replica(struct polish *polish, const struct pipe *now,
                                 uint32_t s, struct replica replica, bool own_stage)
{
    struct pipe *pipe = copy_pipe(polish->scratch, now, 1);
    if (!own_stage) {
        struct stage *stage = &pipe->stages[s];
        stage->replicas[stage->count++] = replica;
        return pipe;
    }
    struct stage stage = { .replicas =
                               HET_ARENA_ARRAY(polish->scratch, struct replica, 2),
                           .count = 1,
                           .recompute = now->stages[0].recompute };
    stage.replicas[0] = replica;
    insert_stage(pipe, s, stage);
    return pipe;
}

static bool use_idle_in(struct polish *polish, size_t p, struct replica replica)
{
    const struct pipe *now = polish->pipes[p];
    for (uint32_t s = 0; s <= now->stage_count; s++)
        for (int own = s == now->stage_count; own <= 1; own++) {
            struct pipe *pipe = with_replica(polish, now, s, replica, own);
            if (try_one(polish, p, fit_pipe(polish, pipe, pipe_aim(now))))
                return true;
            now = polish->pipes[p];
        }
    return false;
}

static bool use_idle_alone(struct polish *polish, struct replica replica)
{
    struct stage stage = { .replicas = &replica, .count = 1 };
    struct pipe pattern = { .stages = &stage, .stage_count = 1, .samples = 1 };
    const struct change change = { .in = { fit_pipe(
                                       polish, &pattern,
                                       polish->problem->workload->global_batch /
                                           (double)(polish->pipe_count + 1)) },
                                   .in_count = 1 };
    return try_change(polish, &change);
}

static void reset_scratch(struct polish *polish)
{
    het_arena_free(polish->scratch);
    polish->scratch = het_arena_new();
}

/* Whether a node is like one before it, with as many idle GPUs. */
static bool repeats_node(const struct polish *polish, uint32_t n)
{
    const struct het_cluster *cluster = polish->problem->cluster;
    return n && polish->idle[n] == polish->idle[n - 1] &&
           cluster->nodes[n].type == cluster->nodes[n - 1].type;
}

static bool use_idle(struct polish *polish)
{
    const struct het_cluster *cluster = polish->problem->cluster;
    for (uint32_t n = 0; n < cluster->node_count; n++)
        for (uint32_t tp = 1; tp <= polish->idle[n] && !repeats_node(polish, n);
             tp *= 2) {
            struct replica replica = { n, cluster->nodes[n].type, tp, 1 };
            if (use_idle_alone(polish, replica))
                return true;
            for (size_t p = 0; p < polish->pipe_count && polish->effort; p++) {
                reset_scratch(polish);
                if (use_idle_in(polish, p, replica))
                    return true;
            }
        }
    return false;
}

/* A replica of pipeline p to pipeline q, another. */
static bool move_replica(struct polish *polish, size_t p, uint32_t s, uint32_t r,
                         size_t q)
{
    struct replica moved = polish->pipes[p]->stages[s].replicas[r];
    const struct pipe *to = polish->pipes[q];
    for (uint32_t at = 0; at <= to->stage_count && polish->effort; at++)
        for (int own = at == to->stage_count; own <= 1; own++) {
            reset_scratch(polish);
            struct pipe *less = without_replica(polish, p, s, r);
            struct change change = { .out = { p, q }, .out_count = 2 };
            change.in[change.in_count++] =
                fit_pipe(polish, with_replica(polish, to, at, moved, own), pipe_aim(to));
            if (less)
                change.in[change.in_count++] =
                    fit_pipe(polish, less, pipe_aim(polish->pipes[p]));
            if (try_change(polish, &change))
                return true;
        }
    return false;
}

/* Pipelines p and q as one, q's stages behind p's. */
static bool join_pipes(struct polish *polish, size_t p, size_t q)
{
    const struct pipe *a = polish->pipes[p], *b = polish->pipes[q];
    struct pipe *pipe = copy_pipe(polish->scratch, a, b->stage_count);
    for (uint32_t s = 0; s < b->stage_count; s++)
        pipe->stages[pipe->stage_count++] = copy_stage(polish->scratch, &b->stages[s], 0);
    const struct change change = { .out = { p, q },
                                   .out_count = 2,
                                   .in = { fit_pipe(polish, pipe,
                                                    pipe_aim(a) + pipe_aim(b)) },
                                   .in_count = 1 };
    return try_change(polish, &change);
}

/* Pipelines of as many stages as one, stage by stage side by side. */
static bool merge_pipes(struct polish *polish, size_t p, size_t q)
{
    const struct pipe *a = polish->pipes[p], *b = polish->pipes[q];
    if (a->stage_count != b->stage_count)
        return false;
    struct pipe *pipe = copy_pipe(polish->scratch, a, 0);
    for (uint32_t s = 0; s < b->stage_count; s++) {
        struct stage *stage = &pipe->stages[s];
        *stage = copy_stage(polish->scratch, stage, b->stages[s].count);
        memcpy(stage->replicas + stage->count, b->stages[s].replicas,
               b->stages[s].count * sizeof *stage->replicas);
        stage->count += b->stages[s].count;
    }
    pipe->samples += b->samples;
    const struct change change = { .out = { p, q },
                                   .out_count = 2,
                                   .in = { fit_pipe(polish, pipe,
                                                    pipe_aim(a) + pipe_aim(b)) },
                                   .in_count = 1 };
    return try_change(polish, &change);
}

/* ---- the walk ---- */

static bool change_stages(struct polish *polish, size_t p)
{
    for (uint32_t s = 0; s < polish->pipes[p]->stage_count && polish->effort; s++) {
        const struct pipe *now = polish->pipes[p];
        reset_scratch(polish);
        if (change_degree(polish, p, s, true) || change_degree(polish, p, s, false) ||
            change_all_degrees(polish, p, s, true) ||
            change_all_degrees(polish, p, s, false))
            return true;
        uint32_t parts = now->stages[s].count > 1 ? now->stages[s].count - 1 : 1;
        for (uint32_t count = 1; count <= parts; count++)
            if (part_stage(polish, p, s, count))
                return true;
        for (uint32_t r = 0; r < now->stages[s].count; r++)
            if ((!r || !is_like(&now->stages[s].replicas[r - 1],
                                &now->stages[s].replicas[r])) &&
                drop_replica(polish, p, s, r))
                return true;
        if (s + 1 < now->stage_count &&
            (join_stages(polish, p, s) || exchange_stages(polish, p, s) ||
             part_pipe(polish, p, s) || shift_layer(polish, p, s, true) ||
             shift_layer(polish, p, s, false)))
            return true;
    }
    return false;
}

static bool change_pipe(struct polish *polish, size_t p)
{
    reset_scratch(polish);
    if (change_size(polish, p) || drop_pipe(polish, p))
        return true;
    if (change_stages(polish, p))
        return true;
    reset_scratch(polish);
    return change_recompute(polish, p);
}

static bool change_pair(struct polish *polish, size_t p, size_t q)
{
    reset_scratch(polish);
    if (p != q && (join_pipes(polish, p, q) || merge_pipes(polish, p, q)))
        return true;
    if (p == q)
        return false;
    for (uint32_t s = 0; s < polish->pipes[p]->stage_count && polish->effort; s++)
        for (uint32_t r = 0; r < polish->pipes[p]->stages[s].count; r++) {
            const struct stage *stage = &polish->pipes[p]->stages[s];
            if (r && is_like(&stage->replicas[r - 1], &stage->replicas[r]) &&
                stage->replicas[r - 1].node == stage->replicas[r].node)
                continue;
            if (move_replica(polish, p, s, r, q))
                return true;
        }
    return false;
}

/* Whether pipeline p is like one before it in all that a change would see. */
static bool repeats_pipe(const struct polish *polish, size_t p)
{
    const struct pipe *a = polish->pipes[p];
    if (!p)
        return false;
    const struct pipe *b = polish->pipes[p - 1];
    if (a->stage_count != b->stage_count || a->samples != b->samples ||
        a->microbatch_count != b->microbatch_count)
        return false;
    for (uint32_t s = 0; s < a->stage_count; s++) {
        if (a->stages[s].first != b->stages[s].first ||
            a->stages[s].count != b->stages[s].count)
            return false;
        for (uint32_t r = 0; r < a->stages[s].count; r++)
            if (!is_like(&a->stages[s].replicas[r], &b->stages[s].replicas[r]))
                return false;
    }
    return true;
}

static bool walk(struct polish *polish)
{
    bool is_better = false;
    for (size_t p = 0; p < polish->pipe_count && polish->effort; p++)
        while (polish->effort && p < polish->pipe_count && !repeats_pipe(polish, p) &&
               change_pipe(polish, p))
            is_better = true;
    reset_scratch(polish);
    while (polish->effort && use_idle(polish))
        is_better = true;
    for (size_t p = 0; p < polish->pipe_count; p++)
        for (size_t q = 0; q < polish->pipe_count && polish->effort; q++)
            if (p < polish->pipe_count && !(repeats_pipe(polish, p) && p != q + 1) &&
                !(repeats_pipe(polish, q) && q != p + 1) && change_pair(polish, p, q))
                is_better = true;
    return is_better;
}

const struct het_plan *het_local_search(struct het_search *search,
                                        struct het_stage_table *table,
                                        struct het_arena *arena,
                                        const struct het_plan *plan, uint64_t effort)
{
    struct polish polish = {
        .search = search,
        .problem = search->problem,
        .table = table,
        .arena = arena,
        .scratch = het_arena_new(),
        .idle = HET_ARENA_ARRAY(arena, uint32_t, search->problem->cluster->node_count),
        .plan = plan,
        .effort = effort < search->effort_left ? effort : search->effort_left,
    };
    struct het_cost cost;
    if (het_cost_plan(search->problem, plan, &cost, NULL) == 0) {
        polish.best_s = cost.iteration_s;
        for (size_t p = 0; p < plan->pipeline_count; p++) {
            ARRAY_RESERVE(polish.pipes, &polish.pipe_capacity, p + 1);
            polish.pipes[p] = read_pipe(arena, &plan->pipelines[p]);
            polish.pipe_count++;
        }
        count_idle(&polish);
        bool is_timed = true;
        for (size_t p = 0; p < polish.pipe_count; p++)
            is_timed = is_timed && time_pipe(&polish, polish.pipes[p], false);
        while (is_timed && polish.effort && walk(&polish))
            ;
    }
    het_arena_free(polish.scratch);
    xfree(polish.pipes);
    return polish.plan;
}
