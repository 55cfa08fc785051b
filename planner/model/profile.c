#include "planner/model/profile.h"

#include <math.h>
#include <string.h>

static const char *const origin_names[] = { "measured", "estimated", "calibrated" };

const char *het_profile_origin_name(enum het_profile_origin origin)
{
    return origin_names[origin];
}

int het_profile_origin_parse(const char *name, enum het_profile_origin *ret,
                             struct het_error *err)
{
    for (size_t i = 0; i < sizeof origin_names / sizeof *origin_names; i++)
        if (!strcmp(origin_names[i], name)) {
            *ret = (enum het_profile_origin)i;
            return 0;
        }
    return het_fail(err, HET_BAD_INPUT,
                    "\"%.40s\": must be measured, estimated or calibrated", name);
}

int het_profile_compare_points(struct het_profile_point left,
                               struct het_profile_point right)
{
    int order = strcmp(left.type, right.type);
    if (!order)
        order = (left.tp > right.tp) - (left.tp < right.tp);
    if (!order)
        order = (left.microbatch > right.microbatch) -
                (left.microbatch < right.microbatch);
    return order;
}

uint32_t het_profile_find_type(const struct het_profile *profile, const char *name)
{
    size_t low = 0, high = profile->type_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(profile->type_names[middle], name);
        if (!order)
            return (uint32_t)middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return HET_NO_TYPE;
}

static int compare_key(const struct het_measurement *measurement, uint32_t type,
                       uint32_t tp, uint32_t microbatch)
{
    if (measurement->type != type)
        return measurement->type < type ? -1 : 1;
    if (measurement->tp != tp)
        return measurement->tp < tp ? -1 : 1;
    if (measurement->microbatch != microbatch)
        return measurement->microbatch < microbatch ? -1 : 1;
    return 0;
}

