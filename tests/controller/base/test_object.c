#include "controller/base/object.h"

#include <check.h>

static const struct {
    const char *a, *b;
    int order;
} versions[] = {
    { "1", "1", 0 },
    { "1", "2", -1 },
    { "10", "9", 1 },
    { "9", "10", -1 },
    { "010", "10", 0 },
    { "", "1", -1 },
    { "", "", 0 },
    { "0", "", 0 },
    { "99999999999999999999", "100000000000000000000", -1 },
};

START_TEST(versions_are_ordered_as_numbers)
{
    int order = kube_compare_versions(versions[_i].a, versions[_i].b);
    int reverse = kube_compare_versions(versions[_i].b, versions[_i].a);
    ck_assert_int_eq((order > 0) - (order < 0), versions[_i].order);
    ck_assert_int_eq((reverse > 0) - (reverse < 0), -versions[_i].order);
}
END_TEST

START_TEST(readers_give_empty_strings_for_what_is_absent_or_odd)
{
    const char *text =
        "{\"metadata\":{\"name\":\"a\\u0000b\",\"namespace\":7,\"labels\":{\"x\":\"y\",\"z\":null},"
        "\"annotations\":[],\"ownerReferences\":[{\"uid\":\"no\"},{\"uid\":\"yes\",\"controller\":true}],"
        "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}}";
    json_auto_t *pod = json_loads(text, JSON_ALLOW_NUL, NULL);
    ck_assert_str_eq(kube_name(pod), "");
    ck_assert_str_eq(kube_namespace(pod), "");
    ck_assert_str_eq(kube_uid(pod), "");
    ck_assert_str_eq(kube_label(pod, "x"), "y");
    ck_assert_str_eq(kube_label(pod, "z"), "");
    ck_assert_str_eq(kube_annotation(pod, "x"), "");
    ck_assert_str_eq(kube_controller_uid(pod), "yes");
    ck_assert(kube_is_deleting(pod));
    json_auto_t *empty = json_object();
    ck_assert_str_eq(kube_name(empty), "");
    ck_assert_str_eq(kube_controller_uid(empty), "");
    ck_assert(!kube_is_deleting(empty));
    ck_assert_str_eq(kube_name(NULL), "");
}
END_TEST

Suite *test_object_suite(void)
{
    Suite *suite = suite_create("object");
    TCase *tcase = tcase_create("object");
    tcase_add_loop_test(tcase, versions_are_ordered_as_numbers, 0,
                        sizeof versions / sizeof *versions);
    tcase_add_test(tcase, readers_give_empty_strings_for_what_is_absent_or_odd);
    suite_add_tcase(suite, tcase);
    return suite;
}
