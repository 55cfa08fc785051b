#include "controller/serve/server.h"

#include "controller/serve/tls.h"
#include "tests/controller/tls_server.h"
#include "tests/scale.h"

#include <openssl/pem.h>

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BIG = 8 << 20, MOST_BODY = 4 << 20 };

static struct server *server;
static struct published *feed;
static struct metrics *metrics;
static atomic_ullong later_id;

static int64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- what is served ---- */

static bool on_plain(void *context, const struct server_request *request,
                     struct server_reply *ret_reply)
{
    (void)context;
    (void)request;
    ret_reply->body = xstrdup("plain\n");
    ret_reply->body_length = 6;
    return true;
}

/* Says what it was asked, and how many bytes of which sum came. */
static bool on_echo(void *context, const struct server_request *request,
                    struct server_reply *ret_reply)
{
    (void)context;
    unsigned sum = 0;
    for (size_t i = 0; i < request->body_length; i++)
        sum += (unsigned char)request->body[i];
    ret_reply->headers = "X-Echo: yes\r\n";
    ret_reply->body = xasprintf("%s %s?%s %s %zu %u%s", request->method, request->path,
                                request->query, request->content_type,
                                request->body_length, sum,
                                request->is_loopback ? " loopback" : "");
    ret_reply->body_length = strlen(ret_reply->body);
    return true;
}

static bool on_big(void *context, const struct server_request *request,
                   struct server_reply *ret_reply)
{
    (void)context;
    (void)request;
    ret_reply->body = xmalloc(BIG);
    memset(ret_reply->body, 'x', BIG);
    ret_reply->body_length = BIG;
    return true;
}

static bool on_later(void *context, const struct server_request *request,
                     struct server_reply *ret_reply)
{
    (void)context;
    (void)ret_reply;
    later_id = request->id;
    return false;
}

static const struct server_route routes[] = {
    { .method = "GET", .path = "/plain", .handler = on_plain },
    { .method = "GET", .path = "/big", .handler = on_big },
    { .method = "GET", .path = "/later", .handler = on_later },
    { .method = "GET", .path = "/query", .handler = on_echo },
    { .method = "POST",
      .path = "/echo",
      .handler = on_echo,
      .max_body_bytes = MOST_BODY },
    { .method = "PUT", .path = "/echo", .handler = on_echo, .max_body_bytes = 10 },
    { .method = "GET", .path = "/feed", .feed = "overview" },
};

static struct server_listener listener = { .address = "127.0.0.1:0",
                                           .routes = routes,
                                           .route_count = sizeof routes /
                                                          sizeof *routes };

static void start(const struct server_config *times)
{
    struct het_error err = { 0 };
    struct server_config config = *times;
    static const char *const hosts[] = { "x", "dashboard" };
    config.hosts = hosts;
    config.host_count = 2;
    config.listeners = &listener;
    config.listener_count = 1;
    config.feed = feed;
    config.metrics = metrics;
    server = server_new(&config, &err);
    ck_assert_msg(server != NULL, "%s", err.message);
}

static void set_up(void)
{
    signal(SIGPIPE, SIG_IGN);
    feed = published_new();
    metrics = metrics_new(NULL, NULL);
    listener.certificate_pem = listener.key_pem = NULL;
    later_id = 0;
}

static void set_up_started(void)
{
    set_up();
    start(&(struct server_config){ 0 });
}

/* Times of a second, to be waited for. */
static void set_up_hasty(void)
{
    set_up();
    start(&(struct server_config){ .header_s = 1, .request_s = 2, .idle_s = 1 });
}

static void tear_down(void)
{
    server_free(server);
    published_free(feed);
    metrics_free(metrics);
}

/* ---- a client ---- */

static int dial(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)server_port(server, 0)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* Until all is written or the other side hangs up. */
static void say_bytes(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t written = send(fd, bytes, length, MSG_NOSIGNAL);
        if (written <= 0)
            return;
        bytes += written;
        length -= (size_t)written;
    }
}

static void say(int fd, const char *text)
{
    say_bytes(fd, text, strlen(text));
}

struct answer {
    char *bytes;
    size_t length;
    bool is_closed; /* by the server */
};

/* Reads until `bytes` have come, or one answer is whole (0), or it is closed (SIZE_MAX),
 * or for 5 s (on_busy_machine_ms). */
static struct answer hear(int fd, size_t bytes)
{
    struct answer answer = { .bytes = xcalloc(BIG + 65536, 1) };
    int64_t end_ms = clock_ms() + on_busy_machine_ms(5000);
    for (;;) {
        const char *head_end = strstr(answer.bytes, "\r\n\r\n");
        const char *length = strstr(answer.bytes, "Content-Length: ");
        size_t whole = SIZE_MAX;
        if (bytes && bytes != SIZE_MAX)
            whole = bytes;
        else if (!bytes && head_end && length)
            whole = (size_t)(head_end + 4 - answer.bytes) +
                    strtoul(length + 16, NULL, 10);
        if (answer.length >= whole)
            return answer;
        struct pollfd poller = { .fd = fd, .events = POLLIN };
        int64_t left_ms = end_ms - clock_ms();
        if (left_ms <= 0 || poll(&poller, 1, (int)left_ms) <= 0)
            return answer;
        ssize_t got =
            recv(fd, answer.bytes + answer.length, BIG + 65535 - answer.length, 0);
        if (got <= 0) {
            answer.is_closed = true;
            return answer;
        }
        answer.length += (size_t)got;
    }
}

