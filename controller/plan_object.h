/* plan_object.h - which ConfigMaps are plans of a job, and what they hold. Pure.
 *
 * Whoever may write ConfigMaps in a namespace may write one with our labels and the job
 * as its owner. What is not as we write it is passed over: so there is one plan of a
 * generation at most (its name says which), it cannot be changed after it was decided on,
 * and it is what its hash says. deploy/admission-policy.yaml keeps the rest out; see
 * docs/operations.md, Security. */
#ifndef CONTROLLER_PLAN_OBJECT_H
#define CONTROLLER_PLAN_OBJECT_H

#include "controller/job_spec.h"

/* A count or generation as we write it into a label or annotation, up to INT32_MAX; 0 if
 * `text` is none: anybody may have edited it. */
int64_t plan_object_number(const char *text);
/* The generation of the plan, up to INT32_MAX; 0 if `config_map` is no plan: mutable, or
 * not named <job>-plan-<generation> as its labels say. */
int64_t plan_object_generation(const json_t *config_map);
/* Its plan.json, in `arena`; NULL if it cannot be read, or is not what
 * ANNOTATION_PLAN_HASH says. */
const struct het_plan *plan_object_read(struct het_arena *arena,
                                        const json_t *config_map);

#endif
