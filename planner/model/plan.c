#include "planner/model/plan.h"

#include "planner/base/memo.h"
#include "planner/base/vendor.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- problem ---- */

/* The profile's type whose name means the same part as `type`; HET_NO_TYPE if none. */
static uint32_t find_profile_alias(const struct het_hardware *hardware,
                                   const struct het_profile *profile,
                                   const struct het_cluster_type *type)
{
    const struct het_gpu_type *part =
        het_hardware_find_sized(hardware, type->name, type->memory_bytes);
    if (!part)
        return HET_NO_TYPE;
    for (size_t i = 0; i < profile->type_count; i++) {
        const char *name = profile->type_names[i];
        if (het_hardware_find_sized(hardware, name, type->memory_bytes) == part)
            return (uint32_t)i;
    }
    return part->profile ? het_profile_find_type(profile, part->profile) : HET_NO_TYPE;
}

static uint32_t find_profile_type(const struct het_problem *problem, uint32_t index)
{
    const struct het_cluster *cluster = problem->cluster;
    const struct het_cluster_type *type = &cluster->types[index];
    if (!het_workload_allows_type(problem->workload, type->name))
        return HET_NO_TYPE;
    uint32_t found = het_profile_find_type(problem->profile, type->name);
    if (found == HET_NO_TYPE && type->profile_name)
        found = het_profile_find_type(problem->profile, type->profile_name);
    if (found != HET_NO_TYPE)
        return found;
    const struct het_hardware *hardware = cluster->hardware ? cluster->hardware
                                                            : het_hardware_builtin();
    return find_profile_alias(hardware, problem->profile, type);
}

static int fail_no_type(struct het_arena *arena, const struct het_problem *problem,
                        struct het_error *err)
{
    const char *cluster_names = "", *profile_names = "";
    for (size_t i = 0; i < problem->cluster->type_count; i++)
        cluster_names = het_arena_printf(arena, "%s%s%s", cluster_names, i ? ", " : "",
                                         problem->cluster->types[i].name);
    for (size_t i = 0; i < problem->profile->type_count; i++)
        profile_names = het_arena_printf(arena, "%s%s%s", profile_names, i ? ", " : "",
                                         problem->profile->type_names[i]);
    return het_fail(err, HET_NO_PLAN,
                    "no GPU type of the cluster is in the profile%s: the cluster has "
                    "%.300s; the profile has %.300s; add an alias to the hardware file, "
                    "or measure the profile on these GPUs",
                    problem->workload->type_limit_count ? " and allowed by the job" : "",
                    cluster_names, profile_names);
}

int het_problem_init(struct het_arena *arena, const struct het_cluster *cluster,
                     const struct het_profile *profile,
                     const struct het_workload *workload, struct het_problem *ret,
                     struct het_error *err)
{
    if (het_workload_check(workload, err) < 0 || het_cluster_check(cluster, err) < 0 ||
        het_profile_check(profile, err) < 0)
        return -1;
    uint32_t *types = HET_ARENA_ARRAY(arena, uint32_t, cluster->type_count);
    struct het_problem problem = { cluster, profile, workload, types };
    bool any = false;
    for (size_t i = 0; i < cluster->type_count; i++) {
        types[i] = find_profile_type(&problem, (uint32_t)i);
        any = any || types[i] != HET_NO_TYPE;
        if (types[i] != HET_NO_TYPE && !cluster->types[i].memory_bytes)
            return het_fail(err, HET_BAD_INPUT,
                            "GPU type %s: memory of one GPU is not known; set memory_gb "
                            "in the cluster file or memoryGiB in the hardware file",
                            cluster->types[i].name);
    }
    if (!any)
        return fail_no_type(arena, &problem, err);
    *ret = problem;
    return 0;
}

/* ---- binding ---- */

static int bind_replica(const struct het_cluster *cluster,
                        const struct het_node_name *names, struct het_replica *replica,
                        struct het_error *err)
{
    uint32_t node = het_cluster_find_node(cluster, names, replica->node_name);
    if (node == HET_NO_NODE)
        return het_fail(err, HET_BAD_INPUT, "node: the cluster has no node %s",
                        replica->node_name);
    uint32_t type = het_cluster_find_type(cluster, replica->type_name);
    if (type == HET_NO_TYPE)
        return het_fail(err, HET_BAD_INPUT, "gpuType: the cluster has no GPU type %s",
                        replica->type_name);
    replica->node = node;
    replica->type = type;
    return 0;
}

