#include "controller/base/object_store.h"

#include "tests/controller/objects.h"

#include "tests/scale.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct store *store;

static void set_up(void)
{
    store = store_new();
}

static void tear_down(void)
{
    store_free(store);
}

static bool put(const char *ns, const char *name, const char *uid, int64_t version)
{
    json_auto_t *object = make_object(&kube_pod, ns, name, uid, version, NULL);
    return store_put(store, &kube_pod, object);
}

static const char *held_version(const char *ns, const char *name)
{
    json_t *held = store_find(store, &kube_pod, ns, name);
    return held ? kube_resource_version(held) : NULL;
}

START_TEST(object_put_is_found_by_name)
{
    ck_assert(put("ns", "a", "u1", 5));
    ck_assert_str_eq(held_version("ns", "a"), "5");
    ck_assert_ptr_null(held_version("ns", "b"));
    ck_assert_ptr_null(held_version("other", "a"));
    ck_assert_ptr_null(store_find(store, &kube_service, "ns", "a"));
    ck_assert_uint_eq(store_count(store, &kube_pod), 1);
    ck_assert_uint_eq(store_count(store, &kube_service), 0);
}
END_TEST

START_TEST(cluster_scoped_object_has_the_empty_namespace)
{
    json_auto_t *node = make_object(&kube_node, "", "n1", "u1", 5, NULL);
    ck_assert(store_put(store, &kube_node, node));
    ck_assert_ptr_eq(store_find(store, &kube_node, "", "n1"), node);
    ck_assert_ptr_eq(store_find(store, &kube_node, NULL, "n1"), node);
}
END_TEST

START_TEST(store_keeps_the_object_alive)
{
    json_t *object = make_object(&kube_pod, "ns", "a", "u1", 5, NULL);
    store_put(store, &kube_pod, object);
    json_decref(object);
    ck_assert_str_eq(kube_name(store_find(store, &kube_pod, "ns", "a")), "a");
}
END_TEST

static const struct {
    const char *uid;
    int64_t version;
    bool is_taken;
} second_puts[] = {
    { "u1", 10, false }, /* the same again */
    { "u1", 9, false },  /* older, and shorter */
    { "u1", 11, true },  /* newer */
    { "u1", 100, true }, /* newer by number, not by letters */
    { "u2", 11, true },  /* made again under the name */
    { "u2", 9, false },  /* its predecessor, late */
};

START_TEST(only_a_newer_object_replaces_the_held_one)
{
    put("ns", "a", "u1", 10);
    ck_assert_int_eq(put("ns", "a", second_puts[_i].uid, second_puts[_i].version),
                     second_puts[_i].is_taken);
    ck_assert_uint_eq(store_count(store, &kube_pod), 1);
    auto_free char *expected = xasprintf(
        "%lld", (long long)(second_puts[_i].is_taken ? second_puts[_i].version : 10));
    ck_assert_str_eq(held_version("ns", "a"), expected);
}
END_TEST

START_TEST(nameless_object_is_ignored)
{
    json_auto_t *object = json_pack("{s:{s:s}}", "metadata", "uid", "u1");
    ck_assert(!store_put(store, &kube_pod, object));
    ck_assert(!store_replace(store, &kube_pod, object));
    ck_assert_uint_eq(store_total(store), 0);
}
END_TEST

START_TEST(remove_needs_the_uid)
{
    put("ns", "a", "u1", 10);
    ck_assert(!store_remove(store, &kube_pod, "ns", "a", "u2"));
    ck_assert(store_remove(store, &kube_pod, "ns", "a", "u1"));
    ck_assert(!store_remove(store, &kube_pod, "ns", "a", "u1"));
    put("ns", "b", "u3", 10);
    ck_assert(store_remove(store, &kube_pod, "ns", "b", NULL));
    ck_assert_uint_eq(store_total(store), 0);
}
END_TEST

START_TEST(late_reply_does_not_raise_the_dead)
{
    put("ns", "a", "u1", 10);
    store_remove(store, &kube_pod, "ns", "a", "u1");
    ck_assert(!put("ns", "a", "u1", 11));
    ck_assert(put("ns", "a", "u2", 12));
}
END_TEST

