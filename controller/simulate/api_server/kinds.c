#include "controller/simulate/api_server/kinds.h"

#include "controller/base/quantity.h"
#include "controller/simulate/api_server/condition.h"
#include "controller/simulate/api_server/refusal.h"
#include "planner/modules.h"

#include <string.h>

/* ---- names, labels, annotations, owners ---- */

#define LOWER    "abcdefghijklmnopqrstuvwxyz"
#define DIGITS   "0123456789"
#define ALPHANUM LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS

enum {
    MAX_LABEL = 63,
    MAX_SUBDOMAIN = 253,
    MAX_ANNOTATIONS = 256 << 10, /* k8s.io/apimachinery TotalAnnotationSizeLimitB */
    MAX_CONFIG_MAP = 1 << 20,    /* k8s.io/api/core/v1 MaxSecretSize */
};

static bool is_among(char c, const char *characters)
{
    return c && strchr(characters, c);
}

/* One DNS label: `first` characters at both ends (but digits may end it), '-' inside. */
static bool is_label(const char *text, size_t length, const char *first)
{
    if (!length || length > MAX_LABEL || !is_among(text[0], first) ||
        !is_among(text[length - 1], LOWER DIGITS))
        return false;
    return strspn(text, LOWER DIGITS "-") >= length;
}

static bool is_subdomain(const char *text)
{
    if (!*text || strlen(text) > MAX_SUBDOMAIN)
        return false;
    for (;;) {
        size_t length = strcspn(text, ".");
        /* Kubernetes bounds the whole, not each label; 253 bounds both here. */
        if (!length || !is_among(text[0], LOWER DIGITS) ||
            !is_among(text[length - 1], LOWER DIGITS) ||
            strspn(text, LOWER DIGITS "-") < length)
            return false;
        if (!text[length])
            return true;
        text += length + 1;
    }
}

static bool is_name(const char *text, enum name_rule rule)
{
    switch (rule) {
    case NAME_SUBDOMAIN:
        return is_subdomain(text);
    case NAME_LABEL:
        return is_label(text, strlen(text), LOWER DIGITS);
    case NAME_LABEL_1035:
        return is_label(text, strlen(text), LOWER);
    }
    return false;
}

static const char *name_rule_text(enum name_rule rule)
{
    switch (rule) {
    case NAME_SUBDOMAIN:
        return "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
               "characters, '-' or '.', and must start and end with an alphanumeric "
               "character";
    case NAME_LABEL:
        return "a lowercase RFC 1123 label must consist of lower case alphanumeric "
               "characters or '-', and must start and end with an alphanumeric character";
    case NAME_LABEL_1035:
        return "a DNS-1035 label must consist of lower case alphanumeric characters or "
               "'-', start with an alphabetic character, and end with an alphanumeric "
               "character";
    }
    return "";
}

/* A label's value, or the part of its key after the slash. */
static bool is_qualified(const char *text, bool may_be_empty)
{
    size_t length = strlen(text);
    if (!length)
        return may_be_empty;
    return length <= MAX_LABEL && is_among(text[0], ALPHANUM) &&
           is_among(text[length - 1], ALPHANUM) && strspn(text, ALPHANUM "-_.") == length;
}

static bool is_label_key(const char *key)
{
    const char *slash = strchr(key, '/');
    if (!slash)
        return is_qualified(key, false);
    auto_free char *prefix = xstrdup(key);
    prefix[slash - key] = '\0';
    return is_subdomain(prefix) && is_qualified(slash + 1, false);
}

