/* What --dashboard serves, over real sockets, of a controller on the embedded server. */
#include "controller/serve/dashboard.h"

#include "controller/simulate/api_server/condition.h"
#include "controller/simulate/simulation.h"
#include "tests/controller/inside_planner.h"
#include "tests/controller/objects.h"
#include "tests/controller/quoted.h"

#include <arpa/inet.h>
#include <check.h>
#include <openssl/evp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct simulation *simulation;
static struct inside_planner planner;
static struct published *feed;
static struct dashboard *dashboard;
static struct server_listener listener;
static struct server *server;
static atomic_int woken;
static int64_t now_ms;

static void wake(void *context)
{
    (void)context;
    woken++;
}

static void put(json_t *object)
{
    struct het_error err = { 0 };
    ck_assert_msg(api_server_put(simulation_server(simulation), object, &err) == 0, "%s",
                  err.message);
}

static void put_node(const char *name)
{
    put(quoted("{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': '%s', 'labels':"
               " {'nvidia.com/gpu.product': 'NVIDIA-A100-SXM4-40GB'}}, 'status': "
               "{'allocatable': {'nvidia.com/gpu': '4', 'cpu': '64', 'memory': '256Gi', "
               "'pods': '110'}, 'conditions': [{'type': 'Ready', 'status': 'True'}]}}",
               name));
}

static void put_job(void)
{
    put(make_profile("default", 2, 1));
    put(make_restricted(
        quoted("{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'HeteroTrainingJob', "
               "'metadata': {'name': 'j'}, 'spec': {'model': {'profileRef': {'kind': "
               "'ModelProfile', 'name': 'small'}}, 'training': {'globalBatchSize': 32}, "
               "'resources': {'minGPUs': 2, 'maxGPUs': 4}, 'podTemplate': {'spec': "
               "{'containers': [{'name': 'trainer', 'image': 'train:1', 'command': "
               "['torchrun']}]}}}}")));
}

static void run_s(int64_t seconds)
{
    struct het_error err = { 0 };
    int64_t until_ms = simulation_now_ms(simulation) + seconds * 1000;
    ck_assert_msg(simulation_run(simulation, until_ms, NULL, NULL, &err) == 0, "%s",
                  err.message);
}

static void set_up(void)
{
    struct het_error err = { 0 };
    struct simulation_config config = { .inside = inside_planner_answer,
                                        .inside_context = &planner,
                                        .seed = 1,
                                        .cluster = simulated_cluster_defaults };
    planner = (struct inside_planner){ .latency_ms = 100 };
    simulation = simulation_new(&config, &err);
    put_node("a");
    put_node("b");
    now_ms = 1000000;
    woken = 0;
    feed = published_new();
    dashboard = dashboard_new(feed, wake, NULL);
    listener = (struct server_listener){ .address = "127.0.0.1:0",
                                         .routes = dashboard_routes(dashboard),
                                         .route_count = DASHBOARD_ROUTES };
    struct server_config server_config = { .listeners = &listener,
                                           .listener_count = 1,
                                           .feed = feed };
    server = server_new(&server_config, &err);
    ck_assert_msg(server != NULL, "%s", err.message);
}

static void tear_down(void)
{
    server_free(server);
    dashboard_free(dashboard);
    published_free(feed);
    simulation_free(simulation);
    inside_planner_fini(&planner);
}

static void step(void)
{
    dashboard_step(dashboard, server, simulation_controller(simulation), now_ms);
}

/* ---- a client ---- */

static int ask(const char *path, const char *headers)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)server_port(server, 0)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    auto_free char *text =
        xasprintf("GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", path, headers);
    ck_assert_int_eq(write(fd, text, strlen(text)), strlen(text));
    return fd;
}

/* Whether something comes within `wait_ms`. */
static bool comes(int fd, int wait_ms)
{
    struct pollfd polled = { .fd = fd, .events = POLLIN };
    return poll(&polled, 1, wait_ms) == 1;
}

