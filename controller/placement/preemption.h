/* preemption.h - GPUs that other jobs hold and this one gets: a job that waits claims them
 * from jobs that come after it, and a job that is claimed from gives them up. Pure.
 *
 * The claim is a plan like any other, and its ConfigMap the reservation; other_jobs.h
 * says what is written on it. The planner is asked first whether a plan would fit, and
 * nobody is disturbed if none does. The pods of the plan are created when what it needs
 * is free. Jobs that run claim nothing, so whoever gave GPUs up does not take them back
 * from a job of its own priority: two jobs cannot preempt each other in turns. */
#ifndef CONTROLLER_PLACEMENT_PREEMPTION_H
#define CONTROLLER_PLACEMENT_PREEMPTION_H

#include "controller/decision/pass.h"

/* After a claim was given up, the job lays no other for so long; for twice as long after
 * each more in a row, up to an hour. */
#define PREEMPTION_PAUSE_MS     ((int64_t)300000)
#define PREEMPTION_PAUSE_MAX_MS ((int64_t)3600000)

enum preemption_step {
    PREEMPTION_NOTHING, /* no plan would fit, whatever others gave up; or nobody has to */
    PREEMPTION_ASKING,  /* the planner is at work on it */
    PREEMPTION_MADE,    /* a generation was decided, in this pass */
};
/* No plan fits what is free, so that others have to give GPUs up; if none would do even
 * then, how many are missing is found out (demand.h). `trigger` and the counters are
 * those of the generation; a planner that broke is not asked again before `retry_ms`
 * (monotonic). */
enum preemption_step preemption_seek(struct pass *pass, const char *trigger,
                                     int64_t restarts, int64_t replans, int64_t retry_ms);

/* Whether the current plan waits for GPUs that others still hold; conditions say so. A
 * claim that is not served in time is given up here, and the generation stopped. */
bool preemption_is_waiting(struct pass *pass);
/* Whether the current generation was stopped whole for such a claim. */
bool preemption_has_stopped(const struct pass *pass);
/* A generation that goes on though the spec is refused cannot be planned anew within what
 * a claim of higher priority leaves: stops it whole for one. True if it did, or had. */
bool preemption_stops_refused(struct pass *pass);

#endif
