/* pod_security.h - whether a pod complies with a level of the Pod Security Standards.
 * Pure.
 *
 * Source: kubernetes.io, Pod Security Standards as of Kubernetes 1.34. Differs: Windows
 * pods and pods with user namespaces (hostUsers false) get no exemptions; a value of the
 * wrong JSON type is refused, not treated as absent; the seccomp annotations of servers
 * before 1.27 count along with the fields. */
#ifndef CONTROLLER_JOB_POD_SECURITY_H
#define CONTROLLER_JOB_POD_SECURITY_H

#include "planner/modules.h"

#include <stdbool.h>

#define POD_SECURITY_LABEL         "pod-security.kubernetes.io/enforce"
#define POD_SECURITY_VERSION_LABEL "pod-security.kubernetes.io/enforce-version"

/* The strictest first, so that it is the value of an unset level. */
enum pod_security_level {
    POD_SECURITY_RESTRICTED,
    POD_SECURITY_BASELINE,
    POD_SECURITY_PRIVILEGED,
    POD_SECURITY_NAMESPACE, /* in settings: that of the namespace */
};

/* A level, as of Kubernetes 1.minor. */
struct pod_security_policy {
    enum pod_security_level level;
    int64_t minor; /* 0: the newest */
};

/* "restricted", ...; "namespace". */
const char *pod_security_name(enum pod_security_level level);
/* False if there is no such level. */
bool pod_security_parse(const char *name, enum pod_security_level *ret);
/* The policy that an API server of Kubernetes 1.server_minor enforces, by these labels,
 * on the pods of a namespace. Policy versions before 1.25 are left to the server:
 * privileged. */
struct pod_security_policy pod_security_of_labels(const json_t *labels,
                                                  int64_t server_minor);

/* Checks `pod`, which has metadata and spec: a pod, or the template of one. Errors:
 * HET_BAD_INPUT names the first field that violates the policy, by its path in the
 * document of `pod`, and what to change. */
int pod_security_check(const struct het_view *pod,
                       const struct pod_security_policy *policy, struct het_error *err);
/* Whether an API server may exempt `pod` from rules checked here: a pod with a user
 * namespace, or a Windows pod. */
bool pod_security_may_exempt(const struct het_view *pod);

#endif
