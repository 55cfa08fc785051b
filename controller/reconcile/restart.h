/* restart.h - handles a broken generation: failed and lost pods, lost nodes. Pure. */
#ifndef CONTROLLER_RECONCILE_RESTART_H
#define CONTROLLER_RECONCILE_RESTART_H

#include "controller/decision/pass.h"

/* Replaces a generation that cannot go on: with the same plan if that still fits, else
 * with a new one. */
void restart_generation(struct pass *pass, const char *trigger, const char *message,
                        int64_t restarts);
/* Handles a failed pod: restarts after the back-off, up to the limit; failures caused by
 * the infrastructure are not counted. True if a pod failed; the pass is then over. */
bool restart_broken(struct pass *pass);
/* Handles a plan that cannot run as it is, although its pods have not failed (yet). */
void restart_lost(struct pass *pass);
/* Handles pods that no longer match the spec. True if a generation of new ones was
 * decided. */
bool restart_changed(struct pass *pass);
/* Follows up on a retired generation, which never starts again: some reasons have their
 * own handling (back-off of a failed pod), all others lead to a new generation. */
void restart_retired(struct pass *pass);

#endif
