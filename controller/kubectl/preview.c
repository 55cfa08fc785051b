#include "controller/kubectl/preview.h"

#include "controller/decision/children.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct preview {
    const struct settings *settings;
    const json_t *hardware;
    struct store *store;
    struct capacity *capacity;
    struct het_arena *arena;
};

static int use_hardware(struct preview *preview, struct het_error *err)
{
    const struct het_hardware *hardware = het_hardware_builtin();
    if (preview->hardware && het_hardware_json_read(preview->arena, preview->hardware,
                                                    hardware, &hardware, err) < 0)
        return -1;
    capacity_set_hardware(preview->capacity, hardware, 0);
    return 0;
}

struct preview *preview_new(const struct settings *settings, const json_t *hardware,
                            struct het_error *err)
{
    struct preview *preview = xcalloc(1, sizeof *preview);
    *preview = (struct preview){ .settings = settings,
                                 .hardware = hardware,
                                 .store = store_new(),
                                 .capacity = capacity_new(),
                                 .arena = het_arena_new() };
    capacity_set_settings(preview->capacity, settings, 0);
    if (!use_hardware(preview, err))
        return preview;
    preview_free(preview);
    return NULL;
}

void preview_free(struct preview *preview)
{
    if (!preview)
        return;
    capacity_free(preview->capacity);
    store_free(preview->store);
    het_arena_free(preview->arena);
    free(preview);
}

void preview_add(struct preview *preview, const struct kube_resource *resource,
                 json_t *object)
{
    store_replace(preview->store, resource, object);
}

void preview_add_job(struct preview *preview, const char *ns, const json_t *job)
{
    json_auto_t *copy = json_deep_copy(job);
    json_t *metadata = json_object_get(copy, "metadata");
    json_t *held = store_find(preview->store, &kube_job, ns, kube_name(copy));
    json_object_set_new(metadata, "namespace", json_string(ns));
    json_object_set_new(metadata, "uid", json_string(held ? kube_uid(held) : "preview"));
    json_object_set_new(metadata, "resourceVersion", /* newer than what is there */
                        json_sprintf("%s0", held ? kube_resource_version(held) : "1"));
    store_replace(preview->store, &kube_job, copy);
}

/* Tells the capacity of all that takes GPUs. */
static void count_gpus(struct preview *preview, int64_t now_ms)
{
    struct capacity *capacity = preview->capacity;
    struct store *store = preview->store;
    for (size_t i = 0; i < store_count(store, &kube_node); i++) {
        json_t *node = store_at(store, &kube_node, i);
        capacity_set_node(capacity, kube_name(node), node, now_ms);
    }
    for (size_t i = 0; i < store_count(store, &kube_pod); i++) {
        json_t *pod = store_at(store, &kube_pod, i);
        capacity_set_pod(capacity, kube_uid(pod), pod);
    }
    for (size_t i = 0; i < store_count(store, &kube_config_map); i++) {
        json_t *map = store_at(store, &kube_config_map, i);
        capacity_set_plan(capacity, kube_uid(map), map);
    }
    for (size_t i = 0; i < store_count(store, &kube_job); i++) {
        json_t *job = store_at(store, &kube_job, i);
        auto_free char *key = xasprintf("%s/%s", kube_namespace(job), kube_uid(job));
        capacity_set_job(capacity, key, snapshot_job_is_finished(job) ? NULL : job);
    }
}

/* ---- the nodes of a plan that is there already ---- */

/* One more than the last GPU of `node` that `plan` takes. */
static int64_t gpus_taken(const struct het_plan *plan, const char *node)
{
    int64_t most = 0;
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++) {
                const struct het_replica *replica = &stage->replicas[r];
                for (uint32_t g = 0; g < replica->tp && !strcmp(replica->node_name, node);
                     g++)
                    most = replica->gpus[g] + 1 > most ? replica->gpus[g] + 1 : most;
            }
        }
    return most;
}

