/* process.h - the environment of a program: clocks, its terminal, the programs beside it.
 * For main functions and code that waits for another process; code that decides gets
 * these as values. */
#ifndef CONTROLLER_BASE_PROCESS_H
#define CONTROLLER_BASE_PROCESS_H

#include <stdint.h>
#include <time.h>

int64_t process_clock_ms(clockid_t clock);
/* Width of the terminal on standard output; 0: it is not one, or the width is unknown. */
int process_terminal_width(void);
/* Path of `program` in the folder of this program; just the name if the folder is
 * unknown. The caller frees. */
char *process_path_beside(const char *program);

#endif
