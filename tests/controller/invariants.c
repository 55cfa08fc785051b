#include "tests/controller/invariants.h"

#include "controller/base/quantity.h"
#include "controller/decision/snapshot.h"
#include "controller/simulate/api_server/condition.h"
#include "controller/simulate/scheduler.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* What the controller's fresh look before the gates are lifted may not have seen. */
    KNOWN_AFTER_MS = 5000,
    /* A generation that is not whole ends so much later than its time-out says: back-offs
     * of requests, and the grace of its pods. */
    GANG_SLACK_MS = 90000,
    LATE_GANG_SLACK_MS = 400000,
};

struct invariants {
    struct simulation *simulation;
    struct api_server *server;
    struct invariants_config config;
    bool is_calm;
    json_t *jobs;       /* uid: {"ns", "name"}, of all that ever were */
    json_t *ran;        /* uid: true */
    json_t *planned;    /* uid of a plan's ConfigMap: {node: GPUs} */
    json_t *decided;    /* uid of a job: the ConfigMap of its plan that was made last */
    json_t *lost;       /* uid of a pod: its node was gone since it was bound */
    json_t *bound_ms;   /* uid of a pod: when it was bound */
    json_t *partial_ms; /* "uid/revision": since when only a part of it is bound */
    json_t *whole;      /* "uid/revision": all of it was bound once */
    struct invariants_statistics statistics;
    char *broken;
};

__attribute__((format(printf, 2, 3))) static void violate(struct invariants *invariants,
                                                          const char *format, ...)
{
    if (invariants->broken)
        return;
    va_list args;
    va_start(args, format);
    auto_free char *what = NULL;
    if (vasprintf(&what, format, args) < 0)
        abort();
    va_end(args);
    invariants->broken =
        xasprintf("after %.1f s: %s",
                  (double)simulation_now_ms(invariants->simulation) / 1000, what);
}

#define hold(condition, ...)                                                             \
    do {                                                                                 \
        if (!(condition))                                                                \
            violate(invariants, __VA_ARGS__);                                            \
    } while (0)

/* ---- reading objects ---- */

static int64_t generation_of(const json_t *object)
{
    return atoll(kube_label(object, LABEL_PLAN_REVISION));
}

/* The uid of the job that controls a child; "" if none does. */
static const char *owner_of(const json_t *object)
{
    size_t i;
    json_t *owner;
    json_array_foreach (object_at(object, "metadata.ownerReferences"), i, owner) {
        if (object_is_true(owner, "controller") &&
            !strcmp(object_text(owner, "kind"), "HeteroTrainingJob"))
            return object_text(owner, "uid");
    }
    return "";
}

/* The same of a pod that the controller made: a tenant can write an ownerReference, and
 * not our labels (the admission policy). */
static const char *owner_of_pod(const json_t *pod)
{
    const char *uid = owner_of(pod);
    return strcmp(kube_label(pod, LABEL_JOB_UID), uid) ? "" : uid;
}

static bool is_finished_pod(const json_t *pod)
{
    const char *phase = object_text(pod, "status.phase");
    return !strcmp(phase, "Succeeded") || !strcmp(phase, "Failed");
}

static bool is_gated(const json_t *pod)
{
    return json_array_size(object_at(pod, "spec.schedulingGates"));
}

static bool is_bound(const json_t *pod)
{
    return *object_text(pod, "spec.nodeName");
}

/* The node that a pod is bound to, or pinned to. */
static const char *node_of(const json_t *pod)
{
    if (is_bound(pod))
        return object_text(pod, "spec.nodeName");
    size_t i, k;
    json_t *term, *field;
    json_array_foreach (object_at(pod, "spec.affinity.nodeAffinity."
                                       "requiredDuringSchedulingIgnoredDuringExecution."
                                       "nodeSelectorTerms"),
                        i, term) {
        json_array_foreach (object_at(term, "matchFields"), k, field) {
            const char *node =
                json_string_value(json_array_get(object_at(field, "values"), 0));
            if (node)
                return node;
        }
    }
    return "";
}

static const char *const gpu_resources[] = { JOB_SPEC_GPU_RESOURCE,
                                             JOB_SPEC_AMD_RESOURCE };
#define GPU_RESOURCES (sizeof gpu_resources / sizeof *gpu_resources)

static int64_t gpus_of_pod(const json_t *pod)
{
    json_auto_t *requests = scheduler_requests(pod);
    int64_t milli = 0;
    for (size_t i = 0; i < GPU_RESOURCES; i++)
        milli += json_integer_value(json_object_get(requests, gpu_resources[i]));
    return milli / 1000;
}

