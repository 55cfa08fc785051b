/* rank_grid.h - a plan as grids see it: the lanes (runtime.h) of a plan whose stages
 * all have equally many replicas, with their ranks. */
#ifndef HET_RENDER_RUNTIME_RANK_GRID_H
#define HET_RENDER_RUNTIME_RANK_GRID_H

#include "planner/model/runtime.h"

struct het_rank_grid_replica {
    const struct het_replica *replica;
    const uint32_t *ranks; /* [replica->tp] */
};

struct het_rank_grid {
    size_t lane_count, stage_count; /* stage_count: of the longest pipeline */
    /* [lane][stage]; replica NULL behind the last stage of a shorter pipeline */
    const struct het_rank_grid_replica *replicas;
    const struct het_pipeline **pipelines; /* [lane] */
};

/* The plan's lanes in plan order. The plan must not take HET_DP_PER_STAGE. */
struct het_rank_grid het_rank_grid_of(struct het_arena *arena,
                                      const struct het_plan *plan);
const struct het_rank_grid_replica *het_rank_grid_at(const struct het_rank_grid *lanes,
                                                     size_t lane, size_t stage);

/* Transformer layers of a stage: without the embedding (layer 0) and the head (the last).
 */
uint32_t het_rank_grid_blocks(const struct het_plan *plan, const struct het_stage *stage);

#endif
