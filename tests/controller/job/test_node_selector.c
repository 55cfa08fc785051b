#include "controller/job/node_selector.h"

#include "tests/controller/world.h"

#include <check.h>
#include <string.h>

/* Of a node called "a" with the labels pool=train, gpus=8, empty="". The table follows
 * k8s.io/component-helpers/scheduling/corev1/nodeaffinity's own tests. */
static const struct {
    const char *terms;
    bool matches;
} cases[] = {
    { "[]", false },
    { "[{}]", false },
    { "[{'matchExpressions': [], 'matchFields': []}]", false },
    { "[{'matchExpressions': [{'key': 'pool', 'operator': 'In', 'values': ['x', "
      "'train']}]}]",
      true },
    { "[{'matchExpressions': [{'key': 'pool', 'operator': 'In', 'values': ['x']}]}]",
      false },
    { "[{'matchExpressions': [{'key': 'none', 'operator': 'In', 'values': ['']}]}]",
      false },
    { "[{'matchExpressions': [{'key': 'empty', 'operator': 'In', 'values': ['']}]}]",
      true },
    { "[{'matchExpressions': [{'key': 'pool', 'operator': 'NotIn', 'values': ['x']}]}]",
      true },
    { "[{'matchExpressions': [{'key': 'pool', 'operator': 'NotIn', 'values': "
      "['train']}]}]",
      false },
    /* No such label is not in any list. */
    { "[{'matchExpressions': [{'key': 'none', 'operator': 'NotIn', 'values': ['x']}]}]",
      true },
    { "[{'matchExpressions': [{'key': 'empty', 'operator': 'Exists'}]}]", true },
    { "[{'matchExpressions': [{'key': 'none', 'operator': 'Exists'}]}]", false },
    { "[{'matchExpressions': [{'key': 'none', 'operator': 'DoesNotExist'}]}]", true },
    { "[{'matchExpressions': [{'key': 'pool', 'operator': 'DoesNotExist'}]}]", false },
    { "[{'matchExpressions': [{'key': 'gpus', 'operator': 'Gt', 'values': ['7']}]}]",
      true },
    { "[{'matchExpressions': [{'key': 'gpus', 'operator': 'Gt', 'values': ['8']}]}]",
      false },
    { "[{'matchExpressions': [{'key': 'gpus', 'operator': 'Lt', 'values': ['10']}]}]",
      true },
    { "[{'matchExpressions': [{'key': 'gpus', 'operator': 'Lt', 'values': ['8']}]}]",
      false },
    { "[{'matchExpressions': [{'key': 'pool', 'operator': 'Gt', 'values': ['1']}]}]",
      false },
    { "[{'matchExpressions': [{'key': 'none', 'operator': 'Lt', 'values': ['1']}]}]",
      false },
    { "[{'matchExpressions': [{'key': 'gpus', 'operator': 'Gt', 'values': ['x']}]}]",
      false },
    { "[{'matchExpressions': [{'key': 'gpus', 'operator': 'Is', 'values': ['8']}]}]",
      false },
    { "[{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': ['a']}]}]",
      true },
    { "[{'matchFields': [{'key': 'metadata.name', 'operator': 'NotIn', 'values': "
      "['a']}]}]",
      false },
    { "[{'matchFields': [{'key': 'metadata.uid', 'operator': 'NotIn', 'values': "
      "['a']}]}]",
      false },
    /* All of one term, any of the terms. */
    { "[{'matchExpressions': [{'key': 'pool', 'operator': 'Exists'}, {'key': 'none', "
      "'operator': 'Exists'}]}]",
      false },
    { "[{'matchExpressions': [{'key': 'pool', 'operator': 'Exists'}], 'matchFields': "
      "[{'key': 'metadata.name', 'operator': 'In', 'values': ['b']}]}]",
      false },
    { "[{'matchExpressions': [{'key': 'none', 'operator': 'Exists'}]}, "
      "{'matchExpressions': [{'key': 'pool', 'operator': 'Exists'}]}]",
      true },
    { "[{}, {'matchExpressions': [{'key': 'pool', 'operator': 'Exists'}]}]", true },
};

static json_t *make_node(void)
{
    return quoted("{'metadata': {'name': 'a', 'labels': {'pool': 'train', 'gpus': "
                  "'8', 'empty': ''}}}");
}

START_TEST(terms_match_as_the_scheduler_matches_them)
{
    json_auto_t *node = make_node();
    json_auto_t *selector = quoted("{'nodeSelectorTerms': %s}", cases[_i].terms);
    ck_assert_msg(node_selector_matches(selector, node) == cases[_i].matches, "%s",
                  cases[_i].terms);
}
END_TEST

START_TEST(selector_that_says_nothing_admits_all)
{
    json_auto_t *node = make_node();
    json_auto_t *empty = json_object();
    ck_assert(node_selector_matches(NULL, node));
    ck_assert(node_selector_matches(empty, node));
    ck_assert(node_selector_matches_labels(NULL, node));
}
END_TEST

START_TEST(labels_must_all_be_there)
{
    json_auto_t *node = make_node();
    json_auto_t *both = quoted("{'pool': 'train', 'gpus': '8'}");
    json_auto_t *other = quoted("{'pool': 'train', 'gpus': '4'}");
    json_auto_t *absent = quoted("{'none': ''}");
    ck_assert(node_selector_matches_labels(both, node));
    ck_assert(!node_selector_matches_labels(other, node));
    ck_assert(!node_selector_matches_labels(absent, node));
}
END_TEST

