#include "controller/placement/generation.h"

#include "controller/base/object.h"
#include "controller/base/timestamp.h"
#include "controller/cluster/plan_object.h"
#include "controller/decision/replan_rule.h"
#include "controller/placement/drain.h"
#include "controller/placement/fit.h"

#include <inttypes.h>
#include <string.h>

/* The highest generation used, by every plan, every pod and the status. */
static int64_t newest_generation(const struct snapshot *snapshot)
{
    int64_t horizon = plan_object_horizon(snapshot->job);
    int64_t newest = plan_object_known(snapshot->job);
    for (size_t i = 0; i < snapshot->plan_count; i++)
        if (snapshot->plans[i].generation > newest)
            newest = snapshot->plans[i].generation;
    for (size_t i = 0; i < snapshot->pod_count; i++)
        if (snapshot->pods[i].generation > newest &&
            snapshot->pods[i].generation <= horizon)
            newest = snapshot->pods[i].generation;
    return newest;
}

/* Skips generations whose names foreign objects have: twice as far each time, so that few
 * tries suffice however many there are. */
static int64_t skip_taken(const struct pass *pass, int64_t next)
{
    const struct job_memory *memory = &pass->snapshot->memory;
    int64_t since_ms = pass->snapshot->now_ms - memory->taken_ms;
    if (!memory->taken || since_ms >= GENERATION_TAKEN_MS)
        return next;
    int shift = memory->taken < 32 ? memory->taken - 1 : 31;
    int64_t beyond = memory->taken_generation + (INT64_C(1) << shift);
    return beyond > next ? beyond : next;
}

static void refuse(struct pass *pass, const char *reason, const char *message)
{
    pass_set(pass, "PlanFeasible", "False", reason, message);
    pass->decision->summary = message;
}

/* A generation never used before; 0 if there is none, and the job's conditions say
 * why. */
static int64_t next_generation(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    int64_t newest = newest_generation(snapshot);
    int64_t next = skip_taken(pass, newest + 1);
    if (next - newest > GENERATION_MOST_TAKEN) {
        refuse(
            pass, "NamesTaken",
            pass_text(pass,
                      "ConfigMaps or pods that are not the job's have the names of its "
                      "next plans and their pods, %s-plan-%" PRId64 " among them; "
                      "delete them, or give the job another name",
                      snapshot->spec.name, snapshot->memory.taken_generation));
        pass_requeue_at(pass, snapshot->memory.taken_ms + GENERATION_TAKEN_MS);
        return 0;
    }
    if (next <= PLAN_OBJECT_LAST)
        return next;
    refuse(pass, "RevisionsUsedUp",
           pass_text(pass,
                     "revision %" PRId64 " was the last: a job has no more plans; "
                     "delete it and create it anew",
                     PLAN_OBJECT_LAST));
    return 0;
}

/* The input parts of `digest`: those of the answer, or of the plan that continues. */
static const char *input_parts(struct pass *pass, uint64_t digest)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct planner_answer *answer = &snapshot->memory.answer;
    char text[INPUT_CHANGE_TEXT_SIZE];
    if (pass->current && digest == pass->current->input_digest)
        return pass->current->input_parts;
    input_change_format(answer->kind != ANSWER_NONE && answer->digest == digest
                            ? &answer->parts
                            : &snapshot->input_parts,
                        text);
    return het_arena_strdup(pass->arena, text);
}

/* Times of the voluntary re-plans of the last hour, including this one if it is
 * voluntary. */
static const char *replan_times(struct pass *pass)
{
    const char *before = pass->current ? pass->current->replan_times : "";
    return replan_rule_add_time(pass->arena, before, pass->snapshot->wall_ms,
                                pass->is_voluntary);
}

/* Decides on a new generation. Its ConfigMap is the decision and reserves its GPUs; the
 * next pass acts on it. `digest` is that of the input that the plan was made for. False
 * if the plan cannot be written. */
bool generation_commit(struct pass *pass, const struct het_plan *plan, uint64_t digest,
                       const char *trigger, int64_t restarts, int64_t replans,
                       const char *event, const char *message)
{
    const struct snapshot *snapshot = pass->snapshot;
    struct children_generation generation = {
        .generation = next_generation(pass),
        .plan = plan,
        .trigger = trigger,
        .input_digest = digest,
        .input_parts = input_parts(pass, digest),
        .replan_times = replan_times(pass),
        .planner_ms = snapshot->memory.answer.digest == digest &&
                              (!pass->current || plan != pass->current->plan)
                          ? snapshot->memory.answer.planner_ms
                          : -1,
        .restarts = restarts,
        .replans = replans,
        .claim = pass->claim,
    };
    json_t *config_map;
    struct het_error err;
    const char *reason;
    if (!generation.generation)
        return false;
    if (children_config_map(snapshot, &generation, &config_map, &reason, &err) < 0) {
        refuse(pass, reason, pass_text(pass, "%s", err.message));
        return false;
    }
    pass_create(pass, PHASE_PLAN_OBJECT, &kube_config_map, config_map);
    pass_event(pass, PHASE_EVENTS, false, event, "Plan", message);
    pass->is_replaced = true;
    pass->decision->summary =
        pass_text(pass, "revision %" PRId64 ": %s", generation.generation, message);
    return true;
}

