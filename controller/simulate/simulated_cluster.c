#include "controller/simulate/simulated_cluster.h"

#include "controller/base/quantity.h"
#include "controller/base/timestamp.h"
#include "controller/decision/snapshot.h"
#include "controller/simulate/api_server/condition.h"
#include "controller/simulate/api_server/merge.h"
#include "controller/simulate/batch_jobs.h"
#include "controller/simulate/scheduler.h"
#include "planner/modules.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const struct simulated_cluster_config simulated_cluster_defaults = {
    .schedule_ms = 100,
    .start_ms = 2000,
    .stop_ms = 2000,
    .collect_ms = 1000,
    .orphan_ms = 40000,
};

#define BATCH_RETRY_MS 10000

struct timer {
    int64_t due_ms;
    uint64_t order; /* timers of one time go off in the order in which they were set */
    void (*act)(struct simulated_cluster *cluster, const struct timer *timer);
    char *ns, *name, *uid;    /* of the pod it concerns; NULL: of none */
    json_t *taint;            /* evict_pod: why */
    struct simulated_end end; /* end_program: how */
    bool is_background;       /* heartbeats */
    struct scenario_event event;
};

struct simulated_cluster {
    struct api_server *api_server;
    struct simulated_cluster_config config;
    struct timer *timers;
    size_t timer_count, timer_capacity;
    uint64_t timers_set;
    json_t *deleted_nodes; /* name: the Node as it was */
    json_t *deleted_ms;    /* name: when a node was deleted, by any client */
    json_t *silent_nodes;  /* name: true, while its kubelet does not speak */
    uint64_t addresses;    /* given to pods so far */
    struct simulated_hook hook;
    json_t *hook_calls;
    simulated_program *program; /* of the pods of batch Jobs */
    void *program_context;
    uint64_t batch_pods; /* made so far */
    simulated_event_done *done;
    void *done_context;
};

/* ---- timers ---- */

static struct timer *set_timer(struct simulated_cluster *cluster, int64_t after_ms,
                               void (*act)(struct simulated_cluster *,
                                           const struct timer *))
{
    ARRAY_RESERVE(cluster->timers, &cluster->timer_capacity, cluster->timer_count + 1);
    struct timer *timer = &cluster->timers[cluster->timer_count++];
    *timer = (struct timer){ .due_ms = api_server_now_ms(cluster->api_server) + after_ms,
                             .order = ++cluster->timers_set,
                             .act = act };
    return timer;
}

/* As set_timer, but one at a time is enough. */
static void set_single_timer(struct simulated_cluster *cluster, int64_t after_ms,
                             void (*act)(struct simulated_cluster *,
                                         const struct timer *))
{
    for (size_t i = 0; i < cluster->timer_count; i++)
        if (cluster->timers[i].act == act)
            return;
    set_timer(cluster, after_ms, act);
}

static struct timer *
set_pod_timer(struct simulated_cluster *cluster, int64_t after_ms, const json_t *pod,
              void (*act)(struct simulated_cluster *, const struct timer *))
{
    struct timer *timer = set_timer(cluster, after_ms, act);
    timer->ns = xstrdup(object_text(pod, "metadata.namespace"));
    timer->name = xstrdup(object_text(pod, "metadata.name"));
    timer->uid = xstrdup(object_text(pod, "metadata.uid"));
    return timer;
}

static void timer_fini(struct timer *timer)
{
    free(timer->ns);
    free(timer->name);
    free(timer->uid);
    json_decref(timer->taint);
    free(timer->end.message);
    scenario_event_fini(&timer->event);
}

/* The pod of a timer, if it is still that one. */
static json_t *pod_of(const struct simulated_cluster *cluster, const struct timer *timer)
{
    json_t *pod = api_server_find(cluster->api_server, "pods", timer->ns, timer->name);
    return pod && !strcmp(object_text(pod, "metadata.uid"), timer->uid) ? pod : NULL;
}

/* ---- pods as the actors see them ---- */

static bool is_bound(const json_t *pod)
{
    return *object_text(pod, "spec.nodeName");
}

static bool is_deleting(const json_t *object)
{
    return object_at(object, "metadata.deletionTimestamp");
}

static bool is_finished(const json_t *pod)
{
    const char *phase = object_text(pod, "status.phase");
    return !strcmp(phase, "Succeeded") || !strcmp(phase, "Failed");
}

static bool is_waiting_for_node(const json_t *pod)
{
    return !is_bound(pod) && !is_deleting(pod) && !is_finished(pod) &&
           !json_array_size(object_at(pod, "spec.schedulingGates"));
}

/* Whether the kubelet of the pod's node speaks. */
static bool has_kubelet(const struct simulated_cluster *cluster, const json_t *pod)
{
    const char *node = object_text(pod, "spec.nodeName");
    return api_server_find(cluster->api_server, "nodes", "", node) &&
           !json_object_get(cluster->silent_nodes, node);
}

static json_t *now_text(const struct simulated_cluster *cluster)
{
    char text[TIMESTAMP_SIZE];
    timestamp_format(api_server_now_ms(cluster->api_server), text);
    return json_string(text);
}

static json_t *all_of(const struct simulated_cluster *cluster, const char *plural)
{
    json_t *all = json_array();
    for (size_t i = 0; i < api_server_count(cluster->api_server, plural); i++)
        json_array_append(all, api_server_at(cluster->api_server, plural, i));
    return all;
}

/* Stores what an actor made of an object; the cluster's own objects are always good. */
static void store(struct simulated_cluster *cluster, json_t *object)
{
    int failed = api_server_put(cluster->api_server, object, NULL);
    assert(!failed);
}

/* ---- scheduler ---- */

static void on_verdict(void *context, json_t *pod, const char *node, const char *message)
{
    struct simulated_cluster *cluster = context;
    int64_t now_ms = api_server_now_ms(cluster->api_server);
    json_t *changed = json_deep_copy(pod);
    if (node) {
        object_set(changed, "spec.nodeName", json_string(node));
        condition_set(changed, "PodScheduled", "True", NULL, NULL, now_ms);
    } else {
        condition_set(changed, "PodScheduled", "False", "Unschedulable", message, now_ms);
    }
    store(cluster, changed);
}

