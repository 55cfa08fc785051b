/* storage.h - what the embedded server stores: objects by (kind, namespace, name), and
 * their changes, each with a revision from one counter, as in etcd. Knows nothing of
 * requests. Objects are shared by reference and never changed. */
#ifndef CONTROLLER_SIMULATE_API_SERVER_STORAGE_H
#define CONTROLLER_SIMULATE_API_SERVER_STORAGE_H

#include "controller/simulate/api_server/kinds.h"

enum { STORAGE_MAX = 20000 }; /* changes kept; older ones are compacted away */

struct storage_change {
    uint64_t revision;
    int64_t at_ms;
    const struct kind *kind;
    json_t *before; /* NULL: the object is new */
    json_t *after;  /* NULL: the object is gone */
    json_t *object; /* what a watcher is shown: `after`, or the last state with the
                       revision of its end */
};

struct storage;

struct storage *storage_new(void);
void storage_free(struct storage *history);

/* Of the latest change; 1 when there was none. */
uint64_t storage_revision(const struct storage *history);
/* The newest revision whose changes are no longer known: a client that has seen it can
 * continue from there, one that has seen less cannot. */
uint64_t storage_compacted(const struct storage *history);
/* Forgets the changes up to `revision`. */
void storage_compact(struct storage *history, uint64_t revision);
/* The change of `revision`, compacted < revision <= latest. */
const struct storage_change *storage_change(const struct storage *history,
                                            uint64_t revision);

/* Creates or replaces the object of that name: takes `object`, sets its resourceVersion,
 * returns it (borrowed). */
json_t *storage_put(struct storage *history, const struct kind *kind, json_t *object,
                    int64_t now_ms);
/* Removes the object of that name; `object` (taken) is its last state. */
json_t *storage_remove(struct storage *history, const struct kind *kind, json_t *object,
                       int64_t now_ms);

/* NULL if there is none; borrowed. `ns` is "" for kinds without namespaces. */
json_t *storage_find(const struct storage *history, const struct kind *kind,
                     const char *ns, const char *name);
/* In the order of (namespace, name). */
size_t storage_count(const struct storage *history, const struct kind *kind);
json_t *storage_at(const struct storage *history, const struct kind *kind, size_t index);
/* The objects of `kind` as they were at `revision` (>= compacted), in the same order: a
 * new array. */
json_t *storage_list_at(const struct storage *history, const struct kind *kind,
                        uint64_t revision);

#endif
