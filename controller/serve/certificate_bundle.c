#include "controller/serve/certificate_bundle.h"

#include "controller/base/log.h"
#include "controller/base/object.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A certificate, and since when the API server knows its authority. */
struct shown {
    struct certificate certificate; /* all NULL: there is none */
    bool is_known;
    int64_t known_ms;
};

struct certificate_bundle {
    struct certificate_bundle_config config;
    int64_t now_ms, wall_ms;    /* of the latest step */
    int64_t due_ms;             /* the next look at the configuration, or the files */
    struct shown current, next; /* files: `current` alone */
    uint64_t request_id;        /* 0: none is under way */
    int failures;               /* in a row */
    bool is_missing;            /* there is no configuration */
    char *trouble;              /* that was logged last; NULL: all is well */
};

/* Once, until it is another one. */
static void note_trouble(struct certificate_bundle *trust, const char *trouble)
{
    if (trust->trouble && !strcmp(trust->trouble, trouble))
        return;
    free(trust->trouble);
    trust->trouble = xstrdup(trouble);
    log_event(LOG_WARNING, "trust", "certificate not brought about",
              LOG_STR("why", trouble));
}

static void note_all_is_well(struct certificate_bundle *trust)
{
    free(trust->trouble);
    trust->trouble = NULL;
    trust->failures = 0;
}

static void note_end(const struct certificate_bundle *trust)
{
    metrics_set(trust->config.metrics, METRIC_CERTIFICATE_END,
                (double)trust->current.certificate.ends_wall_ms / 1000, NO_LABELS);
}

/* `next` is what is shown from now on. */
static void show_next(struct certificate_bundle *trust)
{
    struct het_error err = { 0 };
    struct certificate *certificate = &trust->next.certificate;
    if (trust->config.use(trust->config.context, certificate->certificate_pem,
                          certificate->key_pem, &err) < 0) {
        note_trouble(trust, err.message);
        certificate_fini(certificate);
        return;
    }
    certificate_fini(&trust->current.certificate);
    trust->current = trust->next;
    trust->next = (struct shown){ 0 };
    note_end(trust);
    log_event(LOG_INFO, "trust", "another certificate is shown",
              LOG_INT("days", (trust->current.certificate.ends_wall_ms - trust->wall_ms) /
                                  86400000));
}

/* ---- files ---- */

static char *read_file(const char *folder, const char *name, struct het_error *err)
{
    auto_free char *path = xasprintf("%s/%s", folder, name);
    struct stat status;
    /* What pods get is a symbolic link; O_NONBLOCK, as a fifo must not stop us. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char *text = NULL;
    ssize_t length = -1;
    if (fd >= 0 && !fstat(fd, &status) && S_ISREG(status.st_mode) &&
        status.st_size <= CERTIFICATE_BUNDLE_FILE_BYTES) {
        text = xcalloc(1, CERTIFICATE_BUNDLE_FILE_BYTES + 1);
        length = read(fd, text, CERTIFICATE_BUNDLE_FILE_BYTES);
    }
    if (length < 0) {
        het_fail(err, HET_IO, "%s: %s", path,
                 fd < 0 || text ? strerror(errno) : "no regular file of at most 64 KiB");
        free(text);
        text = NULL;
    }
    if (fd >= 0)
        close(fd);
    return text;
}

static int read_folder(const char *folder, struct certificate *ret, struct het_error *err)
{
    struct certificate certificate = { .certificate_pem =
                                           read_file(folder, "tls.crt", err) };
    if (certificate.certificate_pem)
        certificate.key_pem = read_file(folder, "tls.key", err);
    int result = -1;
    if (certificate.key_pem)
        result = certificate_end(certificate.certificate_pem, &certificate.ends_wall_ms,
                                 err) < 0
                     ? het_wrap(err, "%s/tls.crt", folder)
                     : 0;
    if (result < 0)
        certificate_fini(&certificate);
    else
        *ret = certificate;
    return result;
}

static void read_again(struct certificate_bundle *trust)
{
    struct certificate *now = &trust->current.certificate, read;
    struct het_error err = { 0 };
    trust->due_ms = trust->now_ms + CERTIFICATE_BUNDLE_FILES_MS;
    if (read_folder(trust->config.folder, &read, &err) < 0) {
        note_trouble(trust, err.message);
        return;
    }
    if (!strcmp(read.certificate_pem, now->certificate_pem) &&
        !strcmp(read.key_pem, now->key_pem)) {
        certificate_fini(&read);
        note_all_is_well(trust);
        return;
    }
    trust->next = (struct shown){ .certificate = read };
    show_next(trust);
}

/* ---- our own ---- */

static int make_certificate(struct certificate_bundle *trust, struct shown *ret,
                            struct het_error *err)
{
    const struct certificate_bundle_config *config = &trust->config;
    *ret = (struct shown){ 0 };
    return certificate_make(config->owner, config->names, config->name_count,
                            trust->wall_ms, &ret->certificate, err);
}

static void make_next(struct certificate_bundle *trust)
{
    struct het_error err = { 0 };
    if (trust->next.certificate.key_pem)
        return;
    if (make_certificate(trust, &trust->next, &err) < 0)
        note_trouble(trust, err.message);
    else
        trust->due_ms = trust->now_ms; /* to tell the API server */
}

/* Half of its life is over, or, by a clock that was set, has not begun. */
static bool is_to_be_renewed(const struct certificate_bundle *trust)
{
    int64_t end_ms = trust->current.certificate.ends_wall_ms;
    return trust->wall_ms >= end_ms - CERTIFICATE_BUNDLE_RENEW_MS ||
           trust->wall_ms < end_ms - CERTIFICATE_LIFE_MS - CERTIFICATE_EARLY_MS;
}

/* The next one is presented at once, as no client has to know its authority. */
static void renew_untold(struct certificate_bundle *trust)
{
    if (is_to_be_renewed(trust))
        make_next(trust);
    if (trust->next.certificate.key_pem)
        show_next(trust);
    trust->due_ms = trust->now_ms + CERTIFICATE_BUNDLE_READ_MS;
}

/* ---- the bundle ---- */

/* Base64 as JSON has it. */
static char *decode(const char *text)
{
    size_t length = strlen(text);
    unsigned char *bytes = xcalloc(1, length + 1);
    if (EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)length) < 0)
        *bytes = '\0'; /* as good as none */
    return (char *)bytes;
}

