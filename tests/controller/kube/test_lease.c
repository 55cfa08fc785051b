#include "controller/kube/lease.h"

#include "controller/simulate/api_server/api_server.h"
#include "tests/controller/api.h"
#include "tests/controller/script_transport.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define PATH       "/apis/coordination.k8s.io/v1/namespaces/sys/leases"
#define LEASE_PATH PATH "/op"
#define WALL_MS    (API_SERVER_START_MS + 1234)

static struct script *script;
static struct kube *kube;
static struct lease *lease;
static int64_t now_ms, wall_ms;

static int64_t clock_ms(void *context)
{
    (void)context;
    return now_ms;
}

static struct lease_config config_of(const char *identity, uint64_t seed)
{
    return (struct lease_config){ .ns = "sys",
                                  .name = "op",
                                  .identity = identity,
                                  .seed = seed,
                                  .clock_ms = clock_ms };
}

static void set_up(void)
{
    script = script_new();
    kube = kube_new(script_transport(script), "tester/1");
    now_ms = 1000000;
    wall_ms = WALL_MS;
    struct lease_config config = config_of("a", 1);
    lease = lease_new(kube, &config);
}

static void tear_down(void)
{
    lease_free(lease);
    kube_free(kube);
    script_free(script);
}

static void step(void)
{
    kube_step(kube, now_ms);
    lease_step(lease, now_ms, wall_ms);
}

static void step_at(int64_t at_ms)
{
    now_ms = at_ms;
    step();
}

static void step_after(int64_t wait_ms)
{
    step_at(now_ms + wait_ms);
}

/* The Lease as text; `holder` holds it for `duration_s`. */
static char *lease_text(const char *holder, int duration_s, int transitions, int version)
{
    json_auto_t *object =
        quoted("{'apiVersion': 'coordination.k8s.io/v1', 'kind': 'Lease', 'metadata': "
               "{'name': 'op', 'namespace': 'sys', 'resourceVersion': '%d', 'labels': "
               "{'team': 'x'}}, 'spec': {'holderIdentity': '%s', 'leaseDurationSeconds': "
               "%d, 'leaseTransitions': %d, 'acquireTime': '2020-01-01T00:00:00.000000Z',"
               " 'renewTime': '2020-01-01T00:00:00.000000Z'}}",
               version, holder, duration_s, transitions);
    return json_dumps(object, 0);
}

static struct script_request *expect(const char *method)
{
    return script_expect(script, method, strcmp(method, "POST") ? LEASE_PATH : PATH);
}

static void reply_lease(const char *method, const char *holder, int duration_s,
                        int transitions, int version)
{
    auto_free char *text = lease_text(holder, duration_s, transitions, version);
    script_reply(expect(method), 200, -1, text);
    step();
}

static void reply_status(const char *method, int code, const char *reason)
{
    auto_free char *text =
        xasprintf("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"code\":%d,\"reason\":"
                  "\"%s\"}",
                  code, reason);
    script_reply(expect(method), code, -1, text);
    step();
}

/* The server keeps what we send, at `version`. */
static void accept(const char *method, int version)
{
    struct script_request *request = expect(method);
    json_auto_t *object = json_loads(request->body, 0, NULL);
    json_object_set_new(json_object_get(object, "metadata"), "resourceVersion",
                        json_sprintf("%d", version));
    auto_free char *text = json_dumps(object, 0);
    script_reply(request, 200, -1, text);
    step();
}

static const char *sent(const struct script_request *request, const char *path)
{
    static char text[200];
    json_auto_t *object = json_loads(request->body, 0, NULL);
    json_t *at = object;
    auto_free char *copy = xstrdup(path);
    for (char *key = strtok(copy, "."); key; key = strtok(NULL, "."))
        at = json_object_get(at, key);
    if (json_is_string(at))
        snprintf(text, sizeof text, "%s", json_string_value(at));
    else
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(at));
    return text;
}

static void assert_state(enum lease_state state, bool fence_is_open)
{
    ck_assert_int_eq(lease_state(lease), state);
    ck_assert_int_eq(lease_fence_is_open(lease), fence_is_open);
}

/* Ours since now_ms, at version 5. */
static void acquire(void)
{
    step();
    reply_status("GET", 404, "NotFound");
    accept("POST", 5);
    assert_state(LEASE_HOLDS, true);
}

