/* tenancy.h - what a job may ask for: no more than its author could get by creating pods
 * in the namespace, within the administrator's settings (settings.h). The API server's
 * admission sees the controller as the author of the pods, so what it would refuse to the
 * author of the job is refused here. Pure.
 *
 * Always refused: priority classes that begin with "system-", tolerations of the control
 * plane's taints, data sources of another namespace. Refused unless the settings allow
 * it: what the namespace's own Pod Security level forbids (the API server enforces it on
 * the controller's pods as on the author's); service accounts other than "default", their
 * tokens, runtime classes; and times in which other jobs wait that exceed the limits. */
#ifndef CONTROLLER_JOB_TENANCY_H
#define CONTROLLER_JOB_TENANCY_H

#include "controller/job/settings.h"

/* The rules for a job's namespace. */
struct tenancy {
    const struct settings *settings;
    int64_t server_minor; /* of the API server: Kubernetes 1.server_minor; 0: not known */
    /* Policy of the job's namespace, by its labels; privileged if they are not known. */
    struct pod_security_policy namespace_policy;
};

/* Checks `job` in namespace `ns`: its pod template, priority class and times. On failure
 * `*ret_reason` is the condition reason (docs/api.md), and `err` names the field and what
 * to change. */
int tenancy_check_job(const struct tenancy *tenancy, const char *ns, const json_t *job,
                      const char **ret_reason, struct het_error *err);
/* The same for a finished pod. */
int tenancy_check_pod(const struct tenancy *tenancy, const char *ns, const json_t *pod,
                      const char **ret_reason, struct het_error *err);

/* Checks that the pod template of `job` has only fields of pods (pod_schema.h). An
 * unknown field is refused if the API server is not newer than the schema. Errors:
 * HET_BAD_INPUT. */
int tenancy_check_fields(const struct tenancy *tenancy, const json_t *job,
                         struct het_error *err);
/* Whether the template has a field that only a newer API server may know; `*ret` names
 * it. The server itself then decides when the pods are created with strict validation. */
bool tenancy_doubts_fields(const struct tenancy *tenancy, const json_t *job,
                           struct het_error *ret);

#endif
