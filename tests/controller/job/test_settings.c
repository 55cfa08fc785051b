#include "controller/job/settings.h"

#include "tests/controller/world.h"

#include <check.h>
#include <string.h>

static struct het_arena *arena;

static void setup(void)
{
    arena = het_arena_new();
}

static void teardown(void)
{
    het_arena_free(arena);
}

START_TEST(empty_file_is_the_default)
{
    json_auto_t *json = json_object();
    struct settings settings;
    struct het_error err;
    ck_assert_int_eq(settings_parse(arena, json, &settings, &err), 0);
    ck_assert_int_eq(memcmp(&settings, settings_default(), sizeof settings), 0);
}
END_TEST

START_TEST(given_lists_replace_the_default_ones)
{
    json_auto_t *json = quoted(
        "{'unhealthyNodeConditions': [{'type': 'Hot', 'status': 'True'}], "
        "'leavingTaints': ['a/*', 'b'], 'leavingAnnotations': [], 'spotLabels': "
        "[{'key': 'k', 'value': 'v'}], 'topologyKeys': ['rack', 'zone'], 'allowLoopbackHooks': true}");
    struct settings settings;
    struct het_error err;
    ck_assert_int_eq(settings_parse(arena, json, &settings, &err), 0);
    ck_assert_uint_eq(settings.unhealthy_condition_count, 1);
    ck_assert_str_eq(settings.unhealthy_conditions[0].type, "Hot");
    ck_assert_str_eq(settings.unhealthy_conditions[0].status, "True");
    ck_assert_uint_eq(settings.leaving_taint_count, 2);
    ck_assert_str_eq(settings.leaving_taints[1], "b");
    ck_assert_uint_eq(settings.leaving_annotation_count, 0);
    ck_assert_str_eq(settings.spot_labels[0].key, "k");
    ck_assert_str_eq(settings.spot_labels[0].value, "v");
    ck_assert_uint_eq(settings.topology_key_count, 2);
    ck_assert_str_eq(settings.topology_keys[0], "rack");
    ck_assert(settings.allow_loopback_hooks);
}
END_TEST

START_TEST(limits_are_those_that_are_given)
{
    json_auto_t *json = quoted("{'limits': {'gangTimeoutSeconds': 60}}");
    struct settings settings;
    struct het_error err;
    ck_assert_int_eq(settings_parse(arena, json, &settings, &err), 0);
    ck_assert_int_eq(settings.limits.gang_s, 60);
    ck_assert_int_eq(settings.limits.checkpoint_s, 900);
    ck_assert_int_eq(settings.limits.termination_grace_s, 900);
    ck_assert_int_eq(settings.limits.node_failure_s, 900);
}
END_TEST

START_TEST(each_namespace_has_its_level_and_its_accounts)
{
    json_auto_t *json = quoted(
        "{'podSecurity': {'default': 'baseline', 'namespaces': {'a': 'privileged', 'b': "
        "'restricted', 'd': 'namespace'}}, 'serviceAccounts': {'a': ['reader', 'writer'], 'b': []}, "
        "'runtimeClasses': ['nvidia']}");
    struct settings settings;
    struct het_error err;
    ck_assert_int_eq(settings_pod_security(settings_default(), "a"),
                     POD_SECURITY_NAMESPACE);
    ck_assert(!settings_allow_account(settings_default(), "a", "default"));
    ck_assert_int_eq(settings_parse(arena, json, &settings, &err), 0);
    ck_assert_int_eq(settings_pod_security(&settings, "a"), POD_SECURITY_PRIVILEGED);
    ck_assert_int_eq(settings_pod_security(&settings, "b"), POD_SECURITY_RESTRICTED);
    ck_assert_int_eq(settings_pod_security(&settings, "c"), POD_SECURITY_BASELINE);
    ck_assert_int_eq(settings_pod_security(&settings, "d"), POD_SECURITY_NAMESPACE);
    ck_assert(settings_allow_account(&settings, "a", "writer"));
    ck_assert(!settings_allow_account(&settings, "a", "default"));
    ck_assert(!settings_allow_account(&settings, "b", "writer"));
    ck_assert_uint_eq(settings.runtime_class_count, 1);
}
END_TEST

