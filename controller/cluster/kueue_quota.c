#include "controller/cluster/kueue_quota.h"

#include "controller/base/object.h"
#include "controller/base/quantity.h"
#include "controller/cluster/kept_fields.h"
#include "controller/job/node_selector.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The longest GPU type in a podSet's name, which has at most 63 characters with the
 * number of GPUs and the digest. */
#define ROLE_TYPE_LENGTH 40

const char *kueue_queue_of(const json_t *job)
{
    const char *own = kube_label(job, KUEUE_LABEL_QUEUE);
    if (*own)
        return own;
    const char *template =
        kube_label(object_at(job, "spec.podTemplate"), KUEUE_LABEL_QUEUE);
    return *template ? template : NULL;
}

/* ---- quota, in thousandths ---- */

/* One ClusterQueue's share of one resource in one flavor. */
struct share {
    int64_t nominal, used;
    int64_t guaranteed; /* of nominal: not lent to the cohort */
    int64_t borrowing_limit;
};

static const json_t *find_resource(const json_t *flavor, const char *resource)
{
    return object_find(json_object_get(flavor, "resources"), "name", resource);
}

static const json_t *find_quota(const json_t *cluster_queue, const char *flavor,
                                const char *resource)
{
    const json_t *groups = object_at(cluster_queue, "spec.resourceGroups");
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *flavors = json_object_get(json_array_get(groups, i), "flavors");
        const json_t *quota =
            find_resource(object_find(flavors, "name", flavor), resource);
        if (quota)
            return quota;
    }
    return NULL;
}