static int64_t gpus_of_node(const json_t *node, const char *path)
{
    int64_t milli = 0;
    for (size_t i = 0; i < GPU_RESOURCES; i++)
        milli += quantity_of(json_object_get(object_at(node, path), gpu_resources[i]), 0);
    return milli / 1000;
}

/* Whether a pod can neither hold a GPU nor run a rank. */
static bool is_gone(const struct invariants *invariants, const json_t *pod)
{
    return is_finished_pod(pod) || json_object_get(invariants->lost, kube_uid(pod));
}

static bool is_our_pod_of(const json_t *pod, const char *uid)
{
    return !strcmp(owner_of_pod(pod), uid);
}

static json_t *find_job(const struct invariants *invariants, const char *uid)
{
    const json_t *known = json_object_get(invariants->jobs, uid);
    json_t *job = known ? api_server_find(invariants->server, "heterotrainingjobs",
                                          object_text(known, "ns"),
                                          object_text(known, "name"))
                        : NULL;
    return job && !strcmp(kube_uid(job), uid) ? job : NULL;
}

static bool is_plan(const json_t *map)
{
    return *owner_of(map) && generation_of(map);
}

static json_t *newest_plan(const struct invariants *invariants, const char *uid)
{
    json_t *newest = NULL;
    for (size_t i = 0; i < api_server_count(invariants->server, "configmaps"); i++) {
        json_t *map = api_server_at(invariants->server, "configmaps", i);
        if (is_plan(map) && !strcmp(owner_of(map), uid) &&
            (!newest || generation_of(map) > generation_of(newest)))
            newest = map;
    }
    return newest;
}

/* What the controller takes for the newest plan of a job. It may not have heard yet that
 * the job is gone, and all that is the job's goes in any order: the plan that was made
 * last is what a pod may still be of. It goes with the job, too. */
static json_t *newest_known_plan(const struct invariants *invariants, const char *uid)
{
    json_t *map = newest_plan(invariants, uid);
    if (map || !invariants->config.is_late || find_job(invariants, uid))
        return map;
    return json_object_get(invariants->decided, uid);
}

static bool is_retired(const json_t *map)
{
    return json_object_get(object_at(map, "metadata.annotations"), ANNOTATION_RETIRED);
}

/* GPUs of each node that the plan in `map` takes: {name: gpus}. */
static json_t *read_plan(const json_t *map)
{
    struct het_arena *arena = het_arena_new();
    const char *text =
        json_string_value(json_object_get(object_at(map, "data"), "plan.json"));
    json_auto_t *json = json_loads(text ? text : "", 0, NULL);
    const struct het_plan *plan = NULL;
    json_t *gpus = json_object();
    if (json && !het_plan_json_read(arena, json, &plan, NULL)) {
        struct het_rank_node *nodes;
        size_t count = het_plan_rank_nodes(arena, plan, &nodes);
        for (size_t i = 0; i < count; i++)
            json_object_set_new(gpus, nodes[i].node_name,
                                json_integer((json_int_t)nodes[i].gpu_count));
    }
    het_arena_free(arena);
    return gpus;
}

/* The same, borrowed; a plan does not change. */
static json_t *planned(const struct invariants *invariants, const json_t *map)
{
    if (!json_object_get(invariants->planned, kube_uid(map)))
        json_object_set_new(invariants->planned, kube_uid(map), read_plan(map));
    return json_object_get(invariants->planned, kube_uid(map));
}

int64_t invariants_planned_on(const struct invariants *invariants, const json_t *map,
                              const char *node)
{
    return json_integer_value(json_object_get(planned(invariants, map), node));
}

/* ---- a plan is decided ---- */

/* Whether the plan counts: the newest of a job that is there and not over. */
static bool holds_gpus(const struct invariants *invariants, const json_t *map)
{
    const json_t *job = find_job(invariants, owner_of(map));
    return is_plan(map) && job && !snapshot_job_is_finished(job) && !is_retired(map) &&
           newest_plan(invariants, owner_of(map)) == map;
}

static int64_t all_planned_on(const struct invariants *invariants, const char *node)
{
    int64_t taken = 0;
    for (size_t i = 0; i < api_server_count(invariants->server, "configmaps"); i++) {
        const json_t *map = api_server_at(invariants->server, "configmaps", i);
        if (holds_gpus(invariants, map))
            taken += invariants_planned_on(invariants, map, node);
    }
    return taken;
}

