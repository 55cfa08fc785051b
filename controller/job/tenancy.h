/* tenancy.h - what a job may ask for: no more than whoever may create pods in its
 * namespace gets there by what the administrator settled (settings.h). The API server's
 * admission sees the controller as the author of the pods, so what it would refuse to the
 * author of the job is refused here. Pure.
 *
 * Always refused: classes of priority that begin with "system-", tolerations of the
 * control plane's taints, data sources of another namespace. Refused unless settled
 * otherwise: what the namespace's own level of Pod Security does not allow, to which the
 * API server holds the controller's pods as it would the author's; service accounts but
 * "default",
 * their tokens, runtime classes; and times in which others wait that are longer than its
 * limits. */
#ifndef CONTROLLER_JOB_TENANCY_H
#define CONTROLLER_JOB_TENANCY_H

#include "controller/job/settings.h"

/* What holds where a job is. */
struct tenancy {
    const struct settings *settings;
    int64_t server_minor; /* of the API server: Kubernetes 1.server_minor; 0: not known */
    /* Of the job's namespace, by its labels; privileged where they are not known. */
    struct pod_security_policy namespace_policy;
};

/* Checks `job` in namespace `ns`: its pod template, class of priority and times. On
 * failure `*ret_reason` is the condition reason (docs/api.md), and `err` names the field
 * and what to change. */
int tenancy_check_job(const struct tenancy *tenancy, const char *ns, const json_t *job,
                      const char **ret_reason, struct het_error *err);
/* The same of a pod that was built. */
int tenancy_check_pod(const struct tenancy *tenancy, const char *ns, const json_t *pod,
                      const char **ret_reason, struct het_error *err);

/* Whether the pod template of `job` has only fields that pods have (pod_schema.h). A field
 * that is not known is refused where the API server has none that we do not know. Errors:
 * HET_BAD_INPUT. */
int tenancy_check_fields(const struct tenancy *tenancy, const json_t *job,
                         struct het_error *err);
/* Whether it has a field that only a newer API server may know; `*ret` names it. Whether
 * the server does, it says when the pods are created: it is asked to be strict then. */
bool tenancy_doubts_fields(const struct tenancy *tenancy, const json_t *job,
                           struct het_error *ret);

#endif
