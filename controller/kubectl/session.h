/* session.h - one run of a command: its options, the API server, and the first steps of
 * nearly every command: reading the job and one of its plans. */
#ifndef CONTROLLER_KUBECTL_SESSION_H
#define CONTROLLER_KUBECTL_SESSION_H

#include "controller/base/object.h"
#include "controller/kubectl/blocking_client.h"
#include "controller/kubectl/options.h"

struct session {
    const struct htj_host *host;
    const struct htj_options *options;
    struct het_arena *arena;
    struct htj_link link;
    struct client *client;
    const char *ns; /* of the options, else of the context */
};

/* Opens the connection; sends no request yet. */
int session_init(struct session *session, const struct htj_host *host,
                 const struct htj_options *options, struct het_error *err);
void session_fini(struct session *session);

/* The first of the command's words; HET_BAD_INPUT unless there are from 1 to `most`. */
int session_get_name(const struct session *session, size_t most, const char **ret,
                     struct het_error *err);
/* A new reference. Errors: HET_NOT_FOUND, HET_DENIED, HET_IO. */
int session_get_job(struct session *session, const char *name, json_t **ret,
                    struct het_error *err);
/* Prints a note, not a failure, on standard error. */
void session_note(const struct session *session, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A plan of a job. */
struct shown_plan {
    int64_t generation; /* 0: a candidate */
    json_t *json;       /* plan.json; owned */
    const struct het_plan *plan;
};
/* The plan that the options name: the newest, --revision, --candidate. Errors:
 * HET_NO_PLAN when there is none yet, and why; HET_NOT_FOUND; HET_BAD_INPUT when the
 * object is not a plan as the controller writes it. */
int session_get_plan(struct session *session, const json_t *job, struct shown_plan *ret,
                     struct het_error *err);
void shown_plan_fini(struct shown_plan *plan);

#endif
