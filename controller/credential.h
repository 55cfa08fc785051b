/* credential.h - exec plugins of a kubeconfig: the program that a user entry names is run
 * and prints who its caller is. For programs that people run; a controller has no
 * business running what its kubeconfig says.
 *
 * Source: kubernetes.io, Authentication, "client-go credential plugins"; apiVersion
 * client.authentication.k8s.io/v1 and v1beta1. Departures: what is printed is used once,
 * as the caller does not live long; a program is asked anew each time. */
#ifndef CONTROLLER_CREDENTIAL_H
#define CONTROLLER_CREDENTIAL_H

#include "planner/hetplan.h"

#include <jansson.h>

enum { CREDENTIAL_MAX_BYTES = 1 << 20 }; /* of what the program prints */

/* Either a token, or certificate and key, or all; NULL: not given. */
struct credential {
    char *token, *certificate_pem, *key_pem;
};

/* Runs `exec`, the mapping of the kubeconfig in `folder` ("" : the present one), with our
 * standard input (unless it says Never) and standard error, and waits for its end.
 * `cluster` is spec.cluster of what it is told, if it wants to know. Errors:
 * HET_BAD_INPUT, HET_IO, HET_DENIED when it ended badly. */
int credential_run(const json_t *exec, const char *folder, json_t *cluster,
                   struct credential *ret, struct het_error *err);
/* Overwrites what is secret. */
void credential_fini(struct credential *credential);

#endif