/* GPUs of different vendors cannot talk to each other. */
static void check_vendor(struct invariants *invariants, const json_t *map)
{
    const char *name, *first = NULL;
    json_t *count;
    json_object_foreach (planned(invariants, map), name, count) {
        const json_t *node = api_server_find(invariants->server, "nodes", "", name);
        const json_t *capacity = object_at(node, "status.capacity");
        const char *resource = NULL;
        for (size_t i = 0; i < GPU_RESOURCES; i++)
            if (json_object_get(capacity, gpu_resources[i]))
                resource = gpu_resources[i];
        first = first ? first : resource;
        hold(!resource || !strcmp(resource, first), "I11: %s has GPUs of %s and of %s",
             kube_name(map), first, resource);
    }
}

/* No GPU is planned twice; a plan that takes GPUs from a job that it names is a claim,
 * and waits for that job's pods to end. */
static void check_new_plan(struct invariants *invariants, const json_t *map)
{
    const char *name;
    json_t *count;
    invariants->statistics.plans++;
    check_vendor(invariants, map);
    json_object_set_new(invariants->decided, owner_of(map), json_deep_copy(map));
    invariants->statistics.retries +=
        !strcmp(kube_annotation(map, "heterotrain.io/trigger"), "PodsRefused");
    if (*kube_annotation(map, "heterotrain.io/preempts"))
        return;
    const json_t *job = find_job(invariants, owner_of(map));
    hold(job != NULL || invariants->config.is_late, "I6: plan %s of no job",
         kube_name(map));
    json_object_foreach (planned(invariants, map), name, count) {
        const json_t *node = api_server_find(invariants->server, "nodes", "", name);
        int64_t has = gpus_of_node(
            node, invariants->config.is_late ? "status.capacity" : "status.allocatable");
        int64_t taken = all_planned_on(invariants, name);
        hold(taken <= has || (!node && invariants->config.is_late),
             "I2: with %s, %" PRId64 " of %" PRId64 " GPUs of %s are planned",
             kube_name(map), taken, has, name);
    }
}

/* ---- pods ---- */

/* A pod is what the newest plan of its job says, where that says. */
static void check_planned_pod(struct invariants *invariants, const json_t *pod)
{
    const json_t *map = newest_known_plan(invariants, owner_of(pod));
    const char *node = node_of(pod);
    hold(map != NULL, "I3: %s has no plan", kube_name(pod));
    if (!map)
        return;
    hold(generation_of(map) == generation_of(pod),
         "I3: %s is made or released, but revision %" PRId64 " is decided",
         kube_name(pod), generation_of(map));
    hold(invariants_planned_on(invariants, map, node) == gpus_of_pod(pod),
         "I3: %s has %" PRId64 " GPUs on %s, not as planned", kube_name(pod),
         gpus_of_pod(pod), node);
}

static void check_new_pod(struct invariants *invariants, const json_t *pod)
{
    invariants->statistics.pods++;
    if (*owner_of(pod))
        check_planned_pod(invariants, pod);
}

/* Whether the controller must know of a pod when it lifts gates: its own, and what others
 * bound some time ago. */
static bool is_known(const struct invariants *invariants, const json_t *pod)
{
    json_t *at_ms = json_object_get(invariants->bound_ms, kube_uid(pod));
    return *owner_of_pod(pod) || (at_ms && json_integer_value(at_ms) + KNOWN_AFTER_MS <=
                                               simulation_now_ms(invariants->simulation));
}

static void check_fit(struct invariants *invariants, const json_t *pod)
{
    const char *name = node_of(pod);
    const json_t *node = api_server_find(invariants->server, "nodes", "", name);
    const char *path = invariants->config.is_late ? "status.capacity"
                                                  : "status.allocatable";
    int64_t taken = 0;
    for (size_t i = 0; i < api_server_count(invariants->server, "pods"); i++) {
        const json_t *other = api_server_at(invariants->server, "pods", i);
        if (!strcmp(node_of(other), name) && !is_gated(other) &&
            !is_gone(invariants, other) && is_known(invariants, other) &&
            (is_bound(other) || *owner_of_pod(other)))
            taken += gpus_of_pod(other);
    }
    if (node)
        hold(taken <= gpus_of_node(node, path),
             "I2: with %s, %" PRId64 " of %" PRId64 " GPUs of %s are asked for",
             kube_name(pod), taken, gpus_of_node(node, path), name);
}