/* Head and body, up to the end of the connection. */
static char *receive(int fd)
{
    char *text = xcalloc(1, 1 << 20);
    size_t length = 0;
    for (ssize_t got;
         comes(fd, 5000) && (got = read(fd, text + length, (1 << 20) - 1 - length)) > 0;)
        length += (size_t)got;
    close(fd);
    return text;
}

/* The answer of the loop, which steps while it is waited for. */
static char *get(const char *path)
{
    int fd = ask(path, "Connection: close\r\n");
    for (int i = 0; i < 1000 && !comes(fd, 5); i++)
        step();
    return receive(fd);
}

static void check_starts(const char *text, const char *start)
{
    ck_assert_msg(!strncmp(text, start, strlen(start)), "%.200s", text);
}
#define check_has(text, part)                                                            \
    ck_assert_msg(strstr(text, part) != NULL, "no %s in %.2000s", part, text)

/* ---- the page ---- */

static void check_policy(const char *answer, const char *tag)
{
    auto_free char *begin = xasprintf("<%s>", tag), *end = xasprintf("</%s>", tag);
    const char *from = strstr(answer, begin) + strlen(begin);
    unsigned char digest[EVP_MAX_MD_SIZE], encoded[4 * EVP_MAX_MD_SIZE];
    unsigned length;
    EVP_Digest(from, (size_t)(strstr(from, end) - from), digest, &length, EVP_sha256(),
               NULL);
    EVP_EncodeBlock(encoded, digest, (int)length);
    auto_free char *source = xasprintf("%s-src 'sha256-%s'", tag, (const char *)encoded);
    check_has(answer, source);
}

START_TEST(page_is_served_with_a_policy_for_what_is_in_it)
{
    auto_free char *answer = get("/");
    check_starts(answer, "HTTP/1.1 200");
    check_has(answer, "Content-Security-Policy: default-src 'none'; ");
    check_has(answer, "Content-Type: text/html");
    check_has(answer, "</html>");
    check_policy(answer, "script");
    check_policy(answer, "style");
}
END_TEST

START_TEST(page_has_no_way_to_make_markup_of_texts)
{
    static const char *const ways[] = {
        "innerHTML", "outerHTML",    "insertAdjacentHTML", "document.write", "DOMParser",
        "eval(",     "new Function", "setAttribute(\"on",  " style="
    };
    auto_free char *answer = get("/");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        ck_assert_msg(!strstr(answer, ways[i]), "%s", ways[i]);
    check_has(answer, "require-trusted-types-for 'script'");
}
END_TEST

START_TEST(nothing_can_be_written)
{
    int fd = ask("/overview.json", "Connection: close\r\n");
    close(fd);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)server_port(server, 0)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    static const char put_text[] = "PUT /overview.json HTTP/1.1\r\nHost: localhost\r\n"
                                   "Connection: close\r\nContent-Length: 2\r\n\r\n{}";
    ck_assert_int_eq(write(fd, put_text, strlen(put_text)), strlen(put_text));
    auto_free char *answer = receive(fd);
    check_starts(answer, "HTTP/1.1 405");
}
END_TEST

/* ---- the document ---- */

START_TEST(there_is_no_document_before_all_is_listed)
{
    auto_free char *answer = get("/overview.json");
    check_starts(answer, "HTTP/1.1 503");
}
END_TEST

START_TEST(who_asks_gets_what_is_there_now)
{
    run_s(1);
    auto_free char *first = get("/overview.json");
    check_starts(first, "HTTP/1.1 200");
    check_has(first, "[\"a\",0,4,-1,0],[\"b\",0,4,-1,0]");
    check_has(first, "\"jobs\":[]");
    put_job();
    run_s(10);
    step(); /* as after each step of the controller */
    now_ms += DASHBOARD_BUILD_MS;
    auto_free char *second = get("/overview.json");
    check_has(second, "\"name\":\"j\"");
    check_has(second, "\"state\":\"Running\"");
    check_has(second, "\"us\":["); /* times of stages, in the lanes */
    ck_assert_int_eq(woken, 2);
}
END_TEST

