#include "planner/format/network_json.h"

#include "planner/format/json.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_PER_GB  1e9
#define MAX_DOCUMENTS 64u
#define MAX_GPUS      65536u
#define MAX_GB_S      1e6
#define MAX_PARAMETER 1e9

struct reader {
    struct het_arena *arena;
    struct het_place places[HET_MAX_PLACES];
    uint32_t place_count;
    struct het_curve *curves;
    size_t count, capacity;
};

/* ---- parts ---- */

static int get_place(struct reader *reader, const struct het_view *at, const char *zone,
                     const char *type, uint32_t *ret, struct het_error *err)
{
    uint32_t i = 0;
    for (; i < reader->place_count; i++) {
        const struct het_place *place = &reader->places[i];
        bool same_zone = zone && place->zone ? !strcmp(zone, place->zone)
                                             : zone == place->zone;
        if (same_zone && !strcmp(place->type, type))
            break;
    }
    if (i == HET_MAX_PLACES)
        return het_view_fail(at, err, "more than %u GPU types and zones", HET_MAX_PLACES);
    if (i == reader->place_count)
        reader->places[reader->place_count++] = (struct het_place){
            .zone = zone ? het_arena_strdup(reader->arena, zone) : NULL,
            .type = het_arena_strdup(reader->arena, type),
        };
    *ret = i;
    return 0;
}

/* A member's name that is a number of GPUs. */
static int read_count(const struct het_view *view, uint32_t *ret, struct het_error *err)
{
    char *end;
    unsigned long count = strtoul(view->key, &end, 10);
    if (*end || view->key[0] < '0' || view->key[0] > '9' || !count || count > MAX_GPUS)
        return het_view_fail(view, err, "the name must be a number of GPUs, 1 to %u",
                             MAX_GPUS);
    *ret = (uint32_t)count;
    return 0;
}

static int need_number(const struct het_view *list, size_t index, double low, double high,
                       double *ret, struct het_error *err)
{
    struct het_view item = het_view_at(list, index);
    return het_view_need(&item, err) < 0 ||
                   het_view_number(&item, low, high, ret, err) < 0
               ? -1
               : 0;
}

/* [[a, b, c], most]: `curve` has all but these already. */
static int read_curve(struct reader *reader, const struct het_view *view,
                      struct het_curve curve, struct het_error *err)
{
    size_t count = 0, coefficients = 0;
    if (het_view_need(view, err) < 0 || het_view_array(view, 2, &count, err) < 0)
        return -1;
    struct het_view list = het_view_at(view, 0);
    if (het_view_need(&list, err) < 0 || het_view_array(&list, 3, &coefficients, err) < 0)
        return -1;
    if (count != 2 || coefficients != 3)
        return het_view_fail(view, err,
                             "must be [[a, b, c], the highest bytes a second]");
    double a, b, c;
    if (need_number(&list, 0, -MAX_PARAMETER, MAX_PARAMETER, &a, err) < 0 ||
        need_number(&list, 1, -MAX_PARAMETER, MAX_PARAMETER, &b, err) < 0 ||
        need_number(&list, 2, -MAX_PARAMETER, MAX_PARAMETER, &c, err) < 0 ||
        need_number(view, 1, 1, MAX_GB_S * BYTES_PER_GB, &curve.most_bytes_per_s, err) <
            0)
        return -1;
    curve.a = a * BYTES_PER_GB;
    curve.b = b * BYTES_PER_GB;
    curve.c = c * BYTES_PER_GB;
    if (reader->count == HET_MAX_CURVES)
        return het_view_fail(view, err, "more than %u curves", HET_MAX_CURVES);
    ARRAY_RESERVE(reader->curves, &reader->capacity, reader->count + 1);
    reader->curves[reader->count++] = curve;
    return 0;
}

/* { GPU: { N: ... } }: calls `read` for each N. */
struct by_count {
    struct reader *reader;
    const char *zone;
    bool inside;
    /* The sender, where this is the receiver; HET_NO_PLACE: both are one. */
    uint32_t from, from_gpus;
};
static int read_by_type(const struct by_count *context, const struct het_view *types,
                        int (*read)(const struct by_count *context,
                                    const struct het_view *view, uint32_t place,
                                    uint32_t gpus, struct het_error *err),
                        struct het_error *err)
{
    const char *type, *gpus;
    json_t *counts, *item;
    if (het_view_need(types, err) < 0 || het_view_object(types, err) < 0)
        return -1;
    json_object_foreach ((json_t *)(uintptr_t)types->json, type, counts) {
        struct het_view view = het_view_get(types, type);
        uint32_t place = HET_NO_PLACE;
        if (het_view_need(&view, err) < 0 || het_view_object(&view, err) < 0 ||
            get_place(context->reader, &view, context->zone, type, &place, err) < 0)
            return -1;
        json_object_foreach (counts, gpus, item) {
            struct het_view entry = het_view_get(&view, gpus);
            uint32_t count = 0;
            if (read_count(&entry, &count, err) < 0 ||
                read(context, &entry, place, count, err) < 0)
                return -1;
        }
    }
    return 0;
}

/* ---- forms ---- */

static int read_end(const struct by_count *context, const struct het_view *view,
                    uint32_t place, uint32_t gpus, struct het_error *err)
{
    bool is_both = context->from == HET_NO_PLACE;
    const struct het_curve curve = {
        .from = is_both ? place : context->from,
        .to = place,
        .from_gpus = is_both ? gpus : context->from_gpus,
        .to_gpus = context->inside ? 0 : gpus,
    };
    return read_curve(context->reader, view, curve, err);
}