static const struct {
    const char *selector, *message;
} refused[] = {
    { "3", "sel: must be an object" },
    { "{'nodeSelectorTerms': {}}", "sel: must be an object with a list" },
    { "{'nodeSelectorTerms': [3]}", "sel.nodeSelectorTerms[0]: must be an object" },
    { "{'nodeSelectorTerms': [{'matchExpressions': 1}]}", "matchExpressions: must be" },
    { "{'nodeSelectorTerms': [{'matchExpressions': [{'operator': 'Exists'}]}]}",
      "matchExpressions[0].key: is missing" },
    { "{'nodeSelectorTerms': [{'matchExpressions': [{'key': 'x', 'operator': 'Is'}]}]}",
      "operator: must be In" },
    { "{'nodeSelectorTerms': [{'matchExpressions': [{'key': 'x', 'operator': 'In'}]}]}",
      "values: must have one" },
    { "{'nodeSelectorTerms': [{'matchExpressions': [{'key': 'x', 'operator': 'Exists', "
      "'values': ['y']}]}]}",
      "values: must be left out" },
    { "{'nodeSelectorTerms': [{'matchExpressions': [{'key': 'x', 'operator': 'Gt', "
      "'values': ['y']}]}]}",
      "one whole number" },
    { "{'nodeSelectorTerms': [{'matchExpressions': [{'key': 'x', 'operator': 'In', "
      "'values': [1]}]}]}",
      "values[0]: must be a text" },
    { "{'nodeSelectorTerms': [{'matchFields': [{'key': 'spec.x', 'operator': 'In', "
      "'values': ['y']}]}]}",
      "must be metadata.name" },
    { "{'nodeSelectorTerms': [{'matchFields': [{'key': 'metadata.name', 'operator': "
      "'Exists'}]}]}",
      "a field takes In or NotIn" },
};

START_TEST(what_the_server_would_refuse_is_refused_by_path)
{
    json_auto_t *selector = quoted("{'x': %s}", refused[_i].selector);
    struct het_error err;
    ck_assert_int_eq(node_selector_check(json_object_get(selector, "x"), "sel", &err),
                     -1);
    ck_assert_msg(strstr(err.message, refused[_i].message) != NULL, "%s", err.message);
}
END_TEST

START_TEST(good_selectors_pass_the_check)
{
    json_auto_t *selector = quoted(
        "{'nodeSelectorTerms': [{'matchExpressions': [{'key': 'x', 'operator': 'Lt', "
        "'values': ['-3']}, {'key': 'y', 'operator': 'DoesNotExist'}]}, {'matchFields': "
        "[{'key': 'metadata.name', 'operator': 'NotIn', 'values': ['a']}]}]}");
    struct het_error err;
    ck_assert_int_eq(node_selector_check(selector, "sel", &err), 0);
    ck_assert_int_eq(node_selector_check(NULL, "sel", &err), 0);
}
END_TEST

/* The joined selector admits just what both admit, and that node alone. */
START_TEST(joined_selector_is_both_and_the_name)
{
    json_auto_t *a =
        quoted("{'nodeSelectorTerms': [{'matchExpressions': [{'key': 'pool', "
               "'operator': 'In', 'values': ['train']}]}, {}, {'matchExpressions': "
               "[{'key': 'none', 'operator': 'Exists'}]}]}");
    json_auto_t *b = quoted("{'nodeSelectorTerms': [{'matchExpressions': [{'key': "
                            "'gpus', 'operator': 'Gt', 'values': ['4']}]}]}");
    json_auto_t *labels = quoted("{'empty': ''}");
    json_auto_t *node = make_node();
    json_auto_t *joined = node_selector_join(a, b, labels, "a");
    /* 3 terms x 1 term, less the one that admits nothing */
    ck_assert_uint_eq(json_array_size(json_object_get(joined, "nodeSelectorTerms")), 2);
    ck_assert_uint_eq(node_selector_join_count(a, b), 3);
    ck_assert(node_selector_matches(joined, node));
    json_auto_t *elsewhere = node_selector_join(a, b, labels, "b");
    ck_assert(!node_selector_matches(elsewhere, node));
    json_object_set_new(json_object_get(json_object_get(node, "metadata"), "labels"),
                        "gpus", json_string("4"));
    ck_assert(!node_selector_matches(joined, node));

    json_auto_t *none = quoted("{'nodeSelectorTerms': []}");
    json_auto_t *never = node_selector_join(none, b, NULL, "a");
    ck_assert_uint_eq(json_array_size(json_object_get(never, "nodeSelectorTerms")), 1);
    ck_assert(!node_selector_matches(never, node));
    json_auto_t *pin = node_selector_join(NULL, NULL, NULL, "a");
    ck_assert(node_selector_matches(pin, node));
}
END_TEST

Suite *test_node_selector_suite(void)
{
    Suite *suite = suite_create("node_selector");
    TCase *tests = tcase_create("node_selector");
    tcase_add_loop_test(tests, terms_match_as_the_scheduler_matches_them, 0,
                        sizeof cases / sizeof *cases);
    tcase_add_test(tests, selector_that_says_nothing_admits_all);
    tcase_add_test(tests, labels_must_all_be_there);
    tcase_add_loop_test(tests, what_the_server_would_refuse_is_refused_by_path, 0,
                        sizeof refused / sizeof *refused);
    tcase_add_test(tests, good_selectors_pass_the_check);
    tcase_add_test(tests, joined_selector_is_both_and_the_name);
    suite_add_tcase(suite, tests);
    return suite;
}
