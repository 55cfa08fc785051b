#include "planner/format/profile/object.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bounds of the schema (crds/heterotrain.io_modelprofiles.yaml). */
#define MAX_GROUPS       64u
#define MAX_TYPES        32u
#define MAX_DEGREES      16u
#define MAX_DEGREE       64u
#define MAX_MICROBATCH   4096u
#define MAX_MEASUREMENTS 4096u
#define MAX_SECONDS      86400.0
#define MAX_NAME         63u
#define MAX_BYTES        0x1p53

/* How far beside the middle of what it may be the time of a layer is looked for, in the
 * last place: the limits themselves are rounded. */
#define NEIGHBOURS     4
/* As model.c reads whole numbers of microseconds. */
#define SECONDS_PER_US 1e-6

/* The sums of one direction of a measured point, and the time of a layer of each group.
 */
struct series {
    const double *sums;
    double least, most; /* that a layer of the present group may take */
    double layer_s[MAX_GROUPS];
};

/* Layers [first, end), all equal. */
struct group {
    uint32_t first, end;
    char name[32];
};

struct writer {
    const struct het_profile *profile;
    struct series *series; /* forward and backward of each measurement, in turn */
    size_t series_count;
    struct group groups[MAX_GROUPS];
    size_t group_count;
};

/* ---- times of layers ---- */

/* What a layer may take to lead from one sum to the next: within half of the distance
 * between numbers there. */
static void limits(const struct series *series, uint32_t layer, double *ret_least,
                   double *ret_most)
{
    double from = series->sums[layer], to = series->sums[layer + 1], step = to - from;
    *ret_least = fmax(series->least, step - (to - nextafter(to, 0)) / 2);
    *ret_most = fmin(series->most, step + (nextafter(to, HUGE_VAL) - to) / 2);
}

static bool leads(const struct series *series, const struct group *group, double layer_s)
{
    for (uint32_t l = group->first; l < group->end; l++)
        if (series->sums[l] + layer_s != series->sums[l + 1])
            return false;
    return layer_s >= 0;
}

/* Whole microseconds if they lead through the group, else the shortest decimal that does;
 * false if there is none, which cannot be for a single layer: a number next to the
 * difference of its sums always does. */
static bool choose(const struct series *series, const struct group *group, double *ret)
{
    double middle = fmax(series->least + (series->most - series->least) / 2, 0);
    double below = middle, above = middle;
    *ret = round(middle / SECONDS_PER_US) * SECONDS_PER_US;
    if (leads(series, group, *ret))
        return true;
    for (int digits = 0; digits < 17; digits++) {
        char text[40];
        snprintf(text, sizeof text, "%.*e", digits, middle);
        *ret = strtod(text, NULL);
        if (leads(series, group, *ret))
            return true;
    }
    for (int i = 0; i < NEIGHBOURS; i++) {
        below = nextafter(below, 0);
        above = nextafter(above, HUGE_VAL);
        *ret = leads(series, group, below) ? below : above;
        if (leads(series, group, *ret))
            return true;
    }
    return false;
}

/* ---- groups ---- */

static bool is_same_step(const double *sums, uint32_t a, uint32_t b)
{
    return !sums || sums[a + 1] - sums[a] == sums[b + 1] - sums[b];
}

static bool has_same_sizes(const struct het_profile *profile, uint32_t a, uint32_t b)
{
    if (profile->boundary_bytes[a] != profile->boundary_bytes[b])
        return false;
    for (size_t i = 0; i < profile->bytes_count; i++) {
        const struct het_layer_bytes *bytes = &profile->bytes[i];
        if (!is_same_step(bytes->parameters, a, b) || !is_same_step(bytes->state, a, b) ||
            !is_same_step(bytes->activations, a, b))
            return false;
    }
    return true;
}

/* Whether what each series has left so far can lead through `layer` too. */
static bool can_join(const struct writer *writer, uint32_t layer)
{
    for (size_t i = 0; i < writer->series_count; i++) {
        double least, most;
        limits(&writer->series[i], layer, &least, &most);
        if (!(least <= nextafter(nextafter(most, HUGE_VAL), HUGE_VAL)))
            return false;
    }
    return true;
}

