/* replay_command.h - `heterotrain-controller replay FILE`: makes the recorded decisions
 * (snapshot_json.h) again, shows them, and says whether they are what was decided then.
 * Nothing outside is touched; FILE is not trusted. */
#ifndef CONTROLLER_RECORD_REPLAY_COMMAND_H
#define CONTROLLER_RECORD_REPLAY_COMMAND_H

#include <stdio.h>

/* `argv[0]` is the word "replay". Returns the exit status: 0, all decisions are the same;
 * 1, one is another, or a line cannot be read; 2, bad option or file. Uses getopt. */
int replay_command_main(int argc, char **argv, FILE *out, FILE *err);

#endif
