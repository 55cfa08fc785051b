/* schedule.h - one iteration of a plan, event by event: the reference of our model;
 * cost.h is its closed form.
 *
 * One-forward-one-backward. Stage s (from 0) of S runs S-s-1 forwards, then alternates,
 * in the order of Megatron's schedule without interleaving:
 *
 *   warm-up    receive, forward, send                     S-s-1 micro-batches at most
 *   steady     forward, exchange with next stage, backward, exchange with previous one
 *   drain      receive, backward, send                    what is in flight
 *
 * An exchange is a send and a receive that Megatron does in one call (send_forward_recv_
 * backward on one side, send_backward_recv_forward on the other), which is why the order
 * cannot deadlock; here the activations go first, then the gradients. A transfer begins
 * when both stages have reached it and keeps both busy to its end. Everything else begins
 * as soon as the stage is free. The times of forward and backward are het_cost_stage's.
 *
 * A transfer alone takes het_cost_send's seconds. Transfers that cross a link (an uplink,
 * one way) at the same time share it as a fluid. Each flow (het_link_load.flow_count)
 * gets an equal part; what a transfer cannot use, because it is limited elsewhere or puts
 * less on this link, goes to the others. A transfer runs at the speed of its slowest
 * link: all its flows end together. Speeds change whenever a transfer begins or ends. Its
 * latency follows its bytes and uses no link.
 *
 *   T = max_p end_p + T_sync + T_step          the latter two as in cost.h
 *
 * Pipelines that are alike in all, links included, run in step: one of them is simulated,
 * with the flows of all. Pipelines that share links are simulated together; groups that
 * differ only in which links they use are simulated once. */
#ifndef HET_COST_SCHEDULE_H
#define HET_COST_SCHEDULE_H

#include "planner/cost/cost.h"
#include "planner/cost/timeline.h"

/* Forwards and backwards simulated, at most. A plan that has more, like pipelines left
 * out, is simulated with fewer micro-batches in each pipeline, in proportion, and again
 * with three quarters of these; the difference of the two gives the pace of the rest. */
#define HET_SIMULATE_MAX_COMPUTES ((uint64_t)1 << 18)

/* Tasks of a timeline, at most. */
#define HET_TIMELINE_MAX_TASKS ((uint64_t)1 << 20)

/* Prices a bound plan; slowest_pipeline is the one that ends last, bottleneck_stage its
 * busiest stage. `ret_timeline`, if not NULL, gets every task, in `arena`; without it
 * `arena` may be NULL.
 *
 * Errors: HET_NO_PROFILE when a (type, tp, micro-batch) is missing; HET_BAD_INPUT when
 * the timeline would be too long. */
int het_schedule_simulate(struct het_arena *arena, const struct het_problem *problem,
                          const struct het_plan *plan, struct het_cost *ret,
                          struct het_timeline *ret_timeline, struct het_error *err);

#endif
