/* fit.h - whether the current plan can still run where it is. Pure. */
#ifndef CONTROLLER_PLACEMENT_FIT_H
#define CONTROLLER_PLACEMENT_FIT_H

#include "controller/decision/pass.h"

/* Fills lost_* and is_suspect: nodes gone, unusable, changed, with fewer GPUs; limits of
 * the spec that the plan breaks. What stops pods weighs more than what only refuses new
 * ones. */
void fit_check(struct pass *pass);
/* Whether nobody hears from the node. */
bool fit_is_silent(const struct capacity_node *node);
/* When a node that will go is gone at the latest; INT64_MAX: nobody says. */
int64_t fit_leaving_at_ms(const struct capacity_node *node);
/* Whether `plan` fits the GPUs that this job may use now. */
bool fit_holds(const struct pass *pass, const struct het_plan *plan);

#endif
