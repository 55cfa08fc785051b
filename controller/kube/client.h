/* client.h - the Kubernetes API: paths, verbs and the meaning of replies, over any
 * transport. Asynchronous: a verb returns at once, its callback runs in transport_poll.
 *
 * Retries: 429 and 5xx with Retry-After are waited out (up to 10 times); GET is retried
 * after connection errors; a write is never repeated blindly (its outcome is then
 * KUBE_UNKNOWN and the caller reads back). A client-side limiter holds requests to 50 a
 * second, bursts of 100 (settable); waiting requests start in the order in which they
 * were made, but requests that only report (events, status patches) are overtaken by
 * those that act: pods of a job that lost a node do not wait for the statuses of a
 * thousand others.
 *
 * Every verb returns the id of its request, never 0, for kube_cancel. JSON given to a
 * verb is read before it returns. */
#ifndef CONTROLLER_KUBE_CLIENT_H
#define CONTROLLER_KUBE_CLIENT_H

#include "controller/base/metrics.h"
#include "controller/base/object.h"
#include "controller/kube/transport.h"

#include <jansson.h>

enum {
    KUBE_MAX_RETRIES = 10,            /* of one request, after a Retry-After */
    KUBE_MAX_RECONNECTS = 3,          /* of one GET, after a lost connection */
    KUBE_MAX_RETRY_AFTER_MS = 120000, /* the caller waits for a longer one */
    KUBE_MAX_OVERTAKING = 3,          /* in a row; then the first overtaken one starts */
    KUBE_MAX_PARALLEL = 16,        /* requests under way at once, streams not counted */
    KUBE_TIMEOUT_MS = 65000,       /* of a request: the server's own is 60 s */
    KUBE_PROBE_TIMEOUT_MS = 20000, /* of a probe */
    KUBE_FENCED_TIMEOUT_MS = 5000, /* of a write behind a fence */
};

enum kube_outcome {
    KUBE_OK,
    KUBE_NOT_FOUND,    /* 404; reason "NotFound" if it is the object that is missing, ""
                          if the server does not even know the path */
    KUBE_EXISTS,       /* 409 AlreadyExists */
    KUBE_CONFLICT,     /* 409 Conflict: stale resourceVersion or uid precondition */
    KUBE_EXPIRED,      /* 410 Expired or Gone, in any of its forms */
    KUBE_RV_TOO_LARGE, /* 504 ResourceVersionTooLarge, also by old message text */
    KUBE_INVALID,      /* 400, 422, 413: the object is refused; repeating is useless */
    KUBE_DENIED,       /* 401, 403 */
    KUBE_BUSY,         /* 429, after the retries */
    KUBE_SERVER_ERROR, /* 5xx, after the retries */
    KUBE_UNREACHABLE,  /* no connection, and the request was surely not acted on */
    KUBE_UNKNOWN,      /* a write that may or may not have been done */
};

/* "ok", "not-found", ...: for logs and metrics. */
const char *kube_outcome_name(enum kube_outcome outcome);
/* What a Status object means, from its code, reason and causes. */
enum kube_outcome kube_status_outcome(const json_t *status);

struct kube_result {
    enum kube_outcome outcome;
    int status;       /* HTTP status, 0 without a reply */
    json_t *object;   /* decoded body of a KUBE_OK reply; borrowed, NULL for lists
                         taken raw */
    const char *body; /* raw body of any reply, "" if none */
    size_t body_length;
    const char *reason;  /* Status.reason, "" if none */
    const char *message; /* one line for people: what was attempted and what came back */
    int64_t retry_after_ms; /* -1: none */
};

typedef void kube_callback(void *context, const struct kube_result *result);

struct kube;

/* `transport` is borrowed and must outlive the kube. */
struct kube *kube_new(struct transport *transport, const char *user_agent);
/* Cancels everything. Not from inside a callback. */
void kube_free(struct kube *kube);
void kube_set_rate(struct kube *kube, double requests_per_s, int burst);
/* Measures the duration of each request except streams; NULL: none is measured. */
void kube_set_metrics(struct kube *kube, struct metrics *metrics);
/* Starts requests that the limiter or a Retry-After held back until `now_ms`. Call before
 * polling. */
