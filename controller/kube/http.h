/* http.h - the transport over HTTPS, by libcurl, and the endpoint of a server. */
#ifndef CONTROLLER_KUBE_HTTP_H
#define CONTROLLER_KUBE_HTTP_H

#include "controller/kube/transport.h"

/* How to reach a server, and our credentials; filled in by auth.h. */
struct http_endpoint {
    char *server;          /* "https://host:port", no trailing slash */
    char *tls_server_name; /* NULL: the host of `server` */
    char *proxy;           /* NULL: none; the environment is never read */
    char *ca_pem;          /* certificates of the cluster's CA; NULL: system store */
    char *client_certificate_pem, *client_key_pem; /* NULL: none */
    char *token;                                   /* bearer token; NULL: none */
    uint64_t generation; /* changes whenever anything above does */
};

/* Asks for the endpoint before each request, so that rotated tokens are used; returns a
 * pointer valid until the next call. */
typedef const struct http_endpoint *http_endpoint_source(void *context);

enum {
    HTTP_CONNECT_TIMEOUT_MS = 10000, /* name, TCP and TLS together */
    HTTP_STALL_S = 30,               /* less than a byte a second for that long */
    HTTP_ERROR_BODY_BYTES = 1 << 20, /* of a reply other than 2xx */
    HTTP_IDLE_CONNECTIONS = 32,      /* kept for reuse */
};

/* The libcurl transport, HTTP/1.1: a stream has its own connection, and the requests
 * share the rest. TLS >= 1.2, peer and host verified always, only https to the server, no
 * redirects, no compression, no proxy or netrc from the environment. A request other than
 * a stream fails when it stalls for 30 s. Only a GET is ever sent twice.
 *
 * A whole URL is refused unless its host is a literal IP address. Such a request has its
 * own connection, which is not reused, may be silent until its time-out, and its 401 does
 * not concern our token. Returns NULL and fills `err` when libcurl cannot be set up. */
struct transport *http_transport_new(http_endpoint_source *source, void *context,
                                     struct het_error *err);
/* Ends the transport_poll that is waiting, or else the next one; may be called from any
 * thread. */
void http_transport_wake(struct transport *transport);
/* Calls `on_unauthorized` after each reply 401, with the `context` of the endpoint source
 * and the generation of the endpoint that the request was made with. */
void http_transport_on_unauthorized(struct transport *transport,
                                    void (*on_unauthorized)(void *context,
                                                            uint64_t generation));

#endif
