#include "tests/controller/world.h"

#include "controller/base/object.h"
#include "controller/simulate/api_server/merge.h"
#include "tests/controller/objects.h"
#include "tests/controller/recorded.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WALL_ZERO_MS ((int64_t)1767225600000) /* 2026-01-01T00:00:00Z */

struct world *world_new(void)
{
    struct world *world = xcalloc(1, sizeof *world);
    world->store = store_new();
    world->capacity = capacity_new();
    world->arena = het_arena_new();
    world->now_ms = 1000000;
    world->next_uid = world->next_version = 1;
    world->server_minor = 34;
    world->event_reasons = json_object();
    world_put(world, &kube_model_profile,
              quoted("{'kind': 'ModelProfile', 'metadata': {'name': 'p', 'namespace': "
                     "'ns', 'generation': 1}, 'spec': {'layers': 1}}"));
    return world;
}

void world_free(struct world *world)
{
    store_free(world->store);
    capacity_free(world->capacity);
    het_arena_free(world->arena);
    json_decref(world->event_reasons);
    free(world->answer);
    free(world->what_if);
    free(world);
}

static void tell_capacity(struct world *world, const struct kube_resource *resource,
                          const char *name, const char *uid, json_t *object)
{
    if (resource == &kube_node)
        capacity_set_node(world->capacity, name, object, world->now_ms);
    else if (resource == &kube_pod)
        capacity_set_pod(world->capacity, uid, object);
    else if (resource == &kube_config_map)
        capacity_set_plan(world->capacity, uid, object);
    else if (resource == &kube_job) {
        auto_free char *key = xasprintf("ns/%s", uid);
        capacity_set_job(world->capacity, key,
                         object && !snapshot_job_is_finished(object) ? object : NULL);
    }
}

json_t *world_put(struct world *world, const struct kube_resource *resource,
                  json_t *object)
{
    json_t *metadata = json_object_get(object, "metadata");
    const char *ns = kube_namespace(object);
    json_t *held = store_find(world->store, resource, ns, kube_name(object));
    if (!*kube_uid(object))
        json_object_set_new(metadata, "uid",
                            held ? json_string(kube_uid(held))
                                 : json_sprintf("uid-%d", (int)world->next_uid++));
    json_object_set_new(metadata, "resourceVersion",
                        json_sprintf("%d", (int)world->next_version++));
    ck_assert(store_put(world->store, resource, object));
    tell_capacity(world, resource, kube_name(object), kube_uid(object), object);
    json_decref(object);
    return store_find(world->store, resource, ns, kube_name(object));
}

void world_remove(struct world *world, const struct kube_resource *resource,
                  const char *ns, const char *name)
{
    json_t *held = json_incref(store_find(world->store, resource, ns, name));
    ck_assert_msg(held != NULL, "no %s %s", resource->kind, name);
    store_remove(world->store, resource, ns, name, NULL);
    tell_capacity(world, resource, name, kube_uid(held), NULL);
    json_decref(held);
}

void world_node(struct world *world, const char *name, const char *product, int gpus)
{
    world_put(world, &kube_node,
              quoted("{'metadata': {'name': '%s', 'labels': {'nvidia.com/gpu.product': "
                     "'%s', 'nvidia.com/gpu.count': '%d'}}, 'spec': {}, 'status': "
                     "{'allocatable': {'nvidia.com/gpu': '%d'}, 'conditions': [{'type': "
                     "'Ready', 'status': 'True'}]}}",
                     name, product, gpus, gpus));
}

/* Calls `each` for every "node:gpus" of a list "a:4 b:2". */
static void for_nodes(const char *nodes, void *context,
                      void (*each)(void *context, const char *name, int gpus))
{
    auto_free char *list = xstrdup(nodes);
    char *rest = list;
    for (char *word; (word = strsep(&rest, " "));) {
        char *colon = strchr(word, ':');
        ck_assert_ptr_nonnull(colon);
        *colon = '\0';
        each(context, word, atoi(colon + 1));
    }
}

static void add_node(void *world, const char *name, int gpus)
{
    world_node(world, name, "NVIDIA-" A100, gpus);
}

struct world *world_of(const char *nodes)
{
    struct world *world = world_new();
    for_nodes(nodes, world, add_node);
    return world;
}

json_t *world_copy(struct world *world, const struct kube_resource *resource,
                   const char *ns, const char *name)
{
    json_t *held = store_find(world->store, resource, ns, name);
    ck_assert_msg(held != NULL, "no %s %s", resource->kind, name);
    return json_deep_copy(held);
}

