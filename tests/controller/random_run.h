/* random_run.h - one life of a random cluster under the real controller, with faults of
 * every kind, out of one seed: while it is shaken, and until it has come to rest, all
 * invariants (invariants.h) are looked at. */
#ifndef TESTS_CONTROLLER_RANDOM_RUN_H
#define TESTS_CONTROLLER_RANDOM_RUN_H

#include "tests/controller/invariants.h"

#include <stdio.h>

struct random_run_result {
    char *broken;    /* which invariant, and when; NULL: none. Freed by the caller */
    uint64_t digest; /* of all that happened, byte for byte */
    struct invariants_statistics seen;
    uint64_t writes, faults, restarts, planner_questions, events;
    int64_t virtual_ms;
};

struct random_run_config {
    uint64_t seed;
    FILE *trace; /* gets a line for every event, and every change of an object; or NULL */
    /* As in loop.h; NULL: nobody. */
    void (*on_decision)(void *context, const struct snapshot *snapshot,
                        const struct decision *decision);
    void *decision_context;
};

struct random_run_result random_run(const struct random_run_config *config);

#endif
