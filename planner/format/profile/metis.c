#include "planner/format/profile/metis.h"

#include "planner/format/profile/sailor.h"
#include "planner/model/cluster.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILES      16384u
#define SECONDS_PER_MS 1e-3
#define BYTES_PER_MIB  0x1p20
#define BACKWARD_SHARE (2.0 / 3.0)

#define MAX_SECONDS 1e6 /* of one layer */
#define MAX_BYTES   0x1p53

/* One file; arrays have an entry a layer. */
struct file {
    const char *name, *type;
    uint32_t tp, microbatch;
    size_t layer_count;
    double *forward_s, *backward_s;
    double *parameter_bytes;
    double *output_bytes; /* of all samples */
    double *memory_bytes;
    double optimizer_s;
};

/* ---- names ---- */

/* Reads the decimal number at `*text` and moves behind it; 0 if there is none. */
static uint32_t read_decimal(const char **text, uint32_t most)
{
    uint64_t value = 0;
    const char *c = *text;
    for (; *c >= '0' && *c <= '9' && value <= most; c++)
        value = value * 10 + (uint64_t)(*c - '0');
    if (c == *text || value > most)
        return 0;
    *text = c;
    return (uint32_t)value;
}

static const char *find_last(const char *text, const char *part)
{
    const char *last = NULL;
    for (const char *found = strstr(text, part); found; found = strstr(found + 1, part))
        last = found;
    return last;
}

/* Splits DeviceType.<TYPE>_tp<T>_bs<B>.json; the type is `ret_length` bytes from the
 * pointer returned, NULL if the name is not of that form. */
static const char *split_name(const char *name, size_t *ret_length, uint32_t *ret_tp,
                              uint32_t *ret_microbatch)
{
    static const char prefix[] = "DeviceType.";
    const char *slash = strrchr(name, '/');
    if (slash)
        name = slash + 1;
    const char *degree = find_last(name, "_tp");
    size_t prefix_length = sizeof prefix - 1;
    if (strncmp(name, prefix, prefix_length) || !degree || degree <= name + prefix_length)
        return NULL;
    const char *type = name + prefix_length;
    *ret_length = (size_t)(degree - type);
    const char *rest = degree + strlen("_tp");
    *ret_tp = read_decimal(&rest, HET_MAX_NODE_GPUS);
    if (!*ret_tp || strncmp(rest, "_bs", 3))
        return NULL;
    rest += strlen("_bs");
    *ret_microbatch = read_decimal(&rest, HET_MAX_MICROBATCH);
    return *ret_microbatch && !strcmp(rest, ".json") ? type : NULL;
}

bool het_profile_metis_is_name(const char *file_name)
{
    size_t length;
    uint32_t tp, microbatch;
    return split_name(file_name, &length, &tp, &microbatch) != NULL;
}

/* ---- one file ---- */

/* The list `parent.key`, each entry times `unit`. The first list read decides how many
 * layers there are, if the file does not say it; one entry more is added to the last
 * layer. */
static int read_list(struct het_arena *arena, const struct het_view *parent,
                     const char *key, double unit, double most, size_t *layer_count,
                     double **ret, struct het_error *err)
{
    struct het_view list = het_view_get(parent, key);
    size_t count = 0;
    if (het_view_need(&list, err) < 0 ||
        het_view_array(&list, HET_MAX_LAYERS + 1, &count, err) < 0)
        return -1;
    size_t layers = *layer_count ? *layer_count : count;
    if (!count)
        return het_view_fail(&list, err, "must have an entry for each layer");
    if (count < layers || count > layers + 1)
        return het_view_fail(&list, err,
                             "has %zu entries, expected %zu, one for each layer", count,
                             layers);
    double *values = HET_ARENA_ARRAY(arena, double, layers);
    for (size_t i = 0; i < count; i++) {
        struct het_view entry = het_view_at(&list, i);
        double value = 0;
        if (het_view_need(&entry, err) < 0 ||
            het_view_number(&entry, 0, most / unit, &value, err) < 0)
            return -1;
        values[i < layers ? i : layers - 1] += value * unit;
    }
    *layer_count = layers;
    *ret = values;
    return 0;
}

