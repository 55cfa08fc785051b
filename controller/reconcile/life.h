/* life.h - how a job ends, and what is left of it then. Pure. */
#ifndef CONTROLLER_RECONCILE_LIFE_H
#define CONTROLLER_RECONCILE_LIFE_H

#include "controller/reconcile/pass.h"

/* The job has failed for good because of `pod`. */
void life_fail(struct pass *pass, const struct snapshot_pod *pod);
void life_complete(struct pass *pass);
/* A finished job only ends what is left of it. */
void life_clean_finished(struct pass *pass);

#endif
