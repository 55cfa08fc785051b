#include "controller/reconcile.h"

#include "controller/status.h"
#include "controller/timestamp.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A lost node is answered after this quiet time at the latest: simultaneous failures are
 * collected, but nobody waits for a debounce that is meant for improvements. */
#define LOSS_DEBOUNCE_MS       ((int64_t)5000)
/* However restless the cluster is, a better plan is looked for after so many debounces.
 */
#define DEBOUNCES_AT_MOST      4
/* An answer whose nodes have changed since is used if its plan fits and it is no older.
 */
#define STALE_ANSWER_MS        ((int64_t)60000)
/* A planner that broke is asked again after 1 s * 2^failures, at most this. */
#define PLANNER_BACKOFF_MAX_MS ((int64_t)300000)
/* events.k8s.io/v1: a note has at most 1 kB. Conditions keep to the same. */
#define MESSAGE_BYTES          1024
#define EVENT_PERIOD_MS        ((int64_t)600000)
#define REPORTING_CONTROLLER   "heterotrain.io/controller"

struct pass {
    struct het_arena *arena;
    const struct snapshot *snapshot;
    struct decision *decision;
    struct status_facts facts;
    const struct snapshot_plan *current; /* newest plan; NULL: none yet */
    /* Of the current plan: by pod index, NULL where there is no pod. */
    const struct snapshot_pod **pods;
    /* Why the current plan can not run as it is; NULL: it can. */
    const char *lost_trigger, *lost_message;
    bool lost_pods_still_run; /* the nodes only refuse new pods */
    bool is_suspect;          /* a node of it is unusable, and may yet come back */
    bool is_replaced;         /* a new generation was decided in this pass */
    bool can_plan;            /* there is a profile to plan with */
};

/* A message for people, in the arena. It may quote what a user wrote, and be cut: what is
 * not UTF-8 any more becomes "?", since the API server takes nothing else. */
