/* pass.h - one pass over one job: its input and what it has decided so far. The files of
 * controller/placement/ and controller/reconcile/ each handle one concern and work on a
 * pass. Pure. */
#ifndef CONTROLLER_DECISION_PASS_H
#define CONTROLLER_DECISION_PASS_H

#include "controller/decision/decision.h"
#include "controller/decision/status.h"

struct pass {
    struct het_arena *arena;
    const struct snapshot *snapshot;
    struct decision *decision;
    struct status_facts facts;
    const struct snapshot_plan *current; /* newest plan; NULL: none yet */
    /* Pods of the current plan by pod index; NULL where there is no pod. */
    const struct snapshot_pod **pods;
    bool *has_succeeded; /* by pod index; the pod may be gone by now */
    /* Why the current plan cannot run as it is; NULL: it can. */
    const char *lost_trigger, *lost_message;
    bool lost_pods_still_run; /* the nodes only refuse new pods */
    bool is_leaving;          /* one of its nodes has announced that it will go */
    bool is_suspect;          /* one of its nodes is unusable and may come back */
    const char *claim;        /* ANNOTATION_PREEMPTS of the next generation; NULL: none */
    bool is_replaced;         /* a new generation was decided in this pass */
    bool can_plan;            /* there is a profile to plan with */
    bool is_unloadable;       /* the offered plan cannot load the existing checkpoint */
    /* Why a plan that was found needs approval before it is carried out; NULL: none
     * does. */
    const char *approval_reason, *approval_message;
    bool is_voluntary; /* the generation being replaced could go on */
    bool is_draining;  /* older pods stay until they have written a checkpoint */
};

/* Phases of the actions (struct action). */
enum {
    PHASE_RETIRE, /* also other annotations of plans */
    PHASE_DELETE,
    PHASE_PLAN_OBJECT,
    PHASE_SERVICE,
    PHASE_PODS,
    PHASE_EVENTS,
    PHASE_STATUS,
    PHASE_PROFILING /* after the status, so that a failure there does not delay it */
};

/* A message for people, in the arena. It may quote user input and may be truncated;
 * control characters and invalid UTF-8 become "?". Do not use it for text that a program
 * reads (names, queries, annotations): use het_arena_printf, which truncates nothing. */
__attribute__((format(printf, 2, 3))) const char *pass_text(struct pass *pass,
                                                            const char *format, ...);

/* ---- actions ---- */

struct action *pass_add(struct pass *pass, enum action_kind kind, int phase);
/* Takes ownership of `object`. */
struct action *pass_create(struct pass *pass, int phase,
                           const struct kube_resource *resource, json_t *object);
struct action *pass_delete(struct pass *pass, int phase,
                           const struct kube_resource *resource, const char *name,
                           const char *uid, int64_t grace_s);
/* Sets an annotation of `object`, or removes it (`value` NULL), unless the object has
 * changed since it was read. A pass writes all annotations of one object at once, in the
 * phase of the first. */
void pass_annotate(struct pass *pass, int phase, const struct kube_resource *resource,
                   const json_t *object, const char *key, const char *value);
/* Whether the planner may be asked now; if not, the job gets its turn later. `is_urgent`:
 * the job cannot run without the answer. */
bool pass_may_ask(struct pass *pass, bool is_urgent);
/* Takes ownership of `question`. */
struct action *pass_ask_planner(struct pass *pass, json_t *question, uint64_t digest);
/* Whether the objects of the current generation were read again in the last
 * PASS_FRESH_MS, as `generation` and `read_ms` record. If not, the caller adds actions
 * that read them, and the job is looked at again at once. */
bool pass_is_fresh(struct pass *pass, int64_t *generation, int64_t *read_ms);
#define PASS_FRESH_MS ((int64_t)10000)
/* Adds an action that reads the pods of namespace `ns` ("": all) again. */
void pass_refresh_pods(struct pass *pass, const char *ns, const char *query);
/* The job is looked at again at `at_ms` at the latest. */
void pass_requeue_at(struct pass *pass, int64_t at_ms);
/* Whether this job has to wait for another one; if so, records that it is held up. */
bool pass_is_held_up(struct pass *pass);
/* Changes in what other jobs hold need not wake this job before `at_ms`. */
void pass_deafen(struct pass *pass, int64_t at_ms);
/* Whether a time (monotonic, or since 1970) has come. If not, the job is looked at again
 * when it does. */
bool pass_has_come(struct pass *pass, int64_t at_ms);
bool pass_has_come_wall(struct pass *pass, int64_t at_wall_ms);
/* `first_ms` doubled `times` times, at most `most_ms`. */
int64_t pass_doubled_ms(int64_t first_ms, int64_t times, int64_t most_ms);
/* Adds an Event about the job. Its name derives from its content, the generation and the
 * current ten minutes, so a repeated decision writes no second event. */
void pass_event(struct pass *pass, int phase, bool is_warning, const char *reason,
                const char *action_word, const char *note);

/* ---- status ---- */

void pass_set(struct pass *pass, const char *type, const char *status, const char *reason,
              const char *message);
/* Sets Placed and Running to False. */
void pass_set_not_placed(struct pass *pass, const char *reason, const char *message);
/* The condition in the job's present status; NULL: it has none. */
const json_t *pass_present(const struct pass *pass, const char *type);
/* Writes `status` and takes ownership of it. */
struct action *pass_status(struct pass *pass, int phase, json_t *status);
/* Writes the status if it differs from the present one. Call it last, after the actions
 * that it reports. */
void pass_write_status(struct pass *pass, int phase);

/* ---- what is there ---- */

/* Fills `pods` and `has_succeeded` for the current plan. */
void pass_index_pods(struct pass *pass);
/* Counts for the current plan. count_pods: pods for which `holds` is true or that have
 * succeeded. missing_pods: places that lack a pod. */
size_t pass_count_pods(const struct pass *pass,
                       bool (*holds)(const struct snapshot_pod *));
size_t pass_missing_pods(const struct pass *pass);
/* Whether there is a current plan, and it was retired for `why`. */
bool pass_was_retired_for(const struct pass *pass, const char *why);
/* GPUs of one type (NULL: of all types) in the current plan. */
int64_t pass_count_gpus(const struct pass *pass, const char *type);
bool pod_has_ended(const struct snapshot_pod *pod); /* it succeeded or failed */
bool pod_has_succeeded(const struct snapshot_pod *pod);
bool pod_is_ready(const struct snapshot_pod *pod); /* it runs and is ready, or has
                                                      succeeded */
bool pod_is_placed(const struct snapshot_pod *pod);
/* Reads a time from the job, such as "status.startTime"; false if it is not set. */
bool pass_time(const struct pass *pass, const char *path, int64_t *ret_wall_ms);
/* The time since which the status reports that all pods run; false if it does not. */
bool pass_runs_since(const struct pass *pass, int64_t *ret_wall_ms);
/* Whether the status reports that the current generation had all its pods placed. */
bool pass_was_placed(const struct pass *pass);

#endif
