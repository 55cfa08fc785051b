/* objects.h - objects as the API server would send them, for tests. */
#ifndef TESTS_OBJECTS_H
#define TESTS_OBJECTS_H

#include "controller/base/object.h"
#include "planner/modules.h"

/* A new reference. `owner_uid` NULL: no owner. For cluster-scoped kinds `ns` is "". */
json_t *make_object(const struct kube_resource *resource, const char *ns,
                    const char *name, const char *uid, int64_t version,
                    const char *owner_uid);
/* The same as text; the caller frees. */
char *make_object_text(const struct kube_resource *resource, const char *ns,
                       const char *name, const char *uid, int64_t version);
/* Gives the pod template of `job` what Pod Security restricted asks for, where it says
 * nothing itself. Returns `job`. */
json_t *make_restricted(json_t *job);
/* ModelProfile "small" of `ns`, of three layer groups, measured on the first `type_count`
 * of A100-SXM4-40GB, V100-SXM2-16GB and Tesla-T4; each takes twice as long as the one
 * before it, and the first `factor` ms for a forward pass of one sample. */
json_t *make_profile(const char *ns, size_t type_count, int factor);

#endif
