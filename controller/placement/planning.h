/* planning.h - asks the planner, and reports why there is no plan. Pure. */
#ifndef CONTROLLER_PLACEMENT_PLANNING_H
#define CONTROLLER_PLACEMENT_PLANNING_H

#include "controller/decision/pass.h"

/* The longest quiet time before reacting to a lost node: it collects simultaneous
 * failures without waiting for the debounce, which is meant for improvements. */
#define LOSS_DEBOUNCE_MS  ((int64_t)5000)
/* A better plan is looked for after this many debounces, even if the cluster keeps
 * changing. */
#define DEBOUNCES_AT_MOST 4

/* The lesser of LOSS_DEBOUNCE_MS and debounceSeconds. */
int64_t planning_quiet_ms(const struct job_spec *spec);
/* Whether the planner's last answer is for the present input. */
bool planning_is_answered(const struct pass *pass);
/* Asks for a plan for the present input, unless it is already asked for or answered, the
 * planner has just failed on it, or the planner works for others (pass_may_ask). Returns
 * true if there is no GPU to ask about. */
bool planning_ask(struct pass *pass, bool is_urgent);
/* A plan of the last answer, and what the move to it takes. */
struct planning_offer {
    const struct het_plan *plan;
    double migration_s, write_s; /* of the checkpoint; 0: not given by the planner */
};
/* Fills `ret` with the usable plans of the last answer: of the plans that are good enough
 * the one that moves least, then the fastest if that is another. A plan is usable if it
 * is for the present input, or if the nodes have changed since the question (they may
 * keep changing) and it still fits. Returns how many. */
size_t planning_offers(struct pass *pass, struct planning_offer ret[2]);

/* Set the conditions of a job that has no plan, or whose planner is working. */
void planning_wait(struct pass *pass, const char *reason, const char *message);
void planning_wait_for_planner(struct pass *pass);
/* Other jobs are planned first. */
void planning_wait_for_turn(struct pass *pass);
/* The planner rejected its input, mostly because of the profile. */
void planning_report_refusal(struct pass *pass);
/* After the API server refused our objects (invalid pod, quota, admission): the job
 * reports it, holds no GPUs meanwhile, and tries again after a back-off or when its spec
 * changes. True if it has to wait now. */
bool planning_wait_for_refused(struct pass *pass);

/* Sets LinksAssumed: what the plan assumes about the links between its GPUs. */
void planning_tell_links(struct pass *pass, const struct het_plan *plan);
/* Sets GPUsUnknown: GPUs whose type is not known. */
void planning_tell_unknown(struct pass *pass, const struct het_unused *groups,
                           size_t count);

/* For a job with planOnly: computes the plan and only shows it. */
void planning_preview(struct pass *pass);

/* For a job without a generation that can run: gets a plan and decides on it. `trigger`
 * and the counters go into the new generation. True if one was decided. */
bool planning_seek(struct pass *pass, const char *trigger, int64_t restarts,
                   int64_t replans, const char *event);

#endif
