#include "controller/reconcile/profiling.h"

#include "controller/base/object.h"

#include <inttypes.h>
#include <string.h>

#define CONDITION              "ProfilesReady"
#define REFUSED_BACKOFF_MS     ((int64_t)1000)
#define REFUSED_BACKOFF_MAX_MS ((int64_t)600000)

/* The progress of all types together is that of the worst. */
enum progress {
    PROGRESS_MEASURED,
    PROGRESS_WAITING, /* for GPUs */
    PROGRESS_MEASURING,
    PROGRESS_REFUSED,
    PROGRESS_FAILED,
};
static const char *const reasons[] = {
    [PROGRESS_MEASURED] = "AllMeasured",     [PROGRESS_WAITING] = "WaitingForGPUs",
    [PROGRESS_MEASURING] = "Measuring",      [PROGRESS_REFUSED] = "MeasurementRefused",
    [PROGRESS_FAILED] = "MeasurementFailed",
};

struct profiling {
    struct pass *pass;
    enum progress worst;
    const char *message; /* "TYPE: ...; TYPE: ..." */
    bool has_written;    /* one profile write per pass; the next depends on its outcome */
};

static void note(struct profiling *profiling, const struct measurement *measurement,
                 enum progress progress, const char *what)
{
    if (progress > profiling->worst)
        profiling->worst = progress;
    profiling->message = pass_text(profiling->pass, "%s%s%s: %s", profiling->message,
                                   *profiling->message ? "; " : "", measurement->type,
                                   what);
}

/* ---- beginning ---- */

/* GPUs of the node that the job's own plan does not take. */
static int64_t spare_gpus(const struct pass *pass, const struct capacity_node *node)
{
    int64_t gpus = node->free;
    const struct snapshot_plan *plan = pass->current;
    for (size_t i = 0; plan && !*plan->retired && i < plan->rank_node_count; i++)
        if (!strcmp(plan->rank_nodes[i].node_name, node->name))
            gpus -= plan->rank_nodes[i].gpu_count;
    return gpus;
}

/* The node of the type with the most spare GPUs, first by name where equal; NULL: no node
 * has `gpus`. */
static const struct capacity_node *find_node(const struct pass *pass, const char *type,
                                             int64_t gpus)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct capacity_node *best = NULL;
    int64_t most = gpus - 1;
    for (size_t i = 0; i < snapshot->node_count; i++) {
        const struct capacity_node *node = &snapshot->nodes[i];
        int64_t spare = spare_gpus(pass, node);
        if (!node->unusable && !strcmp(node->type, type) && spare > most) {
            best = node;
            most = spare;
        }
    }
    return best;
}

/* Whether the API server refused such a write recently. */
static bool is_refused(struct pass *pass)
{
    const struct job_memory *memory = &pass->snapshot->memory;
    if (!memory->profiling_refusals)
        return false;
    int64_t pause_ms = pass_doubled_ms(REFUSED_BACKOFF_MS, memory->profiling_refusals,
                                       REFUSED_BACKOFF_MAX_MS);
    return !pass_has_come(pass, memory->profiling_refused_ms + pause_ms);
}

static void begin(struct profiling *profiling, const struct measurement *measurement)
{
    struct pass *pass = profiling->pass;
    const struct snapshot *snapshot = pass->snapshot;
    int64_t gpus = measurement_gpus(&snapshot->spec, measurement->type, snapshot->nodes,
                                    snapshot->node_count);
    const struct capacity_node *node = gpus ? find_node(pass, measurement->type, gpus)
                                            : NULL;
    if (!node) {
        note(profiling, measurement, PROGRESS_WAITING,
             gpus ? pass_text(pass, "waits for a node with %" PRId64 " GPUs free", gpus)
                  : "none of its nodes can be used");
        return;
    }
    pass_create(pass, PHASE_PROFILING, &kube_batch_job,
                measurement_job(&snapshot->spec, snapshot->settings, measurement, node,
                                gpus, kueue_queue_of(snapshot->job)));
    note(profiling, measurement, PROGRESS_MEASURING,
         pass_text(pass, "Job %s begins with %" PRId64 " GPUs of %s", measurement->name,
                   gpus, node->name));
}

