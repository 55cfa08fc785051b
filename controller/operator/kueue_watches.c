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

struct queues {
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

struct queues *queues_new(struct kube *kube, struct store *store, const char *ns,
                          uint64_t seed, watch_change *on_change, void *context)
{
    struct queues *queues = xcalloc(1, sizeof *queues);
    *queues = (struct queues){ .kube = kube,
                               .store = store,
                               .ns = ns,
                               .seed = seed,
                               .on_change = on_change,
                               .context = context,
                               .ask_ms = INT64_MIN };
    return queues;
}

static void stop_watching(struct queues *queues)
{
    for (size_t i = 0; i < KINDS; i++) {
        watch_free(queues->watches[i]);
        queues->watches[i] = NULL;
    }
}

void queues_free(struct queues *queues)
{
    if (!queues)
        return;
    if (queues->request)
        kube_cancel(queues->kube, queues->request);
    stop_watching(queues);
    free(queues);
}

static void settle(struct queues *queues, bool is_served, bool is_denied)
{
    if (is_served != queues->is_served || is_denied != queues->is_denied)
        log_event(is_denied ? LOG_WARNING : LOG_INFO, "queues",
                  !is_served ? "Kueue is gone"
                  : is_denied
                      ? "Kueue may not be read: deploy/rbac-kueue.yaml gives the right"
                      : "Kueue is there");
    if (is_served && !queues->is_served)
        queues->served_ms = queues->now_ms;
    queues->is_known = true;
    queues->is_served = is_served;
    queues->is_denied = is_denied;
    queues->ask_ms = queues->now_ms + QUEUES_DISCOVERY_MS;
}

static void on_listed(void *context, const struct kube_result *result)
{
    struct queues *queues = context;
    queues->request = 0;
    if (result->outcome == KUBE_OK || result->outcome == KUBE_DENIED ||
        result->outcome == KUBE_NOT_FOUND)
        settle(queues, result->outcome != KUBE_NOT_FOUND, result->outcome == KUBE_DENIED);
    else
        queues->ask_ms = queues->now_ms + QUEUES_RETRY_MS;
}

static void on_discovered(void *context, const struct kube_result *result)
{
    struct queues *queues = context;
    queues->request = 0;
    if (result->outcome == KUBE_NOT_FOUND)
        settle(queues, false, false);
    else if (result->outcome != KUBE_OK)
        queues->ask_ms = queues->now_ms + QUEUES_RETRY_MS;
    else
        queues->request = kube_list(queues->kube, &kube_cluster_queue, "", "limit=1",
                                    on_listed, queues);
}

static void start_watching(struct queues *queues)
{
    for (size_t i = 0; i < KINDS; i++) {
        struct watch_config config = {
            .resource = kinds[i].resource,
            .ns = kinds[i].resource->namespaced ? queues->ns : "",
            .trim = kinds[i].trim,
        };
        queues->watches[i] = watch_new(queues->kube, queues->store, &config,
                                       queues->seed + i, queues->on_change,
                                       queues->context);
        if (queues->must_be_fresh)
            watch_require_fresh(queues->watches[i]);
    }
}

void queues_step(struct queues *queues, int64_t now_ms)
{
    queues->now_ms = now_ms;
    bool is_readable = queues->is_served && !queues->is_denied;
    if (is_readable && !queues->watches[0])
        start_watching(queues);
    else if (!is_readable && queues->watches[0])
        stop_watching(queues);
    for (size_t i = 0; i < KINDS && queues->watches[i]; i++)
        watch_step(queues->watches[i], now_ms);
    if (!queues->request && now_ms >= queues->ask_ms) {
        queues->ask_ms = INT64_MAX;
        queues->request =
            kube_discover(queues->kube, &kube_cluster_queue, on_discovered, queues);
    }
}

int64_t queues_next_ms(const struct queues *queues)
{
    bool is_readable = queues->is_served && !queues->is_denied;
    if (is_readable != (queues->watches[0] != NULL))
        return queues->now_ms;
    int64_t next_ms = queues->request ? INT64_MAX : queues->ask_ms;
    int64_t patience_ms = queues->served_ms + QUEUES_PATIENCE_MS;
    if (is_readable && queues->now_ms < patience_ms && patience_ms < next_ms)
        next_ms = patience_ms;
    patience_ms = queues->fresh_ms + QUEUES_PATIENCE_MS;
    if (!queues_is_fresh(queues) && patience_ms < next_ms)
        next_ms = patience_ms;
    for (size_t i = 0; i < KINDS && queues->watches[i]; i++) {
        int64_t its = watch_next_ms(queues->watches[i]);
        next_ms = its < next_ms ? its : next_ms;
    }
    return next_ms;
}

enum kueue_presence queues_presence(const struct queues *queues)
{
    if (!queues->is_served)
        return KUEUE_ABSENT;
    for (size_t i = 0; i < KINDS; i++)
        if (!queues->watches[i] || !watch_is_synced(queues->watches[i]))
            return KUEUE_UNREADABLE;
    return KUEUE_PRESENT;
}

bool queues_is_known(const struct queues *queues)
{
    bool waits_for_lists = queues_presence(queues) == KUEUE_UNREADABLE &&
                           !queues->is_denied &&
                           queues->now_ms < queues->served_ms + QUEUES_PATIENCE_MS;
    return queues->is_known && !waits_for_lists;
}

void queues_require_fresh(struct queues *queues)
{
    queues->must_be_fresh = true;
    queues->fresh_ms = queues->now_ms;
    for (size_t i = 0; i < KINDS && queues->watches[i]; i++)
        watch_require_fresh(queues->watches[i]);
}

bool queues_is_fresh(const struct queues *queues)
{
    bool is_fresh = true;
    for (size_t i = 0; i < KINDS && queues->watches[i]; i++)
        is_fresh = is_fresh && watch_is_fresh(queues->watches[i]);
    return is_fresh || queues->now_ms >= queues->fresh_ms + QUEUES_PATIENCE_MS;
}

void queues_each_watch(const struct queues *queues,
                       void (*each)(void *context, const struct kube_resource *resource,
                                    const struct watch *watch),
                       void *context)
{
    for (size_t i = 0; i < KINDS && queues->watches[i]; i++)
        each(context, kinds[i].resource, queues->watches[i]);
}

json_t *(*queues_trim(const struct kube_resource *resource))(json_t *object)
{
    for (size_t i = 0; i < KINDS; i++)
        if (kinds[i].resource == resource)
            return kinds[i].trim;
    return NULL;
}
