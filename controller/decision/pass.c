#include "controller/decision/pass.h"

#include "controller/base/digest.h"
#include "controller/base/object.h"
#include "controller/base/timestamp.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* events.k8s.io/v1 limits a note to 1 kB; conditions keep to the same limit. */
#define MESSAGE_BYTES        1024
#define EVENT_PERIOD_MS      ((int64_t)600000)
#define REPORTING_CONTROLLER "heterotrain.io/controller"

/* het_error already gives what a message must be: one line of UTF-8 of bounded length,
 * without terminal control sequences. */
const char *pass_text(struct pass *pass, const char *format, ...)
{
    char buffer[MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(buffer, sizeof buffer, format, args);
    va_end(args);
    struct het_error message;
    het_fail(&message, HET_BAD_INPUT, "%s", buffer);
    return het_arena_strdup(pass->arena, message.message);
}

/* ---- actions ---- */

struct action *pass_add(struct pass *pass, enum action_kind kind, int phase)
{
    struct decision *decision = pass->decision;
    if (decision->action_count == decision->action_capacity) {
        size_t larger = decision->action_capacity ? decision->action_capacity * 2 : 16;
        struct action *actions = HET_ARENA_ARRAY(pass->arena, struct action, larger);
        if (decision->action_count)
            memcpy(actions, decision->actions,
                   decision->action_count * sizeof *decision->actions);
        decision->actions = actions;
        decision->action_capacity = larger;
    }
    struct action *action = &decision->actions[decision->action_count++];
    *action = (struct action){
        .kind = kind, .phase = phase, .ns = pass->snapshot->spec.ns, .grace_s = -1
    };
    return action;
}

struct action *pass_create(struct pass *pass, int phase,
                           const struct kube_resource *resource, json_t *object)
{
    struct action *action = pass_add(pass, ACTION_CREATE, phase);
    action->resource = resource;
    action->name = kube_name(object);
    action->object = object;
    return action;
}

struct action *pass_delete(struct pass *pass, int phase,
                           const struct kube_resource *resource, const char *name,
                           const char *uid, int64_t grace_s)
{
    struct action *action = pass_add(pass, ACTION_DELETE, phase);
    action->resource = resource;
    action->name = name;
    action->uid = uid;
    action->grace_s = grace_s;
    return action;
}

/* The patch of this pass for the object with that uid; NULL: none yet. */
static struct action *find_patch(const struct pass *pass, const char *uid)
{
    for (size_t i = 0; i < pass->decision->action_count; i++) {
        struct action *action = &pass->decision->actions[i];
        if (action->kind == ACTION_PATCH && json_is_object(action->object) &&
            !strcmp(action->uid, uid))
            return action;
    }
    return NULL;
}

void pass_annotate(struct pass *pass, int phase, const struct kube_resource *resource,
                   const json_t *object, const char *key, const char *value)
{
    struct action *action = find_patch(pass, kube_uid(object));
    if (!action) {
        action = pass_add(pass, ACTION_PATCH, phase);
        action->resource = resource;
        action->name = kube_name(object);
        action->uid = kube_uid(object);
        action->object = json_pack("{s:{s:s, s:s, s:{}}}", "metadata", "uid", action->uid,
                                   "resourceVersion", kube_resource_version(object),
                                   "annotations");
    }
    json_object_set_new(
        json_object_get(json_object_get(action->object, "metadata"), "annotations"), key,
        value ? json_string(value) : json_null());
}

struct action *pass_ask_planner(struct pass *pass, json_t *question, uint64_t digest)
{
    struct action *action = pass_add(pass, ACTION_PLAN, PHASE_EVENTS);
    action->name = pass->snapshot->spec.name;
    action->object = question;
    action->digest = digest;
    action->spec_digest = pass->snapshot->spec_digest;
    action->timeout_ms = pass->snapshot->spec.planner_timeout_ms;
    return action;
}

bool pass_may_ask(struct pass *pass, bool is_urgent)
{
    enum planner_load load = pass->snapshot->planner_load;
    enum planner_wish *wish = &pass->decision->planner_wish;
    if (load == PLANNER_FREE || (load == PLANNER_BUSY && is_urgent))
        return true;
    if (*wish != WISH_NOW)
        *wish = is_urgent ? WISH_NOW : WISH_LATER;
    return false;
}

void pass_requeue_at(struct pass *pass, int64_t at_ms)
{
    if (at_ms < pass->decision->requeue_ms)
        pass->decision->requeue_ms = at_ms;
}

bool pass_is_held_up(struct pass *pass)
{
    if (pass->snapshot->blocked_by)
        pass->decision->is_held_up = true;
    return pass->snapshot->blocked_by;
}

void pass_deafen(struct pass *pass, int64_t at_ms)
{
    pass->decision->deaf_until_ms = at_ms;
}

bool pass_is_fresh(struct pass *pass, int64_t *generation, int64_t *read_ms)
{
    int64_t now_ms = pass->snapshot->now_ms;
    if (*generation == pass->current->generation && now_ms - *read_ms <= PASS_FRESH_MS)
        return true;
    *generation = pass->current->generation;
    *read_ms = now_ms;
    pass_requeue_at(pass, now_ms);
    return false;
}

void pass_refresh_pods(struct pass *pass, const char *ns, const char *query)
{
    struct action *action = pass_add(pass, ACTION_REFRESH, PHASE_PODS);
    action->resource = &kube_pod;
    action->ns = ns;
    action->name = "";
    action->query = query;
}

bool pass_has_come(struct pass *pass, int64_t at_ms)
{
    if (pass->snapshot->now_ms >= at_ms)
        return true;
    pass_requeue_at(pass, at_ms);
    return false;
}

bool pass_has_come_wall(struct pass *pass, int64_t at_wall_ms)
{
    const struct snapshot *snapshot = pass->snapshot;
    return pass_has_come(pass, snapshot->now_ms + at_wall_ms - snapshot->wall_ms);
}

int64_t pass_doubled_ms(int64_t first_ms, int64_t times, int64_t most_ms)
{
    for (int64_t i = 0; i < times && first_ms < most_ms; i++)
        first_ms *= 2;
    return first_ms < most_ms ? first_ms : most_ms;
}

/* Adds an Event about the job. Its name derives from its content, the generation and the
 * current ten minutes, so a repeated decision writes no second event. */
void pass_event(struct pass *pass, int phase, bool is_warning, const char *reason,
                const char *action_word, const char *note)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_spec *spec = &snapshot->spec;
    uint64_t digest = digest_bytes(0, reason, strlen(reason));
    digest = digest_bytes(digest, note, strlen(note));
    digest = digest_bytes(digest, spec->uid, strlen(spec->uid));
    int64_t about[] = { pass->current ? pass->current->generation : 0,
                        snapshot->wall_ms / EVENT_PERIOD_MS };
    digest = digest_bytes(digest, about, sizeof about);
    char time[TIMESTAMP_SIZE];
    timestamp_format_micro(snapshot->wall_ms, time);

    struct action *action = pass_add(pass, ACTION_EVENT, phase);
    action->resource = &kube_event;
    action->name = het_arena_printf(pass->arena, "%s.%016" PRIx64, spec->name, digest);
    action->object = json_pack(
        "{s:s, s:s, s:{s:s, s:s}, s:s, s:s, s:s, s:s, s:s, s:s, s:s, "
        "s:{s:s, s:s, s:s, s:s, s:s}}",
        "apiVersion", "events.k8s.io/v1", "kind", "Event", "metadata", "name",
        action->name, "namespace", spec->ns, "eventTime", time, "reportingController",
        REPORTING_CONTROLLER, "reportingInstance", "heterotrain-controller", "action",
        action_word, "reason", reason, "type", is_warning ? "Warning" : "Normal", "note",
        pass_text(pass, "%s", note), "regarding", "apiVersion", "heterotrain.io/v1alpha1",
        "kind", "HeteroTrainingJob", "namespace", spec->ns, "name", spec->name, "uid",
        spec->uid);
}

