/* certificate.h - the certificate that the webhook presents, and the bundle of
 * authorities by which the API server verifies it (OpenSSL). Only values;
 * certificate_bundle.h decides when to make them and where they go.
 *
 * Each replica of the operator makes its own and keeps the key in memory. A shared pair
 * would have to be a Secret, and the operator has no right to any. What the API server
 * needs is public: the bundle in the webhook's configuration holds the authorities of all
 * replicas. An authority signs one certificate and its key is then destroyed, so no
 * second certificate can be made that the bundle vouches for.
 *
 * Keys are on curve P-256. */
#ifndef CONTROLLER_SERVE_CERTIFICATE_H
#define CONTROLLER_SERVE_CERTIFICATE_H

#include "planner/modules.h"

#include <stddef.h>
#include <stdint.h>

enum {
    CERTIFICATE_MAX_NAMES = 8,
    CERTIFICATE_MAX_BUNDLE = 64, /* authorities; those that expire first make room */
};
#define CERTIFICATE_LIFE_MS  (14 * (int64_t)86400000)
/* For servers whose clocks are behind ours. */
#define CERTIFICATE_EARLY_MS ((int64_t)3600000)

struct certificate {
    char *authority_pem;
    char *certificate_pem, *key_pem;
    int64_t ends_wall_ms;
};

/* Makes an authority and a certificate at `wall_ms` for servers with `names`: DNS names
 * or IP addresses. `owner` identifies this listener of this replica. Errors:
 * HET_BAD_INPUT for an invalid name; HET_IO. */
int certificate_make(const char *owner, const char *const *names, size_t name_count,
                     int64_t wall_ms, struct certificate *ret, struct het_error *err);
/* Also erases the key. */
void certificate_fini(struct certificate *certificate);

/* When the first certificate of `pem` expires. Errors: HET_BAD_INPUT. */
int certificate_end(const char *pem, int64_t *ret_wall_ms, struct het_error *err);

/* What the bundle `present` (PEM, may be "") should become: with the `own` authorities of
 * `owner` (PEM), without its earlier ones and without expired ones. Those of other owners
 * keep their places, so replicas that agree never write. Anything that is not a
 * certificate is removed. The caller frees. */
char *certificate_bundle(const char *present, const char *owner, const char *own,
                         int64_t wall_ms);
/* Whether the first certificate of `pem` is in `bundle`. */
bool certificate_is_in(const char *bundle, const char *pem);

#endif
