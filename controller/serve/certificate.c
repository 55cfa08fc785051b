#include "controller/serve/certificate.h"

#include <arpa/inet.h>
#include <assert.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* "heterotrain-webhook " and half a SHA-256 in hex: a common name has 64 characters. */
#define OWNER_PREFIX "heterotrain-webhook "
enum { OWNER_BYTES = 16, OWNER_SIZE = sizeof OWNER_PREFIX + 2 * OWNER_BYTES };

static int fail(struct het_error *err, const char *what)
{
    unsigned long number = ERR_get_error();
    const char *reason = number ? ERR_reason_error_string(number) : NULL;
    ERR_clear_error();
    return het_fail(err, HET_IO, "%s%s%s", what, reason ? ": " : "",
                    reason ? reason : "");
}

/* ---- PEM ---- */

static BIO *open_text(const char *text)
{
    BIO *bio = BIO_new_mem_buf(text, (int)strlen(text));
    if (!bio)
        abort(); /* out of memory */
    return bio;
}

static BIO *open_buffer(void)
{
    BIO *bio = BIO_new(BIO_s_secmem());
    if (!bio)
        abort();
    return bio;
}

static char *take_text(BIO *bio)
{
    char *bytes;
    long length = BIO_get_mem_data(bio, &bytes);
    char *text = xasprintf("%.*s", (int)length, bytes);
    BIO_free(bio);
    return text;
}

static char *certificate_text(X509 *certificate)
{
    BIO *bio = open_buffer();
    PEM_write_bio_X509(bio, certificate);
    return take_text(bio);
}

static char *key_text(EVP_PKEY *key)
{
    BIO *bio = open_buffer();
    PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
    return take_text(bio);
}

/* ---- making ---- */

/* Who made an authority, as its subject says it. */
static void format_owner(const char *owner, char ret[OWNER_SIZE])
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)owner, strlen(owner), digest);
    char *end = stpcpy(ret, OWNER_PREFIX);
    for (size_t i = 0; i < OWNER_BYTES; i++)
        end += snprintf(end, 3, "%02x", digest[i]);
}

static bool is_dns_name(const char *name)
{
    return *name && strlen(name) <= 253 &&
           !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.")];
}

/* "DNS:a.b.svc,IP:127.0.0.1" */
static int format_names(const char *const *names, size_t count, char **ret,
                        struct het_error *err)
{
    auto_free char *text = xstrdup("");
    for (size_t i = 0; i < count; i++) {
        unsigned char address[sizeof(struct in6_addr)];
        bool is_address = inet_pton(AF_INET, names[i], address) == 1 ||
                          inet_pton(AF_INET6, names[i], address) == 1;
        if (!is_address && !is_dns_name(names[i]))
            return het_fail(err, HET_BAD_INPUT, "%.253s: no name of a server", names[i]);
        char *longer = xasprintf("%s%s%s:%s", text, i ? "," : "",
                                 is_address ? "IP" : "DNS", names[i]);
        free(text);
        text = longer;
    }
    *ret = TAKE(text);
    return 0;
}

static bool add_extension(X509 *certificate, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    bool is_added = extension && X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    return is_added;
}

static bool set_time(ASN1_TIME *field, int64_t wall_ms)
{
    return X509_time_adj_ex(field, 0, 0, &(time_t){ (time_t)(wall_ms / 1000) }) != NULL;
}

/* What all have: who, whose key, from when to when, and a number of its own. */
static X509 *begin_certificate(const char *subject, const char *issuer, EVP_PKEY *key,
                               int64_t wall_ms)
{
    unsigned char serial[16];
    X509 *certificate = X509_new();
    X509_NAME *name = certificate ? X509_get_subject_name(certificate) : NULL;
    X509_NAME *issuer_name = certificate ? X509_get_issuer_name(certificate) : NULL;
    BIGNUM *number = RAND_bytes(serial, sizeof serial) == 1
                         ? BN_bin2bn(serial, sizeof serial, NULL)
                         : NULL;
    bool is_good =
        name && number && X509_set_version(certificate, X509_VERSION_3) &&
        BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) &&
        set_time(X509_getm_notBefore(certificate), wall_ms - CERTIFICATE_EARLY_MS) &&
        set_time(X509_getm_notAfter(certificate), wall_ms + CERTIFICATE_LIFE_MS) &&
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                   (const unsigned char *)subject, -1, -1, 0) &&
        X509_NAME_add_entry_by_txt(issuer_name, "CN", MBSTRING_ASC,
                                   (const unsigned char *)issuer, -1, -1, 0) &&
        X509_set_pubkey(certificate, key);
    BN_free(number);
    if (is_good)
        return certificate;
    X509_free(certificate);
    return NULL;
}