static int compare_pods(const void *a, const void *b)
{
    const json_t *left = *(json_t *const *)a;
    const json_t *right = *(json_t *const *)b;
    int64_t left_priority = object_integer(left, "spec.priority", 0);
    int64_t right_priority = object_integer(right, "spec.priority", 0);
    if (left_priority != right_priority)
        return left_priority > right_priority ? -1 : 1;
    int order = strcmp(object_text(left, "metadata.creationTimestamp"),
                       object_text(right, "metadata.creationTimestamp"));
    return order ? order
                 : strcmp(object_text(left, "metadata.name"),
                          object_text(right, "metadata.name"));
}

/* Pods that wait for a node: highest priority first, then oldest. */
static json_t *waiting_pods(const json_t *pods)
{
    json_t **waiting = NULL;
    size_t capacity = 0;
    size_t count = 0;
    size_t i;
    json_t *pod;
    ARRAY_RESERVE(waiting, &capacity, json_array_size(pods) + 1);
    json_array_foreach (pods, i, pod) {
        if (is_waiting_for_node(pod))
            waiting[count++] = pod;
    }
    qsort(waiting, count, sizeof(json_t *), compare_pods);
    json_t *list = json_array();
    for (i = 0; i < count; i++)
        json_array_append(list, waiting[i]);
    free(waiting);
    return list;
}

static void schedule(struct simulated_cluster *cluster, const struct timer *timer)
{
    (void)timer;
    json_auto_t *nodes = all_of(cluster, "nodes");
    json_auto_t *pods = all_of(cluster, "pods");
    json_auto_t *waiting = waiting_pods(pods);
    if (json_array_size(waiting))
        scheduler_run(nodes, pods, waiting, on_verdict, cluster);
}

static void schedule_soon(struct simulated_cluster *cluster)
{
    set_single_timer(cluster, cluster->config.schedule_ms, schedule);
}

/* ---- kubelets ---- */

static void set_container_states(json_t *pod, json_t *state, bool is_ready)
{
    json_t *statuses = json_array();
    size_t i;
    json_t *container;
    json_array_foreach (object_at(pod, "spec.containers"), i, container) {
        json_array_append_new(statuses,
                              json_pack("{s:s, s:s, s:s, s:i, s:b, s:b, s:O}", "name",
                                        object_text(container, "name"), "image",
                                        object_text(container, "image"), "imageID", "",
                                        "restartCount", 0, "ready", is_ready, "started",
                                        is_ready, "state", state));
    }
    object_set(pod, "status.containerStatuses", statuses);
    json_decref(state);
}

static void run_program(struct simulated_cluster *cluster, const json_t *pod);

static void start_pod(struct simulated_cluster *cluster, const struct timer *timer)
{
    static const char *const conditions[] = { "PodReadyToStartContainers", "Initialized",
                                              "Ready", "ContainersReady",
                                              "PodScheduled" };
    json_t *found = pod_of(cluster, timer);
    if (!found || !is_bound(found) || is_deleting(found) || is_finished(found) ||
        strcmp(object_text(found, "status.phase"), "Pending") != 0 ||
        !has_kubelet(cluster, found))
        return;
    int64_t now_ms = api_server_now_ms(cluster->api_server);
    json_t *pod = json_deep_copy(found);
    object_set(pod, "status.phase", json_string("Running"));
    object_set(pod, "status.startTime", now_text(cluster));
    object_set(pod, "status.hostIP", json_string("10.0.0.1"));
    uint64_t address = ++cluster->addresses;
    object_set(pod, "status.podIP",
               json_sprintf("10.%d.%d.%d", (int)(1 + address / 65536 % 250),
                            (int)(address / 256 % 256), (int)(address % 256)));
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
        condition_set(pod, conditions[i], "True", NULL, NULL, now_ms);
    set_container_states(
        pod, json_pack("{s:{s:o}}", "running", "startedAt", now_text(cluster)), true);
    run_program(cluster, pod);
    store(cluster, pod);
}

static void finish_pod(struct simulated_cluster *cluster, const json_t *found,
                       int64_t exit_code, const char *message)
{
    int64_t now_ms = api_server_now_ms(cluster->api_server);
    const char *reason = exit_code ? "Error" : "Completed";
    json_t *pod = json_deep_copy(found);
    object_set(pod, "status.phase", json_string(exit_code ? "Failed" : "Succeeded"));
    condition_set(pod, "Ready", "False", exit_code ? "PodFailed" : "PodCompleted", NULL,
                  now_ms);
    condition_set(pod, "ContainersReady", "False",
                  exit_code ? "PodFailed" : "PodCompleted", NULL, now_ms);
    set_container_states(pod,
                         json_pack("{s:{s:I, s:s, s:o, s:s*}}", "terminated", "exitCode",
                                   (json_int_t)exit_code, "reason", reason, "finishedAt",
                                   now_text(cluster), "message", message),
                         false);
    store(cluster, pod);
}

/* The program of a batch Job's pod ends by itself, if its node is still there. */
static void end_program(struct simulated_cluster *cluster, const struct timer *timer)
{
    json_t *pod = pod_of(cluster, timer);
    if (pod && !is_finished(pod) && has_kubelet(cluster, pod))
        finish_pod(cluster, pod, timer->end.exit_code, timer->end.message);
}

/* The batch Job that controls `pod`; NULL: none does. */
static const json_t *batch_owner(const json_t *pod)
{
    const json_t *owner = kube_controller(pod);
    return !strcmp(object_text(owner, "kind"), "Job") ? owner : NULL;
}

static void run_program(struct simulated_cluster *cluster, const json_t *pod)
{
    if (!cluster->program || !batch_owner(pod))
        return;
    struct simulated_end end = cluster->program(cluster->program_context, pod);
    if (end.after_ms != INT64_MAX)
        set_pod_timer(cluster, end.after_ms, pod, end_program)->end = end;
    else
        free(end.message);
}