static struct share read_share(const json_t *cluster_queue, const char *flavor,
                               const char *resource)
{
    const json_t *quota = find_quota(cluster_queue, flavor, resource);
    const json_t *reserved =
        find_resource(object_find(object_at(cluster_queue, "status.flavorsReservation"),
                                  "name", flavor),
                      resource);
    struct share share = {
        .nominal = quantity_of(json_object_get(quota, "nominalQuota"), 0),
        .used = quantity_of(json_object_get(reserved, "total"), 0),
        .borrowing_limit =
            quantity_of(json_object_get(quota, "borrowingLimit"), INT64_MAX),
    };
    int64_t lent = quantity_of(json_object_get(quota, "lendingLimit"), share.nominal);
    share.guaranteed = lent < share.nominal ? share.nominal - lent : 0;
    return share;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What `share` has put into the cohort, and has taken out of it. */
static int64_t lent_of(const struct share *share)
{
    return share->nominal - share->guaranteed;
}

static int64_t taken_of(const struct share *share)
{
    return larger(0, share->used - share->guaranteed);
}

static const char *cohort_of(const json_t *cluster_queue)
{
    return object_text(cluster_queue, "spec.cohortName");
}

/* What is left in the cohort of `cluster_queue`, whose own share is `share`. A Cohort
 * object may give it more; that is not counted, so that planned quota certainly
 * exists. */
static int64_t left_in_cohort(const struct store *store, const json_t *cluster_queue,
                              const struct share *share, const char *flavor,
                              const char *resource)
{
    int64_t left = lent_of(share) - taken_of(share);
    for (size_t i = 0; i < store_count(store, &kube_cluster_queue); i++) {
        const json_t *other = store_at(store, &kube_cluster_queue, i);
        if (other == cluster_queue || strcmp(cohort_of(other), cohort_of(cluster_queue)))
            continue;
        struct share its = read_share(other, flavor, resource);
        left += lent_of(&its) - taken_of(&its);
    }
    return left;
}

/* What a ClusterQueue can still give; `own` of its usage is the asking job's. Source:
 * Kueue's `available`, for a cohort of one level. */
static int64_t available(const struct store *store, const json_t *cluster_queue,
                         const char *flavor, const char *resource, int64_t own)
{
    struct share share = read_share(cluster_queue, flavor, resource);
    share.used = larger(0, share.used - own);
    if (!*cohort_of(cluster_queue))
        return larger(0, share.nominal - share.used);
    int64_t left = left_in_cohort(store, cluster_queue, &share, flavor, resource);
    int64_t most =
        quantity_add(lent_of(&share) - taken_of(&share), share.borrowing_limit);
    if (left > most)
        left = most;
    return larger(0, larger(0, share.guaranteed - share.used) + left);
}

bool kueue_workload_is_finished(const json_t *workload)
{
    return object_condition_is_true(workload, "Finished");
}

bool kueue_workload_has_quota(const json_t *workload)
{
    return object_condition_is_true(workload, "QuotaReserved");
}

/* What the job's own Workloads hold of one resource in one flavor. Evicted quota goes to
 * others. */
static int64_t held(const struct kueue_quota *quota, const char *flavor,
                    const char *resource)
{
    int64_t sum = 0;
    for (size_t i = 0; i < quota->workload_count; i++) {
        const json_t *workload = quota->workloads[i];
        if (!kueue_workload_has_quota(workload) ||
            object_condition_is_true(workload, "Evicted") ||
            kueue_workload_is_finished(workload))
            continue;
        const json_t *sets = object_at(workload, "status.admission.podSetAssignments");
        for (size_t k = 0; k < json_array_size(sets); k++) {
            const json_t *set = json_array_get(sets, k);
            const char *its = json_string_value(
                json_object_get(json_object_get(set, "flavors"), resource));
            if (its && !strcmp(its, flavor))
                sum = quantity_add(
                    sum, quantity_of(json_object_get(
                                         json_object_get(set, "resourceUsage"), resource),
                                     0));
        }
    }
    return sum;
}

static void add_flavor(const struct store *store, const json_t *cluster_queue,
                       const json_t *flavor, const json_t *resource,
                       struct kueue_quota *quota)
{
    const char *name = object_text(flavor, "name");
    const char *resource_name = object_text(resource, "name");
    const json_t *object = store_find(store, &kube_resource_flavor, "", name);
    if (!object)
        return; /* nothing is admitted to a flavor that is not there */
    int64_t own = held(quota, name, resource_name);
    quota->flavors[quota->flavor_count++] = (struct kueue_flavor){
        .name = name,
        .resource = resource_name,
        .node_labels = object_at(object, "spec.nodeLabels"),
        .available = quota->reason
                         ? own / 1000
                         : available(store, cluster_queue, name, resource_name, own) /
                               1000,
    };
}

static size_t count_flavors(const json_t *groups)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *flavors = json_object_get(json_array_get(groups, i), "flavors");
        for (size_t k = 0; k < json_array_size(flavors); k++)
            count +=
                json_array_size(json_object_get(json_array_get(flavors, k), "resources"));
    }
    return count;
}

static void read_flavors(struct het_arena *arena, const struct store *store,
                         const json_t *cluster_queue, struct kueue_quota *quota)
{
    const json_t *groups = object_at(cluster_queue, "spec.resourceGroups");
    quota->flavors =
        HET_ARENA_ARRAY(arena, struct kueue_flavor, count_flavors(groups) + 1);
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *flavors = json_object_get(json_array_get(groups, i), "flavors");
        for (size_t k = 0; k < json_array_size(flavors); k++) {
            const json_t *flavor = json_array_get(flavors, k);
            const json_t *resources = json_object_get(flavor, "resources");
            for (size_t j = 0; j < json_array_size(resources); j++)
                add_flavor(store, cluster_queue, flavor, json_array_get(resources, j),
                           quota);
        }
    }
}

/* If a queue admits nothing, sets the reason. */
static void check_active(struct het_arena *arena, const json_t *queue, const char *kind,
                         struct kueue_quota *quota)
{
    const json_t *active = object_find_condition(queue, "Active");
    const char *policy = object_text(queue, "spec.stopPolicy");
    bool is_stopped = *policy && strcmp(policy, "None") != 0;
    if (!is_stopped && strcmp(object_text(active, "status"), "False") != 0)
        return;
    quota->reason = "QueueInactive";
    quota->message =
        het_arena_printf(arena, "%s %s admits nothing: %s", kind, kube_name(queue),
                         is_stopped ? "it is stopped" : object_text(active, "message"));
}

