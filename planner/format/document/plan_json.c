#include "planner/format/document/plan_json.h"

#include "planner/format/document/prediction_json.h"
#include "planner/format/document/unused_json.h"

/* EVP, which replaces SHA256_Init, loads modules: a static program has no loader. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#define API_VERSION "heterotrain.io/v1alpha1"

/* ---- in ---- */

static const char *const recompute_names[] = { "none", "selective", "full", NULL };

static int read_gpus(struct het_arena *arena, const struct het_view *list,
                     const uint32_t **ret, size_t *ret_count, struct het_error *err)
{
    size_t count = 0;
    if (het_view_need(list, err) < 0 ||
        het_view_array(list, HET_MAX_NODE_GPUS, &count, err) < 0)
        return -1;
    uint32_t *gpus = HET_ARENA_ARRAY(arena, uint32_t, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(list, i);
        if (het_view_need(&item, err) < 0 ||
            het_view_u32(&item, 0, HET_MAX_NODE_GPUS - 1, &gpus[i], err) < 0)
            return -1;
    }
    *ret = gpus;
    *ret_count = count;
    return 0;
}

static int read_replica(struct het_arena *arena, const struct het_view *view,
                        struct het_replica *replica, struct het_error *err)
{
    struct het_view node = het_view_get(view, "node");
    struct het_view type = het_view_get(view, "gpuType");
    struct het_view size = het_view_get(view, "microBatchSize");
    struct het_view gpus = het_view_get(view, "gpus");
    size_t tp = 0;
    replica->node = replica->type = HET_UNBOUND;
    if (het_view_need(view, err) < 0 || het_view_object(view, err) < 0 ||
        het_view_need(&node, err) < 0 ||
        het_view_name(&node, arena, &replica->node_name, err) < 0 ||
        het_view_need(&type, err) < 0 ||
        het_view_name(&type, arena, &replica->type_name, err) < 0 ||
        het_view_need(&size, err) < 0 ||
        het_view_u32(&size, 0, UINT32_MAX, &replica->microbatch_size, err) < 0 ||
        read_gpus(arena, &gpus, &replica->gpus, &tp, err) < 0)
        return -1;
    replica->tp = (uint32_t)tp;
    return 0;
}

static int read_stage(struct het_arena *arena, const struct het_view *view,
                      struct het_stage *stage, struct het_error *err)
{
    struct het_view first = het_view_get(view, "firstLayer");
    struct het_view layers = het_view_get(view, "layerCount");
    struct het_view mode = het_view_get(view, "recompute");
    struct het_view list = het_view_get(view, "replicas");
    int recompute = HET_RECOMPUTE_NONE;
    size_t count = 0;
    if (het_view_need(view, err) < 0 || het_view_object(view, err) < 0 ||
        het_view_need(&first, err) < 0 ||
        het_view_u32(&first, 0, HET_MAX_LAYERS, &stage->first_layer, err) < 0 ||
        het_view_need(&layers, err) < 0 ||
        het_view_u32(&layers, 0, HET_MAX_LAYERS, &stage->layer_count, err) < 0 ||
        het_view_choice(&mode, recompute_names, &recompute, err) < 0 ||
        het_view_need(&list, err) < 0 ||
        het_view_array(&list, HET_MAX_PLAN_GPUS, &count, err) < 0)
        return -1;
    struct het_replica *replicas = HET_ARENA_ARRAY(arena, struct het_replica, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        if (read_replica(arena, &item, &replicas[i], err) < 0)
            return -1;
    }
    stage->recompute = (enum het_recompute)recompute;
    stage->replicas = replicas;
    stage->replica_count = count;
    return 0;
}