static int read_content(struct het_arena *arena, const json_t *json, struct file *file,
                        struct het_error *err)
{
    struct het_view root = het_view_root(json);
    struct het_view model = het_view_get(&root, "model");
    struct het_view layers = het_view_get(&model, "num_layers");
    struct het_view parameters = het_view_get(&model, "parameters");
    struct het_view time = het_view_get(&root, "execution_time");
    struct het_view optimizer = het_view_get(&time, "optimizer_time_ms");
    struct het_view memory = het_view_get(&root, "execution_memory");
    uint32_t layer_count = 0;
    if (het_view_u32(&layers, 1, HET_MAX_LAYERS, &layer_count, err) < 0)
        return -1;
    file->layer_count = layer_count;
    double optimizer_ms = 0, *total_s;
    if (read_list(arena, &time, "layer_compute_total_ms", SECONDS_PER_MS, MAX_SECONDS,
                  &file->layer_count, &total_s, err) < 0 ||
        read_list(arena, &parameters, "parameters_per_layer_bytes", 1, MAX_BYTES,
                  &file->layer_count, &file->parameter_bytes, err) < 0 ||
        read_list(arena, &parameters, "activation_parameters_bytes", 1, MAX_BYTES,
                  &file->layer_count, &file->output_bytes, err) < 0 ||
        read_list(arena, &memory, "layer_memory_total_mb", BYTES_PER_MIB, MAX_BYTES,
                  &file->layer_count, &file->memory_bytes, err) < 0 ||
        het_view_number(&optimizer, 0, MAX_SECONDS / SECONDS_PER_MS, &optimizer_ms, err) <
            0)
        return -1;
    file->optimizer_s = optimizer_ms * SECONDS_PER_MS;
    file->forward_s = total_s;
    file->backward_s = HET_ARENA_ARRAY(arena, double, file->layer_count);
    for (size_t i = 0; i < file->layer_count; i++) {
        file->backward_s[i] = total_s[i] * BACKWARD_SHARE;
        file->forward_s[i] -= file->backward_s[i];
    }
    return 0;
}

static int read_file(struct het_arena *arena, const char *name, const json_t *json,
                     struct file *ret, struct het_error *err)
{
    size_t length;
    struct file file = { .name = het_arena_strdup(arena, name) };
    const char *type = split_name(file.name, &length, &file.tp, &file.microbatch);
    if (!type || length > HET_MAX_NAME_BYTES)
        return het_fail(
            err, HET_BAD_INPUT,
            "%s: must be called DeviceType.<TYPE>_tp<T>_bs<B>.json with T 1 to "
            "%u and B 1 to %u",
            name, HET_MAX_NODE_GPUS, HET_MAX_MICROBATCH);
    file.type = het_arena_printf(arena, "%.*s", (int)length, type);
    if (!json_is_object(json))
        return het_fail(err, HET_BAD_INPUT, "%s: must be an object", name);
    if (read_content(arena, json, &file, err) < 0)
        return het_wrap(err, "%s", name);
    *ret = file;
    return 0;
}

/* ---- forward and backward apart ---- */

/* Times of the layers in `{ LAYER: [f, b, u] }` replace those of `file`; one layer more
 * is added to the last, as in its lists. */
static int apply_layers(const struct het_view *layers, struct file *file,
                        struct het_error *err)
{
    if (het_view_object(layers, err) < 0)
        return -1;
    size_t count = file->layer_count;
    double update_s = 0;
    memset(file->forward_s, 0, count * sizeof *file->forward_s);
    memset(file->backward_s, 0, count * sizeof *file->backward_s);
    for (size_t l = 0; l <= count; l++) {
        char key[24];
        snprintf(key, sizeof key, "%zu", l);
        struct het_view times = het_view_get(layers, key);
        struct het_layer_seconds seconds;
        if (l == count && !times.json)
            break;
        if (het_view_need(&times, err) < 0 ||
            het_profile_sailor_layer(&times, &seconds, err) < 0)
            return -1;
        size_t layer = l < count ? l : count - 1;
        file->forward_s[layer] += seconds.forward;
        file->backward_s[layer] += seconds.backward;
        update_s += seconds.update;
    }
    file->optimizer_s = update_s;
    return 0;
}

