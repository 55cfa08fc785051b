/* precedence.h - which job comes first when GPUs are short: the one with the higher
 * priority, then the older one, then the one with the lower uid. Pure. */
#ifndef CONTROLLER_CLUSTER_PRECEDENCE_H
#define CONTROLLER_CLUSTER_PRECEDENCE_H

#include "controller/base/object_store.h"

struct precedence {
    int64_t priority;   /* value of the job's PriorityClass */
    bool never_claims;  /* preemptionPolicy Never: it waits for GPUs to come free */
    int64_t created_ms; /* metadata.creationTimestamp since 1970; 0: not set */
    const char *uid;    /* borrowed from the job */
};

/* Resolves priority as the API server does for pods: by the class that
 * spec.scheduling.priorityClassName names; without one, by the class with globalDefault
 * (of several, the one with the lowest value); 0 if there is no such class. `store` holds
 * the PriorityClasses. */
struct precedence precedence_of(const struct store *store, const json_t *job);
/* Below 0: `a` comes first; above 0: `b` does. 0 only for the same job. */
int precedence_compare(const struct precedence *a, const struct precedence *b);

#endif
