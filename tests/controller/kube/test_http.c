#include "controller/kube/http.h"

#include "tests/controller/tls_server.h"
#include "tests/scale.h"

#include <arpa/inet.h>
#include <check.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct tls_server *server, *stranger;
static struct transport *transport;
static struct http_endpoint endpoint;
static uint64_t refused_generation;

static const struct http_endpoint *give_endpoint(void *context)
{
    ck_assert_ptr_eq(context, &server);
    return &endpoint;
}

static void on_unauthorized(void *context, uint64_t generation)
{
    ck_assert_ptr_eq(context, &server);
    refused_generation = generation;
}

static void set_text(char **place, const char *text)
{
    free(*place);
    *place = text ? xstrdup(text) : NULL;
}

static void set_server_host(const char *host, int port)
{
    auto_free char *url = xasprintf("https://%s:%d", host, port);
    set_text(&endpoint.server, url);
}

static void start_server(const struct tls_server_options *options)
{
    server = tls_server_new(options);
    set_server_host("127.0.0.1", tls_server_port(server));
    set_text(&endpoint.ca_pem, tls_server_ca(server));
    set_text(&endpoint.token, "secret-token");
    endpoint.generation = 7;
    struct het_error err = { 0 };
    transport = http_transport_new(give_endpoint, &server, &err);
    ck_assert_msg(transport, "%s", err.message);
    http_transport_on_unauthorized(transport, on_unauthorized);
    refused_generation = 0;
}

static void set_up(void)
{
    static const struct tls_server_options options = { .names =
                                                           "DNS:localhost,IP:127.0.0.1" };
    start_server(&options);
}

static void tear_down(void)
{
    transport_free(transport);
    tls_server_free(server);
    tls_server_free(stranger);
    transport = NULL;
    server = stranger = NULL;
    set_text(&endpoint.server, NULL);
    set_text(&endpoint.tls_server_name, NULL);
    set_text(&endpoint.proxy, NULL);
    set_text(&endpoint.ca_pem, NULL);
    set_text(&endpoint.client_certificate_pem, NULL);
    set_text(&endpoint.client_key_pem, NULL);
    set_text(&endpoint.token, NULL);
}

static void restart(const struct tls_server_options *options)
{
    tear_down();
    start_server(options);
}

/* ---- one exchange ---- */

struct outcome {
    bool is_done;
    int data_calls;
    int status;
    int64_t retry_after_ms;
    bool maybe_sent, is_refused;
    struct het_error error;
    char *body, *streamed;
    size_t body_length;
    uint64_t id;
    void (*on_data)(struct outcome *outcome);
};

static void on_data(void *context, const char *bytes, size_t length)
{
    struct outcome *outcome = context;
    ck_assert(!outcome->is_done);
    outcome->data_calls++;
    auto_free char *old = outcome->streamed ? outcome->streamed : xstrdup("");
    outcome->streamed = xasprintf("%s%.*s", old, (int)length, bytes);
    if (outcome->on_data)
        outcome->on_data(outcome);
}

static void on_done(void *context, const struct http_reply *reply)
{
    struct outcome *outcome = context;
    ck_assert(!outcome->is_done);
    outcome->is_done = true;
    outcome->status = reply->status;
    outcome->retry_after_ms = reply->retry_after_ms;
    outcome->maybe_sent = reply->maybe_sent;
    outcome->is_refused = reply->is_refused;
    outcome->error = reply->error;
    outcome->body = xstrdup(reply->body);
    outcome->body_length = reply->body_length;
    ck_assert_uint_eq(strlen(reply->body), reply->body_length);
}

static void outcome_fini(struct outcome *outcome)
{
    free(outcome->body);
    free(outcome->streamed);
    *outcome = (struct outcome){ 0 };
}

#define OUTCOME(name) struct outcome name __attribute__((cleanup(outcome_fini))) = { 0 }

static void start(struct outcome *outcome, const struct http_request *request,
                  bool is_stream)
{
    const struct http_handler handler = { is_stream ? on_data : NULL, on_done, outcome };
    outcome->id = transport_start(transport, request, &handler);
    ck_assert_uint_ne(outcome->id, 0);
    ck_assert(!outcome->is_done);
}