static int apply_layer_times(const struct het_view *times, struct file *file,
                             struct het_error *err)
{
    char tp[16], microbatch[16];
    snprintf(tp, sizeof tp, "%u", file->tp);
    snprintf(microbatch, sizeof microbatch, "%u", file->microbatch);
    struct het_view type = het_view_get(times, file->type);
    struct het_view of_size = het_view_get(&type, microbatch);
    struct het_view of_degree = het_view_get(&of_size, tp);
    return of_degree.json ? apply_layers(&of_degree, file, err) : 0;
}

/* ---- putting them together ---- */

static int compare_files(const void *a, const void *b)
{
    const struct file *left = a, *right = b;
    return het_profile_compare_points(
        (struct het_profile_point){ left->type, left->tp, left->microbatch },
        (struct het_profile_point){ right->type, right->tp, right->microbatch });
}

static const double *prefix_sums(struct het_arena *arena, const double *values,
                                 double factor, size_t count)
{
    double *sums = HET_ARENA_ARRAY(arena, double, count + 1);
    for (size_t i = 0; i < count; i++)
        sums[i + 1] = sums[i] + values[i] * factor;
    return sums;
}

static void fill_measurements(struct het_arena *arena, const struct file *files,
                              size_t count, struct het_profile *profile)
{
    struct het_measurement *measurements =
        HET_ARENA_ARRAY(arena, struct het_measurement, count);
    const char **names = HET_ARENA_ARRAY(arena, const char *, count);
    for (size_t i = 0; i < count; i++) {
        if (!i || strcmp(files[i].type, files[i - 1].type))
            names[profile->type_count++] = files[i].type;
        measurements[i] = (struct het_measurement){
            .type = (uint32_t)profile->type_count - 1,
            .tp = files[i].tp,
            .microbatch = files[i].microbatch,
            .forward_s = prefix_sums(arena, files[i].forward_s, 1, profile->layer_count),
            .backward_s =
                prefix_sums(arena, files[i].backward_s, 1, profile->layer_count),
            .optimizer_s = files[i].optimizer_s,
        };
    }
    profile->type_names = names;
    profile->measurements = measurements;
    profile->measurement_count = count;
}

/* Memory of one layer over the micro-batch sizes of a degree, as fixed + samples * slope.
 */
struct fit {
    double count, samples, bytes, samples_squared, samples_bytes;
    double least_samples, most_samples;
};

static void fit_add(struct fit *fit, double samples, double bytes)
{
    fit->least_samples = fit->count > 0 ? fmin(fit->least_samples, samples) : samples;
    fit->most_samples = fmax(fit->most_samples, samples);
    fit->count++;
    fit->samples += samples;
    fit->bytes += bytes;
    fit->samples_squared += samples * samples;
    fit->samples_bytes += samples * bytes;
}

static void fit_solve(const struct fit *fit, double parameter_bytes, double *ret_fixed,
                      double *ret_slope)
{
    double mean = fit->bytes / fit->count;
    double fixed, slope;
    if (fit->least_samples == fit->most_samples) {
        fixed = fmin(HET_MEASURED_STATE_PER_PARAMETER * parameter_bytes, mean);
        slope = (mean - fixed) / fit->most_samples;
    } else {
        double spread = fit->count * fit->samples_squared - fit->samples * fit->samples;
        slope = (fit->count * fit->samples_bytes - fit->samples * fit->bytes) / spread;
        fixed = mean - slope * fit->samples / fit->count;
        if (slope < 0) {
            slope = 0;
            fixed = mean;
        } else if (fixed < 0) {
            fixed = 0;
            slope = fit->samples_bytes / fit->samples_squared;
        }
    }
    *ret_fixed = round(fixed);
    *ret_slope = round(slope);
}

/* Bytes of degree `tp` out of all files of that degree. */
static struct het_layer_bytes make_bytes(struct het_arena *arena,
                                         const struct file *files, size_t count,
                                         uint32_t tp, const struct het_profile *profile)
{
    size_t layers = profile->layer_count;
    double *parameters = HET_ARENA_ARRAY(arena, double, layers);
    double *fixed = HET_ARENA_ARRAY(arena, double, layers);
    double *slope = HET_ARENA_ARRAY(arena, double, layers);
    for (size_t l = 0; l < layers; l++) {
        struct fit fit = { 0 };
        for (size_t i = 0; i < count; i++) {
            if (files[i].tp != tp)
                continue;
            /* They are the model's, so they should not differ; the most is safe. */
            parameters[l] = fmax(parameters[l], files[i].parameter_bytes[l]);
            fit_add(&fit, files[i].microbatch, files[i].memory_bytes[l]);
        }
        fit_solve(&fit, parameters[l], &fixed[l], &slope[l]);
    }
    return (struct het_layer_bytes){
        .tp = tp,
        .parameters =
            prefix_sums(arena, parameters, 1 / profile->parameter_element_bytes, layers),
        .state = prefix_sums(arena, fixed, 1, layers),
        .activations = prefix_sums(arena, slope, 1, layers),
    };
}

