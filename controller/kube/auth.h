/* auth.h - the API server and our credentials for it: from the service account of a pod,
 * or from kubeconfig files as kubectl reads them.
 *
 * Sources in this order: the kubeconfig files given; the service account, if there is a
 * service host; ~/.kube/config. Tokens in files are read again every 50 s (every 60 s
 * with 10 s leeway) and after a 401, certificates every 5 minutes; if one cannot be read,
 * the old one stays in use. Not supported, and refused with a message: exec plugins, auth
 * providers, passwords, impersonation, insecure-skip-tls-verify, encrypted keys. */
#ifndef CONTROLLER_KUBE_AUTH_H
#define CONTROLLER_KUBE_AUTH_H

#include "controller/kube/http.h"

enum {
    AUTH_TOKEN_MS = 50000,
    AUTH_CERTIFICATES_MS = 300000,
    AUTH_RETRY_MS = 10000,       /* after a file could not be read */
    AUTH_REFUSED_MS = 1000,      /* between two reads of a token that was refused */
    AUTH_TOKEN_BYTES = 64 << 10, /* largest token file */
    AUTH_FILE_BYTES = 4 << 20,   /* largest kubeconfig or certificate file */
};

/* Values of the environment and the command line; every string may be NULL. */
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
/* For http_transport_on_unauthorized: the token of `generation` was refused. If it is
 * still in use, the next auth_step reads it again. */
void auth_unauthorized(void *auth, uint64_t generation);

/* Reads the files that are due at `now_ms` again. Logs those it cannot read. */
void auth_step(struct auth *auth, int64_t now_ms);
/* When auth_step has something to do next; INT64_MAX if no file is in use. */
int64_t auth_next_ms(const struct auth *auth);

/* The namespace of the context or pod; "default" if neither gives one. */
const char *auth_namespace(const struct auth *auth);
/* "context NAME of FILE", or "service account in DIR": for logs. */
const char *auth_description(const struct auth *auth);

#endif
