#include "controller/base/workqueue.h"

#include "planner/modules.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct workqueue *queue;

static void set_up(void)
{
    queue = workqueue_new();
}

static void tear_down(void)
{
    workqueue_free(queue);
}

static void assert_takes(int64_t now_ms, const char *expected)
{
    const char *key = workqueue_take(queue, now_ms);
    if (!expected) {
        ck_assert_msg(!key, "took %s, expected nothing", key);
        return;
    }
    ck_assert_msg(key, "took nothing, expected %s", expected);
    ck_assert_str_eq(key, expected);
}

START_TEST(key_added_often_comes_once)
{
    for (int i = 0; i < 3; i++)
        workqueue_add(queue, "ns/a");
    ck_assert_uint_eq(workqueue_length(queue), 1);
    ck_assert_int_le(workqueue_next_ms(queue), 0);
    assert_takes(0, "ns/a");
    assert_takes(0, NULL);
    workqueue_done(queue, "ns/a");
    assert_takes(0, NULL);
    ck_assert_uint_eq(workqueue_length(queue), 0);
    ck_assert_int_eq(workqueue_next_ms(queue), INT64_MAX);
}
END_TEST

START_TEST(key_added_while_worked_on_comes_again_afterwards)
{
    workqueue_add(queue, "ns/a");
    const char *key = workqueue_take(queue, 0);
    workqueue_add(queue, "ns/a");
    workqueue_add(queue, "ns/a");
    ck_assert_uint_eq(workqueue_length(queue), 1);
    assert_takes(0, NULL);
    ck_assert_int_eq(workqueue_next_ms(queue), INT64_MAX);
    workqueue_done(queue, key);
    assert_takes(0, "ns/a");
    workqueue_done(queue, "ns/a");
    assert_takes(0, NULL);
}
END_TEST

static size_t load_of(void *context, const char *ns)
{
    return !strcmp(ns, context) ? 1 : 0;
}

START_TEST(namespace_with_the_least_load_comes_first)
{
    static char busy[] = "a";
    workqueue_set_load(queue, load_of, busy);
    for (int i = 0; i < 2; i++) {
        workqueue_add(queue, i ? "a/2" : "a/1");
        workqueue_add(queue, i ? "b/2" : "b/1");
        workqueue_add(queue, i ? "c/2" : "c/1");
    }
    static const char *const order[] = { "b/1", "c/1", "b/2", "c/2", "a/1", "a/2" };
    for (int i = 0; i < 6; i++) {
        ck_assert_str_eq(workqueue_peek(queue, 0), order[i]);
        ck_assert_uint_eq(workqueue_length(queue), 6 - i); /* left as it was */
        assert_takes(0, order[i]);
        workqueue_done(queue, order[i]);
    }
    ck_assert_ptr_null(workqueue_peek(queue, 0));
}
END_TEST

START_TEST(delayed_key_waits_for_its_time)
{
    workqueue_add_at(queue, "ns/a", 100);
    ck_assert_int_eq(workqueue_next_ms(queue), 100);
    assert_takes(99, NULL);
    assert_takes(100, "ns/a");
}
END_TEST

START_TEST(earlier_time_wins)
{
    workqueue_add_at(queue, "ns/a", 100);
    workqueue_add_at(queue, "ns/a", 200);
    ck_assert_int_eq(workqueue_next_ms(queue), 100);
    workqueue_add_at(queue, "ns/a", 50);
    ck_assert_int_eq(workqueue_next_ms(queue), 50);
    workqueue_add(queue, "ns/a");
    assert_takes(0, "ns/a");
    workqueue_done(queue, "ns/a");
    assert_takes(1000, NULL);
}
END_TEST

START_TEST(ready_key_stays_ready_when_delayed)
{
    workqueue_add(queue, "ns/a");
    workqueue_add_at(queue, "ns/a", 100);
    assert_takes(0, "ns/a");
    workqueue_done(queue, "ns/a");
    assert_takes(100, NULL);
}
END_TEST

START_TEST(delay_given_while_worked_on_counts_from_then)
{
    workqueue_add(queue, "ns/a");
    assert_takes(0, "ns/a");
    workqueue_add_at(queue, "ns/a", 100);
    workqueue_done(queue, "ns/a");
    ck_assert_int_eq(workqueue_next_ms(queue), 100);
    assert_takes(99, NULL);
    assert_takes(100, "ns/a");
}
END_TEST