static int bind_stage(struct het_arena *arena, const struct het_cluster *cluster,
                      const struct het_node_name *names, struct het_stage *stage,
                      struct het_error *err)
{
    struct het_replica *replicas =
        HET_ARENA_ARRAY(arena, struct het_replica, stage->replica_count);
    for (size_t r = 0; r < stage->replica_count; r++) {
        replicas[r] = stage->replicas[r];
        if (bind_replica(cluster, names, &replicas[r], err) < 0)
            return het_wrap(err, "replicas[%zu]", r);
    }
    stage->replicas = replicas;
    return 0;
}

static int bind_pipeline(struct het_arena *arena, const struct het_cluster *cluster,
                         const struct het_node_name *names, struct het_pipeline *pipeline,
                         struct het_error *err)
{
    struct het_stage *stages =
        HET_ARENA_ARRAY(arena, struct het_stage, pipeline->stage_count);
    for (size_t s = 0; s < pipeline->stage_count; s++) {
        stages[s] = pipeline->stages[s];
        if (bind_stage(arena, cluster, names, &stages[s], err) < 0)
            return het_wrap(err, "stages[%zu]", s);
    }
    pipeline->stages = stages;
    return 0;
}

int het_plan_bind(struct het_arena *arena, const struct het_plan *plan,
                  const struct het_cluster *cluster, const struct het_plan **ret,
                  struct het_error *err)
{
    const struct het_node_name *names = het_cluster_sort_names(arena, cluster);
    struct het_pipeline *pipelines =
        HET_ARENA_ARRAY(arena, struct het_pipeline, plan->pipeline_count);
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        pipelines[p] = plan->pipelines[p];
        if (bind_pipeline(arena, cluster, names, &pipelines[p], err) < 0)
            return het_wrap(err, "pipelines[%zu]", p);
    }
    struct het_plan *bound = het_arena_alloc(arena, sizeof *bound);
    *bound = *plan;
    bound->pipelines = pipelines;
    *ret = bound;
    return 0;
}

static int compare_types(const void *left, const void *right)
{
    const struct het_cluster_type *a = left, *b = right;
    return strcmp(a->name, b->name);
}

const struct het_cluster *het_plan_own_cluster(struct het_arena *arena,
                                               const struct het_plan *plan)
{
    struct het_rank_node *ranks;
    struct het_cluster *cluster = het_arena_alloc(arena, sizeof *cluster);
    size_t count = het_plan_rank_nodes(arena, plan, &ranks), type_count = 0;
    struct het_node *nodes = HET_ARENA_ARRAY(arena, struct het_node, count);
    struct het_cluster_type *types =
        HET_ARENA_ARRAY(arena, struct het_cluster_type, count);
    for (size_t n = 0; n < count; n++)
        types[n].name = ranks[n].type_name;
    qsort(types, count, sizeof *types, compare_types);
    for (size_t n = 0; n < count; n++)
        if (!type_count || strcmp(types[type_count - 1].name, types[n].name) != 0)
            types[type_count++].name = types[n].name;
    *cluster = (struct het_cluster){
        .types = types, .type_count = type_count, .nodes = nodes, .node_count = count
    };
    for (size_t n = 0; n < count; n++)
        nodes[n] = (struct het_node){
            .name = ranks[n].node_name,
            .type = het_cluster_find_type(cluster, ranks[n].type_name),
            .gpu_count = ranks[n].gpu_count,
        };
    return cluster;
}

/* ---- counting ---- */

struct het_replica het_plan_replica(const struct het_cluster *cluster, uint32_t node,
                                    const uint32_t *gpus, uint32_t tp, uint32_t samples)
{
    return (struct het_replica){
        .node_name = cluster->nodes[node].name,
        .type_name = cluster->types[cluster->nodes[node].type].name,
        .node = node,
        .type = cluster->nodes[node].type,
        .gpus = gpus,
        .tp = tp,
        .microbatch_size = samples,
    };
}

size_t het_plan_replica_count(const struct het_plan *plan)
{
    size_t count = 0;
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++)
            count += plan->pipelines[p].stages[s].replica_count;
    return count;
}

