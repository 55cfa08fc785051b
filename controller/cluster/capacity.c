#include "controller/cluster/capacity.h"

#include "controller/base/object.h"
#include "controller/base/quantity.h"
#include "controller/base/strmap.h"
#include "controller/cluster/capacity_table.h"
#include "controller/cluster/plan_object.h"
#include "controller/cluster/pod_need.h"
#include "controller/job/node_selector.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const known_resources[KNOWN_RESOURCES] = {
    [CPU] = "cpu",
    [MEMORY] = "memory",
    [STORAGE] = "ephemeral-storage",
    [PODS] = POD_NEED_PODS,
    [NVIDIA] = JOB_SPEC_GPU_RESOURCE,
    [AMD] = JOB_SPEC_AMD_RESOURCE,
};

/* ---- resources ---- */

/* Of what a node offers. NO_RESOURCE if there are too many. */
static uint32_t get_resource(struct capacity *capacity, const char *name)
{
    uint32_t resource = capacity_find_resource(capacity, name);
    if (resource != NO_RESOURCE || capacity->resource_count == CAPACITY_MAX_RESOURCES)
        return resource;
    for (resource = 0; capacity->resource_names[resource];)
        resource++;
    capacity->resource_names[resource] = xstrdup(name);
    strmap_set(&capacity->resources, name, &capacity->resource_names[resource]);
    capacity->resource_count++;
    capacity->names_version++;
    capacity->has_learned = true;
    return resource;
}

static void unname_in_shapes(const struct capacity *capacity, uint32_t resource);

/* Ends one use; a name without uses is freed. */
static void end_use(struct capacity *capacity, uint32_t resource)
{
    if (--capacity->resource_uses[resource] || resource < KNOWN_RESOURCES)
        return;
    unname_in_shapes(capacity, resource);
    strmap_remove(&capacity->resources, capacity->resource_names[resource]);
    free(capacity->resource_names[resource]);
    capacity->resource_names[resource] = NULL;
    capacity->resource_count--;
    capacity->names_version++;
}

static struct stock *get_stock(struct capacity *capacity, struct node *node,
                               uint32_t resource)
{
    struct stock *stock = capacity_find_stock(node, resource);
    if (stock)
        return stock;
    ARRAY_RESERVE(node->stocks, &node->stock_capacity, node->stock_count + 1);
    stock = &node->stocks[node->stock_count++];
    *stock = (struct stock){ .resource = resource,
                             .allocatable = capacity_unreported(resource) };
    capacity->resource_uses[resource]++;
    return stock;
}

/* Drops stocks that the node does not offer and no pod or plan holds. */
static void drop_stocks(struct capacity *capacity, struct node *node)
{
    for (size_t i = 0; i < node->stock_count;) {
        const struct stock *stock = &node->stocks[i];
        if (stock->is_offered || stock->foreign || stock->reserved) {
            i++;
            continue;
        }
        uint32_t resource = stock->resource;
        node->stocks[i] = node->stocks[--node->stock_count];
        end_use(capacity, resource);
    }
}

struct capacity *capacity_new(void)
{
    struct capacity *capacity = xcalloc(1, sizeof *capacity);
    capacity->hardware = het_hardware_builtin();
    capacity->settings = settings_default();
    capacity->resource_names =
        xcalloc(CAPACITY_MAX_RESOURCES, sizeof *capacity->resource_names);
    capacity->resource_uses =
        xcalloc(CAPACITY_MAX_RESOURCES, sizeof *capacity->resource_uses);
    for (size_t i = 0; i < KNOWN_RESOURCES; i++)
        get_resource(capacity, known_resources[i]);
    capacity->has_learned = false;
    return capacity;
}

static void free_plan(struct plan *plan)
{
    if (!plan)
        return;
    for (size_t i = 0; i < plan->share_count; i++)
        free(plan->shares[i].type);
    free(plan->shares);
    free(plan->job_name);
    free(plan);
}

static void free_pod(struct pod *pod)
{
    if (!pod)
        return;
    json_decref(pod->unknown);
    free(pod->job_name);
    free(pod);
}

static void free_share(struct share *share)
{
    struct node *node = share->node;
    size_t at = 0;
    while (node->shares[at] != share)
        at++;
    node->shares[at] = node->shares[--node->share_count];
    free(share->counted);
    free(share);
}

static void free_job(struct job *job)
{
    if (!job)
        return;
    for (size_t i = 0; i < job->share_count; i++)
        free_share(job->shares[i]);
    capacity_shape_fini(&job->shape);
    json_decref(job->object);
    free(job->shares);
    free(job->plans);
    free(job->key);
    free(job);
}

static void free_node(struct node *node)
{
    node_state_fini(&node->state);
    json_decref(node->object);
    free(node->stocks);
    free(node->shares);
    free(node->name);
    free(node);
}

