/* Every control of the standards: what it lets through and what not, at which level. */
#include "controller/job/pod_security.h"

#include "controller/simulate/api_server/condition.h"
#include "tests/controller/quoted.h"

#include <check.h>
#include <string.h>

/* What restricted asks for, and nothing else. */
static json_t *plain_pod(void)
{
    return quoted(
        "{'metadata': {'name': 'p'}, 'spec': {'securityContext': {'runAsNonRoot': true, "
        "'seccompProfile': {'type': 'RuntimeDefault'}}, 'containers': [{'name': 'c', "
        "'image': 'i', 'securityContext': {'allowPrivilegeEscalation': false, "
        "'capabilities': {'drop': ['ALL']}}}], 'initContainers': [{'name': 'first', "
        "'image': 'i', 'securityContext': {'allowPrivilegeEscalation': false, "
        "'capabilities': {'drop': ['ALL']}}}]}}");
}

/* Merges `change` (JSON merge patch, with ') into the pod, into its first container, or
 * into its first init container. */
enum into { INTO_POD, INTO_CONTAINER, INTO_INIT };

static json_t *changed_pod(enum into into, const char *change)
{
    static const char *const lists[] = { "", "containers", "initContainers" };
    json_t *pod = plain_pod();
    json_auto_t *patch = quoted("%s", change);
    json_t *target = pod;
    if (into != INTO_POD)
        target =
            json_array_get(json_object_get(json_object_get(pod, "spec"), lists[into]), 0);
    json_object_update_recursive(target, patch);
    return pod;
}

static bool allows(const json_t *pod, enum pod_security_level level,
                   struct het_error *err)
{
    struct het_view root = het_view_root(pod);
    *err = (struct het_error){ 0 };
    return !pod_security_check(&root, &(struct pod_security_policy){ level, 0 }, err);
}

#define SECURITY(text) "{'securityContext': " text "}"
#define SPEC(text)     "{'spec': " text "}"
#define NEVER          (POD_SECURITY_PRIVILEGED + 1)
#define ALWAYS         POD_SECURITY_RESTRICTED

