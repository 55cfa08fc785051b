/* Who may read a route; the test is the loop, and the API server. */
#include "controller/serve/authorization.h"

#include "controller/base/log.h"
#include "controller/base/object.h"
#include "tests/controller/quoted.h"
#include "tests/controller/script_transport.h"

#include <arpa/inet.h>
#include <check.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define USER_PATH   "/apis/authentication.k8s.io/v1/tokenreviews"
#define ACCESS_PATH "/apis/authorization.k8s.io/v1/subjectaccessreviews"
#define PROMETHEUS                                                                       \
    "{'authenticated': true, 'user': {'username': 'prometheus', 'uid': '7', 'groups': "  \
    "['scrapers'], 'extra': {'pod': ['p-0']}}}"

static struct script *script;
static struct kube *kube;
static struct authorization *authorization;
static struct server *server;
static atomic_llong clock_value;
static atomic_int wakes;
static int seen_wakes;

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

static bool on_figures(void *context, const struct server_request *request,
                       struct server_reply *ret_reply)
{
    (void)context;
    (void)request;
    ret_reply->body = xstrdup("figures\n");
    ret_reply->body_length = strlen(ret_reply->body);
    return true;
}

static void set_up(void)
{
    static const struct server_route figures = { .method = "GET",
                                                 .path = "/metrics",
                                                 .handler = on_figures };
    static struct server_listener listener;
    struct het_error err = { 0 };
    log_set_levels("off", NULL);
    script = script_new();
    kube = kube_new(script_transport(script), "tester/1");
    clock_value = 1000000;
    wakes = 0;
    seen_wakes = 0;
    struct authorization_config config = {
        .route = &figures, .kube = kube, .clock_ms = clock_ms, .wake = wake
    };
    authorization = authorization_new(&config);
    listener = (struct server_listener){ .address = "127.0.0.1:0",
                                         .routes = authorization_route(authorization),
                                         .route_count = 1 };
    struct server_config serving = { .listeners = &listener, .listener_count = 1 };
    server = server_new(&serving, &err);
    ck_assert_msg(server != NULL, "%s", err.message);
    authorization_set_server(authorization, server);
}

static void tear_down(void)
{
    server_free(server);
    authorization_free(authorization);
    kube_free(kube);
    script_free(script);
    log_set_levels("info", NULL);
}

/* ---- the loop, and the API server ---- */

static void step(void)
{
    kube_step(kube, clock_value);
    authorization_step(authorization, clock_value);
    kube_step(kube, clock_value);
}

/* Until one more request waits for the loop. */
static void wait_for_wake(void)
{
    seen_wakes++;
    for (int i = 0; i < 1000 && wakes < seen_wakes; i++)
        poll(NULL, 0, 10);
    ck_assert_int_eq(wakes, seen_wakes);
}

/* The same; then the loop turns. */
static void wait_for_request(void)
{
    wait_for_wake();
    step();
}

/* Answers the next question, whose spec the caller checks and gives back. */
static json_t *answer(const char *path, const char *kind, const char *status)
{
    struct script_request *request = script_expect(script, "POST", path);
    json_auto_t *asked = json_loads(request->body, 0, NULL);
    ck_assert_str_eq(object_text(asked, "kind"), kind);
    json_auto_t *object = json_pack("{s:O, s:s, s:{}, s:o}", "apiVersion",
                                    json_object_get(asked, "apiVersion"), "kind", kind,
                                    "metadata", "status", quoted("%s", status));
    auto_free char *text = json_dumps(object, 0);
    script_reply(request, 201, -1, text);
    return json_incref(json_object_get(asked, "spec"));
}

static json_t *answer_user(const char *status)
{
    return answer(USER_PATH, "TokenReview", status);
}

static json_t *answer_access(bool is_allowed)
{
    return answer(ACCESS_PATH, "SubjectAccessReview",
                  is_allowed ? "{'allowed': true}" : "{'allowed': false}");
}

/* ---- a client ---- */

/* Asks with the header, or without one; its connection. */
static int ask_with(const char *header)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)server_port(server, 0)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct timeval limit = { .tv_sec = 20 };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    auto_free char *head =
        xasprintf("GET /metrics HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n", header,
                  *header ? "\r\n" : "");
    ck_assert_int_eq(send(fd, head, strlen(head), MSG_NOSIGNAL), (ssize_t)strlen(head));
    return fd;
}

