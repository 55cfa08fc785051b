/* fit.h - whether the current plan can still run where it is. Pure. */
#ifndef CONTROLLER_PLACEMENT_FIT_H
#define CONTROLLER_PLACEMENT_FIT_H

#include "controller/decision/pass.h"

/* Fills lost_* and is_suspect: nodes gone, unusable, changed, or with fewer GPUs; limits
 * of the spec that the plan breaks. A cause that stops pods outweighs one that only
 * refuses new ones. */
void fit_check(struct pass *pass);
/* Whether the node no longer reports. */
bool fit_is_silent(const struct capacity_node *node);
/* The latest time at which a leaving node is gone; INT64_MAX: not known. */
int64_t fit_leaving_at_ms(const struct capacity_node *node);
/* Whether `plan` fits the GPUs that this job may use now. */
bool fit_holds(const struct pass *pass, const struct het_plan *plan);

#endif
