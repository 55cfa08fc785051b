/* autohet.h - pipelines of different shape: GPUs are shared out among pipelines by
 * their power, put on nodes and into stages, and each pipeline gets its own cuts.
 *
 * Source: Y. Wang et al., "Diving into 3D Parallelism with Heterogeneous Spot Instance
 * GPUs: Design and Implications" (AutoHet), section III: eq. 2 and 3
 * (pipeline_grouping.h), the mapping of III.C, eq. 4, Algorithm 1.
 *
 * For each tensor-parallel degree (the same everywhere, Observation 1) and each size of a
 * micro-batch that divides the batch: g is the samples a second that tp GPUs do of the
 * whole model, K is B / D, and
 *
 *   m_i = usable bytes - workspace - a / 2,    MIN_mem = state + a / 2
 *
 * with a the activations of one micro-batch: S even stages hold (S + 1) / 2 times those
 * (1F1B), which is linear in S.
 *
 * Differs:
 *  - Eq. 3 ignores sends and gradients, so besides the best number of pipelines the next
 *    best ones are built, at most HET_AUTOHET_MAX_PLANS, down to HET_AUTOHET_WORTH of the
 *    best objective; where no split of layers fits, MIN_mem is raised.
 *  - Eq. 4 as printed minimises the largest g_i / l_i, which gives most layers to the
 *    slowest; l_i / g_i is meant. Here it is the seconds of the layers themselves, the
 *    sends and the sum over the stages with it (balance.h).
 *  - The micro-batches are shared out by how fast the pipelines came out, not equally.
 *  - A node whose GPUs tp does not divide leaves the rest idle (the paper: no such tp).
 *  - The mapping of Algorithm 1 puts equal stages of all pipelines on one node, for the
 *    gradients; pipelines inside nodes, for the sends, are tried as well.
 *  - A runtime whose pipelines must have equally many stages gets such groups; where they
 *    must have equal cuts, one cut is balanced for all. */
#ifndef HET_ALGO_AUTOHET_AUTOHET_H
#define HET_ALGO_AUTOHET_AUTOHET_H

#include "planner/search/search.h"

#define HET_AUTOHET_MAX_PLANS 6u
#define HET_AUTOHET_WORTH     0.7

extern const struct het_algorithm het_algo_autohet;

#endif
