/* pod_schema.h - whether every field of a pod template is one that pods have. A CRD keeps
 * what it does not know, and an API server drops what a pod does not have, so without
 * this a misspelt field would be as if it were not there. Pure.
 *
 * Source: the schema of core/v1 PodTemplateSpec as API servers of Kubernetes 1.30 to 1.34
 * publish it (/openapi/v3/api/v1), all their fields together. Types of values are not
 * looked at: the API server refuses wrong ones. */
#ifndef CONTROLLER_JOB_POD_SCHEMA_H
#define CONTROLLER_JOB_POD_SCHEMA_H

#include "planner/modules.h"

/* The newest Kubernetes whose fields are known: 1.34. */
#define POD_SCHEMA_MINOR 34

/* Checks `pod_template`, metadata and spec. Errors: HET_BAD_INPUT names the first field
 * that is none by its path in the document of `pod_template`, and the one that was
 * probably meant. */
int pod_schema_check(const struct het_view *pod_template, struct het_error *err);

#endif
