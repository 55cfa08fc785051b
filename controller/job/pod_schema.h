/* pod_schema.h - whether every field of a pod template is a field of pods. A CRD keeps
 * unknown fields and the API server drops them from pods, so without this check a
 * misspelt field would be silently ignored. Pure.
 *
 * Source: the schema of core/v1 PodTemplateSpec as published by the API servers of
 * Kubernetes 1.30 to 1.34 (/openapi/v3/api/v1), with the fields of all of them. Value
 * types are not checked: the API server refuses wrong ones. */
#ifndef CONTROLLER_JOB_POD_SCHEMA_H
#define CONTROLLER_JOB_POD_SCHEMA_H

#include "planner/modules.h"

/* The newest Kubernetes whose fields are known: 1.34. */
#define POD_SCHEMA_MINOR 34

/* Checks metadata and spec of `pod_template`. Errors: HET_BAD_INPUT names the first
 * unknown field by its path in the document of `pod_template`, and the field probably
 * meant. */
int pod_schema_check(const struct het_view *pod_template, struct het_error *err);

#endif
