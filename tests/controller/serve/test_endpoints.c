#include "controller/serve/endpoints.h"

#include "controller/base/log.h"
#include "tests/controller/exposition.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct published *feed;
static struct metrics *metrics;
static struct endpoints *endpoints;
static int64_t now_ms;

static int64_t clock_ms(void *context)
{
    (void)context;
    return now_ms;
}

static void set_up(void)
{
    now_ms = 1000000;
    feed = published_new();
    metrics = metrics_new(NULL, NULL);
    endpoints = endpoints_new(feed, metrics, clock_ms, NULL);
    log_set_levels("info", NULL);
}

static void tear_down(void)
{
    endpoints_free(endpoints);
    published_free(feed);
    metrics_free(metrics);
}

/* The status; the body into `ret_body`, which the caller frees. */
static int ask(const char *method, const char *path, const char *body, bool is_loopback,
               char **ret_body)
{
    const struct server_request request = { .method = method,
                                            .path = path,
                                            .body = body,
                                            .body_length = strlen(body),
                                            .is_loopback = is_loopback };
    struct server_reply reply = { .status = 0 };
    const struct server_route *routes = endpoints_routes(endpoints);
    for (size_t i = 0; i < ENDPOINTS_ROUTES; i++)
        if (!strcmp(routes[i].method, method) && !strcmp(routes[i].path, path))
            ck_assert(routes[i].handler(routes[i].context, &request, &reply));
    ck_assert_uint_eq(reply.body_length, strlen(reply.body));
    *ret_body = reply.body;
    return reply.status;
}

static int get(const char *path)
{
    auto_free char *body = NULL;
    return ask("GET", path, "", false, &body);
}

START_TEST(healthy_is_a_loop_that_turned_in_the_last_30_s)
{
    ck_assert_int_eq(get("/healthz"), 503); /* never */
    published_beat(feed, now_ms);
    ck_assert_int_eq(get("/healthz"), 200);
    now_ms += 30000;
    ck_assert_int_eq(get("/healthz"), 200);
    now_ms += 1;
    ck_assert_int_eq(get("/healthz"), 503);
    published_beat(feed, now_ms);
    ck_assert_int_eq(get("/healthz"), 200);
}
END_TEST

START_TEST(ready_is_what_has_listed_all)
{
    ck_assert_int_eq(get("/readyz"), 503);
    published_set_ready(feed, true);
    ck_assert_int_eq(get("/readyz"), 200);
    published_set_ready(feed, false); /* it is ending */
    ck_assert_int_eq(get("/readyz"), 503);
}
END_TEST

static double read_value(const char *series)
{
    auto_free char *body = NULL;
    ck_assert_int_eq(ask("GET", "/metrics", "", false, &body), 200);
    struct exposition *exposition = exposition_read(body);
    double value = exposition_value(exposition, series);
    exposition_free(exposition);
    return value;
}

START_TEST(process_is_measured_when_it_is_asked_for)
{
    ck_assert_double_gt(read_value("process_resident_memory_bytes"), 1 << 20);
    ck_assert_double_gt(read_value("process_cpu_seconds_total"), 0);
    ck_assert_double_ge(read_value("process_open_fds"), 3);
}
END_TEST

/* Who asks without end does not make the loop wait for the metrics' lock. */
START_TEST(metrics_are_rendered_once_a_second)
{
    metrics_set(metrics, METRIC_LEADER, 0, NO_LABELS);
    ck_assert_double_eq(read_value("heterotrain_leader"), 0);
    metrics_set(metrics, METRIC_LEADER, 1, NO_LABELS);
    now_ms += 999;
    ck_assert_double_eq(read_value("heterotrain_leader"), 0);
    now_ms += 1;
    ck_assert_double_eq(read_value("heterotrain_leader"), 1);
}
END_TEST

START_TEST(log_levels_are_read_and_set)
{
    auto_free char *before = NULL, *after = NULL, *again = NULL;
    ck_assert_int_eq(ask("GET", "/log-level", "", false, &before), 200);
    ck_assert_str_eq(before, "info\n");
    ck_assert_int_eq(ask("PUT", "/log-level", "watch=debug,warning\n", true, &after),
                     200);
    ck_assert_str_eq(after, "watch=debug,warning\n");
    ck_assert(log_is_enabled(LOG_DEBUG, "watch"));
    ck_assert(!log_is_enabled(LOG_INFO, "kube"));
    ck_assert_int_eq(ask("PUT", "/log-level", "kube=error", true, &again), 200);
    ck_assert_str_eq(again, "watch=debug,kube=error,warning\n");
    ck_assert(!log_set_levels("watch=info,kube=info,info", NULL));
}
END_TEST

START_TEST(levels_of_rubbish_or_from_afar_change_nothing)
{
    auto_free char *refused = NULL, *wrong = NULL;
    ck_assert_int_eq(ask("PUT", "/log-level", "debug", false, &refused), 403);
    ck_assert_int_eq(ask("PUT", "/log-level", "loud", true, &wrong), 400);
    ck_assert_ptr_nonnull(strstr(wrong, "\"loud\""));
    ck_assert(!log_is_enabled(LOG_DEBUG, "watch"));
}
END_TEST

Suite *test_endpoints_suite(void)
{
    Suite *suite = suite_create("endpoints");
    TCase *cases = tcase_create("endpoints");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, healthy_is_a_loop_that_turned_in_the_last_30_s);
    tcase_add_test(cases, ready_is_what_has_listed_all);
    tcase_add_test(cases, process_is_measured_when_it_is_asked_for);
    tcase_add_test(cases, metrics_are_rendered_once_a_second);
    tcase_add_test(cases, log_levels_are_read_and_set);
    tcase_add_test(cases, levels_of_rubbish_or_from_afar_change_nothing);
    suite_add_tcase(suite, cases);
    return suite;
}
