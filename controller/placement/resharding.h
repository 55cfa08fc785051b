/* resharding.h - which plans can resume from the job's checkpoint
 * (spec.checkpoint.resharding). Before the first generation has run there is no
 * checkpoint, and any plan may follow. Pure. */
#ifndef CONTROLLER_PLACEMENT_RESHARDING_H
#define CONTROLLER_PLACEMENT_RESHARDING_H

#include "controller/decision/pass.h"

/* Whether only the same plan may follow, on the same or equal nodes. The planner need not
 * be asked then. */
bool resharding_is_fixed(const struct pass *pass);
/* Whether a checkpoint of the current plan can be loaded by `plan`. With SamePipeline
 * each of its pipelines must divide the layers as one of the current plan does; with
 * SamePlan nothing but the names of nodes may differ. */
bool resharding_allows(const struct pass *pass, const struct het_plan *plan);
/* The current plan with its unusable nodes replaced by equal free ones (GPU type, enough
 * GPUs), first by name; NULL if there are not enough. */
const struct het_plan *resharding_move(const struct pass *pass);
/* The message for people about a plan that may not follow. */
const char *resharding_message(struct pass *pass);

#endif
