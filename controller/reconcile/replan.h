/* replan.h - whether a job that runs well should move to a better plan. Pure. */
#ifndef CONTROLLER_RECONCILE_REPLAN_H
#define CONTROLLER_RECONCILE_REPLAN_H

#include "controller/reconcile/pass.h"

/* The input changed under a job that runs well: is there a plan that is better by the
 * job's threshold? Throughput gain is old step time / new step time - 1. */
void replan_consider(struct pass *pass);

#endif
