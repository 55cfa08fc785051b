#include "controller/job/pod_security.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *const level_names[] = {
    [POD_SECURITY_RESTRICTED] = "restricted",
    [POD_SECURITY_BASELINE] = "baseline",
    [POD_SECURITY_PRIVILEGED] = "privileged",
    [POD_SECURITY_NAMESPACE] = "namespace",
};

/* The first version with the rules here, except those marked with a later version. */
#define FIRST_MINOR 25

const char *pod_security_name(enum pod_security_level level)
{
    return level_names[level];
}

bool pod_security_parse(const char *name, enum pod_security_level *ret)
{
    for (size_t i = 0; i < sizeof level_names / sizeof *level_names; i++)
        if (!strcmp(level_names[i], name)) {
            *ret = (enum pod_security_level)i;
            return true;
        }
    return false;
}

/* "v1.N"; anything else is "latest", as an API server takes it. */
static int64_t read_version(const char *text, int64_t latest)
{
    char *end = NULL;
    long minor = strncmp(text, "v1.", 3) ? 0 : strtol(text + 3, &end, 10);
    return end && end != text + 3 && !*end && minor >= 0 ? minor : latest;
}

struct pod_security_policy pod_security_of_labels(const json_t *labels,
                                                  int64_t server_minor)
{
    const char *name = json_string_value(json_object_get(labels, POD_SECURITY_LABEL));
    const char *version =
        json_string_value(json_object_get(labels, POD_SECURITY_VERSION_LABEL));
    struct pod_security_policy policy = {
        .level = POD_SECURITY_PRIVILEGED,
        .minor = version ? read_version(version, server_minor) : server_minor,
    };
    if (!name || policy.minor < FIRST_MINOR)
        return policy;
    /* The API server, too, treats an invalid level as the strictest. */
    if (!pod_security_parse(name, &policy.level) ||
        policy.level == POD_SECURITY_NAMESPACE)
        policy.level = POD_SECURITY_RESTRICTED;
    return policy;
}

/* ---- what a field may be ---- */

/* A text with a NUL inside is none of our names, whatever precedes it. */
static bool text_is(const json_t *value, const char *text)
{
    return json_is_string(value) && json_string_length(value) == strlen(text) &&
           !memcmp(json_string_value(value), text, strlen(text));
}

/* `allowed` ends with NULL; an entry that ends in "*" stands for all with that prefix. */
static bool is_one_of(const json_t *value, const char *const *allowed)
{
    for (; *allowed; allowed++) {
        size_t length = strlen(*allowed);
        if (length && (*allowed)[length - 1] == '*'
                ? json_is_string(value) &&
                      !strncmp(json_string_value(value), *allowed, length - 1)
                : text_is(value, *allowed))
            return true;
    }
    return false;
}

struct checked {
    enum pod_security_level level;
    int64_t minor; /* 0: the newest */
    struct het_error *err;
};
typedef int field_check(const struct checked *checked, const struct het_view *field,
                        const char *const *allowed);

static int refuse(const struct checked *checked, const struct het_view *field,
                  const char *change)
{
    return het_view_fail(field, checked->err, "is not allowed by Pod Security %s; %s",
                         level_names[checked->level], change);
}

static int must_not_be_true(const struct checked *checked, const struct het_view *field,
                            const char *const *allowed)
{
    (void)allowed;
    return json_is_false(field->json) ? 0 : refuse(checked, field, "remove it");
}

static int must_be_absent(const struct checked *checked, const struct het_view *field,
                          const char *const *allowed)
{
    (void)allowed;
    return text_is(field->json, "") ? 0 : refuse(checked, field, "remove it");
}

static int must_be_zero(const struct checked *checked, const struct het_view *field,
                        const char *const *allowed)
{
    (void)allowed;
    if (json_is_integer(field->json) && !json_integer_value(field->json))
        return 0;
    return refuse(checked, field, "remove it");
}

static int must_not_be_zero(const struct checked *checked, const struct het_view *field,
                            const char *const *allowed)
{
    (void)allowed;
    if (json_is_integer(field->json) && json_integer_value(field->json))
        return 0;
    return refuse(checked, field, "use another user than 0, who is root");
}

