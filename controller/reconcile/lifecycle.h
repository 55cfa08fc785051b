/* lifecycle.h - the life of a job as a whole: suspended and resumed, ended by success,
 * failure or deadline, and cleaned up. Pure. */
#ifndef CONTROLLER_RECONCILE_LIFECYCLE_H
#define CONTROLLER_RECONCILE_LIFECYCLE_H

#include "controller/decision/pass.h"

/* spec.suspend: the job runs nothing, holds no GPU, and no other job waits for it. */
void lifecycle_suspend(struct pass *pass);
/* A job that is not suspended reports that, if it ever reported a suspension. */
void lifecycle_note_resumed(struct pass *pass);
/* Whether the current generation was stopped by spec.suspend. */
bool lifecycle_was_suspended(const struct pass *pass);
/* Plans the job again, as the cluster has changed since. */
void lifecycle_resume(struct pass *pass);

/* Whether the job is complete by its successPolicy; if so, this pass reports it. Needs
 * indexed pods. */
bool lifecycle_is_complete(struct pass *pass);
/* Marks the job as failed for good, for `reason`. */
void lifecycle_fail(struct pass *pass, const char *reason, const char *message);
/* Whether activeDeadlineSeconds have passed since status.startTime; if so, this pass ends
 * the job. If not, the job is looked at again when they have. */
bool lifecycle_is_past_deadline(struct pass *pass);
/* Deletes what is left of a finished job, and after ttlSecondsAfterFinished the job
 * itself. */
void lifecycle_clean_finished(struct pass *pass);

#endif