uint32_t het_problem_usable_gpus(const struct het_problem *problem, uint32_t type)
{
    const struct het_type_limit *limit =
        het_workload_find_limit(problem->workload, problem->cluster->types[type].name);
    uint32_t gpus = het_cluster_type_gpu_count(problem->cluster, type);
    return limit && limit->max_gpus && limit->max_gpus < gpus ? limit->max_gpus : gpus;
}

uint32_t het_plan_gpu_count(const struct het_plan *plan)
{
    uint32_t gpus = 0;
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++)
            for (size_t r = 0; r < plan->pipelines[p].stages[s].replica_count; r++)
                gpus += plan->pipelines[p].stages[s].replicas[r].tp;
    return gpus;
}

const uint32_t *het_plan_type_gpus(struct het_arena *arena, const struct het_plan *plan,
                                   size_t type_count)
{
    uint32_t *gpus = HET_ARENA_ARRAY(arena, uint32_t, type_count);
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++)
                gpus[stage->replicas[r].type] += stage->replicas[r].tp;
        }
    return gpus;
}

/* ---- copying ---- */

static void *copy_array(struct het_arena *arena, const void *array, size_t count,
                        size_t element)
{
    void *copy = het_arena_array(arena, count, element);
    if (count)
        memcpy(copy, array, count * element);
    return copy;
}

static void copy_stage(struct het_arena *arena, struct het_stage *stage)
{
    struct het_replica *replicas =
        copy_array(arena, stage->replicas, stage->replica_count, sizeof *replicas);
    for (size_t r = 0; r < stage->replica_count; r++)
        replicas[r].gpus =
            copy_array(arena, replicas[r].gpus, replicas[r].tp, sizeof *replicas[r].gpus);
    stage->replicas = replicas;
}

struct het_plan *het_plan_copy(struct het_arena *arena, const struct het_plan *plan)
{
    struct het_plan *copy = copy_array(arena, plan, 1, sizeof *plan);
    struct het_pipeline *pipelines =
        copy_array(arena, plan->pipelines, plan->pipeline_count, sizeof *pipelines);
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        struct het_stage *stages = copy_array(arena, pipelines[p].stages,
                                              pipelines[p].stage_count, sizeof *stages);
        for (size_t s = 0; s < pipelines[p].stage_count; s++)
            copy_stage(arena, &stages[s]);
        pipelines[p].stages = stages;
    }
    struct het_idle *idle = copy_array(arena, plan->idle, plan->idle_count, sizeof *idle);
    for (size_t i = 0; i < plan->idle_count; i++)
        idle[i].gpus =
            copy_array(arena, idle[i].gpus, idle[i].gpu_count, sizeof *idle[i].gpus);
    copy->pipelines = pipelines;
    copy->idle = idle;
    copy->unused =
        copy_array(arena, plan->unused, plan->unused_count, sizeof *plan->unused);
    copy->predicted.peak_memory = copy_array(arena, plan->predicted.peak_memory,
                                             plan->predicted.peak_memory_count,
                                             sizeof *plan->predicted.peak_memory);
    return copy;
}

struct het_plan *het_plan_copy_replicas(struct het_arena *arena,
                                        const struct het_plan *plan,
                                        struct het_replica **ret_replicas)
{
    struct het_plan *copy = copy_array(arena, plan, 1, sizeof *plan);
    struct het_pipeline *pipelines =
        copy_array(arena, plan->pipelines, plan->pipeline_count, sizeof *pipelines);
    struct het_replica *next =
        HET_ARENA_ARRAY(arena, struct het_replica, het_plan_replica_count(plan));
    *ret_replicas = next;
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        struct het_stage *stages = copy_array(arena, pipelines[p].stages,
                                              pipelines[p].stage_count, sizeof *stages);
        for (size_t s = 0; s < pipelines[p].stage_count; s++) {
            for (size_t r = 0; r < stages[s].replica_count; r++)
                next[r] = stages[s].replicas[r];
            stages[s].replicas = next;
            next += stages[s].replica_count;
        }
        pipelines[p].stages = stages;
    }
    copy->pipelines = pipelines;
    return copy;
}

/* ---- check ---- */

void het_violations_add(struct het_arena *arena, struct het_violations *violations,
                        const char *format, ...)
{
    if (violations->count >= HET_MAX_VIOLATIONS)
        return;
    if (violations->count == violations->capacity) {
        size_t larger = violations->capacity ? 2 * violations->capacity : 8;
        const char **messages = HET_ARENA_ARRAY(arena, const char *, larger);
        for (size_t i = 0; i < violations->count; i++)
            messages[i] = violations->messages[i];
        violations->messages = messages;
        violations->capacity = larger;
    }
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    violations->messages[violations->count++] = het_arena_strdup(arena, message);
}