START_TEST(mistakes_name_their_field)
{
    static const struct {
        const char *json, *message;
    } cases[] = {
        { "[]", "must be an object" },
        { "{'leavingTaint': []}", "leavingTaint" },
        { "{'leavingTaints': 'x'}", "leavingTaints" },
        { "{'leavingTaints': [3]}", "leavingTaints[0]" },
        { "{'unhealthyNodeConditions': [{'type': 'x'}]}",
          "unhealthyNodeConditions[0].status" },
        { "{'unhealthyNodeConditions': [{'type': 'x', 'status': true}]}",
          "unhealthyNodeConditions[0].status" },
        { "{'spotLabels': [{'key': 'x', 'value': 'y', 'z': 1}]}", "spotLabels[0]" },
        { "{'podSecurity': 'baseline'}", "podSecurity" },
        { "{'podSecurity': {'default': 'Baseline'}}", "podSecurity.default" },
        { "{'podSecurity': {'namespace': {}}}", "podSecurity.namespace" },
        { "{'podSecurity': {'namespaces': {'a': 'none'}}}", "podSecurity.namespaces.a" },
        { "{'podSecurity': {'namespaces': {'a': null}}}", "podSecurity.namespaces.a" },
        { "{'serviceAccounts': ['a']}", "serviceAccounts" },
        { "{'serviceAccounts': {'a': 'b'}}", "serviceAccounts.a" },
        { "{'runtimeClasses': [1]}", "runtimeClasses[0]" },
        { "{'allowedHosts': 'x'}", "allowedHosts" },
        { "{'allowedHosts': ['']}", "allowedHosts[0]" },
        { "{'limits': {'gang': 60}}", "limits" },
        { "{'limits': {'checkpointTimeoutSeconds': 0}}",
          "limits.checkpointTimeoutSeconds" },
        { "{'limits': {'gangTimeoutSeconds': 86401}}", "limits.gangTimeoutSeconds" },
        { "{'limits': {'nodeFailureGraceSeconds': 3601}}",
          "limits.nodeFailureGraceSeconds" },
        { "{'planner': {'confined': true}}", "planner" },
        { "{'planner': {'confinement': 'Maybe'}}", "planner.confinement" },
        { "{'planner': {'maxEffort': 'Huge'}}", "planner.maxEffort" },
        { "{'planner': {'maxTimeoutSeconds': 0}}", "planner.maxTimeoutSeconds" },
        { "{'planner': {'maxTimeoutSeconds': 601}}", "planner.maxTimeoutSeconds" },
        { "{'planner': {'mixedVendorRuntimes': 'flagscale'}}",
          "planner.mixedVendorRuntimes" },
        { "{'planner': {'mixedVendorRuntimes': ['FlagScale']}}",
          "planner.mixedVendorRuntimes[0]" },
        { "{'profiler': {'img': 'x'}}", "profiler" },
        { "{'profiler': {'image': ''}}", "profiler.image" },
        { "{'profiler': {'image': 'x', 'resources': {'cpu': 'x'}}}",
          "profiler.resources.cpu" },
        { "{'profiler': {'image': 'x', 'resources': {'cpu': '-1'}}}",
          "profiler.resources.cpu" },
        { "{'profiler': {'image': 'x', 'deadlineSeconds': 1}}",
          "profiler.deadlineSeconds" },
        { "{'profiler': {'image': 'x', 'microBatchSize': 0}}",
          "profiler.microBatchSize" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_auto_t *json = quoted("%s", cases[i].json);
        struct settings settings;
        struct het_error err;
        ck_assert_int_eq(settings_parse(arena, json, &settings, &err), -1);
        ck_assert_msg(strstr(err.message, cases[i].message) != NULL, "%s", err.message);
    }
}
END_TEST

START_TEST(star_stands_for_every_ending)
{
    static const char *const patterns[] = { "a/*", "b" };
    ck_assert(settings_match_key(patterns, 2, "a/x"));
    ck_assert(settings_match_key(patterns, 2, "b"));
    ck_assert(!settings_match_key(patterns, 2, "a"));
    ck_assert(!settings_match_key(patterns, 2, "bb"));
    ck_assert(!settings_match_key(NULL, 0, "b"));
}
END_TEST

Suite *test_settings_suite(void)
{
    Suite *suite = suite_create("settings");
    TCase *cases = tcase_create("settings");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, empty_file_is_the_default);
    tcase_add_test(cases, given_lists_replace_the_default_ones);
    tcase_add_test(cases, limits_are_those_that_are_given);
    tcase_add_test(cases, each_namespace_has_its_level_and_its_accounts);
    tcase_add_test(cases, mistakes_name_their_field);
    tcase_add_test(cases, star_stands_for_every_ending);
    suite_add_tcase(suite, cases);
    return suite;
}