START_TEST(nothing_is_built_while_nobody_looks)
{
    run_s(1);
    for (int i = 0; i < 10; i++, now_ms += 1000)
        step();
    ck_assert_uint_eq(published_version(feed, "overview"), 0);
    ck_assert_int_eq(dashboard_next_ms(dashboard, simulation_controller(simulation)),
                     INT64_MAX);
}
END_TEST

START_TEST(documents_are_half_a_second_apart_and_none_is_left_out)
{
    run_s(1);
    published_add_listeners(feed, "overview", 1);
    step();
    ck_assert_uint_eq(published_version(feed, "overview"), 1);
    put_node("c");
    run_s(1);
    now_ms += DASHBOARD_BUILD_MS - 1;
    step();
    ck_assert_uint_eq(published_version(feed, "overview"), 1);
    ck_assert_int_eq(dashboard_next_ms(dashboard, simulation_controller(simulation)),
                     now_ms + 1);
    now_ms += 1;
    step();
    ck_assert_uint_eq(published_version(feed, "overview"), 2);
    ck_assert_int_eq(dashboard_next_ms(dashboard, simulation_controller(simulation)),
                     INT64_MAX);
}
END_TEST

START_TEST(what_changes_nothing_that_is_shown_is_not_sent)
{
    run_s(1);
    published_add_listeners(feed, "overview", 1);
    step();
    json_t *node =
        json_deep_copy(api_server_find(simulation_server(simulation), "nodes", "", "a"));
    object_set(node, "metadata.labels.unimportant", json_string("1"));
    put(node);
    run_s(1);
    now_ms += DASHBOARD_BUILD_MS;
    step();
    ck_assert_uint_eq(published_version(feed, "overview"), 1);
}
END_TEST

START_TEST(more_who_wait_than_there_is_room_for_are_answered)
{
    int fds[DASHBOARD_WAITING + 8];
    enum { CLIENTS = sizeof fds / sizeof *fds };
    run_s(1);
    for (int i = 0; i < CLIENTS; i++)
        fds[i] = ask("/overview.json", "Connection: close\r\n");
    for (int i = 0; i < 1000 && woken < DASHBOARD_WAITING; i++)
        poll(NULL, 0, 5);
    ck_assert_int_eq(woken, DASHBOARD_WAITING);
    int busy = 0;
    step();
    for (int i = 0; i < CLIENTS; i++) {
        auto_free char *answer = receive(fds[i]);
        busy += !strncmp(answer, "HTTP/1.1 503", 12);
        ck_assert_msg(*answer, "client %d", i);
    }
    ck_assert_int_le(busy, 8);
}
END_TEST

Suite *test_dashboard_suite(void)
{
    Suite *suite = suite_create("dashboard");
    TCase *served = tcase_create("served");
    tcase_add_checked_fixture(served, set_up, tear_down);
    tcase_add_test(served, page_is_served_with_a_policy_for_what_is_in_it);
    tcase_add_test(served, page_has_no_way_to_make_markup_of_texts);
    tcase_add_test(served, nothing_can_be_written);
    tcase_add_test(served, there_is_no_document_before_all_is_listed);
    tcase_add_test(served, who_asks_gets_what_is_there_now);
    tcase_add_test(served, nothing_is_built_while_nobody_looks);
    tcase_add_test(served, documents_are_half_a_second_apart_and_none_is_left_out);
    tcase_add_test(served, what_changes_nothing_that_is_shown_is_not_sent);
    tcase_add_test(served, more_who_wait_than_there_is_room_for_are_answered);
    suite_add_tcase(suite, served);
    return suite;
}
