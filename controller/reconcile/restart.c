#include "controller/reconcile/restart.h"

#include "controller/base/object.h"
#include "controller/base/timestamp.h"
#include "controller/job/failure_policy.h"
#include "controller/placement/drain.h"
#include "controller/placement/fit.h"
#include "controller/placement/generation.h"
#include "controller/placement/planning.h"
#include "controller/placement/victims.h"
#include "controller/reconcile/heartbeat.h"
#include "controller/reconcile/lifecycle.h"

#include <inttypes.h>
#include <string.h>

/* Pause between two generations whose pods the API server refuses, doubled for each one
 * kept. */
#define REFUSED_PAUSE_MS ((int64_t)5000)

/* ---- what broke a generation ---- */

/* When the container of a failed pod ended; now, if the kubelet did not report it. */
static int64_t ended_wall_ms(const struct pass *pass, const struct snapshot_pod *pod)
{
    const json_t *list = object_at(pod->object, "status.containerStatuses");
    int64_t last = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        int64_t ended_ms;
        if (!timestamp_parse(
                object_text(json_array_get(list, i), "state.terminated.finishedAt"),
                &ended_ms) &&
            ended_ms > last)
            last = ended_ms;
    }
    return last && last < pass->snapshot->wall_ms ? last : pass->snapshot->wall_ms;
}

/* When a disruption or deletion from outside began to end the pod. INT64_MAX: none did;
 * INT64_MIN: at an unknown time. */
static int64_t disturbed_wall_ms(const struct snapshot_pod *pod)
{
    int64_t disrupted_ms = INT64_MAX, deleted_ms = INT64_MAX;
    if (pod->is_disrupted &&
        timestamp_parse(
            object_text(object_find_condition(pod->object, "DisruptionTarget"),
                        "lastTransitionTime"),
            &disrupted_ms) < 0)
        disrupted_ms = INT64_MIN;
    if (pod->is_deleting &&
        timestamp_parse(object_text(pod->object, "metadata.deletionTimestamp"),
                        &deleted_ms) == 0)
        deleted_ms -=
            1000 * object_integer(pod->object, "metadata.deletionGracePeriodSeconds", 0);
    return disrupted_ms < deleted_ms ? disrupted_ms : deleted_ms;
}

/* What is wrong with the pods of the current generation; NULL: nothing of that kind. */
struct breakage {
    const struct snapshot_pod *broken;    /* the first by index */
    const struct snapshot_pod *failed;    /* failed by itself */
    const struct snapshot_pod *disturbed; /* first of those ended from outside */
    int64_t disturbed_wall_ms;
    /* The first of failurePolicy.rules that matches one of them, which, and why. */
    const json_t *rule;
    size_t rule_index;
    const struct snapshot_pod *ruled;
    const char *why;
};

static bool is_broken(const struct snapshot_pod *pod)
{
    return pod && pod->phase != POD_SUCCEEDED &&
           (pod->phase == POD_FAILED || pod->is_deleting);
}

static bool ended_before(const struct pass *pass, const struct snapshot_pod *pod,
                         int64_t wall_ms)
{
    return pod->phase == POD_FAILED && ended_wall_ms(pass, pod) < wall_ms;
}

static void find_disturbed(const struct pass *pass, struct breakage *found)
{
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        const struct snapshot_pod *pod = pass->pods[i];
        if (!is_broken(pod))
            continue;
        int64_t disturbed_ms = disturbed_wall_ms(pod);
        if (!ended_before(pass, pod, disturbed_ms) &&
            (!found->disturbed || disturbed_ms < found->disturbed_wall_ms)) {
            found->disturbed = pod;
            found->disturbed_wall_ms = disturbed_ms;
        }
    }
}

/* Ranks fail when they lose a peer. So a failure is the program's own only if it came
 * before any disturbance, with all nodes healthy. */
static bool is_own_failure(const struct pass *pass, const struct breakage *found,
                           const struct snapshot_pod *pod)
{
    return !pass->is_suspect && (!pass->lost_trigger || pass->lost_pods_still_run) &&
           ended_before(pass, pod, found->disturbed_wall_ms);
}

