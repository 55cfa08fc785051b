/* endpoints.h - what --http serves without authorization:
 *
 *   GET /healthz    200 if the loop turned within the last ENDPOINTS_BEAT_MS, else 503
 *   GET /readyz     200 once all watched collections have been listed, else 503
 *   GET /log-level  the levels, as log_set_levels takes them
 *   PUT /log-level  sets them; only from this host (kubectl port-forward), else 403
 *
 * and what --metrics serves to authorized clients (authorization.h):
 *
 *   GET /metrics    metrics.h as text; rendered once in ENDPOINTS_METRICS_MS at most */
#ifndef CONTROLLER_SERVE_ENDPOINTS_H
#define CONTROLLER_SERVE_ENDPOINTS_H

#include "controller/serve/server.h"

enum {
    ENDPOINTS_BEAT_MS = 30000,
    ENDPOINTS_METRICS_MS = 1000,
    ENDPOINTS_ROUTES = 5,         /* of both */
    ENDPOINTS_OPEN_ROUTES = 4,    /* of --http: the first of them */
    ENDPOINTS_LEVEL_BYTES = 1024, /* of the body of the PUT */
};

struct endpoints;

/* `clock_ms` is the clock of published_beat; the server's thread calls it. */
struct endpoints *endpoints_new(struct published *feed, struct metrics *metrics,
                                int64_t (*clock_ms)(void *context), void *context);
/* Free it after the server. */
void endpoints_free(struct endpoints *endpoints);

/* The routes for a listener; ENDPOINTS_ROUTES of them. */
const struct server_route *endpoints_routes(const struct endpoints *endpoints);
/* The last of them. */
const struct server_route *endpoints_metrics_route(const struct endpoints *endpoints);

#endif
