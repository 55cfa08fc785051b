#include "controller/reconcile/gang.h"

#include "controller/base/object.h"
#include "controller/base/timestamp.h"
#include "controller/placement/generation.h"
#include "controller/placement/preemption.h"
#include "controller/reconcile/kueue_admission.h"

#include <inttypes.h>
#include <string.h>

/* Whether a foreign object has the name of our Service. */
static bool service_is_foreign(const struct pass *pass)
{
    const json_t *service = pass->snapshot->service;
    return service && strcmp(kube_controller_uid(service), pass->snapshot->spec.uid);
}

static void keep_service(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const char *generation = json_string_value(json_object_get(
        object_at(snapshot->service, "spec.selector"), LABEL_PLAN_REVISION));
    const char *wanted =
        het_arena_printf(pass->arena, "%" PRId64, pass->current->generation);
    if (generation && !strcmp(generation, wanted))
        return;
    json_t *service = children_service(snapshot, pass->current->generation);
    if (!snapshot->service) { /* created, so that a foreign one is never taken over */
        pass_create(pass, PHASE_SERVICE, &kube_service, service);
        return;
    }
    /* Never a foreign one created under its name meanwhile. */
    json_object_set_new(json_object_get(service, "metadata"), "uid",
                        json_string(kube_uid(snapshot->service)));
    struct action *action = pass_add(pass, ACTION_APPLY, PHASE_SERVICE);
    action->resource = &kube_service;
    action->name = snapshot->spec.name;
    action->object = service;
}

/* Adds the pods that are missing. Errors: as children_rendering and children_pod. */
static int add_pods(struct pass *pass, const char **ret_reason, struct het_error *err)
{
    const struct snapshot *snapshot = pass->snapshot;
    struct het_rendering rendering;
    if (children_rendering(snapshot, pass->current, pass->arena, &rendering, ret_reason,
                           err) < 0)
        return -1;
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        if (pass->pods[i] || pass->has_succeeded[i])
            continue;
        json_t *pod;
        if (children_pod(snapshot, pass->current, &rendering, i, &pod, ret_reason, err) <
            0)
            return -1;
        pass_create(pass, PHASE_PODS, &kube_pod, pod);
    }
    return 0;
}

/* Creates what is missing; false if the template cannot be made into pods. */
static bool create_pods(struct pass *pass)
{
    const char *reason;
    struct het_error err;
    if (!pass_missing_pods(pass) || add_pods(pass, &reason, &err) == 0)
        return true;
    pass_set(pass, "Accepted", "False", reason, pass_text(pass, "%s", err.message));
    return false;
}

/* The scheduler's message about the first pod that it cannot bind. */
static const char *pending_message(struct pass *pass, size_t placed)
{
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        const struct snapshot_pod *pod = pass->pods[i];
        if (!pod || pod->is_scheduled)
            continue;
        const char *message =
            object_text(object_find_condition(pod->object, "PodScheduled"), "message");
        if (*message)
            return pass_text(pass, "pod %s: %s", pod->name, message);
    }
    return pass_text(pass, "%zu of %zu pods are placed", placed,
                     pass->current->rank_node_count);
}

void gang_report(struct pass *pass)
{
    size_t total = pass->current->rank_node_count;
    size_t placed = pass_count_pods(pass, pod_is_placed);
    size_t ready = pass_count_pods(pass, pod_is_ready);
    if (placed == total)
        pass_set(pass, "Placed", "True", "AllPodsScheduled",
                 pass_text(pass, "%zu pods are on their nodes", total));
    else
        pass_set(pass, "Placed", "False", "PodsPending", pending_message(pass, placed));
    if (ready == total)
        pass_set(pass, "Running", "True", "AllPodsReady",
                 pass_text(pass, "%zu pods run", total));
    else
        pass_set(pass, "Running", "False", "PodsNotReady",
                 pass_text(pass, "%zu of %zu pods are ready", ready, total));
    pass->decision->summary = pass_text(pass,
                                        "revision %" PRId64 ": %zu of %zu pods ready",
                                        pass->current->generation, ready, total);
}

/* ---- the fit check ---- */

static const struct snapshot_pod *find_gated(const struct pass *pass)
{
    for (size_t i = 0; i < pass->current->rank_node_count; i++)
        if (pass->pods[i] && pass->pods[i]->is_gated)
            return pass->pods[i];
    return NULL;
}

