/* object.h - Kubernetes objects as JSON: the kinds that we use, readers of common fields,
 * and readers and writers of the value at a path. Pure.
 *
 * A path is keys of at most 63 bytes joined by dots: "metadata.name". A key that itself
 * holds a dot (labels, resource names) is read from its map with json_object_get. */
#ifndef CONTROLLER_BASE_OBJECT_H
#define CONTROLLER_BASE_OBJECT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- kinds ---- */

struct kube_resource {
    const char *group_version; /* "v1", "events.k8s.io/v1" */
    const char *plural;        /* "pods" */
    const char *kind;          /* "Pod" */
    bool namespaced;
};

extern const struct kube_resource kube_node, kube_pod, kube_service, kube_config_map,
    kube_event, kube_lease, kube_job, kube_model_profile, kube_cluster_model_profile,
    kube_priority_class, kube_batch_job, kube_namespaces;
/* Kinds of admission: whether a user may do something; the webhooks that check jobs. */
extern const struct kube_resource kube_access_review, kube_webhook_configuration;
/* Who owns a bearer token. */
extern const struct kube_resource kube_token_review;
/* Kueue's kinds, where it is installed. */
extern const struct kube_resource kube_local_queue, kube_cluster_queue,
    kube_resource_flavor, kube_workload;

/* ---- what every object has ---- */

/* Orders resourceVersions as decimal strings: <0, 0, >0. "" comes before all. */
int kube_compare_versions(const char *a, const char *b);

/* Readers of common fields; "" when absent, or with a NUL inside. */
const char *kube_name(const json_t *object);
const char *kube_namespace(const json_t *object);
const char *kube_uid(const json_t *object);
const char *kube_resource_version(const json_t *object);
const char *kube_label(const json_t *object, const char *key);
const char *kube_annotation(const json_t *object, const char *key);
/* The ownerReference with controller=true, NULL when there is none; its uid, or "". */
const json_t *kube_controller(const json_t *object);
const char *kube_controller_uid(const json_t *object);
bool kube_is_deleting(const json_t *object);

/* A string without NUL inside; "" for anything else. */
const char *object_string(const json_t *value);

/* ---- paths ---- */

/* json_pack for our own objects. It fails only when memory is short or the format is
 * wrong, a bug of ours; both end the process. */
json_t *object_pack(const char *format, ...);

/* The value at `path`, borrowed; NULL if there is none. */
json_t *object_at(const json_t *object, const char *path);
/* The text at `path`, "" if there is none. */
const char *object_text(const json_t *object, const char *path);
int64_t object_integer(const json_t *object, const char *path, int64_t fallback);
bool object_is_true(const json_t *object, const char *path);

/* "namespace/name", or "name" without a namespace; the caller frees it. */
char *object_key(const json_t *object);
/* The element of `list` whose `field` is `text`; NULL if there is none. */
json_t *object_find(const json_t *list, const char *field, const char *text);
/* The entry of `type` in status.conditions; NULL if there is none. */
json_t *object_find_condition(const json_t *object, const char *type);
/* Its status ("True", "False", "Unknown"); "" if there is none. */
const char *object_condition(const json_t *object, const char *type);
bool object_condition_is_true(const json_t *object, const char *type);

/* Puts `value` (takes the reference) at `path`, creating the maps on the way. */
void object_set(json_t *object, const char *path, json_t *value);
void object_remove(json_t *object, const char *path);
/* Like object_set, but only if `path` has no value. */
void object_default(json_t *object, const char *path, json_t *value);
/* The map or list at `path`, created empty if there is none. */
json_t *object_map(json_t *object, const char *path);
json_t *object_list(json_t *object, const char *path);

#endif
