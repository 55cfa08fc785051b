/* shape_neighbour.h - cells like one that is known to be good: columns that were not in
 * the catalogue, made where they are worth most. */
#ifndef HET_ALGO_OPTIMAL_SHAPE_NEIGHBOUR_H
#define HET_ALGO_OPTIMAL_SHAPE_NEIGHBOUR_H

#include "planner/algo/optimal/shape_catalog.h"

/* Adds the cells that differ from `cell` in one respect: two stages of a node made one
 * (side by side, or of a higher tensor-parallel degree), a stage parted, another degree
 * of a stage, a node more or less, a node of another class with as many GPUs, two
 * neighbouring nodes exchanged, a stage on one more node, or a stage more, on one or two
 * nodes of any class, before all others or behind them. Cells whose stages mix types have
 * none.
 * false when `effort` is spent. */
bool het_shape_neighbour_add(struct het_shape_catalog *catalog,
                             const struct het_pipeline_shape *cell, uint64_t effort);

#endif
