/* unreadable_jobs.h - jobs that the watch cannot read. No pass decides on them, so this
 * module tells their users, once, by the condition Accepted and an event. */
#ifndef CONTROLLER_OPERATOR_UNREADABLE_JOBS_H
#define CONTROLLER_OPERATOR_UNREADABLE_JOBS_H

#include "controller/kube/watch.h"

enum {
    UNREADABLE_JOBS = 1024,       /* jobs whose users are told; others are logged */
    UNREADABLE_RETELL_MS = 30000, /* after a failure */
};

struct unreadable_jobs;

struct unreadable_jobs *unreadable_jobs_new(struct kube *kube);
/* Not from inside a callback. */
void unreadable_jobs_free(struct unreadable_jobs *jobs);

/* For the watch of jobs (watch_config.on_quarantine). */
void unreadable_jobs_note(struct unreadable_jobs *jobs,
                          const struct kube_identity *identity, struct json_span text,
                          const char *why);
/* The job can be read again, or is gone. */
void unreadable_jobs_forget(struct unreadable_jobs *jobs, const char *ns,
                            const char *name);
/* Forgets jobs that are absent from the list which `watch` has just taken. */
void unreadable_jobs_sweep(struct unreadable_jobs *jobs, const struct watch *watch);

/* Writes to the jobs that do not have the condition yet; only the leader calls it. */
void unreadable_jobs_tell(struct unreadable_jobs *jobs, int64_t now_ms, int64_t wall_ms);
/* When unreadable_jobs_tell has something to do; INT64_MAX: never. */
int64_t unreadable_jobs_next_ms(const struct unreadable_jobs *jobs);

#endif