void capacity_free(struct capacity *capacity)
{
    if (!capacity)
        return;
    for (size_t i = 0; i < capacity->pods.capacity; i++)
        free_pod(capacity->pods.slots[i].value);
    for (size_t i = 0; i < capacity->plans.capacity; i++)
        free_plan(capacity->plans.slots[i].value);
    for (size_t i = 0; i < capacity->jobs.capacity; i++)
        free_job(capacity->jobs.slots[i].value);
    for (size_t i = 0; i < capacity->node_count; i++)
        free_node(capacity->nodes[i]);
    free(capacity->nodes);
    for (size_t i = 0; i < CAPACITY_MAX_RESOURCES; i++)
        free(capacity->resource_names[i]);
    free(capacity->resource_names);
    free(capacity->resource_uses);
    strmap_fini(&capacity->pods);
    strmap_fini(&capacity->plans);
    strmap_fini(&capacity->jobs);
    strmap_fini(&capacity->resources);
    free(capacity);
}

const struct het_hardware *capacity_hardware(const struct capacity *capacity)
{
    return capacity->hardware;
}

/* ---- finding nodes, jobs, shares ---- */

static struct node *get_node(struct capacity *capacity, const char *name)
{
    bool found;
    size_t position = capacity_node_position(capacity, name, &found);
    if (found)
        return capacity->nodes[position];
    struct node *node = xcalloc(1, sizeof *node);
    node->name = xstrdup(name);
    node->serial = ++capacity->next_serial;
    ARRAY_RESERVE(capacity->nodes, &capacity->node_capacity, capacity->node_count + 1);
    memmove(capacity->nodes + position + 1, capacity->nodes + position,
            (capacity->node_count - position) * sizeof *capacity->nodes);
    capacity->nodes[position] = node;
    capacity->node_count++;
    return node;
}

/* A node that is not there, and that neither pods nor plans speak of. */
static void forget_node_if_unused(struct capacity *capacity, struct node *node)
{
    if (node->object || node->pod_count || node->plan_count || node->share_count)
        return;
    for (size_t i = 0; i < node->stock_count; i++)
        node->stocks[i].is_offered = false;
    drop_stocks(capacity, node);
    bool found;
    size_t position = capacity_node_position(capacity, node->name, &found);
    memmove(capacity->nodes + position, capacity->nodes + position + 1,
            (--capacity->node_count - position) * sizeof *capacity->nodes);
    free_node(node);
}

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
    if (job->object || job->pod_count || job->plan_count)
        return;
    strmap_remove(&capacity->jobs, job->key);
    free_job(job);
}

static struct share *get_share(struct job *job, struct node *node)
{
    struct share *share = capacity_find_share(job, node);
    if (share)
        return share;
    share = xcalloc(1, sizeof *share);
    share->job = job;
    share->node = node;
    ARRAY_RESERVE(node->shares, &node->share_capacity, node->share_count + 1);
    node->shares[node->share_count++] = share;
    ARRAY_RESERVE(job->shares, &job->share_capacity, job->share_count + 1);
    size_t at = job->share_count++;
    for (; at && strcmp(job->shares[at - 1]->node->name, node->name) > 0; at--)
        job->shares[at] = job->shares[at - 1];
    job->shares[at] = share;
    return share;
}

static bool is_empty(const struct share *share)
{
    return !share->pods && !share->planned_gpus && !share->counted_count;
}

static void drop_empty_shares(struct job *job)
{
    size_t kept = 0;
    for (size_t i = 0; i < job->share_count; i++) {
        if (is_empty(job->shares[i]))
            free_share(job->shares[i]);
        else
            job->shares[kept++] = job->shares[i];
    }
    job->share_count = kept;
}

/* ---- what fits ---- */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A digest that changes when some live job can put fewer or more GPUs on the node because
 * of another resource, now or after all other jobs. It ignores the GPUs themselves. */
static uint64_t fit_digest(const struct capacity *capacity, const struct node *node)
{
    int64_t most = 0;
    for (size_t i = 0; i < node->state.offer_count; i++)
        most = larger(most, node->state.offers[i].allocatable);
    uint64_t digest = 0;
    for (size_t i = 0; i < capacity->jobs.capacity; i++) {
        const struct job *job = capacity->jobs.slots[i].value;
        if (!job || !job->object)
            continue;
        const char *limit;
        const struct share *share = capacity_find_share(job, node);
        for (enum others others = ALL_OTHERS; others <= FOREIGN_PODS; others++) {
            int64_t fit = capacity_fit(node, share, others, &job->shape, most, &limit);
            digest = (digest ^ (uint64_t)fit) * 1099511628211u; /* FNV-1a */
        }
    }
    return digest;
}

/* Whether GPUs of some type are asked for by `resource` on the node. */
static bool is_gpu_resource(const struct capacity *capacity, const struct node *node,
                            uint32_t resource)
{
    const struct node_offer *offer =
        node_state_find_offer(&node->state, capacity->resource_names[resource]);
    return offer && offer->type;
}