static void finish(struct outcome *outcome)
{
    for (int i = 0; i < 1000 && !outcome->is_done; i++)
        ck_assert_int_eq(transport_poll(transport, NULL, 0, 100), 0);
    ck_assert(outcome->is_done);
}

static void get(struct outcome *outcome, const char *path)
{
    start(outcome,
          &(struct http_request){ .method = "GET", .path = path, .timeout_ms = 10000 },
          false);
    finish(outcome);
}

static bool has_line(const char *text, const char *line)
{
    auto_free char *wanted = xasprintf("\n%s\n", line);
    return strstr(text, wanted) != NULL;
}

static void assert_echoed(const struct outcome *outcome)
{
    ck_assert_msg(outcome->status == 200, "%s", outcome->error.message);
}

static void assert_refused(const struct outcome *outcome, const char *message)
{
    ck_assert_int_eq(outcome->status, 0);
    ck_assert(!outcome->maybe_sent);
    ck_assert_int_eq(outcome->error.code, HET_IO);
    ck_assert_msg(strstr(outcome->error.message, message), "%s", outcome->error.message);
    ck_assert_str_eq(outcome->body, "");
    ck_assert_int_eq(tls_server_requests(server), 0);
}

/* ---- what is sent ---- */

START_TEST(get_has_token_and_agent_and_no_more)
{
    OUTCOME(outcome);
    start(&outcome,
          &(struct http_request){
              .method = "GET", .path = "/echo/../a?b=c%2F&d", .user_agent = "tester/1" },
          false);
    finish(&outcome);
    assert_echoed(&outcome);
    auto_free char *expected = xasprintf(
        "GET /echo/../a?b=c%%2F&d HTTP/1.1\nHost: 127.0.0.1:%d\nUser-Agent: tester/1\n"
        "Accept: application/json\nAuthorization: Bearer secret-token\nsni: \nclient: \n\n",
        tls_server_port(server));
    ck_assert_str_eq(outcome.body, expected);
}
END_TEST

START_TEST(write_has_method_type_and_body)
{
    static const char *const methods[] = { "POST", "PUT", "PATCH", "DELETE" };
    OUTCOME(outcome);
    start(&outcome,
          &(struct http_request){ .method = methods[_i],
                                  .path = "/echo",
                                  .content_type = "application/json",
                                  .body = "{\"a\":1}tail",
                                  .body_length = 7 },
          false);
    finish(&outcome);
    assert_echoed(&outcome);
    ck_assert_int_eq(strncmp(outcome.body, methods[_i], strlen(methods[_i])), 0);
    ck_assert(has_line(outcome.body, "Content-Type: application/json"));
    ck_assert(has_line(outcome.body, "Content-Length: 7"));
    ck_assert_ptr_null(strstr(outcome.body, "Expect"));
    ck_assert_str_eq(strstr(outcome.body, "\n\n"), "\n\n{\"a\":1}");
}
END_TEST

START_TEST(large_body_is_sent_whole)
{
    auto_free char *body = xmalloc(50001);
    memset(body, 'y', 50000);
    body[50000] = '\0';
    OUTCOME(outcome);
    start(&outcome,
          &(struct http_request){ .method = "POST",
                                  .path = "/echo",
                                  .content_type = "text/plain",
                                  .body = body,
                                  .body_length = 50000 },
          false);
    finish(&outcome);
    assert_echoed(&outcome);
    ck_assert_str_eq(strstr(outcome.body, "\n\n") + 2, body);
}
END_TEST

START_TEST(no_token_no_header)
{
    set_text(&endpoint.token, NULL);
    OUTCOME(outcome);
    get(&outcome, "/echo");
    ck_assert_ptr_null(strstr(outcome.body, "Authorization"));
}
END_TEST

START_TEST(rotated_token_is_used_at_once)
{
    OUTCOME(first);
    get(&first, "/echo");
    set_text(&endpoint.token, "another");
    OUTCOME(second);
    get(&second, "/echo");
    ck_assert(has_line(first.body, "Authorization: Bearer secret-token"));
    ck_assert(has_line(second.body, "Authorization: Bearer another"));
}
END_TEST

