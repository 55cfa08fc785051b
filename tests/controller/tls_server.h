/* tls_server.h - an HTTPS server on a loopback port, in threads of the test, with a CA of
 * its own. What it answers is in the path:
 *
 *   /echo           what was asked, as text: "METHOD path\nhost: ...\n" and so on
 *   /status/N       that status, with the body "status N" and, for 429, Retry-After: 7
 *   /retry-after/T  503 with that Retry-After
 *   /big/N          N bytes
 *   /big-unsaid/N   the same without a Content-Length
 *   /chunks/N       N chunks "chunk i\n", 10 ms apart
 *   /chunks-cut/N   the same, but the connection ends without the last chunk
 *   /half           half of the body that was announced
 *   /hang           no answer
 *   /silent-stream  headers and one chunk, then nothing
 *   /close          the connection is closed in place of an answer
 *   /reset-reused   closed if it is not the first request on its connection
 *   /redirect       302 to /echo */
#ifndef TESTS_TLS_SERVER_H
#define TESTS_TLS_SERVER_H

#include <stdbool.h>

struct tls_server;

struct tls_server_options {
    const char *names;   /* "DNS:localhost,IP:127.0.0.1" */
    bool wants_client;   /* a certificate signed by the same CA */
    int highest_version; /* TLS1_1_VERSION, ...; 0: any */
};

struct tls_server *tls_server_new(const struct tls_server_options *options);
void tls_server_free(struct tls_server *server);

int tls_server_port(const struct tls_server *server);
/* PEM texts; borrowed. */
const char *tls_server_ca(const struct tls_server *server);
const char *tls_server_client_certificate(const struct tls_server *server);
const char *tls_server_client_key(const struct tls_server *server);

int tls_server_connections(const struct tls_server *server);
int tls_server_requests(const struct tls_server *server);

#endif
