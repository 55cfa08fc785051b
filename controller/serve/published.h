/* published.h - what the loop has to say to other threads: texts by name, each version
 * immutable and alive as long as somebody holds it; whether it is ready; when it turned
 * last. The loop publishes, the server reads, nobody waits for longer than a look-up. All
 * threads may call everything but published_new, published_free and published_on_publish. */
#ifndef CONTROLLER_SERVE_PUBLISHED_H
#define CONTROLLER_SERVE_PUBLISHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PUBLISHED_NAMES = 8 }; /* texts of different names */

struct published;

struct published *published_new(void);
/* Nobody may hold a text any more. */
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
/* The newest version, until it is given back; NULL: nothing was published. */
const struct published_text *published_take(struct published *feed, const char *name);
/* NULL is fine. */
void published_give_back(struct published *feed, const struct published_text *text);
/* 0: nothing was published. */
uint64_t published_version(struct published *feed, const char *name);

/* Called after each published_publish, in the thread that publishes; NULL: nobody is. */
void published_on_publish(struct published *feed, void (*on_publish)(void *context),
                          void *context);

/* Those who follow the text of `name` live: the loop may leave out what nobody reads. */
void published_add_listeners(struct published *feed, const char *name, int count);
int published_listeners(struct published *feed, const char *name);

/* The loop turned at `now_ms`; INT64_MIN: never. */
void published_beat(struct published *feed, int64_t now_ms);
int64_t published_last_beat_ms(struct published *feed);
void published_set_ready(struct published *feed, bool is_ready);
bool published_is_ready(struct published *feed);

#endif