/* Whether `rule` applies to the broken `pod`: the conditions of a pod that we deleted, or
 * that went with its node, do not indicate a failure. */
static bool may_ask(const struct pass *pass, const struct breakage *found,
                    const json_t *rule, const struct snapshot_pod *pod)
{
    if (failure_policy_asks_exit_code(rule))
        return is_own_failure(pass, found, pod);
    return !*pass->current->retired && (!pass->lost_trigger || pass->lost_pods_still_run);
}

static void find_rule(const struct pass *pass, struct breakage *found)
{
    const json_t *rules = pass->snapshot->spec.failure_rules;
    for (size_t i = 0; i < json_array_size(rules) && !found->why; i++) {
        found->rule = json_array_get(rules, i);
        found->rule_index = i;
        for (size_t k = 0; k < pass->current->rank_node_count && !found->why; k++) {
            found->ruled = pass->pods[k];
            if (is_broken(found->ruled) &&
                may_ask(pass, found, found->rule, found->ruled))
                found->why =
                    failure_policy_match(pass->arena, found->rule, found->ruled->object);
        }
    }
}

static struct breakage find_breakage(const struct pass *pass)
{
    struct breakage found = { .disturbed_wall_ms = INT64_MAX };
    find_disturbed(pass, &found);
    for (size_t i = 0; i < pass->current->rank_node_count && !found.failed; i++) {
        if (!is_broken(pass->pods[i]))
            continue;
        if (!found.broken)
            found.broken = pass->pods[i];
        if (is_own_failure(pass, &found, pass->pods[i]))
            found.failed = pass->pods[i];
    }
    find_rule(pass, &found);
    return found;
}

/* ---- starting again ---- */

/* Replaces a generation that cannot go on: with the same plan if that still fits, else
 * with a new one. */
void restart_generation(struct pass *pass, const char *trigger, const char *message,
                        int64_t restarts)
{
    const struct snapshot_plan *current = pass->current;
    pass_set_not_placed(pass, trigger, message);
    bool fits = current->plan && fit_holds(pass, current->plan);
    if (fits && *current->retired && pass_is_held_up(pass)) {
        /* A retired plan holds no GPUs: restarting it has to take them again. */
        pass->decision->is_unanswered = true;
        planning_wait_for_turn(pass);
        generation_stop(pass, trigger);
        return;
    }
    if (fits) {
        if (!generation_commit(
                pass, current->plan, current->input_digest, trigger, restarts,
                current->replans, "Restarting",
                pass_text(pass, "%s; the same plan starts again", message)))
            generation_stop(pass, trigger);
        return;
    }
    if (pass->snapshot->spec.replan_mode == REPLAN_NEVER) {
        generation_stop(pass, trigger);
        generation_fence_older(pass,
                               current->generation); /* no other job will take them */
        pass_set(pass, "PlanOutdated", "True", trigger, message);
        planning_wait(pass, "PlanLost",
                      pass_text(pass,
                                "%s, and replanPolicy.mode does not let us plan again",
                                message));
        return;
    }
    if (!planning_seek(pass, trigger, restarts, current->replans + 1,
                       "ReplanTriggered")) {
        generation_stop(pass, trigger);
        generation_fence_older(pass, current->generation);
    }
}

/* Restarts caused by the infrastructure are not counted, but repeated evictions must not
 * make a generation a second: each starts at least backoffSeconds after the previous
 * one. */
static void restart_disrupted(struct pass *pass, const char *trigger, const char *message)
{
    const struct snapshot *snapshot = pass->snapshot;
    int64_t wait = pass->current->created_wall_ms + snapshot->spec.backoff_ms -
                   snapshot->wall_ms;
    if (wait > 0 && wait <= snapshot->spec.backoff_ms) {
        pass_requeue_at(pass, snapshot->now_ms + wait);
        generation_stop(pass, trigger);
        pass_set_not_placed(pass, trigger, message);
        pass->decision->summary = pass_text(pass, "%s; backing off", message);
        return;
    }
    restart_generation(pass, trigger, message, pass->current->restarts);
}