void world_node_ready(struct world *world, const char *name, bool is_ready)
{
    json_t *node = world_copy(world, &kube_node, "", name);
    json_object_set_new(
        json_object_get(node, "status"), "conditions",
        quoted("[{'type': 'Ready', 'status': '%s'}]", is_ready ? "True" : "Unknown"));
    world_put(world, &kube_node, node);
}

void world_job(struct world *world, const char *spec)
{
    json_t *job = quoted(
        "{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'HeteroTrainingJob', "
        "'metadata': {'name': 'job', 'namespace': 'ns', 'generation': 1, "
        "'creationTimestamp': '2026-01-01T00:00:00Z'}, 'spec': {'model': {'profileRef': "
        "{'kind': 'ModelProfile', 'name': 'p'}}, 'training': {'globalBatchSize': 64}, "
        "'replanPolicy': {'debounceSeconds': 30, 'cooldownSeconds': 600}, "
        "'podTemplate': {'spec': {'containers': [{'name': 'trainer', 'image': 'x'}]}}}}");
    json_auto_t *extra = quoted("%s", spec);
    json_object_update_recursive(json_object_get(job, "spec"), extra);
    world_put(world, &kube_job, make_restricted(job));
}

json_t *world_get_job(struct world *world)
{
    return store_find(world->store, &kube_job, "ns", "job");
}

json_t *world_status(struct world *world, const char *key)
{
    return json_object_get(json_object_get(world_get_job(world), "status"), key);
}

int64_t world_generation(struct world *world)
{
    return json_integer_value(json_object_get(world_status(world, "plan"), "revision"));
}

const char *world_reason(struct world *world, const char *type)
{
    return object_text(object_find_condition(world_get_job(world), type), "reason");
}

const char *world_message(struct world *world, const char *type)
{
    return object_text(object_find_condition(world_get_job(world), type), "message");
}

const char *world_plan_annotation(struct world *world, int generation, const char *key)
{
    auto_free char *name = xasprintf("job-plan-%d", generation);
    return kube_annotation(store_find(world->store, &kube_config_map, "ns", name), key);
}

struct replicas {
    json_t *list;
    const char *type;
};

static void add_replica(void *context, const char *name, int gpus)
{
    struct replicas *replicas = context;
    json_t *indices = json_array();
    for (int i = 0; i < gpus; i++)
        json_array_append_new(indices, json_integer(i));
    json_array_append_new(replicas->list,
                          json_pack("{s:s, s:i, s:s, s:o}", "gpuType", replicas->type,
                                    "microBatchSize", 1, "node", name, "gpus", indices));
}

char *world_plan(const char *nodes, const char *type, double iteration_s)
{
    struct replicas replicas = { .list = json_array(), .type = type };
    for_nodes(nodes, &replicas, add_replica);
    int count = (int)json_array_size(replicas.list);
    json_auto_t *plan = json_pack(
        "{s:s, s:s, s:s, s:i, s:i, s:s, s:s, s:s, s:[{s:i, s:[{s:i, s:i, s:s, s:o}]}], "
        "s:[], s:{s:f, s:f}}",
        "apiVersion", "heterotrain.io/v1alpha1", "kind", "Plan", "algorithm", "metis",
        "globalBatchSize", 4 * count, "layerCount", 2, "schedule", "1F1B", "precision",
        "fp32", "optimizer", "adam", "pipelines", "microBatches", 4, "stages",
        "firstLayer", 0, "layerCount", 2, "recompute", "none", "replicas", replicas.list,
        "idle", "predicted", "iterationSeconds", iteration_s, "samplesPerSecond",
        4.0 * count / iteration_s);
    ck_assert_ptr_nonnull(plan);
    return json_dumps(plan, JSON_COMPACT | JSON_SORT_KEYS);
}

static void set_answer(struct world *world, enum answer_kind kind, const char *text,
                       const char *message)
{
    ck_assert(world->memory.is_planning);
    bool is_what_if = world->memory.is_what_if;
    char **held = is_what_if ? &world->what_if : &world->answer;
    free(*held);
    *held = xcalloc(strlen(text) + strlen(message) + 2, 1);
    strcpy(*held, text);
    strcpy(*held + strlen(text) + 1, message);
    world->memory.is_planning = false;
    *(is_what_if ? &world->memory.what_if : &world->memory.answer) =
        (struct planner_answer){
            .kind = kind,
            .digest = world->memory.planning_digest,
            .spec_digest = world->memory.planning_spec_digest,
            .parts = world->memory.planning_parts,
            .asked_ms = world->memory.planning_asked_ms,
            .text = *held,
            .message = *held + strlen(text) + 1,
        };
}

