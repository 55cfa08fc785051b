/* restart.h - a generation that broke: failed and lost pods, lost nodes. Pure. */
#ifndef CONTROLLER_RECONCILE_RESTART_H
#define CONTROLLER_RECONCILE_RESTART_H

#include "controller/decision/pass.h"

/* Replaces a generation that cannot go on: with the same plan if that still fits, else
 * with a new one. */
void restart_generation(struct pass *pass, const char *trigger, const char *message,
                        int64_t restarts);
/* A pod failed: again after the back-off, until the limit; what the infrastructure did is
 * not counted. Returns true if that is the case and the pass is over. */
bool restart_broken(struct pass *pass);
/* The plan cannot run as it is, and its pods have not failed (yet). */
void restart_lost(struct pass *pass);
/* The pods are not what the spec makes of the plan any more. True if a generation of new
 * ones was decided. */
bool restart_changed(struct pass *pass);
/* A retired generation never starts again; what it was retired for has its own story
 * (back-off of a failed pod), all else gets a new generation. */
void restart_retired(struct pass *pass);

#endif