/* backoffSeconds doubled for each of `restarts`, at most backoffMaxSeconds. */
static int64_t restart_backoff_ms(const struct pass *pass, int64_t restarts)
{
    const struct job_spec *spec = &pass->snapshot->spec;
    return pass_doubled_ms(spec->backoff_ms, restarts, spec->backoff_max_ms);
}

/* ---- after a failure that counts ---- */

/* Whether the current generation ran undisturbed for resetAfterSeconds until `wall_ms`.
 */
static bool ran_well(const struct pass *pass, int64_t wall_ms)
{
    int64_t since_ms;
    return pass_was_placed(pass) && pass_runs_since(pass, &since_ms) &&
           wall_ms - since_ms >= pass->snapshot->spec.reset_after_ms;
}

static void say_listening(struct pass *pass, const char *message)
{
    pass_set_not_placed(
        pass, "RestartBackOff",
        pass_text(pass, "%s; whether its nodes still speak is seen", message));
    pass->decision->summary = pass_text(pass, "%s; listening for its nodes", message);
}

/* After its end a failed generation is listened for so long, whoever decides. */
#define LISTENING_MAX_MS ((int64_t)60000)

/* `pod` failed (NULL: it is gone by now), as `message` says: the generation restarts
 * after the back-off, up to the limit. The ConfigMap records the failure as soon as it is
 * seen, as pods may go. */
static void restart_failed(struct pass *pass, const struct snapshot_pod *pod,
                           const char *message)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct snapshot_plan *current = pass->current;
    int64_t ended_ms = pod ? ended_wall_ms(pass, pod) : current->retired_wall_ms;
    if (*current->retired && current->retired_wall_ms < ended_ms)
        ended_ms = current->retired_wall_ms;
    int64_t restarts = current->restarts;
    if (!*current->retired && ran_well(pass, ended_ms))
        restarts = 0;
    /* Nodes that speak now say nothing of a failure that is long past. */
    bool is_past = *current->retired &&
                   pass_has_come_wall(pass, current->retired_wall_ms + LISTENING_MAX_MS);
    if (!is_past && heartbeat_listen(pass)) {
        generation_retire(pass, "RestartBackOff", restarts);
        generation_delete_pods(pass);
        say_listening(pass, message);
        return;
    }
    if (restarts >= snapshot->spec.max_restarts) {
        lifecycle_fail(
            pass, "RestartLimitReached",
            pass_text(pass, "%s after %" PRId64 " restarts", message, restarts));
        return;
    }
    if (pass_has_come_wall(pass, ended_ms + restart_backoff_ms(pass, restarts))) {
        restart_generation(pass, "PodFailed", message, restarts + 1);
        return;
    }
    generation_retire(pass, "RestartBackOff", restarts);
    generation_delete_pods(pass);
    const char *next = pass_text(pass, "%s; restart %" PRId64 " of %" PRId64 " follows",
                                 message, restarts + 1, snapshot->spec.max_restarts);
    pass_set_not_placed(pass, "RestartBackOff", next);
    pass->decision->summary = pass_text(pass, "%s; backing off", message);
}

/* Whether missing pods were looked for in the server's storage; if not, has them read,
 * and the next pass sees the result. */
static bool was_searched(struct pass *pass)
{
    const struct job_spec *spec = &pass->snapshot->spec;
    struct job_memory *memory = &pass->decision->memory;
    if (pass_is_fresh(pass, &memory->searched_generation, &memory->searched_ms))
        return true;
    pass_refresh_pods(pass, spec->ns,
                      het_arena_printf(pass->arena,
                                       "labelSelector=heterotrain.io%%2Fjob-uid%%3D%s",
                                       spec->uid));
    pass->decision->summary = "pods are missing; they are read anew";
    return false;
}