void simulated_cluster_set_program(struct simulated_cluster *cluster,
                                   simulated_program *program, void *context)
{
    cluster->program = program;
    cluster->program_context = context;
}

/* The containers of a deleted pod have ended: it may go. */
static void stop_pod(struct simulated_cluster *cluster, const struct timer *timer)
{
    json_t *pod = pod_of(cluster, timer);
    if (pod && is_deleting(pod) && has_kubelet(cluster, pod))
        api_server_delete(cluster->api_server, "pods", timer->ns, timer->name, 0, NULL);
}

static void stop_soon(struct simulated_cluster *cluster, const json_t *pod)
{
    int64_t grace_ms = object_integer(pod, "metadata.deletionGracePeriodSeconds", 0) *
                       1000;
    int64_t stop_ms = cluster->config.stop_ms;
    set_pod_timer(cluster, grace_ms < stop_ms ? grace_ms : stop_ms, pod, stop_pod);
}

/* What a kubelet does with each pod when it begins to speak. */
static void resume_pods(struct simulated_cluster *cluster, const char *node)
{
    json_auto_t *pods = all_of(cluster, "pods");
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        if (strcmp(object_text(pod, "spec.nodeName"), node) != 0)
            continue;
        if (is_deleting(pod))
            stop_soon(cluster, pod);
        else
            set_pod_timer(cluster, cluster->config.start_ms, pod, start_pod);
    }
}

/* ---- collectors ---- */

static bool exists(const struct simulated_cluster *cluster, const json_t *owner,
                   const char *ns)
{
    static const struct {
        const char *kind, *plural;
        bool namespaced;
    } owners[] = { { "HeteroTrainingJob", "heterotrainingjobs", true },
                   { "ConfigMap", "configmaps", true },
                   { "Service", "services", true },
                   { "Pod", "pods", true },
                   { "Node", "nodes", false },
                   { "ModelProfile", "modelprofiles", true },
                   { "Job", "jobs", true } };
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++) {
        if (strcmp(owners[i].kind, object_text(owner, "kind")) != 0)
            continue;
        const json_t *found = api_server_find(cluster->api_server, owners[i].plural,
                                              owners[i].namespaced ? ns : "",
                                              object_text(owner, "name"));
        return found &&
               !strcmp(object_text(found, "metadata.uid"), object_text(owner, "uid"));
    }
    return true; /* of a kind that we do not know: it may well be there */
}

/* Whether all that owned it is gone. */
static bool is_orphan(const struct simulated_cluster *cluster, const json_t *object)
{
    const json_t *owners = object_at(object, "metadata.ownerReferences");
    const char *ns = object_text(object, "metadata.namespace");
    size_t i;
    json_t *owner;
    json_array_foreach (owners, i, owner) {
        if (exists(cluster, owner, ns))
            return false;
    }
    return json_array_size(owners) > 0;
}

static bool is_in_ending_namespace(const struct simulated_cluster *cluster,
                                   const json_t *object)
{
    const json_t *ns = api_server_find(cluster->api_server, "namespaces", "",
                                       object_text(object, "metadata.namespace"));
    return ns && is_deleting(ns);
}

/* Deletes what is to go of one kind; returns how many objects are in ending namespaces.
 */
static size_t collect_kind(struct simulated_cluster *cluster, const char *plural)
{
    json_auto_t *all = all_of(cluster, plural);
    size_t ending = 0;
    size_t i;
    json_t *object;
    json_array_foreach (all, i, object) {
        bool ends = is_in_ending_namespace(cluster, object);
        ending += ends;
        if (!is_deleting(object) && (ends || is_orphan(cluster, object)))
            api_server_delete(cluster->api_server, plural,
                              object_text(object, "metadata.namespace"),
                              object_text(object, "metadata.name"), -1, NULL);
    }
    return ending;
}

/* An empty namespace that is to go, goes. */
static void collect_namespaces(struct simulated_cluster *cluster)
{
    json_auto_t *all = all_of(cluster, "namespaces");
    size_t i;
    json_t *ns;
    json_array_foreach (all, i, ns) {
        if (is_deleting(ns))
            api_server_drop(cluster->api_server, "namespaces", "",
                            object_text(ns, "metadata.name"));
    }
}

static void collect(struct simulated_cluster *cluster, const struct timer *timer)
{
    static const char *const plurals[] = { "heterotrainingjobs", "pods",   "services",
                                           "configmaps",         "events", "leases",
                                           "modelprofiles",      "jobs" };
    (void)timer;
    size_t ending = 0;
    for (size_t i = 0; i < sizeof plurals / sizeof *plurals; i++)
        ending += collect_kind(cluster, plurals[i]);
    if (ending)
        set_single_timer(cluster, cluster->config.collect_ms, collect);
    else
        collect_namespaces(cluster);
}

static void disrupt(struct simulated_cluster *cluster, const json_t *pod,
                    const char *reason, bool has_failed)
{
    json_t *changed = json_deep_copy(pod);
    condition_set(changed, "DisruptionTarget", "True", reason, NULL,
                  api_server_now_ms(cluster->api_server));
    if (has_failed)
        object_set(changed, "status.phase", json_string("Failed"));
    store(cluster, changed);
}

/* Whether the node has been gone for so long that its pods go, too. */
static bool is_long_gone(const struct simulated_cluster *cluster, const char *node)
{
    json_t *since_ms = json_object_get(cluster->deleted_ms, node);
    return !api_server_find(cluster->api_server, "nodes", "", node) &&
           api_server_now_ms(cluster->api_server) >=
               json_integer_value(since_ms) + cluster->config.orphan_ms;
}

