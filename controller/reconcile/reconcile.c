#include "controller/reconcile/reconcile.h"

#include "controller/base/object.h"
#include "controller/placement/candidate.h"
#include "controller/placement/demand.h"
#include "controller/placement/drain.h"
#include "controller/placement/fit.h"
#include "controller/placement/generation.h"
#include "controller/placement/planning.h"
#include "controller/placement/preemption.h"
#include "controller/reconcile/gang.h"
#include "controller/reconcile/kueue_admission.h"
#include "controller/reconcile/lifecycle.h"
#include "controller/reconcile/profiling.h"
#include "controller/reconcile/replan.h"
#include "controller/reconcile/restart.h"

#include <inttypes.h>
#include <string.h>

static void keep_generation(struct pass *pass)
{
    const struct snapshot_plan *current = pass->current;
    pass_set(pass, "PlanFeasible", "True", "PlanComputed",
             current->plan ? het_render_summary(pass->arena, current->plan)
                           : current->name);
    if (current->plan) {
        planning_tell_links(pass, current->plan);
        planning_tell_unknown(pass, current->plan->unused, current->plan->unused_count);
    }
    demand_growth(pass);
    if (!gang_form(pass))
        return;
    generation_drop_old(pass);
    if (!pass->is_leaving)
        drain_forget_notice(pass);
    /* The node may still come back: the grace period waits for that. */
    if (!pass->lost_trigger && !pass->is_suspect)
        replan_consider(pass);
}

static void run_current(struct pass *pass)
{
    const struct snapshot_plan *current = pass->current;
    pass_index_pods(pass);
    pass->facts.plan = current;
    pass->facts.holds_gpus = true;
    if (!current->plan) {
        /* Edited by hand or written by another release: the generation is replaced. */
        restart_generation(
            pass, "PlanUnreadable",
            pass_text(pass, "plan.json of %s cannot be read", current->name),
            current->restarts);
        return;
    }
    if (lifecycle_is_complete(pass) || lifecycle_is_past_deadline(pass))
        return;
    if (lifecycle_was_suspended(pass)) {
        lifecycle_resume(pass);
        return;
    }
    fit_check(pass);
    if (!pass->lost_trigger)
        pass->decision->memory.lost_since_ms = 0;
    if (pass_missing_pods(pass) && planning_wait_for_refused(pass))
        return;
    if (kueue_admission_evicted(pass) || restart_broken(pass))
        return;
    if (*current->retired) {
        restart_retired(pass);
        return;
    }
    if (pass->lost_trigger)
        restart_lost(pass);
    /* Still this generation, unless it was replaced or stopped just now. */
    if (!pass->is_replaced && (!pass->lost_trigger || pass->lost_pods_still_run) &&
        !restart_changed(pass))
        keep_generation(pass);
}

/* Records when the planner's input last changed. */
static void track_input(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    struct job_memory *memory = &pass->decision->memory;
    *memory = snapshot->memory;
    memory->hook = (struct hook_memory){ 0 }; /* until drain.h asks for it again */
    if (memory->input_digest == snapshot->input_digest)
        return;
    memory->input_digest = snapshot->input_digest;
    memory->input_changed_ms = snapshot->now_ms;
    if (!memory->input_unsettled_ms)
        memory->input_unsettled_ms = snapshot->now_ms;
}

/* Whether the spec is accepted; if not, reports why. */
static bool is_spec_accepted(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_spec *spec = &snapshot->spec;
    const char *reason;
    struct het_error err;
    if (snapshot->refused_reason) {
        pass_set(pass, "Accepted", "False", snapshot->refused_reason,
                 pass_text(pass, "%s", snapshot->refused));
        return false;
    }
    struct tenancy tenancy = snapshot_tenancy(snapshot);
    if (children_check_job(&tenancy, spec, snapshot->job, &reason, &err) < 0) {
        pass_set(pass, "Accepted", "False", reason, pass_text(pass, "%s", err.message));
        return false;
    }
    if (tenancy_doubts_fields(&tenancy, snapshot->job, &err))
        pass_set(pass, "Accepted", "True", "UnknownPodField",
                 pass_text(pass, "%s", err.message));
    else
        pass_set(pass, "Accepted", "True", "Valid", "");
    return true;
}

/* Whether the profile was measured with the job's number of tokens per sample; a profile
 * without that number holds for any. */
static bool has_sequence_length(struct pass *pass)
{
    const struct job_spec *spec = &pass->snapshot->spec;
    int64_t measured =
        object_integer(pass->snapshot->profile, "spec.model.sequenceLength", 0);
    if (!spec->sequence_length || !measured || spec->sequence_length == measured)
        return true;
    pass_set(pass, "Accepted", "False", "SequenceLengthDiffers",
             pass_text(pass,
                       "spec.training.sequenceLength: is %" PRId64
                       ", but profile %s was measured with %" PRId64
                       "; its times would be wrong: name a profile of that length",
                       spec->sequence_length, spec->profile_name, measured));
    return false;
}