START_TEST(server_may_have_a_prefix)
{
    auto_free char *url =
        xasprintf("https://127.0.0.1:%d/k8s/clusters/c-1", tls_server_port(server));
    set_text(&endpoint.server, url);
    OUTCOME(outcome);
    get(&outcome, "/echo");
    ck_assert_int_eq(strncmp(outcome.body, "GET /k8s/clusters/c-1/echo ", 27), 0);
}
END_TEST

START_TEST(environment_names_no_proxy)
{
    setenv("https_proxy", "http://127.0.0.1:1", 1);
    setenv("HTTPS_PROXY", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    OUTCOME(outcome);
    get(&outcome, "/echo");
    assert_echoed(&outcome);
}
END_TEST

START_TEST(configured_proxy_is_used)
{
    set_text(&endpoint.proxy, "http://127.0.0.1:1");
    setenv("NO_PROXY", "*", 1);
    OUTCOME(outcome);
    get(&outcome, "/echo");
    assert_refused(&outcome, "127.0.0.1 port 1");
}
END_TEST

/* ---- who is trusted ---- */

START_TEST(server_of_another_ca_is_refused)
{
    stranger = tls_server_new(&(struct tls_server_options){ .names = "IP:127.0.0.1" });
    set_text(&endpoint.ca_pem, tls_server_ca(stranger)); /* of the same name */
    OUTCOME(outcome);
    get(&outcome, "/echo");
    assert_refused(&outcome, "SSL");
}
END_TEST

START_TEST(private_ca_is_not_in_the_system_store)
{
    set_text(&endpoint.ca_pem, NULL);
    OUTCOME(outcome);
    get(&outcome, "/echo");
    assert_refused(&outcome, "SSL certificate problem");
}
END_TEST

START_TEST(server_of_another_name_is_refused)
{
    restart(&(struct tls_server_options){ .names = "DNS:kube.example,IP:127.0.0.2" });
    OUTCOME(outcome);
    get(&outcome, "/echo");
    assert_refused(&outcome, "127.0.0.1");
}
END_TEST

START_TEST(tls_server_name_is_sent_and_verified)
{
    restart(&(struct tls_server_options){ .names = "DNS:kube.example" });
    set_text(&endpoint.tls_server_name, "kube.example");
    OUTCOME(outcome);
    get(&outcome, "/echo");
    assert_echoed(&outcome);
    ck_assert(has_line(outcome.body, "sni: kube.example"));
    auto_free char *host = xasprintf("Host: 127.0.0.1:%d", tls_server_port(server));
    ck_assert(has_line(outcome.body, host));
    set_text(&endpoint.tls_server_name, "other.example");
    OUTCOME(other);
    get(&other, "/echo");
    ck_assert_int_eq(other.status, 0);
    ck_assert_ptr_nonnull(strstr(other.error.message, "other.example"));
}
END_TEST

START_TEST(old_tls_is_refused)
{
    static const int versions[] = { TLS1_VERSION, TLS1_1_VERSION };
    restart(&(struct tls_server_options){ .names = "IP:127.0.0.1",
                                          .highest_version = versions[_i] });
    OUTCOME(outcome);
    get(&outcome, "/echo");
    assert_refused(&outcome, "");
}
END_TEST

START_TEST(tls_1_2_is_spoken)
{
    restart(&(struct tls_server_options){ .names = "IP:127.0.0.1",
                                          .highest_version = TLS1_2_VERSION });
    OUTCOME(outcome);
    get(&outcome, "/echo");
    assert_echoed(&outcome);
}
END_TEST

START_TEST(client_certificate_is_shown)
{
    restart(
        &(struct tls_server_options){ .names = "IP:127.0.0.1", .wants_client = true });
    OUTCOME(without);
    get(&without, "/echo");
    ck_assert_int_eq(without.status, 0);
    ck_assert_int_eq(tls_server_requests(server), 0);
    set_text(&endpoint.client_certificate_pem, tls_server_client_certificate(server));
    set_text(&endpoint.client_key_pem, tls_server_client_key(server));
    OUTCOME(with);
    get(&with, "/echo");
    assert_echoed(&with);
    ck_assert(has_line(with.body, "client: tester"));
}
END_TEST

START_TEST(changed_trust_gets_a_new_connection)
{
    OUTCOME(first);
    get(&first, "/echo");
    assert_echoed(&first);
    stranger = tls_server_new(&(struct tls_server_options){ .names = "IP:127.0.0.1" });
    set_text(&endpoint.ca_pem, tls_server_ca(stranger));
    OUTCOME(second);
    get(&second, "/echo");
    ck_assert_int_eq(second.status, 0);
}
END_TEST

static const char *const bad_servers[] = {
    "http://127.0.0.1:%d",
    "127.0.0.1:%d",
    "https://u:p@127.0.0.1:%d",
    "https://127.0.0.1:%dx",
    "https://:%d",
    "ftp://127.0.0.1:%d",
    "https://127.0.0.1:%d?a",
    "https://127.0.0.1:%d#a",
    "https://[127.0.0.1:%d",
    "file:///etc/passwd?%d",
};

START_TEST(other_than_https_is_refused)
{
    char url[200];
    snprintf(url, sizeof url, bad_servers[_i], tls_server_port(server));
    set_text(&endpoint.server, url);
    OUTCOME(outcome);
    get(&outcome, "/echo");
    ck_assert_int_eq(outcome.status, 0);
    ck_assert_int_eq(tls_server_connections(server), 0);
    ck_assert_str_ne(outcome.error.message, "");
}
END_TEST

START_TEST(redirect_is_not_followed)
{
    OUTCOME(outcome);
    get(&outcome, "/redirect");
    ck_assert_int_eq(outcome.status, 302);
    ck_assert_int_eq(tls_server_requests(server), 1);
}
END_TEST

/* ---- what comes back ---- */

START_TEST(status_and_body_come_back)
{
    static const int statuses[] = { 201, 400, 403, 404, 409, 410, 429, 500, 503 };
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        auto_free char *path = xasprintf("/status/%d", statuses[i]);
        auto_free char *body = xasprintf("status %d", statuses[i]);
        OUTCOME(outcome);
        get(&outcome, path);
        ck_assert_int_eq(outcome.status, statuses[i]);
        ck_assert_str_eq(outcome.body, body);
        ck_assert_int_eq(outcome.retry_after_ms, statuses[i] == 429 ? 7000 : -1);
    }
    ck_assert_uint_eq(refused_generation, 0);
}
END_TEST

