#include "controller/capacity.h"

#include "controller/job_spec.h"
#include "controller/strmap.h"

#include <stdlib.h>
#include <string.h>

struct node {
    char *name;
    json_t *object; /* NULL: pods speak of it, but there is no such node */
    char *type;     /* canonical GPU type; NULL: no GPU */
    char *unusable; /* NULL: usable */
    uint64_t memory_bytes;
    int64_t allocatable;
    int64_t state_changed_ms; /* usable, taints or allocatable changed last */
    int64_t foreign;          /* GPUs of pods that are not ours */
    int64_t reserved;         /* GPUs of all our jobs */
};

struct share {
    struct node *node;
    int64_t gpus;
};

/* One of our jobs. */
struct job {
    char *key;
    bool is_alive; /* the job is there and not finished: its plan holds GPUs */
    struct pod **pods;
    size_t pod_count, pod_capacity;
    struct plan **plans;
    size_t plan_count, plan_capacity;
    struct share *shares; /* what is added to nodes[].reserved, by node */
    size_t share_count;
};

struct pod {
    struct node *node; /* NULL: nowhere yet */
    struct job *job;   /* NULL: foreign */
    int64_t gpus, generation;
};

struct plan {
    struct job *job;
    int64_t generation;
    bool is_retired; /* stopped for good: reserves nothing */
    bool is_claim;   /* on GPUs that others hold (peers.h) */
    struct share *shares;
    size_t share_count;
};

struct capacity {
    const struct het_hardware *hardware;
    struct node **nodes; /* by name */
    size_t node_count, node_capacity;
    struct strmap pods, plans, jobs; /* by uid, uid, key */
};

struct capacity *capacity_new(void)
{
    struct capacity *capacity = xcalloc(1, sizeof *capacity);
    capacity->hardware = het_hardware_builtin();
    return capacity;
}

static void free_plan(struct plan *plan)
{
    if (!plan)
        return;
    free(plan->shares);
    free(plan);
}

void capacity_free(struct capacity *capacity)
{
    if (!capacity)
        return;
    for (size_t i = 0; i < capacity->node_count; i++) {
        struct node *node = capacity->nodes[i];
        json_decref(node->object);
        free(node->name);
        free(node->type);
        free(node->unusable);
        free(node);
    }
    free(capacity->nodes);
    for (size_t i = 0; i < capacity->pods.capacity; i++)
        free(capacity->pods.slots[i].value);
    for (size_t i = 0; i < capacity->plans.capacity; i++)
        free_plan(capacity->plans.slots[i].value);
    for (size_t i = 0; i < capacity->jobs.capacity; i++) {
        struct job *job = capacity->jobs.slots[i].value;
        if (!job)
            continue;
        free(job->key);
        free(job->pods);
        free(job->plans);
        free(job->shares);
        free(job);
    }
    strmap_fini(&capacity->pods);
    strmap_fini(&capacity->plans);
    strmap_fini(&capacity->jobs);
    free(capacity);
}

/* ---- nodes ---- */

/* Where `name` is, or belongs, in nodes[]. */
static size_t node_position(const struct capacity *capacity, const char *name,
                            bool *found)
{
    size_t low = 0, high = capacity->node_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(capacity->nodes[middle]->name, name);
        if (!order) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = false;
    return low;
}

static struct node *find_node(const struct capacity *capacity, const char *name)
{
    bool found;
    size_t position = node_position(capacity, name, &found);
    return found ? capacity->nodes[position] : NULL;
}

