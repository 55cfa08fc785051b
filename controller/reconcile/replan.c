#include "controller/reconcile/replan.h"

#include "controller/base/object.h"
#include "controller/base/timestamp.h"
#include "controller/decision/replan_rule.h"
#include "controller/placement/candidate.h"
#include "controller/placement/generation.h"
#include "controller/placement/planning.h"
#include "controller/placement/resharding.h"
#include "controller/placement/victims.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* How often a running job that may not move yet is looked at, however much changes. */
#define DEAF_MS ((int64_t)30000)

/* ---- why, and when ---- */

/* The changes since the plan was made; all possible ones if that is not known. */
static unsigned changes(const struct pass *pass)
{
    struct input_state before;
    if (!input_change_read(pass->current->input_parts, &before))
        return INPUT_CHANGE_ALL;
    return input_change_between(&before, &pass->snapshot->input_parts);
}

/* The first of a set; more would be hard to read. */
static const char *name_of(unsigned set)
{
    for (unsigned i = 0; i < INPUT_CHANGE_COUNT; i++)
        if (set & (1u << i) && set != INPUT_CHANGE_ALL)
            return input_change_name((enum input_change)i);
    return "CapacityChanged";
}

/* Whether the job wants a better plan at all; if not, reports why. */
static bool is_wanted(struct pass *pass, unsigned changed)
{
    const struct job_spec *spec = &pass->snapshot->spec;
    if (spec->replan_mode == REPLAN_NEVER) {
        pass_set(pass, "PlanOutdated", "Unknown", "ModeIsNever",
                 "replanPolicy.mode is Never: no better plan is looked for");
        return false;
    }
    if (resharding_is_fixed(pass)) {
        pass_set(pass, "PlanOutdated", "False", "CheckpointNotLoadable",
                 resharding_message(pass));
        return false;
    }
    if (spec->replan_triggers != INPUT_CHANGE_ALL && !(spec->replan_triggers & changed)) {
        pass_set(pass, "PlanOutdated", "Unknown", "TriggerNotListed",
                 pass_text(pass,
                           "what changed (%s) is not among replanPolicy.triggers: no "
                           "better plan is looked for",
                           name_of(changed)));
        return false;
    }
    return true;
}

/* Monotonic time of `wall_ms`, which is at most `most_ms` away: a clock that was set back
 * does not keep the job from moving for years. */
static int64_t monotonic(const struct snapshot *snapshot, int64_t wall_ms,
                         int64_t most_ms)
{
    int64_t wait_ms = wall_ms - snapshot->wall_ms;
    return snapshot->now_ms + (wait_ms < most_ms ? wait_ms : most_ms);
}

static void say_later(struct pass *pass, const char *reason, int64_t wall_ms)
{
    char when[TIMESTAMP_SIZE];
    timestamp_format(wall_ms, when);
    pass_set(pass, "PlanOutdated", "Unknown", reason,
             pass_text(pass,
                       "%s since the plan was made; a better one is looked for at %s",
                       name_of(changes(pass)), when));
}

/* Whether it is too early (debounce, cool-down, hourly cap); if so, sets when to look
 * again. */
static bool is_too_early(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_spec *spec = &snapshot->spec;
    const struct job_memory *memory = &pass->decision->memory;
    int64_t due = memory->input_changed_ms + spec->debounce_ms;
    int64_t latest = memory->input_unsettled_ms + DEBOUNCES_AT_MOST * spec->debounce_ms;
    if (memory->input_unsettled_ms && due > latest)
        due = latest;
    if (spec->replan_mode == REPLAN_AUTOMATIC) {
        int64_t cool_wall_ms = pass->current->created_wall_ms + spec->cooldown_ms;
        int64_t cool_ms = monotonic(snapshot, cool_wall_ms, spec->cooldown_ms);
        int64_t *times;
        size_t count =
            replan_rule_read_times(pass->arena, pass->current->replan_times, &times);
        int64_t cap_wall_ms = replan_rule_allowed_ms(
            times, count, spec->max_replans_per_hour, snapshot->wall_ms);
        int64_t cap_ms = monotonic(snapshot, cap_wall_ms, 3600000);
        if (cap_wall_ms && cap_ms > cool_ms && cap_ms > snapshot->now_ms)
            say_later(pass, "HourlyLimit", cap_wall_ms);
        else if (cool_ms > snapshot->now_ms)
            say_later(pass, "CoolingDown", cool_wall_ms);
        due = cool_ms > due ? cool_ms : due;
        due = cap_wall_ms && cap_ms > due ? cap_ms : due;
    }
    if (pass_has_come(pass, due))
        return false;
    /* The reason shown in the status is at most this old. */
    int64_t deaf_ms = snapshot->now_ms + DEAF_MS;
    pass_deafen(pass, due < deaf_ms ? due : deaf_ms);
    return true;
}

/* ---- what it would cost ---- */

/* Seconds until the job's deadline; HUGE_VAL: it has none. */
static double remaining_s(const struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    int64_t start_ms;
    if (!snapshot->spec.deadline_ms || !pass_time(pass, "status.startTime", &start_ms))
        return HUGE_VAL;
    return (double)(start_ms + snapshot->spec.deadline_ms - snapshot->wall_ms) / 1000;
}