/* A pod that the scheduler may place from now on. */
static void check_released_pod(struct invariants *invariants, const json_t *pod)
{
    const char *uid = owner_of(pod);
    check_planned_pod(invariants, pod);
    for (size_t i = 0; i < api_server_count(invariants->server, "pods"); i++) {
        const json_t *other = api_server_at(invariants->server, "pods", i);
        if (!is_our_pod_of(other, uid) || !strcmp(kube_uid(other), kube_uid(pod)) ||
            is_gone(invariants, other))
            continue;
        hold(generation_of(other) == generation_of(pod),
             "I1, I3: %s is released while %s may run", kube_name(pod), kube_name(other));
        hold(strcmp(kube_label(other, LABEL_POD_INDEX),
                    kube_label(pod, LABEL_POD_INDEX)) != 0 ||
                 generation_of(other) != generation_of(pod),
             "I1: %s and %s have one index", kube_name(pod), kube_name(other));
    }
    check_fit(invariants, pod);
}

/* ---- what the controller may write ---- */

/* Everything but what the controller may change of a job. */
static json_t *users_part(const json_t *job)
{
    json_t *copy = json_deep_copy(job);
    json_object_del(copy, "status");
    object_remove(copy, "metadata.resourceVersion");
    object_remove(copy, "metadata.managedFields");
    return copy;
}

static void check_write_of_job(struct invariants *invariants, const json_t *before,
                               const json_t *after)
{
    hold(before != NULL, "I7: the controller made job %s", kube_name(after));
    if (before && after) {
        json_auto_t *old = users_part(before);
        json_auto_t *new = users_part(after);
        hold(json_equal(old, new), "I7: the controller changed job %s",
             kube_name(before));
    }
    /* Nobody else's wish than the spec's. */
    if (before && (!after || object_at(after, "metadata.deletionTimestamp")) &&
        !object_at(before, "metadata.deletionTimestamp"))
        hold(snapshot_job_is_finished(before) &&
                 object_at(before, "spec.ttlSecondsAfterFinished"),
             "I7: the controller deleted job %s", kube_name(before));
}

/* A profile only gains one entry: what is in it stays as it is, whoever wrote it. */
static void check_write_of_profile(struct invariants *invariants, const json_t *before,
                                   const json_t *after)
{
    hold(after != NULL, "I7: the controller deleted profile %s", kube_name(before));
    json_auto_t *rest = after ? json_deep_copy(object_at(after, "spec")) : NULL;
    json_t *list = json_object_get(rest, "gpuTypes");
    size_t had = json_array_size(object_at(before, "spec.gpuTypes"));
    hold(json_array_size(list) == had + 1,
         "I7: profile %s had %zu types, the controller made it %zu", kube_name(after),
         had, json_array_size(list));
    if (list)
        json_array_remove(list, json_array_size(list) - 1);
    hold(!before || json_equal(rest, object_at(before, "spec")),
         "I7: the controller changed profile %s", kube_name(after));
}

static void check_write(struct invariants *invariants,
                        const struct api_server_change *change)
{
    static const char *const children[] = { "pods", "configmaps", "services", "jobs" };
    static const char *const free_kinds[] = { "events", "leases" };
    const json_t *object = change->before ? change->before : change->after;
    for (size_t i = 0; i < 2; i++)
        if (!strcmp(change->plural, free_kinds[i]))
            return;
    if (!strcmp(change->plural, "heterotrainingjobs")) {
        check_write_of_job(invariants, change->before, change->after);
        return;
    }
    if (!strcmp(change->plural, "modelprofiles")) {
        check_write_of_profile(invariants, change->before, change->after);
        return;
    }
    bool is_child = false;
    for (size_t i = 0; i < sizeof children / sizeof *children; i++)
        is_child = is_child || !strcmp(change->plural, children[i]);
    const json_t *known = json_object_get(invariants->jobs, owner_of(object));
    hold(is_child && known, "I7: the controller wrote %s %s, which is not its own",
         change->plural, kube_name(object));
    hold(!known ||
             !strcmp(object_text(known, "ns"), object_text(object, "metadata.namespace")),
         "I7: %s %s is in another namespace than its job", change->plural,
         kube_name(object));
    hold(!change->after || !strcmp(owner_of(object), owner_of(change->after)),
         "I7: %s %s changed its owner", change->plural, kube_name(object));
}

/* The controller ends a pod that does its work: only for something that happened. */
static void check_ended_pod(struct invariants *invariants, const json_t *pod)
{
    const json_t *job = find_job(invariants, owner_of(pod));
    hold(!invariants->is_calm || !job || snapshot_job_is_finished(job) ||
             !object_condition_is_true(pod, "Ready"),
         "I9: %s ran well and was ended, though nothing happened", kube_name(pod));
}

/* ---- jobs ---- */

static bool is_condition(const json_t *job, const char *type, const char *status)
{
    return !strcmp(object_condition(job, type), status);
}

