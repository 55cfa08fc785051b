/* The pure parts of the embedded server: selector, merge, history, kind, scheduler. */
#include "controller/simulate/api_server/condition.h"
#include "controller/simulate/api_server/kinds.h"
#include "controller/simulate/api_server/merge.h"
#include "controller/simulate/api_server/selector.h"
#include "controller/simulate/api_server/storage.h"
#include "controller/simulate/scheduler.h"
#include "planner/modules.h"
#include "tests/controller/api.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* ---- selectors ---- */

static bool selects(const char *text, bool is_field, json_t *object)
{
    const char *message = NULL;
    struct selector *selector = selector_new(text, is_field, &message);
    ck_assert_msg(selector != NULL, "%s: %s", text, message);
    bool matches = selector_matches(selector, object);
    selector_free(selector);
    return matches;
}

START_TEST(label_selectors_select_as_kubectl_documents)
{
    static const struct {
        const char *text;
        bool matches;
    } cases[] = {
        { "", true },
        { "app=web", true },
        { "app==web", true },
        { "app = web , tier = front", true },
        { "app!=web", false },
        { "none!=x", true },
        { "app", true },
        { "!app", false },
        { "!none", true },
        { "app in (db,web)", true },
        { "app in (db)", false },
        { "app notin (db, cache)", true },
        { "none notin (a)", true },
        { "app notin (web)", false },
        { "a.b/c=1,app in (web),!x,tier", true },
        { "empty=", true },
        { "app=web,tier=back", false },
    };
    json_auto_t *object = quoted("{'metadata': {'labels': {'app': 'web', 'tier': 'front',"
                                 " 'a.b/c': '1', 'empty': ''}}}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(selects(cases[i].text, false, object) == cases[i].matches, "%s",
                      cases[i].text);
}
END_TEST

START_TEST(field_selectors_compare_fields_and_take_a_missing_one_as_empty)
{
    json_auto_t *bound = quoted("{'metadata': {'name': 'p'}, 'spec': {'nodeName': 'n'},"
                                " 'status': {'phase': 'Running'}}");
    json_auto_t *unbound = quoted("{'metadata': {'name': 'q'}}");
    const char *live = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";
    ck_assert(selects(live, true, bound));
    ck_assert(!selects(live, true, unbound));
    ck_assert(selects("spec.nodeName=", true, unbound));
    ck_assert(selects("metadata.name=p", true, bound));
    ck_assert(!selects("metadata.name=p", true, unbound));
}
END_TEST

START_TEST(what_is_not_a_selector_is_refused)
{
    static const char *const bad[] = { "=x",     "a in", "a in (b", "a=b c",
                                       "a=b,,c", "a>b",  "!" };
    const char *message;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!selector_new(bad[i], false, &message), "%s was accepted", bad[i]);
    ck_assert_ptr_null(selector_new("metadata.name in (a)", true, &message));
    ck_assert_ptr_null(selector_new("metadata.name", true, &message));
}
END_TEST

