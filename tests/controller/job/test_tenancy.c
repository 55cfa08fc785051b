/* A job gives nobody more than what the administrator settled. */
#include "controller/job/tenancy.h"

#include "controller/reconcile/reconcile.h"
#include "tests/controller/objects.h"
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

static json_t *job_with(const char *spec)
{
    json_t *job = quoted(
        "{'spec': {'podTemplate': {'spec': {'containers': [{'name': 'trainer'}]}}}}");
    json_auto_t *extra = quoted("%s", spec);
    json_object_update_recursive(json_object_get(job, "spec"), extra);
    return make_restricted(job);
}

static struct settings settings_of(const char *text)
{
    struct settings settings;
    struct het_error err = { 0 };
    json_auto_t *json = quoted("%s", text);
    ck_assert_msg(!settings_parse(arena, json, &settings, &err), "%s", err.message);
    return settings;
}

#define TEMPLATE(text)      "{'podTemplate': {'spec': " text "}}"
#define TEMPLATE_SPEC(path) "spec.podTemplate.spec." path
#define TOKEN_VOLUME                                                                     \
    "{'volumes': [{'name': 'v', 'projected': {'sources': [{'configMap': {'name': "       \
    "'x'}}, {'serviceAccountToken': {'path': 'token'}}]}}]}"
#define DATA_SOURCE(ns)                                                                  \
    "{'volumes': [{'name': 'v', 'ephemeral': {'volumeClaimTemplate': {'spec': "          \
    "{'dataSourceRef': {'kind': 'PersistentVolumeClaim', 'name': 'x', 'namespace': '" ns \
    "'}}}}}]}"

