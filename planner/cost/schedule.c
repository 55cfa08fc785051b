#include "planner/cost/schedule.h"

#include "planner/base/memo.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* ---- what of a plan takes time ---- */

/* The send from a stage to the next. */
struct boundary {
    double alone_s, latency_s;
    size_t first_load, load_count; /* of the loads of all pipelines */
};

struct stage {
    double forward_s, backward_s;
    struct boundary send; /* nothing for the last stage */
    /* Results. */
    double busy_s;
    struct het_task *tasks; /* in the order of the schedule; NULL: not asked for */
};

struct pipeline {
    uint32_t microbatch_count;
    uint32_t simulated_count; /* micro-batches that are simulated */
    uint32_t stage_count;
    struct stage *stages;
    uint32_t same_as; /* first pipeline that is alike in all; itself */
    uint32_t copies;  /* of the first */
    uint32_t next;    /* first ones that share links, in plan order; NONE at the end */
    double end_s;
};

/* Firsts that share links, directly or by others. */
struct group {
    uint32_t first, last;
    uint32_t same_as; /* first group that differs in the names of links only; itself */
};

struct simulation {
    struct het_arena *arena;
    const struct het_problem *problem;
    const struct het_plan *plan;
    bool keeps_tasks;
    struct pipeline *pipelines;
    struct het_link_loads loads;
    struct group *groups; /* [pipeline] */
    size_t group_count;
    uint32_t link_end; /* links are below */
    uint32_t *number;  /* [link / 2]: in the group at hand, counted from 1 */
};

static int read_pipeline(struct simulation *simulation, uint32_t p, struct het_error *err)
{
    const struct het_pipeline *source = &simulation->plan->pipelines[p];
    struct pipeline *pipeline = &simulation->pipelines[p];
    struct het_link_loads *loads = &simulation->loads;
    *pipeline = (struct pipeline){
        .microbatch_count = source->microbatch_count,
        .simulated_count = source->microbatch_count,
        .stage_count = (uint32_t)source->stage_count,
        .stages = HET_ARENA_ARRAY(simulation->arena, struct stage, source->stage_count),
        .same_as = p,
        .copies = 1,
        .next = NONE,
    };
    for (uint32_t s = 0; s < pipeline->stage_count; s++) {
        struct stage *stage = &pipeline->stages[s];
        if (het_cost_stage(simulation->problem, &source->stages[s], &stage->forward_s,
                           &stage->backward_s, err) < 0)
            return het_wrap(err, "pipelines[%u]: stages[%u]", p, s);
        if (s + 1 == pipeline->stage_count)
            break;
        stage->send.first_load = loads->count;
        stage->send.alone_s = het_transfer_loads(simulation->problem, &source->stages[s],
                                                 &source->stages[s + 1], loads,
                                                 &stage->send.latency_s);
        stage->send.load_count = loads->count - stage->send.first_load;
    }
    return 0;
}

/* ---- what is alike ---- */

/* The number that was given for the same key first. */
static uint32_t find_same(struct het_memo *memo, struct het_memo_key *key,
                          uint32_t number)
{
    size_t *first = &het_memo_at_key(memo, key)->number;
    if (!*first)
        *first = (size_t)number + 1;
    return (uint32_t)*first - 1;
}

/* A link's name in a key: its own, or by order of appearance in the group. */
static uint32_t name_link(struct simulation *simulation, uint32_t link, uint32_t *count)
{
    if (!count)
        return link;
    uint32_t *number = &simulation->number[link / 2];
    if (!*number)
        *number = ++*count;
    return 2 * *number + link % 2;
}

static void add_pipeline(struct simulation *simulation, struct het_memo_key *key,
                         const struct pipeline *pipeline, uint32_t *link_count)
{
    het_memo_key_add(key, pipeline->microbatch_count);
    het_memo_key_add(key, pipeline->stage_count);
    for (uint32_t s = 0; s < pipeline->stage_count; s++) {
        const struct stage *stage = &pipeline->stages[s];
        het_memo_key_add_real(key, stage->forward_s);
        het_memo_key_add_real(key, stage->backward_s);
        het_memo_key_add_real(key, stage->send.alone_s);
        het_memo_key_add_real(key, stage->send.latency_s);
        het_memo_key_add(key, stage->send.load_count);
        for (size_t i = 0; i < stage->send.load_count; i++) {
            const struct het_link_load *load =
                &simulation->loads.items[stage->send.first_load + i];
            het_memo_key_add(key, name_link(simulation, load->link, link_count));
            het_memo_key_add(key, load->flow_count);
            het_memo_key_add_real(key, load->seconds);
        }
    }
}