START_TEST(node_terms_match_by_name_and_label)
{
    json_auto_t *node = quoted("{'metadata': {'name': 'n1', 'labels': {'pool': 'a',"
                               " 'gpus': '8'}}}");
    static const struct {
        const char *term;
        bool matches;
    } cases[] = {
        { "{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': ['n1']}]}",
          true },
        { "{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': ['n2']}]}",
          false },
        { "{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': ['n1']}],"
          " 'matchExpressions': [{'key': 'pool', 'operator': 'NotIn', 'values': ['a']}]}",
          false },
        { "{'matchExpressions': [{'key': 'gpus', 'operator': 'Gt', 'values': ['4']}]}",
          true },
        { "{'matchExpressions': [{'key': 'none', 'operator': 'DoesNotExist'}]}", true },
        { "{}", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_auto_t *term = quoted("%s", cases[i].term);
        ck_assert_msg(selector_term_matches(term, node) == cases[i].matches, "%s",
                      cases[i].term);
    }
}
END_TEST

/* ---- merging ---- */

/* Compares JSON, the expected one written with '. */
static void check_json(json_t *actual, const char *expected)
{
    json_auto_t *wanted = quoted("%s", expected);
    auto_free char *text = json_dumps(actual, JSON_COMPACT | JSON_ENCODE_ANY);
    ck_assert_msg(json_equal(actual, wanted), "expected %s, got %s", expected, text);
}

START_TEST(merge_patch_follows_the_examples_of_rfc_7396)
{
    static const char *const cases[][3] = {
        { "{'a':'b'}", "{'a':'c'}", "{'a':'c'}" },
        { "{'a':'b'}", "{'b':'c'}", "{'a':'b','b':'c'}" },
        { "{'a':'b','b':'c'}", "{'a':null}", "{'b':'c'}" },
        { "{'a':['b']}", "{'a':'c'}", "{'a':'c'}" },
        { "{'a':{'b':'c'}}", "{'a':{'b':'d','c':null}}", "{'a':{'b':'d'}}" },
        { "{'a':[{'b':'c'}]}", "{'a':[1]}", "{'a':[1]}" },
        { "{'e':null}", "{'a':1}", "{'e':null,'a':1}" },
        { "{}", "{'a':{'bb':{'ccc':null}}}", "{'a':{'bb':{}}}" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_auto_t *target = quoted("%s", cases[i][0]);
        json_auto_t *patch = quoted("%s", cases[i][1]);
        json_auto_t *result = merge_patch(target, patch);
        check_json(result, cases[i][2]);
    }
}
END_TEST

/* Applies text to `*live` and replaces it. */
static void apply(json_t **live, const char *manager, const char *text)
{
    json_auto_t *applied = quoted("%s", text);
    char *conflict = NULL;
    json_t *result = merge_apply(*live, applied, manager, "", true, 0, &conflict);
    ck_assert_ptr_null(conflict);
    json_decref(*live);
    *live = result;
}

START_TEST(apply_removes_what_its_manager_no_longer_wants_and_nothing_else)
{
    json_t *live = quoted("{'spec': {'theirs': 1}}");
    apply(&live, "m",
          "{'spec': {'a': 1, 'b': {'c': 2, 'd': 3}},"
          " 'metadata': {'labels': {'x': '1', 'y': '2'}}}");
    apply(&live, "m", "{'spec': {'b': {'c': 5}}, 'metadata': {'labels': {'y': '2'}}}");
    check_json(object_at(live, "spec"), "{'theirs': 1, 'b': {'c': 5}}");
    check_json(object_at(live, "metadata.labels"), "{'y': '2'}");
    json_decref(live);
}
END_TEST

START_TEST(what_two_managers_apply_stays_until_both_let_go)
{
    json_t *live = json_object();
    apply(&live, "m", "{'spec': {'a': 1, 'b': 1}}");
    apply(&live, "n", "{'spec': {'a': 1}}");
    apply(&live, "m", "{'spec': {'b': 1}}");
    check_json(object_at(live, "spec"), "{'a': 1, 'b': 1}");
    apply(&live, "n", "{}");
    check_json(object_at(live, "spec"), "{'b': 1}");
    json_decref(live);
}
END_TEST

START_TEST(keyed_lists_merge_by_element)
{
    json_t *live = json_object();
    apply(&live, "m",
          "{'status': {'conditions': [{'type': 'A', 'status': 'True'},"
          " {'type': 'B', 'status': 'False'}]}}");
    apply(&live, "n", "{'status': {'conditions': [{'type': 'C', 'status': 'True'}]}}");
    apply(&live, "m", "{'status': {'conditions': [{'type': 'A', 'status': 'False'}]}}");
    check_json(object_at(live, "status.conditions"),
               "[{'type': 'A', 'status': 'False'}, {'type': 'C', 'status': 'True'}]");
    apply(&live, "m", "{'metadata': {'finalizers': ['x', 'y']}}");
    apply(&live, "m", "{'metadata': {'finalizers': ['y']}}");
    check_json(object_at(live, "metadata.finalizers"), "['y']");
    json_decref(live);
}
END_TEST

START_TEST(a_conflict_needs_force_and_force_takes_the_field)
{
    json_t *live = json_object();
    char *conflict = NULL;
    apply(&live, "m", "{'spec': {'a': 1, 'b': 2}}");
    json_auto_t *other = quoted("{'spec': {'a': 2}}");
    ck_assert_ptr_null(merge_apply(live, other, "n", "", false, 0, &conflict));
    ck_assert_str_eq(conflict, "conflict with \"m\": .spec.a");
    free(conflict);
    apply(&live, "n", "{'spec': {'a': 2}}");
    apply(&live, "m", "{'spec': {'b': 2}}"); /* m has lost a: it is not removed */
    check_json(object_at(live, "spec"), "{'a': 2, 'b': 2}");
    json_decref(live);
}
END_TEST

START_TEST(applying_the_same_again_changes_nothing)
{
    json_t *live = json_object();
    apply(&live, "n", "{'spec': {'z': 1}}");
    apply(&live, "m", "{'spec': {'a': [1, {'x': 2}]}}");
    apply(&live, "o", "{'spec': {'y': 1}}");
    json_auto_t *before = json_deep_copy(live);
    json_auto_t *applied = quoted("{'spec': {'a': [1, {'x': 2}]}}");
    char *conflict = NULL;
    json_auto_t *after = merge_apply(live, applied, "m", "", true, 99000, &conflict);
    ck_assert(json_equal(before, after));
    json_decref(live);
}
END_TEST

/* ---- history ---- */

static json_t *config_map(const char *ns, const char *name, int value)
{
    return quoted("{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'namespace': "
                  "'%s', 'name': '%s'}, 'data': {'v': '%d'}}",
                  ns, name, value);
}

/* "ns/name=value ..." of a list. */
static char *show(json_t *list)
{
    char *text = xstrdup("");
    size_t i;
    json_t *object;
    json_array_foreach (list, i, object) {
        auto_free char *before = text;
        auto_free char *key = object_key(object);
        text = xasprintf("%s%s%s=%s", before, i ? " " : "", key,
                         object_text(object, "data.v"));
    }
    return text;
}

START_TEST(the_past_can_be_listed_at_any_revision_that_is_kept)
{
    const struct kind *maps = kind_find_plural("configmaps");
    struct storage *history = storage_new();
    ck_assert_uint_eq(storage_revision(history), 1);
    storage_put(history, maps, config_map("b", "x", 1), 0);    /* 2 */
    storage_put(history, maps, config_map("a", "y", 1), 0);    /* 3 */
    storage_put(history, maps, config_map("b", "x", 2), 0);    /* 4 */
    storage_remove(history, maps, config_map("a", "y", 1), 0); /* 5 */
    storage_put(history, maps, config_map("a-b", "z", 1), 0);  /* 6 */
    static const char *const expected[] = {
        "", "b/x=1", "a/y=1 b/x=1", "a/y=1 b/x=2", "b/x=2", "a-b/z=1 b/x=2"
    };
    for (uint64_t revision = 1; revision <= 6; revision++) {
        json_auto_t *list = storage_list_at(history, maps, revision);
        auto_free char *text = show(list);
        ck_assert_str_eq(text, expected[revision - 1]);
    }
    storage_compact(history, 4);
    ck_assert_uint_eq(storage_compacted(history), 4);
    ck_assert_uint_eq(storage_revision(history), 6);
    ck_assert_ptr_null(storage_change(history, 5)->after);
    json_auto_t *list = storage_list_at(history, maps, 4);
    auto_free char *text = show(list);
    ck_assert_str_eq(text, "a/y=1 b/x=2");
    storage_free(history);
}
END_TEST

START_TEST(history_is_bounded)
{
    const struct kind *maps = kind_find_plural("configmaps");
    struct storage *history = storage_new();
    for (int i = 0; i < 3 * STORAGE_MAX; i++)
        storage_put(history, maps, config_map("a", "x", i), 0);
    ck_assert_uint_eq(storage_revision(history), 3 * STORAGE_MAX + 1);
    ck_assert(storage_revision(history) - storage_compacted(history) <= STORAGE_MAX);
    ck_assert(storage_revision(history) - storage_compacted(history) >= STORAGE_MAX / 2);
    storage_free(history);
}
END_TEST

/* ---- kinds ---- */

static char *first_cause(const char *text)
{
    json_auto_t *object = quoted("%s", text);
    const struct kind *kind = kind_of(object);
    ck_assert_ptr_nonnull(kind);
    kind_fill(kind, object, 0);
    json_auto_t *causes = kind_check(kind, NULL, object);
    const json_t *cause = json_array_get(causes, 0);
    return xasprintf("%s: %s", object_text(cause, "field"),
                     object_text(cause, "message"));
}

#define POD(metadata, spec)                                                              \
    "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {" metadata "}, 'spec': {" spec "}}"
#define BOX "'containers': [{'name': 'c', 'image': 'i'}]"

START_TEST(objects_that_a_real_server_refuses_are_refused)
{
    static const char *const cases[][2] = {
        { POD("'name': 'p'", BOX), ": " },
        { POD("'name': 'Big'", BOX), "metadata.name: Invalid value: \"Big\"" },
        { POD("'name': 'p'", ""), "spec.containers: Required value" },
        { POD("'name': 'p'", "'containers': [{'name': 'c'}]"),
          "spec.containers[0].image: Required value" },
        { POD("'name': 'p', 'labels': {'a': 'no spaces'}", BOX),
          "metadata.labels: Invalid value" },
        { POD("'name': 'p'", "'hostname': 'a.b', " BOX), "spec.hostname: Invalid value" },
        { POD("'name': 'p'", "'nodeName': 'n', 'schedulingGates': [{'name': 'g'}], " BOX),
          "spec.nodeName: Forbidden" },
        { POD("'name': 'p'",
              "'containers': [{'name': 'c', 'image': 'i', 'resources': "
              "{'requests': {'nvidia.com/gpu': '1'}, 'limits': {'nvidia.com/gpu': '2'}}}]"),
          "spec.containers[0].resources.requests[nvidia.com/gpu]: Invalid value: must be "
          "equal to nvidia.com/gpu limit" },
        { POD("'name': 'p'", "'containers': [{'name': 'c', 'image': 'i', 'volumeMounts': "
                             "[{'name': 'v', 'mountPath': '/v'}]}]"),
          "spec.containers[0].volumeMounts[0].name: Not found: \"v\"" },
        { "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'm'}, 'data': "
          "{'a b': ''}}",
          "data[a b]: Invalid value" },
        { "{'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': '1x'}, 'spec': "
          "{'clusterIP': 'None'}}",
          "metadata.name: Invalid value: \"1x\": a DNS-1035 label" },
        { "{'apiVersion': 'events.k8s.io/v1', 'kind': 'Event', 'metadata': {'name': 'e', "
          "'namespace': 'default'}}",
          "eventTime: Required value" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        auto_free char *cause = first_cause(cases[i][0]);
        ck_assert_msg(!strncmp(cause, cases[i][1], strlen(cases[i][1])), "%s: %s",
                      cases[i][0], cause);
    }
}
END_TEST

START_TEST(pods_get_the_defaults_of_a_real_server)
{
    json_auto_t *pod =
        quoted(POD("'name': 'p'", "'schedulingGates': [{'name': 'g'}], 'containers': "
                                  "[{'name': 'c', 'image': 'i:1', 'resources': "
                                  "{'limits': {'nvidia.com/gpu': 2}}}]"));
    const struct kind *kind = kind_of(pod);
    kind_fill(kind, pod, 0);
    ck_assert_str_eq(object_text(pod, "spec.restartPolicy"), "Always");
    ck_assert_str_eq(object_text(pod, "status.phase"), "Pending");
    ck_assert_str_eq(object_text(pod, "status.qosClass"), "Burstable");
    ck_assert_uint_eq(json_array_size(object_at(pod, "spec.tolerations")), 2);
    const json_t *condition = json_array_get(object_at(pod, "status.conditions"), 0);
    ck_assert_str_eq(object_text(condition, "reason"), "SchedulingGated");
    const json_t *container = json_array_get(object_at(pod, "spec.containers"), 0);
    check_json(object_at(container, "resources.requests"), "{'nvidia.com/gpu': 2}");
    ck_assert_str_eq(object_text(container, "imagePullPolicy"), "IfNotPresent");
    json_auto_t *again = json_deep_copy(pod);
    kind_fill(kind, again, 5000);
    ck_assert(json_equal(pod, again));
}
END_TEST

/* ---- scheduler ---- */

static void on_verdict(void *context, json_t *pod, const char *node, const char *message)
{
    char **text = context;
    auto_free char *before = *text;
    *text = xasprintf("%s%s: %s; ", before, object_text(pod, "metadata.name"),
                      node ? node : message);
}

static char *verdicts(const char *nodes_text, const char *pods_text,
                      const char *pending_text)
{
    json_auto_t *nodes = quoted("%s", nodes_text);
    json_auto_t *pods = quoted("%s", pods_text);
    json_auto_t *pending = quoted("%s", pending_text);
    char *text = xstrdup("");
    scheduler_run(nodes, pods, pending, on_verdict, &text);
    return text;
}

#define NODE(name, gpus, spec)                                                           \
    "{'metadata': {'name': '" name "', 'labels': {'pool': '" name "'}}, 'spec': {" spec  \
    "}, 'status': {'allocatable': {'nvidia.com/gpu': '" gpus                             \
    "', 'cpu': '8', 'pods': '3'}}}"
#define WANTS(name, gpus, spec)                                                          \
    "{'metadata': {'name': '" name "'}, 'spec': {" spec " 'containers': [{'resources': " \
    "{'requests': {'nvidia.com/gpu': '" gpus "', 'cpu': '1'}}}]}}"
#define PIN(node)                                                                        \
    "'affinity': {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': "   \
    "{'nodeSelectorTerms': [{'matchFields': [{'key': 'metadata.name', 'operator': "      \
    "'In', 'values': ['" node "']}]}]}}},"

START_TEST(each_pod_placed_counts_for_the_next)
{
    auto_free char *text = verdicts(
        "[" NODE("a", "4", "") "," NODE("b", "2", "") "]", "[]",
        "[" WANTS("p", "3", "") "," WANTS("q", "2", "") "," WANTS("r", "2", "") "]");
    ck_assert_str_eq(text, "p: a; q: b; r: 0/2 nodes are available: 2 Insufficient "
                           "nvidia.com/gpu.; ");
}
END_TEST

START_TEST(pods_that_hold_a_node_use_it_up_and_finished_ones_do_not)
{
    auto_free char *text = verdicts(
        "[" NODE("a", "4", "") "]",
        "[" WANTS(
            "old", "3",
            "'nodeName': 'a',") ", {'metadata': {'name': 'done'}, "
                                "'spec': {'nodeName': 'a', 'containers': [{'resources': {'requests': "
                                "{'nvidia.com/gpu': '4'}}}]}, 'status': {'phase': 'Succeeded'}}]",
        "[" WANTS("p", "2", "") "," WANTS("q", "1", "") "]");
    ck_assert_str_eq(
        text, "p: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu.; q: a; ");
}
END_TEST

START_TEST(a_pin_taints_and_cordons_are_obeyed)
{
    static const char nodes[] = "[" NODE("a", "4", "'unschedulable': true") ", " NODE(
        "b", "4", "'taints': [{'key': 'k', 'effect': 'NoSchedule'}]") ", " NODE("c", "4",
                                                                                "") "]";
    static const char why[] =
        "0/3 nodes are available: 1 node(s) didn't match Pod's node "
        "affinity/selector, 1 node(s) had untolerated taint {k: }, 1 "
        "node(s) were unschedulable.";
    static const char *const cases[][2] = {
        { WANTS("p", "1", PIN("a")), why },
        { WANTS("p", "1", PIN("b")), why },
        { WANTS("p", "1",
                PIN("b") "'tolerations': [{'key': 'k', 'operator': 'Exists'}],"),
          "b" },
        { WANTS("p", "1", "'nodeSelector': {'pool': 'c'},"), "c" },
        { WANTS("p", "1", ""), "c" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        auto_free char *pending = xasprintf("[%s]", cases[i][0]);
        auto_free char *text = verdicts(nodes, "[]", pending);
        auto_free char *expected = xasprintf("p: %s; ", cases[i][1]);
        ck_assert_str_eq(text, expected);
    }
}
END_TEST

START_TEST(the_fourth_pod_of_a_node_that_takes_three_waits)
{
    auto_free char *text =
        verdicts("[" NODE("a", "8", "") "]", "[]",
                 "[" WANTS("p", "1", "") "," WANTS("q", "1", "") "," WANTS(
                     "r", "1", "") "," WANTS("s", "1", "") "]");
    ck_assert_str_eq(text, "p: a; q: a; r: a; s: 0/1 nodes are available: 1 Too many "
                           "pods.; ");
}
END_TEST

Suite *test_api_server_parts_suite(void)
{
    Suite *suite = suite_create("api_server_parts");
    TCase *cases = tcase_create("all");
    tcase_add_test(cases, label_selectors_select_as_kubectl_documents);
    tcase_add_test(cases, field_selectors_compare_fields_and_take_a_missing_one_as_empty);
    tcase_add_test(cases, what_is_not_a_selector_is_refused);
    tcase_add_test(cases, node_terms_match_by_name_and_label);
    tcase_add_test(cases, merge_patch_follows_the_examples_of_rfc_7396);
    tcase_add_test(cases,
                   apply_removes_what_its_manager_no_longer_wants_and_nothing_else);
    tcase_add_test(cases, what_two_managers_apply_stays_until_both_let_go);
    tcase_add_test(cases, keyed_lists_merge_by_element);
    tcase_add_test(cases, a_conflict_needs_force_and_force_takes_the_field);
    tcase_add_test(cases, applying_the_same_again_changes_nothing);
    tcase_add_test(cases, the_past_can_be_listed_at_any_revision_that_is_kept);
    tcase_add_test(cases, history_is_bounded);
    tcase_add_test(cases, objects_that_a_real_server_refuses_are_refused);
    tcase_add_test(cases, pods_get_the_defaults_of_a_real_server);
    tcase_add_test(cases, each_pod_placed_counts_for_the_next);
    tcase_add_test(cases, pods_that_hold_a_node_use_it_up_and_finished_ones_do_not);
    tcase_add_test(cases, a_pin_taints_and_cordons_are_obeyed);
    tcase_add_test(cases, the_fourth_pod_of_a_node_that_takes_three_waits);
    suite_add_tcase(suite, cases);
    return suite;
}
