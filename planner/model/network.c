#include "planner/model/network.h"

#include "planner/base/logarithm.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static int compare_u32(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

int het_curve_compare(const struct het_curve *a, const struct het_curve *b)
{
    int order = compare_u32(a->from, b->from);
    if (!order)
        order = compare_u32(a->to, b->to);
    if (!order)
        order = compare_u32(a->to_gpus != 0, b->to_gpus != 0);
    if (!order)
        order = compare_u32(a->from_gpus, b->from_gpus);
    return order ? order : compare_u32(a->to_gpus, b->to_gpus);
}

double het_curve_bandwidth(const struct het_curve *curve, double message_bytes)
{
    const double least_share = 1e-3;
    double x = het_log2(message_bytes / 1e6);
    if (curve->a != 0) {
        double vertex = -curve->b / (2 * curve->a);
        x = curve->a < 0 ? fmin(x, vertex) : fmax(x, vertex);
    } else if (curve->b < 0) {
        x = 0;
    }
    x = fmax(x, 0);
    double bandwidth = (curve->a * x + curve->b) * x + curve->c;
    return fmin(fmax(bandwidth, least_share * curve->most_bytes_per_s),
                curve->most_bytes_per_s);
}

uint32_t het_network_find_place(const struct het_network *network, const char *zone,
                                const char *type)
{
    uint32_t best = HET_NO_PLACE;
    int best_rank = 3; /* 0: both names; 1: anywhere; 2: another zone */
    for (uint32_t i = 0; i < network->place_count; i++) {
        const struct het_place *place = &network->places[i];
        if (strcmp(place->type, type))
            continue;
        int rank = place->zone ? zone && !strcmp(place->zone, zone) ? 0 : 2 : 1;
        if (rank < best_rank) {
            best = i;
            best_rank = rank;
        }
    }
    return best;
}

/* ---- between measured counts ---- */

/* First curve that is not before (from, to, inside or not). */
static size_t find_run(const struct het_network *network, uint32_t from, uint32_t to,
                       bool inside)
{
    const struct het_curve key = { .from = from, .to = to, .to_gpus = inside ? 0 : 1 };
    size_t low = 0, high = network->curve_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (het_curve_compare(&network->curves[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_in_run(const struct het_curve *curve, uint32_t from, uint32_t to,
                      bool inside)
{
    return curve->from == from && curve->to == to && (curve->to_gpus == 0) == inside;
}

/* Of the curves of (from, to) with as many GPUs on both sides: the largest count up to
 * `gpus` and the smallest from there on decide, the slower of them. */
static double find_bandwidth(const struct het_network *network, uint32_t from,
                             uint32_t to, bool inside, uint32_t gpus,
                             double message_bytes)
{
    const struct het_curve *below = NULL, *above = NULL;
    for (size_t i = find_run(network, from, to, inside); i < network->curve_count; i++) {
        const struct het_curve *curve = &network->curves[i];
        if (!is_in_run(curve, from, to, inside))
            break;
        if (!inside && curve->from_gpus != curve->to_gpus)
            continue;
        if (curve->from_gpus <= gpus)
            below = curve;
        if (curve->from_gpus >= gpus && !above)
            above = curve;
    }
    if (!below || !above || below == above) {
        const struct het_curve *nearest = below ? below : above;
        return nearest ? het_curve_bandwidth(nearest, message_bytes) : 0;
    }
    return fmin(het_curve_bandwidth(below, message_bytes),
                het_curve_bandwidth(above, message_bytes));
}

/* The place of the same type that names no zone; itself, if there is none. */
static uint32_t anywhere(const struct het_network *network, uint32_t place)
{
    for (uint32_t i = 0; i < network->place_count; i++)
        if (!network->places[i].zone &&
            !strcmp(network->places[i].type, network->places[place].type))
            return i;
    return place;
}

double het_network_inside(const struct het_network *network, uint32_t place,
                          uint32_t gpus, double message_bytes)
{
    double own = find_bandwidth(network, place, place, true, gpus, message_bytes);
    if (own > 0 || !network->places[place].zone)
        return own;
    place = anywhere(network, place);
    return find_bandwidth(network, place, place, true, gpus, message_bytes);
}

double het_network_between(const struct het_network *network, uint32_t from, uint32_t to,
                           uint32_t gpus, double message_bytes)
{
    double own = find_bandwidth(network, from, to, false, gpus, message_bytes);
    if (own > 0 || (!network->places[from].zone && !network->places[to].zone))
        return own;
    return find_bandwidth(network, anywhere(network, from), anywhere(network, to), false,
                          gpus, message_bytes);
}

/* ---- check ---- */

static int check_curve(const struct het_network *network, size_t index,
                       struct het_error *err)
{
    const struct het_curve *curve = &network->curves[index];
    if (curve->from >= network->place_count || curve->to >= network->place_count)
        return het_fail(err, HET_BAD_INPUT, "network: curve %zu: no such place", index);
    const char *from = network->places[curve->from].type;
    const char *to = network->places[curve->to].type;
    if (!isfinite(curve->a) || !isfinite(curve->b) || !isfinite(curve->c))
        return het_fail(err, HET_BAD_INPUT,
                        "network: %s to %s, %u GPUs: coefficients must be finite", from,
                        to, curve->from_gpus);
    if (!isfinite(curve->most_bytes_per_s) || curve->most_bytes_per_s <= 0)
        return het_fail(err, HET_BAD_INPUT,
                        "network: %s to %s, %u GPUs: the highest bandwidth must be "
                        "positive",
                        from, to, curve->from_gpus);
    if (index && het_curve_compare(curve - 1, curve) >= 0)
        return het_fail(err, HET_BAD_INPUT,
                        "network: %s to %s, %u GPUs: not sorted, or twice", from, to,
                        curve->from_gpus);
    return 0;
}

int het_network_check(const struct het_network *network, struct het_error *err)
{
    if (network->place_count > HET_MAX_PLACES || network->curve_count > HET_MAX_CURVES)
        return het_fail(err, HET_BAD_INPUT, "network: more than %u places or %u curves",
                        HET_MAX_PLACES, HET_MAX_CURVES);
    for (size_t i = 0; i < network->curve_count; i++)
        if (check_curve(network, i, err) < 0)
            return -1;
    return 0;
}