START_TEST(lease_that_nobody_made_is_made)
{
    step();
    assert_state(LEASE_FOLLOWS, false);
    reply_status("GET", 404, "NotFound");
    struct script_request *request = expect("POST");
    ck_assert_str_eq(sent(request, "metadata.name"), "op");
    ck_assert_str_eq(sent(request, "spec.holderIdentity"), "a");
    ck_assert_str_eq(sent(request, "spec.leaseDurationSeconds"), "15");
    ck_assert_str_eq(sent(request, "spec.leaseTransitions"), "0");
    ck_assert_str_eq(sent(request, "spec.acquireTime"), "2026-01-01T00:00:01.234000Z");
    ck_assert_str_eq(sent(request, "spec.renewTime"), "2026-01-01T00:00:01.234000Z");
    auto_free char *text = lease_text("a", 15, 0, 5);
    script_reply(request, 201, -1, text);
    step();
    assert_state(LEASE_HOLDS, true);
    ck_assert_str_eq(lease_holder(lease), "a/0");
    script_expect_nothing(script);
}
END_TEST

START_TEST(lease_that_another_made_meanwhile_is_read)
{
    step();
    reply_status("GET", 404, "NotFound");
    reply_status("POST", 409, "AlreadyExists");
    reply_lease("GET", "b", 15, 0, 5);
    assert_state(LEASE_FOLLOWS, false);
    ck_assert_str_eq(lease_holder(lease), "b/0");
}
END_TEST

START_TEST(holder_renews_every_two_seconds_with_what_it_read)
{
    acquire();
    int64_t since_ms = now_ms;
    for (int i = 0; i < 5; i++) {
        step_at(since_ms + 2000 * (i + 1) - 1);
        script_expect_nothing(script);
        wall_ms = WALL_MS + 2000 * (i + 1);
        step_at(since_ms + 2000 * (i + 1));
        accept("PUT", 6 + i);
        assert_state(LEASE_HOLDS, true);
    }
    step_after(2000);
    struct script_request *request = expect("PUT");
    ck_assert_str_eq(sent(request, "metadata.resourceVersion"), "10");
    ck_assert_str_eq(sent(request, "spec.leaseTransitions"), "0");
    ck_assert_str_eq(sent(request, "spec.acquireTime"), "2026-01-01T00:00:01.234000Z");
    ck_assert_str_eq(sent(request, "spec.renewTime"), "2026-01-01T00:00:11.234000Z");
}
END_TEST

/* What stands in the Lease is six years old; that says nothing. */
START_TEST(lease_is_taken_when_it_has_not_changed_for_15_s)
{
    step();
    reply_lease("GET", "b", 15, 7, 5);
    int64_t seen_ms = now_ms;
    while (lease_next_ms(lease) < seen_ms + 15000) {
        step_at(lease_next_ms(lease));
        reply_lease("GET", "b", 15, 7, 5);
        assert_state(LEASE_FOLLOWS, false);
    }
    ck_assert_int_eq(lease_next_ms(lease), seen_ms + 15000);
    step_at(seen_ms + 15000);
    struct script_request *request = expect("PUT");
    ck_assert_str_eq(sent(request, "spec.holderIdentity"), "a");
    ck_assert_str_eq(sent(request, "spec.leaseTransitions"), "8");
    ck_assert_str_eq(sent(request, "spec.acquireTime"), "2026-01-01T00:00:01.234000Z");
    ck_assert_str_eq(sent(request, "metadata.resourceVersion"), "5");
    ck_assert_str_eq(sent(request, "metadata.labels.team"), "x");
    auto_free char *text = lease_text("a", 15, 8, 6);
    script_reply(request, 200, -1, text);
    step();
    assert_state(LEASE_HOLDS, true);
    ck_assert_str_eq(lease_holder(lease), "a/8");
}
END_TEST

START_TEST(lease_that_changes_is_never_taken)
{
    step();
    reply_lease("GET", "b", 15, 0, 5);
    for (int version = 6; version < 30; version++) {
        step_at(lease_next_ms(lease));
        reply_lease("GET", "b", 15, 0, version);
        assert_state(LEASE_FOLLOWS, false);
    }
    ck_assert_int_gt(now_ms, 1000000 + 40000);
}
END_TEST

/* A wall clock that is years off, either way, or goes back, changes nothing. */
START_TEST(wall_clocks_do_not_count)
{
    static const int64_t years_ms[] = { -10, 0, 10 };
    wall_ms = WALL_MS + years_ms[_i] * INT64_C(31557600000);
    step();
    reply_lease("GET", "b", 15, 0, 5);
    step_after(2000 + 2400); /* the longest jitter */
    wall_ms -= 3600000;
    reply_lease("GET", "b", 15, 0, 6);
    script_expect_nothing(script);
    assert_state(LEASE_FOLLOWS, false);
}
END_TEST

