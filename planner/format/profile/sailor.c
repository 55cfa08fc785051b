#include "planner/format/profile/sailor.h"

#include "planner/model/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_POINTS  16384u
#define MAX_SECONDS 1e6 /* of one layer */
#define MAX_FLOATS  0x1p50

/* The times of one (type, degree, size), still in the document. */
struct point {
    const char *type;
    uint32_t tp, microbatch;
    const json_t *layers;
};

struct reader {
    struct het_arena *arena;
    struct het_profile *profile;
    struct point *points;
    size_t point_count;
};

/* ---- parts that the Metis format shares ---- */

int het_profile_sailor_options(struct het_arena *arena, const struct het_view *root,
                               struct het_profile *profile, struct het_error *err)
{
    struct het_view precision = het_view_get(root, "precision");
    struct het_view optimizer = het_view_get(root, "optimizer");
    struct het_view shared = het_view_get(root, "sharedEmbedding");
    const char *name = NULL;
    if (het_view_name(&precision, arena, &name, err) < 0 ||
        (name && het_precision_parse(name, &profile->precision, err) < 0))
        return -1;
    name = NULL;
    if (het_view_name(&optimizer, arena, &name, err) < 0 ||
        (name && het_optimizer_parse(name, &profile->optimizer, err) < 0))
        return -1;
    profile->parameter_element_bytes = het_precision_bytes(profile->precision);
    return het_view_bool(&shared, &profile->shared_embedding, err);
}

int het_profile_sailor_layer(const struct het_view *view, struct het_layer_seconds *ret,
                             struct het_error *err)
{
    size_t count = 0;
    if (het_view_array(view, 3, &count, err) < 0)
        return -1;
    if (count < 2)
        return het_view_fail(view, err, "must be [forward s, backward s, update s]");
    struct het_view forward = het_view_at(view, 0);
    struct het_view backward = het_view_at(view, 1);
    struct het_view update = het_view_at(view, 2);
    struct het_layer_seconds seconds = { 0 };
    if (het_view_number(&forward, 0, MAX_SECONDS, &seconds.forward, err) < 0 ||
        het_view_number(&backward, 0, MAX_SECONDS, &seconds.backward, err) < 0 ||
        het_view_number(&update, 0, MAX_SECONDS, &seconds.update, err) < 0)
        return -1;
    *ret = seconds;
    return 0;
}

/* ---- which points there are ---- */

/* A key that is a whole number from 1 to `most`; 0 if it is none. */
static uint32_t key_number(const char *key, uint32_t most)
{
    uint64_t value = 0;
    size_t digits = strspn(key, "0123456789");
    if (!digits || key[digits] || digits > 9)
        return 0;
    for (const char *c = key; *c; c++)
        value = value * 10 + (uint64_t)(*c - '0');
    return value > most ? 0 : (uint32_t)value;
}

static int add_point(struct reader *reader, const struct point *point,
                     const struct het_view *view, struct het_error *err)
{
    if (!point->tp)
        return het_view_fail(view, err, "a tensor-parallel degree must be 1 to %u",
                             HET_MAX_NODE_GPUS);
    if (het_view_object(view, err) < 0)
        return -1;
    reader->points[reader->point_count++] = *point;
    return 0;
}

static int add_size(struct reader *reader, const char *type, const char *size,
                    const struct het_view *view, struct het_error *err)
{
    const char *degree;
    json_t *layers;
    struct point point = { .type = type,
                           .microbatch = key_number(size, HET_MAX_MICROBATCH) };
    if (!point.microbatch)
        return het_view_fail(view, err, "a micro-batch size must be 1 to %u",
                             HET_MAX_MICROBATCH);
    if (het_view_object(view, err) < 0)
        return -1;
    json_object_foreach ((json_t *)(uintptr_t)view->json, degree, layers) {
        struct het_view child = het_view_get(view, degree);
        point.tp = key_number(degree, HET_MAX_NODE_GPUS);
        point.layers = layers;
        if (het_view_need(&child, err) < 0 || add_point(reader, &point, &child, err) < 0)
            return -1;
    }
    return 0;
}