static const struct {
    const char *text;
    int64_t ms;
} retry_afters[] = {
    { "1", 1000 },
    { "0", 0 },
    { "120", 120000 },
    { "x", -1 },
    { "-1", -1 },
    { "1.5", -1 },
    { "1x", -1 },
    { "99999999999", -1 },
    { "Wed,_21_Oct_2026_07:28:00_GMT", -1 },
};

START_TEST(retry_after_is_read)
{
    auto_free char *path = xasprintf("/retry-after/%s", retry_afters[_i].text);
    OUTCOME(outcome);
    get(&outcome, path);
    ck_assert_int_eq(outcome.status, 503);
    ck_assert_int_eq(outcome.retry_after_ms, retry_afters[_i].ms);
}
END_TEST

START_TEST(unauthorized_is_told_with_the_generation)
{
    OUTCOME(outcome);
    start(&outcome, &(struct http_request){ .method = "GET", .path = "/status/401" },
          false);
    endpoint.generation = 8; /* rotated while the request ran */
    finish(&outcome);
    ck_assert_uint_eq(refused_generation, 7);
}
END_TEST

START_TEST(body_beyond_its_cap_fails)
{
    static const char *const paths[] = { "/big/100001", "/big-unsaid/100001" };
    OUTCOME(outcome);
    start(&outcome,
          &(struct http_request){
              .method = "GET", .path = paths[_i], .max_response_bytes = 100000 },
          false);
    finish(&outcome);
    ck_assert_int_eq(outcome.status, 0);
    ck_assert_int_eq(outcome.error.code, HET_BAD_INPUT);
    ck_assert_str_eq(outcome.error.message, "reply of more than 100000 bytes");
    ck_assert_str_eq(outcome.body, "");
    OUTCOME(fits);
    start(&fits,
          &(struct http_request){
              .method = "GET", .path = "/big/100000", .max_response_bytes = 100000 },
          false);
    finish(&fits);
    ck_assert_int_eq(fits.status, 200);
    ck_assert_uint_eq(fits.body_length, 100000);
}
END_TEST

