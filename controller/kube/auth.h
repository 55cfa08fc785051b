/* auth.h - which API server, and who we are there: from the service account of a pod, or
 * from kubeconfig files as kubectl reads them.
 *
 * Looked for in this order: the kubeconfig files given; the service account, if there is
 * a service host; ~/.kube/config. Tokens in files are read again every 50 s (every 60 s
 * with 10 s leeway) and after a 401, certificates every 5 minutes; what cannot be read
 * leaves the old one in use. Not supported, and refused in words: exec plugins, auth
 * providers, passwords, impersonation, insecure-skip-tls-verify, encrypted keys. */
#ifndef CONTROLLER_KUBE_AUTH_H
#define CONTROLLER_KUBE_AUTH_H

#include "controller/kube/http.h"

enum {
    AUTH_TOKEN_MS = 50000,
    AUTH_CERTIFICATES_MS = 300000,
    AUTH_RETRY_MS = 10000,       /* after a file could not be read */
    AUTH_REFUSED_MS = 1000,      /* between two looks at a token that was refused */
    AUTH_TOKEN_BYTES = 64 << 10, /* largest token file */
    AUTH_FILE_BYTES = 4 << 20,   /* largest kubeconfig or certificate file */
};

/* What the environment and the command line say; every string may be NULL. */
struct auth_config {
    const char *kubeconfig; /* files, separated by colons: --kubeconfig, KUBECONFIG */
    const char *context;    /* NULL: the current-context of the files */
    const char *service_host, *service_port; /* KUBERNETES_SERVICE_HOST and _PORT */
    const char *service_account_dir;         /* NULL: the usual place in a pod */
    const char *home;                        /* HOME */
};

struct auth;

/* Errors: HET_BAD_INPUT or HET_IO, naming file, context and what to change. */
int auth_load(const struct auth_config *config, struct auth **ret, struct het_error *err);
void auth_free(struct auth *auth);

/* An http_endpoint_source; `auth` is the context. */
const struct http_endpoint *auth_endpoint(void *auth);
/* For http_transport_on_unauthorized: the token of `generation` was refused, so that it
 * is read again at the next auth_step, if it is still in use. */
void auth_unauthorized(void *auth, uint64_t generation);

/* Reads again what is due at `now_ms`. Logs what it cannot read. */
void auth_step(struct auth *auth, int64_t now_ms);
/* When auth_step has something to do next; INT64_MAX if no file is in use. */
int64_t auth_next_ms(const struct auth *auth);

/* The namespace of the context or pod; "default" if neither says. */
const char *auth_namespace(const struct auth *auth);
/* "context NAME of FILE", or "service account in DIR": for logs. */
const char *auth_description(const struct auth *auth);

#endif
