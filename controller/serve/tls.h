/* tls.h - loads a certificate and its key from PEM texts into OpenSSL. */
#ifndef CONTROLLER_SERVE_TLS_H
#define CONTROLLER_SERVE_TLS_H

#include "planner/modules.h"

#include <openssl/ssl.h>

/* A certificate with its chain and key, checked to belong together. */
struct tls_identity;

/* `certificate_pem`: the server's certificate, then the chain to its authority. Returns
 * NULL and fills `err` with HET_BAD_INPUT if one cannot be read or they do not match. */
struct tls_identity *tls_identity_new(const char *certificate_pem, const char *key_pem,
                                      struct het_error *err);
void tls_identity_free(struct tls_identity *identity);

/* New connections of `context` present `identity` and use TLS 1.2 or 1.3. Errors:
 * HET_IO. */
int tls_use_identity(SSL_CTX *context, const struct tls_identity *identity,
                     struct het_error *err);

#endif
