/* balance.h - who gets how much: layers over the stages of a pipeline, and the samples of
 * a micro-batch over unequal replicas of a stage. Both are exact for the question as put
 * here; what makes up the question (times, room in memory, sends) is the caller's. */
#ifndef HET_SEARCH_BALANCE_H
#define HET_SEARCH_BALANCE_H

#include "planner/base/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- layers over stages ---- */

/* Replicas of a stage that take the same time: one type, degree and number of samples.
 * Prefix sums over layers, [layer_count + 1]. */
struct het_balance_times {
    const double *forward_s, *backward_s;
};

struct het_balance_stage {
    /* A stage takes max forward + max backward over these. At least one. */
    const struct het_balance_times *times;
    size_t times_count;
    /* [layer_count]: layers first .. ends[first] - 1 fit in memory, one more would not;
     * `first` itself if not even one fits. Never falls as `first` rises. NULL: all fit.
     */
    const uint32_t *ends;
    /* [layer_count + 1]: seconds to send a micro-batch to the next stage, in one
     * direction, when that one starts at this layer. NULL: nothing to send. Not read of
     * the last stage. */
    const double *send_s;
};

struct het_balance_layers {
    uint32_t layer_count;
    const struct het_balance_stage *stages;
    uint32_t stage_count; /* 1 .. layer_count */
    uint32_t microbatch_count;
    /* Sends hide behind the computing of other micro-batches (AMP, section 6.1): they
     * count in the sum, not in the bottleneck. */
    bool hides_sends;
};

/* Seconds that the stage computes for a micro-batch with layers first .. end - 1. */
double het_balance_stage_seconds(const struct het_balance_stage *stage, uint32_t first,
                                 uint32_t end);
/* The two terms of T_p (below), if stage s has layers cuts[s] .. cuts[s + 1] - 1: the sum
 * over stages, and the bottleneck, which every micro-batch after the first takes. */
void het_balance_pipeline(const struct het_balance_stage *stages, uint32_t stage_count,
                          const uint32_t *cuts, double *ret_sum_s,
                          double *ret_bottleneck_s);

/* Working memory, for any question with at most these counts. */
struct het_balance_space;
struct het_balance_space *het_balance_space_new(uint32_t layer_count,
                                                uint32_t stage_count);
void het_balance_space_free(struct het_balance_space *space);
/* Pairs of layers that the questions since the last call have looked at, for the effort
 * (HET_EFFORT_CELLS_A_UNIT). */
uint64_t het_balance_space_take_work(struct het_balance_space *space);

/* The layers of each stage, at least one each, all layers in order, that make
 *
 *   T_p = sum_s (t_s + 2 c_s) + (m - 1) * max_s (t_s + 2 (c_{s-1} + c_s))
 *
 * least (cost.h), or with hides_sends (m - 1) * max_s t_s (AMP, eq. 5): stage s has
 * layers ret_cuts[s] .. ret_cuts[s + 1] - 1, with ret_cuts[0] = 0 and
 * ret_cuts[stage_count] = layer_count; T_p into `ret_seconds`. Returns false, outputs
 * untouched, when no split fits, or none is faster than `worth_s` (HUGE_VAL: any is worth
 * having).
 *
 * Method: a dynamic program over (stage, cut) finds the least bottleneck; a second one,
 * with a limit on the bottleneck, the least sum. Only limits from (best T_p - least sum)
 * / (m - 1) down to the least bottleneck can improve; they are walked down one Pareto
 * point at a time, at most HET_BALANCE_MAX_ROUNDS. Source: the question is Metis,
 * section 4.2.2, part 3, which fills stages in proportion to their speed; the dynamic
 * program is AMP's (section 3.6) with the cut costs counted in both the sum and the
 * bottleneck. Work: O(rounds * stages * layers^2), but once HET_BALANCE_MAX_PAIRS pairs
 * of layers have been looked at (about half a second; no question with fewer than 1,600
 * layers needs as many for its first answer) the best split so far is the answer, if
 * there is one. */
#define HET_BALANCE_MAX_ROUNDS 64
#define HET_BALANCE_MAX_PAIRS  (UINT64_C(1) << 28)
bool het_balance_layers(struct het_balance_space *space,
                        const struct het_balance_layers *question, double worth_s,
                        uint32_t *ret_cuts, double *ret_seconds);

/* The split that comes nearest to fitting when none does: `needed` says which share of
 * the room stage s would fill with layers first .. end - 1 (above 1: too much); the split
 * with the least maximum. Fills ret_cuts, the worst stage and its share. */
typedef double (*het_balance_needed)(void *context, uint32_t stage, uint32_t first,
                                     uint32_t end);
void het_balance_nearest(struct het_balance_space *space, uint32_t layer_count,
                         uint32_t stage_count, het_balance_needed needed, void *context,
                         uint32_t *ret_cuts, uint32_t *ret_stage, double *ret_share);

/* ---- samples over replicas ---- */

/* `count` replicas that take seconds[n] for n samples, n = 1 .. max_samples; HUGE_VAL if
 * they cannot take n. Need not rise with n (7 = 4 + 2 + 1 can be slower than 8). */
struct het_balance_replicas {
    uint32_t count;
    const double *seconds; /* [max_samples + 1] */
    uint32_t max_samples;
};

/* Gives each of the replicas (kinds[0]'s first) at least one sample, `samples` in all, so
 * that the slowest is as fast as possible; among such shares it prefers a small largest
 * share, then even proportions. Fills `ret_samples[replica]`, falling within a kind, and
 * ret_seconds with the slowest replica's seconds. Returns false, outputs untouched, if it
 * cannot be done.
 *
 * Method: bisection over the times that occur; whether a limit can be met is a sum of
 * sets, decided by interval where the allowed shares have no gaps, else by a bit set of
 * reachable sums; the words written are added to `work` (may be NULL). Source: the
 * question is Metis, section 4.2.2 (DataLB), which rounds shares in proportion to
 * speed. */
bool het_balance_samples(const struct het_balance_replicas *kinds, size_t kind_count,
                         uint32_t samples, uint32_t *ret_samples, double *ret_seconds,
                         uint64_t *work);

#endif
