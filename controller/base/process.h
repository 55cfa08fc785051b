/* process.h - what a program finds around it: clocks, its terminal, the programs beside
 * it. For the mains, and for who waits for another process; what decides is given these
 * as values. */
#ifndef CONTROLLER_BASE_PROCESS_H
#define CONTROLLER_BASE_PROCESS_H

#include <stdint.h>
#include <time.h>

int64_t process_clock_ms(clockid_t clock);
/* Of the terminal that standard output is; 0: it is none, or does not say. */
int process_terminal_width(void);
/* `program` in the folder of this program, for free; just the name if that cannot be
 * known. */
char *process_path_beside(const char *program);

#endif