/* Seconds that the last start took, or the default estimate. */
static double restart_s(const struct snapshot *snapshot)
{
    const json_t *seconds = object_at(snapshot->job, "status.lastStart.seconds");
    return seconds ? json_number_value(seconds) : REPLAN_RULE_RESTART_S;
}

/* Since when the present plan's pods run. */
static double running_s(const struct pass *pass)
{
    int64_t since_ms, now_ms = pass->snapshot->wall_ms;
    if (!pass_runs_since(pass, &since_ms) || since_ms > now_ms)
        return 0;
    return (double)(now_ms - since_ms) / 1000;
}

static struct replan_rule_verdict judge(const struct pass *pass,
                                        const struct planning_offer *offer)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_spec *spec = &snapshot->spec;
    const struct het_prediction *predicted = &offer->plan->predicted;
    bool is_asked = spec->hook_method != HOOK_NONE;
    double most_s = (double)spec->hook_timeout_ms / 1000;
    struct replan_rule_input input = {
        /* Both use the present profile and hardware if the running plan can be priced
         * with them. */
        .current_s = predicted->from_iteration_s > 0
                         ? predicted->from_iteration_s
                         : pass->current->plan->predicted.iteration_s,
        .candidate_s = predicted->iteration_s,
        .min_improvement = (double)spec->min_improvement_percent / 100,
        .amortization_s = (double)spec->amortization_ms / 1000,
        .remaining_s = remaining_s(pass),
        .checkpoint_s = !is_asked                 ? 0
                        : offer->write_s < most_s ? offer->write_s
                                                  : most_s,
        .restart_s = restart_s(snapshot),
        .migration_s = offer->migration_s,
        .lost_work_s = replan_rule_lost_work_s(
            spec->hook_method == HOOK_HTTP, is_asked,
            (double)spec->checkpoint_interval_ms / 1000, running_s(pass)),
    };
    return replan_rule_judge(&input);
}

/* ---- what comes of it ---- */

static void record(struct pass *pass, const char *result,
                   const struct replan_rule_verdict *verdict, const char *hash,
                   const struct planning_offer *offer)
{
    const struct het_prediction *predicted = &offer->plan->predicted;
    pass->facts.decision = (struct status_decision){
        .trigger = name_of(changes(pass)),
        .result = result,
        .reason = verdict->reason,
        .candidate_hash = hash,
        .current_s = predicted->iteration_s * (1 + verdict->gain),
        .candidate_s = predicted->iteration_s,
        .gain = verdict->gain,
        .cost_s = verdict->cost_s,
        .benefit_s = verdict->benefit_s,
        .horizon_s = verdict->horizon_s,
    };
}

/* With no plan to compare with: asks the planner, or reports its answer. */
static void explain_no_better_plan(struct pass *pass)
{
    const struct planner_answer *answer = &pass->snapshot->memory.answer;
    if (!planning_is_answered(pass) || answer->kind == ANSWER_FAILED) {
        planning_ask(pass, false);
        pass->decision->bid.state = BID_ASKING;
    } else if (answer->kind == ANSWER_REFUSED) {
        planning_report_refusal(pass);
    } else if (pass->is_unloadable) {
        pass_set(pass, "PlanOutdated", "False", "CheckpointNotLoadable",
                 resharding_message(pass));
    } else if (answer->kind == ANSWER_NO_PLAN) {
        pass_set(pass, "PlanOutdated", "False", "NoBetterPlan",
                 pass_text(pass, "no other plan: %s", answer->message));
        pass->facts.decision = (struct status_decision){
            .trigger = name_of(changes(pass)),
            .result = "Rejected",
            .reason = "NoBetterPlan",
        };
    }
}

/* Whether this candidate was weighed before with this result, for the same input and
 * terms: those numbers stay, although time has passed. */
static bool was_weighed(const struct pass *pass, const char *hash, const char *result)
{
    const struct snapshot *snapshot = pass->snapshot;
    const json_t *decision = object_at(snapshot->job, "status.lastReplanDecision");
    return !strcmp(object_text(decision, "result"), result) &&
           !strcmp(object_text(decision, "candidateHash"), hash) &&
           snapshot->memory.considered_digest == snapshot->memory.answer.digest &&
           snapshot->memory.considered_terms == snapshot_digest_terms(snapshot);
}

/* Another plan may have been approved since. */
static void stay_rejected(struct pass *pass)
{
    const char *stale = candidate_stale_approval(pass, NULL);
    const char *reason = object_text(pass_present(pass, "PlanOutdated"), "reason");
    if (*stale && *reason)
        pass_set(pass, "PlanOutdated", "False", reason,
                 pass_text(pass, "no better plan is known%s", stale));
}

