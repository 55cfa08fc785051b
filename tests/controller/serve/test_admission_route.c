/* The webhook over real TLS on loopback; the test is the loop, and the API server. */
#include "controller/serve/admission_route.h"

#include "controller/base/log.h"
#include "controller/base/object.h"
#include "controller/serve/certificate.h"
#include "tests/controller/objects.h"
#include "tests/controller/quoted.h"
#include "tests/controller/script_transport.h"

#include <arpa/inet.h>
#include <check.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ACCESS_PATH "/apis/authorization.k8s.io/v1/subjectaccessreviews"

static struct script *script;
static struct kube *kube;
static struct admission_route *admission;
static struct server *server;
static struct metrics *metrics;
static struct certificate certificate;
static atomic_llong clock_value;
static atomic_int wakes;

static const char *const names[] = { "127.0.0.1", "hook.sys.svc" };

static int64_t clock_ms(void *context)
{
    (void)context;
    return clock_value;
}

static void wake(void *context)
{
    (void)context;
    wakes++;
}

static int64_t wall_ms(void)
{
    return (int64_t)time(NULL) * 1000;
}

static void set_up(void)
{
    static struct server_listener listener;
    struct het_error err = { 0 };
    signal(SIGPIPE, SIG_IGN);
    log_set_levels("off", NULL);
    script = script_new();
    kube = kube_new(script_transport(script), "tester/1");
    metrics = metrics_new(NULL, NULL);
    clock_value = 1000000;
    wakes = 0;
    struct admission_route_config config = { .settings = settings_default(),
                                             .kube = kube,
                                             .metrics = metrics,
                                             .clock_ms = clock_ms,
                                             .wake = wake };
    admission = admission_route_new(&config);
    ck_assert_int_eq(certificate_make("a", names, 2, wall_ms(), &certificate, &err), 0);
    listener = (struct server_listener){ .address = "127.0.0.1:0",
                                         .routes = admission_route_routes(admission),
                                         .route_count = 1,
                                         .answers_any_host = true,
                                         .certificate_pem = certificate.certificate_pem,
                                         .key_pem = certificate.key_pem };
    struct server_config serving = { .listeners = &listener, .listener_count = 1 };
    server = server_new(&serving, &err);
    ck_assert_msg(server != NULL, "%s", err.message);
    admission_route_set_server(admission, server);
}

static void tear_down(void)
{
    server_free(server);
    admission_route_free(admission);
    kube_free(kube);
    script_free(script);
    metrics_free(metrics);
    certificate_fini(&certificate);
    log_set_levels("info", NULL);
}

/* ---- the loop ---- */

static void step(void)
{
    admission_route_step(admission, clock_value);
    kube_step(kube, clock_value);
}

/* Until `count` requests wait for the loop. */
static void wait_for(int count)
{
    for (int i = 0; i < 500 && wakes < count; i++)
        poll(NULL, 0, 10);
    ck_assert_int_eq(wakes, count);
}

/* The API server's word about the next user. */
static struct script_request *expect_question(void)
{
    return script_expect(script, "POST", ACCESS_PATH);
}

static void answer_question(const char *status)
{
    auto_free char *text =
        xasprintf("{\"kind\":\"SubjectAccessReview\",\"apiVersion\":\"authorization.k8s."
                  "io/v1\",\"metadata\":{},\"status\":%s}",
                  status);
    script_reply(expect_question(), 201, -1, text);
}

/* ---- a client ---- */

struct client {
    int fd;
    SSL_CTX *context;
    SSL *ssl;
};

