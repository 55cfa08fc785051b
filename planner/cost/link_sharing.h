/* link_sharing.h - how long sends between stages take when sends of other pipelines cross
 * the same links: in closed form, for searches. schedule.h simulates it event by event.
 *
 * Pipelines that are alike (micro-batches, seconds of every stage and of every send
 * alone) run in step if they begin together: their sends over the same boundary in the
 * same direction begin at the same time, and each takes on each link
 *
 *   the sum of all their loads on it, at most their number times its own
 *
 * while sends over other boundaries or in the other direction never meet it. Pipelines
 * that are not alike meet by chance: a link that they keep busy for a share u of their
 * time makes a send of load x take u x longer. A send takes the longest of its time alone
 * and its times on its links, plus its latency. */
#ifndef HET_COST_LINK_SHARING_H
#define HET_COST_LINK_SHARING_H

#include "planner/cost/transfer.h"

/* Of one micro-batch. */
struct het_stage_times {
    double compute_s;               /* forward and backward */
    double send_s, send_backward_s; /* activations to the next stage, gradients back; 0
                                       behind the last */
};

/* T_p of cost.h with a separate send for each direction; `ret_bottleneck` is the stage
 * with the largest share. */
double het_link_sharing_pipeline(const struct het_stage_times *stages, size_t stage_count,
                                 uint32_t microbatch_count, uint32_t *ret_bottleneck);

/* Fills the sends of `stages`, which are in order of pipeline and stage and have their
 * compute_s. Work: linear in replicas, and in pipelines times kinds of pipelines. */
void het_link_sharing_plan(const struct het_problem *problem, const struct het_plan *plan,
                           struct het_stage_times *stages);

#endif
