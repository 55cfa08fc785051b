#include "controller/placement/drain.h"

#include "controller/base/object.h"
#include "controller/base/timestamp.h"
#include "controller/placement/fit.h"

#include <inttypes.h>
#include <string.h>

static bool is_on_dead_node(const struct pass *pass, const struct snapshot_pod *pod)
{
    const struct capacity_node *node = snapshot_find_node(pass->snapshot, pod->node);
    return pod->is_on_lost_node || (node && fit_is_silent(node));
}

/* Whether every pod of the generation runs. */
static bool is_whole(const struct pass *pass, const struct snapshot_plan *plan)
{
    const struct snapshot *snapshot = pass->snapshot;
    size_t running = 0;
    for (size_t i = 0; i < snapshot->pod_count; i++) {
        const struct snapshot_pod *pod = &snapshot->pods[i];
        if (pod->generation != plan->generation)
            continue;
        if (pod->phase != POD_RUNNING || pod->is_deleting || is_on_dead_node(pass, pod))
            return false;
        running++;
    }
    return running && running == plan->pod_count;
}

static const struct snapshot_pod *rank_zero(const struct pass *pass,
                                            const struct snapshot_plan *plan)
{
    for (size_t i = 0; i < pass->snapshot->pod_count; i++) {
        const struct snapshot_pod *pod = &pass->snapshot->pods[i];
        if (pod->generation == plan->generation && pod->index == 0)
            return pod;
    }
    return NULL;
}

/* When waiting for the checkpoint ends: the time-out, counted from the request, or sooner
 * if a node of the gang goes before that. */
static int64_t due_ms(const struct pass *pass, const struct snapshot_plan *plan)
{
    const struct snapshot *snapshot = pass->snapshot;
    int64_t timeout_ms = snapshot->spec.hook_timeout_ms;
    int64_t left_ms = plan->checkpoint_requested_wall_ms + timeout_ms - snapshot->wall_ms;
    int64_t due = snapshot->now_ms + (left_ms < timeout_ms ? left_ms : timeout_ms);
    for (size_t i = 0; i < snapshot->pod_count; i++) {
        const struct snapshot_pod *pod = &snapshot->pods[i];
        const struct capacity_node *node = snapshot_find_node(snapshot, pod->node);
        if (pod->generation == plan->generation && node && fit_leaving_at_ms(node) < due)
            due = fit_leaving_at_ms(node);
    }
    return due;
}

static void annotate(struct pass *pass, const struct snapshot_plan *plan, const char *key,
                     const char *value)
{
    pass_annotate(pass, PHASE_RETIRE, &kube_config_map, plan->config_map, key, value);
}

/* Records a request that was not answered; none for NULL. */
static void note_request(struct pass *pass, const struct snapshot_plan *plan,
                         const char *when, const char *what)
{
    annotate(pass, plan, ANNOTATION_CHECKPOINT_REQUESTED, when);
    annotate(pass, plan, ANNOTATION_CHECKPOINT_FOR, what);
    annotate(pass, plan, ANNOTATION_CHECKPOINT_ACKNOWLEDGED, NULL);
    annotate(pass, plan, ANNOTATION_CHECKPOINT_FAILED, NULL);
}

static void request(struct pass *pass, const struct snapshot_plan *plan, const char *what)
{
    char now[TIMESTAMP_SIZE];
    timestamp_format_micro(pass->snapshot->wall_ms, now);
    note_request(pass, plan, now, what);
    if (pass->snapshot->spec.hook_method == HOOK_HTTP)
        pass_event(pass, PHASE_EVENTS, false, "CheckpointRequested", "Checkpoint",
                   pass_text(pass,
                             "revision %" PRId64 " is asked for a checkpoint, within "
                             "%" PRId64 " s",
                             plan->generation,
                             pass->snapshot->spec.hook_timeout_ms / 1000));
}

/* Starts the hook of `plan`, or lets it continue. */
static void keep_hook(struct pass *pass, const struct snapshot_plan *plan, int64_t due)
{
    const struct job_spec *spec = &pass->snapshot->spec;
    struct hook_memory *hook = &pass->decision->memory.hook;
    const struct snapshot_pod *pod = rank_zero(pass, plan);
    const char *address = json_string_value(object_at(pod->object, "status.podIP"));
    if (hook->outcome == HOOK_RUNNING || !address)
        return;
    *hook =
        (struct hook_memory){ .outcome = HOOK_RUNNING,
                              .generation = plan->generation,
                              .requested_wall_ms = plan->checkpoint_requested_wall_ms };
    struct action *action = pass_add(pass, ACTION_HOOK, PHASE_EVENTS);
    action->name = pod->name;
    action->address = address;
    action->port = spec->hook_port;
    action->path = spec->hook_path;
    action->timeout_ms = due - pass->snapshot->now_ms;
    action->object = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:s, s:f}", "apiVersion", "heterotrain.io/v1alpha1",
        "kind", "CheckpointRequest", "namespace", spec->ns, "job", spec->name, "revision",
        (json_int_t)plan->generation, "requestedAt",
        kube_annotation(plan->config_map, ANNOTATION_CHECKPOINT_REQUESTED),
        "timeoutSeconds", (double)action->timeout_ms / 1000);
}

