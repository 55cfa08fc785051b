/* other_jobs.h - what one job's decision needs to know of the other jobs: what they hold,
 * what they could give up, and which jobs claim whose GPUs. Pure.
 *
 * A claim is a plan that uses GPUs which other jobs still hold. It is recorded on the
 * plan's ConfigMap (ANNOTATION_PREEMPTS), so it survives a restart of the controller and
 * ends with the plan:
 *
 *     {"until": "2026-01-01T00:10:00Z", "inVain": 1,
 *      "victims": [{"job": "ns/name", "uid": "...", "gpus": {"node-a": 4}}]} */
#ifndef CONTROLLER_DECISION_OTHER_JOBS_H
#define CONTROLLER_DECISION_OTHER_JOBS_H

#include "controller/cluster/capacity_view.h"
#include "controller/cluster/precedence.h"

/* Another job that holds GPUs. */
struct other_job {
    const char *key, *uid; /* "namespace/name" */
    struct precedence precedence;
    const struct capacity_share *shares; /* by node */
    size_t share_count;
    int64_t gpus;     /* their sum */
    int64_t min_gpus; /* INT64_MAX: its spec cannot be read */
    /* The earliest time at which its own rules allow a voluntary move; INT64_MAX:
     * never. */
    int64_t next_move_wall_ms;
    int64_t stop_ms;    /* how long it may take to give GPUs up */
    bool is_in_a_claim; /* it waits for GPUs of others, or already has to give some up */
};

struct claim {
    const char *key, *uid; /* of the claiming job */
    struct precedence precedence;
    bool is_served;             /* its pods have been placed */
    int64_t until_wall_ms;      /* when the claim is given up */
    int64_t in_vain;            /* consecutive claims given up right before it */
    const char *const *victims; /* "namespace/uid", as capacity.h names jobs */
    size_t victim_count;
};

/* The claims of all jobs, by precedence. The array is in `arena`; strings are borrowed
 * from the store or in `arena`. */
size_t other_jobs_claims(struct het_arena *arena, const struct store *store,
                         struct claim **ret);
/* Whether the claim takes GPUs of the job with `job_key` ("namespace/uid"). */
bool other_jobs_claim_names(const struct claim *claim, const char *job_key);
/* Reads the claim on one plan: `until_wall_ms`, `in_vain` and `victims`. False if the
 * plan carries none. */
bool other_jobs_read_claim(struct het_arena *arena, const json_t *config_map,
                           struct claim *ret);
/* All jobs that hold GPUs except the one with `job_key`, by precedence; `limits` bounds
 * their times. */
size_t other_jobs_take(struct het_arena *arena, const struct store *store,
                       const struct capacity *capacity,
                       const struct settings_limits *limits, const char *job_key,
                       int64_t wall_ms, struct other_job **ret);

#endif
