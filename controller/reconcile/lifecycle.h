/* lifecycle.h - the life of a job as a whole: suspended and resumed, ended by success,
 * failure or deadline, and what is left of it then. Pure. */
#ifndef CONTROLLER_RECONCILE_LIFECYCLE_H
#define CONTROLLER_RECONCILE_LIFECYCLE_H

#include "controller/decision/pass.h"

/* spec.suspend: nothing runs, no GPU is held, nobody waits for this job. */
void lifecycle_suspend(struct pass *pass);
/* A job that is not suspended (any more) says so, if it ever said that it was. */
void lifecycle_note_resumed(struct pass *pass);
/* Whether the current generation was stopped by spec.suspend. */
bool lifecycle_was_suspended(const struct pass *pass);
/* It is planned anew: the cluster is another than it was. */
void lifecycle_resume(struct pass *pass);

/* The job is over as successPolicy says, and this pass told so. Needs indexed pods. */
bool lifecycle_is_complete(struct pass *pass);
/* The job has failed for good, for `reason`. */
void lifecycle_fail(struct pass *pass, const char *reason, const char *message);
/* activeDeadlineSeconds have passed since status.startTime, and this pass ended the job;
 * else it is looked at again when they will have. */
bool lifecycle_is_past_deadline(struct pass *pass);
/* A finished job ends what is left of it, and after ttlSecondsAfterFinished itself. */
void lifecycle_clean_finished(struct pass *pass);

#endif
