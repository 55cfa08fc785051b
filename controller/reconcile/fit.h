/* fit.h - whether the current plan can still run where it is. Pure. */
#ifndef CONTROLLER_RECONCILE_FIT_H
#define CONTROLLER_RECONCILE_FIT_H

#include "controller/reconcile/pass.h"

/* Fills lost_* and is_suspect: nodes gone, unusable, changed, with fewer GPUs; limits of
 * the spec that the plan breaks. What stops pods weighs more than what only refuses new
 * ones. */
void places_check(struct pass *pass);
/* Whether nobody hears from the node. */
bool places_is_silent(const struct capacity_node *node);
/* When a node that will go is gone at the latest; INT64_MAX: nobody says. */
int64_t places_leaving_at_ms(const struct capacity_node *node);
/* Whether `plan` fits the GPUs that this job may use now. */
bool places_fit(const struct pass *pass, const struct het_plan *plan);

#endif