/* The pod collector: pods whose node is gone cannot be running. */
static void collect_pods(struct simulated_cluster *cluster, const struct timer *timer)
{
    (void)timer;
    json_auto_t *pods = all_of(cluster, "pods");
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        const char *node = object_text(pod, "spec.nodeName");
        if (!*node || !is_long_gone(cluster, node))
            continue;
        if (!is_finished(pod))
            disrupt(cluster, pod, "DeletionByPodGC", true);
        api_server_delete(cluster->api_server, "pods",
                          object_text(pod, "metadata.namespace"),
                          object_text(pod, "metadata.name"), 0, NULL);
    }
}

/* ---- nodes ---- */

/* Takes away the taints with `key` and `effect` ("": any). */
static void remove_taint(json_t *node, const char *key, const char *effect)
{
    json_t *taints = object_list(node, "spec.taints");
    for (size_t i = json_array_size(taints); i-- > 0;) {
        const json_t *taint = json_array_get(taints, i);
        if (!strcmp(object_text(taint, "key"), key) &&
            (!*effect || !strcmp(object_text(taint, "effect"), effect)))
            json_array_remove(taints, i);
    }
    if (!json_array_size(taints))
        object_remove(node, "spec.taints");
}

/* Puts `taint` (a reference that is taken) on the node, in the place of its like. One
 * that evicts says since when, as the API server makes it say. */
static void add_taint(struct simulated_cluster *cluster, json_t *node, json_t *taint)
{
    remove_taint(node, object_text(taint, "key"), object_text(taint, "effect"));
    if (!strcmp(object_text(taint, "effect"), "NoExecute"))
        object_set(taint, "timeAdded", now_text(cluster));
    json_array_append_new(object_list(node, "spec.taints"), taint);
}

static void set_taint(struct simulated_cluster *cluster, json_t *node, const char *key,
                      const char *effect, bool is_set)
{
    if (is_set)
        add_taint(cluster, node, json_pack("{s:s, s:s}", "key", key, "effect", effect));
    else
        remove_taint(node, key, effect);
}

static void set_cordon(struct simulated_cluster *cluster, json_t *node, bool is_set)
{
    if (is_set)
        object_set(node, "spec.unschedulable", json_true());
    else
        object_remove(node, "spec.unschedulable");
    set_taint(cluster, node, "node.kubernetes.io/unschedulable", "NoSchedule", is_set);
    store(cluster, node);
}

/* The same taint, if the node still has it. */
static json_t *find_taint(const json_t *node, const json_t *wanted)
{
    size_t i;
    json_t *taint;
    json_array_foreach (object_at(node, "spec.taints"), i, taint) {
        if (json_equal(taint, wanted))
            return taint;
    }
    return NULL;
}

/* The taint manager: a pod's time on a tainted node is over. */
static void evict_pod(struct simulated_cluster *cluster, const struct timer *timer)
{
    json_t *pod = pod_of(cluster, timer);
    const json_t *node = api_server_find(cluster->api_server, "nodes", "",
                                         object_text(pod, "spec.nodeName"));
    if (!pod || is_deleting(pod) || !find_taint(node, timer->taint))
        return;
    disrupt(cluster, pod, "DeletionByTaintManager", false);
    api_server_delete(cluster->api_server, "pods", timer->ns, timer->name, -1, NULL);
}

/* The pod will be evicted when it does not tolerate `taint` any longer. */
static void evict_later(struct simulated_cluster *cluster, const json_t *pod,
                        json_t *taint)
{
    json_t *toleration = NULL;
    bool tolerates =
        scheduler_tolerates(object_at(pod, "spec.tolerations"), taint, &toleration);
    int64_t seconds = tolerates ? object_integer(toleration, "tolerationSeconds", -1) : 0;
    if (!strcmp(object_text(taint, "effect"), "NoExecute") && seconds >= 0)
        set_pod_timer(cluster, seconds * 1000, pod, evict_pod)->taint =
            json_incref(taint);
}

/* The node got taints that `before` (may be NULL) does not have. */
static void evict_for_taints(struct simulated_cluster *cluster, const json_t *before,
                             const json_t *node)
{
    json_auto_t *pods = all_of(cluster, "pods");
    size_t i;
    json_t *taint;
    json_array_foreach (object_at(node, "spec.taints"), i, taint) {
        size_t k;
        json_t *pod;
        if (find_taint(before, taint))
            continue;
        json_array_foreach (pods, k, pod) {
            if (!strcmp(object_text(pod, "spec.nodeName"),
                        object_text(node, "metadata.name")))
                evict_later(cluster, pod, taint);
        }
    }
}

/* The node lifecycle controller: the pods of a silent node are not ready. */
static void doubt_pod(struct simulated_cluster *cluster, const json_t *pod)
{
    if (is_finished(pod) || !object_condition_is_true(pod, "Ready"))
        return;
    json_t *changed = json_deep_copy(pod);
    condition_set(changed, "Ready", "False", NULL, NULL,
                  api_server_now_ms(cluster->api_server));
    store(cluster, changed);
}

/* Both take `node` as a copy that is theirs. */
static void silence_node(struct simulated_cluster *cluster, json_t *node)
{
    static const char key[] = "node.kubernetes.io/unreachable";
    auto_free char *name = xstrdup(object_text(node, "metadata.name"));
    json_object_set_new(cluster->silent_nodes, name, json_true());
    condition_set(node, "Ready", "Unknown", "NodeStatusUnknown",
                  "Kubelet stopped posting node status.",
                  api_server_now_ms(cluster->api_server));
    set_taint(cluster, node, key, "NoSchedule", true);
    set_taint(cluster, node, key, "NoExecute", true);
    store(cluster, node);
    json_auto_t *pods = all_of(cluster, "pods");
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        if (!strcmp(object_text(pod, "spec.nodeName"), name))
            doubt_pod(cluster, pod);
    }
}