static void join(struct writer *writer, uint32_t layer)
{
    for (size_t i = 0; i < writer->series_count; i++) {
        struct series *series = &writer->series[i];
        limits(series, layer, &series->least, &series->most);
    }
}

/* Where a group ends that begins with `first`. Embedding and head are groups of their
 * own. */
static uint32_t find_end(struct writer *writer, uint32_t first)
{
    uint32_t end = first + 1, last = writer->profile->layer_count - 1;
    for (size_t i = 0; i < writer->series_count; i++) {
        writer->series[i].least = 0;
        writer->series[i].most = HUGE_VAL;
    }
    join(writer, first);
    while (first && end < last && has_same_sizes(writer->profile, first, end) &&
           can_join(writer, end))
        join(writer, end++);
    return end;
}

static bool choose_all(struct writer *writer, const struct group *group)
{
    for (size_t i = 0; i < writer->series_count; i++) {
        struct series *series = &writer->series[i];
        if (!choose(series, group, &series->layer_s[writer->group_count]))
            return false;
    }
    return true;
}

static void name_group(const struct writer *writer, struct group *group)
{
    if (!group->first)
        snprintf(group->name, sizeof group->name, "embedding");
    else if (group->end == writer->profile->layer_count)
        snprintf(group->name, sizeof group->name, "head");
    else if (group->end == group->first + 1)
        snprintf(group->name, sizeof group->name, "layer-%u", group->first);
    else
        snprintf(group->name, sizeof group->name, "layers-%u-%u", group->first,
                 group->end - 1);
}

static int find_groups(struct writer *writer, struct het_error *err)
{
    uint32_t layers = writer->profile->layer_count;
    for (uint32_t first = 0; first < layers;) {
        if (writer->group_count == MAX_GROUPS)
            return het_fail(err, HET_BAD_INPUT,
                            "from layer %u of %u on: a ModelProfile has at most %u runs "
                            "of equal layers; measure one layer for all that are alike",
                            first, layers, MAX_GROUPS);
        struct group group = { .first = first, .end = find_end(writer, first) };
        /* The limits of a run are only nearly exact: a shorter one always has times. */
        while (!choose_all(writer, &group)) {
            assert(group.end > first + 1);
            group.end = first + (group.end - first) / 2;
        }
        name_group(writer, &group);
        writer->groups[writer->group_count++] = group;
        first = group.end;
    }
    return 0;
}

/* ---- numbers ---- */

/* The digits of the shortest decimal that is `value`, as a whole number; returns how many
 * of them stand before the point (less than 0: zeros behind it come first). */
static int shortest_digits(double value, char ret_digits[static 24])
{
    char text[40];
    int precision = 0;
    do
        snprintf(text, sizeof text, "%.*e", precision++, value);
    while (precision < 17 && strtod(text, NULL) != value);
    size_t count = 0;
    for (const char *c = text; *c != 'e'; c++)
        if (*c != '.')
            ret_digits[count++] = *c;
    ret_digits[count] = '\0';
    return (int)strtol(strchr(text, 'e') + 1, NULL, 10) + 1;
}

/* Seconds as so many microseconds, or as a string of the same digits, the point six
 * places on. */
static json_t *microseconds_json(double seconds)
{
    char digits[24], text[400] = "";
    int whole = shortest_digits(seconds, digits) + 6, count = (int)strlen(digits);
    char *end = text;
    long long plain = llround(seconds / SECONDS_PER_US);
    if ((double)plain * SECONDS_PER_US == seconds)
        return json_integer(plain);
    if (whole <= 0)
        end = stpcpy(end, "0.");
    for (int place = whole < 0 ? whole : 0; place < whole || place < count; place++) {
        if (place == whole && whole > 0)
            *end++ = '.';
        *end++ = place >= 0 && place < count ? digits[place] : '0';
    }
    *end = '\0';
    return json_string(text);
}

static json_t *whole_json(double value)
{
    return json_integer((json_int_t)llround(value));
}

/* ---- model and layers ---- */

/* The bytes of state of each parameter, if they are the same whole number everywhere; 0
 * if not. */