/* Where in the plan the checker is, for its messages. */
struct checker {
    struct het_arena *arena;
    const struct het_problem *problem;
    const struct het_plan *plan;
    struct het_violations *violations;
    size_t pipeline, stage, replica;
    size_t *gpu_offset;  /* [node_count]: first GPU of the node in `used` */
    unsigned char *used; /* [GPUs of the cluster] */
    uint32_t *holders;   /* [layer_count]: replicas that hold the layer */
    const struct het_replica *of_vendor; /* the first whose vendor is known */
    bool mixes;                          /* and one of another has been seen */
};

#define COMPLAIN_PLAN(c, ...) het_violations_add((c)->arena, (c)->violations, __VA_ARGS__)
#define COMPLAIN_PIPELINE(c, field, ...)                                                 \
    het_violations_add((c)->arena, (c)->violations, "pipelines[%zu]." field,             \
                       (c)->pipeline, __VA_ARGS__)
#define COMPLAIN_STAGE(c, field, ...)                                                    \
    het_violations_add((c)->arena, (c)->violations, "pipelines[%zu].stages[%zu]." field, \
                       (c)->pipeline, (c)->stage, __VA_ARGS__)
#define COMPLAIN_REPLICA(c, field, ...)                                                  \
    het_violations_add((c)->arena, (c)->violations,                                      \
                       "pipelines[%zu].stages[%zu].replicas[%zu]." field, (c)->pipeline, \
                       (c)->stage, (c)->replica, __VA_ARGS__)

static void check_gpus(struct checker *c, const struct het_replica *replica)
{
    const struct het_node *node = &c->problem->cluster->nodes[replica->node];
    for (uint32_t i = 0; i < replica->tp; i++) {
        uint32_t gpu = replica->gpus[i];
        if (gpu >= node->gpu_count) {
            COMPLAIN_REPLICA(c, "gpus[%u]: node %s has no GPU %u (it has %u)", i,
                             node->name, gpu, node->gpu_count);
            continue;
        }
        unsigned char *used = &c->used[c->gpu_offset[replica->node] + gpu];
        if (*used)
            COMPLAIN_REPLICA(c, "gpus[%u]: GPU %u of node %s is used twice", i, gpu,
                             node->name);
        *used = 1;
    }
}

/* GPUs that cannot talk to each other are in no plan together; the first is complained
 * of. */
static void check_vendor(struct checker *c, const struct het_replica *replica)
{
    const struct het_cluster *cluster = c->problem->cluster;
    const char *vendor = cluster->nodes[replica->node].vendor;
    if (c->problem->workload->mixes_vendors || c->mixes || !vendor)
        return;
    if (!c->of_vendor)
        c->of_vendor = replica;
    const char *first = cluster->nodes[c->of_vendor->node].vendor;
    c->mixes = strcmp(first, vendor) != 0;
    if (c->mixes)
        COMPLAIN_REPLICA(c,
                         "gpuType: node %s has %s of %s, node %s has %s of %s; GPUs of "
                         "different vendors cannot talk to each other: use those of one, "
                         "or a runtime that joins them (mixed vendors)",
                         replica->node_name, replica->type_name, het_vendor_title(vendor),
                         c->of_vendor->node_name, c->of_vendor->type_name,
                         het_vendor_title(first));
}

static void check_profiled(struct checker *c, const struct het_replica *replica)
{
    const struct het_profile *profile = c->problem->profile;
    uint32_t type = c->problem->profile_type[replica->type];
    if (type == HET_NO_TYPE)
        COMPLAIN_REPLICA(c,
                         "gpuType: %s is not in the profile, or not allowed by the job",
                         replica->type_name);
    else if (!het_profile_max_microbatch(profile, type, replica->tp))
        COMPLAIN_REPLICA(c, "gpus: the profile has no tensor-parallel degree %u for %s",
                         replica->tp, replica->type_name);
    else if (!het_profile_covers(profile, type, replica->tp, replica->microbatch_size))
        COMPLAIN_REPLICA(c,
                         "microBatchSize: the profile has no micro-batch of %u for %s "
                         "with tensor-parallel degree %u",
                         replica->microbatch_size, replica->type_name, replica->tp);
}

