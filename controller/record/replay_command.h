/* replay_command.h - `heterotrain-controller replay FILE`: makes the recorded decisions
 * (snapshot_json.h) again, shows them, and compares them with the recorded ones. It
 * touches nothing else; FILE is not trusted. */
#ifndef CONTROLLER_RECORD_REPLAY_COMMAND_H
#define CONTROLLER_RECORD_REPLAY_COMMAND_H

#include <stdio.h>

/* `argv[0]` is the word "replay". Returns the exit status: 0, all decisions are the same;
 * 1, one differs, or a line cannot be read; 2, bad option or file. Uses getopt. */
int replay_command_main(int argc, char **argv, FILE *out, FILE *err);

#endif