static void mark_ready_again(struct simulated_cluster *cluster, const char *node)
{
    json_auto_t *pods = all_of(cluster, "pods");
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        if (strcmp(object_text(pod, "spec.nodeName"), node) != 0 || is_deleting(pod) ||
            strcmp(object_text(pod, "status.phase"), "Running") != 0)
            continue;
        json_t *changed = json_deep_copy(pod);
        condition_set(changed, "Ready", "True", NULL, NULL,
                      api_server_now_ms(cluster->api_server));
        store(cluster, changed);
    }
}

static void wake_node(struct simulated_cluster *cluster, json_t *node)
{
    static const char *const keys[] = { "node.kubernetes.io/unreachable",
                                        "node.kubernetes.io/not-ready" };
    auto_free char *name = xstrdup(object_text(node, "metadata.name"));
    json_object_del(cluster->silent_nodes, name);
    condition_set(node, "Ready", "True", "KubeletReady",
                  "kubelet is posting ready status",
                  api_server_now_ms(cluster->api_server));
    for (size_t i = 0; i < 2; i++) {
        set_taint(cluster, node, keys[i], "NoSchedule", false);
        set_taint(cluster, node, keys[i], "NoExecute", false);
    }
    store(cluster, node);
    mark_ready_again(cluster, name);
    resume_pods(cluster, name);
}

static void heartbeat(struct simulated_cluster *cluster, const struct timer *timer)
{
    (void)timer;
    json_auto_t *nodes = all_of(cluster, "nodes");
    size_t i;
    json_t *node;
    json_array_foreach (nodes, i, node) {
        if (json_object_get(cluster->silent_nodes, object_text(node, "metadata.name")))
            continue;
        json_t *changed = json_deep_copy(node);
        size_t k;
        json_t *condition;
        json_array_foreach (object_at(changed, "status.conditions"), k, condition) {
            object_set(condition, "lastHeartbeatTime", now_text(cluster));
        }
        json_object_set_new(
            object_map(changed, "metadata.labels"), "nvidia.com/gfd.timestamp",
            json_sprintf("%lld",
                         (long long)api_server_now_ms(cluster->api_server) / 1000));
        store(cluster, changed);
    }
    set_timer(cluster, cluster->config.heartbeat_ms, heartbeat)->is_background = true;
}

/* ---- batch Jobs ---- */

static json_t *pods_of_batch(const struct simulated_cluster *cluster, const json_t *job)
{
    json_t *pods = json_array();
    for (size_t i = 0; i < api_server_count(cluster->api_server, "pods"); i++) {
        json_t *pod = api_server_at(cluster->api_server, "pods", i);
        if (!strcmp(kube_controller_uid(pod), object_text(job, "metadata.uid")))
            json_array_append(pods, pod);
    }
    return pods;
}

static void end_pods(struct simulated_cluster *cluster, const json_t *pods)
{
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        if (!is_finished(pod) && !is_deleting(pod))
            api_server_delete(cluster->api_server, "pods",
                              object_text(pod, "metadata.namespace"),
                              object_text(pod, "metadata.name"), -1, NULL);
    }
}

/* The controller of batch Jobs looks at one. */
static void look_at_batch(struct simulated_cluster *cluster, const struct timer *timer)
{
    const json_t *found =
        api_server_find(cluster->api_server, "jobs", timer->ns, timer->name);
    if (!found || strcmp(object_text(found, "metadata.uid"), timer->uid) != 0 ||
        is_deleting(found))
        return;
    json_auto_t *job = json_deep_copy(found);
    json_auto_t *pods = pods_of_batch(cluster, job);
    int64_t now_ms = api_server_now_ms(cluster->api_server);
    struct batch_jobs_verdict verdict = batch_jobs_look(job, pods, now_ms);
    bool is_same = json_equal(verdict.status, object_at(job, "status"));
    json_object_set_new(job, "status", verdict.status);
    if (!is_same)
        store(cluster, json_deep_copy(job));
    /* One that the server refuses is tried again. */
    bool is_refused = verdict.wants_pod &&
                      api_server_put(cluster->api_server,
                                     batch_jobs_make_pod(job, ++cluster->batch_pods),
                                     NULL) < 0;
    if (is_refused && verdict.due_ms > now_ms + BATCH_RETRY_MS)
        verdict.due_ms = now_ms + BATCH_RETRY_MS;
    if (verdict.ends_pods)
        end_pods(cluster, pods);
    if (verdict.due_ms != INT64_MAX)
        set_pod_timer(cluster, verdict.due_ms - now_ms, job, look_at_batch);
}

static void look_at_batch_soon(struct simulated_cluster *cluster, const char *ns,
                               const char *name, const char *uid)
{
    struct timer *timer = set_timer(cluster, cluster->config.schedule_ms, look_at_batch);
    timer->ns = xstrdup(ns);
    timer->name = xstrdup(name);
    timer->uid = xstrdup(uid);
}

/* ---- what listens in the pods ---- */

/* The pod that listens at the address of `url`; NULL if none does. */
static const json_t *pod_at(const struct simulated_cluster *cluster, const char *url)
{
    const char *address = url + strlen(HTTP_OUTSIDE);
    size_t length = strcspn(address, ":/");
    for (size_t i = 0; i < api_server_count(cluster->api_server, "pods"); i++) {
        const json_t *pod = api_server_at(cluster->api_server, "pods", i);
        const char *its = object_text(pod, "status.podIP");
        if (strlen(its) == length && !strncmp(its, address, length) &&
            !strcmp(object_text(pod, "status.phase"), "Running") &&
            has_kubelet(cluster, pod))
            return pod;
    }
    return NULL;
}

static int answer_hook(void *context, const char *method, const char *url,
                       int64_t *ret_delay_ms)
{
    struct simulated_cluster *cluster = context;
    if (!pod_at(cluster, url)) {
        *ret_delay_ms = INT64_MAX;
        return 0;
    }
    json_array_append_new(cluster->hook_calls, json_sprintf("%s %s", method, url));
    *ret_delay_ms = cluster->hook.delay_ms;
    return cluster->hook.status;
}

void simulated_cluster_set_hook(struct simulated_cluster *cluster,
                                struct simulated_hook hook)
{
    cluster->hook = hook;
}

