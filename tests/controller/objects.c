#include "tests/controller/objects.h"

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

char *make_object_text(const struct kube_resource *resource, const char *ns,
                       const char *name, const char *uid, int64_t version)
{
    json_auto_t *object = make_object(resource, ns, name, uid, version, NULL);
    char *text = json_dumps(object, JSON_COMPACT);
    assert(text);
    return text;
}
