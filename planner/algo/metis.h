/* algo/metis.h - Metis: one pipeline over device groups of unequal GPUs.
 *
 * Source: T. Um et al., "Metis: Fast Automatic Distributed Training on Heterogeneous
 * GPUs", USENIX ATC 2024: Algorithm 1 and sections 3 to 4.3, read from the paper; the
 * released code was not used.
 *
 * What it does. For each number of stages, each list of device group sizes (pruned by
 * variance and permutation length, group.h), each order of the GPU types and each number
 * of micro-batches that divides the global batch: start with data parallelism only, share
 * the micro-batch out over unequal replicas, balance the layers, and where a stage runs
 * out of memory follow both ways, more tensor parallelism there, or fewer layers there.
 *
 * Differs from the paper:
 *  - The layers are split exactly (balance.h, draft.h) where the paper fills stages in
 *    proportion to their speed; sends count in the bottleneck, and the time of the
 *    gradients beside T_p. Hence "move layers away until the stage fits" is one more
 * exact split, with that stage's memory as a limit.
 *  - Samples are shared exactly over unequal replicas (the paper: in proportion), also
 *    inside one type when the number of replicas does not divide the micro-batch.
 *  - Tensor-parallel groups never span nodes nor mix types: GPUs that a stage has on a
 *    node form replicas of the largest degree, up to the stage's, that divides them. In a
 *    stage of two types each has its own degree, and memory raises that of the type that
 *    is short.
 *  - Where a degree does not divide a node's GPUs, or there are more replicas than
 * samples, stages that leave GPUs idle are a start too (het_draft_set_trim). The paper
 * uses all GPUs; the search (search.h) also hands the algorithm fewer.
 *  - Of the two ways out of memory, fewer layers is followed first: it costs one split,
 *    and its plan prunes the other way. At most HET_METIS_MAX_BRANCHES splits a start.
 *  - Besides data parallelism only, every higher uniform degree is a start too, unless
 * the bound of the lower one is far above the best plan; and around each new best plan
 * the degree of one stage at a time is changed as long as that helps: with measured
 * profiles and few samples a GPU, tensor parallelism can be the faster one.
 *  - Candidates whose bound (het_draft_bound) is not below the best plan are not split.
 *  - Group sizes besides powers of two where the cluster suggests them (group.h), or all
 *    sizes (options). The released code handles powers of two only. */
#ifndef HET_ALGO_METIS_H
#define HET_ALGO_METIS_H

#include "planner/algo.h"

#define HET_METIS_MAX_BRANCHES 64u

extern const struct het_algorithm het_algo_metis;

#endif
