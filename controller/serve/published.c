#include "controller/serve/published.h"

#include "planner/modules.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A text and the count of those who hold it, the feed among them. */
struct version {
    struct feed_text text; /* first: what is handed out */
    char *bytes;
    size_t holders;
};

struct topic {
    const char *name;
    struct version *newest; /* NULL: none was published */
    int listeners;
};

struct feed {
    pthread_mutex_t lock;
    struct topic topics[FEED_NAMES];
    size_t topic_count;
    void (*on_publish)(void *context);
    void *publish_context;
    _Atomic int64_t last_beat_ms;
    atomic_bool is_ready;
};

struct feed *feed_new(void)
{
    struct feed *feed = xcalloc(1, sizeof *feed);
    pthread_mutex_init(&feed->lock, NULL);
    feed->last_beat_ms = INT64_MIN;
    return feed;
}

/* With the lock. */
static void let_go(struct version *version)
{
    if (!version || --version->holders)
        return;
    free(version->bytes);
    free(version);
}

void feed_free(struct feed *feed)
{
    if (!feed)
        return;
    for (size_t i = 0; i < feed->topic_count; i++) {
        struct version *newest = feed->topics[i].newest;
        assert(!newest || newest->holders == 1);
        let_go(newest);
    }
    pthread_mutex_destroy(&feed->lock);
    free(feed);
}

static struct topic *get_topic(struct feed *feed, const char *name)
{
    for (size_t i = 0; i < feed->topic_count; i++)
        if (!strcmp(feed->topics[i].name, name))
            return &feed->topics[i];
    assert(feed->topic_count < FEED_NAMES);
    struct topic *topic = &feed->topics[feed->topic_count++];
    *topic = (struct topic){ .name = name };
    return topic;
}

void feed_publish(struct feed *feed, const char *name, char *bytes, size_t length)
{
    struct version *version = xcalloc(1, sizeof *version);
    version->bytes = bytes;
    version->text = (struct feed_text){ .bytes = bytes, .length = length };
    version->holders = 1;
    pthread_mutex_lock(&feed->lock);
    struct topic *topic = get_topic(feed, name);
    version->text.version = topic->newest ? topic->newest->text.version + 1 : 1;
    let_go(topic->newest);
    topic->newest = version;
    pthread_mutex_unlock(&feed->lock);
    if (feed->on_publish)
        feed->on_publish(feed->publish_context);
}

const struct feed_text *feed_take(struct feed *feed, const char *name)
{
    pthread_mutex_lock(&feed->lock);
    struct version *newest = get_topic(feed, name)->newest;
    if (newest)
        newest->holders++;
    pthread_mutex_unlock(&feed->lock);
    return newest ? &newest->text : NULL;
}

void feed_give_back(struct feed *feed, const struct feed_text *text)
{
    pthread_mutex_lock(&feed->lock);
    let_go((struct version *)(uintptr_t)text);
    pthread_mutex_unlock(&feed->lock);
}

uint64_t feed_version(struct feed *feed, const char *name)
{
    pthread_mutex_lock(&feed->lock);
    const struct version *newest = get_topic(feed, name)->newest;
    uint64_t version = newest ? newest->text.version : 0;
    pthread_mutex_unlock(&feed->lock);
    return version;
}

void feed_on_publish(struct feed *feed, void (*on_publish)(void *context), void *context)
{
    feed->on_publish = on_publish;
    feed->publish_context = context;
}

void feed_add_listeners(struct feed *feed, const char *name, int count)
{
    pthread_mutex_lock(&feed->lock);
    get_topic(feed, name)->listeners += count;
    pthread_mutex_unlock(&feed->lock);
}

int feed_listeners(struct feed *feed, const char *name)
{
    pthread_mutex_lock(&feed->lock);
    int count = get_topic(feed, name)->listeners;
    pthread_mutex_unlock(&feed->lock);
    return count;
}

void feed_beat(struct feed *feed, int64_t now_ms)
{
    feed->last_beat_ms = now_ms;
}

int64_t feed_last_beat_ms(struct feed *feed)
{
    return feed->last_beat_ms;
}

void feed_set_ready(struct feed *feed, bool is_ready)
{
    feed->is_ready = is_ready;
}

bool feed_is_ready(struct feed *feed)
{
    return feed->is_ready;
}