/* Selective recomputation has to be measured: which part of a layer it saves, and what it
 * costs, follows from nothing else that a profile says. */
static void check_selective(struct checker *c, const struct het_stage *stage,
                            const struct het_replica *replica)
{
    uint32_t type = c->problem->profile_type[replica->type];
    double backward_s;
    if (stage->recompute != HET_RECOMPUTE_SELECTIVE || type == HET_NO_TYPE ||
        !het_profile_covers(c->problem->profile, type, replica->tp,
                            replica->microbatch_size))
        return;
    if (!het_profile_selective_s(c->problem->profile, type, replica->tp,
                                 replica->microbatch_size, 0,
                                 c->problem->profile->layer_count, &backward_s))
        COMPLAIN_STAGE(
            c,
            "recompute: the profile has no selective recomputation for %s with "
            "tensor-parallel degree %u, micro-batch %u; use none or full",
            replica->type_name, replica->tp, replica->microbatch_size);
}

static void check_replica(struct checker *c, const struct het_replica *replica)
{
    const struct het_workload *workload = c->problem->workload;
    const struct het_node *node = &c->problem->cluster->nodes[replica->node];
    if (node->type != replica->type)
        COMPLAIN_REPLICA(c, "gpuType: node %s has %s, not %s", node->name,
                         c->problem->cluster->types[node->type].name, replica->type_name);
    if (!replica->tp) {
        COMPLAIN_REPLICA(c, "%s", "gpus: must name at least one GPU");
        return;
    }
    if (!het_workload_allows_tensor_parallel(workload, replica->tp))
        COMPLAIN_REPLICA(c, "gpus: the job does not allow tensor-parallel degree %u",
                         replica->tp);
    if (!replica->microbatch_size)
        COMPLAIN_REPLICA(c, "%s", "microBatchSize: must be at least 1");
    else if (!het_workload_allows_microbatch(workload, replica->microbatch_size))
        COMPLAIN_REPLICA(c, "microBatchSize: the job does not allow %u",
                         replica->microbatch_size);
    check_gpus(c, replica);
    check_vendor(c, replica);
    if (c->problem->profile_type)
        check_profiled(c, replica);
}

/* Returns the samples of a micro-batch. */
static uint64_t check_stage(struct checker *c, const struct het_stage *stage)
{
    uint32_t layer_count = c->problem->profile->layer_count;
    if (!stage->layer_count)
        COMPLAIN_STAGE(c, "%s", "layerCount: must be at least 1");
    if (!stage->replica_count)
        COMPLAIN_STAGE(c, "%s", "replicas: must have at least one");
    if (c->problem->workload->no_recompute && stage->recompute != HET_RECOMPUTE_NONE)
        COMPLAIN_STAGE(c, "%s",
                       "recompute: the job keeps all activations (its constraint is "
                       "None), so it must be none");
    uint64_t samples = 0;
    for (c->replica = 0; c->replica < stage->replica_count; c->replica++) {
        check_replica(c, &stage->replicas[c->replica]);
        if (c->problem->profile_type)
            check_selective(c, stage, &stage->replicas[c->replica]);
        samples += stage->replicas[c->replica].microbatch_size;
    }
    uint64_t end = (uint64_t)stage->first_layer + stage->layer_count;
    for (uint64_t l = stage->first_layer; l < end && l < layer_count; l++)
        c->holders[l] += (uint32_t)stage->replica_count;
    return samples;
}

