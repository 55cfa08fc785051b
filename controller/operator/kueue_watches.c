#include "controller/operator/kueue_watches.h"

#include "controller/base/log.h"

#include <stdlib.h>

static const struct {
    const struct kube_resource *resource;
    json_t *(*trim)(json_t *object);
} kinds[] = {
    { &kube_resource_flavor, kueue_trim_queue },
    { &kube_cluster_queue, kueue_trim_queue },
    { &kube_local_queue, kueue_trim_queue },
    { &kube_workload, kueue_trim_workload },
};

enum { KINDS = sizeof kinds / sizeof *kinds };

struct kueue_watches {
    struct kube *kube;
    struct store *store;
    const char *ns;
    uint64_t seed;
    watch_change *on_change;
    void *context;

    bool is_known; /* whether Kueue is there */
    bool is_served, is_denied;
    uint64_t request; /* under way; 0: none */
    int64_t now_ms, ask_ms;
    int64_t served_ms;            /* since when it is there */
    int64_t fresh_ms;             /* when it had to be read anew */
    bool must_be_fresh;           /* since then; also of watches that begin */
    struct watch *watches[KINDS]; /* all, or none */
};

struct kueue_watches *kueue_watches_new(struct kube *kube, struct store *store,
                                        const char *ns, uint64_t seed,
                                        watch_change *on_change, void *context)
{
    struct kueue_watches *kueue_watches = xcalloc(1, sizeof *kueue_watches);
    *kueue_watches = (struct kueue_watches){ .kube = kube,
                                             .store = store,
                                             .ns = ns,
                                             .seed = seed,
                                             .on_change = on_change,
                                             .context = context,
                                             .ask_ms = INT64_MIN };
    return kueue_watches;
}

static void stop_watching(struct kueue_watches *kueue_watches)
{
    for (size_t i = 0; i < KINDS; i++) {
        watch_free(kueue_watches->watches[i]);
        kueue_watches->watches[i] = NULL;
    }
}

void kueue_watches_free(struct kueue_watches *kueue_watches)
{
    if (!kueue_watches)
        return;
    if (kueue_watches->request)
        kube_cancel(kueue_watches->kube, kueue_watches->request);
    stop_watching(kueue_watches);
    free(kueue_watches);
}

static void settle(struct kueue_watches *kueue_watches, bool is_served, bool is_denied)
{
    if (is_served != kueue_watches->is_served || is_denied != kueue_watches->is_denied)
        log_event(is_denied ? LOG_WARNING : LOG_INFO, "queues",
                  !is_served ? "Kueue is gone"
                  : is_denied
                      ? "Kueue may not be read: deploy/rbac-kueue.yaml gives the right"
                      : "Kueue is there");
    if (is_served && !kueue_watches->is_served)
        kueue_watches->served_ms = kueue_watches->now_ms;
    kueue_watches->is_known = true;
    kueue_watches->is_served = is_served;
    kueue_watches->is_denied = is_denied;
    kueue_watches->ask_ms = kueue_watches->now_ms + KUEUE_WATCHES_DISCOVERY_MS;
}

static void on_listed(void *context, const struct kube_result *result)
{
    struct kueue_watches *kueue_watches = context;
    kueue_watches->request = 0;
    if (result->outcome == KUBE_OK || result->outcome == KUBE_DENIED ||
        result->outcome == KUBE_NOT_FOUND)
        settle(kueue_watches, result->outcome != KUBE_NOT_FOUND,
               result->outcome == KUBE_DENIED);
    else
        kueue_watches->ask_ms = kueue_watches->now_ms + KUEUE_WATCHES_RETRY_MS;
}

static void on_discovered(void *context, const struct kube_result *result)
{
    struct kueue_watches *kueue_watches = context;
    kueue_watches->request = 0;
    if (result->outcome == KUBE_NOT_FOUND)
        settle(kueue_watches, false, false);
    else if (result->outcome != KUBE_OK)
        kueue_watches->ask_ms = kueue_watches->now_ms + KUEUE_WATCHES_RETRY_MS;
    else
        kueue_watches->request = kube_list(kueue_watches->kube, &kube_cluster_queue, "",
                                           "limit=1", on_listed, kueue_watches);
}

static void start_watching(struct kueue_watches *kueue_watches)
{
    for (size_t i = 0; i < KINDS; i++) {
        struct watch_config config = {
            .resource = kinds[i].resource,
            .ns = kinds[i].resource->namespaced ? kueue_watches->ns : "",
            .trim = kinds[i].trim,
        };
        kueue_watches->watches[i] = watch_new(
            kueue_watches->kube, kueue_watches->store, &config, kueue_watches->seed + i,
            kueue_watches->on_change, kueue_watches->context);
        if (kueue_watches->must_be_fresh)
            watch_require_fresh(kueue_watches->watches[i]);
    }
}

