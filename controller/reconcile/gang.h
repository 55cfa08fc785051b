/* gang.h - the pods of one generation, all or none. Pure. */
#ifndef CONTROLLER_RECONCILE_GANG_H
#define CONTROLLER_RECONCILE_GANG_H

#include "controller/reconcile/pass.h"

/* Brings the current generation to its nodes:
 *
 *   1. its pods are created, gated: they hold no GPU; those of a job in a queue after 2
 *   2. older pods end
 *   3. the pods of its nodes are read anew; the plan must still fit them
 *   4. the Service turns to it, and all gates are lifted in one burst
 *   5. all pods are bound within gangTimeoutSeconds, or the generation is given up, and
 *      the nodes that kept it waiting are left out for GANG_AVOID_MS, doubled each time
 *
 * Without gates (an old server, or spec.scheduling.gang None) the pods are created after
 * 3. Returns true once all pods may be scheduled. */
bool gang_form(struct pass *pass);
/* Stops a generation that has not begun while its spec is refused: pods that are missing
 * cannot be made any more, and what waits behind gates would hold its GPUs for ever. True
 * if it was so; it begins anew once the spec is accepted. */
bool gang_stops_refused(struct pass *pass);
/* Conditions Placed and Running from the pods there are. */
void gang_report(struct pass *pass);

#define GANG_AVOID_MS        ((int64_t)600000)
#define GANG_AVOID_DOUBLINGS 6
/* Of the annotation that names them; all annotations of an object have 256 KiB. */
#define GANG_AVOID_BYTES     131072
/* Of them in a message. */
#define GANG_NAMED_NODES     4
/* Nodes of a plan that are read one by one; with more, all bound pods are read at once.
 */
#define GANG_NODE_READS      32

#endif