/* Nodes are never removed: pods and plans point at them, and names come back. */
static struct node *get_node(struct capacity *capacity, const char *name)
{
    bool found;
    size_t position = node_position(capacity, name, &found);
    if (found)
        return capacity->nodes[position];
    struct node *node = xcalloc(1, sizeof *node);
    node->name = xstrdup(name);
    ARRAY_RESERVE(capacity->nodes, &capacity->node_capacity, capacity->node_count + 1);
    memmove(capacity->nodes + position + 1, capacity->nodes + position,
            (capacity->node_count - position) * sizeof *capacity->nodes);
    capacity->nodes[position] = node;
    capacity->node_count++;
    return node;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static void set_text(char **text, const char *value)
{
    free(*text);
    *text = value ? xstrdup(value) : NULL;
}

static const json_t *taints_of(const json_t *node)
{
    return json_object_get(json_object_get(node, "spec"), "taints");
}

static const json_t *labels_of(const json_t *node)
{
    return json_object_get(json_object_get(node, "metadata"), "labels");
}

/* Equal, where absent and empty mean the same. */
static bool same_json(const json_t *a, const json_t *b)
{
    bool a_empty = !a || (!json_array_size(a) && !json_object_size(a));
    bool b_empty = !b || (!json_array_size(b) && !json_object_size(b));
    return a_empty || b_empty ? a_empty == b_empty : json_equal(a, b);
}

/* Labels that change without meaning anything (kubernetes-api.md 6.1, 6.6). */
static bool same_labels(const json_t *a, const json_t *b)
{
    if (json_equal(a, b))
        return true;
    json_auto_t *left = json_copy((json_t *)(uintptr_t)a);
    json_auto_t *right = json_copy((json_t *)(uintptr_t)b);
    json_object_del(left, "nvidia.com/gfd.timestamp");
    json_object_del(right, "nvidia.com/gfd.timestamp");
    return same_json(left, right);
}

bool capacity_set_node(struct capacity *capacity, const char *name, json_t *object,
                       int64_t now_ms)
{
    struct node *node = get_node(capacity, name);
    struct het_arena *arena = het_arena_new();
    struct het_node_facts facts = { .unusable = "NodeGone" };
    if (object)
        het_node_read(arena, object, JOB_SPEC_GPU_RESOURCE, capacity->hardware, &facts);

    bool state_changed = !node->object != !object ||
                         node->allocatable != facts.allocatable ||
                         !same_text(node->unusable, facts.unusable) ||
                         !same_text(node->type, facts.type) ||
                         !same_json(taints_of(node->object), taints_of(object));
    bool changed = state_changed || node->memory_bytes != facts.memory_bytes ||
                   !same_labels(labels_of(node->object), labels_of(object));
    if (state_changed)
        node->state_changed_ms = now_ms;
    set_text(&node->type, facts.type);
    set_text(&node->unusable, facts.unusable);
    node->memory_bytes = facts.memory_bytes;
    node->allocatable = facts.allocatable;
    json_t *before = node->object;
    node->object = object ? json_incref(object) : NULL;
    json_decref(before);
    het_arena_free(arena);
    return changed;
}

void capacity_set_hardware(struct capacity *capacity, const struct het_hardware *hardware,
                           int64_t now_ms)
{
    capacity->hardware = hardware;
    for (size_t i = 0; i < capacity->node_count; i++) {
        struct node *node = capacity->nodes[i];
        if (node->object)
            capacity_set_node(capacity, node->name, node->object, now_ms);
    }
}

/* ---- jobs: what they hold of each node ---- */

static struct job *get_job(struct capacity *capacity, const char *key)
{
    struct job *job = strmap_find(&capacity->jobs, key);
    if (!job) {
        job = xcalloc(1, sizeof *job);
        job->key = xstrdup(key);
        strmap_set(&capacity->jobs, key, job);
    }
    return job;
}

static void forget_job_if_empty(struct capacity *capacity, struct job *job)
{
    if (job->is_alive || job->pod_count || job->plan_count || job->share_count)
        return;
    strmap_remove(&capacity->jobs, job->key);
    free(job->key);
    free(job->pods);
    free(job->plans);
    free(job->shares);
    free(job);
}

/* GPUs on one node, of one of three kinds. */
struct holding {
    struct node *node;
    int64_t older, newest, planned;
};

static int compare_holdings(const void *a, const void *b)
{
    const struct holding *left = a, *right = b;
    return strcmp(left->node->name, right->node->name);
}

static const struct plan *newest_plan(const struct job *job)
{
    const struct plan *newest = NULL;
    for (size_t i = 0; i < job->plan_count; i++)
        if (!newest || job->plans[i]->generation > newest->generation)
            newest = job->plans[i];
    return newest;
}

/* All holdings of the job, one entry per pod and planned node, unsorted. */
static size_t list_holdings(const struct job *job, struct holding **ret)
{
    const struct plan *newest = newest_plan(job);
    int64_t generation = newest ? newest->generation : -1;
    bool holds_plan = newest && job->is_alive && !newest->is_retired;

    size_t count = 0;
    struct holding *holdings =
        xcalloc(job->pod_count + (newest ? newest->share_count : 0), sizeof *holdings);
    for (size_t i = 0; i < job->pod_count; i++) {
        const struct pod *pod = job->pods[i];
        if (!pod->node || !pod->gpus)
            continue;
        struct holding *holding = &holdings[count++];
        holding->node = pod->node;
        *(pod->generation == generation ? &holding->newest : &holding->older) = pod->gpus;
    }
    for (size_t i = 0; holds_plan && i < newest->share_count; i++)
        holdings[count++] = (struct holding){ .node = newest->shares[i].node,
                                              .planned = newest->shares[i].gpus };
    *ret = holdings;
    return count;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Puts what the job holds now in place of what it held before. True if any node's sum
 * changed. */
static bool recount_job(struct job *job)
{
    auto_free struct holding *holdings = NULL;
    size_t count = list_holdings(job, &holdings);
    qsort(holdings, count, sizeof *holdings, compare_holdings);

    struct share *shares = xcalloc(count, sizeof *shares);
    size_t share_count = 0;
    for (size_t i = 0; i < count;) {
        struct holding sum = holdings[i++];
        for (; i < count && holdings[i].node == sum.node; i++) {
            sum.older += holdings[i].older;
            sum.newest += holdings[i].newest;
            sum.planned += holdings[i].planned;
        }
        shares[share_count++] =
            (struct share){ sum.node, sum.older + larger(sum.newest, sum.planned) };
    }
    bool same = share_count == job->share_count;
    for (size_t i = 0; same && i < share_count; i++)
        same = shares[i].node == job->shares[i].node &&
               shares[i].gpus == job->shares[i].gpus;
    for (size_t i = 0; i < job->share_count; i++)
        job->shares[i].node->reserved -= job->shares[i].gpus;
    for (size_t i = 0; i < share_count; i++)
        shares[i].node->reserved += shares[i].gpus;
    free(job->shares);
    job->shares = shares;
    job->share_count = share_count;
    return !same;
}

bool capacity_set_job(struct capacity *capacity, const char *job_key, bool alive)
{
    struct job *job = strmap_find(&capacity->jobs, job_key);
    if (!job && !alive)
        return false;
    if (!job)
        job = get_job(capacity, job_key);
    job->is_alive = alive;
    bool changed = recount_job(job);
    forget_job_if_empty(capacity, job);
    return changed;
}

/* ---- pods ---- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* The controller that owns `object`, if it is a HeteroTrainingJob: its uid, or NULL. */
static const char *owner_job(const json_t *object)
{
    const json_t *owners =
        json_object_get(json_object_get(object, "metadata"), "ownerReferences");
    for (size_t i = 0; i < json_array_size(owners); i++) {
        const json_t *owner = json_array_get(owners, i);
        if (json_is_true(json_object_get(owner, "controller")) &&
            !strcmp(text_of(owner, "kind"), "HeteroTrainingJob"))
            return text_of(owner, "uid");
    }
    return NULL;
}

static struct job *get_owner(struct capacity *capacity, const json_t *object)
{
    const char *uid = owner_job(object);
    if (!uid)
        return NULL;
    auto_free char *key = xasprintf(
        "%s/%s", text_of(json_object_get(object, "metadata"), "namespace"), uid);
    return get_job(capacity, key);
}

static int64_t generation_of(const json_t *object)
{
    const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
    const char *text = text_of(labels, LABEL_PLAN_GENERATION);
    char *end;
    long long generation = strtoll(text, &end, 10);
    return *text && !*end && generation >= 0 && generation <= INT32_MAX ? generation : 0;
}

/* The node that our own affinity pins the pod to; NULL if it has no such pin. */
static const char *pinned_node(const json_t *pod)
{
    const json_t *affinity = json_object_get(json_object_get(pod, "spec"), "affinity");
    const json_t *required =
        json_object_get(json_object_get(affinity, "nodeAffinity"),
                        "requiredDuringSchedulingIgnoredDuringExecution");
    const json_t *term =
        json_array_get(json_object_get(required, "nodeSelectorTerms"), 0);
    const json_t *fields = json_object_get(term, "matchFields");
    for (size_t i = 0; i < json_array_size(fields); i++) {
        const json_t *field = json_array_get(fields, i);
        if (!strcmp(text_of(field, "key"), "metadata.name"))
            return json_string_value(json_array_get(json_object_get(field, "values"), 0));
    }
    return NULL;
}

/* Where a pod's GPUs are counted: bound, nominated, or pinned by us. */
static const char *place_of(const json_t *pod, bool is_ours)
{
    const char *bound = text_of(json_object_get(pod, "spec"), "nodeName");
    if (*bound)
        return bound;
    const char *nominated = text_of(json_object_get(pod, "status"), "nominatedNodeName");
    if (*nominated)
        return nominated;
    /* A gated pod holds nothing: its plan does. */
    bool is_gated =
        json_array_size(json_object_get(json_object_get(pod, "spec"), "schedulingGates"));
    return is_ours && !is_gated ? pinned_node(pod) : NULL;
}

static bool is_over(const json_t *pod)
{
    const char *phase = text_of(json_object_get(pod, "status"), "phase");
    return !strcmp(phase, "Succeeded") || !strcmp(phase, "Failed");
}

static bool remove_pod(struct capacity *capacity, const char *uid)
{
    struct pod *pod = strmap_remove(&capacity->pods, uid);
    if (!pod)
        return false;
    bool changed = false;
    if (!pod->job) {
        pod->node->foreign -= pod->gpus;
        changed = pod->gpus != 0;
    } else {
        struct job *job = pod->job;
        for (size_t i = 0; i < job->pod_count; i++) {
            if (job->pods[i] == pod) {
                job->pods[i] = job->pods[--job->pod_count];
                break;
            }
        }
        changed = recount_job(job);
        forget_job_if_empty(capacity, job);
    }
    free(pod);
    return changed;
}

static bool add_pod(struct capacity *capacity, const char *uid, const struct pod *facts)
{
    struct pod *pod = xmalloc(sizeof *pod);
    *pod = *facts;
    strmap_set(&capacity->pods, uid, pod);
    if (!pod->job) {
        pod->node->foreign += pod->gpus;
        return pod->gpus != 0;
    }
    struct job *job = pod->job;
    ARRAY_RESERVE(job->pods, &job->pod_capacity, job->pod_count + 1);
    job->pods[job->pod_count++] = pod;
    return recount_job(job);
}

bool capacity_set_pod(struct capacity *capacity, const char *uid, json_t *object)
{
    if (!object || is_over(object))
        return remove_pod(capacity, uid);
    struct pod facts = { .job = get_owner(capacity, object),
                         .generation = generation_of(object),
                         .gpus = het_pod_request(object, JOB_SPEC_GPU_RESOURCE, 0) };
    const char *place = place_of(object, facts.job != NULL);
    facts.node = place && *place ? get_node(capacity, place) : NULL;

    const struct pod *held = strmap_find(&capacity->pods, uid);
    if (held && !memcmp(held, &facts, sizeof facts))
        return false;
    bool counts = facts.gpus > 0 && facts.node;
    if (!counts) {
        bool changed = remove_pod(capacity, uid);
        /* remove_pod may have freed the entry of a job that is empty now */
        if (facts.job && strmap_find(&capacity->jobs, facts.job->key) == facts.job)
            forget_job_if_empty(capacity, facts.job);
        return changed;
    }
    if (!held)
        return add_pod(capacity, uid, &facts);
    /* Moved, or resized: both sides change, whatever the sums say. */
    struct job *job = facts.job;
    auto_free char *key = job ? xstrdup(job->key) : NULL;
    remove_pod(capacity, uid);
    facts.job = key ? get_job(capacity, key) : NULL;
    add_pod(capacity, uid, &facts);
    return true;
}

/* ---- plans ---- */

static bool is_retired(const json_t *config_map)
{
    const json_t *annotations =
        json_object_get(json_object_get(config_map, "metadata"), "annotations");
    return *text_of(annotations, ANNOTATION_RETIRED);
}

static struct plan *read_plan(struct capacity *capacity, const json_t *config_map,
                              struct job *job)
{
    struct plan *result = xcalloc(1, sizeof *result);
    result->job = job;
    result->generation = generation_of(config_map);
    result->is_retired = is_retired(config_map);
    result->is_claim =
        *text_of(json_object_get(json_object_get(config_map, "metadata"), "annotations"),
                 ANNOTATION_PREEMPTS);
    struct het_arena *arena = het_arena_new();
    const char *text = text_of(json_object_get(config_map, "data"), "plan.json");
    json_t *json = NULL;
    const struct het_plan *plan;
    if (!het_json_decode(text, strlen(text), "plan.json", &json, NULL) &&
        !het_codec_plan(arena, json, &plan, NULL)) {
        struct het_rank_node *ranks;
        size_t count = het_plan_rank_nodes(arena, plan, &ranks);
        result->shares = xcalloc(count, sizeof *result->shares);
        for (size_t i = 0; i < count; i++)
            result->shares[result->share_count++] =
                (struct share){ get_node(capacity, ranks[i].node_name),
                                ranks[i].gpu_count };
    }
    json_decref(json);
    het_arena_free(arena);
    return result;
}

static bool remove_plan(struct capacity *capacity, const char *uid)
{
    struct plan *plan = strmap_remove(&capacity->plans, uid);
    if (!plan)
        return false;
    struct job *job = plan->job;
    for (size_t i = 0; i < job->plan_count; i++) {
        if (job->plans[i] == plan) {
            job->plans[i] = job->plans[--job->plan_count];
            break;
        }
    }
    free_plan(plan);
    bool changed = recount_job(job);
    forget_job_if_empty(capacity, job);
    return changed;
}

bool capacity_set_plan(struct capacity *capacity, const char *uid, json_t *config_map)
{
    if (!config_map)
        return remove_plan(capacity, uid);
    struct plan *held = strmap_find(&capacity->plans, uid);
    if (held) { /* its data is immutable; it may be retired */
        if (held->is_retired == is_retired(config_map))
            return false;
        held->is_retired = !held->is_retired;
        return recount_job(held->job);
    }
    struct job *job = get_owner(capacity, config_map);
    if (!job)
        return false;
    struct plan *plan = read_plan(capacity, config_map, job);
    strmap_set(&capacity->plans, uid, plan);
    ARRAY_RESERVE(job->plans, &job->plan_capacity, job->plan_count + 1);
    job->plans[job->plan_count++] = plan;
    return recount_job(job);
}

/* ---- the view of one job ---- */

static bool tolerates(const json_t *toleration, const json_t *taint)
{
    const char *effect = text_of(toleration, "effect");
    if (*effect && strcmp(effect, text_of(taint, "effect")))
        return false;
    const char *key = text_of(toleration, "key");
    bool exists = !strcmp(text_of(toleration, "operator"), "Exists");
    if (!*key)
        return exists;
    return !strcmp(key, text_of(taint, "key")) &&
           (exists || !strcmp(text_of(toleration, "value"), text_of(taint, "value")));
}

/* The first taint that keeps the job's pods away; NULL if none does. */
static const char *untolerated_taint(const json_t *node, const json_t *tolerations)
{
    const json_t *taints = taints_of(node);
    for (size_t i = 0; i < json_array_size(taints); i++) {
        const json_t *taint = json_array_get(taints, i);
        const char *effect = text_of(taint, "effect"), *key = text_of(taint, "key");
        if (strcmp(effect, "NoSchedule") && strcmp(effect, "NoExecute"))
            continue;
        /* Every pod of ours tolerates this one (desired_pod). */
        bool tolerated = !strcmp(key, JOB_SPEC_GPU_RESOURCE) &&
                         !strcmp(effect, "NoSchedule");
        for (size_t k = 0; !tolerated && k < json_array_size(tolerations); k++)
            tolerated = tolerates(json_array_get(tolerations, k), taint);
        if (!tolerated)
            return key;
    }
    return NULL;
}

static bool matches_selector(const json_t *node, const json_t *selector)
{
    const json_t *labels = labels_of(node);
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)selector, key, value) {
        const char *label = json_string_value(json_object_get(labels, key));
        const char *wanted = json_string_value(value);
        if (!label || !wanted || strcmp(label, wanted))
            return false;
    }
    return true;
}

