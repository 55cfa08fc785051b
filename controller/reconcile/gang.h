/* gang.h - the pods of one generation, all or none. Pure. */
#ifndef CONTROLLER_RECONCILE_GANG_H
#define CONTROLLER_RECONCILE_GANG_H

#include "controller/decision/pass.h"

/* Brings the current generation to its nodes:
 *
 *   1. its pods are created, gated: they hold no GPU; those of a job in a queue after 2
 *   2. older pods end
 *   3. what is bound to its nodes is made sure of; the plan must still fit beside it
 *   4. the Service turns to it, and all gates are lifted in one burst
 *   5. all pods are bound within gangTimeoutSeconds, or the generation is given up, and
 *      the nodes that kept it waiting are left out for GANG_AVOID_MS, doubled each time
 *
 * Without gates (an old server, or spec.scheduling.gang None) the pods are created after
 * 3. Returns true once all pods may be scheduled.
 *
 * At 3 nothing may be missing of what was bound before 3 began: with a store that lags
 * behind, GPUs that somebody else's pod has by now would be counted as free, and the gang
 * would hold all others while it waits for them. Of GANG_NODE_READS nodes at most the
 * pods are read, node by node, from the API server's storage. For more that would be as
 * many requests, or one for all bound pods of the cluster; there one gated pod of the
 * generation is marked (ANNOTATION_FIT_MARK), and 4 waits until the watch of pods has
 * come to the version that this write made (snapshot.pods_version). That is as good as
 * reading all pods when the mark was written: versions of one kind are in the order of
 * its writes, and a watch of all pods tells every change in that order, none left out, so
 * whoever has heard of the mark has heard of every pod that was bound before it. It does
 * not matter through which replica of the API server either came, nor how old its cache
 * was. The gates can never be lifted by a mark of before: it is known by the time at
 * which this pass of this process asked for it. If the watch does not come so far within
 * GANG_MARK_MS (it is broken, or being begun again), all bound pods are read after all.
 * Either way what was made sure of holds for PASS_FRESH_MS. */
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
/* Nodes of a plan that are read one by one. */
#define GANG_NODE_READS      4
/* How long the watch has for the mark, and until it is looked for again, at first. */
#define GANG_MARK_MS         3000
#define GANG_MARK_LOOK_MS    20

#endif