static char *encode(const char *text)
{
    size_t length = strlen(text);
    unsigned char *base64 = xcalloc(1, 4 * (length / 3 + 1) + 1);
    EVP_EncodeBlock(base64, (const unsigned char *)text, (int)length);
    return (char *)base64;
}

/* The authorities of what is shown, and of what will be. */
static char *own_authorities(const struct certificate_bundle *trust)
{
    const char *next = trust->next.certificate.authority_pem;
    return xasprintf("%s%s", trust->current.certificate.authority_pem, next ? next : "");
}

/* Adds to `patch` what webhook `index` lacks. */
static void add_to_patch(struct certificate_bundle *trust, json_t *patch, size_t index,
                         const char *present)
{
    auto_free char *own = own_authorities(trust);
    auto_free char *wanted =
        certificate_bundle(present, trust->config.owner, own, trust->wall_ms);
    if (!strcmp(wanted, present))
        return;
    auto_free char *base64 = encode(wanted);
    json_array_append_new(
        patch, json_pack("{s:s, s:o, s:s}", "op", "add", "path",
                         json_sprintf("/webhooks/%zu/clientConfig/caBundle", index),
                         "value", base64));
}

/* Our authority is gone: others needed the room, or the configuration was rewritten. A
 * new authority is the last to make room again. */
static void note_loss(struct certificate_bundle *trust, const char *present)
{
    if (!trust->current.is_known ||
        certificate_is_in(present, trust->current.certificate.authority_pem))
        return;
    trust->current.is_known = false;
    log_event(LOG_WARNING, "trust", "our authority is gone from the configuration",
              LOG_STR("configuration", trust->config.configuration));
    make_next(trust);
}

/* What brings the bundles of `configuration` about; empty if they are as they should. */
static json_t *make_patch(struct certificate_bundle *trust, const json_t *configuration)
{
    const json_t *webhooks = json_object_get(configuration, "webhooks");
    json_t *patch = json_array();
    for (size_t i = 0; i < json_array_size(webhooks); i++) {
        auto_free char *present =
            decode(object_text(json_array_get(webhooks, i), "clientConfig.caBundle"));
        note_loss(trust, present);
        add_to_patch(trust, patch, i, present);
    }
    if (json_array_size(patch))
        json_array_insert_new(patch, 0,
                              json_pack("{s:s, s:s, s:s}", "op", "replace", "path",
                                        "/metadata/resourceVersion", "value",
                                        kube_resource_version(configuration)));
    return patch;
}

static void note_known(struct certificate_bundle *trust)
{
    struct shown *const both[] = { &trust->current, &trust->next };
    for (size_t i = 0; i < 2; i++)
        if (both[i]->certificate.key_pem && !both[i]->is_known) {
            both[i]->is_known = true;
            both[i]->known_ms = trust->now_ms;
        }
    trust->is_missing = false;
    trust->due_ms = trust->now_ms + CERTIFICATE_BUNDLE_READ_MS;
    note_all_is_well(trust);
}

