/* A cluster as a list of objects, what happens to it, and what is decided of each job:
 *
 *   { "objects": [ any watched object, ... ], "hardware": ..., "plan": PLAN,
 *     "then": [ [ OBJECT, ... ], ... ] }
 *
 * The objects go the way of watch events; then passes are decided and performed on the
 * table. "plan" is what the planner answers (if it is none: that nothing fits). After
 * each pass the next list of "then" is laid over the objects of those names; one with
 * "gone" is removed. No object may lead to a crash, to a write that is no JSON, or to one
 * without a name. */
#include "tests/fuzz/fuzz.h"

#include "controller/cluster/kept_fields.h"
#include "controller/decision/status.h"
#include "controller/reconcile/reconcile.h"
#include "controller/simulate/api_server/merge.h"

#include <stdlib.h>
#include <string.h>

enum { PASSES = 10, MAX_OBJECTS = 40, MAX_JOBS = 3 };
#define WALL_ZERO_MS ((int64_t)1767225600000) /* 2026-01-01T00:00:00Z */

struct world {
    struct store *store;
    struct capacity *capacity;
    const json_t *hardware;
    char *plan; /* NULL: nothing fits */
    int64_t now_ms;
    int version;
};

static const struct kube_resource *const resources[] = { &kube_node,
                                                         &kube_pod,
                                                         &kube_service,
                                                         &kube_config_map,
                                                         &kube_job,
                                                         &kube_model_profile,
                                                         &kube_cluster_model_profile };

static const struct kube_resource *resource_of(const json_t *object)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    for (size_t i = 0; kind && i < sizeof resources / sizeof *resources; i++)
        if (!strcmp(resources[i]->kind, kind))
            return resources[i];
    return NULL;
}

/* What the controller does on an event; `after` NULL: the object is gone. */
static void tell_capacity(struct world *world, const struct kube_resource *resource,
                          const json_t *object, json_t *after)
{
    if (resource == &kube_node) {
        capacity_set_node(world->capacity, kube_name(object), after, world->now_ms);
    } else if (resource == &kube_pod) {
        capacity_set_pod(world->capacity, kube_uid(object), after);
    } else if (resource == &kube_config_map) {
        capacity_set_plan(world->capacity, kube_uid(object), after);
    } else if (resource == &kube_job) {
        auto_free char *key =
            xasprintf("%s/%s", kube_namespace(object), kube_uid(object));
        capacity_set_job(world->capacity, key,
                         after && !snapshot_job_is_finished(after) ? after : NULL);
    }
}

static json_t *trim(const struct kube_resource *resource, json_t *object)
{
    if (resource == &kube_node)
        return kept_fields_node(object);
    return resource == &kube_pod ? kept_fields_pod(object) : json_incref(object);
}

static void put(struct world *world, const struct kube_resource *resource, json_t *object)
{
    json_auto_t *before = json_incref(
        store_find(world->store, resource, kube_namespace(object), kube_name(object)));
    json_auto_t *kept = trim(resource, object);
    if (!store_put(world->store, resource, kept))
        return;
    if (before && strcmp(kube_uid(before), kube_uid(kept)) != 0)
        tell_capacity(world, resource, before, NULL);
    tell_capacity(world, resource, kept, kept);
}

/* What the server adds: a uid, and the next version. */
static void put_written(struct world *world, const struct action *action, json_t *object)
{
    json_t *held = store_find(world->store, action->resource, action->ns, action->name);
    json_t *metadata = json_object_get(object, "metadata");
    assert(json_is_object(metadata)); /* it has a name */
    json_object_set_new(metadata, "uid",
                        held ? json_string(kube_uid(held))
                             : json_sprintf("new-%d", world->version));
    json_object_set_new(metadata, "resourceVersion",
                        json_sprintf("9%017d", world->version++));
    put(world, action->resource, object);
}

static void perform(struct world *world, const struct action *action)
{
    json_t *held = store_find(world->store, action->resource, action->ns, action->name);
    json_auto_t *object = NULL;
    switch (action->kind) {
    case ACTION_CREATE:
        object = json_deep_copy(action->object);
        if (!held)
            put_written(world, action, object);
        return;
    case ACTION_APPLY:
    case ACTION_STATUS:
        object = held ? json_deep_copy(held) : json_object();
        json_object_update_recursive(object, action->object);
        put_written(world, action, object);
        return;
    case ACTION_DELETE:
        object = json_incref(held);
        if (held && store_remove(world->store, action->resource, action->ns, action->name,
                                 action->uid))
            tell_capacity(world, action->resource, object, NULL);
        return;
    case ACTION_PATCH:
        object = held && json_is_object(action->object)
                     ? merge_patch(held, action->object)
                     : NULL;
        if (object)
            put_written(world, action, object);
        return;
    case ACTION_EVENT:
    case ACTION_REFRESH:
    case ACTION_PLAN:
    case ACTION_HOOK:
        return;
    }
}

static void answer(struct world *world, const struct action *action,
                   struct job_memory *memory)
{
    memory->is_planning = false;
    memory->answer = (struct planner_answer){
        .kind = world->plan ? ANSWER_PLAN : ANSWER_NO_PLAN,
        .digest = action->digest,
        .text = world->plan ? world->plan : "",
        .message = world->plan ? "" : "nothing fits",
    };
}