__attribute__((format(printf, 2, 3))) static const char *text(struct pass *pass,
                                                              const char *format, ...)
{
    char buffer[MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(buffer, sizeof buffer, format, args);
    va_end(args);
    json_auto_t *valid = json_string(buffer);
    for (char *c = buffer; !valid && *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    return het_arena_strdup(pass->arena, buffer);
}

/* ---- actions ---- */

static struct action *add_action(struct pass *pass, enum action_kind kind, int phase)
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

static void add_create(struct pass *pass, int phase, const struct kube_resource *resource,
                       json_t *object)
{
    struct action *action = add_action(pass, ACTION_CREATE, phase);
    action->resource = resource;
    action->name = kube_name(object);
    action->object = object;
}

static void add_delete(struct pass *pass, int phase, const struct kube_resource *resource,
                       const char *name, const char *uid, int64_t grace_s)
{
    struct action *action = add_action(pass, ACTION_DELETE, phase);
    action->resource = resource;
    action->name = name;
    action->uid = uid;
    action->grace_s = grace_s;
}

static void requeue_at(struct pass *pass, int64_t at_ms)
{
    if (at_ms < pass->decision->requeue_ms)
        pass->decision->requeue_ms = at_ms;
}

/* An Event about the job. Its name is made of what it says, about which generation, in
 * which ten minutes: a decision that is taken again writes no second event. */
static void add_event(struct pass *pass, int phase, bool is_warning, const char *reason,
                      const char *action_word, const char *note)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_spec *spec = &snapshot->spec;
    uint64_t digest = snapshot_digest(0, reason, strlen(reason));
    digest = snapshot_digest(digest, note, strlen(note));
    digest = snapshot_digest(digest, spec->uid, strlen(spec->uid));
    int64_t about[] = { pass->current ? pass->current->generation : 0,
                        snapshot->wall_ms / EVENT_PERIOD_MS };
    digest = snapshot_digest(digest, about, sizeof about);
    char time[TIMESTAMP_SIZE];
    timestamp_format_micro(snapshot->wall_ms, time);

    struct action *action = add_action(pass, ACTION_EVENT, phase);
    action->resource = &kube_event;
    action->name = text(pass, "%s.%016" PRIx64, spec->name, digest);
    action->object = json_pack(
        "{s:s, s:s, s:{s:s, s:s}, s:s, s:s, s:s, s:s, s:s, s:s, s:s, "
        "s:{s:s, s:s, s:s, s:s, s:s}}",
        "apiVersion", "events.k8s.io/v1", "kind", "Event", "metadata", "name",
        action->name, "namespace", spec->ns, "eventTime", time, "reportingController",
        REPORTING_CONTROLLER, "reportingInstance", "heterotrain-controller", "action",
        action_word, "reason", reason, "type", is_warning ? "Warning" : "Normal", "note",
        text(pass, "%s", note), "regarding", "apiVersion", "heterotrain.io/v1alpha1",
        "kind", "HeteroTrainingJob", "namespace", spec->ns, "name", spec->name, "uid",
        spec->uid);
}

/* ---- status ---- */

static void set(struct pass *pass, const char *type, const char *status,
                const char *reason, const char *message)
{
    status_set(&pass->facts, type, status, reason, message);
}

static const json_t *present(const struct pass *pass, const char *type)
{
    return snapshot_find_condition(pass->snapshot->job, type);
}

/* Whether this pass gives `type` another status or reason than the job shows now. */
static bool turns(const struct pass *pass, const struct status_condition *condition)
{
    const json_t *before = present(pass, condition->type);
    const char *status = json_string_value(json_object_get(before, "status"));
    const char *reason = json_string_value(json_object_get(before, "reason"));
    return !status || !reason || strcmp(status, condition->status) ||
           strcmp(reason, condition->reason);
}

/* Conditions whose turn people should hear of: an event of that reason goes with it. */
static const struct {
    const char *type, *status;
    bool is_warning;
} announced[] = {
    { "Accepted", "False", true }, { "PlanFeasible", "False", true },
    { "Running", "True", false },  { "PlanOutdated", "True", true },
    { "Complete", "True", false }, { "Failed", "True", true },
};

static void announce(struct pass *pass, int phase)
{
    for (size_t i = 0; i < pass->facts.condition_count; i++) {
        const struct status_condition *condition = &pass->facts.conditions[i];
        for (size_t k = 0; k < sizeof announced / sizeof *announced; k++)
            if (!strcmp(announced[k].type, condition->type) &&
                !strcmp(announced[k].status, condition->status) && turns(pass, condition))
                add_event(pass, phase, announced[k].is_warning, condition->reason,
                          condition->type, condition->message);
    }
}

/* `status` is taken. */
static void add_status(struct pass *pass, int phase, json_t *status)
{
    const struct job_spec *spec = &pass->snapshot->spec;
    struct action *action = add_action(pass, ACTION_STATUS, phase);
    action->resource = &kube_job;
    action->name = spec->name;
    action->object = json_pack("{s:s, s:s, s:{s:s, s:s, s:s}, s:o}", "apiVersion",
                               "heterotrain.io/v1alpha1", "kind", "HeteroTrainingJob",
                               "metadata", "name", spec->name, "namespace", spec->ns,
                               "uid", spec->uid, "status", status);
}

/* Writes the status if it says something new; last, after the actions that it reports. */
static void write_status(struct pass *pass, int phase)
{
    json_t *status = status_build(pass->arena, pass->snapshot, &pass->facts);
    if (!status_differs(pass->snapshot->job, status)) {
        json_decref(status);
        return;
    }
    announce(pass, phase);
    add_status(pass, phase + 1, status);
}

enum {
    PHASE_RETIRE,
    PHASE_DELETE,
    PHASE_PLAN_OBJECT,
    PHASE_SERVICE,
    PHASE_PODS,
    PHASE_EVENTS
};

/* ---- what is there ---- */

static const struct capacity_node *find_node(const struct snapshot *snapshot,
                                             const char *name)
{
    size_t low = 0, high = snapshot->node_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(snapshot->nodes[middle].name, name);
        if (!order)
            return &snapshot->nodes[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Pods of the current plan by index; a second one of an index cannot be (names). */
static void index_pods(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    size_t count = pass->current->rank_node_count;
    pass->pods = HET_ARENA_ARRAY(pass->arena, const struct snapshot_pod *, count);
    for (size_t i = 0; i < snapshot->pod_count; i++) {
        const struct snapshot_pod *pod = &snapshot->pods[i];
        if (pod->generation == pass->current->generation && pod->index < (int64_t)count)
            pass->pods[pod->index] = pod;
    }
}

static void lose(struct pass *pass, const char *trigger, bool pods_still_run,
                 const char *message)
{
    /* What stops pods weighs more than what only refuses new ones. */
    if (pass->lost_trigger && (!pass->lost_pods_still_run || pods_still_run))
        return;
    pass->lost_trigger = trigger;
    pass->lost_message = message;
    pass->lost_pods_still_run = pods_still_run;
}

static bool is_bound(const struct pass *pass, size_t index)
{
    const struct snapshot_pod *pod = pass->pods[index];
    return pod && pod->is_scheduled && pod->phase == POD_RUNNING;
}

/* Whether one place of the current plan can still be used. An unusable node is tolerated
 * for nodeFailureGraceSeconds. */
static void check_place(struct pass *pass, size_t index)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct het_rank_node *place = &pass->current->rank_nodes[index];
    const struct capacity_node *node = find_node(snapshot, place->node_name);
    if (pass->pods[index] && pass->pods[index]->phase == POD_SUCCEEDED)
        return; /* it needs its place no more */
    if (!node) {
        lose(pass, "NodeLost", false, text(pass, "node %s is gone", place->node_name));
        return;
    }
    if (node->unusable) {
        int64_t until = node->unusable_since_ms + snapshot->spec.node_failure_grace_ms;
        if (snapshot->now_ms < until) {
            requeue_at(pass, until);
            pass->is_suspect = true;
            return;
        }
        bool is_dead = !strcmp(node->unusable, "NotReady");
        lose(pass, is_dead ? "NodeNotReady" : "NodeUnusable",
             !is_dead && is_bound(pass, index),
             text(pass, "node %s is %s", place->node_name, node->unusable));
        return;
    }
    if (strcmp(node->type, place->type_name)) {
        lose(pass, "NodeChanged", is_bound(pass, index),
             text(pass, "node %s has %s GPUs now, the plan has %s", place->node_name,
                  node->type, place->type_name));
    } else if (node->allocatable < place->gpu_count) {
        lose(pass, "GPUUnhealthy", is_bound(pass, index),
             text(pass, "node %s has %" PRId64 " healthy GPUs, the plan uses %" PRIu32,
                  place->node_name, node->allocatable, place->gpu_count));
    } else if (node->free < place->gpu_count && !is_bound(pass, index)) {
        lose(pass, "CapacityLost", false,
             text(pass, "node %s has %" PRId64 " GPUs free, the plan uses %" PRIu32,
                  place->node_name, node->free, place->gpu_count));
    }
}

/* GPUs of one type in the current plan; of all types for NULL. */
static int64_t count_gpus(const struct pass *pass, const char *type)
{
    int64_t gpus = 0;
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        const struct het_rank_node *place = &pass->current->rank_nodes[i];
        if (!type || !strcmp(place->type_name, type))
            gpus += place->gpu_count;
    }
    return gpus;
}

static const struct job_gpu_type *find_rule(const struct job_spec *spec, const char *type)
{
    for (size_t i = 0; i < spec->gpu_type_count; i++)
        if (!strcmp(spec->gpu_types[i].name, type))
            return &spec->gpu_types[i];
    return NULL;
}

/* Whether the spec has come to forbid what the plan uses. */
static void check_limits(struct pass *pass)
{
    const struct job_spec *spec = &pass->snapshot->spec;
    int64_t gpus = count_gpus(pass, NULL);
    if (spec->max_gpus && gpus > spec->max_gpus)
        lose(pass, "SpecChanged", true,
             text(pass,
                  "the plan uses %" PRId64 " GPUs, spec.resources.maxGPUs is %" PRId64,
                  gpus, spec->max_gpus));
    for (size_t i = 0; spec->gpu_type_count && i < pass->current->rank_node_count; i++) {
        const char *type = pass->current->rank_nodes[i].type_name;
        const struct job_gpu_type *rule = find_rule(spec, type);
        if (!rule)
            lose(pass, "SpecChanged", true,
                 text(pass, "the plan uses %s, spec.resources.gpuTypes does not name it",
                      type));
        else if (rule->max_gpus && count_gpus(pass, type) > rule->max_gpus)
            lose(pass, "SpecChanged", true,
                 text(pass,
                      "the plan uses %" PRId64 " %s, spec.resources.gpuTypes allows "
                      "%" PRId64,
                      count_gpus(pass, type), type, rule->max_gpus));
    }
}

static void check_places(struct pass *pass)
{
    for (size_t i = 0; i < pass->current->rank_node_count; i++)
        check_place(pass, i);
    check_limits(pass);
}

/* Whether `plan` fits the GPUs that this job may use now. */
static bool fits_now(const struct pass *pass, const struct het_plan *plan)
{
    struct het_rank_node *places;
    size_t count = het_plan_rank_nodes(pass->arena, plan, &places);
    for (size_t i = 0; i < count; i++) {
        const struct capacity_node *node = find_node(pass->snapshot, places[i].node_name);
        if (!node || node->free < places[i].gpu_count ||
            strcmp(node->type, places[i].type_name))
            return false;
    }
    return count > 0;
}

/* ---- the planner ---- */

static bool is_answered(const struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    return snapshot->memory.answer.kind != ANSWER_NONE &&
           snapshot->memory.answer.digest == snapshot->input_digest;
}

static int64_t planner_retry_ms(const struct job_memory *memory)
{
    int doublings = memory->planner_failures < 9 ? memory->planner_failures : 9;
    int64_t wait = (int64_t)1000 << doublings;
    return memory->planner_failed_ms +
           (wait < PLANNER_BACKOFF_MAX_MS ? wait : PLANNER_BACKOFF_MAX_MS);
}

/* Why no GPU can be used, for people: how many nodes for each reason. */
static const char *no_gpus_message(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    if (!snapshot->node_count)
        return "no node of the cluster has a GPU that we know of (label "
               "nvidia.com/gpu.product or heterotrain.io/gpu-type)";
    const char *list = "";
    for (size_t i = 0; i < snapshot->node_count; i++) {
        const struct capacity_node *node = &snapshot->nodes[i];
        if (i == 8) {
            list = text(pass, "%s, and %zu more nodes", list, snapshot->node_count - i);
            break;
        }
        const char *why = node->unusable ? node->unusable : "no GPU free";
        list = text(pass, "%s%s%s: %s", list, *list ? ", " : "", node->name, why);
    }
    return text(pass, "no GPU can be used now (%s)", list);
}

/* Asks for a plan for the present input, unless it is asked for, answered, or just broke.
 * Returns true when nothing can be asked because there is no GPU at all. */
static bool ask_planner(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_memory *memory = &snapshot->memory;
    if (memory->is_planning)
        return false;
    if (memory->answer.kind == ANSWER_FAILED && is_answered(pass)) {
        int64_t retry = planner_retry_ms(memory);
        if (snapshot->now_ms < retry) {
            requeue_at(pass, retry);
            return false;
        }
    }
    json_t *question = desired_question(snapshot);
    if (!question)
        return true;
    struct action *action = add_action(pass, ACTION_PLAN, PHASE_EVENTS);
    action->name = snapshot->spec.name;
    action->object = question;
    action->digest = snapshot->input_digest;
    action->spec_digest = snapshot->spec_digest;
    pass->decision->memory.input_unsettled_ms = 0;
    action->timeout_ms = snapshot->spec.planner_timeout_ms;
    return false;
}

static const struct het_plan *read_answer(struct pass *pass)
{
    const struct planner_answer *answer = &pass->snapshot->memory.answer;
    json_t *json = NULL;
    const struct het_plan *plan = NULL;
    struct het_error err;
    if (het_json_decode(answer->text, strlen(answer->text), "plan", &json, &err) < 0 ||
        het_codec_plan(pass->arena, json, &plan, &err) < 0)
        plan = NULL;
    json_decref(json);
    return plan;
}

/* The plan of the last answer, if it can be used now: it is for the present input; or the
 * nodes have changed while the planner was at work, or since (they may do so without
 * end), but the plan still fits. NULL otherwise. */
static const struct het_plan *usable_answer(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct planner_answer *answer = &snapshot->memory.answer;
    if (answer->kind != ANSWER_PLAN || answer->spec_digest != snapshot->spec_digest)
        return NULL;
    if (!is_answered(pass) && (snapshot->memory.is_planning ||
                               snapshot->now_ms - answer->asked_ms > STALE_ANSWER_MS ||
                               answer->digest == snapshot->memory.considered_digest ||
                               answer->asked_ms < snapshot->memory.lost_since_ms))
        return NULL;
    const struct het_plan *plan = read_answer(pass);
    return plan && fits_now(pass, plan) ? plan : NULL;
}

/* ---- generations ---- */

/* Never used before: above every plan, every pod, and what the status says. */
static int64_t next_generation(const struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const json_t *status = json_object_get(snapshot->job, "status");
    int64_t newest = json_integer_value(
        json_object_get(json_object_get(status, "plan"), "generation"));
    for (size_t i = 0; i < snapshot->plan_count; i++)
        if (snapshot->plans[i].generation > newest)
            newest = snapshot->plans[i].generation;
    for (size_t i = 0; i < snapshot->pod_count; i++)
        if (snapshot->pods[i].generation > newest)
            newest = snapshot->pods[i].generation;
    return newest + 1;
}

/* Decides a new generation: its ConfigMap is the decision, and the reservation of its
 * GPUs. What follows from it, the next pass does. `digest` is of the input that the plan
 * was made for. False if the plan cannot be written. */
static bool commit(struct pass *pass, const struct het_plan *plan, uint64_t digest,
                   const char *trigger, int64_t restarts, int64_t replans,
                   const char *event, const char *message)
{
    const struct snapshot *snapshot = pass->snapshot;
    struct desired_generation generation = {
        .generation = next_generation(pass),
        .plan = plan,
        .trigger = trigger,
        .input_digest = digest,
        .restarts = restarts,
        .replans = replans,
    };
    json_t *config_map;
    struct het_error err;
    if (desired_config_map(snapshot, &generation, &config_map, &err) < 0) {
        set(pass, "PlanFeasible", "False", "PlanTooLarge", text(pass, "%s", err.message));
        pass->decision->summary = text(pass, "%s", err.message);
        return false;
    }
    add_create(pass, PHASE_PLAN_OBJECT, &kube_config_map, config_map);
    add_event(pass, PHASE_EVENTS, false, event, "Plan", message);
    pass->is_replaced = true;
    pass->decision->summary =
        text(pass, "generation %" PRId64 ": %s", generation.generation, message);
    return true;
}

static void delete_pod(struct pass *pass, const struct snapshot_pod *pod)
{
    const struct capacity_node *node = find_node(pass->snapshot, pod->node);
    bool is_dead = pod->is_on_lost_node;
    if (node && node->unusable && !strcmp(node->unusable, "NotReady")) {
        int64_t until = node->unusable_since_ms +
                        pass->snapshot->spec.node_failure_grace_ms;
        is_dead = is_dead || pass->snapshot->now_ms >= until;
        if (!is_dead)
            requeue_at(pass, until);
    }
    /* Nobody will confirm the end of a pod on a dead node: without grace, and again if a
     * graceful deletion is on its way already. */
    if (is_dead)
        add_delete(pass, PHASE_DELETE, &kube_pod, pod->name, pod->uid, 0);
    else if (!pod->is_deleting)
        add_delete(pass, PHASE_DELETE, &kube_pod, pod->name, pod->uid, -1);
}

/* Deletes pods of other generations than `keep`. Ended ones stay while their plan stays,
 * for people to read. Returns how many can still hold a GPU or run a rank. */
static size_t fence_older(struct pass *pass, int64_t keep)
{
    const struct snapshot *snapshot = pass->snapshot;
    size_t alive = 0;
    int64_t oldest_kept = snapshot->plan_count > PLANS_KEPT
                              ? snapshot->plans[PLANS_KEPT - 1].generation
                              : 0;
    for (size_t i = 0; i < snapshot->pod_count; i++) {
        const struct snapshot_pod *pod = &snapshot->pods[i];
        if (pod->generation == keep)
            continue;
        bool is_record = pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
        if (!pod->is_gone)
            alive++;
        if (!is_record || pod->generation < oldest_kept || pod->is_on_lost_node)
            delete_pod(pass, pod);
    }
    return alive;
}

static void drop_old_plans(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    for (size_t i = PLANS_KEPT; i < snapshot->plan_count; i++)
        add_delete(pass, PHASE_DELETE, &kube_config_map, snapshot->plans[i].name,
                   snapshot->plans[i].uid, -1);
}

/* Stops a generation that can not run whole: pods without their peers only hold GPUs. It
 * is retired first, on its ConfigMap, so that it never starts again: a rank of it may
 * still run on a node that nobody can reach. */
static void stop_current(struct pass *pass, const char *trigger)
{
    pass->facts.holds_gpus = false;
    if (!*pass->current->retired) {
        const struct job_spec *spec = &pass->snapshot->spec;
        struct action *action = add_action(pass, ACTION_APPLY, PHASE_RETIRE);
        action->resource = &kube_config_map;
        action->name = pass->current->name;
        action->object = json_pack(
            "{s:s, s:s, s:{s:s, s:s, s:s, s:{s:s}}}", "apiVersion", "v1", "kind",
            "ConfigMap", "metadata", "name", pass->current->name, "namespace", spec->ns,
            "uid", pass->current->uid, "annotations", ANNOTATION_RETIRED, trigger);
    }
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        const struct snapshot_pod *pod = pass->pods[i];
        if (pod && !(pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED))
            delete_pod(pass, pod);
    }
}