void world_answer(struct world *world, const char *plan)
{
    set_answer(world, ANSWER_PLAN, plan, "");
}

void world_answer_nodes(struct world *world, const char *nodes, double iteration_s)
{
    auto_free char *plan = world_plan(nodes, A100, iteration_s);
    world_answer(world, plan);
}

void world_answer_no_plan(struct world *world, const char *why)
{
    set_answer(world, ANSWER_NO_PLAN, "", why);
}

void world_answer_refused(struct world *world, const char *why)
{
    set_answer(world, ANSWER_REFUSED, "", why);
}

static void patch(struct world *world, const struct action *action)
{
    json_t *held = store_find(world->store, action->resource, action->ns, action->name);
    const json_t *metadata = json_object_get(action->object, "metadata");
    const char *version = json_string_value(json_object_get(metadata, "resourceVersion"));
    char *why = NULL;
    ck_assert_msg(held && !strcmp(kube_uid(held), action->uid), "patch of a stranger");
    ck_assert_msg(!version || !strcmp(version, kube_resource_version(held)), "conflict");
    json_t *changed = json_is_array(action->object)
                          ? merge_operations(held, action->object, &why)
                          : merge_patch(held, action->object);
    ck_assert_msg(changed != NULL, "patch of %s: %s", action->name, why);
    world_put(world, action->resource, changed);
}

static void perform(struct world *world, const struct action *action)
{
    json_t *object = action->object ? json_deep_copy(action->object) : NULL;
    world->writes += action->kind != ACTION_PLAN && action->kind != ACTION_HOOK &&
                     action->kind != ACTION_REFRESH;
    switch (action->kind) {
    case ACTION_CREATE:
        ck_assert_ptr_null(
            store_find(world->store, action->resource, action->ns, action->name));
        world_put(world, action->resource, object);
        return;
    case ACTION_APPLY: {
        json_t *held =
            store_find(world->store, action->resource, action->ns, action->name);
        json_t *merged = held ? json_deep_copy(held) : json_object();
        json_object_update_recursive(merged, object);
        world_put(world, action->resource, merged);
        break;
    }
    case ACTION_PATCH:
        patch(world, action);
        break;
    case ACTION_REFRESH:
        world->refreshes++;
        break;
    case ACTION_DELETE: {
        json_t *held =
            store_find(world->store, action->resource, action->ns, action->name);
        ck_assert_str_eq(kube_uid(held), action->uid);
        world->last_grace_s = action->grace_s;
        world_remove(world, action->resource, action->ns, action->name);
        break;
    }
    case ACTION_STATUS: {
        json_t *job = json_deep_copy(world_get_job(world));
        json_object_set(job, "status", json_object_get(object, "status"));
        world_put(world, &kube_job, job);
        break;
    }
    case ACTION_EVENT:
        world->events++;
        snprintf(world->last_event, sizeof world->last_event, "%s",
                 json_string_value(json_object_get(object, "reason")));
        json_object_set_new(world->event_reasons, world->last_event, json_true());
        break;
    case ACTION_HOOK:
        ck_assert_int_eq(world->memory.hook.outcome, HOOK_RUNNING);
        world->hooks++;
        break;
    case ACTION_PLAN:
        ck_assert(!world->memory.is_planning);
        world->plans_asked++;
        world->memory.is_planning = true;
        world->memory.is_what_if = action->is_what_if;
        world->memory.planning_digest = action->digest;
        world->memory.planning_spec_digest = action->spec_digest;
        world->memory.planning_parts = action->parts;
        world->memory.planning_asked_ms = world->now_ms;
        break;
    }
    json_decref(object);
}

size_t world_gates(const json_t *pod)
{
    return json_array_size(
        json_object_get(json_object_get(pod, "spec"), "schedulingGates"));
}

void world_decide(struct world *world, struct het_arena *arena, struct decision *ret)
{
    auto_free char *version = xasprintf("%" PRIu64, world->next_version);
    struct snapshot_sources sources = { .store = world->store,
                                        .capacity = world->capacity,
                                        .kueue = world->kueue,
                                        .settings = world->settings,
                                        .server_minor = world->server_minor,
                                        .pods_version = world->pods_version
                                                            ? world->pods_version
                                                            : version,
                                        .now_ms = world->now_ms,
                                        .wall_ms = WALL_ZERO_MS + world->now_ms };
    struct snapshot snapshot;
    ck_assert(snapshot_take(arena, &sources, "ns", "job", &world->memory, &snapshot));
    reconcile(arena, &snapshot, ret);
    recorded_check(NULL, &snapshot, ret);
    if (world->on_decision)
        world->on_decision(world->decision_context, &snapshot, ret);
}

