#include "controller/reconcile/lifecycle.h"

#include "controller/placement/generation.h"
#include "controller/placement/planning.h"

#include <inttypes.h>
#include <string.h>

#define SUSPENDED "JobSuspended"

/* ---- suspend and resume ---- */

static void set_suspended(struct pass *pass, size_t ending)
{
    const char *message = ending ? pass_text(pass, "%zu pods are ending", ending)
                                 : "spec.suspend is true";
    pass_set(pass, "Suspended", "True", SUSPENDED, "spec.suspend is true");
    pass_set(pass, "PlanFeasible", "Unknown", SUSPENDED,
             "nothing is planned while the job is suspended");
    pass_set(pass, "PlanOutdated", "Unknown", SUSPENDED,
             "nothing is planned while the job is suspended");
    pass_set_not_placed(pass, SUSPENDED, message);
    pass->decision->summary = pass_text(pass, "suspended: %s", message);
}

void lifecycle_suspend(struct pass *pass)
{
    pass->facts.plan = pass->current;
    if (pass->current) {
        pass_index_pods(pass);
        if (lifecycle_is_complete(pass))
            return;
        generation_retire(pass, SUSPENDED, pass->current->restarts);
    }
    set_suspended(pass, generation_fence_older(pass, 0));
}

void lifecycle_note_resumed(struct pass *pass)
{
    if (pass_present(pass, "Suspended"))
        pass_set(pass, "Suspended", "False", "JobResumed", "spec.suspend is false");
}

bool lifecycle_was_suspended(const struct pass *pass)
{
    return pass_was_retired_for(pass, SUSPENDED);
}

void lifecycle_resume(struct pass *pass)
{
    generation_fence_older(pass, 0);
    planning_seek(pass, "Resumed", pass->current->restarts, pass->current->replans,
                  "PlanComputed");
}

/* ---- the end ---- */

static void complete(struct pass *pass, const char *reason, const char *message)
{
    pass->facts.holds_gpus = false;
    pass_set(pass, "Complete", "True", reason, message);
    pass_set(pass, "Running", "False", "Complete", message);
    pass->decision->summary = message;
}

bool lifecycle_is_complete(struct pass *pass)
{
    const struct snapshot_plan *current = pass->current;
    size_t count = current->rank_node_count;
    if (count && pass_count_pods(pass, pod_has_succeeded) == count)
        complete(pass, "AllPodsSucceeded",
                 pass_text(pass, "all %zu pods of revision %" PRId64 " succeeded", count,
                           current->generation));
    else if (count && pass->snapshot->spec.rank_zero_decides && pass->has_succeeded[0])
        complete(pass, "RankZeroSucceeded",
                 pass_text(pass, "the pod of rank 0 of revision %" PRId64 " succeeded",
                           current->generation));
    else
        return false;
    return true;
}

void lifecycle_fail(struct pass *pass, const char *reason, const char *message)
{
    if (pass->current)
        generation_stop(pass, reason);
    pass->decision->is_unanswered = false;
    pass_set(pass, "Failed", "True", reason, message);
    pass_set(pass, "Running", "False", "Failed", message);
    pass->decision->summary = message;
}

bool lifecycle_is_past_deadline(struct pass *pass)
{
    int64_t deadline_ms = pass->snapshot->spec.deadline_ms;
    int64_t started_ms;
    if (!deadline_ms || !pass_time(pass, "status.startTime", &started_ms) ||
        !pass_has_come_wall(pass, started_ms + deadline_ms))
        return false;
    lifecycle_fail(
        pass, "DeadlineExceeded",
        pass_text(pass, "the job has run for spec.activeDeadlineSeconds (%" PRId64 ")",
                  deadline_ms / 1000));
    return true;
}

void lifecycle_clean_finished(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_spec *spec = &snapshot->spec;
    int64_t ended_ms;
    if (spec->ttl_ms >= 0 && pass_time(pass, "status.completionTime", &ended_ms) &&
        pass_has_come_wall(pass, ended_ms + spec->ttl_ms)) {
        pass_delete(pass, PHASE_DELETE, &kube_job, spec->name, spec->uid, -1);
        pass->decision->summary = "finished, and its time to live is over";
        return;
    }
    size_t alive = 0;
    for (size_t i = 0; i < snapshot->pod_count; i++)
        alive += !snapshot->pods[i].is_gone;
    if (alive)
        generation_fence_older(pass, 0);
    json_t *status = status_recount(pass->arena, snapshot, &pass->facts);
    if (status_differs(snapshot->job, status))
        pass_status(pass, PHASE_EVENTS, status);
    else
        json_decref(status);
    pass->decision->summary = "finished";
}