/* ---- waiting for a plan ---- */

static void wait_for_plan(struct pass *pass, const char *reason, const char *message)
{
    set(pass, "PlanFeasible", "False", reason, message);
    set(pass, "Placed", "False", "NoPlan", "there is no plan that could be placed");
    set(pass, "Running", "False", "NoPlan", "there is no plan that could run");
    pass->decision->summary = text(pass, "waiting: %s", message);
}

static void wait_for_planner(struct pass *pass, const char *message)
{
    const json_t *before = present(pass, "PlanFeasible");
    const char *status = json_string_value(json_object_get(before, "status"));
    /* A job that waits keeps saying what is missing until the planner says otherwise. */
    if (!status || strcmp(status, "False"))
        set(pass, "PlanFeasible", "Unknown", "Planning", message);
    set(pass, "Placed", "False", "NoPlan", "there is no plan that could be placed");
    set(pass, "Running", "False", "NoPlan", "there is no plan that could run");
    pass->decision->summary = text(pass, "%s", message);
}

/* The planner could not use what it was given; mostly that is the profile. */
static void report_refusal(struct pass *pass)
{
    const char *message = pass->snapshot->memory.answer.message;
    bool is_profile = !strncmp(message, "profile", strlen("profile"));
    set(pass, "Accepted", "False", is_profile ? "ProfileInvalid" : "InvalidSpec",
        text(pass, "%s", message));
}

