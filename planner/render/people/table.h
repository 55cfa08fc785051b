/* table.h - a plan for people: one line, or a page with a table and a picture. */
#ifndef HET_RENDER_PEOPLE_TABLE_H
#define HET_RENDER_PEOPLE_TABLE_H

#include "planner/model/plan.h"

/* One line of at most 120 characters: GPUs of each type with their tensor-parallel
 * degrees, pipelines, deepest pipeline, widest data parallelism: "A100-SXM4-40GBx4:tp2
 * V100-SXM2-16GBx8:tp1 pp3 dp2". In `arena`. */
const char *het_render_summary(struct het_arena *arena, const struct het_plan *plan);

enum het_charset { HET_UTF8, HET_ASCII };

/* The plan as a page of lines of at most `width` columns (70 at least), in `arena`:
 *
 *   - a heading: algorithm, seconds a step, samples a second, GPUs used;
 *   - a table: pipeline, stage, layers, replicas and their tp, GPU type, nodes, samples
 *     of a micro-batch, memory used of that on a GPU; a line for each kind of replica;
 *   - a picture of each pipeline: stages as boxes as wide as their layers;
 *   - the step time by parts, against the lower bound; GPUs that are not used, and why.
 *
 * Pipelines of one shape are shown once, with their number; at most
 * HET_RENDER_MAX_SHAPES shapes, and HET_RENDER_MAX_STAGES stages of each. What
 * plan->predicted lacks is worked out from `problem` (may be NULL: then it is left out;
 * else `plan` must be bound to it, and obey its rules but that of memory). So is all that
 * a document says of a plan (predicted.is_read), and what only its search could know is
 * left out; without `problem` the heading says whose words these are. A plan whose times
 * are not all measured says so below its heading. */
#define HET_RENDER_MAX_SHAPES 6u
#define HET_RENDER_MAX_STAGES 32u
char *het_render_table(struct het_arena *arena, const struct het_problem *problem,
                       const struct het_plan *plan, int width, enum het_charset charset);

#endif
