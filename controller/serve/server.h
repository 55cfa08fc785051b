/* server.h - what the operator answers over HTTP/1.1 and WebSocket, in the clear or over
 * TLS (libwebsockets, OpenSSL). It knows listeners, routes and bounds; what is served is
 * its caller's.
 *
 * One thread of its own serves all listeners, and nothing that a client does can hold up
 * another thread, or this one for longer than a handler takes:
 *
 *   - SERVER_CONNECTIONS at a time; a further one takes the place of the one that has
 *     been idle for longest, so that idle ones never keep a probe out;
 *   - a request's head is there within header_s of its first byte, everything else,
 *     the answer included, within request_s; a connection is idle for idle_s at most;
 *   - bodies as long as their route allows, all together SERVER_BODIES_BYTES;
 *   - nothing is read ahead of the request that is being answered;
 *   - the thread has a lower priority, and SERVER_CPU_PERCENT of one processor.
 *
 * A request with a body is the first of its connection and the last.
 *
 * Refused and closed: transfer codings, a body without a length, HTTP/2, CONNECT, a
 * WebSocket of another origin than the page's.
 *
 * A page that somebody else serves under a name of theirs may have that name lead to us,
 * and then read, as of its own origin, what whoever looks at it can reach (DNS
 * rebinding). So the Host of a request is an address, "localhost" or one of the
 * configured names: to an address leads no name, and what is called so was served from
 * there. */
#ifndef CONTROLLER_SERVE_SERVER_H
#define CONTROLLER_SERVE_SERVER_H

#include "controller/base/metrics.h"
#include "controller/serve/published.h"

#include "planner/modules.h"

enum {
    SERVER_CONNECTIONS = 256,
    SERVER_WEBSOCKETS = 64, /* of them */
    SERVER_LISTENERS = 4,
    SERVER_HEADER_S = 10,
    SERVER_REQUEST_S = 30,
    SERVER_IDLE_S = 90,
    SERVER_HEADER_BYTES = 8192,     /* of all headers of a request; more closes it */
    SERVER_BODIES_BYTES = 32 << 20, /* of all requests at a time */
    SERVER_CPU_PERCENT = 50,        /* of one processor, for the thread */
};

struct server_request {
    uint64_t id;               /* for server_answer */
    const char *method;        /* "GET", "POST", "PUT" */
    const char *path, *query;  /* unescaped; "" without a query */
    const char *content_type;  /* "" if none was said */
    const char *authorization; /* the header; "" without */
    const char *body;          /* ends with a NUL that does not count */
    size_t body_length;
    bool is_loopback; /* the client is a process of this host (or of its pod) */
};

struct server_reply {
    int status;
    const char *content_type; /* static; NULL: "text/plain; charset=utf-8" */
    const char *headers; /* static; further ones, each with its "\r\n"; may be NULL */
    char *body;          /* from malloc, taken by the server; NULL: none */
    size_t body_length;
};

/* Answers a request, in the server's thread: true, and `ret_reply` is the answer; false:
 * server_answer or server_resume is or will be called. The strings of the request live until this
 * returns. */
typedef bool server_handler(void *context, const struct server_request *request,
                            struct server_reply *ret_reply);

/* One method of one path; paths are compared as they are. */
struct server_route {
    const char *method, *path;
    server_handler *handler;
    void *context;
    size_t max_body_bytes;
    /* A WebSocket instead (GET; without a handler): each client gets the newest version
     * of this text of the feed as one message, and every later one, but for those that
     * it was too slow for. It has nothing to say. */
    const char *feed;
};

struct server_listener {
    const char *address; /* "0.0.0.0:8080", "[::]:8080", "127.0.0.1:0" (any free port) */
    const struct server_route *routes;
    size_t route_count;
    /* For clients that look at a certificate: a name that is not its own is refused by
     * them. */
    bool answers_any_host;
    /* PEM, the server's certificate first, and its key: TLS 1.2 and 1.3. NULL: none. */
    const char *certificate_pem, *key_pem;
};

struct server_config {
    const struct server_listener
        *listeners; /* they and their routes outlive the server */
    size_t listener_count;
    const char *const *hosts; /* names that it may be called by; they outlive it */
    size_t host_count;
    struct published *feed;          /* NULL: no route has one */
    struct metrics *metrics;         /* may be NULL */
    int header_s, request_s, idle_s; /* 0: as above */
};

struct server;

/* Listens, and starts the thread. Errors: HET_BAD_INPUT for an address or certificate
 * that is none, HET_IO when it cannot be listened on. */
struct server *server_new(const struct server_config *config, struct het_error *err);
/* Closes all connections and ends the thread. */
void server_free(struct server *server);
/* Where listener `index` listens. */
int server_port(const struct server *server, size_t index);

/* Answers a request whose handler returned false; from any thread. A client that has gone
 * meanwhile is not missed. */
void server_answer(struct server *server, uint64_t id, const struct server_reply *reply);
/* Has the handler that returned false asked once more, with the same request; from any
 * thread. */
void server_resume(struct server *server, uint64_t id);
/* Connections from now on are met with this certificate; from any thread. Errors:
 * HET_BAD_INPUT, and the old one stays. */
int server_set_certificate(struct server *server, size_t listener,
                           const char *certificate_pem, const char *key_pem,
                           struct het_error *err);

/* "ADDRESS:PORT" in its parts; the caller frees. Errors: HET_BAD_INPUT. */
int server_parse_address(const char *text, char **ret_host, int *ret_port,
                         struct het_error *err);

#endif