/* Writes the mark, even if the pod has been changed meanwhile. */
static void write_mark(struct pass *pass, const struct snapshot_pod *pod)
{
    char now[TIMESTAMP_SIZE];
    pass->decision->memory.fit_mark_wall_ms = pass->snapshot->wall_ms;
    timestamp_format_micro(pass->snapshot->wall_ms, now);
    struct action *action = pass_add(pass, ACTION_PATCH, PHASE_PODS);
    action->resource = &kube_pod;
    action->name = pod->name;
    action->uid = pod->uid;
    action->object = json_pack("{s:{s:s, s:{s:s}}}", "metadata", "uid", pod->uid,
                               "annotations", ANNOTATION_FIT_MARK, now);
}

/* Whether the watch of pods has reached the version of the marked pod. */
static bool mark_is_seen(const struct pass *pass)
{
    char mark[TIMESTAMP_SIZE];
    timestamp_format_micro(pass->decision->memory.fit_mark_wall_ms, mark);
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        const json_t *pod = pass->pods[i] ? pass->pods[i]->object : NULL;
        if (pod && !strcmp(kube_annotation(pod, ANNOTATION_FIT_MARK), mark))
            return kube_compare_versions(pass->snapshot->pods_version,
                                         kube_resource_version(pod)) >= 0;
    }
    return false;
}

static void read_nodes(struct pass *pass)
{
    for (size_t i = 0; i < pass->current->rank_node_count; i++)
        pass_refresh_pods(pass, "",
                          het_arena_printf(pass->arena,
                                           "fieldSelector=spec.nodeName%%3D%s",
                                           pass->current->rank_nodes[i].node_name));
}

/* True once there is nothing left to wait for. */
static bool await_mark(struct pass *pass)
{
    struct job_memory *memory = &pass->decision->memory;
    int64_t now_ms = pass->snapshot->now_ms;
    if (mark_is_seen(pass))
        return true;
    if (pass_has_come(pass, memory->checked_ms + GANG_MARK_MS)) {
        memory->fit_mark_wall_ms = 0;
        memory->checked_ms = now_ms;
        pass_refresh_pods(pass, "", "fieldSelector=spec.nodeName%21%3D");
        pass_requeue_at(pass, now_ms);
    } else {
        pass_requeue_at(pass, 2 * now_ms - memory->checked_ms + GANG_MARK_LOOK_MS);
    }
    return false;
}

/* Whether the view of the plan's nodes is fresh. If not, refreshes it, and a later pass
 * checks whether the plan still fits (fit_check). */
static bool is_fit_fresh(struct pass *pass)
{
    struct job_memory *memory = &pass->decision->memory;
    const struct snapshot_pod *gated = find_gated(pass);
    if (pass_is_fresh(pass, &memory->checked_generation, &memory->checked_ms))
        return !memory->fit_mark_wall_ms || await_mark(pass);
    memory->fit_mark_wall_ms = 0;
    if (pass->current->rank_node_count <= GANG_NODE_READS)
        read_nodes(pass);
    else if (gated && pass->snapshot->pods_version)
        write_mark(pass, gated);
    else
        pass_refresh_pods(pass, "", "fieldSelector=spec.nodeName%21%3D");
    return false;
}

/* ---- the gates ---- */

/* Counts pods of the generation that have our gate, and those that have another. */
static size_t count_gated(const struct pass *pass, size_t *ret_others)
{
    size_t gated = 0;
    *ret_others = 0;
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        gated += pass->pods[i] && pass->pods[i]->is_gated;
        *ret_others += pass->pods[i] && pass->pods[i]->has_other_gates;
    }
    return gated;
}

/* Removes our gate, if the pod is still the one we see and has it where we see it. */
static json_t *lifting_patch(const struct snapshot_pod *pod)
{
    const json_t *gates = object_at(pod->object, "spec.schedulingGates");
    size_t at = 0, count = json_array_size(gates);
    while (at < count &&
           strcmp(object_text(json_array_get(gates, at), "name"), SCHEDULING_GATE) != 0)
        at++;
    json_t *patch = json_array();
    json_array_append_new(patch, json_pack("{s:s, s:s, s:s}", "op", "test", "path",
                                           "/metadata/uid", "value", pod->uid));
    json_array_append_new(patch,
                          json_pack("{s:s, s:o, s:s}", "op", "test", "path",
                                    json_sprintf("/spec/schedulingGates/%zu/name", at),
                                    "value", SCHEDULING_GATE));
    json_array_append_new(patch,
                          json_pack("{s:s, s:o}", "op", "remove", "path",
                                    json_sprintf("/spec/schedulingGates/%zu", at)));
    return patch;
}

