/* kubectl_transport.h - a transport whose requests are runs of kubectl, which knows
 * every way to reach a server and to log in there: contexts, tokens, certificates, exec
 * plugins, impersonation, proxies.
 *
 * GET is `kubectl get --raw PATH`; PATCH, of a merge patch for one object of a namespace
 * and of a named API group, `kubectl patch --type=merge`. There is nothing else, and no
 * stream. No shell is in between. kubectl has our environment; our standard input, where
 * that is a terminal, to ask who we are.
 *
 * What kubectl says of its failure becomes the reply that it was about, with a Status as
 * its body: "Error from server (NotFound): ..." a 404. Without an answer of the server
 * the reply has status 0; HET_BAD_INPUT says that kubectl's options, its kubeconfig or
 * the program itself are at fault. All else that kubectl says is passed on as it comes:
 * warnings, and what exec plugins ask. */
#ifndef CONTROLLER_KUBECTL_KUBECTL_TRANSPORT_H
#define CONTROLLER_KUBECTL_KUBECTL_TRANSPORT_H

#include "controller/kube/transport.h"

#include <stdio.h>

enum {
    KUBECTL_MAX_RUNS = 4, /* at once; more wait for their turn */
    KUBECTL_NAMESPACE_TIMEOUT_MS = 30000,
    KUBECTL_MAX_COMPLAINT = 4096, /* bytes that are kept of a failure */
};

/* `program` is looked for in PATH unless it has a slash; `options` ("--context=c") stand
 * before each command, `words` is where kubectl's words go to: all are borrowed.
 * `field_manager` is who writes. SIGPIPE and SIGCHLD must be as in kubectl/main.c. */
struct transport *kubectl_transport_new(const char *program, const char *const *options,
                                        size_t option_count, const char *field_manager,
                                        FILE *words);

/* The namespace of the context, "default" if it has none, into `ret`, which the caller
 * frees; NULL: there is no context. Waits for kubectl. Errors: HET_BAD_INPUT, HET_IO. */
int kubectl_transport_namespace(struct transport *transport, char **ret,
                                struct het_error *err);

#endif