START_TEST(followers_look_at_different_times)
{
    bool differ = false;
    int64_t first_ms = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct lease_config config = config_of("a", seed);
        struct lease *other = lease_new(kube, &config);
        lease_step(other, now_ms, wall_ms);
        auto_free char *text = lease_text("b", 15, 0, 5);
        script_reply(expect("GET"), 200, -1, text);
        lease_step(other, now_ms, wall_ms);
        int64_t wait_ms = lease_next_ms(other) - now_ms;
        ck_assert_int_ge(wait_ms, 2000);
        ck_assert_int_le(wait_ms, 2000 + 2400);
        differ = differ || (first_ms && wait_ms != first_ms);
        first_ms = wait_ms;
        lease_free(other);
    }
    ck_assert(differ);
}
END_TEST

START_TEST(lease_that_was_given_back_is_taken_at_once)
{
    step();
    reply_lease("GET", "", 1, 3, 5);
    ck_assert_str_eq(sent(expect("PUT"), "spec.leaseTransitions"), "4");
}
END_TEST

START_TEST(lease_that_another_was_quicker_to_take_is_followed)
{
    step();
    reply_lease("GET", "", 1, 3, 5);
    reply_status("PUT", 409, "Conflict");
    reply_lease("GET", "c", 15, 4, 6);
    assert_state(LEASE_FOLLOWS, false);
    ck_assert_int_ge(lease_next_ms(lease), now_ms + 2000);
}
END_TEST

/* Sent at 0, and no renewal succeeds. */
START_TEST(fence_closes_after_5_s_and_the_lease_is_lost_after_10)
{
    acquire();
    int64_t since_ms = now_ms;
    for (int64_t at_ms = since_ms; at_ms < since_ms + 10000; at_ms += 100) {
        step_at(at_ms);
        while (script_open_count(script)) {
            struct script_request *request = script_expect(
                script, at_ms == since_ms + 2000 ? "PUT" : "GET", LEASE_PATH);
            script_reply(request, 503, -1, "");
            step();
        }
        assert_state(LEASE_HOLDS, at_ms - since_ms < 5000);
    }
    step_at(since_ms + 10000);
    assert_state(LEASE_LOST, false);
    step_after(100000);
    script_expect_nothing(script);
}
END_TEST

/* Each request hangs, and is given up after 5 s. */
START_TEST(hanging_server_costs_the_lease)
{
    acquire();
    step_after(2000);
    expect("PUT");
    ck_assert_int_eq(lease_next_ms(lease), now_ms + 5000);
    step_after(5000);
    assert_state(LEASE_HOLDS, false);
    expect("GET");
    ck_assert_int_eq(script_open_count(script), 1);
    step_after(3000);
    assert_state(LEASE_LOST, false);
}
END_TEST

/* A renewal counts from when it was sent, not from when we heard of it. */
START_TEST(slow_renewal_is_worth_less)
{
    acquire();
    step_after(2000);
    int64_t sent_ms = now_ms;
    now_ms += 4000;
    ck_assert(!lease_fence_is_open(lease)); /* 6 s after the last one */
    accept("PUT", 6);
    assert_state(LEASE_HOLDS, true); /* 4 s after this one */
    now_ms = sent_ms + 4999;
    ck_assert(lease_fence_is_open(lease));
    now_ms = sent_ms + 5000;
    ck_assert(!lease_fence_is_open(lease));
}
END_TEST

/* Stopped between two instructions, with a good answer waiting. */
START_TEST(frozen_holder_wakes_up_without_the_lease)
{
    acquire();
    step_after(2000);
    now_ms += 20000;
    ck_assert(!lease_fence_is_open(lease));
    accept("PUT", 6);
    assert_state(LEASE_LOST, false);
}
END_TEST

START_TEST(renewal_of_unknown_outcome_is_read_back)
{
    acquire();
    step_after(2000);
    script_fail(expect("PUT"), true);
    step();
    script_expect_nothing(script); /* not at once: the server has trouble */
    step_after(2000);
    reply_lease("GET", "a", 15, 0, 6); /* it was done */
    ck_assert_str_eq(sent(expect("PUT"), "metadata.resourceVersion"), "6");
    assert_state(LEASE_HOLDS, true);
}
END_TEST

START_TEST(conflict_is_read_back_and_renewed_if_it_is_still_ours)
{
    acquire();
    step_after(2000);
    reply_status("PUT", 409, "Conflict");
    reply_lease("GET", "a", 15, 0, 7); /* somebody put a label on it */
    accept("PUT", 8);
    assert_state(LEASE_HOLDS, true);
    ck_assert_int_eq(lease_next_ms(lease), now_ms + 2000);
}
END_TEST

