#include "controller/reconcile/kueue_admission.h"

#include "controller/base/object.h"
#include "controller/placement/generation.h"
#include "controller/placement/planning.h"
#include "controller/reconcile/restart.h"

#include <inttypes.h>
#include <string.h>

#define EVICTED "Evicted" /* trigger of the next generation */

static const json_t *current_workload(const struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    return kueue_find_workload(
        &snapshot->quota,
        kueue_group(pass->arena, snapshot->spec.name, pass->current->generation));
}

/* Pods of the current generation in `admission`. */
static size_t count_admission(const struct pass *pass, enum kueue_admission admission)
{
    size_t count = 0;
    for (size_t i = 0; i < pass->current->rank_node_count; i++)
        count += pass->pods[i] && kueue_pod_admission(pass->pods[i]->object) == admission;
    return count;
}

bool kueue_admission_admits(const struct pass *pass)
{
    return !pass->snapshot->quota.queue ||
           count_admission(pass, KUEUE_ADMITTED) == pass->current->rank_node_count;
}

/* ---- eviction ---- */

static const struct snapshot_pod *find_evicted_pod(const struct pass *pass)
{
    for (size_t i = 0; i < pass->current->rank_node_count; i++)
        if (pass->pods[i] && kueue_pod_is_evicted(pass->pods[i]->object))
            return pass->pods[i];
    return NULL;
}

static void report_eviction(struct pass *pass, const struct snapshot_pod *pod)
{
    const json_t *workload = current_workload(pass);
    const char *message = pass_text(pass, "revision %" PRId64 " was stopped by Kueue: %s",
                                    pass->current->generation,
                                    kueue_eviction_message(workload, pod->object));
    pass_set(pass, "QuotaReserved", "False", kueue_eviction_reason(workload), message);
    pass_set_not_placed(pass, EVICTED, message);
    pass->decision->summary = message;
}

/* Kueue gives the withdrawn quota to another job and updates other objects a moment
 * later: the remaining quota is read once they have settled. */
static bool has_settled(struct pass *pass)
{
    return pass_has_come(pass, pass->decision->memory.input_changed_ms +
                                   planning_quiet_ms(&pass->snapshot->spec));
}

bool kueue_admission_evicted(struct pass *pass)
{
    if (!pass->snapshot->quota.queue)
        return false;
    bool is_retired = pass_was_retired_for(pass, EVICTED);
    const struct snapshot_pod *pod = find_evicted_pod(pass);
    if (!is_retired && (!pod || *pass->current->retired))
        return false;
    if (!is_retired) {
        report_eviction(pass, pod);
        generation_stop(pass, EVICTED);
        return true;
    }
    if (has_settled(pass))
        restart_retired(pass);
    else
        pass->decision->summary = "stopped by Kueue; settling";
    pass->facts.holds_gpus = pass->is_replaced;
    return true;
}

/* ---- what is left of older generations ---- */

/* Whether all remaining pods of a generation wait for Kueue to release them. */
static bool is_stuck(const struct snapshot *snapshot, int64_t generation)
{
    size_t stuck = 0;
    for (size_t i = 0; i < snapshot->pod_count; i++) {
        const struct snapshot_pod *pod = &snapshot->pods[i];
        if (pod->generation != generation || pod_has_ended(pod))
            continue;
        if (!kueue_pod_is_stuck(pod->object))
            return false;
        stuck++;
    }
    return stuck > 0;
}

void kueue_admission_release(struct pass *pass, int64_t live)
{
    const struct snapshot *snapshot = pass->snapshot;
    int64_t last = 0; /* pods are in the order of their generations */
    for (size_t i = 0; i < snapshot->pod_count; i++) {
        int64_t generation = snapshot->pods[i].generation;
        if (generation == last || generation == live)
            continue;
        last = generation;
        const json_t *workload = kueue_find_workload(
            &snapshot->quota, kueue_group(pass->arena, snapshot->spec.name, generation));
        if (workload && !kube_is_deleting(workload) &&
            !kueue_workload_is_finished(workload) && is_stuck(snapshot, generation))
            pass_delete(pass, PHASE_DELETE, &kube_workload, kube_name(workload),
                        kube_uid(workload), -1);
    }
}

