/* replan.h - whether a healthy job should move to a better plan (spec.replanPolicy), and
 * the owner's approval where required. Pure. */
#ifndef CONTROLLER_RECONCILE_REPLAN_H
#define CONTROLLER_RECONCILE_REPLAN_H

#include "controller/decision/pass.h"

/* After the input of a healthy job has changed: asks for a plan once it is due (debounce,
 * cool-down, hourly cap), weighs it (replan_rule.h), and commits, shows or rejects it.
 * Reports the numbers in status.lastReplanDecision and an event. */
void replan_consider(struct pass *pass);

#endif