static void fill_bytes(struct het_arena *arena, const struct file *files, size_t count,
                       struct het_profile *profile)
{
    bool measured[HET_MAX_NODE_GPUS + 1] = { false };
    size_t degrees = 0;
    for (size_t i = 0; i < count; i++) {
        degrees += !measured[files[i].tp];
        measured[files[i].tp] = true;
    }
    struct het_layer_bytes *bytes =
        HET_ARENA_ARRAY(arena, struct het_layer_bytes, degrees);
    for (uint32_t tp = 1; tp <= HET_MAX_NODE_GPUS; tp++)
        if (measured[tp])
            bytes[profile->bytes_count++] = make_bytes(arena, files, count, tp, profile);
    profile->bytes = bytes;

    /* Outputs are whole tensors, equal for all degrees but for a head that leaves its
     * logits split; the least degree has the whole of those too. */
    double *boundary = HET_ARENA_ARRAY(arena, double, profile->layer_count);
    for (size_t i = 0; i < count; i++)
        for (size_t l = 0; files[i].tp == bytes[0].tp && l < profile->layer_count; l++)
            boundary[l] =
                fmax(boundary[l], ceil(files[i].output_bytes[l] / files[i].microbatch));
    profile->boundary_bytes = boundary;
}

static int check_alike(const struct file *files, size_t count, struct het_error *err)
{
    for (size_t i = 1; i < count; i++) {
        if (files[i].layer_count != files[0].layer_count)
            return het_fail(err, HET_BAD_INPUT,
                            "%s: model.num_layers: has %zu layers, but %s has %zu; all "
                            "files must be of one model",
                            files[i].name, files[i].layer_count, files[0].name,
                            files[0].layer_count);
        if (!compare_files(&files[i - 1], &files[i]))
            return het_fail(err, HET_BAD_INPUT, "%s and %s measure the same",
                            files[i - 1].name, files[i].name);
    }
    return 0;
}

/* All files, sorted by (type, degree, size). */
static int read_files(struct het_arena *arena, const struct het_view *root,
                      struct file **ret_files, size_t *ret_count, struct het_error *err)
{
    struct het_view list = het_view_get(root, "files");
    if (het_view_need(&list, err) < 0 || het_view_object(&list, err) < 0)
        return -1;
    size_t count = json_object_size(list.json), filled = 0;
    if (!count || count > MAX_FILES)
        return het_view_fail(&list, err, "has %zu files, must be 1 to %u", count,
                             MAX_FILES);
    struct file *files = HET_ARENA_ARRAY(arena, struct file, count);
    const char *name;
    json_t *content;
    json_object_foreach ((json_t *)(uintptr_t)list.json, name, content)
        if (read_file(arena, name, content, &files[filled++], err) < 0)
            return -1;
    qsort(files, count, sizeof *files, compare_files);
    *ret_files = files;
    *ret_count = count;
    return check_alike(files, count, err);
}

int het_profile_metis_read(struct het_arena *arena, const json_t *json,
                           const struct het_profile **ret, struct het_error *err)
{
    struct het_view root = het_view_root(json);
    struct het_view layer_times = het_view_get(&root, "layerTimes");
    struct het_profile *profile = het_arena_alloc(arena, sizeof *profile);
    struct file *files = NULL;
    size_t count = 0;
    if (het_profile_sailor_options(arena, &root, profile, err) < 0 ||
        read_files(arena, &root, &files, &count, err) < 0 ||
        het_view_object(&layer_times, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (apply_layer_times(&layer_times, &files[i], err) < 0)
            return -1;
    profile->model = "";
    profile->layer_count = (uint32_t)files[0].layer_count;
    fill_measurements(arena, files, count, profile);
    fill_bytes(arena, files, count, profile);
    if (het_profile_check(profile, err) < 0)
        return -1;
    *ret = profile;
    return 0;
}
