/* authorization.h - protects a route: the API server must know the client's bearer token
 * (TokenReview) and grant its user the right to read the route (SubjectAccessReview of
 * the verb "get" on the path as nonResourceURL). Answers are cached by token digest for
 * AUTHORIZATION_ALLOWED_MS or AUTHORIZATION_REFUSED_MS, for at most AUTHORIZATION_KEPT
 * tokens, so a revoked right may last that long.
 *
 * Without a token, or with one unknown to the API server: 401. Without the right: 403.
 * Any other failure, including no answer within AUTHORIZATION_MS: 503. Only the request
 * waits for the answer; the server's thread and the loop continue. */
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
    AUTHORIZATION_REQUESTS_PER_S = 20, /* to the API server, with bursts of the same
                                          size */
};

struct authorization_config {
    const struct server_route *route;   /* the protected route: a GET without a body */
    struct kube *kube;                  /* the loop's; without a fence */
    int64_t (*clock_ms)(void *context); /* the clock of authorization_step; called from
                                           any thread */
    void (*wake)(void *context);        /* wakes the loop; called from any thread */
    void *context;
};

struct authorization;

struct authorization *authorization_new(const struct authorization_config *config);
/* Free it after the server and before the kube. */
void authorization_free(struct authorization *authorization);

/* Replaces the protected route, for a listener with TLS. */
const struct server_route *authorization_route(const struct authorization *authorization);
/* Sets the server that answers; before the first step. */
void authorization_set_server(struct authorization *authorization, struct server *server);

void authorization_step(struct authorization *authorization, int64_t now_ms);
/* When a request has waited long enough; INT64_MAX: none waits. */
int64_t authorization_next_ms(const struct authorization *authorization);

#endif