/* ---- what a job holds ---- */

/* What a share takes of one resource. */
struct sum {
    uint32_t resource;
    int64_t older, newest, planned;
};

struct sums {
    struct sum *items;
    size_t count, capacity;
};

static struct sum *get_sum(struct sums *sums, uint32_t resource)
{
    for (size_t i = 0; i < sums->count; i++)
        if (sums->items[i].resource == resource)
            return &sums->items[i];
    ARRAY_RESERVE(sums->items, &sums->capacity, sums->count + 1);
    sums->items[sums->count] = (struct sum){ .resource = resource };
    return &sums->items[sums->count++];
}

static const struct plan *newest_plan(const struct job *job)
{
    const struct plan *newest = NULL;
    for (size_t i = 0; i < job->plan_count; i++)
        if (!newest || job->plans[i]->generation > newest->generation)
            newest = job->plans[i];
    return newest;
}

/* By which the job asks for GPUs of `type` on the node. */
static uint32_t gpu_resource(const struct capacity *capacity, const struct share *share,
                             const char *type)
{
    const struct shape *shape = &share->job->shape;
    for (size_t i = 0; i < shape->rule_count; i++)
        if (shape->rules[i].resource != NO_RESOURCE &&
            !strcmp(shape->rules[i].type, type))
            return shape->rules[i].resource;
    const struct node_offer *offer = node_state_default_offer(&share->node->state);
    return capacity_find_resource(capacity,
                                  offer ? offer->resource : JOB_SPEC_GPU_RESOURCE);
}

/* What a pod of the job with `gpus` GPUs takes of `resource` besides them; 0 if it takes
 * none, or more than the node has, as no such pod can come. */
static int64_t need_of(const struct share *share, uint32_t resource, int64_t gpus)
{
    const struct shape *shape = &share->job->shape;
    const struct stock *stock = capacity_find_stock(share->node, resource);
    int64_t most = stock ? stock->allocatable : capacity_unreported(resource);
    for (size_t i = 0; i < shape->need_count; i++)
        if (shape->needs[i].resource == resource) {
            int64_t need = pod_need_amount(&shape->needs[i].need, gpus);
            return need <= most ? need : 0;
        }
    return 0;
}

/* The place in a plan that the unbound `pod` is for; NULL: none, so nothing known to us
 * will bind it there. At most one pod has that name. */
static const struct plan_share *find_place(const struct pod *pod)
{
    const struct job *job = pod->job;
    for (size_t i = 0; i < job->plan_count; i++) {
        const struct plan *plan = job->plans[i];
        if (plan->generation == pod->generation &&
            (size_t)pod->index < plan->share_count &&
            plan->shares[pod->index].node == pod->node &&
            !strcmp(plan->job_name, pod->job_name))
            return &plan->shares[pod->index];
    }
    return NULL;
}

/* How much of one of the pod's requests counts. Any user who may create pods can pin one
 * to a node and request anything, so an unbound pod counts for at most what the plan and
 * the job's pods request. */
static int64_t counted_amount(const struct capacity *capacity, const struct share *share,
                              const struct pod *pod, const struct plan_share *place,
                              const struct amount *asked)
{
    if (!pod->job_name)
        return asked->amount;
    if (!place)
        return 0;
    bool is_gpu = asked->resource == gpu_resource(capacity, share, place->type) ||
                  is_gpu_resource(capacity, share->node, asked->resource);
    int64_t most = is_gpu ? place->gpus : need_of(share, asked->resource, place->gpus);
    return smaller(asked->amount, most);
}

static void sum_pods(const struct capacity *capacity, const struct share *share,
                     int64_t newest, struct sums *sums)
{
    for (const struct pod *pod = share->pods; pod; pod = pod->next) {
        const struct plan_share *place = pod->job_name ? find_place(pod) : NULL;
        for (uint32_t i = 0; i < pod->amount_count; i++) {
            struct sum *sum = get_sum(sums, pod->amounts[i].resource);
            *(pod->generation == newest ? &sum->newest : &sum->older) +=
                counted_amount(capacity, share, pod, place, &pod->amounts[i]);
        }
    }
}

/* `sums` is to be freed by the caller. */
static void sum_share(const struct capacity *capacity, const struct share *share,
                      struct sums *sums)
{
    const struct job *job = share->job;
    const struct plan *newest = newest_plan(job);
    sum_pods(capacity, share, newest ? newest->generation : -1, sums);
    if (!share->planned_gpus)
        return;
    uint32_t resource = gpu_resource(capacity, share, share->planned_type);
    struct sum *gpus = resource != NO_RESOURCE ? get_sum(sums, resource) : NULL;
    if (gpus)
        gpus->planned = share->planned_gpus;
    /* Existing pods take what they request, whatever the spec says by now. */
    if (gpus && gpus->newest >= gpus->planned)
        return;
    for (size_t i = 0; i < job->shape.need_count; i++) {
        resource = job->shape.needs[i].resource;
        if (resource != NO_RESOURCE)
            get_sum(sums, resource)->planned =
                need_of(share, resource, share->planned_gpus);
    }
}