static void delete_pod(struct pass *pass, const struct snapshot_pod *pod, int64_t grace_s)
{
    const struct capacity_node *node = snapshot_find_node(pass->snapshot, pod->node);
    bool is_dead = pod->is_on_lost_node;
    if (!is_dead && node && fit_is_silent(node))
        is_dead = pass_has_come(pass, node->unusable_since_ms +
                                          pass->snapshot->spec.node_failure_grace_ms);
    /* No kubelet confirms the end of a pod on a dead node: it is deleted without grace,
     * again if a graceful deletion is already under way. If it remains, it waits for a
     * foreign finalizer, and nothing more can be done. */
    if (kueue_pod_is_stuck(pod->object))
        return;
    if (is_dead)
        pass_delete(pass, PHASE_DELETE, &kube_pod, pod->name, pod->uid, 0);
    else if (!pod->is_deleting)
        pass_delete(pass, PHASE_DELETE, &kube_pod, pod->name, pod->uid, grace_s);
}

static const struct snapshot_plan *find_plan(const struct snapshot *snapshot,
                                             int64_t generation)
{
    for (size_t i = 0; i < snapshot->plan_count; i++)
        if (snapshot->plans[i].generation == generation)
            return &snapshot->plans[i];
    return NULL;
}

/* Deletes `pods` of an older generation once it is drained. Returns how many can still
 * hold a GPU or run a rank. */
static size_t end_pods(struct pass *pass, const struct snapshot_pod *pods, size_t count)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct snapshot_plan *plan = find_plan(snapshot, pods[0].generation);
    int64_t oldest_kept = snapshot->plan_count > PLANS_KEPT
                              ? snapshot->plans[PLANS_KEPT - 1].generation
                              : 0;
    size_t alive = 0;
    for (size_t i = 0; i < count; i++)
        alive += !pods[i].is_gone;
    if (plan && alive && !drain_is_over(pass, plan))
        return alive;
    int64_t grace_s = plan && alive ? drain_grace_s(pass, plan) : -1;
    for (size_t i = 0; i < count; i++)
        /* Ended pods stay as long as their plan, for people to read. */
        if (!pod_has_ended(&pods[i]) || pods[i].generation < oldest_kept ||
            pods[i].is_on_lost_node)
            delete_pod(pass, &pods[i], grace_s);
    return alive;
}

size_t generation_fence_older(struct pass *pass, int64_t keep)
{
    const struct snapshot *snapshot = pass->snapshot;
    size_t alive = 0;
    for (size_t first = 0, end; first < snapshot->pod_count; first = end) {
        int64_t generation = snapshot->pods[first].generation;
        for (end = first + 1; end < snapshot->pod_count; end++)
            if (snapshot->pods[end].generation != generation)
                break;
        if (generation != keep)
            alive += end_pods(pass, snapshot->pods + first, end - first);
    }
    return alive;
}

static bool has_pods(const struct snapshot *snapshot, int64_t generation)
{
    for (size_t i = 0; i < snapshot->pod_count; i++)
        if (snapshot->pods[i].generation == generation && !snapshot->pods[i].is_gone)
            return true;
    return false;
}

void generation_drop_old(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    for (size_t i = PLANS_KEPT; i < snapshot->plan_count; i++)
        if (!has_pods(snapshot, snapshot->plans[i].generation))
            pass_delete(pass, PHASE_DELETE, &kube_config_map, snapshot->plans[i].name,
                        snapshot->plans[i].uid, -1);
}

void generation_retire(struct pass *pass, const char *trigger, int64_t restarts)
{
    const struct snapshot_plan *current = pass->current;
    pass->facts.holds_gpus = false;
    if (*current->retired)
        return;
    char time[TIMESTAMP_SIZE];
    timestamp_format(pass->snapshot->wall_ms, time);
    const json_t *map = current->config_map;
    pass_annotate(pass, PHASE_RETIRE, &kube_config_map, map, ANNOTATION_RETIRED, trigger);
    pass_annotate(pass, PHASE_RETIRE, &kube_config_map, map, ANNOTATION_RETIRED_AT, time);
    pass_annotate(pass, PHASE_RETIRE, &kube_config_map, map, ANNOTATION_RESTARTS,
                  het_arena_printf(pass->arena, "%" PRId64, restarts));
}

void generation_delete_pods(struct pass *pass)
{
    int64_t grace_s = drain_grace_s(pass, pass->current);
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        const struct snapshot_pod *pod = pass->pods[i];
        if (pod && !pod_has_ended(pod))
            delete_pod(pass, pod, grace_s);
    }
}

void generation_stop(struct pass *pass, const char *trigger)
{
    generation_retire(pass, trigger, pass->current->restarts);
    if (drain_is_over(pass, pass->current))
        generation_delete_pods(pass);
}