static void find_same_pipelines(struct simulation *simulation)
{
    struct het_memo_key key = { 0 };
    size_t count = simulation->plan->pipeline_count;
    struct het_memo memo = het_memo_make(simulation->arena, count);
    for (uint32_t p = 0; p < count; p++) {
        struct pipeline *pipeline = &simulation->pipelines[p];
        add_pipeline(simulation, &key, pipeline, NULL);
        pipeline->same_as = find_same(&memo, &key, p);
        if (pipeline->same_as != p)
            simulation->pipelines[pipeline->same_as].copies++;
    }
    het_free_pointer(&key.words);
}

static uint32_t find_root(uint32_t *parents, uint32_t p)
{
    while (parents[p] != p)
        p = parents[p] = parents[parents[p]];
    return p;
}

/* Joins pipelines that share a link: the smaller one is the root. */
static uint32_t *join_pipelines(struct simulation *simulation)
{
    size_t count = simulation->plan->pipeline_count;
    uint32_t *parents = HET_ARENA_ARRAY(simulation->arena, uint32_t, count);
    uint32_t *user = HET_ARENA_ARRAY(simulation->arena, uint32_t,
                                     (size_t)simulation->link_end / 2 + 1);
    for (uint32_t p = 0; p < count; p++)
        parents[p] = p;
    for (uint32_t p = 0; p < count; p++) {
        const struct pipeline *pipeline = &simulation->pipelines[p];
        if (pipeline->same_as != p)
            continue;
        for (uint32_t s = 0; s < pipeline->stage_count; s++)
            for (size_t i = 0; i < pipeline->stages[s].send.load_count; i++) {
                size_t load = pipeline->stages[s].send.first_load + i;
                uint32_t *first = &user[simulation->loads.items[load].link / 2];
                uint32_t a = find_root(parents, p);
                uint32_t b = *first ? find_root(parents, *first - 1) : a;
                parents[a > b ? a : b] = a < b ? a : b;
                if (!*first)
                    *first = p + 1;
            }
    }
    return parents;
}

static void make_groups(struct simulation *simulation)
{
    size_t count = simulation->plan->pipeline_count;
    uint32_t *parents = join_pipelines(simulation);
    uint32_t *group_of = HET_ARENA_ARRAY(simulation->arena, uint32_t, count);
    simulation->groups = HET_ARENA_ARRAY(simulation->arena, struct group, count);
    for (uint32_t p = 0; p < count; p++) {
        if (simulation->pipelines[p].same_as != p)
            continue;
        uint32_t root = find_root(parents, p);
        if (root == p) {
            group_of[p] = (uint32_t)simulation->group_count++;
            simulation->groups[group_of[p]] = (struct group){ .first = p, .last = p };
            continue;
        }
        struct group *group = &simulation->groups[group_of[root]];
        simulation->pipelines[group->last].next = p;
        group->last = p;
    }
}

static void find_same_groups(struct simulation *simulation)
{
    struct het_memo_key key = { 0 };
    struct het_memo memo = het_memo_make(simulation->arena, simulation->group_count);
    simulation->number = HET_ARENA_ARRAY(simulation->arena, uint32_t,
                                         (size_t)simulation->link_end / 2 + 1);
    for (uint32_t g = 0; g < simulation->group_count; g++) {
        struct group *group = &simulation->groups[g];
        uint32_t link_count = 0; /* a link is of one group */
        for (uint32_t p = group->first; p != NONE; p = simulation->pipelines[p].next) {
            het_memo_key_add(&key, simulation->pipelines[p].copies);
            add_pipeline(simulation, &key, &simulation->pipelines[p], &link_count);
        }
        group->same_as = find_same(&memo, &key, g);
    }
    het_free_pointer(&key.words);
}

/* ---- a group's run ---- */

/* A transfer's part in the load of a link. */
struct crossing {
    uint32_t link;           /* of the forward send; the backward one crosses link ^ 1 */
    uint32_t transfer;       /* whose */
    double demand;           /* share of the link that it takes at full speed */
    double weight;           /* flows */
    uint32_t previous, next; /* on the link, while the transfer is under way; NONE */
};

struct link {
    uint32_t first; /* crossing; NONE */
    double level; /* share of the link for each flow that can use it; HUGE_VAL: enough */
    bool is_dirty;
};

enum phase { WAITING, FLOWING, LATENT };