static int add_type(struct reader *reader, const char *type, const struct het_view *view,
                    struct het_error *err)
{
    const char *size;
    json_t *degrees;
    if (!*type || strlen(type) > HET_MAX_NAME_BYTES)
        return het_view_fail(view, err, "a GPU type's name has 1 to %u bytes",
                             HET_MAX_NAME_BYTES);
    if (het_view_need(view, err) < 0 || het_view_object(view, err) < 0)
        return -1;
    json_object_foreach ((json_t *)(uintptr_t)view->json, size, degrees) {
        struct het_view child = het_view_get(view, size);
        if (het_view_need(&child, err) < 0 ||
            add_size(reader, type, size, &child, err) < 0)
            return -1;
    }
    return 0;
}

static int compare_points(const void *a, const void *b)
{
    const struct point *left = a, *right = b;
    return het_profile_compare_points(
        (struct het_profile_point){ left->type, left->tp, left->microbatch },
        (struct het_profile_point){ right->type, right->tp, right->microbatch });
}

static size_t count_points(const json_t *times)
{
    size_t count = 0;
    const char *type, *size;
    json_t *sizes, *degrees;
    json_object_foreach ((json_t *)(uintptr_t)times, type, sizes)
        json_object_foreach (sizes, size, degrees)
            count += json_object_size(degrees);
    return count;
}

static int find_points(struct reader *reader, const struct het_view *times,
                       struct het_error *err)
{
    const char *type;
    json_t *sizes;
    if (het_view_need(times, err) < 0 || het_view_object(times, err) < 0)
        return -1;
    if (count_points(times->json) > MAX_POINTS)
        return het_view_fail(times, err, "more than %u measured points", MAX_POINTS);
    reader->points =
        HET_ARENA_ARRAY(reader->arena, struct point, count_points(times->json));
    json_object_foreach ((json_t *)(uintptr_t)times->json, type, sizes) {
        struct het_view child = het_view_get(times, type);
        if (add_type(reader, het_arena_strdup(reader->arena, type), &child, err) < 0)
            return -1;
    }
    if (!reader->point_count)
        return het_view_fail(times, err, "has no measured point");
    qsort(reader->points, reader->point_count, sizeof *reader->points, compare_points);
    for (size_t i = 1; i < reader->point_count; i++)
        if (!compare_points(&reader->points[i - 1], &reader->points[i]))
            return het_view_fail(times, err,
                                 "%s, micro-batch %u, tensor-parallel degree %u is there "
                                 "twice",
                                 reader->points[i].type, reader->points[i].microbatch,
                                 reader->points[i].tp);
    return 0;
}

/* ---- sizes of the layers ---- */

static bool has_number_keys(const json_t *object)
{
    const char *key = json_object_iter_key(json_object_iter((json_t *)(uintptr_t)object));
    return key && key_number(key, HET_MAX_NODE_GPUS);
}

static const char *list_keys(struct het_arena *arena, const json_t *object)
{
    const char *list = "", *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)object, key, value)
        list = het_arena_printf(arena, "%s%s%.60s", list, *list ? ", " : "", key);
    return list;
}

/* The entry of llmInfo that `model` names, into `ret_key`; NULL: llmInfo is the model's
 * own part already. */
static int find_model(struct reader *reader, const struct het_view *info,
                      const char *model, const char **ret_key, struct het_error *err)
{
    const char *key, *only = NULL;
    json_t *value;
    *ret_key = NULL;
    if (het_view_need(info, err) < 0 || het_view_object(info, err) < 0)
        return -1;
    if (has_number_keys(info->json))
        return 0;
    json_object_foreach ((json_t *)(uintptr_t)info->json, key, value) {
        only = key;
        if (model && !strcasecmp(model, key))
            *ret_key = key;
    }
    if (!*ret_key && !model && json_object_size(info->json) == 1)
        *ret_key = only;
    if (*ret_key)
        return 0;
    return het_view_fail(info, err, "has no model %s%.60s%s; name one of: %.200s",
                         model ? "called \"" : "that is chosen", model ? model : "",
                         model ? "\"" : "", list_keys(reader->arena, info->json));
}