void kueue_read_quota(struct het_arena *arena, const struct store *store,
                      enum kueue_presence presence, const json_t *job,
                      const json_t *const *workloads, size_t workload_count,
                      struct kueue_quota *ret)
{
    *ret = (struct kueue_quota){ .cluster_queue = "" };
    const char *queue = presence == KUEUE_ABSENT ? NULL : kueue_queue_of(job);
    if (!queue)
        return;
    ret->queue = queue;
    ret->workloads = workloads;
    ret->workload_count = workload_count;
    if (presence == KUEUE_UNREADABLE) {
        ret->reason = "QueuesUnreadable";
        ret->message = "Kueue is there, but its queues cannot be read (yet)";
        return;
    }
    const json_t *local =
        store_find(store, &kube_local_queue, kube_namespace(job), queue);
    ret->cluster_queue = object_text(local, "spec.clusterQueue");
    const json_t *cluster =
        store_find(store, &kube_cluster_queue, "", ret->cluster_queue);
    if (!local || !cluster) {
        ret->reason = "QueueNotFound";
        ret->message = local ? het_arena_printf(arena, "there is no ClusterQueue %s",
                                                ret->cluster_queue)
                             : het_arena_printf(arena, "there is no LocalQueue %s/%s",
                                                kube_namespace(job), queue);
        return;
    }
    check_active(arena, cluster, "ClusterQueue", ret);
    check_active(arena, local, "LocalQueue", ret);
    read_flavors(arena, store, cluster, ret);
}

const char *kueue_describe(struct het_arena *arena, const struct kueue_quota *quota)
{
    const char *list = "";
    for (size_t i = 0; i < quota->flavor_count; i++) {
        const struct kueue_flavor *flavor = &quota->flavors[i];
        if (!strchr(flavor->resource, '/'))
            continue; /* cpu, memory: Kueue's business alone */
        list = het_arena_printf(arena, "%s%s%s %s: %" PRId64, list, *list ? ", " : "",
                                flavor->name, flavor->resource, flavor->available);
    }
    return *list ? list : "no GPUs";
}

/* ---- nodes ---- */

/* What a node was given of one flavor. */
struct grant {
    int64_t gpus;
    size_t flavor;
};

/* Gives a node up to `wanted` GPUs, all of one flavor, as one pod has them: the one it
 * has some of already, or the first of its flavors that has any left. */
static void give(const struct kueue_quota *quota, int64_t *left,
                 const struct capacity_node *node, const json_t *object, int64_t wanted,
                 struct grant *grant)
{
    if (!grant->gpus) {
        size_t i = 0;
        while (i < quota->flavor_count &&
               (left[i] <= 0 || strcmp(quota->flavors[i].resource, node->resource) ||
                !node_selector_matches_labels(quota->flavors[i].node_labels, object)))
            i++;
        if (i == quota->flavor_count)
            return;
        grant->flavor = i;
    }
    int64_t more = wanted - grant->gpus;
    if (more > left[grant->flavor])
        more = left[grant->flavor];
    if (more <= 0)
        return;
    grant->gpus += more;
    left[grant->flavor] -= more;
}

static int compare_free(const void *a, const void *b)
{
    const struct capacity_node *const *left = a, *const *right = b;
    if ((*left)->free != (*right)->free)
        return (*left)->free > (*right)->free ? -1 : 1;
    return strcmp((*left)->name, (*right)->name);
}

static int64_t kept_gpus(const struct het_rank_node *kept, size_t count, const char *node)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(kept[i].node_name, node))
            return kept[i].gpu_count;
    return 0;
}