static void check_labels(json_t *labels, const char *field, json_t *causes)
{
    const char *key;
    json_t *value;
    json_object_foreach (labels, key, value) {
        if (!is_label_key(key))
            refusal_add_cause(causes, "FieldValueInvalid", field,
                              "Invalid value: \"%s\": name part must consist of "
                              "alphanumeric characters, '-', '_' or '.'",
                              key);
        if (!json_is_string(value) || !is_qualified(json_string_value(value), true))
            refusal_add_cause(causes, "FieldValueInvalid", field,
                              "Invalid value: \"%s\": a valid label must be an empty "
                              "string or consist of alphanumeric characters, '-', '_' "
                              "or '.', at most 63",
                              json_string_value(value) ? json_string_value(value) : "");
    }
}

static void check_annotations(json_t *annotations, json_t *causes)
{
    size_t total = 0;
    const char *key;
    json_t *value;
    json_object_foreach (annotations, key, value) {
        total += strlen(key) + json_string_length(value);
        if (!json_is_string(value))
            refusal_add_cause(causes, "FieldValueInvalid", "metadata.annotations",
                              "Invalid value: \"%s\": must be a string", key);
    }
    if (total > MAX_ANNOTATIONS)
        refusal_add_cause(causes, "FieldValueTooLong", "metadata.annotations",
                          "Too long: may not be more than %d bytes", MAX_ANNOTATIONS);
}

static void check_owners(const json_t *owners, json_t *causes)
{
    static const char *const required[] = { "apiVersion", "kind", "name", "uid" };
    size_t controllers = 0;
    size_t i;
    json_t *owner;
    json_array_foreach (owners, i, owner) {
        for (size_t k = 0; k < sizeof required / sizeof *required; k++) {
            auto_free char *field =
                xasprintf("metadata.ownerReferences[%zu].%s", i, required[k]);
            if (!*object_text(owner, required[k]))
                refusal_add_cause(causes, "FieldValueInvalid", field,
                                  "Invalid value: \"\": must not be empty");
        }
        controllers += object_is_true(owner, "controller");
    }
    if (controllers > 1)
        refusal_add_cause(causes, "FieldValueInvalid", "metadata.ownerReferences",
                          "Invalid value: Only one reference can have Controller set to "
                          "true");
}

static void check_metadata(const struct kind *kind, const json_t *object, json_t *causes)
{
    const char *name = object_text(object, "metadata.name");
    if (!*name)
        refusal_add_cause(causes, "FieldValueRequired", "metadata.name",
                          "Required value: name or generateName is required");
    else if (!is_name(name, kind->name_rule))
        refusal_add_cause(causes, "FieldValueInvalid", "metadata.name",
                          "Invalid value: \"%s\": %s", name,
                          name_rule_text(kind->name_rule));
    check_labels(object_at(object, "metadata.labels"), "metadata.labels", causes);
    check_annotations(object_at(object, "metadata.annotations"), causes);
    check_owners(object_at(object, "metadata.ownerReferences"), causes);
}

/* ---- pods: defaults ---- */

static const char *pull_policy(const char *image)
{
    const char *slash = strrchr(image, '/');
    const char *tag = strrchr(slash ? slash : image, ':');
    return !tag || !strcmp(tag, ":latest") ? "Always" : "IfNotPresent";
}

/* A request that is not given equals its limit. */
static void fill_requests(json_t *container)
{
    const char *resource;
    json_t *limit;
    json_t *limits = object_at(container, "resources.limits");
    json_object_foreach (limits, resource, limit) {
        json_t *requests = object_map(container, "resources.requests");
        if (!json_object_get(requests, resource))
            json_object_set(requests, resource, limit);
    }
}

static void fill_container(json_t *container)
{
    size_t i;
    json_t *port;
    object_default(container, "resources", json_object());
    object_default(container, "terminationMessagePath",
                   json_string("/dev/termination-log"));
    object_default(container, "terminationMessagePolicy", json_string("File"));
    object_default(container, "imagePullPolicy",
                   json_string(pull_policy(object_text(container, "image"))));
    json_array_foreach (object_at(container, "ports"), i, port) {
        object_default(port, "protocol", json_string("TCP"));
    }
    fill_requests(container);
}