static const struct {
    enum into into;
    const char *change;
    unsigned from;    /* the strictest level that allows it */
    const char *path; /* that the refusal names; NULL: always allowed */
} cases[] = {
    { INTO_POD, "{}", ALWAYS, NULL },
    /* host namespaces */
    { INTO_POD, SPEC("{'hostNetwork': false, 'hostPID': null}"), ALWAYS, NULL },
    { INTO_POD, SPEC("{'hostNetwork': true}"), POD_SECURITY_PRIVILEGED,
      "spec.hostNetwork: " },
    { INTO_POD, SPEC("{'hostPID': true}"), POD_SECURITY_PRIVILEGED, "spec.hostPID: " },
    { INTO_POD, SPEC("{'hostIPC': true}"), POD_SECURITY_PRIVILEGED, "spec.hostIPC: " },
    { INTO_POD, SPEC("{'hostIPC': 'true'}"), POD_SECURITY_PRIVILEGED, "spec.hostIPC: " },
    /* debug containers cannot be created with a pod */
    { INTO_POD, SPEC("{'ephemeralContainers': [{'name': 'd'}]}"), NEVER,
      "spec.ephemeralContainers: " },
    /* volumes */
    { INTO_POD, SPEC("{'volumes': [{'name': 'a', 'hostPath': {'path': '/'}}]}"),
      POD_SECURITY_PRIVILEGED, "spec.volumes[0].hostPath: " },
    { INTO_POD,
      SPEC("{'volumes': [{'name': 'a', 'emptyDir': {}}, {'name': 'b', 'hostPath': {}}]}"),
      POD_SECURITY_PRIVILEGED, "spec.volumes[1].hostPath: " },
    { INTO_POD, SPEC("{'volumes': [{'name': 'a', 'emptyDir': {}, 'nfs': {}}]}"),
      POD_SECURITY_BASELINE, "spec.volumes[0].nfs: " },
    { INTO_POD, SPEC("{'volumes': [{'name': 'a', 'iscsi': {}}]}"), POD_SECURITY_BASELINE,
      "spec.volumes[0].iscsi: " },
    { INTO_POD, SPEC("{'volumes': ['a']}"), POD_SECURITY_PRIVILEGED, "spec.volumes[0]" },
    { INTO_POD, SPEC("{'volumes': {'name': 'a'}}"), POD_SECURITY_PRIVILEGED,
      "spec.volumes: " },
    { INTO_POD,
      SPEC("{'volumes': [{'name': 'a', 'configMap': {}}, {'name': 'b', 'csi': {}}, "
           "{'name': 'c', 'downwardAPI': {}}, {'name': 'd', 'emptyDir': {}}, {'name': "
           "'e', 'ephemeral': {}}, {'name': 'f', 'persistentVolumeClaim': {}}, {'name': "
           "'g', 'projected': {}}, {'name': 'h', 'secret': {}}, {'name': 'i', 'nfs': "
           "null}]}"),
      ALWAYS, NULL },
    /* sysctls */
    { INTO_POD,
      SPEC("{'securityContext': {'sysctls': [{'name': 'kernel.shm_rmid_forced', 'value': "
           "'1'}, {'name': 'net.ipv4.tcp_rmem', 'value': '1 2 3'}]}}"),
      ALWAYS, NULL },
    { INTO_POD,
      SPEC("{'securityContext': {'sysctls': [{'name': 'kernel.msgmax', 'value': '1'}]}}"),
      POD_SECURITY_PRIVILEGED, "spec.securityContext.sysctls[0].name: " },
    /* Windows */
    { INTO_POD, SPEC("{'securityContext': {'windowsOptions': {'hostProcess': true}}}"),
      POD_SECURITY_PRIVILEGED, "spec.securityContext.windowsOptions.hostProcess: " },
    { INTO_CONTAINER, SECURITY("{'windowsOptions': {'hostProcess': true}}"),
      POD_SECURITY_PRIVILEGED,
      "spec.containers[0].securityContext.windowsOptions.hostProcess: " },
    { INTO_CONTAINER, SECURITY("{'windowsOptions': {'hostProcess': false}}"), ALWAYS,
      NULL },
    /* SELinux */
    { INTO_POD, SPEC("{'securityContext': {'seLinuxOptions': {'type': 'spc_t'}}}"),
      POD_SECURITY_PRIVILEGED, "spec.securityContext.seLinuxOptions.type: " },
    { INTO_POD,
      SPEC("{'securityContext': {'seLinuxOptions': {'type': 'container_t', 'level': "
           "'s0:c1,c2', 'user': ''}}}"),
      ALWAYS, NULL },
    { INTO_CONTAINER, SECURITY("{'seLinuxOptions': {'type': 'container_kvm_t'}}"), ALWAYS,
      NULL },
    { INTO_CONTAINER, SECURITY("{'seLinuxOptions': {'user': 'root'}}"),
      POD_SECURITY_PRIVILEGED,
      "spec.containers[0].securityContext.seLinuxOptions.user: " },
    { INTO_INIT, SECURITY("{'seLinuxOptions': {'role': 'sysadm_r'}}"),
      POD_SECURITY_PRIVILEGED,
      "spec.initContainers[0].securityContext.seLinuxOptions.role: " },
    /* AppArmor */
    { INTO_POD, SPEC("{'securityContext': {'appArmorProfile': {'type': 'Unconfined'}}}"),
      POD_SECURITY_PRIVILEGED, "spec.securityContext.appArmorProfile.type: " },
    { INTO_CONTAINER,
      SECURITY("{'appArmorProfile': {'type': 'Localhost', 'localhostProfile': 'x'}}"),
      ALWAYS, NULL },
    { INTO_CONTAINER, SECURITY("{'appArmorProfile': {'type': 'Unconfined'}}"),
      POD_SECURITY_PRIVILEGED,
      "spec.containers[0].securityContext.appArmorProfile.type: " },
    { INTO_POD,
      "{'metadata': {'annotations': {'container.apparmor.security.beta.kubernetes.io/c': "
      "'unconfined'}}}",
      POD_SECURITY_PRIVILEGED,
      "metadata.annotations.container.apparmor.security.beta.kubernetes.io/c: " },
    { INTO_POD,
      "{'metadata': {'annotations': {'container.apparmor.security.beta.kubernetes.io/c': "
      "'localhost/strict', 'container.apparmor.security.beta.kubernetes.io/d': "
      "'runtime/default', 'other': 'unconfined'}}}",
      ALWAYS, NULL },
    /* seccomp */
    { INTO_POD, SPEC("{'securityContext': {'seccompProfile': {'type': 'Unconfined'}}}"),
      POD_SECURITY_PRIVILEGED, "spec.securityContext.seccompProfile.type: " },
    { INTO_INIT, SECURITY("{'seccompProfile': {'type': 'Unconfined'}}"),
      POD_SECURITY_PRIVILEGED,
      "spec.initContainers[0].securityContext.seccompProfile.type: " },
    { INTO_POD, SPEC("{'securityContext': {'seccompProfile': null}}"),
      POD_SECURITY_BASELINE, "spec.initContainers[0].securityContext.seccompProfile" },
    { INTO_CONTAINER, SECURITY("{'seccompProfile': {'type': 'Localhost'}}"), ALWAYS,
      NULL },
    { INTO_POD,
      "{'metadata': {'annotations': {'seccomp.security.alpha.kubernetes.io/pod': "
      "'unconfined'}}}",
      POD_SECURITY_PRIVILEGED, "metadata.annotations.seccomp" },
    { INTO_POD,
      "{'metadata': {'annotations': {'container.seccomp.security.alpha.kubernetes.io/c': "
      "'docker/default'}}}",
      ALWAYS, NULL },
    /* containers */
    { INTO_CONTAINER, SECURITY("{'privileged': true}"), POD_SECURITY_PRIVILEGED,
      "spec.containers[0].securityContext.privileged: " },
    { INTO_INIT, SECURITY("{'privileged': true}"), POD_SECURITY_PRIVILEGED,
      "spec.initContainers[0].securityContext.privileged: " },
    { INTO_CONTAINER, SECURITY("{'privileged': false, 'procMount': 'Default'}"), ALWAYS,
      NULL },
    { INTO_CONTAINER, SECURITY("{'procMount': 'Unmasked'}"), POD_SECURITY_PRIVILEGED,
      "spec.containers[0].securityContext.procMount: " },
    { INTO_CONTAINER, "{'ports': [{'containerPort': 80, 'hostPort': 0}]}", ALWAYS, NULL },
    { INTO_CONTAINER, "{'ports': [{'containerPort': 80}, {'hostPort': 81}]}",
      POD_SECURITY_PRIVILEGED, "spec.containers[0].ports[1].hostPort: " },
    { INTO_CONTAINER, SECURITY("'none'"), POD_SECURITY_PRIVILEGED,
      "spec.containers[0].securityContext: " },
    /* capabilities */
    { INTO_CONTAINER, SECURITY("{'capabilities': {'add': ['NET_BIND_SERVICE']}}"), ALWAYS,
      NULL },
    { INTO_CONTAINER, SECURITY("{'capabilities': {'add': ['CHOWN', 'SYS_CHROOT']}}"),
      POD_SECURITY_BASELINE, "spec.containers[0].securityContext.capabilities.add[0]: " },
    { INTO_CONTAINER, SECURITY("{'capabilities': {'add': ['CHOWN', 'SYS_ADMIN']}}"),
      POD_SECURITY_PRIVILEGED,
      "spec.containers[0].securityContext.capabilities.add[1]: " },
    { INTO_INIT, SECURITY("{'capabilities': {'add': ['IPC_LOCK']}}"),
      POD_SECURITY_PRIVILEGED,
      "spec.initContainers[0].securityContext.capabilities.add[0]: " },
    { INTO_CONTAINER, SECURITY("{'capabilities': {'add': 'SYS_ADMIN'}}"),
      POD_SECURITY_PRIVILEGED, "spec.containers[0].securityContext.capabilities.add: " },
    { INTO_CONTAINER, SECURITY("{'capabilities': {'drop': ['KILL']}}"),
      POD_SECURITY_BASELINE, "spec.containers[0].securityContext.capabilities.drop: " },
    { INTO_INIT, SECURITY("{'capabilities': null}"), POD_SECURITY_BASELINE,
      "spec.initContainers[0].securityContext.capabilities.drop: " },
    /* privilege escalation */
    { INTO_CONTAINER, SECURITY("{'allowPrivilegeEscalation': true}"),
      POD_SECURITY_BASELINE,
      "spec.containers[0].securityContext.allowPrivilegeEscalation: " },
    { INTO_INIT, SECURITY("{'allowPrivilegeEscalation': null}"), POD_SECURITY_BASELINE,
      "spec.initContainers[0].securityContext.allowPrivilegeEscalation: " },
    { INTO_CONTAINER, "{'securityContext': null}", POD_SECURITY_BASELINE,
      "spec.containers[0].securityContext.allowPrivilegeEscalation: " },
    /* users */
    { INTO_POD, SPEC("{'securityContext': {'runAsNonRoot': false}}"),
      POD_SECURITY_BASELINE, "spec.initContainers[0].securityContext.runAsNonRoot: " },
    { INTO_CONTAINER, SECURITY("{'runAsNonRoot': false}"), POD_SECURITY_BASELINE,
      "spec.containers[0].securityContext.runAsNonRoot: " },
    { INTO_CONTAINER, SECURITY("{'runAsNonRoot': true, 'runAsUser': 1000}"), ALWAYS,
      NULL },
    { INTO_CONTAINER, SECURITY("{'runAsUser': 0}"), POD_SECURITY_BASELINE,
      "spec.containers[0].securityContext.runAsUser: " },
    { INTO_POD, SPEC("{'securityContext': {'runAsUser': 0}}"), POD_SECURITY_BASELINE,
      "spec.securityContext.runAsUser: " },
    /* hosts that the kubelet would connect to */
    { INTO_CONTAINER, "{'livenessProbe': {'httpGet': {'port': 80, 'host': ''}}}", ALWAYS,
      NULL },
    { INTO_CONTAINER, "{'livenessProbe': {'httpGet': {'host': '10.0.0.1'}}}",
      POD_SECURITY_PRIVILEGED, "spec.containers[0].livenessProbe.httpGet.host: " },
    { INTO_CONTAINER, "{'livenessProbe': {'tcpSocket': {'host': '10.0.0.1'}}}",
      POD_SECURITY_PRIVILEGED, "spec.containers[0].livenessProbe.tcpSocket.host: " },
    { INTO_CONTAINER, "{'readinessProbe': {'httpGet': {'host': 'h'}}}",
      POD_SECURITY_PRIVILEGED, "spec.containers[0].readinessProbe.httpGet.host: " },
    { INTO_CONTAINER, "{'readinessProbe': {'tcpSocket': {'host': 'h'}}}",
      POD_SECURITY_PRIVILEGED, "spec.containers[0].readinessProbe.tcpSocket.host: " },
    { INTO_CONTAINER, "{'startupProbe': {'httpGet': {'host': 'h'}}}",
      POD_SECURITY_PRIVILEGED, "spec.containers[0].startupProbe.httpGet.host: " },
    { INTO_INIT, "{'startupProbe': {'tcpSocket': {'host': 'h'}}}",
      POD_SECURITY_PRIVILEGED, "spec.initContainers[0].startupProbe.tcpSocket.host: " },
    { INTO_CONTAINER, "{'lifecycle': {'postStart': {'httpGet': {'host': 'h'}}}}",
      POD_SECURITY_PRIVILEGED, "spec.containers[0].lifecycle.postStart.httpGet.host: " },
    { INTO_CONTAINER, "{'lifecycle': {'postStart': {'tcpSocket': {'host': 'h'}}}}",
      POD_SECURITY_PRIVILEGED,
      "spec.containers[0].lifecycle.postStart.tcpSocket.host: " },
    { INTO_CONTAINER, "{'lifecycle': {'preStop': {'httpGet': {'host': 'h'}}}}",
      POD_SECURITY_PRIVILEGED, "spec.containers[0].lifecycle.preStop.httpGet.host: " },
    { INTO_CONTAINER, "{'lifecycle': {'preStop': {'tcpSocket': {'host': 'h'}}}}",
      POD_SECURITY_PRIVILEGED, "spec.containers[0].lifecycle.preStop.tcpSocket.host: " },
    { INTO_CONTAINER, "{'lifecycle': {'preStop': {'exec': {'command': ['sync']}}}}",
      ALWAYS, NULL },
    { INTO_POD, SPEC("{'initContainers': {'name': 'x'}}"), NEVER,
      "spec.initContainers: " },
};

