/* scale.h - how often a random or large test repeats itself. */
#ifndef TESTS_SCALE_H
#define TESTS_SCALE_H

#include <stdbool.h>
#include <stdlib.h>

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

#endif
