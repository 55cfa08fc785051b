/* Certificates are what a verifier takes them for, and bundles hold what they should. */
#include "controller/serve/certificate.h"

#include "controller/serve/tls.h"

#include <check.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#define NOW_MS ((int64_t)1800000000000) /* 2027 */
#define DAY_MS ((int64_t)86400000)

static const char *const names[] = { "hook.sys.svc", "127.0.0.1", "::1" };

static struct certificate make_at(const char *owner, int64_t wall_ms)
{
    struct certificate certificate;
    struct het_error err = { 0 };
    ck_assert_msg(!certificate_make(owner, names, 3, wall_ms, &certificate, &err), "%s",
                  err.message);
    return certificate;
}

static X509 *parse(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    ck_assert_ptr_nonnull(certificate);
    return certificate;
}

/* X509_V_OK, or why a client at `wall_ms` that trusts `authority` refuses. */
static int verify(const char *authority, const char *pem, const char *host,
                  const char *address, int64_t wall_ms)
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    X509 *root = parse(authority), *certificate = parse(pem);
    X509_STORE_add_cert(store, root);
    X509_STORE_CTX_init(context, store, certificate, NULL);
    X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(context);
    X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
    X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_SERVER);
    X509_VERIFY_PARAM_set_time(param, (time_t)(wall_ms / 1000));
    if (host)
        X509_VERIFY_PARAM_set1_host(param, host, 0);
    if (address)
        X509_VERIFY_PARAM_set1_ip_asc(param, address);
    int result = X509_verify_cert(context) == 1 ? X509_V_OK
                                                : X509_STORE_CTX_get_error(context);
    X509_STORE_CTX_free(context);
    X509_STORE_free(store);
    X509_free(root);
    X509_free(certificate);
    return result;
}

START_TEST(a_client_that_knows_the_authority_believes_the_certificate)
{
    struct certificate made = make_at("a", NOW_MS);
    const char *authority = made.authority_pem, *pem = made.certificate_pem;
    ck_assert_int_eq(verify(authority, pem, "hook.sys.svc", NULL, NOW_MS), X509_V_OK);
    ck_assert_int_eq(verify(authority, pem, NULL, "127.0.0.1", NOW_MS), X509_V_OK);
    ck_assert_int_eq(verify(authority, pem, NULL, "::1", NOW_MS), X509_V_OK);
    ck_assert_int_eq(verify(authority, pem, "other.sys.svc", NULL, NOW_MS),
                     X509_V_ERR_HOSTNAME_MISMATCH);
    ck_assert_int_eq(verify(authority, pem, NULL, "127.0.0.2", NOW_MS),
                     X509_V_ERR_IP_ADDRESS_MISMATCH);
    certificate_fini(&made);
}
END_TEST

START_TEST(it_holds_for_its_time_and_says_when_that_is_over)
{
    struct certificate made = make_at("a", NOW_MS);
    const char *authority = made.authority_pem, *pem = made.certificate_pem;
    int64_t end_ms;
    ck_assert_int_eq(certificate_end(pem, &end_ms, NULL), 0);
    ck_assert_int_eq(end_ms, NOW_MS + CERTIFICATE_LIFE_MS);
    ck_assert_int_eq(made.ends_wall_ms, end_ms);
    ck_assert_int_eq(verify(authority, pem, NULL, NULL, NOW_MS - 3500 * 1000), X509_V_OK);
    ck_assert_int_eq(verify(authority, pem, NULL, NULL, end_ms - 1000), X509_V_OK);
    ck_assert_int_eq(verify(authority, pem, NULL, NULL, end_ms + 1000),
                     X509_V_ERR_CERT_HAS_EXPIRED);
    certificate_fini(&made);
}
END_TEST

START_TEST(another_authority_vouches_for_nothing)
{
    struct certificate one = make_at("a", NOW_MS), other = make_at("a", NOW_MS);
    ck_assert_str_ne(one.key_pem, other.key_pem);
    ck_assert_int_ne(verify(other.authority_pem, one.certificate_pem, NULL, NULL, NOW_MS),
                     X509_V_OK);
    /* The server's own certificate signs no others. */
    ck_assert_int_ne(
        verify(one.certificate_pem, other.certificate_pem, NULL, NULL, NOW_MS),
        X509_V_OK);
    certificate_fini(&one);
    certificate_fini(&other);
}
END_TEST

START_TEST(certificate_and_key_are_a_servers_identity)
{
    struct certificate made = make_at("a", NOW_MS), other = make_at("a", NOW_MS);
    struct het_error err = { 0 };
    struct tls_identity *identity =
        tls_identity_new(made.certificate_pem, made.key_pem, &err);
    ck_assert_msg(identity != NULL, "%s", err.message);
    tls_identity_free(identity);
    ck_assert_ptr_null(tls_identity_new(made.certificate_pem, other.key_pem, &err));
    certificate_fini(&made);
    certificate_fini(&other);
}
END_TEST

START_TEST(a_name_that_is_none_is_refused)
{
    static const char *const wrong[] = { "", "a b", "a,DNS:b", "a\nb", "*.svc", "A.svc" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct certificate certificate;
        struct het_error err = { 0 };
        ck_assert_int_eq(certificate_make("a", &wrong[i], 1, NOW_MS, &certificate, &err),
                         -1);
        ck_assert_int_eq(err.code, HET_BAD_INPUT);
    }
}
END_TEST

