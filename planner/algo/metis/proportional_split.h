/* proportional_split.h - layers over the stages of a pipeline in proportion to the
 * stages' speed, as in Metis' planner: fast and inexact, without a dynamic program.
 * balance.h splits exactly; paper_walk.h uses this to walk the paper's search as its
 * authors counted it.
 *
 * Source: T. Um et al., Metis, USENIX ATC 2024, section 4.2.2, part 3 ("balances the load
 * of layers across stages proportional to the capacity of each stage"; "distributes the
 * layers of the OOM stage across remaining stages"). The paper does not say how shares
 * become whole layers; the rules below are those of the released program, found by
 * experiment and in our words, because the number of steps depends on them. */
#ifndef HET_ALGO_METIS_PROPORTIONAL_SPLIT_H
#define HET_ALGO_METIS_PROPORTIONAL_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

/* Each layer counts as this many equal slices. */
#define HET_PROPORTIONAL_SPLIT_SLICES 7u
/* Layers moved over a border after the slices are joined, at most. */
#define HET_PROPORTIONAL_SPLIT_MOVES  3u

/* Working memory for a model of `layer_count` layers and at most `stage_limit` stages.
 * `layer_s[layer_count]`: seconds of each layer; only their shares matter. */
struct het_proportional_split;
struct het_proportional_split *het_proportional_split_new(const double *layer_s,
                                                          uint32_t layer_count,
                                                          uint32_t stage_limit);
void het_proportional_split_free(struct het_proportional_split *space);

/* Splits the layers over `stage_count` stages whose `speed` (sum 1) says which share of
 * the model each should get: stage s has layers ret_cuts[s] .. ret_cuts[s + 1] - 1, for
 * ret_cuts[stage_count + 1].
 *
 *  1. All stages but the last take slices from the front while a slice is smaller than
 *     the rest of their share; the first slice that is not is left over, and so are the
 *     last eight. The last stage takes a whole layer from the back, and more while they
 *     fit.
 *  2. Slices left over go, from the front, to the stage between their neighbours that has
 *     most of its share left.
 *  3. A layer belongs to the stage that has more than half of its slices.
 *  4. The stage with most of its share left takes the border layer of the neighbour that
 *     has least, up to HET_PROPORTIONAL_SPLIT_MOVES times, while the most that is left
 *     does not grow.
 *
 * A layer whose slices went to three stages may belong to none: then
 * ret_cuts[stage_count] is less than layer_count and the split is no plan. Stages may be
 * left without layers. Returns whether the split is one of all layers. */
bool het_proportional_split_whole(struct het_proportional_split *space,
                                  const double *speed, uint32_t stage_count,
                                  uint32_t *ret_cuts);

/* After a split where stages need more memory than they have (needed[s] > room[s], in
 * bytes): cuts their shares to nine tenths of what the memory allows, and gives the
 * difference to the others in proportion to their speed, as far as their memory allows.
 * Changes `speed`; false, with `speed` unchanged, if the others have too little room. */
bool het_proportional_split_shift(struct het_proportional_split *space, double *speed,
                                  const double *needed, const double *room,
                                  uint32_t stage_count);

#endif