/* Whether there is a profile to plan with; if not, reports why. */
static bool is_profile_accepted(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_spec *spec = &snapshot->spec;
    if (!spec->profile_name)
        return true; /* it is estimated */
    if (!snapshot->profile && spec->profile_grows && !spec->is_plan_only)
        return false; /* nothing is measured yet; profiling.h reports it */
    if (!snapshot->profile) {
        pass_set(
            pass, "Accepted", "False", "ProfileNotFound",
            pass_text(pass,
                      "spec.model.profileRef: there is no %s %s%s%s; create it or name "
                      "another",
                      spec->profile_is_cluster ? "ClusterModelProfile" : "ModelProfile",
                      spec->profile_is_cluster ? "" : spec->ns,
                      spec->profile_is_cluster ? "" : "/", spec->profile_name));
        return false;
    }
    if (object_at(snapshot->profile, "spec.configMapRef")) {
        pass_set(
            pass, "Accepted", "False", "Unsupported",
            pass_text(
                pass,
                "profile %s: spec.configMapRef is not supported by this release; put "
                "the measurements into spec.gpuTypes",
                spec->profile_name));
        return false;
    }
    return has_sequence_length(pass);
}

/* For a running generation whose spec was changed to one that is refused: it continues as
 * it was and is still reported. It gives GPUs up as others do, and also if it has not
 * started. */
static void watch_current(struct pass *pass)
{
    pass->facts.plan = pass->current;
    pass->facts.holds_gpus = !*pass->current->retired;
    pass->decision->summary = "not accepted";
    if (!pass->current->plan)
        return;
    pass_index_pods(pass);
    if (preemption_stops_refused(pass) || gang_stops_refused(pass) ||
        *pass->current->retired)
        return;
    if (!lifecycle_is_complete(pass))
        gang_report(pass);
}

/* Conditions that every job shows from its first pass on. */
static void set_known_conditions(struct pass *pass)
{
    static const char *const unknown[] = { "PlanFeasible", "Placed", "Running",
                                           "PlanOutdated" };
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (!pass_present(pass, unknown[i]))
            pass_set(pass, unknown[i], "Unknown", "Pending", "");
    pass_set(pass, "Complete", "False", "InProgress", "");
    pass_set(pass, "Failed", "False", "InProgress", "");
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
        /* The spec of a finished job matters no more, except that it can be read
         * again. */
        if (!strcmp(object_text(pass_present(&pass, "Accepted"), "reason"), "Unreadable"))
            is_spec_accepted(&pass);
        lifecycle_clean_finished(&pass);
        profiling_drop_spent(&pass);
        kueue_admission_release(&pass, 0);
        decision_sort(ret);
        return;
    }
    set_known_conditions(&pass);
    lifecycle_note_resumed(&pass);
    pass.current = snapshot->plan_count ? &snapshot->plans[0] : NULL;
    if (snapshot->avoided_until_wall_ms)
        pass_requeue_at(&pass, snapshot->now_ms + snapshot->avoided_until_wall_ms -
                                   snapshot->wall_ms);
    bool accepted = is_spec_accepted(&pass);
    pass.can_plan = accepted && is_profile_accepted(&pass);
    profiling_drop_spent(&pass);
    if (accepted && !snapshot->spec.is_suspended)
        profiling_keep(&pass);
    if (snapshot->spec.is_suspended) {
        pass_deafen(&pass, INT64_MAX);
        lifecycle_suspend(&pass);
    } else if (!accepted && pass.current) {
        watch_current(&pass);
    } else if (accepted && pass.current) {
        run_current(&pass);
    } else if (accepted && profiling_holds_plan(&pass)) {
        generation_fence_older(&pass, 0);
    } else if (pass.can_plan) {
        generation_fence_older(&pass, 0);
        if (snapshot->spec.is_plan_only)
            planning_preview(&pass);
        else if (!lifecycle_is_past_deadline(&pass) && !planning_wait_for_refused(&pass))
            planning_seek(&pass, "JobCreated", 0, 0, "PlanComputed");
    } else {
        pass_deafen(&pass, INT64_MAX);
        ret->summary = "not accepted";
    }
    kueue_admission_release(
        &pass, pass.current && !*pass.current->retired ? pass.current->generation : 0);
    kueue_admission_report(&pass);
    candidate_keep(&pass);
    pass_write_status(&pass, PHASE_EVENTS);
    decision_sort(ret);
}
