/* change_commands.h - the commands that change a job: `approve` approves the candidate
 * plan, `suspend` and `resume` set spec.suspend. Each is one merge patch. */
#ifndef CONTROLLER_KUBECTL_CHANGE_COMMANDS_H
#define CONTROLLER_KUBECTL_CHANGE_COMMANDS_H

#include "controller/kubectl/session.h"

enum {
    CHANGE_TRIES = 5,       /* of an approval, while others change the job */
    CHANGE_LEAST_DIGITS = 8 /* of a hash */
};

/* Approves and shows the plan in status.candidate; with a hash (whole, or its first
 * digits) only that plan. The patch applies only to the object as it was read, so exactly
 * the shown plan is approved. Errors: HET_NO_PLAN if none waits; HET_CONFLICT if the hash
 * names another one. */
int htj_approve(struct session *session, struct het_error *err);
/* Change all named jobs; a failure does not stop the rest. */
int htj_suspend(struct session *session, struct het_error *err);
int htj_resume(struct session *session, struct het_error *err);

#endif
