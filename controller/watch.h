/* watch.h - keeps one collection of the API server in the store: list in pages, watch
 * from its resourceVersion, bookmarks, 410 in its three forms, back-off with jitter, and
 * a probe after silence. client-faults-security.md a.1 to a.14 and a.21, a.22 are the
 * specification; each rule is cited where it is implemented. Calls back with every
 * change; knows no kind in particular. */
#ifndef CONTROLLER_WATCH_H
#define CONTROLLER_WATCH_H

#include "controller/store.h"

struct watch_config {
    const struct kube_resource *resource;
    const char *ns;             /* "" : all namespaces */
    const char *label_selector; /* NULL: none */
    const char *field_selector; /* NULL: none */
    /* What to keep of an object: returns a new reference (json_incref(object) to keep
     * all, NULL to refuse the object). NULL: keep all. */
    json_t *(*trim)(json_t *object);
};

/* `before` is NULL for a new object, `after` for a removed one; both are borrowed. */
typedef void watch_change(void *context, const struct kube_resource *resource,
                          json_t *before, json_t *after);

struct watch;

/* Nothing is requested before the first watch_step. Jitter comes from `seed`. The strings
 * of `config` must outlive the watch. */
struct watch *watch_new(struct kube *kube, struct store *store,
                        const struct watch_config *config, uint64_t seed,
                        watch_change *on_change, void *context);
void watch_free(struct watch *watch);

/* Starts and restarts requests that are due at `now_ms`, and notices silence. */
void watch_step(struct watch *watch, int64_t now_ms);
int64_t watch_next_ms(const struct watch *watch);
/* Whether one complete list has been taken into the store. Never becomes false again. */
bool watch_is_synced(const struct watch *watch);

struct watch_statistics {
    uint64_t lists, watches, events, bookmarks, expired, probes, quarantined, failures;
};
struct watch_statistics watch_statistics(const struct watch *watch);

#endif