/* Follows the first rule that matches. */
static void follow_rule(struct pass *pass, const struct breakage *found)
{
    enum failure_action action = failure_policy_action(found->rule);
    const char *message = pass_text(pass, "pod %s: %s (failurePolicy.rules[%zu]: %s)",
                                    found->ruled->name, found->why, found->rule_index,
                                    object_text(found->rule, "action"));
    if (action == FAILURE_COUNT) {
        restart_failed(pass, found->ruled, message);
        return;
    }
    if (failure_policy_asks_exit_code(found->rule) && heartbeat_listen(pass)) {
        say_listening(pass, message);
    } else if (action == FAILURE_IGNORE)
        restart_disrupted(pass, "PodFailureIgnored", message);
    else
        lifecycle_fail(pass, "PodFailurePolicy", message);
}

bool restart_broken(struct pass *pass)
{
    bool is_backing_off = pass_was_retired_for(pass, "RestartBackOff");
    if (*pass->current->retired && !is_backing_off)
        return false; /* its pods end because they were deleted */
    struct breakage found = find_breakage(pass);
    const char *message = found.failed
                              ? pass_text(pass, "pod %s failed (exit code %" PRId64 ")",
                                          found.failed->name, found.failed->exit_code)
                              : pass_text(pass, "a pod of revision %" PRId64 " failed",
                                          pass->current->generation);
    const char *silent = heartbeat_silent(pass);
    if (silent && (found.broken || is_backing_off)) {
        restart_generation(
            pass, "NodeNotReady",
            pass_text(pass, "%s, and node %s does not speak", message, silent),
            pass->current->restarts);
        return true;
    }
    /* A counted failure stays counted; it may still turn out to be final. */
    if (found.why &&
        (!is_backing_off || failure_policy_action(found.rule) == FAILURE_FAIL_JOB)) {
        follow_rule(pass, &found);
        return true;
    }
    if (is_backing_off || found.failed) {
        restart_failed(pass, found.failed, message);
        return true;
    }
    /* restart_lost handles pods that went with their node. */
    if (pass->lost_trigger && !pass->lost_pods_still_run)
        return false;
    const struct snapshot_pod *pod = found.disturbed ? found.disturbed : found.broken;
    if (pod) {
        restart_disrupted(pass, "PodDisrupted",
                          pass_text(pass, "pod %s was disrupted", pod->name));
        return true;
    }
    size_t missing = pass_was_placed(pass) ? pass_missing_pods(pass) : 0;
    if (missing && was_searched(pass))
        restart_disrupted(pass, "PodLost",
                          pass_text(pass, "%zu pods of revision %" PRId64 " are gone",
                                    missing, pass->current->generation));
    return missing > 0;
}

/* What made a node refuse new pods, as a set of changes; all of them if triggers cannot
 * exclude it. */
static unsigned lost_change(const struct pass *pass)
{
    struct input_state after = { 0 };
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        const struct capacity_node *node =
            snapshot_find_node(pass->snapshot, pass->current->rank_nodes[i].node_name);
        if (node && node->unusable)
            input_change_add_node(&after, node->name, node->unusable, 0, 0);
    }
    if (!strcmp(pass->lost_trigger, "GPUUnhealthy"))
        return 1u << INPUT_CHANGE_GPU_UNHEALTHY;
    if (strcmp(pass->lost_trigger, "NodeUnusable") || !(after.cordoned + after.tainted))
        return INPUT_CHANGE_ALL;
    return (after.cordoned ? 1u << INPUT_CHANGE_NODE_CORDONED : 0) |
           (after.tainted ? 1u << INPUT_CHANGE_NODE_TAINTED : 0);
}