static int read_floats(const struct het_view *layer, const char *key, double *ret,
                       struct het_error *err)
{
    struct het_view view = het_view_get(layer, key);
    return het_view_need(&view, err) < 0
               ? -1
               : het_view_number(&view, 0, MAX_FLOATS, ret, err);
}

/* The sizes of one degree; `boundary` is [layer_count] of the profile, or NULL. */
static int read_degree(struct reader *reader, const struct het_view *degree, uint32_t tp,
                       double *boundary, struct het_layer_bytes *ret,
                       struct het_error *err)
{
    struct het_profile *profile = reader->profile;
    uint32_t layers = profile->layer_count;
    double element = profile->parameter_element_bytes;
    double *parameters = HET_ARENA_ARRAY(reader->arena, double, layers + 1);
    double *state = HET_ARENA_ARRAY(reader->arena, double, layers + 1);
    double *activations = HET_ARENA_ARRAY(reader->arena, double, layers + 1);
    if (json_object_size(degree->json) != layers)
        return het_view_fail(degree, err, "has %zu layers, expected %u",
                             json_object_size(degree->json), layers);
    for (uint32_t l = 0; l < layers; l++) {
        char key[24];
        snprintf(key, sizeof key, "%u", l);
        struct het_view layer = het_view_get(degree, key);
        double own = 0, kept = 0, output = 0;
        if (het_view_need(&layer, err) < 0 || het_view_object(&layer, err) < 0 ||
            read_floats(&layer, "params_floats", &own, err) < 0 ||
            read_floats(&layer, "act_mem_floats", &kept, err) < 0 ||
            read_floats(&layer, "act_output_floats", &output, err) < 0)
            return -1;
        parameters[l + 1] = parameters[l] + own;
        state[l + 1] = state[l] + own * element * HET_MEASURED_STATE_PER_PARAMETER;
        activations[l + 1] = activations[l] + kept * element;
        if (boundary)
            boundary[l] = output * element;
    }
    *ret = (struct het_layer_bytes){
        .tp = tp,
        .parameters = parameters,
        .state = state,
        .activations = activations,
    };
    return 0;
}

/* All degrees that were measured, in ascending order. */
static int fill_bytes(struct reader *reader, const struct het_view *model,
                      struct het_error *err)
{
    struct het_profile *profile = reader->profile;
    bool measured[HET_MAX_NODE_GPUS + 1] = { false };
    size_t degrees = 0;
    for (size_t i = 0; i < reader->point_count; i++) {
        degrees += !measured[reader->points[i].tp];
        measured[reader->points[i].tp] = true;
    }
    struct het_layer_bytes *bytes =
        HET_ARENA_ARRAY(reader->arena, struct het_layer_bytes, degrees);
    double *boundary = NULL;
    for (uint32_t tp = 1; tp <= HET_MAX_NODE_GPUS; tp++) {
        char key[24];
        snprintf(key, sizeof key, "%u", tp);
        struct het_view degree = het_view_get(model, key);
        if (!measured[tp])
            continue;
        if (!degree.json)
            return het_view_fail(&degree, err,
                                 "is missing, but layerTimes has that tensor-parallel "
                                 "degree");
        if (het_view_object(&degree, err) < 0)
            return -1;
        bool is_least = !profile->bytes_count;
        if (is_least) {
            size_t count = json_object_size(degree.json);
            if (!count || count > HET_MAX_LAYERS)
                return het_view_fail(&degree, err, "has %zu layers, must be 1 to %u",
                                     count, HET_MAX_LAYERS);
            profile->layer_count = (uint32_t)count;
            boundary = HET_ARENA_ARRAY(reader->arena, double, count);
        }
        if (read_degree(reader, &degree, tp, is_least ? boundary : NULL,
                        &bytes[profile->bytes_count], err) < 0)
            return -1;
        profile->bytes_count++;
    }
    profile->bytes = bytes;
    profile->boundary_bytes = boundary;
    return 0;
}