/* What was said once is not taken back. */
static void check_job_change(struct invariants *invariants, const json_t *before,
                             const json_t *after)
{
    static const char *const final[] = { "Complete", "Failed" };
    static const char *const rising[] = { "status.observedGeneration",
                                          "status.plan.revision", "status.replans" };
    for (size_t i = 0; i < 2; i++)
        hold(!is_condition(before, final[i], "True") ||
                 is_condition(after, final[i], "True"),
             "I5: %s of %s is taken back", final[i], kube_name(after));
    hold(!is_condition(after, "Complete", "True") ||
             !is_condition(after, "Failed", "True"),
         "I5: %s is complete and failed", kube_name(after));
    for (size_t i = 0; i < 3; i++)
        hold(object_integer(after, rising[i], 0) >= object_integer(before, rising[i], 0),
             "I5: %s of %s falls", rising[i], kube_name(after));
    hold(object_integer(after, "status.observedGeneration", 0) <=
             object_integer(after, "metadata.generation", 0),
         "I5: %s has seen a spec that is not there", kube_name(after));
    if (is_condition(after, "Running", "True") &&
        !is_condition(before, "Running", "True"))
        json_object_set_new(invariants->ran, kube_uid(after), json_true());
}

/* ---- every change ---- */

static void note_job(struct invariants *invariants,
                     const struct api_server_change *change)
{
    if (!change->before) {
        json_object_set_new(invariants->jobs, kube_uid(change->after),
                            json_pack("{s:s, s:s}", "ns",
                                      object_text(change->after, "metadata.namespace"),
                                      "name", kube_name(change->after)));
        invariants->statistics.jobs_seen++;
    } else if (change->after) {
        check_job_change(invariants, change->before, change->after);
    }
}

/* Pods on a node that was away are lost, even if the node comes back. */
static void note_node(struct invariants *invariants,
                      const struct api_server_change *change)
{
    const json_t *node = change->after ? change->after : change->before;
    bool is_out = !change->after;
    size_t i;
    json_t *taint;
    json_array_foreach (object_at(change->after, "spec.taints"), i, taint) {
        is_out = is_out ||
                 !strcmp(object_text(taint, "key"), "node.kubernetes.io/out-of-service");
    }
    for (i = 0; is_out && i < api_server_count(invariants->server, "pods"); i++) {
        const json_t *pod = api_server_at(invariants->server, "pods", i);
        if (!strcmp(object_text(pod, "spec.nodeName"), kube_name(node)))
            json_object_set_new(invariants->lost, kube_uid(pod), json_true());
    }
}

static void note_pod(struct invariants *invariants,
                     const struct api_server_change *change)
{
    const json_t *before = change->before;
    const json_t *after = change->after;
    if (after && is_bound(after) && (!before || !is_bound(before)))
        json_object_set_new(invariants->bound_ms, kube_uid(after),
                            json_integer(simulation_now_ms(invariants->simulation)));
    if (!change->by_client)
        return;
    if (after && !is_gated(after) && (!before || is_gated(before)) && *owner_of(after))
        check_released_pod(invariants, after);
    if (!before)
        check_new_pod(invariants, after);
    bool ends = before && !object_at(before, "metadata.deletionTimestamp") &&
                (!after || object_at(after, "metadata.deletionTimestamp"));
    if (ends)
        check_ended_pod(invariants, before);
}

static void on_change(void *context, const struct api_server_change *change)
{
    struct invariants *invariants = context;
    invariants->statistics.changes++;
    if (!strcmp(change->plural, "heterotrainingjobs"))
        note_job(invariants, change);
    if (!strcmp(change->plural, "nodes"))
        note_node(invariants, change);
    if (!strcmp(change->plural, "pods"))
        note_pod(invariants, change);
    if (change->by_client && !strcmp(change->plural, "configmaps") && !change->before &&
        is_plan(change->after))
        check_new_plan(invariants, change->after);
    if (change->by_client)
        check_write(invariants, change);
}

/* ---- every step ---- */

/* The scheduler sees no GPU twice, either. */
static void check_bound_pods(struct invariants *invariants)
{
    json_auto_t *used = json_object();
    for (size_t i = 0; i < api_server_count(invariants->server, "pods"); i++) {
        const json_t *pod = api_server_at(invariants->server, "pods", i);
        if (!is_bound(pod) || is_finished_pod(pod))
            continue;
        const char *node = object_text(pod, "spec.nodeName");
        json_object_set_new(used, node,
                            json_integer(json_integer_value(json_object_get(used, node)) +
                                         gpus_of_pod(pod)));
    }
    for (size_t i = 0; i < api_server_count(invariants->server, "nodes"); i++) {
        const json_t *node = api_server_at(invariants->server, "nodes", i);
        int64_t taken = json_integer_value(json_object_get(used, kube_name(node)));
        int64_t has = gpus_of_node(node, "status.capacity");
        hold(taken <= has, "I2: %" PRId64 " of %" PRId64 " GPUs of %s are used", taken,
             has, kube_name(node));
    }
}