static void reject(struct pass *pass, const struct replan_rule_verdict *verdict,
                   const char *hash, const struct planning_offer *offer,
                   const char *message)
{
    record(pass, "Rejected", verdict, hash, offer);
    pass_set(pass, "PlanOutdated", "False", verdict->reason,
             pass_text(pass, "%s%s", message, candidate_stale_approval(pass, NULL)));
    candidate_drop(pass);
    if (status_decision_is_new(pass->snapshot->job, &pass->facts.decision))
        pass_event(pass, PHASE_EVENTS, false, "ReplanSuppressed", "Plan", message);
}

/* Bids for the GPUs that `plan` takes. True if other jobs come first; reports which. */
static bool is_outbid(struct pass *pass, const struct het_plan *plan, double gain,
                      const char *message)
{
    const struct snapshot *snapshot = pass->snapshot;
    struct bid bid = { BID_OPEN,
                       victims_bid(pass->arena, pass->current->plan, plan, gain) };
    bool wins = victims_wins(snapshot, bid.value);
    if (!wins || snapshot->blocked_by)
        pass->decision->bid = bid;
    if (wins)
        return false;
    pass_set(
        pass, "PlanOutdated", "True", "Outbid",
        pass_text(pass, "%s; job %s is served first", message,
                  snapshot->rival_asking ? snapshot->rival_asking : snapshot->rival));
    return true;
}

/* Weighs the offered plan against the running one. */
static void weigh(struct pass *pass, const struct planning_offer *offer)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct snapshot_plan *current = pass->current;
    const char *hash = het_plan_json_hash(pass->arena, offer->plan);
    if (was_weighed(pass, hash, "Rejected")) {
        stay_rejected(pass);
        return;
    }
    struct replan_rule_verdict verdict = judge(pass, offer);
    const char *message = pass_text(
        pass,
        "%s would be %+.1f %% in throughput: %.0f s gained in %.0f s, for a restart of "
        "%.0f s; the threshold is %" PRId64 " %%",
        het_render_summary(pass->arena, offer->plan), verdict.gain * 100,
        verdict.benefit_s, verdict.horizon_s, verdict.cost_s,
        snapshot->spec.min_improvement_percent);
    const char *why =
        pass_text(pass, "a plan with %+.1f %% in throughput", verdict.gain * 100);
    pass->decision->memory.considered_terms = snapshot_digest_terms(snapshot);
    if (!verdict.is_worth_it) {
        reject(pass, &verdict, hash, offer, message);
    } else if (!candidate_may_follow(pass, offer->plan, why)) {
        if (!was_weighed(pass, hash, "Reported"))
            record(pass, "Reported", &verdict, hash, offer);
    } else if (!is_outbid(pass, offer->plan, verdict.gain, why) &&
               !pass_is_held_up(pass)) {
        record(pass, "Accepted", &verdict, hash, offer);
        pass->is_voluntary = true;
        generation_commit(pass, offer->plan, snapshot->memory.answer.digest, "BetterPlan",
                          current->restarts, current->replans + 1, "ReplanTriggered",
                          message);
    }
}

/* The owner has approved the candidate. True if it is carried out. */
static bool take_approved(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct snapshot_plan *current = pass->current;
    if (snapshot->spec.replan_mode != REPLAN_MANUAL)
        return false;
    const struct het_plan *plan = candidate_find_approved(pass);
    if (!plan || !het_plan_compare(plan, current->plan) || pass_is_held_up(pass))
        return false;
    /* An answer for the present input needs no further look. */
    const struct planner_answer *answer = &snapshot->memory.answer;
    uint64_t digest =
        answer->kind == ANSWER_PLAN && planning_is_answered(pass) ? answer->digest : 0;
    return generation_commit(
        pass, plan, digest, "Approved", current->restarts, current->replans + 1,
        "ReplanTriggered",
        pass_text(pass, "%s was approved", het_render_summary(pass->arena, plan)));
}

static void say_up_to_date(struct pass *pass, const char *message)
{
    candidate_drop(pass);
    pass_set(pass, "PlanOutdated", "False", "UpToDate",
             pass_text(pass, "%s%s", message, candidate_stale_approval(pass, NULL)));
}

void replan_consider(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct snapshot_plan *current = pass->current;
    if (!current->plan || take_approved(pass))
        return;
    if (snapshot->input_digest == current->input_digest) {
        say_up_to_date(pass, "the plan is for the GPUs there are");
        return;
    }
    if (!pass->can_plan || !is_wanted(pass, changes(pass)) || is_too_early(pass))
        return;
    if (snapshot->memory.answer.is_cut && planning_is_answered(pass)) {
        planning_ask(pass, false); /* now there is time */
        pass->decision->bid.state = BID_ASKING;
        return;
    }
    struct planning_offer offers[2];
    size_t count = planning_offers(pass, offers);
    if (!count) {
        explain_no_better_plan(pass);
        return;
    }
    pass->decision->memory.considered_digest = snapshot->memory.answer.digest;
    size_t chosen = 0; /* the present plan is nothing new, but one better than it is */
    if (!het_plan_compare(offers[0].plan, current->plan) && count > 1)
        chosen = 1;
    if (!het_plan_compare(offers[chosen].plan, current->plan))
        say_up_to_date(pass, "planning again gives the same plan");
    else
        weigh(pass, &offers[chosen]);
}
