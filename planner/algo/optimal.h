/* algo/optimal.h - our own planner: asymmetric pipelines of like bricks.
 *
 * The nodes are counted by class (inventory.h). For each class, and for pairs and triples
 * of them, all pipelines on a few nodes that are worth it are listed with their layers
 * split exactly (catalog.h). How long an iteration must take is then found by bisection,
 * for a ladder of limits on the gradients that a node may have to send (nodes that hold
 * fewer layers synchronise faster, and send activations instead) and on the optimizer
 * step: in a given time each pipeline does so many samples; a linear program picks how
 * many of each fill the nodes and do the most (mixture.h). The winner is put on nodes,
 * the batch made exact (assembly.h).
 *
 * Source: planner.md, "What is known about good plans"; column generation after Dantzig
 * and Wolfe, 1960, with the columns listed beforehand. */
#ifndef HET_ALGO_OPTIMAL_H
#define HET_ALGO_OPTIMAL_H

#include "planner/algo.h"

extern const struct het_algorithm het_algo_optimal;

#endif
