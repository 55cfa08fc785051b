/* completion.h - completion of command lines: `completion SHELL` prints what a shell
 * reads for the program kubectl-htj; `__complete WORD...` answers what may stand in the
 * place of the last word, as kubectl asks kubectl_complete-htj: a line for each choice,
 * what it is behind a tab, and ":4" at the end (":0": or a file). */
#ifndef CONTROLLER_KUBECTL_COMPLETION_H
#define CONTROLLER_KUBECTL_COMPLETION_H

#include "controller/kubectl/host.h"
#include "controller/kubectl/options.h"

/* What a command takes besides its options. */
enum htj_operand { HTJ_JOB, HTJ_JOBS, HTJ_JOB_OR_FILE, HTJ_JOB_AND_HASH, HTJ_SHELL };

/* A command, as far as completion knows it. */
struct htj_completed {
    const char *name, *summary, *outputs;
    enum htj_command_bit bit;
    enum htj_operand operand;
};

/* `words` up to the one that is completed. What the API server cannot be asked for is no
 * choice; nothing fails. */
void htj_complete(const struct htj_host *host, const struct htj_completed *commands,
                  size_t command_count, int count, char *const *words);

#endif
