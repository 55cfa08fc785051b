/* reconcile.h - turns a snapshot into actions. Pure: no network, no clock, no failure.
 * The actions depend only on the present objects, never on their history, so a crash
 * between any two actions is harmless: the next pass starts from the present objects.
 *
 * Creating its plan ConfigMap decides on a generation of pods; the newest ConfigMap is
 * the desired state. Older pods go first. When none of them can hold a GPU or run a rank,
 * the Service switches to the new generation and its pods are created. */
#ifndef CONTROLLER_RECONCILE_RECONCILE_H
#define CONTROLLER_RECONCILE_RECONCILE_H

#include "controller/decision/decision.h"

/* `arena` holds strings and the array of actions; decision_fini releases the objects. */
void reconcile(struct het_arena *arena, const struct snapshot *snapshot,
               struct decision *ret);

#endif