/* The most of one thing that a pod can take: sums of thousands of them stay in int64. */
#define MAX_AMOUNT (INT64_MAX >> 14)

static int64_t bounded(int64_t amount)
{
    return amount < MAX_AMOUNT ? amount : MAX_AMOUNT;
}

static int compare_amounts(const void *a, const void *b)
{
    const struct amount *left = a, *right = b;
    return (left->resource > right->resource) - (left->resource < right->resource);
}

static bool same_amounts(const struct amount *a, size_t a_count, const struct amount *b,
                         size_t b_count)
{
    if (a_count != b_count)
        return false;
    for (size_t i = 0; i < a_count; i++)
        if (a[i].resource != b[i].resource || a[i].amount != b[i].amount)
            return false;
    return true;
}

/* Whether the two differ in GPUs of the node. */
static bool differs_in_gpus(const struct capacity *capacity, const struct share *share,
                            const struct amount *amounts, size_t count)
{
    const struct share after = { .counted = (struct amount *)(uintptr_t)amounts,
                                 .counted_count = count };
    const struct node *node = share->node;
    for (size_t i = 0; i < node->state.offer_count; i++) {
        if (!node->state.offers[i].type)
            continue;
        uint32_t resource =
            capacity_find_resource(capacity, node->state.offers[i].resource);
        if (capacity_counted(share, resource) != capacity_counted(&after, resource))
            return true;
    }
    return false;
}

static void add_reserved(struct capacity *capacity, struct node *node,
                         const struct amount *amounts, size_t count, int sign)
{
    for (size_t i = 0; i < count; i++)
        get_stock(capacity, node, amounts[i].resource)->reserved += sign *
                                                                    amounts[i].amount;
    node->version++;
}

/* Replaces what the job held of the node by what it holds now. True if that changes what
 * others can use. */
static bool recount_share(struct capacity *capacity, struct share *share)
{
    struct sums sums = { 0 };
    sum_share(capacity, share, &sums);
    struct amount *amounts = xcalloc(sums.count, sizeof *amounts);
    size_t count = 0;
    for (size_t i = 0; i < sums.count; i++) {
        const struct sum *sum = &sums.items[i];
        int64_t amount = sum->older + larger(sum->newest, bounded(sum->planned));
        if (amount)
            amounts[count++] = (struct amount){ sum->resource, amount };
    }
    free(sums.items);
    if (count)
        qsort(amounts, count, sizeof *amounts, compare_amounts);
    if (same_amounts(amounts, count, share->counted, share->counted_count)) {
        free(amounts);
        return false;
    }
    struct node *node = share->node;
    bool changed = differs_in_gpus(capacity, share, amounts, count);
    bool may_change = !changed && node->has_gpus;
    uint64_t before = may_change ? fit_digest(capacity, node) : 0;
    add_reserved(capacity, node, share->counted, share->counted_count, -1);
    add_reserved(capacity, node, amounts, count, 1);
    free(share->counted);
    share->counted = amounts;
    share->counted_count = count;
    drop_stocks(capacity, node);
    return changed || (may_change && fit_digest(capacity, node) != before);
}

/* The same for all nodes of the job, and its plan read again. */
static bool recount_job(struct capacity *capacity, struct job *job)
{
    const struct plan *newest = newest_plan(job);
    for (size_t i = 0; i < job->share_count; i++) {
        job->shares[i]->planned_gpus = 0;
        job->shares[i]->planned_type = NULL;
    }
    bool holds_plan = newest && job->object && !newest->is_retired;
    for (size_t i = 0; holds_plan && i < newest->share_count; i++) {
        struct share *share = get_share(job, newest->shares[i].node);
        share->planned_gpus += newest->shares[i].gpus;
        share->planned_type = newest->shares[i].type;
    }
    bool changed = false;
    for (size_t i = 0; i < job->share_count; i++)
        changed = recount_share(capacity, job->shares[i]) || changed;
    drop_empty_shares(job);
    return changed;
}

/* ---- jobs ---- */

/* Its number may be another's from now on. */
static void unname_in_shapes(const struct capacity *capacity, uint32_t resource)
{
    for (size_t k = 0; k < capacity->jobs.capacity; k++) {
        struct job *job = capacity->jobs.slots[k].value;
        for (size_t i = 0; job && i < job->shape.need_count; i++)
            if (job->shape.needs[i].resource == resource)
                job->shape.needs[i].resource = NO_RESOURCE;
        for (size_t i = 0; job && i < job->shape.rule_count; i++)
            if (job->shape.rules[i].resource == resource)
                job->shape.rules[i].resource = NO_RESOURCE;
    }
}

