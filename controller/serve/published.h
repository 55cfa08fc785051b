/* published.h - what the loop has to say to other threads: texts by name, each version
 * immutable and alive as long as somebody holds it; whether it is ready; when it turned
 * last. The loop publishes, the server reads, nobody waits for longer than a look-up. All
 * threads may call everything but feed_new, feed_free and feed_on_publish. */
#ifndef CONTROLLER_SERVE_PUBLISHED_H
#define CONTROLLER_SERVE_PUBLISHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FEED_NAMES = 8 }; /* texts of different names */

struct feed;

struct feed *feed_new(void);
/* Nobody may hold a text any more. */
void feed_free(struct feed *feed);

struct feed_text {
    const char *bytes;
    size_t length;
    uint64_t version; /* of its name: 1, 2, ... */
};

/* Takes `bytes` (from malloc) as the next version of `name`, which must outlive the
 * feed. */
void feed_publish(struct feed *feed, const char *name, char *bytes, size_t length);
/* The newest version, until it is given back; NULL: nothing was published. */
const struct feed_text *feed_take(struct feed *feed, const char *name);
/* NULL is fine. */
void feed_give_back(struct feed *feed, const struct feed_text *text);
/* 0: nothing was published. */
uint64_t feed_version(struct feed *feed, const char *name);

/* Called after each feed_publish, in the thread that publishes; NULL: nobody is. */
void feed_on_publish(struct feed *feed, void (*on_publish)(void *context), void *context);

/* Those who follow the text of `name` live: the loop may leave out what nobody reads. */
void feed_add_listeners(struct feed *feed, const char *name, int count);
int feed_listeners(struct feed *feed, const char *name);

/* The loop turned at `now_ms`; INT64_MIN: never. */
void feed_beat(struct feed *feed, int64_t now_ms);
int64_t feed_last_beat_ms(struct feed *feed);
void feed_set_ready(struct feed *feed, bool is_ready);
bool feed_is_ready(struct feed *feed);

#endif
