#include "planner/algo/optimal/batch_share.h"

#include <math.h>
#include <string.h>

double het_batch_share_lane_seconds(const struct het_batch_share_lane *lane)
{
    return lane->count ? lane->sum_s + (lane->count - 1.0) * lane->bottleneck_s : 0;
}

uint32_t het_batch_share_lane_fit(const struct het_batch_share_lane *lane, double seconds)
{
    if (seconds < lane->sum_s)
        return 0;
    double more = (seconds - lane->sum_s) / lane->bottleneck_s * (1 + 1e-12);
    return more < (double)INT32_MAX ? (uint32_t)more + 1 : (uint32_t)INT32_MAX;
}

/* ---- taking away ---- */

/* The lane that takes longest of those with micro-batches of `samples`; 0: of any that
 * are at most `most`. */
static struct het_batch_share_lane *find_slowest(struct het_batch_share_lane *lanes,
                                                 size_t count, uint32_t samples,
                                                 uint64_t most)
{
    struct het_batch_share_lane *slowest = NULL;
    double slowest_s = -1;
    for (size_t i = 0; i < count; i++) {
        struct het_batch_share_lane *lane = &lanes[i];
        if (!lane->count || (samples ? lane->samples != samples : lane->samples > most))
            continue;
        double seconds = het_batch_share_lane_seconds(lane);
        if (seconds > slowest_s) {
            slowest = lane;
            slowest_s = seconds;
        }
    }
    return slowest;
}

/* Size by size, the larger first: n is reached by the first that can. */
void het_batch_share_find_change(const struct het_batch_share_lane *lanes,
                                 size_t lane_count, uint32_t limit,
                                 struct het_batch_share_change *change)
{
    uint64_t there[HET_BATCH_SHARE_EXACT + 1] = { 0 }; /* micro-batches of each size */
    memset(change, 0, sizeof *change);
    for (size_t i = 0; i < lane_count; i++)
        if (lanes[i].samples <= limit)
            there[lanes[i].samples] += lanes[i].count;
    for (uint32_t size = limit; size; size--)
        for (uint32_t n = size; there[size] && n <= limit; n++) {
            uint32_t before = n - size;
            uint32_t used = before && change->last[before] == size ? change->used[before]
                                                                   : 0;
            if (change->last[n] || (before && !change->last[before]) ||
                used >= there[size])
                continue;
            change->last[n] = size;
            change->used[n] = used + 1;
        }
}

void het_batch_share_take_change(struct het_batch_share_lane *lanes, size_t lane_count,
                                 const struct het_batch_share_change *change,
                                 uint32_t samples)
{
    while (samples) {
        uint32_t size = change->last[samples];
        find_slowest(lanes, lane_count, size, 0)->count--;
        samples -= size;
    }
}

static bool take_exactly(struct het_batch_share_lane *lanes, size_t lane_count,
                         uint32_t excess)
{
    struct het_batch_share_change change;
    het_batch_share_find_change(lanes, lane_count, excess, &change);
    if (!change.last[excess])
        return false;
    het_batch_share_take_change(lanes, lane_count, &change, excess);
    return true;
}

uint64_t het_batch_share_take_bulk(struct het_batch_share_lane *lanes, size_t lane_count,
                                   uint64_t excess)
{
    struct het_batch_share_lane *lane;
    while (excess > HET_BATCH_SHARE_EXACT &&
           (lane = find_slowest(lanes, lane_count, 0, excess))) {
        /* Of very many, some at a time, so that few rounds are left. */
        uint64_t share = excess / lane->samples / lane_count / 8;
        uint32_t count = share > lane->count ? lane->count : share ? (uint32_t)share : 1;
        lane->count -= count;
        excess -= (uint64_t)count * lane->samples;
    }
    return excess;
}

bool het_batch_share_take(struct het_batch_share_lane *lanes, size_t lane_count,
                          uint64_t excess)
{
    if (!excess)
        return true;
    auto_free uint32_t *before = xcalloc(lane_count, sizeof *before);
    for (size_t i = 0; i < lane_count; i++)
        before[i] = lanes[i].count;
    excess = het_batch_share_take_bulk(lanes, lane_count, excess);
    if (excess <= HET_BATCH_SHARE_EXACT &&
        (!excess || take_exactly(lanes, lane_count, (uint32_t)excess)))
        return true;
    for (size_t i = 0; i < lane_count; i++)
        lanes[i].count = before[i];
    return false;
}

/* ---- sharing out ---- */

static uint64_t fill(struct het_batch_share_lane *lanes, size_t count, double seconds)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        lanes[i].count = het_batch_share_lane_fit(&lanes[i], seconds);
        total += (uint64_t)lanes[i].count * lanes[i].samples;
    }
    return total;
}

/* Times that are tried with a little more each, until the batch comes out. */
#define MAX_SLACKS 8

bool het_batch_share(struct het_batch_share_lane *lanes, size_t lane_count,
                     uint64_t batch, double *ret_seconds)
{
    double low = 0, high = 0;
    for (size_t i = 0; i < lane_count; i++)
        high = fmax(high, lanes[i].sum_s);
    high = fmax(high, 1e-9);
    for (int i = 0; i < 64 && fill(lanes, lane_count, high) < batch; i++)
        high *= 2;
    while (high - low > high * 1e-4) {
        double middle = (low + high) / 2;
        if (fill(lanes, lane_count, middle) >= batch)
            high = middle;
        else
            low = middle;
    }
    for (int i = 0; i < MAX_SLACKS; i++) {
        uint64_t total = fill(lanes, lane_count, high);
        if (total >= batch && het_batch_share_take(lanes, lane_count, total - batch)) {
            *ret_seconds = 0;
            for (size_t n = 0; n < lane_count; n++)
                *ret_seconds =
                    fmax(*ret_seconds, het_batch_share_lane_seconds(&lanes[n]));
            return true;
        }
        high *= 1 + 4e-3 * (1 << i);
    }
    return false;
}