static const struct {
    const char *spec, *reason, *path; /* reason NULL: allowed */
    const char *settings;             /* that allow it; NULL: none do */
} cases[] = {
    { "{}", NULL, NULL, NULL },
    { TEMPLATE("{'hostNetwork': true}"), "PodSecurity", TEMPLATE_SPEC("hostNetwork: "),
      "{'podSecurity': {'namespaces': {'ns': 'privileged'}}}" },
    { TEMPLATE("{'ephemeralContainers': [{'name': 'e'}]}"), "PodSecurity",
      TEMPLATE_SPEC("ephemeralContainers: "), NULL },
    { TEMPLATE("{'serviceAccountName': 'default', 'serviceAccount': '', "
               "'automountServiceAccountToken': false}"),
      NULL, NULL, NULL },
    { TEMPLATE("{'serviceAccountName': 'admin'}"), "ServiceAccountNotAllowed",
      TEMPLATE_SPEC("serviceAccountName: "), "{'serviceAccounts': {'ns': ['admin']}}" },
    /* The old name of the field means the same to the API server. */
    { TEMPLATE("{'serviceAccount': 'admin'}"), "ServiceAccountNotAllowed",
      TEMPLATE_SPEC("serviceAccount: "), "{'serviceAccounts': {'ns': ['admin']}}" },
    { TEMPLATE("{'serviceAccountName': 7}"), "ServiceAccountNotAllowed",
      TEMPLATE_SPEC("serviceAccountName: "), NULL },
    { TEMPLATE("{'automountServiceAccountToken': true}"), "ServiceAccountNotAllowed",
      TEMPLATE_SPEC("automountServiceAccountToken: "),
      "{'serviceAccounts': {'ns': ['default']}}" },
    { TEMPLATE("{'serviceAccountName': 'admin', 'automountServiceAccountToken': true}"),
      "ServiceAccountNotAllowed", TEMPLATE_SPEC("serviceAccountName: "),
      "{'serviceAccounts': {'ns': ['admin']}}" },
    { TEMPLATE(TOKEN_VOLUME), "ServiceAccountNotAllowed",
      TEMPLATE_SPEC("volumes[0].projected.sources[1].serviceAccountToken: "),
      "{'serviceAccounts': {'ns': ['default']}}" },
    { TEMPLATE("{'volumes': [{'name': 'v', 'projected': {'sources': [{'podCertificate': "
               "{}}]}}]}"),
      "ServiceAccountNotAllowed",
      TEMPLATE_SPEC("volumes[0].projected.sources[0].podCertificate: "),
      "{'serviceAccounts': {'ns': ['default']}}" },
    { TEMPLATE("{'priorityClassName': 'system-node-critical'}"),
      "PriorityClassNotAllowed", TEMPLATE_SPEC("priorityClassName: "), NULL },
    { "{'scheduling': {'priorityClassName': 'system-cluster-critical'}}",
      "PriorityClassNotAllowed", "spec.scheduling.priorityClassName: ", NULL },
    { "{'scheduling': {'priorityClassName': 'systemic'}}", NULL, NULL, NULL },
    { TEMPLATE("{'tolerations': [{'key': 'a', 'operator': 'Exists'}, {'operator': "
               "'Exists'}]}"),
      "TolerationNotAllowed", TEMPLATE_SPEC("tolerations[1]: "), NULL },
    { TEMPLATE("{'tolerations': [{'key': '', 'operator': 'Exists', 'effect': "
               "'NoExecute'}]}"),
      "TolerationNotAllowed", TEMPLATE_SPEC("tolerations[0]: "), NULL },
    { TEMPLATE("{'tolerations': [{'key': 'node-role.kubernetes.io/control-plane'}]}"),
      "TolerationNotAllowed", TEMPLATE_SPEC("tolerations[0]: "), NULL },
    { TEMPLATE("{'tolerations': [{'key': 'node-role.kubernetes.io/master', 'operator': "
               "'Equal', 'value': ''}]}"),
      "TolerationNotAllowed", TEMPLATE_SPEC("tolerations[0]: "), NULL },
    { TEMPLATE("{'tolerations': [{'key': 'nvidia.com/gpu', 'operator': 'Exists'}]}"),
      NULL, NULL, NULL },
    { TEMPLATE("{'runtimeClassName': 'nvidia'}"), "RuntimeClassNotAllowed",
      TEMPLATE_SPEC("runtimeClassName: "), "{'runtimeClasses': ['nvidia']}" },
    { TEMPLATE(DATA_SOURCE("other")), "DataSourceNotAllowed",
      TEMPLATE_SPEC("volumes[0].ephemeral.volumeClaimTemplate.spec.dataSourceRef."
                    "namespace: "),
      NULL },
    { TEMPLATE(DATA_SOURCE("ns")), NULL, NULL, NULL },
    { "{'checkpoint': {'onDisruption': {'timeoutSeconds': 86400}}}", "LimitExceeded",
      "spec.checkpoint.onDisruption.timeoutSeconds: ",
      "{'limits': {'checkpointTimeoutSeconds': 86400}}" },
    { "{'checkpoint': {'onDisruption': {'timeoutSeconds': 900}}}", NULL, NULL, NULL },
    { "{'scheduling': {'gangTimeoutSeconds': 901}}", "LimitExceeded",
      "spec.scheduling.gangTimeoutSeconds: ", "{'limits': {'gangTimeoutSeconds': 901}}" },
    { "{'replanPolicy': {'nodeFailureGraceSeconds': 3600}}", "LimitExceeded",
      "spec.replanPolicy.nodeFailureGraceSeconds: ",
      "{'limits': {'nodeFailureGraceSeconds': 3600}}" },
    { TEMPLATE("{'terminationGracePeriodSeconds': 3600}"), "LimitExceeded",
      TEMPLATE_SPEC("terminationGracePeriodSeconds: "),
      "{'limits': {'terminationGracePeriodSeconds': 7200}}" },
};

START_TEST(what_is_refused_has_a_reason_and_names_its_field)
{
    json_auto_t *job = job_with(cases[_i].spec);
    const char *reason = "";
    struct het_error err = { 0 };
    int result = tenancy_check_job(&(struct tenancy){ .settings = settings_default() },
                                   "ns", job, &reason, &err);
    if (!cases[_i].reason) {
        ck_assert_msg(!result, "%s", err.message);
        return;
    }
    ck_assert_int_eq(result, -1);
    ck_assert_str_eq(reason, cases[_i].reason);
    ck_assert_msg(strstr(err.message, cases[_i].path) == err.message, "%s", err.message);
    if (!cases[_i].settings)
        return;
    struct settings settings = settings_of(cases[_i].settings);
    ck_assert_msg(!tenancy_check_job(&(struct tenancy){ .settings = &settings }, "ns",
                                     job, &reason, &err),
                  "%s", err.message);
}
END_TEST