/* The status of one answer; 0: there was none. */
static int hear_status(int fd)
{
    struct answer answer = hear(fd, 0);
    int status = 0;
    sscanf(answer.bytes, "HTTP/1.1 %d", &status);
    free(answer.bytes);
    return status;
}

static bool is_closed(int fd)
{
    struct answer answer = hear(fd, SIZE_MAX);
    free(answer.bytes);
    return answer.is_closed;
}

/* Whether it answers a new client at once. */
static void check_alive(void)
{
    int64_t from_ms = clock_ms();
    int fd = dial();
    say(fd, "GET /plain HTTP/1.1\r\nHost: x\r\n\r\n");
    ck_assert_int_eq(hear_status(fd), 200);
    close(fd);
    ck_assert_int_lt(clock_ms() - from_ms, on_busy_machine_ms(3000));
}

static int ask(const char *request)
{
    int fd = dial();
    say(fd, request);
    int status = hear_status(fd);
    close(fd);
    return status;
}

/* ---- requests ---- */

START_TEST(answer_is_whole)
{
    int fd = dial();
    say(fd, "GET /plain HTTP/1.1\r\nHost: x\r\n\r\n");
    struct answer answer = hear(fd, 0);
    ck_assert_str_eq(answer.bytes,
                     "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
                     "Content-Length: 6\r\nCache-Control: no-store\r\n"
                     "X-Content-Type-Options: nosniff\r\n\r\nplain\n");
    ck_assert(!answer.is_closed);
    free(answer.bytes);
    close(fd);
}
END_TEST

START_TEST(handler_is_told_what_was_asked)
{
    int fd = dial();
    say(fd, "POST /echo?a=b&c HTTP/1.1\r\nHost: x\r\nContent-Type: text/x\r\n"
            "Content-Length: 3\r\n\r\nabc");
    struct answer answer = hear(fd, 0);
    /* 97 + 98 + 99 */
    ck_assert_str_eq(strstr(answer.bytes, "\r\n\r\n"),
                     "\r\n\r\nPOST /echo?a=b&c text/x 3 294 loopback");
    ck_assert_ptr_nonnull(strstr(answer.bytes, "X-Echo: yes\r\n"));
    free(answer.bytes);
    close(fd);
}
END_TEST

START_TEST(connection_is_used_again)
{
    int fd = dial();
    for (int i = 0; i < 50; i++) {
        say(fd, i % 2 ? "GET /plain HTTP/1.1\r\nHost: x\r\n\r\n"
                      : "GET /query HTTP/1.1\r\nHost: x\r\n\r\n");
        ck_assert_int_eq(hear_status(fd), 200);
    }
    close(fd);
}
END_TEST

START_TEST(connection_is_closed_where_that_is_asked_for)
{
    static const char *const requests[] = {
        "GET /plain HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "GET /plain HTTP/1.0\r\n\r\n",
    };
    for (int i = 0; i < 2; i++) {
        int fd = dial();
        say(fd, requests[i]);
        ck_assert_int_eq(hear_status(fd), 200);
        ck_assert(is_closed(fd));
        close(fd);
    }
}
END_TEST

