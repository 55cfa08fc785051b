/* algo/megatron.h - the baseline of every comparison: Megatron-LM's rule of thumb for
 * choosing degrees by hand.
 *
 * Source: D. Li et al., "AMP: Automatically Finding Model Parallel Strategies with
 * Heterogeneity Awareness", NeurIPS 2022, section 4.1, which sums the rule up: for each
 * micro-batch size take the smallest tp x pp that fits, tp inside a node; place tensor-
 * parallel ranks in a node first, then data-parallel ones; as many layers in each stage;
 * of the micro-batch sizes take the best.
 *
 * All GPUs count alike, nodes stand in input order. Of equal tp x pp the larger tp is
 * taken. Stages differ by at most one layer, embedding and head counted as layers.
 *
 * Differs, for clusters that are no grid: a node gives as many tensor-parallel groups as
 * it has room for, and dp is the largest number of groups a stage that makes the global
 * batch a whole number of micro-batches; GPUs beyond that stay idle. The dp replicas of a
 * stage are written as one stage of one pipeline with micro-batch dp * b, which costs the
 * same as dp pipelines that share their uplinks.
 *
 * However small the effort, a search that starts with it looks at the candidates of the
 * smallest micro-batch size, up to the first that fits: the one that needs the least
 * memory. */
#ifndef HET_ALGO_MEGATRON_H
#define HET_ALGO_MEGATRON_H

#include "planner/search/search.h"

extern const struct het_algorithm het_algo_megatron;

#endif
