/* answer_text.h - answers that are JSON, for people: lines of text in `arena`. Plans,
 * explanations and timelines have pictures of their own (render/people). */
#ifndef HET_FORMAT_DOCUMENT_ANSWER_TEXT_H
#define HET_FORMAT_DOCUMENT_ANSWER_TEXT_H

#include "planner/base/arena.h"

#include <jansson.h>

/* What het_question_judge says, with or without its price. */
char *het_answer_verdict_text(struct het_arena *arena, const json_t *verdict);
/* What het_question_diff says. */
char *het_answer_migration_text(struct het_arena *arena, const json_t *migration);
/* What het_render_json says: files, and environment and command line of every pod. */
char *het_answer_rendering_text(struct het_arena *arena, const json_t *rendering);

/* Of a pod of it by itself: its arguments as words for a shell, its environment as lines
 * NAME=VALUE. */
char *het_answer_pod_arguments(struct het_arena *arena, const json_t *pod);
char *het_answer_pod_environment(struct het_arena *arena, const json_t *pod);

#endif