/* The DefaultTolerationSeconds admission plugin: five minutes on a node in trouble. */
static void fill_tolerations(json_t *pod)
{
    static const char *const keys[] = { "node.kubernetes.io/not-ready",
                                        "node.kubernetes.io/unreachable" };
    json_t *tolerations = object_list(pod, "spec.tolerations");
    for (size_t i = 0; i < 2; i++) {
        if (!object_find(tolerations, "key", keys[i]))
            json_array_append_new(tolerations,
                                  json_pack("{s:s, s:s, s:s, s:i}", "key", keys[i],
                                            "operator", "Exists", "effect", "NoExecute",
                                            "tolerationSeconds", 300));
    }
}

/* The ServiceAccount admission plugin: a token volume in every container. */
static void fill_token_volume(json_t *pod)
{
    static const char path[] = "/var/run/secrets/kubernetes.io/serviceaccount";
    static const char volume[] = "kube-api-access-x7k2p";
    if (json_is_false(object_at(pod, "spec.automountServiceAccountToken")) ||
        object_find(object_at(pod, "spec.volumes"), "name", volume))
        return;
    json_array_append_new(object_list(pod, "spec.volumes"),
                          json_pack("{s:s, s:{s:i, s:[{s:{s:i, s:s}}]}}", "name", volume,
                                    "projected", "defaultMode", 420, "sources",
                                    "serviceAccountToken", "expirationSeconds", 3607,
                                    "path", "token"));
    size_t i;
    json_t *container;
    json_array_foreach (object_at(pod, "spec.containers"), i, container) {
        json_t *mounts = object_list(container, "volumeMounts");
        if (!object_find(mounts, "mountPath", path))
            json_array_append_new(mounts, json_pack("{s:s, s:b, s:s}", "name", volume,
                                                    "readOnly", 1, "mountPath", path));
    }
}

static void fill_volumes(json_t *pod)
{
    size_t i;
    json_t *volume;
    json_array_foreach (object_at(pod, "spec.volumes"), i, volume) {
        if (object_at(volume, "configMap"))
            object_default(volume, "configMap.defaultMode", json_integer(420));
    }
}

static const char *quality_of_service(const json_t *pod)
{
    bool any = false;
    bool all = true;
    size_t i;
    json_t *container;
    json_array_foreach (object_at(pod, "spec.containers"), i, container) {
        const json_t *requests = object_at(container, "resources.requests");
        const json_t *limits = object_at(container, "resources.limits");
        any = any || json_object_size(requests) || json_object_size(limits);
        static const char *const names[] = { "cpu", "memory" };
        for (size_t k = 0; k < 2; k++) {
            int64_t limit = quantity_of(json_object_get(limits, names[k]), -1);
            all = all && limit >= 0 &&
                  limit == quantity_of(json_object_get(requests, names[k]), -1);
        }
    }
    return all ? "Guaranteed" : any ? "Burstable" : "BestEffort";
}

static void fill_pod(json_t *pod, int64_t now_ms)
{
    size_t i;
    json_t *container;
    json_array_foreach (object_at(pod, "spec.containers"), i, container) {
        fill_container(container);
    }
    json_array_foreach (object_at(pod, "spec.initContainers"), i, container) {
        fill_container(container);
    }
    object_default(pod, "spec.restartPolicy", json_string("Always"));
    object_default(pod, "spec.terminationGracePeriodSeconds", json_integer(30));
    object_default(pod, "spec.dnsPolicy", json_string("ClusterFirst"));
    object_default(pod, "spec.schedulerName", json_string("default-scheduler"));
    object_default(pod, "spec.securityContext", json_object());
    object_default(pod, "spec.enableServiceLinks", json_true());
    object_default(pod, "spec.serviceAccountName", json_string("default"));
    object_default(pod, "spec.priority", json_integer(0));
    object_default(pod, "spec.preemptionPolicy", json_string("PreemptLowerPriority"));
    fill_tolerations(pod);
    fill_volumes(pod);
    fill_token_volume(pod);
    object_default(pod, "status.phase", json_string("Pending"));
    object_default(pod, "status.qosClass", json_string(quality_of_service(pod)));
    if (json_array_size(object_at(pod, "spec.schedulingGates")))
        condition_set(pod, "PodScheduled", "False", "SchedulingGated",
                      "Scheduling is blocked due to non-empty scheduling gates", now_ms);
}

