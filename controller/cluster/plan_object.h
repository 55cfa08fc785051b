/* plan_object.h - how the objects of a plan are named, which ConfigMaps and pods are such
 * objects, and what they hold. Pure.
 *
 * A user who may write objects in a namespace can forge some with our labels and the job
 * as their controller. Objects that are not as we write them are ignored. A name is
 * unique and cannot be changed, so it identifies an object: it holds the name of its
 * controller, the generation, and a pod's index. So a generation has at most one plan,
 * which cannot be changed once decided on and matches its hash, and a pod whose labels
 * were changed is still the same pod. deploy/admission-policy.yaml keeps out the rest;
 * see docs/operations.md, Security. */
#ifndef CONTROLLER_CLUSTER_PLAN_OBJECT_H
#define CONTROLLER_CLUSTER_PLAN_OBJECT_H

#include "controller/job/job_spec.h"

/* No job has a higher generation. */
#define PLAN_OBJECT_LAST  ((int64_t)INT32_MAX)
/* Plans and pods are believed up to this many generations ahead of the job's status: the
 * status is written after them, and names of foreign objects are skipped. */
#define PLAN_OBJECT_AHEAD ((int64_t)4096)

/* Reads a count as we write it into an annotation, up to INT32_MAX; 0 if `text` is not
 * one, as users may edit it. */
int64_t plan_object_number(const char *text);

/* <job>-plan-<generation>; in `arena`. */
const char *plan_object_name(struct het_arena *arena, const char *job,
                             int64_t generation);
/* <job>-<generation>-<index> */
const char *plan_object_pod_name(struct het_arena *arena, const char *job,
                                 int64_t generation, int64_t index);

/* The generation of the plan, 1 to PLAN_OBJECT_LAST; 0 if `config_map` is not a plan: it
 * is mutable, not named as a plan of its controller, or labelled otherwise. */
int64_t plan_object_generation(const json_t *config_map);
/* <job>-candidate, the ConfigMap of a plan that is only shown; in `arena`. */
const char *plan_object_candidate_name(struct het_arena *arena, const char *job);
/* Whether `config_map` is the candidate of its controller. */
bool plan_object_is_candidate(const json_t *config_map);
/* Whether `pod` is named as a pod of a plan of its controller; outputs the generation (1
 * to PLAN_OBJECT_LAST) and the place. */
bool plan_object_place(const json_t *pod, int64_t *ret_generation, int64_t *ret_index);
/* Whether `object` is controlled by `job`: same namespace, name and uid. */
bool plan_object_is_of(const json_t *object, const json_t *job);
/* The highest generation in the job's status; 0: none. */
int64_t plan_object_known(const json_t *job);
/* The highest generation that is credible given the job's status. A plan or pod beyond it
 * is forged to exhaust the job's generations. */
int64_t plan_object_horizon(const json_t *job);

/* The plan.json of `config_map`, in `arena`; NULL if it cannot be read or does not match
 * ANNOTATION_PLAN_HASH. */
const struct het_plan *plan_object_read(struct het_arena *arena,
                                        const json_t *config_map);

#endif
