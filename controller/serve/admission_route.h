/* admission_route.h - the HTTP route of the webhook: POST /validate with an
 * AdmissionReview. What the review alone decides (admission_verdict.h) is answered at
 * once, in the server's thread. Whether the user may create pods is a question to the API
 * server, which only the loop asks: the request waits in a queue between the two threads,
 * of at most ADMISSION_ROUTE_WAITING requests, for at most ADMISSION_ROUTE_MS. Any
 * failure is answered with a denial and its reason. */
#ifndef CONTROLLER_SERVE_ADMISSION_ROUTE_H
#define CONTROLLER_SERVE_ADMISSION_ROUTE_H

#include "controller/base/metrics.h"
#include "controller/job/settings.h"
#include "controller/kube/client.h"
#include "controller/serve/server.h"

enum {
    ADMISSION_ROUTE_WAITING = 64,
    ADMISSION_ROUTE_MS = 4000, /* the API server gives up after 5 s (timeoutSeconds) */
    ADMISSION_ROUTE_BODY_BYTES = 4 << 20,
    ADMISSION_ROUTE_REQUESTS_PER_S = 100, /* to the API server, with bursts of the same
                                             size */
};

struct admission_route_config {
    const struct settings *settings;
    struct kube *kube;       /* the loop's; without a fence */
    struct metrics *metrics; /* may be NULL */
    int64_t (*clock_ms)(
        void *context);          /* the clock of admission_route_step; called from any
                                    thread */
    void (*wake)(void *context); /* wakes the loop; called from any thread */
    void *context;
};

struct admission_route;

struct admission_route *admission_route_new(const struct admission_route_config *config);
/* Free it after the server and before the kube. */
void admission_route_free(struct admission_route *admission);

/* The one route, for a listener with TLS. */
const struct server_route *
admission_route_routes(const struct admission_route *admission);
/* Sets the server that answers; before the first step. */
void admission_route_set_server(struct admission_route *admission, struct server *server);
/* Sets the version of the API server, Kubernetes 1.minor; 0 (initially): not known. */
void admission_route_set_server_minor(struct admission_route *admission, int64_t minor);

void admission_route_step(struct admission_route *admission, int64_t now_ms);
/* When a request has waited long enough; INT64_MAX: none waits. */
int64_t admission_route_next_ms(const struct admission_route *admission);

#endif
