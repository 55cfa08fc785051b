/* preemption.h - a waiting job claims GPUs from jobs of lower precedence, and those jobs
 * give them up. Pure.
 *
 * A claim is a plan like any other, with its ConfigMap as the reservation; other_jobs.h
 * describes the annotation. The planner is asked first whether a plan would fit; if none
 * does, no job is disturbed. The pods of the plan are created when the GPUs it needs are
 * free. Running jobs claim nothing, so a job that gave GPUs up cannot take them back from
 * one of its own priority: two jobs cannot preempt each other in turns. */
#ifndef CONTROLLER_PLACEMENT_PREEMPTION_H
#define CONTROLLER_PLACEMENT_PREEMPTION_H

#include "controller/decision/pass.h"

/* After giving up a claim, a job makes no other for this long; twice as long after each
 * further one in a row, up to an hour. */
#define PREEMPTION_PAUSE_MS     ((int64_t)300000)
#define PREEMPTION_PAUSE_MAX_MS ((int64_t)3600000)

enum preemption_step {
    PREEMPTION_NOTHING, /* no plan would fit, whatever others gave up, or no job has to */
    PREEMPTION_ASKING,  /* the planner is working on it */
    PREEMPTION_MADE,    /* a generation was decided in this pass */
};
/* For a job that no plan fits on free GPUs: seeks a plan on GPUs that others must give
 * up; if there is none either, finds how many GPUs are missing (demand.h). `trigger` and
 * the counters go into the generation; a planner that failed is not asked again before
 * `retry_ms` (monotonic). */
enum preemption_step preemption_seek(struct pass *pass, const char *trigger,
                                     int64_t restarts, int64_t replans, int64_t retry_ms);

/* Whether the current plan waits for GPUs that others still hold; sets the conditions.
 * Gives up a claim that is not served in time and stops its generation. */
bool preemption_is_waiting(struct pass *pass);
/* Whether the whole current generation was stopped for a claim. */
bool preemption_has_stopped(const struct pass *pass);
/* A generation that keeps running although its spec is refused cannot be re-planned on
 * what a claim of higher priority leaves: stops it as a whole for such a claim. True if
 * it is stopped, now or earlier. */
bool preemption_stops_refused(struct pass *pass);

#endif