static void fail(struct pass *pass, const struct snapshot_plan *plan, const char *reason,
                 const char *message)
{
    annotate(pass, plan, ANNOTATION_CHECKPOINT_FAILED, reason);
    pass_event(pass, PHASE_EVENTS, true, reason, "Checkpoint", message);
}

/* Records the program's answer, if it is not recorded yet. */
static bool take_answer(struct pass *pass, const struct snapshot_plan *plan)
{
    const struct hook_memory *hook = &pass->decision->memory.hook;
    char now[TIMESTAMP_SIZE];
    if (hook->outcome == HOOK_ACKNOWLEDGED) {
        timestamp_format_micro(pass->snapshot->wall_ms, now);
        annotate(pass, plan, ANNOTATION_CHECKPOINT_ACKNOWLEDGED, now);
        pass_event(pass, PHASE_EVENTS, false, "CheckpointAcknowledged", "Checkpoint",
                   pass_text(pass, "revision %" PRId64 " has written a checkpoint",
                             plan->generation));
    } else if (hook->outcome == HOOK_REFUSED) {
        fail(pass, plan, "CheckpointRefused",
             pass_text(pass, "revision %" PRId64 " writes no checkpoint: %s",
                       plan->generation, hook->message));
    }
    return hook->outcome == HOOK_ACKNOWLEDGED || hook->outcome == HOOK_REFUSED;
}

/* Whether the request recorded on `plan` has ended, with or without a checkpoint. */
static bool is_answered(struct pass *pass, const struct snapshot_plan *plan)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct hook_memory *hook = &snapshot->memory.hook;
    if (plan->checkpoint_is_over)
        return true;
    if (hook->generation == plan->generation &&
        hook->requested_wall_ms == plan->checkpoint_requested_wall_ms)
        pass->decision->memory.hook = *hook;
    if (take_answer(pass, plan))
        return true;
    int64_t due = due_ms(pass, plan);
    if (pass_has_come(pass, due)) {
        fail(pass, plan, "CheckpointTimedOut",
             pass_text(pass, "revision %" PRId64 " has written no checkpoint in time",
                       plan->generation));
        return true;
    }
    keep_hook(pass, plan, due);
    return false;
}

/* A checkpoint written for a notice is too old for a stop if training went on for longer
 * than writing one takes. */
static bool is_stale(const struct pass *pass, const struct snapshot_plan *plan)
{
    const struct snapshot *snapshot = pass->snapshot;
    return plan->checkpoint_is_for_notice && plan->checkpoint_is_over &&
           snapshot->wall_ms - plan->checkpoint_requested_wall_ms >
               snapshot->spec.hook_timeout_ms;
}

bool drain_is_over(struct pass *pass, const struct snapshot_plan *plan)
{
    enum hook_method method = pass->snapshot->spec.hook_method;
    if (method == HOOK_NONE || !is_whole(pass, plan))
        return true;
    bool is_asked = plan->checkpoint_requested_wall_ms && !is_stale(pass, plan);
    if (!is_asked)
        request(pass, plan, CHECKPOINT_FOR_STOP);
    if (method == HOOK_SIGNAL || (is_asked && is_answered(pass, plan)))
        return true;
    pass->is_draining = true;
    return false;
}

int64_t drain_grace_s(const struct pass *pass, const struct snapshot_plan *plan)
{
    const struct job_spec *spec = &pass->snapshot->spec;
    int64_t timeout_s = spec->hook_timeout_ms / 1000;
    bool is_asked = plan->checkpoint_requested_wall_ms || is_whole(pass, plan);
    if (spec->hook_method == HOOK_SIGNAL && is_asked &&
        timeout_s > spec->termination_grace_s)
        return timeout_s;
    /* The pods may be older than the limit. */
    int64_t own_s = object_integer(
        pass->snapshot->job, "spec.podTemplate.spec.terminationGracePeriodSeconds", 0);
    return own_s > spec->termination_grace_s ? spec->termination_grace_s : -1;
}

void drain_before_loss(struct pass *pass)
{
    const struct snapshot_plan *plan = pass->current;
    if (pass->snapshot->spec.hook_method != HOOK_HTTP || !is_whole(pass, plan))
        return;
    if (plan->checkpoint_requested_wall_ms)
        is_answered(pass, plan);
    else
        request(pass, plan, CHECKPOINT_FOR_NOTICE);
}

void drain_forget_notice(struct pass *pass)
{
    const struct snapshot_plan *plan = pass->current;
    if (plan->checkpoint_is_for_notice && plan->checkpoint_requested_wall_ms)
        note_request(pass, plan, NULL, NULL);
}