static int connect_to_server(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)server_port(server, 0)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    struct timeval limit = { .tv_sec = 10 };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* Trusting `authority`, for `host`; its ssl is NULL if there was no agreement. */
static struct client blocking_client_new(const char *authority, const char *host,
                                         int version)
{
    struct client client = { .fd = connect_to_server(),
                             .context = SSL_CTX_new(TLS_client_method()) };
    BIO *bio = BIO_new_mem_buf(authority, -1);
    X509 *root = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(client.context), root);
    X509_free(root);
    BIO_free(bio);
    SSL_CTX_set_verify(client.context, SSL_VERIFY_PEER, NULL);
    if (version) {
        SSL_CTX_set_cipher_list(client.context, "ALL:@SECLEVEL=0");
        SSL_CTX_set_min_proto_version(client.context, version);
        SSL_CTX_set_max_proto_version(client.context, version);
    }
    client.ssl = SSL_new(client.context);
    SSL_set1_host(client.ssl, host);
    SSL_ctrl(client.ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             (void *)(uintptr_t)host);
    SSL_set_fd(client.ssl, client.fd);
    if (SSL_connect(client.ssl) != 1) {
        SSL_free(client.ssl);
        client.ssl = NULL;
    }
    return client;
}

static struct client client_of_server(void)
{
    struct client client =
        blocking_client_new(certificate.authority_pem, "hook.sys.svc", 0);
    ck_assert_ptr_nonnull(client.ssl);
    return client;
}

static void blocking_client_free(struct client *client)
{
    SSL_free(client->ssl);
    SSL_CTX_free(client->context);
    close(client->fd);
}

static void send_bytes(struct client *client, const char *bytes, size_t length)
{
    for (size_t sent = 0; sent < length;) {
        int count = SSL_write(client->ssl, bytes + sent, (int)(length - sent));
        ck_assert_int_gt(count, 0);
        sent += (size_t)count;
    }
}

static void send_head(struct client *client, const char *content_type, size_t length)
{
    auto_free char *head = xasprintf("POST /validate?timeout=5s HTTP/1.1\r\nHost: "
                                     "hook.sys.svc\r\nContent-Type: %s\r\n"
                                     "Content-Length: %zu\r\n\r\n",
                                     content_type, length);
    send_bytes(client, head, strlen(head));
}

static void send_body(struct client *client, const char *body)
{
    send_head(client, "application/json", strlen(body));
    send_bytes(client, body, strlen(body));
}

/* One reply: its status, and its body, which the caller frees. 0: the connection ended.
 */
static int receive(struct client *client, char **ret_body)
{
    char *text = xcalloc(1, 65536);
    size_t length = 0;
    *ret_body = text;
    for (int count; length < 65535 && (count = SSL_read(client->ssl, text + length,
                                                        (int)(65535 - length))) > 0;) {
        length += (size_t)count;
        const char *end = strstr(text, "\r\n\r\n");
        const char *announced = strcasestr(text, "content-length:");
        if (end && announced &&
            length >= (size_t)(end - text) + 4 + strtoul(announced + 15, NULL, 10)) {
            int status = (int)strtol(text + strlen("HTTP/1.1 "), NULL, 10);
            memmove(text, end + 4, strlen(end + 4) + 1);
            return status;
        }
    }
    return 0;
}

/* The AdmissionReview that comes back; fails the test if there is none. */
static json_t *receive_review(struct client *client)
{
    auto_free char *body = NULL;
    ck_assert_int_eq(receive(client, &body), 200);
    json_t *review = json_loads(body, 0, NULL);
    ck_assert_ptr_nonnull(review);
    ck_assert_str_eq(object_text(review, "response.uid"), "r1");
    return review;
}

static void check_allowed(struct client *client)
{
    json_auto_t *review = receive_review(client);
    ck_assert(json_is_true(object_at(review, "response.allowed")));
}

static void check_denied(struct client *client, const char *part)
{
    json_auto_t *review = receive_review(client);
    const char *message = object_text(review, "response.status.message");
    ck_assert(json_is_false(object_at(review, "response.allowed")));
    ck_assert_msg(strstr(message, part) != NULL, "%s", message);
}

