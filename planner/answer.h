/* answer.h - one question to the planner as a document, one answer: what
 * `hetplan plan -` does between standard input and standard output (plan-format.md). */
#ifndef HET_ANSWER_H
#define HET_ANSWER_H

#include "planner/codec.h"

/* A problem and options out of the input document; everything lives in `arena`. */
struct het_question {
    struct het_problem problem;
    struct het_search_options options;
    const struct het_hardware *hardware;
    const struct het_plan *from; /* running plan, or NULL */
};

int het_question_read(struct het_arena *arena, const json_t *document,
                      struct het_question *ret, struct het_error *err);

/* Runs the search. On success the plan, whole (predicted, search, idle). */
int het_question_plan(struct het_arena *arena, const struct het_question *question,
                      const struct het_plan **ret, struct het_error *err);

/* { "valid", "violations", "iterationSeconds", "closedFormSeconds", "parts",
 * "peakMemoryBytes" } of any plan file; never fails on a bad plan, it says so. A new
 * reference. */
json_t *het_question_judge(struct het_arena *arena, const struct het_question *question,
                           const json_t *plan);

#endif
