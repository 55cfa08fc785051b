/* change_commands.h - the commands that change a job: `approve` carries out the plan that
 * waits for it, `suspend` and `resume` set spec.suspend. Each is one merge patch. */
#ifndef CONTROLLER_KUBECTL_CHANGE_COMMANDS_H
#define CONTROLLER_KUBECTL_CHANGE_COMMANDS_H

#include "controller/kubectl/session.h"

enum {
    CHANGE_TRIES = 5,       /* of an approval, while others change the job */
    CHANGE_LEAST_DIGITS = 8 /* of a hash */
};

/* Approves what status.candidate shows, and shows it; with a hash (whole, or its first
 * digits) only that plan. The patch holds for the very object that was read: what is
 * approved is what was shown. Errors: HET_NO_PLAN, if none waits; HET_CONFLICT, if it is
 * another one than the hash says. */
int htj_approve(struct session *session, struct het_error *err);
/* All jobs that are named; goes on to the next after one that fails. */
int htj_suspend(struct session *session, struct het_error *err);
int htj_resume(struct session *session, struct het_error *err);

#endif
