/* kubectl_transport.h - a transport that runs kubectl for each request, as kubectl knows
 * every way to reach a server and log in: contexts, tokens, certificates, exec plugins,
 * impersonation, proxies.
 *
 * GET is `kubectl get --raw PATH`; PATCH, a merge patch for one namespaced object of a
 * named API group, is `kubectl patch --type=merge`. Other requests and streams are not
 * supported. No shell is involved. kubectl gets our environment and, if it is a terminal,
 * our standard input, to log in.
 *
 * kubectl's error message is turned back into the reply behind it, with a Status as its
 * body: "Error from server (NotFound): ..." into a 404. Without an answer from the server
 * the reply has status 0; HET_BAD_INPUT means that kubectl's options, its kubeconfig or
 * the program itself are at fault. All other output of kubectl is passed on: warnings,
 * and prompts of exec plugins. */
#ifndef CONTROLLER_KUBECTL_KUBECTL_TRANSPORT_H
#define CONTROLLER_KUBECTL_KUBECTL_TRANSPORT_H

#include "controller/kube/transport.h"

#include <stdio.h>

enum {
    KUBECTL_MAX_RUNS = 4, /* at once; further ones wait */
    KUBECTL_NAMESPACE_TIMEOUT_MS = 30000,
    KUBECTL_MAX_COMPLAINT = 4096, /* bytes kept of an error message */
};

/* `program` is looked up in PATH unless it has a slash; `options` ("--context=c") precede
 * each command; `words` receives kubectl's other output. All are borrowed, as is
 * `field_manager`, the name for writes. SIGPIPE and SIGCHLD must be as in
 * kubectl/main.c. */
struct transport *kubectl_transport_new(const char *program, const char *const *options,
                                        size_t option_count, const char *field_manager,
                                        FILE *words);

/* Sets `ret` to the namespace of the context ("default" if it has none; NULL: there is no
 * context); the caller frees. Waits for kubectl. Errors: HET_BAD_INPUT, HET_IO. */
int kubectl_transport_namespace(struct transport *transport, char **ret,
                                struct het_error *err);

#endif
