/* certificate.h - the certificate that the webhook shows, and the bundle of authorities
 * by which the API server knows it (OpenSSL). Values: certificate_bundle.h says when, and
 * where to.
 *
 * Each replica of the operator makes its own, and keeps its key in memory. A pair that
 * all shared would have to be a Secret, and the operator has no right to any. What the
 * API server needs to know is public: the bundle in the webhook's configuration holds the
 * authorities of all replicas. An authority signs one certificate, and then its key is
 * no more, so nobody can ever make a second one that the bundle vouches for.
 *
 * Keys are on curve P-256. */
#ifndef CONTROLLER_SERVE_CERTIFICATE_H
#define CONTROLLER_SERVE_CERTIFICATE_H

#include "planner/modules.h"

#include <stddef.h>
#include <stdint.h>

enum {
    CERTIFICATE_MAX_NAMES = 8,
    CERTIFICATE_MAX_BUNDLE = 64, /* authorities; those that end first make room */
};
#define CERTIFICATE_LIFE_MS  (14 * (int64_t)86400000)
/* For servers whose clocks are behind ours. */
#define CERTIFICATE_EARLY_MS ((int64_t)3600000)

struct certificate {
    char *authority_pem;
    char *certificate_pem, *key_pem;
    int64_t ends_wall_ms;
};

/* Makes authority and certificate at `wall_ms`, for servers that are called `names`: DNS
 * names or IP addresses. `owner` says who listens where, and that is no other replica.
 * Errors: HET_BAD_INPUT, a name that is none; HET_IO. */
int certificate_make(const char *owner, const char *const *names, size_t name_count,
                     int64_t wall_ms, struct certificate *ret, struct het_error *err);
/* Forgets the key, too. */
void certificate_fini(struct certificate *certificate);

/* When the first certificate of `pem` ends. Errors: HET_BAD_INPUT. */
int certificate_end(const char *pem, int64_t *ret_wall_ms, struct het_error *err);

/* What the bundle `present` (PEM, may be "") should be: with the `own` authorities of
 * `owner` (PEM), without others that it had, and those that have ended. What the others
 * have stays where it is; so replicas that agree never write. What is no certificate
 * goes. The caller frees. */
char *certificate_bundle(const char *present, const char *owner, const char *own,
                         int64_t wall_ms);
/* Whether the first certificate of `pem` is in `bundle`. */
bool certificate_is_in(const char *bundle, const char *pem);

#endif