/* Handles a plan that cannot run as it is, although its pods have not failed (yet). */
void restart_lost(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_spec *spec = &snapshot->spec;
    pass_set(pass, "PlanOutdated", "True", pass->lost_trigger, pass->lost_message);
    struct job_memory *memory = &pass->decision->memory;
    if (!memory->lost_since_ms)
        memory->lost_since_ms = snapshot->now_ms;
    int64_t since_ms = memory->input_changed_ms < memory->lost_since_ms
                           ? memory->input_changed_ms
                           : memory->lost_since_ms;
    if (!pass_has_come(pass, since_ms + planning_quiet_ms(spec))) {
        pass->decision->is_unanswered = true;
        pass->decision->summary = pass_text(pass, "%s; settling", pass->lost_message);
        return;
    }
    if (!pass->lost_pods_still_run) {
        restart_generation(pass, pass->lost_trigger, pass->lost_message,
                           pass->current->restarts);
        return;
    }
    /* The pods keep running; they move if there is another place. */
    struct status_facts before = pass->facts;
    bool may_move = spec->replan_mode != REPLAN_NEVER &&
                    (spec->replan_triggers & lost_change(pass));
    if (may_move && planning_seek(pass, pass->lost_trigger, pass->current->restarts,
                                  pass->current->replans + 1, "ReplanTriggered"))
        return;
    before.candidate = pass->facts.candidate;
    pass->facts = before;
    if (pass->approval_message)
        pass_set(pass, "PlanOutdated", "True", pass->approval_reason,
                 pass->approval_message);
    if (victims_must_yield(snapshot) && !strcmp(pass->lost_trigger, "Preempted") &&
        !(may_move && pass->decision->is_unanswered)) {
        generation_stop(pass, pass->lost_trigger);
        pass->lost_pods_still_run = false;
        planning_wait(pass, pass->lost_trigger, pass->lost_message);
    }
    pass->decision->is_unanswered = false; /* it has GPUs; no job waits for it */
    /* The pods die with the node if there is no other place. */
    if (pass->is_leaving && pass->lost_pods_still_run &&
        (spec->replan_mode == REPLAN_NEVER || planning_is_answered(pass)))
        drain_before_loss(pass);
}

/* The user changed the input of the pods: makes new ones for the same plan. While the
 * plan does not fit as it is, the running pods continue. */
bool restart_changed(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct snapshot_plan *current = pass->current;
    if (!current->pod_digest || current->pod_digest == snapshot->pod_digest ||
        !fit_holds(pass, current->plan))
        return false;
    return generation_commit(pass, current->plan, current->input_digest, "PodsChanged",
                             current->restarts, current->replans, "Restarting",
                             "what the spec says about pods has changed; the same plan "
                             "starts again with it");
}

/* The API server refused the pods of the newest generations, whichever replica made them:
 * the pause doubles with each, even if the controller that remembers them has died. True
 * if it is not over and the pods are still the same. */
static bool is_refused_again_too_soon(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct snapshot_plan *current = pass->current;
    size_t refused = 0;
    while (refused < snapshot->plan_count && refused < PLANS_KEPT &&
           !strcmp(snapshot->plans[refused].retired, "PodsRefused"))
        refused++;
    if (!refused || current->pod_digest != snapshot->pod_digest)
        return false;
    int64_t left = current->retired_wall_ms + (REFUSED_PAUSE_MS << (refused - 1)) -
                   snapshot->wall_ms;
    if (left <= 0 || left > REFUSED_PAUSE_MS << PLANS_KEPT)
        return false;
    pass_requeue_at(pass, snapshot->now_ms + left);
    pass->facts.holds_gpus = false;
    pass->decision->summary = "the API server refused its pods; backing off";
    return true;
}

/* Whether the job had failed, but the replica that stopped it did not report it. */
static bool had_failed(struct pass *pass)
{
    static const char *const final[] = { "RestartLimitReached", "PodFailurePolicy",
                                         "DeadlineExceeded" };
    for (size_t i = 0; i < sizeof final / sizeof *final; i++)
        if (pass_was_retired_for(pass, final[i])) {
            lifecycle_fail(pass, final[i],
                           pass_text(pass, "revision %" PRId64 " was stopped for good",
                                     pass->current->generation));
            return true;
        }
    return false;
}

void restart_retired(struct pass *pass)
{
    if (had_failed(pass) || is_refused_again_too_soon(pass))
        return;
    const char *trigger = pass->current->retired;
    const char *message = pass_text(pass, "revision %" PRId64 " was stopped (%s)",
                                    pass->current->generation, trigger);
    if (pass_was_retired_for(pass, "PodDisrupted") ||
        pass_was_retired_for(pass, "PodFailureIgnored") ||
        pass_was_retired_for(pass, "PodLost"))
        restart_disrupted(pass, trigger, message);
    else
        restart_generation(pass, trigger, message, pass->current->restarts);
}
