/* exhaustive.h - the oracle: looks at every plan, as a reference for other algorithms.
 * For about 6 GPUs, 6 layers and a batch of 8; larger input is refused when the effort is
 * spent, never cut.
 *
 * What is looked at: all sets of pipelines; for each its number and size of
 * micro-batches, its cuts, and for each stage the sets and orders of replicas on any
 * nodes, their tensor-parallel degrees and shares of the micro-batch, and without, with
 * full, and, where it was measured, with selective recomputation; GPUs may stay idle. One
 * of each set of plans that are equal by symmetry is looked at: GPUs of a node are
 * interchangeable, and so are equal nodes, pipelines, and the replicas of a stage where
 * nothing is sent between nodes.
 *
 * A plan is left out only if it is proved no better than the incumbent or than the limit
 * of the pass: passes with rising limits (from the lower bound on, each a quarter higher
 * than the last) keep the walk among promising plans before there is an incumbent.
 * Bounds, all valid for the event simulation (schedule.h) as for the closed form:
 *
 *   pipeline  T_p >= sum_{i<s} (f+g+2c)_i + m (f+g)_s + 2 (m-1) c_{s-1} + 2 m c_s
 *             for each stage s: until its first forward the first micro-batch passes the
 *             stages before it, and after its last backward the last one passes them
 *             again; between the two it computes and sends all of its own;
 *             and T_p >= sum_s (f+g+2c)_s, the way of one micro-batch
 *   area      free GPUs must do what is left to do: sum_t n_t w_t T >= the least weighted
 *             GPU seconds of the samples left, for any w >= 0 (bound.h's compute floor)
 *   tail      synchronisation and optimizer step of the pipelines so far; more pipelines
 *             only add holders (not with measured curves, not of a distributed
 *             optimizer's step) */
#ifndef HET_ALGO_EXHAUSTIVE_H
#define HET_ALGO_EXHAUSTIVE_H

#include "planner/search/search.h"

extern const struct het_algorithm het_algo_exhaustive;

#endif
