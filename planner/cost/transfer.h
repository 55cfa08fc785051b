/* transfer.h - activations sent from one stage to the next: how long a send takes alone,
 * and how long it keeps each shared link busy. The closed form (cost.h) and the event
 * simulation price sends with this one function.
 *
 * Replicas send their own sample ranges to those of the next stage that hold the same
 * samples, once each, spread over their tp ranks; gradients travel back the same way. The
 * time is the largest load (bytes / bandwidth) over:
 *
 *   a node's uplink       what leaves or enters the node, out and in apart
 *   a domain's uplink     what leaves or enters a zone or rack
 *   a pair of replicas    on different nodes: min(tp, tp) flows
 *   a GPU's own link      the samples of its replica / tp
 *
 * plus the larger latency of two nodes, if any bytes go between them. Bandwidths are
 * those of cluster.h: het_cluster_uplink for all flows of the node at a time, and so
 * on. */
#ifndef HET_COST_TRANSFER_H
#define HET_COST_TRANSFER_H

#include "planner/model/plan.h"

/* Seconds of the send alone, latency included. */
double het_transfer_seconds(const struct het_problem *problem,
                            const struct het_stage *from, const struct het_stage *to);

/* The load of a send on a link that other sends may cross at the same time
 * (het_cluster_link_count). The send in the other direction crosses link ^ 1. A GPU's own
 * links are not listed: its stage does one thing at a time. */
struct het_link_load {
    uint32_t link;
    uint32_t flow_count; /* flows of the send on it: min(tp, tp) for a pair of replicas */
    /* For which the send keeps the whole link busy. On a node with measured curves one
     * send alone may not fill the link: then it takes longer than its loads. */
    double seconds;
};
struct het_link_loads {
    struct het_link_load *items;
    size_t count, capacity;
};
/* het_transfer_seconds without the latency, which is put into `ret_latency_s`; the loads
 * are appended to `loads`, each link once. */
double het_transfer_loads(const struct het_problem *problem, const struct het_stage *from,
                          const struct het_stage *to, struct het_link_loads *loads,
                          double *ret_latency_s);
void het_link_loads_fini(struct het_link_loads *loads);

#endif
