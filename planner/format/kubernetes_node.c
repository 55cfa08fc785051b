#include "planner/format/kubernetes_node.h"

#include "planner/base/vendor.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- quantities ---- */

__extension__ typedef unsigned __int128 uint128; /* the one integer type wide enough */

static const struct {
    const char *suffix;
    int decimal, binary; /* 10^decimal * 2^binary */
} quantity_suffixes[] = {
    { "", 0, 0 },    { "n", -9, 0 },  { "u", -6, 0 },  { "m", -3, 0 },
    { "k", 3, 0 },   { "M", 6, 0 },   { "G", 9, 0 },   { "T", 12, 0 },
    { "P", 15, 0 },  { "E", 18, 0 },  { "Ki", 0, 10 }, { "Mi", 0, 20 },
    { "Gi", 0, 30 }, { "Ti", 0, 40 }, { "Pi", 0, 50 }, { "Ei", 0, 60 },
};

/* value * 2^binary * 10^decimal, rounded up, at most INT64_MAX. `value` < 10^19. */
static int64_t scale(uint128 value, int decimal, int binary)
{
    const uint128 most = (uint128)1 << 124;
    value <<= binary; /* below 2^64 * 2^60 */
    for (; decimal > 0 && value < most; decimal--)
        value *= 10;
    bool rest = false;
    for (; decimal < 0 && value; decimal++) {
        rest = rest || value % 10;
        value /= 10;
    }
    value += rest;
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static int read_suffix(const char *text, int *decimal, int *binary)
{
    if ((*text == 'e' || *text == 'E') && text[1] && strchr("+-0123456789", text[1])) {
        char *end;
        long exponent = strtol(text + 1, &end, 10);
        if (end == text + 1 || *end)
            return -1;
        *decimal = exponent > 100 ? 100 : exponent < -100 ? -100 : (int)exponent;
        *binary = 0;
        return 0;
    }
    for (size_t i = 0; i < sizeof quantity_suffixes / sizeof *quantity_suffixes; i++)
        if (!strcmp(text, quantity_suffixes[i].suffix)) {
            *decimal = quantity_suffixes[i].decimal;
            *binary = quantity_suffixes[i].binary;
            return 0;
        }
    return -1;
}

int64_t het_quantity_parse(const char *text, int milli)
{
    if (*text == '+')
        text++;
    uint64_t mantissa = 0;
    int decimal = 0, digits = 0;
    bool in_fraction = false, rest = false;
    for (; (*text >= '0' && *text <= '9') || (*text == '.' && !in_fraction); text++) {
        if (*text == '.') {
            in_fraction = true;
            continue;
        }
        digits++;
        if (mantissa < (uint64_t)1000000000000000000) {
            mantissa = mantissa * 10 + (uint64_t)(*text - '0');
            decimal -= in_fraction;
        } else { /* further digits only round up */
            rest = rest || *text != '0';
            decimal += !in_fraction;
        }
    }
    int suffix_decimal, binary;
    if (!digits || read_suffix(text, &suffix_decimal, &binary) < 0)
        return -1;
    return scale((uint128)mantissa + rest, decimal + suffix_decimal + (milli ? 3 : 0),
                 binary);
}

/* ---- nodes ---- */

static const json_t *get(const json_t *object, const char *key)
{
    return json_object_get(object, key);
}

static const char *get_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static int64_t quantity_of(const json_t *value, int milli)
{
    if (json_is_string(value)) {
        int64_t parsed = het_quantity_parse(json_string_value(value), milli);
        return parsed < 0 ? 0 : parsed;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return 0;
    return scale((uint128)json_integer_value(value), milli ? 3 : 0, 0);
}

const char *het_node_instance_type(const json_t *labels)
{
    static const char *const names[] = { "node.kubernetes.io/instance-type",
                                         "beta.kubernetes.io/instance-type" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *label = get_text(labels, names[i]);
        if (label && *label)
            return label;
    }
    return NULL;
}

const char *het_node_vendor(const struct het_hardware *hardware, const char *type,
                            const char *resource)
{
    const struct het_gpu_type *part = het_hardware_find(hardware, type);
    const char *vendor = het_vendor_of_resource(resource);
    const char *by_name = het_vendor_of_type(part ? part->name : type);
    return vendor && !(part && part->vendor) && strcmp(vendor, by_name) ? vendor : NULL;
}

/* Labels that name the GPU, in order of trust. `memory_label`: memory of one GPU, where
 * the name leaves it open. `alias_only`: says nothing unless the table knows it. */
enum { STATED_TYPE };
static const struct type_label {
    const char *label, *memory_label;
    bool alias_only;
} type_labels[] = {
    [STATED_TYPE] = { "heterotrain.io/gpu-type", "nvidia.com/gpu.memory", false },
    { "nvidia.com/gpu.product", "nvidia.com/gpu.memory", false },
    { "amd.com/gpu.product-name", "amd.com/gpu.vram", false },
    { "karpenter.k8s.aws/instance-gpu-name", "karpenter.k8s.aws/instance-gpu-memory",
      false },
    { "cloud.google.com/gke-accelerator", NULL, false },
    { "k8s.amazonaws.com/accelerator", NULL, false },
    { "node.kubernetes.io/instance-type", NULL, true },
    { "beta.kubernetes.io/instance-type", NULL, true },
};

/* Endings that the device plugin gives to a product that it shares or cuts up. */
static size_t whole_product_length(const char *product)
{
    size_t length = strlen(product);
    const char *slice = strstr(product, "-MIG-");
    if (slice)
        return (size_t)(slice - product);
    static const char shared[] = "-SHARED";
    if (length >= sizeof shared &&
        !strcmp(product + length - (sizeof shared - 1), shared))
        return length - (sizeof shared - 1);
    return length;
}

/* MiB in a label ("64G": GiB, as AMD's labeller writes them), as bytes; 0 if it is
 * missing or absurd. */
static uint64_t label_memory(const json_t *labels, const char *label)
{
    const char *text = label ? get_text(labels, label) : NULL;
    int64_t mib = text ? het_quantity_parse(text, 0) : -1;
    if (mib > 0 && text[strspn(text, "0123456789")] == 'G')
        mib = mib / 1000000000 * 1024;
    return mib >= 256 && mib <= (int64_t)16 << 20 ? (uint64_t)mib << 20 : 0;
}

/* What stands in plans, messages and labels of pods: nothing that a label cannot hold. */
static bool is_type_name(const char *type)
{
    size_t length = strspn(type, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789-_. ");
    return length && !type[length];
}

static void read_type(struct het_arena *arena, const json_t *labels,
                      const struct het_hardware *hardware, struct het_node_facts *facts,
                      bool *ret_is_stated)
{
    *ret_is_stated = false;
    for (size_t i = 0; i < sizeof type_labels / sizeof *type_labels; i++) {
        const char *label = get_text(labels, type_labels[i].label);
        if (!label || !*label)
            continue;
        char *product = het_arena_strdup(arena, label);
        product[whole_product_length(product)] = '\0';
        uint64_t memory = label_memory(labels, type_labels[i].memory_label);
        const struct het_gpu_type *type =
            het_hardware_find_sized(hardware, product, memory);
        if (!type && type_labels[i].alias_only)
            continue;
        facts->label = label;
        *ret_is_stated = i == STATED_TYPE;
        facts->type = type ? type->name : het_hardware_plain_name(arena, product);
        facts->memory_bytes = memory ? memory : type ? type->memory_bytes : 0;
        if (!is_type_name(facts->type))
            facts->type = NULL;
        return;
    }
}

static bool has_condition(const json_t *node, const char *type, const char *status)
{
    const json_t *conditions = get(get(node, "status"), "conditions");
    for (size_t i = 0; i < json_array_size(conditions); i++) {
        const json_t *condition = json_array_get(conditions, i);
        const char *its_type = get_text(condition, "type");
        const char *its_status = get_text(condition, "status");
        if (its_type && its_status && !strcmp(its_type, type) &&
            !strcmp(its_status, status))
            return true;
    }
    return false;
}

const struct het_node_condition het_node_unhealthy[HET_NODE_UNHEALTHY_COUNT] = {
    { "XidCriticalError", "True" },
    { "AcceleratedHardwareReady", "False" },
    { "GpuMemWatch", "True" },
};

const char *het_node_state(const json_t *node, const struct het_node_condition *unhealthy,
                           size_t unhealthy_count)
{
    const json_t *labels = get(get(node, "metadata"), "labels");
    const char *partition = get_text(labels, "nvidia.com/mig.config.state");
    const char *workload = get_text(labels, "nvidia.com/gpu.workload.config");
    if (!has_condition(node, "Ready", "True"))
        return het_unused_name(HET_UNUSED_NOT_READY);
    if (json_is_true(get(get(node, "spec"), "unschedulable")))
        return het_unused_name(HET_UNUSED_UNSCHEDULABLE);
    if (workload && !strncmp(workload, "vm-", 3))
        return het_unused_name(HET_UNUSED_VIRTUAL_MACHINE);
    if (partition && strcmp(partition, "success"))
        return het_unused_name(HET_UNUSED_REPARTITIONING);
    for (size_t i = 0; i < unhealthy_count; i++)
        if (has_condition(node, unhealthy[i].type, unhealthy[i].status))
            return het_unused_name(HET_UNUSED_GPU_UNHEALTHY);
    return NULL;
}

/* The label `stem`.`field`; NULL if the node lacks it. */
static const char *label_of(struct het_arena *arena, const json_t *labels,
                            const char *stem, const char *field)
{
    return get_text(labels, het_arena_printf(arena, "%s.%s", stem, field));
}

/* Pods that share a GPU: 1 if it is whole. */
static int64_t replicas_of(struct het_arena *arena, const json_t *labels,
                           const char *stem)
{
    const char *text = label_of(arena, labels, stem, "replicas");
    int64_t replicas = text ? het_quantity_parse(text, 0) : 1;
    return replicas > 1 ? replicas : 1;
}

#define MIG_RESOURCE "nvidia.com/mig-"

/* The profile of a MIG slice ("1g.5gb", perhaps with more behind it), by the resource or
 * by the product label; NULL if it is none. */
static const char *find_slice(const char *resource, const char *product)
{
    if (!strncmp(resource, MIG_RESOURCE, sizeof MIG_RESOURCE - 1))
        return resource + sizeof MIG_RESOURCE - 1;
    const char *slice = product ? strstr(product, "-MIG-") : NULL;
    return slice ? slice + strlen("-MIG-") : NULL;
}

/* Whether the labels count fewer GPUs than the plugin offers. */
static bool counts_fewer(struct het_arena *arena, const json_t *labels, const char *stem,
                         int64_t allocatable)
{
    const char *text = label_of(arena, labels, stem, "count");
    int64_t count = text ? het_quantity_parse(text, 0) : -1;
    return count > 0 && count < allocatable;
}

void het_node_read_gpus(struct het_arena *arena, const json_t *node, const char *resource,
                        const struct het_hardware *hardware, struct het_node_gpus *ret)
{
    const json_t *labels = get(get(node, "metadata"), "labels");
    struct het_node_facts facts = { 0 };
    bool is_stated;
    read_type(arena, labels, hardware, &facts, &is_stated);
    struct het_node_gpus gpus = {
        .is_stated = is_stated,
        .type = facts.type,
        .label = facts.label,
        .memory_bytes = facts.memory_bytes,
        .allocatable =
            quantity_of(get(get(get(node, "status"), "allocatable"), resource), 0),
    };
    if (gpus.allocatable > HET_NODE_MAX_GPUS)
        gpus.allocatable = 0;
    /* The plugin's name for what it shares under another name. */
    static const char ending[] = ".shared";
    size_t length = strlen(resource), tail = sizeof ending - 1;
    bool is_renamed = length > tail && !strcmp(resource + length - tail, ending);
    char *stem = het_arena_strdup(arena, resource);
    if (is_renamed)
        stem[length - tail] = '\0';

    const char *product = label_of(arena, labels, stem, "product");
    const char *slice = find_slice(stem, product);
    if (slice && gpus.type) {
        gpus.type = het_arena_printf(arena, "%s-MIG-%.*s", gpus.type,
                                     (int)whole_product_length(slice), slice);
        /* Never that of the whole card: better unknown. */
        gpus.memory_bytes =
            label_memory(labels, het_arena_printf(arena, "%s.memory", stem));
    }
    const char *strategy = label_of(arena, labels, stem, "sharing-strategy");
    int64_t replicas = replicas_of(arena, labels, stem);
    gpus.is_shared = slice || is_renamed || replicas > 1 ||
                     (strategy && *strategy && strcasecmp(strategy, "none")) ||
                     (product && product[whole_product_length(product)]);
    gpus.memory_bytes /= (uint64_t)replicas;
    gpus.is_mixed = !gpus.is_shared && !gpus.is_stated &&
                    counts_fewer(arena, labels, stem, gpus.allocatable);
    *ret = gpus;
}

/* As the API server checks it: a DNS subdomain. */
static bool is_node_name(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.");
    return length && length <= HET_MAX_NAME_BYTES && !name[length];
}

void het_node_read(struct het_arena *arena, const json_t *node, const char *resource,
                   const struct het_hardware *hardware, struct het_node_facts *ret)
{
    struct het_node_gpus gpus;
    het_node_read_gpus(arena, node, resource, hardware, &gpus);
    const char *state =
        het_node_state(node, het_node_unhealthy, HET_NODE_UNHEALTHY_COUNT);
    const char *name = get_text(get(node, "metadata"), "name");
    *ret = (struct het_node_facts){
        .name = name && is_node_name(name) ? name : NULL,
        .type = gpus.type,
        .label = gpus.label,
        .memory_bytes = gpus.memory_bytes,
        .allocatable = gpus.allocatable,
        .unusable = state               ? state
                    : gpus.is_shared    ? het_unused_name(HET_UNUSED_SHARED_GPU)
                    : !gpus.allocatable ? het_unused_name(HET_UNUSED_NO_GPU)
                    : !gpus.type        ? het_unused_name(HET_UNUSED_NO_GPU_LABEL)
                    : gpus.is_mixed     ? het_unused_name(HET_UNUSED_MIXED_GPUS)
                                        : NULL,
        .taints = get(get(node, "spec"), "taints"),
    };
}

/* ---- pods ---- */

static int64_t add_saturated(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* What `resources` asks for, or 0; a limit alone is a request too. */
static int64_t resources_request(const json_t *resources, const char *resource, int milli)
{
    const json_t *request = get(get(resources, "requests"), resource);
    if (!request)
        request = get(get(resources, "limits"), resource);
    return quantity_of(request, milli);
}

static bool is_sidecar(const json_t *container)
{
    const char *policy = get_text(container, "restartPolicy");
    return policy && !strcmp(policy, "Always");
}

struct het_pod_request het_pod_request_parts(const json_t *pod, const char *resource,
                                             int milli)
{
    const json_t *spec = get(pod, "spec");
    const json_t *whole = get(spec, "resources");
    struct het_pod_request request = {
        .overhead = quantity_of(get(get(spec, "overhead"), resource), milli),
        .is_whole = get(get(whole, "requests"), resource) ||
                    get(get(whole, "limits"), resource),
    };
    if (request.is_whole) {
        request.running = resources_request(whole, resource, milli);
        return request;
    }
    int64_t sidecars = 0;
    const json_t *containers = get(spec, "containers");
    for (size_t i = 0; i < json_array_size(containers); i++)
        request.running = add_saturated(
            request.running,
            resources_request(get(json_array_get(containers, i), "resources"), resource,
                              milli));
    const json_t *init = get(spec, "initContainers");
    for (size_t i = 0; i < json_array_size(init); i++) {
        const json_t *container = json_array_get(init, i);
        int64_t own = resources_request(get(container, "resources"), resource, milli);
        int64_t peak = add_saturated(sidecars, own);
        request.starting = peak > request.starting ? peak : request.starting;
        if (is_sidecar(container))
            sidecars = peak;
    }
    request.running = add_saturated(request.running, sidecars);
    return request;
}

int64_t het_pod_request(const json_t *pod, const char *resource, int milli)
{
    struct het_pod_request request = het_pod_request_parts(pod, resource, milli);
    int64_t peak = request.running > request.starting ? request.running
                                                      : request.starting;
    return add_saturated(peak, request.overhead);
}

static void add_names(json_t *names, const json_t *amounts)
{
    const char *name;
    json_t *amount;
    json_object_foreach ((json_t *)(uintptr_t)amounts, name, amount)
        json_object_set_new(names, name, json_true());
}

static void add_resource_names(json_t *names, const json_t *resources)
{
    add_names(names, get(resources, "requests"));
    add_names(names, get(resources, "limits"));
}

void het_pod_resources(const json_t *pod, json_t *names)
{
    const json_t *spec = get(pod, "spec");
    static const char *const lists[] = { "containers", "initContainers" };
    for (size_t k = 0; k < 2; k++) {
        const json_t *containers = get(spec, lists[k]);
        for (size_t i = 0; i < json_array_size(containers); i++)
            add_resource_names(names, get(json_array_get(containers, i), "resources"));
    }
    add_resource_names(names, get(spec, "resources"));
    add_names(names, get(spec, "overhead"));
}

int het_pod_holds(const json_t *pod)
{
    const char *node = get_text(get(pod, "spec"), "nodeName");
    const char *phase = get_text(get(pod, "status"), "phase");
    return node && *node &&
           !(phase && (!strcmp(phase, "Succeeded") || !strcmp(phase, "Failed")));
}

/* ---- lists ---- */

static const char *const gpu_resources[] = { "nvidia.com/gpu", "amd.com/gpu" };
#define GPU_RESOURCES (sizeof gpu_resources / sizeof *gpu_resources)

struct listed_node {
    struct het_node_facts facts;
    const char *resource;
    int64_t used;      /* by pods */
    const char *taint; /* that keeps pods away; NULL: none does */
    const json_t *node;
};

static bool is_gpu_taint(const json_t *taint)
{
    const char *key = get_text(taint, "key");
    for (size_t i = 0; key && i < GPU_RESOURCES; i++)
        if (!strcmp(key, gpu_resources[i]))
            return true;
    return false;
}

/* The key of the first taint that keeps pods away; NULL if none does. */
static const char *find_taint(const json_t *taints)
{
    for (size_t i = 0; i < json_array_size(taints); i++) {
        const json_t *taint = json_array_get(taints, i);
        const char *effect = get_text(taint, "effect");
        bool repels = effect &&
                      (!strcmp(effect, "NoSchedule") || !strcmp(effect, "NoExecute"));
        if (repels && !is_gpu_taint(taint))
            return get_text(taint, "key") ? get_text(taint, "key") : "";
    }
    return NULL;
}

/* The items of a list object, or the object itself as the only one. */
static size_t item_count(const json_t *list)
{
    const json_t *items = get(list, "items");
    return items ? json_array_size(items) : 1;
}

static const json_t *item_at(const json_t *list, size_t index)
{
    const json_t *items = get(list, "items");
    return items ? json_array_get(items, index) : list;
}

/* Reads nodes that have a GPU resource; sorted by name. Returns how many. */
static int compare_listed(const void *a, const void *b)
{
    const struct listed_node *left = a, *right = b;
    return strcmp(left->facts.name, right->facts.name);
}

static size_t read_nodes(struct het_arena *arena, const json_t *nodes,
                         const struct het_hardware *hardware, struct listed_node *listed)
{
    size_t count = 0;
    for (size_t i = 0; i < item_count(nodes); i++) {
        const json_t *node = item_at(nodes, i);
        struct listed_node *next = &listed[count];
        *next = (struct listed_node){ .node = node };
        for (size_t r = 0; r < GPU_RESOURCES && !next->facts.allocatable; r++) {
            next->resource = gpu_resources[r];
            het_node_read(arena, node, next->resource, hardware, &next->facts);
        }
        if (!next->facts.name || !next->facts.allocatable)
            continue;
        next->taint = find_taint(next->facts.taints);
        if (!next->facts.unusable && next->taint)
            next->facts.unusable = het_unused_name(HET_UNUSED_TAINTED);
        count++;
    }
    qsort(listed, count, sizeof *listed, compare_listed);
    return count;
}

static void subtract_pods(const json_t *pods, struct listed_node *listed, size_t count)
{
    for (size_t i = 0; i < item_count(pods); i++) {
        const json_t *pod = item_at(pods, i);
        if (!het_pod_holds(pod))
            continue;
        const struct listed_node key = { .facts = { .name = get_text(get(pod, "spec"),
                                                                     "nodeName") } };
        struct listed_node *node =
            bsearch(&key, listed, count, sizeof *listed, compare_listed);
        if (node)
            node->used =
                add_saturated(node->used, het_pod_request(pod, node->resource, 0));
    }
}

static int fail_no_gpus(struct het_arena *arena, size_t total,
                        const struct listed_node *listed, size_t count,
                        struct het_error *err)
{
    const char *reasons = "";
    for (size_t i = 0; i < count && i < 8; i++)
        reasons = het_arena_printf(
            arena, "%s%s%s: %s", reasons, i ? ", " : "", listed[i].facts.name,
            listed[i].facts.unusable ? listed[i].facts.unusable : "all GPUs in use");
    if (!count)
        return het_fail(err, HET_NO_PLAN,
                        "no node has GPUs: none of the %zu nodes has %s or %s in "
                        "status.allocatable",
                        total, gpu_resources[0], gpu_resources[1]);
    return het_fail(err, HET_NO_PLAN, "no free GPUs on a usable node: %s%s", reasons,
                    count > 8 ? ", ..." : "");
}

/* The node's labels that are levels; NULL if it has none. */
static json_t *level_labels(const json_t *node, const struct het_hardware *hardware)
{
    const json_t *labels = get(get(node, "metadata"), "labels");
    json_t *levels = NULL;
    for (size_t i = 0; i < hardware->level_count; i++) {
        const char *name = get_text(labels, hardware->levels[i].label);
        if (!name || !*name)
            continue;
        levels = levels ? levels : json_object();
        json_object_set_new(levels, hardware->levels[i].label, het_json_text(name));
    }
    return levels;
}

/* The GPUs of a node that nothing can be planned with. */
static void leave_out(struct het_arena *arena, const struct listed_node *node,
                      struct het_unused_list *left_out)
{
    const struct het_node_facts *facts = &node->facts;
    int64_t used = node->used < facts->allocatable ? node->used : facts->allocatable;
    const char *type = facts->type ? facts->type : "", *detail = "";
    enum het_unused_reason reason = HET_UNUSED_IN_USE;
    if (facts->unusable) {
        used = facts->allocatable;
        het_unused_parse(arena, facts->unusable, &reason, &detail);
    }
    if (reason == HET_UNUSED_TAINTED)
        detail = node->taint;
    if (reason == HET_UNUSED_MIXED_GPUS)
        type = ""; /* one of several */
    het_unused_add(arena, left_out, reason, type, detail, facts->name, (uint32_t)used);
}

bool het_node_is_list(const json_t *json)
{
    const char *kind = get_text(json, "kind");
    return get(json, "items") || (kind && !strcmp(kind, "Node"));
}

#define BYTES_PER_GIB 0x1p30

int het_node_list_cluster(struct het_arena *arena, const json_t *nodes,
                          const json_t *pods, const struct het_hardware *hardware,
                          json_t **ret, struct het_unused_list *left_out,
                          struct het_error *err)
{
    const json_t *items = get(nodes, "items");
    if (!json_is_object(nodes) || (items && !json_is_array(items)))
        return het_fail(err, HET_BAD_INPUT, "items: must be a list of nodes");
    size_t total = item_count(nodes);
    struct listed_node *listed = HET_ARENA_ARRAY(arena, struct listed_node, total + 1);
    size_t count = read_nodes(arena, nodes, hardware, listed);
    if (pods)
        subtract_pods(pods, listed, count);

    json_t *entries = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct het_node_facts *facts = &listed[i].facts;
        int64_t free_gpus = facts->allocatable - listed[i].used;
        if (left_out)
            leave_out(arena, &listed[i], left_out);
        if (facts->unusable || free_gpus < 1)
            continue;
        json_t *entry = json_pack("{s:s, s:s, s:I}", "name", facts->name, "type",
                                  facts->type, "gpus", (json_int_t)free_gpus);
        json_t *levels = level_labels(listed[i].node, hardware);
        if (levels)
            json_object_set_new(entry, "levels", levels);
        const char *instance =
            het_node_instance_type(get(get(listed[i].node, "metadata"), "labels"));
        if (instance)
            json_object_set_new(entry, "instance_type", json_string(instance));
        const char *vendor = het_node_vendor(hardware, facts->type, listed[i].resource);
        if (vendor)
            json_object_set_new(entry, "vendor", json_string(vendor));
        if (facts->memory_bytes)
            json_object_set_new(entry, "memory_gb",
                                json_real((double)facts->memory_bytes / BYTES_PER_GIB));
        json_array_append_new(entries, entry);
    }
    if (!json_array_size(entries)) {
        json_decref(entries);
        return fail_no_gpus(arena, total, listed, count, err);
    }
    *ret = json_pack("{s:o}", "nodes", entries);
    return 0;
}