static int must_be_one_of(const struct checked *checked, const struct het_view *field,
                          const char *const *allowed)
{
    if (text_is(field->json, "") || is_one_of(field->json, allowed))
        return 0;
    auto_free char *change = xasprintf("use %s", allowed[0]);
    for (size_t i = 1; allowed[i]; i++) {
        auto_free char *before = change;
        change = xasprintf("%s, %s", before, allowed[i]);
    }
    return refuse(checked, field, change);
}

static int must_all_be_of(const struct checked *checked, const struct het_view *field,
                          const char *const *allowed)
{
    if (!json_is_array(field->json))
        return refuse(checked, field, "it must be a list");
    for (size_t i = 0; i < json_array_size(field->json); i++) {
        struct het_view entry = het_view_at(field, i);
        if (!is_one_of(entry.json, allowed))
            return refuse(checked, &entry, "remove it");
    }
    return 0;
}

/* A volume: all it has beside its name must be of these. */
static int must_only_have(const struct checked *checked, const struct het_view *field,
                          const char *const *allowed)
{
    const char *key;
    json_t *value;
    if (!json_is_object(field->json))
        return refuse(checked, field, "it must be an object");
    json_object_foreach ((json_t *)(uintptr_t)field->json, key, value) {
        json_auto_t *name = json_string(key);
        struct het_view member = het_view_get(field, key);
        if (member.json && strcmp(key, "name") && !is_one_of(name, allowed))
            return refuse(
                checked, &member,
                "use a persistentVolumeClaim, or another type of volume that it "
                "allows");
    }
    return 0;
}

/* ---- the rules ---- */

static const char *const proc_mounts[] = { "Default", NULL };
static const char *const selinux_types[] = { "container_t", "container_init_t",
                                             "container_kvm_t", "container_engine_t",
                                             NULL };
static const char *const profile_types[] = { "RuntimeDefault", "Localhost", NULL };
static const char *const baseline_capabilities[] = {
    "AUDIT_WRITE", "CHOWN",  "DAC_OVERRIDE",     "FOWNER",  "FSETID",
    "KILL",        "MKNOD",  "NET_BIND_SERVICE", "SETFCAP", "SETGID",
    "SETPCAP",     "SETUID", "SYS_CHROOT",       NULL
};
static const char *const restricted_capabilities[] = { "NET_BIND_SERVICE", NULL };
static const char *const safe_sysctls[] = {
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
    NULL,
};
static const char *const volume_types[] = {
    "configMap", "csi",       "downwardAPI",           "emptyDir",
    "ephemeral", "projected", "persistentVolumeClaim", "secret",
    NULL,
};

enum owner { POD = 1, CONTAINER = 2, BOTH = POD | CONTAINER };

/* A handler may only call its own pod. */
#define NO_HOST(handler)                                                                 \
    POD_SECURITY_BASELINE, CONTAINER, handler ".host", must_be_absent, NULL, 34

