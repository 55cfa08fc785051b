#include "controller/cluster/capacity_view.h"

#include "controller/base/object.h"
#include "controller/cluster/capacity_table.h"
#include "controller/job/node_selector.h"

#include <stdlib.h>
#include <string.h>

struct viewer {
    const struct capacity *capacity;
    struct het_arena *arena;
    const struct job_spec *spec;
    struct shape shape;
    const json_t *tolerations, *template_selector, *template_affinity;
};

static bool tolerates(const json_t *toleration, const json_t *taint)
{
    const char *effect = object_text(toleration, "effect");
    if (*effect && strcmp(effect, object_text(taint, "effect")))
        return false;
    const char *key = object_text(toleration, "key");
    bool exists = !strcmp(object_text(toleration, "operator"), "Exists");
    if (!*key)
        return exists;
    return !strcmp(key, object_text(taint, "key")) &&
           (exists ||
            !strcmp(object_text(toleration, "value"), object_text(taint, "value")));
}

/* The first taint that keeps the job's pods away; NULL if none does. */
static const char *untolerated_taint(const struct viewer *viewer, const json_t *node,
                                     const struct node_offer *offer)
{
    const json_t *taints = capacity_taints(node);
    for (size_t i = 0; i < json_array_size(taints); i++) {
        const json_t *taint = json_array_get(taints, i);
        const char *effect = object_text(taint, "effect"),
                   *key = object_text(taint, "key");
        if (strcmp(effect, "NoSchedule") && strcmp(effect, "NoExecute"))
            continue;
        /* Every pod of ours tolerates these (children_pod). */
        bool tolerated =
            !strcmp(effect, "NoSchedule") &&
            (!strcmp(key, JOB_SPEC_GPU_RESOURCE) || !strcmp(key, offer->resource));
        for (size_t k = 0; !tolerated && k < json_array_size(viewer->tolerations); k++)
            tolerated = tolerates(json_array_get(viewer->tolerations, k), taint);
        if (!tolerated)
            return key;
    }
    return NULL;
}

static bool is_selected(const struct viewer *viewer, const json_t *node)
{
    return node_selector_matches_labels(viewer->spec->node_selector, node) &&
           node_selector_matches_labels(viewer->template_selector, node) &&
           node_selector_matches(viewer->spec->node_affinity, node) &&
           node_selector_matches(viewer->template_affinity, node);
}

static bool names_type(const struct viewer *viewer, size_t rule, const char *type)
{
    return type && !strcmp(viewer->spec->gpu_types[rule].name, type);
}

/* The offer by which the job sees the node. */
static const struct node_offer *choose_offer(const struct viewer *viewer,
                                             const struct node *node)
{
    const struct node_offer *own = node_state_default_offer(&node->state);
    for (size_t i = 0; i < viewer->spec->gpu_type_count; i++) {
        const char *resource = viewer->spec->gpu_types[i].resource;
        const struct node_offer *offer =
            resource ? node_state_find_offer(&node->state, resource) : own;
        if (offer && offer->allocatable && names_type(viewer, i, offer->type))
            return offer;
    }
    return own;
}

/* Whether the job wants GPUs of the type by another resource. */
static bool wants_other_resource(const struct viewer *viewer,
                                 const struct node_offer *offer)
{
    bool is_named = false;
    for (size_t i = 0; i < viewer->spec->gpu_type_count; i++) {
        if (!names_type(viewer, i, offer->type))
            continue;
        const char *resource = viewer->spec->gpu_types[i].resource;
        if (!resource || !strcmp(resource, offer->resource))
            return false;
        is_named = true;
    }
    return is_named;
}

/* Why no job can plan with the node's GPUs as its labels describe them; NULL: jobs
 * can. */
static const char *why_unplannable(const struct node_offer *offer)
{
    return !offer->type      ? het_unused_name(HET_UNUSED_NO_GPU_LABEL)
           : offer->is_mixed ? het_unused_name(HET_UNUSED_MIXED_GPUS)
                             : NULL;
}

