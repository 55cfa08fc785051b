/* authorization.h - lets those read a route whom the API server knows by their bearer
 * token (TokenReview) and gives the right to (SubjectAccessReview of the verb "get" on
 * the path as nonResourceURL). What it said is kept for a while, by the digest of the
 * token: AUTHORIZATION_ALLOWED_MS, AUTHORIZATION_REFUSED_MS, of AUTHORIZATION_KEPT tokens
 * at most; so that long a right outlives its end.
 *
 * Without a token, or with one that the API server does not know: 401. Without the right:
 * 403. Whatever else goes wrong, an API server that does not answer within
 * AUTHORIZATION_MS among it: 503. Only who waits for the answer waits: the server's
 * thread and the loop go on. */
#ifndef CONTROLLER_SERVE_AUTHORIZATION_H
#define CONTROLLER_SERVE_AUTHORIZATION_H

#include "controller/kube/client.h"
#include "controller/serve/server.h"

enum {
    AUTHORIZATION_KEPT = 64,
    AUTHORIZATION_WAITING = 16,
    AUTHORIZATION_MS = 4000,
    AUTHORIZATION_ALLOWED_MS = 60000,
    AUTHORIZATION_REFUSED_MS = 10000,
    AUTHORIZATION_REQUESTS_PER_S = 20, /* to the API server; bursts of as many */
};

struct authorization_config {
    const struct server_route *route;   /* what is protected: a GET without a body */
    struct kube *kube;                  /* the loop's; without a fence */
    int64_t (*clock_ms)(void *context); /* that of authorization_step; any thread asks */
    void (*wake)(void *context);        /* so that the loop turns; from any thread */
    void *context;
};

struct authorization;

struct authorization *authorization_new(const struct authorization_config *config);
/* After the server, and before the kube. */
void authorization_free(struct authorization *authorization);

/* In place of the one that is protected, for a listener with TLS. */
const struct server_route *authorization_route(const struct authorization *authorization);
/* Who answers; before the first step. */
void authorization_set_server(struct authorization *authorization, struct server *server);

void authorization_step(struct authorization *authorization, int64_t now_ms);
/* When a request has waited long enough; INT64_MAX: none waits. */
int64_t authorization_next_ms(const struct authorization *authorization);

#endif
