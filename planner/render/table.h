/* render/table.h - a plan for people. */
#ifndef HET_RENDER_TABLE_H
#define HET_RENDER_TABLE_H

#include "planner/plan.h"

/* One line of at most 120 characters: GPUs of each type with their tensor-parallel
 * degrees, pipelines, deepest pipeline, widest data parallelism: "A100-SXM4-40GBx4:tp2
 * V100-SXM2-16GBx8:tp1 pp3 dp2". In `arena`. */
const char *het_render_summary(struct het_arena *arena, const struct het_plan *plan);

#endif