static int64_t share_of(const struct job *job, const struct node *node)
{
    size_t low = 0, high = job ? job->share_count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(job->shares[middle].node->name, node->name);
        if (!order)
            return job->shares[middle].gpus;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

size_t capacity_view(const struct capacity *capacity, struct het_arena *arena,
                     const char *job_key, const json_t *node_selector,
                     const json_t *tolerations, struct capacity_node **ret)
{
    const struct job *job = strmap_find(&capacity->jobs, job_key);
    struct capacity_node *view =
        HET_ARENA_ARRAY(arena, struct capacity_node, capacity->node_count);
    size_t count = 0;
    for (size_t i = 0; i < capacity->node_count; i++) {
        const struct node *node = capacity->nodes[i];
        /* A node that has lost its labels is still the place of what runs on it. */
        if (!node->object || (!node->type && !share_of(job, node)))
            continue;
        struct capacity_node *seen = &view[count++];
        *seen = (struct capacity_node){
            .name = node->name,
            .type = node->type ? node->type : "",
            .memory_bytes = node->memory_bytes,
            .allocatable = node->allocatable,
            .unusable = node->unusable,
            .unusable_since_ms = node->state_changed_ms,
        };
        if (!seen->unusable && !node->type)
            seen->unusable = "UnknownGPUType";
        const char *taint = untolerated_taint(node->object, tolerations);
        if (!seen->unusable && taint)
            seen->unusable = het_arena_printf(arena, "Tainted (%s)", taint);
        if (!seen->unusable && !matches_selector(node->object, node_selector))
            seen->unusable = "NotSelected";
        int64_t free_gpus = node->allocatable - node->foreign -
                            (node->reserved - share_of(job, node));
        seen->free = seen->unusable ? 0 : larger(free_gpus, 0);
    }
    *ret = view;
    return count;
}

size_t capacity_holdings(const struct capacity *capacity, struct het_arena *arena,
                         const char *job_key, struct capacity_share **ret)
{
    const struct job *job = strmap_find(&capacity->jobs, job_key);
    size_t count = job && job->is_alive ? job->share_count : 0;
    struct capacity_share *shares = HET_ARENA_ARRAY(arena, struct capacity_share, count);
    for (size_t i = 0; i < count; i++)
        shares[i] =
            (struct capacity_share){ job->shares[i].node->name, job->shares[i].gpus };
    *ret = shares;
    return count;
}

bool capacity_has_node(const struct capacity *capacity, const char *name)
{
    const struct node *node = find_node(capacity, name);
    return node && node->object;
}

bool capacity_is_out_of_service(const struct capacity *capacity, const char *name)
{
    const struct node *node = find_node(capacity, name);
    const json_t *taints = node ? taints_of(node->object) : NULL;
    for (size_t i = 0; i < json_array_size(taints); i++)
        if (!strcmp(text_of(json_array_get(taints, i), "key"),
                    "node.kubernetes.io/out-of-service"))
            return true;
    return false;
}

/* Sums over all jobs: what their pods hold now, and what their newest generations will.
 */
static void sum_jobs(const struct capacity *capacity, const struct node *node,
                     int64_t *ret_held, int64_t *ret_wanted)
{
    *ret_held = *ret_wanted = 0;
    for (size_t i = 0; i < capacity->jobs.capacity; i++) {
        const struct job *job = capacity->jobs.slots[i].value;
        if (!job)
            continue;
        auto_free struct holding *holdings = NULL;
        size_t count = list_holdings(job, &holdings);
        int64_t newest = 0, planned = 0;
        for (size_t k = 0; k < count; k++) {
            if (holdings[k].node != node)
                continue;
            *ret_held += holdings[k].older + holdings[k].newest;
            newest += holdings[k].newest;
            planned += holdings[k].planned;
        }
        /* A claim waits until its GPUs are free: its pods come then. */
        const struct plan *plan = newest_plan(job);
        *ret_wanted += plan && plan->is_claim ? newest : larger(newest, planned);
    }
}

const char *capacity_find_overcommit(const struct capacity *capacity)
{
    for (size_t i = 0; i < capacity->node_count; i++) {
        const struct node *node = capacity->nodes[i];
        if (!node->object || !node->reserved)
            continue;
        int64_t held, wanted;
        sum_jobs(capacity, node, &held, &wanted);
        if (node->foreign + larger(held, wanted) > node->allocatable)
            return node->name;
    }
    return NULL;
}

/* ---- what the store keeps ---- */

/* Copies the named members of `from` into a new object. */
static json_t *pick(const json_t *from, const char *const *names)
{
    json_t *result = json_object();
    for (; *names; names++) {
        json_t *value = json_object_get(from, *names);
        if (value)
            json_object_set(result, *names, value);
    }
    return result;
}

static json_t *pick_metadata(const json_t *object)
{
    static const char *const names[] = { "name",
                                         "namespace",
                                         "uid",
                                         "resourceVersion",
                                         "labels",
                                         "ownerReferences",
                                         "annotations",
                                         "deletionTimestamp",
                                         "deletionGracePeriodSeconds",
                                         "creationTimestamp",
                                         NULL };
    return pick(json_object_get(object, "metadata"), names);
}

json_t *capacity_trim_node(json_t *object)
{
    static const char *const spec[] = { "unschedulable", "taints", NULL };
    static const char *const status[] = { "allocatable", NULL };
    json_t *trimmed = json_object();
    json_t *metadata = pick_metadata(object);
    json_object_del(metadata, "annotations");
    json_object_set_new(trimmed, "metadata", metadata);
    json_object_set_new(trimmed, "spec", pick(json_object_get(object, "spec"), spec));

    json_t *kept = pick(json_object_get(object, "status"), status);
    json_t *conditions = json_array();
    const json_t *all = json_object_get(json_object_get(object, "status"), "conditions");
    for (size_t i = 0; i < json_array_size(all); i++) {
        static const char *const fields[] = { "type", "status", NULL };
        json_array_append_new(conditions, pick(json_array_get(all, i), fields));
    }
    json_object_set_new(kept, "conditions", conditions);
    json_object_set_new(trimmed, "status", kept);
    return trimmed;
}

static json_t *trim_containers(const json_t *containers)
{
    static const char *const fields[] = { "name", "resources", "restartPolicy", NULL };
    json_t *trimmed = json_array();
    for (size_t i = 0; i < json_array_size(containers); i++)
        json_array_append_new(trimmed, pick(json_array_get(containers, i), fields));
    return trimmed;
}

json_t *capacity_trim_pod(json_t *object)
{
    bool is_ours = owner_job(object) != NULL;
    static const char *const foreign_spec[] = { "nodeName", "overhead", "resources",
                                                NULL };
    static const char *const our_spec[] = { "nodeName", "overhead",        "resources",
                                            "affinity", "schedulingGates", NULL };
    static const char *const foreign_status[] = { "phase", "nominatedNodeName", NULL };
    static const char *const our_status[] = { "phase",      "nominatedNodeName",
                                              "reason",     "message",
                                              "conditions", "containerStatuses",
                                              "podIP",      NULL };
    const json_t *spec = json_object_get(object, "spec");
    json_t *kept_spec = pick(spec, is_ours ? our_spec : foreign_spec);
    json_object_set_new(kept_spec, "containers",
                        trim_containers(json_object_get(spec, "containers")));
    if (json_array_size(json_object_get(spec, "initContainers")))
        json_object_set_new(kept_spec, "initContainers",
                            trim_containers(json_object_get(spec, "initContainers")));

    json_t *trimmed = json_object();
    json_t *metadata = pick_metadata(object);
    if (!is_ours) {
        json_object_del(metadata, "annotations");
        json_object_del(metadata, "labels");
    }
    json_object_set_new(trimmed, "metadata", metadata);
    json_object_set_new(trimmed, "spec", kept_spec);
    json_object_set_new(
        trimmed, "status",
        pick(json_object_get(object, "status"), is_ours ? our_status : foreign_status));
    return trimmed;
}
