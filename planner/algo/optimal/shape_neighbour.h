/* shape_neighbour.h - cells like one that is known to be good: columns that were not in
 * the catalogue, added where they gain most. */
#ifndef HET_ALGO_OPTIMAL_SHAPE_NEIGHBOUR_H
#define HET_ALGO_OPTIMAL_SHAPE_NEIGHBOUR_H

#include "planner/algo/optimal/shape_catalog.h"

/* Adds the cells that differ from `cell` in one respect: two stages of a node joined
 * (side by side, or at a higher tensor-parallel degree), a stage split, another degree of
 * a stage, a node more or less, a node of another class with as many GPUs, two
 * neighbouring nodes exchanged, a stage on one more node, or one more stage, on one or
 * two nodes of any class, at the front or the back. Cells whose stages mix types have no
 * neighbours. False when `effort` is spent. */
bool het_shape_neighbour_add(struct het_shape_catalog *catalog,
                             const struct het_pipeline_shape *cell, uint64_t effort);

#endif