/* ---- the condition ---- */

static void set_waiting(struct pass *pass, const char *reason, const char *message)
{
    pass_set(pass, "QuotaReserved", "False", reason, message);
}

/* podSets that the current generation's pods make; counting ends above the limit. */
static size_t count_roles(const struct pass *pass)
{
    const char *roles[KUEUE_MAX_ROLES];
    size_t count = 0;
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        if (!pass->pods[i])
            continue;
        const char *role = kube_annotation(pass->pods[i]->object, KUEUE_ANNOTATION_ROLE);
        size_t k = 0;
        while (k < count && strcmp(roles[k], role) != 0)
            k++;
        if (k < count)
            continue;
        if (count == KUEUE_MAX_ROLES)
            return count + 1;
        roles[count++] = role;
    }
    return count;
}

/* The current generation has its pods and waits for Kueue's decision. */
static void report_generation(struct pass *pass)
{
    const struct kueue_quota *quota = &pass->snapshot->quota;
    const json_t *workload = current_workload(pass);
    if (kueue_admission_admits(pass)) {
        pass_set(pass, "QuotaReserved", "True", "Admitted",
                 pass_text(pass, "ClusterQueue %s admitted %s-%" PRId64,
                           quota->cluster_queue, pass->snapshot->spec.name,
                           pass->current->generation));
    } else if (count_admission(pass, KUEUE_UNMANAGED)) {
        set_waiting(
            pass, "NotManaged",
            pass_text(pass,
                      "Kueue does not manage pods of namespace %s; turn on its pod "
                      "integration there, then delete the pods, which are made "
                      "again",
                      pass->snapshot->spec.ns));
    } else if (kueue_workload_has_quota(workload)) {
        pass_set(pass, "QuotaReserved", "True", "QuotaReserved",
                 "the quota is reserved; admission checks are to follow");
    } else if (count_roles(pass) > KUEUE_MAX_ROLES) {
        set_waiting(
            pass, "TooManyRoles",
            pass_text(pass,
                      "the plan has more than %d combinations of GPU type, GPUs a "
                      "node and flavor, which is more than Kueue takes; lower "
                      "spec.resources.maxGPUs or name fewer gpuTypes",
                      KUEUE_MAX_ROLES));
    } else {
        const char *message = kueue_pending_message(workload);
        set_waiting(pass, "Pending",
                    *message ? message : "Kueue has not admitted it yet");
    }
}

/* An evicted job reports the eviction until it has pods again. */
static bool still_says_evicted(const struct pass *pass)
{
    return pass_was_retired_for(pass, EVICTED) &&
           !strcmp(object_condition(pass->snapshot->job, "QuotaReserved"), "False");
}

void kueue_admission_report(struct pass *pass)
{
    const struct kueue_quota *quota = &pass->snapshot->quota;
    if (!quota->queue) {
        if (pass_present(pass, "QuotaReserved"))
            pass_set(pass, "QuotaReserved", "Unknown", "NoQueue",
                     "the job waits in no queue of Kueue");
        return;
    }
    if (status_has(&pass->facts, "QuotaReserved"))
        return;
    bool has_pods = pass->pods && !*pass->current->retired && !pass->is_replaced &&
                    !pass_missing_pods(pass);
    if (has_pods && (kueue_admission_admits(pass) || !quota->reason))
        report_generation(pass);
    else if (quota->reason)
        set_waiting(pass, quota->reason, quota->message);
    else if (!still_says_evicted(pass))
        set_waiting(pass, "Pending",
                    pass_text(pass, "queue %s (ClusterQueue %s) can give %s",
                              quota->queue, quota->cluster_queue,
                              kueue_describe(pass->arena, quota)));
}
