/* plan_object.h - what the objects of a plan are called, which ConfigMaps and pods are
 * such objects, and what they hold. Pure.
 *
 * Whoever may write objects in a namespace may write some with our labels and the job as
 * their controller. What is not as we write it is passed over. A name cannot be changed
 * and is there once, so it says whose an object is: that of its controller, the
 * generation, and a pod's index. So there is one plan of a generation at most, it cannot
 * be changed after it was decided on, and it is what its hash says; and a pod with other
 * labels is still the pod that it was. deploy/admission-policy.yaml keeps the rest out;
 * see docs/operations.md, Security. */
#ifndef CONTROLLER_CLUSTER_PLAN_OBJECT_H
#define CONTROLLER_CLUSTER_PLAN_OBJECT_H

#include "controller/job/job_spec.h"

/* No job has a higher generation. */
#define PLAN_OBJECT_LAST  ((int64_t)INT32_MAX)
/* Plans and pods are believed that are so far ahead of what the job's status says: it is
 * written after them, and names that somebody else has are skipped. */
#define PLAN_OBJECT_AHEAD ((int64_t)4096)

/* A count as we write it into an annotation, up to INT32_MAX; 0 if `text` is none:
 * anybody may have edited it. */
int64_t plan_object_number(const char *text);

/* <job>-plan-<generation>; in `arena`. */
const char *plan_object_name(struct het_arena *arena, const char *job,
                             int64_t generation);
/* <job>-<generation>-<index> */
const char *plan_object_pod_name(struct het_arena *arena, const char *job,
                                 int64_t generation, int64_t index);

/* The generation of the plan, 1 to PLAN_OBJECT_LAST; 0 if `config_map` is no plan:
 * mutable, not named as a plan of its controller is, or labelled otherwise. */
int64_t plan_object_generation(const json_t *config_map);
/* <job>-candidate, the ConfigMap of a plan that is shown only; in `arena`. */
const char *plan_object_candidate_name(struct het_arena *arena, const char *job);
/* Whether `config_map` is one of its controller. */
bool plan_object_is_candidate(const json_t *config_map);
/* Whether `pod` is named as a pod of a plan of its controller is: of which generation (1
 * to PLAN_OBJECT_LAST), at which place. */
bool plan_object_place(const json_t *pod, int64_t *ret_generation, int64_t *ret_index);
/* Whether `object` is controlled by `job`: same namespace, name and uid. */
bool plan_object_is_of(const json_t *object, const json_t *job);
/* The highest generation that the job's status tells of; 0: of none. */
int64_t plan_object_known(const json_t *job);
/* The highest generation that the job's status makes credible: who writes a plan or pod
 * beyond it wants its generations to run out. */
int64_t plan_object_horizon(const json_t *job);

/* Its plan.json, in `arena`; NULL if it cannot be read, or is not what
 * ANNOTATION_PLAN_HASH says. */
const struct het_plan *plan_object_read(struct het_arena *arena,
                                        const json_t *config_map);

#endif
