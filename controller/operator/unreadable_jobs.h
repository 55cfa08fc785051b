/* unreadable_jobs.h - jobs that the watch cannot read. Nothing is decided about them, so
 * their users are told here, once: by the condition Accepted and an event. */
#ifndef CONTROLLER_OPERATOR_UNREADABLE_JOBS_H
#define CONTROLLER_OPERATOR_UNREADABLE_JOBS_H

#include "controller/kube/watch.h"

enum {
    UNREADABLE_JOBS = 1024,       /* whose users are told; of more, the log is */
    UNREADABLE_RETELL_MS = 30000, /* when it failed */
};

struct unreadable_jobs;

struct unreadable_jobs *unreadable_jobs_new(struct kube *kube);
/* Not from inside a callback. */
void unreadable_jobs_free(struct unreadable_jobs *jobs);

/* As the watch of jobs says it (watch_config.on_quarantine). */
void unreadable_jobs_note(struct unreadable_jobs *jobs,
                          const struct kube_identity *identity, struct json_span text,
                          const char *why);
/* A job that can be read, or is gone. */
void unreadable_jobs_forget(struct unreadable_jobs *jobs, const char *ns,
                            const char *name);
/* Forgets those that the list which `watch` has just taken does not have. */
void unreadable_jobs_sweep(struct unreadable_jobs *jobs, const struct watch *watch);

/* Tells those that do not say so yet; for whoever leads. */
void unreadable_jobs_tell(struct unreadable_jobs *jobs, int64_t now_ms, int64_t wall_ms);
/* When there is somebody to tell; INT64_MAX: nobody. */
int64_t unreadable_jobs_next_ms(const struct unreadable_jobs *jobs);

#endif
