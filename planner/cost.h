/* cost.h - how long one training iteration of a plan takes, in closed form (planner.md,
 * Time; Metis eq. 1, AMP eq. 5, AutoHet eq. 1, with communication in the critical path as
 * Sailor measures it). Whether the plan fits in memory is memory.h's question.
 *
 *   T_p = sum_s (f+g)_ps + 2 sum_s c_ps
 *         + (m_p - 1) * max_s ((f+g)_ps + 2 (c_p,s-1 + c_ps))
 *   T   = max_p T_p + T_sync + T_step
 *
 *   f, g  slowest replica's seconds forward, backward for one micro-batch
 *   c_ps  seconds to send the activations of one micro-batch from stage s to s+1, over
 * the slowest link between the two sets of replicas, uplinks shared by the flows that
 *         cross them at a time; 0 behind the last stage
 *   m_p   micro-batches an iteration */
#ifndef HET_COST_H
#define HET_COST_H

#include "planner/plan.h"

struct het_cost {
    double iteration_s; /* T */
    double pipeline_s;  /* max_p T_p */
    double sync_s;      /* T_sync */
    double step_s;      /* T_step */
    uint32_t slowest_pipeline;
    uint32_t bottleneck_stage; /* of that pipeline */
};

/* Prices a bound plan. Errors: HET_NO_PROFILE when a (type, tp, micro-batch) is missing.
 */
int het_cost_plan(const struct het_problem *problem, const struct het_plan *plan,
                  struct het_cost *ret, struct het_error *err);

/* The parts, for searches and tests. */

/* Slowest replica's seconds forward and backward of one micro-batch. */
int het_cost_stage(const struct het_problem *problem, const struct het_stage *stage,
                   double *ret_forward_s, double *ret_backward_s, struct het_error *err);
/* Seconds to send one micro-batch's activations from `from` to `to` (one direction):
 * replicas send their own sample ranges to those of `to` that hold the same samples,
 * spread over their tp ranks; the largest load over any node uplink, flow and GPU link,
 * plus latency. */
double het_cost_send(const struct het_problem *problem, const struct het_stage *from,
                     const struct het_stage *to);
/* Gradient synchronisation: layers with the same set of holders go together; ring
 * all-reduce, 2 (n-1)/n x bytes, rings in node order crossing an uplink once however many
 * replicas a node holds, a tp t replica running t rings of 1/t of the bytes; T_sync is
 * the largest load over any GPU link or uplink (groups overlap perfectly otherwise).
 * Holders with different tp exchange re-sharded pieces: bytes of the largest shard. */
double het_cost_sync(const struct het_problem *problem, const struct het_plan *plan);
/* Optimizer step of the slowest replica. */
double het_cost_step(const struct het_problem *problem, const struct het_plan *plan);

/* A proved lower bound on iteration_s of any plan on any subset of the cluster: the
 * compute floor. With prices w_t >= 0 of the GPU types, sum_t n_t w_t = 1, T >= B * sum_l
 * min_t w_t c_lt,   c_lt = min over (tp, b) of tp * time_l(t, tp, b) / b because each GPU
 * is busy at most T seconds; maximised over w. In docs/planner.md. */
double het_cost_lower_bound(const struct het_problem *problem);

#endif