/* ---- the result ---- */

static bool owns(const struct pass *pass, const json_t *job)
{
    return !strcmp(kube_controller_uid(job), pass->snapshot->spec.uid);
}

static void fail(struct profiling *profiling, const struct measurement *measurement,
                 const char *why)
{
    struct pass *pass = profiling->pass;
    const char *text = pass_text(
        pass, "measuring failed: %s (Job %s; it is tried again when that is deleted)",
        why, measurement->name);
    note(profiling, measurement, PROGRESS_FAILED, text);
}

static int add_write(struct profiling *profiling, const struct measurement_result *result,
                     struct het_error *err)
{
    struct pass *pass = profiling->pass;
    const struct snapshot *snapshot = pass->snapshot;
    json_t *patch;
    if (!snapshot->profile) {
        pass_create(pass, PHASE_PROFILING, &kube_model_profile,
                    measurement_profile(&snapshot->spec, result));
        profiling->has_written = true;
        return 0;
    }
    if (measurement_patch(snapshot->profile, result, &patch, err) < 0)
        return het_wrap(err, "profile %s", snapshot->spec.profile_name);
    struct action *action = pass_add(pass, ACTION_PATCH, PHASE_PROFILING);
    action->resource = &kube_model_profile;
    action->name = kube_name(snapshot->profile);
    action->uid = kube_uid(snapshot->profile);
    action->object = patch;
    profiling->has_written = true;
    return 0;
}

static void tell_refusal(struct profiling *profiling,
                         const struct measurement *measurement)
{
    note(profiling, measurement, PROGRESS_REFUSED,
         pass_text(profiling->pass, "the API server refuses %s",
                   profiling->pass->snapshot->memory.profiling_refusal));
}

/* The pod has reported its result. */
static void take_result(struct profiling *profiling,
                        const struct measurement *measurement)
{
    struct pass *pass = profiling->pass;
    const struct snapshot *snapshot = pass->snapshot;
    struct measurement_result result;
    struct het_error err;
    if (measurement_read_pod(&snapshot->spec, measurement, &result, &err) < 0) {
        fail(profiling, measurement, err.message);
        return;
    }
    int64_t completed_ms = measurement_completed_ms(measurement);
    bool is_ours =
        owns(pass, measurement->job) ||
        (completed_ms && pass_has_come_wall(pass, completed_ms + PROFILING_OWNER_MS));
    if (is_ours && is_refused(pass))
        tell_refusal(profiling, measurement);
    else if (is_ours && !profiling->has_written &&
             add_write(profiling, &result, &err) < 0)
        fail(profiling, measurement, err.message);
    else
        note(profiling, measurement, PROGRESS_MEASURING,
             "measured; the profile is written");
    measurement_result_fini(&result);
}

/* The result is lost: measures again. */
static void start_over(struct profiling *profiling, const struct measurement *measurement)
{
    struct pass *pass = profiling->pass;
    note(profiling, measurement, PROGRESS_MEASURING, "the result is waited for");
    if (owns(pass, measurement->job) && !kube_is_deleting(measurement->job) &&
        pass_has_come_wall(pass,
                           measurement_completed_ms(measurement) + PROFILING_RESULT_MS))
        pass_delete(pass, PHASE_PROFILING, &kube_batch_job, measurement->name,
                    kube_uid(measurement->job), -1);
}

/* ---- all of it ---- */

static void keep(struct profiling *profiling, const struct measurement *measurement)
{
    struct pass *pass = profiling->pass;
    const char *why;
    if (!measurement->job) {
        if (is_refused(pass))
            tell_refusal(profiling, measurement);
        else
            begin(profiling, measurement);
        return;
    }
    switch (measurement_look(pass->arena, measurement, &why)) {
    case MEASUREMENT_FOREIGN:
        note(profiling, measurement, PROGRESS_FAILED,
             pass_text(pass, "Job %s is somebody else's", measurement->name));
        return;
    case MEASUREMENT_WAITING:
    case MEASUREMENT_RUNNING:
        note(profiling, measurement, PROGRESS_MEASURING,
             pass_text(pass, "Job %s: %s", measurement->name, why));
        return;
    case MEASUREMENT_STUCK:
        note(profiling, measurement, PROGRESS_FAILED,
             pass_text(pass, "Job %s: %s", measurement->name, why));
        return;
    case MEASUREMENT_DONE:
        take_result(profiling, measurement);
        return;
    case MEASUREMENT_LOST:
        start_over(profiling, measurement);
        return;
    case MEASUREMENT_FAILED:
        fail(profiling, measurement, why);
        return;
    }
}