static double even_state(const struct het_profile *profile)
{
    double each = 0;
    for (size_t i = 0; i < profile->bytes_count; i++) {
        const struct het_layer_bytes *bytes = &profile->bytes[i];
        for (uint32_t l = 0; bytes->state && l < profile->layer_count; l++) {
            double parameters = bytes->parameters[l + 1] - bytes->parameters[l];
            double state = bytes->state[l + 1] - bytes->state[l];
            if (!(each > 0) && parameters > 0)
                each = state / parameters;
            if (state != parameters * each)
                return 0;
        }
        if (!bytes->state)
            return 0;
    }
    return each >= 1 && each <= 64 && each == floor(each) ? each : 0;
}

static json_t *model_json(const struct het_profile *profile,
                          const struct het_profile_facts *facts)
{
    static const char *const precisions[] = {
        [HET_FP32] = "FP32", [HET_BF16] = "BF16", [HET_FP16] = "FP16"
    };
    static const char *const origins[] = { [HET_PROFILE_MEASURED] = "Measured",
                                           [HET_PROFILE_ESTIMATED] = "Estimated",
                                           [HET_PROFILE_CALIBRATED] = "Calibrated" };
    const char *model = facts->model      ? facts->model
                        : *profile->model ? profile->model
                                          : facts->name;
    json_t *json = json_pack("{s:s, s:s, s:s}", "name", model, "precision",
                             precisions[profile->precision], "optimizer",
                             profile->optimizer == HET_SGD ? "SGD" : "Adam");
    if (facts->sequence)
        json_object_set_new(json, "sequenceLength", json_integer(facts->sequence));
    json_object_set_new(json, "embeddingWeights",
                        json_string(profile->shared_embedding ? "Shared" : "Separate"));
    json_object_set_new(json, "origin", json_string(origins[profile->origin]));
    if (even_state(profile) > 0)
        json_object_set_new(json, "stateBytesPerParameter",
                            whole_json(even_state(profile)));
    return json;
}

static json_t *degree_json(uint32_t tp, const char *key, json_t *value)
{
    return json_pack("{s:I, s:o}", "tensorParallel", (json_int_t)tp, key, value);
}

/* Bytes of the parameters of the whole layer: those of degree 1, or of the least degree
 * so many times. */
static double whole_bytes(const struct het_profile *profile, uint32_t layer)
{
    const struct het_layer_bytes *least = &profile->bytes[0];
    return (least->parameters[layer + 1] - least->parameters[layer]) * least->tp *
           profile->parameter_element_bytes;
}

/* Degrees at which a rank holds something else than its share, rounded up. */
static json_t *parameters_json(const struct het_profile *profile, uint32_t layer)
{
    json_t *list = json_array();
    double whole = (double)llround(whole_bytes(profile, layer));
    for (size_t i = 0; i < profile->bytes_count; i++) {
        const struct het_layer_bytes *bytes = &profile->bytes[i];
        double own = (bytes->parameters[layer + 1] - bytes->parameters[layer]) *
                     profile->parameter_element_bytes;
        if (own != ceil(whole / bytes->tp))
            json_array_append_new(list, degree_json(bytes->tp, "bytes", whole_json(own)));
    }
    return list;
}

static json_t *state_json(const struct het_profile *profile, uint32_t layer)
{
    json_t *list = json_array();
    for (size_t i = 0; i < profile->bytes_count; i++) {
        const struct het_layer_bytes *bytes = &profile->bytes[i];
        if (bytes->state)
            json_array_append_new(list, degree_json(bytes->tp, "bytes",
                                                    whole_json(bytes->state[layer + 1] -
                                                               bytes->state[layer])));
    }
    return list;
}

/* Takes `list`. */
static void set_unless_empty(json_t *object, const char *key, json_t *list)
{
    if (json_array_size(list))
        json_object_set(object, key, list);
    json_decref(list);
}

