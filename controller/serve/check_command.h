/* check_command.h - `heterotrain-controller check URL`: whether a server of ours answers,
 * and whether the API server would take a job. For tests and probes where there is no
 * shell, no curl and no kubectl, as in the image. */
#ifndef CONTROLLER_SERVE_CHECK_COMMAND_H
#define CONTROLLER_SERVE_CHECK_COMMAND_H

#include <stdio.h>

/* Seconds until an answer of another status than 200, or none, is final. */
#define HEALTH_CHECK_TIMEOUT_S 30
/* What is shown of an answer. */
#define HEALTH_CHECK_BYTES     ((size_t)4096)

/* `argv[0]` is the word "check". Asks once a second until the answer is 200; then, with
 * --dry-run, until the API server has accepted the creation of that job without making it
 * (dryRun=All: custom resource, webhook and policies are asked, nothing is written).
 * Returns the exit status: 0, it was so, and what was said went to `out`; 1, it was not
 * in time; 2, bad option or file. Uses getopt. */
int check_command_main(int argc, char **argv, FILE *out, FILE *err);

#endif
