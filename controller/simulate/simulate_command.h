/* simulate_command.h - `heterotrain-simulate`: what would happen? The real controller on
 * a cluster that is read from files, with a script of events, without a cluster. */
#ifndef CONTROLLER_SIMULATE_SIMULATE_COMMAND_H
#define CONTROLLER_SIMULATE_SIMULATE_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct simulate_terminal {
    FILE *out, *err;
    bool is_utf8;
    int width;           /* columns of a line */
    const char *hetplan; /* path that is used when none is given */
    /* For --dashboard, whose time is real; NULL: there is none. `sleep_ms` returns false
     * when that is to end. */
    int64_t (*clock_ms)(void);
    bool (*sleep_ms)(int64_t ms);
};

/* Returns the exit status: 0, all jobs run, are placed or are over at the end; 1, some
 * job waits, or the controller did not come to rest; 2, bad input. Uses getopt. */
int simulate_command_main(int argc, char **argv,
                          const struct simulate_terminal *terminal);

#endif