void kueue_limit_nodes(struct het_arena *arena, const struct store *store,
                       struct kueue_quota *quota, const struct het_rank_node *kept,
                       size_t kept_count, struct capacity_node *nodes, size_t node_count)
{
    int64_t *left = HET_ARENA_ARRAY(arena, int64_t, quota->flavor_count + 1);
    for (size_t i = 0; i < quota->flavor_count; i++)
        left[i] = quota->flavors[i].available;
    struct capacity_node **order =
        HET_ARENA_ARRAY(arena, struct capacity_node *, node_count + 1);
    const json_t **objects = HET_ARENA_ARRAY(arena, const json_t *, node_count + 1);
    struct grant *grants = HET_ARENA_ARRAY(arena, struct grant, node_count + 1);
    for (size_t i = 0; i < node_count; i++) {
        int64_t own = kept_gpus(kept, kept_count, nodes[i].name);
        order[i] = &nodes[i];
        objects[i] = store_find(store, &kube_node, "", nodes[i].name);
        grants[i] = (struct grant){ 0 };
        give(quota, left, &nodes[i], objects[i],
             own < nodes[i].free ? own : nodes[i].free, &grants[i]);
    }
    qsort(order, node_count, sizeof(struct capacity_node *), compare_free);
    for (size_t i = 0; i < node_count; i++) {
        size_t at = (size_t)(order[i] - nodes);
        give(quota, left, &nodes[at], objects[at], nodes[at].free, &grants[at]);
    }
    for (size_t i = 0; i < node_count; i++)
        nodes[i].free = grants[i].gpus;
    quota->nodes = objects;
    quota->node_count = node_count;
}

/* ---- pods ---- */

const char *kueue_group(struct het_arena *arena, const char *job, int64_t generation)
{
    return het_arena_printf(arena, "%s-%" PRId64, job, generation);
}

/* Makes the pod select its node's values of all labels by which the flavors differ. */
static void select_flavor(const struct kueue_quota *quota, const json_t *node,
                          json_t *selector)
{
    const json_t *labels = object_at(node, "metadata.labels");
    for (size_t i = 0; i < quota->flavor_count; i++) {
        const char *key;
        json_t *wanted;
        json_object_foreach ((json_t *)(uintptr_t)quota->flavors[i].node_labels, key,
                             wanted) {
            json_t *value = json_object_get(labels, key);
            if (value && !json_object_get(selector, key))
                json_object_set(selector, key, value);
        }
    }
}

static uint32_t fold(uint32_t digest, const char *text)
{
    for (const char *c = text;; c++) { /* FNV-1a, the final NUL included */
        digest = (digest ^ (unsigned char)*c) * 16777619u;
        if (!*c)
            return digest;
    }
}

/* Name of the podSet: what its pods have in common, readable, and a digest of it. Kueue
 * accepts lower case letters, digits and '-'. */
static char *role_name(const char *gpu_type, int64_t gpus, const json_t *selector)
{
    auto_free char *labels = json_dumps(selector, JSON_COMPACT | JSON_SORT_KEYS);
    uint32_t digest = fold(fold(2166136261u, gpu_type), labels ? labels : "");
    char type[ROLE_TYPE_LENGTH + 1] = "";
    size_t length = 0;
    for (const char *c = gpu_type; *c && length < ROLE_TYPE_LENGTH; c++) {
        char lower = (char)tolower((unsigned char)*c);
        bool is_plain = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
        if (is_plain || length)
            type[length++] = is_plain ? lower : '-';
    }
    return xasprintf("%s%s%" PRId64 "-%08" PRIx32, type, length ? "-" : "", gpus, digest);
}

void kueue_decorate_pod(const struct kueue_quota *quota, const json_t *job,
                        const json_t *node, const char *group, size_t count,
                        const char *gpu_type, int64_t gpus, json_t *pod)
{
    if (!quota->queue)
        return;
    json_t *labels = object_map(pod, "metadata.labels");
    json_t *annotations = object_map(pod, "metadata.annotations");
    json_t *selector = object_map(pod, "spec.nodeSelector");
    select_flavor(quota, node, selector);
    auto_free char *role = role_name(gpu_type, gpus, selector);
    if (!json_object_size(selector))
        json_object_del(json_object_get(pod, "spec"), "nodeSelector");
    json_object_set_new(labels, KUEUE_LABEL_QUEUE, json_string(quota->queue));
    json_object_set_new(labels, KUEUE_LABEL_GROUP, json_string(group));
    const char *priority = kube_label(job, KUEUE_LABEL_PRIORITY);
    if (*priority)
        json_object_set_new(labels, KUEUE_LABEL_PRIORITY, json_string(priority));
    json_object_set_new(annotations, KUEUE_ANNOTATION_COUNT, json_sprintf("%zu", count));
    json_object_set_new(annotations, KUEUE_ANNOTATION_ROLE, json_string(role));
    json_object_set_new(annotations, KUEUE_ANNOTATION_RETRIABLE, json_string("false"));
}