/* Of a spec that is refused nothing new is made. */
static void read_shape(struct capacity *capacity, struct job *job)
{
    struct job_spec spec;
    const char *reason;
    struct het_error err;
    job->rules = (struct job_rules){ 0 };
    if (job_spec_parse(job->object, &spec, &reason, &err) < 0)
        return;
    job->rules = job_spec_rules(&spec);
    job_spec_name_types(&spec, capacity->hardware);
    capacity_shape_fini(&job->shape);
    capacity_shape_init(&job->shape, capacity, &spec);
}

bool capacity_set_job(struct capacity *capacity, const char *job_key, json_t *object)
{
    struct job *job = object ? get_job(capacity, job_key)
                             : strmap_find(&capacity->jobs, job_key);
    if (!job)
        return false;
    bool is_same =
        json_equal(json_object_get(object, "spec"), json_object_get(job->object, "spec"));
    json_decref(job->object);
    job->object = json_incref(object);
    if (is_same)
        return false;
    if (object)
        read_shape(capacity, job);
    bool changed = recount_job(capacity, job);
    forget_job_if_empty(capacity, job);
    return changed;
}

/* ---- nodes ---- */

/* Equal, where absent and empty mean the same. */
static bool same_json(const json_t *a, const json_t *b)
{
    bool a_empty = !a || (!json_array_size(a) && !json_object_size(a));
    bool b_empty = !b || (!json_array_size(b) && !json_object_size(b));
    return a_empty || b_empty ? a_empty == b_empty : json_equal(a, b);
}

/* GPU Feature Discovery rewrites its label at each check. */
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

/* Reads status.allocatable into the stocks. True if one changed. */
static bool read_stocks(struct capacity *capacity, struct node *node,
                        const json_t *object)
{
    const json_t *allocatable = object_at(object, "status.allocatable");
    bool changed = false;
    const char *name;
    json_t *value;
    size_t further = 0;
    for (size_t i = 0; i < node->stock_count; i++)
        node->stocks[i].is_offered = false;
    json_object_foreach ((json_t *)(uintptr_t)allocatable, name, value) {
        uint32_t resource = capacity_find_resource(capacity, name);
        bool is_known = resource < KNOWN_RESOURCES;
        if (!is_known && further++ >= CAPACITY_MAX_NODE_RESOURCES)
            continue;
        resource = get_resource(capacity, name);
        if (resource != NO_RESOURCE)
            get_stock(capacity, node, resource)->is_offered = true;
    }
    for (size_t i = 0; i < node->stock_count; i++) {
        struct stock *stock = &node->stocks[i];
        name = capacity->resource_names[stock->resource];
        value = json_object_get(allocatable, name);
        int64_t amount = capacity_unreported(stock->resource);
        if (value) {
            amount = quantity_of(value, 0);
            amount = bounded(pod_need_is_milli(name) ? amount : amount / 1000);
        }
        changed = changed || stock->allocatable != amount;
        stock->allocatable = amount;
    }
    drop_stocks(capacity, node);
    return changed;
}

/* What is counted for jobs depends on what the node has and on its own GPU resource. */
static void recount_node(struct capacity *capacity, const struct node *node)
{
    for (size_t i = 0; i < node->share_count; i++)
        recount_share(capacity, node->shares[i]);
}

/* From now on, counts the pod's resources that were unknown and no longer are. */
static void learn_of_pod(struct capacity *capacity, struct pod *pod)
{
    const char *name;
    void *next;
    json_t *amount;
    uint32_t before = pod->amount_count;
    json_object_foreach_safe (pod->unknown, next, name, amount) {
        uint32_t resource = capacity_find_resource(capacity, name);
        if (resource == NO_RESOURCE)
            continue;
        struct amount *item = &pod->amounts[pod->amount_count++];
        *item = (struct amount){ resource, json_integer_value(amount) };
        capacity->resource_uses[resource]++;
        if (!pod->job)
            get_stock(capacity, pod->node, resource)->foreign += item->amount;
        json_object_del(pod->unknown, name);
    }
    pod->node->version++;
    if (pod->amount_count == before)
        return;
    qsort(pod->amounts, pod->amount_count, sizeof *pod->amounts, compare_amounts);
    if (pod->job)
        recount_share(capacity, capacity_find_share(pod->job, pod->node));
}

/* Names that nodes offer now and did not before: pods and jobs may know them. */
static void learn(struct capacity *capacity)
{
    if (!capacity->has_learned)
        return;
    capacity->has_learned = false;
    for (size_t i = 0; i < capacity->pods.capacity; i++) {
        struct pod *pod = capacity->pods.slots[i].value;
        if (pod && pod->unknown)
            learn_of_pod(capacity, pod);
    }
    for (size_t i = 0; i < capacity->jobs.capacity; i++) {
        struct job *job = capacity->jobs.slots[i].value;
        if (job && capacity_shape_resolve(capacity, &job->shape))
            recount_job(capacity, job);
    }
}