/* Returns the samples of an iteration. */
static uint64_t check_pipeline(struct checker *c, const struct het_pipeline *pipeline)
{
    const struct het_workload *workload = c->problem->workload;
    uint32_t layer_count = c->problem->profile->layer_count;
    if (!pipeline->microbatch_count)
        COMPLAIN_PIPELINE(c, "%s", "microBatches: must be at least 1");
    if (!pipeline->stage_count)
        COMPLAIN_PIPELINE(c, "%s", "stages: must have at least one");
    if (workload->max_pipeline_parallel &&
        pipeline->stage_count > workload->max_pipeline_parallel)
        COMPLAIN_PIPELINE(c, "stages: %zu stages, the job allows at most %u",
                          pipeline->stage_count, workload->max_pipeline_parallel);
    uint64_t next_layer = 0, microbatch = 0;
    for (c->stage = 0; c->stage < pipeline->stage_count; c->stage++) {
        const struct het_stage *stage = &pipeline->stages[c->stage];
        if (stage->first_layer != next_layer)
            COMPLAIN_STAGE(c, "firstLayer: is %u, must be %llu", stage->first_layer,
                           (unsigned long long)next_layer);
        next_layer = (uint64_t)stage->first_layer + stage->layer_count;
        uint64_t samples = check_stage(c, stage);
        if (!c->stage)
            microbatch = samples;
        else if (samples != microbatch)
            COMPLAIN_STAGE(c,
                           "replicas: micro-batch sizes sum up to %llu, those of stage 0 "
                           "to %llu",
                           (unsigned long long)samples, (unsigned long long)microbatch);
    }
    if (pipeline->stage_count && next_layer != layer_count)
        COMPLAIN_PIPELINE(c, "stages: end before layer %llu, the model has %u layers",
                          (unsigned long long)next_layer, layer_count);
    uint64_t total;
    if (__builtin_mul_overflow(microbatch, (uint64_t)pipeline->microbatch_count, &total))
        total = UINT64_MAX;
    return total;
}

/* The GPUs used of a node are its first ones; returns how many there are. */
static uint32_t check_node_prefix(struct checker *c, size_t node)
{
    const unsigned char *used = c->used + c->gpu_offset[node];
    uint32_t gpu_count = c->problem->cluster->nodes[node].gpu_count;
    uint32_t count = 0, prefix = 0;
    for (uint32_t i = 0; i < gpu_count; i++)
        count += used[i];
    while (prefix < gpu_count && used[prefix])
        prefix++;
    if (prefix != count)
        COMPLAIN_PLAN(c,
                      "pipelines: of node %s GPU %u is not used but a later one is; a "
                      "plan uses the first GPUs of a node",
                      c->problem->cluster->nodes[node].name, prefix);
    return count;
}

/* "3 to 4", or "at least 3" when there is no upper limit. */
static const char *describe_range(struct het_arena *arena, uint32_t least, uint32_t most)
{
    return most ? het_arena_printf(arena, "%u to %u", least, most)
                : het_arena_printf(arena, "at least %u", least);
}

static void check_type_limits(struct checker *c, const uint64_t *type_used)
{
    const struct het_workload *workload = c->problem->workload;
    for (size_t i = 0; i < workload->type_limit_count; i++) {
        const struct het_type_limit *limit = &workload->type_limits[i];
        uint32_t type = het_cluster_find_type(c->problem->cluster, limit->type);
        uint64_t used = type == HET_NO_TYPE ? 0 : type_used[type];
        if (used < limit->min_gpus || (limit->max_gpus && used > limit->max_gpus))
            COMPLAIN_PLAN(c, "pipelines: %llu GPUs of type %s, the job wants %s",
                          (unsigned long long)used, limit->type,
                          describe_range(c->arena, limit->min_gpus, limit->max_gpus));
    }
}

static void check_limits(struct checker *c)
{
    const struct het_cluster *cluster = c->problem->cluster;
    const struct het_workload *workload = c->problem->workload;
    uint64_t type_used[HET_MAX_TYPES] = { 0 }, used = 0;
    for (size_t i = 0; i < cluster->node_count; i++) {
        uint32_t count = check_node_prefix(c, i);
        type_used[cluster->nodes[i].type] += count;
        used += count;
    }
    if (used < workload->min_gpus || (workload->max_gpus && used > workload->max_gpus))
        COMPLAIN_PLAN(c, "pipelines: %llu GPUs, the job wants %s",
                      (unsigned long long)used,
                      describe_range(c->arena, workload->min_gpus, workload->max_gpus));
    check_type_limits(c, type_used);
    for (uint32_t i = 0; i < c->problem->profile->layer_count; i++) {
        uint32_t holders = c->holders[i];
        if (holders >= workload->min_data_parallel &&
            (!workload->max_data_parallel || holders <= workload->max_data_parallel))
            continue;
        COMPLAIN_PLAN(
            c,
            "pipelines: layer %u is held by %u replicas, the job wants a data-parallel "
            "degree of %s",
            i, holders,
            describe_range(c->arena, workload->min_data_parallel,
                           workload->max_data_parallel));
        return;
    }
}

