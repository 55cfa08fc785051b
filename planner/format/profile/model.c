#include "planner/format/profile/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_GROUPS       64u
#define MAX_GPU_TYPES    64u
#define MAX_MEASUREMENTS 4096u
#define MAX_DEGREES      16u
#define MAX_DEGREE       64u
#define MAX_MICROSECONDS 86400000000.0 /* a day */
#define MAX_BYTES        0x1p53
#define SECONDS_PER_US   1e-6

struct group {
    const char *name;
    uint32_t count;
    double parameter_bytes; /* whole layer */
    double output_bytes;
    /* Of parameters and of state on a rank, by degree; negative: not given. */
    double rank_bytes[MAX_DEGREE + 1], state_bytes[MAX_DEGREE + 1];
};

/* A measurement of one group. */
struct entry {
    size_t group;
    uint32_t type, tp, microbatch;
    double forward_s, backward_s;
    double activation_bytes; /* a sample */
    double workspace_bytes;
};

struct reader {
    struct het_arena *arena;
    struct het_profile *profile;
    struct group groups[MAX_GROUPS];
    size_t group_count;
    double state_bytes; /* of a parameter; 0: by formula */
    double optimizer_s[MAX_GPU_TYPES][MAX_DEGREE + 1];
    struct entry *entries;
    size_t entry_count;
    struct entry *selective; /* measured with selective recomputation */
    size_t selective_count;
};

/* A number of bytes or microseconds, which must be there. */
static int read_amount(const struct het_view *object, const char *key, double most,
                       double *ret, struct het_error *err)
{
    struct het_view view = het_view_get(object, key);
    return het_view_need(&view, err) < 0 ? -1 : het_view_number(&view, 0, most, ret, err);
}

/* Seconds that are given as microseconds, which must be there. Both steps are rounded
 * once, so that decimals come out as if the seconds had been written: 5581 is 0.005581.
 */
static int read_microseconds(const struct het_view *object, const char *key, double *ret,
                             struct het_error *err)
{
    double microseconds = 0;
    if (read_amount(object, key, MAX_MICROSECONDS, &microseconds, err) < 0)
        return -1;
    const char *text = json_string_value(het_view_get(object, key).json);
    bool is_decimal = text && strspn(text, "0123456789.") == strlen(text);
    auto_free char *shifted = is_decimal ? xasprintf("%se-6", text) : NULL;
    *ret = shifted ? strtod(shifted, NULL) : microseconds * SECONDS_PER_US;
    return 0;
}

static int read_count(const struct het_view *object, const char *key, uint32_t most,
                      uint32_t *ret, struct het_error *err)
{
    struct het_view view = het_view_get(object, key);
    return het_view_need(&view, err) < 0 ? -1 : het_view_u32(&view, 1, most, ret, err);
}

static int read_name(struct het_arena *arena, const struct het_view *object,
                     const char *key, const char **ret, struct het_error *err)
{
    struct het_view view = het_view_get(object, key);
    return het_view_need(&view, err) < 0 ? -1 : het_view_name(&view, arena, ret, err);
}

/* ---- model and layers ---- */

static int read_origin(const char *name, enum het_profile_origin *ret)
{
    static const char *const names[] = { [HET_PROFILE_MEASURED] = "Measured",
                                         [HET_PROFILE_ESTIMATED] = "Estimated",
                                         [HET_PROFILE_CALIBRATED] = "Calibrated" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], name)) {
            *ret = (enum het_profile_origin)i;
            return 0;
        }
    return -1;
}