static int read_pipeline(struct het_arena *arena, const struct het_view *view,
                         struct het_pipeline *pipeline, struct het_error *err)
{
    struct het_view microbatches = het_view_get(view, "microBatches");
    struct het_view list = het_view_get(view, "stages");
    size_t count = 0;
    if (het_view_need(view, err) < 0 || het_view_object(view, err) < 0 ||
        het_view_need(&microbatches, err) < 0 ||
        het_view_u32(&microbatches, 0, UINT32_MAX, &pipeline->microbatch_count, err) <
            0 ||
        het_view_need(&list, err) < 0 ||
        het_view_array(&list, HET_MAX_LAYERS, &count, err) < 0)
        return -1;
    struct het_stage *stages = HET_ARENA_ARRAY(arena, struct het_stage, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        if (read_stage(arena, &item, &stages[i], err) < 0)
            return -1;
    }
    pipeline->stages = stages;
    pipeline->stage_count = count;
    return 0;
}

static int read_pipelines(struct het_arena *arena, const struct het_view *root,
                          struct het_plan *plan, struct het_error *err)
{
    struct het_view list = het_view_get(root, "pipelines");
    size_t count = 0;
    if (het_view_need(&list, err) < 0 ||
        het_view_array(&list, HET_MAX_PLAN_GPUS, &count, err) < 0)
        return -1;
    struct het_pipeline *pipelines = HET_ARENA_ARRAY(arena, struct het_pipeline, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        if (read_pipeline(arena, &item, &pipelines[i], err) < 0)
            return -1;
    }
    plan->pipelines = pipelines;
    plan->pipeline_count = count;
    return 0;
}

static int read_idle(struct het_arena *arena, const struct het_view *root,
                     struct het_plan *plan, struct het_error *err)
{
    struct het_view list = het_view_get(root, "idle");
    size_t count = 0;
    if (het_view_array(&list, HET_MAX_NODES, &count, err) < 0)
        return -1;
    struct het_idle *idle = HET_ARENA_ARRAY(arena, struct het_idle, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        struct het_view node = het_view_get(&item, "node");
        struct het_view gpus = het_view_get(&item, "gpus");
        if (het_view_need(&item, err) < 0 || het_view_object(&item, err) < 0 ||
            het_view_need(&node, err) < 0 ||
            het_view_name(&node, arena, &idle[i].node_name, err) < 0 ||
            read_gpus(arena, &gpus, &idle[i].gpus, &idle[i].gpu_count, err) < 0)
            return -1;
    }
    plan->idle = idle;
    plan->idle_count = count;
    return 0;
}

static int read_unused(struct het_arena *arena, const struct het_view *root,
                       struct het_plan *plan, struct het_error *err)
{
    struct het_view view = het_view_get(root, "unused");
    struct het_unused_list list = { 0 };
    if (het_unused_json_read(arena, &view, &list, err) < 0)
        return -1;
    plan->unused = list.groups;
    plan->unused_count = list.count;
    return 0;
}

static int read_report(const struct het_view *root, struct het_search_report *ret,
                       struct het_error *err)
{
    struct het_view search = het_view_get(root, "search");
    struct het_view effort = het_view_get(&search, "effort");
    struct het_view priced = het_view_get(&search, "plansPriced");
    struct het_view seed = het_view_get(&search, "seed");
    struct het_view optimal = het_view_get(&search, "optimal");
    struct het_view ran_out = het_view_get(&search, "ranOut");
    bool is_optimal = false, has_run_out = false;
    struct het_view cut_short = het_view_get(&search, "cutShort");
    if (het_view_object(&search, err) < 0 ||
        het_view_u64(&effort, 0, INT64_MAX, &ret->effort, err) < 0 ||
        het_view_u64(&priced, 0, INT64_MAX, &ret->plans_priced, err) < 0 ||
        het_view_u64(&seed, 0, INT64_MAX, &ret->seed, err) < 0 ||
        het_view_bool(&optimal, &is_optimal, err) < 0 ||
        het_view_bool(&ran_out, &has_run_out, err) < 0 ||
        het_view_bool(&cut_short, &ret->is_cut_short, err) < 0)
        return -1;
    ret->optimal = is_optimal;
    ret->has_run_out = has_run_out;
    return 0;
}

