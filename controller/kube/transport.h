/* transport.h - an interface for requests and streams to one server; knows nothing of
 * Kubernetes.
 *
 * `struct transport` has three implementations: HTTPS through libcurl (http.h), the
 * embedded API server (api_server.h), and runs of kubectl (kubectl_transport.h). All are
 * driven by one loop in one thread: transport_start never blocks, callbacks run inside
 * transport_poll and nowhere else. */
#ifndef CONTROLLER_KUBE_TRANSPORT_H
#define CONTROLLER_KUBE_TRANSPORT_H

#include "planner/modules.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRANSPORT_DEFAULT_RESPONSE_BYTES = 512 << 20 };

/* Prefix of a path that is a whole URL, for an address other than the server's. */
#define HTTP_OUTSIDE "http://"
bool http_is_outside(const char *path);

struct http_request {
    const char *method;       /* "GET", "POST", "PATCH", "PUT", "DELETE" */
    const char *path;         /* with query, escaped: "/api/v1/pods?limit=500"; or a whole
                                 URL, "http://10.1.0.7:8476/x": to that address instead of
                                 the server, in the clear, without our credentials */
    const char *content_type; /* of the body; NULL without a body */
    const char *body;         /* copied by transport_start */
    size_t body_length;
    int64_t timeout_ms;        /* for the whole exchange; 0: none (a stream) */
    size_t max_response_bytes; /* a longer body fails the request; 0: the default,
                                  512 MiB. For a stream the limit is not used. */
    bool new_connection;       /* do not reuse one (silence probe) */
    const char *user_agent;    /* NULL: "heterotrain" */
};

struct http_reply {
    int status;             /* 0: there was no (complete) reply, `error` says why */
    int64_t retry_after_ms; /* from the Retry-After header; -1: none */
    const char *body;       /* "" for a stream that was delivered through on_data */
    size_t body_length;
    bool maybe_sent; /* with status 0: the server may have acted on the request */
    bool is_refused; /* with status 0: the connection was refused */
    /* With status 0: HET_BAD_INPUT for a body that is too long, HET_IO for the rest. */
    struct het_error error;
};

struct http_handler {
    /* Pieces of a 2xx body as they come. NULL: the body is collected for on_done.
     * Bodies of other statuses are always collected. */
    void (*on_data)(void *context, const char *bytes, size_t length);
    /* Called once, last, unless the request was cancelled. */
    void (*on_done)(void *context, const struct http_reply *reply);
    void *context;
};

struct transport;

struct transport_ops {
    uint64_t (*start)(struct transport *transport, const struct http_request *request,
                      const struct http_handler *handler);
    void (*cancel)(struct transport *transport, uint64_t id);
    int (*poll)(struct transport *transport, struct pollfd *extra, size_t extra_count,
                int64_t timeout_ms);
    void (*free)(struct transport *transport);
};

/* First member of every implementation. */
struct transport {
    const struct transport_ops *ops;
};

/* Starts `request`; returns its id, never 0. Everything is copied. */
uint64_t transport_start(struct transport *transport, const struct http_request *request,
                         const struct http_handler *handler);
/* No callback of `id` runs after this; the id of a finished request is ignored. May be
 * called from inside a callback. */
void transport_cancel(struct transport *transport, uint64_t id);
/* Waits up to `timeout_ms` for something to happen on the transport or on `extra`
 * (poll(2) semantics, revents filled), and runs the callbacks that are due. -1: the
 * transport cannot wait (file descriptors or memory are short); then only `extra` was
 * waited for, at most TRANSPORT_PAUSE_MS, so that a loop around this does not spin. */
#define TRANSPORT_PAUSE_MS 1000
int transport_poll(struct transport *transport, struct pollfd *extra, size_t extra_count,
                   int64_t timeout_ms);
void transport_free(struct transport *transport);

#endif
