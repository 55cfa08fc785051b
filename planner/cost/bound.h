/* bound.h - seconds that no plan can fall below. */
#ifndef HET_COST_BOUND_H
#define HET_COST_BOUND_H

#include "planner/model/plan.h"

/* A proved lower bound on iteration_s of any plan on any subset of the cluster: the
 * compute floor.
 *
 *   LB = max over w of  B * sum_l min_t w_t c_lt,   w_t >= 0, sum_t n_t w_t = 1
 *
 *   c_lt  least GPU seconds of layer l for one sample on type t:
 *         min over (tp, b) of tp * time_l(t, tp, b) / b, of points at which a GPU has
 *         memory for that layer alone, with recomputation if it does not fit without
 *   n_t   GPUs of type t that the cluster has and the job's limits allow
 *
 * Proof. A stage spends m_p (f+g) <= T_p <= T of the iteration computing, so each GPU of
 * a replica is busy m_p (F+B) <= T. Let x_lt be the samples of layer l that replicas of
 * type t compute: x_lt >= 0 and sum_t x_lt = B. Every one of them takes at least c_lt GPU
 * seconds (a micro-batch made of binary parts is never better than its best part), hence
 * sum_l c_lt x_lt <= n_t T for each t. Weigh these with any such w: T >= sum_l sum_t w_t
 * c_lt x_lt >= B sum_l min_t w_t c_lt. The w that solve the dual of the linear program
 * min T give equality; the program is solved column by column (an assignment of the
 * layers to types is a column; Dantzig and Wolfe, 1960), and as the bound is evaluated
 * for the w found, rounding in the solver cannot make it too high.
 *
 * Where GPUs of different vendors may not be mixed (vendor_group.h), a plan uses one
 * vendor's: this bound and the next are the least over the vendor groups. */
double het_bound_floor(const struct het_problem *problem);

/* The floors of many parts of one problem's cluster (the same types, fewer GPUs). A
 * layer's cost on a type depends only on the part's largest node of that type, and is
 * computed once. `problem` is borrowed. No part has GPUs that may not be mixed. */
struct het_bound_rows;
struct het_bound_rows *het_bound_rows_new(const struct het_problem *problem);
void het_bound_rows_free(struct het_bound_rows *rows);
double het_bound_floor_of_part(struct het_bound_rows *rows,
                               const struct het_problem *part);
/* Pairs of a type and a largest node whose layers have been priced so far. */
size_t het_bound_rows_count(const struct het_bound_rows *rows);

/* A proved lower bound on iteration_s of any plan on any subset of the cluster, in closed
 * form and simulated: the compute floor plus the time of gradients and of sends between
 * nodes. A node that holds much of the model has many gradients to exchange; nodes that
 * hold little must pass each sample on often.
 *
 *   T >= min { D + Y : E(D, Y) <= P } + T_step
 *
 *   D     time of the pipelines, max_p T_p: at least the compute floor and the least time
 *         of one micro-batch through all layers
 *   Y     T_sync
 *   E     least bytes of gradients that nodes must hold beyond Y u / 2 each, so that all
 *         is computed in D seconds; u is the node's uplink (bound_program.h)
 *   P     bytes of all gradients
 *   T_step  optimizer step of the slowest layer on its fastest type; with a distributed
 *         optimizer, its share when all GPUs hold it
 *
 * Proof. (1) Y is at least the seconds that any uplink is busy. A layer of b_l bytes with
 * n_l replicas on h_l > 1 nodes takes 2 (n_l - 1) / n_l b_l bytes through the uplink of
 * each of these nodes, at least 2 (1 - 1 / h_l) b_l as n_l >= h_l; which also holds for
 * h_l = 1. So a node that holds the layers H, of |H| bytes, has Y u >= 2 |H| - 2 a, with
 * a = sum_{l in H} b_l / h_l, and a >= max(0, |H| - Y u / 2). Summed over all nodes, the
 * a give P: each layer is split evenly among its nodes.
 *
 * (2) Call a run [a, e) the layers of one sample that a node computes without a break. If
 * a > 0, the sample came from another node, and if e < L, it went to one; its gradients
 * go the other way. A send keeps all GPUs of both stages busy to its end, for at least
 * bytes / uplink of the bytes that leave or enter the node: at least one GPU for x_t(a) =
 * 2 boundary_bytes / uplink seconds a sample. Together with the computing, the run costs
 * sum_l c_tl + x_t(a) + x_t(e) GPU seconds of the node, with c_tl as in the compute
 * floor. A stage of the run begins at a layer s >= a. Before its first forward and after
 * its last backward a micro-batch passes the stages before it, which takes wait(s) >=
 * wait(a) at the least; between the two lie all its computing and sends. So each of its
 * GPUs is busy for at most D - wait(a) with such runs.
 *
 * (3) Let y_i(a, e) be the seconds that node i spends on runs [a, e), over D - wait(a):
 * its GPUs busy with them, at most the k_i that it has. The runs make up the batch in
 * every layer. A node holds the layers of each of its runs, so what it holds beyond Y u /
 * 2 is at least the mean of that over its GPUs, sum y_i(a, e) / k_i max(0, bytes(a, e) -
 * Y u / 2). Hence y satisfies bound_program.h's program for D, with k_i replaced by the
 * largest of the type and uplinks by the widest (both only lower the minimum), and E(D,
 * Y) <= sum a = P.
 *
 * (4) E falls with D and with Y. Y is cut into intervals. In each, D is at least what it
 * must be at the upper end: where prices prove more than P bytes at some D, every smaller
 * one is refuted. The weakest interval is halved again and again. Prices are evaluated
 * anew, so that rounding in the program's solution cannot make the bound too high. Every
 * node with either end holds a shared embedding, which counts once.
 *
 * Limits of the job or the runtime only remove plans, so the bound still holds; it also
 * holds for plans that use the workload's state reserve. With measured curves an uplink
 * is the widest that any of them allows. Beyond HET_BOUND_MAX_LAYERS layers, or on one
 * node, the bound consists of the floor, the micro-batch and the step alone. */
#define HET_BOUND_MAX_LAYERS 128u
double het_bound_iteration(const struct het_problem *problem);

#endif