static const struct {
    const char *request;
    int status;
} refusals[] = {
    { "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", 404 },
    { "GET /plain/ HTTP/1.1\r\nHost: x\r\n\r\n", 404 },
    { "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", 405 },
    { "GET /feed HTTP/1.1\r\nHost: x\r\n\r\n", 405 },
    { "HEAD /plain HTTP/1.1\r\nHost: x\r\n\r\n", 405 },
    { "DELETE /plain HTTP/1.1\r\nHost: x\r\n\r\n", 405 },
    { "OPTIONS /plain HTTP/1.1\r\nHost: x\r\n\r\n", 405 },
    { "PATCH /plain HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx", 405 },
    { "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n12345678901", 413 },
    { "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n1234567890", 200 },
    { "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 200 },
    { "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 200 },
    { "GET /plain HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx", 413 },
    { "POST /echo HTTP/1.1\r\nHost: x\r\n\r\n", 411 },
    { "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1x\r\n\r\nx", 400 },
    { "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400 },
    { "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
      400 },
    { "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      501 },
    { "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
      "Transfer-Encoding: chunked\r\n\r\nabc",
      501 },
    /* Those that are cut off without an answer. */
    { "CONNECT plain:80 HTTP/1.1\r\nHost: x\r\n\r\n", 0 },
    { "BREW /plain HTTP/1.1\r\nHost: x\r\n\r\n", 0 },
    { "GET plain HTTP/1.1\r\nHost: x\r\n\r\n", 0 },
    { "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0 },
    { "GET /plain HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n"
      "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
      0 },
    { "GET /plain HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: TLS/1.0\r\n\r\n",
      -1 }, /* whatever it is, it lives on */
};

static const struct {
    const char *host;
    int status;
} hosts[] = {
    { "127.0.0.1", 200 },
    { "127.0.0.1:8081", 200 },
    { "10.1.0.7:8080", 200 },
    { "[::1]:8081", 200 },
    { "[fd00::7]", 200 },
    { "localhost:8081", 200 },
    { "LOCALHOST", 200 },
    { "dashboard:8081", 200 },
    { "Dashboard", 200 },
    { "", 200 },
    { "evil.example", 421 },
    { "evil.example:8081", 421 },
    { "localhost.evil.example", 421 },
    { "127.0.0.1.evil.example", 421 },
    { "dashboard.evil.example", 421 },
    { "evil.example:localhost", 421 },
    { "localhost:8081:evil", 421 },
    { "[::1", 421 },
    { "[::1]evil.example", 421 },
    { "127.0.0.1, evil.example", 421 },
    { "127.1", 421 },
};

START_TEST(server_has_the_names_that_it_was_given_and_addresses)
{
    auto_free char *request =
        xasprintf("GET /plain HTTP/1.1\r\nHost: %s\r\n\r\n", hosts[_i].host);
    int status = ask(request);
    ck_assert_msg(status == hosts[_i].status, "%s: %d", hosts[_i].host, status);
    check_alive();
}
END_TEST

START_TEST(name_of_somebody_else_is_told_what_to_do)
{
    int fd = dial();
    say(fd, "GET /plain HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    struct answer answer = hear(fd, 0);
    ck_assert_ptr_nonnull(strstr(answer.bytes, "allowedHosts"));
    ck_assert_ptr_null(strstr(answer.bytes, "evil"));
    free(answer.bytes);
}
END_TEST

START_TEST(listener_with_a_certificate_leaves_names_to_its_clients)
{
    server_free(server);
    listener.answers_any_host = true;
    start(&(struct server_config){ 0 });
    ck_assert_int_eq(ask("GET /plain HTTP/1.1\r\nHost: a.b.svc\r\n\r\n"), 200);
    listener.answers_any_host = false;
}
END_TEST

START_TEST(request_gets_the_status_it_deserves)
{
    int status = ask(refusals[_i].request);
    if (refusals[_i].status >= 0)
        ck_assert_msg(status == refusals[_i].status, "%d: %s", status,
                      refusals[_i].request);
    check_alive();
}
END_TEST

/* 20 at once, in pieces of every size: as many answers, in their order. */
START_TEST(pipelined_requests_are_answered_in_order)
{
    enum { REQUESTS = 20 };
    char requests[4096] = "", expected[8192] = "";
    for (int i = 0; i < REQUESTS; i++) {
        auto_free char *body = xasprintf("GET /query?%d  0 0 loopback", i);
        sprintf(requests + strlen(requests), "GET /query?%d HTTP/1.1\r\nHost: x\r\n\r\n",
                i);
        sprintf(expected + strlen(expected),
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
                "Content-Length: %zu\r\nCache-Control: no-store\r\n"
                "X-Content-Type-Options: nosniff\r\nX-Echo: yes\r\n\r\n%s",
                strlen(body), body);
    }
    for (size_t piece = 1; piece < 3000; piece = piece * 3 + 1) {
        int fd = dial();
        for (size_t at = 0; at < strlen(requests); at += piece) {
            size_t left = strlen(requests) - at;
            say_bytes(fd, requests + at, left < piece ? left : piece);
        }
        struct answer answer = hear(fd, strlen(expected));
        ck_assert_str_eq(answer.bytes, expected);
        free(answer.bytes);
        close(fd);
    }
}
END_TEST

#define POST_ABC "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"

/* What comes with it is not taken for its body, nor is it asked for for ever. */
START_TEST(request_with_a_body_has_a_connection_to_itself)
{
    int fd = dial();
    say(fd, POST_ABC POST_ABC POST_ABC);
    struct answer answer = hear(fd, SIZE_MAX);
    ck_assert(answer.is_closed);
    ck_assert_ptr_null(strstr(answer.bytes + 1, "HTTP/1.1"));
    free(answer.bytes);
    close(fd);
    fd = dial();
    say(fd, "GET /plain HTTP/1.1\r\nHost: x\r\n\r\n" POST_ABC);
    ck_assert_int_eq(hear_status(fd), 200);
    ck_assert(is_closed(fd));
    close(fd);
    check_alive();
}
END_TEST

static int send_body(size_t said, size_t sent, char *ret_text, size_t size)
{
    auto_free char *body = xmalloc(sent + 1);
    auto_free char *head =
        xasprintf("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", said);
    memset(body, 1, sent);
    int fd = dial(), status = 0;
    say(fd, head);
    say_bytes(fd, body, sent);
    if (said == sent || said > MOST_BODY) {
        struct answer answer = hear(fd, 0);
        sscanf(answer.bytes, "HTTP/1.1 %d", &status);
        const char *text = strstr(answer.bytes, "\r\n\r\n");
        snprintf(ret_text, size, "%s", text ? text + 4 : "");
        free(answer.bytes);
    }
    close(fd);
    return status;
}

START_TEST(longest_body_is_taken_and_a_longer_one_refused)
{
    char text[200];
    ck_assert_int_eq(send_body(MOST_BODY, MOST_BODY, text, sizeof text), 200);
    ck_assert_str_eq(text, "POST /echo?  4194304 4194304 loopback");
    ck_assert_int_eq(send_body(MOST_BODY + 1, MOST_BODY + 1, text, sizeof text), 413);
    check_alive();
}
END_TEST

START_TEST(body_is_asked_for_if_the_client_waits_for_that)
{
    int fd = dial();
    say(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n"
            "Expect: 100-continue\r\n\r\n");
    struct answer answer = hear(fd, strlen("HTTP/1.1 100 Continue\r\n\r\n"));
    ck_assert_str_eq(answer.bytes, "HTTP/1.1 100 Continue\r\n\r\n");
    free(answer.bytes);
    say(fd, "x");
    ck_assert_int_eq(hear_status(fd), 200);
    close(fd);
}
END_TEST

/* Nine bodies of 4 MiB that lack their last byte are more than 32 MiB. */
START_TEST(bodies_are_bounded_together)
{
    enum { CLIENTS = 12 };
    int fds[CLIENTS], refused = 0;
    auto_free char *body = xcalloc(MOST_BODY, 1);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = dial();
        say(fds[i], "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4194304\r\n\r\n");
        say_bytes(fds[i], body, MOST_BODY - 1);
    }
    check_alive();
    for (int i = 0; i < CLIENTS; i++) {
        say(fds[i], "x");
        refused += hear_status(fds[i]) == 503;
        close(fds[i]);
    }
    ck_assert_int_ge(refused, 1);
    ck_assert_int_lt(refused, CLIENTS);
    char text[200]; /* what they held is free again */
    ck_assert_int_eq(send_body(MOST_BODY, MOST_BODY, text, sizeof text), 200);
}
END_TEST

START_TEST(long_answer_is_whole)
{
    int fd = dial();
    say(fd, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
    struct answer answer = hear(fd, 0);
    const char *body = strstr(answer.bytes, "\r\n\r\n") + 4;
    ck_assert_uint_eq(answer.length - (size_t)(body - answer.bytes), BIG);
    ck_assert_uint_eq(strspn(body, "x"), BIG);
    free(answer.bytes);
    close(fd);
}
END_TEST

/* ---- clients that are slow, or gone ---- */

START_TEST(client_that_goes_at_any_byte_is_not_missed)
{
    static const char request[] =
        "POST /echo?q HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n"
        "12345678901234567890";
    for (size_t cut = 0; cut < sizeof request; cut++) {
        int fd = dial();
        say_bytes(fd, request, cut);
        close(fd);
    }
    check_alive();
}
END_TEST

/* Seeded; some of it begins like a request. */
START_TEST(noise_does_no_harm)
{
    static const char *const starts[] = {
        "",
        "GET /plain",
        "GET /plain HTTP/1.1\r\n",
        "POST /echo HTTP/1.1\r\nHost: ",
        "GET /feed HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n",
        "POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\n",
    };
    static const char words[] = "\r\n: /%?\\\"GETPUT1.0chunked\0\xff\x80=&;,";
    unsigned seed = (unsigned)_i;
    for (int round = 0; round < 300; round++) {
        char noise[600];
        size_t length = (size_t)rand_r(&seed) % sizeof noise;
        for (size_t i = 0; i < length; i++)
            noise[i] = rand_r(&seed) % 4 ? words[(size_t)rand_r(&seed) % sizeof words]
                                         : (char)rand_r(&seed);
        int fd = dial();
        say(fd, starts[(size_t)rand_r(&seed) % (sizeof starts / sizeof *starts)]);
        say_bytes(fd, noise, length);
        if (rand_r(&seed) % 2)
            say(fd, "\r\n\r\n");
        close(fd);
    }
    check_alive();
}
END_TEST

/* A byte every 100 ms: it is not the pause that is bounded but the whole head. */
START_TEST(slow_head_is_cut_off)
{
    int fd = dial();
    int64_t from_ms = clock_ms();
    static const char head[] =
        "GET /plain HTTP/1.1\r\nX-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaa";
    for (size_t i = 0; i < sizeof head - 1; i++) {
        if (send(fd, head + i, 1, MSG_NOSIGNAL) <= 0)
            break;
        usleep(100000);
    }
    ck_assert_int_lt(clock_ms() - from_ms, on_busy_machine_ms(4000));
    ck_assert(is_closed(fd));
    close(fd);
}
END_TEST

START_TEST(slow_body_is_cut_off)
{
    int fd = dial();
    int64_t from_ms = clock_ms();
    say(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
    while (clock_ms() - from_ms < on_busy_machine_ms(5000) &&
           send(fd, "x", 1, MSG_NOSIGNAL) > 0)
        usleep(100000);
    ck_assert_int_lt(clock_ms() - from_ms, on_busy_machine_ms(4000));
    ck_assert(is_closed(fd));
    close(fd);
}
END_TEST

START_TEST(silent_client_is_cut_off)
{
    int silent = dial(), idle = dial();
    int64_t from_ms = clock_ms();
    say(idle, "GET /plain HTTP/1.1\r\nHost: x\r\n\r\n");
    ck_assert_int_eq(hear_status(idle), 200);
    ck_assert(is_closed(silent));
    ck_assert(is_closed(idle));
    ck_assert_int_lt(clock_ms() - from_ms, on_busy_machine_ms(4000));
    close(silent);
    close(idle);
}
END_TEST

/* More than the kernel's buffers hold. */
START_TEST(client_that_does_not_read_is_cut_off)
{
    int fd = dial();
    say(fd, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
    sleep(4);
    struct answer answer = hear(fd, SIZE_MAX);
    ck_assert(answer.is_closed);
    ck_assert_uint_lt(answer.length, BIG);
    free(answer.bytes);
    close(fd);
    check_alive();
}
END_TEST

static double thread_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* It asks on and on and takes no answer: nothing may turn in circles over it. */
START_TEST(client_that_asks_and_does_not_read_costs_little)
{
    int fd = dial();
    double from_s = thread_seconds();
    for (int i = 0; i < 100; i++)
        say(fd, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
    sleep(4);
    ck_assert_double_lt(thread_seconds() - from_s, 1.5);
    check_alive();
    close(fd);
}
END_TEST

/* 1,000 that say nothing: those that are answered are never in their way. */
START_TEST(idle_connections_keep_nobody_out)
{
    enum { CLIENTS = 1000 };
    struct rlimit files = { 4096, 4096 };
    int fds[CLIENTS], closed = 0;
    setrlimit(RLIMIT_NOFILE, &files);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = dial();
        if (i % 100 == 99)
            check_alive();
    }
    check_alive();
    for (int i = 0; i < CLIENTS; i++) {
        char byte;
        closed += recv(fds[i], &byte, 1, MSG_DONTWAIT) == 0;
        close(fds[i]);
    }
    ck_assert_int_ge(closed, CLIENTS - SERVER_CONNECTIONS);
    check_alive();
}
END_TEST

/* ---- answers from elsewhere ---- */

static uint64_t wait_for_later(void)
{
    for (int i = 0; i < 500 && !later_id; i++)
        usleep(10000);
    ck_assert_uint_ne(later_id, 0);
    return later_id;
}

START_TEST(answer_may_come_later_from_another_thread)
{
    int fd = dial();
    say(fd, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n"
            "GET /plain HTTP/1.1\r\nHost: x\r\n\r\n");
    uint64_t id = wait_for_later();
    check_alive();
    struct server_reply reply = { .status = 200,
                                  .body = xstrdup("at last"),
                                  .body_length = 7 };
    server_answer(server, id, &reply);
    struct answer answer = hear(fd, 0);
    ck_assert_ptr_nonnull(strstr(answer.bytes, "\r\n\r\nat last"));
    if (!strstr(answer.bytes, "plain\n"))
        ck_assert_int_eq(hear_status(fd), 200); /* the second one */
    free(answer.bytes);
    close(fd);
}
END_TEST

START_TEST(answer_for_who_has_gone_is_dropped)
{
    int fd = dial();
    say(fd, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    uint64_t id = wait_for_later();
    close(fd);
    struct server_reply reply = { .status = 200, .body = xstrdup("x"), .body_length = 1 };
    server_answer(server, id, &reply);
    reply.body = xstrdup("x");
    server_answer(server, id + 1000, &reply);
    check_alive();
}
END_TEST

START_TEST(server_ends_with_clients_connected)
{
    int silent = dial(), waiting = dial();
    say(waiting, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_for_later();
    int64_t from_ms = clock_ms();
    server_free(server);
    server = NULL;
    ck_assert_int_lt(clock_ms() - from_ms, on_busy_machine_ms(2000));
    ck_assert(is_closed(silent));
    ck_assert(is_closed(waiting));
    close(silent);
    close(waiting);
}
END_TEST

/* ---- WebSockets ---- */

#define UPGRADE_OF(host)                                                                 \
    "Host: " host "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"                    \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define UPGRADE UPGRADE_OF("dashboard:8081")

static void publish(const char *text)
{
    published_publish(feed, "overview", xstrdup(text), strlen(text));
}

/* Opens one; the answer to the key is that of RFC 6455, section 1.3. */
static int open_feed(void)
{
    int fd = dial();
    say(fd, "GET /feed HTTP/1.1\r\n" UPGRADE "\r\n");
    char head[4096] = "";
    size_t length = 0;
    while (!strstr(head, "\r\n\r\n")) {
        ck_assert_int_eq(recv(fd, head + length, 1, 0), 1);
        head[++length] = '\0';
    }
    ck_assert_ptr_nonnull(strstr(head, "101 Switching"));
    ck_assert_ptr_nonnull(strstr(head, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    return fd;
}

static void hear_bytes(int fd, char *to, size_t length)
{
    while (length) {
        struct pollfd poller = { .fd = fd, .events = POLLIN };
        ck_assert_int_eq(poll(&poller, 1, 5000), 1);
        ssize_t got = recv(fd, to, length, 0);
        ck_assert_int_gt(got, 0);
        to += got;
        length -= (size_t)got;
    }
}

static unsigned char hear_byte(int fd)
{
    char byte;
    hear_bytes(fd, &byte, 1);
    return (unsigned char)byte;
}

/* One message of text frames; the caller frees. */
static char *hear_message(int fd)
{
    char *text = xcalloc(BIG, 1);
    size_t length = 0;
    for (bool is_first = true, is_last = false; !is_last; is_first = false) {
        unsigned char kind = hear_byte(fd);
        ck_assert_uint_eq(kind & 0x7f, is_first ? 1 : 0);
        is_last = kind & 0x80;
        size_t size = hear_byte(fd);
        if (size == 126) {
            size = hear_byte(fd);
            size = size << 8 | hear_byte(fd);
        }
        hear_bytes(fd, text + length, size);
        length += size;
    }
    return text;
}

static void expect_message(int fd, const char *expected)
{
    auto_free char *text = hear_message(fd);
    ck_assert_str_eq(text, expected);
}

static void wait_for_listeners(int count)
{
    for (int i = 0; i < 500 && published_listeners(feed, "overview") != count; i++)
        usleep(10000);
    ck_assert_int_eq(published_listeners(feed, "overview"), count);
}

START_TEST(follower_gets_the_newest_text_and_every_later_one)
{
    publish("old");
    publish("one");
    int fd = open_feed();
    expect_message(fd, "one");
    wait_for_listeners(1);
    publish("two");
    expect_message(fd, "two");
    publish("");
    expect_message(fd, "");
    close(fd);
    wait_for_listeners(0);
    check_alive();
}
END_TEST

START_TEST(follower_of_nothing_waits_for_the_first_text)
{
    int fd = open_feed();
    wait_for_listeners(1);
    publish("first");
    expect_message(fd, "first");
    close(fd);
}
END_TEST

START_TEST(long_text_is_one_message)
{
    auto_free char *text = xmalloc(100001);
    memset(text, 'y', 100000);
    text[100000] = '\0';
    publish(text);
    int fd = open_feed();
    expect_message(fd, text);
    close(fd);
}
END_TEST

/* It gets the one that was begun, and the last one. */
START_TEST(slow_follower_gets_the_last_text)
{
    auto_free char *big = xmalloc(BIG);
    memset(big, 'z', BIG - 1);
    big[BIG - 1] = '\0';
    publish(big);
    int slow = open_feed(), quick = open_feed();
    wait_for_listeners(2);
    free(hear_message(quick));
    for (int i = 0; i < 100; i++)
        publish(i == 99 ? "last" : "between");
    check_alive();
    free(hear_message(slow));
    expect_message(slow, "last");
    close(slow);
    close(quick);
}
END_TEST

static const struct {
    const char *request;
    bool is_allowed;
} upgrades[] = {
    { "GET /feed HTTP/1.1\r\n" UPGRADE "\r\n", true },
    { "GET /feed HTTP/1.1\r\n" UPGRADE "Origin: http://dashboard:8081\r\n\r\n", true },
    { "GET /feed HTTP/1.1\r\n" UPGRADE "Origin: http://evil.example\r\n\r\n", false },
    { "GET /feed HTTP/1.1\r\n" UPGRADE_OF(
          "evil.example") "Origin: http://evil.example\r\n\r\n",
      false },
    { "GET /feed HTTP/1.1\r\n" UPGRADE_OF("evil.example") "\r\n", false },
    { "GET /feed HTTP/1.1\r\n" UPGRADE "Origin: http://dashboard:8082\r\n\r\n", false },
    { "GET /feed HTTP/1.1\r\n" UPGRADE "Origin: null\r\n\r\n", false },
    { "GET /plain HTTP/1.1\r\n" UPGRADE "\r\n", false },
    { "GET /nothing HTTP/1.1\r\n" UPGRADE "\r\n", false },
    { "POST /feed HTTP/1.1\r\nContent-Length: 0\r\n" UPGRADE "\r\n", false },
};

START_TEST(upgrade_is_for_feeds_and_their_own_pages)
{
    int fd = dial();
    say(fd, upgrades[_i].request);
    struct answer answer = hear(fd, 12);
    ck_assert_int_eq(!strncmp(answer.bytes, "HTTP/1.1 101", 12), upgrades[_i].is_allowed);
    free(answer.bytes);
    close(fd);
    check_alive();
}
END_TEST

START_TEST(what_followers_say_is_not_listened_to)
{
    /* Masked, as a client's has to be: text, a ping, rubbish. */
    static const char frames[] = "\x81\x82\0\0\0\0hi\x89\x80\0\0\0\0";
    static const char rubbish[] = "\xff\xff\xff\xff\xff\xff\xff\xff";
    publish("one");
    int fd = open_feed();
    expect_message(fd, "one");
    say_bytes(fd, frames, sizeof frames - 1);
    ck_assert_uint_eq(hear_byte(fd), 0x8a); /* pong */
    ck_assert_uint_eq(hear_byte(fd), 0);
    publish("two");
    expect_message(fd, "two");
    say_bytes(fd, rubbish, sizeof rubbish - 1);
    check_alive();
    close(fd);
    wait_for_listeners(0);
}
END_TEST

START_TEST(followers_are_bounded)
{
    int fds[SERVER_WEBSOCKETS];
    for (int i = 0; i < SERVER_WEBSOCKETS; i++)
        fds[i] = open_feed();
    wait_for_listeners(SERVER_WEBSOCKETS);
    int fd = dial();
    say(fd, "GET /feed HTTP/1.1\r\n" UPGRADE "\r\n");
    ck_assert(is_closed(fd));
    close(fd);
    check_alive();
    for (int i = 0; i < SERVER_WEBSOCKETS; i++)
        close(fds[i]);
    wait_for_listeners(0);
}
END_TEST

/* ---- TLS ---- */

static struct tls_server *authority, *other_authority;

static void set_up_tls(void)
{
    set_up();
    const struct tls_server_options options = { .names = "DNS:localhost" };
    authority = tls_server_new(&options);
    other_authority = tls_server_new(&options);
    listener.certificate_pem = tls_server_client_certificate(authority);
    listener.key_pem = tls_server_client_key(authority);
    start(&(struct server_config){ .header_s = 1, .request_s = 2, .idle_s = 1 });
}

static void tear_down_tls(void)
{
    tear_down();
    tls_server_free(authority);
    tls_server_free(other_authority);
}

/* The status that a client gets which trusts `ca_pem`; 0: it does not trust the server,
 * or the server it. */
static int ask_over_tls(const char *ca_pem, int highest_version, const char *request)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    BIO *bio = BIO_new_mem_buf(ca_pem, -1);
    X509 *ca = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    if (highest_version) {
        SSL_CTX_set_min_proto_version(context, 0);
        SSL_CTX_set_max_proto_version(context, highest_version);
        SSL_CTX_set_cipher_list(context, "ALL:@SECLEVEL=0");
    }
    SSL *ssl = SSL_new(context);
    int fd = dial(), status = 0;
    struct timeval patience = { .tv_sec = 5 };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    SSL_set_fd(ssl, fd);
    if (SSL_connect(ssl) == 1) {
        char text[4096] = "";
        SSL_write(ssl, request, (int)strlen(request));
        SSL_read(ssl, text, sizeof text - 1);
        sscanf(text, "HTTP/1.1 %d", &status);
        SSL_shutdown(ssl);
    }
    SSL_free(ssl);
    close(fd);
    X509_free(ca);
    BIO_free(bio);
    SSL_CTX_free(context);
    return status;
}

#define PLAIN "GET /plain HTTP/1.1\r\nHost: x\r\n\r\n"

START_TEST(request_over_tls_is_answered)
{
    ck_assert_int_eq(ask_over_tls(tls_server_ca(authority), 0, PLAIN), 200);
    ck_assert_int_eq(ask_over_tls(tls_server_ca(authority), TLS1_2_VERSION, PLAIN), 200);
    ck_assert_int_eq(ask_over_tls(tls_server_ca(authority), 0,
                                  "POST /echo HTTP/1.1\r\nHost: x\r\n"
                                  "Content-Length: 2\r\n\r\nab"),
                     200);
}
END_TEST

START_TEST(client_of_another_authority_or_age_gets_nothing)
{
    ck_assert_int_eq(ask_over_tls(tls_server_ca(other_authority), 0, PLAIN), 0);
    ck_assert_int_eq(ask_over_tls(tls_server_ca(authority), TLS1_1_VERSION, PLAIN), 0);
    ck_assert_int_eq(ask(PLAIN), 0); /* in the clear */
    ck_assert_int_eq(ask_over_tls(tls_server_ca(authority), 0, PLAIN), 200);
}
END_TEST

START_TEST(client_that_never_shakes_hands_is_cut_off)
{
    int fd = dial();
    int64_t from_ms = clock_ms();
    ck_assert(is_closed(fd));
    ck_assert_int_lt(clock_ms() - from_ms, on_busy_machine_ms(4000));
    close(fd);
}
END_TEST

START_TEST(new_certificate_is_shown_to_new_connections)
{
    struct het_error err = { 0 };
    const char *certificate = tls_server_client_certificate(other_authority);
    const char *key = tls_server_client_key(other_authority);
    ck_assert_int_eq(server_set_certificate(server, 0, certificate, key, &err), 0);
    int status = 0;
    for (int i = 0; i < 100 && !status; i++) {
        status = ask_over_tls(tls_server_ca(other_authority), 0, PLAIN);
        usleep(10000);
    }
    ck_assert_int_eq(status, 200);
    ck_assert_int_eq(ask_over_tls(tls_server_ca(authority), 0, PLAIN), 0);
}
END_TEST

START_TEST(certificate_that_is_none_leaves_the_old_one)
{
    struct het_error err = { 0 };
    const char *certificate = tls_server_client_certificate(authority);
    const char *other_key = tls_server_client_key(other_authority);
    ck_assert_int_eq(server_set_certificate(server, 0, certificate, other_key, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "the key is not the certificate's"));
    ck_assert_int_eq(server_set_certificate(server, 0, "rubbish", other_key, &err), -1);
    ck_assert_int_eq(server_set_certificate(server, 0, certificate, "rubbish", &err), -1);
    ck_assert_int_eq(err.code, HET_BAD_INPUT);
    ck_assert_int_eq(ask_over_tls(tls_server_ca(authority), 0, PLAIN), 200);
}
END_TEST

/* ---- where it listens ---- */

static const struct {
    const char *text, *host;
    int port;
} addresses[] = {
    { "0.0.0.0:8080", "0.0.0.0", 8080 },
    { "127.0.0.1:0", "127.0.0.1", 0 },
    { "[::]:65535", "::", 65535 },
    { "[::1]:1", "::1", 1 },
    { "", NULL, 0 },
    { "8080", NULL, 0 },
    { ":8080", NULL, 0 },
    { "localhost:80", NULL, 0 },
    { "127.0.0.1:", NULL, 0 },
    { "127.0.0.1:65536", NULL, 0 },
    { "127.0.0.1:-1", NULL, 0 },
    { "127.0.0.1:80x", NULL, 0 },
    { "::1:80", NULL, 0 },
    { "[::1:80", NULL, 0 },
    { "[]:80", NULL, 0 },
    { "[127.0.0.1]:80", NULL, 0 },
};

START_TEST(address_is_an_address_and_a_port)
{
    auto_free char *host = NULL;
    int port = -1;
    struct het_error err = { 0 };
    int result = server_parse_address(addresses[_i].text, &host, &port, &err);
    ck_assert_int_eq(result, addresses[_i].host ? 0 : -1);
    if (!addresses[_i].host)
        return;
    ck_assert_str_eq(host, addresses[_i].host);
    ck_assert_int_eq(port, addresses[_i].port);
}
END_TEST

START_TEST(taken_port_is_said)
{
    struct het_error err = { 0 };
    auto_free char *taken = xasprintf("127.0.0.1:%d", server_port(server, 0));
    struct server_listener same = listener;
    same.address = taken;
    struct server_config config = { .listeners = &same,
                                    .listener_count = 1,
                                    .feed = feed };
    ck_assert_ptr_null(server_new(&config, &err));
    ck_assert_int_eq(err.code, HET_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "in use"));
    check_alive();
}
END_TEST

START_TEST(listeners_have_routes_of_their_own)
{
    struct het_error err = { 0 };
    server_free(server);
    struct server_listener both[] = { listener, listener };
    both[0].route_count = 1; /* /plain */
    both[1].address = "[::1]:0";
    static const char *const hosts_here[] = { "x" };
    struct server_config config = { .listeners = both,
                                    .listener_count = 2,
                                    .hosts = hosts_here,
                                    .host_count = 1,
                                    .feed = feed };
    server = server_new(&config, &err);
    if (!server) { /* a machine without IPv6 */
        both[1].address = "127.0.0.2:0";
        server = server_new(&config, &err);
    }
    ck_assert_msg(server != NULL, "%s", err.message);
    ck_assert_int_eq(ask(PLAIN), 200);
    ck_assert_int_eq(ask("GET /big HTTP/1.1\r\nHost: x\r\n\r\n"), 404);
    ck_assert_int_ne(server_port(server, 0), server_port(server, 1));
}
END_TEST

static TCase *add_case(Suite *suite, const char *name, void (*before)(void),
                       void (*after)(void))
{
    TCase *cases = tcase_create(name);
    tcase_add_checked_fixture(cases, before, after);
    suite_add_tcase(suite, cases);
    return cases;
}

Suite *test_server_suite(void)
{
    Suite *suite = suite_create("server");
    TCase *requests = add_case(suite, "requests", set_up_started, tear_down);
    tcase_add_test(requests, answer_is_whole);
    tcase_add_test(requests, handler_is_told_what_was_asked);
    tcase_add_test(requests, connection_is_used_again);
    tcase_add_test(requests, connection_is_closed_where_that_is_asked_for);
    tcase_add_loop_test(requests, server_has_the_names_that_it_was_given_and_addresses, 0,
                        sizeof hosts / sizeof *hosts);
    tcase_add_test(requests, name_of_somebody_else_is_told_what_to_do);
    tcase_add_test(requests, listener_with_a_certificate_leaves_names_to_its_clients);
    tcase_add_loop_test(requests, request_gets_the_status_it_deserves, 0,
                        sizeof refusals / sizeof *refusals);
    tcase_add_test(requests, pipelined_requests_are_answered_in_order);
    tcase_add_test(requests, request_with_a_body_has_a_connection_to_itself);
    tcase_add_test(requests, longest_body_is_taken_and_a_longer_one_refused);
    tcase_add_test(requests, body_is_asked_for_if_the_client_waits_for_that);
    tcase_add_test(requests, bodies_are_bounded_together);
    tcase_add_test(requests, long_answer_is_whole);
    tcase_add_test(requests, client_that_goes_at_any_byte_is_not_missed);
    tcase_add_loop_test(requests, noise_does_no_harm, 0, 8);
    tcase_add_test(requests, idle_connections_keep_nobody_out);
    tcase_add_test(requests, answer_may_come_later_from_another_thread);
    tcase_add_test(requests, answer_for_who_has_gone_is_dropped);
    tcase_add_test(requests, server_ends_with_clients_connected);
    TCase *slow = add_case(suite, "slow", set_up_hasty, tear_down);
    tcase_add_test(slow, slow_head_is_cut_off);
    tcase_add_test(slow, slow_body_is_cut_off);
    tcase_add_test(slow, silent_client_is_cut_off);
    tcase_add_test(slow, client_that_does_not_read_is_cut_off);
    tcase_add_test(slow, client_that_asks_and_does_not_read_costs_little);
    TCase *feeds = add_case(suite, "feeds", set_up_started, tear_down);
    tcase_add_test(feeds, follower_gets_the_newest_text_and_every_later_one);
    tcase_add_test(feeds, follower_of_nothing_waits_for_the_first_text);
    tcase_add_test(feeds, long_text_is_one_message);
    tcase_add_test(feeds, slow_follower_gets_the_last_text);
    tcase_add_loop_test(feeds, upgrade_is_for_feeds_and_their_own_pages, 0,
                        sizeof upgrades / sizeof *upgrades);
    tcase_add_test(feeds, what_followers_say_is_not_listened_to);
    tcase_add_test(feeds, followers_are_bounded);
    TCase *tls = add_case(suite, "tls", set_up_tls, tear_down_tls);
    tcase_add_test(tls, request_over_tls_is_answered);
    tcase_add_test(tls, client_of_another_authority_or_age_gets_nothing);
    tcase_add_test(tls, client_that_never_shakes_hands_is_cut_off);
    tcase_add_test(tls, new_certificate_is_shown_to_new_connections);
    tcase_add_test(tls, certificate_that_is_none_leaves_the_old_one);
    TCase *places = add_case(suite, "places", set_up_started, tear_down);
    tcase_add_loop_test(places, address_is_an_address_and_a_port, 0,
                        sizeof addresses / sizeof *addresses);
    tcase_add_test(places, taken_port_is_said);
    tcase_add_test(places, listeners_have_routes_of_their_own);
    return suite;
}