/* ---- pods: rules ---- */

static void check_resources(const json_t *container, size_t index, json_t *causes)
{
    json_t *limits = object_at(container, "resources.limits");
    json_t *requests = object_at(container, "resources.requests");
    const char *name;
    json_t *request;
    json_object_foreach (requests, name, request) {
        auto_free char *field =
            xasprintf("spec.containers[%zu].resources.requests[%s]", index, name);
        int64_t milli = quantity_of(request, -1);
        json_t *limit = json_object_get(limits, name);
        int64_t limit_milli = quantity_of(limit, -1);
        bool is_extended = strchr(name, '/') && !strstr(name, "kubernetes.io/");
        if (milli < 0)
            refusal_add_cause(
                causes, "FieldValueInvalid", field,
                "Invalid value: quantities must match the regular "
                "expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
        else if (is_extended && milli % 1000)
            refusal_add_cause(causes, "FieldValueInvalid", field,
                              "Invalid value: must be an integer");
        else if (is_extended && milli != limit_milli)
            refusal_add_cause(causes, "FieldValueInvalid", field,
                              "Invalid value: must be equal to %s limit", name);
        else if (limit && milli > limit_milli)
            refusal_add_cause(causes, "FieldValueInvalid", field,
                              "Invalid value: must be less than or equal to %s limit",
                              name);
    }
}

static void check_mounts(const json_t *pod, const json_t *container, size_t index,
                         json_t *causes)
{
    size_t i;
    json_t *mount;
    json_array_foreach (object_at(container, "volumeMounts"), i, mount) {
        const char *volume = object_text(mount, "name");
        auto_free char *field =
            xasprintf("spec.containers[%zu].volumeMounts[%zu].name", index, i);
        if (!object_find(object_at(pod, "spec.volumes"), "name", volume))
            refusal_add_cause(causes, "FieldValueNotFound", field, "Not found: \"%s\"",
                              volume);
    }
}

static void check_container(const json_t *pod, const json_t *container, size_t index,
                            json_t *causes)
{
    const char *name = object_text(container, "name");
    auto_free char *name_field = xasprintf("spec.containers[%zu].name", index);
    auto_free char *image_field = xasprintf("spec.containers[%zu].image", index);
    if (!*name)
        refusal_add_cause(causes, "FieldValueRequired", name_field, "Required value");
    else if (!is_name(name, NAME_LABEL))
        refusal_add_cause(causes, "FieldValueInvalid", name_field,
                          "Invalid value: \"%s\": %s", name, name_rule_text(NAME_LABEL));
    if (!*object_text(container, "image"))
        refusal_add_cause(causes, "FieldValueRequired", image_field, "Required value");
    size_t i;
    json_t *variable;
    json_array_foreach (object_at(container, "env"), i, variable) {
        auto_free char *field = xasprintf("spec.containers[%zu].env[%zu]", index, i);
        if (!*object_text(variable, "name"))
            refusal_add_cause(causes, "FieldValueRequired", field, "Required value");
        json_t *value = json_object_get(variable, "value");
        if (value && !json_is_string(value))
            refusal_add_cause(causes, "FieldValueInvalid", field,
                              "Invalid value: must be a string");
    }
    check_resources(container, index, causes);
    check_mounts(pod, container, index, causes);
}

static void check_unique_names(const json_t *list, const char *field, json_t *causes)
{
    size_t i;
    json_t *element;
    json_array_foreach (list, i, element) {
        const char *name = object_text(element, "name");
        if (object_find(list, "name", name) != element)
            refusal_add_cause(causes, "FieldValueDuplicate", field,
                              "Duplicate value: \"%s\"", name);
    }
}

static void check_new_pod(const json_t *pod, json_t *causes)
{
    const json_t *containers = object_at(pod, "spec.containers");
    if (!json_array_size(containers))
        refusal_add_cause(causes, "FieldValueRequired", "spec.containers",
                          "Required value");
    size_t i;
    json_t *container;
    json_array_foreach (containers, i, container) {
        check_container(pod, container, i, causes);
    }
    check_unique_names(containers, "spec.containers", causes);
    check_unique_names(object_at(pod, "spec.volumes"), "spec.volumes", causes);
    static const char *const labels[] = { "spec.hostname", "spec.subdomain" };
    for (size_t k = 0; k < 2; k++) {
        const char *text = object_text(pod, labels[k]);
        if (*text && !is_name(text, NAME_LABEL))
            refusal_add_cause(causes, "FieldValueInvalid", labels[k],
                              "Invalid value: \"%s\": %s", text,
                              name_rule_text(NAME_LABEL));
    }
    if (*object_text(pod, "spec.nodeName") &&
        json_array_size(object_at(pod, "spec.schedulingGates")))
        refusal_add_cause(causes, "FieldValueForbidden", "spec.nodeName",
                          "Forbidden: cannot be set until all schedulingGates have been "
                          "cleared");
}

/* The spec without what may be changed after creation. */
static json_t *fixed_spec(const json_t *pod)
{
    static const char *const free_fields[] = { "activeDeadlineSeconds", "tolerations",
                                               "schedulingGates",
                                               "terminationGracePeriodSeconds" };
    json_t *spec = json_deep_copy(object_at(pod, "spec"));
    for (size_t i = 0; i < sizeof free_fields / sizeof *free_fields; i++)
        json_object_del(spec, free_fields[i]);
    size_t i;
    json_t *container;
    json_array_foreach (object_at(spec, "containers"), i, container) {
        json_object_del(container, "image");
    }
    return spec;
}

/* A gated pod may still be pinned. */
static void drop_placement(json_t *spec)
{
    json_object_del(spec, "nodeSelector");
    json_object_del(spec, "affinity");
}

static void check_pod(const json_t *before, const json_t *pod, json_t *causes)
{
    if (!before) {
        check_new_pod(pod, causes);
        return;
    }
    json_auto_t *old_spec = fixed_spec(before);
    json_auto_t *new_spec = fixed_spec(pod);
    json_t *old_gates = object_at(before, "spec.schedulingGates");
    if (json_array_size(old_gates)) {
        drop_placement(old_spec);
        drop_placement(new_spec);
    }
    if (!json_equal(old_spec, new_spec))
        refusal_add_cause(causes, "FieldValueForbidden", "spec",
                          "Forbidden: pod updates may not change fields other than "
                          "`spec.containers[*].image`,`spec.initContainers[*].image`,"
                          "`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
                          "additions to existing tolerations),"
                          "`spec.terminationGracePeriodSeconds` (allow it to be set to "
                          "1 if it was previously negative)");
    size_t i;
    json_t *gate;
    json_array_foreach (object_at(pod, "spec.schedulingGates"), i, gate) {
        const char *name = object_text(gate, "name");
        if (!object_find(old_gates, "name", name))
            refusal_add_cause(causes, "FieldValueForbidden", "spec.schedulingGates",
                              "Forbidden: only deletion is allowed, but found new "
                              "scheduling gate '%s'",
                              name);
    }
}

/* ---- services, config maps, namespaces, events ---- */

static void fill_service(json_t *service, int64_t now_ms)
{
    (void)now_ms;
    size_t i;
    json_t *port;
    json_array_foreach (object_at(service, "spec.ports"), i, port) {
        object_default(port, "protocol", json_string("TCP"));
        object_default(port, "targetPort", json_incref(json_object_get(port, "port")));
    }
    object_default(service, "spec.type", json_string("ClusterIP"));
    object_default(service, "spec.sessionAffinity", json_string("None"));
    object_default(service, "spec.clusterIP", json_string("10.96.0.10"));
    object_default(service, "spec.clusterIPs",
                   json_pack("[s]", object_text(service, "spec.clusterIP")));
    object_default(service, "spec.ipFamilies", json_pack("[s]", "IPv4"));
    object_default(service, "spec.ipFamilyPolicy", json_string("SingleStack"));
    object_default(service, "spec.internalTrafficPolicy", json_string("Cluster"));
    object_default(service, "status.loadBalancer", json_object());
}

static void check_service(const json_t *before, const json_t *service, json_t *causes)
{
    const char *address = object_text(service, "spec.clusterIP");
    size_t i;
    json_t *port;
    json_array_foreach (object_at(service, "spec.ports"), i, port) {
        auto_free char *field = xasprintf("spec.ports[%zu].port", i);
        int64_t number = object_integer(port, "port", 0);
        if (number < 1 || number > 65535)
            refusal_add_cause(
                causes, "FieldValueInvalid", field,
                "Invalid value: %lld: must be between 1 and 65535, inclusive",
                (long long)number);
    }
    if (!json_array_size(object_at(service, "spec.ports")) &&
        strcmp(address, "None") != 0)
        refusal_add_cause(causes, "FieldValueRequired", "spec.ports", "Required value");
    check_labels(object_at(service, "spec.selector"), "spec.selector", causes);
    if (before && strcmp(object_text(before, "spec.clusterIP"), address) != 0)
        refusal_add_cause(causes, "FieldValueInvalid", "spec.clusterIPs[0]",
                          "Invalid value: [\"%s\"]: may not change once set", address);
}

static void check_config_map(const json_t *before, const json_t *map, json_t *causes)
{
    size_t total = 0;
    const char *key;
    json_t *value;
    json_t *data = object_at(map, "data");
    json_object_foreach (data, key, value) {
        auto_free char *field = xasprintf("data[%s]", key);
        if (!*key || strlen(key) > MAX_SUBDOMAIN ||
            strspn(key, ALPHANUM "-._") != strlen(key))
            refusal_add_cause(causes, "FieldValueInvalid", field,
                              "Invalid value: \"%s\": a valid config key must consist of "
                              "alphanumeric characters, '-', '_' or '.'",
                              key);
        total += json_string_length(value);
    }
    if (total > MAX_CONFIG_MAP)
        refusal_add_cause(causes, "FieldValueTooLong", "",
                          "Too long: may not be more than %d bytes", MAX_CONFIG_MAP);
    if (!before || !object_is_true(before, "immutable"))
        return;
    if (!object_is_true(map, "immutable"))
        refusal_add_cause(causes, "FieldValueForbidden", "immutable",
                          "Forbidden: field is immutable when `immutable` is set");
    if (!json_equal(object_at(before, "data"), data) &&
        (json_object_size(object_at(before, "data")) || json_object_size(data)))
        refusal_add_cause(causes, "FieldValueForbidden", "data",
                          "Forbidden: field is immutable when `immutable` is set");
}

static void fill_namespace(json_t *object, int64_t now_ms)
{
    (void)now_ms;
    json_object_set(object_map(object, "metadata.labels"), "kubernetes.io/metadata.name",
                    object_at(object, "metadata.name"));
    object_default(object, "spec.finalizers", json_pack("[s]", "kubernetes"));
    object_default(object, "status.phase", json_string("Active"));
}

static void check_event(const json_t *before, const json_t *event, json_t *causes)
{
    static const char *const required[] = {
        "eventTime", "reportingController", "reportingInstance", "action", "reason",
        "type"
    };
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        if (!*object_text(event, required[i]))
            refusal_add_cause(causes, "FieldValueRequired", required[i],
                              "Required value");
    }
    const char *type = object_text(event, "type");
    if (*type && strcmp(type, "Normal") != 0 && strcmp(type, "Warning") != 0)
        refusal_add_cause(causes, "FieldValueInvalid", "type", "Invalid value: \"%s\"",
                          type);
    if (strlen(object_text(event, "note")) > 1024)
        refusal_add_cause(causes, "FieldValueInvalid", "note",
                          "Invalid value: can have at most 1024 characters");
    const char *ns = object_text(event, "regarding.namespace");
    if (strcmp(*ns ? ns : "default", object_text(event, "metadata.namespace")) != 0)
        refusal_add_cause(causes, "FieldValueInvalid", "regarding.namespace",
                          "Invalid value: \"%s\": does not match event.namespace", ns);
    if (!before)
        return;
    static const char *const fixed[] = {
        "eventTime", "regarding",          "reason", "note", "type",
        "action",    "reportingController"
    };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        json_t *old = object_at(before, fixed[i]);
        if (old && !json_equal(old, object_at(event, fixed[i])))
            refusal_add_cause(causes, "FieldValueInvalid", fixed[i],
                              "Invalid value: field is immutable");
    }
}

