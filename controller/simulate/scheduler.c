#include "controller/simulate/scheduler.h"

#include "controller/base/quantity.h"
#include "controller/simulate/api_server/condition.h"
#include "controller/simulate/api_server/selector.h"
#include "planner/modules.h"

#include <stdlib.h>
#include <string.h>

/* ---- requests ---- */

static int64_t amount(const json_t *amounts, const char *resource)
{
    return json_integer_value(json_object_get(amounts, resource));
}

static void add_amounts(json_t *total, json_t *more)
{
    const char *resource;
    json_t *value;
    json_object_foreach (more, resource, value) {
        int64_t sum = quantity_add(amount(total, resource), json_integer_value(value));
        json_object_set_new(total, resource, json_integer(sum));
    }
}

static void raise_amounts(json_t *total, json_t *least)
{
    const char *resource;
    json_t *value;
    json_object_foreach (least, resource, value) {
        if (json_integer_value(value) > amount(total, resource))
            json_object_set(total, resource, value);
    }
}

/* {"cpu": "500m"} as {"cpu": 500} */
static json_t *read_amounts(json_t *quantities)
{
    json_t *amounts = json_object();
    const char *resource;
    json_t *value;
    json_object_foreach (quantities, resource, value) {
        json_object_set_new(amounts, resource, json_integer(quantity_of(value, 0)));
    }
    return amounts;
}

json_t *scheduler_requests(const json_t *pod)
{
    json_t *total = json_pack("{s:i}", "pods", 1000);
    size_t i;
    json_t *container;
    json_array_foreach (object_at(pod, "spec.containers"), i, container) {
        json_auto_t *own = read_amounts(object_at(container, "resources.requests"));
        add_amounts(total, own);
    }
    json_array_foreach (object_at(pod, "spec.initContainers"), i, container) {
        json_auto_t *own = read_amounts(object_at(container, "resources.requests"));
        raise_amounts(total, own);
    }
    json_auto_t *overhead = read_amounts(object_at(pod, "spec.overhead"));
    add_amounts(total, overhead);
    return total;
}

/* {node: {resource: thousandths in use}} */
static json_t *count_usage(const json_t *pods)
{
    json_t *usage = json_object();
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        const char *node = object_text(pod, "spec.nodeName");
        const char *phase = object_text(pod, "status.phase");
        if (!*node || !strcmp(phase, "Succeeded") || !strcmp(phase, "Failed"))
            continue;
        if (!json_object_get(usage, node))
            json_object_set_new(usage, node, json_object());
        json_auto_t *requests = scheduler_requests(pod);
        add_amounts(json_object_get(usage, node), requests);
    }
    return usage;
}

/* ---- filters: each returns why not, or NULL ---- */

bool scheduler_tolerates(const json_t *tolerations, const json_t *taint,
                         json_t **ret_toleration)
{
    size_t i;
    json_t *toleration;
    json_array_foreach (tolerations, i, toleration) {
        const char *key = object_text(toleration, "key");
        const char *effect = object_text(toleration, "effect");
        bool exists = !strcmp(object_text(toleration, "operator"), "Exists");
        if (*effect && strcmp(effect, object_text(taint, "effect")) != 0)
            continue;
        if (*key ? strcmp(key, object_text(taint, "key")) != 0 : !exists)
            continue;
        if (!exists &&
            strcmp(object_text(toleration, "value"), object_text(taint, "value")) != 0)
            continue;
        if (ret_toleration)
            *ret_toleration = toleration;
        return true;
    }
    return false;
}

static char *check_taints(const json_t *node, const json_t *pod)
{
    const json_t *tolerations = object_at(pod, "spec.tolerations");
    json_auto_t *cordon = json_pack(
        "{s:s, s:s}", "key", "node.kubernetes.io/unschedulable", "effect", "NoSchedule");
    if (object_is_true(node, "spec.unschedulable") &&
        !scheduler_tolerates(tolerations, cordon, NULL))
        return xstrdup("node(s) were unschedulable");
    size_t i;
    json_t *taint;
    json_array_foreach (object_at(node, "spec.taints"), i, taint) {
        if (!strcmp(object_text(taint, "effect"), "PreferNoSchedule") ||
            scheduler_tolerates(tolerations, taint, NULL))
            continue;
        return xasprintf("node(s) had untolerated taint {%s: %s}",
                         object_text(taint, "key"), object_text(taint, "value"));
    }
    return NULL;
}

