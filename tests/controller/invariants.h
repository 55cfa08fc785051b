/* invariants.h - what must hold whatever happens to a cluster and to its controller:
 * looked at on every change of an object, after every step, and at rest. The names I1 to
 * I11 are those of docs/testing.md. Looks on only; the first violation is kept. */
#ifndef TESTS_CONTROLLER_INVARIANTS_H
#define TESTS_CONTROLLER_INVARIANTS_H

#include "controller/simulate/simulation.h"

struct invariants;

struct invariants_config {
    /* The controller hears late of what others do (latency, faults, restarts): what it
     * could not know is not held against it. */
    bool is_late;
};

/* Make it before anything is put into the simulation's server. */
struct invariants *invariants_new(struct simulation *simulation,
                                  const struct invariants_config *config);
void invariants_free(struct invariants *invariants);
/* What broke first, and when; NULL: nothing yet. Borrowed. */
const char *invariants_broken(const struct invariants *invariants);

/* After every step of the clock. */
void invariants_step(struct invariants *invariants);
/* At rest, with a cluster that is well. */
void invariants_at_rest(struct invariants *invariants);
/* Nothing happens to the cluster while it is calm: no healthy pod may end (I9). */
void invariants_set_calm(struct invariants *invariants, bool is_calm);

/* GPUs of node `node` that the plan in a ConfigMap takes. */
int64_t invariants_planned_on(const struct invariants *invariants, const json_t *map,
                              const char *node);

struct invariants_statistics {
    uint64_t plans, pods, partial_gangs, restarts, changes;
    uint64_t retries; /* of `plans`, those after pods that the API server refused */
    uint64_t jobs_seen, jobs_that_ran, jobs_over;
};
struct invariants_statistics invariants_statistics(const struct invariants *invariants);

#endif