struct extension {
    int nid;
    const char *value;
};

/* `issuer` NULL: it signs itself. */
static X509 *make_certificate(X509 *certificate, X509 *issuer, EVP_PKEY *issuer_key,
                              const struct extension *extensions, size_t count)
{
    bool is_good = certificate != NULL;
    for (size_t i = 0; is_good && i < count; i++)
        is_good = add_extension(certificate, issuer ? issuer : certificate,
                                extensions[i].nid, extensions[i].value);
    if (is_good && X509_sign(certificate, issuer_key, EVP_sha256()))
        return certificate;
    X509_free(certificate);
    return NULL;
}

static X509 *make_authority(const char *subject, EVP_PKEY *key, int64_t wall_ms)
{
    static const struct extension extensions[] = {
        { NID_basic_constraints, "critical,CA:TRUE,pathlen:0" },
        { NID_key_usage, "critical,keyCertSign" },
        { NID_subject_key_identifier, "hash" },
    };
    return make_certificate(begin_certificate(subject, subject, key, wall_ms), NULL, key,
                            extensions, sizeof extensions / sizeof *extensions);
}

static X509 *make_server(const char *names, const char *issuer_name, EVP_PKEY *key,
                         X509 *issuer, EVP_PKEY *issuer_key, int64_t wall_ms)
{
    const struct extension extensions[] = {
        { NID_basic_constraints, "critical,CA:FALSE" },
        { NID_key_usage, "critical,digitalSignature" },
        { NID_ext_key_usage, "serverAuth" },
        { NID_authority_key_identifier, "keyid:always" },
        { NID_subject_alt_name, names },
    };
    return make_certificate(
        begin_certificate("heterotrain-webhook", issuer_name, key, wall_ms), issuer,
        issuer_key, extensions, sizeof extensions / sizeof *extensions);
}

int certificate_make(const char *owner, const char *const *names, size_t name_count,
                     int64_t wall_ms, struct certificate *ret, struct het_error *err)
{
    assert(name_count && name_count <= CERTIFICATE_MAX_NAMES);
    auto_free char *alternatives = NULL;
    char subject[OWNER_SIZE];
    format_owner(owner, subject);
    if (format_names(names, name_count, &alternatives, err) < 0)
        return -1;
    ERR_clear_error();
    EVP_PKEY *authority_key = EVP_EC_gen("P-256"), *key = EVP_EC_gen("P-256");
    X509 *authority =
        authority_key && key ? make_authority(subject, authority_key, wall_ms) : NULL;
    X509 *server = authority ? make_server(alternatives, subject, key, authority,
                                           authority_key, wall_ms)
                             : NULL;
    if (server)
        *ret = (struct certificate){
            .authority_pem = certificate_text(authority),
            .certificate_pem = certificate_text(server),
            .key_pem = key_text(key),
            .ends_wall_ms = wall_ms + CERTIFICATE_LIFE_MS,
        };
    bool is_made = server != NULL;
    X509_free(server);
    X509_free(authority);
    EVP_PKEY_free(key);
    EVP_PKEY_free(authority_key);
    return is_made ? 0 : fail(err, "no certificate can be made");
}

void certificate_fini(struct certificate *certificate)
{
    if (certificate->key_pem)
        explicit_bzero(certificate->key_pem, strlen(certificate->key_pem));
    free(certificate->authority_pem);
    free(certificate->certificate_pem);
    free(certificate->key_pem);
    *certificate = (struct certificate){ 0 };
}

/* ---- bundles ---- */

