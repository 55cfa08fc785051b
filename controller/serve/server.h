/* server.h - the operator's server for HTTP/1.1 and WebSocket, with or without TLS
 * (libwebsockets, OpenSSL). It knows listeners, routes and bounds; the caller provides
 * the content.
 *
 * A thread of its own serves all listeners. No client can delay another thread, or this
 * one for longer than a handler takes:
 *
 *   - at most SERVER_CONNECTIONS are open; a further one replaces the one idle for
 *     longest, so that idle ones never keep a probe out;
 *   - a request's head must arrive within header_s of its first byte, everything else,
 *     including the answer, within request_s; a connection is idle for at most idle_s;
 *   - routes bound their bodies, and SERVER_BODIES_BYTES all bodies together;
 *   - nothing is read ahead of the request that is being answered;
 *   - the thread has a lower priority, and SERVER_CPU_PERCENT of one processor.
 *
 * A request with a body must be the only one of its connection.
 *
 * Refused and closed: transfer codings, a body without a length, HTTP/2, CONNECT, a
 * WebSocket of another origin than the page's.
 *
 * A foreign page may make its own host name resolve to us and then read, as from its own
 * origin, whatever its viewer can reach (DNS rebinding). So the Host of a request must be
 * an address, "localhost" or one of the configured names, which no foreign page can have
 * as its origin. */
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
    SERVER_HEADER_BYTES = 8192,     /* of all headers of a request; more closes the
                                       connection */
    SERVER_BODIES_BYTES = 32 << 20, /* of all requests at a time */
    SERVER_CPU_PERCENT = 50,        /* of one processor, for the thread */
};

struct server_request {
    uint64_t id;               /* for server_answer */
    const char *method;        /* "GET", "POST", "PUT" */
    const char *path, *query;  /* unescaped; "" without a query */
    const char *content_type;  /* "" if none was given */
    const char *authorization; /* the header; "" without */
    const char *body;          /* ends with a NUL that is not counted */
    size_t body_length;
    bool is_loopback; /* the client is a process of this host (or of its pod) */
};

struct server_reply {
    int status;
    const char *content_type; /* static; NULL: "text/plain; charset=utf-8" */
    const char *headers;      /* static; additional headers, each with its "\r\n"; may be
                            NULL */
    char *body;               /* from malloc, taken by the server; NULL: none */
    size_t body_length;
};

/* Answers a request, in the server's thread. True: `ret_reply` is the answer. False:
 * server_answer or server_resume is or will be called. The strings of the request are
 * valid until this returns. */
typedef bool server_handler(void *context, const struct server_request *request,
                            struct server_reply *ret_reply);

/* One method of one path; paths are compared literally. */
struct server_route {
    const char *method, *path;
    server_handler *handler;
    void *context;
    size_t max_body_bytes;
    /* A WebSocket instead (GET; without a handler): each client gets the newest version
     * of this text of the feed as one message, and each later one that it is fast enough
     * for. Clients send nothing. */
    const char *feed;
};

struct server_listener {
    const char *address; /* "0.0.0.0:8080", "[::]:8080", "127.0.0.1:0" (any free port) */
    const struct server_route *routes;
    size_t route_count;
    /* For clients that verify the certificate: they refuse a wrong name themselves. */
    bool answers_any_host;
    /* PEM, the server's certificate first, and its key: TLS 1.2 and 1.3. NULL: none. */
    const char *certificate_pem, *key_pem;
};

struct server_config {
    const struct server_listener
        *listeners; /* they and their routes outlive the server */
    size_t listener_count;
    const char *const *hosts; /* names allowed as Host; they outlive the server */
    size_t host_count;
    struct published *feed;          /* NULL: no route has one */
    struct metrics *metrics;         /* may be NULL */
    int header_s, request_s, idle_s; /* 0: as above */
};

struct server;

/* Listens and starts the thread. Errors: HET_BAD_INPUT for an invalid address or
 * certificate, HET_IO when listening fails. */
struct server *server_new(const struct server_config *config, struct het_error *err);
/* Closes all connections and ends the thread. */
void server_free(struct server *server);
/* The port of listener `index`. */
int server_port(const struct server *server, size_t index);

/* Answers a request whose handler returned false; from any thread. Ignored if the client
 * has gone. */
void server_answer(struct server *server, uint64_t id, const struct server_reply *reply);
/* Calls the handler that returned false again with the same request; from any thread. */
void server_resume(struct server *server, uint64_t id);
/* Presents this certificate to new connections; from any thread. Errors: HET_BAD_INPUT;
 * the old one then stays. */
int server_set_certificate(struct server *server, size_t listener,
                           const char *certificate_pem, const char *key_pem,
                           struct het_error *err);

/* Splits "ADDRESS:PORT"; the caller frees `*ret_host`. Errors: HET_BAD_INPUT. */
int server_parse_address(const char *text, char **ret_host, int *ret_port,
                         struct het_error *err);

#endif
