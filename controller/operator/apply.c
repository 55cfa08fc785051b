#include "controller/operator/apply.h"

#include "controller/base/log.h"
#include "controller/kube/decode.h"

#include <stdlib.h>
#include <string.h>

struct run;

/* One action on its way: its own copy of all it needs. */
struct step {
    struct run *run;
    enum action_kind kind;
    int phase;
    const struct kube_resource *resource;
    char *ns, *name, *uid, *query;
    int64_t grace_s;
    bool may_fail;
    json_t *object;
    uint64_t reading; /* of on_reading */
};

struct run {
    struct apply *apply;
    char *key;
    struct step *steps;
    size_t count, started, finished;
    size_t batch; /* how many may be on their way together */
    bool has_failed;
    struct het_error err;
    const struct kube_resource *failed;
    const json_t *taken;
    int64_t retry_after_ms;
    struct run *next;
};

struct apply {
    struct kube *kube;
    struct apply_callbacks callbacks;
    struct run *runs;
};

struct apply *apply_new(struct kube *kube, const struct apply_callbacks *callbacks)
{
    struct apply *apply = xcalloc(1, sizeof *apply);
    apply->kube = kube;
    apply->callbacks = *callbacks;
    return apply;
}

static void free_run(struct run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        free(run->steps[i].ns);
        free(run->steps[i].name);
        free(run->steps[i].uid);
        free(run->steps[i].query);
        json_decref(run->steps[i].object);
    }
    free(run->steps);
    free(run->key);
    free(run);
}

void apply_free(struct apply *apply)
{
    if (!apply)
        return;
    while (apply->runs) {
        struct run *run = apply->runs;
        apply->runs = run->next;
        free_run(run);
    }
    free(apply);
}

static void advance(struct run *run);

/* `code`: HET_DENIED, when repeating the same creation is useless; HET_IO otherwise. */
static void fail(struct run *run, const struct step *step, enum het_error_code code,
                 const char *message, int64_t retry_after_ms)
{
    log_event(LOG_WARNING, "apply", "write failed", LOG_STR("kind", step->resource->kind),
              LOG_STR("namespace", step->ns), LOG_STR("name", step->name),
              LOG_STR("error", message));
    if (run->has_failed || step->may_fail)
        return;
    run->has_failed = true;
    run->failed = step->resource;
    run->retry_after_ms = retry_after_ms;
    het_fail(&run->err, code, "%s %s/%s: %s", step->resource->kind, step->ns, step->name,
             message);
}

static void hand_on(const struct step *step, json_t *object)
{
    const struct apply_callbacks *callbacks = &step->run->apply->callbacks;
    const char *uid = object ? kube_uid(object) : step->uid;
    callbacks->on_object(callbacks->context, step->resource, step->ns, step->name, uid,
                         object);
}

static void hand_on_read(const struct step *step, json_t *object)
{
    const struct apply_callbacks *callbacks = &step->run->apply->callbacks;
    callbacks->on_read(callbacks->context, step->resource, object, step->reading);
}

static void start_reading(struct step *step)
{
    const struct apply_callbacks *callbacks = &step->run->apply->callbacks;
    step->reading = callbacks->on_reading(callbacks->context);
}

static void read_back(struct step *step, kube_callback *callback)
{
    start_reading(step);
    kube_get(step->run->apply->kube, step->resource, step->ns, step->name, callback,
             step);
}

static void end_step(struct step *step, bool succeeded)
{
    struct run *run = step->run;
    run->finished++;
    if (succeeded && run->batch < APPLY_MAX_PARALLEL)
        run->batch *= 2;
    advance(run);
}

static const char *owner_of(const json_t *object)
{
    return kube_controller_uid(object);
}

static void fail_taken(const struct step *step)
{
    if (!step->run->has_failed && !step->may_fail)
        step->run->taken = step->object;
    fail(step->run, step, HET_DENIED,
         "exists and belongs to somebody else; delete it, or give the job another name",
         -1);
}

/* The object found under the name of one that we meant to create. */
static void on_read_back(void *context, const struct kube_result *result)
{
    struct step *step = context;
    bool is_ours = result->outcome == KUBE_OK && result->object &&
                   *owner_of(step->object) &&
                   !strcmp(owner_of(result->object), owner_of(step->object));
    if (is_ours)
        hand_on_read(step, result->object);
    else if (result->outcome == KUBE_OK)
        fail_taken(step);
    else
        fail(step->run, step, HET_IO, result->message, result->retry_after_ms);
    end_step(step, is_ours);
}

static void on_created(void *context, const struct kube_result *result)
{
    struct step *step = context;
    if (result->outcome == KUBE_OK) {
        log_event(LOG_INFO, "apply", "created", LOG_STR("kind", step->resource->kind),
                  LOG_STR("namespace", step->ns), LOG_STR("name", step->name));
        hand_on(step, result->object);
        end_step(step, true);
    } else if (result->outcome == KUBE_EXISTS || result->outcome == KUBE_UNKNOWN) {
        read_back(step, on_read_back);
    } else {
        bool is_refused = result->outcome == KUBE_INVALID ||
                          result->outcome == KUBE_DENIED;
        fail(step->run, step, is_refused ? HET_DENIED : HET_IO, result->message,
             result->retry_after_ms);
        end_step(step, false);
    }
}