const json_t *simulated_cluster_hook_calls(const struct simulated_cluster *cluster)
{
    return cluster->hook_calls;
}

/* ---- what actors notice ---- */

static void on_bound_pod(struct simulated_cluster *cluster, const json_t *pod)
{
    set_pod_timer(cluster, cluster->config.start_ms, pod, start_pod);
    const json_t *node = api_server_find(cluster->api_server, "nodes", "",
                                         object_text(pod, "spec.nodeName"));
    size_t i;
    json_t *taint;
    json_array_foreach (object_at(node, "spec.taints"), i, taint) {
        evict_later(cluster, pod, taint);
    }
}

static void on_pod(struct simulated_cluster *cluster,
                   const struct api_server_change *change)
{
    const json_t *before = change->before;
    const json_t *after = change->after;
    const json_t *pod = after ? after : before;
    const json_t *batch = batch_owner(pod);
    bool frees = !after || is_finished(after);
    if (batch)
        look_at_batch_soon(cluster, object_text(pod, "metadata.namespace"),
                           object_text(batch, "name"), object_text(batch, "uid"));
    if (frees || is_waiting_for_node(after))
        schedule_soon(cluster);
    if (!after)
        return;
    if (is_bound(after) && !is_deleting(after) && (!before || !is_bound(before)))
        on_bound_pod(cluster, after);
    if (is_bound(after) && is_deleting(after) && (!before || !is_deleting(before)))
        stop_soon(cluster, after);
}

static void on_node(struct simulated_cluster *cluster,
                    const struct api_server_change *change)
{
    schedule_soon(cluster);
    if (!change->after) {
        json_object_set_new(cluster->deleted_ms,
                            object_text(change->before, "metadata.name"),
                            json_integer(change->at_ms));
        set_timer(cluster, cluster->config.orphan_ms, collect_pods);
    } else if (!change->before) {
        resume_pods(cluster, object_text(change->after, "metadata.name"));
    }
    if (change->after)
        evict_for_taints(cluster, change->before, change->after);
}

static void on_change(void *context, const struct api_server_change *change)
{
    struct simulated_cluster *cluster = context;
    if (!strcmp(change->plural, "pods"))
        on_pod(cluster, change);
    if (!strcmp(change->plural, "nodes"))
        on_node(cluster, change);
    if (!strcmp(change->plural, "jobs") && change->after && !change->before)
        look_at_batch_soon(cluster, object_text(change->after, "metadata.namespace"),
                           object_text(change->after, "metadata.name"),
                           object_text(change->after, "metadata.uid"));
    bool is_new_child = !change->before &&
                        object_at(change->after, "metadata.ownerReferences");
    if (!change->after || is_new_child ||
        (is_deleting(change->after) && !strcmp(change->plural, "namespaces")))
        set_single_timer(cluster, cluster->config.collect_ms, collect);
}

/* ---- life and time ---- */

struct simulated_cluster *
simulated_cluster_new(struct api_server *api_server,
                      const struct simulated_cluster_config *config)
{
    struct simulated_cluster *cluster = xcalloc(1, sizeof *cluster);
    cluster->api_server = api_server;
    cluster->config = *config;
    cluster->deleted_nodes = json_object();
    cluster->deleted_ms = json_object();
    cluster->silent_nodes = json_object();
    cluster->hook = (struct simulated_hook){ .status = 200, .delay_ms = 100 };
    cluster->hook_calls = json_array();
    api_server_observe(api_server, on_change, cluster);
    api_server_set_outside(api_server, answer_hook, cluster);
    if (config->heartbeat_ms)
        set_timer(cluster, config->heartbeat_ms, heartbeat)->is_background = true;
    return cluster;
}

void simulated_cluster_free(struct simulated_cluster *cluster)
{
    if (!cluster)
        return;
    for (size_t i = 0; i < cluster->timer_count; i++)
        timer_fini(&cluster->timers[i]);
    free(cluster->timers);
    json_decref(cluster->deleted_nodes);
    json_decref(cluster->deleted_ms);
    json_decref(cluster->silent_nodes);
    json_decref(cluster->hook_calls);
    free(cluster);
}

/* The index of the timer that goes off first; timer_count if there is none. */
static size_t first_timer(const struct simulated_cluster *cluster)
{
    size_t first = cluster->timer_count;
    for (size_t i = 0; i < cluster->timer_count; i++) {
        const struct timer *timer = &cluster->timers[i];
        const struct timer *best = &cluster->timers[first];
        if (first == cluster->timer_count || timer->due_ms < best->due_ms ||
            (timer->due_ms == best->due_ms && timer->order < best->order))
            first = i;
    }
    return first;
}

int64_t simulated_cluster_next_ms(const struct simulated_cluster *cluster,
                                  bool *ret_is_idle)
{
    int64_t server_ms = api_server_next_ms(cluster->api_server);
    size_t first = first_timer(cluster);
    bool is_idle = server_ms > api_server_now_ms(cluster->api_server);
    for (size_t i = 0; i < cluster->timer_count; i++)
        is_idle = is_idle && cluster->timers[i].is_background;
    if (ret_is_idle)
        *ret_is_idle = is_idle;
    if (first == cluster->timer_count)
        return server_ms;
    int64_t timer_ms = cluster->timers[first].due_ms;
    return timer_ms < server_ms ? timer_ms : server_ms;
}

void simulated_cluster_advance(struct simulated_cluster *cluster, int64_t now_ms)
{
    size_t first;
    while ((first = first_timer(cluster)) < cluster->timer_count &&
           cluster->timers[first].due_ms <= now_ms) {
        struct timer timer = cluster->timers[first];
        cluster->timers[first] = cluster->timers[--cluster->timer_count];
        if (timer.due_ms > api_server_now_ms(cluster->api_server))
            api_server_advance(cluster->api_server, timer.due_ms);
        timer.act(cluster, &timer);
        timer_fini(&timer);
    }
    api_server_advance(cluster->api_server, now_ms);
}

