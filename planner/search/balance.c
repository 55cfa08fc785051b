#include "planner/search/balance.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- layers over stages ---- */

/* fmax and fmin are calls; these are innermost, and no number here is a NaN. */
static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

struct het_balance_space {
    uint32_t layer_count, stage_count;
    double *values;   /* [2][layer_count + 1]: this stage and the one before */
    uint32_t *starts; /* [stage_count][layer_count + 1]: best start of the stage that ends
                         there */
    double *sums;     /* [stage_count][layer_count + 1]: forward + backward, prefix sums,
                         of stages with one kind of replica */
    uint32_t *cuts;   /* [2][stage_count + 1] */
    uint64_t work;    /* het_balance_space_take_work */
};

struct het_balance_space *het_balance_space_new(uint32_t layer_count,
                                                uint32_t stage_count)
{
    size_t layers = (size_t)layer_count + 1;
    struct het_balance_space *space = xcalloc(1, sizeof *space);
    space->layer_count = layer_count;
    space->stage_count = stage_count;
    space->values = xcalloc(2 * layers, sizeof *space->values);
    space->starts = xcalloc(stage_count * layers, sizeof *space->starts);
    space->sums = xcalloc(stage_count * layers, sizeof *space->sums);
    space->cuts = xcalloc(2 * ((size_t)stage_count + 1), sizeof *space->cuts);
    return space;
}

void het_balance_space_free(struct het_balance_space *space)
{
    if (!space)
        return;
    xfree(space->values);
    xfree(space->starts);
    xfree(space->sums);
    xfree(space->cuts);
    xfree(space);
}

uint64_t het_balance_space_take_work(struct het_balance_space *space)
{
    uint64_t work = space->work;
    space->work = 0;
    return work;
}

static double *stage_sums(const struct het_balance_space *space, uint32_t stage)
{
    return space->sums + (size_t)stage * (space->layer_count + 1);
}

static uint32_t *stage_starts(const struct het_balance_space *space, uint32_t stage)
{
    return space->starts + (size_t)stage * (space->layer_count + 1);
}

static void fill_sums(const struct het_balance_space *space,
                      const struct het_balance_layers *question)
{
    for (uint32_t s = 0; s < question->stage_count; s++) {
        const struct het_balance_times *times = question->stages[s].times;
        double *sums = stage_sums(space, s);
        for (uint32_t l = 0; l <= question->layer_count; l++)
            sums[l] = times->forward_s[l] + times->backward_s[l];
    }
}

double het_balance_stage_seconds(const struct het_balance_stage *stage, uint32_t first,
                                 uint32_t end)
{
    double forward_s = 0, backward_s = 0;
    for (size_t t = 0; t < stage->times_count; t++) {
        const struct het_balance_times *times = &stage->times[t];
        forward_s = larger(forward_s, times->forward_s[end] - times->forward_s[first]);
        backward_s =
            larger(backward_s, times->backward_s[end] - times->backward_s[first]);
    }
    return forward_s + backward_s;
}

void het_balance_pipeline(const struct het_balance_stage *stages, uint32_t stage_count,
                          const uint32_t *cuts, double *ret_sum_s,
                          double *ret_bottleneck_s)
{
    double ahead_s = 0;
    *ret_sum_s = *ret_bottleneck_s = 0;
    for (uint32_t s = 0; s < stage_count; s++) {
        double compute_s = het_balance_stage_seconds(&stages[s], cuts[s], cuts[s + 1]);
        double behind_s =
            s + 1 < stage_count && stages[s].send_s ? stages[s].send_s[cuts[s + 1]] : 0;
        *ret_sum_s += compute_s + 2 * behind_s;
        *ret_bottleneck_s =
            larger(*ret_bottleneck_s, compute_s + 2 * (ahead_s + behind_s));
        ahead_s = behind_s;
    }
}

/* Seconds that stage `s` takes for one micro-batch with layers first .. end - 1. */
static double stage_seconds(const struct het_balance_space *space,
                            const struct het_balance_stage *stage, uint32_t s,
                            uint32_t first, uint32_t end)
{
    if (stage->times_count == 1) {
        const double *sums = stage_sums(space, s);
        return sums[end] - sums[first];
    }
    return het_balance_stage_seconds(stage, first, end);
}