/* Why the job may put nothing on the node; NULL if it may. */
static const char *find_reason(const struct viewer *viewer, const struct node *node,
                               const struct node_offer *offer)
{
    if (node->state.unusable)
        return node->state.unusable;
    if (node->state.leaving)
        return het_arena_printf(viewer->arena, "%s (%s)",
                                het_unused_name(HET_UNUSED_LEAVING), node->state.leaving);
    const char *taint = untolerated_taint(viewer, node->object, offer);
    if (taint)
        return het_arena_printf(viewer->arena, "%s (%s)",
                                het_unused_name(HET_UNUSED_TAINTED), taint);
    if (!is_selected(viewer, node->object))
        return het_unused_name(HET_UNUSED_NOT_SELECTED);
    if (node->state.is_spot && viewer->spec->spot_policy == SPOT_FORBID)
        return het_unused_name(HET_UNUSED_SPOT_FORBIDDEN);
    const char *unplannable = why_unplannable(offer);
    if (unplannable)
        return unplannable;
    if (wants_other_resource(viewer, offer))
        return het_unused_name(HET_UNUSED_OTHER_RESOURCE);
    if (offer->is_shared && !viewer->spec->allows_shared_gpus)
        return het_unused_name(HET_UNUSED_SHARED_GPU);
    if (!offer->allocatable)
        return het_unused_name(HET_UNUSED_NO_GPU);
    return NULL;
}

/* GPUs of the node that the job can have beside `others`. */
static int64_t gpus_beside(const struct viewer *viewer, const struct node *node,
                           const struct share *share, enum others others,
                           const char *resource, const char **ret_limit)
{
    int64_t gpus = capacity_left(node, share, others,
                                 capacity_find_resource(viewer->capacity, resource));
    return gpus > 0 ? capacity_fit(node, share, others, &viewer->shape, gpus, ret_limit)
                    : 0;
}

/* Fills in what the job can have of the node. */
static void view_free(const struct viewer *viewer, const struct node *node,
                      const struct share *share, struct capacity_node *seen)
{
    const char *limit = NULL, *last_limit;
    if (seen->unusable)
        return;
    seen->free = gpus_beside(viewer, node, share, ALL_OTHERS, seen->resource, &limit);
    seen->most_free =
        gpus_beside(viewer, node, share, FOREIGN_PODS, seen->resource, &last_limit);
    if (limit)
        seen->limited_by = het_arena_strdup(viewer->arena, limit);
}

static void view_node(const struct viewer *viewer, const struct node *node,
                      const struct share *share, struct capacity_node *seen)
{
    const struct node_offer *offer = choose_offer(viewer, node);
    bool is_last = node->state.is_spot &&
                   viewer->spec->spot_policy == SPOT_PREFER_ON_DEMAND;
    *seen = (struct capacity_node){
        .name = node->name,
        .type = offer->type ? offer->type : "",
        .resource = offer->resource,
        .vendor = offer->vendor,
        .labels = capacity_labels(node->object),
        .memory_bytes = offer->memory_bytes,
        .allocatable = offer->allocatable,
        .unusable = find_reason(viewer, node, offer),
        .unusable_since_ms = node->state_changed_ms,
        .preference = is_last ? -1 : 0,
        .is_spot = node->state.is_spot,
        .is_leaving = node->state.leaving != NULL,
        .leaving_by = node->state.leaving,
        .leaving_since_ms = node->state.leaving ? node->leaving_since_ms : 0,
    };
    view_free(viewer, node, share, seen);
}

/* The share of the job that is next in both lists, which are in the order of names. */
static const struct share *share_on(const struct job *job, const struct node *node,
                                    size_t *next)
{
    bool is_there = job && *next < job->share_count && job->shares[*next]->node == node;
    return is_there ? job->shares[(*next)++] : NULL;
}

void capacity_kept_fini(struct capacity_kept *kept)
{
    het_arena_free(kept->arena);
    free(kept->nodes);
    free(kept->places);
    *kept = (struct capacity_kept){ 0 };
}

/* Starts again if the kept views are no longer valid, or texts of replaced views have
 * piled up. */
static void renew(struct capacity_kept *kept, const struct capacity *capacity)
{
    bool is_full = kept->viewed > 4 * (kept->count + 64);
    if (kept->arena && kept->names_version == capacity->names_version && !is_full)
        return;
    capacity_kept_fini(kept);
    kept->arena = het_arena_new();
    kept->names_version = capacity->names_version;
}

/* Computes the job's view of `node`, kept at place `at`. */
static void keep_view(struct capacity_kept *kept, const struct viewer *viewer,
                      const struct node *node, const struct share *share, size_t at)
{
    if (at < kept->count && kept->places[at].serial == node->serial &&
        kept->places[at].version == node->version)
        return;
    if (at == kept->count)
        kept->count++;
    view_node(viewer, node, share, &kept->nodes[at]);
    kept->places[at].serial = node->serial;
    kept->places[at].version = node->version;
    kept->viewed++;
}

