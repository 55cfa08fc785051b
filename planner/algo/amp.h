/* amp.h - AMP: one grid of tensor-, data- and pipeline-parallel degrees over the
 * whole cluster, the layers cut exactly; and its annealing over placements.
 *
 * Source: D. Li et al., "AMP: Automatically Finding Model Parallel Strategies with
 * Heterogeneity Awareness", NeurIPS 2022: Algorithm 1, sections 3.3 to 3.6 and 6.2 (amp);
 * Algorithm 2, section 6.3 (amp-sa). Read from the paper; the released code was not used.
 *
 * amp. For each micro-batch size, tensor-parallel degree tp inside a node and number of
 * stages pp: the largest data-parallel degree dp that makes the batch whole; ranks are
 * placed in the order tp, dp, pp over the nodes (Megatron's rule); the layers are cut by
 * het_balance_layers. With options->amp_sends HET_AMP_HIDDEN that is the paper's eq. 5,
 *
 *   T_pp = (m - 1) max_s t_s + sum_s e_s + sum_s t_s,    e_s = 2 c_s
 *
 * with HET_AMP_EXPOSED (default) sends count in the maximum too, as plans are priced
 * (cost.h). With options->amp_speeds HET_AMP_OWN_SPEEDS (default) t_s is the time of the
 * stage's slowest GPU, with HET_AMP_MEAN_SPEEDS all GPUs count as the mean of those used,
 * as in the paper. Either way the plan is then priced as any other.
 *
 * amp-sa. Starts from the best strategy of `amp`, and changes tp or dp, the micro-batch
 * size and the placement in each of HET_AMP_ITERATIONS steps. A placement is a tiling of
 * the mesh with a column of tensor-parallel groups for each node: a stage is a rectangle
 * of h x w = dp groups (h of each of w neighbouring nodes), laid at the first free place,
 * its shape drawn at random.
 *
 * Differs from the paper:
 *  - Memory: layers are cut so that every GPU fits (memory.h); the paper has no memory
 *    model.
 *  - e_s counts both directions (activations, gradients); the paper does not say.
 *  - Tensor-parallel groups stay inside nodes, elsewhere they cannot be run.
 *  - Clusters that are no grid: GPUs beyond tp * dp * pp, and nodes whose type is not
 *    profiled for the degree and micro-batch, stay idle.
 *  - For a runtime that has no uneven stages the layers are cut evenly.
 *  - The dp replicas of a stage are written as one stage of one pipeline, as `megatron`
 *    does; so a pipeline waits for the slowest replica in every stage.
 *  - Dominoes have any shape h x w, not only 1 x dp and dp x 1: a domino of 8 fits no
 *    mesh of 4 x 4.
 *  - The paper gives neither start nor cooling: here the temperature is a share of the
 *    present strategy's time, 1 at first, 0.98 of it after each step. Line 14 of
 *    Algorithm 2 cuts the layers of the old strategy; here it is the new one's. */
#ifndef HET_ALGO_AMP_H
#define HET_ALGO_AMP_H

#include "planner/search/search.h"

extern const struct het_algorithm het_algo_amp;
extern const struct het_algorithm het_algo_amp_sa;

#define HET_AMP_ITERATIONS 256u

struct het_amp_strategy {
    uint32_t tp, dp, pp;
    uint32_t microbatch_size; /* of one replica */
    uint32_t microbatch_count;
    uint32_t idle_gpus;
    double seconds;       /* estimate: T_pp, synchronisation, optimizer */
    const uint32_t *cuts; /* [pp + 1]: stage s has layers cuts[s] .. cuts[s + 1] - 1 */
};

/* What `amp` enumerates on the whole cluster, the least estimate first (equal ones: in
 * the order of micro-batch size, tp, pp), in `arena`; strategies that no cut makes fit
 * into memory are left out. Returns their count. The paper runs the first of this list
 * for real (Algorithm 1, line 10). */
size_t het_amp_rank(struct het_arena *arena, const struct het_problem *problem,
                    const struct het_search_options *options,
                    const struct het_amp_strategy **ret);

#endif