/* A new job of one container, with `bytes` of arguments. */
static char *review_of(const char *spec, size_t bytes)
{
    json_t *job = quoted("{'metadata': {'name': 'job', 'namespace': 'ns'}, 'spec': "
                         "{'model': {'profileRef': {'name': 'p'}}, 'training': "
                         "{'globalBatchSize': 64}, 'podTemplate': {'spec': "
                         "{'containers': [{'name': 'trainer'}]}}}}");
    json_auto_t *extra = quoted("%s", spec);
    json_object_update_recursive(json_object_get(job, "spec"), extra);
    make_restricted(job);
    auto_free char *text = xcalloc(1, bytes + 1);
    memset(text, 'x', bytes);
    json_object_set_new(json_object_get(job, "metadata"), "annotations",
                        json_pack("{s:s}", "text", text));
    json_auto_t *review = quoted(
        "{'apiVersion': 'admission.k8s.io/v1', 'kind': 'AdmissionReview', 'request': "
        "{'uid': 'r1', 'namespace': 'ns', 'operation': 'CREATE', 'resource': {'group': "
        "'heterotrain.io', 'resource': 'heterotrainingjobs'}, 'userInfo': {'username': "
        "'ann', 'groups': ['g']}}}");
    json_object_set_new(json_object_get(review, "request"), "object", job);
    return json_dumps(review, JSON_COMPACT);
}

/* ---- what is told at once, and what is asked ---- */

START_TEST(an_invalid_job_is_denied_without_the_loop)
{
    struct client client = client_of_server();
    auto_free char *review = review_of("{'resources': {'minGPUs': 5, 'maxGPUs': 2}}", 0);
    send_body(&client, review);
    check_denied(&client, "spec.resources: minGPUs (5) is above maxGPUs (2)");
    ck_assert_int_eq(wakes, 0);
    blocking_client_free(&client);
}
END_TEST

START_TEST(a_valid_job_is_as_allowed_as_its_user)
{
    auto_free char *review = review_of("{}", 0);
    for (int i = 0; i < 3; i++) {
        struct client client = client_of_server();
        send_body(&client, review);
        wait_for(i + 1);
        step();
        if (i == 1) {
            answer_question("{\"allowed\":false}");
            check_denied(&client, "user ann may not create pods in namespace ns");
        } else {
            answer_question("{\"allowed\":true}");
            check_allowed(&client);
        }
        blocking_client_free(&client);
    }
    ck_assert_int_eq(admission_route_next_ms(admission), INT64_MAX);
    size_t length;
    auto_free char *text = metrics_render(metrics, &length);
    ck_assert_ptr_nonnull(
        strstr(text, "heterotrain_admissions_total{result=\"allowed\",reason=\"\"} 2\n"));
    ck_assert_ptr_nonnull(strstr(text, "heterotrain_admissions_total{result=\"denied\","
                                       "reason=\"UserNotAllowed\"} 1\n"));
}
END_TEST

START_TEST(the_question_is_about_the_user_of_the_request)
{
    struct client client = client_of_server();
    auto_free char *review = review_of("{}", 0);
    send_body(&client, review);
    wait_for(1);
    step();
    struct script_request *request = expect_question();
    json_auto_t *question = json_loads(request->body, 0, NULL);
    ck_assert_str_eq(object_text(question, "spec.user"), "ann");
    ck_assert_str_eq(object_text(question, "spec.resourceAttributes.namespace"), "ns");
    blocking_client_free(&client);
}
END_TEST

/* ---- what goes wrong is a no ---- */

START_TEST(what_the_api_server_does_not_answer_in_time_is_denied)
{
    struct client client = client_of_server();
    auto_free char *review = review_of("{}", 0);
    send_body(&client, review);
    wait_for(1);
    step();
    struct script_request *request = expect_question();
    ck_assert_int_eq(admission_route_next_ms(admission),
                     clock_value + ADMISSION_ROUTE_MS);
    clock_value += ADMISSION_ROUTE_MS - 1;
    step();
    ck_assert(request->is_open);
    clock_value += 1;
    step();
    ck_assert(!request->is_open);
    check_denied(&client, "did not answer within 4 s");
    ck_assert_int_eq(admission_route_next_ms(admission), INT64_MAX);
    blocking_client_free(&client);
}
END_TEST

START_TEST(what_the_api_server_refuses_to_answer_is_denied)
{
    struct client client = client_of_server();
    auto_free char *review = review_of("{}", 0);
    send_body(&client, review);
    wait_for(1);
    step();
    script_reply(expect_question(), 403, -1,
                 "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"code\":403,\"reason\":"
                 "\"Forbidden\",\"message\":\"may not ask\"}");
    check_denied(&client, "may not ask");
    blocking_client_free(&client);
}
END_TEST

