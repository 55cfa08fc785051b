#include "controller/base/object.h"

#include "planner/modules.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- kinds ---- */

const struct kube_resource kube_node = { "v1", "nodes", "Node", false };
const struct kube_resource kube_pod = { "v1", "pods", "Pod", true };
const struct kube_resource kube_service = { "v1", "services", "Service", true };
const struct kube_resource kube_namespaces = { "v1", "namespaces", "Namespace", false };
const struct kube_resource kube_config_map = { "v1", "configmaps", "ConfigMap", true };
const struct kube_resource kube_event = { "events.k8s.io/v1", "events", "Event", true };
const struct kube_resource kube_lease = { "coordination.k8s.io/v1", "leases", "Lease",
                                          true };
const struct kube_resource kube_batch_job = { "batch/v1", "jobs", "Job", true };
const struct kube_resource kube_job = { "heterotrain.io/v1alpha1", "heterotrainingjobs",
                                        "HeteroTrainingJob", true };
const struct kube_resource kube_model_profile = { "heterotrain.io/v1alpha1",
                                                  "modelprofiles", "ModelProfile", true };
const struct kube_resource kube_cluster_model_profile = { "heterotrain.io/v1alpha1",
                                                          "clustermodelprofiles",
                                                          "ClusterModelProfile", false };
const struct kube_resource kube_priority_class = { "scheduling.k8s.io/v1",
                                                   "priorityclasses", "PriorityClass",
                                                   false };
const struct kube_resource kube_access_review = { "authorization.k8s.io/v1",
                                                  "subjectaccessreviews",
                                                  "SubjectAccessReview", false };
const struct kube_resource kube_token_review = { "authentication.k8s.io/v1",
                                                 "tokenreviews", "TokenReview", false };
const struct kube_resource kube_webhook_configuration = {
    "admissionregistration.k8s.io/v1", "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration", false
};

#define KUEUE "kueue.x-k8s.io/v1beta2"
const struct kube_resource kube_local_queue = { KUEUE, "localqueues", "LocalQueue",
                                                true };
const struct kube_resource kube_cluster_queue = { KUEUE, "clusterqueues", "ClusterQueue",
                                                  false };
const struct kube_resource kube_resource_flavor = { KUEUE, "resourceflavors",
                                                    "ResourceFlavor", false };
const struct kube_resource kube_workload = { KUEUE, "workloads", "Workload", true };

/* ---- what every object has ---- */

/* As a C string it would end at the NUL and pass a check that the whole text would
 * not. */
const char *object_string(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && strlen(text) == json_string_length(value) ? text : "";
}

static const char *metadata_text(const json_t *object, const char *key)
{
    return object_string(json_object_get(json_object_get(object, "metadata"), key));
}

const char *kube_name(const json_t *object)
{
    return metadata_text(object, "name");
}

const char *kube_namespace(const json_t *object)
{
    return metadata_text(object, "namespace");
}

const char *kube_uid(const json_t *object)
{
    return metadata_text(object, "uid");
}

const char *kube_resource_version(const json_t *object)
{
    return metadata_text(object, "resourceVersion");
}

static const char *metadata_entry(const json_t *object, const char *map, const char *key)
{
    const json_t *metadata = json_object_get(object, "metadata");
    return object_string(json_object_get(json_object_get(metadata, map), key));
}

const char *kube_label(const json_t *object, const char *key)
{
    return metadata_entry(object, "labels", key);
}

const char *kube_annotation(const json_t *object, const char *key)
{
    return metadata_entry(object, "annotations", key);
}

const json_t *kube_controller(const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const json_t *owners = json_object_get(metadata, "ownerReferences");
    size_t i;
    const json_t *owner;
    json_array_foreach (owners, i, owner)
        if (json_is_true(json_object_get(owner, "controller")))
            return owner;
    return NULL;
}

const char *kube_controller_uid(const json_t *object)
{
    return object_string(json_object_get(kube_controller(object), "uid"));
}