/* Between lane i and lane i + 1; one at a time. */
struct transfer {
    enum phase phase;
    bool is_backward;
    double alone_s, latency_s;
    double left_s; /* of alone_s, at `updated_s` */
    double speed;  /* in [0, 1] */
    double updated_s, start_s;
    size_t first_crossing, crossing_count;
    bool is_dirty;
};

/* A stage at work. */
struct lane {
    struct stage *stage;
    const uint8_t *steps; /* enum het_task_kind */
    size_t step, step_count;
    uint32_t done[HET_TASK_KINDS]; /* steps of each kind */
    double start_s;                /* of the present forward or backward */
    double end_s;                  /* of the last step so far */
};

struct run {
    struct simulation *simulation;
    struct het_arena *arena;
    struct lane *lanes;
    struct transfer *transfers; /* [lane]; those of last stages are not used */
    uint32_t lane_count;
    struct crossing *crossings;
    struct link *links;
    uint32_t *dirty; /* links */
    size_t dirty_count;
    /* Events: slot i is the end of lane i's computation, lane_count + i that of transfer
     * i's present phase. The heap has the slots by time, then by number. */
    double *time_s;
    uint32_t *heap, *position; /* position NONE: no event */
    size_t heap_count;
    double now_s;
};

/* ---- events ---- */

static bool is_before(const struct run *run, uint32_t a, uint32_t b)
{
    return run->time_s[a] != run->time_s[b] ? run->time_s[a] < run->time_s[b] : a < b;
}

static void place(struct run *run, size_t at, uint32_t slot)
{
    run->heap[at] = slot;
    run->position[slot] = (uint32_t)at;
}

static void rise(struct run *run, size_t at, uint32_t slot)
{
    for (; at && is_before(run, slot, run->heap[(at - 1) / 2]); at = (at - 1) / 2)
        place(run, at, run->heap[(at - 1) / 2]);
    place(run, at, slot);
}

static void sink(struct run *run, size_t at, uint32_t slot)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < run->heap_count &&
            is_before(run, run->heap[child + 1], run->heap[child]))
            child++;
        if (child >= run->heap_count || !is_before(run, run->heap[child], slot))
            break;
        place(run, at, run->heap[child]);
        at = child;
    }
    place(run, at, slot);
}

static void schedule(struct run *run, uint32_t slot, double time_s)
{
    run->time_s[slot] = time_s;
    if (run->position[slot] == NONE) {
        rise(run, run->heap_count++, slot);
        return;
    }
    size_t at = run->position[slot];
    if (at && is_before(run, slot, run->heap[(at - 1) / 2]))
        rise(run, at, slot);
    else
        sink(run, at, slot);
}

static uint32_t take_first(struct run *run)
{
    uint32_t slot = run->heap[0];
    run->position[slot] = NONE;
    uint32_t last = run->heap[--run->heap_count];
    if (last != slot)
        sink(run, 0, last);
    return slot;
}

/* ---- links that are shared ---- */

static uint32_t crossed_link(const struct run *run, const struct crossing *crossing)
{
    return crossing->link ^ (run->transfers[crossing->transfer].is_backward ? 1 : 0);
}

static void mark_link(struct run *run, uint32_t link)
{
    if (run->links[link].is_dirty)
        return;
    run->links[link].is_dirty = true;
    run->dirty[run->dirty_count++] = link;
}

static void join_links(struct run *run, const struct transfer *transfer)
{
    for (size_t i = 0; i < transfer->crossing_count; i++) {
        uint32_t c = (uint32_t)(transfer->first_crossing + i);
        uint32_t link = crossed_link(run, &run->crossings[c]);
        run->crossings[c].previous = NONE;
        run->crossings[c].next = run->links[link].first;
        if (run->links[link].first != NONE)
            run->crossings[run->links[link].first].previous = c;
        run->links[link].first = c;
        mark_link(run, link);
    }
}

static void leave_links(struct run *run, const struct transfer *transfer)
{
    for (size_t i = 0; i < transfer->crossing_count; i++) {
        struct crossing *crossing = &run->crossings[transfer->first_crossing + i];
        uint32_t link = crossed_link(run, crossing);
        if (crossing->previous == NONE)
            run->links[link].first = crossing->next;
        else
            run->crossings[crossing->previous].next = crossing->next;
        if (crossing->next != NONE)
            run->crossings[crossing->next].previous = crossing->previous;
        mark_link(run, link);
    }
}

/* The level at which the link is full, when each transfer takes level * weight, or its
 * demand, if that is less. It rises as the small demands turn out to be met. */