static bool put_read(const char *uid, int64_t version, uint64_t sent_at)
{
    json_auto_t *object = make_object(&kube_pod, "ns", "a", uid, version, NULL);
    return store_put_read(store, &kube_pod, object, sent_at);
}

START_TEST(what_was_read_after_a_removal_is_there)
{
    put("ns", "a", "u1", 10);
    uint64_t before = store_removals(store);
    store_remove_at(store, &kube_pod, "ns", "a", "u1", "20"); /* a list lacked it */
    ck_assert(!put("ns", "a", "u1", 10));
    ck_assert(!put_read("u1", 10, before)); /* its reply was on the way meanwhile */
    ck_assert(put_read("u1", 10, store_removals(store)));
    ck_assert_str_eq(held_version("ns", "a"), "10");
    ck_assert(!put_read("u1", 9, store_removals(store)));
}
END_TEST

START_TEST(deletion_before_creation_is_remembered)
{
    ck_assert(!store_remove(store, &kube_pod, "ns", "a", "u1"));
    ck_assert(!put("ns", "a", "u1", 10));
}
END_TEST

START_TEST(replaced_uid_is_dead)
{
    put("ns", "a", "u1", 10);
    put("ns", "a", "u2", 12);
    store_remove(store, &kube_pod, "ns", "a", "u2");
    ck_assert(!put("ns", "a", "u1", 11));
}
END_TEST

START_TEST(object_that_left_a_selector_may_come_back)
{
    put("ns", "a", "u1", 10);
    ck_assert(store_remove_at(store, &kube_pod, "ns", "a", "u1", "12"));
    ck_assert(!put("ns", "a", "u1", 11));
    ck_assert(!put("ns", "a", "u1", 12));
    ck_assert(put("ns", "a", "u1", 13));
}
END_TEST

START_TEST(last_4096_dead_are_remembered)
{
    char uid[20];
    for (int i = 0; i < 4097; i++) {
        snprintf(uid, sizeof uid, "u%d", i);
        put("ns", "a", uid, 10 + i);
        store_remove(store, &kube_pod, "ns", "a", uid);
    }
    ck_assert(!put("ns", "a", "u1", 5000));
    ck_assert(!put("ns", "a", "u4096", 5000));
    ck_assert(put("ns", "a", "u0", 5000));
}
END_TEST

START_TEST(replace_takes_an_older_version_and_the_dead)
{
    put("ns", "a", "u1", 10);
    json_auto_t *older = make_object(&kube_pod, "ns", "a", "u1", 7, NULL);
    ck_assert(store_replace(store, &kube_pod, older));
    ck_assert_str_eq(held_version("ns", "a"), "7");
    ck_assert(!store_replace(store, &kube_pod, older));
    store_remove(store, &kube_pod, "ns", "a", "u1");
    ck_assert(store_replace(store, &kube_pod, older));
    ck_assert(put("ns", "a", "u1", 8));
}
END_TEST

START_TEST(objects_are_in_the_order_of_namespace_and_name)
{
    /* 1000 names in the order of 379 i mod 1000 (coprime), in three namespaces. */
    char ns[8], name[8], uid[16];
    for (int i = 0; i < 1000; i++) {
        int n = i * 379 % 1000;
        snprintf(ns, sizeof ns, "ns%d", n % 3);
        snprintf(name, sizeof name, "%03d", n);
        snprintf(uid, sizeof uid, "u%d", n);
        ck_assert(put(ns, name, uid, 1));
    }
    for (int i = 0; i < 1000; i += 2) {
        snprintf(ns, sizeof ns, "ns%d", i % 3);
        snprintf(name, sizeof name, "%03d", i);
        ck_assert(store_remove(store, &kube_pod, ns, name, NULL));
    }
    ck_assert_uint_eq(store_count(store, &kube_pod), 500);
    for (size_t i = 1; i < 500; i++) {
        json_t *a = store_at(store, &kube_pod, i - 1), *b = store_at(store, &kube_pod, i);
        int order = strcmp(kube_namespace(a), kube_namespace(b));
        ck_assert(order < 0 || (order == 0 && strcmp(kube_name(a), kube_name(b)) < 0));
    }
}
END_TEST

static void put_owned(const char *ns, const char *name, int64_t version,
                      const char *owner_uid)
{
    auto_free char *uid = xasprintf("%s/%s", ns, name);
    json_auto_t *object = make_object(&kube_pod, ns, name, uid, version, owner_uid);
    ck_assert(store_put(store, &kube_pod, object));
}