START_TEST(delayed_keys_come_in_the_order_of_their_times)
{
    /* A permutation of 0..96: multiples of 35 modulo 97. */
    for (int i = 0; i < 97; i++) {
        auto_free char *key = xasprintf("ns/%d", i * 35 % 97);
        workqueue_add_at(queue, key, 1000 + i * 35 % 97);
    }
    for (int i = 0; i < 97; i++) {
        ck_assert_int_eq(workqueue_next_ms(queue), 1000 + i);
        auto_free char *key = xasprintf("ns/%d", i);
        assert_takes(1000 + i, key);
        workqueue_done(queue, key);
    }
}
END_TEST

START_TEST(failures_back_off_by_doubling_up_to_300_s)
{
    int64_t expected_ms = 5;
    int64_t now_ms = 1000;
    workqueue_add(queue, "ns/a");
    for (int i = 0; i < 80; i++) {
        assert_takes(now_ms, "ns/a");
        workqueue_add_failed(queue, "ns/a", now_ms);
        workqueue_done(queue, "ns/a");
        ck_assert_int_eq(workqueue_next_ms(queue), now_ms + expected_ms);
        assert_takes(now_ms + expected_ms - 1, NULL);
        now_ms += expected_ms;
        expected_ms = expected_ms * 2 > 300000 ? 300000 : expected_ms * 2;
    }
    workqueue_forget(queue, "ns/a");
    assert_takes(now_ms, "ns/a");
    workqueue_add_failed(queue, "ns/a", now_ms);
    workqueue_done(queue, "ns/a");
    ck_assert_int_eq(workqueue_next_ms(queue), now_ms + 5);
}
END_TEST

START_TEST(change_of_input_overtakes_a_back_off)
{
    for (int i = 0; i < 10; i++)
        workqueue_add_failed(queue, "ns/a", 0);
    workqueue_forget(queue, "ns/a");
    workqueue_add(queue, "ns/a");
    assert_takes(0, "ns/a");
}
END_TEST

START_TEST(namespaces_take_turns)
{
    for (int i = 0; i < 1000; i++) {
        auto_free char *key = xasprintf("big/%d", i);
        workqueue_add(queue, key);
    }
    workqueue_add(queue, "small/a");
    workqueue_add(queue, "small/b");
    workqueue_add(queue, "other/a");
    static const char *const order[] = { "big/0",   "small/a", "other/a", "big/1",
                                         "small/b", "big/2",   "big/3" };
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        assert_takes(0, order[i]);
    /* One that comes back waits for its turn like any other. */
    workqueue_add(queue, "other/b");
    assert_takes(0, "big/4");
    assert_takes(0, "other/b");
}
END_TEST

START_TEST(forgotten_key_that_was_never_added_is_nothing)
{
    workqueue_forget(queue, "ns/a");
    ck_assert_uint_eq(workqueue_length(queue), 0);
}
END_TEST

START_TEST(hundred_thousand_keys_come_once_each)
{
    char key[40];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 100000; i++) {
            snprintf(key, sizeof key, "ns-%d/job-%d", i % 10, i);
            workqueue_add_at(queue, key, i % 1000);
        }
    }
    ck_assert_uint_eq(workqueue_length(queue), 100000);
    int taken = 0;
    for (const char *next; (next = workqueue_take(queue, 1000)); taken++)
        workqueue_done(queue, next);
    ck_assert_int_eq(taken, 100000);
}
END_TEST