static double fill_link(const struct run *run, uint32_t link)
{
    double level = 0;
    for (;;) {
        double met = 0, weight = 0;
        for (uint32_t c = run->links[link].first; c != NONE; c = run->crossings[c].next) {
            const struct crossing *crossing = &run->crossings[c];
            if (crossing->demand <= level * crossing->weight)
                met += crossing->demand;
            else
                weight += crossing->weight;
        }
        double next = weight > 0 ? fmax(1 - met, 0) / weight : HUGE_VAL;
        if (!(next > level * (1 + 1e-15)))
            return level;
        level = next;
        if (!(weight > 0))
            return level;
    }
}

static double find_speed(const struct run *run, const struct transfer *transfer)
{
    double speed = 1;
    for (size_t i = 0; i < transfer->crossing_count; i++) {
        const struct crossing *crossing = &run->crossings[transfer->first_crossing + i];
        double share = run->links[crossed_link(run, crossing)].level * crossing->weight;
        if (share < speed * crossing->demand)
            speed = share / crossing->demand;
    }
    return speed;
}

static void update_transfer(struct run *run, uint32_t t)
{
    struct transfer *transfer = &run->transfers[t];
    double speed = find_speed(run, transfer);
    transfer->is_dirty = false;
    if (speed == transfer->speed)
        return;
    transfer->left_s -= (run->now_s - transfer->updated_s) * transfer->speed;
    transfer->left_s = fmax(transfer->left_s, 0);
    transfer->updated_s = run->now_s;
    transfer->speed = speed;
    schedule(run, run->lane_count + t, run->now_s + transfer->left_s / speed);
}

/* New speeds for all that cross links where something began or ended. */
static void share_links(struct run *run)
{
    for (size_t i = 0; i < run->dirty_count; i++) {
        struct link *link = &run->links[run->dirty[i]];
        link->level = fill_link(run, run->dirty[i]);
        for (uint32_t c = link->first; c != NONE; c = run->crossings[c].next)
            run->transfers[run->crossings[c].transfer].is_dirty = true;
    }
    for (size_t i = 0; i < run->dirty_count; i++) {
        struct link *link = &run->links[run->dirty[i]];
        link->is_dirty = false;
        for (uint32_t c = link->first; c != NONE; c = run->crossings[c].next)
            if (run->transfers[run->crossings[c].transfer].is_dirty)
                update_transfer(run, run->crossings[c].transfer);
    }
    run->dirty_count = 0;
}

/* ---- stages at work ---- */

static bool is_at_transfer(const struct lane *lane, enum het_task_kind a,
                           enum het_task_kind b)
{
    return lane->step < lane->step_count &&
           (lane->steps[lane->step] == a || lane->steps[lane->step] == b);
}

/* Starts the transfer below lane `i`, if both stages have come to it. */
static void meet(struct run *run, uint32_t i)
{
    const struct lane *upper = &run->lanes[i], *lower = upper + 1;
    if (!is_at_transfer(upper, HET_TASK_SEND_FORWARD, HET_TASK_RECEIVE_BACKWARD) ||
        !is_at_transfer(lower, HET_TASK_RECEIVE_FORWARD, HET_TASK_SEND_BACKWARD))
        return;
    struct transfer *transfer = &run->transfers[i];
    if (transfer->phase != WAITING)
        return; /* the other stage has started it */
    transfer->is_backward = upper->steps[upper->step] == HET_TASK_RECEIVE_BACKWARD;
    assert(transfer->is_backward ==
           (lower->steps[lower->step] == HET_TASK_SEND_BACKWARD));
    transfer->phase = FLOWING;
    transfer->start_s = transfer->updated_s = run->now_s;
    transfer->left_s = transfer->alone_s;
    transfer->speed = 1;
    schedule(run, run->lane_count + i, run->now_s + transfer->alone_s);
    join_links(run, transfer);
}

/* The lane's next step begins, or waits. */
static void advance(struct run *run, uint32_t i)
{
    struct lane *lane = &run->lanes[i];
    if (lane->step == lane->step_count)
        return;
    enum het_task_kind kind = lane->steps[lane->step];
    switch (kind) {
    case HET_TASK_FORWARD:
    case HET_TASK_BACKWARD:
        lane->start_s = run->now_s;
        schedule(run, i,
                 run->now_s + (kind == HET_TASK_FORWARD ? lane->stage->forward_s
                                                        : lane->stage->backward_s));
        return;
    case HET_TASK_SEND_FORWARD:
    case HET_TASK_RECEIVE_BACKWARD:
        meet(run, i);
        return;
    case HET_TASK_RECEIVE_FORWARD:
    case HET_TASK_SEND_BACKWARD:
        meet(run, i - 1);
        return;
    case HET_TASK_GRADIENT_SYNC:
    case HET_TASK_OPTIMIZER_STEP:
        return; /* no step of the schedule */
    }
}

