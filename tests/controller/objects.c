#include "tests/controller/objects.h"

#include "tests/controller/quoted.h"

#include <assert.h>
#include <stdlib.h>

json_t *make_object(const struct kube_resource *resource, const char *ns,
                    const char *name, const char *uid, int64_t version,
                    const char *owner_uid)
{
    auto_free char *version_text = xasprintf("%lld", (long long)version);
    json_t *object = json_pack("{s:s, s:s, s:{s:s, s:s, s:s}}", "apiVersion",
                               resource->group_version, "kind", resource->kind,
                               "metadata", "name", name, "uid", uid, "resourceVersion",
                               version_text);
    assert(object);
    json_t *metadata = json_object_get(object, "metadata");
    if (resource->namespaced)
        json_object_set_new(metadata, "namespace", json_string(ns));
    if (owner_uid)
        json_object_set_new(metadata, "ownerReferences",
                            json_pack("[{s:s, s:b}, {s:s, s:b}]", "uid", "bystander",
                                      "controller", 0, "uid", owner_uid, "controller",
                                      1));
    return object;
}

static void add_context(json_t *owner, json_t *context)
{
    json_t *own = json_object_get(owner, "securityContext");
    if (own)
        json_object_update_missing(own, context);
    else
        json_object_set(owner, "securityContext", context);
    json_decref(context);
}

json_t *make_restricted(json_t *job)
{
    static const char *const lists[] = { "containers", "initContainers" };
    json_t *template = json_object_get(json_object_get(job, "spec"), "podTemplate");
    json_t *spec = json_object_get(template, "spec");
    add_context(spec, json_pack("{s:b, s:{s:s}}", "runAsNonRoot", 1, "seccompProfile",
                                "type", "RuntimeDefault"));
    for (size_t k = 0; k < 2; k++) {
        json_t *containers = json_object_get(spec, lists[k]);
        for (size_t i = 0; i < json_array_size(containers); i++)
            add_context(json_array_get(containers, i),
                        json_pack("{s:b, s:{s:[s]}}", "allowPrivilegeEscalation", 0,
                                  "capabilities", "drop", "ALL"));
    }
    return job;
}

char *make_object_text(const struct kube_resource *resource, const char *ns,
                       const char *name, const char *uid, int64_t version)
{
    json_auto_t *object = make_object(resource, ns, name, uid, version, NULL);
    char *text = json_dumps(object, JSON_COMPACT);
    assert(text);
    return text;
}

static json_t *measurements(int factor)
{
    json_t *list = json_array();
    static const char *const groups[] = { "embedding", "decoder", "head" };
    for (int group = 0; group < 3; group++)
        for (int tp = 1; tp <= 2; tp++)
            for (int batch = 1; batch <= 4; batch *= 2)
                json_array_append_new(
                    list,
                    json_pack("{s:s, s:i, s:i, s:i, s:i, s:I}", "layerGroup",
                              groups[group], "tensorParallel", tp, "microBatchSize",
                              batch, "forwardMicroseconds", factor * 1000 * batch / tp,
                              "backwardMicroseconds", factor * 2000 * batch / tp,
                              "activationBytes", (json_int_t)100000000 * batch / tp));
    return list;
}

json_t *make_profile(const char *ns, size_t type_count, int factor)
{
    static const struct {
        const char *name;
        int memory_mib;
    } types[] = { { "A100-SXM4-40GB", 40960 },
                  { "V100-SXM2-16GB", 16384 },
                  { "Tesla-T4", 16384 } };
    assert(type_count <= sizeof types / sizeof *types);
    json_t *profile = quoted(
        "{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'ModelProfile', 'metadata': "
        "{'name': 'small', 'namespace': '%s'}, 'spec': {'model': {'name': 'small', "
        "'precision': 'BF16', 'optimizer': 'Adam', 'sequenceLength': 128}, 'layerGroups': "
        "[{'name': 'embedding', 'count': 1, 'parameterBytes': 1000000, "
        "'activationOutputBytes': 1000000}, {'name': 'decoder', 'count': 4, "
        "'parameterBytes': 1000000, 'activationOutputBytes': 1000000}, {'name': 'head', "
        "'count': 1, 'parameterBytes': 1000000, 'activationOutputBytes': 1000000}], "
        "'gpuTypes': []}}",
        ns);
    json_t *list = json_object_get(json_object_get(profile, "spec"), "gpuTypes");
    for (size_t i = 0; i < type_count; i++)
        json_array_append_new(list, json_pack("{s:s, s:i, s:o}", "name", types[i].name,
                                              "memoryMiB", types[i].memory_mib,
                                              "measurements", measurements(factor << i)));
    return profile;
}
