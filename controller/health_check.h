/* health_check.h - `heterotrain-controller check URL`: whether a server of ours answers.
 * For tests and probes where there is no shell and no curl, as in the image. */
#ifndef CONTROLLER_HEALTH_CHECK_H
#define CONTROLLER_HEALTH_CHECK_H

#include <stdio.h>

/* Seconds until an answer of another status than 200, or none, is final. */
#define HEALTH_CHECK_TIMEOUT_S 30
/* What is shown of an answer. */
#define HEALTH_CHECK_BYTES     ((size_t)4096)

/* `argv[0]` is the word "check". Asks once a second until the answer is 200. Returns the
 * exit status: 0, it was, and its text went to `out`; 1, it was not in time; 2, bad
 * option. Uses getopt. */
int health_check_main(int argc, char **argv, FILE *out, FILE *err);

#endif
