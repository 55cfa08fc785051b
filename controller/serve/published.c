#include "controller/serve/published.h"

#include "planner/modules.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A text and the count of those who hold it, the feed among them. */
struct version {
    struct published_text text; /* first: what is handed out */
    char *bytes;
    size_t holders;
};

struct topic {
    const char *name;
    struct version *newest; /* NULL: none was published */
    int listeners;
};

struct published {
    pthread_mutex_t lock;
    struct topic topics[PUBLISHED_NAMES];
    size_t topic_count;
    void (*on_publish)(void *context);
    void *publish_context;
    _Atomic int64_t last_beat_ms;
    atomic_bool is_ready;
};

struct published *published_new(void)
{
    struct published *feed = xcalloc(1, sizeof *feed);
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

void published_free(struct published *feed)
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

static struct topic *get_topic(struct published *feed, const char *name)
{
    for (size_t i = 0; i < feed->topic_count; i++)
        if (!strcmp(feed->topics[i].name, name))
            return &feed->topics[i];
    assert(feed->topic_count < PUBLISHED_NAMES);
    struct topic *topic = &feed->topics[feed->topic_count++];
    *topic = (struct topic){ .name = name };
    return topic;
}

void published_publish(struct published *feed, const char *name, char *bytes,
                       size_t length)
{
    struct version *version = xcalloc(1, sizeof *version);
    version->bytes = bytes;
    version->text = (struct published_text){ .bytes = bytes, .length = length };
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

const struct published_text *published_take(struct published *feed, const char *name)
{
    pthread_mutex_lock(&feed->lock);
    struct version *newest = get_topic(feed, name)->newest;
    if (newest)
        newest->holders++;
    pthread_mutex_unlock(&feed->lock);
    return newest ? &newest->text : NULL;
}

void published_give_back(struct published *feed, const struct published_text *text)
{
    pthread_mutex_lock(&feed->lock);
    let_go((struct version *)(uintptr_t)text);
    pthread_mutex_unlock(&feed->lock);
}

uint64_t published_version(struct published *feed, const char *name)
{
    pthread_mutex_lock(&feed->lock);
    const struct version *newest = get_topic(feed, name)->newest;
    uint64_t version = newest ? newest->text.version : 0;
    pthread_mutex_unlock(&feed->lock);
    return version;
}

void published_on_publish(struct published *feed, void (*on_publish)(void *context),
                          void *context)
{
    feed->on_publish = on_publish;
    feed->publish_context = context;
}

void published_add_listeners(struct published *feed, const char *name, int count)
{
    pthread_mutex_lock(&feed->lock);
    get_topic(feed, name)->listeners += count;
    pthread_mutex_unlock(&feed->lock);
}

int published_listeners(struct published *feed, const char *name)
{
    pthread_mutex_lock(&feed->lock);
    int count = get_topic(feed, name)->listeners;
    pthread_mutex_unlock(&feed->lock);
    return count;
}

void published_beat(struct published *feed, int64_t now_ms)
{
    feed->last_beat_ms = now_ms;
}

int64_t published_last_beat_ms(struct published *feed)
{
    return feed->last_beat_ms;
}

void published_set_ready(struct published *feed, bool is_ready)
{
    feed->is_ready = is_ready;
}

bool published_is_ready(struct published *feed)
{
    return feed->is_ready;
}
