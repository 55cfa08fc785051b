/* resharding.h - which plans can go on from a checkpoint of the job
 * (spec.checkpoint.resharding). Before the first generation ran there is none, and any
 * plan may follow. Pure. */
#ifndef CONTROLLER_PLACEMENT_RESHARDING_H
#define CONTROLLER_PLACEMENT_RESHARDING_H

#include "controller/decision/pass.h"

/* Whether only the very same plan may follow, on the same or on equal nodes: there is
 * nothing to ask the planner. */
bool resharding_is_fixed(const struct pass *pass);
/* Whether a checkpoint of the current plan can be loaded by `plan`. With SamePipeline
 * each pipeline of it must be cut into the same layers as one of the current plan; with
 * SamePlan nothing but the names of nodes may differ. */
bool resharding_allows(const struct pass *pass, const struct het_plan *plan);
/* The current plan with the nodes that cannot be used exchanged for free ones that are
 * equal (GPU type, enough GPUs), the first by name; NULL if there are not enough. */
const struct het_plan *resharding_move(const struct pass *pass);
/* What to tell people of a plan that may not follow. */
const char *resharding_message(struct pass *pass);

#endif