START_TEST(half_a_body_is_none)
{
    OUTCOME(outcome);
    get(&outcome, "/half");
    ck_assert_int_eq(outcome.status, 0);
    ck_assert(outcome.maybe_sent);
    ck_assert_int_eq(outcome.error.code, HET_IO);
    ck_assert_str_eq(outcome.body, "");
}
END_TEST

static int64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

START_TEST(timeout_ends_the_request)
{
    int64_t before_ms = monotonic_ms();
    OUTCOME(outcome);
    start(&outcome,
          &(struct http_request){ .method = "GET", .path = "/hang", .timeout_ms = 300 },
          false);
    finish(&outcome);
    ck_assert_int_ge(monotonic_ms() - before_ms, 290); /* libcurl rounds */
    ck_assert_int_lt(monotonic_ms() - before_ms, on_busy_machine_ms(9000));
    ck_assert_int_eq(outcome.status, 0);
    ck_assert(outcome.maybe_sent);
}
END_TEST

START_TEST(refused_connection_was_surely_not_sent)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, length), 0);
    getsockname(listener, (struct sockaddr *)&address, &length);
    set_server_host("127.0.0.1", ntohs(address.sin_port)); /* bound, not listening */
    OUTCOME(outcome);
    get(&outcome, "/echo");
    assert_refused(&outcome, "");
    ck_assert(outcome.is_refused);
    close(listener);
}
END_TEST

/* libcurl on its own would send this POST again. */
START_TEST(write_on_a_reused_connection_is_sent_once)
{
    OUTCOME(first);
    get(&first, "/echo");
    ck_assert_int_eq(tls_server_requests(server), 1);
    OUTCOME(outcome);
    start(&outcome,
          &(struct http_request){ .method = "POST",
                                  .path = "/reset-reused",
                                  .content_type = "text/plain",
                                  .body = "x",
                                  .body_length = 1 },
          false);
    finish(&outcome);
    ck_assert_int_eq(outcome.status, 0);
    ck_assert(outcome.maybe_sent);
    ck_assert_int_eq(tls_server_requests(server), 2);
}
END_TEST

START_TEST(thousand_requests_share_a_connection)
{
    for (int i = 0; i < 1000; i++) {
        OUTCOME(outcome);
        if (i % 2)
            get(&outcome, "/status/200");
        else
            start(&outcome,
                  &(struct http_request){ .method = "POST",
                                          .path = "/status/201",
                                          .content_type = "text/plain",
                                          .body = "x",
                                          .body_length = 1 },
                  false);
        finish(&outcome);
        ck_assert_int_eq(outcome.status, i % 2 ? 200 : 201);
    }
    ck_assert_int_eq(tls_server_requests(server), 1000);
    ck_assert_int_eq(tls_server_connections(server), 1);
}
END_TEST

START_TEST(probe_has_a_connection_of_its_own)
{
    OUTCOME(first);
    get(&first, "/echo");
    OUTCOME(probe);
    start(&probe,
          &(struct http_request){
              .method = "GET", .path = "/echo", .new_connection = true },
          false);
    finish(&probe);
    ck_assert_int_eq(tls_server_connections(server), 2);
}
END_TEST

START_TEST(many_requests_run_at_once)
{
    struct outcome outcomes[20] = { 0 };
    for (int i = 0; i < 20; i++)
        start(&outcomes[i],
              &(struct http_request){ .method = "GET", .path = "/chunks/3" }, false);
    for (int i = 0; i < 20; i++) {
        finish(&outcomes[i]);
        ck_assert_str_eq(outcomes[i].body, "chunk 0\nchunk 1\nchunk 2\n");
        outcome_fini(&outcomes[i]);
    }
}
END_TEST

/* ---- streams ---- */

START_TEST(stream_is_delivered_as_it_comes)
{
    OUTCOME(outcome);
    start(&outcome, &(struct http_request){ .method = "GET", .path = "/chunks/5" }, true);
    finish(&outcome);
    ck_assert_int_eq(outcome.status, 200);
    ck_assert_str_eq(outcome.streamed, "chunk 0\nchunk 1\nchunk 2\nchunk 3\nchunk 4\n");
    ck_assert_int_ge(outcome.data_calls, 2);
    ck_assert_str_eq(outcome.body, "");
}
END_TEST