START_TEST(each_control_refuses_at_its_levels_and_names_the_field)
{
    json_auto_t *pod = changed_pod(cases[_i].into, cases[_i].change);
    for (unsigned level = 0; level <= POD_SECURITY_PRIVILEGED; level++) {
        struct het_error err;
        bool allowed = allows(pod, (enum pod_security_level)level, &err);
        ck_assert_msg(allowed == (level >= cases[_i].from), "%s at %s: %s",
                      cases[_i].change, pod_security_name((enum pod_security_level)level),
                      err.message);
        if (!allowed)
            ck_assert_msg(strstr(err.message, cases[_i].path) == err.message &&
                              strstr(err.message,
                                     pod_security_name((enum pod_security_level)level)),
                          "%s", err.message);
    }
}
END_TEST

START_TEST(a_container_may_say_what_the_pod_does_not)
{
    struct het_error err;
    json_auto_t *pod = quoted(
        "{'spec': {'containers': [{'name': 'c', 'securityContext': {'runAsNonRoot': true, "
        "'allowPrivilegeEscalation': false, 'seccompProfile': {'type': 'Localhost'}, "
        "'capabilities': {'drop': ['ALL'], 'add': []}}}]}}");
    ck_assert_msg(allows(pod, POD_SECURITY_RESTRICTED, &err), "%s", err.message);
    json_array_append_new(object_at(pod, "spec.containers"),
                          quoted("{'name': 'sidecar', 'securityContext': "
                                 "{'allowPrivilegeEscalation': false, 'capabilities': "
                                 "{'drop': ['ALL']}}}"));
    ck_assert(!allows(pod, POD_SECURITY_RESTRICTED, &err));
    ck_assert_ptr_nonnull(
        strstr(err.message, "spec.containers[1].securityContext.runAsNonRoot: "));
}
END_TEST

