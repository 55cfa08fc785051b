/* apply.h - performs a decision's actions, in the order of their phases, through kube.
 * Actions of one phase run at the same time, up to 16; creations in growing batches (1,
 * 2, 4, ... 16), so that a quota error costs one request, not a thousand. The first
 * failure ends the run: the next pass starts again from what is there. Nothing blocks.
 *
 * Every object that comes back is handed on at once, so that the next decision sees our
 * own writes before the watch does. After an outcome that is not known, and after one
 * that says that we know the object wrongly (it exists, it is another, it is gone), it is
 * read back before anything else. */
#ifndef CONTROLLER_OPERATOR_APPLY_H
#define CONTROLLER_OPERATOR_APPLY_H

#include "controller/kube/client.h"
#include "controller/reconcile/reconcile.h"

#define APPLY_MAX_PARALLEL 16

struct apply_outcome {
    /* NULL if all was done; its code is HET_DENIED when the server refuses what was to be
     * created, whoever asks again. */
    const struct het_error *err;
    const struct kube_resource *failed; /* what the write that failed was to */
    const json_t *taken;    /* what was to be created, if somebody else's has its name */
    int64_t retry_after_ms; /* what the server asked for, -1 if nothing */
};

struct apply_callbacks {
    /* An object is about to be read; what this returns goes to on_read. */
    uint64_t (*on_reading)(void *context);
    /* An object as it was read after that. */
    void (*on_read)(void *context, const struct kube_resource *resource, json_t *object,
                    uint64_t reading);
    /* An object as a write of ours left it; NULL: the one with `uid` is gone. */
    void (*on_object)(void *context, const struct kube_resource *resource, const char *ns,
                      const char *name, const char *uid, json_t *object);
    /* The run of `key` is over. */
    void (*on_done)(void *context, const char *key, const struct apply_outcome *outcome);
    void *context;
};

struct apply;

struct apply *apply_new(struct kube *kube, const struct apply_callbacks *callbacks);
/* The kube must be freed before, so that no answer comes for what is freed here. */
void apply_free(struct apply *apply);

/* Starts the writes of `decision` (PLAN and HOOK are none) and copies what it needs of
 * it. One run a key at a time. on_done comes later, from transport_poll, or at once if
 * there is nothing to write. */
void apply_start(struct apply *apply, const char *key, const struct decision *decision);
bool apply_is_running(const struct apply *apply, const char *key);
size_t apply_running(const struct apply *apply);

#endif