START_TEST(cut_stream_says_so)
{
    OUTCOME(outcome);
    start(&outcome, &(struct http_request){ .method = "GET", .path = "/chunks-cut/2" },
          true);
    finish(&outcome);
    ck_assert_int_eq(outcome.status, 0);
    ck_assert_str_eq(outcome.streamed, "chunk 0\nchunk 1\n");
}
END_TEST

START_TEST(refusal_of_a_stream_is_collected)
{
    OUTCOME(outcome);
    start(&outcome, &(struct http_request){ .method = "GET", .path = "/status/410" },
          true);
    finish(&outcome);
    ck_assert_int_eq(outcome.status, 410);
    ck_assert_int_eq(outcome.data_calls, 0);
    ck_assert_str_eq(outcome.body, "status 410");
}
END_TEST

START_TEST(stream_does_not_hold_requests_back)
{
    OUTCOME(stream);
    start(&stream, &(struct http_request){ .method = "GET", .path = "/silent-stream" },
          true);
    for (int i = 0; i < 100 && !stream.data_calls; i++)
        transport_poll(transport, NULL, 0, 100);
    ck_assert_str_eq(stream.streamed, "hi\n");
    for (int i = 0; i < 20; i++) {
        OUTCOME(outcome);
        get(&outcome, "/echo");
        assert_echoed(&outcome);
    }
    ck_assert(!stream.is_done);
    ck_assert_int_eq(tls_server_connections(server), 2);
    transport_cancel(transport, stream.id);
}
END_TEST

static void cancel_self(struct outcome *outcome)
{
    transport_cancel(transport, outcome->id);
    transport_cancel(transport, outcome->id);
}

START_TEST(stream_may_be_cancelled_in_its_callback)
{
    OUTCOME(outcome);
    outcome.on_data = cancel_self;
    start(&outcome, &(struct http_request){ .method = "GET", .path = "/chunks/5" }, true);
    for (int i = 0; i < 30; i++)
        transport_poll(transport, NULL, 0, 10);
    ck_assert_int_eq(outcome.data_calls, 1);
    ck_assert(!outcome.is_done);
}
END_TEST

static struct outcome *victim, *child;

static void cancel_victim_and_start_child(struct outcome *outcome)
{
    if (outcome->data_calls > 1)
        return;
    transport_cancel(transport, victim->id);
    start(child, &(struct http_request){ .method = "GET", .path = "/echo" }, false);
}

START_TEST(callback_may_cancel_and_start_others)
{
    OUTCOME(first);
    OUTCOME(second);
    OUTCOME(third);
    victim = &second;
    child = &third;
    first.on_data = cancel_victim_and_start_child;
    start(&first, &(struct http_request){ .method = "GET", .path = "/chunks/3" }, true);
    start(&second, &(struct http_request){ .method = "GET", .path = "/hang" }, true);
    finish(&first);
    finish(&third);
    assert_echoed(&third);
    ck_assert(!second.is_done);
}
END_TEST

START_TEST(cancelled_request_is_never_heard_of)
{
    OUTCOME(outcome);
    start(&outcome, &(struct http_request){ .method = "GET", .path = "/echo" }, false);
    transport_cancel(transport, outcome.id);
    for (int i = 0; i < 10; i++)
        transport_poll(transport, NULL, 0, 10);
    ck_assert(!outcome.is_done);
    transport_cancel(transport, 999);
}
END_TEST

START_TEST(freed_transport_forgets_its_requests)
{
    OUTCOME(outcome);
    start(&outcome, &(struct http_request){ .method = "GET", .path = "/hang" }, true);
    transport_poll(transport, NULL, 0, 50);
    transport_free(transport);
    transport = NULL;
    ck_assert(!outcome.is_done);
}
END_TEST

/* ---- other addresses than the server's ---- */

/* A listener on a loopback port, whose URL is `ret_url`. */
static int listen_plainly(char ret_url[64])
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(listener, 4), 0);
    getsockname(listener, (struct sockaddr *)&address, &length);
    snprintf(ret_url, 64, "http://127.0.0.1:%d/checkpoint", ntohs(address.sin_port));
    return listener;
}