static int read_sizes(struct reader *reader, const struct het_view *root,
                      struct het_error *err)
{
    struct het_view info = het_view_get(root, "llmInfo");
    struct het_view model = het_view_get(root, "model");
    const char *name = NULL, *key;
    if (!info.json)
        return het_view_fail(&info, err,
                             "is missing: the times of layers alone do not say how large "
                             "the layers are; give Sailor's llm_info.json");
    if (het_view_name(&model, reader->arena, &name, err) < 0 ||
        find_model(reader, &info, name, &key, err) < 0)
        return -1;
    struct het_view chosen = key ? het_view_get(&info, key) : info;
    reader->profile->model = key    ? het_arena_strdup(reader->arena, key)
                             : name ? name
                                    : "";
    if (het_view_need(&chosen, err) < 0 || het_view_object(&chosen, err) < 0)
        return -1;
    return fill_bytes(reader, &chosen, err);
}

/* ---- times ---- */

static int read_point(struct reader *reader, const struct point *point,
                      const struct het_view *layers, struct het_measurement *ret,
                      struct het_error *err)
{
    uint32_t count = reader->profile->layer_count;
    double *forward = HET_ARENA_ARRAY(reader->arena, double, count + 1);
    double *backward = HET_ARENA_ARRAY(reader->arena, double, count + 1);
    double update = 0;
    if (json_object_size(point->layers) != count)
        return het_view_fail(layers, err, "has %zu layers, but llmInfo has %u",
                             json_object_size(point->layers), count);
    for (uint32_t l = 0; l < count; l++) {
        char key[24];
        snprintf(key, sizeof key, "%u", l);
        struct het_view layer = het_view_get(layers, key);
        struct het_layer_seconds seconds;
        if (het_view_need(&layer, err) < 0 ||
            het_profile_sailor_layer(&layer, &seconds, err) < 0)
            return -1;
        forward[l + 1] = forward[l] + seconds.forward;
        backward[l + 1] = backward[l] + seconds.backward;
        update += seconds.update;
    }
    ret->tp = point->tp;
    ret->microbatch = point->microbatch;
    ret->forward_s = forward;
    ret->backward_s = backward;
    ret->optimizer_s = update;
    return 0;
}

static int read_measurements(struct reader *reader, const struct het_view *times,
                             struct het_error *err)
{
    struct het_profile *profile = reader->profile;
    struct het_measurement *measurements =
        HET_ARENA_ARRAY(reader->arena, struct het_measurement, reader->point_count);
    const char **names =
        HET_ARENA_ARRAY(reader->arena, const char *, reader->point_count);
    for (size_t i = 0; i < reader->point_count; i++) {
        const struct point *point = &reader->points[i];
        if (!i || strcmp(point->type, point[-1].type))
            names[profile->type_count++] = point->type;
        char what[64];
        snprintf(what, sizeof what, "%u.%u", point->microbatch, point->tp);
        struct het_view type = het_view_get(times, point->type);
        /* Only for the path in messages. */
        struct het_view layers = { .json = point->layers, .parent = &type, .key = what };
        measurements[i].type = (uint32_t)profile->type_count - 1;
        if (read_point(reader, point, &layers, &measurements[i], err) < 0)
            return -1;
    }
    profile->type_names = names;
    profile->measurements = measurements;
    profile->measurement_count = reader->point_count;
    return 0;
}

int het_profile_sailor_read(struct het_arena *arena, const json_t *json,
                            const struct het_profile **ret, struct het_error *err)
{
    struct het_view root = het_view_root(json);
    struct het_view times = het_view_get(&root, "layerTimes");
    struct het_profile *profile = het_arena_alloc(arena, sizeof *profile);
    struct reader reader = { .arena = arena, .profile = profile };
    if (het_profile_sailor_options(arena, &root, profile, err) < 0 ||
        find_points(&reader, &times, err) < 0 || read_sizes(&reader, &root, err) < 0 ||
        read_measurements(&reader, &times, err) < 0 ||
        het_profile_check(profile, err) < 0)
        return -1;
    *ret = profile;
    return 0;
}
