#include "planner/cost/idle_gpus.h"

#include "planner/cost/infeasible.h"

#include <string.h>

/* A type that the profile does not have. */
static enum het_unused_reason why_no_profile(const struct het_problem *problem,
                                             const struct het_cluster_type *type)
{
    const struct het_cluster *cluster = problem->cluster;
    const struct het_gpu_type *part = het_hardware_find_sized(
        cluster->hardware ? cluster->hardware : het_hardware_builtin(), type->name,
        type->memory_bytes);
    if (!part)
        return HET_UNUSED_UNKNOWN_PRODUCT;
    if (problem->profile->origin == HET_PROFILE_MEASURED)
        return HET_UNUSED_NOT_MEASURED;
    bool has_rates = part->bf16_flops > 0 || part->fp16_flops > 0 ||
                     part->tf32_flops > 0 || part->fp32_flops > 0;
    return has_rates && part->memory_bytes_per_s > 0 ? HET_UNUSED_PRECISION_UNSUPPORTED
                                                     : HET_UNUSED_NO_RATES;
}

/* Why not one GPU of the type can be used; HET_UNUSED_NOT_CHOSEN: they can. */
static enum het_unused_reason why_type(const struct het_problem *problem, uint32_t t)
{
    const struct het_cluster_type *type = &problem->cluster->types[t];
    if (!het_workload_allows_type(problem->workload, type->name))
        return HET_UNUSED_TYPE_NOT_ALLOWED;
    if (problem->profile_type[t] == HET_NO_TYPE)
        return why_no_profile(problem, type);
    switch (het_infeasible_type(problem, t)) {
    case HET_TYPE_FITS:
        break;
    case HET_TYPE_IS_LIMITED:
        return HET_UNUSED_NOT_WITHIN_LIMITS;
    case HET_TYPE_IS_SMALL:
        return HET_UNUSED_TOO_LITTLE_MEMORY;
    }
    return HET_UNUSED_NOT_CHOSEN;
}

/* Whether the plan uses as many GPUs of the type as its limit allows. */
static bool is_at_limit(const struct het_workload *workload, const char *type,
                        uint32_t used)
{
    const struct het_type_limit *limit = het_workload_find_limit(workload, type);
    return limit && limit->max_gpus && used >= limit->max_gpus;
}

/* Of all types, by their index; in `arena`. */
static const enum het_unused_reason *list_reasons(struct het_arena *arena,
                                                  const struct het_problem *problem,
                                                  const struct het_plan *plan)
{
    const struct het_cluster *cluster = problem->cluster;
    const struct het_workload *workload = problem->workload;
    enum het_unused_reason *reasons =
        HET_ARENA_ARRAY(arena, enum het_unused_reason, cluster->type_count);
    const uint32_t *used = het_plan_type_gpus(arena, plan, cluster->type_count);
    bool is_full = workload->max_gpus && het_plan_gpu_count(plan) >= workload->max_gpus;
    for (uint32_t t = 0; t < cluster->type_count; t++) {
        reasons[t] = why_type(problem, t);
        if (reasons[t] != HET_UNUSED_NOT_CHOSEN)
            continue;
        if (is_at_limit(workload, cluster->types[t].name, used[t]))
            reasons[t] = HET_UNUSED_TYPE_LIMIT;
        else if (is_full)
            reasons[t] = HET_UNUSED_GPU_LIMIT;
    }
    return reasons;
}

/* Whose GPUs the plan has; NULL: unknown, or it may have any. */
static const char *vendor_of(const struct het_problem *problem,
                             const struct het_plan *plan)
{
    if (problem->workload->mixes_vendors)
        return NULL;
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++) {
                const char *vendor =
                    problem->cluster->nodes[stage->replicas[r].node].vendor;
                if (vendor)
                    return vendor;
            }
        }
    return NULL;
}

/* Whether GPUs of a type that could be used cannot talk to the plan's. */
static bool is_of_other_vendor(const struct het_node *node, const char *vendor,
                               enum het_unused_reason reason)
{
    bool could = reason == HET_UNUSED_NOT_CHOSEN || reason == HET_UNUSED_TYPE_LIMIT ||
                 reason == HET_UNUSED_GPU_LIMIT;
    return could && vendor && node->vendor && strcmp(node->vendor, vendor) != 0;
}

void het_idle_gpus_explain(struct het_arena *arena, const struct het_problem *problem,
                           const struct het_plan *plan, struct het_unused_list *list)
{
    const struct het_cluster *cluster = problem->cluster;
    const enum het_unused_reason *reasons = list_reasons(arena, problem, plan);
    const char *vendor = vendor_of(problem, plan);
    const char *precision = het_precision_name(problem->workload->precision);
    for (size_t i = 0, n = 0; i < plan->idle_count && n < cluster->node_count; n++) {
        const struct het_node *node = &cluster->nodes[n];
        if (strcmp(plan->idle[i].node_name, node->name) != 0)
            continue; /* the plan uses all of it */
        enum het_unused_reason reason = reasons[node->type];
        if (is_of_other_vendor(node, vendor, reason))
            reason = HET_UNUSED_OTHER_VENDOR;
        bool is_precision = reason == HET_UNUSED_PRECISION_UNSUPPORTED;
        het_unused_add(arena, list, reason, cluster->types[node->type].name,
                       is_precision ? precision : "", node->name,
                       (uint32_t)plan->idle[i].gpu_count);
        i++;
    }
}