/* Against a model: at any time the queue holds exactly the keys that it should. */
START_TEST(random_operations_agree_with_a_model)
{
    enum { KEYS = 12 };
    struct {
        bool waits, worked_on;
        int64_t due_ms;
        unsigned failures;
    } model[KEYS] = { 0 };
    unsigned seed = (unsigned)_i * 7919 + 1;
    int64_t now_ms = 0;
    for (int step = 0; step < 5000; step++) {
        int k = rand_r(&seed) % KEYS;
        char key[20];
        snprintf(key, sizeof key, "ns%d/%d", k % 3, k);
        int64_t at_ms = now_ms;
        switch (rand_r(&seed) % 6) {
        case 0:
            workqueue_add(queue, key);
            at_ms = 0;
            break;
        case 1:
            at_ms = now_ms + rand_r(&seed) % 50;
            workqueue_add_at(queue, key, at_ms);
            break;
        case 2:
            workqueue_add_failed(queue, key, now_ms);
            at_ms = now_ms + (model[k].failures < 16 ? 5 << model[k].failures : 300000);
            at_ms = at_ms > now_ms + 300000 ? now_ms + 300000 : at_ms;
            model[k].failures++;
            break;
        case 3:
            workqueue_forget(queue, key);
            model[k].failures = 0;
            continue;
        case 4:
            now_ms += rand_r(&seed) % 20;
            continue;
        case 5: {
            if (model[k].worked_on) {
                workqueue_done(queue, key);
                model[k].worked_on = false;
            }
            const char *taken = workqueue_take(queue, now_ms);
            if (!taken) {
                for (int i = 0; i < KEYS; i++)
                    ck_assert_msg(!model[i].waits || model[i].worked_on ||
                                      model[i].due_ms > now_ms,
                                  "seed %d step %d: key %d is ready", _i, step, i);
                continue;
            }
            int t = atoi(strchr(taken, '/') + 1);
            ck_assert_msg(model[t].waits && !model[t].worked_on &&
                              model[t].due_ms <= now_ms,
                          "seed %d step %d: took %s", _i, step, taken);
            model[t].waits = false;
            model[t].worked_on = true;
            continue;
        }
        }
        if (!model[k].waits || at_ms < model[k].due_ms)
            model[k].due_ms = at_ms;
        model[k].waits = true;
    }
}
END_TEST

START_TEST(removed_key_leaves_nothing_however_it_waited)
{
    workqueue_add(queue, "a/ready");
    workqueue_add_at(queue, "a/delayed", INT64_MAX - 1);
    workqueue_add_failed(queue, "a/failed", 0);
    for (int i = 0; i < 1000; i++) {
        auto_free char *key = xasprintf("gone-%d/j", i);
        workqueue_add_at(queue, key, 86400000);
        workqueue_remove(queue, key);
    }
    ck_assert_uint_eq(workqueue_size(queue), 3);
    workqueue_remove(queue, "a/ready");
    workqueue_remove(queue, "a/delayed");
    workqueue_remove(queue, "a/failed");
    workqueue_remove(queue, "a/unknown");
    ck_assert_uint_eq(workqueue_length(queue), 0);
    ck_assert_uint_eq(workqueue_size(queue), 0);
    ck_assert_ptr_null(workqueue_take(queue, INT64_MAX));
    /* While it is worked on, and was to come again. */
    workqueue_add(queue, "a/busy");
    ck_assert_str_eq(workqueue_take(queue, 0), "a/busy");
    workqueue_add_failed(queue, "a/busy", 0);
    workqueue_remove(queue, "a/busy");
    workqueue_done(queue, "a/busy");
    ck_assert_uint_eq(workqueue_size(queue), 0);
    /* A new one of that name begins anew. */
    workqueue_add_failed(queue, "a/failed", 0);
    ck_assert_int_eq(workqueue_next_ms(queue), 5);
}
END_TEST

Suite *test_workqueue_suite(void)
{
    Suite *suite = suite_create("workqueue");
    TCase *cases = tcase_create("workqueue");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, key_added_often_comes_once);
    tcase_add_test(cases, key_added_while_worked_on_comes_again_afterwards);
    tcase_add_test(cases, namespace_with_the_least_load_comes_first);
    tcase_add_test(cases, delayed_key_waits_for_its_time);
    tcase_add_test(cases, earlier_time_wins);
    tcase_add_test(cases, ready_key_stays_ready_when_delayed);
    tcase_add_test(cases, delay_given_while_worked_on_counts_from_then);
    tcase_add_test(cases, delayed_keys_come_in_the_order_of_their_times);
    tcase_add_test(cases, failures_back_off_by_doubling_up_to_300_s);
    tcase_add_test(cases, change_of_input_overtakes_a_back_off);
    tcase_add_test(cases, namespaces_take_turns);
    tcase_add_test(cases, forgotten_key_that_was_never_added_is_nothing);
    tcase_add_test(cases, removed_key_leaves_nothing_however_it_waited);
    tcase_add_test(cases, hundred_thousand_keys_come_once_each);
    tcase_add_loop_test(cases, random_operations_agree_with_a_model, 0, 20);
    suite_add_tcase(suite, cases);
    return suite;
}
