/* candidate.h - a plan that is shown and not carried out: one that waits for its owner's
 * approval (replanPolicy.mode Manual), or that of a job with planOnly. It is kept whole
 * in a ConfigMap, so that what was approved is what is carried out. Pure. */
#ifndef CONTROLLER_PLACEMENT_CANDIDATE_H
#define CONTROLLER_PLACEMENT_CANDIDATE_H

#include "controller/decision/pass.h"

/* Shows `plan` in the status. */
void candidate_show(struct pass *pass, const struct het_plan *plan);
/* There is none any more. */
void candidate_drop(struct pass *pass);
/* Makes the ConfigMap of what is shown after this pass, and removes that of another plan.
 * Where it cannot be written, the job goes on without. Before pass_write_status. */
void candidate_keep(struct pass *pass);
/* The candidate that replanPolicy.approvedPlanHash names, if it can be carried out now;
 * NULL otherwise. */
const struct het_plan *candidate_find_approved(struct pass *pass);
/* Words about an approval that does not speak of the candidate `hash` (NULL: there is
 * none), to be added to a message; "" if there is no such approval. */
const char *candidate_stale_approval(struct pass *pass, const char *hash);
/* Whether `plan` may replace the current one without being asked for: else it is shown,
 * and PlanOutdated says what to do. */
bool candidate_may_follow(struct pass *pass, const struct het_plan *plan,
                          const char *why);

#endif
