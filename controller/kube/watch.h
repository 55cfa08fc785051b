/* watch.h - keeps one collection of the API server in the store: list in pages, watch
 * from its resourceVersion, bookmarks, 410 in its three forms, back-off with jitter, and
 * a probe after silence. Calls back with every change; knows no kind in particular.
 *
 * A list is compared with what the store holds of the kind in the namespace, so there is
 * one watch for a kind and namespace. A list that would remove more than a fifth of that
 * (and five), or more than half, is believed only when a second one from quorum says the
 * same 10 s later: what it lacks was lacking before, but for less than would be
 * doubted by itself. If it says something else, it is the one in doubt, and the next
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
    WATCH_BACKOFF_FIRST_MS = 800, /* each with as much again as jitter */
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
    /* What to keep of an object: returns a new reference (json_incref(object) to keep
     * all, NULL to refuse the object). NULL: keep all. */
    json_t *(*trim)(json_t *object);
    /* A number of an object's text that is the same only if `trim` keeps the same of it
     * besides the resourceVersion; 0: it cannot tell. An event with the number of the
     * object that is held changes nothing and is not decoded. NULL: all are. */
    uint64_t (*digest)(const char *text, size_t length);
    /* Called each time that an object is quarantined, for the first reason, and with
     * `why` NULL when one is deleted that was not held; NULL: no one listens. `text` is
     * the object's. `context` is that of watch_change. */
    void (*on_quarantine)(void *context, const struct kube_identity *identity,
                          struct json_span text, const char *why);
    /* Called when a list has been taken into the store; NULL: no one listens. */
    void (*on_listed)(void *context, const struct watch *watch);
};

/* An object that cannot be read, or that `trim` refuses, is quarantined: logged, counted,
 * and the version held before stays.
 *
 * `before` is NULL for a new object, `after` for a removed one; both are borrowed.
 * An object made again under its name is removed first. What was removed while we did not
 * look is told with the last version seen. */
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
/* What others wrote before this call must be known before anything is decided: the
 * collection is listed anew from quorum, whatever is under way. (The versions that caches
 * and watches show are no proof: those of other kinds can not be compared with them, and
 * a cache that has not heard of a version for long cannot tell that there was none.) */
void watch_require_fresh(struct watch *watch);
/* Whether that has been done; true if it was never required. */
bool watch_is_fresh(const struct watch *watch);

/* Whether the list that was just taken has that object, be it quarantined. Only inside
 * on_listed. */
bool watch_has_listed(const struct watch *watch, const char *ns, const char *name);
/* The version up to which the store has heard of every change in the collection; ""
 * before the first list. Comparable with the versions of its objects. Valid until the
 * next call of the watch or the transport. */
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
    uint64_t failures;    /* whatever led to a back-off */
    uint64_t doubted;     /* lists that waited to be confirmed */
};
struct watch_statistics watch_statistics(const struct watch *watch);

#endif
