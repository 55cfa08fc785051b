/* simulate_command.h - `heterotrain-simulate`: runs the real controller on a cluster read
 * from files, with a script of events, to show what would happen. */
#ifndef CONTROLLER_SIMULATE_SIMULATE_COMMAND_H
#define CONTROLLER_SIMULATE_SIMULATE_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct simulate_terminal {
    FILE *out, *err;
    bool is_utf8;
    int width;           /* columns of a line */
    const char *hetplan; /* default path */
    /* For --dashboard, which runs in real time; NULL: not supported. `sleep_ms` returns
     * false when the dashboard should end. */
    int64_t (*clock_ms)(void);
    bool (*sleep_ms)(int64_t ms);
};

/* Returns the exit status: 0, all jobs run, are placed or have finished at the end; 1,
 * some job waits, or the controller did not come to rest; 2, bad input. Uses getopt. */
int simulate_command_main(int argc, char **argv,
                          const struct simulate_terminal *terminal);

#endif
