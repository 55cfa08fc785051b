/* plan_commands.h - the commands that ask the planner: `plan` shows what plan a job would
 * get now; `explain`, why a plan is as it is; `timeline`, when its stages work and wait.
 * The planner runs in this process. */
#ifndef CONTROLLER_KUBECTL_PLAN_COMMANDS_H
#define CONTROLLER_KUBECTL_PLAN_COMMANDS_H

#include "controller/kubectl/session.h"

/* Errors, besides those of session.h and planner_question.h: HET_NO_PLAN, when no plan
 * fits. */
int htj_plan(struct session *session, struct het_error *err);
int htj_explain(struct session *session, struct het_error *err);
int htj_timeline(struct session *session, struct het_error *err);

#endif