static void check_priority_class(const json_t *before, const json_t *class,
                                 json_t *causes)
{
    enum { HIGHEST_OF_USERS = 1000000000 }; /* scheduling.HighestUserDefinablePriority */
    int64_t value = object_integer(class, "value", 0);
    if (value > HIGHEST_OF_USERS &&
        strncmp(object_text(class, "metadata.name"), "system-", 7) != 0)
        refusal_add_cause(
            causes, "FieldValueForbidden", "value",
            "Forbidden: maximum allowed value of a user defined priority is "
            "%d",
            HIGHEST_OF_USERS);
    if (before && object_integer(before, "value", 0) != value)
        refusal_add_cause(causes, "FieldValueForbidden", "value",
                          "Forbidden: may not be changed in an update.");
}

/* ---- the table ---- */

static const char *const no_fields[] = { "metadata.name", "metadata.namespace", NULL };
static const char *const pod_fields[] = { "metadata.name",
                                          "metadata.namespace",
                                          "spec.nodeName",
                                          "spec.restartPolicy",
                                          "spec.schedulerName",
                                          "spec.serviceAccountName",
                                          "status.phase",
                                          "status.nominatedNodeName",
                                          "status.podIP",
                                          "spec.hostNetwork",
                                          NULL };
static const char *const node_fields[] = { "metadata.name", "metadata.namespace",
                                           "spec.unschedulable", NULL };
