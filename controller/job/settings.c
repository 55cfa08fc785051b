#include "controller/job/settings.h"

#include "controller/base/quantity.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Keys as their writers spell them: kubernetes-sigs/karpenter, kubernetes/autoscaler,
 * aws/aws-node-termination-handler, Azure/AKS, GKE's graceful node shutdown. */
static const char *const leaving_taints[] = {
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    "ToBeDeletedByClusterAutoscaler",
    "aws-node-termination-handler/*",
    "remediator.kubernetes.azure.com/unschedulable",
    "remediator.aks.microsoft.com/unschedulable",
    "cloud.google.com/impending-node-termination",
};
/* NVIDIA/NVSentinel; Karpenter's deadline of a node claim that is being ended. */
static const char *const leaving_annotations[] = {
    "quarantineHealthEvent",
    "karpenter.sh/nodeclaim-termination-timestamp",
};
static const struct settings_label spot_labels[] = {
    { "cloud.google.com/gke-spot", "true" },
    { "cloud.google.com/gke-preemptible", "true" },
    { "eks.amazonaws.com/capacityType", "SPOT" },
    { "karpenter.sh/capacity-type", "spot" },
    { "kubernetes.azure.com/scalesetpriority", "spot" },
};

static const struct settings default_settings = {
    .unhealthy_conditions = het_node_unhealthy,
    .unhealthy_condition_count = HET_NODE_UNHEALTHY_COUNT,
    .leaving_taints = leaving_taints,
    .leaving_taint_count = COUNT(leaving_taints),
    .leaving_annotations = leaving_annotations,
    .leaving_annotation_count = COUNT(leaving_annotations),
    .spot_labels = spot_labels,
    .spot_label_count = COUNT(spot_labels),
    .pod_security = POD_SECURITY_NAMESPACE,
    .limits = { .checkpoint_s = 900,
                .gang_s = 900,
                .termination_grace_s = 900,
                .node_failure_s = 900 },
    .profiler = { .deadline_s = 1800, .largest_microbatch = 16 },
    .planner = { .most_effort = EFFORT_HIGH, .most_timeout_ms = 600000 },
};

const struct settings *settings_default(void)
{
    return &default_settings;
}

/* ---- reading ---- */

/* Reads a list of texts; an absent list leaves `ret` alone. */
static int read_texts(struct het_arena *arena, const struct het_view *root,
                      const char *name, const char *const **ret, size_t *ret_count,
                      struct het_error *err)
{
    struct het_view list = het_view_get(root, name);
    size_t count;
    if (!list.json)
        return 0;
    if (het_view_array(&list, SETTINGS_MAX_LIST, &count, err) < 0)
        return -1;
    const char **texts = HET_ARENA_ARRAY(arena, const char *, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        if (het_view_need(&item, err) < 0 ||
            het_view_name(&item, arena, &texts[i], err) < 0)
            return -1;
    }
    *ret = texts;
    *ret_count = count;
    return 0;
}

/* Two texts of an object that has no other members. */
static int read_pair(struct het_arena *arena, const struct het_view *item,
                     const char *const names[3], const char **ret_first,
                     const char **ret_second, struct het_error *err)
{
    struct het_view first = het_view_get(item, names[0]);
    struct het_view second = het_view_get(item, names[1]);
    if (het_view_object(item, err) < 0 || het_view_members(item, names, err) < 0 ||
        het_view_need(&first, err) < 0 || het_view_need(&second, err) < 0 ||
        het_view_name(&first, arena, ret_first, err) < 0)
        return -1;
    return het_view_name(&second, arena, ret_second, err);
}

static int read_conditions(struct het_arena *arena, const struct het_view *root,
                           struct settings *settings, struct het_error *err)
{
    static const char *const names[] = { "type", "status", NULL };
    struct het_view list = het_view_get(root, "unhealthyNodeConditions");
    size_t count;
    if (!list.json)
        return 0;
    if (het_view_array(&list, SETTINGS_MAX_LIST, &count, err) < 0)
        return -1;
    struct het_node_condition *conditions =
        HET_ARENA_ARRAY(arena, struct het_node_condition, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        if (read_pair(arena, &item, names, &conditions[i].type, &conditions[i].status,
                      err) < 0)
            return -1;
    }
    settings->unhealthy_conditions = conditions;
    settings->unhealthy_condition_count = count;
    return 0;
}

static int read_labels(struct het_arena *arena, const struct het_view *root,
                       struct settings *settings, struct het_error *err)
{
    static const char *const names[] = { "key", "value", NULL };
    struct het_view list = het_view_get(root, "spotLabels");
    size_t count;
    if (!list.json)
        return 0;
    if (het_view_array(&list, SETTINGS_MAX_LIST, &count, err) < 0)
        return -1;
    struct settings_label *labels = HET_ARENA_ARRAY(arena, struct settings_label, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        if (read_pair(arena, &item, names, &labels[i].key, &labels[i].value, err) < 0)
            return -1;
    }
    settings->spot_labels = labels;
    settings->spot_label_count = count;
    return 0;
}

