/* The API server is told the authority before the certificate is shown. */
#include "controller/serve/certificate_bundle.h"

#include "controller/base/log.h"
#include "controller/base/object.h"
#include "tests/controller/quoted.h"
#include "tests/controller/script_transport.h"

#include <check.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH                                                                             \
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/heterotrain"
#define WALL_MS ((int64_t)1800000000000)

static struct script *script;
static struct kube *kube;
static struct certificate_bundle *trust;
static int64_t now_ms, wall_ms;
static char *shown; /* certificate that was put to use last; NULL: none */
static bool use_fails;
static char *bundle; /* of the configuration, as the server has it */
static int version;

static int use(void *context, const char *certificate_pem, const char *key_pem,
               struct het_error *err)
{
    ck_assert_ptr_null(context);
    ck_assert_ptr_nonnull(strstr(key_pem, "PRIVATE KEY"));
    if (use_fails)
        return het_fail(err, HET_BAD_INPUT, "does not fit");
    free(shown);
    shown = xstrdup(certificate_pem);
    return 0;
}

static const char *const names[] = { "hook.sys.svc" };

static struct certificate_bundle_config config_of(const char *owner)
{
    return (struct certificate_bundle_config){ .owner = owner,
                                               .names = names,
                                               .name_count = 1,
                                               .configuration = "heterotrain",
                                               .kube = kube,
                                               .use = use };
}

static void set_up(void)
{
    log_set_levels("off", NULL);
    script = script_new();
    kube = kube_new(script_transport(script), "tester/1");
    now_ms = 1000000;
    wall_ms = WALL_MS;
    shown = NULL;
    use_fails = false;
    bundle = xstrdup("");
    version = 1;
    struct certificate_bundle_config config = config_of("a");
    struct het_error err = { 0 };
    trust = certificate_bundle_new(&config, now_ms, wall_ms, &err);
    ck_assert_msg(trust != NULL, "%s", err.message);
}

static void tear_down(void)
{
    certificate_bundle_free(trust);
    kube_free(kube);
    script_free(script);
    free(shown);
    free(bundle);
    log_set_levels("info", NULL);
}

static void step_after(int64_t wait_ms)
{
    now_ms += wait_ms;
    wall_ms += wait_ms;
    kube_step(kube, now_ms);
    certificate_bundle_step(trust, now_ms, wall_ms);
    kube_step(kube, now_ms);
}

static char *encode(const char *text)
{
    char *base64 = xcalloc(1, 4 * (strlen(text) / 3 + 1) + 1);
    EVP_EncodeBlock((unsigned char *)base64, (const unsigned char *)text,
                    (int)strlen(text));
    return base64;
}

static char *decode(const char *base64)
{
    char *text = xcalloc(1, strlen(base64) + 1);
    ck_assert_int_ge(EVP_DecodeBlock((unsigned char *)text, (const unsigned char *)base64,
                                     (int)strlen(base64)),
                     0);
    return text;
}

/* The configuration as it is now. */
static void give_configuration(void)
{
    auto_free char *base64 = encode(bundle);
    json_auto_t *object =
        quoted("{'apiVersion': 'admissionregistration.k8s.io/v1', 'kind': "
               "'ValidatingWebhookConfiguration', 'metadata': {'name': 'heterotrain', "
               "'resourceVersion': '%d'}, 'webhooks': [{'name': 'jobs', 'clientConfig': "
               "{'caBundle': '%s'}}]}",
               version, base64);
    auto_free char *text = json_dumps(object, 0);
    script_reply(script_expect(script, "GET", PATH), 200, -1, text);
}

static void give_status(const char *method, int code, const char *reason)
{
    auto_free char *text =
        xasprintf("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"code\":%d,\"reason\":"
                  "\"%s\"}",
                  code, reason);
    script_reply(script_expect(script, method, PATH), code, -1, text);
}

