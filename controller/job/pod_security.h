/* pod_security.h - whether a pod keeps to a level of the Pod Security Standards. Pure.
 *
 * Source: kubernetes.io, Pod Security Standards as of Kubernetes 1.34: the strictest
 * version of every control, whatever the server's. Differs: Windows pods get no
 * exemptions, neither do pods with user namespaces (hostUsers false); what has the wrong
 * JSON type is refused rather than taken for absent; the seccomp annotations of servers
 * before 1.27 count beside the fields. */
#ifndef CONTROLLER_JOB_POD_SECURITY_H
#define CONTROLLER_JOB_POD_SECURITY_H

#include "planner/modules.h"

#include <stdbool.h>

/* The strictest first: a level that nobody set is that one. */
enum pod_security_level {
    POD_SECURITY_RESTRICTED,
    POD_SECURITY_BASELINE,
    POD_SECURITY_PRIVILEGED,
};

/* As the label pod-security.kubernetes.io/enforce spells it. */
const char *pod_security_name(enum pod_security_level level);
/* False if there is no level of that name. */
bool pod_security_parse(const char *name, enum pod_security_level *ret);

/* Checks `pod`, which has metadata and spec: a pod, or the template of one. Errors:
 * HET_BAD_INPUT names the first field that the level does not allow, by its path in the
 * document of `pod`, and what to change. */
int pod_security_check(const struct het_view *pod, enum pod_security_level level,
                       struct het_error *err);

#endif