START_TEST(what_is_settled_for_one_namespace_is_not_for_another)
{
    struct settings settings =
        settings_of("{'podSecurity': {'namespaces': {'other': 'privileged'}}, "
                    "'serviceAccounts': {'other': ['admin']}}");
    static const char *const specs[] = { TEMPLATE("{'hostPID': true}"),
                                         TEMPLATE("{'serviceAccountName': 'admin'}") };
    for (size_t i = 0; i < 2; i++) {
        json_auto_t *job = job_with(specs[i]);
        const char *reason;
        struct het_error err;
        ck_assert_int_eq(tenancy_check_job(&(struct tenancy){ .settings = &settings },
                                           "ns", job, &reason, &err),
                         -1);
        ck_assert_int_eq(tenancy_check_job(&(struct tenancy){ .settings = &settings },
                                           "other", job, &reason, &err),
                         0);
    }
}
END_TEST

/* The namespace's own, unless something is settled; what the API server may exempt is left
 * to it. */
static const struct {
    const char *spec, *settings;
    enum pod_security_level namespace_level;
    bool is_allowed;
} held_to[] = {
    { "{'hostPID': true}", "{}", POD_SECURITY_PRIVILEGED, true },
    { "{'hostPID': true}", "{}", POD_SECURITY_BASELINE, false },
    { "{'hostPID': true, 'hostUsers': true}", "{}", POD_SECURITY_BASELINE, false },
    { "{'hostPID': true, 'hostUsers': false}", "{}", POD_SECURITY_BASELINE, true },
    { "{'hostPID': true, 'os': {'name': 'windows'}}", "{}", POD_SECURITY_BASELINE, true },
    { "{'hostPID': true}", "{'podSecurity': {'default': 'restricted'}}",
      POD_SECURITY_PRIVILEGED, false },
    { "{'hostPID': true, 'hostUsers': false}",
      "{'podSecurity': {'default': 'restricted'}}", POD_SECURITY_PRIVILEGED, false },
    { "{'hostPID': true}",
      "{'podSecurity': {'default': 'restricted', 'namespaces': {'ns': 'namespace'}}}",
      POD_SECURITY_PRIVILEGED, true },
    { "{'hostPID': true}", "{'podSecurity': {'default': 'privileged'}}",
      POD_SECURITY_RESTRICTED, true },
};

START_TEST(the_namespace_says_what_pods_are_held_to)
{
    auto_free char *spec = xasprintf(TEMPLATE("%s"), held_to[_i].spec);
    json_auto_t *job = job_with(spec);
    struct settings settings = settings_of(held_to[_i].settings);
    struct tenancy tenancy = { .settings = &settings,
                               .namespace_policy = { held_to[_i].namespace_level, 34 } };
    const char *reason = "";
    struct het_error err = { 0 };
    int result = tenancy_check_job(&tenancy, "ns", job, &reason, &err);
    ck_assert_msg((result == 0) == held_to[_i].is_allowed, "%s", err.message);
    ck_assert_str_eq(reason, held_to[_i].is_allowed ? "" : "PodSecurity");
}
END_TEST

/* ---- in the operator ---- */

static struct world *running_world(const char *spec)
{
    struct world *world = world_new();
    world_put(world, &kube_namespaces,
              quoted("{'kind': 'Namespace', 'metadata': {'name': 'ns', 'labels': "
                     "{'pod-security.kubernetes.io/enforce': 'restricted'}}}"));
    world_node(world, "a", "NVIDIA-A100-SXM4-40GB", 4);
    world_job(world, spec);
    return world;
}

START_TEST(a_refused_job_gets_nothing_and_is_told_why)
{
    struct world *world =
        running_world("{'podTemplate': {'spec': {'hostNetwork': true}}}");
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Accepted"), "PodSecurity");
    ck_assert_int_eq(world->plans_asked, 0);
    ck_assert_str_eq(world_pods(world), "");
    ck_assert_str_eq(world->last_event, "PodSecurity");
    world_free(world);
}
END_TEST

START_TEST(a_running_job_that_asks_for_too_much_goes_on_as_it_was)
{
    struct world *world = running_world("{}");
    world_settle(world);
    auto_free char *plan = world_plan("a:4", "A100-SXM4-40GB", 1.0);
    world_answer(world, plan);
    world_settle(world);
    world_run_pods(world);
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-1-0@a");
    const json_t *pod = store_find(world->store, &kube_pod, "ns", "job-1-0");
    ck_assert(json_is_false(
        json_object_get(json_object_get(pod, "spec"), "automountServiceAccountToken")));

    json_t *job = json_deep_copy(world_get_job(world));
    json_t *template = json_object_get(json_object_get(job, "spec"), "podTemplate");
    json_object_set_new(json_object_get(template, "spec"), "hostPID", json_true());
    world_put(world, &kube_job, job);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Accepted"), "PodSecurity");
    ck_assert_str_eq(world_pods(world), "job-1-0@a");
    ck_assert_str_eq(world_reason(world, "Running"), "AllPodsReady");
    world_free(world);
}
END_TEST

