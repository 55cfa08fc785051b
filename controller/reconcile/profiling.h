/* profiling.h - a job whose profile grows (spec.model.profilePolicy OnDemand): has the
 * types of GPUs measured that the profile lacks, adds what comes of it, and says how far
 * that is (condition ProfilesReady). Pure.
 *
 * A measurement starts when a node of its type has the GPUs free. What it takes is seen
 * by all jobs as somebody else's pod. A measurement that failed stays as it is, so that
 * nothing is tried without end; whoever deletes its Job has it tried again. */
#ifndef CONTROLLER_RECONCILE_PROFILING_H
#define CONTROLLER_RECONCILE_PROFILING_H

#include "controller/decision/pass.h"

/* Another job leaves the result to the owner of the measurement for so long. */
#define PROFILING_OWNER_MS  ((int64_t)10000)
/* Of a complete Job, the pod that says the result is waited for so long. */
#define PROFILING_RESULT_MS ((int64_t)60000)

/* Decides on what is wanted, for a job that is accepted and not suspended, and sets the
 * condition. */
void profiling_keep(struct pass *pass);
/* Ends measurements that are not wanted (any more). */
void profiling_drop_spent(struct pass *pass);
/* Whether nothing can be planned before something is measured: the profile has none of
 * the types that the job may use. Says so, after profiling_keep. */
bool profiling_holds_plan(struct pass *pass);

#endif
