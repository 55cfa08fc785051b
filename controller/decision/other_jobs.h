/* other_jobs.h - the other jobs, as far as one job's decision needs them: what they hold,
 * what they could give up, and who has laid claim to whose GPUs. Pure.
 *
 * A claim is a plan that counts on GPUs which other jobs still hold. It is written on the
 * plan's ConfigMap (ANNOTATION_PREEMPTS), so it survives the controller, and is gone with
 * the plan:
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
    /* Its own rules allow no move that it does not need before then; INT64_MAX: never. */
    int64_t next_move_wall_ms;
    int64_t stop_ms;    /* it may take as long to give GPUs up */
    bool is_in_a_claim; /* waits for GPUs of others, or has to give up some already */
};

struct claim {
    const char *key, *uid; /* of the job that claims */
    struct precedence precedence;
    bool is_served;             /* its pods have been placed */
    int64_t until_wall_ms;      /* then it is given up */
    int64_t in_vain;            /* claims that were given up right before it, in a row */
    const char *const *victims; /* "namespace/uid", as capacity.h names jobs */
    size_t victim_count;
};

/* The claims of all jobs, by precedence. Allocated in `arena`, strings borrowed from the
 * store or in `arena`. */
size_t other_jobs_claims(struct het_arena *arena, const struct store *store,
                         struct claim **ret);
/* Whether it is on GPUs of the job with `job_key` ("namespace/uid"). */
bool other_jobs_claim_names(const struct claim *claim, const char *job_key);
/* What is written on one plan: `until_wall_ms`, `in_vain` and `victims`; false if
 * nothing is. */
bool other_jobs_read_claim(struct het_arena *arena, const json_t *config_map,
                           struct claim *ret);
/* All jobs but the one with `job_key` that hold GPUs, by precedence; their times within
 * `limits`. */
size_t other_jobs_take(struct het_arena *arena, const struct store *store,
                       const struct capacity *capacity,
                       const struct settings_limits *limits, const char *job_key,
                       int64_t wall_ms, struct other_job **ret);

#endif