/* ---- writes that the API server refuses ---- */

/* The API server refused our objects (invalid pod, quota, admission): the job says so,
 * holds no GPUs meanwhile, and tries again after a back-off, or when its spec changes.
 * True if it has to wait now. */
static bool wait_for_refused(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_memory *memory = &snapshot->memory;
    if (!memory->refusals || memory->refused_generation != snapshot->spec.generation)
        return false;
    int doublings = memory->refusals < 9 ? memory->refusals : 9;
    int64_t wait = (int64_t)500 << doublings;
    int64_t due = memory->refused_ms +
                  (wait < PLANNER_BACKOFF_MAX_MS ? wait : PLANNER_BACKOFF_MAX_MS);
    if (snapshot->now_ms >= due)
        return false;
    requeue_at(pass, due);
    pass->decision->is_unanswered = false;
    if (pass->current)
        stop_current(pass, "PodsRefused");
    const char *message = text(pass, "the API server refuses %s", memory->refusal);
    set(pass, "PlanFeasible", "False", "PodsRefused", message);
    set(pass, "Placed", "False", "PodsRefused", message);
    set(pass, "Running", "False", "PodsRefused", message);
    pass->decision->summary = message;
    return true;
}

/* ---- getting a plan ---- */

/* A job that was told that nothing fits gets GPUs as they come free, one by one: the
 * answer to the first would be worse than that to all of them. True if it should wait for
 * more. */
static bool is_settling(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_memory *memory = &pass->decision->memory;
    if (snapshot->memory.answer.kind != ANSWER_NO_PLAN || is_answered(pass))
        return false;
    int64_t quiet = snapshot->spec.debounce_ms < LOSS_DEBOUNCE_MS
                        ? snapshot->spec.debounce_ms
                        : LOSS_DEBOUNCE_MS;
    int64_t due = memory->input_changed_ms + quiet;
    int64_t latest = memory->input_unsettled_ms + DEBOUNCES_AT_MOST * quiet;
    if (due > latest)
        due = latest;
    if (snapshot->now_ms < due)
        requeue_at(pass, due);
    return snapshot->now_ms < due;
}

/* Why there is no plan yet, as conditions; asks the planner if that is what is missing.
 */
static void explain_no_plan(struct pass *pass)
{
    const struct planner_answer *answer = &pass->snapshot->memory.answer;
    bool is_told = is_answered(pass);
    const char *message = text(pass, "%s", answer->message);
    if (!is_told || answer->kind == ANSWER_FAILED) {
        if (!is_settling(pass) && ask_planner(pass)) {
            pass->decision->is_unanswered = false;
            wait_for_plan(pass, "NoUsableGPUs", no_gpus_message(pass));
        } else if (is_told) {
            pass->decision->is_unanswered = false;
            wait_for_plan(pass, "PlannerFailed", message);
        } else {
            wait_for_planner(pass, "the planner is at work");
        }
        return;
    }
    pass->decision->is_unanswered = false;
    if (answer->kind == ANSWER_REFUSED) {
        report_refusal(pass);
        wait_for_plan(pass, "InputRefused", message);
    } else if (answer->kind == ANSWER_NO_PLAN) {
        wait_for_plan(pass, "NoPlanFits", message);
    } else {
        wait_for_plan(
            pass, "PlannerFailed",
            "the planner's answer is not a plan for the GPUs that it was given");
    }
}