static double send_seconds(const struct het_balance_layers *question, uint32_t stage,
                           uint32_t cut)
{
    const double *send_s = question->stages[stage].send_s;
    return stage + 1 < question->stage_count && send_s ? send_s[cut] : 0;
}

/* One pass of the dynamic program: values[end] of stages 0 .. s with layers 0 .. end - 1
 * is the least sum (or, `minmax`, the least bottleneck) with no stage above `limit_s`;
 * HUGE_VAL if there is none. Cuts into `ret_cuts`. Given up after so many pairs of layers
 * that space->work is above `most_work`. */
static bool solve(struct het_balance_space *space,
                  const struct het_balance_layers *question, bool minmax, double limit_s,
                  uint64_t most_work, uint32_t *ret_cuts)
{
    const uint32_t layers = question->layer_count, stages = question->stage_count;
    double *before = space->values, *after = space->values + layers + 1;
    for (uint32_t l = 0; l <= layers; l++)
        before[l] = HUGE_VAL;
    before[0] = 0;
    for (uint32_t s = 0; s < stages; s++) {
        const struct het_balance_stage *stage = &question->stages[s];
        uint32_t *starts = stage_starts(space, s);
        for (uint32_t l = 0; l <= layers; l++)
            after[l] = HUGE_VAL;
        for (uint32_t end = s + 1; end <= layers - (stages - s - 1); end++) {
            double send_s = send_seconds(question, s, end);
            uint32_t first = end;
            while (first-- > s) {
                double compute_s = stage_seconds(space, stage, s, first, end);
                if ((stage->ends && stage->ends[first] < end) || compute_s > limit_s)
                    break; /* and so would more layers */
                if (before[first] == HUGE_VAL)
                    continue;
                double received_s = s ? send_seconds(question, s - 1, first) : 0;
                double busy_s = question->hides_sends
                                    ? compute_s
                                    : compute_s + 2 * (received_s + send_s);
                if (busy_s > limit_s)
                    continue;
                double value = minmax ? larger(before[first], busy_s)
                                      : before[first] + compute_s + 2 * send_s;
                if (value < after[end]) {
                    after[end] = value;
                    starts[end] = first;
                }
            }
            space->work += end - first;
        }
        if (space->work > most_work)
            return false;
        double *swap = before;
        before = after;
        after = swap;
    }
    if (before[layers] == HUGE_VAL)
        return false;
    ret_cuts[stages] = layers;
    for (uint32_t s = stages; s-- > 0;)
        ret_cuts[s] = stage_starts(space, s)[ret_cuts[s + 1]];
    return true;
}

struct measure {
    double sum_s, bottleneck_s, total_s;
};

static struct measure measure_cuts(const struct het_balance_space *space,
                                   const struct het_balance_layers *question,
                                   const uint32_t *cuts)
{
    struct measure measure = { 0 };
    double received_s = 0;
    for (uint32_t s = 0; s < question->stage_count; s++) {
        double compute_s =
            stage_seconds(space, &question->stages[s], s, cuts[s], cuts[s + 1]);
        double send_s = send_seconds(question, s, cuts[s + 1]);
        measure.sum_s += compute_s + 2 * send_s;
        double busy_s = question->hides_sends ? compute_s
                                              : compute_s + 2 * (received_s + send_s);
        measure.bottleneck_s = larger(measure.bottleneck_s, busy_s);
        received_s = send_s;
    }
    measure.total_s = measure.sum_s +
                      (question->microbatch_count - 1.0) * measure.bottleneck_s;
    return measure;
}

/* Seconds of all layers at least, each where it is fastest. */
static double least_sum(const struct het_balance_space *space,
                        const struct het_balance_layers *question)
{
    double sum_s = 0;
    for (uint32_t l = 0; l < question->layer_count; l++) {
        double least_s = HUGE_VAL;
        for (uint32_t s = 0; s < question->stage_count; s++) {
            const double *sums = stage_sums(space, s);
            least_s = smaller(least_s, sums[l + 1] - sums[l]);
        }
        sum_s += least_s;
    }
    return sum_s;
}

/* A split with a sum of `sum_s` at least and a larger bottleneck than this is not faster
 * than `worth_s`: T_p is that sum and m - 1 bottlenecks, and also at least m of them. */