/* ---- the script ---- */

static int no_such(const char *what, const char *name, struct het_error *err)
{
    return het_fail(err, HET_NOT_FOUND, "there is no %s %s", what, name);
}

static int delete_node(struct simulated_cluster *cluster, json_t *node,
                       const struct scenario_event *event)
{
    json_object_set(cluster->deleted_nodes, event->name, node);
    api_server_drop(cluster->api_server, "nodes", "", event->name);
    json_decref(node);
    return 0;
}

static int create_node(struct simulated_cluster *cluster,
                       const struct scenario_event *event, struct het_error *err)
{
    json_t *node = json_object_get(cluster->deleted_nodes, event->name);
    if (api_server_find(cluster->api_server, "nodes", "", event->name))
        return het_fail(err, HET_BAD_INPUT, "node %s is there", event->name);
    if (!node)
        return no_such("deleted node", event->name, err);
    json_t *copy = json_deep_copy(node);
    object_remove(copy, "metadata.uid");
    object_remove(copy, "metadata.creationTimestamp");
    json_object_del(cluster->deleted_nodes, event->name);
    wake_node(cluster, copy);
    return 0;
}

/* The resource of a node that counts GPUs. */
static const char *gpu_resource(const json_t *node)
{
    const char *resource;
    json_t *quantity;
    json_object_foreach (object_at(node, "status.allocatable"), resource, quantity) {
        if (strstr(resource, ".com/gpu"))
            return resource;
    }
    return "nvidia.com/gpu";
}

static void set_gpus(struct simulated_cluster *cluster, json_t *node, int64_t count)
{
    auto_free char *resource = xstrdup(gpu_resource(node));
    json_auto_t *quantity = json_sprintf("%lld", (long long)count);
    json_t *capacity = object_map(node, "status.capacity");
    const char *has = json_string_value(json_object_get(capacity, resource));
    json_object_set(object_map(node, "status.allocatable"), resource, quantity);
    if (!has || atoll(has) < count)
        json_object_set(capacity, resource, quantity);
    store(cluster, node);
}

/* Labels or annotations of `object` (a copy that is taken): {key: value, or null to
 * remove it}. */
static void set_marks(struct simulated_cluster *cluster, json_t *object, const char *path,
                      json_t *marks)
{
    json_t *map = object_map(object, path);
    const char *key;
    json_t *value;
    json_object_foreach (marks, key, value) {
        if (json_is_null(value))
            json_object_del(map, key);
        else
            json_object_set(map, key, value);
    }
    store(cluster, object);
}

/* ---- another tenant ---- */

#define TENANT_NAMESPACE "another-tenant"

/* GPUs of the node that no bound pod uses. */
static int64_t free_gpus(const struct simulated_cluster *cluster, const json_t *node,
                         const char *resource)
{
    json_t *allocatable =
        json_object_get(object_at(node, "status.allocatable"), resource);
    int64_t milli = quantity_of(allocatable, 0);
    json_auto_t *pods = all_of(cluster, "pods");
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        json_auto_t *requests = scheduler_requests(pod);
        if (!is_finished(pod) && !strcmp(object_text(pod, "spec.nodeName"),
                                         object_text(node, "metadata.name")))
            milli -= json_integer_value(json_object_get(requests, resource));
    }
    return milli / 1000;
}

/* Takes `node` as a copy that is its own. */
static void occupy(struct simulated_cluster *cluster, json_t *node, int64_t count)
{
    json_auto_t *held = node;
    const char *resource = gpu_resource(held);
    int64_t free = free_gpus(cluster, held, resource);
    auto_free char *gpus = xasprintf("%lld", (long long)(count < free ? count : free));
    if (free <= 0 || !count)
        return;
    store(cluster,
          json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:O, s:[{s:s, s:s, s:{s:{s:s}}}]}}",
                    "apiVersion", "v1", "kind", "Pod", "metadata", "namespace",
                    TENANT_NAMESPACE, "generateName", "tenant-", "spec", "nodeName",
                    object_at(held, "metadata.name"), "containers", "name", "work",
                    "image", "work:1", "resources", "limits", resource, gpus));
}

static void leave(struct simulated_cluster *cluster, const char *node)
{
    json_auto_t *pods = all_of(cluster, "pods");
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        const char *ns = object_text(pod, "metadata.namespace");
        if (!strcmp(ns, TENANT_NAMESPACE) &&
            !strcmp(object_text(pod, "spec.nodeName"), node))
            api_server_drop(cluster->api_server, "pods", ns,
                            object_text(pod, "metadata.name"));
    }
}

/* Takes `node` as a copy that is its own. */
static int change_node(struct simulated_cluster *cluster, json_t *node,
                       const struct scenario_event *event)
{
    switch (event->kind) {
    case EVENT_NOT_READY:
        silence_node(cluster, node);
        return 0;
    case EVENT_READY:
        wake_node(cluster, node);
        return 0;
    case EVENT_CORDON:
    case EVENT_UNCORDON:
        set_cordon(cluster, node, event->kind == EVENT_CORDON);
        return 0;
    case EVENT_GPUS:
        set_gpus(cluster, node, event->number);
        return 0;
    case EVENT_TAINT:
        add_taint(cluster, node, json_deep_copy(event->objects));
        store(cluster, node);
        return 0;
    case EVENT_UNTAINT:
        remove_taint(node, object_text(event->objects, "key"),
                     object_text(event->objects, "effect"));
        store(cluster, node);
        return 0;
    case EVENT_LABEL:
        set_marks(cluster, node, "metadata.labels", event->objects);
        return 0;
    case EVENT_ANNOTATE:
        set_marks(cluster, node, "metadata.annotations", event->objects);
        return 0;
    case EVENT_CONDITION:
        condition_set(node, object_text(event->objects, "type"),
                      object_text(event->objects, "status"), "Simulated", NULL,
                      api_server_now_ms(cluster->api_server));
        store(cluster, node);
        return 0;
    case EVENT_OCCUPY:
        occupy(cluster, node, event->number);
        return 0;
    case EVENT_RELEASE:
        leave(cluster, event->name);
        break;
    case EVENT_DELETE_NODE:
        return delete_node(cluster, node, event);
    case EVENT_CREATE_NODE:
    case EVENT_APPLY:
    case EVENT_DELETE_JOB:
    case EVENT_SUCCEED_JOB:
    case EVENT_SUSPEND_JOB:
    case EVENT_RESUME_JOB:
    case EVENT_PATCH_JOB:
    case EVENT_FAIL_POD:
    case EVENT_DELETE_POD:
    case EVENT_EVICT_POD:
        break;
    }
    json_decref(node);
    return 0;
}

