/* explanation.h - an explanation (explain.h) in sentences and a table. */
#ifndef HET_RENDER_PEOPLE_EXPLANATION_H
#define HET_RENDER_PEOPLE_EXPLANATION_H

#include "planner/run/explain.h"

/* In `arena`, at most `width` columns where names allow. */
char *het_render_explanation(struct het_arena *arena, const struct het_problem *problem,
                             const struct het_plan *plan,
                             const struct het_explanation *explanation, int width);

#endif