struct gang {
    int64_t wanted, bound;
    int64_t placed; /* those that have succeeded meanwhile, too */
};

static struct gang count_gang(const struct invariants *invariants, const json_t *map)
{
    struct gang gang = { .wanted = (int64_t)json_object_size(planned(invariants, map)) };
    for (size_t i = 0; i < api_server_count(invariants->server, "pods"); i++) {
        const json_t *pod = api_server_at(invariants->server, "pods", i);
        bool is_there = is_our_pod_of(pod, owner_of(map)) &&
                        generation_of(pod) == generation_of(map) && is_bound(pod);
        bool holds = is_there && !is_finished_pod(pod) &&
                     !object_at(pod, "metadata.deletionTimestamp");
        gang.bound += holds;
        gang.placed +=
            holds || (is_there && !strcmp(object_text(pod, "status.phase"), "Succeeded"));
    }
    return gang;
}

/* A gang that never was whole does not hold GPUs for longer than its time-out. */
static void check_gang(struct invariants *invariants, const json_t *map)
{
    const json_t *job = find_job(invariants, owner_of(map));
    if (!job)
        return;
    auto_free char *key = xasprintf("%s/%" PRId64, owner_of(map), generation_of(map));
    int64_t now_ms = simulation_now_ms(invariants->simulation);
    if (json_object_get(invariants->whole, key))
        return;
    struct gang gang = count_gang(invariants, map);
    if (gang.placed >= gang.wanted)
        json_object_set_new(invariants->whole, key, json_true());
    if (!gang.bound || gang.placed >= gang.wanted) {
        json_object_del(invariants->partial_ms, key);
        return;
    }
    const json_t *since_ms = json_object_get(invariants->partial_ms, key);
    if (!since_ms) {
        json_object_set_new(invariants->partial_ms, key, json_integer(now_ms));
        invariants->statistics.partial_gangs++;
        return;
    }
    int64_t timeout_ms = object_integer(job, "spec.scheduling.gangTimeoutSeconds", 300) *
                         1000;
    int64_t slack_ms = invariants->config.is_late ? LATE_GANG_SLACK_MS : GANG_SLACK_MS;
    hold(now_ms - json_integer_value(since_ms) <= timeout_ms + slack_ms,
         "gang: %" PRId64 " of %" PRId64 " pods of %s hold GPUs since %.1f s", gang.bound,
         gang.wanted, kube_name(map), (double)json_integer_value(since_ms) / 1000);
}

void invariants_step(struct invariants *invariants)
{
    check_bound_pods(invariants);
    for (size_t i = 0; i < api_server_count(invariants->server, "configmaps"); i++) {
        const json_t *map = api_server_at(invariants->server, "configmaps", i);
        if (is_plan(map))
            check_gang(invariants, map);
    }
}

/* ---- at rest ---- */

static int64_t count_pods(const struct invariants *invariants, const json_t *map,
                          const char *phase)
{
    int64_t count = 0;
    for (size_t i = 0; map && i < api_server_count(invariants->server, "pods"); i++) {
        const json_t *pod = api_server_at(invariants->server, "pods", i);
        count += is_our_pod_of(pod, owner_of(map)) &&
                 generation_of(pod) == generation_of(map) &&
                 !strcmp(object_text(pod, "status.phase"), phase);
    }
    return count;
}

/* GPUs that a plan takes, of all nodes. */
static int64_t planned_gpus(const struct invariants *invariants, const json_t *map)
{
    const char *node;
    json_t *count;
    int64_t gpus = 0;
    json_object_foreach (planned(invariants, map), node, count)
        gpus += json_integer_value(count);
    return gpus;
}

