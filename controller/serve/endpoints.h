/* endpoints.h - what --http serves to everybody:
 *
 *   GET /healthz    200 if the loop turned within the last ENDPOINTS_BEAT_MS, else 503
 *   GET /readyz     200 once all that is watched has been listed, else 503
 *   GET /log-level  the levels, as log_set_levels takes them
 *   PUT /log-level  sets them; from this host alone (kubectl port-forward), else 403
 *
 * and what --metrics does, to those who may read it (authorization.h):
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
    ENDPOINTS_LEVEL_BYTES = 1024, /* of what is put */
};

struct endpoints;

/* `clock_ms` is the clock of published_beat; it is asked in the server's thread. */
struct endpoints *endpoints_new(struct published *feed, struct metrics *metrics,
                                int64_t (*clock_ms)(void *context), void *context);
/* After the server. */
void endpoints_free(struct endpoints *endpoints);

/* For a listener; ENDPOINTS_ROUTES of them. */
const struct server_route *endpoints_routes(const struct endpoints *endpoints);
/* The last of them. */
const struct server_route *endpoints_metrics_route(const struct endpoints *endpoints);

#endif