/* A field of which only one value is known; it may be left out. */
static int read_fixed(struct het_arena *arena, const struct het_view *root,
                      const char *key, const char *known, struct het_error *err)
{
    struct het_view field = het_view_get(root, key);
    const char *name = known;
    if (het_view_name(&field, arena, &name, err) < 0)
        return -1;
    return strcmp(name, known)
               ? het_view_fail(&field, err, "must be %s, is %s", known, name)
               : 0;
}

static int read_plan_header(struct het_arena *arena, const struct het_view *root,
                            struct het_plan *plan, struct het_error *err)
{
    struct het_view algorithm = het_view_get(root, "algorithm");
    struct het_view batch = het_view_get(root, "globalBatchSize");
    struct het_view layers = het_view_get(root, "layerCount");
    struct het_view length = het_view_get(root, "sequenceLength");
    struct het_view precision = het_view_get(root, "precision");
    struct het_view optimizer = het_view_get(root, "optimizer");
    const char *name = NULL;
    plan->algorithm = "";
    if (!json_is_object(root->json))
        return het_fail(err, HET_BAD_INPUT, "must be an object");
    if (read_fixed(arena, root, "apiVersion", API_VERSION, err) < 0 ||
        read_fixed(arena, root, "kind", "Plan", err) < 0 ||
        read_fixed(arena, root, "schedule", "1F1B", err) < 0 ||
        het_view_name(&algorithm, arena, &plan->algorithm, err) < 0 ||
        het_view_need(&batch, err) < 0 ||
        het_view_u32(&batch, 0, UINT32_MAX, &plan->global_batch, err) < 0 ||
        het_view_need(&layers, err) < 0 ||
        het_view_u32(&layers, 0, UINT32_MAX, &plan->layer_count, err) < 0 ||
        het_view_u32(&length, 1, INT32_MAX, &plan->sequence_length, err) < 0 ||
        het_view_name(&precision, arena, &name, err) < 0 ||
        (name && het_precision_parse(name, &plan->precision, err) < 0))
        return -1;
    name = NULL;
    if (het_view_name(&optimizer, arena, &name, err) < 0 ||
        (name && het_optimizer_parse(name, &plan->optimizer, err) < 0))
        return -1;
    return 0;
}

int het_plan_json_read(struct het_arena *arena, const json_t *json,
                       const struct het_plan **ret, struct het_error *err)
{
    struct het_view root = het_view_root(json);
    struct het_plan *plan = het_arena_alloc(arena, sizeof *plan);
    if (read_plan_header(arena, &root, plan, err) < 0 ||
        read_pipelines(arena, &root, plan, err) < 0 ||
        read_idle(arena, &root, plan, err) < 0 ||
        read_unused(arena, &root, plan, err) < 0 ||
        het_prediction_json_read(arena, &root, &plan->predicted, err) < 0 ||
        read_report(&root, &plan->search, err) < 0)
        return -1;
    plan->predicted.is_read = true;
    *ret = plan;
    return 0;
}

int het_plan_json_text(struct het_arena *arena, const char *text, const char *what,
                       const struct het_plan **ret, struct het_error *err)
{
    json_auto_t *json = NULL;
    if (het_json_decode(text, strlen(text), what, &json, err) < 0)
        return -1;
    return het_plan_json_read(arena, json, ret, err);
}

/* ---- out ---- */

static json_t *gpus_json(const uint32_t *gpus, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, het_json_u64(gpus[i]));
    return list;
}

static json_t *stage_json(const struct het_stage *stage)
{
    json_t *replicas = json_array();
    for (size_t r = 0; r < stage->replica_count; r++) {
        const struct het_replica *replica = &stage->replicas[r];
        json_array_append_new(replicas,
                              het_json_pack("{s:s, s:o, s:s, s:o}", "gpuType",
                                            replica->type_name, "microBatchSize",
                                            het_json_u64(replica->microbatch_size),
                                            "node", replica->node_name, "gpus",
                                            gpus_json(replica->gpus, replica->tp)));
    }
    return het_json_pack("{s:o, s:o, s:s, s:o}", "firstLayer",
                         het_json_u64(stage->first_layer), "layerCount",
                         het_json_u64(stage->layer_count), "recompute",
                         recompute_names[stage->recompute], "replicas", replicas);
}