/* Absent fields are allowed here; required ones are checked below. */
static const struct rule {
    enum pod_security_level loosest; /* level that the rule holds for, and all stricter */
    enum owner owner;
    const char *path; /* below the spec of the pod, or below the container */
    field_check *check;
    const char *const *allowed;
    int64_t since; /* Kubernetes 1.since; 0: always */
} rules[] = {
    { POD_SECURITY_PRIVILEGED, POD, "ephemeralContainers", must_be_absent, NULL, 0 },
    { POD_SECURITY_BASELINE, POD, "hostNetwork", must_not_be_true, NULL, 0 },
    { POD_SECURITY_BASELINE, POD, "hostPID", must_not_be_true, NULL, 0 },
    { POD_SECURITY_BASELINE, POD, "hostIPC", must_not_be_true, NULL, 0 },
    { POD_SECURITY_BASELINE, POD, "volumes[].hostPath", must_be_absent, NULL, 0 },
    { POD_SECURITY_BASELINE, POD, "securityContext.sysctls[].name", must_be_one_of,
      safe_sysctls, 0 },
    { POD_SECURITY_BASELINE, BOTH, "securityContext.windowsOptions.hostProcess",
      must_not_be_true, NULL, 0 },
    { POD_SECURITY_BASELINE, BOTH, "securityContext.seLinuxOptions.type", must_be_one_of,
      selinux_types, 0 },
    { POD_SECURITY_BASELINE, BOTH, "securityContext.seLinuxOptions.user", must_be_absent,
      NULL, 0 },
    { POD_SECURITY_BASELINE, BOTH, "securityContext.seLinuxOptions.role", must_be_absent,
      NULL, 0 },
    { POD_SECURITY_BASELINE, BOTH, "securityContext.appArmorProfile.type", must_be_one_of,
      profile_types, 0 },
    { POD_SECURITY_BASELINE, BOTH, "securityContext.seccompProfile.type", must_be_one_of,
      profile_types, 0 },
    { POD_SECURITY_BASELINE, CONTAINER, "securityContext.privileged", must_not_be_true,
      NULL, 0 },
    { POD_SECURITY_BASELINE, CONTAINER, "securityContext.procMount", must_be_one_of,
      proc_mounts, 0 },
    { POD_SECURITY_BASELINE, CONTAINER, "securityContext.capabilities.add",
      must_all_be_of, baseline_capabilities, 0 },
    { POD_SECURITY_BASELINE, CONTAINER, "ports[].hostPort", must_be_zero, NULL, 0 },
    { NO_HOST("livenessProbe.httpGet") },
    { NO_HOST("livenessProbe.tcpSocket") },
    { NO_HOST("readinessProbe.httpGet") },
    { NO_HOST("readinessProbe.tcpSocket") },
    { NO_HOST("startupProbe.httpGet") },
    { NO_HOST("startupProbe.tcpSocket") },
    { NO_HOST("lifecycle.postStart.httpGet") },
    { NO_HOST("lifecycle.postStart.tcpSocket") },
    { NO_HOST("lifecycle.preStop.httpGet") },
    { NO_HOST("lifecycle.preStop.tcpSocket") },
    { POD_SECURITY_RESTRICTED, POD, "volumes[]", must_only_have, volume_types, 0 },
    { POD_SECURITY_RESTRICTED, BOTH, "securityContext.runAsUser", must_not_be_zero, NULL,
      0 },
    { POD_SECURITY_RESTRICTED, CONTAINER, "securityContext.capabilities.add",
      must_all_be_of, restricted_capabilities, 0 },
};

/* Applies `rule` to the values at `path` below `at`: keys with dots between them, "[]"
 * for every entry of a list. */
static int apply_rule(const struct checked *checked, const struct rule *rule,
                      const struct het_view *at, const char *path)
{
    if (!at->json)
        return 0;
    if (!*path)
        return rule->check(checked, at, rule->allowed);
    if (*path == '[') {
        path += strlen("[]");
        path += *path == '.';
        if (!json_is_array(at->json))
            return refuse(checked, at, "it must be a list");
        for (size_t i = 0; i < json_array_size(at->json); i++) {
            struct het_view entry = het_view_at(at, i);
            if (apply_rule(checked, rule, &entry, path) < 0)
                return -1;
        }
        return 0;
    }
    char key[32];
    size_t length = strcspn(path, ".[");
    assert(length < sizeof key);
    memcpy(key, path, length);
    key[length] = '\0';
    path += length;
    path += *path == '.';
    if (!json_is_object(at->json))
        return refuse(checked, at, "it must be an object");
    struct het_view member = het_view_get(at, key);
    return apply_rule(checked, rule, &member, path);
}

static int apply_rules(const struct checked *checked, enum owner owner,
                       const struct het_view *at)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (checked->level <= rules[i].loosest && (rules[i].owner & owner) &&
            (!checked->minor || rules[i].since <= checked->minor) &&
            apply_rule(checked, &rules[i], at, rules[i].path) < 0)
            return -1;
    return 0;
}

/* ---- what must be there ---- */

static int need(const struct checked *checked, const struct het_view *field,
                const char *what)
{
    return het_view_fail(field, checked->err, "must %s for Pod Security %s", what,
                         level_names[checked->level]);
}

static int check_non_root(const struct checked *checked, const struct het_view *pod,
                          const struct het_view *container)
{
    struct het_view own = het_view_get(container, "runAsNonRoot");
    struct het_view shared = het_view_get(pod, "runAsNonRoot");
    if (json_is_true(own.json) || (!own.json && json_is_true(shared.json)))
        return 0;
    return need(checked, &own, "be true, here or for the pod,");
}