static const char *const event_fields[] = { "metadata.name",
                                            "metadata.namespace",
                                            "regarding.kind",
                                            "regarding.name",
                                            "regarding.uid",
                                            "reason",
                                            "reportingController",
                                            "type",
                                            NULL };

#define OURS  "heterotrain.io"
#define KUEUE "kueue.x-k8s.io"

const struct kind kinds[] = {
    { .group = "",
      .version = "v1",
      .plural = "namespaces",
      .name = "Namespace",
      .has_status = true,
      .name_rule = NAME_LABEL,
      .fill = fill_namespace },
    { .group = "",
      .version = "v1",
      .plural = "nodes",
      .name = "Node",
      .has_status = true,
      .fields = node_fields },
    { .group = "",
      .version = "v1",
      .plural = "pods",
      .name = "Pod",
      .namespaced = true,
      .has_status = true,
      .shows_deleted = true,
      .fields = pod_fields,
      .fill = fill_pod,
      .check = check_pod },
    { .group = "",
      .version = "v1",
      .plural = "services",
      .name = "Service",
      .namespaced = true,
      .has_status = true,
      .shows_deleted = true,
      .name_rule = NAME_LABEL_1035,
      .fill = fill_service,
      .check = check_service },
    { .group = "",
      .version = "v1",
      .plural = "configmaps",
      .name = "ConfigMap",
      .namespaced = true,
      .check = check_config_map },
    { .group = "events.k8s.io",
      .version = "v1",
      .plural = "events",
      .name = "Event",
      .namespaced = true,
      .fields = event_fields,
      .check = check_event },
    { .group = "coordination.k8s.io",
      .version = "v1",
      .plural = "leases",
      .name = "Lease",
      .namespaced = true },
    { .group = "scheduling.k8s.io",
      .version = "v1",
      .plural = "priorityclasses",
      .name = "PriorityClass",
      .check = check_priority_class },
    { .group = "batch",
      .version = "v1",
      .plural = "jobs",
      .name = "Job",
      .namespaced = true,
      .has_status = true },
    { .group = OURS,
      .version = "v1alpha1",
      .plural = "heterotrainingjobs",
      .name = "HeteroTrainingJob",
      .namespaced = true,
      .has_status = true,
      .is_custom = true },
    { .group = OURS,
      .version = "v1alpha1",
      .plural = "modelprofiles",
      .name = "ModelProfile",
      .namespaced = true,
      .has_status = true,
      .is_custom = true },
    { .group = OURS,
      .version = "v1alpha1",
      .plural = "clustermodelprofiles",
      .name = "ClusterModelProfile",
      .has_status = true,
      .is_custom = true },
    { .group = KUEUE,
      .version = "v1beta2",
      .plural = "workloads",
      .name = "Workload",
      .namespaced = true,
      .has_status = true,
      .is_custom = true },
    { .group = KUEUE,
      .version = "v1beta2",
      .plural = "localqueues",
      .name = "LocalQueue",
      .namespaced = true,
      .has_status = true,
      .is_custom = true },
    { .group = KUEUE,
      .version = "v1beta2",
      .plural = "clusterqueues",
      .name = "ClusterQueue",
      .has_status = true,
      .is_custom = true },
    { .group = KUEUE,
      .version = "v1beta2",
      .plural = "resourceflavors",
      .name = "ResourceFlavor",
      .is_custom = true },
};
const size_t kind_count = sizeof kinds / sizeof *kinds;