static bool matches_affinity(const json_t *node, const json_t *pod)
{
    const json_t *terms = object_at(pod, "spec.affinity.nodeAffinity."
                                         "requiredDuringSchedulingIgnoredDuringExecution."
                                         "nodeSelectorTerms");
    if (!terms)
        return true;
    size_t i;
    json_t *term;
    json_array_foreach (terms, i, term) {
        if (selector_term_matches(term, node))
            return true;
    }
    return false;
}

static char *check_labels(const json_t *node, const json_t *pod)
{
    json_t *selector = object_at(pod, "spec.nodeSelector");
    const json_t *labels = object_at(node, "metadata.labels");
    const char *key;
    json_t *value;
    bool matches = matches_affinity(node, pod);
    json_object_foreach (selector, key, value) {
        matches = matches && json_equal(json_object_get(labels, key), value);
    }
    return matches ? NULL : xstrdup("node(s) didn't match Pod's node affinity/selector");
}

static char *check_fit(const json_t *node, const json_t *used, json_t *requests)
{
    const json_t *allocatable = object_at(node, "status.allocatable");
    const char *resource;
    json_t *request;
    json_object_foreach (requests, resource, request) {
        int64_t has = quantity_of(json_object_get(allocatable, resource), 0);
        /* A node that does not say how many pods it takes has kubelet's default. */
        if (!strcmp(resource, "pods") && !json_object_get(allocatable, resource))
            has = 110 * 1000;
        if (quantity_add(amount(used, resource), json_integer_value(request)) <= has ||
            !json_integer_value(request))
            continue;
        return strcmp(resource, "pods") != 0 ? xasprintf("Insufficient %s", resource)
                                             : xstrdup("Too many pods");
    }
    return NULL;
}

/* ---- verdicts ---- */

static int compare_reasons(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) ..." */
static char *join_reasons(json_t *counts, size_t node_count)
{
    if (!node_count)
        return xstrdup("no nodes available to schedule pods");
    const char **reasons = NULL;
    size_t capacity = 0;
    size_t count = 0;
    const char *reason;
    json_t *number;
    ARRAY_RESERVE(reasons, &capacity, json_object_size(counts) + 1);
    json_object_foreach (counts, reason, number) {
        reasons[count++] = reason;
    }
    qsort(reasons, count, sizeof *reasons, compare_reasons);
    char *text = xasprintf("0/%zu nodes are available:", node_count);
    for (size_t i = 0; i < count; i++) {
        auto_free char *before = text;
        text = xasprintf("%s%s %lld %s", before, i ? "," : "",
                         (long long)amount(counts, reasons[i]), reasons[i]);
    }
    free(reasons);
    auto_free char *before = text;
    return xasprintf("%s.", before);
}

static const char *find_node(const json_t *nodes, const json_t *usage, const json_t *pod,
                             json_t *requests, json_t *reasons)
{
    size_t i;
    json_t *node;
    json_array_foreach (nodes, i, node) {
        const char *name = object_text(node, "metadata.name");
        /* The order of kube-scheduler's default plugins: it reports the first that
         * fails. */
        auto_free char *why = check_taints(node, pod);
        if (!why)
            why = check_labels(node, pod);
        if (!why)
            why = check_fit(node, json_object_get(usage, name), requests);
        if (!why)
            return name;
        json_object_set_new(reasons, why, json_integer(amount(reasons, why) + 1));
    }
    return NULL;
}

void scheduler_run(const json_t *nodes, const json_t *pods, const json_t *pending,
                   scheduler_verdict *verdict, void *context)
{
    json_auto_t *usage = count_usage(pods);
    size_t i;
    json_t *pod;
    json_array_foreach (pending, i, pod) {
        json_auto_t *requests = scheduler_requests(pod);
        json_auto_t *reasons = json_object();
        const char *node = find_node(nodes, usage, pod, requests, reasons);
        if (node) {
            if (!json_object_get(usage, node))
                json_object_set_new(usage, node, json_object());
            add_amounts(json_object_get(usage, node), requests);
            verdict(context, pod, node, "");
            continue;
        }
        auto_free char *message = join_reasons(reasons, json_array_size(nodes));
        verdict(context, pod, NULL, message);
    }
}