static void check_status(struct invariants *invariants, const json_t *job)
{
    static const struct {
        const char *field, *phase;
    } counts[] = { { "status.pods.running", "Running" },
                   { "status.pods.succeeded", "Succeeded" },
                   { "status.pods.failed", "Failed" } };
    const json_t *map = newest_plan(invariants, kube_uid(job));
    hold(object_integer(job, "status.observedGeneration", 0) ==
             object_integer(job, "metadata.generation", 0),
         "I5: %s: the spec was not looked at", kube_name(job));
    /* What ended stays counted when its pod is taken away, with its node or by hand. */
    for (size_t i = 0; i < 3; i++) {
        int64_t said = object_integer(job, counts[i].field, 0);
        int64_t there = count_pods(invariants, map, counts[i].phase);
        hold(said == there || (i && said > there),
             "I5: %s: %" PRId64 " pods are %s, status says %" PRId64, kube_name(job),
             there, counts[i].phase, said);
    }
    hold(!map || object_integer(job, "status.plan.revision", 0) == generation_of(map),
         "I5: %s: status has revision %" PRId64 ", not %" PRId64, kube_name(job),
         object_integer(job, "status.plan.revision", 0), generation_of(map));
    int64_t allocated = object_integer(job, "status.allocatedGPUs", 0);
    if (is_condition(job, "Suspended", "True") && !snapshot_job_is_finished(job))
        hold(!allocated && !count_pods(invariants, map, "Running"),
             "I5: %s is suspended and holds %" PRId64 " GPUs", kube_name(job), allocated);
    if (!is_condition(job, "Running", "True"))
        return;
    hold(map != NULL, "I5: %s runs without a plan", kube_name(job));
    if (!map)
        return;
    int64_t wanted = count_gang(invariants, map).wanted;
    hold(object_integer(job, "status.pods.desired", -1) == wanted &&
             count_pods(invariants, map, "Running") +
                     object_integer(job, "status.pods.succeeded", 0) ==
                 wanted,
         "I5: %s says that it runs", kube_name(job));
    hold(allocated == planned_gpus(invariants, map),
         "I5: %s: %" PRId64 " GPUs are allocated, %" PRId64 " planned", kube_name(job),
         allocated, planned_gpus(invariants, map));
}

/* I4: the job runs, is over, or says why it waits. */
static void check_answered(struct invariants *invariants, const json_t *job)
{
    static const struct {
        const char *type, *status;
    } answers[] = { { "Running", "True" },       { "Complete", "True" },
                    { "Failed", "True" },        { "Accepted", "False" },
                    { "Suspended", "True" },     { "PlanFeasible", "False" },
                    { "QuotaReserved", "False" } };
    if (!job_spec_is_ours(job)) {
        hold(!object_at(job, "status"), "I7: %s is somebody else's", kube_name(job));
        return;
    }
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (is_condition(job, answers[i].type, answers[i].status))
            return;
    const json_t *placed =
        object_find(object_at(job, "status.conditions"), "type", "Placed");
    if (!strcmp(object_text(placed, "reason"), "NameConflict") ||
        !strcmp(object_text(placed, "reason"), "PlanOnly"))
        return;
    auto_free char *conditions =
        json_dumps(object_at(job, "status.conditions"), JSON_COMPACT | JSON_ENCODE_ANY);
    violate(invariants, "I4: %s neither runs nor says why: %s", kube_name(job),
            conditions ? conditions : "nothing");
}

/* GPUs of a node that anybody may use and nobody does; 0 if it has anything special. */
static int64_t idle_gpus(const struct invariants *invariants, const json_t *node)
{
    static const char *const special[] = { "nvidia.com/gpu.sharing-strategy",
                                           "karpenter.sh/capacity-type",
                                           "nvidia.com/mig.config.state" };
    for (size_t i = 0; i < 3; i++)
        if (*kube_label(node, special[i]))
            return 0;
    if (object_at(node, "spec.taints") || object_at(node, "spec.unschedulable"))
        return 0;
    int64_t used = 0, pods = 0;
    for (size_t i = 0; i < api_server_count(invariants->server, "pods"); i++) {
        const json_t *pod = api_server_at(invariants->server, "pods", i);
        bool is_on = !strcmp(node_of(pod), kube_name(node)) &&
                     (is_bound(pod) || *owner_of_pod(pod));
        if (is_finished_pod(pod) || !is_on)
            continue;
        used += gpus_of_pod(pod);
        pods++;
    }
    const char *most_pods = object_text(node, "status.allocatable.pods");
    if (*most_pods && pods >= atoll(most_pods))
        return 0; /* no pod has a place there */
    int64_t held = all_planned_on(invariants, kube_name(node));
    return gpus_of_node(node, "status.allocatable") - (used > held ? used : held);
}

/* I4: who says that there is no GPU, though it takes any, has looked. */
static void check_idle(struct invariants *invariants, const json_t *job)
{
    static const char *const limits[] = { "gpuTypes", "nodeSelector", "nodeAffinity",
                                          "spotPolicy" };
    const json_t *feasible =
        object_find(object_at(job, "status.conditions"), "type", "PlanFeasible");
    const json_t *resources = object_at(job, "spec.resources");
    bool is_choosy = object_at(job, "spec.perGPUResources");
    for (size_t i = 0; i < 4; i++)
        is_choosy = is_choosy || object_at(resources, limits[i]);
    /* A spec that is refused is not planned: what was said is of the one before. */
    if (is_choosy || is_condition(job, "Accepted", "False") ||
        strcmp(object_text(feasible, "reason"), "NoUsableGPUs") != 0)
        return;
    for (size_t i = 0; i < api_server_count(invariants->server, "nodes"); i++) {
        const json_t *node = api_server_at(invariants->server, "nodes", i);
        int64_t idle = idle_gpus(invariants, node);
        hold(idle <= 0, "I4: %s says that no GPU can be used, %" PRId64 " of %s are idle",
             kube_name(job), idle, kube_name(node));
    }
}