static void finish_step(struct run *run, struct lane *lane, double start_s)
{
    enum het_task_kind kind = lane->steps[lane->step];
    if (lane->stage->tasks)
        lane->stage->tasks[lane->step] = (struct het_task){
            .kind = kind,
            .microbatch = lane->done[kind],
            .start_s = start_s,
            .end_s = run->now_s,
        };
    lane->stage->busy_s += run->now_s - start_s;
    lane->end_s = run->now_s;
    lane->done[kind]++;
    lane->step++;
}

static void end_transfer(struct run *run, uint32_t t)
{
    struct transfer *transfer = &run->transfers[t];
    if (transfer->phase == FLOWING) {
        leave_links(run, transfer);
        transfer->phase = LATENT;
        if (transfer->latency_s > 0) {
            schedule(run, run->lane_count + t, run->now_s + transfer->latency_s);
            return;
        }
    }
    transfer->phase = WAITING;
    finish_step(run, &run->lanes[t], transfer->start_s);
    finish_step(run, &run->lanes[t + 1], transfer->start_s);
    advance(run, t);
    advance(run, t + 1);
}

/* Ends what ends now; in the same moment one end may follow another. */
static void run_events(struct run *run)
{
    while (run->heap_count) {
        run->now_s = run->time_s[run->heap[0]];
        while (run->heap_count && run->time_s[run->heap[0]] <= run->now_s) {
            uint32_t slot = take_first(run);
            if (slot >= run->lane_count) {
                end_transfer(run, slot - run->lane_count);
                continue;
            }
            finish_step(run, &run->lanes[slot], run->lanes[slot].start_s);
            advance(run, slot);
        }
        share_links(run);
    }
}

/* ---- setting up ---- */

static size_t count_steps(uint32_t microbatches, bool has_previous, bool has_next)
{
    size_t each = 2 + 2 * (size_t)has_previous + 2 * (size_t)has_next;
    return each * microbatches;
}

/* Receives if there is a stage before, computes, sends if there is one behind, and so on:
 * what the header calls the schedule. */
static void fill_steps(uint8_t *step, uint32_t microbatches, uint32_t stage_index,
                       uint32_t stage_count)
{
    bool has_previous = stage_index > 0, has_next = stage_index + 1 < stage_count;
    uint32_t behind = stage_count - 1 - stage_index;
    uint32_t warm = behind < microbatches ? behind : microbatches;
#define STEP(condition, kind) (void)((condition) && (*step++ = (kind)))
    for (uint32_t i = 0; i < warm; i++) {
        STEP(has_previous, HET_TASK_RECEIVE_FORWARD);
        *step++ = HET_TASK_FORWARD;
        STEP(has_next, HET_TASK_SEND_FORWARD);
    }
    STEP(has_previous && warm < microbatches, HET_TASK_RECEIVE_FORWARD);
    for (uint32_t i = warm; i < microbatches; i++) {
        *step++ = HET_TASK_FORWARD;
        STEP(has_next, HET_TASK_SEND_FORWARD);
        STEP(has_next, HET_TASK_RECEIVE_BACKWARD);
        *step++ = HET_TASK_BACKWARD;
        STEP(has_previous && i + 1 < microbatches, HET_TASK_RECEIVE_FORWARD);
        STEP(has_previous, HET_TASK_SEND_BACKWARD);
    }
    for (uint32_t i = 0; i < warm; i++) {
        STEP(has_next, HET_TASK_RECEIVE_BACKWARD);
        *step++ = HET_TASK_BACKWARD;
        STEP(has_previous, HET_TASK_SEND_BACKWARD);
    }
#undef STEP
}

static void add_lane(struct run *run, struct pipeline *pipeline, uint32_t s)
{
    uint32_t microbatches = pipeline->simulated_count;
    struct lane *lane = &run->lanes[run->lane_count++];
    lane->stage = &pipeline->stages[s];
    lane->stage->busy_s = 0;
    lane->step_count = count_steps(microbatches, s > 0, s + 1 < pipeline->stage_count);
    uint8_t *steps = HET_ARENA_ARRAY(run->arena, uint8_t, lane->step_count);
    fill_steps(steps, microbatches, s, pipeline->stage_count);
    lane->steps = steps;
    if (run->simulation->keeps_tasks)
        lane->stage->tasks =
            HET_ARENA_ARRAY(run->simulation->arena, struct het_task, lane->step_count);
}