/* The server keeps what it is sent. */
static void take_patch(void)
{
    struct script_request *request = script_expect(script, "PATCH", PATH);
    ck_assert_str_eq(request->content_type, "application/json-patch+json");
    json_auto_t *patch = json_loads(request->body, 0, NULL);
    ck_assert_uint_eq(json_array_size(patch), 2);
    auto_free char *expected = xasprintf("%d", version);
    ck_assert_str_eq(object_text(json_array_get(patch, 0), "path"),
                     "/metadata/resourceVersion");
    ck_assert_str_eq(object_text(json_array_get(patch, 0), "value"), expected);
    ck_assert_str_eq(object_text(json_array_get(patch, 1), "path"),
                     "/webhooks/0/clientConfig/caBundle");
    free(bundle);
    bundle = decode(object_text(json_array_get(patch, 1), "value"));
    auto_free char *text = xasprintf(
        "{\"kind\":\"ValidatingWebhookConfiguration\",\"apiVersion\":\"admissionregist"
        "ration.k8s.io/v1\",\"metadata\":{\"name\":\"heterotrain\",\"resourceVersion\":"
        "\"%d\"}}",
        ++version);
    script_reply(request, 200, -1, text);
}

static size_t count_of(const char *pem)
{
    size_t count = 0;
    for (const char *at = pem; (at = strstr(at, "BEGIN CERTIFICATE")); at++)
        count++;
    return count;
}

static void establish(void)
{
    step_after(0);
    give_configuration();
    kube_step(kube, now_ms);
    take_patch();
    step_after(CERTIFICATE_BUNDLE_READY_MS);
}

START_TEST(the_authority_is_told_and_then_it_is_ready)
{
    step_after(0);
    give_configuration();
    kube_step(kube, now_ms);
    ck_assert(!certificate_bundle_is_ready(trust));
    take_patch();
    ck_assert_uint_eq(count_of(bundle), 1);
    step_after(CERTIFICATE_BUNDLE_READY_MS - 1);
    ck_assert(!certificate_bundle_is_ready(trust));
    step_after(1);
    ck_assert(certificate_bundle_is_ready(trust));
    script_expect_nothing(script);
    ck_assert_int_eq(certificate_bundle_next_ms(trust),
                     now_ms - CERTIFICATE_BUNDLE_READY_MS + CERTIFICATE_BUNDLE_READ_MS);
}
END_TEST

START_TEST(nothing_is_written_while_nothing_changes)
{
    establish();
    for (int i = 0; i < 5; i++) {
        step_after(CERTIFICATE_BUNDLE_READ_MS);
        give_configuration();
        kube_step(kube, now_ms);
        script_expect_nothing(script);
    }
    ck_assert(certificate_bundle_is_ready(trust));
    ck_assert_ptr_null(shown);
}
END_TEST

START_TEST(of_two_replicas_at_a_time_one_reads_again)
{
    step_after(0);
    give_configuration();
    kube_step(kube, now_ms);
    give_status("PATCH", 409, "Conflict");
    free(bundle);
    struct certificate other;
    ck_assert_int_eq(certificate_make("b", names, 1, wall_ms, &other, NULL), 0);
    bundle = xstrdup(other.authority_pem);
    version++;
    step_after(CERTIFICATE_BUNDLE_RETRY_MS);
    give_configuration();
    kube_step(kube, now_ms);
    take_patch();
    ck_assert_uint_eq(count_of(bundle), 2);
    ck_assert(certificate_is_in(bundle, other.authority_pem));
    certificate_fini(&other);
}
END_TEST

START_TEST(the_next_certificate_is_shown_when_the_api_server_knows_it)
{
    establish();
    auto_free char *first = xstrdup(certificate_bundle_certificate(trust));
    auto_free char *first_bundle = xstrdup(bundle);
    step_after(CERTIFICATE_BUNDLE_RENEW_MS);
    give_configuration();
    kube_step(kube, now_ms);
    take_patch();
    ck_assert_uint_eq(count_of(bundle), 2);
    ck_assert(certificate_is_in(bundle, first_bundle));
    step_after(CERTIFICATE_BUNDLE_SETTLE_MS - 1);
    ck_assert_ptr_null(shown);
    ck_assert_str_eq(certificate_bundle_certificate(trust), first);
    ck_assert_int_eq(certificate_bundle_next_ms(trust), now_ms + 1);
    step_after(1);
    ck_assert_ptr_nonnull(shown);
    ck_assert_str_ne(shown, first);
    ck_assert_str_eq(certificate_bundle_certificate(trust), shown);
    ck_assert(certificate_bundle_is_ready(trust));
    /* The old authority goes. */
    step_after(CERTIFICATE_BUNDLE_READ_MS);
    give_configuration();
    kube_step(kube, now_ms);
    take_patch();
    ck_assert_uint_eq(count_of(bundle), 1);
    ck_assert(!certificate_is_in(bundle, first_bundle));
}
END_TEST

