#include "controller/cluster/node_state.h"

#include "controller/base/object.h"
#include "controller/job/job_spec.h"

#include <stdlib.h>
#include <string.h>

/* ---- notices ---- */

static const char *find_leaving(const json_t *node, const struct settings *settings)
{
    const json_t *taints = object_at(node, "spec.taints");
    for (size_t i = 0; i < json_array_size(taints); i++) {
        const char *key = object_text(json_array_get(taints, i), "key");
        if (settings_match_key(settings->leaving_taints, settings->leaving_taint_count,
                               key))
            return key;
    }
    json_t *annotations = object_at(node, "metadata.annotations");
    const char *key;
    json_t *value;
    json_object_foreach (annotations, key, value)
        if (settings_match_key(settings->leaving_annotations,
                               settings->leaving_annotation_count, key))
            return key;
    return NULL;
}

static bool find_spot(const json_t *node, const struct settings *settings)
{
    for (size_t i = 0; i < settings->spot_label_count; i++)
        if (!strcmp(kube_label(node, settings->spot_labels[i].key),
                    settings->spot_labels[i].value))
            return true;
    return false;
}

/* ---- offers ---- */

static void add_offer(struct node_state *state, struct het_arena *arena,
                      const json_t *node, const char *resource,
                      const struct het_hardware *hardware)
{
    struct het_node_gpus gpus;
    het_node_read_gpus(arena, node, resource, hardware, &gpus);
    state->offers[state->offer_count++] = (struct node_offer){
        .resource = xstrdup(resource),
        .type = gpus.type ? xstrdup(gpus.type) : NULL,
        .vendor = gpus.type ? het_node_vendor(hardware, gpus.type, resource) : NULL,
        .memory_bytes = gpus.memory_bytes,
        .allocatable = gpus.allocatable,
        .is_shared = gpus.is_shared,
        .is_stated = gpus.is_stated,
        .is_mixed = gpus.is_mixed,
        .seen_label = gpus.type ? xstrdup(gpus.label) : NULL,
        .seen_type = gpus.type ? xstrdup(gpus.type) : NULL,
    };
}

static int compare_offers(const void *a, const void *b)
{
    const struct node_offer *left = a, *right = b;
    return strcmp(left->resource, right->resource);
}

static void read_offers(struct node_state *state, const json_t *node,
                        const struct het_hardware *hardware)
{
    const json_t *allocatable =
        json_object_get(json_object_get(node, "status"), "allocatable");
    struct het_arena *arena = het_arena_new();
    state->offers = xcalloc(json_object_size(allocatable) + 1, sizeof *state->offers);
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)allocatable, name, value)
        if (strchr(name, '/'))
            add_offer(state, arena, node, name, hardware);
    if (!json_object_get(allocatable, JOB_SPEC_GPU_RESOURCE))
        add_offer(state, arena, node, JOB_SPEC_GPU_RESOURCE, hardware);
    qsort(state->offers, state->offer_count, sizeof *state->offers, compare_offers);
    het_arena_free(arena);
}

void node_state_init(struct node_state *state, const json_t *node,
                     const struct het_hardware *hardware, const struct settings *settings)
{
    *state = (struct node_state){ .unusable = het_unused_name(HET_UNUSED_NODE_GONE) };
    if (!node)
        return;
    const char *leaving = find_leaving(node, settings);
    state->unusable = het_node_state(node, settings->unhealthy_conditions,
                                     settings->unhealthy_condition_count);
    state->leaving = leaving ? xstrdup(leaving) : NULL;
    state->is_spot = find_spot(node, settings);
    state->machine =
        xasprintf("%s/%s", kube_uid(node), object_text(node, "status.nodeInfo.bootID"));
    read_offers(state, node, hardware);
}

void node_state_fini(struct node_state *state)
{
    for (size_t i = 0; i < state->offer_count; i++) {
        free(state->offers[i].resource);
        free(state->offers[i].type);
        free(state->offers[i].seen_label);
        free(state->offers[i].seen_type);
    }
    free(state->offers);
    free(state->leaving);
    free(state->machine);
    *state = (struct node_state){ 0 };
}

/* ---- comparing, finding ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static bool is_believed(const struct node_offer *offer)
{
    return offer->is_stated || offer->is_shared;
}

static void follow_offer(struct node_offer *offer, const struct node_offer *before)
{
    bool is_other = offer->type && before->seen_type &&
                    strcmp(offer->seen_label, before->seen_label) != 0 &&
                    strcmp(offer->seen_type, before->seen_type) != 0;
    bool has_changed = is_other && !is_believed(offer) && !is_believed(before);
    offer->has_changed = has_changed || before->has_changed;
    offer->has_flipped = before->has_flipped || (has_changed && before->has_changed);
    offer->is_mixed |= offer->has_flipped && !is_believed(offer);
    if (!offer->seen_label && before->seen_label) {
        offer->seen_label = xstrdup(before->seen_label);
        offer->seen_type = xstrdup(before->seen_type);
    }
}

void node_state_follow(struct node_state *state, const struct node_state *before)
{
    if (!state->machine || !before->machine || strcmp(state->machine, before->machine))
        return;
    for (size_t i = 0; i < state->offer_count; i++) {
        struct node_offer *offer = &state->offers[i];
        const struct node_offer *old = node_state_find_offer(before, offer->resource);
        if (old && old->allocatable && offer->allocatable)
            follow_offer(offer, old);
    }
}

bool node_state_same(const struct node_state *a, const struct node_state *b)
{
    if (!same_text(a->unusable, b->unusable) || !same_text(a->leaving, b->leaving) ||
        a->is_spot != b->is_spot || a->offer_count != b->offer_count)
        return false;
    for (size_t i = 0; i < a->offer_count; i++) {
        const struct node_offer *left = &a->offers[i], *right = &b->offers[i];
        if (strcmp(left->resource, right->resource) ||
            !same_text(left->type, right->type) ||
            !same_text(left->vendor, right->vendor) ||
            left->memory_bytes != right->memory_bytes ||
            left->allocatable != right->allocatable ||
            left->is_shared != right->is_shared || left->is_mixed != right->is_mixed)
            return false;
    }
    return true;
}

const struct node_offer *node_state_find_offer(const struct node_state *state,
                                               const char *resource)
{
    for (size_t i = 0; i < state->offer_count; i++)
        if (!strcmp(state->offers[i].resource, resource))
            return &state->offers[i];
    return NULL;
}

const struct node_offer *node_state_default_offer(const struct node_state *state)
{
    const struct node_offer *nvidia = node_state_find_offer(state, JOB_SPEC_GPU_RESOURCE);
    const struct node_offer *amd = node_state_find_offer(state, JOB_SPEC_AMD_RESOURCE);
    bool has_nvidia = nvidia && nvidia->allocatable;
    return !has_nvidia && amd && amd->allocatable ? amd : nvidia;
}

bool node_state_has_gpus(const struct node_state *state)
{
    for (size_t i = 0; i < state->offer_count; i++)
        if (state->offers[i].type)
            return true;
    return node_state_default_offer(state) &&
           node_state_default_offer(state)->allocatable;
}
