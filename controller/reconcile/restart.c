#include "controller/reconcile/restart.h"

#include "controller/reconcile/generation.h"
#include "controller/reconcile/life.h"
#include "controller/reconcile/places.h"
#include "controller/reconcile/planning.h"
#include "controller/timestamp.h"

#include <inttypes.h>
#include <string.h>

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

/* Replaces a generation that cannot go on: with the same plan if that still fits, else
 * with a new one. */
void restart_generation(struct pass *pass, const char *trigger, const char *message,
                        int64_t restarts)
{
    const struct snapshot_plan *current = pass->current;
    pass_set(pass, "Running", "False", trigger, message);
    pass_set(pass, "Placed", "False", trigger, message);
    bool fits = current->plan && places_fit(pass, current->plan);
    if (fits && *current->retired && pass->snapshot->blocked_by) {
        /* A retired plan holds no GPUs: to take them again is to take them anew. */
        pass->decision->is_unanswered = true;
        planning_wait_for_planner(
            pass, pass_text(pass, "job %s is planned first", pass->snapshot->blocked_by));
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
    if (pass->snapshot->spec.replan_mode != REPLAN_AUTOMATIC) {
        generation_stop(pass, trigger);
        pass_set(pass, "PlanOutdated", "True", trigger, message);
        planning_wait(pass, "PlanLost",
                      pass_text(pass,
                                "%s, and replanPolicy.mode does not let us plan again",
                                message));
        return;
    }
    if (!planning_seek(pass, trigger, restarts, current->replans + 1, "ReplanTriggered"))
        generation_stop(pass, trigger);
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
        pass_requeue_at(pass, snapshot->now_ms + wait);
        generation_stop(pass, trigger);
        pass_set(pass, "Placed", "False", trigger, message);
        pass_set(pass, "Running", "False", trigger, message);
        pass->decision->summary = pass_text(pass, "%s; backing off", message);
        return;
    }
    restart_generation(pass, trigger, message, pass->current->restarts);
}

/* A pod failed: again after the back-off, until the limit. Returns true if that is the
 * case and the pass is over. */
bool restart_broken(struct pass *pass)
{
    const char *trigger = NULL;
    const struct snapshot_pod *pod = broken_pod(pass, &trigger);
    const struct snapshot *snapshot = pass->snapshot;
    const struct snapshot_plan *current = pass->current;
    /* Pods that went with their node are the node's story: handle_loss tells it. */
    bool nodes_explain_it = pass->lost_trigger && !pass->lost_pods_still_run;
    if (!pod) {
        size_t missing = pass_was_placed(pass) ? pass_missing_pods(pass) : 0;
        if (!missing || nodes_explain_it)
            return false;
        restart_disrupted(pass, "PodLost",
                          pass_text(pass, "%zu pods of generation %" PRId64 " are gone",
                                    missing, current->generation));
        return true;
    }
    if (!strcmp(trigger, "PodDisrupted")) {
        if (nodes_explain_it)
            return false;
        restart_disrupted(pass, trigger,
                          pass_text(pass, "pod %s was disrupted", pod->name));
        return true;
    }
    if (current->restarts >= snapshot->spec.max_restarts) {
        life_fail(pass, pod);
        return true;
    }
    const char *message = pass_text(pass, "pod %s failed (exit code %" PRId64 ")",
                                    pod->name, pod->exit_code);
    int64_t wait = ended_wall_ms(pass, pod) + restart_backoff_ms(pass) -
                   snapshot->wall_ms;
    if (wait > 0) {
        pass_requeue_at(pass, snapshot->now_ms + wait);
        generation_stop(pass, "RestartBackOff");
        const char *next =
            pass_text(pass, "%s; restart %" PRId64 " of %" PRId64 " follows", message,
                      current->restarts + 1, snapshot->spec.max_restarts);
        pass_set(pass, "Placed", "False", "RestartBackOff", next);
        pass_set(pass, "Running", "False", "RestartBackOff", next);
        pass->decision->summary = pass_text(pass, "%s; backing off", message);
        return true;
    }
    restart_generation(pass, trigger, message, current->restarts + 1);
    return true;
}

/* The plan cannot run as it is, and its pods have not failed (yet). */
void restart_lost(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_spec *spec = &snapshot->spec;
    pass_set(pass, "PlanOutdated", "True", pass->lost_trigger, pass->lost_message);
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
        pass_requeue_at(pass, due);
        pass->decision->is_unanswered = true;
        pass->decision->summary = pass_text(pass, "%s; settling", pass->lost_message);
        return;
    }
    if (!pass->lost_pods_still_run) {
        restart_generation(pass, pass->lost_trigger, pass->lost_message,
                           pass->current->restarts);
        return;
    }
    /* The pods run on; they are moved if there is a place to move to. */
    if (spec->replan_mode != REPLAN_AUTOMATIC)
        return;
    struct status_facts before = pass->facts;
    if (!planning_seek(pass, pass->lost_trigger, pass->current->restarts,
                       pass->current->replans + 1, "ReplanTriggered")) {
        pass->facts = before;
        pass->decision->is_unanswered = false; /* it has GPUs; nobody waits for it */
    }
}

/* A retired generation never starts again; what it was retired for has its own story
 * (back-off of a failed pod), all else gets a new generation. */
void restart_retired(struct pass *pass)
{
    const char *trigger = pass->current->retired;
    restart_generation(pass, trigger,
                       pass_text(pass, "generation %" PRId64 " was stopped (%s)",
                                 pass->current->generation, trigger),
                       pass->current->restarts);
}
