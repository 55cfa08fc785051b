#include "controller/preview.h"

#include "controller/desired.h"
#include "controller/watch.h"

#include <stdlib.h>
#include <string.h>

/* Pods and plans of all namespaces: they take GPUs. */
static const struct {
    const struct kube_resource *resource;
    const char *label_selector;
} listed[] = {
    { &kube_node, NULL },
    { &kube_pod, NULL },
    { &kube_config_map, LABEL_MANAGED_BY "=" MANAGED_BY },
    { &kube_model_profile, NULL },
    { &kube_cluster_model_profile, NULL },
    { &kube_job, NULL },
};
#define LISTS (sizeof listed / sizeof *listed)

struct preview {
    const struct preview_config *config;
    struct kube *kube;
    struct store *store;
    struct capacity *capacity;
    struct watch *watches[LISTS];
    struct het_arena *arena;
    uint64_t hardware_digest;
};

static void ignore_change(void *context, const struct kube_resource *resource,
                          json_t *before, json_t *after)
{
    (void)context;
    (void)resource;
    (void)before;
    (void)after;
}

static int use_hardware(struct preview *preview, struct het_error *err)
{
    const struct het_hardware *hardware = het_hardware_builtin();
    json_t *json = preview->config->hardware;
    if (json && het_codec_hardware(preview->arena, json, hardware, &hardware, err) < 0)
        return -1;
    capacity_set_hardware(preview->capacity, hardware, 0);
    return 0;
}

struct preview *preview_new(struct transport *transport,
                            const struct preview_config *config, struct het_error *err)
{
    struct preview *preview = xcalloc(1, sizeof *preview);
    preview->config = config;
    preview->arena = het_arena_new();
    preview->store = store_new();
    preview->capacity = capacity_new();
    preview->kube = kube_new(transport, "heterotrain-preview");
    if (use_hardware(preview, err) < 0) {
        preview_free(preview);
        return NULL;
    }
    for (size_t i = 0; i < LISTS; i++) {
        struct watch_config watch = { .resource = listed[i].resource,
                                      .ns = "",
                                      .label_selector = listed[i].label_selector };
        preview->watches[i] =
            watch_new(preview->kube, preview->store, &watch, i, ignore_change, NULL);
    }
    return preview;
}

void preview_free(struct preview *preview)
{
    if (!preview)
        return;
    for (size_t i = 0; i < LISTS; i++)
        watch_free(preview->watches[i]);
    kube_free(preview->kube);
    capacity_free(preview->capacity);
    store_free(preview->store);
    het_arena_free(preview->arena);
    free(preview);
}

void preview_step(struct preview *preview, int64_t now_ms)
{
    kube_step(preview->kube, now_ms);
    for (size_t i = 0; i < LISTS; i++)
        if (!watch_is_synced(preview->watches[i]))
            watch_step(preview->watches[i], now_ms);
}

int64_t preview_next_ms(const struct preview *preview)
{
    int64_t next_ms = kube_next_ms(preview->kube);
    for (size_t i = 0; i < LISTS; i++)
        if (!watch_is_synced(preview->watches[i]) &&
            watch_next_ms(preview->watches[i]) < next_ms)
            next_ms = watch_next_ms(preview->watches[i]);
    return next_ms;
}

bool preview_is_synced(const struct preview *preview)
{
    for (size_t i = 0; i < LISTS; i++)
        if (!watch_is_synced(preview->watches[i]))
            return false;
    return true;
}

/* Puts the job of the file where one of its name is, or would be. */
static const char *put_job(struct preview *preview)
{
    const struct preview_config *config = preview->config;
    json_auto_t *job = json_deep_copy(config->job);
    json_t *metadata = json_object_get(job, "metadata");
    const char *name = kube_name(job);
    json_t *held = store_find(preview->store, &kube_job, config->ns, name);
    json_object_set_new(metadata, "namespace", json_string(config->ns));
    json_object_set_new(metadata, "uid", json_string(held ? kube_uid(held) : "preview"));
    json_object_set_new(metadata, "resourceVersion", /* newer than what is there */
                        json_sprintf("%s0", held ? kube_resource_version(held) : "1"));
    const char *kept = het_arena_strdup(preview->arena, name);
    store_replace(preview->store, &kube_job, job);
    return kept;
}

/* Tells the capacity of all that takes GPUs. */
static void count_gpus(struct preview *preview, int64_t now_ms)
{
    struct capacity *capacity = preview->capacity;
    struct store *store = preview->store;
    for (size_t i = 0; i < store_count(store, &kube_node); i++) {
        json_t *node = store_at(store, &kube_node, i);
        capacity_set_node(capacity, kube_name(node), node, now_ms);
    }
    for (size_t i = 0; i < store_count(store, &kube_pod); i++) {
        json_t *pod = store_at(store, &kube_pod, i);
        capacity_set_pod(capacity, kube_uid(pod), pod);
    }
    for (size_t i = 0; i < store_count(store, &kube_config_map); i++) {
        json_t *map = store_at(store, &kube_config_map, i);
        capacity_set_plan(capacity, kube_uid(map), map);
    }
    for (size_t i = 0; i < store_count(store, &kube_job); i++) {
        json_t *job = store_at(store, &kube_job, i);
        auto_free char *key = xasprintf("%s/%s", kube_namespace(job), kube_uid(job));
        capacity_set_job(capacity, key, snapshot_job_is_finished(job) ? NULL : job);
    }
}

int preview_question(struct preview *preview, int64_t now_ms, int64_t wall_ms,
                     json_t **ret, struct het_error *err)
{
    const struct preview_config *config = preview->config;
    const char *name = config->name ? config->name : put_job(preview);
    struct snapshot_sources sources = {
        .store = preview->store,
        .capacity = preview->capacity,
        .hardware = config->hardware,
        .settings = config->settings,
        .now_ms = now_ms,
        .wall_ms = wall_ms,
    };
    struct snapshot snapshot;
    count_gpus(preview, now_ms);
    if (!snapshot_take(preview->arena, &sources, config->ns, name, NULL, &snapshot))
        return het_fail(err, HET_BAD_INPUT, "there is no job %s/%s", config->ns, name);
    if (snapshot.refused_reason)
        return het_fail(err, HET_BAD_INPUT, "job %s/%s: %s", config->ns, name,
                        snapshot.refused);
    if (snapshot.spec.profile_name && !snapshot.profile)
        return het_fail(err, HET_BAD_INPUT,
                        "job %s/%s: spec.model.profileRef: there is no profile %s",
                        config->ns, name, snapshot.spec.profile_name);
    json_t *question = desired_question(&snapshot);
    if (!question)
        return het_fail(err, HET_NO_PLAN, "job %s/%s: no GPU can be used now", config->ns,
                        name);
    *ret = question;
    return 0;
}