size_t capacity_view(const struct capacity *capacity, struct het_arena *arena,
                     const char *job_key, const struct job_spec *spec,
                     struct capacity_kept *kept, struct capacity_node **ret)
{
    struct capacity_kept own = { 0 };
    struct capacity_kept *held = kept ? kept : &own;
    const struct job *job = strmap_find(&capacity->jobs, job_key);
    const json_t *template = json_object_get(spec->pod_template, "spec");
    renew(held, capacity);
    ARRAY_RESERVE(held->nodes, &held->node_capacity, capacity->node_count);
    ARRAY_RESERVE(held->places, &held->place_capacity, capacity->node_count);
    struct viewer viewer = {
        .capacity = capacity,
        .arena = kept ? kept->arena : arena,
        .spec = spec,
        .tolerations = json_object_get(template, "tolerations"),
        .template_selector = json_object_get(template, "nodeSelector"),
        .template_affinity = job_spec_template_affinity(spec),
    };
    capacity_shape_init(&viewer.shape, capacity, spec);
    size_t count = 0, next_share = 0;
    for (size_t i = 0; i < capacity->node_count; i++) {
        const struct node *node = capacity->nodes[i];
        const struct share *share = share_on(job, node, &next_share);
        /* A node that has lost its labels is still the place of what runs on it. */
        if (node->object && (node->has_gpus || share))
            keep_view(held, &viewer, node, share, count++);
    }
    held->count = count;
    capacity_shape_fini(&viewer.shape);
    *ret = HET_ARENA_ARRAY(arena, struct capacity_node, count);
    if (count)
        memcpy(*ret, held->nodes, count * sizeof **ret);
    capacity_kept_fini(&own);
    return count;
}

bool capacity_has_claims(const struct capacity *capacity)
{
    return capacity->claim_count;
}

void capacity_rules_of(const struct capacity *capacity, const char *job_key,
                       struct job_rules *ret)
{
    const struct job *job = strmap_find(&capacity->jobs, job_key);
    *ret = job && job->object ? job->rules : (struct job_rules){ 0 };
}

/* GPUs among what the job has there, by whatever resource it asks for them. */
static int64_t count_gpus(const struct capacity *capacity, const struct job *job,
                          const struct share *share)
{
    uint32_t nvidia = capacity_find_resource(capacity, JOB_SPEC_GPU_RESOURCE);
    uint32_t amd = capacity_find_resource(capacity, JOB_SPEC_AMD_RESOURCE);
    int64_t gpus = 0;
    for (size_t i = 0; i < share->counted_count; i++) {
        uint32_t resource = share->counted[i].resource;
        bool counts = resource == nvidia || resource == amd;
        for (size_t k = 0; k < job->shape.rule_count; k++)
            counts = counts || resource == job->shape.rules[k].resource;
        gpus += counts ? share->counted[i].amount : 0;
    }
    return gpus;
}

size_t capacity_holdings(const struct capacity *capacity, struct het_arena *arena,
                         const char *job_key, struct capacity_share **ret)
{
    const struct job *job = strmap_find(&capacity->jobs, job_key);
    size_t most = job && job->object ? job->share_count : 0, count = 0;
    struct capacity_share *shares = HET_ARENA_ARRAY(arena, struct capacity_share, most);
    for (size_t i = 0; i < most; i++) {
        int64_t gpus = count_gpus(capacity, job, job->shares[i]);
        if (gpus)
            shares[count++] = (struct capacity_share){ job->shares[i]->node->name, gpus };
    }
    *ret = shares;
    return count;
}

bool capacity_holds(const struct capacity *capacity, const char *job_key,
                    const char *node_name)
{
    const struct job *job = strmap_find(&capacity->jobs, job_key);
    const struct node *node = capacity_find_node(capacity, node_name);
    const struct share *share = job && node ? capacity_find_share(job, node) : NULL;
    return share && count_gpus(capacity, job, share);
}

static int compare_uses(const void *a, const void *b)
{
    return strcmp(((const struct capacity_use *)a)->job,
                  ((const struct capacity_use *)b)->job);
}

static void place_uses(const struct capacity *capacity, struct het_arena *arena,
                       const struct node *node, struct capacity_place *place)
{
    struct capacity_use *uses =
        HET_ARENA_ARRAY(arena, struct capacity_use, node->share_count);
    for (size_t i = 0; i < node->share_count; i++) {
        const struct share *share = node->shares[i];
        int64_t gpus = count_gpus(capacity, share->job, share);
        if (gpus)
            uses[place->use_count++] = (struct capacity_use){ share->job->key, gpus };
        if (gpus && !*place->type && share->planned_type)
            place->type = share->planned_type;
    }
    if (place->use_count)
        qsort(uses, place->use_count, sizeof *uses, compare_uses);
    place->uses = uses;
}

