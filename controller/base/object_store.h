/* object_store.h - what the API server holds, as far as we watch it: immutable JSON
 * objects by (resource, namespace, name), and an index by controller owner. Knows keys
 * and json_t only. Whoever keeps an object past the call takes a reference; nobody
 * changes one.
 *
 * What is removed is freed, but for its uid, of which the last 4096 are remembered; of
 * the most objects of a kind that there were at one time, two pointers each stay. */
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
/* Like store_put, but whatever the versions say and even if its uid was removed: for a
 * list known to be the truth after the server's history went back (etcd restored). */
bool store_replace(struct store *store, const struct kube_resource *resource,
                   json_t *object);
/* Counts what was removed so far. */
uint64_t store_removals(const struct store *store);
/* Like store_put, for the reply to a GET that was sent when store_removals was `sent_at`:
 * a uid that had been removed by then was removed in error (a list that lied), and is
 * taken again; one that was removed since may really be gone, and is not. */
bool store_put_read(struct store *store, const struct kube_resource *resource,
                    json_t *object, uint64_t sent_at);
/* Removes the object if its uid is `uid` (or `uid` is NULL). A later store_put of a
 * removed uid is ignored: a late reply must not raise the dead (the last 4096 removed
 * uids are remembered). Returns true if the store changed. */
bool store_remove(struct store *store, const struct kube_resource *resource,
                  const char *ns, const char *name, const char *uid);
/* The same for an object that was gone at resourceVersion `version`, so that one that
 * only left a watch's selector may come back: a later store_put of its uid is ignored
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

/* Bytes are not counted; objects are. */
size_t store_total(const struct store *store);

#endif
