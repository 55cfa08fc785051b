/* scale.h - how often a random or large test repeats itself. */
#ifndef TESTS_SCALE_H
#define TESTS_SCALE_H

/* `n` rounds in a plain build; a quarter under sanitizers, which are several times slower
 * and find their kind of mistake in fewer rounds. */
#if defined(__SANITIZE_ADDRESS__)
#define SCALED(n) ((n) / 4)
#else
#define SCALED(n) (n)
#endif

#endif