static void check_idle(struct checker *c)
{
    const struct het_cluster *cluster = c->problem->cluster;
    struct het_plan expected = *c->plan;
    het_plan_fill_idle(c->arena, cluster, &expected);
    const struct het_plan *plan = c->plan;
    bool same = plan->idle_count == expected.idle_count;
    for (size_t i = 0; same && i < plan->idle_count; i++)
        same = !strcmp(plan->idle[i].node_name, expected.idle[i].node_name) &&
               plan->idle[i].gpu_count == expected.idle[i].gpu_count &&
               !memcmp(plan->idle[i].gpus, expected.idle[i].gpus,
                       plan->idle[i].gpu_count * sizeof *plan->idle[i].gpus);
    if (!same)
        COMPLAIN_PLAN(c, "idle: is not what the plan leaves of the cluster (nodes in the "
                         "cluster's order)");
}

static void check_header(struct checker *c)
{
    const struct het_plan *plan = c->plan;
    const struct het_workload *workload = c->problem->workload;
    if (plan->layer_count != c->problem->profile->layer_count)
        COMPLAIN_PLAN(c, "layerCount: is %u, the profile has %u layers",
                      plan->layer_count, c->problem->profile->layer_count);
    if (plan->global_batch != workload->global_batch)
        COMPLAIN_PLAN(c, "globalBatchSize: is %u, the job has %u", plan->global_batch,
                      workload->global_batch);
    if (plan->sequence_length && workload->sequence_length &&
        plan->sequence_length != workload->sequence_length)
        COMPLAIN_PLAN(c, "sequenceLength: is %u, the job has %u", plan->sequence_length,
                      workload->sequence_length);
    if (plan->precision != workload->precision)
        COMPLAIN_PLAN(c, "precision: is %s, the job has %s",
                      het_precision_name(plan->precision),
                      het_precision_name(workload->precision));
    if (plan->optimizer != workload->optimizer)
        COMPLAIN_PLAN(c, "optimizer: is %s, the job has %s",
                      het_optimizer_name(plan->optimizer),
                      het_optimizer_name(workload->optimizer));
    if (!plan->pipeline_count)
        COMPLAIN_PLAN(c, "pipelines: must have at least one");
}

size_t het_plan_check(struct het_arena *arena, const struct het_problem *problem,
                      const struct het_plan *plan, struct het_violations *violations)
{
    const struct het_cluster *cluster = problem->cluster;
    size_t before = violations->count;
    auto_free size_t *gpu_offset = xcalloc(cluster->node_count, sizeof *gpu_offset);
    auto_free unsigned char *used = xcalloc(het_cluster_gpu_count(cluster), 1);
    auto_free uint32_t *holders = xcalloc(problem->profile->layer_count, sizeof *holders);
    for (size_t i = 1; i < cluster->node_count; i++)
        gpu_offset[i] = gpu_offset[i - 1] + cluster->nodes[i - 1].gpu_count;

    struct checker c = { .arena = arena,
                         .problem = problem,
                         .plan = plan,
                         .violations = violations,
                         .gpu_offset = gpu_offset,
                         .used = used,
                         .holders = holders };
    check_header(&c);
    uint64_t samples = 0;
    for (c.pipeline = 0; c.pipeline < plan->pipeline_count; c.pipeline++) {
        uint64_t more = check_pipeline(&c, &plan->pipelines[c.pipeline]);
        if (__builtin_add_overflow(samples, more, &samples))
            samples = UINT64_MAX;
    }
    if (samples != problem->workload->global_batch)
        COMPLAIN_PLAN(&c,
                      "pipelines: run %llu samples an iteration, the global batch is %u",
                      (unsigned long long)samples, problem->workload->global_batch);
    check_limits(&c);
    if (plan->idle_count)
        check_idle(&c);
    return violations->count - before;
}

bool het_plan_extrapolates(const struct het_problem *problem, const struct het_plan *plan)
{
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++) {
                const struct het_replica *replica = &stage->replicas[r];
                if (het_profile_extrapolates(problem->profile,
                                             problem->profile_type[replica->type],
                                             replica->tp, replica->microbatch_size))
                    return true;
            }
        }
    return false;
}

/* ---- idle GPUs, ranks ---- */

void het_plan_count_holders(const struct het_plan *plan, uint32_t layer_count,
                            uint32_t *ret_holders)
{
    memset(ret_holders, 0, layer_count * sizeof *ret_holders);
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            for (uint32_t l = 0; l < stage->layer_count; l++)
                ret_holders[stage->first_layer + l] += (uint32_t)stage->replica_count;
        }
}

