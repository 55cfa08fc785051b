/* batch_jobs.h - what the controller of batch/v1 Jobs does with one Job: one pod at a
 * time, until one succeeds, too many have failed, or the deadline passes. Pure.
 *
 * Source: Kubernetes, pkg/controller/job: a failed pod is replaced after 10 s, doubled
 * each time, up to backoffLimit. Differs: completions and parallelism are 1,
 * restartPolicy is Never, and Jobs are not deleted after their TTL. */
#ifndef CONTROLLER_SIMULATE_BATCH_JOBS_H
#define CONTROLLER_SIMULATE_BATCH_JOBS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct batch_jobs_verdict {
    json_t *status; /* the Job's new status; a new reference */
    bool wants_pod; /* create a pod now */
    bool ends_pods; /* delete the remaining pods */
    int64_t due_ms; /* when to look again; INT64_MAX: only after a change */
};

/* `pods` are all that the Job controls. */
struct batch_jobs_verdict batch_jobs_look(const json_t *job, const json_t *pods,
                                          int64_t now_ms);
/* Pod `number` of the Job. A new reference. */
json_t *batch_jobs_make_pod(const json_t *job, uint64_t number);

#endif
