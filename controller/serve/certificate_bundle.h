/* certificate_bundle.h - keeps the webhook's certificate trusted by the API server: makes
 * it, writes its authority to the API server (caBundle of the
 * ValidatingWebhookConfiguration), makes the next one in time, and presents that once the
 * API server has its authority. If another tool makes the certificate (cert-manager,
 * helm), reads its files again when they change. certificate.h says why each replica has
 * its own. Without a configuration no authority is written: for clients that accept any
 * certificate, such as those of metrics. Runs in the loop's thread.
 *
 * All replicas write the same bundle. A write requires the resourceVersion that was read,
 * so of two concurrent writers one reads again. */
#ifndef CONTROLLER_SERVE_CERTIFICATE_BUNDLE_H
#define CONTROLLER_SERVE_CERTIFICATE_BUNDLE_H

#include "controller/base/metrics.h"
#include "controller/kube/client.h"
#include "controller/serve/certificate.h"

enum {
    CERTIFICATE_BUNDLE_READ_MS = 15000, /* interval between reads of the configuration */
    CERTIFICATE_BUNDLE_RETRY_MS =
        500, /* after a failure, doubled up to CERTIFICATE_BUNDLE_READ_MS */
    CERTIFICATE_BUNDLE_FILES_MS = 10000, /* interval between reads of the files */
    CERTIFICATE_BUNDLE_SETTLE_MS =
        10000,                          /* all API servers have seen the bundle by then */
    CERTIFICATE_BUNDLE_READY_MS = 2000, /* the same if there was no certificate before */
    CERTIFICATE_BUNDLE_FILE_BYTES = 64 << 10,
};
/* A certificate is replaced when half of its life is over. */
#define CERTIFICATE_BUNDLE_RENEW_MS (CERTIFICATE_LIFE_MS / 2)

struct certificate_bundle_config {
    const char *folder; /* with tls.crt and tls.key; NULL: our own */
    /* For our own certificate: see certificate_make. */
    const char *owner;
    const char *const *names;
    size_t name_count;
    /* Name of the ValidatingWebhookConfiguration; NULL: there is none. */
    const char *configuration;
    struct kube *kube; /* without a fence: every replica writes */
    /* Presents another certificate to new connections; on an error the previous one
     * stays. */
    int (*use)(void *context, const char *certificate_pem, const char *key_pem,
               struct het_error *err);
    void *context;
    struct metrics *metrics; /* may be NULL */
};

struct certificate_bundle;

/* Borrows the strings of `config`. Makes or reads the first certificate; calls `use` for
 * later ones. Errors: HET_IO, HET_BAD_INPUT. */
struct certificate_bundle *
certificate_bundle_new(const struct certificate_bundle_config *config, int64_t now_ms,
                       int64_t wall_ms, struct het_error *err);
void certificate_bundle_free(struct certificate_bundle *trust);

/* The certificate presented now, and its key. */
const char *certificate_bundle_certificate(const struct certificate_bundle *trust);
const char *certificate_bundle_key(const struct certificate_bundle *trust);

void certificate_bundle_step(struct certificate_bundle *trust, int64_t now_ms,
                             int64_t wall_ms);
/* When certificate_bundle_step has something to do next. */
int64_t certificate_bundle_next_ms(const struct certificate_bundle *trust);
/* Whether the API server trusts the presented certificate, as far as we know; true
 * without a configuration. */
bool certificate_bundle_is_ready(const struct certificate_bundle *trust);

#endif