static double bottleneck_limit(const struct het_balance_layers *question, double worth_s,
                               double sum_s)
{
    double more = question->microbatch_count - 1.0;
    if (worth_s == HUGE_VAL)
        return HUGE_VAL;
    double limit_s = worth_s / (more + 1);
    return more > 0 ? smaller(limit_s, (worth_s - sum_s) / more) : limit_s;
}

bool het_balance_layers(struct het_balance_space *space,
                        const struct het_balance_layers *question, double worth_s,
                        uint32_t *ret_cuts, double *ret_seconds)
{
    assert(question->layer_count <= space->layer_count);
    assert(question->stage_count <= space->stage_count);
    assert(question->stage_count <= question->layer_count);
    uint32_t *cuts = space->cuts, *best_cuts = space->cuts + space->stage_count + 1;
    fill_sums(space, question);

    const uint64_t most_work = space->work + HET_BALANCE_MAX_PAIRS;
    double sum_s = least_sum(space, question), best_s = worth_s;
    double limit_s = bottleneck_limit(question, worth_s, sum_s);
    if (!solve(space, question, true, limit_s, most_work, cuts))
        return false;
    struct measure measure = measure_cuts(space, question, cuts);
    double least_s = measure.bottleneck_s;
    /* Down from the least sum to the least bottleneck. */
    for (int round = 0;; round++) {
        if (measure.total_s < best_s) {
            best_s = measure.total_s;
            memcpy(best_cuts, cuts, (question->stage_count + 1) * sizeof *cuts);
        }
        limit_s = bottleneck_limit(question, best_s, sum_s);
        if (round)
            limit_s = smaller(limit_s, nextafter(measure.bottleneck_s, 0));
        if (round == HET_BALANCE_MAX_ROUNDS)
            limit_s = smaller(limit_s, least_s);
        if (limit_s < least_s || round > HET_BALANCE_MAX_ROUNDS ||
            !solve(space, question, false, limit_s, most_work, cuts))
            break;
        measure = measure_cuts(space, question, cuts);
        if (!round)
            sum_s = measure.sum_s;
    }
    if (best_s >= worth_s)
        return false;
    memcpy(ret_cuts, best_cuts, (question->stage_count + 1) * sizeof *ret_cuts);
    *ret_seconds = best_s;
    return true;
}

/* Where the last of some stages begins that ends before layer `end`: of the layers
 * least_first .. end - 1 the last at which the larger of before[first] (rises) and
 * needed(first) (falls) is least. That into `ret_share`. */
static uint32_t nearest_start(struct het_balance_space *space, const double *before,
                              uint32_t least_first, uint32_t stage, uint32_t end,
                              het_balance_needed needed, void *context, double *ret_share)
{
    uint32_t low = least_first,
             high = end - 1; /* the first at which `before` is larger */
    double share = HUGE_VAL, tried;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        bool is_reached = before[middle] < HUGE_VAL;
        tried = is_reached ? needed(context, stage, middle, end) : 0;
        space->work += is_reached ? end - middle : 1;
        if (before[middle] >= tried) {
            high = middle;
        } else {
            low = middle + 1;
            share = tried;
        }
    }
    tried = larger(before[low], needed(context, stage, low, end));
    space->work += end - low;
    *ret_share = smaller(tried, share);
    if (share < tried)
        return low - 1;
    while (low + 1 < end && before[low + 1] <= tried)
        low++;
    return low;
}

void het_balance_nearest(struct het_balance_space *space, uint32_t layer_count,
                         uint32_t stage_count, het_balance_needed needed, void *context,
                         uint32_t *ret_cuts, uint32_t *ret_stage, double *ret_share)
{
    assert(layer_count <= space->layer_count && stage_count <= space->stage_count);
    double *before = space->values, *after = space->values + layer_count + 1;
    for (uint32_t l = 0; l <= layer_count; l++)
        before[l] = l ? HUGE_VAL : 0;
    for (uint32_t s = 0; s < stage_count; s++) {
        uint32_t *starts = stage_starts(space, s);
        for (uint32_t end = 0; end <= layer_count; end++) {
            after[end] = HUGE_VAL;
            starts[end] = s;
            if (end > s)
                starts[end] =
                    nearest_start(space, before, s, s, end, needed, context, &after[end]);
        }
        double *swap = before;
        before = after;
        after = swap;
    }
    ret_cuts[stage_count] = layer_count;
    *ret_share = 0;
    *ret_stage = 0;
    for (uint32_t s = stage_count; s-- > 0;) {
        ret_cuts[s] = stage_starts(space, s)[ret_cuts[s + 1]];
        double share = needed(context, s, ret_cuts[s], ret_cuts[s + 1]);
        if (share >= *ret_share) {
            *ret_share = share;
            *ret_stage = s;
        }
    }
}