START_TEST(more_than_can_wait_are_denied_at_once)
{
    struct client clients[ADMISSION_ROUTE_WAITING + 1];
    auto_free char *review = review_of("{}", 0);
    for (int i = 0; i < ADMISSION_ROUTE_WAITING; i++) {
        clients[i] = client_of_server();
        send_body(&clients[i], review);
    }
    wait_for(ADMISSION_ROUTE_WAITING);
    clients[ADMISSION_ROUTE_WAITING] = client_of_server();
    send_body(&clients[ADMISSION_ROUTE_WAITING], review);
    check_denied(&clients[ADMISSION_ROUTE_WAITING], "too many ask at the same time");
    /* All who waited are answered, and then there is room again. */
    clock_value += ADMISSION_ROUTE_MS;
    step();
    for (int i = 0; i < ADMISSION_ROUTE_WAITING; i++)
        check_denied(&clients[i], "did not answer within 4 s");
    for (int i = 0; i <= ADMISSION_ROUTE_WAITING; i++)
        blocking_client_free(&clients[i]);
    struct client next = client_of_server();
    send_body(&next, review);
    wait_for(ADMISSION_ROUTE_WAITING + 1);
    blocking_client_free(&next);
}
END_TEST

START_TEST(a_client_that_leaves_is_not_missed)
{
    struct client leaves = client_of_server(), stays = client_of_server();
    auto_free char *review = review_of("{}", 0);
    send_body(&leaves, review);
    wait_for(1);
    blocking_client_free(&leaves);
    send_body(&stays, review);
    wait_for(2);
    step();
    answer_question("{\"allowed\":true}");
    answer_question("{\"allowed\":true}");
    check_allowed(&stays);
    blocking_client_free(&stays);
}
END_TEST

START_TEST(who_only_says_that_there_is_no_more_is_answered)
{
    struct client client = client_of_server();
    auto_free char *review = review_of("{'resources': {'minGPUs': 5, 'maxGPUs': 2}}", 0);
    send_body(&client, review);
    shutdown(client.fd, SHUT_WR);
    auto_free char *body = NULL;
    int status = receive(&client, &body);
    /* An answer or an end; the server goes on. */
    ck_assert(status == 200 || status == 0);
    struct client other = client_of_server();
    send_body(&other, review);
    check_denied(&other, "minGPUs");
    blocking_client_free(&client);
    blocking_client_free(&other);
}
END_TEST

/* ---- bodies ---- */

START_TEST(a_review_of_four_megabytes_is_read_and_a_longer_one_is_not)
{
    struct client client = client_of_server();
    auto_free char *empty = review_of("{}", 0);
    auto_free char *most = review_of("{}", ADMISSION_ROUTE_BODY_BYTES - strlen(empty));
    ck_assert_uint_eq(strlen(most), ADMISSION_ROUTE_BODY_BYTES);
    send_body(&client, most);
    check_denied(&client, "the job is ");
    blocking_client_free(&client);

    struct client other = client_of_server();
    auto_free char *body = NULL;
    send_head(&other, "application/json", ADMISSION_ROUTE_BODY_BYTES + 1);
    ck_assert_int_eq(receive(&other, &body), 413);
    blocking_client_free(&other);
}
END_TEST

START_TEST(a_slow_client_holds_up_nobody)
{
    struct client slow = client_of_server(), quick = client_of_server();
    auto_free char *review = review_of("{'resources': {'minGPUs': 5, 'maxGPUs': 2}}", 0);
    size_t half = strlen(review) / 2;
    send_head(&slow, "application/json", strlen(review));
    send_bytes(&slow, review, half);
    int silent = connect_to_server(); /* does not even begin with TLS */
    send_body(&quick, review);
    check_denied(&quick, "minGPUs");
    send_bytes(&slow, review + half, strlen(review) - half);
    check_denied(&slow, "minGPUs");
    close(silent);
    blocking_client_free(&slow);
    blocking_client_free(&quick);
}
END_TEST

