/* scale.h - how often a random or large test repeats itself, and how patient one is that
 * waits for others. */
#ifndef TESTS_SCALE_H
#define TESTS_SCALE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* `make check` (QUICK=1) is to take less than a minute: what repeats itself does so less
 * often, and some long tests are left to `make test`. */
static inline bool is_check_run(void)
{
    return getenv("QUICK");
}

/* Of so many rounds one is enough: under sanitizers too, which are several times slower
 * and find their kind of mistake in fewer rounds. */
static inline int one_round_of(int in_check, int sanitized)
{
#if defined(__SANITIZE_ADDRESS__)
    (void)in_check;
    return sanitized;
#else
    (void)sanitized;
    return is_check_run() ? in_check : 1;
#endif
}

/* `n` rounds. */
#define SCALED(n) ((n) / one_round_of(8, 4))

/* How long may take now what takes `ms` where there is a core for everybody: longer by as
 * much as more wants to run than there are cores, or did in the last minute. */
static inline int64_t on_busy_machine_ms(int64_t ms)
{
    double wanted = 1, last_minute = 0;
    FILE *file = fopen("/proc/loadavg", "r");
    if (!file || fscanf(file, "%lf %*f %*f %lf", &last_minute, &wanted) != 2)
        wanted = 1;
    if (file)
        fclose(file);
    wanted = (wanted > last_minute ? wanted : last_minute) /
             (double)sysconf(_SC_NPROCESSORS_ONLN);
    return wanted > 1 ? (int64_t)((double)ms * wanted) : ms;
}

#endif