static void add_transfer(struct run *run, const struct pipeline *pipeline, uint32_t s,
                         size_t *crossing_count, uint32_t *link_count)
{
    struct simulation *simulation = run->simulation;
    const struct boundary *send = &pipeline->stages[s].send;
    uint32_t t = run->lane_count - 1;
    run->transfers[t] = (struct transfer){
        .alone_s = send->alone_s,
        .latency_s = send->latency_s,
        .first_crossing = *crossing_count,
        .crossing_count = send->load_count,
    };
    for (size_t i = 0; i < send->load_count; i++) {
        const struct het_link_load *load = &simulation->loads.items[send->first_load + i];
        run->crossings[(*crossing_count)++] = (struct crossing){
            .link = name_link(simulation, load->link, link_count) - 2,
            .transfer = t,
            .demand = pipeline->copies * load->seconds / send->alone_s,
            .weight = (double)pipeline->copies * load->flow_count,
        };
    }
}

static void run_init(struct run *run, struct simulation *simulation, uint32_t first)
{
    size_t lanes = 0, crossings = 0, count = 0;
    uint32_t link_count = 0;
    for (uint32_t p = first; p != NONE; p = simulation->pipelines[p].next) {
        const struct pipeline *pipeline = &simulation->pipelines[p];
        lanes += pipeline->stage_count;
        for (uint32_t s = 0; s < pipeline->stage_count; s++)
            crossings += pipeline->stages[s].send.load_count;
    }
    struct het_arena *arena = het_arena_new();
    *run = (struct run){
        .simulation = simulation,
        .arena = arena,
        .lanes = HET_ARENA_ARRAY(arena, struct lane, lanes),
        .transfers = HET_ARENA_ARRAY(arena, struct transfer, lanes),
        .crossings = HET_ARENA_ARRAY(arena, struct crossing, crossings),
        .links = HET_ARENA_ARRAY(arena, struct link, 2 * crossings),
        .dirty = HET_ARENA_ARRAY(arena, uint32_t, 2 * crossings),
        .time_s = HET_ARENA_ARRAY(arena, double, 2 * lanes),
        .heap = HET_ARENA_ARRAY(arena, uint32_t, 2 * lanes),
        .position = HET_ARENA_ARRAY(arena, uint32_t, 2 * lanes),
    };
    for (uint32_t p = first; p != NONE; p = simulation->pipelines[p].next) {
        struct pipeline *pipeline = &simulation->pipelines[p];
        for (uint32_t s = 0; s < pipeline->stage_count; s++) {
            add_lane(run, pipeline, s);
            add_transfer(run, pipeline, s, &count, &link_count);
        }
    }
    for (size_t i = 0; i < 2 * crossings; i++)
        run->links[i] = (struct link){ .first = NONE, .level = HUGE_VAL };
    for (size_t i = 0; i < 2 * lanes; i++)
        run->position[i] = NONE;
}

/* Simulates the pipelines from `first` on; their simulated_count says how far. */
static void run_group(struct simulation *simulation, uint32_t first)
{
    struct run run;
    run_init(&run, simulation, first);
    for (uint32_t i = 0; i < run.lane_count; i++)
        if (run.lanes[i].steps[0] == HET_TASK_FORWARD)
            advance(&run, i);
    run_events(&run);
    const struct lane *lane = run.lanes;
    for (uint32_t p = first; p != NONE; p = simulation->pipelines[p].next) {
        struct pipeline *pipeline = &simulation->pipelines[p];
        pipeline->end_s = lane->end_s; /* by a backward of the first stage */
        for (uint32_t s = 0; s < pipeline->stage_count; s++, lane++)
            assert(lane->step == lane->step_count);
    }
    het_arena_free(run.arena);
}

/* ---- long runs ---- */

static bool is_distinct(const struct simulation *simulation, size_t g)
{
    return simulation->groups[g].same_as == g;
}

static double count_computes(const struct simulation *simulation)
{
    double computes = 0;
    for (size_t g = 0; g < simulation->group_count; g++) {
        if (!is_distinct(simulation, g))
            continue;
        for (uint32_t p = simulation->groups[g].first; p != NONE;
             p = simulation->pipelines[p].next) {
            const struct pipeline *pipeline = &simulation->pipelines[p];
            if (pipeline->stage_count > 1)
                computes += 2.0 * pipeline->microbatch_count * pipeline->stage_count;
        }
    }
    return computes;
}

/* Each pipeline of the group runs this share of its micro-batches, at least one. */
static void set_share(struct simulation *simulation, uint32_t first, double share)
{
    for (uint32_t p = first; p != NONE; p = simulation->pipelines[p].next) {
        struct pipeline *pipeline = &simulation->pipelines[p];
        pipeline->simulated_count =
            (uint32_t)fmax(floor(pipeline->microbatch_count * share), 1);
    }
}