static int do_node(struct simulated_cluster *cluster, const struct scenario_event *event,
                   struct het_error *err)
{
    json_t *found = api_server_find(cluster->api_server, "nodes", "", event->name);
    if (event->kind == EVENT_CREATE_NODE)
        return create_node(cluster, event, err);
    if (!found)
        return no_such("node", event->name, err);
    return change_node(cluster, json_deep_copy(found), event);
}

static int do_apply(struct simulated_cluster *cluster, const struct scenario_event *event,
                    struct het_error *err)
{
    size_t i;
    json_t *object;
    json_array_foreach (event->objects, i, object) {
        if (api_server_put(cluster->api_server, json_incref(object), err) < 0)
            return -1;
    }
    return 0;
}

/* The object that an event names; without a namespace the first of that name. */
static json_t *find_named(const struct simulated_cluster *cluster, const char *plural,
                          const struct scenario_event *event)
{
    for (size_t i = 0; i < api_server_count(cluster->api_server, plural); i++) {
        json_t *object = api_server_at(cluster->api_server, plural, i);
        if (!strcmp(object_text(object, "metadata.name"), event->name) &&
            (!*event->ns ||
             !strcmp(object_text(object, "metadata.namespace"), event->ns)))
            return object;
    }
    return NULL;
}

static int succeed_job(struct simulated_cluster *cluster, const json_t *job)
{
    json_auto_t *pods = all_of(cluster, "pods");
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        const json_t *labels = object_at(pod, "metadata.labels");
        const char *of = json_string_value(json_object_get(labels, LABEL_JOB_UID));
        if (of && !strcmp(of, object_text(job, "metadata.uid")) && !is_deleting(pod) &&
            !strcmp(object_text(pod, "status.phase"), "Running") &&
            has_kubelet(cluster, pod))
            finish_pod(cluster, pod, 0, NULL);
    }
    return 0;
}

/* Merges `patch` into an object, as its user would. */
static int patch_object(struct simulated_cluster *cluster, const json_t *object,
                        json_t *patch, struct het_error *err)
{
    json_auto_t *merged = merge_patch(object, patch);
    return api_server_put(cluster->api_server, json_incref(merged), err);
}

static int do_job(struct simulated_cluster *cluster, const struct scenario_event *event,
                  struct het_error *err)
{
    json_t *job = find_named(cluster, "heterotrainingjobs", event);
    if (!job)
        return no_such("job", event->name, err);
    json_auto_t *suspend =
        json_pack("{s:{s:b}}", "spec", "suspend", event->kind == EVENT_SUSPEND_JOB);
    if (event->kind == EVENT_SUCCEED_JOB)
        return succeed_job(cluster, job);
    if (event->kind == EVENT_SUSPEND_JOB || event->kind == EVENT_RESUME_JOB)
        return patch_object(cluster, job, suspend, err);
    if (event->kind == EVENT_PATCH_JOB)
        return patch_object(cluster, job, event->objects, err);
    if (event->kind == EVENT_DELETE_JOB)
        return api_server_delete(cluster->api_server, "heterotrainingjobs",
                                 object_text(job, "metadata.namespace"), event->name, -1,
                                 err);
    set_marks(cluster, json_deep_copy(job), "metadata.labels", event->objects);
    return 0;
}

static int do_pod(struct simulated_cluster *cluster, const struct scenario_event *event,
                  struct het_error *err)
{
    const json_t *pod = find_named(cluster, "pods", event);
    if (!pod)
        return no_such("pod", event->name, err);
    if (event->kind == EVENT_FAIL_POD && (is_finished(pod) || !is_bound(pod)))
        return het_fail(err, HET_BAD_INPUT, "pod %s does not run", event->name);
    if (event->kind == EVENT_FAIL_POD) {
        finish_pod(cluster, pod, event->number, NULL);
        return 0;
    }
    auto_free char *ns = xstrdup(object_text(pod, "metadata.namespace"));
    if (event->kind == EVENT_EVICT_POD)
        disrupt(cluster, pod, "EvictionByEvictionAPI", false);
    return api_server_delete(cluster->api_server, "pods", ns, event->name, -1, err);
}

int simulated_cluster_do(struct simulated_cluster *cluster,
                         const struct scenario_event *event, struct het_error *err)
{
    switch (event->subject) {
    case OF_NODE:
        return do_node(cluster, event, err);
    case OF_JOB:
        return do_job(cluster, event, err);
    case OF_POD:
        return do_pod(cluster, event, err);
    case OF_FILE:
        return do_apply(cluster, event, err);
    }
    return 0;
}

static void run_event(struct simulated_cluster *cluster, const struct timer *timer)
{
    struct het_error err = { 0 };
    int failed = simulated_cluster_do(cluster, &timer->event, &err);
    if (cluster->done)
        cluster->done(cluster->done_context, &timer->event, failed ? &err : NULL);
}

void simulated_cluster_plan(struct simulated_cluster *cluster,
                            struct scenario_event *event)
{
    set_timer(cluster, event->after_ms, run_event)->event = *event;
    *event = (struct scenario_event){ 0 };
}

void simulated_cluster_on_event(struct simulated_cluster *cluster,
                                simulated_event_done *done, void *context)
{
    cluster->done = done;
    cluster->done_context = context;
}
