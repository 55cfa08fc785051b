/* people/timeline.h - draws the timeline of an iteration: lines of text, a picture (SVG),
 * or a trace for chrome://tracing and https://ui.perfetto.dev.
 *
 * Text and picture have a row for each stage. Pipelines that do the same at the same
 * times, on the same types of GPUs, are shown once, with their number; beyond
 * HET_RENDER_MAX_ROWS rows it shows the first and says how many are left out. Where a
 * column or pixel holds more than one task, it shows what takes most of its time. The
 * trace has every task. `plan` is the one that was simulated. Texts are in `arena`. */
#ifndef HET_RENDER_PEOPLE_TIMELINE_H
#define HET_RENDER_PEOPLE_TIMELINE_H

#include "planner/cost/timeline.h"
#include "planner/model/plan.h"
#include "planner/render/people/table.h"

#define HET_RENDER_MAX_ROWS   64u
/* Tasks that the picture shows one by one, with their micro-batch and times. */
#define HET_RENDER_MAX_BLOCKS 2500u

/* Lines of at most `width` columns (70 at least). */
char *het_render_timeline_text(struct het_arena *arena, const struct het_plan *plan,
                               const struct het_timeline *timeline, int width,
                               enum het_charset charset);
/* An SVG document, whose colours follow prefers-color-scheme. */
char *het_render_timeline_svg(struct het_arena *arena, const struct het_plan *plan,
                              const struct het_timeline *timeline);
/* JSON of the Trace Event Format: a process is a pipeline, a thread a stage, times are
 * microseconds. */
char *het_render_timeline_trace(struct het_arena *arena, const struct het_plan *plan,
                                const struct het_timeline *timeline);

#endif
