/* tls.h - a certificate and its key, as PEM texts, into OpenSSL. */
#ifndef CONTROLLER_SERVE_TLS_H
#define CONTROLLER_SERVE_TLS_H

#include "planner/modules.h"

#include <openssl/ssl.h>

/* A certificate with its chain and key, checked to belong together. */
struct tls_identity;

/* `certificate_pem`: the server's certificate, then those that lead to its authority.
 * NULL and `err`, HET_BAD_INPUT: what cannot be read, or does not fit. */
struct tls_identity *tls_identity_new(const char *certificate_pem, const char *key_pem,
                                      struct het_error *err);
void tls_identity_free(struct tls_identity *identity);

/* Connections that `context` makes from now on show `identity`, and speak TLS 1.2 or 1.3.
 * Errors: HET_IO. */
int tls_use_identity(SSL_CTX *context, const struct tls_identity *identity,
                     struct het_error *err);

#endif