START_TEST(owner_index_follows_every_change)
{
    struct het_arena *arena = het_arena_new();
    json_t **owned;
    put_owned("ns", "c", 1, "job1");
    put_owned("ns", "a", 1, "job1");
    put_owned("ns", "b", 1, "job2");
    put_owned("m", "z", 1, "job1");
    put_owned("ns", "d", 1, NULL);
    ck_assert_uint_eq(store_find_owned(store, &kube_pod, "job1", arena, &owned), 3);
    ck_assert_str_eq(kube_name(owned[0]), "z");
    ck_assert_str_eq(kube_name(owned[1]), "a");
    ck_assert_str_eq(kube_name(owned[2]), "c");
    put_owned("ns", "a", 2, "job2"); /* changes hands */
    put_owned("ns", "c", 2, NULL);   /* is let go */
    store_remove(store, &kube_pod, "m", "z", NULL);
    ck_assert_uint_eq(store_find_owned(store, &kube_pod, "job1", arena, &owned), 0);
    ck_assert_ptr_null(owned);
    ck_assert_uint_eq(store_find_owned(store, &kube_pod, "job2", arena, &owned), 2);
    ck_assert_uint_eq(store_find_owned(store, &kube_pod, "", arena, &owned), 0);
    ck_assert_uint_eq(store_find_owned(store, &kube_pod, "job", arena, &owned), 0);
    ck_assert_uint_eq(store_find_owned(store, &kube_service, "job1", arena, &owned), 0);
    het_arena_free(arena);
}
END_TEST

START_TEST(fifty_thousand_objects_in_any_order_take_moments)
{
    const int count = SCALED(50000) / 100 * 100; /* as many for each owner */
    char name[16], uid[16], owner[16];
    for (int i = 0; i < count; i++) {
        int n = (int)(i * 7919L % count); /* coprime to count */
        snprintf(name, sizeof name, "%d", n);
        snprintf(uid, sizeof uid, "u%d", n);
        snprintf(owner, sizeof owner, "job%d", n % 100);
        json_auto_t *object = make_object(&kube_pod, "ns", name, uid, i + 1, owner);
        store_put(store, &kube_pod, object);
    }
    ck_assert_uint_eq(store_total(store), count);
    struct het_arena *arena = het_arena_new();
    json_t **owned;
    for (int i = 0; i < 100; i++) {
        snprintf(owner, sizeof owner, "job%d", i);
        ck_assert_uint_eq(store_find_owned(store, &kube_pod, owner, arena, &owned),
                          count / 100);
    }
    het_arena_free(arena);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%d", i);
        ck_assert(store_remove(store, &kube_pod, "ns", name, NULL));
    }
    ck_assert_uint_eq(store_total(store), 0);
}
END_TEST

Suite *test_object_store_suite(void)
{
    Suite *suite = suite_create("object_store");
    TCase *cases = tcase_create("store");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, object_put_is_found_by_name);
    tcase_add_test(cases, cluster_scoped_object_has_the_empty_namespace);
    tcase_add_test(cases, store_keeps_the_object_alive);
    tcase_add_loop_test(cases, only_a_newer_object_replaces_the_held_one, 0,
                        sizeof second_puts / sizeof *second_puts);
    tcase_add_test(cases, nameless_object_is_ignored);
    tcase_add_test(cases, remove_needs_the_uid);
    tcase_add_test(cases, late_reply_does_not_raise_the_dead);
    tcase_add_test(cases, what_was_read_after_a_removal_is_there);
    tcase_add_test(cases, deletion_before_creation_is_remembered);
    tcase_add_test(cases, replaced_uid_is_dead);
    tcase_add_test(cases, object_that_left_a_selector_may_come_back);
    tcase_add_test(cases, last_4096_dead_are_remembered);
    tcase_add_test(cases, replace_takes_an_older_version_and_the_dead);
    tcase_add_test(cases, objects_are_in_the_order_of_namespace_and_name);
    tcase_add_test(cases, owner_index_follows_every_change);
    tcase_add_test(cases, fifty_thousand_objects_in_any_order_take_moments);
    suite_add_tcase(suite, cases);
    return suite;
}
