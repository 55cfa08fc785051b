/* Fields that pods have not. That all that an API server has are known, and no others,
 * case pod_template_fields of tests/e2e asks a real one. */
#include "controller/job/pod_schema.h"

#include "tests/controller/quoted.h"

#include <check.h>
#include <string.h>

static int check(const char *text, struct het_error *err)
{
    json_auto_t *pod_template = quoted("%s", text);
    struct het_view root = het_view_root(pod_template);
    return pod_schema_check(&root, err);
}

START_TEST(fields_at_all_depths_are_known)
{
    struct het_error err = { 0 };
    int result = check(
        "{'metadata': {'labels': {'anything': 'x'}, 'annotations': {'a.b/c': 'y'}},"
        " 'spec': {'containers': [{'name': 'trainer', 'image': 'i', 'env': [{'name': 'A',"
        " 'valueFrom': {'secretKeyRef': {'name': 's', 'key': 'k', 'optional': true}}}],"
        " 'resources': {'limits': {'example.com/anything': 1}}, 'livenessProbe':"
        " {'httpGet': {'port': 80, 'httpHeaders': [{'name': 'A', 'value': 'b'}]}},"
        " 'volumeMounts': [{'name': 'data', 'mountPath': '/data'}]}],"
        " 'affinity': {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution':"
        " {'nodeSelectorTerms': [{'matchExpressions': [{'key': 'k', 'operator': 'In',"
        " 'values': ['v']}]}]}}}, 'nodeSelector': {'any.thing/else': 'x'},"
        " 'volumes': [{'name': 'data', 'csi': {'driver': 'd', 'volumeAttributes':"
        " {'whatever': 'z'}}}, {'name': 'image', 'image': {'reference': 'r'}}]}}",
        &err);
    ck_assert_msg(!result, "%s", err.message);
}
END_TEST

#define CONTAINER(text) "{'spec': {'containers': [{'name': 'a'}, " text "]}}"

static const struct {
    const char *pod_template, *message;
} bad[] = {
    { "{'metdata': {}}", "metdata: is no field of PodTemplateSpec in Kubernetes 1.30 to "
                         "1.34; did you mean metadata?" },
    { "{'metadata': {'label': {'a': 'b'}}}",
      "metadata.label: is no field of ObjectMeta in Kubernetes 1.30 to 1.34; did you "
      "mean labels?" },
    /* One letter twice, two swapped, another case. */
    { CONTAINER("{'livenessProobe': {}}"),
      "spec.containers[1].livenessProobe: is no field of Container in Kubernetes 1.30 to "
      "1.34; did you mean livenessProbe?" },
    { CONTAINER("{'imagePullPoilcy': 'Always'}"), "did you mean imagePullPolicy?" },
    { CONTAINER("{'envfrom': []}"), "did you mean envFrom?" },
    { CONTAINER("{'env': [{'name': 'A', 'valueFrom': {'secretKeyReff': {}}}]}"),
      "spec.containers[1].env[0].valueFrom.secretKeyReff: is no field of EnvVarSource" },
    /* In the wrong place. */
    { CONTAINER("{'nodeSelector': {}}"), "it is one of PodSpec; move it there" },
    { CONTAINER("{'securityContext': {'fsGroup': 1}}"),
      "it is one of PodSecurityContext; move it there" },
    { "{'spec': {'status': {}}}", "spec.status: is no field of PodSpec in Kubernetes "
                                  "1.30 to 1.34; remove it" },
    { "{'spec': {'': 1}}", "spec.: is no field of PodSpec" },
    { "{'spec': {'containers:Container': 1}}", "is no field of PodSpec" },
    { "{'spec': {'hostPID hostUsers': 1}}", "is no field of PodSpec" },
    { "{'spec': {'unknown': null}}", "spec.unknown: is no field of PodSpec" },
};

START_TEST(other_fields_are_named_with_what_was_meant)
{
    struct het_error err = { 0 };
    ck_assert_int_eq(check(bad[_i].pod_template, &err), -1);
    ck_assert_msg(strstr(err.message, bad[_i].message) != NULL, "%s", err.message);
}
END_TEST

START_TEST(names_of_any_length_are_compared)
{
    struct het_error err = { 0 };
    char name[200];
    memset(name, 'x', sizeof name - 1);
    for (size_t length = 0; length < sizeof name; length++) {
        auto_free char *text = xasprintf("{'spec': {'%.*s': 1}}", (int)length, name);
        ck_assert_int_eq(check(text, &err), -1);
    }
}
END_TEST

/* What has the wrong type is for the API server to refuse. */
START_TEST(wrong_types_are_left_alone)
{
    struct het_error err = { 0 };
    ck_assert_int_eq(check("{'spec': {'containers': [[[{'a': 1}]], 1, null]}}", &err), 0);
    ck_assert_int_eq(check("{'spec': [1], 'metadata': 'x'}", &err), 0);
    ck_assert_int_eq(check("[]", &err), 0);
}
END_TEST

Suite *test_pod_schema_suite(void)
{
    Suite *suite = suite_create("pod_schema");
    TCase *tcase = tcase_create("pod_schema");
    tcase_add_test(tcase, fields_at_all_depths_are_known);
    tcase_add_loop_test(tcase, other_fields_are_named_with_what_was_meant, 0,
                        sizeof bad / sizeof *bad);
    tcase_add_test(tcase, names_of_any_length_are_compared);
    tcase_add_test(tcase, wrong_types_are_left_alone);
    suite_add_tcase(suite, tcase);
    return suite;
}
