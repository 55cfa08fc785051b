#include "planner/cost/link_sharing.h"

#include "planner/base/memo.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

double het_link_sharing_pipeline(const struct het_stage_times *stages, size_t stage_count,
                                 uint32_t microbatch_count, uint32_t *ret_bottleneck)
{
    double sum = 0, largest = 0, before = 0;
    uint32_t bottleneck = 0;
    for (uint32_t s = 0; s < stage_count; s++) {
        double behind = stages[s].send_s + stages[s].send_backward_s;
        double busy = before + stages[s].compute_s + behind;
        if (busy > largest) {
            largest = busy;
            bottleneck = s;
        }
        sum += stages[s].compute_s + behind;
        before = behind;
    }
    *ret_bottleneck = bottleneck;
    return sum + (microbatch_count - 1.0) * largest;
}

/* ---- sends ---- */

struct send {
    double alone_s, latency_s;
    size_t first_load, load_count;
};

/* What of a link is taken, while one boundary or kind is looked at. */
struct usage {
    double sum_s; /* loads of sends that begin together */
    uint32_t count;
    double kind_share;  /* busy with pipelines of the kind at hand */
    double whole_share; /* with those of all */
};

struct pipeline {
    uint32_t next; /* of the same kind, in plan order; NONE */
    struct send *sends;
    struct het_stage_times *stages;
};

struct sharing {
    struct het_arena *arena;
    const struct het_plan *plan;
    struct pipeline *pipelines;
    uint32_t *kinds, *last; /* [kind]: its first and last pipeline */
    size_t kind_count;
    struct send *sends; /* as the stages */
    struct het_link_loads loads;
    struct usage *links;
};

static void read_sends(struct sharing *sharing, const struct het_problem *problem,
                       struct het_stage_times *stages)
{
    struct send *send = sharing->sends;
    for (size_t p = 0; p < sharing->plan->pipeline_count; p++) {
        const struct het_pipeline *pipeline = &sharing->plan->pipelines[p];
        sharing->pipelines[p].sends = send;
        sharing->pipelines[p].stages = stages;
        sharing->pipelines[p].next = NONE;
        for (size_t s = 0; s < pipeline->stage_count; s++, send++, stages++) {
            stages->send_s = stages->send_backward_s = 0;
            if (s + 1 == pipeline->stage_count)
                continue;
            send->first_load = sharing->loads.count;
            send->alone_s = het_transfer_loads(problem, &pipeline->stages[s],
                                               &pipeline->stages[s + 1], &sharing->loads,
                                               &send->latency_s);
            send->load_count = sharing->loads.count - send->first_load;
            stages->send_s = stages->send_backward_s = send->alone_s + send->latency_s;
        }
    }
}

/* ---- kinds of pipelines ---- */

/* Pipelines of one stage have nothing to share. */
static void find_kinds(struct sharing *sharing)
{
    size_t count = sharing->plan->pipeline_count;
    struct het_memo kinds = het_memo_make(sharing->arena, count);
    struct het_memo_key key = { 0 };
    for (uint32_t p = 0; p < count; p++) {
        const struct het_pipeline *pipeline = &sharing->plan->pipelines[p];
        if (pipeline->stage_count == 1)
            continue;
        het_memo_key_add(&key, pipeline->microbatch_count);
        for (size_t s = 0; s < pipeline->stage_count; s++) {
            het_memo_key_add_real(&key, sharing->pipelines[p].stages[s].compute_s);
            het_memo_key_add_real(&key, sharing->pipelines[p].sends[s].alone_s);
            het_memo_key_add_real(&key, sharing->pipelines[p].sends[s].latency_s);
        }
        size_t *kind = &het_memo_at_key(&kinds, &key)->number; /* plus 1 */
        if (!*kind) {
            sharing->kinds[sharing->kind_count] = p;
            *kind = ++sharing->kind_count;
        } else {
            sharing->pipelines[sharing->last[*kind - 1]].next = p;
        }
        sharing->last[*kind - 1] = p;
    }
    het_free_pointer(&key.words);
}

/* ---- loads on links ---- */

/* Adds the loads of boundary `s` of all pipelines of the kind; `sign` -1 takes them off
 * again. */
static void load_boundary(struct sharing *sharing, uint32_t kind, size_t s,
                          uint32_t direction, int sign)
{
    for (uint32_t p = kind; p != NONE; p = sharing->pipelines[p].next) {
        const struct send *send = &sharing->pipelines[p].sends[s];
        for (size_t i = 0; i < send->load_count; i++) {
            const struct het_link_load *load =
                &sharing->loads.items[send->first_load + i];
            struct usage *usage = &sharing->links[load->link ^ direction];
            usage->sum_s = sign > 0 ? usage->sum_s + load->seconds : 0;
            usage->count = sign > 0 ? usage->count + 1 : 0;
        }
    }
}

