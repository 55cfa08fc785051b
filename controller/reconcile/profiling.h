/* profiling.h - a job whose profile grows (spec.model.profilePolicy OnDemand): has the
 * GPU types that the profile lacks measured, adds the results to the profile, and reports
 * progress (condition ProfilesReady). Pure.
 *
 * A measurement starts when a node of its type has enough free GPUs. All jobs see its pod
 * as foreign. A failed measurement stays, so that it is not repeated endlessly; deleting
 * its Job repeats it. */
#ifndef CONTROLLER_RECONCILE_PROFILING_H
#define CONTROLLER_RECONCILE_PROFILING_H

#include "controller/decision/pass.h"

/* How long other jobs leave the result to the owner of the measurement. */
#define PROFILING_OWNER_MS  ((int64_t)10000)
/* How long to wait for the pod with the result of a complete Job. */
#define PROFILING_RESULT_MS ((int64_t)60000)

/* Decides on the measurements of a job that is accepted and not suspended, and sets the
 * condition. */
void profiling_keep(struct pass *pass);
/* Ends measurements that are not wanted, or no longer. */
void profiling_drop_spent(struct pass *pass);
/* Whether planning must wait for a measurement, because the profile has none of the types
 * that the job may use; sets the condition if so. Call after profiling_keep. */
bool profiling_holds_plan(struct pass *pass);

#endif
