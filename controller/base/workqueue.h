/* workqueue.h - which keys to look at, and when. client-go's semantics: a key is queued
 * once however often it is added; a key added while it is being worked on comes again
 * afterwards; failures back off by 5 ms * 2^n up to 300 s. Keys are "namespace/name";
 * namespaces take turns, so one tenant's thousand jobs do not delay another's one. Time
 * is an argument.
 *
 * A key is remembered while it waits, is worked on, or has failed and was not forgotten.
 * Two pointers stay allocated for each key of the peak count. */
#ifndef CONTROLLER_BASE_WORKQUEUE_H
#define CONTROLLER_BASE_WORKQUEUE_H

#include "controller/base/metrics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct workqueue;

struct workqueue *workqueue_new(void);
void workqueue_free(struct workqueue *queue);

/* Counts keys and measures their times under the queue name `name` (static); NULL:
 * measures nothing. */
void workqueue_set_metrics(struct workqueue *queue, struct metrics *metrics,
                           const char *name);

/* Of the namespaces with ready keys, only those with the least `load` take turns. NULL
 * (the default): all do. */
typedef size_t workqueue_load(void *context, const char *ns);
void workqueue_set_load(struct workqueue *queue, workqueue_load *load, void *context);

/* Ready at once. */
void workqueue_add(struct workqueue *queue, const char *key);
/* Ready at `at_ms`, or earlier if it was already due earlier. */
void workqueue_add_at(struct workqueue *queue, const char *key, int64_t at_ms);
/* Ready after the key's back-off, which is returned; each call doubles it. */
int64_t workqueue_add_failed(struct workqueue *queue, const char *key, int64_t now_ms);
/* Forgets the failures of `key`. */
void workqueue_forget(struct workqueue *queue, const char *key);

/* The object of `key` is gone: removes the key from the queue and forgets its
 * failures. */
void workqueue_remove(struct workqueue *queue, const char *key);

/* The next ready key, now marked as being worked on; NULL if none is ready. Valid until
 * workqueue_done of that key. */
const char *workqueue_take(struct workqueue *queue, int64_t now_ms);
/* The key that workqueue_take would take, without taking it; NULL if none is ready. */
const char *workqueue_peek(struct workqueue *queue, int64_t now_ms);
void workqueue_done(struct workqueue *queue, const char *key);

/* When the next key becomes ready (<= now: one is ready); INT64_MAX if none waits. */
int64_t workqueue_next_ms(const struct workqueue *queue);
/* Keys that wait, ready or not; one being worked on counts if it was added again. */
size_t workqueue_length(const struct workqueue *queue);
/* Keys that are remembered. */
size_t workqueue_size(const struct workqueue *queue);

#endif
