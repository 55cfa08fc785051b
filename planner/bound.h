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
 *         min over (tp, b) of tp * time_l(t, tp, b) / b
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

#endif