static int read_model(struct reader *reader, const struct het_view *spec,
                      struct het_error *err)
{
    struct het_profile *profile = reader->profile;
    struct het_view model = het_view_get(spec, "model");
    struct het_view precision = het_view_get(&model, "precision");
    struct het_view optimizer = het_view_get(&model, "optimizer");
    struct het_view weights = het_view_get(&model, "embeddingWeights");
    struct het_view state = het_view_get(&model, "stateBytesPerParameter");
    struct het_view origin = het_view_get(&model, "origin");
    struct het_view length = het_view_get(&model, "sequenceLength");
    const char *precision_name, *optimizer_name, *embedding = "Separate";
    const char *origin_name = "Measured";
    if (het_view_need(&model, err) < 0 || het_view_object(&model, err) < 0 ||
        read_name(reader->arena, &model, "name", &profile->model, err) < 0 ||
        read_name(reader->arena, &model, "precision", &precision_name, err) < 0 ||
        read_name(reader->arena, &model, "optimizer", &optimizer_name, err) < 0 ||
        het_view_name(&weights, reader->arena, &embedding, err) < 0 ||
        het_view_name(&origin, reader->arena, &origin_name, err) < 0 ||
        het_view_number(&state, 1, 1024, &reader->state_bytes, err) < 0 ||
        het_view_u32(&length, 1, INT32_MAX, &profile->sequence_length, err) < 0)
        return -1;
    if (het_precision_parse(precision_name, &profile->precision, err) < 0)
        return het_view_wrap(&precision, err);
    if (het_optimizer_parse(optimizer_name, &profile->optimizer, err) < 0)
        return het_view_wrap(&optimizer, err);
    if (read_origin(origin_name, &profile->origin) < 0)
        return het_view_fail(&origin, err, "must be Measured, Estimated or Calibrated");
    profile->shared_embedding = !strcmp(embedding, "Shared");
    if (!profile->shared_embedding && strcmp(embedding, "Separate"))
        return het_view_fail(&weights, err, "must be Separate or Shared");
    profile->parameter_element_bytes = het_precision_bytes(profile->precision);
    return 0;
}