/* The offer with the most GPUs, those of a known type first. */
static const struct node_offer *largest_offer(const struct node *node)
{
    const struct node_offer *largest = NULL;
    for (size_t i = 0; node->object && i < node->state.offer_count; i++) {
        const struct node_offer *offer = &node->state.offers[i];
        bool is_gpu = offer->type || job_spec_is_default_resource(offer->resource);
        bool is_better = !largest || (!largest->type && offer->type) ||
                         offer->allocatable > largest->allocatable;
        if (is_gpu && offer->allocatable > 0 && is_better)
            largest = offer;
    }
    return largest;
}

/* By its own state and the labels of its GPUs. */
static const char *why_unusable(const struct node *node, const struct node_offer *offer)
{
    return node->state.unusable || !offer ? node->state.unusable : why_unplannable(offer);
}

size_t capacity_places(const struct capacity *capacity, struct het_arena *arena,
                       struct capacity_place **ret)
{
    struct capacity_place *places =
        HET_ARENA_ARRAY(arena, struct capacity_place, capacity->node_count);
    size_t count = 0;
    for (size_t i = 0; i < capacity->node_count; i++) {
        const struct node *node = capacity->nodes[i];
        const struct node_offer *offer = largest_offer(node);
        const struct stock *stock =
            offer ? capacity_find_stock(node,
                                        capacity_find_resource(capacity, offer->resource))
                  : NULL;
        struct capacity_place place = {
            .name = node->name,
            .type = offer && offer->type ? offer->type : "",
            .allocatable = offer ? offer->allocatable : 0,
            .foreign = stock ? stock->foreign : 0,
            .unusable = why_unusable(node, offer),
            .is_there = node->object != NULL,
        };
        place_uses(capacity, arena, node, &place);
        if (place.allocatable || place.use_count)
            places[count++] = place;
    }
    *ret = places;
    return count;
}

static struct capacity_total *get_total(struct capacity_total *totals, size_t *count,
                                        const char *type)
{
    size_t at = 0;
    while (at < *count && strcmp(totals[at].type, type) < 0)
        at++;
    if (at < *count && !strcmp(totals[at].type, type))
        return &totals[at];
    memmove(totals + at + 1, totals + at, ((*count)++ - at) * sizeof *totals);
    totals[at] = (struct capacity_total){ .type = type };
    return &totals[at];
}

static void add_to_total(struct capacity_total *total, const struct stock *stock,
                         bool is_usable)
{
    int64_t left = stock->allocatable - stock->foreign - stock->reserved;
    total->used += stock->foreign + stock->reserved;
    if (is_usable)
        total->free += left > 0 ? left : 0;
    else
        total->unusable += left > 0 ? left : 0;
}

size_t capacity_totals(const struct capacity *capacity, struct het_arena *arena,
                       struct capacity_total **ret)
{
    size_t most = 0, count = 0;
    for (size_t i = 0; i < capacity->node_count; i++)
        most += capacity->nodes[i]->state.offer_count;
    struct capacity_total *totals = HET_ARENA_ARRAY(arena, struct capacity_total, most);
    for (size_t i = 0; i < capacity->node_count; i++) {
        const struct node *node = capacity->nodes[i];
        for (size_t k = 0; node->object && k < node->state.offer_count; k++) {
            const struct node_offer *offer = &node->state.offers[k];
            const struct stock *stock = capacity_find_stock(
                node, capacity_find_resource(capacity, offer->resource));
            if (offer->type && offer->allocatable > 0 && stock)
                add_to_total(get_total(totals, &count, offer->type), stock,
                             !why_unusable(node, offer));
        }
    }
    *ret = totals;
    return count;
}

struct capacity_size capacity_size(const struct capacity *capacity)
{
    return (struct capacity_size){ .nodes = capacity->node_count,
                                   .pods = capacity->pods.count,
                                   .plans = capacity->plans.count,
                                   .jobs = capacity->jobs.count,
                                   .resources = capacity->resource_count -
                                                KNOWN_RESOURCES };
}

bool capacity_has_node(const struct capacity *capacity, const char *name)
{
    const struct node *node = capacity_find_node(capacity, name);
    return node && node->object;
}

bool capacity_is_out_of_service(const struct capacity *capacity, const char *name)
{
    const struct node *node = capacity_find_node(capacity, name);
    const json_t *taints = node ? capacity_taints(node->object) : NULL;
    for (size_t i = 0; i < json_array_size(taints); i++)
        if (!strcmp(object_text(json_array_get(taints, i), "key"),
                    "node.kubernetes.io/out-of-service"))
            return true;
    return false;
}
