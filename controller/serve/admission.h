/* admission.h - the webhook as it is served: POST /validate, an AdmissionReview. What can
 * be told from the review alone (review.h) is answered at once, in the server's thread.
 * Whether the user may create pods is asked of the API server, which only the loop does:
 * the request waits in a queue between the two threads, ADMISSION_WAITING at most and
 * ADMISSION_MS long. Whatever goes wrong is a no that says why. */
#ifndef CONTROLLER_SERVE_ADMISSION_H
#define CONTROLLER_SERVE_ADMISSION_H

#include "controller/base/metrics.h"
#include "controller/job/settings.h"
#include "controller/kube/client.h"
#include "controller/serve/server.h"

enum {
    ADMISSION_WAITING = 64,
    ADMISSION_MS = 4000, /* the API server gives up after 5 s (timeoutSeconds) */
    ADMISSION_BODY_BYTES = 4 << 20,
    ADMISSION_REQUESTS_PER_S = 100, /* to the API server; bursts of as many */
};

struct admission_config {
    const struct settings *settings;
    struct kube *kube;                  /* the loop's; without a fence */
    struct metrics *metrics;            /* may be NULL */
    int64_t (*clock_ms)(void *context); /* that of admission_step; any thread asks */
    void (*wake)(void *context);        /* so that the loop turns; from any thread */
    void *context;
};

struct admission;

struct admission *admission_new(const struct admission_config *config);
/* After the server, and before the kube. */
void admission_free(struct admission *admission);

/* The one route, for a listener with TLS. */
const struct server_route *admission_routes(const struct admission *admission);
/* Who answers; before the first step. */
void admission_set_server(struct admission *admission, struct server *server);
/* The API server is of Kubernetes 1.minor; 0, at the start: nobody knows. */
void admission_set_server_minor(struct admission *admission, int64_t minor);

void admission_step(struct admission *admission, int64_t now_ms);
/* When a request has waited long enough; INT64_MAX: none waits. */
int64_t admission_next_ms(const struct admission *admission);

#endif
