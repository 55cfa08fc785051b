#include "controller/operator/kueue_watches.h"

#include "tests/controller/script_transport.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define DISCOVERY "/apis/kueue.x-k8s.io/v1beta2"
#define NOT_FOUND                                                                        \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"NotFound\",\"code\":404}"
#define FORBIDDEN                                                                        \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Forbidden\",\"code\":403}"

static struct script *script;
static struct kube *kube;
static struct store *store;
static struct kueue_watches *kueue_watches;
static int64_t now_ms;

static void on_change(void *context, const struct kube_resource *resource, json_t *before,
                      json_t *after)
{
    (void)context, (void)resource, (void)before, (void)after;
}

static void step(int64_t by_ms)
{
    now_ms += by_ms;
    kube_step(kube, now_ms);
    kueue_watches_step(kueue_watches, now_ms);
    kube_step(kube, now_ms);
}

static void setup(void)
{
    script = script_new();
    kube = kube_new(script_transport(script), "tester/1");
    kube_set_rate(kube, 1000, 1000);
    store = store_new();
    now_ms = 1000;
    kueue_watches = kueue_watches_new(kube, store, "", 1, on_change, NULL);
    step(0);
}

static void teardown(void)
{
    kueue_watches_free(kueue_watches);
    kube_free(kube);
    script_free(script);
    store_free(store);
}

static void discover(int status, const char *body)
{
    script_reply(script_expect(script, "GET", DISCOVERY), status, -1, body);
    step(0);
}

static void look(int status, const char *body)
{
    script_reply(script_expect(script, "GET", DISCOVERY "/clusterqueues?limit=1"), status,
                 -1, body);
    step(0);
    step(kueue_watches_next_ms(kueue_watches) - now_ms > 5000 ? 0 : 1000);
}

/* Answers the first list of each kind with nothing in it. */
static void list(const char *plural, const char *kind)
{
    char pattern[128], body[256];
    snprintf(pattern, sizeof pattern, DISCOVERY "/%s?limit=500*", plural);
    snprintf(body, sizeof body,
             "{\"kind\":\"%sList\",\"apiVersion\":\"kueue.x-k8s.io/v1beta2\","
             "\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}",
             kind);
    script_reply(script_expect(script, "GET", pattern), 200, -1, body);
}

START_TEST(nothing_is_asked_of_a_server_that_does_not_serve_kueue)
{
    ck_assert(!kueue_watches_is_known(kueue_watches));
    discover(404, NOT_FOUND);
    ck_assert(kueue_watches_is_known(kueue_watches));
    ck_assert_int_eq(kueue_watches_presence(kueue_watches), KUEUE_ABSENT);
    ck_assert_int_eq(kueue_watches_next_ms(kueue_watches),
                     now_ms + KUEUE_WATCHES_DISCOVERY_MS);
    step(KUEUE_WATCHES_DISCOVERY_MS - 1);
    script_expect_nothing(script);
    step(1);
    discover(404, NOT_FOUND);
    script_expect_nothing(script);
}
END_TEST

START_TEST(without_the_right_to_read_nothing_is_watched)
{
    discover(200, "{}");
    look(403, FORBIDDEN);
    ck_assert(kueue_watches_is_known(kueue_watches));
    ck_assert_int_eq(kueue_watches_presence(kueue_watches), KUEUE_UNREADABLE);
    script_expect_nothing(script);
    step(KUEUE_WATCHES_DISCOVERY_MS);
    discover(200, "{}"); /* it may have been given meanwhile */
    script_expect(script, "GET", DISCOVERY "/clusterqueues?limit=1");
}
END_TEST

static void list_all(void)
{
    discover(200, "{}");
    look(200, "{}");
    ck_assert_int_eq(kueue_watches_presence(kueue_watches), KUEUE_UNREADABLE);
    ck_assert(!kueue_watches_is_known(kueue_watches));
    list("resourceflavors", "ResourceFlavor");
    list("clusterqueues", "ClusterQueue");
    list("localqueues", "LocalQueue");
    ck_assert_int_eq(kueue_watches_presence(kueue_watches), KUEUE_UNREADABLE);
    list("workloads", "Workload");
}

START_TEST(all_kinds_are_listed_before_their_queues_count)
{
    list_all();
    ck_assert_int_eq(kueue_watches_presence(kueue_watches), KUEUE_PRESENT);
    ck_assert(kueue_watches_is_known(kueue_watches));
}
END_TEST

START_TEST(lists_that_never_come_hold_nobody_up_for_long)
{
    discover(200, "{}");
    look(200, "{}");
    ck_assert(!kueue_watches_is_known(kueue_watches));
    ck_assert_int_le(kueue_watches_next_ms(kueue_watches),
                     now_ms + KUEUE_WATCHES_PATIENCE_MS);
    step(KUEUE_WATCHES_PATIENCE_MS);
    ck_assert(kueue_watches_is_known(kueue_watches));
    ck_assert_int_eq(kueue_watches_presence(kueue_watches), KUEUE_UNREADABLE);
}
END_TEST

START_TEST(kueue_that_is_removed_is_forgotten)
{
    list_all();
    step(0);
    for (int i = 0; i < 4; i++)
        script_expect(script, "GET", DISCOVERY "/*watch=1*");
    step(KUEUE_WATCHES_DISCOVERY_MS);
    struct script_request *request;
    do /* silent watches may be probed before */
        request = script_expect(script, "GET", DISCOVERY "*");
    while (strcmp(request->path, DISCOVERY) != 0);
    script_reply(request, 404, -1, NOT_FOUND);
    step(0);
    ck_assert_int_eq(kueue_watches_presence(kueue_watches), KUEUE_ABSENT);
    ck_assert_int_eq(kueue_watches_next_ms(kueue_watches),
                     now_ms + KUEUE_WATCHES_DISCOVERY_MS);
}
END_TEST

START_TEST(unanswered_question_is_asked_again_soon)
{
    script_reply(script_expect(script, "GET", DISCOVERY), 500, -1, "{}");
    while (kueue_watches_next_ms(kueue_watches) == INT64_MAX) {
        step(kube_next_ms(kube) - now_ms);
        script_reply(script_expect(script, "GET", DISCOVERY), 500, -1, "{}");
    }
    ck_assert(!kueue_watches_is_known(kueue_watches));
    ck_assert_int_eq(kueue_watches_next_ms(kueue_watches),
                     now_ms + KUEUE_WATCHES_RETRY_MS);
}
END_TEST

Suite *test_kueue_watches_suite(void)
{
    Suite *suite = suite_create("kueue_watches");
    TCase *cases = tcase_create("queues");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, nothing_is_asked_of_a_server_that_does_not_serve_kueue);
    tcase_add_test(cases, without_the_right_to_read_nothing_is_watched);
    tcase_add_test(cases, all_kinds_are_listed_before_their_queues_count);
    tcase_add_test(cases, lists_that_never_come_hold_nobody_up_for_long);
    tcase_add_test(cases, kueue_that_is_removed_is_forgotten);
    tcase_add_test(cases, unanswered_question_is_asked_again_soon);
    suite_add_tcase(suite, cases);
    return suite;
}