/* Takes one request, whose text goes to `ret_text`, and answers it. */
static void answer_plainly(int listener, const char *reply, char ret_text[4096])
{
    struct pollfd extra = { .fd = listener, .events = POLLIN };
    for (int i = 0; i < 100 && !extra.revents; i++)
        ck_assert_int_eq(transport_poll(transport, &extra, 1, 100), 0);
    int peer = accept(listener, NULL, NULL);
    ck_assert_int_ge(peer, 0);
    size_t length = 0;
    for (ret_text[0] = '\0'; !strstr(ret_text, "\r\n\r\n");) {
        transport_poll(transport, NULL, 0, 10);
        ssize_t got = recv(peer, ret_text + length, 4095 - length, MSG_DONTWAIT);
        length += got > 0 ? (size_t)got : 0;
        ret_text[length] = '\0';
    }
    ck_assert_int_eq(write(peer, reply, strlen(reply)), (ssize_t)strlen(reply));
    close(peer);
}

START_TEST(other_address_gets_nothing_of_ours)
{
    char url[64], text[4096];
    int listener = listen_plainly(url);
    OUTCOME(outcome);
    start(&outcome,
          &(struct http_request){ .method = "GET", .path = url, .timeout_ms = 10000 },
          false);
    answer_plainly(listener, "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", text);
    finish(&outcome);
    ck_assert_int_eq(outcome.status, 401);
    ck_assert_ptr_nonnull(strstr(text, "GET /checkpoint HTTP/1.1\r\n"));
    ck_assert_ptr_null(strstr(text, "secret-token"));
    ck_assert_ptr_null(strcasestr(text, "Authorization"));
    ck_assert_uint_eq(refused_generation, 0); /* it says nothing about our token */
    ck_assert_int_eq(tls_server_connections(server), 0);
    close(listener);
}
END_TEST

START_TEST(other_address_may_not_send_us_on)
{
    char url[64], text[4096];
    int listener = listen_plainly(url);
    OUTCOME(outcome);
    start(&outcome,
          &(struct http_request){ .method = "GET", .path = url, .timeout_ms = 10000 },
          false);
    auto_free char *reply =
        xasprintf("HTTP/1.1 307 There\r\nLocation: %s/echo\r\nContent-Length: 0\r\n\r\n",
                  endpoint.server);
    answer_plainly(listener, reply, text);
    finish(&outcome);
    ck_assert_int_eq(outcome.status, 307);
    ck_assert_int_eq(tls_server_connections(server), 0);
    close(listener);
}
END_TEST

START_TEST(other_address_that_hangs_delays_nobody)
{
    char url[64];
    int listener = listen_plainly(url);
    OUTCOME(hanging);
    start(&hanging,
          &(struct http_request){ .method = "GET", .path = url, .timeout_ms = 60000 },
          false);
    OUTCOME(outcome);
    get(&outcome, "/echo");
    assert_echoed(&outcome);
    ck_assert(!hanging.is_done);
    transport_cancel(transport, hanging.id);
    close(listener);
}
END_TEST

static const char *const bad_urls[] = {
    "http://localhost:1/x",      "http://[::1:1/x",
    "http://127.1:1/x",          "http:///x",
    "http://user@127.0.0.1:1/x", "http://metadata.internal/x",
};

START_TEST(other_address_must_be_literal)
{
    OUTCOME(outcome);
    get(&outcome, bad_urls[_i]);
    assert_refused(&outcome, "no literal address");
}
END_TEST

/* ---- poll ---- */

static void *wake_soon(void *context)
{
    poll(NULL, 0, 50);
    http_transport_wake(context);
    return NULL;
}

START_TEST(another_thread_may_end_a_wait)
{
    pthread_t waker;
    int64_t from_ms = monotonic_ms();
    ck_assert_int_eq(pthread_create(&waker, NULL, wake_soon, transport), 0);
    ck_assert_int_eq(transport_poll(transport, NULL, 0, 10000), 0);
    ck_assert_int_lt(monotonic_ms() - from_ms, on_busy_machine_ms(5000));
    pthread_join(waker, NULL);
    /* What nobody waited for ends the next one. */
    http_transport_wake(transport);
    from_ms = monotonic_ms();
    transport_poll(transport, NULL, 0, 10000);
    ck_assert_int_lt(monotonic_ms() - from_ms, on_busy_machine_ms(5000));
}
END_TEST