/* A list of bytes on a rank by degree, into `ret_bytes`. */
static int read_rank_bytes(const struct het_view *list, double *ret_bytes,
                           struct het_error *err)
{
    size_t count = 0;
    if (het_view_array(list, MAX_DEGREES, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(list, i);
        uint32_t tp = 0;
        double bytes = 0;
        if (het_view_object(&item, err) < 0 ||
            read_count(&item, "tensorParallel", MAX_DEGREE, &tp, err) < 0 ||
            read_amount(&item, "bytes", MAX_BYTES, &bytes, err) < 0)
            return -1;
        ret_bytes[tp] = bytes;
    }
    return 0;
}

static int read_group(struct reader *reader, const struct het_view *view,
                      struct het_error *err)
{
    struct group *group = &reader->groups[reader->group_count];
    *group = (struct group){ .count = 1 };
    for (size_t tp = 0; tp <= MAX_DEGREE; tp++)
        group->rank_bytes[tp] = group->state_bytes[tp] = -1;
    struct het_view count = het_view_get(view, "count");
    struct het_view ranks = het_view_get(view, "parameterBytesPerRank");
    struct het_view states = het_view_get(view, "stateBytesPerRank");
    if (het_view_object(view, err) < 0 ||
        read_name(reader->arena, view, "name", &group->name, err) < 0 ||
        het_view_u32(&count, 1, HET_MAX_LAYERS, &group->count, err) < 0 ||
        read_amount(view, "parameterBytes", MAX_BYTES, &group->parameter_bytes, err) <
            0 ||
        read_amount(view, "activationOutputBytes", MAX_BYTES, &group->output_bytes, err) <
            0 ||
        read_rank_bytes(&ranks, group->rank_bytes, err) < 0 ||
        read_rank_bytes(&states, group->state_bytes, err) < 0)
        return -1;
    for (size_t i = 0; i < reader->group_count; i++)
        if (!strcmp(reader->groups[i].name, group->name))
            return het_view_fail(view, err, "another layer group is called %s",
                                 group->name);
    reader->group_count++;
    reader->profile->layer_count += group->count;
    if (reader->profile->layer_count > HET_MAX_LAYERS)
        return het_view_fail(view, err, "more than %u layers together", HET_MAX_LAYERS);
    return 0;
}

static int read_groups(struct reader *reader, const struct het_view *spec,
                       struct het_error *err)
{
    struct het_view list = het_view_get(spec, "layerGroups");
    size_t count = 0;
    if (het_view_need(&list, err) < 0 ||
        het_view_array(&list, MAX_GROUPS, &count, err) < 0)
        return -1;
    if (!count)
        return het_view_fail(&list, err, "must have at least one layer group");
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        if (het_view_need(&item, err) < 0 || read_group(reader, &item, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- measurements ---- */

static int find_group(const struct reader *reader, const struct het_view *view,
                      size_t *ret, struct het_error *err)
{
    const char *name;
    if (read_name(reader->arena, view, "layerGroup", &name, err) < 0)
        return -1;
    for (size_t i = 0; i < reader->group_count; i++)
        if (!strcmp(reader->groups[i].name, name)) {
            *ret = i;
            return 0;
        }
    struct het_view field = het_view_get(view, "layerGroup");
    return het_view_fail(&field, err, "no layer group is called %s", name);
}

static int read_measurement(struct reader *reader, const struct het_view *view,
                            uint32_t type, struct het_error *err)
{
    struct het_view recompute = het_view_get(view, "recompute");
    struct het_view workspace = het_view_get(view, "workspaceBytes");
    const char *recomputed = "None";
    struct entry entry = { .type = type };
    double activation_bytes = 0;
    if (het_view_object(view, err) < 0 ||
        find_group(reader, view, &entry.group, err) < 0 ||
        read_count(view, "tensorParallel", MAX_DEGREE, &entry.tp, err) < 0 ||
        read_count(view, "microBatchSize", HET_MAX_MICROBATCH, &entry.microbatch, err) <
            0 ||
        het_view_name(&recompute, reader->arena, &recomputed, err) < 0 ||
        read_microseconds(view, "forwardMicroseconds", &entry.forward_s, err) < 0 ||
        read_microseconds(view, "backwardMicroseconds", &entry.backward_s, err) < 0 ||
        read_amount(view, "activationBytes", MAX_BYTES, &activation_bytes, err) < 0 ||
        het_view_number(&workspace, 0, MAX_BYTES, &entry.workspace_bytes, err) < 0)
        return -1;
    if (strcmp(recomputed, "None") && strcmp(recomputed, "Selective"))
        return 0;
    entry.activation_bytes = activation_bytes / entry.microbatch;
    if (strcmp(recomputed, "None"))
        reader->selective[reader->selective_count++] = entry;
    else
        reader->entries[reader->entry_count++] = entry;
    return 0;
}

static int read_optimizer(struct reader *reader, const struct het_view *gpu_type,
                          uint32_t type, struct het_error *err)
{
    struct het_view list = het_view_get(gpu_type, "optimizerMicroseconds");
    size_t count = 0;
    if (het_view_array(&list, MAX_DEGREES, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        uint32_t tp = 0;
        double seconds = 0;
        if (het_view_object(&item, err) < 0 ||
            read_count(&item, "tensorParallel", MAX_DEGREE, &tp, err) < 0 ||
            read_microseconds(&item, "microseconds", &seconds, err) < 0)
            return -1;
        reader->optimizer_s[type][tp] = seconds;
    }
    return 0;
}

static int read_measurements(struct reader *reader, const struct het_view *gpu_type,
                             uint32_t type, struct het_error *err)
{
    struct het_view list = het_view_get(gpu_type, "measurements");
    size_t count = 0;
    if (het_view_need(&list, err) < 0 ||
        het_view_array(&list, MAX_MEASUREMENTS, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        if (het_view_need(&item, err) < 0 ||
            read_measurement(reader, &item, type, err) < 0)
            return -1;
    }
    return 0;
}

struct named_type {
    const char *name;
    size_t position; /* in gpuTypes */
};

static int compare_named_types(const void *a, const void *b)
{
    const struct named_type *left = a, *right = b;
    return strcmp(left->name, right->name);
}

static int read_type_names(struct reader *reader, const struct het_view *list,
                           struct named_type *types, size_t count, struct het_error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(list, i);
        if (het_view_need(&item, err) < 0 || het_view_object(&item, err) < 0 ||
            read_name(reader->arena, &item, "name", &types[i].name, err) < 0)
            return -1;
        types[i].position = i;
    }
    qsort(types, count, sizeof *types, compare_named_types);
    for (size_t i = 1; i < count; i++)
        if (!strcmp(types[i - 1].name, types[i].name))
            return het_view_fail(list, err, "two entries are called %s", types[i].name);
    return 0;
}

static int read_gpu_types(struct reader *reader, const struct het_view *spec,
                          struct het_error *err)
{
    struct het_view list = het_view_get(spec, "gpuTypes");
    size_t count = 0;
    if (!list.json && het_view_get(spec, "configMapRef").json)
        return het_view_fail(&list, err,
                             "is missing; put the gpuTypes of the ConfigMap that "
                             "configMapRef names in its place");
    if (het_view_need(&list, err) < 0 ||
        het_view_array(&list, MAX_GPU_TYPES, &count, err) < 0)
        return -1;
    struct named_type types[MAX_GPU_TYPES] = { { NULL, 0 } };
    if (read_type_names(reader, &list, types, count, err) < 0)
        return -1;
    const char **names = HET_ARENA_ARRAY(reader->arena, const char *, count);
    size_t most = 0;
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        most += json_array_size(het_view_get(&item, "measurements").json);
    }
    reader->entries = HET_ARENA_ARRAY(reader->arena, struct entry, most);
    reader->selective = HET_ARENA_ARRAY(reader->arena, struct entry, most);
    for (uint32_t t = 0; t < count; t++) {
        names[t] = types[t].name;
        struct het_view item = het_view_at(&list, types[t].position);
        if (read_optimizer(reader, &item, t, err) < 0 ||
            read_measurements(reader, &item, t, err) < 0)
            return -1;
    }
    reader->profile->type_names = names;
    reader->profile->type_count = count;
    if (!reader->entry_count)
        return het_view_fail(&list, err, "no measurements without recomputation");
    return 0;
}

/* ---- putting them together ---- */

static int compare_numbers(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

/* By (type, degree, size, group). */
static int compare_entries(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    int order = compare_numbers(left->type, right->type);
    if (!order)
        order = compare_numbers(left->tp, right->tp);
    if (!order)
        order = compare_numbers(left->microbatch, right->microbatch);
    if (!order)
        order = compare_numbers(left->group, right->group);
    return order;
}

/* Entry `index`, if it is there and of the same (type, degree, size) as `point`. */
static const struct entry *find_in_point(const struct reader *reader,
                                         const struct entry *point, size_t index)
{
    if (index >= reader->entry_count)
        return NULL;
    const struct entry *entry = &reader->entries[index];
    bool same = entry->type == point->type && entry->tp == point->tp &&
                entry->microbatch == point->microbatch;
    return same ? entry : NULL;
}

/* The sorted entries from `first` on are one measured point: every group once. */
static int check_point(const struct reader *reader, size_t first, struct het_error *err)
{
    const struct entry *point = &reader->entries[first];
    for (size_t g = 0; g <= reader->group_count; g++) {
        const struct entry *entry = find_in_point(reader, point, first + g);
        bool is_behind = g == reader->group_count;
        if (is_behind ? !entry : entry && entry->group == g)
            continue;
        bool twice = entry && (is_behind || entry->group < g);
        return het_fail(err, HET_BAD_INPUT,
                        "spec.gpuTypes: %s, tensorParallel %u, microBatchSize %u: layer "
                        "group %s is %s",
                        reader->profile->type_names[point->type], point->tp,
                        point->microbatch, reader->groups[twice ? entry->group : g].name,
                        twice ? "measured twice" : "not measured");
    }
    return 0;
}

/* Prefix sums over the layers of what the groups' values are. */
static const double *expand(const struct reader *reader, const double *group_values)
{
    double *sums =
        HET_ARENA_ARRAY(reader->arena, double, reader->profile->layer_count + 1);
    size_t layer = 0;
    for (size_t g = 0; g < reader->group_count; g++)
        for (uint32_t i = 0; i < reader->groups[g].count; i++, layer++)
            sums[layer + 1] = sums[layer] + group_values[g];
    return sums;
}

/* Seconds backward with selective recomputation of the groups of a point; NULL, if none
 * was measured so. Where a group was measured twice the slower counts. */
static const double *selective_backward(const struct reader *reader,
                                        const struct entry *point)
{
    double backward[MAX_GROUPS];
    bool measured[MAX_GROUPS] = { false }, any = false;
    for (size_t g = 0; g < reader->group_count; g++)
        backward[g] = point[g].backward_s;
    for (size_t i = 0; i < reader->selective_count; i++) {
        const struct entry *entry = &reader->selective[i];
        size_t g = entry->group;
        if (entry->type != point->type || entry->tp != point->tp ||
            entry->microbatch != point->microbatch)
            continue;
        backward[g] = measured[g] ? fmax(backward[g], entry->backward_s)
                                  : entry->backward_s;
        measured[g] = any = true;
    }
    return any ? expand(reader, backward) : NULL;
}

static int fill_measurements(struct reader *reader, struct het_error *err)
{
    struct het_profile *profile = reader->profile;
    struct het_measurement *measurements =
        HET_ARENA_ARRAY(reader->arena, struct het_measurement, reader->entry_count);
    qsort(reader->entries, reader->entry_count, sizeof *reader->entries, compare_entries);
    for (size_t i = 0; i < reader->entry_count; i += reader->group_count) {
        if (check_point(reader, i, err) < 0)
            return -1;
        const struct entry *point = &reader->entries[i];
        double forward[MAX_GROUPS], backward[MAX_GROUPS];
        for (size_t g = 0; g < reader->group_count; g++) {
            forward[g] = point[g].forward_s;
            backward[g] = point[g].backward_s;
        }
        measurements[profile->measurement_count++] = (struct het_measurement){
            .type = point->type,
            .tp = point->tp,
            .microbatch = point->microbatch,
            .forward_s = expand(reader, forward),
            .backward_s = expand(reader, backward),
            .selective_backward_s = selective_backward(reader, point),
            .optimizer_s = reader->optimizer_s[point->type][point->tp],
        };
    }
    profile->measurements = measurements;
    return 0;
}

/* Parameters of one layer on a rank: as given, or a tp-th of the whole, rounded up. */
static double rank_parameters(const struct reader *reader, const struct group *group,
                              uint32_t tp)
{
    double bytes = group->rank_bytes[tp] >= 0 ? group->rank_bytes[tp]
                                              : ceil(group->parameter_bytes / tp);
    return bytes / reader->profile->parameter_element_bytes;
}

/* What is kept with selective recomputation; NULL, if it was not measured for the degree.
 */
static const double *selective_activations(const struct reader *reader,
                                           const struct het_layer_bytes *bytes)
{
    double kept[MAX_GROUPS];
    bool measured[MAX_GROUPS] = { false }, any = false;
    size_t layer = 0;
    for (size_t g = 0; g < reader->group_count; layer += reader->groups[g++].count)
        kept[g] = bytes->activations[layer + 1] - bytes->activations[layer];
    for (size_t i = 0; i < reader->selective_count; i++) {
        const struct entry *entry = &reader->selective[i];
        size_t g = entry->group;
        if (entry->tp != bytes->tp)
            continue;
        kept[g] = measured[g] ? fmax(kept[g], entry->activation_bytes)
                              : entry->activation_bytes;
        measured[g] = any = true;
    }
    return any ? expand(reader, kept) : NULL;
}

/* Bytes of the state of each layer on a rank; NULL, if the object says nothing of it. */
static const double *measured_state(const struct reader *reader, uint32_t tp)
{
    const struct het_workload training = { .precision = reader->profile->precision,
                                           .optimizer = reader->profile->optimizer };
    double each = reader->state_bytes > 0 ? reader->state_bytes
                                          : het_workload_state_bytes(&training, 1);
    double state[MAX_GROUPS];
    bool any = reader->state_bytes > 0;
    for (size_t g = 0; g < reader->group_count; g++) {
        const struct group *group = &reader->groups[g];
        bool given = group->state_bytes[tp] >= 0;
        state[g] = given ? group->state_bytes[tp]
                         : rank_parameters(reader, group, tp) * each;
        any |= given;
    }
    return any ? expand(reader, state) : NULL;
}

static struct het_layer_bytes make_bytes(const struct reader *reader, uint32_t tp)
{
    double parameters[MAX_GROUPS], activations[MAX_GROUPS] = { 0 };
    struct het_layer_bytes bytes = { .tp = tp, .state = measured_state(reader, tp) };
    for (size_t g = 0; g < reader->group_count; g++)
        parameters[g] = rank_parameters(reader, &reader->groups[g], tp);
    for (size_t i = 0; i < reader->entry_count; i++) {
        const struct entry *entry = &reader->entries[i];
        if (entry->tp != tp)
            continue;
        activations[entry->group] =
            fmax(activations[entry->group], entry->activation_bytes);
        bytes.workspace_bytes = fmax(bytes.workspace_bytes, entry->workspace_bytes);
    }
    bytes.parameters = expand(reader, parameters);
    bytes.activations = expand(reader, activations);
    bytes.selective_activations = selective_activations(reader, &bytes);
    return bytes;
}

static void fill_bytes(struct reader *reader)
{
    struct het_profile *profile = reader->profile;
    bool measured[MAX_DEGREE + 1] = { false };
    for (size_t i = 0; i < reader->entry_count; i++)
        measured[reader->entries[i].tp] = true;
    struct het_layer_bytes *bytes =
        HET_ARENA_ARRAY(reader->arena, struct het_layer_bytes, MAX_DEGREE);
    for (uint32_t tp = 1; tp <= MAX_DEGREE; tp++)
        if (measured[tp])
            bytes[profile->bytes_count++] = make_bytes(reader, tp);
    profile->bytes = bytes;

    double *boundary = HET_ARENA_ARRAY(reader->arena, double, profile->layer_count);
    size_t layer = 0;
    for (size_t g = 0; g < reader->group_count; g++)
        for (uint32_t i = 0; i < reader->groups[g].count; i++)
            boundary[layer++] = reader->groups[g].output_bytes;
    profile->boundary_bytes = boundary;
}

int het_profile_model_read(struct het_arena *arena, const json_t *json,
                           const struct het_profile **ret, struct het_error *err)
{
    struct het_view root = het_view_root(json);
    struct het_view spec = het_view_get(&root, "spec");
    if (het_view_need(&spec, err) < 0 || het_view_object(&spec, err) < 0)
        return -1;
    struct het_profile *profile = het_arena_alloc(arena, sizeof *profile);
    struct reader *reader = het_arena_alloc(arena, sizeof *reader);
    reader->arena = arena;
    reader->profile = profile;
    if (read_model(reader, &spec, err) < 0 || read_groups(reader, &spec, err) < 0 ||
        read_gpu_types(reader, &spec, err) < 0 || fill_measurements(reader, err) < 0)
        return -1;
    fill_bytes(reader);
    if (het_profile_check(profile, err) < 0)
        return -1;
    *ret = profile;
    return 0;
}

/* ---- hardware facts ---- */

#define BYTES_PER_MIB         0x1p20
#define DOLLARS_PER_MILLI_USD 1e-3

/* The entry of `types` that `known` finds under the name, by position; or a new one. */
static struct het_gpu_type *get_type(const struct het_hardware *known,
                                     struct het_gpu_type *types, size_t *count,
                                     const char *name, uint64_t memory_bytes)
{
    const struct het_gpu_type *found = het_hardware_find_sized(known, name, memory_bytes);
    if (found)
        return &types[found - known->types];
    struct het_gpu_type *type = &types[(*count)++];
    type->name = name;
    return type;
}

const struct het_hardware *het_profile_model_hardware(struct het_arena *arena,
                                                      const json_t *json,
                                                      const struct het_hardware *known)
{
    struct het_view root = het_view_root(json);
    struct het_view spec = het_view_get(&root, "spec");
    struct het_view list = het_view_get(&spec, "gpuTypes");
    size_t listed = json_array_size(list.json), count = known->type_count;
    if (listed > MAX_GPU_TYPES)
        listed = MAX_GPU_TYPES;
    struct het_gpu_type *types =
        HET_ARENA_ARRAY(arena, struct het_gpu_type, count + listed);
    for (size_t i = 0; i < count; i++)
        types[i] = known->types[i];
    for (size_t i = 0; i < listed; i++) {
        struct het_view item = het_view_at(&list, i);
        struct het_view name = het_view_get(&item, "name");
        struct het_view memory = het_view_get(&item, "memoryMiB");
        struct het_view price = het_view_get(&item, "costPerHourMilliUSD");
        const char *text = NULL;
        double memory_mib = 0, price_milli = 0;
        if (het_view_name(&name, arena, &text, NULL) < 0 ||
            het_view_number(&memory, 1, 16777216, &memory_mib, NULL) < 0 ||
            het_view_number(&price, 0, 1e9, &price_milli, NULL) < 0 || !text)
            continue;
        uint64_t memory_bytes = (uint64_t)(memory_mib * BYTES_PER_MIB);
        struct het_gpu_type *type = get_type(known, types, &count, text, memory_bytes);
        if (memory_bytes)
            type->memory_bytes = memory_bytes;
        if (price_milli > 0)
            type->price_per_hour = price_milli * DOLLARS_PER_MILLI_USD;
    }
    struct het_hardware *hardware = het_arena_alloc(arena, sizeof *hardware);
    *hardware = *known;
    hardware->types = types;
    hardware->type_count = count;
    return hardware;
}
