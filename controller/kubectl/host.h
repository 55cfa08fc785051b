/* host.h - the environment of a kubectl-htj command: terminal, clock, and the connection
 * to an API server. controller/kubectl/main.c makes a real one, tests one with the
 * embedded server. */
#ifndef CONTROLLER_KUBECTL_HOST_H
#define CONTROLLER_KUBECTL_HOST_H

#include "controller/kube/transport.h"
#include "controller/kubectl/options.h"

#include <stdio.h>

/* The connection to an API server, open as long as the host. */
struct htj_link {
    struct transport *transport;
    const char *ns; /* of the options, else of the context */
};

struct htj_host {
    FILE *out, *err;
    int width; /* columns of a line of text, at least 70 */
    bool is_utf8;
    /* Errors: HET_BAD_INPUT, HET_IO. */
    int (*connect)(void *context, const struct htj_options *options, struct htj_link *ret,
                   struct het_error *err);
    int64_t (*now_ms)(void *context); /* monotonic; also does what is due on the link */
    int64_t (*wall_ms)(void *context);
    void *context;
};

#endif
