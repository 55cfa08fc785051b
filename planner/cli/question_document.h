/* question_document.h - the files and options of a command -> the question as one
 * document (question.h). Errors: HET_BAD_INPUT names the file or the option. */
#ifndef HET_CLI_QUESTION_DOCUMENT_H
#define HET_CLI_QUESTION_DOCUMENT_H

#include "planner/cli/options.h"

/* The document that `hetplan plan -` reads. A new reference. */
int het_question_document_build(const struct het_options *options, json_t **ret,
                                struct het_error *err);

#endif