START_TEST(poll_watches_other_descriptors)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    struct pollfd extra = { .fd = ends[0], .events = POLLIN, .revents = 77 };
    int64_t before_ms = monotonic_ms();
    ck_assert_int_eq(transport_poll(transport, &extra, 1, 100), 0);
    ck_assert_int_eq(extra.revents, 0);
    ck_assert_int_ge(monotonic_ms() - before_ms, 90);
    ck_assert_int_eq(write(ends[1], "x", 1), 1);
    before_ms = monotonic_ms();
    ck_assert_int_eq(transport_poll(transport, &extra, 1, 10000), 0);
    ck_assert_int_eq(extra.revents, POLLIN);
    ck_assert_int_lt(monotonic_ms() - before_ms, on_busy_machine_ms(5000));
    char byte;
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    close(ends[1]);
    ck_assert_int_eq(transport_poll(transport, &extra, 1, 10000), 0);
    ck_assert_int_eq(extra.revents & POLLHUP, POLLHUP);
    close(ends[0]);
}
END_TEST

#define ADD_TABLE(cases, test, table)                                                    \
    tcase_add_loop_test((cases), test, 0, sizeof(table) / sizeof *(table))

Suite *test_http_suite(void)
{
    Suite *suite = suite_create("http");
    TCase *cases = tcase_create("http");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, get_has_token_and_agent_and_no_more);
    tcase_add_loop_test(cases, write_has_method_type_and_body, 0, 4);
    tcase_add_test(cases, large_body_is_sent_whole);
    tcase_add_test(cases, no_token_no_header);
    tcase_add_test(cases, rotated_token_is_used_at_once);
    tcase_add_test(cases, server_may_have_a_prefix);
    tcase_add_test(cases, environment_names_no_proxy);
    tcase_add_test(cases, configured_proxy_is_used);
    tcase_add_test(cases, server_of_another_ca_is_refused);
    tcase_add_test(cases, private_ca_is_not_in_the_system_store);
    tcase_add_test(cases, server_of_another_name_is_refused);
    tcase_add_test(cases, tls_server_name_is_sent_and_verified);
    tcase_add_loop_test(cases, old_tls_is_refused, 0, 2);
    tcase_add_test(cases, tls_1_2_is_spoken);
    tcase_add_test(cases, client_certificate_is_shown);
    tcase_add_test(cases, changed_trust_gets_a_new_connection);
    ADD_TABLE(cases, other_than_https_is_refused, bad_servers);
    tcase_add_test(cases, redirect_is_not_followed);
    tcase_add_test(cases, status_and_body_come_back);
    ADD_TABLE(cases, retry_after_is_read, retry_afters);
    tcase_add_test(cases, unauthorized_is_told_with_the_generation);
    tcase_add_loop_test(cases, body_beyond_its_cap_fails, 0, 2);
    tcase_add_test(cases, half_a_body_is_none);
    tcase_add_test(cases, timeout_ends_the_request);
    tcase_add_test(cases, refused_connection_was_surely_not_sent);
    tcase_add_test(cases, write_on_a_reused_connection_is_sent_once);
    tcase_add_test(cases, thousand_requests_share_a_connection);
    tcase_add_test(cases, probe_has_a_connection_of_its_own);
    tcase_add_test(cases, many_requests_run_at_once);
    tcase_add_test(cases, stream_is_delivered_as_it_comes);
    tcase_add_test(cases, cut_stream_says_so);
    tcase_add_test(cases, refusal_of_a_stream_is_collected);
    tcase_add_test(cases, stream_does_not_hold_requests_back);
    tcase_add_test(cases, stream_may_be_cancelled_in_its_callback);
    tcase_add_test(cases, callback_may_cancel_and_start_others);
    tcase_add_test(cases, cancelled_request_is_never_heard_of);
    tcase_add_test(cases, freed_transport_forgets_its_requests);
    tcase_add_test(cases, other_address_gets_nothing_of_ours);
    tcase_add_test(cases, other_address_may_not_send_us_on);
    tcase_add_test(cases, other_address_that_hangs_delays_nobody);
    ADD_TABLE(cases, other_address_must_be_literal, bad_urls);
    tcase_add_test(cases, another_thread_may_end_a_wait);
    tcase_add_test(cases, poll_watches_other_descriptors);
    suite_add_tcase(suite, cases);
    return suite;
}
