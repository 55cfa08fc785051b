#include "controller/serve/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>

struct tls_identity {
    X509 *certificate;
    STACK_OF(X509) * chain;
    EVP_PKEY *key;
};

static int fail(struct het_error *err, enum het_error_code code, const char *what)
{
    unsigned long number = ERR_get_error();
    const char *reason = number ? ERR_reason_error_string(number) : NULL;
    ERR_clear_error();
    return het_fail(err, code, "%s%s%s", what, reason ? ": " : "", reason ? reason : "");
}

static BIO *open_text(const char *text)
{
    BIO *bio = BIO_new_mem_buf(text, (int)strlen(text));
    if (!bio)
        abort(); /* out of memory */
    return bio;
}

static int read_certificates(struct tls_identity *identity, const char *pem,
                             struct het_error *err)
{
    BIO *bio = open_text(pem);
    identity->certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    identity->chain = sk_X509_new_null();
    for (X509 *next; identity->certificate &&
                     (next = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL;)
        sk_X509_push(identity->chain, next);
    BIO_free(bio);
    if (!identity->certificate)
        return fail(err, HET_BAD_INPUT, "the certificate cannot be read");
    ERR_clear_error(); /* that there was no further one */
    return 0;
}

/* An encrypted key is refused: there is no one to ask for its password. */
static int no_password(char *text, int size, int is_writing, void *context)
{
    (void)text;
    (void)size;
    (void)is_writing;
    (void)context;
    return -1;
}

struct tls_identity *tls_identity_new(const char *certificate_pem, const char *key_pem,
                                      struct het_error *err)
{
    struct tls_identity *identity = xcalloc(1, sizeof *identity);
    ERR_clear_error();
    if (read_certificates(identity, certificate_pem, err) < 0) {
        tls_identity_free(identity);
        return NULL;
    }
    BIO *bio = open_text(key_pem);
    identity->key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
    BIO_free(bio);
    int result = 0;
    if (!identity->key)
        result = fail(err, HET_BAD_INPUT, "the key cannot be read");
    else if (!X509_check_private_key(identity->certificate, identity->key))
        result = fail(err, HET_BAD_INPUT, "the key is not the certificate's");
    if (result < 0) {
        tls_identity_free(identity);
        return NULL;
    }
    return identity;
}

void tls_identity_free(struct tls_identity *identity)
{
    if (!identity)
        return;
    X509_free(identity->certificate);
    sk_X509_pop_free(identity->chain, X509_free);
    EVP_PKEY_free(identity->key);
    free(identity);
}

int tls_use_identity(SSL_CTX *context, const struct tls_identity *identity,
                     struct het_error *err)
{
    ERR_clear_error();
    if (!SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) ||
        !SSL_CTX_use_cert_and_key(context, identity->certificate, identity->key,
                                  identity->chain, 1))
        return fail(err, HET_IO, "OpenSSL refuses the certificate");
    return 0;
}