static int ask(const char *token)
{
    auto_free char *header = xasprintf("Authorization: Bearer %s", token);
    return ask_with(header);
}

/* The status; the connection is closed. Who is allowed has the figures, nobody else. */
static int hear(int fd)
{
    char text[4096] = "";
    int status = 0;
    size_t length = 0;
    for (ssize_t got; !strstr(text, "\r\n\r\n") || text[length - 1] != '\n';
         length += (size_t)got)
        if ((got = recv(fd, text + length, sizeof text - 1 - length, 0)) <= 0)
            break;
    close(fd);
    ck_assert_int_eq(sscanf(text, "HTTP/1.1 %d", &status), 1);
    ck_assert_int_eq(status == 200, strstr(text, "figures") != NULL);
    ck_assert_int_eq(status == 401, strstr(text, "WWW-Authenticate: Bearer\r\n") != NULL);
    return status;
}

/* The status for `token`, of which the API server says that. */
static int decide(const char *token, const char *user, bool is_allowed)
{
    int fd = ask(token);
    wait_for_request();
    json_decref(answer_user(user));
    step();
    if (strstr(user, "'authenticated': true"))
        json_decref(answer_access(is_allowed));
    return hear(fd);
}

/* ---- tests ---- */

static const char *const no_tokens[] = {
    "",
    "Authorization: Basic cHJvbWV0aGV1czpzZWNyZXQ=",
    "Authorization: Bearer",
    "Authorization: Bearer ",
    "Authorization: Bearer two words",
    "Authorization: Bearer \xff\xfe",
    "Authorization: Bearer \"quoted\"",
};

START_TEST(without_a_token_nobody_is_asked)
{
    ck_assert_int_eq(hear(ask_with(no_tokens[_i])), 401);
    step();
    script_expect_nothing(script);
}
END_TEST

START_TEST(who_may_read_reads)
{
    int fd = ask("abc.def-1");
    wait_for_request();
    json_auto_t *review = answer_user(PROMETHEUS);
    ck_assert_str_eq(object_text(review, "token"), "abc.def-1");
    step();
    json_auto_t *access = answer_access(true);
    json_auto_t *expected = quoted(
        "{'user': 'prometheus', 'uid': '7', 'groups': ['scrapers'], 'extra': {'pod': "
        "['p-0']}, 'nonResourceAttributes': {'path': '/metrics', 'verb': 'get'}}");
    ck_assert(json_equal(access, expected));
    ck_assert_int_eq(hear(fd), 200);
}
END_TEST

START_TEST(what_was_said_holds_for_a_while)
{
    ck_assert_int_eq(decide("good", PROMETHEUS, true), 200);
    ck_assert_int_eq(decide("weak", PROMETHEUS, false), 403);
    ck_assert_int_eq(decide("bad", "{'authenticated': false}", false), 401);
    clock_value += AUTHORIZATION_REFUSED_MS - 1;
    ck_assert_int_eq(hear(ask("good")), 200);
    ck_assert_int_eq(hear(ask("weak")), 403);
    ck_assert_int_eq(hear(ask("bad")), 401);
    clock_value += 1;
    ck_assert_int_eq(decide("weak", PROMETHEUS, true), 200);
    ck_assert_int_eq(decide("bad", PROMETHEUS, true), 200);
    clock_value += AUTHORIZATION_ALLOWED_MS - AUTHORIZATION_REFUSED_MS - 1;
    ck_assert_int_eq(hear(ask("good")), 200);
    clock_value += 1;
    ck_assert_int_eq(decide("good", PROMETHEUS, false), 403);
}
END_TEST

START_TEST(a_user_without_a_name_is_nobody)
{
    int fd = ask("t");
    wait_for_request();
    json_decref(answer_user("{'authenticated': true, 'user': {}}"));
    step();
    script_expect_nothing(script);
    ck_assert_int_eq(hear(fd), 401);
}
END_TEST