static void keep_plan(struct het_arena *arena, const struct het_plan *plan,
                      struct snapshot *snapshot)
{
    struct het_rank_node *used;
    size_t count = snapshot->node_count;
    size_t used_count = het_plan_rank_nodes(arena, plan, &used);
    struct capacity_node *nodes =
        HET_ARENA_ARRAY(arena, struct capacity_node, count + used_count);
    for (size_t i = 0; i < count; i++)
        nodes[i] = snapshot->nodes[i];
    for (size_t i = 0; i < used_count; i++) {
        int64_t taken = gpus_taken(plan, used[i].node_name);
        size_t at = 0;
        while (at < count && strcmp(nodes[at].name, used[i].node_name) != 0)
            at++;
        bool is_as_then = at < count && !strcmp(nodes[at].type, used[i].type_name);
        if (!is_as_then)
            nodes[at] = (struct capacity_node){ .name = used[i].node_name,
                                                .type = used[i].type_name };
        count += at == count;
        if (nodes[at].free < taken)
            nodes[at].free = taken;
    }
    snapshot->nodes = nodes;
    snapshot->node_count = count;
}

/* ---- the question ---- */

/* "2 nodes NotReady, 1 node without free GPUs": why none can be used. */
static const char *why_none(struct het_arena *arena, const struct snapshot *snapshot)
{
    if (snapshot->quota.reason)
        return snapshot->quota.message;
    const char *text = "";
    for (size_t i = 0; i < snapshot->node_count; i++) {
        const char *why = snapshot->nodes[i].unusable;
        size_t same = 0;
        bool is_told = false;
        for (size_t k = 0; k < snapshot->node_count; k++) {
            const char *other = snapshot->nodes[k].unusable;
            bool equal = why && other ? !strcmp(why, other) : why == other;
            same += equal;
            is_told = is_told || (equal && k < i);
        }
        if (!is_told)
            text = het_arena_printf(arena, "%s%s%zu node%s %s", text, *text ? ", " : "",
                                    same, same == 1 ? "" : "s",
                                    why ? why : "without a free GPU");
    }
    return *text ? text : "there is no node with GPUs";
}

static int check_snapshot(const struct snapshot *snapshot, struct het_error *err)
{
    const struct job_spec *spec = &snapshot->spec;
    const char *ns = kube_namespace(snapshot->job), *name = kube_name(snapshot->job);
    if (snapshot->refused_reason)
        return het_fail(err, HET_BAD_INPUT, "job %s/%s: %s", ns, name, snapshot->refused);
    if (spec->profile_name && !snapshot->profile)
        return het_fail(err, HET_BAD_INPUT,
                        "job %s/%s: spec.model.profileRef: there is no profile %s", ns,
                        name, spec->profile_name);
    return 0;
}

int preview_question(struct preview *preview, const struct preview_request *request,
                     json_t **ret, struct het_error *err)
{
    struct snapshot_sources sources = {
        .store = preview->store,
        .capacity = preview->capacity,
        .hardware = preview->hardware,
        .settings = preview->settings,
        .kueue = request->knows_queues ? KUEUE_PRESENT : KUEUE_ABSENT,
        .now_ms = request->now_ms,
        .wall_ms = request->wall_ms,
    };
    struct snapshot snapshot;
    count_gpus(preview, request->now_ms);
    if (!snapshot_take(preview->arena, &sources, request->ns, request->name, NULL,
                       &snapshot))
        return het_fail(err, HET_BAD_INPUT, "there is no job %s/%s", request->ns,
                        request->name);
    if (check_snapshot(&snapshot, err) < 0)
        return -1;
    if (request->plan)
        keep_plan(preview->arena, request->plan, &snapshot);
    json_t *question = children_question(&snapshot);
    if (!question)
        return het_fail(err, HET_NO_PLAN, "job %s/%s: no GPU can be used now: %s",
                        request->ns, request->name, why_none(preview->arena, &snapshot));
    *ret = question;
    return 0;
}