/* ---- status ---- */

void pass_set(struct pass *pass, const char *type, const char *status, const char *reason,
              const char *message)
{
    status_set(&pass->facts, type, status, reason, message);
}

void pass_set_not_placed(struct pass *pass, const char *reason, const char *message)
{
    pass_set(pass, "Placed", "False", reason, message);
    pass_set(pass, "Running", "False", reason, message);
}

const json_t *pass_present(const struct pass *pass, const char *type)
{
    return object_find_condition(pass->snapshot->job, type);
}

/* Whether this pass changes the status or reason of the condition. */
static bool turns(const struct pass *pass, const struct status_condition *condition)
{
    const json_t *before = pass_present(pass, condition->type);
    return strcmp(object_text(before, "status"), condition->status) ||
           strcmp(object_text(before, "reason"), condition->reason);
}

/* Conditions whose change people should see: an event with that reason accompanies it. */
static const struct {
    const char *type, *status;
    bool is_warning;
} announced[] = {
    { "Accepted", "False", true },      { "PlanFeasible", "False", true },
    { "Running", "True", false },       { "PlanOutdated", "True", true },
    { "Complete", "True", false },      { "Failed", "True", true },
    { "Suspended", "True", false },     { "Suspended", "False", false },
    { "ProfilesReady", "True", false }, { "GPUsUnknown", "True", true },
};

