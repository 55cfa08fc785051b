/* apply.h - performs a decision's actions through kube, in the order of their phases. Up
 * to 16 actions of one phase run concurrently; creations run in growing batches (1, 2, 4,
 * ... 16), so that a quota error costs one request, not a thousand. The first failure
 * ends the run: the next pass starts again from the present objects. Nothing blocks.
 *
 * Every returned object is passed on at once, so that the next decision sees our own
 * writes before the watch does. After an unknown outcome, and after one that shows that
 * our view of the object is wrong (it exists, is another, is gone), the object is read
 * back first. */
#ifndef CONTROLLER_OPERATOR_APPLY_H
#define CONTROLLER_OPERATOR_APPLY_H

#include "controller/kube/client.h"
#include "controller/reconcile/reconcile.h"

#define APPLY_MAX_PARALLEL 16

struct apply_outcome {
    /* NULL if everything was done. The code is HET_DENIED if the server refuses the new
     * object and will refuse it again. */
    const struct het_error *err;
    const struct kube_resource *failed; /* kind of the object whose write failed */
    const json_t *taken;    /* the object to create, if a foreign one has its name */
    int64_t retry_after_ms; /* requested by the server; -1: nothing */
};

struct apply_callbacks {
    /* Called before an object is read; the result is passed to on_read. */
    uint64_t (*on_reading)(void *context);
    /* An object as read after that. */
    void (*on_read)(void *context, const struct kube_resource *resource, json_t *object,
                    uint64_t reading);
    /* An object after our write; NULL: the one with `uid` is gone. */
    void (*on_object)(void *context, const struct kube_resource *resource, const char *ns,
                      const char *name, const char *uid, json_t *object);
    /* The run of `key` is over. */
    void (*on_done)(void *context, const char *key, const struct apply_outcome *outcome);
    void *context;
};

struct apply;

struct apply *apply_new(struct kube *kube, const struct apply_callbacks *callbacks);
/* Free the kube first, so that no answer arrives for freed requests. */
void apply_free(struct apply *apply);

/* Starts the writes of `decision` (PLAN and HOOK are not writes) and copies what it
 * needs. A key has one run at a time. on_done is called from transport_poll, or at once
 * if there is nothing to write. */
void apply_start(struct apply *apply, const char *key, const struct decision *decision);
bool apply_is_running(const struct apply *apply, const char *key);
size_t apply_running(const struct apply *apply);

#endif
