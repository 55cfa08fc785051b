/* scale.h - how often a random or large test repeats itself, and how patient one is that
 * waits for others. */
#ifndef TESTS_SCALE_H
#define TESTS_SCALE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Whether few rounds are enough: in `make check` (QUICK=1), and under sanitizers, which
 * are several times slower and find their kind of mistake in fewer rounds. */
static inline bool is_quick_run(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return true;
#else
    return getenv("QUICK");
#endif
}

/* `n` rounds; a quarter in a quick run. */
#define SCALED(n) (is_quick_run() ? (n) / 4 : (n))

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