START_TEST(a_name_ends_where_it_ends_and_not_at_a_nul)
{
    struct het_error err;
    json_auto_t *pod = plain_pod();
    json_t *container = json_array_get(object_at(pod, "spec.containers"), 0);
    json_t *drop = object_at(container, "securityContext.capabilities.drop");
    json_array_set_new(drop, 0, json_stringn("ALL\0", 4));
    ck_assert(!allows(pod, POD_SECURITY_RESTRICTED, &err));
}
END_TEST

START_TEST(levels_are_called_as_in_the_label)
{
    enum pod_security_level level = POD_SECURITY_RESTRICTED;
    ck_assert(pod_security_parse("baseline", &level));
    ck_assert_int_eq(level, POD_SECURITY_BASELINE);
    ck_assert(!pod_security_parse("Baseline", &level));
    ck_assert_int_eq(level, POD_SECURITY_BASELINE);
    ck_assert_str_eq(pod_security_name(POD_SECURITY_PRIVILEGED), "privileged");
}
END_TEST

static const struct {
    const char *labels;
    int64_t server_minor;
    enum pod_security_level level;
    int64_t minor;
} namespaces[] = {
    { "{}", 34, POD_SECURITY_PRIVILEGED, 34 },
    { "{'pod-security.kubernetes.io/warn': 'restricted'}", 34, POD_SECURITY_PRIVILEGED,
      34 },
    { "{'pod-security.kubernetes.io/enforce': 'baseline'}", 31, POD_SECURITY_BASELINE,
      31 },
    { "{'pod-security.kubernetes.io/enforce': 'restricted', "
      "'pod-security.kubernetes.io/enforce-version': 'latest'}",
      34, POD_SECURITY_RESTRICTED, 34 },
    { "{'pod-security.kubernetes.io/enforce': 'restricted', "
      "'pod-security.kubernetes.io/enforce-version': 'v1.29'}",
      34, POD_SECURITY_RESTRICTED, 29 },
    { "{'pod-security.kubernetes.io/enforce': 'restricted', "
      "'pod-security.kubernetes.io/enforce-version': 'v1.24'}",
      34, POD_SECURITY_PRIVILEGED, 24 },
    { "{'pod-security.kubernetes.io/enforce': 'restricted', "
      "'pod-security.kubernetes.io/enforce-version': 'v1.x'}",
      34, POD_SECURITY_RESTRICTED, 34 },
    /* The API server takes no such labels; were they there, it would be strict. */
    { "{'pod-security.kubernetes.io/enforce': 'namespace'}", 34, POD_SECURITY_RESTRICTED,
      34 },
    { "{'pod-security.kubernetes.io/enforce': 'none'}", 34, POD_SECURITY_RESTRICTED, 34 },
};

