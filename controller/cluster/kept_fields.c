#include "controller/cluster/kept_fields.h"

#include "controller/base/digest.h"
#include "controller/base/json_scan.h"
#include "controller/base/object.h"
#include "controller/cluster/pod_need.h"
#include "controller/job/job_spec.h"

#include <inttypes.h>
#include <string.h>

json_t *kept_fields_pick(const json_t *from, const char *const *names)
{
    json_t *result = json_object();
    for (; *names; names++) {
        json_t *value = json_object_get(from, *names);
        if (value)
            json_object_set(result, *names, value);
    }
    return result;
}

/* ---- nodes ---- */

static void keep_short_annotations(json_t *metadata, const json_t *annotations)
{
    json_t *kept = json_object();
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)annotations, key, value)
        if (json_string_length(value) <= KEPT_FIELDS_MAX_ANNOTATION)
            json_object_set(kept, key, value);
    json_object_set_new(metadata, "annotations", kept);
}

json_t *kept_fields_node(json_t *object)
{
    static const char *const names[] = { "name", "uid", "resourceVersion", "labels",
                                         NULL };
    static const char *const spec[] = { "unschedulable", "taints", NULL };
    static const char *const status[] = { "allocatable", NULL };
    static const char *const boot[] = { "bootID", NULL };
    json_t *trimmed = json_object();
    const json_t *its_metadata = json_object_get(object, "metadata");
    json_t *metadata = kept_fields_pick(its_metadata, names);
    keep_short_annotations(metadata, json_object_get(its_metadata, "annotations"));
    json_object_set_new(trimmed, "metadata", metadata);
    json_object_set_new(trimmed, "spec",
                        kept_fields_pick(json_object_get(object, "spec"), spec));

    json_t *kept = kept_fields_pick(json_object_get(object, "status"), status);
    json_t *conditions = json_array();
    const json_t *all = json_object_get(json_object_get(object, "status"), "conditions");
    for (size_t i = 0; i < json_array_size(all); i++) {
        static const char *const fields[] = { "type", "status", NULL };
        json_array_append_new(conditions,
                              kept_fields_pick(json_array_get(all, i), fields));
    }
    json_object_set_new(kept, "conditions", conditions);
    json_object_set_new(
        kept, "nodeInfo",
        kept_fields_pick(json_object_get(json_object_get(object, "status"), "nodeInfo"),
                         boot));
    json_object_set_new(trimmed, "status", kept);
    return trimmed;
}

/* Adds the members of the object `text` that `names`, which end with NULL, call. */
static uint64_t digest_members(uint64_t digest, struct json_span object,
                               const char *const *names)
{
    struct json_walk walk = json_walk_object(object.text, object.length);
    struct json_span key, value;
    while (json_next_member(&walk, &key, &value))
        for (size_t i = 0; names[i]; i++)
            if (json_span_is(key, names[i])) {
                digest = digest_text(digest, names[i]);
                digest = digest_bytes(digest, &value.length, sizeof value.length);
                digest = digest_bytes(digest, value.text, value.length);
            }
    return digest;
}

/* Which start of the machine it is. */
static uint64_t digest_boot(uint64_t digest, struct json_span status)
{
    static const char *const fields[] = { "bootID", NULL };
    struct json_span info;
    return json_find_member(status.text, status.length, "nodeInfo", &info)
               ? digest_members(digest, info, fields)
               : digest;
}

static uint64_t digest_conditions(uint64_t digest, struct json_span status)
{
    static const char *const fields[] = { "type", "status", NULL };
    struct json_span list, condition;
    if (!json_find_member(status.text, status.length, "conditions", &list))
        return digest;
    struct json_walk walk = json_walk_array(list.text, list.length);
    while (json_next_element(&walk, &condition))
        digest = digest_members(digest_text(digest, "-"), condition, fields);
    return digest;
}

uint64_t kept_fields_node_digest(const char *text, size_t length)
{
    static const char *const metadata[] = { "name", "uid", "labels", "annotations",
                                            NULL };
    static const char *const spec[] = { "unschedulable", "taints", NULL };
    static const char *const status[] = { "allocatable", NULL };
    struct json_walk walk = json_walk_object(text, length);
    struct json_span key, value;
    uint64_t digest = 0;
    while (json_next_member(&walk, &key, &value)) {
        if (json_span_is(key, "metadata")) {
            digest = digest_members(digest, value, metadata);
        } else if (json_span_is(key, "spec")) {
            digest = digest_members(digest, value, spec);
        } else if (json_span_is(key, "status")) {
            digest = digest_members(digest, value, status);
            digest = digest_boot(digest, value);
            digest = digest_conditions(digest, value);
        }
    }
    return json_walk_is_complete(&walk) ? digest : 0;
}

