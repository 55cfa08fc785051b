/* batch_jobs.h - what the controller of batch/v1 Jobs does with one Job: one pod at a
 * time, until one succeeds, too many have failed, or the time is over. Pure.
 *
 * Source: Kubernetes, pkg/controller/job: pods that failed are followed by another after
 * 10 s, doubled each time, up to backoffLimit. Differs: completions and parallelism are
 * 1, restartPolicy is Never, and nobody deletes a Job when its time to live is over. */
#ifndef CONTROLLER_SIMULATE_BATCH_JOBS_H
#define CONTROLLER_SIMULATE_BATCH_JOBS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct batch_jobs_verdict {
    json_t *status; /* of the Job, as it should be; a new reference */
    bool wants_pod; /* one is to be made now */
    bool ends_pods; /* those that are left are to be deleted */
    int64_t due_ms; /* to be looked at again; INT64_MAX: only when something changes */
};

/* `pods` are all that the Job controls. */
struct batch_jobs_verdict batch_jobs_look(const json_t *job, const json_t *pods,
                                          int64_t now_ms);
/* Pod `number` of the Job. A new reference. */
json_t *batch_jobs_make_pod(const json_t *job, uint64_t number);

#endif