/* The uid of the object that a step writes; NULL: any object with the name. */
static const char *uid_of(const struct step *step)
{
    const char *uid = step->uid ? step->uid : kube_uid(step->object);
    return *uid ? uid : NULL;
}

/* Whether there is no such object: not one of a kind that is not served now. */
static bool is_absent(const struct kube_result *result)
{
    return result->outcome == KUBE_NOT_FOUND && !strcmp(result->reason, "NotFound");
}

/* The object after a write that failed or whose outcome is unknown: the next pass decides
 * on it. */
static void on_state_read_back(void *context, const struct kube_result *result)
{
    struct step *step = context;
    const struct apply_callbacks *callbacks = &step->run->apply->callbacks;
    const char *uid = uid_of(step);
    bool is_another = result->outcome == KUBE_OK && uid &&
                      strcmp(kube_uid(result->object), uid) != 0;
    bool is_gone = is_another || is_absent(result);
    if (uid && is_gone)
        callbacks->on_object(callbacks->context, step->resource, step->ns, step->name,
                             uid, NULL);
    if (result->outcome == KUBE_OK)
        hand_on_read(step, result->object);
    if (step->kind == ACTION_DELETE && is_gone) {
        end_step(step, true);
        return;
    }
    fail(step->run, step, HET_IO,
         is_gone ? "it is gone" : "it was not what we took it for, and was read anew",
         -1);
    end_step(step, false);
}

/* Whether the outcome of the write is unknown, or `result` shows that our view of the
 * object is wrong; the object is then read back. */
static bool must_read_back(struct step *step, const struct kube_result *result)
{
    /* Deleting or patching an object that is gone is a success. */
    bool is_applied = step->kind == ACTION_STATUS || step->kind == ACTION_APPLY;
    if (result->outcome != KUBE_UNKNOWN && result->outcome != KUBE_CONFLICT &&
        !(is_applied && result->outcome == KUBE_NOT_FOUND))
        return false;
    read_back(step, on_state_read_back);
    return true;
}

static void on_applied(void *context, const struct kube_result *result)
{
    struct step *step = context;
    if (must_read_back(step, result))
        return;
    if (result->outcome == KUBE_OK) {
        log_event(step->kind == ACTION_STATUS ? LOG_DEBUG : LOG_INFO, "apply", "applied",
                  LOG_STR("kind", step->resource->kind), LOG_STR("namespace", step->ns),
                  LOG_STR("name", step->name));
        hand_on(step, result->object);
    } else {
        fail(step->run, step, HET_IO, result->message, result->retry_after_ms);
    }
    end_step(step, result->outcome == KUBE_OK);
}

static bool has_finalizers(const json_t *object)
{
    return json_array_size(
               json_object_get(json_object_get(object, "metadata"), "finalizers")) > 0;
}

/* A write to an object that may be gone is over; `left` is the object now, NULL: none. */
static void end_write(struct step *step, const struct kube_result *result,
                      const char *event, json_t *left)
{
    if (result->outcome == KUBE_OK)
        log_event(LOG_INFO, "apply", event, LOG_STR("kind", step->resource->kind),
                  LOG_STR("namespace", step->ns), LOG_STR("name", step->name));
    if (result->outcome == KUBE_OK || result->outcome == KUBE_NOT_FOUND)
        hand_on(step, result->outcome == KUBE_OK ? left : NULL);
    else
        fail(step->run, step, HET_IO, result->message, result->retry_after_ms);
    end_step(step, result->outcome == KUBE_OK);
}

static void on_deleted(void *context, const struct kube_result *result)
{
    struct step *step = context;
    const char *kind = json_string_value(json_object_get(result->object, "kind"));
    if (must_read_back(step, result))
        return;
    /* A pod that ends gracefully, or that a finalizer holds, is returned as it is now; an
     * object that is gone, as a Status. Without grace the object is gone although the
     * server returns it once more. */
    bool is_ending = kind && !strcmp(kind, step->resource->kind) &&
                     (step->grace_s != 0 || has_finalizers(result->object)) &&
                     kube_is_deleting(result->object);
    end_write(step, result, "deleted", is_ending ? result->object : NULL);
}

static void on_patched(void *context, const struct kube_result *result)
{
    struct step *step = context;
    if (!must_read_back(step, result))
        end_write(step, result, "patched", result->object);
}

/* One object of a fresh list. */
static void on_fresh_item(void *context, const char *text, size_t length)
{
    struct het_error err;
    json_auto_t *object = kube_decode(text, length, &err);
    if (object) /* items of a list do not carry their kind */
        hand_on_read(context, object);
}