static int read_level(struct het_arena *arena, const struct het_view *field,
                      enum pod_security_level *ret, struct het_error *err)
{
    const char *name = NULL;
    if (het_view_name(field, arena, &name, err) < 0)
        return -1;
    if (name && !pod_security_parse(name, ret))
        return het_view_fail(field, err,
                             "must be namespace, restricted, baseline or privileged");
    return 0;
}

/* The members of an object that maps namespaces. */
static int count_namespaces(const struct het_view *object, size_t *ret_count,
                            struct het_error *err)
{
    if (het_view_object(object, err) < 0)
        return -1;
    *ret_count = json_object_size(object->json);
    if (*ret_count > SETTINGS_MAX_NAMESPACES)
        return het_view_fail(object, err, "names more than %zu namespaces",
                             SETTINGS_MAX_NAMESPACES);
    return 0;
}

static int read_pod_security(struct het_arena *arena, const struct het_view *root,
                             struct settings *settings, struct het_error *err)
{
    static const char *const names[] = { "default", "namespaces", NULL };
    struct het_view field = het_view_get(root, "podSecurity");
    struct het_view level = het_view_get(&field, "default");
    struct het_view namespaces = het_view_get(&field, "namespaces");
    size_t count = 0;
    if (het_view_object(&field, err) < 0 || het_view_members(&field, names, err) < 0 ||
        read_level(arena, &level, &settings->pod_security, err) < 0 ||
        count_namespaces(&namespaces, &count, err) < 0)
        return -1;
    struct settings_level *levels = HET_ARENA_ARRAY(arena, struct settings_level, count);
    const char *ns;
    json_t *value;
    size_t i = 0;
    json_object_foreach ((json_t *)(uintptr_t)namespaces.json, ns, value) {
        struct het_view entry = het_view_get(&namespaces, ns);
        levels[i].ns = het_arena_strdup(arena, ns);
        if (het_view_need(&entry, err) < 0 ||
            read_level(arena, &entry, &levels[i++].level, err) < 0)
            return -1;
    }
    settings->pod_security_levels = count ? levels : NULL;
    settings->pod_security_level_count = count;
    return 0;
}

static int read_accounts(struct het_arena *arena, const struct het_view *root,
                         struct settings *settings, struct het_error *err)
{
    struct het_view field = het_view_get(root, "serviceAccounts");
    size_t count = 0;
    if (count_namespaces(&field, &count, err) < 0)
        return -1;
    struct settings_accounts *accounts =
        HET_ARENA_ARRAY(arena, struct settings_accounts, count);
    const char *ns;
    json_t *value;
    size_t i = 0;
    json_object_foreach ((json_t *)(uintptr_t)field.json, ns, value) {
        accounts[i] = (struct settings_accounts){ .ns = het_arena_strdup(arena, ns) };
        if (read_texts(arena, &field, ns, &accounts[i].names, &accounts[i].name_count,
                       err) < 0)
            return -1;
        i++;
    }
    settings->service_accounts = count ? accounts : NULL;
    settings->service_account_count = count;
    return 0;
}

/* { NAME: quantity }. */
static int read_resources(struct het_arena *arena, const struct het_view *object,
                          struct settings_profiler *profiler, struct het_error *err)
{
    if (het_view_object(object, err) < 0)
        return -1;
    size_t count = json_object_size(object->json);
    if (count > SETTINGS_MAX_LIST)
        return het_view_fail(object, err, "has more than %zu members", SETTINGS_MAX_LIST);
    struct settings_label *resources =
        HET_ARENA_ARRAY(arena, struct settings_label, count);
    const char *name;
    json_t *value;
    size_t i = 0;
    json_object_foreach ((json_t *)(uintptr_t)object->json, name, value) {
        struct het_view quantity = het_view_get(object, name);
        if (het_view_need(&quantity, err) < 0)
            return -1;
        if (quantity_of(value, -1) < 0)
            return het_view_fail(&quantity, err, "must be a quantity, as text");
        resources[i].key = het_arena_strdup(arena, name);
        if (het_view_name(&quantity, arena, &resources[i++].value, err) < 0)
            return -1;
    }
    profiler->resources = count ? resources : NULL;
    profiler->resource_count = count;
    return 0;
}