void kueue_watches_step(struct kueue_watches *kueue_watches, int64_t now_ms)
{
    kueue_watches->now_ms = now_ms;
    bool is_readable = kueue_watches->is_served && !kueue_watches->is_denied;
    if (is_readable && !kueue_watches->watches[0])
        start_watching(kueue_watches);
    else if (!is_readable && kueue_watches->watches[0])
        stop_watching(kueue_watches);
    for (size_t i = 0; i < KINDS && kueue_watches->watches[i]; i++)
        watch_step(kueue_watches->watches[i], now_ms);
    if (!kueue_watches->request && now_ms >= kueue_watches->ask_ms) {
        kueue_watches->ask_ms = INT64_MAX;
        kueue_watches->request = kube_discover(kueue_watches->kube, &kube_cluster_queue,
                                               on_discovered, kueue_watches);
    }
}

int64_t kueue_watches_next_ms(const struct kueue_watches *kueue_watches)
{
    bool is_readable = kueue_watches->is_served && !kueue_watches->is_denied;
    if (is_readable != (kueue_watches->watches[0] != NULL))
        return kueue_watches->now_ms;
    int64_t next_ms = kueue_watches->request ? INT64_MAX : kueue_watches->ask_ms;
    int64_t patience_ms = kueue_watches->served_ms + KUEUE_WATCHES_PATIENCE_MS;
    if (is_readable && kueue_watches->now_ms < patience_ms && patience_ms < next_ms)
        next_ms = patience_ms;
    patience_ms = kueue_watches->fresh_ms + KUEUE_WATCHES_PATIENCE_MS;
    if (!kueue_watches_is_fresh(kueue_watches) && patience_ms < next_ms)
        next_ms = patience_ms;
    for (size_t i = 0; i < KINDS && kueue_watches->watches[i]; i++) {
        int64_t its = watch_next_ms(kueue_watches->watches[i]);
        next_ms = its < next_ms ? its : next_ms;
    }
    return next_ms;
}

enum kueue_presence kueue_watches_presence(const struct kueue_watches *kueue_watches)
{
    if (!kueue_watches->is_served)
        return KUEUE_ABSENT;
    for (size_t i = 0; i < KINDS; i++)
        if (!kueue_watches->watches[i] || !watch_is_synced(kueue_watches->watches[i]))
            return KUEUE_UNREADABLE;
    return KUEUE_PRESENT;
}

bool kueue_watches_is_known(const struct kueue_watches *kueue_watches)
{
    bool waits_for_lists = kueue_watches_presence(kueue_watches) == KUEUE_UNREADABLE &&
                           !kueue_watches->is_denied &&
                           kueue_watches->now_ms <
                               kueue_watches->served_ms + KUEUE_WATCHES_PATIENCE_MS;
    return kueue_watches->is_known && !waits_for_lists;
}

void kueue_watches_require_fresh(struct kueue_watches *kueue_watches)
{
    kueue_watches->must_be_fresh = true;
    kueue_watches->fresh_ms = kueue_watches->now_ms;
    for (size_t i = 0; i < KINDS && kueue_watches->watches[i]; i++)
        watch_require_fresh(kueue_watches->watches[i]);
}

bool kueue_watches_is_fresh(const struct kueue_watches *kueue_watches)
{
    bool is_fresh = true;
    for (size_t i = 0; i < KINDS && kueue_watches->watches[i]; i++)
        is_fresh = is_fresh && watch_is_fresh(kueue_watches->watches[i]);
    return is_fresh ||
           kueue_watches->now_ms >= kueue_watches->fresh_ms + KUEUE_WATCHES_PATIENCE_MS;
}

void kueue_watches_each_watch(const struct kueue_watches *kueue_watches,
                              void (*each)(void *context,
                                           const struct kube_resource *resource,
                                           const struct watch *watch),
                              void *context)
{
    for (size_t i = 0; i < KINDS && kueue_watches->watches[i]; i++)
        each(context, kinds[i].resource, kueue_watches->watches[i]);
}

json_t *(*kueue_watches_trim(const struct kube_resource *resource))(json_t *object)
{
    for (size_t i = 0; i < KINDS; i++)
        if (kinds[i].resource == resource)
            return kinds[i].trim;
    return NULL;
}