const struct kind *kind_find(const char *group, const char *version, const char *plural)
{
    for (size_t i = 0; i < kind_count; i++)
        if (!strcmp(kinds[i].group, group) && !strcmp(kinds[i].version, version) &&
            !strcmp(kinds[i].plural, plural))
            return &kinds[i];
    return NULL;
}

const struct kind *kind_find_plural(const char *plural)
{
    for (size_t i = 0; i < kind_count; i++)
        if (!strcmp(kinds[i].plural, plural))
            return &kinds[i];
    return NULL;
}

char *kind_api_version(const struct kind *kind)
{
    return xasprintf("%s%s%s", kind->group, *kind->group ? "/" : "", kind->version);
}

const struct kind *kind_of(const json_t *object)
{
    for (size_t i = 0; i < kind_count; i++) {
        auto_free char *version = kind_api_version(&kinds[i]);
        if (!strcmp(kinds[i].name, object_text(object, "kind")) &&
            !strcmp(version, object_text(object, "apiVersion")))
            return &kinds[i];
    }
    return NULL;
}

const char *const *kind_selectable_fields(const struct kind *kind)
{
    return kind->fields ? kind->fields : no_fields;
}

void kind_fill(const struct kind *kind, json_t *object, int64_t now_ms)
{
    if (kind->fill)
        kind->fill(object, now_ms);
}

json_t *kind_check(const struct kind *kind, const json_t *before, const json_t *object)
{
    json_t *causes = json_array();
    check_metadata(kind, object, causes);
    if (kind->check)
        kind->check(before, object, causes);
    return causes;
}