static int read_profiler(struct het_arena *arena, const struct het_view *root,
                         struct settings_profiler *profiler, struct het_error *err)
{
    static const char *const names[] = { "image",           "command",        "resources",
                                         "deadlineSeconds", "microBatchSize", NULL };
    struct het_view field = het_view_get(root, "profiler");
    struct het_view image = het_view_get(&field, "image");
    struct het_view resources = het_view_get(&field, "resources");
    struct het_view deadline = het_view_get(&field, "deadlineSeconds");
    struct het_view microbatch = het_view_get(&field, "microBatchSize");
    uint32_t deadline_s = (uint32_t)profiler->deadline_s;
    uint32_t largest = (uint32_t)profiler->largest_microbatch;
    if (het_view_object(&field, err) < 0 || het_view_members(&field, names, err) < 0 ||
        het_view_name(&image, arena, &profiler->image, err) < 0 ||
        read_texts(arena, &field, "command", &profiler->command, &profiler->command_count,
                   err) < 0 ||
        read_resources(arena, &resources, profiler, err) < 0 ||
        het_view_u32(&deadline, 60, 86400, &deadline_s, err) < 0 ||
        het_view_u32(&microbatch, 1, 4096, &largest, err) < 0)
        return -1;
    profiler->deadline_s = deadline_s;
    profiler->largest_microbatch = largest;
    return 0;
}

static int read_confinement(struct het_arena *arena, const struct het_view *field,
                            enum planner_confinement *ret, struct het_error *err)
{
    static const struct {
        const char *name;
        enum planner_confinement value;
    } choices[] = { { "Required", PLANNER_CONFINED },
                    { "IfPossible", PLANNER_CONFINED_IF_POSSIBLE },
                    { "Off", PLANNER_UNCONFINED } };
    const char *name = NULL;
    if (het_view_name(field, arena, &name, err) < 0)
        return -1;
    for (size_t i = 0; name && i < COUNT(choices); i++) {
        if (!strcmp(name, choices[i].name)) {
            *ret = choices[i].value;
            return 0;
        }
    }
    return name ? het_view_fail(field, err, "must be Required, IfPossible or Off") : 0;
}

/* By the names that jobs have for it. */
static int read_effort(struct het_arena *arena, const struct het_view *field,
                       int64_t *ret, struct het_error *err)
{
    static const struct {
        const char *name;
        int64_t value;
    } efforts[] = { { "Low", EFFORT_LOW },
                    { "Normal", EFFORT_NORMAL },
                    { "High", EFFORT_HIGH } };
    const char *name = NULL;
    if (het_view_name(field, arena, &name, err) < 0)
        return -1;
    for (size_t i = 0; name && i < COUNT(efforts); i++) {
        if (!strcmp(name, efforts[i].name)) {
            *ret = efforts[i].value;
            return 0;
        }
    }
    return name ? het_view_fail(field, err, "must be Low, Normal or High") : 0;
}

/* Names of runtimes, as jobs and the command line have them. */
static int read_mixed_vendors(struct het_arena *arena, const struct het_view *planner,
                              struct settings_planner *ret, struct het_error *err)
{
    struct het_view list = het_view_get(planner, "mixedVendorRuntimes");
    if (read_texts(arena, planner, "mixedVendorRuntimes", &ret->mixed_vendor_runtimes,
                   &ret->mixed_vendor_runtime_count, err) < 0)
        return -1;
    for (size_t i = 0; list.json && i < ret->mixed_vendor_runtime_count; i++) {
        struct het_view item = het_view_at(&list, i);
        struct het_error unknown;
        if (!het_runtime_find(ret->mixed_vendor_runtimes[i], &unknown))
            return het_view_fail(&item, err, "%s", unknown.message);
    }
    return 0;
}

static int read_planner(struct het_arena *arena, const struct het_view *root,
                        struct settings_planner *planner, struct het_error *err)
{
    static const char *const names[] = { "confinement", "maxEffort", "maxTimeoutSeconds",
                                         "mixedVendorRuntimes", NULL };
    struct het_view field = het_view_get(root, "planner");
    struct het_view confinement = het_view_get(&field, "confinement");
    struct het_view effort = het_view_get(&field, "maxEffort");
    struct het_view timeout = het_view_get(&field, "maxTimeoutSeconds");
    uint32_t timeout_s = (uint32_t)(planner->most_timeout_ms / 1000);
    if (het_view_object(&field, err) < 0 || het_view_members(&field, names, err) < 0 ||
        read_effort(arena, &effort, &planner->most_effort, err) < 0 ||
        het_view_u32(&timeout, 1, 600, &timeout_s, err) < 0 ||
        read_mixed_vendors(arena, &field, planner, err) < 0)
        return -1;
    planner->most_timeout_ms = (int64_t)timeout_s * 1000;
    return read_confinement(arena, &confinement, &planner->confinement, err);
}

