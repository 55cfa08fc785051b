/* planning.h - asks the planner, and says why there is no plan. Pure. */
#ifndef CONTROLLER_PLACEMENT_PLANNING_H
#define CONTROLLER_PLACEMENT_PLANNING_H

#include "controller/decision/pass.h"

/* A lost node is answered after this quiet time at the latest: simultaneous failures are
 * collected, but nobody waits for a debounce that is meant for improvements. */
#define LOSS_DEBOUNCE_MS  ((int64_t)5000)
/* However restless the cluster is, a better plan is looked for after so many debounces.
 */
#define DEBOUNCES_AT_MOST 4

/* LOSS_DEBOUNCE_MS, or debounceSeconds if that is less. */
int64_t planning_quiet_ms(const struct job_spec *spec);
/* Whether the planner's last answer is to the present input. */
bool planning_is_answered(const struct pass *pass);
/* Asks for a plan for the present input, unless it is asked for, answered, or just broke,
 * or the planner is at work for others (pass_may_ask). Returns true when nothing can be
 * asked because there is no GPU at all. */
bool planning_ask(struct pass *pass, bool is_urgent);
/* A plan of the last answer, and what it takes to get there. */
struct planning_offer {
    const struct het_plan *plan;
    double migration_s, write_s; /* of the checkpoint; 0: the planner did not say */
};
/* All that the last answer offers and that can be used now, into `ret`: of plans that are
 * good enough the one that moves least, then the fastest one if it is another. A plan can
 * be used if it is for the present input; or the nodes have changed while the planner was
 * at work, or since (they may do so without end), but it still fits. Returns how many. */
size_t planning_offers(struct pass *pass, struct planning_offer ret[2]);

/* Conditions of a job that has no plan, or whose planner is at work. */
void planning_wait(struct pass *pass, const char *reason, const char *message);
void planning_wait_for_planner(struct pass *pass);
/* Other jobs are planned before it. */
void planning_wait_for_turn(struct pass *pass);
/* The planner could not use what it was given; mostly that is the profile. */
void planning_report_refusal(struct pass *pass);
/* The API server refused our objects (invalid pod, quota, admission): the job says so,
 * holds no GPUs meanwhile, and tries again after a back-off, or when its spec changes.
 * True if it has to wait now. */
bool planning_wait_for_refused(struct pass *pass);

/* LinksAssumed: what the plan takes for granted of the links between its GPUs. */
void planning_tell_links(struct pass *pass, const struct het_plan *plan);
/* GPUsUnknown: GPUs of which nobody knows what they are. */
void planning_tell_unknown(struct pass *pass, const struct het_unused *groups,
                           size_t count);

/* Of a job with planOnly: computes the plan and shows it, and nothing else. */
void planning_preview(struct pass *pass);

/* The job has no generation that could run: gets a plan and decides on it. `trigger` and
 * the counters are those of the new generation. True if it was decided. */
bool planning_seek(struct pass *pass, const char *trigger, int64_t restarts,
                   int64_t replans, const char *event);

#endif
