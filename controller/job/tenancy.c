#include "controller/job/tenancy.h"

#include "controller/job/pod_schema.h"

#include <inttypes.h>
#include <string.h>

/* Whose pods are checked. */
struct tenant {
    const struct settings *settings;
    const struct tenancy *tenancy;
    const char *ns;
    struct het_error *err;
};
typedef int pod_check(const struct tenant *tenant, const struct het_view *pod);

/* A field's text; "" if it is absent. A value that is not a text, or has a NUL inside,
 * matches no allowed name. */
static const char *text_of(const struct het_view *field)
{
    if (!field->json)
        return "";
    const char *text = json_string_value(field->json);
    return text && strlen(text) == json_string_length(field->json) ? text : "?";
}

/* ---- service accounts ---- */

static int check_account(const struct tenant *tenant, const struct het_view *spec,
                         const char *key)
{
    struct het_view field = het_view_get(spec, key);
    const char *name = text_of(&field);
    if (!*name || !strcmp(name, "default") ||
        settings_allow_account(tenant->settings, tenant->ns, name))
        return 0;
    return het_view_fail(
        &field, tenant->err,
        "service account %s is not allowed to jobs of namespace %s; "
        "remove it, or have serviceAccounts of the controller's settings "
        "list it",
        name, tenant->ns);
}

/* The account whose token the pod would get. */
static const char *account_of(const struct het_view *spec)
{
    static const char *const keys[] = { "serviceAccountName", "serviceAccount" };
    for (size_t i = 0; i < 2; i++) {
        struct het_view field = het_view_get(spec, keys[i]);
        if (*text_of(&field))
            return text_of(&field);
    }
    return "default";
}

static int refuse_token(const struct tenant *tenant, const struct het_view *field,
                        const char *account)
{
    return het_view_fail(field, tenant->err,
                         "the credentials of service account %s are not for jobs of "
                         "namespace %s; remove it, or have serviceAccounts of the "
                         "controller's settings list it",
                         account, tenant->ns);
}

/* Projected volumes that hold what the pod could prove its account with. */
static int check_projected(const struct tenant *tenant, const struct het_view *spec,
                           const char *account)
{
    static const char *const keys[] = { "serviceAccountToken", "podCertificate" };
    struct het_view volumes = het_view_get(spec, "volumes");
    for (size_t i = 0; i < json_array_size(volumes.json); i++) {
        struct het_view volume = het_view_at(&volumes, i);
        struct het_view projected = het_view_get(&volume, "projected");
        struct het_view sources = het_view_get(&projected, "sources");
        for (size_t k = 0; k < json_array_size(sources.json); k++) {
            struct het_view source = het_view_at(&sources, k);
            for (size_t j = 0; j < 2; j++) {
                struct het_view field = het_view_get(&source, keys[j]);
                if (field.json)
                    return refuse_token(tenant, &field, account);
            }
        }
    }
    return 0;
}

static int check_service_account(const struct tenant *tenant, const struct het_view *pod)
{
    struct het_view spec = het_view_get(pod, "spec");
    if (check_account(tenant, &spec, "serviceAccountName") < 0 ||
        check_account(tenant, &spec, "serviceAccount") < 0)
        return -1;
    const char *account = account_of(&spec);
    if (settings_allow_account(tenant->settings, tenant->ns, account))
        return 0;
    struct het_view automount = het_view_get(&spec, "automountServiceAccountToken");
    if (automount.json && !json_is_false(automount.json))
        return refuse_token(tenant, &automount, account);
    return check_projected(tenant, &spec, account);
}

/* ---- what is told apart by name alone ---- */

static int check_class_of_priority(const struct tenant *tenant,
                                   const struct het_view *field)
{
    if (strncmp(text_of(field), "system-", strlen("system-")))
        return 0;
    return het_view_fail(
        field, tenant->err,
        "classes that begin with system- are for the cluster's own pods; "
        "use another");
}