/* ---- samples over replicas ---- */

/* Shares that a replica of one kind may take under a limit: lo .. hi, perhaps with gaps.
 */
struct share_set {
    uint32_t lo, hi;
    bool has_gaps;
};

struct sharing {
    const struct het_balance_replicas *kinds;
    size_t kind_count;
    uint32_t samples;
    uint32_t replica_count;
    double limit_s;         /* shares slower than this */
    uint32_t cap;           /* or larger than this are not allowed */
    struct share_set *sets; /* [kind_count] */
    bool *rises;            /* [kind_count]: every share is allowed, and takes no less
                               than those below it */
    uint64_t *run;          /* [words], scratch */
    uint64_t *reachable;    /* [replica_count + 1][words]: sums that the first replicas
                               can have; NULL while no set has gaps */
    size_t words;
    bool has_gaps;
    uint64_t work; /* words of `reachable` that were written */
};

/* Larger tables are not made; gaps are then left out of the sets from below. */
#define REACHABLE_MAX_BYTES ((size_t)64 << 20)

static bool is_allowed(const struct sharing *sharing, size_t kind, uint32_t share)
{
    const struct share_set *set = &sharing->sets[kind];
    return share >= set->lo && share <= set->hi &&
           sharing->kinds[kind].seconds[share] <= sharing->limit_s;
}