static void on_listed(void *context, const struct kube_result *result)
{
    struct step *step = context;
    char *version = NULL, *next = NULL;
    struct het_error err = { 0 };
    bool good = result->outcome == KUBE_OK &&
                !kube_split_list(step->resource, result->body, result->body_length,
                                 on_fresh_item, step, &version, &next, &err);
    if (!good)
        fail(step->run, step, HET_IO,
             result->outcome == KUBE_OK ? err.message : result->message,
             result->retry_after_ms);
    free(version);
    free(next);
    end_step(step, good);
}

/* Events never fail a run. */
static void on_event(void *context, const struct kube_result *result)
{
    struct step *step = context;
    if (result->outcome != KUBE_OK && result->outcome != KUBE_EXISTS)
        log_event(LOG_WARNING, "apply", "event dropped", LOG_STR("name", step->name),
                  LOG_STR("error", result->message));
    end_step(step, true);
}

static void start_step(struct run *run, struct step *step)
{
    struct kube *kube = run->apply->kube;
    switch (step->kind) {
    case ACTION_CREATE:
        kube_create(kube, step->resource, step->ns, step->object, on_created, step);
        break;
    case ACTION_EVENT:
        kube_create(kube, step->resource, step->ns, step->object, on_event, step);
        break;
    case ACTION_APPLY:
        kube_apply(kube, step->resource, step->ns, step->name, NULL, FIELD_MANAGER,
                   step->object, on_applied, step);
        break;
    case ACTION_STATUS:
        kube_apply(kube, step->resource, step->ns, step->name, "status",
                   STATUS_FIELD_MANAGER, step->object, on_applied, step);
        break;
    case ACTION_DELETE:
        kube_delete(kube, step->resource, step->ns, step->name, step->uid, step->grace_s,
                    on_deleted, step);
        break;
    case ACTION_PATCH:
        kube_patch(kube, step->resource, step->ns, step->name, NULL, step->object,
                   on_patched, step);
        break;
    case ACTION_REFRESH:
        start_reading(step);
        kube_list(kube, step->resource, step->ns, step->query, on_listed, step);
        break;
    case ACTION_PLAN:
    case ACTION_HOOK:
        abort(); /* apply_start leaves these out */
    }
}

static void finish(struct run *run)
{
    struct apply *apply = run->apply;
    struct run **link = &apply->runs;
    while (*link != run)
        link = &(*link)->next;
    *link = run->next;
    struct apply_outcome outcome = { .err = run->has_failed ? &run->err : NULL,
                                     .failed = run->failed,
                                     .taken = run->taken,
                                     .retry_after_ms = run->retry_after_ms };
    apply->callbacks.on_done(apply->callbacks.context, run->key, &outcome);
    free_run(run);
}

/* Whether the next step of the run may start while others are on their way. */
static bool may_start(struct run *run)
{
    const struct step *step = &run->steps[run->started];
    bool is_phase_start = !run->started ||
                          step->phase != run->steps[run->started - 1].phase;
    if (is_phase_start && run->started != run->finished)
        return false;
    if (is_phase_start)
        run->batch = step->kind == ACTION_CREATE ? 1 : APPLY_MAX_PARALLEL;
    return run->started - run->finished < run->batch;
}

/* Starts what may start now; ends the run when nothing is on its way or left to do. */
static void advance(struct run *run)
{
    while (!run->has_failed && run->started < run->count && may_start(run))
        start_step(run, &run->steps[run->started++]);
    if (run->started == run->finished && (run->has_failed || run->started == run->count))
        finish(run);
}

static char *copy_text(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

void apply_start(struct apply *apply, const char *key, const struct decision *decision)
{
    struct run *run = xcalloc(1, sizeof *run);
    run->apply = apply;
    run->key = xstrdup(key);
    run->retry_after_ms = -1;
    run->steps = xcalloc(decision->action_count, sizeof *run->steps);
    for (size_t i = 0; i < decision->action_count; i++) {
        const struct action *action = &decision->actions[i];
        if (action->kind == ACTION_PLAN || action->kind == ACTION_HOOK)
            continue;
        run->steps[run->count++] = (struct step){
            .run = run,
            .kind = action->kind,
            .phase = action->phase,
            .resource = action->resource,
            .ns = copy_text(action->ns),
            .name = copy_text(action->name),
            .uid = copy_text(action->uid),
            .query = copy_text(action->query),
            .grace_s = action->grace_s,
            .may_fail = action->may_fail,
            .object = action->object ? json_incref(action->object) : NULL,
        };
    }
    run->next = apply->runs;
    apply->runs = run;
    advance(run);
}

bool apply_is_running(const struct apply *apply, const char *key)
{
    for (const struct run *run = apply->runs; run; run = run->next)
        if (!strcmp(run->key, key))
            return true;
    return false;
}

size_t apply_running(const struct apply *apply)
{
    size_t count = 0;
    for (const struct run *run = apply->runs; run; run = run->next)
        count++;
    return count;
}
