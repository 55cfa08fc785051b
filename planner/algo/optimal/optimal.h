/* optimal.h - our own planner: asymmetric pipelines of repeated cells, then local search.
 *
 * The nodes are counted by class (node_class.h). For each class, and for pairs and
 * triples of them, pipelines on a few nodes are listed with their layers split exactly
 * (shape_catalog.h). Bisection then finds the least time of an iteration, for a ladder of
 * limits on the gradients that a node sends (nodes that hold fewer layers synchronise
 * faster, and send activations instead) and on the optimizer step: in a given time each
 * pipeline does a known number of samples; a linear program picks how many of each fill
 * the nodes and do the most (shape_count.h). Pipelines are simulated before use, and
 * neighbours of those used are added (shape_neighbour.h). The winner is put on nodes and
 * its batch made exact (build_plan.h). Last, local search improves the best plan, of this
 * or of the algorithms before it (local_search.h).
 *
 * Effort: at most a quarter each for the three parts of the catalogue, an eighth for
 * neighbours, another quarter of the whole for single nodes, an eighth for the local
 * search; the rest is for the ladder.
 *
 * Source: docs/planner.md, optimal; column generation after Dantzig and Wolfe, 1960, with
 * the columns listed beforehand. */
#ifndef HET_ALGO_OPTIMAL_OPTIMAL_H
#define HET_ALGO_OPTIMAL_OPTIMAL_H

#include "planner/search/search.h"

extern const struct het_algorithm het_algo_optimal;

#endif
