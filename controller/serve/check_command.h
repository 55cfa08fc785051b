/* check_command.h - `heterotrain-controller check URL`: checks whether one of our servers
 * answers, and whether the API server would accept a job. For tests and probes without
 * shell, curl or kubectl, as in the image. */
#ifndef CONTROLLER_SERVE_CHECK_COMMAND_H
#define CONTROLLER_SERVE_CHECK_COMMAND_H

#include <stdio.h>

/* Seconds after which a missing answer, or one with a status other than 200, is final. */
#define HEALTH_CHECK_TIMEOUT_S 30
/* The most that is shown of an answer. */
#define HEALTH_CHECK_BYTES     ((size_t)4096)

/* `argv[0]` is the word "check". Asks once a second until the answer is 200; then, with
 * --dry-run, until the API server has accepted the creation of that job without making it
 * (dryRun=All: schema, webhook and policies are applied, nothing is written). Returns the
 * exit status: 0, success, with the answer on `out`; 1, no success in time; 2, bad option
 * or file. Uses getopt. */
int check_command_main(int argc, char **argv, FILE *out, FILE *err);

#endif
