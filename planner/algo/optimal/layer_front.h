/* layer_front.h - layers over stages for a number of micro-batches not yet known: trades
 * the sum over the stages, which the first micro-batch takes, for the bottleneck, which
 * every further one takes. */
#ifndef HET_ALGO_OPTIMAL_LAYER_FRONT_H
#define HET_ALGO_OPTIMAL_LAYER_FRONT_H

#include "planner/search/balance.h"

/* With m micro-batches an iteration takes sum_s + (m - 1) * bottleneck_s (balance.h). */
struct het_layer_front_point {
    double sum_s, bottleneck_s;
    const uint32_t *cuts; /* [stage_count + 1] */
};

/* Points of one front, at most. */
#define HET_LAYER_FRONT_MAX_POINTS 6u

/* Splits none of which is better than another in both respects, the least bottleneck
 * first, in `arena`; returns how many, 0 when no split fits. Ignores
 * question->microbatch_count. The first is the split with the least bottleneck there is,
 * and the least sum among those; the others have the least sum for limits on the
 * bottleneck that rise from there (1.02, 1.06, ... of the least): not the whole front,
 * but points between two of them gain little. There are fewer once HET_BALANCE_MAX_PAIRS
 * pairs of layers have been looked at. That number is added to `ret_work`.
 *
 * Method: the two dynamic programs of het_balance_layers, over (stage, cut). */
size_t het_layer_front_find(struct het_arena *arena,
                            const struct het_balance_layers *question,
                            struct het_layer_front_point *ret_points, uint64_t *ret_work);

#endif
