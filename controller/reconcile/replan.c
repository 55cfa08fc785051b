#include "controller/reconcile/replan.h"

#include "controller/reconcile/generation.h"
#include "controller/reconcile/planning.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

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
    if (!planning_is_answered(pass) || answer->kind == ANSWER_FAILED) {
        planning_ask(pass);
    } else if (answer->kind == ANSWER_REFUSED) {
        planning_report_refusal(pass);
    } else if (answer->kind == ANSWER_NO_PLAN) {
        pass_set(pass, "PlanOutdated", "False", "NoBetterPlan",
                 pass_text(pass, "no other plan: %s", answer->message));
        record(pass, "Rejected", "NoBetterPlan", 0);
    }
}

/* The input changed under a job that runs well: is there a plan that is better by the
 * job's threshold? Throughput gain is old step time / new step time - 1. */
void replan_consider(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_spec *spec = &snapshot->spec;
    const struct snapshot_plan *current = pass->current;
    if (snapshot->input_digest == current->input_digest || !current->plan) {
        pass_set(pass, "PlanOutdated", "False", "UpToDate",
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
        pass_requeue_at(pass, due);
        return;
    }
    const struct het_plan *plan = planning_answer(pass);
    if (!plan) {
        explain_no_better_plan(pass);
        return;
    }
    pass->decision->memory.considered_digest = snapshot->memory.answer.digest;
    if (!strcmp(het_codec_plan_hash(pass->arena, plan), current->hash)) {
        pass_set(pass, "PlanOutdated", "False", "UpToDate",
                 "planning again gives the same plan");
        return;
    }
    /* Both with the present profile and hardware, where the running plan can be priced.
     */
    double now_s = plan->predicted.from_iteration_s > 0
                       ? plan->predicted.from_iteration_s
                       : current->plan->predicted.iteration_s;
    double gain = now_s / plan->predicted.iteration_s - 1;
    const char *message = pass_text(
        pass, "%s would be %+.1f %% in throughput, the threshold is %" PRId64 " %%",
        het_render_summary(pass->arena, plan), gain * 100, spec->min_improvement_percent);
    if (!(gain > 0) || gain * 100 < (double)spec->min_improvement_percent) {
        pass_set(pass, "PlanOutdated", "False", "BelowThreshold", message);
        record(pass, "Rejected", "BelowThreshold", gain);
    } else if (spec->replan_mode != REPLAN_AUTOMATIC) {
        pass_set(pass, "PlanOutdated", "True", "BetterPlan", message);
        record(pass, "Reported", "ModeIsNotAutomatic", gain);
    } else if (!snapshot->blocked_by) {
        record(pass, "Accepted", "BetterPlan", gain);
        generation_commit(pass, plan, snapshot->memory.answer.digest, "BetterPlan",
                          current->restarts, current->replans + 1, "ReplanTriggered",
                          message);
    }
}
