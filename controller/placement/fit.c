#include "controller/placement/fit.h"

#include "controller/decision/children.h"
#include "controller/placement/victims.h"

#include <inttypes.h>
#include <string.h>

static void lose(struct pass *pass, const char *trigger, bool pods_still_run,
                 const char *message)
{
    /* A cause that stops pods outweighs one that only refuses new ones. */
    if (pass->lost_trigger && (!pass->lost_pods_still_run || pods_still_run))
        return;
    pass->lost_trigger = trigger;
    pass->lost_message = message;
    pass->lost_pods_still_run = pods_still_run;
}

/* How long after the notice a machine goes, where its cloud promises a time: two minutes
 * (EC2, "Spot Instance interruption notices"), 30 s (Compute Engine, "Preemption
 * process").
 */
static const struct {
    const char *key;
    int64_t ms;
} spot_notices[] = {
    { "aws-node-termination-handler/spot-itn", 120000 },
    { "cloud.google.com/impending-node-termination", 30000 },
};

bool fit_is_silent(const struct capacity_node *node)
{
    return node->unusable && !strcmp(node->unusable, "NotReady");
}

int64_t fit_leaving_at_ms(const struct capacity_node *node)
{
    for (size_t i = 0; i < sizeof spot_notices / sizeof *spot_notices; i++)
        if (node->leaving_by && !strcmp(node->leaving_by, spot_notices[i].key))
            return node->leaving_since_ms + spot_notices[i].ms;
    return INT64_MAX;
}

static bool is_bound(const struct pass *pass, size_t index)
{
    const struct snapshot_pod *pod = pass->pods[index];
    return pod && pod->is_scheduled && pod->phase == POD_RUNNING;
}

/* Whether the job yields to a claim on its GPUs: always to one of higher priority, and to
 * one of the same priority when its own rules allow a move. */
static bool is_claim_met(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    if (!snapshot->claimed_by || victims_must_yield(snapshot))
        return snapshot->claimed_by != NULL;
    return pass_has_come_wall(pass, pass->current->created_wall_ms +
                                        snapshot->spec.cooldown_ms);
}

/* Whether one place of the current plan can still be used. An unusable node is tolerated
 * for nodeFailureGraceSeconds. */
static void check_place(struct pass *pass, size_t index)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct het_rank_node *place = &pass->current->rank_nodes[index];
    const struct capacity_node *node = snapshot_find_node(snapshot, place->node_name);
    if (pass->has_succeeded[index])
        return; /* it no longer needs its place */
    if (!node) {
        lose(pass, "NodeLost", false,
             pass_text(pass, "node %s is gone", place->node_name));
        return;
    }
    bool is_silent = fit_is_silent(node);
    if (node->leaving_by && !is_silent) {
        bool is_spot = fit_leaving_at_ms(node) != INT64_MAX;
        pass->is_leaving = true;
        lose(pass, is_spot ? "SpotNotice" : "NodeDraining", is_bound(pass, index),
             pass_text(pass, "node %s will go (%s)", place->node_name, node->leaving_by));
        return;
    }
    if (node->unusable) {
        if (!pass_has_come(pass, node->unusable_since_ms +
                                     snapshot->spec.node_failure_grace_ms)) {
            pass->is_suspect = true;
            return;
        }
        lose(pass, is_silent ? "NodeNotReady" : "NodeUnusable",
             !is_silent && is_bound(pass, index),
             pass_text(pass, "node %s is %s", place->node_name, node->unusable));
        return;
    }
    if (strcmp(node->type, place->type_name)) {
        lose(pass, "NodeChanged", is_bound(pass, index),
             pass_text(pass, "node %s has %s GPUs now, the plan has %s", place->node_name,
                       node->type, place->type_name));
    } else if (node->allocatable < place->gpu_count) {
        lose(pass, "GPUUnhealthy", is_bound(pass, index),
             pass_text(pass,
                       "node %s has %" PRId64 " healthy GPUs, the plan uses %" PRIu32,
                       place->node_name, node->allocatable, place->gpu_count));
    } else if (node->free < place->gpu_count && is_claim_met(pass)) {
        lose(pass, "Preempted", is_bound(pass, index),
             pass_text(pass, "job %s has laid claim to GPUs of node %s",
                       snapshot->claimed_by->key, place->node_name));
    } else if (node->free + node->claimed < place->gpu_count && !is_bound(pass, index)) {
        lose(pass, "CapacityLost", false,
             pass_text(pass, "node %s has %" PRId64 " GPUs free, the plan uses %" PRIu32,
                       place->node_name, node->free, place->gpu_count));
    }
}

/* Whether the spec now forbids something that the plan uses. */
static void check_limits(struct pass *pass)
{
    const struct job_spec *spec = &pass->snapshot->spec;
    int64_t gpus = pass_count_gpus(pass, NULL);
    const char *why;
    /* Missing pods cannot be made for another runtime. */
    if (!children_runs(pass->arena, spec, pass->current->plan, &why))
        lose(pass, "SpecChanged", !pass_missing_pods(pass), why);
    if (spec->max_gpus && gpus > spec->max_gpus)
        lose(pass, "SpecChanged", true,
             pass_text(pass,
                       "the plan uses %" PRId64
                       " GPUs, spec.resources.maxGPUs is %" PRId64,
                       gpus, spec->max_gpus));
    for (size_t i = 0; spec->gpu_type_count && i < pass->current->rank_node_count; i++) {
        const char *type = pass->current->rank_nodes[i].type_name;
        const struct job_gpu_type *rule = job_spec_find_gpu_type(spec, type);
        if (!rule)
            lose(pass, "SpecChanged", true,
                 pass_text(pass,
                           "the plan uses %s, spec.resources.gpuTypes does not name it",
                           type));
        else if (rule->max_gpus && pass_count_gpus(pass, type) > rule->max_gpus)
            lose(pass, "SpecChanged", true,
                 pass_text(pass,
                           "the plan uses %" PRId64 " %s, spec.resources.gpuTypes allows "
                           "%" PRId64,
                           pass_count_gpus(pass, type), type, rule->max_gpus));
    }
}

void fit_check(struct pass *pass)
{
    for (size_t i = 0; i < pass->current->rank_node_count; i++)
        check_place(pass, i);
    check_limits(pass);
}

/* Whether `plan` fits the GPUs that this job may use now. */
bool fit_holds(const struct pass *pass, const struct het_plan *plan)
{
    struct het_rank_node *places;
    size_t count = het_plan_rank_nodes(pass->arena, plan, &places);
    for (size_t i = 0; i < count; i++) {
        const struct capacity_node *node =
            snapshot_find_node(pass->snapshot, places[i].node_name);
        if (!node || node->free < places[i].gpu_count ||
            strcmp(node->type, places[i].type_name))
            return false;
    }
    return count > 0 && children_runs(pass->arena, &pass->snapshot->spec, plan, NULL);
}