/* ---- bundles ---- */

static char *join(const char *a, const char *b)
{
    return xasprintf("%s%s", a, b);
}

static size_t count_of(const char *bundle)
{
    size_t count = 0;
    for (const char *at = bundle; (at = strstr(at, "BEGIN CERTIFICATE")); at++)
        count++;
    return count;
}

START_TEST(replicas_add_their_own_and_keep_those_of_others)
{
    struct certificate a = make_at("a", NOW_MS), b = make_at("b", NOW_MS);
    auto_free char *one = certificate_bundle("", "a", a.authority_pem, NOW_MS);
    ck_assert_str_eq(one, a.authority_pem);
    auto_free char *both = certificate_bundle(one, "b", b.authority_pem, NOW_MS);
    auto_free char *expected = join(a.authority_pem, b.authority_pem);
    ck_assert_str_eq(both, expected);
    ck_assert(certificate_is_in(both, a.authority_pem));
    ck_assert(!certificate_is_in(one, b.authority_pem));
    ck_assert(!certificate_is_in("", b.authority_pem));
    /* Both agree, so nobody writes. */
    auto_free char *by_a = certificate_bundle(both, "a", a.authority_pem, NOW_MS);
    auto_free char *by_b = certificate_bundle(both, "b", b.authority_pem, NOW_MS);
    ck_assert_str_eq(by_a, both);
    ck_assert_str_eq(by_b, both);
    certificate_fini(&a);
    certificate_fini(&b);
}
END_TEST

START_TEST(a_replica_that_comes_again_takes_its_old_authority_away)
{
    struct certificate old = make_at("a", NOW_MS), new = make_at("a", NOW_MS),
                       b = make_at("b", NOW_MS);
    auto_free char *before = join(old.authority_pem, b.authority_pem);
    auto_free char *after = certificate_bundle(before, "a", new.authority_pem, NOW_MS);
    auto_free char *expected = join(b.authority_pem, new.authority_pem);
    ck_assert_str_eq(after, expected);
    /* While it changes from one to the other, it has both. */
    auto_free char *own = join(old.authority_pem, new.authority_pem);
    auto_free char *during = certificate_bundle(before, "a", own, NOW_MS);
    ck_assert_uint_eq(count_of(during), 3);
    certificate_fini(&old);
    certificate_fini(&new);
    certificate_fini(&b);
}
END_TEST

START_TEST(what_has_ended_and_what_is_no_certificate_goes)
{
    struct certificate gone = make_at("c", NOW_MS - CERTIFICATE_LIFE_MS),
                       near = make_at("d", NOW_MS - CERTIFICATE_LIFE_MS + 1000),
                       a = make_at("a", NOW_MS);
    auto_free char *before = xasprintf(
        "nonsense\n%s-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n%s",
        gone.authority_pem, near.authority_pem);
    auto_free char *after = certificate_bundle(before, "a", a.authority_pem, NOW_MS);
    auto_free char *expected = join(near.authority_pem, a.authority_pem);
    ck_assert_str_eq(after, expected);
    certificate_fini(&gone);
    certificate_fini(&near);
    certificate_fini(&a);
}
END_TEST

START_TEST(a_full_bundle_makes_room_by_what_ends_first)
{
    auto_free char *bundle = xstrdup("");
    struct certificate first = { 0 }, second = { 0 };
    for (int i = 0; i < CERTIFICATE_MAX_BUNDLE; i++) {
        auto_free char *owner = xasprintf("replica-%d", i);
        struct certificate made = make_at(owner, NOW_MS + (i == 7 ? -DAY_MS : i * 1000));
        char *longer = certificate_bundle(bundle, owner, made.authority_pem, NOW_MS);
        free(bundle);
        bundle = longer;
        if (i == 7)
            first = made;
        else if (!i)
            second = made;
        else
            certificate_fini(&made);
    }
    ck_assert_uint_eq(count_of(bundle), CERTIFICATE_MAX_BUNDLE);
    struct certificate late = make_at("late", NOW_MS);
    auto_free char *after =
        certificate_bundle(bundle, "late", late.authority_pem, NOW_MS);
    ck_assert_uint_eq(count_of(after), CERTIFICATE_MAX_BUNDLE);
    ck_assert(certificate_is_in(after, late.authority_pem));
    ck_assert(!certificate_is_in(after, first.authority_pem));
    ck_assert(certificate_is_in(after, second.authority_pem));
    certificate_fini(&first);
    certificate_fini(&second);
    certificate_fini(&late);
}
END_TEST

Suite *test_certificate_suite(void)
{
    Suite *suite = suite_create("certificate");
    TCase *tests = tcase_create("certificate");
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, a_client_that_knows_the_authority_believes_the_certificate);
    tcase_add_test(tests, it_holds_for_its_time_and_says_when_that_is_over);
    tcase_add_test(tests, another_authority_vouches_for_nothing);
    tcase_add_test(tests, certificate_and_key_are_a_servers_identity);
    tcase_add_test(tests, a_name_that_is_none_is_refused);
    tcase_add_test(tests, replicas_add_their_own_and_keep_those_of_others);
    tcase_add_test(tests, a_replica_that_comes_again_takes_its_old_authority_away);
    tcase_add_test(tests, what_has_ended_and_what_is_no_certificate_goes);
    tcase_add_test(tests, a_full_bundle_makes_room_by_what_ends_first);
    return suite;
}