static json_t *groups_json(const struct writer *writer)
{
    const struct het_profile *profile = writer->profile;
    bool has_even_state = even_state(profile) > 0;
    json_t *list = json_array();
    for (size_t g = 0; g < writer->group_count; g++) {
        const struct group *group = &writer->groups[g];
        json_t *json = json_pack("{s:s, s:I, s:o}", "name", group->name, "count",
                                 (json_int_t)(group->end - group->first),
                                 "parameterBytes",
                                 whole_json(whole_bytes(profile, group->first)));
        set_unless_empty(json, "parameterBytesPerRank",
                         parameters_json(profile, group->first));
        if (!has_even_state)
            set_unless_empty(json, "stateBytesPerRank",
                             state_json(profile, group->first));
        json_object_set_new(json, "activationOutputBytes",
                            whole_json(profile->boundary_bytes[group->first]));
        json_array_append_new(list, json);
    }
    return list;
}

/* ---- measurements ---- */

static void add_point(const struct writer *writer, size_t index, json_t *list)
{
    const struct het_measurement *point = &writer->profile->measurements[index];
    const double *kept = het_profile_bytes(writer->profile, point->tp)->activations;
    const struct series *forward = &writer->series[2 * index];
    for (size_t g = 0; g < writer->group_count; g++) {
        const struct group *group = &writer->groups[g];
        double sample = kept[group->first + 1] - kept[group->first];
        json_array_append_new(
            list,
            json_pack("{s:s, s:I, s:I, s:o, s:o, s:o}", "layerGroup", group->name,
                      "tensorParallel", (json_int_t)point->tp, "microBatchSize",
                      (json_int_t)point->microbatch, "forwardMicroseconds",
                      microseconds_json(forward[0].layer_s[g]), "backwardMicroseconds",
                      microseconds_json(forward[1].layer_s[g]), "activationBytes",
                      whole_json(sample * point->microbatch)));
    }
}

/* Of each degree that of the smallest micro-batch, which the planner uses. */
static json_t *type_json(const struct writer *writer, uint32_t type)
{
    json_t *steps = json_array(), *list = json_array();
    const struct het_measurement *last = NULL;
    for (size_t i = 0; i < writer->profile->measurement_count; i++) {
        const struct het_measurement *point = &writer->profile->measurements[i];
        if (point->type != type)
            continue;
        if ((!last || last->tp != point->tp) && point->optimizer_s > 0)
            json_array_append_new(steps,
                                  degree_json(point->tp, "microseconds",
                                              microseconds_json(point->optimizer_s)));
        last = point;
        add_point(writer, i, list);
    }
    json_t *json = json_pack("{s:s}", "name", writer->profile->type_names[type]);
    set_unless_empty(json, "optimizerMicroseconds", steps);
    json_object_set_new(json, "measurements", list);
    return json;
}

static json_t *types_json(const struct writer *writer)
{
    json_t *list = json_array();
    for (uint32_t t = 0; t < writer->profile->type_count; t++)
        json_array_append_new(list, type_json(writer, t));
    return list;
}

/* ---- what the schema allows ---- */

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static int check_type(const struct het_profile *profile, uint32_t type,
                      struct het_error *err)
{
    const char *name = profile->type_names[type];
    size_t length = strlen(name);
    if (length > MAX_NAME || strspn(name, LETTERS "._-") != length ||
        !strchr(LETTERS, name[0]) || !strchr(LETTERS, name[length - 1]))
        return het_fail(err, HET_BAD_INPUT,
                        "GPU type \"%.80s\": a ModelProfile takes names of at most %u "
                        "letters, digits and . _ - that begin and end with a letter or "
                        "digit",
                        name, MAX_NAME);
    return 0;
}

static int check_point(const struct het_profile *profile,
                       const struct het_measurement *point, struct het_error *err)
{
    double most_s =
        fmax(point->optimizer_s, fmax(point->forward_s[profile->layer_count],
                                      point->backward_s[profile->layer_count]));
    assert(!point->selective_backward_s);
    if (point->tp > MAX_DEGREE || point->microbatch > MAX_MICROBATCH ||
        most_s > MAX_SECONDS)
        return het_fail(
            err, HET_BAD_INPUT,
            "%s, degree %u, micro-batch %u: a ModelProfile has degrees to %u, "
            "micro-batches to %u and times to a day",
            profile->type_names[point->type], point->tp, point->microbatch, MAX_DEGREE,
            MAX_MICROBATCH);
    return 0;
}