START_TEST(holder_that_sees_another_has_lost)
{
    acquire();
    step_after(2000);
    reply_status("PUT", 409, "Conflict");
    reply_lease("GET", "b", 15, 1, 7);
    assert_state(LEASE_LOST, false);
}
END_TEST

/* It was done, but we were not told; so it is ours, from the next renewal on. */
START_TEST(creation_of_unknown_outcome_is_read_back)
{
    step();
    reply_status("GET", 404, "NotFound");
    script_fail(expect("POST"), true);
    step();
    assert_state(LEASE_FOLLOWS, false);
    step_at(lease_next_ms(lease));
    reply_lease("GET", "a", 15, 0, 5);
    assert_state(LEASE_FOLLOWS, false);
    accept("PUT", 6);
    assert_state(LEASE_HOLDS, true);
    ck_assert_str_eq(lease_holder(lease), "a/0");
}
END_TEST

START_TEST(deleted_lease_is_made_again)
{
    acquire();
    step_after(2000);
    reply_status("PUT", 404, "NotFound");
    step_after(2000);
    accept("POST", 9);
    assert_state(LEASE_HOLDS, true);
}
END_TEST

START_TEST(release_gives_the_lease_back)
{
    acquire();
    lease_release(lease);
    assert_state(LEASE_RELEASES, false);
    step();
    struct script_request *request = expect("PUT");
    ck_assert_str_eq(sent(request, "spec.holderIdentity"), "");
    ck_assert_str_eq(sent(request, "spec.leaseDurationSeconds"), "1");
    ck_assert_str_eq(sent(request, "metadata.resourceVersion"), "5");
    auto_free char *text = lease_text("", 1, 0, 6);
    script_reply(request, 200, -1, text);
    step();
    assert_state(LEASE_RELEASED, false);
    step_after(60000);
    script_expect_nothing(script);
}
END_TEST

START_TEST(release_waits_for_the_renewal_that_is_under_way)
{
    acquire();
    step_after(2000);
    lease_release(lease);
    step();
    accept("PUT", 6);
    assert_state(LEASE_RELEASES, false);
    ck_assert_str_eq(sent(expect("PUT"), "metadata.resourceVersion"), "6");
}
END_TEST

START_TEST(release_after_a_conflict_gives_back_only_what_is_ours)
{
    acquire();
    lease_release(lease);
    step();
    reply_status("PUT", 409, "Conflict");
    if (_i == 0) {
        reply_lease("GET", "a", 15, 0, 7);
        accept("PUT", 8);
    } else {
        reply_lease("GET", "b", 15, 1, 7);
    }
    assert_state(LEASE_RELEASED, false);
    script_expect_nothing(script);
}
END_TEST

START_TEST(release_that_fails_is_not_repeated)
{
    acquire();
    lease_release(lease);
    step();
    script_fail(expect("PUT"), true);
    step();
    assert_state(LEASE_RELEASED, false);
}
END_TEST

START_TEST(follower_has_nothing_to_give_back)
{
    step();
    reply_lease("GET", "b", 15, 0, 5);
    lease_release(lease);
    assert_state(LEASE_RELEASED, false);
    script_expect_nothing(script);
}
END_TEST

/* ---- two on one server, each turn at random ---- */

struct replica {
    char identity[16];
    struct kube *kube;
    struct lease *lease;
    int64_t frozen_until_ms;
    int64_t opened_ms; /* when the fence was last seen open */
};

static void replica_start(struct replica *replica, struct api_server *server,
                          uint64_t seed)
{
    static uint64_t count;
    snprintf(replica->identity, sizeof replica->identity, "r%llu",
             (unsigned long long)++count);
    replica->kube = kube_new(api_server_transport(server), "tester/1");
    struct lease_config config = config_of(replica->identity, seed);
    replica->lease = lease_new(replica->kube, &config);
}

static void replica_stop(struct replica *replica)
{
    lease_free(replica->lease);
    kube_free(replica->kube);
}

/* Faults of the server and frozen replicas; whoever has lost starts anew, as a pod does.
 * No two fences are ever open less than the time that a write may take apart. */