/* A failure is reported once, when the condition changes. */
static void announce(struct pass *pass, const struct profiling *profiling)
{
    const json_t *before = pass_present(pass, CONDITION);
    bool is_bad = profiling->worst >= PROGRESS_REFUSED;
    if (is_bad && strcmp(object_text(before, "reason"), reasons[profiling->worst]) != 0)
        pass_event(pass, PHASE_EVENTS, true, reasons[profiling->worst], CONDITION,
                   profiling->message);
}

void profiling_drop_spent(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    for (size_t i = 0; i < snapshot->spent_measurement_count; i++) {
        const json_t *job = snapshot->spent_measurements[i];
        pass_delete(pass, PHASE_PROFILING, &kube_batch_job, kube_name(job), kube_uid(job),
                    -1);
    }
}

/* The condition for all types together. */
static void conclude(struct profiling *profiling)
{
    struct pass *pass = profiling->pass;
    bool is_ready = profiling->worst == PROGRESS_MEASURED;
    if (is_ready && !pass->snapshot->profile) {
        profiling->worst = PROGRESS_WAITING;
        profiling->message = "no GPU can be used now, of whatever type";
    } else if (is_ready) {
        profiling->message =
            "the profile has every GPU type of the cluster that the job may use";
    }
    is_ready = profiling->worst == PROGRESS_MEASURED;
    announce(pass, profiling);
    pass_set(pass, CONDITION, is_ready ? "True" : "False", reasons[profiling->worst],
             profiling->message);
}

void profiling_keep(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    struct profiling profiling = { .pass = pass, .message = "" };
    if (!snapshot->spec.profile_grows && pass_present(pass, CONDITION))
        pass_set(pass, CONDITION, "Unknown", "NotAskedFor",
                 "spec.model.profilePolicy is Existing: nothing is measured");
    if (!snapshot->spec.profile_grows || snapshot->spec.is_plan_only)
        return;
    for (size_t i = 0; i < snapshot->measurement_count; i++)
        keep(&profiling, &snapshot->measurements[i]);
    conclude(&profiling);
}

/* ---- what cannot be planned ---- */

/* Whether the job may use GPUs of the node's type, and the profile has it. */
static bool is_profiled(const struct snapshot *snapshot, const struct capacity_node *node)
{
    if (!*node->type || !job_spec_allows_type(&snapshot->spec, node->type))
        return false;
    for (size_t i = 0; i < snapshot->measurement_count; i++)
        if (!strcmp(snapshot->measurements[i].type, node->type))
            return false;
    return true;
}

static bool has_profiled_node(const struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->node_count; i++)
        if (is_profiled(snapshot, &snapshot->nodes[i]))
            return true;
    return false;
}

bool profiling_holds_plan(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    if (!snapshot->spec.profile_grows || snapshot->spec.is_plan_only ||
        (snapshot->profile &&
         (!snapshot->measurement_count || has_profiled_node(snapshot))))
        return false;
    const struct status_condition *own = status_find(&pass->facts, CONDITION);
    bool is_stuck = !strcmp(own->reason, reasons[PROGRESS_FAILED]) ||
                    !strcmp(own->reason, reasons[PROGRESS_REFUSED]);
    pass_set(pass, "PlanFeasible", is_stuck ? "False" : "Unknown", own->reason,
             pass_text(pass, "nothing is measured yet: %s", own->message));
    pass_set_not_placed(pass, "NoPlan", "there is no plan before something is measured");
    pass->decision->summary = pass_text(pass, "waits for a profile: %s", own->message);
    return true;
}