START_TEST(a_certificate_from_a_clock_that_was_wrong_is_replaced)
{
    establish();
    wall_ms -= 2 * CERTIFICATE_LIFE_MS;
    step_after(0);
    give_configuration();
    kube_step(kube, now_ms);
    take_patch();
    step_after(CERTIFICATE_BUNDLE_SETTLE_MS);
    int64_t end_ms;
    ck_assert_int_eq(certificate_end(shown, &end_ms, NULL), 0);
    ck_assert_int_le(end_ms, wall_ms + CERTIFICATE_LIFE_MS);
}
END_TEST

START_TEST(an_authority_that_somebody_took_away_is_told_again)
{
    establish();
    auto_free char *first = xstrdup(bundle);
    free(bundle);
    bundle = xstrdup("");
    step_after(CERTIFICATE_BUNDLE_READ_MS);
    give_configuration();
    kube_step(kube, now_ms);
    ck_assert(!certificate_bundle_is_ready(trust));
    take_patch();
    /* What is shown now, and a new one: the last to make room, should it be that. */
    ck_assert_uint_eq(count_of(bundle), 2);
    ck_assert(certificate_is_in(bundle, first));
    step_after(CERTIFICATE_BUNDLE_READY_MS);
    ck_assert(certificate_bundle_is_ready(trust));
    step_after(CERTIFICATE_BUNDLE_SETTLE_MS);
    ck_assert_ptr_nonnull(shown);
}
END_TEST

START_TEST(failures_are_tried_again_with_growing_pauses)
{
    step_after(0);
    int64_t pauses[] = { 500, 1000, 2000, 4000, 8000, 15000, 15000 };
    for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
        give_status("GET", 403, "Forbidden");
        ck_assert_int_eq(certificate_bundle_next_ms(trust), now_ms + pauses[i]);
        ck_assert(!certificate_bundle_is_ready(trust));
        step_after(pauses[i]);
    }
    give_configuration();
    kube_step(kube, now_ms);
    take_patch();
    step_after(CERTIFICATE_BUNDLE_READY_MS);
    ck_assert(certificate_bundle_is_ready(trust));
}
END_TEST

START_TEST(without_a_configuration_nobody_asks_and_it_is_ready)
{
    step_after(0);
    give_status("GET", 404, "NotFound");
    ck_assert(certificate_bundle_is_ready(trust));
    step_after(CERTIFICATE_BUNDLE_RETRY_MS);
    give_configuration(); /* now there is one */
    kube_step(kube, now_ms);
    take_patch();
    ck_assert(!certificate_bundle_is_ready(trust));
}
END_TEST

/* ---- files ---- */

static char folder[64];

