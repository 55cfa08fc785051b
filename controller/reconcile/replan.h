/* replan.h - whether a job that runs well should move to a better plan
 * (spec.replanPolicy), and the owner's approval where that is asked for. Pure. */
#ifndef CONTROLLER_RECONCILE_REPLAN_H
#define CONTROLLER_RECONCILE_REPLAN_H

#include "controller/decision/pass.h"

/* The input changed under a job that runs well: asks for a plan once that is due
 * (debounce, cool-down, hourly cap), weighs it (replan_rule.h), and commits it, shows it,
 * or turns it down, with the numbers in status.lastReplanDecision and an event. */
void replan_consider(struct pass *pass);

#endif