static double shared_seconds(const struct sharing *sharing, const struct send *send,
                             uint32_t direction)
{
    double longest = send->alone_s;
    for (size_t i = 0; i < send->load_count; i++) {
        const struct het_link_load *load = &sharing->loads.items[send->first_load + i];
        const struct usage *usage = &sharing->links[load->link ^ direction];
        double in_step = fmin(usage->sum_s, usage->count * load->seconds);
        double others = fmax(usage->whole_share - usage->kind_share, 0);
        longest = fmax(longest, in_step + others * load->seconds);
    }
    return longest + send->latency_s;
}

static void price_kind(struct sharing *sharing, uint32_t kind)
{
    size_t count = sharing->plan->pipelines[kind].stage_count;
    for (size_t s = 0; s + 1 < count; s++)
        for (uint32_t direction = 0; direction < 2; direction++) {
            load_boundary(sharing, kind, s, direction, 1);
            for (uint32_t p = kind; p != NONE; p = sharing->pipelines[p].next) {
                struct pipeline *pipeline = &sharing->pipelines[p];
                double seconds = shared_seconds(sharing, &pipeline->sends[s], direction);
                if (direction)
                    pipeline->stages[s].send_backward_s = seconds;
                else
                    pipeline->stages[s].send_s = seconds;
            }
            load_boundary(sharing, kind, s, direction, -1);
        }
}

/* Adds `sign` times the share of its time that a pipeline keeps each link busy. */
static void add_shares(struct sharing *sharing, uint32_t p, bool whole, int sign)
{
    const struct het_pipeline *source = &sharing->plan->pipelines[p];
    const struct pipeline *pipeline = &sharing->pipelines[p];
    uint32_t bottleneck;
    double rate = source->microbatch_count /
                  het_link_sharing_pipeline(pipeline->stages, source->stage_count,
                                            source->microbatch_count, &bottleneck);
    for (size_t s = 0; s + 1 < source->stage_count; s++)
        for (size_t i = 0; i < pipeline->sends[s].load_count; i++) {
            const struct het_link_load *load =
                &sharing->loads.items[pipeline->sends[s].first_load + i];
            for (uint32_t direction = 0; direction < 2; direction++) {
                struct usage *usage = &sharing->links[load->link ^ direction];
                double *share = whole ? &usage->whole_share : &usage->kind_share;
                *share = sign > 0 ? *share + rate * load->seconds : 0;
            }
        }
}

/* First every kind by itself; then with what the others do meanwhile. */
static void price_all(struct sharing *sharing)
{
    for (size_t k = 0; k < sharing->kind_count; k++)
        price_kind(sharing, sharing->kinds[k]);
    if (sharing->kind_count < 2)
        return;
    for (uint32_t p = 0; p < sharing->plan->pipeline_count; p++)
        add_shares(sharing, p, true, 1);
    for (size_t k = 0; k < sharing->kind_count; k++) {
        uint32_t kind = sharing->kinds[k];
        for (uint32_t p = kind; p != NONE; p = sharing->pipelines[p].next)
            add_shares(sharing, p, false, 1);
        price_kind(sharing, kind);
        for (uint32_t p = kind; p != NONE; p = sharing->pipelines[p].next)
            add_shares(sharing, p, false, -1);
    }
}

void het_link_sharing_plan(const struct het_problem *problem, const struct het_plan *plan,
                           struct het_stage_times *stages)
{
    struct het_arena *arena = het_arena_new();
    size_t count = plan->pipeline_count, stage_count = 0;
    for (size_t p = 0; p < count; p++)
        stage_count += plan->pipelines[p].stage_count;
    struct sharing sharing = {
        .arena = arena,
        .plan = plan,
        .pipelines = HET_ARENA_ARRAY(arena, struct pipeline, count),
        .sends = HET_ARENA_ARRAY(arena, struct send, stage_count),
    };
    read_sends(&sharing, problem, stages);
    if (count > 1 && sharing.loads.count) {
        sharing.kinds = HET_ARENA_ARRAY(arena, uint32_t, count);
        sharing.last = HET_ARENA_ARRAY(arena, uint32_t, count);
        sharing.links = HET_ARENA_ARRAY(arena, struct usage,
                                        het_cluster_link_count(problem->cluster));
        find_kinds(&sharing);
        price_all(&sharing);
    }
    het_link_loads_fini(&sharing.loads);
    het_arena_free(arena);
}