/* The largest share under the limit, of a kind that rises; 0: none. */
static uint32_t most_under(const struct sharing *sharing,
                           const struct het_balance_replicas *kind)
{
    uint32_t low = 0,
             high = kind->max_samples < sharing->cap ? kind->max_samples : sharing->cap;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (kind->seconds[middle] <= sharing->limit_s)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The shares of one kind under the limit; false if there are none. */
static bool find_set(struct sharing *sharing, size_t k)
{
    const struct het_balance_replicas *kind = &sharing->kinds[k];
    struct share_set set = { 0 };
    if (sharing->rises[k]) {
        set = (struct share_set){ .lo = 1, .hi = most_under(sharing, kind) };
        sharing->sets[k] = set;
        return set.hi;
    }
    uint32_t found = 0, run_start = 0;
    for (uint32_t n = 1; n <= kind->max_samples && n <= sharing->cap; n++) {
        if (kind->seconds[n] > sharing->limit_s || kind->seconds[n] == HUGE_VAL)
            continue;
        if (!found || set.hi + 1 != n)
            run_start = n;
        if (!found++)
            set.lo = n;
        set.hi = n;
    }
    set.has_gaps = found && set.hi - set.lo + 1 != found;
    size_t bytes = ((size_t)sharing->replica_count + 1) * sharing->words * 8;
    if (set.has_gaps && bytes > REACHABLE_MAX_BYTES) {
        set.lo = run_start;
        set.has_gaps = false;
    }
    sharing->sets[k] = set;
    return found;
}

/* to |= from << shift, over `words` words; both may be the same. */
static void or_shifted(uint64_t *to, const uint64_t *from, size_t words, uint32_t shift)
{
    size_t skip = shift / 64;
    unsigned bits = shift % 64;
    for (size_t w = words; w-- > skip;) {
        to[w] |= from[w - skip] << bits;
        if (bits && w > skip)
            to[w] |= from[w - skip - 1] >> (64 - bits);
    }
}

/* to |= from << share, for all shares of the run first .. first + count - 1: shifts that
 * are doubled. `run` is room for `words` words. */
static void or_run(struct sharing *sharing, uint64_t *to, const uint64_t *from,
                   size_t words, uint32_t first, uint32_t count)
{
    uint64_t *run = sharing->run;
    memcpy(run, from, words * sizeof *run);
    sharing->work += 2 * words;
    for (uint32_t done = 1, more; done < count; done += more) {
        more = done < count - done ? done : count - done;
        or_shifted(run, run, words, more);
        sharing->work += words;
    }
    or_shifted(to, run, words, first);
}

/* Sums that are above what the first replicas can take are not looked at. */
static void fill_reachable(struct sharing *sharing)
{
    size_t row_bytes = sharing->words * sizeof *sharing->reachable;
    if (!sharing->reachable) {
        sharing->reachable = xmalloc(row_bytes * (sharing->replica_count + 1));
        sharing->run = xmalloc(row_bytes);
    }
    uint64_t *row = sharing->reachable, most = 0;
    memset(row, 0, row_bytes);
    row[0] = 1;
    for (size_t k = 0; k < sharing->kind_count; k++) {
        const struct share_set *set = &sharing->sets[k];
        for (uint32_t r = 0; r < sharing->kinds[k].count; r++) {
            uint64_t *next = row + sharing->words;
            most += set->hi;
            size_t words = most / 64 < sharing->words ? most / 64 + 1 : sharing->words;
            memset(next, 0, row_bytes);
            uint32_t first = 0; /* of a run; 0: in none */
            for (uint32_t share = set->lo; share <= set->hi + 1; share++) {
                bool is_in = is_allowed(sharing, k, share);
                if (first && !is_in)
                    or_run(sharing, next, row, words, first, share - first);
                first = !is_in ? 0 : first ? first : share;
            }
            row = next;
        }
    }
}

static bool is_reachable(const struct sharing *sharing, uint32_t replicas, uint64_t sum)
{
    const uint64_t *row = sharing->reachable + replicas * sharing->words;
    return row[sum / 64] >> (sum % 64) & 1;
}

/* Whether all samples can be shared out with no replica above `limit_s` or `cap`. */
static bool can_share(struct sharing *sharing, double limit_s, uint32_t cap)
{
    uint64_t least = 0, most = 0;
    sharing->limit_s = limit_s;
    sharing->cap = cap;
    sharing->has_gaps = false;
    for (size_t k = 0; k < sharing->kind_count; k++) {
        if (!sharing->kinds[k].count)
            continue;
        if (!find_set(sharing, k))
            return false;
        least += (uint64_t)sharing->kinds[k].count * sharing->sets[k].lo;
        most += (uint64_t)sharing->kinds[k].count * sharing->sets[k].hi;
        sharing->has_gaps |= sharing->sets[k].has_gaps;
    }
    if (sharing->samples < least || sharing->samples > most)
        return false;
    if (!sharing->has_gaps)
        return true;
    fill_reachable(sharing);
    return is_reachable(sharing, sharing->replica_count, sharing->samples);
}

static int compare_seconds(const void *left, const void *right)
{
    double a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return (a > b) - (a < b);
}

static int compare_falling(const void *left, const void *right)
{
    uint32_t a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return (a < b) - (a > b);
}

static bool rises(const struct het_balance_replicas *kind)
{
    for (uint32_t n = 2; n <= kind->max_samples; n++)
        if (kind->seconds[n] < kind->seconds[n - 1])
            return false;
    return kind->max_samples && kind->seconds[kind->max_samples] < HUGE_VAL;
}

/* Merges two runs that rise, `list` and then `more`, which is room for the first too. */
static void merge(double *list, size_t count, double *more, size_t more_count)
{
    memcpy(more + more_count, list, count * sizeof *list);
    const double *a = more + more_count, *a_end = a + count;
    const double *b = more, *b_end = b + more_count;
    while (a < a_end || b < b_end)
        *list++ = b == b_end || (a < a_end && *a <= *b) ? *a++ : *b++;
}

/* The least limit that can be met, HUGE_VAL if none can. */
static double find_limit(struct sharing *sharing, uint32_t largest)
{
    size_t count = 0, capacity = 0;
    auto_free double *limits = NULL;
    for (size_t k = 0; k < sharing->kind_count; k++) {
        const struct het_balance_replicas *kind = &sharing->kinds[k];
        size_t more = 0;
        ARRAY_RESERVE(limits, &capacity, 3 * (count + kind->max_samples) + 1);
        sharing->rises[k] = rises(kind);
        double *added = limits + count + kind->max_samples;
        for (uint32_t n = 1; kind->count && n <= kind->max_samples; n++)
            if (kind->seconds[n] < HUGE_VAL)
                added[more++] = kind->seconds[n];
        if (!sharing->rises[k])
            qsort(added, more, sizeof *added, compare_seconds);
        merge(limits, count, added, more);
        count += more;
    }
    if (!count)
        return HUGE_VAL;
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (can_share(sharing, limits[middle], largest))
            high = middle;
        else
            low = middle + 1;
    }
    return low < count ? limits[low] : HUGE_VAL;
}

