/* planner_question.h - reads the planner's input for one job from the API server and
 * builds the controller's question from it (preview.h). */
#ifndef CONTROLLER_KUBECTL_PLANNER_QUESTION_H
#define CONTROLLER_KUBECTL_PLANNER_QUESTION_H

#include "controller/kubectl/session.h"

/* The ConfigMaps of an installation by the chart, used where options name no others. */
#define PLANNER_QUESTION_NAMESPACE "heterotrain-system"
#define PLANNER_QUESTION_HARDWARE  "heterotrain-hardware"
#define PLANNER_QUESTION_HARDWARE_MAP                                                    \
    PLANNER_QUESTION_NAMESPACE "/" PLANNER_QUESTION_HARDWARE
#define PLANNER_QUESTION_CONFIG_MAP PLANNER_QUESTION_NAMESPACE "/heterotrain-config"

/* Builds the question about `job`, which is in the cluster or, with `is_in_cluster`
 * false, would be in the session's namespace. Without `plan`: about the free GPUs, which
 * needs the right to list nodes and pods. With `plan`: about that plan, whose nodes count
 * as present; what may not be listed is left out. Notes report what could not be read.
 * Sets `*ret` to the document for het_question_read, a new reference. */
int planner_question_make(struct session *session, json_t *job, bool is_in_cluster,
                          const struct het_plan *plan, json_t **ret,
                          struct het_error *err);

#endif