static void assert_action(const struct action *action)
{
    if (action->kind == ACTION_REFRESH) {
        assert(action->query);
    } else if (action->kind != ACTION_DELETE) {
        assert(action->object);
        fuzz_assert_round_trip(action->object);
    } else {
        assert(action->uid);
    }
    if (action->kind == ACTION_PLAN || action->kind == ACTION_HOOK ||
        action->kind == ACTION_EVENT || action->kind == ACTION_REFRESH)
        return;
    assert(action->resource && action->ns && action->name && *action->name);
    assert(action->kind != ACTION_STATUS ||
           json_is_object(json_object_get(action->object, "status")));
}

/* References to all that the store holds: a decision borrows from it, and is performed
 * here while its strings are still in use. */
static json_t *hold_all(const struct world *world)
{
    json_t *held = json_array();
    for (size_t r = 0; r < sizeof resources / sizeof *resources; r++)
        for (size_t i = 0; i < store_count(world->store, resources[r]); i++)
            json_array_append(held, store_at(world->store, resources[r], i));
    return held;
}

static void decide(struct world *world, const char *ns, const char *name,
                   struct job_memory *memory)
{
    struct het_arena *arena = het_arena_new();
    struct snapshot_sources sources = { .store = world->store,
                                        .capacity = world->capacity,
                                        .hardware = world->hardware,
                                        .now_ms = world->now_ms,
                                        .wall_ms = WALL_ZERO_MS + world->now_ms };
    json_t *held = hold_all(world);
    struct snapshot snapshot;
    struct decision decision;
    if (snapshot_take(arena, &sources, ns, name, memory, &snapshot)) {
        reconcile(arena, &snapshot, &decision);
        *memory = decision.memory;
        for (size_t i = 0; i < decision.action_count; i++) {
            const struct action *action = &decision.actions[i];
            assert(!i || action->phase >= action[-1].phase);
            assert_action(action);
            if (action->kind == ACTION_PLAN)
                answer(world, action, memory);
            else
                perform(world, action);
        }
        assert(decision.summary);
        decision_fini(&decision);
    }
    json_decref(held);
    het_arena_free(arena);
}

/* Something happens to an object that is there. */
static void change(struct world *world, const json_t *patch)
{
    const struct kube_resource *resource = resource_of(patch);
    json_t *held = resource ? store_find(world->store, resource, kube_namespace(patch),
                                         kube_name(patch))
                            : NULL;
    if (!held)
        return;
    const struct action action = { .resource = resource,
                                   .ns = kube_namespace(patch),
                                   .name = kube_name(patch) };
    json_auto_t *before = json_incref(held), *after = json_deep_copy(held);
    if (json_object_get(patch, "gone")) {
        store_remove(world->store, resource, action.ns, action.name, NULL);
        tell_capacity(world, resource, before, NULL);
    } else {
        json_object_update_recursive(after, (json_t *)(uintptr_t)patch);
        put_written(world, &action, after);
    }
}

/* The keys are copied: the store may let go of the objects. */
struct job {
    char *ns, *name;
    struct job_memory memory;
};

static size_t find_jobs(const struct world *world, struct job *jobs)
{
    size_t count = 0;
    for (; count < store_count(world->store, &kube_job) && count < MAX_JOBS; count++) {
        const json_t *job = store_at(world->store, &kube_job, count);
        jobs[count] = (struct job){ .ns = xstrdup(kube_namespace(job)),
                                    .name = xstrdup(kube_name(job)) };
    }
    return count;
}

static void run(struct world *world, const json_t *objects, const json_t *then)
{
    struct job jobs[MAX_JOBS];
    size_t i;
    json_t *object;
    json_array_foreach (objects, i, object) {
        const struct kube_resource *resource = resource_of(object);
        if (resource && i < MAX_OBJECTS)
            put(world, resource, object);
    }
    size_t count = find_jobs(world, jobs);
    for (size_t pass = 0; pass < PASSES; pass++) {
        for (i = 0; i < count; i++)
            decide(world, jobs[i].ns, jobs[i].name, &jobs[i].memory);
        json_array_foreach (json_array_get(then, pass), i, object)
            change(world, object);
        world->now_ms += 31000; /* longer than the usual debounce */
    }
    /* Everything goes away again. */
    json_array_foreach (objects, i, object) {
        const struct kube_resource *resource = resource_of(object);
        if (resource)
            tell_capacity(world, resource, object, NULL);
    }
    capacity_find_overcommit(world->capacity);
    for (i = 0; i < count; i++) {
        free(jobs[i].ns);
        free(jobs[i].name);
    }
}

void fuzz_one(const char *bytes, size_t length)
{
    json_auto_t *json = fuzz_decode(bytes, length);
    if (!json)
        return;
    struct het_arena *arena = het_arena_new();
    const struct het_hardware *hardware;
    const json_t *plan = json_object_get(json, "plan");
    struct world world = { .store = store_new(),
                           .capacity = capacity_new(),
                           .hardware = json_object_get(json, "hardware"),
                           .plan = plan ? het_json_canonical(plan) : NULL,
                           .now_ms = 1000000 };
    if (world.hardware &&
        !het_hardware_json_read(arena, world.hardware, het_hardware_builtin(), &hardware,
                                NULL))
        capacity_set_hardware(world.capacity, hardware, world.now_ms);
    run(&world, json_object_get(json, "objects"), json_object_get(json, "then"));
    store_free(world.store);
    capacity_free(world.capacity);
    free(world.plan);
    het_arena_free(arena);
}