bool capacity_set_node(struct capacity *capacity, const char *name, json_t *object,
                       int64_t now_ms)
{
    struct node *node = get_node(capacity, name);
    struct node_state state;
    node_state_init(&state, object, capacity->hardware, capacity->settings);
    node_state_follow(&state, &node->state);
    bool state_changed =
        !node->object != !object || !node_state_same(&node->state, &state) ||
        !same_json(capacity_taints(node->object), capacity_taints(object));
    if (state_changed)
        node->state_changed_ms = now_ms;
    if (state.leaving && !node->state.leaving)
        node->leaving_since_ms = now_ms;
    const struct node_offer *before = node_state_default_offer(&node->state);
    const struct node_offer *after = node_state_default_offer(&state);
    bool other_resource =
        after &&
        strcmp(before ? before->resource : JOB_SPEC_GPU_RESOURCE, after->resource) != 0;
    node_state_fini(&node->state);
    node->state = state;
    node->has_gpus = node_state_has_gpus(&state);
    bool stocks_changed = read_stocks(capacity, node, object);
    bool changed = state_changed || (stocks_changed && node->has_gpus) ||
                   !same_labels(capacity_labels(node->object), capacity_labels(object));
    json_t *old = node->object;
    node->object = object ? json_incref(object) : NULL;
    json_decref(old);
    node->version++;
    if (other_resource || stocks_changed)
        recount_node(capacity, node);
    learn(capacity);
    forget_node_if_unused(capacity, node);
    return changed;
}

static void read_nodes_again(struct capacity *capacity, int64_t now_ms)
{
    for (size_t i = 0; i < capacity->node_count; i++) {
        struct node *node = capacity->nodes[i];
        if (node->object)
            capacity_set_node(capacity, node->name, node->object, now_ms);
    }
}

void capacity_set_hardware(struct capacity *capacity, const struct het_hardware *hardware,
                           int64_t now_ms)
{
    capacity->hardware = hardware;
    read_nodes_again(capacity, now_ms);
    for (size_t i = 0; i < capacity->jobs.capacity; i++) {
        struct job *job = capacity->jobs.slots[i].value;
        if (!job || !job->object)
            continue;
        read_shape(capacity, job);
        recount_job(capacity, job);
    }
}

void capacity_set_settings(struct capacity *capacity, const struct settings *settings,
                           int64_t now_ms)
{
    capacity->settings = settings;
    read_nodes_again(capacity, now_ms);
}

/* ---- pods ---- */

/* Key of the job that controls `object`, to be freed; NULL if none does. */
static char *owner_key(const json_t *object)
{
    const json_t *owner = job_spec_find_owner(object);
    return owner ? xasprintf("%s/%s", kube_namespace(object), object_text(owner, "uid"))
                 : NULL;
}