void kube_step(struct kube *kube, int64_t now_ms);
/* From now on a write (any request except GET) is sent only while `is_open` returns true;
 * it is called right before each write is sent. Until then the write waits, without
 * delaying other requests. A write that is sent ends after KUBE_FENCED_TIMEOUT_MS, here
 * and (query parameter `timeout`) in the server. */
void kube_set_fence(struct kube *kube, bool (*is_open)(void *context), void *context);
/* Writes that have been sent and not yet answered. */
size_t kube_writes_in_flight(const struct kube *kube);
/* When kube_step has something to do next; INT64_MAX if nothing waits, or only for the
 * fence. */
int64_t kube_next_ms(const struct kube *kube);
/* Requests started and not yet answered, streams not counted. */
size_t kube_in_flight(const struct kube *kube);

/* "/api/v1/namespaces/ns/pods/name" (arena-free: caller frees). `ns` NULL or "" for all
 * namespaces or cluster-scoped kinds, `name` NULL for the collection; names are escaped.
 */
char *kube_path(const struct kube_resource *resource, const char *ns, const char *name);

/* `text` as one value of a query or segment of a path; the caller frees. */
char *kube_escape(const char *text);

/* GET /version: the body tells the server's major and minor version. */
uint64_t kube_get_version(struct kube *kube, kube_callback *callback, void *context);
uint64_t kube_get(struct kube *kube, const struct kube_resource *resource, const char *ns,
                  const char *name, kube_callback *callback, void *context);
/* Returns the raw collection, for item-wise decoding (kube_split_list); `query` like
 * "limit=500&resourceVersion=0" or "". */
uint64_t kube_list(struct kube *kube, const struct kube_resource *resource,
                   const char *ns, const char *query, kube_callback *callback,
                   void *context);
/* A pod field unknown to the server is an error (KUBE_INVALID): a user wrote it, and the
 * server would otherwise drop it. */
uint64_t kube_create(struct kube *kube, const struct kube_resource *resource,
                     const char *ns, json_t *object, kube_callback *callback,
                     void *context);
/* PUT of an object that was read before: metadata.resourceVersion is required. */
uint64_t kube_update(struct kube *kube, const struct kube_resource *resource,
                     const char *ns, const char *name, json_t *object,
                     kube_callback *callback, void *context);
/* Server-side apply with force under `field_manager`; `subresource` NULL or "status". */
uint64_t kube_apply(struct kube *kube, const struct kube_resource *resource,
                    const char *ns, const char *name, const char *subresource,
                    const char *field_manager, json_t *object, kube_callback *callback,
                    void *context);
/* An object is a merge patch (application/merge-patch+json), an array a JSON patch
 * (application/json-patch+json). */
uint64_t kube_patch(struct kube *kube, const struct kube_resource *resource,
                    const char *ns, const char *name, const char *subresource,
                    json_t *patch, kube_callback *callback, void *context);
/* Delete with preconditions.uid = `uid` (required). grace_s < 0: the object's own. */
uint64_t kube_delete(struct kube *kube, const struct kube_resource *resource,
                     const char *ns, const char *name, const char *uid, int64_t grace_s,
                     kube_callback *callback, void *context);
/* Whether the server serves the group and version of `resource`: KUBE_OK, or
 * KUBE_NOT_FOUND. */
uint64_t kube_discover(struct kube *kube, const struct kube_resource *resource,
                       kube_callback *callback, void *context);
/* A GET that stays open: `on_data` receives the pieces of its 2xx body as they arrive;
 * `callback` reports the end, KUBE_OK if the server closed it properly. It neither waits
 * nor retries: a 429 is reported at once. `query` as for kube_list, with "watch=1" in
 * it. */
uint64_t kube_watch(struct kube *kube, const struct kube_resource *resource,
                    const char *ns, const char *query,
                    void (*on_data)(void *context, const char *bytes, size_t length),
                    kube_callback *callback, void *context);
/* kube_list at once, over a new connection, without retries (silence probe). */
uint64_t kube_probe(struct kube *kube, const struct kube_resource *resource,
                    const char *ns, const char *query, kube_callback *callback,
                    void *context);
/* Neither callback of `id` runs after this; an id that has ended is ignored. A write that
 * was cancelled may have been done. */
void kube_cancel(struct kube *kube, uint64_t id);

#endif