static int64_t end_of(const X509 *certificate)
{
    struct tm time;
    if (!ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time))
        return INT64_MIN;
    return (int64_t)timegm(&time) * 1000;
}

int certificate_end(const char *pem, int64_t *ret_wall_ms, struct het_error *err)
{
    BIO *bio = open_text(pem);
    X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    ERR_clear_error();
    if (!certificate)
        return het_fail(err, HET_BAD_INPUT, "the certificate cannot be read");
    *ret_wall_ms = end_of(certificate);
    X509_free(certificate);
    return 0;
}

/* The certificates of a text; more than are allowed are not read. */
struct bundle {
    X509 *certificates[2 * CERTIFICATE_MAX_BUNDLE];
    size_t count;
};

static void read_bundle(const char *pem, struct bundle *ret)
{
    BIO *bio = open_text(pem);
    bool has_more = true;
    ret->count = 0;
    while (has_more && ret->count < 2 * CERTIFICATE_MAX_BUNDLE) {
        X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
        if (certificate)
            ret->certificates[ret->count++] = certificate;
        else /* one that is broken has others behind it */
            has_more = ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE &&
                       !BIO_eof(bio);
        ERR_clear_error();
    }
    BIO_free(bio);
}

static void bundle_fini(struct bundle *bundle)
{
    for (size_t i = 0; i < bundle->count; i++)
        X509_free(bundle->certificates[i]);
}

static void remove_at(struct bundle *bundle, size_t index)
{
    X509_free(bundle->certificates[index]);
    bundle->count--;
    memmove(&bundle->certificates[index], &bundle->certificates[index + 1],
            (bundle->count - index) * sizeof *bundle->certificates);
}

static bool has_certificate(const struct bundle *bundle, const X509 *certificate)
{
    for (size_t i = 0; i < bundle->count; i++)
        if (!X509_cmp(bundle->certificates[i], certificate))
            return true;
    return false;
}

static bool is_by(const X509 *certificate, const char *owner_name)
{
    char name[OWNER_SIZE + 1];
    int length = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate),
                                           NID_commonName, name, sizeof name);
    return length > 0 && !strcmp(name, owner_name);
}

/* Among those that are not `own`. */
static size_t find_first_to_end(const struct bundle *bundle, const struct bundle *own)
{
    size_t first = bundle->count;
    for (size_t i = 0; i < bundle->count; i++)
        if (!has_certificate(own, bundle->certificates[i]) &&
            (first == bundle->count ||
             end_of(bundle->certificates[i]) < end_of(bundle->certificates[first])))
            first = i;
    return first;
}

char *certificate_bundle(const char *present, const char *owner, const char *own_pem,
                         int64_t wall_ms)
{
    struct bundle bundle, own;
    char owner_name[OWNER_SIZE];
    format_owner(owner, owner_name);
    read_bundle(own_pem, &own);
    read_bundle(present, &bundle);
    assert(own.count < CERTIFICATE_MAX_BUNDLE);
    for (size_t i = bundle.count; i-- > 0;) {
        X509 *each = bundle.certificates[i];
        if (!has_certificate(&own, each) &&
            (is_by(each, owner_name) || end_of(each) <= wall_ms))
            remove_at(&bundle, i);
    }
    for (size_t i = 0; i < own.count; i++)
        if (!has_certificate(&bundle, own.certificates[i])) {
            while (bundle.count >= CERTIFICATE_MAX_BUNDLE)
                remove_at(&bundle, find_first_to_end(&bundle, &own));
            X509_up_ref(own.certificates[i]);
            bundle.certificates[bundle.count++] = own.certificates[i];
        }
    BIO *bio = open_buffer();
    for (size_t i = 0; i < bundle.count; i++)
        PEM_write_bio_X509(bio, bundle.certificates[i]);
    bundle_fini(&bundle);
    bundle_fini(&own);
    return take_text(bio);
}

bool certificate_is_in(const char *bundle_pem, const char *pem)
{
    struct bundle bundle, one;
    read_bundle(bundle_pem, &bundle);
    read_bundle(pem, &one);
    bool is_in = one.count && has_certificate(&bundle, one.certificates[0]);
    bundle_fini(&bundle);
    bundle_fini(&one);
    return is_in;
}
