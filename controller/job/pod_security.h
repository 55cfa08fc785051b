/* pod_security.h - whether a pod keeps to a level of the Pod Security Standards. Pure.
 *
 * Source: kubernetes.io, Pod Security Standards as of Kubernetes 1.34. Differs: Windows pods get no
 * exemptions, neither do pods with user namespaces (hostUsers false); what has the wrong
 * JSON type is refused rather than taken for absent; the seccomp annotations of servers
 * before 1.27 count beside the fields. */
#ifndef CONTROLLER_JOB_POD_SECURITY_H
#define CONTROLLER_JOB_POD_SECURITY_H

#include "planner/modules.h"

#include <stdbool.h>

#define POD_SECURITY_LABEL         "pod-security.kubernetes.io/enforce"
#define POD_SECURITY_VERSION_LABEL "pod-security.kubernetes.io/enforce-version"

/* The strictest first: a level that nobody set is that one. */
enum pod_security_level {
    POD_SECURITY_RESTRICTED,
    POD_SECURITY_BASELINE,
    POD_SECURITY_PRIVILEGED,
    POD_SECURITY_NAMESPACE, /* of settings: that of the namespace */
};

/* A level, as of Kubernetes 1.minor. */
struct pod_security_policy {
    enum pod_security_level level;
    int64_t minor; /* 0: the newest */
};

/* "restricted", ...; "namespace". */
const char *pod_security_name(enum pod_security_level level);
/* False if there is no level of that name. */
bool pod_security_parse(const char *name, enum pod_security_level *ret);
/* What an API server of Kubernetes 1.server_minor holds the pods of a namespace with
 * these labels to, as far as labels tell. Versions before 1.25 are left to it:
 * privileged. */
struct pod_security_policy pod_security_of_labels(const json_t *labels,
                                                  int64_t server_minor);

/* Checks `pod`, which has metadata and spec: a pod, or the template of one. Errors:
 * HET_BAD_INPUT names the first field that the policy does not allow, by its path in the
 * document of `pod`, and what to change. */
int pod_security_check(const struct het_view *pod,
                       const struct pod_security_policy *policy, struct het_error *err);
/* Whether an API server may exempt `pod` from rules that are checked here: one with a user
 * namespace, or of Windows. */
bool pod_security_may_exempt(const struct het_view *pod);

#endif