static double slowest_stage_s(const struct pipeline *pipeline)
{
    double slowest = 0, before = 0;
    for (uint32_t s = 0; s < pipeline->stage_count; s++) {
        const struct stage *stage = &pipeline->stages[s];
        double send = stage->send.alone_s + stage->send.latency_s;
        slowest =
            fmax(slowest, stage->forward_s + stage->backward_s + 2 * (before + send));
        before = send;
    }
    return slowest;
}

/* What the header says of plans with too many micro-batches. */
static void run_part_of_group(struct simulation *simulation, uint32_t first, double share)
{
    struct pipeline *pipelines = simulation->pipelines;
    set_share(simulation, first, share * 0.75);
    run_group(simulation, first);
    uint32_t count = 0, i = 0;
    for (uint32_t p = first; p != NONE; p = pipelines[p].next)
        count++;
    double *shorter_s = HET_ARENA_ARRAY(simulation->arena, double, count);
    uint32_t *shorter_count = HET_ARENA_ARRAY(simulation->arena, uint32_t, count);
    for (uint32_t p = first; p != NONE; p = pipelines[p].next, i++) {
        shorter_s[i] = pipelines[p].end_s;
        shorter_count[i] = pipelines[p].simulated_count;
    }
    set_share(simulation, first, share);
    run_group(simulation, first);
    i = 0;
    for (uint32_t p = first; p != NONE; p = pipelines[p].next, i++) {
        struct pipeline *pipeline = &pipelines[p];
        double pace = slowest_stage_s(pipeline);
        uint32_t more = pipeline->simulated_count - shorter_count[i];
        if (more)
            pace = fmax(pace, (pipeline->end_s - shorter_s[i]) / more);
        pipeline->end_s +=
            (pipeline->microbatch_count - (double)pipeline->simulated_count) * pace;
    }
}

/* ---- the whole plan ---- */

static void run_single_stage(struct simulation *simulation, struct pipeline *pipeline)
{
    struct stage *stage = pipeline->stages;
    double each = stage->forward_s + stage->backward_s;
    pipeline->end_s = stage->busy_s = pipeline->microbatch_count * each;
    if (!simulation->keeps_tasks)
        return;
    stage->tasks = HET_ARENA_ARRAY(simulation->arena, struct het_task,
                                   2 * (size_t)pipeline->microbatch_count);
    for (uint32_t i = 0; i < pipeline->microbatch_count; i++) {
        double start = i * each, middle = start + stage->forward_s;
        stage->tasks[2 * (size_t)i] =
            (struct het_task){ 0, 0, HET_TASK_FORWARD, i, start, middle };
        stage->tasks[2 * (size_t)i + 1] =
            (struct het_task){ 0, 0, HET_TASK_BACKWARD, i, middle, (i + 1) * each };
    }
}

static void copy_group(struct simulation *simulation, const struct group *from,
                       const struct group *to)
{
    struct pipeline *pipelines = simulation->pipelines;
    uint32_t source = from->first;
    for (uint32_t p = to->first; p != NONE; p = pipelines[p].next) {
        pipelines[p].end_s = pipelines[source].end_s;
        pipelines[p].stages = pipelines[source].stages;
        source = pipelines[source].next;
    }
}

static void run_groups(struct simulation *simulation)
{
    double share = (double)HET_SIMULATE_MAX_COMPUTES / count_computes(simulation);
    for (size_t g = 0; g < simulation->group_count; g++) {
        const struct group *group = &simulation->groups[g];
        struct pipeline *first = &simulation->pipelines[group->first];
        if (!is_distinct(simulation, g))
            copy_group(simulation, &simulation->groups[group->same_as], group);
        else if (first->stage_count == 1)
            run_single_stage(simulation, first);
        else if (share < 1)
            run_part_of_group(simulation, group->first, share);
        else
            run_group(simulation, group->first);
    }
}

static uint32_t busiest_stage(const struct pipeline *pipeline)
{
    uint32_t busiest = 0;
    for (uint32_t s = 1; s < pipeline->stage_count; s++)
        if (pipeline->stages[s].busy_s > pipeline->stages[busiest].busy_s)
            busiest = s;
    return busiest;
}