/* The job has no generation that could run: gets a plan and decides on it. `trigger` and
 * the counters are those of the new generation. True if it was decided. */
static bool seek_plan(struct pass *pass, const char *trigger, int64_t restarts,
                      int64_t replans, const char *event)
{
    const struct snapshot *snapshot = pass->snapshot;
    if (!pass->can_plan) {
        wait_for_plan(pass, "NoProfile", "there is no profile to plan with");
        return false;
    }
    pass->decision->is_unanswered = true;
    if (snapshot->blocked_by) {
        wait_for_planner(
            pass, text(pass, "older job %s is planned first", snapshot->blocked_by));
        return false;
    }
    const struct het_plan *plan = usable_answer(pass);
    if (!plan) {
        explain_no_plan(pass);
        return false;
    }
    pass->decision->is_unanswered = false;
    pass->decision->memory.considered_digest = snapshot->memory.answer.digest;
    if (pass->lost_pods_still_run &&
        !strcmp(het_codec_plan_hash(pass->arena, plan), pass->current->hash))
        return false; /* there is nothing better than what runs */
    if (!commit(pass, plan, snapshot->memory.answer.digest, trigger, restarts, replans,
                event,
                text(pass, "%s (%s)", het_render_summary(pass->arena, plan), trigger)))
        return false;
    pass->decision->is_unanswered = true; /* until it is written */
    return true;
}

/* ---- a current plan ---- */

static size_t count_pods(const struct pass *pass,
                         bool (*holds)(const struct snapshot_pod *))
{
    size_t count = 0;
    for (size_t i = 0; i < pass->current->rank_node_count; i++)
        count += pass->pods[i] && holds(pass->pods[i]);
    return count;
}

static bool has_succeeded(const struct snapshot_pod *pod)
{
    return pod->phase == POD_SUCCEEDED;
}

static bool is_running_ready(const struct snapshot_pod *pod)
{
    return (pod->phase == POD_RUNNING && pod->is_ready && !pod->is_deleting) ||
           pod->phase == POD_SUCCEEDED;
}

static bool is_placed(const struct snapshot_pod *pod)
{
    return pod->is_scheduled;
}

/* A pod of the current generation that broke it: failed, being deleted, or missing after
 * all of them had been placed. NULL: none. `ret_trigger` says which. */
static const struct snapshot_pod *broken_pod(const struct pass *pass,
                                             const char **ret_trigger)
{
    const struct snapshot_pod *broken = NULL;
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        const struct snapshot_pod *pod = pass->pods[i];
        if (!pod || (pod->phase != POD_FAILED && !pod->is_deleting) ||
            pod->phase == POD_SUCCEEDED)
            continue;
        bool is_infrastructure = pod->is_disrupted || pod->phase != POD_FAILED;
        /* A rank that failed by itself explains the others. */
        if (!broken || !is_infrastructure) {
            broken = pod;
            *ret_trigger = is_infrastructure ? "PodDisrupted" : "PodFailed";
        }
        if (!is_infrastructure)
            break;
    }
    return broken;
}

/* Whether the status says that this very generation had all its pods placed. */
static bool was_placed(const struct pass *pass)
{
    const json_t *status = json_object_get(pass->snapshot->job, "status");
    int64_t generation = json_integer_value(
        json_object_get(json_object_get(status, "plan"), "generation"));
    return generation == pass->current->generation &&
           !strcmp(snapshot_condition(pass->snapshot->job, "Placed"), "True");
}

static size_t missing_pods(const struct pass *pass)
{
    size_t count = 0;
    for (size_t i = 0; i < pass->current->rank_node_count; i++)
        count += !pass->pods[i];
    return count;
}

/* When the container of a failed pod ended; the present if the kubelet did not say. */
static int64_t ended_wall_ms(const struct pass *pass, const struct snapshot_pod *pod)
{
    const json_t *list =
        json_object_get(json_object_get(pod->object, "status"), "containerStatuses");
    int64_t last = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *ended = json_object_get(
            json_object_get(json_array_get(list, i), "state"), "terminated");
        int64_t ended_ms;
        if (!timestamp_parse(json_string_value(json_object_get(ended, "finishedAt")),
                             &ended_ms) &&
            ended_ms > last)
            last = ended_ms;
    }
    return last && last < pass->snapshot->wall_ms ? last : pass->snapshot->wall_ms;
}

/* backoffSeconds doubled for each restart so far, at most backoffMaxSeconds. */
static int64_t restart_backoff_ms(const struct pass *pass)
{
    const struct job_spec *spec = &pass->snapshot->spec;
    int64_t wait = spec->backoff_ms;
    for (int64_t i = 0; i < pass->current->restarts && wait < spec->backoff_max_ms; i++)
        wait *= 2;
    return wait < spec->backoff_max_ms ? wait : spec->backoff_max_ms;
}

static void fail_job(struct pass *pass, const struct snapshot_pod *pod)
{
    stop_current(pass, "RestartLimitReached");
    const char *message =
        text(pass, "pod %s failed (exit code %" PRId64 ") after %" PRId64 " restarts",
             pod->name, pod->exit_code, pass->current->restarts);
    set(pass, "Failed", "True", "RestartLimitReached", message);
    set(pass, "Running", "False", "Failed", message);
    pass->decision->summary = message;
}

static void complete_job(struct pass *pass)
{
    pass->facts.holds_gpus = false;
    const char *message = text(pass, "all %zu pods of generation %" PRId64 " succeeded",
                               pass->current->rank_node_count, pass->current->generation);
    set(pass, "Complete", "True", "AllPodsSucceeded", message);
    set(pass, "Running", "False", "Complete", message);
    pass->decision->summary = message;
}

/* Replaces a generation that cannot go on: with the same plan if that still fits, else
 * with a new one. */
static void restart(struct pass *pass, const char *trigger, const char *message,
                    int64_t restarts)
{
    const struct snapshot_plan *current = pass->current;
    set(pass, "Running", "False", trigger, message);
    set(pass, "Placed", "False", trigger, message);
    bool fits = current->plan && fits_now(pass, current->plan);
    if (fits && *current->retired && pass->snapshot->blocked_by) {
        /* A retired plan holds no GPUs: to take them again is to take them anew. */
        pass->decision->is_unanswered = true;
        wait_for_planner(
            pass, text(pass, "job %s is planned first", pass->snapshot->blocked_by));
        stop_current(pass, trigger);
        return;
    }
    if (fits) {
        if (!commit(pass, current->plan, current->input_digest, trigger, restarts,
                    current->replans, "Restarting",
                    text(pass, "%s; the same plan starts again", message)))
            stop_current(pass, trigger);
        return;
    }
    if (pass->snapshot->spec.replan_mode != REPLAN_AUTOMATIC) {
        stop_current(pass, trigger);
        set(pass, "PlanOutdated", "True", trigger, message);
        wait_for_plan(
            pass, "PlanLost",
            text(pass, "%s, and replanPolicy.mode does not let us plan again", message));
        return;
    }
    if (!seek_plan(pass, trigger, restarts, current->replans + 1, "ReplanTriggered"))
        stop_current(pass, trigger);
}