/* Which types there may be, a rule says. */
static int check_seccomp(const struct checked *checked, const struct het_view *pod,
                         const struct het_view *container)
{
    const struct het_view *owners[] = { container, pod };
    for (size_t i = 0; i < 2; i++) {
        struct het_view profile = het_view_get(owners[i], "seccompProfile");
        struct het_view type = het_view_get(&profile, "type");
        if (type.json && is_one_of(type.json, profile_types))
            return 0;
    }
    struct het_view profile = het_view_get(container, "seccompProfile");
    struct het_view type = het_view_get(&profile, "type");
    return need(checked, &type, "be RuntimeDefault or Localhost, here or for the pod,");
}

static int check_dropped(const struct checked *checked, const struct het_view *container)
{
    struct het_view capabilities = het_view_get(container, "capabilities");
    struct het_view drop = het_view_get(&capabilities, "drop");
    for (size_t i = 0; i < json_array_size(drop.json); i++)
        if (text_is(json_array_get(drop.json, i), "ALL"))
            return 0;
    return need(checked, &drop, "be [ALL]");
}

/* Both are security contexts. */
static int check_needs(const struct checked *checked, const struct het_view *pod,
                       const struct het_view *container)
{
    struct het_view escalation = het_view_get(container, "allowPrivilegeEscalation");
    if (!json_is_false(escalation.json))
        return need(checked, &escalation, "be false");
    if (check_dropped(checked, container) < 0 ||
        check_non_root(checked, pod, container) < 0)
        return -1;
    return check_seccomp(checked, pod, container);
}

/* ---- annotations, from before there were fields ---- */

static const char *const apparmor_values[] = { "runtime/default", "localhost/*", NULL };
static const char *const seccomp_values[] = { "runtime/default", "docker/default",
                                              "localhost/*", NULL };
static const struct {
    const char *prefix; /* of the key */
    const char *const *allowed;
} profile_annotations[] = {
    { "container.apparmor.security.beta.kubernetes.io/", apparmor_values },
    { "container.seccomp.security.alpha.kubernetes.io/", seccomp_values },
    { "seccomp.security.alpha.kubernetes.io/", seccomp_values },
};

static int check_annotations(const struct checked *checked, const struct het_view *pod)
{
    struct het_view metadata = het_view_get(pod, "metadata");
    struct het_view annotations = het_view_get(&metadata, "annotations");
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)annotations.json, key, value) {
        struct het_view annotation = het_view_get(&annotations, key);
        for (size_t i = 0; i < sizeof profile_annotations / sizeof *profile_annotations;
             i++)
            if (annotation.json &&
                !strncmp(key, profile_annotations[i].prefix,
                         strlen(profile_annotations[i].prefix)) &&
                must_be_one_of(checked, &annotation, profile_annotations[i].allowed) < 0)
                return -1;
    }
    return 0;
}

/* ---- the whole ---- */

static int check_containers(const struct checked *checked, const struct het_view *spec,
                            const char *list)
{
    struct het_view containers = het_view_get(spec, list);
    struct het_view context = het_view_get(spec, "securityContext");
    if (containers.json && !json_is_array(containers.json))
        return refuse(checked, &containers, "it must be a list");
    for (size_t i = 0; i < json_array_size(containers.json); i++) {
        struct het_view container = het_view_at(&containers, i);
        struct het_view own = het_view_get(&container, "securityContext");
        if (apply_rules(checked, CONTAINER, &container) < 0)
            return -1;
        if (checked->level == POD_SECURITY_RESTRICTED &&
            check_needs(checked, &context, &own) < 0)
            return -1;
    }
    return 0;
}

int pod_security_check(const struct het_view *pod,
                       const struct pod_security_policy *policy, struct het_error *err)
{
    struct checked checked = { .level = policy->level,
                               .minor = policy->minor,
                               .err = err };
    struct het_view spec = het_view_get(pod, "spec");
    if (apply_rules(&checked, POD, &spec) < 0 ||
        check_containers(&checked, &spec, "initContainers") < 0 ||
        check_containers(&checked, &spec, "containers") < 0)
        return -1;
    return policy->level == POD_SECURITY_PRIVILEGED ? 0
                                                    : check_annotations(&checked, pod);
}

bool pod_security_may_exempt(const struct het_view *pod)
{
    struct het_view spec = het_view_get(pod, "spec");
    struct het_view users = het_view_get(&spec, "hostUsers");
    struct het_view system = het_view_get(&spec, "os");
    struct het_view name = het_view_get(&system, "name");
    return json_is_false(users.json) || text_is(name.json, "windows");
}