START_TEST(a_namespace_says_by_labels_what_its_pods_are_held_to)
{
    json_auto_t *labels = quoted("%s", namespaces[_i].labels);
    struct pod_security_policy policy =
        pod_security_of_labels(labels, namespaces[_i].server_minor);
    ck_assert_int_eq(policy.level, namespaces[_i].level);
    ck_assert_int_eq(policy.minor, namespaces[_i].minor);
}
END_TEST

START_TEST(a_rule_holds_from_its_version_on)
{
    struct het_error err;
    json_auto_t *pod = changed_pod(
        INTO_CONTAINER, "{'livenessProbe': {'httpGet': {'host': 'x', 'port': 1}}}");
    struct het_view root = het_view_root(pod);
    struct pod_security_policy before = { POD_SECURITY_BASELINE, 33 };
    struct pod_security_policy since = { POD_SECURITY_BASELINE, 34 };
    ck_assert_int_eq(pod_security_check(&root, &before, &err), 0);
    ck_assert_int_eq(pod_security_check(&root, &since, &err), -1);
}
END_TEST

Suite *test_pod_security_suite(void)
{
    Suite *suite = suite_create("pod_security");
    TCase *tests = tcase_create("pod_security");
    suite_add_tcase(suite, tests);
    tcase_add_loop_test(tests, each_control_refuses_at_its_levels_and_names_the_field, 0,
                        (int)(sizeof cases / sizeof *cases));
    tcase_add_test(tests, a_container_may_say_what_the_pod_does_not);
    tcase_add_test(tests, a_name_ends_where_it_ends_and_not_at_a_nul);
    tcase_add_test(tests, levels_are_called_as_in_the_label);
    tcase_add_loop_test(tests, a_namespace_says_by_labels_what_its_pods_are_held_to, 0,
                        (int)(sizeof namespaces / sizeof *namespaces));
    tcase_add_test(tests, a_rule_holds_from_its_version_on);
    return suite;
}