static void check_no_orphans(struct invariants *invariants)
{
    static const char *const plurals[] = { "pods", "configmaps", "services", "jobs" };
    for (size_t k = 0; k < sizeof plurals / sizeof *plurals; k++)
        for (size_t i = 0; i < api_server_count(invariants->server, plurals[k]); i++) {
            const json_t *object = api_server_at(invariants->server, plurals[k], i);
            const char *owner = owner_of(object);
            hold(!*owner || find_job(invariants, owner), "I6: %s %s has no job any more",
                 plurals[k], kube_name(object));
        }
}

/* Pods of plans that do not hold are gone, and none waits behind its gate for ever. */
static void check_pods_at_rest(struct invariants *invariants)
{
    for (size_t i = 0; i < api_server_count(invariants->server, "pods"); i++) {
        const json_t *pod = api_server_at(invariants->server, "pods", i);
        const json_t *job = find_job(invariants, owner_of_pod(pod));
        if (!job || is_finished_pod(pod))
            continue;
        const json_t *map = newest_plan(invariants, owner_of_pod(pod));
        hold(map && generation_of(map) == generation_of(pod) && !is_retired(map) &&
                 !snapshot_job_is_finished(job),
             "I10: %s is left over", kube_name(pod));
        hold(!is_gated(pod), "I10: %s waits behind its gate", kube_name(pod));
    }
}

/* A job that is over or suspended has nothing measured. */
static void check_measurements_at_rest(struct invariants *invariants)
{
    for (size_t i = 0; i < api_server_count(invariants->server, "jobs"); i++) {
        const json_t *batch = api_server_at(invariants->server, "jobs", i);
        const json_t *job = find_job(invariants, owner_of(batch));
        hold(!job || (!snapshot_job_is_finished(job) &&
                      !json_is_true(object_at(job, "spec.suspend"))),
             "I10: %s measures for a job that does not run", kube_name(batch));
    }
}

void invariants_at_rest(struct invariants *invariants)
{
    for (size_t i = 0; i < api_server_count(invariants->server, "heterotrainingjobs");
         i++) {
        const json_t *job = api_server_at(invariants->server, "heterotrainingjobs", i);
        check_answered(invariants, job);
        check_idle(invariants, job);
        if (job_spec_is_ours(job))
            check_status(invariants, job);
        invariants->statistics.jobs_over += snapshot_job_is_finished(job);
    }
    check_no_orphans(invariants);
    check_pods_at_rest(invariants);
    check_measurements_at_rest(invariants);
    invariants->statistics.jobs_that_ran = json_object_size(invariants->ran);
}

/* ---- life ---- */

struct invariants *invariants_new(struct simulation *simulation,
                                  const struct invariants_config *config)
{
    struct invariants *invariants = xcalloc(1, sizeof *invariants);
    *invariants = (struct invariants){ .simulation = simulation,
                                       .server = simulation_server(simulation),
                                       .config = *config,
                                       .jobs = json_object(),
                                       .ran = json_object(),
                                       .planned = json_object(),
                                       .decided = json_object(),
                                       .lost = json_object(),
                                       .bound_ms = json_object(),
                                       .partial_ms = json_object(),
                                       .whole = json_object() };
    api_server_observe(invariants->server, on_change, invariants);
    return invariants;
}

void invariants_free(struct invariants *invariants)
{
    if (!invariants)
        return;
    json_decref(invariants->jobs);
    json_decref(invariants->ran);
    json_decref(invariants->planned);
    json_decref(invariants->decided);
    json_decref(invariants->lost);
    json_decref(invariants->bound_ms);
    json_decref(invariants->partial_ms);
    json_decref(invariants->whole);
    free(invariants->broken);
    free(invariants);
}

void invariants_set_calm(struct invariants *invariants, bool is_calm)
{
    invariants->is_calm = is_calm;
}

const char *invariants_broken(const struct invariants *invariants)
{
    return invariants->broken;
}

struct invariants_statistics invariants_statistics(const struct invariants *invariants)
{
    return invariants->statistics;
}