/* Position of the first measurement that is not before (type, tp, microbatch). */
static size_t lower_bound(const struct het_profile *profile, uint32_t type, uint32_t tp,
                          uint32_t microbatch)
{
    size_t low = 0, high = profile->measurement_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare_key(&profile->measurements[middle], type, tp, microbatch) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct het_measurement *het_profile_find(const struct het_profile *profile,
                                               uint32_t type, uint32_t tp,
                                               uint32_t microbatch)
{
    size_t i = lower_bound(profile, type, tp, microbatch);
    if (i < profile->measurement_count &&
        !compare_key(&profile->measurements[i], type, tp, microbatch))
        return &profile->measurements[i];
    return NULL;
}

const struct het_layer_bytes *het_profile_bytes(const struct het_profile *profile,
                                                uint32_t tp)
{
    for (size_t i = 0; i < profile->bytes_count; i++)
        if (profile->bytes[i].tp == tp)
            return &profile->bytes[i];
    return NULL;
}

/* The measurements of (type, tp): `ret_count` of them from the position returned. */
static size_t find_run(const struct het_profile *profile, uint32_t type, uint32_t tp,
                       size_t *ret_count)
{
    size_t first = lower_bound(profile, type, tp, 0);
    size_t end = lower_bound(profile, type, tp, UINT32_MAX);
    *ret_count = end - first;
    return first;
}

/* Largest measured micro-batch of the `count` measurements from `first` on. */
static uint32_t run_largest(const struct het_profile *profile, size_t first, size_t count)
{
    return count ? profile->measurements[first + count - 1].microbatch : 0;
}

/* The size up to which a run is extrapolated whose largest measured is `largest`. */
static uint32_t extrapolated(const struct het_profile *profile, uint32_t largest)
{
    uint64_t most = largest;
    if (profile->extrapolation > 1)
        most *= profile->extrapolation;
    return most < HET_MAX_MICROBATCH ? (uint32_t)most : HET_MAX_MICROBATCH;
}

uint32_t het_profile_max_microbatch(const struct het_profile *profile, uint32_t type,
                                    uint32_t tp)
{
    size_t count, first = find_run(profile, type, tp, &count);
    return extrapolated(profile, run_largest(profile, first, count));
}

uint32_t het_profile_min_microbatch(const struct het_profile *profile, uint32_t type,
                                    uint32_t tp)
{
    size_t count, first = find_run(profile, type, tp, &count);
    return count ? profile->measurements[first].microbatch : 0;
}

bool het_profile_extrapolates(const struct het_profile *profile, uint32_t type,
                              uint32_t tp, uint32_t samples)
{
    size_t count, first = find_run(profile, type, tp, &count);
    return samples > run_largest(profile, first, count);
}

/* A measured point, taken so many times. */
struct part {
    const struct het_measurement *measured;
    uint32_t times;
};

/* The power of two `size`, out of itself or of its measured halves. */
static bool find_power(const struct het_profile *profile, uint32_t type, uint32_t tp,
                       uint32_t size, struct part *ret)
{
    uint32_t times = 1;
    for (; size; size /= 2, times *= 2) {
        const struct het_measurement *measured =
            het_profile_find(profile, type, tp, size);
        if (measured) {
            *ret = (struct part){ measured, times };
            return true;
        }
    }
    return false;
}

/* Calls for the measured points whose micro-batches sum up to `samples`, by the rules of
 * the header. Returns how many parts there are, 0 if it has no time. */
#define MAX_PARTS 33
static size_t find_parts(const struct het_profile *profile, uint32_t type, uint32_t tp,
                         uint32_t samples, struct part *ret_parts)
{
    size_t run, first = find_run(profile, type, tp, &run), count = 0;
    uint32_t largest = run_largest(profile, first, run), rest = samples;
    if (!run || samples > extrapolated(profile, largest))
        return 0;
    if (rest > largest) {
        ret_parts[count++] =
            (struct part){ &profile->measurements[first + run - 1], rest / largest };
        rest %= largest;
    }
    const struct het_measurement *whole = het_profile_find(profile, type, tp, rest);
    if (whole) {
        ret_parts[count++] = (struct part){ whole, 1 };
        return count;
    }
    for (; rest; rest &= rest - 1)
        if (!find_power(profile, type, tp, rest & -rest, &ret_parts[count++]))
            return 0;
    return count;
}

int het_profile_times(const struct het_profile *profile, uint32_t type, uint32_t tp,
                      uint32_t samples, uint32_t first_layer, uint32_t layer_count,
                      double *ret_forward_s, double *ret_backward_s,
                      struct het_error *err)
{
    if (!samples) {
        *ret_forward_s = *ret_backward_s = 0;
        return 0;
    }
    struct part parts[MAX_PARTS];
    size_t part_count = find_parts(profile, type, tp, samples, parts);
    if (!part_count)
        return het_fail(err, HET_NO_PROFILE, "no profile for %s, tp %u, micro-batch %u",
                        type < profile->type_count ? profile->type_names[type] : "?", tp,
                        samples);
    double forward = 0, backward = 0;
    uint32_t end = first_layer + layer_count;
    for (size_t i = 0; i < part_count; i++) {
        const struct het_measurement *measured = parts[i].measured;
        forward += parts[i].times *
                   (measured->forward_s[end] - measured->forward_s[first_layer]);
        backward += parts[i].times *
                    (measured->backward_s[end] - measured->backward_s[first_layer]);
    }
    *ret_forward_s = forward;
    *ret_backward_s = backward;
    return 0;
}

bool het_profile_selective_s(const struct het_profile *profile, uint32_t type,
                             uint32_t tp, uint32_t samples, uint32_t first_layer,
                             uint32_t layer_count, double *ret_backward_s)
{
    struct part parts[MAX_PARTS];
    const struct het_layer_bytes *bytes = het_profile_bytes(profile, tp);
    size_t part_count = find_parts(profile, type, tp, samples, parts);
    if (!part_count || !bytes || !bytes->selective_activations)
        return false;
    double backward = 0;
    for (size_t i = 0; i < part_count; i++) {
        const double *sums = parts[i].measured->selective_backward_s;
        if (!sums)
            return false;
        backward += parts[i].times *
                    (sums[first_layer + layer_count] - sums[first_layer]);
    }
    *ret_backward_s = backward;
    return true;
}

bool het_profile_covers(const struct het_profile *profile, uint32_t type, uint32_t tp,
                        uint32_t samples)
{
    struct part parts[MAX_PARTS];
    return !samples || find_parts(profile, type, tp, samples, parts);
}

double het_profile_optimizer_s(const struct het_profile *profile, uint32_t type,
                               uint32_t tp, uint32_t first_layer, uint32_t layer_count)
{
    size_t run, first = find_run(profile, type, tp, &run);
    const struct het_layer_bytes *bytes = het_profile_bytes(profile, tp);
    if (!run || !bytes || bytes->parameters[profile->layer_count] <= 0)
        return 0;
    const double *parameters = bytes->parameters;
    double share = (parameters[first_layer + layer_count] - parameters[first_layer]) /
                   parameters[profile->layer_count];
    return profile->measurements[first].optimizer_s * share;
}

/* ---- check ---- */

/* Prefix sums start at 0, are finite and never fall. */
static bool is_prefix_sum(const double *sums, uint32_t layer_count)
{
    if (!sums || sums[0] != 0)
        return false;
    for (uint32_t i = 0; i < layer_count; i++)
        if (!isfinite(sums[i + 1]) || sums[i + 1] < sums[i])
            return false;
    return true;
}

static int check_measurement(const struct het_profile *profile, size_t index,
                             struct het_error *err)
{
    const struct het_measurement *m = &profile->measurements[index];
    if (m->type >= profile->type_count)
        return het_fail(err, HET_BAD_INPUT,
                        "profile: measurement %zu is of an unknown GPU type", index);
    const char *type = profile->type_names[m->type];
    if (!m->tp || !m->microbatch || m->microbatch > HET_MAX_MICROBATCH)
        return het_fail(err, HET_BAD_INPUT,
                        "profile of %s, tp %u, micro-batch %u: tp must be at least 1 and "
                        "the micro-batch 1 to %u",
                        type, m->tp, m->microbatch, HET_MAX_MICROBATCH);
    if (index && compare_key(m - 1, m->type, m->tp, m->microbatch) >= 0)
        return het_fail(err, HET_BAD_INPUT,
                        "profile of %s, tp %u, micro-batch %u: not sorted, or twice",
                        type, m->tp, m->microbatch);
    if (!is_prefix_sum(m->forward_s, profile->layer_count) ||
        !is_prefix_sum(m->backward_s, profile->layer_count) ||
        (m->selective_backward_s &&
         !is_prefix_sum(m->selective_backward_s, profile->layer_count)) ||
        !isfinite(m->optimizer_s) || m->optimizer_s < 0)
        return het_fail(err, HET_BAD_INPUT,
                        "profile of %s, tp %u, micro-batch %u: times must be finite and "
                        "not negative",
                        type, m->tp, m->microbatch);
    if (m->forward_s[profile->layer_count] + m->backward_s[profile->layer_count] <= 0)
        return het_fail(err, HET_BAD_INPUT,
                        "profile of %s, tp %u, micro-batch %u: no layer takes any time",
                        type, m->tp, m->microbatch);
    if (!het_profile_bytes(profile, m->tp))
        return het_fail(err, HET_BAD_INPUT,
                        "profile of %s, tp %u: no layer sizes for that degree", type,
                        m->tp);
    return 0;
}

static int check_bytes(const struct het_profile *profile, size_t index,
                       struct het_error *err)
{
    const struct het_layer_bytes *bytes = &profile->bytes[index];
    if (index && bytes[-1].tp >= bytes->tp)
        return het_fail(err, HET_BAD_INPUT,
                        "profile: layer sizes of tp %u: not sorted, or twice", bytes->tp);
    if (!is_prefix_sum(bytes->parameters, profile->layer_count) ||
        !is_prefix_sum(bytes->activations, profile->layer_count) ||
        (bytes->state && !is_prefix_sum(bytes->state, profile->layer_count)) ||
        (bytes->selective_activations &&
         !is_prefix_sum(bytes->selective_activations, profile->layer_count)) ||
        !isfinite(bytes->workspace_bytes) || bytes->workspace_bytes < 0)
        return het_fail(err, HET_BAD_INPUT,
                        "profile: layer sizes of tp %u must be finite and not negative",
                        bytes->tp);
    return 0;
}

int het_profile_check(const struct het_profile *profile, struct het_error *err)
{
    if (!profile->layer_count || profile->layer_count > HET_MAX_LAYERS)
        return het_fail(err, HET_BAD_INPUT, "profile: %u layers, must be 1 to %u",
                        profile->layer_count, HET_MAX_LAYERS);
    if (!profile->measurement_count)
        return het_fail(err, HET_BAD_INPUT, "profile: no measurements");
    if (!(profile->parameter_element_bytes > 0) ||
        !isfinite(profile->parameter_element_bytes))
        return het_fail(err, HET_BAD_INPUT,
                        "profile: bytes of a parameter must be positive");
    for (size_t i = 1; i < profile->type_count; i++)
        if (strcmp(profile->type_names[i - 1], profile->type_names[i]) >= 0)
            return het_fail(err, HET_BAD_INPUT,
                            "profile: GPU types %s and %s: not sorted, or twice",
                            profile->type_names[i - 1], profile->type_names[i]);
    for (uint32_t i = 0; i < profile->layer_count; i++)
        if (!isfinite(profile->boundary_bytes[i]) || profile->boundary_bytes[i] < 0)
            return het_fail(err, HET_BAD_INPUT,
                            "profile: output bytes of layer %u must not be negative", i);
    for (size_t i = 0; i < profile->bytes_count; i++)
        if (check_bytes(profile, i, err) < 0)
            return -1;
    for (size_t i = 0; i < profile->measurement_count; i++)
        if (check_measurement(profile, i, err) < 0)
            return -1;
    return 0;
}