static int check_priority_class(const struct tenant *tenant, const struct het_view *pod)
{
    struct het_view spec = het_view_get(pod, "spec");
    struct het_view field = het_view_get(&spec, "priorityClassName");
    return check_class_of_priority(tenant, &field);
}

static int check_runtime_class(const struct tenant *tenant, const struct het_view *pod)
{
    struct het_view spec = het_view_get(pod, "spec");
    struct het_view field = het_view_get(&spec, "runtimeClassName");
    const char *name = text_of(&field);
    if (!*name || settings_match_key(tenant->settings->runtime_classes,
                                     tenant->settings->runtime_class_count, name))
        return 0;
    return het_view_fail(&field, tenant->err,
                         "runtime class %s is not allowed to jobs; remove it, or have "
                         "runtimeClasses of the controller's settings list it",
                         name);
}

/* ---- tolerations ---- */

static int check_tolerations(const struct tenant *tenant, const struct het_view *pod)
{
    static const char *const taints[] = { "node-role.kubernetes.io/control-plane",
                                          "node-role.kubernetes.io/master" };
    struct het_view spec = het_view_get(pod, "spec");
    struct het_view list = het_view_get(&spec, "tolerations");
    for (size_t i = 0; i < json_array_size(list.json); i++) {
        struct het_view toleration = het_view_at(&list, i);
        struct het_view key = het_view_get(&toleration, "key");
        if (!*text_of(&key))
            return het_view_fail(&toleration, tenant->err,
                                 "tolerates every taint, the control plane's too; give "
                                 "the keys of the taints that are meant");
        for (size_t k = 0; k < sizeof taints / sizeof *taints; k++)
            if (!strcmp(text_of(&key), taints[k]))
                return het_view_fail(&toleration, tenant->err,
                                     "%s: nodes of the control plane are not for jobs; "
                                     "remove it",
                                     taints[k]);
    }
    return 0;
}

/* ---- other namespaces ---- */

static int check_data_sources(const struct tenant *tenant, const struct het_view *pod)
{
    struct het_view spec = het_view_get(pod, "spec");
    struct het_view volumes = het_view_get(&spec, "volumes");
    for (size_t i = 0; i < json_array_size(volumes.json); i++) {
        struct het_view volume = het_view_at(&volumes, i);
        struct het_view ephemeral = het_view_get(&volume, "ephemeral");
        struct het_view claim = het_view_get(&ephemeral, "volumeClaimTemplate");
        struct het_view claim_spec = het_view_get(&claim, "spec");
        struct het_view source = het_view_get(&claim_spec, "dataSourceRef");
        struct het_view ns = het_view_get(&source, "namespace");
        if (*text_of(&ns) && strcmp(text_of(&ns), tenant->ns))
            return het_view_fail(&ns, tenant->err,
                                 "data of another namespace is not for jobs of %s; "
                                 "remove it",
                                 tenant->ns);
    }
    return 0;
}

static int check_pod_security(const struct tenant *tenant, const struct het_view *pod)
{
    enum pod_security_level level = settings_pod_security(tenant->settings, tenant->ns);
    struct pod_security_policy policy = { .level = level };
    if (level == POD_SECURITY_NAMESPACE) {
        policy = tenant->tenancy->namespace_policy;
        if (pod_security_may_exempt(pod)) /* which the API server decides */
            policy.level = POD_SECURITY_PRIVILEGED;
    }
    return pod_security_check(pod, &policy, tenant->err);
}

static const struct {
    const char *reason;
    pod_check *check;
} checks[] = {
    { "PodSecurity", check_pod_security },
    { "ServiceAccountNotAllowed", check_service_account },
    { "PriorityClassNotAllowed", check_priority_class },
    { "TolerationNotAllowed", check_tolerations },
    { "RuntimeClassNotAllowed", check_runtime_class },
    { "DataSourceNotAllowed", check_data_sources },
};

static int check_pod(const struct tenant *tenant, const struct het_view *pod,
                     const char **ret_reason)
{
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (checks[i].check(tenant, pod) < 0) {
            *ret_reason = checks[i].reason;
            return -1;
        }
    return 0;
}