enum kueue_admission kueue_pod_admission(const json_t *pod)
{
    if (strcmp(kube_label(pod, KUEUE_LABEL_MANAGED), "true"))
        return KUEUE_UNMANAGED;
    const json_t *gates = object_at(pod, "spec.schedulingGates");
    for (size_t i = 0; i < json_array_size(gates); i++)
        if (!strncmp(object_text(json_array_get(gates, i), "name"), KUEUE_GATE_PREFIX,
                     strlen(KUEUE_GATE_PREFIX)))
            return KUEUE_WAITING;
    return KUEUE_ADMITTED;
}

bool kueue_pod_is_evicted(const json_t *pod)
{
    return kueue_pod_admission(pod) != KUEUE_UNMANAGED &&
           object_condition_is_true(pod, "TerminationTarget");
}

bool kueue_pod_is_stuck(const json_t *pod)
{
    const json_t *grace = object_at(pod, "metadata.deletionGracePeriodSeconds");
    const char *phase = object_text(pod, "status.phase");
    return kube_is_deleting(pod) && !json_integer_value(grace) &&
           strcmp(phase, "Succeeded") != 0 && strcmp(phase, "Failed") != 0;
}

/* ---- workloads ---- */

const json_t *kueue_find_workload(const struct kueue_quota *quota, const char *group)
{
    for (size_t i = 0; i < quota->workload_count; i++)
        if (!strcmp(kube_name(quota->workloads[i]), group))
            return quota->workloads[i];
    return NULL;
}

const char *kueue_pending_message(const json_t *workload)
{
    return object_text(object_find_condition(workload, "QuotaReserved"), "message");
}

const char *kueue_eviction_reason(const json_t *workload)
{
    const char *reason =
        object_text(object_find_condition(workload, "Evicted"), "reason");
    return object_condition_is_true(workload, "Evicted") && *reason ? reason : "Evicted";
}

const char *kueue_eviction_message(const json_t *workload, const json_t *pod)
{
    const char *message =
        object_text(object_find_condition(workload, "Evicted"), "message");
    return *message
               ? message
               : object_text(object_find_condition(pod, "TerminationTarget"), "message");
}

/* ---- what the store keeps ---- */

static json_t *trim(const json_t *object, const char *const *spec,
                    const char *const *status)
{
    static const char *const metadata[] = {
        "name", "namespace", "uid", "resourceVersion", "deletionTimestamp", NULL
    };
    json_t *trimmed = json_object();
    json_object_set_new(trimmed, "metadata",
                        kept_fields_pick(json_object_get(object, "metadata"), metadata));
    json_object_set_new(trimmed, "spec",
                        kept_fields_pick(json_object_get(object, "spec"), spec));
    json_object_set_new(trimmed, "status",
                        kept_fields_pick(json_object_get(object, "status"), status));
    return trimmed;
}

json_t *kueue_trim_workload(json_t *workload)
{
    static const char *const spec[] = { "queueName", NULL };
    static const char *const status[] = { "admission", "conditions", NULL };
    json_t *trimmed = trim(workload, spec, status);
    json_t *owners = object_at(workload, "metadata.ownerReferences");
    if (owners)
        object_set(trimmed, "metadata.ownerReferences", json_incref(owners));
    return trimmed;
}

json_t *kueue_trim_queue(json_t *queue)
{
    static const char *const spec[] = { "clusterQueue",   "cohortName", "nodeLabels",
                                        "resourceGroups", "stopPolicy", NULL };
    static const char *const status[] = { "conditions", "flavorsReservation", NULL };
    return trim(queue, spec, status);
}