static void try_again(struct certificate_bundle *trust, const struct kube_result *result)
{
    int64_t wait_ms = CERTIFICATE_BUNDLE_RETRY_MS;
    for (int i = 0; i < trust->failures && wait_ms < CERTIFICATE_BUNDLE_READ_MS; i++)
        wait_ms *= 2;
    trust->due_ms = trust->now_ms + (wait_ms < CERTIFICATE_BUNDLE_READ_MS
                                         ? wait_ms
                                         : CERTIFICATE_BUNDLE_READ_MS);
    trust->failures++;
    /* Another replica was first. */
    if (result->outcome != KUBE_CONFLICT)
        note_trouble(trust, result->message);
}

static void on_patched(void *context, const struct kube_result *result)
{
    struct certificate_bundle *trust = context;
    trust->request_id = 0;
    if (result->outcome == KUBE_OK)
        note_known(trust);
    else
        try_again(trust, result);
}

static void on_read(void *context, const struct kube_result *result)
{
    struct certificate_bundle *trust = context;
    const struct certificate_bundle_config *config = &trust->config;
    trust->request_id = 0;
    if (result->outcome != KUBE_OK) {
        trust->is_missing = result->outcome == KUBE_NOT_FOUND;
        try_again(trust, result);
        return;
    }
    json_auto_t *patch = make_patch(trust, result->object);
    if (json_array_size(patch))
        trust->request_id = kube_patch(config->kube, &kube_webhook_configuration, NULL,
                                       config->configuration, NULL, patch, on_patched,
                                       trust);
    else
        note_known(trust);
}

/* ---- the loop ---- */

static bool is_settled(const struct certificate_bundle *trust, const struct shown *shown,
                       int64_t settle_ms)
{
    return shown->is_known && trust->now_ms - shown->known_ms >= settle_ms;
}

void certificate_bundle_step(struct certificate_bundle *trust, int64_t now_ms,
                             int64_t wall_ms)
{
    const struct certificate_bundle_config *config = &trust->config;
    trust->now_ms = now_ms;
    trust->wall_ms = wall_ms;
    if (config->folder) {
        if (now_ms >= trust->due_ms)
            read_again(trust);
        return;
    }
    if (!config->configuration) {
        if (now_ms >= trust->due_ms)
            renew_untold(trust);
        return;
    }
    if (is_to_be_renewed(trust))
        make_next(trust);
    if (trust->next.certificate.key_pem &&
        is_settled(trust, &trust->next, CERTIFICATE_BUNDLE_SETTLE_MS))
        show_next(trust);
    if (now_ms >= trust->due_ms && !trust->request_id)
        trust->request_id = kube_get(config->kube, &kube_webhook_configuration, NULL,
                                     config->configuration, on_read, trust);
}

int64_t certificate_bundle_next_ms(const struct certificate_bundle *trust)
{
    int64_t next_ms = trust->request_id ? INT64_MAX : trust->due_ms;
    int64_t settled_ms = trust->next.known_ms + CERTIFICATE_BUNDLE_SETTLE_MS;
    return trust->next.is_known && settled_ms < next_ms ? settled_ms : next_ms;
}

bool certificate_bundle_is_ready(const struct certificate_bundle *trust)
{
    return trust->config.folder || !trust->config.configuration || trust->is_missing ||
           is_settled(trust, &trust->current, CERTIFICATE_BUNDLE_READY_MS);
}

const char *certificate_bundle_certificate(const struct certificate_bundle *trust)
{
    return trust->current.certificate.certificate_pem;
}

const char *certificate_bundle_key(const struct certificate_bundle *trust)
{
    return trust->current.certificate.key_pem;
}

struct certificate_bundle *
certificate_bundle_new(const struct certificate_bundle_config *config, int64_t now_ms,
                       int64_t wall_ms, struct het_error *err)
{
    struct certificate_bundle *trust = xcalloc(1, sizeof *trust);
    trust->config = *config;
    trust->now_ms = now_ms;
    trust->wall_ms = wall_ms;
    trust->due_ms = config->folder ? now_ms + CERTIFICATE_BUNDLE_FILES_MS : now_ms;
    int result = config->folder
                     ? read_folder(config->folder, &trust->current.certificate, err)
                     : make_certificate(trust, &trust->current, err);
    if (result < 0) {
        certificate_bundle_free(trust);
        return NULL;
    }
    note_end(trust);
    return trust;
}

void certificate_bundle_free(struct certificate_bundle *trust)
{
    if (!trust)
        return;
    if (trust->request_id)
        kube_cancel(trust->config.kube, trust->request_id);
    certificate_fini(&trust->current.certificate);
    certificate_fini(&trust->next.certificate);
    free(trust->trouble);
    free(trust);
}