/* The node that our own affinity pins the pod to; NULL if it has no such pin. */
static const char *pinned_node(const json_t *pod)
{
    const json_t *terms = object_at(
        pod, "spec.affinity.nodeAffinity."
             "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
    const json_t *term = json_array_get(terms, 0);
    const json_t *fields = json_object_get(term, "matchFields");
    for (size_t i = 0; i < json_array_size(fields); i++) {
        const json_t *field = json_array_get(fields, i);
        if (!strcmp(object_text(field, "key"), "metadata.name"))
            return json_string_value(json_array_get(json_object_get(field, "values"), 0));
    }
    return NULL;
}

/* Where a pod is counted: bound, nominated, or pinned by us; NULL: nowhere yet. */
static const char *place_of(const json_t *pod, bool is_ours, bool *ret_is_pinned)
{
    *ret_is_pinned = false;
    const char *bound = object_text(pod, "spec.nodeName");
    if (*bound)
        return bound;
    const char *nominated = object_text(pod, "status.nominatedNodeName");
    if (*nominated)
        return nominated;
    /* A gated pod holds nothing: its plan does. */
    bool is_gated = json_array_size(object_at(pod, "spec.schedulingGates"));
    const char *pinned = is_ours && !is_gated ? pinned_node(pod) : NULL;
    *ret_is_pinned = true;
    return pinned && *pinned ? pinned : NULL;
}

/* The job whose pod it is by its name and by the labels, which the admission policy keeps
 * for us; NULL: of none. To be freed. */
static char *job_name_of(const json_t *pod)
{
    int64_t generation, index;
    if (!plan_object_place(pod, &generation, &index) ||
        plan_object_number(kube_label(pod, LABEL_PLAN_REVISION)) != generation ||
        plan_object_number(kube_label(pod, LABEL_POD_INDEX)) != index)
        return NULL;
    return xstrdup(object_text(job_spec_find_owner(pod), "name"));
}

static bool is_over(const json_t *pod)
{
    const char *phase = object_text(pod, "status.phase");
    return !strcmp(phase, "Succeeded") || !strcmp(phase, "Failed");
}

/* A pod on a node, without its job. */
static struct pod *read_pod(struct capacity *capacity, const json_t *object,
                            const char *place)
{
    json_auto_t *names = json_object();
    het_pod_resources(object, names);
    struct pod *pod =
        xcalloc(1, sizeof *pod + (json_object_size(names) + 1) * sizeof *pod->amounts);
    pod->node = get_node(capacity, place);
    plan_object_place(object, &pod->generation, &pod->index);
    pod->node->pod_count++;
    pod->amounts[pod->amount_count++] = (struct amount){ PODS, 1 };
    const char *name;
    json_t *unused;
    json_object_foreach (names, name, unused) {
        uint32_t resource = capacity_find_resource(capacity, name);
        int64_t amount = bounded(het_pod_request(object, name, pod_need_is_milli(name)));
        if (!amount || resource == PODS)
            continue;
        if (resource != NO_RESOURCE) {
            pod->amounts[pod->amount_count++] = (struct amount){ resource, amount };
            continue;
        }
        pod->unknown = pod->unknown ? pod->unknown : json_object();
        json_object_set_new(pod->unknown, name, json_integer(amount));
    }
    for (uint32_t i = 0; i < pod->amount_count; i++)
        capacity->resource_uses[pod->amounts[i].resource]++;
    qsort(pod->amounts, pod->amount_count, sizeof *pod->amounts, compare_amounts);
    return pod;
}

/* Stops counting the pod, which is in no list by now. */
static void drop_pod(struct capacity *capacity, struct pod *pod)
{
    struct node *node = pod->node;
    for (uint32_t i = 0; i < pod->amount_count; i++)
        end_use(capacity, pod->amounts[i].resource);
    free_pod(pod);
    node->pod_count--;
    forget_node_if_unused(capacity, node);
}

/* True if that changes what jobs can have. */
static bool add_foreign(struct capacity *capacity, const struct pod *pod, int sign)
{
    struct node *node = pod->node;
    bool changed = false;
    for (uint32_t i = 0; i < pod->amount_count && !changed; i++)
        changed = is_gpu_resource(capacity, node, pod->amounts[i].resource);
    bool may_change = !changed && node->has_gpus;
    uint64_t before = may_change ? fit_digest(capacity, node) : 0;
    for (uint32_t i = 0; i < pod->amount_count; i++)
        get_stock(capacity, node, pod->amounts[i].resource)->foreign +=
            sign * pod->amounts[i].amount;
    drop_stocks(capacity, node);
    node->version++;
    return changed || (may_change && fit_digest(capacity, node) != before);
}

static bool unlink_pod(struct capacity *capacity, struct pod *pod)
{
    struct job *job = pod->job;
    struct share *share = capacity_find_share(job, pod->node);
    struct pod **link = &share->pods;
    while (*link != pod)
        link = &(*link)->next;
    *link = pod->next;
    job->pod_count--;
    bool changed = recount_share(capacity, share);
    drop_empty_shares(job);
    forget_job_if_empty(capacity, job);
    return changed;
}

static bool remove_pod(struct capacity *capacity, const char *uid)
{
    struct pod *pod = strmap_remove(&capacity->pods, uid);
    if (!pod)
        return false;
    bool changed = pod->job ? unlink_pod(capacity, pod) : add_foreign(capacity, pod, -1);
    drop_pod(capacity, pod);
    return changed;
}

/* Takes `pod`. `key`: of its job, NULL: foreign. */
static bool add_pod(struct capacity *capacity, const char *uid, struct pod *pod,
                    const char *key)
{
    strmap_set(&capacity->pods, uid, pod);
    if (!key)
        return add_foreign(capacity, pod, 1);
    pod->job = get_job(capacity, key);
    struct share *share = get_share(pod->job, pod->node);
    pod->next = share->pods;
    share->pods = pod;
    pod->job->pod_count++;
    return recount_share(capacity, share);
}

/* Either may be NULL. */
static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static bool same_pod(const struct pod *held, const struct pod *pod, const char *key)
{
    return held->node == pod->node && held->generation == pod->generation &&
           held->index == pod->index && same_text(held->job_name, pod->job_name) &&
           !held->job == !key && (!key || !strcmp(held->job->key, key)) &&
           same_amounts(held->amounts, held->amount_count, pod->amounts,
                        pod->amount_count) &&
           same_json(held->unknown, pod->unknown);
}

bool capacity_set_pod(struct capacity *capacity, const char *uid, json_t *object)
{
    if (!object || is_over(object))
        return remove_pod(capacity, uid);
    auto_free char *key = owner_key(object);
    bool is_pinned;
    const char *place = place_of(object, key != NULL, &is_pinned);
    auto_free char *job_name = place && is_pinned ? job_name_of(object) : NULL;
    if (!place || (is_pinned && !job_name))
        return remove_pod(capacity, uid);
    struct pod *pod = read_pod(capacity, object, place);
    pod->job_name = TAKE(job_name);
    const struct pod *held = strmap_find(&capacity->pods, uid);
    if (held && same_pod(held, pod, key)) {
        drop_pod(capacity, pod);
        return false;
    }
    bool changed = remove_pod(capacity, uid);
    return add_pod(capacity, uid, pod, key) || changed;
}

/* ---- plans ---- */

static bool is_retired(const json_t *config_map)
{
    return *kube_annotation(config_map, ANNOTATION_RETIRED);
}

static struct plan *read_plan(struct capacity *capacity, const json_t *config_map,
                              struct job *job)
{
    struct plan *result = xcalloc(1, sizeof *result);
    result->job = job;
    result->generation = plan_object_generation(config_map);
    result->job_name = xstrdup(kube_label(config_map, LABEL_JOB_NAME));
    result->is_retired = is_retired(config_map);
    result->is_claim = *kube_annotation(config_map, ANNOTATION_PREEMPTS);
    capacity->claim_count += result->is_claim;
    struct het_arena *arena = het_arena_new();
    const struct het_plan *plan = plan_object_read(arena, config_map);
    if (plan) {
        struct het_rank_node *ranks;
        size_t count = het_plan_rank_nodes(arena, plan, &ranks);
        result->shares = xcalloc(count, sizeof *result->shares);
        for (size_t i = 0; i < count; i++)
            result->shares[result->share_count++] = (struct plan_share){
                .node = get_node(capacity, ranks[i].node_name),
                .type = xstrdup(ranks[i].type_name),
                .gpus = ranks[i].gpu_count,
            };
        for (size_t i = 0; i < count; i++)
            result->shares[i].node->plan_count++;
    }
    het_arena_free(arena);
    return result;
}

static bool remove_plan(struct capacity *capacity, const char *uid)
{
    struct plan *plan = strmap_remove(&capacity->plans, uid);
    if (!plan)
        return false;
    capacity->claim_count -= plan->is_claim;
    struct job *job = plan->job;
    for (size_t i = 0; i < job->plan_count; i++) {
        if (job->plans[i] == plan) {
            job->plans[i] = job->plans[--job->plan_count];
            break;
        }
    }
    bool changed = recount_job(capacity, job);
    forget_job_if_empty(capacity, job);
    for (size_t i = 0; i < plan->share_count; i++) {
        plan->shares[i].node->plan_count--;
        forget_node_if_unused(capacity, plan->shares[i].node);
    }
    free_plan(plan); /* shares spoke of its types until now */
    return changed;
}

bool capacity_set_plan(struct capacity *capacity, const char *uid, json_t *config_map)
{
    if (!config_map || !plan_object_generation(config_map))
        return remove_plan(capacity, uid);
    struct plan *held = strmap_find(&capacity->plans, uid);
    if (held) { /* its data is immutable; it may be retired */
        if (held->is_retired == is_retired(config_map))
            return false;
        held->is_retired = !held->is_retired;
        return recount_job(capacity, held->job);
    }
    auto_free char *key = owner_key(config_map);
    if (!key)
        return false;
    struct job *job = get_job(capacity, key);
    struct plan *plan = read_plan(capacity, config_map, job);
    strmap_set(&capacity->plans, uid, plan);
    ARRAY_RESERVE(job->plans, &job->plan_capacity, job->plan_count + 1);
    job->plans[job->plan_count++] = plan;
    return recount_job(capacity, job);
}

/* ---- the invariant ---- */

/* Whether pods, or plans, take more of `resource` than the node has. */
static bool is_overcommitted(const struct capacity *capacity, const struct node *node,
                             uint32_t resource)
{
    const struct stock *stock = capacity_find_stock(node, resource);
    int64_t held = 0, wanted = 0;
    for (size_t i = 0; i < node->share_count; i++) {
        struct sums sums = { 0 };
        sum_share(capacity, node->shares[i], &sums);
        const struct sum *sum = get_sum(&sums, resource);
        held += sum->older + sum->newest;
        /* A claim waits until its GPUs are free: its pods come then. */
        const struct plan *plan = newest_plan(node->shares[i]->job);
        wanted += plan && plan->is_claim ? sum->newest
                                         : larger(sum->newest, sum->planned);
        free(sums.items);
    }
    return stock && stock->foreign + larger(held, wanted) > stock->allocatable;
}

const char *capacity_find_overcommit(const struct capacity *capacity)
{
    for (size_t i = 0; i < capacity->node_count; i++) {
        const struct node *node = capacity->nodes[i];
        for (size_t k = 0; node->object && k < node->stock_count; k++) {
            const struct stock *stock = &node->stocks[k];
            if (stock->reserved && is_gpu_resource(capacity, node, stock->resource) &&
                is_overcommitted(capacity, node, stock->resource))
                return node->name;
        }
    }
    return NULL;
}