/* The time is written first, so that after a crash it is known since when the pods
 * wait. */
static void mark_released(struct pass *pass)
{
    char now[TIMESTAMP_SIZE];
    if (pass->current->released_wall_ms)
        return;
    timestamp_format(pass->snapshot->wall_ms, now);
    pass_annotate(pass, PHASE_RETIRE, &kube_config_map, pass->current->config_map,
                  ANNOTATION_RELEASED, now);
}

static void lift_gates(struct pass *pass)
{
    mark_released(pass);
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        const struct snapshot_pod *pod = pass->pods[i];
        if (!pod || !pod->is_gated)
            continue;
        struct action *action = pass_add(pass, ACTION_PATCH, PHASE_PODS);
        action->resource = &kube_pod;
        action->name = pod->name;
        action->uid = pod->uid;
        action->object = lifting_patch(pod);
    }
}

/* ---- the time-out ---- */

static bool is_blocking(const struct pass *pass, size_t index)
{
    return !pass->has_succeeded[index] &&
           (!pass->pods[index] || !pod_is_placed(pass->pods[index]));
}

/* Nodes of unbound pods, comma-separated: as many whole names as fit in
 * GANG_AVOID_BYTES. */
static const char *blocking_nodes(struct pass *pass)
{
    size_t size = 1;
    for (size_t i = 0; i < pass->current->rank_node_count; i++)
        size += strlen(pass->current->rank_nodes[i].node_name) + 1;
    char *list = HET_ARENA_ARRAY(pass->arena, char, size);
    size_t length = 0;
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        const char *name = pass->current->rank_nodes[i].node_name;
        if (!is_blocking(pass, i) || length + 1 + strlen(name) > GANG_AVOID_BYTES)
            continue;
        if (length)
            list[length++] = ',';
        memcpy(list + length, name, strlen(name));
        length += strlen(name);
    }
    return list;
}

/* The first of them, for people. */
static const char *first_blocking_nodes(struct pass *pass)
{
    const char *list = "";
    size_t count = 0;
    for (size_t i = 0; i < pass->current->rank_node_count; i++)
        if (is_blocking(pass, i) && count++ < GANG_NAMED_NODES)
            list = pass_text(pass, "%s%s%s", list, *list ? ", " : "",
                             pass->current->rank_nodes[i].node_name);
    return count > GANG_NAMED_NODES
               ? pass_text(pass, "%s and %zu more", list, count - GANG_NAMED_NODES)
               : list;
}

/* Time-outs of the job recorded on its kept plans. */
static int64_t count_timeouts(const struct snapshot *snapshot)
{
    int64_t count = 0;
    for (size_t i = 0; i < snapshot->plan_count; i++)
        if (snapshot->plans[i].gang_timeouts > count)
            count = snapshot->plans[i].gang_timeouts;
    return count;
}

static void give_up(struct pass *pass, size_t placed)
{
    const struct snapshot *snapshot = pass->snapshot;
    const json_t *map = pass->current->config_map;
    const char *message = pass_text(
        pass, "%zu of %zu pods were bound within %" PRId64 " s; left out now: %s; %s",
        placed, pass->current->rank_node_count, snapshot->spec.gang_timeout_ms / 1000,
        first_blocking_nodes(pass), pending_message(pass, placed));
    char until[TIMESTAMP_SIZE];
    int64_t before = count_timeouts(snapshot);
    int doublings = (int)(before < GANG_AVOID_DOUBLINGS ? before : GANG_AVOID_DOUBLINGS);
    timestamp_format(snapshot->wall_ms + (GANG_AVOID_MS << doublings), until);
    generation_stop(pass, "GangTimeout");
    pass_annotate(pass, PHASE_RETIRE, &kube_config_map, map, ANNOTATION_GANG_TIMEOUTS,
                  het_arena_printf(pass->arena, "%" PRId64, before + 1));
    pass_annotate(pass, PHASE_RETIRE, &kube_config_map, map, ANNOTATION_AVOID,
                  blocking_nodes(pass));
    pass_annotate(pass, PHASE_RETIRE, &kube_config_map, map, ANNOTATION_AVOID_UNTIL,
                  until);
    pass_event(pass, PHASE_EVENTS, true, "GangTimeout", "Place", message);
    pass_set_not_placed(pass, "GangTimeout", message);
    pass->decision->summary = message;
}