/* The most of what a layer's numbers of bytes are, over the degrees. */
static double most_bytes(const struct het_profile *profile, uint32_t layer)
{
    double most = fmax(profile->boundary_bytes[layer], whole_bytes(profile, layer));
    for (size_t i = 0; i < profile->bytes_count; i++) {
        const struct het_layer_bytes *bytes = &profile->bytes[i];
        double kept = bytes->activations[layer + 1] - bytes->activations[layer];
        double own = bytes->parameters[layer + 1] - bytes->parameters[layer];
        most = fmax(most, kept * MAX_MICROBATCH);
        most = fmax(most, own * profile->parameter_element_bytes);
        if (bytes->state)
            most = fmax(most, bytes->state[layer + 1] - bytes->state[layer]);
    }
    return most;
}

static int check(const struct het_profile *profile, struct het_error *err)
{
    if (profile->optimizer == HET_ADAM_DISTRIBUTED)
        return het_fail(err, HET_BAD_INPUT,
                        "optimizer: a ModelProfile is of adam or sgd; a job says whether "
                        "it is distributed");
    if (profile->type_count > MAX_TYPES || profile->bytes_count > MAX_DEGREES)
        return het_fail(
            err, HET_BAD_INPUT,
            "%zu GPU types and %zu degrees: a ModelProfile has at most %u and "
            "%u",
            profile->type_count, profile->bytes_count, MAX_TYPES, MAX_DEGREES);
    for (uint32_t t = 0; t < profile->type_count; t++)
        if (check_type(profile, t, err) < 0)
            return -1;
    for (size_t i = 0; i < profile->bytes_count; i++)
        assert(!(profile->bytes[i].workspace_bytes > 0) &&
               !profile->bytes[i].selective_activations);
    for (uint32_t l = 0; l < profile->layer_count; l++)
        if (most_bytes(profile, l) > MAX_BYTES)
            return het_fail(err, HET_BAD_INPUT,
                            "layer %u: has more bytes than a ModelProfile holds, 2^53",
                            l);
    for (size_t i = 0; i < profile->measurement_count; i++)
        if (check_point(profile, &profile->measurements[i], err) < 0)
            return -1;
    return 0;
}

static int check_counts(const struct writer *writer, struct het_error *err)
{
    const struct het_profile *profile = writer->profile;
    size_t counts[MAX_TYPES] = { 0 };
    for (size_t i = 0; i < profile->measurement_count; i++)
        if ((counts[profile->measurements[i].type] += writer->group_count) >
            MAX_MEASUREMENTS)
            return het_fail(err, HET_BAD_INPUT,
                            "%s: more than %u measurements (layer groups, degrees and "
                            "micro-batches)",
                            profile->type_names[profile->measurements[i].type],
                            MAX_MEASUREMENTS);
    return 0;
}

int het_profile_object(const struct het_profile *profile,
                       const struct het_profile_facts *facts, json_t **ret,
                       struct het_error *err)
{
    if (check(profile, err) < 0)
        return -1;
    size_t series_count = 2 * profile->measurement_count;
    auto_free struct series *series = xcalloc(series_count, sizeof *series);
    for (size_t i = 0; i < profile->measurement_count; i++) {
        series[2 * i].sums = profile->measurements[i].forward_s;
        series[2 * i + 1].sums = profile->measurements[i].backward_s;
    }
    struct writer writer = { .profile = profile,
                             .series = series,
                             .series_count = series_count };
    if (find_groups(&writer, err) < 0 || check_counts(&writer, err) < 0)
        return -1;
    json_t *metadata = json_pack("{s:s}", "name", facts->name);
    if (facts->ns)
        json_object_set_new(metadata, "namespace", json_string(facts->ns));
    *ret = json_pack("{s:s, s:s, s:o, s:{s:o, s:o, s:o}}", "apiVersion",
                     "heterotrain.io/v1alpha1", "kind", "ModelProfile", "metadata",
                     metadata, "spec", "model", model_json(profile, facts), "layerGroups",
                     groups_json(&writer), "gpuTypes", types_json(&writer));
    return 0;
}
