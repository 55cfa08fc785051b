/* api_server.h - a Kubernetes API server inside the process, on a virtual clock, for
 * `heterotrain-simulate` and most tests of the controller.
 *
 * It is a struct transport, so clients see no difference. It serves REST paths of the
 * kinds in kinds.c, list with selectors, limit and continue, watch with bookmarks and
 * 410, create, update, merge patch, JSON patch, server-side apply, status subresource,
 * graceful deletion, finalizers, priority classes of pods, and the Status bodies of a
 * real server. Departures: custom resources are not checked against their schemas;
 * managedFields only knows managers that apply; every propagationPolicy is Background;
 * there is no authentication; JSON patch cannot move or copy; eviction and deletion of
 * collections are not served.
 *
 * The time is that of the last api_server_advance, in milliseconds since 1970. Requests
 * are served inside transport_poll, in the order in which they were started; no call
 * sleeps. The same calls with the same seed give the same bytes. */
#ifndef CONTROLLER_SIMULATE_API_SERVER_API_SERVER_H
#define CONTROLLER_SIMULATE_API_SERVER_API_SERVER_H

#include "controller/kube/transport.h"

#include <jansson.h>

/* The time at which an embedded server starts: 2026-01-01T00:00:00Z. */
#define API_SERVER_START_MS INT64_C(1767225600000)

enum { API_SERVER_MINOR = 34 };

struct api_server;

/* A server with the namespaces "default" and "kube-system". `seed` determines the
 * uids. */
struct api_server *api_server_new(uint64_t seed);
void api_server_free(struct api_server *api_server);

/* The version that the server emulates: 1.minor, initially API_SERVER_MINOR. Before 1.27
 * it silently drops pods' scheduling gates, as such servers do. */
void api_server_set_minor(struct api_server *api_server, int minor);
/* Whether the kinds of an API group are served; those of "kueue.x-k8s.io" are not until
 * this is called. */
void api_server_install(struct api_server *api_server, const char *group,
                        bool is_installed);

/* Borrowed; transport_free on it only ends its requests. */
struct transport *api_server_transport(struct api_server *api_server);
/* The client is gone: its requests end without a callback. Writes that had been started
 * but not answered are done or not, as the faults decide (by default not). */
void api_server_disconnect(struct api_server *api_server);

int64_t api_server_now_ms(const struct api_server *api_server);
/* When a watch gets a bookmark or ends, or a held back reply is due; INT64_MAX: never. */
int64_t api_server_next_ms(const struct api_server *api_server);
void api_server_advance(struct api_server *api_server, int64_t now_ms);

/* ---- the administrator's side; kinds are named by their plural: "pods" ---- */

/* Creates or replaces an object (takes the reference), including its status if it has one
 * and fields that the API does not allow to change. Creates its namespace ("default" if
 * it names none) if missing. Errors: HET_BAD_INPUT. */
int api_server_put(struct api_server *api_server, json_t *object, struct het_error *err);
/* Deletes as a user would, with the object's own grace period (grace_s < 0) or another.
 * Errors: HET_NOT_FOUND. */
int api_server_delete(struct api_server *api_server, const char *plural, const char *ns,
                      const char *name, int64_t grace_s, struct het_error *err);
/* Removes the object at once, even if finalizers hold it; does nothing if it is
 * absent. */
void api_server_drop(struct api_server *api_server, const char *plural, const char *ns,
                     const char *name);
/* Borrowed; NULL if there is none. `ns` is "" for kinds without namespaces. */
json_t *api_server_find(const struct api_server *api_server, const char *plural,
                        const char *ns, const char *name);
/* All objects of a kind, in the order of (namespace, name). Borrowed until the next
 * change. */
size_t api_server_count(const struct api_server *api_server, const char *plural);
json_t *api_server_at(const struct api_server *api_server, const char *plural,
                      size_t index);

/* ---- what is no API server ---- */

/* Answers a request for a whole URL, "http://10.1.0.7:8476/checkpoint": the HTTP status,
 * or 0 if the connection is refused; `ret_delay_ms` (initially 0) is the delay of the
 * reply, INT64_MAX: never. */
typedef int api_server_outside(void *context, const char *method, const char *url,
                               int64_t *ret_delay_ms);
/* Sets the callback that answers them; NULL (the default): all are refused. They do not
 * count as requests and meet no faults. */
void api_server_set_outside(struct api_server *api_server, api_server_outside *outside,
                            void *context);

/* ---- looking on ---- */

struct api_server_change {
    const char *plural;
    uint64_t revision;
    int64_t at_ms;
    json_t *before, *after; /* NULL: it was absent, it is gone; borrowed */
    bool by_client;         /* through the transport */
};
typedef void api_server_observer(void *context, const struct api_server_change *change);
/* Called after each change, in order; it may change objects itself. At most 8. */
void api_server_observe(struct api_server *api_server, api_server_observer *observer,
                        void *context);

struct api_server_statistics {
    uint64_t reads, lists, watches; /* requests of the client */
    uint64_t writes;                /* its POST, PUT, PATCH, DELETE */
    uint64_t refused;               /* its writes that were answered 4xx */
    uint64_t faults;                /* injected */
};
struct api_server_statistics api_server_statistics(const struct api_server *api_server);

/* ---- faults ---- */

enum api_server_fault {
    API_SERVER_NO_FAULT,
    API_SERVER_UNREACHABLE,  /* no connection; surely not acted on */
    API_SERVER_LOSE_REQUEST, /* connection lost; not acted on, but the client cannot
                                know */
    API_SERVER_LOSE_REPLY,   /* acted on, then the connection is lost */
    API_SERVER_HANG,         /* no reply until the request's own timeout */
    API_SERVER_ANSWER_500,   /* not acted on */
    API_SERVER_ANSWER_503,   /* with Retry-After: 1 */
    API_SERVER_ANSWER_429,   /* with Retry-After: 1, and a body that is not JSON */
    API_SERVER_ANSWER_409,   /* Conflict; only for PUT, PATCH and DELETE, else 500 */
    API_SERVER_ANSWER_410,   /* Expired; for a watch that is open: an ERROR event */
    API_SERVER_CUT,          /* an open watch: half a line, then the connection is lost */
    /* Lists that lie; any other request is served as usual. */
    API_SERVER_EMPTY_LIST,   /* nothing, at the present revision */
    API_SERVER_PARTIAL_LIST, /* every other object, at the present revision */
    API_SERVER_STALE_LIST,   /* as it was at an earlier revision, which it says */
};

struct api_server_call {
    const char *method; /* "GET", ..., "WATCH" for an event about to be sent */
    const char *path;
    uint64_t ordinal;       /* counts the requests (or events) of this server from 1 */
    uint64_t write_ordinal; /* counts the writes from 1; 0: not a write */
};
/* Chooses the fault of a call. NULL (the default): no faults. */
typedef enum api_server_fault api_server_fault_source(void *context,
                                                      const struct api_server_call *call);
void api_server_set_faults(struct api_server *api_server, api_server_fault_source *source,
                           void *context);
/* Faults of all sorts with a probability of `per_mille`, drawn from `seed`; 0 ends them.
 * Replies and watch events then also come late by up to `latency_ms`. */
void api_server_set_random_faults(struct api_server *api_server, uint64_t seed,
                                  unsigned per_mille, int64_t latency_ms);
/* While held, watches of `plural` (NULL: of every kind) get no events. */
void api_server_hold_watches(struct api_server *api_server, const char *plural,
                             bool held);
/* Forgets all history: a client that has not seen all of it gets 410. */
void api_server_compact(struct api_server *api_server);

#endif
