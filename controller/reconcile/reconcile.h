/* reconcile.h - snapshot -> actions. Pure: no network, no clock, no failure. What follows
 * depends on what is there, never on how it came about, so a crash between any two
 * actions is harmless: the next pass starts again from what is there.
 *
 * A generation of pods is decided by creating its plan ConfigMap; from then on the newest
 * ConfigMap says what should be. Older pods go first; when none of them can hold a GPU or
 * run a rank any more, the Service turns to the new generation and its pods are created.
 */
#ifndef CONTROLLER_RECONCILE_RECONCILE_H
#define CONTROLLER_RECONCILE_RECONCILE_H

#include "controller/decision/decision.h"

/* `arena` holds strings and the array of actions; objects are given back by
 * decision_fini. */
void reconcile(struct het_arena *arena, const struct snapshot *snapshot,
               struct decision *ret);

#endif
