/* link_sharing.h - what sends between stages take when those of other pipelines cross the
 * same links: in closed form, for searches. schedule.h has it event by event.
 *
 * Pipelines that are alike (micro-batches, seconds of every stage and of every send
 * alone) go in step, if they begin together: their sends of the same boundary in the same
 * direction begin at the same time, and each takes on each link
 *
 *   the sum of all their loads on it, at most as many times its own
 *
 * while those of other boundaries and of the other direction never meet it. Pipelines
 * that are not alike meet by chance: a link that such others keep busy for a share u of
 * their time makes a send of load x take u x longer on it. A send takes the longest of
 * its time alone and of these times on its links, and its latency. */
#ifndef HET_COST_LINK_SHARING_H
#define HET_COST_LINK_SHARING_H

#include "planner/cost/transfer.h"

/* Of one micro-batch. */
struct het_stage_times {
    double compute_s;               /* forward and backward */
    double send_s, send_backward_s; /* activations to the next stage, gradients back; 0
                                       behind the last */
};

/* T_p of cost.h with the sends apart for each direction; `ret_bottleneck` is the stage
 * with the largest share. */
double het_link_sharing_pipeline(const struct het_stage_times *stages, size_t stage_count,
                                 uint32_t microbatch_count, uint32_t *ret_bottleneck);

/* Fills the sends of `stages`, which stand by pipeline and stage and have their
 * compute_s. Work: linear in replicas, and in pipelines times kinds of them. */
void het_link_sharing_plan(const struct het_problem *problem, const struct het_plan *plan,
                           struct het_stage_times *stages);

#endif