/* What the infrastructure does is not counted, but a pod that is evicted again and again
 * must not make a generation a second: none starts sooner than backoffSeconds after the
 * one before it. */
static void restart_disrupted(struct pass *pass, const char *trigger, const char *message)
{
    const struct snapshot *snapshot = pass->snapshot;
    int64_t wait = pass->current->created_wall_ms + snapshot->spec.backoff_ms -
                   snapshot->wall_ms;
    if (wait > 0 && wait <= snapshot->spec.backoff_ms) {
        requeue_at(pass, snapshot->now_ms + wait);
        stop_current(pass, trigger);
        set(pass, "Placed", "False", trigger, message);
        set(pass, "Running", "False", trigger, message);
        pass->decision->summary = text(pass, "%s; backing off", message);
        return;
    }
    restart(pass, trigger, message, pass->current->restarts);
}

/* A pod failed: again after the back-off, until the limit. Returns true if that is the
 * case and the pass is over. */
static bool handle_broken_pod(struct pass *pass)
{
    const char *trigger = NULL;
    const struct snapshot_pod *pod = broken_pod(pass, &trigger);
    const struct snapshot *snapshot = pass->snapshot;
    const struct snapshot_plan *current = pass->current;
    /* Pods that went with their node are the node's story: handle_loss tells it. */
    bool nodes_explain_it = pass->lost_trigger && !pass->lost_pods_still_run;
    if (!pod) {
        size_t missing = was_placed(pass) ? missing_pods(pass) : 0;
        if (!missing || nodes_explain_it)
            return false;
        restart_disrupted(pass, "PodLost",
                          text(pass, "%zu pods of generation %" PRId64 " are gone",
                               missing, current->generation));
        return true;
    }
    if (!strcmp(trigger, "PodDisrupted")) {
        if (nodes_explain_it)
            return false;
        restart_disrupted(pass, trigger, text(pass, "pod %s was disrupted", pod->name));
        return true;
    }
    if (current->restarts >= snapshot->spec.max_restarts) {
        fail_job(pass, pod);
        return true;
    }
    const char *message =
        text(pass, "pod %s failed (exit code %" PRId64 ")", pod->name, pod->exit_code);
    int64_t wait = ended_wall_ms(pass, pod) + restart_backoff_ms(pass) -
                   snapshot->wall_ms;
    if (wait > 0) {
        requeue_at(pass, snapshot->now_ms + wait);
        stop_current(pass, "RestartBackOff");
        const char *next = text(pass, "%s; restart %" PRId64 " of %" PRId64 " follows",
                                message, current->restarts + 1,
                                snapshot->spec.max_restarts);
        set(pass, "Placed", "False", "RestartBackOff", next);
        set(pass, "Running", "False", "RestartBackOff", next);
        pass->decision->summary = text(pass, "%s; backing off", message);
        return true;
    }
    restart(pass, trigger, message, current->restarts + 1);
    return true;
}

/* The plan cannot run as it is, and its pods have not failed (yet). */
static void handle_loss(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_spec *spec = &snapshot->spec;
    set(pass, "PlanOutdated", "True", pass->lost_trigger, pass->lost_message);
    int64_t quiet = spec->debounce_ms < LOSS_DEBOUNCE_MS ? spec->debounce_ms
                                                         : LOSS_DEBOUNCE_MS;
    struct job_memory *memory = &pass->decision->memory;
    if (!memory->lost_since_ms)
        memory->lost_since_ms = snapshot->now_ms;
    int64_t due = (memory->input_changed_ms < memory->lost_since_ms
                       ? memory->input_changed_ms
                       : memory->lost_since_ms) +
                  quiet;
    if (snapshot->now_ms < due) {
        requeue_at(pass, due);
        pass->decision->is_unanswered = true;
        pass->decision->summary = text(pass, "%s; settling", pass->lost_message);
        return;
    }
    if (!pass->lost_pods_still_run) {
        restart(pass, pass->lost_trigger, pass->lost_message, pass->current->restarts);
        return;
    }
    /* The pods run on; they are moved if there is a place to move to. */
    if (spec->replan_mode != REPLAN_AUTOMATIC)
        return;
    struct status_facts before = pass->facts;
    if (!seek_plan(pass, pass->lost_trigger, pass->current->restarts,
                   pass->current->replans + 1, "ReplanTriggered")) {
        pass->facts = before;
        pass->decision->is_unanswered = false; /* it has GPUs; nobody waits for it */
    }
}

/* ---- a healthy generation ---- */

/* Whether somebody else's object has the name of our Service. */
static bool service_is_foreign(const struct pass *pass)
{
    const json_t *service = pass->snapshot->service;
    return service && strcmp(kube_controller_uid(service), pass->snapshot->spec.uid);
}

static void keep_service(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const json_t *selector =
        json_object_get(json_object_get(snapshot->service, "spec"), "selector");
    const char *generation =
        json_string_value(json_object_get(selector, LABEL_PLAN_GENERATION));
    const char *wanted = text(pass, "%" PRId64, pass->current->generation);
    if (generation && !strcmp(generation, wanted))
        return;
    json_t *service = desired_service(snapshot, pass->current->generation);
    if (!snapshot
             ->service) { /* created, so that one of somebody else is never taken over */
        add_create(pass, PHASE_SERVICE, &kube_service, service);
        return;
    }
    struct action *action = add_action(pass, ACTION_APPLY, PHASE_SERVICE);
    action->resource = &kube_service;
    action->name = snapshot->spec.name;
    action->object = service;
}

/* Creates what is missing; false if the template cannot be made into pods. */
static bool create_pods(struct pass *pass)
{
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        if (pass->pods[i])
            continue;
        json_t *pod;
        struct het_error err;
        if (desired_pod(pass->snapshot, pass->current, i, &pod, &err) < 0) {
            set(pass, "Accepted", "False", "InvalidSpec", text(pass, "%s", err.message));
            return false;
        }
        add_create(pass, PHASE_PODS, &kube_pod, pod);
    }
    return true;
}