/* ---- what tenants write, quoted ---- */

static void check_messages(struct world *world)
{
    const json_t *list =
        json_object_get(json_object_get(world_get_job(world), "status"), "conditions");
    ck_assert_uint_gt(json_array_size(list), 0);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *message =
            json_string_value(json_object_get(json_array_get(list, i), "message"));
        ck_assert_uint_le(strlen(message), 1024);
        for (; *message; message++)
            ck_assert_uint_ge((unsigned char)*message, ' ');
    }
}

START_TEST(nothing_that_a_tenant_writes_acts_on_who_reads_it)
{
    static const char nasty[] = "\x1b]0;x\x07%n%s%999999d\n\r\t\"`$(reboot);'\xc2\x85";
    auto_free char *text = xasprintf("%s%01500d", nasty, 0);
    struct world *world = running_world("{}");
    static const char *const fields[] = { "runtimeClassName", "serviceAccountName" };
    for (size_t i = 0; i < 2; i++) {
        json_t *job = json_deep_copy(world_get_job(world));
        json_t *template = json_object_get(json_object_get(job, "spec"), "podTemplate");
        json_object_set_new(json_object_get(template, "spec"), fields[i],
                            json_string(text));
        world_put(world, &kube_job, job);
        world_settle(world);
        ck_assert_str_ne(world_reason(world, "Accepted"), "Valid");
        check_messages(world);
    }
    world_free(world);
}
END_TEST

START_TEST(what_a_program_is_given_is_passed_on_as_it_is)
{
    static const char nasty[] = "\x1b[2J%n%s\n\"`$(reboot)`;'\\";
    struct world *world = running_world("{}");
    json_t *job = json_deep_copy(world_get_job(world));
    json_t *template = json_object_get(json_object_get(job, "spec"), "podTemplate");
    json_t *container = json_array_get(
        json_object_get(json_object_get(template, "spec"), "containers"), 0);
    json_object_set_new(container, "image", json_string(nasty));
    json_object_set_new(container, "args", json_pack("[s]", nasty));
    json_object_set_new(container, "env",
                        json_pack("[{s:s, s:s}]", "name", "X", "value", nasty));
    world_put(world, &kube_job, job);
    world_settle(world);
    auto_free char *plan = world_plan("a:4", "A100-SXM4-40GB", 1.0);
    world_answer(world, plan);
    world_settle(world);
    const json_t *pod = store_find(world->store, &kube_pod, "ns", "job-1-0");
    ck_assert_ptr_nonnull(pod);
    const json_t *made =
        json_array_get(json_object_get(json_object_get(pod, "spec"), "containers"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(made, "image")), nasty);
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(made, "args"), 0)),
                     nasty);
    ck_assert_str_eq(json_string_value(json_object_get(
                         json_array_get(json_object_get(made, "env"), 0), "value")),
                     nasty);

    /* The scheduler's words may quote it, too. */
    json_t *pending = json_deep_copy(pod);
    json_object_set_new(pending, "status",
                        json_pack("{s:s, s:[{s:s, s:s, s:s}]}", "phase", "Pending",
                                  "conditions", "type", "PodScheduled", "status", "False",
                                  "message", nasty));
    world_put(world, &kube_pod, pending);
    world_settle(world);
    check_messages(world);
    world_free(world);
}
END_TEST

Suite *test_tenancy_suite(void)
{
    Suite *suite = suite_create("tenancy");
    TCase *tests = tcase_create("tenancy");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, what_is_refused_has_a_reason_and_names_its_field, 0,
                        (int)(sizeof cases / sizeof *cases));
    tcase_add_test(tests, what_is_settled_for_one_namespace_is_not_for_another);
    tcase_add_loop_test(tests, the_namespace_says_what_pods_are_held_to, 0,
                        sizeof held_to / sizeof *held_to);
    tcase_add_test(tests, a_refused_job_gets_nothing_and_is_told_why);
    tcase_add_test(tests, nothing_that_a_tenant_writes_acts_on_who_reads_it);
    tcase_add_test(tests, what_a_program_is_given_is_passed_on_as_it_is);
    tcase_add_test(tests, a_running_job_that_asks_for_too_much_goes_on_as_it_was);
    return suite;
}