START_TEST(what_the_api_server_refuses_is_503_and_not_kept)
{
    int fd = ask("t");
    wait_for_request();
    script_reply(script_expect(script, "POST", USER_PATH), 403, -1,
                 "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"code\":403}");
    ck_assert_int_eq(hear(fd), 503);
    fd = ask("t");
    wait_for_request();
    json_decref(answer_user(PROMETHEUS));
    step();
    script_refuse(script_expect(script, "POST", ACCESS_PATH));
    ck_assert_int_eq(hear(fd), 503);
    ck_assert_int_eq(decide("t", PROMETHEUS, true), 200);
}
END_TEST

START_TEST(a_slow_api_server_holds_up_nobody_who_is_known)
{
    ck_assert_int_eq(decide("known", PROMETHEUS, true), 200);
    int first = ask("unknown");
    wait_for_request();
    script_expect(script, "POST", USER_PATH);
    int second = ask("other");
    wait_for_request();
    json_decref(answer_user(PROMETHEUS)); /* half of the way */
    step();
    script_expect(script, "POST", ACCESS_PATH);
    ck_assert_int_eq(hear(ask("known")), 200);
    ck_assert_int_eq(authorization_next_ms(authorization),
                     clock_value + AUTHORIZATION_MS);
    clock_value += AUTHORIZATION_MS;
    step();
    ck_assert_uint_eq(script_open_count(script), 0);
    ck_assert_int_eq(authorization_next_ms(authorization), INT64_MAX);
    ck_assert_int_eq(hear(first), 503);
    ck_assert_int_eq(hear(second), 503);
}
END_TEST

START_TEST(more_than_can_wait_are_told_at_once)
{
    int waiting[AUTHORIZATION_WAITING];
    for (int i = 0; i < AUTHORIZATION_WAITING; i++) {
        waiting[i] = ask("t");
        wait_for_request();
    }
    ck_assert_int_eq(hear(ask("u")), 503);
    clock_value += AUTHORIZATION_MS;
    step();
    for (int i = 0; i < AUTHORIZATION_WAITING; i++)
        ck_assert_int_eq(hear(waiting[i]), 503);
    while (script_open_count(script))
        script_refuse(script_expect(script, "POST", USER_PATH));
}
END_TEST

START_TEST(many_bad_tokens_do_not_push_out_a_good_one)
{
    ck_assert_int_eq(decide("good", PROMETHEUS, true), 200);
    for (int i = 0; i < 2 * AUTHORIZATION_KEPT; i++) {
        auto_free char *token = xasprintf("bad-%d", i);
        ck_assert_int_eq(decide(token, "{'authenticated': false}", false), 401);
        clock_value += 1000 / AUTHORIZATION_REQUESTS_PER_S;
    }
    ck_assert_int_eq(hear(ask("good")), 200);
}
END_TEST

START_TEST(a_client_that_leaves_is_not_missed)
{
    close(ask("t"));
    wait_for_request();
    json_decref(answer_user(PROMETHEUS));
    step();
    json_decref(answer_access(true));
    ck_assert_int_eq(hear(ask("t")), 200);
}
END_TEST

START_TEST(who_still_waits_at_the_end_is_given_back)
{
    int asked = ask("t");
    wait_for_request();
    script_expect(script, "POST", USER_PATH);
    int queued = ask("u");
    wait_for_wake();
    close(asked);
    close(queued);
}
END_TEST

Suite *test_authorization_suite(void)
{
    Suite *suite = suite_create("authorization");
    TCase *tests = tcase_create("authorization");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, without_a_token_nobody_is_asked, 0,
                        (int)(sizeof no_tokens / sizeof *no_tokens));
    tcase_add_test(tests, who_may_read_reads);
    tcase_add_test(tests, what_was_said_holds_for_a_while);
    tcase_add_test(tests, a_user_without_a_name_is_nobody);
    tcase_add_test(tests, what_the_api_server_refuses_is_503_and_not_kept);
    tcase_add_test(tests, a_slow_api_server_holds_up_nobody_who_is_known);
    tcase_add_test(tests, more_than_can_wait_are_told_at_once);
    tcase_add_test(tests, many_bad_tokens_do_not_push_out_a_good_one);
    tcase_add_test(tests, a_client_that_leaves_is_not_missed);
    tcase_add_test(tests, who_still_waits_at_the_end_is_given_back);
    return suite;
}