/* A spec that was refused before the pods of its plan had started. */
#define SPEC_REFUSED "SpecRefused"

bool gang_stops_refused(struct pass *pass)
{
    size_t others;
    bool has_begun =
        !count_gated(pass, &others) &&
        (pass->current->released_wall_ms || pass_count_pods(pass, pod_is_placed));
    if (!pass_was_retired_for(pass, SPEC_REFUSED) &&
        (*pass->current->retired || has_begun))
        return false;
    generation_stop(pass, SPEC_REFUSED);
    const char *message =
        "its pods had not started when the spec was refused; a new plan is "
        "made once it is accepted";
    pass_set_not_placed(pass, SPEC_REFUSED, message);
    pass->decision->summary = message;
    return true;
}

/* True if the pods of the generation have waited for their nodes too long. */
static bool is_out_of_time(struct pass *pass)
{
    int64_t released_ms = pass->current->released_wall_ms;
    size_t placed = pass_count_pods(pass, pod_is_placed);
    if (placed == pass->current->rank_node_count || !released_ms ||
        pass_was_placed(pass) ||
        !pass_has_come_wall(pass, released_ms + pass->snapshot->spec.gang_timeout_ms))
        return false;
    give_up(pass, placed);
    return true;
}

/* ---- the order of it ---- */

static bool wait_for(struct pass *pass, const char *reason, const char *message)
{
    pass_set_not_placed(pass, reason, message);
    pass->decision->summary = message;
    return false;
}

static bool wait_for_fit(struct pass *pass)
{
    return wait_for(pass, "CheckingFit",
                    "what is bound to the nodes of the plan is made sure of");
}

/* The pods exist, gated, and no older ones are left. */
static bool release(struct pass *pass, size_t gated, size_t others)
{
    if (others)
        return wait_for(pass, "WaitingForAdmission",
                        pass_text(pass,
                                  "%zu pods have the scheduling gate of a quota "
                                  "controller",
                                  others));
    if (!kueue_admission_admits(pass))
        return wait_for(pass, "WaitingForAdmission", "Kueue has not admitted all pods");
    if (pass->is_suspect)
        return wait_for(pass, "WaitingForNode", "a node of the plan is not ready");
    if (!is_fit_fresh(pass))
        return wait_for_fit(pass);
    keep_service(pass);
    lift_gates(pass);
    return wait_for(pass, "PodsPending",
                    pass_text(pass, "the gates of %zu pods are lifted", gated));
}

bool gang_form(struct pass *pass)
{
    if (service_is_foreign(pass))
        return wait_for(pass, "NameConflict",
                        pass_text(pass,
                                  "Service %s/%s belongs to somebody else; rename it or "
                                  "the job",
                                  pass->snapshot->spec.ns, pass->snapshot->spec.name));
    if (preemption_is_waiting(pass))
        return false;
    bool has_gates = children_has_gates(pass->snapshot);
    size_t missing = pass_missing_pods(pass);
    size_t older = generation_fence_older(pass, pass->current->generation);
    /* In a queue they would request quota that the older ones still hold. */
    bool is_early = older && pass->snapshot->quota.queue;
    if (has_gates && missing && !is_early && !create_pods(pass))
        return false;
    if (older)
        return wait_for(
            pass, pass->is_draining ? "WaitingForCheckpoint" : "WaitingForOldPods",
            pass_text(pass, "%zu pods of older revisions are still there", older));
    if (has_gates && missing)
        return wait_for(pass, "PodsPending",
                        pass_text(pass, "%zu pods are created", missing));
    if (missing && !is_fit_fresh(pass))
        return wait_for_fit(pass);
    size_t others, gated = count_gated(pass, &others);
    if (gated)
        return release(pass, gated, others);
    keep_service(pass);
    if (missing) {
        mark_released(pass);
        return create_pods(pass) &&
               wait_for(pass, "PodsPending",
                        pass_text(pass, "%zu pods are created", missing));
    }
    if (is_out_of_time(pass))
        return false;
    gang_report(pass);
    return true;
}
