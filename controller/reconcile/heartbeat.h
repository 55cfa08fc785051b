/* heartbeat.h - whether the nodes of a generation are still alive when one of its ranks
 * fails. A hung node counts as Ready for 40 s and more, while its peers give up after
 * seconds. The node is the cause of their failure, and the same plan would restart on the
 * dead node. Pure. */
#ifndef CONTROLLER_RECONCILE_HEARTBEAT_H
#define CONTROLLER_RECONCILE_HEARTBEAT_H

#include "controller/decision/pass.h"

enum {
    /* A kubelet renews its lease every 10 s (a quarter of nodeLeaseDurationSeconds). */
    HEARTBEAT_LATE_MS = 11000,
    /* A node found silent is left out this long; by then it is NotReady. */
    HEARTBEAT_AVOID_MS = 120000,
};

/* Reads the leases of the plan's nodes. If the oldest is late, reads it again
 * HEARTBEAT_LATE_MS later: a node that only has a slow clock has renewed it by then. True
 * while the check is under way. If leases cannot be read, every node counts as alive. */
bool heartbeat_listen(struct pass *pass);
/* The node of the current plan that was found silent, as recorded on its ConfigMap; NULL:
 * none. */
const char *heartbeat_silent(const struct pass *pass);

#endif