/* ---- pods ---- */

static json_t *kept_fields_containers(const json_t *containers)
{
    static const char *const fields[] = { "name", "resources", "restartPolicy", NULL };
    json_t *trimmed = json_array();
    for (size_t i = 0; i < json_array_size(containers); i++)
        json_array_append_new(trimmed,
                              kept_fields_pick(json_array_get(containers, i), fields));
    return trimmed;
}

static json_t *kept_fields_our_pod(json_t *object)
{
    static const char *const metadata[] = { "name",
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
    static const char *const spec_names[] = { "nodeName", "overhead",        "resources",
                                              "affinity", "schedulingGates", NULL };
    static const char *const status[] = { "phase",
                                          "nominatedNodeName",
                                          "reason",
                                          "message",
                                          "conditions",
                                          "initContainerStatuses",
                                          "containerStatuses",
                                          "podIP",
                                          NULL };
    const json_t *spec = json_object_get(object, "spec");
    json_t *kept = kept_fields_pick(spec, spec_names);
    json_object_set_new(kept, "containers",
                        kept_fields_containers(json_object_get(spec, "containers")));
    if (json_array_size(json_object_get(spec, "initContainers")))
        json_object_set_new(
            kept, "initContainers",
            kept_fields_containers(json_object_get(spec, "initContainers")));
    return json_pack("{s:o, s:o, s:o}", "metadata",
                     kept_fields_pick(json_object_get(object, "metadata"), metadata),
                     "spec", kept, "status",
                     kept_fields_pick(json_object_get(object, "status"), status));
}

/* { RESOURCE: quantity } of what the pod asks for in all. */
static json_t *effective_requests(const json_t *pod)
{
    json_auto_t *names = json_object();
    json_t *requests = json_object();
    const char *name;
    json_t *unused;
    het_pod_resources(pod, names);
    json_object_foreach (names, name, unused) {
        bool is_milli = pod_need_is_milli(name);
        int64_t amount = het_pod_request(pod, name, is_milli);
        if (amount)
            json_object_set_new(
                requests, name,
                json_sprintf("%" PRId64 "%s", amount, is_milli ? "m" : ""));
    }
    return requests;
}

/* Whether a batch Job made `pod` to measure something (measurement.h). */
static bool is_profiler(const json_t *pod)
{
    return !strcmp(object_text(kube_controller(pod), "kind"), kube_batch_job.kind) &&
           !strcmp(kube_label(pod, LABEL_MANAGED_BY), MANAGED_BY) &&
           !strcmp(kube_label(pod, LABEL_COMPONENT), COMPONENT_PROFILER);
}

json_t *kept_fields_pod(json_t *object)
{
    static const char *const short_metadata[] = { "name", "namespace", "uid",
                                                  "resourceVersion", NULL };
    static const char *const short_status[] = { "phase", "nominatedNodeName", NULL };
    static const char *const full_metadata[] = { "name",
                                                 "namespace",
                                                 "uid",
                                                 "resourceVersion",
                                                 "labels",
                                                 "ownerReferences",
                                                 "creationTimestamp",
                                                 NULL };
    static const char *const full_status[] = {
        "phase", "nominatedNodeName", "message", "conditions", "containerStatuses", NULL
    };
    static const char *const spec[] = { "nodeName", NULL };
    if (job_spec_find_owner(object))
        return kept_fields_our_pod(object);
    bool is_full = is_profiler(object);
    const char *const *metadata = is_full ? full_metadata : short_metadata;
    const char *const *status = is_full ? full_status : short_status;
    json_t *kept = kept_fields_pick(json_object_get(object, "spec"), spec);
    json_object_set_new(kept, "resources",
                        json_pack("{s:o}", "requests", effective_requests(object)));
    return json_pack("{s:o, s:o, s:o}", "metadata",
                     kept_fields_pick(json_object_get(object, "metadata"), metadata),
                     "spec", kept, "status",
                     kept_fields_pick(json_object_get(object, "status"), status));
}
