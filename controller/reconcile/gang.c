#include "controller/reconcile/gang.h"

#include "controller/reconcile/generation.h"

#include <inttypes.h>
#include <string.h>

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
    const char *wanted = pass_text(pass, "%" PRId64, pass->current->generation);
    if (generation && !strcmp(generation, wanted))
        return;
    json_t *service = desired_service(snapshot, pass->current->generation);
    if (!snapshot
             ->service) { /* created, so that one of somebody else is never taken over */
        pass_create(pass, PHASE_SERVICE, &kube_service, service);
        return;
    }
    /* Never one that somebody made under its name meanwhile. */
    json_object_set_new(json_object_get(service, "metadata"), "uid",
                        json_string(kube_uid(snapshot->service)));
    struct action *action = pass_add(pass, ACTION_APPLY, PHASE_SERVICE);
    action->resource = &kube_service;
    action->name = snapshot->spec.name;
    action->object = service;
}

/* Creates what is missing; false if the template cannot be made into pods. */
static bool create_pods(struct pass *pass)
{
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        if (pass->pods[i] || pass->has_succeeded[i])
            continue;
        json_t *pod;
        struct het_error err;
        if (desired_pod(pass->snapshot, pass->current, i, &pod, &err) < 0) {
            pass_set(pass, "Accepted", "False", "InvalidSpec",
                     pass_text(pass, "%s", err.message));
            return false;
        }
        pass_create(pass, PHASE_PODS, &kube_pod, pod);
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
            return pass_text(pass, "pod %s: %s", pod->name, message);
    }
    return pass_text(pass, "%zu of %zu pods are placed", placed,
                     pass->current->rank_node_count);
}

void gang_report(struct pass *pass)
{
    size_t total = pass->current->rank_node_count;
    size_t placed = pass_count_pods(pass, pod_is_placed);
    size_t ready = pass_count_pods(pass, pod_is_ready);
    if (placed == total)
        pass_set(pass, "Placed", "True", "AllPodsScheduled",
                 pass_text(pass, "%zu pods are on their nodes", total));
    else
        pass_set(pass, "Placed", "False", "PodsPending", pending_message(pass, placed));
    if (ready == total)
        pass_set(pass, "Running", "True", "AllPodsReady",
                 pass_text(pass, "%zu pods run", total));
    else
        pass_set(pass, "Running", "False", "PodsNotReady",
                 pass_text(pass, "%zu of %zu pods are ready", ready, total));
    pass->decision->summary = pass_text(pass,
                                        "generation %" PRId64 ": %zu of %zu pods ready",
                                        pass->current->generation, ready, total);
}

bool gang_form(struct pass *pass)
{
    if (service_is_foreign(pass)) {
        pass_set(pass, "Placed", "False", "NameConflict",
                 pass_text(pass,
                           "Service %s/%s belongs to somebody else; rename it or the job",
                           pass->snapshot->spec.ns, pass->snapshot->spec.name));
        pass->decision->summary = "name conflict";
        return false;
    }
    size_t older = generation_fence_older(pass, pass->current->generation);
    if (older) {
        pass_set(pass, "Placed", "False", "WaitingForOldPods",
                 pass_text(pass, "%zu pods of older generations are still there", older));
        pass_set(pass, "Running", "False", "WaitingForOldPods", "older pods end first");
        pass->decision->summary = pass_text(pass, "waiting for %zu old pods", older);
        return false;
    }
    keep_service(pass);
    if (!create_pods(pass))
        return false;
    gang_report(pass);
    return !pass_missing_pods(pass);
}