static int read_limits(const struct het_view *root, struct settings_limits *limits,
                       struct het_error *err)
{
    static const char *const names[] = { "checkpointTimeoutSeconds", "gangTimeoutSeconds",
                                         "terminationGracePeriodSeconds",
                                         "nodeFailureGraceSeconds", NULL };
    struct het_view field = het_view_get(root, "limits");
    struct het_view checkpoint = het_view_get(&field, names[0]);
    struct het_view gang = het_view_get(&field, names[1]);
    struct het_view grace = het_view_get(&field, names[2]);
    struct het_view node = het_view_get(&field, names[3]);
    uint32_t checkpoint_s = (uint32_t)limits->checkpoint_s;
    uint32_t gang_s = (uint32_t)limits->gang_s;
    uint32_t grace_s = (uint32_t)limits->termination_grace_s;
    uint32_t node_s = (uint32_t)limits->node_failure_s;
    if (het_view_object(&field, err) < 0 || het_view_members(&field, names, err) < 0 ||
        het_view_u32(&checkpoint, 1, 86400, &checkpoint_s, err) < 0 ||
        het_view_u32(&gang, 10, 86400, &gang_s, err) < 0 ||
        het_view_u32(&grace, 1, 86400, &grace_s, err) < 0 ||
        het_view_u32(&node, 0, 3600, &node_s, err) < 0)
        return -1;
    *limits = (struct settings_limits){ .checkpoint_s = checkpoint_s,
                                        .gang_s = gang_s,
                                        .termination_grace_s = grace_s,
                                        .node_failure_s = node_s };
    return 0;
}

static const char *const fields[] = {
    "unhealthyNodeConditions",
    "leavingTaints",
    "leavingAnnotations",
    "spotLabels",
    "topologyKeys",
    "allowLoopbackHooks",
    "podSecurity",
    "serviceAccounts",
    "runtimeClasses",
    "profiler",
    "planner",
    "limits",
    "allowedHosts",
    NULL,
};

int settings_parse(struct het_arena *arena, const json_t *json, struct settings *ret,
                   struct het_error *err)
{
    struct settings settings = default_settings;
    struct het_view root = het_view_root(json);
    struct het_view loopback = het_view_get(&root, "allowLoopbackHooks");
    if (!json_is_object(json))
        return het_fail(err, HET_BAD_INPUT, "must be an object");
    if (het_view_members(&root, fields, err) < 0 ||
        read_conditions(arena, &root, &settings, err) < 0 ||
        read_labels(arena, &root, &settings, err) < 0 ||
        read_texts(arena, &root, "leavingTaints", &settings.leaving_taints,
                   &settings.leaving_taint_count, err) < 0 ||
        read_texts(arena, &root, "leavingAnnotations", &settings.leaving_annotations,
                   &settings.leaving_annotation_count, err) < 0 ||
        read_texts(arena, &root, "topologyKeys", &settings.topology_keys,
                   &settings.topology_key_count, err) < 0 ||
        het_view_bool(&loopback, &settings.allow_loopback_hooks, err) < 0 ||
        read_texts(arena, &root, "runtimeClasses", &settings.runtime_classes,
                   &settings.runtime_class_count, err) < 0 ||
        read_pod_security(arena, &root, &settings, err) < 0 ||
        read_accounts(arena, &root, &settings, err) < 0 ||
        read_profiler(arena, &root, &settings.profiler, err) < 0 ||
        read_planner(arena, &root, &settings.planner, err) < 0 ||
        read_limits(&root, &settings.limits, err) < 0 ||
        read_texts(arena, &root, "allowedHosts", &settings.allowed_hosts,
                   &settings.allowed_host_count, err) < 0)
        return -1;
    *ret = settings;
    return 0;
}

bool settings_match_key(const char *const *patterns, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(patterns[i]);
        if (length && patterns[i][length - 1] == '*') {
            if (!strncmp(patterns[i], key, length - 1))
                return true;
        } else if (!strcmp(patterns[i], key)) {
            return true;
        }
    }
    return false;
}

enum pod_security_level settings_pod_security(const struct settings *settings,
                                              const char *ns)
{
    for (size_t i = 0; i < settings->pod_security_level_count; i++)
        if (!strcmp(settings->pod_security_levels[i].ns, ns))
            return settings->pod_security_levels[i].level;
    return settings->pod_security;
}

bool settings_allow_account(const struct settings *settings, const char *ns,
                            const char *name)
{
    for (size_t i = 0; i < settings->service_account_count; i++) {
        const struct settings_accounts *accounts = &settings->service_accounts[i];
        if (strcmp(accounts->ns, ns))
            continue;
        for (size_t k = 0; k < accounts->name_count; k++)
            if (!strcmp(accounts->names[k], name))
                return true;
    }
    return false;
}