/* The least cap under which `limit_s` can be met, which is one of the shares that are as
 * fast. */
static uint32_t find_cap(struct sharing *sharing, double limit_s, uint32_t largest)
{
    auto_free uint32_t *shares = xcalloc(largest, sizeof *shares);
    size_t count = 0;
    for (uint32_t n = 1; n <= largest; n++)
        for (size_t k = 0; k < sharing->kind_count; k++)
            if (sharing->kinds[k].count && n <= sharing->kinds[k].max_samples &&
                sharing->kinds[k].seconds[n] <= limit_s) {
                shares[count++] = n;
                break;
            }
    size_t low = 0, high = count - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (can_share(sharing, limit_s, shares[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return shares[low];
}

/* Shares out from the last replica to the first: of the shares that leave a reachable
 * rest, the one nearest to this kind's part of what is left. */
static void share_out(const struct sharing *sharing, uint32_t *ret_samples)
{
    uint64_t least = 0, most = 0, rest = sharing->samples;
    for (size_t k = 0; k < sharing->kind_count; k++) {
        least += (uint64_t)sharing->kinds[k].count * sharing->sets[k].lo;
        most += (uint64_t)sharing->kinds[k].count * sharing->sets[k].hi;
    }
    uint32_t replica = sharing->replica_count;
    for (size_t k = sharing->kind_count; k-- > 0;) {
        const struct share_set *set = &sharing->sets[k];
        for (uint32_t r = sharing->kinds[k].count; r-- > 0;) {
            double target = (double)rest * set->hi / (double)most, best = HUGE_VAL;
            least -= set->lo;
            most -= set->hi;
            replica--;
            for (uint32_t share = set->lo; share <= set->hi && share <= rest; share++) {
                uint64_t left = rest - share;
                if (left < least || left > most || !is_allowed(sharing, k, share) ||
                    (sharing->has_gaps && !is_reachable(sharing, replica, left)))
                    continue;
                if (fabs(share - target) < best) {
                    best = fabs(share - target);
                    ret_samples[replica] = share;
                }
            }
            rest -= ret_samples[replica];
        }
        qsort(ret_samples + replica, sharing->kinds[k].count, sizeof *ret_samples,
              compare_falling);
    }
}

bool het_balance_samples(const struct het_balance_replicas *kinds, size_t kind_count,
                         uint32_t samples, uint32_t *ret_samples, double *ret_seconds,
                         uint64_t *work)
{
    auto_free struct share_set *sets = xcalloc(kind_count, sizeof *sets);
    auto_free bool *rising = xcalloc(kind_count, sizeof *rising);
    struct sharing sharing = { .kinds = kinds,
                               .kind_count = kind_count,
                               .samples = samples,
                               .sets = sets,
                               .rises = rising,
                               .words = samples / 64 + 1 };
    uint32_t largest = 0;
    for (size_t k = 0; k < kind_count; k++) {
        sharing.replica_count += kinds[k].count;
        if (kinds[k].count && kinds[k].max_samples > largest)
            largest = kinds[k].max_samples;
    }
    double limit_s = find_limit(&sharing, largest);
    bool found = limit_s < HUGE_VAL && sharing.replica_count;
    if (found) {
        bool shared = can_share(&sharing, limit_s, find_cap(&sharing, limit_s, largest));
        assert(shared);
        share_out(&sharing, ret_samples);
        *ret_seconds = limit_s;
    }
    xfree(sharing.reachable);
    xfree(sharing.run);
    if (work)
        *work += sharing.work;
    return found;
}
