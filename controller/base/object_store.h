/* object_store.h - the watched objects of the API server: immutable JSON objects by
 * (resource, namespace, name), with an index by controller owner. Knows only keys and
 * json_t. A caller that keeps an object past the call takes a reference and never changes
 * it.
 *
 * Removed objects are freed; the last 4096 removed uids are remembered. Two pointers stay
 * allocated for each object of a kind's peak count. */
#ifndef CONTROLLER_BASE_OBJECT_STORE_H
#define CONTROLLER_BASE_OBJECT_STORE_H

#include "controller/base/object.h"
#include "planner/modules.h"

struct store;

struct store *store_new(void);
void store_free(struct store *store);

/* Takes a reference to `object`. An object older than the one held under its name, or as
 * old and with the same uid, is ignored (watch events may arrive after the reply to our
 * own write); so is one without a name. Returns true if the store changed. */
bool store_put(struct store *store, const struct kube_resource *resource, json_t *object);
/* Like store_put, but regardless of versions and even if its uid was removed: for a list
 * known to be true after the server's history went back (etcd restored). */
bool store_replace(struct store *store, const struct kube_resource *resource,
                   json_t *object);
/* The number of removals so far. */
uint64_t store_removals(const struct store *store);
/* Like store_put, for the reply to a GET that was sent when store_removals was `sent_at`:
 * a uid removed before then was removed in error (by a wrong list) and is taken again;
 * one removed since may really be gone and is not. */
bool store_put_read(struct store *store, const struct kube_resource *resource,
                    json_t *object, uint64_t sent_at);
/* Removes the object if its uid is `uid` (or `uid` is NULL). A later store_put of a
 * removed uid is ignored: a late reply must not bring it back (the last 4096 removed uids
 * are remembered). Returns true if the store changed. */
bool store_remove(struct store *store, const struct kube_resource *resource,
                  const char *ns, const char *name, const char *uid);
/* The same for an object that was gone at resourceVersion `version`. It may only have
 * left a watch's selector and may come back: a later store_put of its uid is ignored
 * unless it is newer than `version`. */
bool store_remove_at(struct store *store, const struct kube_resource *resource,
                     const char *ns, const char *name, const char *uid,
                     const char *version);

/* NULL if absent; borrowed. `ns` "" for cluster-scoped kinds. */
json_t *store_find(const struct store *store, const struct kube_resource *resource,
                   const char *ns, const char *name);

/* Objects of one kind in the order of (namespace, name): 0 .. count-1. The index is valid
 * until the next put or remove. */
size_t store_count(const struct store *store, const struct kube_resource *resource);
json_t *store_at(const struct store *store, const struct kube_resource *resource,
                 size_t index);

/* Objects of one kind whose controller owner has `uid`, in the order of (namespace,
 * name); fills `ret_objects` (borrowed, allocated in `arena`), returns their count. */
size_t store_find_owned(const struct store *store, const struct kube_resource *resource,
                        const char *uid, struct het_arena *arena, json_t ***ret_objects);

/* The number of objects, of all kinds. */
size_t store_total(const struct store *store);

#endif
