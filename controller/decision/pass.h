/* pass.h - one pass over one job: what it looks at and what it has decided so far. The
 * other files of controller/reconcile/ each know one concern and work on a pass. Pure. */
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
    /* Of the current plan: by pod index, NULL where there is no pod. */
    const struct snapshot_pod **pods;
    bool *has_succeeded; /* by pod index; the pod may be gone since */
    /* Why the current plan can not run as it is; NULL: it can. */
    const char *lost_trigger, *lost_message;
    bool lost_pods_still_run; /* the nodes only refuse new pods */
    bool is_leaving;          /* a node of it says that it will go */
    bool is_suspect;          /* a node of it is unusable, and may yet come back */
    const char *claim;        /* ANNOTATION_PREEMPTS of the next generation; NULL: none */
    bool is_replaced;         /* a new generation was decided in this pass */
    bool can_plan;            /* there is a profile to plan with */
    bool is_unloadable;       /* the plan offered cannot load the checkpoint there is */
    /* A plan was found, and may not be carried out by itself; NULL: not so. */
    const char *approval_reason, *approval_message;
    bool is_voluntary; /* the generation that is decided could go on */
    bool is_draining;  /* older pods stay until they have written a checkpoint */
};

/* Phases of the actions (struct action). */
enum {
    PHASE_RETIRE, /* and other annotations of plans */
    PHASE_DELETE,
    PHASE_PLAN_OBJECT,
    PHASE_SERVICE,
    PHASE_PODS,
    PHASE_EVENTS,
    PHASE_STATUS,
    PHASE_PROFILING /* after the status: what fails there must not keep it back */
};

/* A message for people, in the arena. It may quote what a user wrote, and be cut: control
 * characters, and what is not UTF-8 any more, become "?". Never for what a program reads
 * (names, queries, annotations): het_arena_printf cuts nothing. */
__attribute__((format(printf, 2, 3))) const char *pass_text(struct pass *pass,
                                                            const char *format, ...);

/* ---- actions ---- */

struct action *pass_add(struct pass *pass, enum action_kind kind, int phase);
/* `object` is taken. */
struct action *pass_create(struct pass *pass, int phase,
                           const struct kube_resource *resource, json_t *object);
struct action *pass_delete(struct pass *pass, int phase,
                           const struct kube_resource *resource, const char *name,
                           const char *uid, int64_t grace_s);
/* Writes an annotation of `object`, or removes it (`value` NULL), if it is still as we
 * see it. All annotations of one object in a pass are one write, in the phase of the
 * first. */
void pass_annotate(struct pass *pass, int phase, const struct kube_resource *resource,
                   const json_t *object, const char *key, const char *value);
/* Whether the planner may be asked now; if not, the job's turn will come. It `is_urgent`
 * if the job cannot run without the answer. */
bool pass_may_ask(struct pass *pass, bool is_urgent);
/* `question` is taken. */
struct action *pass_ask_planner(struct pass *pass, json_t *question, uint64_t digest);
/* Whether what belongs to the current generation was read anew in the last PASS_FRESH_MS,
 * which `generation` and `read_ms` remember. If not, it is to be read by actions of this
 * pass, and the job is looked at again at once. */
bool pass_is_fresh(struct pass *pass, int64_t *generation, int64_t *read_ms);
#define PASS_FRESH_MS ((int64_t)10000)
/* Reads pods of namespace `ns` ("": of all) anew. */
void pass_refresh_pods(struct pass *pass, const char *ns, const char *query);
/* The job is looked at again at `at_ms` at the latest. */
void pass_requeue_at(struct pass *pass, int64_t at_ms);
/* Whether another job has to be waited for; notes that this one is held up by it. */
bool pass_is_held_up(struct pass *pass);
/* Changes of what others hold need not wake the job before `at_ms`. */
void pass_deafen(struct pass *pass, int64_t at_ms);
/* Whether a time has come, monotonic or since 1970; else the job is looked at again when
 * it does. */
bool pass_has_come(struct pass *pass, int64_t at_ms);
bool pass_has_come_wall(struct pass *pass, int64_t at_wall_ms);
/* A pause of `first_ms`, doubled `times` times, of at most `most_ms`. */
int64_t pass_doubled_ms(int64_t first_ms, int64_t times, int64_t most_ms);
/* An Event about the job. Its name is made of what it says, about which generation, in
 * which ten minutes: a decision that is taken again writes no second event. */
void pass_event(struct pass *pass, int phase, bool is_warning, const char *reason,
                const char *action_word, const char *note);

/* ---- status ---- */

void pass_set(struct pass *pass, const char *type, const char *status, const char *reason,
              const char *message);
/* Placed and Running are False. */
void pass_set_not_placed(struct pass *pass, const char *reason, const char *message);
/* The condition as the job shows it now; NULL: not at all. */
const json_t *pass_present(const struct pass *pass, const char *type);
/* Writes `status`, which is taken. */
struct action *pass_status(struct pass *pass, int phase, json_t *status);
/* Writes the status if it says something new; last, after the actions that it reports. */
void pass_write_status(struct pass *pass, int phase);

/* ---- what is there ---- */

/* Fills `pods` and `has_succeeded` for the current plan. */
void pass_index_pods(struct pass *pass);
/* Of the current plan: pods for which `holds`, and those that have succeeded, of which
 * all of these hold; places without a pod that should have one. */
size_t pass_count_pods(const struct pass *pass,
                       bool (*holds)(const struct snapshot_pod *));
size_t pass_missing_pods(const struct pass *pass);
/* Whether there is a current plan, and it was retired for `why`. */
bool pass_was_retired_for(const struct pass *pass, const char *why);
/* GPUs of one type in the current plan; of all types for NULL. */
int64_t pass_count_gpus(const struct pass *pass, const char *type);
bool pod_has_ended(const struct snapshot_pod *pod); /* it succeeded or failed */
bool pod_has_succeeded(const struct snapshot_pod *pod);
bool pod_is_ready(const struct snapshot_pod *pod); /* runs and is ready, or succeeded */
bool pod_is_placed(const struct snapshot_pod *pod);
/* A time in the job, "status.startTime"; false if it is not set. */
bool pass_time(const struct pass *pass, const char *path, int64_t *ret_wall_ms);
/* Since when the status says that all pods run; false if it does not. */
bool pass_runs_since(const struct pass *pass, int64_t *ret_wall_ms);
/* Whether the status says that this very generation had all its pods placed. */
bool pass_was_placed(const struct pass *pass);

#endif
