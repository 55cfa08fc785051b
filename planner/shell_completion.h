/* shell_completion.h - scripts by which a shell completes the command lines of a program.
 * The program answers `PROGRAM __complete WORD...` with a line for each choice, its
 * description behind a tab, and ":4" at the end (":0": or a file). */
#ifndef HET_SHELL_COMPLETION_H
#define HET_SHELL_COMPLETION_H

#include "planner/base/error.h"

#include <stdio.h>

/* The shells, "bash"; ends with NULL. */
extern const char *const het_shells[];

/* Prints the script of `shell` for `program`. Errors: HET_BAD_INPUT. */
int het_shell_completion(const char *shell, const char *program, FILE *out,
                         struct het_error *err);

#endif