bool world_has_event(const struct world *world, const char *reason)
{
    return json_object_get(world->event_reasons, reason) != NULL;
}

size_t world_step(struct world *world)
{
    struct het_arena *arena = het_arena_new();
    struct decision decision;
    /* What was decided borrows from the job, which a status replaces. */
    json_auto_t *job = json_incref(world_get_job(world));
    world_decide(world, arena, &decision);
    world->memory = decision.memory;
    size_t count = decision.action_count;
    for (size_t i = 0; i < count; i++)
        perform(world, &decision.actions[i]);
    decision_fini(&decision);
    het_arena_free(arena);
    const char *overcommitted = capacity_find_overcommit(world->capacity);
    ck_assert_msg(!overcommitted || world->is_contested, "node %s is overcommitted",
                  overcommitted);
    return count;
}

void world_settle(struct world *world)
{
    for (int pass = 0; pass < 20; pass++)
        if (!world_step(world))
            return;
    ck_abort_msg("the decisions do not come to rest");
}

void world_pass_s(struct world *world, int64_t seconds)
{
    world->now_ms += 1000 * seconds;
    world_settle(world);
}

void world_pod_phase(struct world *world, const char *name, const char *phase,
                     int exit_code)
{
    json_t *pod = world_copy(world, &kube_pod, "ns", name);
    json_object_set_new(
        pod, "status",
        quoted(
            "{'phase': '%s', 'podIP': '10.1.0.1', 'conditions': [{'type': 'PodScheduled', 'status': 'True'}, "
            "{'type': 'Ready', 'status': '%s'}], 'containerStatuses': [{'name': "
            "'trainer', 'state': {'terminated': {'exitCode': %d, 'finishedAt': "
            "'2026-01-01T00:00:00Z'}}}]}",
            phase, !strcmp(phase, "Running") ? "True" : "False", exit_code));
    world_put(world, &kube_pod, pod);
}

void world_run_pods(struct world *world)
{
    for (size_t i = 0; i < store_count(world->store, &kube_pod); i++) {
        json_t *pod = json_deep_copy(store_at(world->store, &kube_pod, i));
        json_t *spec = json_object_get(pod, "spec");
        const json_t *terms = json_object_get(
            json_object_get(
                json_object_get(json_object_get(spec, "affinity"), "nodeAffinity"),
                "requiredDuringSchedulingIgnoredDuringExecution"),
            "nodeSelectorTerms");
        json_t *pin =
            json_array_get(json_object_get(json_array_get(terms, 0), "matchFields"), 0);
        json_object_set(spec, "nodeName",
                        json_array_get(json_object_get(pin, "values"), 0));
        auto_free char *name = xstrdup(kube_name(pod));
        world_put(world, &kube_pod, pod);
        world_pod_phase(world, name, "Running", 0);
    }
}

void world_run_job_on(struct world *world, const char *spec, const char *nodes)
{
    world_job(world, spec);
    world_settle(world);
    world_answer_nodes(world, nodes, 2.0);
    world_settle(world);
    world_run_pods(world);
    world_settle(world);
}

void world_run_job(struct world *world, const char *spec)
{
    world_run_job_on(world, spec, "a:4 b:4");
    ck_assert_str_eq(world_pods(world), "job-1-0@a job-1-1@b");
    ck_assert_str_eq(world_reason(world, "Running"), "AllPodsReady");
}

int64_t world_free_on(struct world *world, const char *node)
{
    const struct job_spec any = { 0 };
    struct capacity_node *nodes;
    size_t count =
        capacity_view(world->capacity, world->arena, "ns/other", &any, NULL, &nodes);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(nodes[i].name, node))
            return nodes[i].free;
    return -1;
}

const char *world_pods(struct world *world)
{
    const char *text = "";
    for (size_t i = 0; i < store_count(world->store, &kube_pod); i++) {
        json_t *pod = store_at(world->store, &kube_pod, i);
        const char *node =
            json_string_value(json_object_get(json_object_get(pod, "spec"), "nodeName"));
        text = het_arena_printf(world->arena, "%s%s%s@%s", text, *text ? " " : "",
                                kube_name(pod), node ? node : "");
    }
    return text;
}