/* ---- times ---- */

static int check_limit(const struct tenant *tenant, const struct het_view *field,
                       int64_t most, const char *name)
{
    if (!json_is_integer(field->json) || json_integer_value(field->json) <= most)
        return 0;
    return het_view_fail(field, tenant->err,
                         "may be %" PRId64 " at most; lower it, or have limits.%s of the "
                         "controller's settings allow more",
                         most, name);
}

/* Times in which others wait for GPUs that the job holds. */
static int check_times(const struct tenant *tenant, const struct het_view *spec)
{
    const struct settings_limits *limits = &tenant->settings->limits;
    struct het_view checkpoint = het_view_get(spec, "checkpoint");
    struct het_view disruption = het_view_get(&checkpoint, "onDisruption");
    struct het_view timeout = het_view_get(&disruption, "timeoutSeconds");
    struct het_view scheduling = het_view_get(spec, "scheduling");
    struct het_view gang = het_view_get(&scheduling, "gangTimeoutSeconds");
    struct het_view policy = het_view_get(spec, "replanPolicy");
    struct het_view node = het_view_get(&policy, "nodeFailureGraceSeconds");
    struct het_view template = het_view_get(spec, "podTemplate");
    struct het_view pod = het_view_get(&template, "spec");
    struct het_view grace = het_view_get(&pod, "terminationGracePeriodSeconds");
    if (check_limit(tenant, &timeout, limits->checkpoint_s, "checkpointTimeoutSeconds") <
            0 ||
        check_limit(tenant, &gang, limits->gang_s, "gangTimeoutSeconds") < 0 ||
        check_limit(tenant, &node, limits->node_failure_s, "nodeFailureGraceSeconds") < 0)
        return -1;
    return check_limit(tenant, &grace, limits->termination_grace_s,
                       "terminationGracePeriodSeconds");
}

int tenancy_check_job(const struct tenancy *tenancy, const char *ns, const json_t *job,
                      const char **ret_reason, struct het_error *err)
{
    struct tenant tenant = {
        .settings = tenancy->settings, .tenancy = tenancy, .ns = ns, .err = err
    };
    struct het_view root = het_view_root(job);
    struct het_view spec = het_view_get(&root, "spec");
    struct het_view scheduling = het_view_get(&spec, "scheduling");
    struct het_view class = het_view_get(&scheduling, "priorityClassName");
    if (check_class_of_priority(&tenant, &class) < 0) {
        *ret_reason = "PriorityClassNotAllowed";
        return -1;
    }
    if (check_times(&tenant, &spec) < 0) {
        *ret_reason = "LimitExceeded";
        return -1;
    }
    struct het_view template = het_view_get(&spec, "podTemplate");
    return check_pod(&tenant, &template, ret_reason);
}

int tenancy_check_pod(const struct tenancy *tenancy, const char *ns, const json_t *pod,
                      const char **ret_reason, struct het_error *err)
{
    struct tenant tenant = {
        .settings = tenancy->settings, .tenancy = tenancy, .ns = ns, .err = err
    };
    struct het_view root = het_view_root(pod);
    return check_pod(&tenant, &root, ret_reason);
}

/* ---- fields ---- */

static int check_schema(const json_t *job, struct het_error *err)
{
    struct het_view root = het_view_root(job);
    struct het_view spec = het_view_get(&root, "spec");
    struct het_view template = het_view_get(&spec, "podTemplate");
    return pod_schema_check(&template, err);
}

static bool knows_all_fields(const struct tenancy *tenancy)
{
    return tenancy->server_minor && tenancy->server_minor <= POD_SCHEMA_MINOR;
}

int tenancy_check_fields(const struct tenancy *tenancy, const json_t *job,
                         struct het_error *err)
{
    return knows_all_fields(tenancy) ? check_schema(job, err) : 0;
}

bool tenancy_doubts_fields(const struct tenancy *tenancy, const json_t *job,
                           struct het_error *ret)
{
    return !knows_all_fields(tenancy) && check_schema(job, ret) < 0;
}
