/* watch.h - keeps one collection of the API server in the store: list in pages, watch
 * from its resourceVersion, bookmarks, 410 in its three forms, back-off with jitter, and
 * a probe after silence. Calls back on every change; knows no particular kind.
 *
 * A list is compared with what the store holds of the kind in the namespace, so a kind
 * and namespace have only one watch. A list that would remove more than a fifth of the
 * objects (and more than five), or more than half, is believed only if a second one from
 * quorum, 10 s later, confirms it: it lacks the same objects, apart from fewer than would
 * themselves be doubted. If it does not, it becomes the list in doubt, and the next one
 * decides. */
#ifndef CONTROLLER_KUBE_WATCH_H
#define CONTROLLER_KUBE_WATCH_H

#include "controller/base/json_scan.h"
#include "controller/base/object_store.h"
#include "controller/kube/client.h"
#include "controller/kube/decode.h"

enum {
    WATCH_PAGE_SIZE = 500,
    WATCH_TIMEOUT_MIN_S = 300, /* how long the server keeps one watch */
    WATCH_TIMEOUT_MAX_S = 600,
    WATCH_SHORT_MS = 1000,        /* ended sooner without an event: an error */
    WATCH_BACKOFF_FIRST_MS = 800, /* each plus up to the same again as jitter */
    WATCH_BACKOFF_LAST_MS = 30000,
    WATCH_BACKOFF_RESET_MS = 120000,
    WATCH_INTERNAL_ERROR_MS = 30000, /* 500 on a watch, before listing again */
    WATCH_MAX_FRAME_BYTES = 16 << 20,
    WATCH_SILENCE_MIN_MS = 75000,
    WATCH_SILENCE_MAX_MS = 90000,
    WATCH_CONFIRM_MS = 10000, /* before a doubted list is read again */
    WATCH_MASS_DELETE_PERCENT = 20,
    WATCH_MASS_DELETE_LEAST = 5,
    WATCH_MAX_PAGES = 20000, /* of one list: ten million objects */
};

struct watch;

struct watch_config {
    const struct kube_resource *resource;
    const char *ns;             /* "" : all namespaces */
    const char *label_selector; /* NULL: none */
    const char *field_selector; /* NULL: none */
    /* Returns the part of an object to keep, as a new reference (json_incref(object):
     * all; NULL: refuses the object). NULL: keeps all. */
    json_t *(*trim)(json_t *object);
    /* A digest of an object's text, equal only if `trim` keeps the same apart from the
     * resourceVersion; 0: not known. An event with the digest of the held object changes
     * nothing and is not decoded. NULL: all events are decoded. */
    uint64_t (*digest)(const char *text, size_t length);
    /* Called each time an object is quarantined, with the first reason, and with `why`
     * NULL when an object that was not held is deleted. `text` is the object's. May be
     * NULL. `context` is that of watch_change. */
    void (*on_quarantine)(void *context, const struct kube_identity *identity,
                          struct json_span text, const char *why);
    /* Called when a list has been taken into the store; may be NULL. */
    void (*on_listed)(void *context, const struct watch *watch);
};

/* An object that cannot be read, or that `trim` refuses, is quarantined: logged, counted,
 * and the version held before stays.
 *
 * `before` is NULL for a new object, `after` for a removed one; both are borrowed. An
 * object recreated under its name is removed first. A removal missed by the watch is
 * reported with the last version seen. */
typedef void watch_change(void *context, const struct kube_resource *resource,
                          json_t *before, json_t *after);

/* Nothing is requested before the first watch_step. Jitter comes from `seed`. The strings
 * of `config` must outlive the watch. */
struct watch *watch_new(struct kube *kube, struct store *store,
                        const struct watch_config *config, uint64_t seed,
                        watch_change *on_change, void *context);
/* Not from inside a callback. */
void watch_free(struct watch *watch);

/* Starts and restarts requests that are due at `now_ms`, and notices silence. */
void watch_step(struct watch *watch, int64_t now_ms);
/* When watch_step has something to do next; INT64_MAX if it waits for a reply. */
int64_t watch_next_ms(const struct watch *watch);
/* Whether one complete list has been taken into the store. Never becomes false again. */
bool watch_is_synced(const struct watch *watch);
/* Makes sure that everything written before this call is known before anything is
 * decided: lists the collection again from quorum, whatever is under way. (Versions from
 * caches and watches prove nothing: they are not comparable with those of other kinds,
 * and a stale cache cannot tell that there was no newer one.) */
void watch_require_fresh(struct watch *watch);
/* Whether that list has been taken; true if none was required. */
bool watch_is_fresh(const struct watch *watch);

/* Whether the list just taken contains the object, quarantined or not. Only inside
 * on_listed. */
bool watch_has_listed(const struct watch *watch, const char *ns, const char *name);
/* The version up to which the store knows every change in the collection; "" before the
 * first list. Comparable with the versions of its objects. Valid until the next call of
 * the watch or the transport. */
const char *watch_version(const struct watch *watch);

struct watch_statistics {
    uint64_t lists;   /* taken into the store */
    uint64_t watches; /* started */
    uint64_t events;  /* with an object: added, modified, deleted */
    uint64_t bookmarks;
    uint64_t expired; /* 410, in any form */
    uint64_t probes;
    uint64_t quarantined; /* objects */
    uint64_t unchanged;   /* events that were not decoded */
    uint64_t failures;    /* anything that led to a back-off */
    uint64_t doubted;     /* lists that waited for confirmation */
};
struct watch_statistics watch_statistics(const struct watch *watch);

#endif