static const struct {
    const char *content_type, *body;
    int status;
} refused[] = {
    { "text/plain", "{}", 415 },
    { "application/jsonx", "{}", 415 },
    { "application/json", "", 400 },
    { "application/json", "[]", 400 },
    { "application/json", "{\"kind\": \"AdmissionReview\"", 400 },
    { "application/json; charset=utf-8", "{}", 400 },
    { "Application/JSON", "{}", 400 },
};

START_TEST(what_is_no_review_is_refused)
{
    struct client client = client_of_server();
    send_head(&client, refused[_i].content_type, strlen(refused[_i].body));
    send_bytes(&client, refused[_i].body, strlen(refused[_i].body));
    auto_free char *body = NULL;
    ck_assert_int_eq(receive(&client, &body), refused[_i].status);
    blocking_client_free(&client);
}
END_TEST

/* ---- TLS ---- */

START_TEST(clients_that_expect_another_server_or_an_old_protocol_go_away)
{
    struct certificate other;
    ck_assert_int_eq(certificate_make("a", names, 2, wall_ms(), &other, NULL), 0);
    struct client clients[] = {
        blocking_client_new(other.authority_pem, "hook.sys.svc", 0),
        blocking_client_new(certificate.authority_pem, "other.sys.svc", 0),
        blocking_client_new(certificate.authority_pem, "hook.sys.svc", TLS1_1_VERSION),
    };
    for (size_t i = 0; i < sizeof clients / sizeof *clients; i++) {
        ck_assert_ptr_null(clients[i].ssl);
        blocking_client_free(&clients[i]);
    }
    static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
    for (size_t i = 0; i < 2; i++) {
        struct client good =
            blocking_client_new(certificate.authority_pem, "hook.sys.svc", versions[i]);
        ck_assert_ptr_nonnull(good.ssl);
        blocking_client_free(&good);
    }
    certificate_fini(&other);
}
END_TEST

START_TEST(another_certificate_is_for_those_who_come_then)
{
    auto_free char *review = review_of("{'resources': {'minGPUs': 5, 'maxGPUs': 2}}", 0);
    struct client before = client_of_server();
    struct certificate other;
    ck_assert_int_eq(certificate_make("a", names, 2, wall_ms(), &other, NULL), 0);
    ck_assert_int_eq(
        server_set_certificate(server, 0, other.certificate_pem, other.key_pem, NULL), 0);
    struct client after = { 0 };
    for (int i = 0; i < 200 && !after.ssl; i++) {
        if (i) {
            blocking_client_free(&after);
            poll(NULL, 0, 10);
        }
        after = blocking_client_new(other.authority_pem, "hook.sys.svc", 0);
    }
    ck_assert_ptr_nonnull(after.ssl);
    struct client *const both[] = { &before, &after };
    for (size_t i = 0; i < 2; i++) {
        send_body(both[i], review);
        check_denied(both[i], "minGPUs");
        blocking_client_free(both[i]);
    }
    certificate_fini(&other);
}
END_TEST

Suite *test_admission_route_suite(void)
{
    Suite *suite = suite_create("admission_route");
    TCase *tests = tcase_create("admission");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, an_invalid_job_is_denied_without_the_loop);
    tcase_add_test(tests, a_valid_job_is_as_allowed_as_its_user);
    tcase_add_test(tests, the_question_is_about_the_user_of_the_request);
    tcase_add_test(tests, what_the_api_server_does_not_answer_in_time_is_denied);
    tcase_add_test(tests, what_the_api_server_refuses_to_answer_is_denied);
    tcase_add_test(tests, more_than_can_wait_are_denied_at_once);
    tcase_add_test(tests, a_client_that_leaves_is_not_missed);
    tcase_add_test(tests, who_only_says_that_there_is_no_more_is_answered);
    tcase_add_test(tests, a_review_of_four_megabytes_is_read_and_a_longer_one_is_not);
    tcase_add_test(tests, a_slow_client_holds_up_nobody);
    tcase_add_loop_test(tests, what_is_no_review_is_refused, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_test(tests, clients_that_expect_another_server_or_an_old_protocol_go_away);
    tcase_add_test(tests, another_certificate_is_for_those_who_come_then);
    return suite;
}
