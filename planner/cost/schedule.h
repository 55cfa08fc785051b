/* schedule.h - one iteration of a plan, event by event: the truth of our model, of which
 * cost.h has the closed form.
 *
 * One-forward-one-backward. Stage s (from 0) of S runs S-s-1 forwards, then alternates,
 * in the order of Megatron's schedule without interleaving:
 *
 *   warm-up    receive, forward, send                     S-s-1 micro-batches at most
 *   steady     forward, exchange with the next stage, backward, exchange with the
 * previous drain      receive, backward, send                    what is in flight
 *
 * An exchange is a send and a receive that Megatron does in one call (send_forward_recv_
 * backward on one side, send_backward_recv_forward on the other), which is why the order
 * cannot deadlock; here the activations go first, then the gradients. A transfer begins
 * when both stages have come to it and keeps both busy to its end. Everything else begins
 * as soon as the stage is free. The times of forward and backward are het_cost_stage's.
 *
 * A transfer alone takes het_cost_send's seconds. Transfers that cross a link (an uplink,
 * one way) at the same time share it as a fluid: of the link, equal parts for each flow
 * (het_link_load.flow_count), and what a transfer cannot use, as it is limited elsewhere
 * or puts less on this link, is for the others. A transfer goes at the speed of its
 * slowest link: all its flows end together. Speeds change whenever one begins or ends.
 * Its latency comes behind its bytes, and uses no link.
 *
 *   T = max_p end_p + T_sync + T_step          the latter two as in cost.h
 *
 * Pipelines that are alike in all, links included, go in step: one of them is simulated,
 * as if its flows were as many. Pipelines are simulated together that share links; groups
 * that differ only in which links they use, once. */
#ifndef HET_COST_SCHEDULE_H
#define HET_COST_SCHEDULE_H

#include "planner/cost/cost.h"
#include "planner/cost/timeline.h"

/* Forwards and backwards that are simulated. A plan that has more, after what is alike
 * has been left out, is simulated with fewer micro-batches of each pipeline, in
 * proportion, and again with three quarters of these; the rest goes on at the pace
 * between the two. */
#define HET_SIMULATE_MAX_COMPUTES ((uint64_t)1 << 18)

/* Tasks of a timeline, at most. */
#define HET_TIMELINE_MAX_TASKS ((uint64_t)1 << 20)

/* Prices a bound plan; slowest_pipeline is the one that ends last, bottleneck_stage the
 * stage of it that is busy longest. `ret_timeline`, if not NULL, gets every task, in
 * `arena`, which may be NULL without.
 *
 * Errors: HET_NO_PROFILE when a (type, tp, micro-batch) is missing; HET_BAD_INPUT when
 * the timeline would be too long. */
int het_schedule_simulate(struct het_arena *arena, const struct het_problem *problem,
                          const struct het_plan *plan, struct het_cost *ret,
                          struct het_timeline *ret_timeline, struct het_error *err);

#endif
