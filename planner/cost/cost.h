/* cost.h - how long one training iteration of a plan takes, in closed form (planner.md,
 * Time; Metis eq. 1, AMP eq. 5, AutoHet eq. 1, with communication in the critical path as
 * Sailor measures it). Whether the plan fits in memory is memory.h's question.
 *
 *   T_p = sum_s (f+g)_ps + 2 sum_s c_ps
 *         + (m_p - 1) * max_s ((f+g)_ps + 2 (c_p,s-1 + c_ps))
 *   T   = max_p T_p + T_sync + T_step
 *
 * schedule.h simulates the same event by event; searches use this closed form.
 *
 *   f, g  slowest replica's seconds forward, backward for one micro-batch; with full
 *         recomputation g includes a second forward, with selective recomputation g is as
 *         measured
 *   c_ps  seconds to send the activations of one micro-batch from stage s to s+1, over
 *         the slowest link between the two sets of replicas, uplinks shared by all flows
 *         that cross them at the same time, also of other pipelines (link_sharing.h,
 *         where 2 c is the sum of both directions); 0 behind the last stage
 *   m_p   micro-batches an iteration */
#ifndef HET_COST_COST_H
#define HET_COST_COST_H

#include "planner/cost/transfer.h"
#include "planner/model/plan.h"

struct het_cost {
    double iteration_s; /* T */
    double pipeline_s;  /* max_p T_p */
    double sync_s;      /* T_sync */
    double step_s;      /* T_step */
    uint32_t slowest_pipeline;
    uint32_t bottleneck_stage; /* of that pipeline */
    /* The uplink that limits the gradients: a cluster node, or node_count + a domain;
     * HET_UNBOUND: none (GPUs' own links, or nothing is sent). */
    uint32_t sync_uplink;
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
 * transfer.h, alone. */
double het_cost_send(const struct het_problem *problem, const struct het_stage *from,
                     const struct het_stage *to);
/* ret_send_s[cut] = the same if `to` began with layer `cut`, 1 .. layer_count - 1,
 * whatever layers the two have; other entries are left alone. Equal sends are computed
 * once. */
void het_cost_sends(const struct het_problem *problem, const struct het_stage *from,
                    const struct het_stage *to, double *ret_send_s);
/* Gradient synchronisation: T_sync, the largest load over any GPU's link or node's uplink
 * (classes of layers overlap perfectly otherwise).
 *
 * (Bytes: het_workload_gradient_bytes. A distributed optimizer's reduce-scatter and
 * all-gather cross the same links as the two halves of an all-reduce.)
 *
 * Layers with the same set of n holders (replicas of any pipeline) are one class, summed
 * by ring all-reduce. Each GPU sends and receives 2 (n-1)/n of its shard's gradient
 * bytes, in as many rings as the highest tp of the holders. Rings run in node order, so
 * all of them together cross the uplink of a node that has some, but not all, of the
 * holders once out and once in, with 2 (n-1)/n of the whole bytes, however many replicas
 * the node has. Holders with different tp exchange re-sharded pieces: the GPU with the
 * largest shard carries the most rings. Each of the 2 (n-1) steps of a ring that leaves a
 * node waits for the largest latency.
 *
 * With a shared embedding the larger of layer 0 and the last is summed over the holders
 * of both, and its copy costs nothing. Source: AutoHet, Observation 2; sharing of
 * uplinks: docs/planner.md, Cluster. */
double het_cost_sync(const struct het_problem *problem, const struct het_plan *plan);
/* The same; `ret_uplink` is struct het_cost's sync_uplink. */
double het_cost_sync_uplink(const struct het_problem *problem,
                            const struct het_plan *plan, uint32_t *ret_uplink);
/* Optimizer step of the slowest replica; with a distributed optimizer, of its shard of
 * each layer (1/h with h holders). */
double het_cost_step(const struct het_problem *problem, const struct het_plan *plan);

#endif