/* The scheduler's word on the first pod that it cannot bind. */
static const char *pending_message(struct pass *pass, size_t placed)
{
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        const struct snapshot_pod *pod = pass->pods[i];
        if (!pod || pod->is_scheduled)
            continue;
        const char *message = json_string_value(json_object_get(
            snapshot_find_condition(pod->object, "PodScheduled"), "message"));
        if (message && *message)
            return text(pass, "pod %s: %s", pod->name, message);
    }
    return text(pass, "%zu of %zu pods are placed", placed,
                pass->current->rank_node_count);
}

static void report_progress(struct pass *pass)
{
    size_t total = pass->current->rank_node_count;
    size_t placed = count_pods(pass, is_placed);
    size_t ready = count_pods(pass, is_running_ready);
    if (placed == total)
        set(pass, "Placed", "True", "AllPodsScheduled",
            text(pass, "%zu pods are on their nodes", total));
    else
        set(pass, "Placed", "False", "PodsPending", pending_message(pass, placed));
    if (ready == total)
        set(pass, "Running", "True", "AllPodsReady", text(pass, "%zu pods run", total));
    else
        set(pass, "Running", "False", "PodsNotReady",
            text(pass, "%zu of %zu pods are ready", ready, total));
    pass->decision->summary = text(pass, "generation %" PRId64 ": %zu of %zu pods ready",
                                   pass->current->generation, ready, total);
}

/* ---- a better plan ---- */

static void record(struct pass *pass, const char *result, const char *reason, double gain)
{
    pass->facts.decision_trigger = "CapacityChanged";
    pass->facts.decision_result = result;
    pass->facts.decision_reason = reason;
    double percent = floor(gain * 100);
    pass->facts.decision_gain_percent = percent > 1e6     ? 1000000
                                        : percent >= -100 ? (int64_t)percent
                                                          : -100; /* or no number */
}

/* Asks, or says what the planner said, when there is no plan to compare with. */
static void explain_no_better_plan(struct pass *pass)
{
    const struct planner_answer *answer = &pass->snapshot->memory.answer;
    if (!is_answered(pass) || answer->kind == ANSWER_FAILED) {
        ask_planner(pass);
    } else if (answer->kind == ANSWER_REFUSED) {
        report_refusal(pass);
    } else if (answer->kind == ANSWER_NO_PLAN) {
        set(pass, "PlanOutdated", "False", "NoBetterPlan",
            text(pass, "no other plan: %s", answer->message));
        record(pass, "Rejected", "NoBetterPlan", 0);
    }
}

/* The input changed under a job that runs well: is there a plan that is better by the
 * job's threshold? Throughput gain is old step time / new step time - 1. */
static void consider_better_plan(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_spec *spec = &snapshot->spec;
    const struct snapshot_plan *current = pass->current;
    if (snapshot->input_digest == current->input_digest || !current->plan) {
        set(pass, "PlanOutdated", "False", "UpToDate",
            "the plan is for the GPUs there are");
        return;
    }
    if (!pass->can_plan)
        return;
    const struct job_memory *memory = &pass->decision->memory;
    int64_t quiet = memory->input_changed_ms + spec->debounce_ms;
    int64_t latest = memory->input_unsettled_ms + DEBOUNCES_AT_MOST * spec->debounce_ms;
    if (memory->input_unsettled_ms && quiet > latest)
        quiet = latest;
    int64_t cool = snapshot->now_ms +
                   (current->created_wall_ms + spec->cooldown_ms - snapshot->wall_ms);
    int64_t due = quiet > cool ? quiet : cool;
    if (snapshot->now_ms < due) {
        requeue_at(pass, due);
        return;
    }
    const struct het_plan *plan = usable_answer(pass);
    if (!plan) {
        explain_no_better_plan(pass);
        return;
    }
    pass->decision->memory.considered_digest = snapshot->memory.answer.digest;
    if (!strcmp(het_codec_plan_hash(pass->arena, plan), current->hash)) {
        set(pass, "PlanOutdated", "False", "UpToDate",
            "planning again gives the same plan");
        return;
    }
    /* Both with the present profile and hardware, where the running plan can be priced.
     */
    double now_s = plan->predicted.from_iteration_s > 0
                       ? plan->predicted.from_iteration_s
                       : current->plan->predicted.iteration_s;
    double gain = now_s / plan->predicted.iteration_s - 1;
    const char *message = text(
        pass, "%s would be %+.1f %% in throughput, the threshold is %" PRId64 " %%",
        het_render_summary(pass->arena, plan), gain * 100, spec->min_improvement_percent);
    if (!(gain > 0) || gain * 100 < (double)spec->min_improvement_percent) {
        set(pass, "PlanOutdated", "False", "BelowThreshold", message);
        record(pass, "Rejected", "BelowThreshold", gain);
    } else if (spec->replan_mode != REPLAN_AUTOMATIC) {
        set(pass, "PlanOutdated", "True", "BetterPlan", message);
        record(pass, "Reported", "ModeIsNotAutomatic", gain);
    } else if (!snapshot->blocked_by) {
        record(pass, "Accepted", "BetterPlan", gain);
        commit(pass, plan, snapshot->memory.answer.digest, "BetterPlan",
               current->restarts, current->replans + 1, "ReplanTriggered", message);
    }
}

/* ---- the order of it all ---- */

static void keep_generation(struct pass *pass)
{
    const struct snapshot_plan *current = pass->current;
    set(pass, "PlanFeasible", "True", "PlanComputed",
        current->plan ? het_render_summary(pass->arena, current->plan) : current->name);
    pass->facts.holds_gpus = true;

    if (service_is_foreign(pass)) {
        set(pass, "Placed", "False", "NameConflict",
            text(pass, "Service %s/%s belongs to somebody else; rename it or the job",
                 pass->snapshot->spec.ns, pass->snapshot->spec.name));
        pass->decision->summary = "name conflict";
        return;
    }
    size_t older = fence_older(pass, current->generation);
    if (older) {
        set(pass, "Placed", "False", "WaitingForOldPods",
            text(pass, "%zu pods of older generations are still there", older));
        set(pass, "Running", "False", "WaitingForOldPods", "older pods end first");
        pass->decision->summary = text(pass, "waiting for %zu old pods", older);
        return;
    }
    keep_service(pass);
    if (!create_pods(pass))
        return;
    drop_old_plans(pass);
    report_progress(pass);
    /* Whether a node comes back is not known yet: the grace is there to wait for that. */
    if (!missing_pods(pass) && !pass->lost_trigger && !pass->is_suspect)
        consider_better_plan(pass);
}

/* A retired generation never starts again; what it was retired for has its own story
 * (back-off of a failed pod), all else gets a new generation. */
static void replace_retired(struct pass *pass)
{
    const char *trigger = pass->current->retired;
    restart(pass, trigger,
            text(pass, "generation %" PRId64 " was stopped (%s)",
                 pass->current->generation, trigger),
            pass->current->restarts);
}