static void announce(struct pass *pass, int phase)
{
    for (size_t i = 0; i < pass->facts.condition_count; i++) {
        const struct status_condition *condition = &pass->facts.conditions[i];
        for (size_t k = 0; k < sizeof announced / sizeof *announced; k++)
            if (!strcmp(announced[k].type, condition->type) &&
                !strcmp(announced[k].status, condition->status) && turns(pass, condition))
                pass_event(pass, phase, announced[k].is_warning, condition->reason,
                           condition->type, condition->message);
    }
}

/* Takes ownership of `status`. */
struct action *pass_status(struct pass *pass, int phase, json_t *status)
{
    const struct job_spec *spec = &pass->snapshot->spec;
    struct action *action = pass_add(pass, ACTION_STATUS, phase);
    action->resource = &kube_job;
    action->name = spec->name;
    action->object = json_pack("{s:s, s:s, s:{s:s, s:s, s:s}, s:o}", "apiVersion",
                               "heterotrain.io/v1alpha1", "kind", "HeteroTrainingJob",
                               "metadata", "name", spec->name, "namespace", spec->ns,
                               "uid", spec->uid, "status", status);
    return action;
}

/* Writes the status if it differs from the present one. Call it last, after the actions
 * that it reports. */
void pass_write_status(struct pass *pass, int phase)
{
    json_t *status = status_build(pass->arena, pass->snapshot, &pass->facts);
    if (!status_differs(pass->snapshot->job, status)) {
        json_decref(status);
        return;
    }
    size_t actions = pass->decision->action_count;
    announce(pass, phase);
    bool is_announced = pass->decision->action_count > actions;
    /* Jobs whose GPUs are claimed look for the claim's status. */
    bool is_claim = pass->current && pass->current->claim_until_wall_ms;
    int64_t patience_ms = status_patience_ms(pass->snapshot->job, status);
    struct action *action = pass_status(pass, phase + 1, status);
    action->patience_ms = is_announced || is_claim ? 0 : patience_ms;
}

/* ---- what is there ---- */

/* Pods of the current plan by index; names rule out two pods of one index. */
void pass_index_pods(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    size_t count = pass->current->rank_node_count;
    pass->pods = HET_ARENA_ARRAY(pass->arena, const struct snapshot_pod *, count);
    for (size_t i = 0; i < snapshot->pod_count; i++) {
        const struct snapshot_pod *pod = &snapshot->pods[i];
        if (pod->generation == pass->current->generation && pod->index < (int64_t)count)
            pass->pods[pod->index] = pod;
    }
    pass->has_succeeded = HET_ARENA_ARRAY(pass->arena, bool, count);
    status_find_succeeded(snapshot, pass->current, pass->has_succeeded);
}

size_t pass_count_pods(const struct pass *pass,
                       bool (*holds)(const struct snapshot_pod *))
{
    size_t count = 0;
    for (size_t i = 0; i < pass->current->rank_node_count; i++)
        count += pass->has_succeeded[i] || (pass->pods[i] && holds(pass->pods[i]));
    return count;
}

size_t pass_missing_pods(const struct pass *pass)
{
    size_t count = 0;
    for (size_t i = 0; i < pass->current->rank_node_count; i++)
        count += !pass->pods[i] && !pass->has_succeeded[i];
    return count;
}

bool pass_was_retired_for(const struct pass *pass, const char *why)
{
    return pass->current && !strcmp(pass->current->retired, why);
}

int64_t pass_count_gpus(const struct pass *pass, const char *type)
{
    int64_t gpus = 0;
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        const struct het_rank_node *place = &pass->current->rank_nodes[i];
        if (!type || !strcmp(place->type_name, type))
            gpus += place->gpu_count;
    }
    return gpus;
}

bool pod_has_ended(const struct snapshot_pod *pod)
{
    return pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
}

bool pod_has_succeeded(const struct snapshot_pod *pod)
{
    return pod->phase == POD_SUCCEEDED;
}

bool pod_is_ready(const struct snapshot_pod *pod)
{
    return (pod->phase == POD_RUNNING && pod->is_ready && !pod->is_deleting) ||
           pod_has_succeeded(pod);
}

bool pod_is_placed(const struct snapshot_pod *pod)
{
    return pod->is_scheduled;
}

bool pass_time(const struct pass *pass, const char *path, int64_t *ret_wall_ms)
{
    return !timestamp_parse(object_text(pass->snapshot->job, path), ret_wall_ms);
}

bool pass_runs_since(const struct pass *pass, int64_t *ret_wall_ms)
{
    return object_condition_is_true(pass->snapshot->job, "Running") &&
           !timestamp_parse(
               object_text(pass_present(pass, "Running"), "lastTransitionTime"),
               ret_wall_ms);
}

bool pass_was_placed(const struct pass *pass)
{
    const json_t *job = pass->snapshot->job;
    return object_integer(job, "status.plan.revision", 0) == pass->current->generation &&
           object_condition_is_true(job, "Placed");
}