bool kube_is_deleting(const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const json_t *time = json_object_get(metadata, "deletionTimestamp");
    return time && !json_is_null(time);
}

int kube_compare_versions(const char *a, const char *b)
{
    a += strspn(a, "0");
    b += strspn(b, "0");
    size_t a_length = strlen(a), b_length = strlen(b);
    if (a_length != b_length)
        return a_length < b_length ? -1 : 1;
    return strcmp(a, b);
}

/* ---- paths ---- */

enum { LONGEST_KEY = 64 }; /* in a path, with its NUL */

/* Copies the first key of `path` into `key`; returns the rest, NULL at the end. */
static const char *first_key(const char *path, char key[LONGEST_KEY])
{
    size_t length = strcspn(path, ".");
    assert(length < LONGEST_KEY);
    memcpy(key, path, length);
    key[length] = '\0';
    return path[length] ? path + length + 1 : NULL;
}

json_t *object_pack(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    json_t *json = json_vpack_ex(NULL, 0, format, arguments);
    va_end(arguments);
    if (!json)
        abort();
    return json;
}

json_t *object_at(const json_t *object, const char *path)
{
    char key[LONGEST_KEY];
    json_t *value = NULL;
    do {
        path = first_key(path, key);
        value = json_object_get(object, key);
        object = value;
    } while (path && value);
    return value;
}

const char *object_text(const json_t *object, const char *path)
{
    const char *text = json_string_value(object_at(object, path));
    return text ? text : "";
}

int64_t object_integer(const json_t *object, const char *path, int64_t fallback)
{
    json_t *value = object_at(object, path);
    return json_is_integer(value) ? json_integer_value(value) : fallback;
}

bool object_is_true(const json_t *object, const char *path)
{
    return json_is_true(object_at(object, path));
}

char *object_key(const json_t *object)
{
    const char *ns = object_text(object, "metadata.namespace");
    return xasprintf("%s%s%s", ns, *ns ? "/" : "", object_text(object, "metadata.name"));
}

json_t *object_find(const json_t *list, const char *field, const char *text)
{
    size_t i;
    json_t *element;
    json_array_foreach (list, i, element) {
        if (!strcmp(object_text(element, field), text))
            return element;
    }
    return NULL;
}

json_t *object_find_condition(const json_t *object, const char *type)
{
    return object_find(object_at(object, "status.conditions"), "type", type);
}

const char *object_condition(const json_t *object, const char *type)
{
    return object_text(object_find_condition(object, type), "status");
}

bool object_condition_is_true(const json_t *object, const char *type)
{
    return !strcmp(object_condition(object, type), "True");
}

/* ---- building ---- */

/* The map that holds the last key of `path`, which goes to `key`; NULL if `object` is no
 * map (jansson then refuses the value that is put there, and frees it). */
static json_t *parent_of(json_t *object, const char *path, char key[LONGEST_KEY])
{
    while ((path = first_key(path, key))) {
        json_t *child = json_object_get(object, key);
        if (!json_is_object(child)) {
            child = json_object();
            if (json_object_set_new(object, key, child) < 0)
                return NULL;
        }
        object = child;
    }
    return object;
}

void object_set(json_t *object, const char *path, json_t *value)
{
    char key[LONGEST_KEY];
    json_t *parent = parent_of(object, path, key);
    json_object_set_new(parent, key, value);
}

void object_remove(json_t *object, const char *path)
{
    char key[LONGEST_KEY];
    if (!object_at(object, path))
        return;
    json_t *parent = parent_of(object, path, key);
    json_object_del(parent, key);
}

void object_default(json_t *object, const char *path, json_t *value)
{
    if (object_at(object, path))
        json_decref(value);
    else
        object_set(object, path, value);
}

json_t *object_map(json_t *object, const char *path)
{
    if (!json_is_object(object_at(object, path)))
        object_set(object, path, json_object());
    return object_at(object, path);
}

json_t *object_list(json_t *object, const char *path)
{
    if (!json_is_array(object_at(object, path)))
        object_set(object, path, json_array());
    return object_at(object, path);
}