static json_t *pipelines_json(const struct het_plan *plan)
{
    json_t *pipelines = json_array();
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        const struct het_pipeline *pipeline = &plan->pipelines[p];
        json_t *stages = json_array();
        for (size_t s = 0; s < pipeline->stage_count; s++)
            json_array_append_new(stages, stage_json(&pipeline->stages[s]));
        json_array_append_new(pipelines,
                              het_json_pack("{s:o, s:o}", "microBatches",
                                            het_json_u64(pipeline->microbatch_count),
                                            "stages", stages));
    }
    return pipelines;
}

static json_t *idle_json(const struct het_plan *plan)
{
    json_t *list = json_array();
    for (size_t i = 0; i < plan->idle_count; i++)
        json_array_append_new(
            list, het_json_pack("{s:s, s:o}", "node", plan->idle[i].node_name, "gpus",
                                gpus_json(plan->idle[i].gpus, plan->idle[i].gpu_count)));
    return list;
}

/* A plan written by hand need not say what algorithm found it. */
static json_t *body_json(const struct het_plan *plan)
{
    const char *algorithm = *plan->algorithm ? plan->algorithm : NULL;
    json_t *length = plan->sequence_length ? het_json_u64(plan->sequence_length) : NULL;
    return het_json_pack("{s:s, s:s, s:s*, s:o, s:o*, s:o, s:s, s:s, s:s, s:o, s:o}",
                         "apiVersion", API_VERSION, "kind", "Plan", "algorithm",
                         algorithm, "globalBatchSize", het_json_u64(plan->global_batch),
                         "sequenceLength", length, "layerCount",
                         het_json_u64(plan->layer_count), "schedule", "1F1B", "precision",
                         het_precision_name(plan->precision), "optimizer",
                         het_optimizer_name(plan->optimizer), "pipelines",
                         pipelines_json(plan), "idle", idle_json(plan));
}

static json_t *statistics_json(const struct het_search_statistics *statistics)
{
    json_t *json = het_json_pack(
        "{s:o, s:o, s:o, s:o}", "groupLists", het_json_u64(statistics->groups_enumerated),
        "strategies", het_json_u64(statistics->strategies_tried), "failedPartitions",
        het_json_u64(statistics->partitions_failed), "plansPriced",
        het_json_u64(statistics->plans_priced));
    if (statistics->walk_best)
        json_object_set_new(
            json, "walk",
            het_json_pack("{s:o, s:o, s:o, s:s, s:f}", "steps",
                          het_json_u64(statistics->walk_steps), "plans",
                          het_json_u64(statistics->walk_plans), "brokenPlans",
                          het_json_u64(statistics->walk_broken), "best",
                          statistics->walk_best, "bestSeconds", statistics->walk_best_s));
    return json;
}

static json_t *predicted_json(const struct het_prediction *predicted)
{
    json_t *json = het_prediction_json(predicted);
    if (predicted->stable)
        json_object_set_new(json, "stable", het_plan_json(predicted->stable));
    return json;
}

json_t *het_plan_json(const struct het_plan *plan)
{
    json_t *json = body_json(plan);
    if (plan->unused_count)
        json_object_set_new(json, "unused",
                            het_unused_json(plan->unused, plan->unused_count));
    if (plan->predicted.iteration_s > 0)
        json_object_set_new(json, "predicted", predicted_json(&plan->predicted));
    if (plan->search.effort)
        json_object_set_new(
            json, "search",
            het_json_pack(
                "{s:o, s:o, s:o, s:b}", "effort", het_json_u64(plan->search.effort),
                "plansPriced", het_json_u64(plan->search.plans_priced), "seed",
                het_json_u64(plan->search.seed), "optimal", plan->search.optimal));
    if (plan->search.effort && plan->search.has_run_out)
        json_object_set_new(json_object_get(json, "search"), "ranOut", json_true());
    if (plan->search.effort && plan->search.is_cut_short)
        json_object_set_new(json_object_get(json, "search"), "cutShort", json_true());
    if (plan->search.effort && plan->search.has_statistics)
        json_object_set_new(json_object_get(json, "search"), "statistics",
                            statistics_json(&plan->search.statistics));
    return json;
}

