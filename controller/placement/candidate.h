/* candidate.h - a plan that is only shown: one that waits for its owner's approval
 * (replanPolicy.mode Manual), or the plan of a job with planOnly. A ConfigMap holds the
 * whole plan, so that exactly the approved plan is carried out. Pure. */
#ifndef CONTROLLER_PLACEMENT_CANDIDATE_H
#define CONTROLLER_PLACEMENT_CANDIDATE_H

#include "controller/decision/pass.h"

/* Shows `plan` in the status. */
void candidate_show(struct pass *pass, const struct het_plan *plan);
/* Removes the candidate. */
void candidate_drop(struct pass *pass);
/* Creates the ConfigMap of the candidate that this pass shows, and removes that of any
 * other. If it cannot be written, the job goes on without it. Call before
 * pass_write_status. */
void candidate_keep(struct pass *pass);
/* The candidate that replanPolicy.approvedPlanHash names, if it can be carried out now;
 * NULL otherwise. */
const struct het_plan *candidate_find_approved(struct pass *pass);
/* Text to append to a message when the approval names another plan than the candidate
 * `hash` (NULL: there is none); "" if there is no such approval. */
const char *candidate_stale_approval(struct pass *pass, const char *hash);
/* Whether `plan` may replace the current one without approval. If not, shows it, and
 * PlanOutdated says what to do. */
bool candidate_may_follow(struct pass *pass, const struct het_plan *plan,
                          const char *why);

#endif
