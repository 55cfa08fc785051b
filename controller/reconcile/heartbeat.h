/* heartbeat.h - whether the nodes of a generation still speak when a rank of it fails. A
 * node that hangs counts as Ready for 40 s and more, while its peers give up after
 * seconds: their failure is the node's, and the same plan would start on the dead node.
 * Pure. */
#ifndef CONTROLLER_RECONCILE_HEARTBEAT_H
#define CONTROLLER_RECONCILE_HEARTBEAT_H

#include "controller/decision/pass.h"

enum {
    /* A kubelet renews its lease each 10 s (a quarter of nodeLeaseDurationSeconds). */
    HEARTBEAT_LATE_MS = 11000,
    /* A node that was found silent is left out so long; by then it is NotReady. */
    HEARTBEAT_AVOID_MS = 120000,
};

/* Reads the leases of the plan's nodes. If the oldest of them is late, it is read again
 * HEARTBEAT_LATE_MS later: a node that only has a slow clock has renewed it by then. True
 * as long as that is under way. Where nothing can be read, every node speaks. */
bool heartbeat_listen(struct pass *pass);
/* The node of the current plan that was found silent, which its ConfigMap says from then
 * on; NULL: none was. */
const char *heartbeat_silent(const struct pass *pass);

#endif