const char *het_plan_json_hash(struct het_arena *arena, const struct het_plan *plan)
{
    static const char prefix[] = "sha256:";
    json_auto_t *body = body_json(plan);
    auto_free char *text = het_json_canonical(body);
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256_CTX context;
    SHA256_Init(&context);
    SHA256_Update(&context, text, strlen(text));
    SHA256_Final(digest, &context);
    char *hash = het_arena_alloc(arena, sizeof prefix + 2 * sizeof digest);
    char *out = stpcpy(hash, prefix);
    for (size_t i = 0; i < sizeof digest; i++) {
        *out++ = "0123456789abcdef"[digest[i] >> 4];
        *out++ = "0123456789abcdef"[digest[i] & 15];
    }
    return hash;
}

/* ---- ranks ---- */

struct rank_place {
    const struct het_rank_node *node;
    const struct het_stage *stage;
    const struct het_replica *replica;
    size_t pipeline_index, stage_index, replica_index;
    uint32_t tensor_index;
};

static int compare_rank_nodes(const void *a, const void *b)
{
    const struct het_rank_node *left = a, *right = b;
    return strcmp(left->node_name, right->node_name);
}

/* Which place of the plan each rank has; [ret_count]. A GPU index beyond those that the
 * node's replicas use together is no rank and left out. */
static struct rank_place *place_ranks(struct het_arena *arena,
                                      const struct het_plan *plan, size_t *ret_count)
{
    struct het_rank_node *nodes;
    size_t node_count = het_plan_rank_nodes(arena, plan, &nodes);
    size_t world = node_count ? nodes[node_count - 1].rank_offset +
                                    nodes[node_count - 1].gpu_count
                              : 0;
    qsort(nodes, node_count, sizeof *nodes, compare_rank_nodes);
    struct rank_place *ranks = HET_ARENA_ARRAY(arena, struct rank_place, world);
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++) {
                const struct het_replica *replica = &stage->replicas[r];
                const struct het_rank_node key = { .node_name = replica->node_name };
                const struct het_rank_node *node =
                    bsearch(&key, nodes, node_count, sizeof *nodes, compare_rank_nodes);
                for (uint32_t t = 0; t < replica->tp; t++)
                    if (replica->gpus[t] < node->gpu_count)
                        ranks[node->rank_offset + replica->gpus[t]] =
                            (struct rank_place){ node, stage, replica, p, s, r, t };
            }
        }
    *ret_count = world;
    return ranks;
}

json_t *het_plan_json_rankmap(const struct het_plan *plan)
{
    struct het_arena *arena = het_arena_new();
    size_t world;
    const struct rank_place *ranks = place_ranks(arena, plan, &world);
    json_t *list = json_array();
    for (size_t i = 0; i < world; i++) {
        const struct rank_place *place = &ranks[i];
        if (!place->replica)
            continue;
        json_array_append_new(
            list,
            het_json_pack("{s:o, s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                          "rank", het_json_u64(i), "node", place->node->node_name,
                          "localIndex", het_json_u64(i - place->node->rank_offset),
                          "gpuType", place->replica->type_name, "pipeline",
                          het_json_u64(place->pipeline_index), "stage",
                          het_json_u64(place->stage_index), "replica",
                          het_json_u64(place->replica_index), "tensorParallelIndex",
                          het_json_u64(place->tensor_index), "tensorParallel",
                          het_json_u64(place->replica->tp), "firstLayer",
                          het_json_u64(place->stage->first_layer), "layerCount",
                          het_json_u64(place->stage->layer_count), "microBatchSize",
                          het_json_u64(place->replica->microbatch_size)));
    }
    het_arena_free(arena);
    return het_json_pack("{s:o, s:o}", "worldSize", het_json_u64(world), "ranks", list);
}
