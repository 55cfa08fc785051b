/* commands.h - the program kubectl-htj, which kubectl runs as `kubectl htj`: shows what
 * plan a job would get, why its plan is as it is, and what was decided about it, and
 * makes the few changes that an owner makes by hand. It reads everything from the API
 * server, with its user's rights; only `approve`, `suspend` and `resume` write. */
#ifndef CONTROLLER_KUBECTL_COMMANDS_H
#define CONTROLLER_KUBECTL_COMMANDS_H

#include "controller/kubectl/host.h"

enum {
    HTJ_EXIT_DONE = 0,
    HTJ_EXIT_NO_PLAN = 1,   /* none fits, there is none yet, none waits for approval */
    HTJ_EXIT_BAD_INPUT = 2, /* a wrong option or file, or no such job */
    HTJ_EXIT_SERVER = 3,    /* the API server refuses or cannot be reached */
};

/* `argv[0]` is the program; under the name kubectl_complete-htj it answers completions.
 * Returns the exit status. */
int htj_main(int argc, char **argv, const struct htj_host *host);

#endif