void het_plan_fill_idle(struct het_arena *arena, const struct het_cluster *cluster,
                        struct het_plan *plan)
{
    auto_free uint32_t *used = xcalloc(cluster->node_count, sizeof *used);
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++) {
                assert(stage->replicas[r].node < cluster->node_count);
                used[stage->replicas[r].node] += stage->replicas[r].tp;
            }
        }
    size_t count = 0;
    for (size_t i = 0; i < cluster->node_count; i++)
        count += used[i] < cluster->nodes[i].gpu_count;
    struct het_idle *idle = HET_ARENA_ARRAY(arena, struct het_idle, count);
    size_t filled = 0;
    for (size_t i = 0; i < cluster->node_count; i++) {
        if (used[i] >= cluster->nodes[i].gpu_count)
            continue;
        uint32_t left = cluster->nodes[i].gpu_count - used[i];
        uint32_t *gpus = HET_ARENA_ARRAY(arena, uint32_t, left);
        for (uint32_t g = 0; g < left; g++)
            gpus[g] = used[i] + g;
        idle[filled++] = (struct het_idle){ cluster->nodes[i].name, gpus, left };
    }
    plan->idle = idle;
    plan->idle_count = count;
}

size_t het_plan_rank_nodes(struct het_arena *arena, const struct het_plan *plan,
                           struct het_rank_node **ret_nodes)
{
    struct het_rank_node *nodes =
        HET_ARENA_ARRAY(arena, struct het_rank_node, het_plan_replica_count(plan));
    struct het_memo known = het_memo_make(arena, 0); /* by name: position, plus 1 */
    size_t count = 0;
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++) {
                const struct het_replica *replica = &stage->replicas[r];
                size_t *position =
                    &het_memo_at(&known, replica->node_name, strlen(replica->node_name))
                         ->number;
                if (!*position) {
                    nodes[count] =
                        (struct het_rank_node){ .node_name = replica->node_name,
                                                .type_name = replica->type_name };
                    *position = ++count;
                }
                nodes[*position - 1].gpu_count += replica->tp;
            }
        }
    for (size_t i = 1; i < count; i++)
        nodes[i].rank_offset = nodes[i - 1].rank_offset + nodes[i - 1].gpu_count;
    *ret_nodes = nodes;
    return count;
}

uint32_t het_plan_gpus_on(const struct het_rank_node *nodes, size_t count,
                          const char *node)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(nodes[i].node_name, node))
            return nodes[i].gpu_count;
    return 0;
}

/* ---- order ---- */

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_replicas(const struct het_replica *a, const struct het_replica *b)
{
    int order = compare_numbers(a->tp, b->tp);
    if (!order)
        order = compare_numbers(a->microbatch_size, b->microbatch_size);
    if (!order)
        order = strcmp(a->type_name, b->type_name);
    if (!order)
        order = strcmp(a->node_name, b->node_name);
    for (uint32_t i = 0; !order && i < a->tp; i++)
        order = compare_numbers(a->gpus[i], b->gpus[i]);
    return order;
}

static int compare_stages(const struct het_stage *a, const struct het_stage *b)
{
    int order = compare_numbers(a->layer_count, b->layer_count);
    if (!order)
        order = compare_numbers(a->first_layer, b->first_layer);
    if (!order)
        order = compare_numbers(a->recompute, b->recompute);
    if (!order)
        order = compare_numbers(a->replica_count, b->replica_count);
    for (size_t r = 0; !order && r < a->replica_count; r++)
        order = compare_replicas(&a->replicas[r], &b->replicas[r]);
    return order;
}

static int compare_pipelines(const struct het_pipeline *a, const struct het_pipeline *b)
{
    int order = compare_numbers(a->stage_count, b->stage_count);
    if (!order)
        order = compare_numbers(a->microbatch_count, b->microbatch_count);
    for (size_t s = 0; !order && s < a->stage_count; s++)
        order = compare_stages(&a->stages[s], &b->stages[s]);
    return order;
}

int het_plan_compare(const struct het_plan *a, const struct het_plan *b)
{
    int order = compare_numbers(a->pipeline_count, b->pipeline_count);
    for (size_t p = 0; !order && p < a->pipeline_count; p++)
        order = compare_pipelines(&a->pipelines[p], &b->pipelines[p]);
    return order;
}
