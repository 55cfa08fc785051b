/* failure_policy.h - spec.failurePolicy.rules: what to do when a pod fails, by the exit
 * code of a container or a condition of the pod. Each rule has the meaning that the same
 * rule of a batch/v1 Job's podFailurePolicy has for one pod. Pure. */
#ifndef CONTROLLER_JOB_FAILURE_POLICY_H
#define CONTROLLER_JOB_FAILURE_POLICY_H

#include "planner/modules.h"

#include <jansson.h>
#include <stdbool.h>

enum failure_action {
    FAILURE_COUNT,    /* the job starts again, which counts against maxRestarts */
    FAILURE_IGNORE,   /* it starts again, uncounted */
    FAILURE_FAIL_JOB, /* it ends */
};

/* Checks the list `rules` (NULL: none) against the job's pods, which are made of
 * `pod_spec`. Errors: HET_BAD_INPUT names the field and what to change. */
int failure_policy_check(const json_t *rules, const json_t *pod_spec,
                         struct het_error *err);

/* `rule` has been checked. */
enum failure_action failure_policy_action(const json_t *rule);
/* Whether the rule matches exit codes; if not, it matches conditions. */
bool failure_policy_asks_exit_code(const json_t *rule);
/* What makes the rule match `pod`, a Pod object: "container trainer ended with exit code
 * 78", "condition DisruptionTarget is True"; NULL: it does not match. A container that
 * ended with exit code 0, or has not ended, matches no rule. */
const char *failure_policy_match(struct het_arena *arena, const json_t *rule,
                                 const json_t *pod);

#endif