START_TEST(no_two_fences_are_open_whatever_happens)
{
    uint64_t seed = (uint64_t)_i + 1;
    struct api_server *server = api_server_new(seed);
    ck_assert_int_eq(api_server_put(server,
                                    quoted("{'apiVersion': 'v1', 'kind': 'Namespace', "
                                           "'metadata': {'name': 'sys'}}"),
                                    NULL),
                     0);
    api_server_set_random_faults(server, seed, 150, 1500);
    struct replica replicas[3] = { 0 };
    for (int i = 0; i < 3; i++)
        replica_start(&replicas[i], server, seed * 3 + (uint64_t)i);
    unsigned random = (unsigned)seed;
    int64_t open_ms = 0;
    for (int turn = 0; turn < 6000; turn++) {
        now_ms = API_SERVER_START_MS + turn * 100;
        api_server_advance(server, now_ms);
        struct replica *open = NULL;
        for (int i = 0; i < 3; i++) {
            struct replica *replica = &replicas[i];
            if (rand_r(&random) % 1500 == 0)
                replica->frozen_until_ms = now_ms + rand_r(&random) % 30000;
            if (lease_fence_is_open(replica->lease)) {
                ck_assert_msg(!open, "SEED=%d, turn %d: %s and %s", (int)seed, turn,
                              open ? open->identity : "", replica->identity);
                open = replica;
                open_ms += 100;
                replica->opened_ms = now_ms;
                for (int j = 0; j < 3; j++)
                    ck_assert_msg(
                        j == i || now_ms - replicas[j].opened_ms > KUBE_FENCED_TIMEOUT_MS,
                        "SEED=%d, turn %d: %s while a write of %s may be on its way",
                        (int)seed, turn, replica->identity, replicas[j].identity);
            }
            if (now_ms < replica->frozen_until_ms)
                continue;
            kube_step(replica->kube, now_ms);
            lease_step(replica->lease, now_ms, now_ms);
            if (lease_state(replica->lease) == LEASE_LOST) {
                replica_stop(replica);
                replica_start(replica, server, seed + (uint64_t)turn);
            }
        }
        transport_poll(api_server_transport(server), NULL, 0, 0);
    }
    /* 10 minutes; most of the time somebody could write. */
    ck_assert_msg(open_ms > 300000, "SEED=%d: a fence was open for %lld ms only",
                  (int)seed, (long long)open_ms);
    for (int i = 0; i < 3; i++)
        replica_stop(&replicas[i]);
    api_server_free(server);
}
END_TEST

Suite *test_lease_suite(void)
{
    Suite *suite = suite_create("lease");
    TCase *takes = tcase_create("takes");
    tcase_add_checked_fixture(takes, set_up, tear_down);
    tcase_add_test(takes, lease_that_nobody_made_is_made);
    tcase_add_test(takes, lease_that_another_made_meanwhile_is_read);
    tcase_add_test(takes, lease_is_taken_when_it_has_not_changed_for_15_s);
    tcase_add_test(takes, lease_that_changes_is_never_taken);
    tcase_add_loop_test(takes, wall_clocks_do_not_count, 0, 3);
    tcase_add_test(takes, followers_look_at_different_times);
    tcase_add_test(takes, lease_that_was_given_back_is_taken_at_once);
    tcase_add_test(takes, lease_that_another_was_quicker_to_take_is_followed);
    tcase_add_test(takes, creation_of_unknown_outcome_is_read_back);
    suite_add_tcase(suite, takes);

    TCase *holds = tcase_create("holds");
    tcase_add_checked_fixture(holds, set_up, tear_down);
    tcase_add_test(holds, holder_renews_every_two_seconds_with_what_it_read);
    tcase_add_test(holds, fence_closes_after_5_s_and_the_lease_is_lost_after_10);
    tcase_add_test(holds, hanging_server_costs_the_lease);
    tcase_add_test(holds, slow_renewal_is_worth_less);
    tcase_add_test(holds, frozen_holder_wakes_up_without_the_lease);
    tcase_add_test(holds, renewal_of_unknown_outcome_is_read_back);
    tcase_add_test(holds, conflict_is_read_back_and_renewed_if_it_is_still_ours);
    tcase_add_test(holds, holder_that_sees_another_has_lost);
    tcase_add_test(holds, deleted_lease_is_made_again);
    suite_add_tcase(suite, holds);

    TCase *releases = tcase_create("releases");
    tcase_add_checked_fixture(releases, set_up, tear_down);
    tcase_add_test(releases, release_gives_the_lease_back);
    tcase_add_test(releases, release_waits_for_the_renewal_that_is_under_way);
    tcase_add_loop_test(releases, release_after_a_conflict_gives_back_only_what_is_ours,
                        0, 2);
    tcase_add_test(releases, release_that_fails_is_not_repeated);
    tcase_add_test(releases, follower_has_nothing_to_give_back);
    suite_add_tcase(suite, releases);

    TCase *replicas = tcase_create("replicas");
    tcase_add_checked_fixture(replicas, set_up, tear_down);
    tcase_add_loop_test(replicas, no_two_fences_are_open_whatever_happens, 0, 20);
    suite_add_tcase(suite, replicas);
    return suite;
}
