/* completion.h - completion of command lines: `completion SHELL` prints the shell's
 * completion script for kubectl-htj; `__complete WORD...` lists the choices for the last
 * word, as kubectl asks kubectl_complete-htj: a line each, with a description after a
 * tab, and ":4" at the end (":0": or a file). */
#ifndef CONTROLLER_KUBECTL_COMPLETION_H
#define CONTROLLER_KUBECTL_COMPLETION_H

#include "controller/kubectl/host.h"
#include "controller/kubectl/options.h"

/* The operands of a command. */
enum htj_operand { HTJ_JOB, HTJ_JOBS, HTJ_JOB_OR_FILE, HTJ_JOB_AND_HASH, HTJ_SHELL };

/* What completion knows of a command. */
struct htj_completed {
    const char *name, *summary, *outputs;
    enum htj_command_bit bit;
    enum htj_operand operand;
};

/* `words` ends with the one to complete. Choices that cannot be read from the API server
 * are omitted; nothing fails. */
void htj_complete(const struct htj_host *host, const struct htj_completed *commands,
                  size_t command_count, int count, char *const *words);

#endif
