/* bound.h - seconds that no plan can fall below. */
#ifndef HET_BOUND_H
#define HET_BOUND_H

#include "planner/plan.h"

/* A proved lower bound on iteration_s of any plan on any subset of the cluster: the
 * compute floor.
 *
 *   LB = max over w of  B * sum_l min_t w_t c_lt,   w_t >= 0, sum_t n_t w_t = 1
 *
 *   c_lt  least GPU seconds of layer l for one sample on type t:
 *         min over (tp, b) of tp * time_l(t, tp, b) / b, of points at which a GPU has
 *         memory for that layer alone, with recomputation if without it has not
 *   n_t   GPUs of type t that the cluster has and the job's limits allow
 *
 * Proof. A stage spends m_p (f+g) <= T_p <= T of the iteration computing, so each GPU of
 * a replica is busy m_p (F+B) <= T. Let x_lt be the samples of layer l that replicas of
 * type t compute: x_lt >= 0 and sum_t x_lt = B. Every one of them takes at least c_lt GPU
 * seconds (a micro-batch made of binary parts is never better than its best part), hence
 * sum_l c_lt x_lt <= n_t T for each t. Weigh these with any w of the above: T >= sum_l
 * sum_t w_t c_lt x_lt >= B sum_l min_t w_t c_lt. Equality is had by the w that solve the
 * dual of the linear program min T; the program is solved column by column (an assignment
 * of the layers to types is a column; Dantzig and Wolfe, 1960), and as the bound is
 * evaluated for the w found, rounding in the solver cannot make it too high. */
double het_bound_floor(const struct het_problem *problem);

/* A proved lower bound on iteration_s of any plan on any subset of the cluster, in closed
 * form and simulated: the compute floor, and what gradients and sends between nodes take
 * beside it. A node that holds much of the model has many gradients to exchange; nodes
 * that hold little must pass each sample on often.
 *
 *   T >= min over D of  max(D, D + 2 (M(D) - P) / U) + T_step
 *
 *   D     budget of the pipelines: max_p T_p; at least the compute floor and the least
 *         time of one micro-batch through all layers
 *   M(D)  least bytes of gradients that nodes must hold, each layer counted on every node
 *         that has it, so that all is computed in D seconds (covering.h)
 *   P, U  bytes of all gradients; bandwidth of all uplinks of nodes that can compute
 *   T_step  optimizer step of the layer that takes longest, where it takes least
 *
 * Proof. (1) Y = T_sync is at least the seconds that any uplink is busy. A layer of b_l
 * bytes with n_l replicas on h_l nodes, h_l > 1, takes 2 (n_l - 1) / n_l b_l bytes
 * through the uplink of each of these nodes; n_l >= h_l, so that is at least
 * 2 (h_l - 1) b_l for all together, which also holds for h_l = 1. Summed over the
 * layers, Y U >= sum_l 2 (h_l - 1) b_l = 2 (H - P), H the bytes held by all nodes.
 *
 * (2) Look at the layers that a node computes of one sample without a break, a run
 * [a, e) of it. If a > 0, the sample came from another node, and if e < L, it went to
 * one; its gradients go the other way. A send keeps all GPUs of both stages busy to its
 * end, at least bytes / uplink for the bytes that it takes out of, or into, the node: at
 * least one GPU for x_t(a) = 2 boundary_bytes / uplink seconds a sample. Together with
 * the computing, the run costs sum_l c_tl + x_t(a) + x_t(e) GPU seconds of the node, with
 * c_tl the compute floor's. A stage of the run begins at a layer s >= a. Before its first
 * forward and after its last backward a micro-batch passes the stages before it, which
 * takes wait(s) >= wait(a) at the least; between the two lie all its computing and
 * sends. So each of its GPUs is busy for at most D - wait(a) with such runs.
 *
 * (3) Let y_i(a, e) be the seconds that node i spends on runs [a, e), over D - wait(a):
 * as many GPUs' worth of time, at most the k_i that it has. The runs make up the batch
 * in every layer. A node holds the layers of each of its runs, so at least the mean over
 * its GPUs, sum y_i(a, e) / k_i bytes(a, e). Hence y satisfies covering.h's program for
 * D, with k_i replaced by the largest of the type and the uplinks in x_t by the widest
 * (both only lower the least), and H >= M(D).
 *
 * (4) T = D + Y + T_step >= D + max(0, 2 (M(D) - P) / U) + T_step for the plan's D. For
 * D from the floor on, interval by interval: prices prove bytes for each D, concave in D,
 * so D + 2 (. - P) / U is least at an end of the interval; and no D beyond the bound so
 * far can lower it. Prices are evaluated anew, so that rounding in the program's solution
 * cannot make the bound too high. A shared embedding is held by whoever has either end,
 * and counts once.
 *
 * Limits of the job or the runtime only take plans away. With measured curves an uplink
 * is the most that any of them allows. Beyond HET_BOUND_MAX_LAYERS layers, or on one
 * node, it is the floor, the micro-batch and the step alone. */
#define HET_BOUND_MAX_LAYERS 128u
double het_bound_iteration(const struct het_problem *problem);

#endif
