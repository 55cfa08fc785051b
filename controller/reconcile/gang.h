/* gang.h - the pods of one generation, all or none. Pure. */
#ifndef CONTROLLER_RECONCILE_GANG_H
#define CONTROLLER_RECONCILE_GANG_H

#include "controller/decision/pass.h"

/* Places the current generation on its nodes:
 *
 *   1. its pods are created with gates and hold no GPU (for a job in a queue: after 2)
 *   2. older pods end
 *   3. the pods bound to its nodes are verified; the plan must still fit beside them
 *   4. the Service switches to it, and all gates are lifted in one burst
 *   5. all pods are bound within gangTimeoutSeconds, or the generation is given up, and
 *      the nodes that kept it waiting are left out for GANG_AVOID_MS, doubled each time
 *
 * Without gates (an old server, or spec.scheduling.gang None) the pods are created after
 * step 3. Returns true once all pods may be scheduled.
 *
 * Step 3 must see every pod that was bound before it began. With a store that lags, it
 * would count GPUs as free that a foreign pod has by now, and the gang would hold all its
 * other GPUs while it waits for them. Up to GANG_NODE_READS nodes, the pass reads the
 * pods of each node from the API server's storage. With more nodes, that would take as
 * many requests, or one for all bound pods of the cluster. Instead the pass marks one
 * gated pod of the generation (ANNOTATION_FIT_MARK), and step 4 waits until the watch of
 * pods has reached the version of this write (snapshot.pods_version). This equals reading
 * all pods at the time of the mark: versions of one kind follow the order of its writes,
 * and a watch of all pods reports every change in that order, so a watch that has reached
 * the mark has reported every pod bound before it. It does not matter which replica of
 * the API server served the write or the watch, or how old its cache was. An earlier mark
 * cannot lift the gates: the mark carries the time at which this process asked for it. If
 * the watch does not get there within GANG_MARK_MS (it is broken or restarting), the pass
 * reads all bound pods. Either result holds for PASS_FRESH_MS. */
bool gang_form(struct pass *pass);
/* Stops a generation that has not started while its spec is refused: missing pods can no
 * longer be made, and the pods behind gates would hold their GPUs for ever. True if so; a
 * new generation starts once the spec is accepted. */
bool gang_stops_refused(struct pass *pass);
/* Sets the conditions Placed and Running from the present pods. */
void gang_report(struct pass *pass);

#define GANG_AVOID_MS        ((int64_t)600000)
#define GANG_AVOID_DOUBLINGS 6
/* Size of the annotation that names the avoided nodes; all annotations of an object share
 * 256 KiB. */
#define GANG_AVOID_BYTES     131072
/* Avoided nodes named in a message. */
#define GANG_NAMED_NODES     4
/* Plans with up to this many nodes have them read one by one. */
#define GANG_NODE_READS      4
/* How long the watch may take to reach the mark, and the first interval between looks for
 * it. */
#define GANG_MARK_MS         3000
#define GANG_MARK_LOOK_MS    20

#endif
