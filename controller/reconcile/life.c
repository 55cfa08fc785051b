#include "controller/reconcile/life.h"

#include "controller/reconcile/generation.h"
#include "controller/status.h"

#include <inttypes.h>

void life_fail(struct pass *pass, const struct snapshot_pod *pod)
{
    generation_stop(pass, "RestartLimitReached");
    const char *message = pass_text(
        pass, "pod %s failed (exit code %" PRId64 ") after %" PRId64 " restarts",
        pod->name, pod->exit_code, pass->current->restarts);
    pass_set(pass, "Failed", "True", "RestartLimitReached", message);
    pass_set(pass, "Running", "False", "Failed", message);
    pass->decision->summary = message;
}

void life_complete(struct pass *pass)
{
    pass->facts.holds_gpus = false;
    const char *message =
        pass_text(pass, "all %zu pods of generation %" PRId64 " succeeded",
                  pass->current->rank_node_count, pass->current->generation);
    pass_set(pass, "Complete", "True", "AllPodsSucceeded", message);
    pass_set(pass, "Running", "False", "Complete", message);
    pass->decision->summary = message;
}

/* A finished job only ends what is left of it. */
void life_clean_finished(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    for (size_t i = 0; i < snapshot->pod_count; i++)
        if (!snapshot->pods[i].is_gone)
            generation_delete_pod(pass, &snapshot->pods[i]);
    json_t *status = status_recount(snapshot);
    if (status_differs(snapshot->job, status))
        pass_status(pass, PHASE_EVENTS, status);
    else
        json_decref(status);
    pass->decision->summary = "finished";
}