/* { ZONE: ... } of the receivers of one sender. */
static int read_receivers(const struct by_count *context, const struct het_view *view,
                          uint32_t place, uint32_t gpus, struct het_error *err)
{
    const char *zone;
    json_t *types;
    if (het_view_need(view, err) < 0 || het_view_object(view, err) < 0)
        return -1;
    json_object_foreach ((json_t *)(uintptr_t)view->json, zone, types) {
        struct het_view entry = het_view_get(view, zone);
        const struct by_count receiver = {
            .reader = context->reader, .zone = zone, .from = place, .from_gpus = gpus
        };
        if (read_by_type(&receiver, &entry, read_end, err) < 0)
            return -1;
    }
    return 0;
}

static int read_senders(struct reader *reader, const struct het_view *view,
                        struct het_error *err)
{
    const char *zone;
    json_t *types;
    json_object_foreach ((json_t *)(uintptr_t)view->json, zone, types) {
        struct het_view entry = het_view_get(view, zone);
        const struct by_count sender = { .reader = reader, .zone = zone };
        if (read_by_type(&sender, &entry, read_receivers, err) < 0)
            return -1;
    }
    return 0;
}

static int read_alike(struct reader *reader, const struct het_view *view, bool inside,
                      struct het_error *err)
{
    const struct by_count both = { .reader = reader,
                                   .inside = inside,
                                   .from = HET_NO_PLACE };
    return read_by_type(&both, view, read_end, err);
}

/* Whether the values two levels down are lists: curves inside a node. */
static bool has_curves_by_type(const json_t *json)
{
    const json_t *counts =
        json_object_iter_value(json_object_iter((json_t *)(uintptr_t)json));
    const json_t *curve =
        json_object_iter_value(json_object_iter((json_t *)(uintptr_t)counts));
    return json_is_array(curve);
}

static int read_document(struct reader *reader, const struct het_view *view,
                         struct het_error *err)
{
    static const char *const scopes[] = { "inter", "intra", NULL };
    if (het_view_need(view, err) < 0 || het_view_object(view, err) < 0)
        return -1;
    struct het_view inter = het_view_get(view, "inter");
    struct het_view intra = het_view_get(view, "intra");
    if (!inter.json && !intra.json)
        return has_curves_by_type(view->json) ? read_alike(reader, view, true, err)
                                              : read_senders(reader, view, err);
    if (het_view_members(view, scopes, err) < 0 ||
        (inter.json && read_alike(reader, &inter, false, err) < 0) ||
        (intra.json && read_alike(reader, &intra, true, err) < 0))
        return -1;
    return 0;
}

/* ---- the network ---- */

/* A single zone's name says nothing: its places are anywhere's, and meet those of files
 * without zones. */
static void drop_single_zone(struct reader *reader)
{
    const char *zone = NULL;
    for (uint32_t i = 0; i < reader->place_count; i++) {
        if (zone && reader->places[i].zone && strcmp(zone, reader->places[i].zone) != 0)
            return;
        zone = reader->places[i].zone ? reader->places[i].zone : zone;
    }
    uint32_t renamed[HET_MAX_PLACES] = { 0 }, kept = 0;
    for (uint32_t i = 0; i < reader->place_count; i++) {
        uint32_t k = 0;
        while (k < kept && strcmp(reader->places[k].type, reader->places[i].type) != 0)
            k++;
        if (k == kept)
            reader->places[kept++] = (struct het_place){ .type = reader->places[i].type };
        renamed[i] = k;
    }
    reader->place_count = kept;
    for (size_t i = 0; i < reader->count; i++) {
        reader->curves[i].from = renamed[reader->curves[i].from];
        reader->curves[i].to = renamed[reader->curves[i].to];
    }
}

struct numbered {
    struct het_curve curve;
    size_t index; /* in the documents */
};

static int compare_numbered(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    int order = het_curve_compare(&x->curve, &y->curve);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* Sorted; of curves for the same the first stays. */
static struct het_network *make_network(struct reader *reader)
{
    auto_free struct numbered *all = xcalloc(reader->count + 1, sizeof *all);
    for (size_t i = 0; i < reader->count; i++)
        all[i] = (struct numbered){ reader->curves[i], i };
    qsort(all, reader->count, sizeof *all, compare_numbered);
    struct het_curve *curves =
        HET_ARENA_ARRAY(reader->arena, struct het_curve, reader->count);
    struct het_place *places =
        HET_ARENA_ARRAY(reader->arena, struct het_place, reader->place_count);
    size_t count = 0;
    for (size_t i = 0; i < reader->count; i++)
        if (!count || het_curve_compare(&curves[count - 1], &all[i].curve) != 0)
            curves[count++] = all[i].curve;
    for (uint32_t i = 0; i < reader->place_count; i++)
        places[i] = reader->places[i];
    struct het_network *network = het_arena_alloc(reader->arena, sizeof *network);
    *network = (struct het_network){ .places = places,
                                     .place_count = reader->place_count,
                                     .curves = curves,
                                     .curve_count = count };
    return network;
}

static int read_all(struct reader *reader, const struct het_view *root,
                    struct het_error *err)
{
    size_t count = 0;
    if (!json_is_array(root->json))
        return read_document(reader, root, err);
    if (het_view_array(root, MAX_DOCUMENTS, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(root, i);
        if (read_document(reader, &item, err) < 0)
            return -1;
    }
    return 0;
}

int het_network_read(struct het_arena *arena, const json_t *json,
                     const struct het_network **ret, struct het_error *err)
{
    struct het_view root = het_view_root(json);
    auto_free struct reader *reader = xcalloc(1, sizeof *reader);
    reader->arena = arena;
    int result = read_all(reader, &root, err);
    if (!result) {
        drop_single_zone(reader);
        const struct het_network *network = make_network(reader);
        result = het_network_check(network, err);
        if (!result)
            *ret = network;
    }
    xfree(reader->curves);
    return result;
}