static void put(const char *name, const char *text)
{
    auto_free char *path = xasprintf("%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static struct certificate put_pair(void)
{
    struct certificate made;
    ck_assert_int_eq(certificate_make("x", names, 1, wall_ms, &made, NULL), 0);
    put("tls.crt", made.certificate_pem);
    put("tls.key", made.key_pem);
    return made;
}

static struct certificate_bundle *trust_of_files(struct het_error *err)
{
    struct certificate_bundle_config config = { .folder = folder, .use = use };
    return certificate_bundle_new(&config, now_ms, wall_ms, err);
}

static void set_up_files(void)
{
    set_up();
    certificate_bundle_free(trust);
    trust = NULL;
    strcpy(folder, "/tmp/heterotrain-trust-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void tear_down_files(void)
{
    static const char *const files[] = { "tls.crt", "tls.key" };
    for (size_t i = 0; i < 2; i++) {
        auto_free char *path = xasprintf("%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
    tear_down();
}

START_TEST(files_are_read_again_when_they_change)
{
    struct certificate first = put_pair();
    struct het_error err = { 0 };
    trust = trust_of_files(&err);
    ck_assert_msg(trust != NULL, "%s", err.message);
    ck_assert(certificate_bundle_is_ready(trust));
    ck_assert_str_eq(certificate_bundle_certificate(trust), first.certificate_pem);
    step_after(CERTIFICATE_BUNDLE_FILES_MS);
    ck_assert_ptr_null(shown);
    struct certificate second = put_pair();
    step_after(CERTIFICATE_BUNDLE_FILES_MS - 1);
    ck_assert_ptr_null(shown);
    step_after(1);
    ck_assert_str_eq(shown, second.certificate_pem);
    ck_assert_str_eq(certificate_bundle_key(trust), second.key_pem);
    script_expect_nothing(script); /* the bundle is somebody else's to write */
    certificate_fini(&first);
    certificate_fini(&second);
}
END_TEST

START_TEST(files_that_cannot_be_used_change_nothing)
{
    struct certificate first = put_pair();
    trust = trust_of_files(NULL);
    static const char *const broken[] = { "", "nonsense", NULL };
    for (size_t i = 0; i < 3; i++) {
        if (broken[i])
            put("tls.crt", broken[i]);
        else { /* half of a new pair */
            struct certificate second = put_pair();
            use_fails = true;
            certificate_fini(&second);
        }
        step_after(CERTIFICATE_BUNDLE_FILES_MS);
        ck_assert_ptr_null(shown);
        ck_assert_str_eq(certificate_bundle_certificate(trust), first.certificate_pem);
    }
    use_fails = false;
    step_after(CERTIFICATE_BUNDLE_FILES_MS);
    ck_assert_ptr_nonnull(shown);
    certificate_fini(&first);
}
END_TEST

START_TEST(without_files_it_does_not_start)
{
    struct het_error err = { 0 };
    ck_assert_ptr_null(trust_of_files(&err));
    ck_assert_ptr_nonnull(strstr(err.message, "tls.crt: No such file"));
    put("tls.crt", "x");
    ck_assert_ptr_null(trust_of_files(&err));
    ck_assert_ptr_nonnull(strstr(err.message, "tls.key: No such file"));
}
END_TEST

START_TEST(without_a_configuration_nobody_is_told_and_the_next_is_shown_at_once)
{
    struct certificate_bundle_config config = config_of("b");
    config.configuration = NULL;
    struct het_error err = { 0 };
    struct certificate_bundle *untold =
        certificate_bundle_new(&config, now_ms, wall_ms, &err);
    ck_assert_ptr_nonnull(untold);
    ck_assert(certificate_bundle_is_ready(untold));
    certificate_bundle_step(untold, now_ms, wall_ms);
    ck_assert_ptr_null(shown);
    ck_assert_int_eq(certificate_bundle_next_ms(untold),
                     now_ms + CERTIFICATE_BUNDLE_READ_MS);
    auto_free char *first = xstrdup(certificate_bundle_certificate(untold));
    certificate_bundle_step(untold, now_ms + CERTIFICATE_BUNDLE_READ_MS,
                            wall_ms + CERTIFICATE_BUNDLE_RENEW_MS);
    ck_assert_str_ne(certificate_bundle_certificate(untold), first);
    ck_assert_str_eq(certificate_bundle_certificate(untold), shown);
    kube_step(kube, now_ms + CERTIFICATE_BUNDLE_READ_MS);
    ck_assert_uint_eq(script_open_count(script), 0);
    certificate_bundle_free(untold);
}
END_TEST

Suite *test_certificate_bundle_suite(void)
{
    Suite *suite = suite_create("certificate_bundle");
    TCase *own = tcase_create("own"), *files = tcase_create("files");
    suite_add_tcase(suite, own);
    tcase_add_checked_fixture(own, set_up, tear_down);
    tcase_add_test(own, the_authority_is_told_and_then_it_is_ready);
    tcase_add_test(own, nothing_is_written_while_nothing_changes);
    tcase_add_test(own, of_two_replicas_at_a_time_one_reads_again);
    tcase_add_test(own, the_next_certificate_is_shown_when_the_api_server_knows_it);
    tcase_add_test(own, a_certificate_from_a_clock_that_was_wrong_is_replaced);
    tcase_add_test(own, an_authority_that_somebody_took_away_is_told_again);
    tcase_add_test(own, failures_are_tried_again_with_growing_pauses);
    tcase_add_test(own, without_a_configuration_nobody_asks_and_it_is_ready);
    suite_add_tcase(suite, files);
    tcase_add_checked_fixture(files, set_up_files, tear_down_files);
    tcase_add_test(files, files_are_read_again_when_they_change);
    tcase_add_test(files, files_that_cannot_be_used_change_nothing);
    tcase_add_test(files, without_files_it_does_not_start);
    tcase_add_test(own,
                   without_a_configuration_nobody_is_told_and_the_next_is_shown_at_once);
    return suite;
}
