/* verbs.h - the writing verbs: what an API server does to an object between the request
 * and etcd. Knows no paths and no transport.
 *
 * Each verb returns the HTTP status and a new reference to the body in `ret_body`: the
 * object, or a metav1.Status. A write that changes nothing makes no revision. */
#ifndef CONTROLLER_SIMULATE_API_SERVER_VERBS_H
#define CONTROLLER_SIMULATE_API_SERVER_VERBS_H

#include "controller/simulate/api_server/storage.h"

struct verbs {
    struct storage *history;
    uint64_t seed, uids; /* determine the uids, so a run can be repeated */
    int64_t now_ms;
    int minor; /* of the emulated version, 1.minor */
};

struct target {
    const struct kind *kind;
    const char *ns, *name;   /* "" where there is none */
    const char *subresource; /* "" or "status" */
    bool dry_run;
};

enum patch_type { PATCH_MERGE, PATCH_OPERATIONS, PATCH_APPLY };

struct patch {
    enum patch_type type;
    json_t *body;
    const char *manager; /* PATCH_APPLY */
    bool force;
};

/* Takes ownership of `object`. */
int verbs_create(struct verbs *registry, const struct target *target, json_t *object,
                 json_t **ret_body);
int verbs_update(struct verbs *registry, const struct target *target, json_t *object,
                 json_t **ret_body);
int verbs_patch(struct verbs *registry, const struct target *target,
                const struct patch *patch, json_t **ret_body);
/* `options`: metav1.DeleteOptions, may be NULL. A pod on a node stays, with a
 * deletionTimestamp, until it is deleted with no grace period; finalizers hold every
 * object. */
int verbs_delete(struct verbs *registry, const struct target *target,
                 const json_t *options, json_t **ret_body);

/* For building clusters, like an administrator with access to etcd: creates or replaces
 * the whole `object` (takes ownership), including status, without rules on changes. Fills
 * in missing metadata and creates the namespace if missing. */
int verbs_put(struct verbs *registry, json_t *object, json_t **ret_body);
/* Removes the object at once, even if finalizers hold it. */
void verbs_drop(struct verbs *registry, const struct kind *kind, const char *ns,
                const char *name);

#endif