static void price(struct simulation *simulation, struct het_cost *ret)
{
    struct het_cost cost = { 0 };
    for (uint32_t p = 0; p < simulation->plan->pipeline_count; p++) {
        const struct pipeline *pipeline =
            &simulation->pipelines[simulation->pipelines[p].same_as];
        if (pipeline->end_s <= cost.pipeline_s)
            continue;
        cost.pipeline_s = pipeline->end_s;
        cost.slowest_pipeline = p;
        cost.bottleneck_stage = busiest_stage(pipeline);
    }
    cost.sync_s =
        het_cost_sync_uplink(simulation->problem, simulation->plan, &cost.sync_uplink);
    cost.step_s = het_cost_step(simulation->problem, simulation->plan);
    cost.iteration_s = cost.pipeline_s + cost.sync_s + cost.step_s;
    *ret = cost;
}

/* ---- the timeline ---- */

static size_t stage_task_count(const struct pipeline *pipeline, uint32_t s)
{
    return count_steps(pipeline->microbatch_count, s > 0, s + 1 < pipeline->stage_count);
}

/* Tasks of the timeline: those of the schedule, gradients and optimizer. */
static int count_tasks(const struct simulation *simulation, size_t *ret,
                       struct het_error *err)
{
    size_t count = 0;
    for (size_t p = 0; p < simulation->plan->pipeline_count; p++)
        for (uint32_t s = 0; s < simulation->pipelines[p].stage_count; s++)
            count += stage_task_count(&simulation->pipelines[p], s) + 2;
    if (count > HET_TIMELINE_MAX_TASKS ||
        count_computes(simulation) > (double)HET_SIMULATE_MAX_COMPUTES)
        return het_fail(err, HET_BAD_INPUT,
                        "the timeline would have %zu tasks, which is too long to show; a "
                        "plan of fewer micro-batches would do",
                        count);
    *ret = count;
    return 0;
}

static void fill_timeline(struct simulation *simulation, const struct het_cost *cost,
                          struct het_task *tasks)
{
    for (uint32_t p = 0; p < simulation->plan->pipeline_count; p++) {
        const struct pipeline *pipeline =
            &simulation->pipelines[simulation->pipelines[p].same_as];
        for (uint32_t s = 0; s < pipeline->stage_count; s++) {
            size_t count = stage_task_count(pipeline, s);
            const struct het_task *source = pipeline->stages[s].tasks;
            for (size_t i = 0; i < count; i++) {
                *tasks = source[i];
                tasks->pipeline = p;
                tasks++->stage = s;
            }
            double summed_s = cost->pipeline_s + cost->sync_s;
            *tasks++ = (struct het_task){
                p, s, HET_TASK_GRADIENT_SYNC, 0, cost->pipeline_s, summed_s
            };
            *tasks++ = (struct het_task){ p, s,        HET_TASK_OPTIMIZER_STEP,
                                          0, summed_s, cost->iteration_s };
        }
    }
}

/* ---- ---- */

static int simulation_init(struct simulation *simulation, struct het_error *err)
{
    size_t count = simulation->plan->pipeline_count;
    simulation->pipelines = HET_ARENA_ARRAY(simulation->arena, struct pipeline, count);
    for (uint32_t p = 0; p < count; p++)
        if (read_pipeline(simulation, p, err) < 0)
            return -1;
    for (size_t i = 0; i < simulation->loads.count; i++)
        if (simulation->loads.items[i].link >= simulation->link_end)
            simulation->link_end = simulation->loads.items[i].link + 1;
    find_same_pipelines(simulation);
    make_groups(simulation);
    find_same_groups(simulation);
    return 0;
}

static void simulation_fini(struct simulation *simulation)
{
    het_link_loads_fini(&simulation->loads);
    het_arena_free(simulation->arena);
}

int het_schedule_simulate(struct het_arena *arena, const struct het_problem *problem,
                          const struct het_plan *plan, struct het_cost *ret,
                          struct het_timeline *ret_timeline, struct het_error *err)
{
    struct simulation simulation = { .arena = het_arena_new(),
                                     .problem = problem,
                                     .plan = plan,
                                     .keeps_tasks = ret_timeline != NULL };
    size_t task_count = 0;
    int result = simulation_init(&simulation, err);
    if (result == 0 && ret_timeline)
        result = count_tasks(&simulation, &task_count, err);
    if (result == 0) {
        run_groups(&simulation);
        price(&simulation, ret);
    }
    if (result == 0 && ret_timeline) {
        struct het_task *tasks = HET_ARENA_ARRAY(arena, struct het_task, task_count);
        fill_timeline(&simulation, ret, tasks);
        *ret_timeline = (struct het_timeline){ tasks, task_count, ret->iteration_s };
    }
    simulation_fini(&simulation);
    return result;
}
