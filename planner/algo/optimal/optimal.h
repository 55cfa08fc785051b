/* optimal.h - our own planner: asymmetric pipelines of like bricks, then polished.
 *
 * The nodes are counted by class (node_class.h). For each class, and for pairs and
 * triples of them, pipelines on a few nodes are listed with their layers split exactly
 * (shape_catalog.h). How long an iteration must take is then found by bisection, for a
 * ladder of limits on the gradients that a node may have to send (nodes that hold fewer
 * layers synchronise faster, and send activations instead) and on the optimizer step: in
 * a given time each pipeline does so many samples; a linear program picks how many of
 * each fill the nodes and do the most (shape_count.h). Pipelines are simulated before
 * they are used; those like the ones used are added (shape_neighbour.h). The winner is
 * put on nodes, the batch made exact (build_plan.h). In the end the best plan, of the
 * algorithms run before or of this one, is polished (local_search.h).
 *
 * Effort: at most a quarter each for the three parts of the catalogue, an eighth for
 * neighbours, a quarter of it all once more for single nodes, an eighth for the polish;
 * the rest is for the ladder.
 *
 * Source: docs/planner.md, optimal; column generation after Dantzig and Wolfe, 1960, with
 * the columns listed beforehand. */
#ifndef HET_ALGO_OPTIMAL_OPTIMAL_H
#define HET_ALGO_OPTIMAL_OPTIMAL_H

#include "planner/search/search.h"

extern const struct het_algorithm het_algo_optimal;

#endif
