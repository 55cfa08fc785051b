/* metis_search.h - the search that Metis and OOM-first share: one pipeline over device
 * groups of unequal GPUs. It keeps to their Algorithm 1 in what it enumerates and is
 * exact where the paper rounds; paper_walk.h walks the paper's own steps.
 *
 * Source: T. Um et al., "Metis: Fast Automatic Distributed Training on Heterogeneous
 * GPUs", USENIX ATC 2024: Algorithm 1 and sections 3 to 4.3, read from the paper; the
 * released code was not used.
 *
 * What it does. For each number of stages, each list of device group sizes (pruned by
 * variance and permutation length, device_group.h), each order of the GPU types and each
 * number of micro-batches that divides the global batch: start with data parallelism
 * only, share the micro-batch out over unequal replicas, balance the layers, and where a
 * stage runs out of memory try both more tensor parallelism and fewer layers there.
 *
 * Differs from the paper:
 *  - The layers are split exactly (balance.h, pipeline_draft.h) where the paper fills
 *    stages in proportion to their speed; the bottleneck includes sends, and gradient
 *    time is added to T_p. Hence "move layers away until the stage fits" is one more
 *    exact split, with that stage's memory as a limit.
 *  - Samples are shared exactly over unequal replicas (the paper: in proportion), also
 *    inside one type when the number of replicas does not divide the micro-batch.
 *  - Tensor-parallel groups never span nodes nor mix types: GPUs that a stage has on a
 *    node form replicas of the largest degree, up to the stage's, that divides them. In a
 *    stage of two types each has its own degree, and a type short of memory has its
 *    degree raised.
 *  - Where a degree does not divide a node's GPUs, or there are more replicas than
 *    samples, stages that leave GPUs idle are a start too (het_pipeline_draft_set_trim).
 *    The paper uses all GPUs; the search (run_all.h) also hands the algorithm fewer.
 *  - When a stage is out of memory, fewer layers is tried first: it costs one split, and
 *    its plan prunes the other way. At most HET_METIS_SEARCH_MAX_BRANCHES splits a start.
 *  - Besides data parallelism only, every higher uniform degree is a start too, unless
 *    the bound of the lower one is far above the best plan; and around each new best plan
 *    the degree of one stage at a time is changed as long as that helps: with measured
 *    profiles and few samples a GPU, tensor parallelism can be the faster one.
 *  - Candidates whose bound (het_pipeline_draft_bound) is not below the best plan are not
 *    split.
 *  - Of several stages out of memory, `order` says which one comes first: for Metis the
 *    first of the pipeline, for OOM-first (J. Shong et al., section 3.4) the one short of
 *    most bytes on a GPU.
 *  - Rows in which the nodes of the types take turns, as an option (device_group.h).
 *  - Group sizes besides powers of two where the cluster suggests them (device_group.h),
 *    or all sizes (options). The released code handles powers of two only. */
#ifndef HET_ALGO_METIS_METIS_SEARCH_H
#define HET_ALGO_METIS_METIS_SEARCH_H

#include "planner/search/search.h"

#define HET_METIS_SEARCH_MAX_BRANCHES 64u

enum het_metis_order { HET_METIS_FIRST_STAGE, HET_METIS_SHORTEST_STAGE };

/* Runs the search on search->available and offers its plans. Always 0. */
int het_metis_search(struct het_search *search, enum het_metis_order order);

/* The walk of paper_walk.h. Of its plans, the HET_METIS_WALK_KEPT with the least
 * `seconds` whose replicas can be built (inside a node, of one type) are offered, with
 * the layers split exactly and within memory.h's limits. Its counts, and its best plan
 * under its own rules, go into search->statistics. One unit of effort is
 * HET_METIS_WALK_SPLITS_A_UNIT splits; an eighth of the effort is for what is offered. */
#define HET_METIS_WALK_KEPT          64u
#define HET_METIS_WALK_SPLITS_A_UNIT 2u
int het_metis_search_walk(struct het_search *search, enum het_metis_order order);

#endif