static void run_current(struct pass *pass)
{
    const struct snapshot_plan *current = pass->current;
    index_pods(pass);
    pass->facts.plan = current;
    pass->facts.holds_gpus = true;
    if (!current->plan) {
        /* Somebody else's hand, or another release: the generation is replaced. */
        restart(pass, "PlanUnreadable",
                text(pass, "plan.json of %s cannot be read", current->name),
                current->restarts);
        return;
    }
    check_places(pass);
    if (count_pods(pass, has_succeeded) == current->rank_node_count) {
        complete_job(pass);
        return;
    }
    if (!pass->lost_trigger)
        pass->decision->memory.lost_since_ms = 0;
    if (missing_pods(pass) && wait_for_refused(pass))
        return;
    if (handle_broken_pod(pass))
        return;
    if (*current->retired) {
        replace_retired(pass);
        return;
    }
    if (pass->lost_trigger)
        handle_loss(pass);
    /* Still this generation, unless it was replaced or stopped just now. */
    if (!pass->is_replaced && (!pass->lost_trigger || pass->lost_pods_still_run))
        keep_generation(pass);
}

/* Notes when what the planner's answer depends on changed last. */
static void track_input(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    struct job_memory *memory = &pass->decision->memory;
    *memory = snapshot->memory;
    if (memory->input_digest == snapshot->input_digest)
        return;
    memory->input_digest = snapshot->input_digest;
    memory->input_changed_ms = snapshot->now_ms;
    if (!memory->input_unsettled_ms)
        memory->input_unsettled_ms = snapshot->now_ms;
}

/* Whether the spec can be acted on; says why not. */
static bool is_spec_accepted(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_spec *spec = &snapshot->spec;
    struct het_error err;
    if (snapshot->refused_reason) {
        set(pass, "Accepted", "False", snapshot->refused_reason,
            text(pass, "%s", snapshot->refused.message));
        return false;
    }
    if (desired_check_template(spec, &err) < 0) {
        set(pass, "Accepted", "False", "InvalidSpec", text(pass, "%s", err.message));
        return false;
    }
    set(pass, "Accepted", "True", "Valid", "");
    return true;
}

/* Whether there is a profile that can be planned with; says why not. */
static bool is_profile_accepted(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_spec *spec = &snapshot->spec;
    if (!snapshot->profile) {
        set(pass, "Accepted", "False", "ProfileNotFound",
            text(pass,
                 "spec.model.profileRef: there is no %s %s%s%s; create it or name "
                 "another",
                 spec->profile_is_cluster ? "ClusterModelProfile" : "ModelProfile",
                 spec->profile_is_cluster ? "" : spec->ns,
                 spec->profile_is_cluster ? "" : "/", spec->profile_name));
        return false;
    }
    if (json_object_get(json_object_get(snapshot->profile, "spec"), "configMapRef")) {
        set(pass, "Accepted", "False", "Unsupported",
            text(pass,
                 "profile %s: spec.configMapRef is not supported by this release; put "
                 "the measurements into spec.gpuTypes",
                 spec->profile_name));
        return false;
    }
    return true;
}

/* A running generation whose spec was changed into something we cannot act on: it goes on
 * as it was, and what it does is still told. */
static void watch_current(struct pass *pass)
{
    pass->facts.plan = pass->current;
    pass->facts.holds_gpus = !*pass->current->retired;
    pass->decision->summary = "not accepted";
    if (!pass->current->plan || *pass->current->retired)
        return;
    index_pods(pass);
    if (count_pods(pass, has_succeeded) == pass->current->rank_node_count)
        complete_job(pass);
    else
        report_progress(pass);
}

/* Conditions that every job shows from the first visit on. */
static void set_known_conditions(struct pass *pass)
{
    static const char *const unknown[] = { "PlanFeasible", "Placed", "Running",
                                           "PlanOutdated" };
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (!present(pass, unknown[i]))
            set(pass, unknown[i], "Unknown", "Pending", "");
    set(pass, "Complete", "False", "InProgress", "");
    set(pass, "Failed", "False", "InProgress", "");
}

/* A finished job only ends what is left of it. */
static void clean_finished(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    for (size_t i = 0; i < snapshot->pod_count; i++)
        if (!snapshot->pods[i].is_gone)
            delete_pod(pass, &snapshot->pods[i]);
    json_t *status = status_recount(snapshot);
    if (status_differs(snapshot->job, status))
        add_status(pass, PHASE_EVENTS, status);
    else
        json_decref(status);
    pass->decision->summary = "finished";
}

static int compare_phases(const void *a, const void *b)
{
    const struct action *left = a, *right = b;
    return left->phase - right->phase;
}

/* Stable: actions of one phase keep their order. Few enough for insertion. */
static void sort_actions(struct decision *decision)
{
    for (size_t i = 1; i < decision->action_count; i++)
        for (size_t k = i; k > 0 && compare_phases(&decision->actions[k - 1],
                                                   &decision->actions[k]) > 0;
             k--) {
            struct action swapped = decision->actions[k];
            decision->actions[k] = decision->actions[k - 1];
            decision->actions[k - 1] = swapped;
        }
}

void reconcile(struct het_arena *arena, const struct snapshot *snapshot,
               struct decision *ret)
{
    *ret = (struct decision){ .requeue_ms = INT64_MAX, .summary = "" };
    struct pass pass = { .arena = arena, .snapshot = snapshot, .decision = ret };
    track_input(&pass);
    if (kube_is_deleting(snapshot->job) || !job_spec_is_ours(snapshot->job)) {
        ret->summary = "not ours to touch";
        return;
    }
    if (snapshot_job_is_finished(snapshot->job)) {
        clean_finished(&pass);
        return;
    }
    set_known_conditions(&pass);
    pass.current = snapshot->plan_count ? &snapshot->plans[0] : NULL;
    bool accepted = is_spec_accepted(&pass);
    pass.can_plan = accepted && is_profile_accepted(&pass);
    if (!accepted && pass.current) {
        watch_current(&pass);
    } else if (accepted && pass.current) {
        run_current(&pass);
    } else if (pass.can_plan) {
        fence_older(&pass, 0);
        if (!wait_for_refused(&pass))
            seek_plan(&pass, "JobCreated", 0, 0, "PlanComputed");
    } else {
        ret->summary = "not accepted";
    }
    write_status(&pass, PHASE_EVENTS);
    sort_actions(ret);
}

void decision_fini(struct decision *decision)
{
    if (!decision)
        return;
    for (size_t i = 0; i < decision->action_count; i++)
        json_decref(decision->actions[i].object);
    decision->action_count = 0;
}
