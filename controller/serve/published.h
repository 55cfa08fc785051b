/* published.h - what the loop publishes to other threads: texts by name, whether it is
 * ready, and when it last turned. Each version of a text is immutable and stays alive
 * until every reader has given it back. The loop publishes and the server reads; neither
 * waits longer than a look-up takes. All functions are thread-safe except published_new,
 * published_free and published_on_publish. */
#ifndef CONTROLLER_SERVE_PUBLISHED_H
#define CONTROLLER_SERVE_PUBLISHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PUBLISHED_NAMES = 8 }; /* texts of different names */

struct published;

struct published *published_new(void);
/* All texts must have been given back. */
void published_free(struct published *feed);

struct published_text {
    const char *bytes;
    size_t length;
    uint64_t version; /* of its name: 1, 2, ... */
};

/* Takes `bytes` (from malloc) as the next version of `name`, which must outlive the
 * feed. */
void published_publish(struct published *feed, const char *name, char *bytes,
                       size_t length);
/* The newest version, valid until it is given back; NULL: nothing was published. */
const struct published_text *published_take(struct published *feed, const char *name);
/* `text` may be NULL. */
void published_give_back(struct published *feed, const struct published_text *text);
/* 0: nothing was published. */
uint64_t published_version(struct published *feed, const char *name);

/* Calls `on_publish` after each published_publish, in the publishing thread; NULL:
 * none. */
void published_on_publish(struct published *feed, void (*on_publish)(void *context),
                          void *context);

/* Clients that follow the text of `name` live: the loop may skip a text without
 * readers. */
void published_add_listeners(struct published *feed, const char *name, int count);
int published_listeners(struct published *feed, const char *name);

/* The loop turned at `now_ms`; INT64_MIN: never. */
void published_beat(struct published *feed, int64_t now_ms);
int64_t published_last_beat_ms(struct published *feed);
void published_set_ready(struct published *feed, bool is_ready);
bool published_is_ready(struct published *feed);

#endif
