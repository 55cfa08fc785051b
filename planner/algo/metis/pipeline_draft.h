/* pipeline_draft.h - one pipeline over given device groups, before it is a plan: which
 * replicas the groups hold for given tensor-parallel degrees, how they share a
 * micro-batch, which layers fit, how long sends take. From these it derives the best
 * split of the layers, a cheap bound, and in the end a plan.
 *
 * A draft caches its results (per kind of replica, group and neighbours), so that the
 * next of many similar candidates costs little. The algorithm decides which groups,
 * degrees and micro-batches to try.
 *
 * The usual order: het_pipeline_draft_groups, _batch, _set_tp for each stage, _share for
 * each stage, _bound, _balance, _plan. */
#ifndef HET_ALGO_METIS_PIPELINE_DRAFT_H
#define HET_ALGO_METIS_PIPELINE_DRAFT_H

#include "planner/algo/metis/device_group.h"
#include "planner/model/plan.h"
#include "planner/search/balance.h"

struct het_pipeline_draft;

/* Drafts for at most `stage_limit` stages on `cluster` (problem's, or some of its GPUs).
 * All three are borrowed. */
struct het_pipeline_draft *het_pipeline_draft_new(const struct het_problem *problem,
                                                  const struct het_cluster *cluster,
                                                  uint32_t stage_limit);
void het_pipeline_draft_free(struct het_pipeline_draft *draft);

/* Degrees that any type of the cluster has in the profile and the job allows, rising. */
const uint32_t *het_pipeline_draft_degrees(const struct het_pipeline_draft *draft,
                                           size_t *ret_count);
/* Most samples that a replica of any type and degree can take; 0: no replica can be
 * made. */
uint32_t het_pipeline_draft_max_samples(const struct het_pipeline_draft *draft);

/* Groups of `sizes` GPUs along `row` (borrowed until the next call; `row_id` names it: a
 * row of the same id is the same row), all stages at the lowest degrees. */
void het_pipeline_draft_groups(struct het_pipeline_draft *draft,
                               const struct het_device_group_row *row, uint32_t row_id,
                               const uint32_t *sizes, uint32_t stage_count);
/* Micro-batches an iteration; a divisor of the global batch. */
void het_pipeline_draft_batch(struct het_pipeline_draft *draft,
                              uint32_t microbatch_count);

/* GPUs of `type` in `stage` form replicas of the largest degree up to `tp` that divides
 * the GPUs the stage has on a node, so that no GPU is left out and no replica spans
 * nodes. Replicas of other types stay as they are. */
void het_pipeline_draft_set_tp(struct het_pipeline_draft *draft, uint32_t stage,
                               uint32_t type, uint32_t tp);
uint32_t het_pipeline_draft_tp(const struct het_pipeline_draft *draft, uint32_t stage,
                               uint32_t type);
/* Raises `type` in `stage` to the next degree that changes anything; False, with nothing
 * changed, if there is none. */
bool het_pipeline_draft_raise_tp(struct het_pipeline_draft *draft, uint32_t stage,
                                 uint32_t type);
bool het_pipeline_draft_has_type(const struct het_pipeline_draft *draft, uint32_t stage,
                                 uint32_t type);

/* Whether stages may leave GPUs idle. If so, their replicas all have the largest degree
 * not above the one set, whatever is left over on a node, and number at most the samples
 * and what the job allows; the slowest kinds are left out first. Off after
 * het_pipeline_draft_groups. */
void het_pipeline_draft_set_trim(struct het_pipeline_draft *draft, bool trim);
/* Whether that would make a difference in any stage. */
bool het_pipeline_draft_can_trim(struct het_pipeline_draft *draft);

/* Words of bit sets written since the last call while sharing samples out, for the
 * effort: there are many for many samples over many replicas of sizes with gaps. */
uint64_t het_pipeline_draft_take_work(struct het_pipeline_draft *draft);
/* Pairs of layers that splits have looked at since the last call, likewise. */
uint64_t het_pipeline_draft_take_pairs(struct het_pipeline_draft *draft);

enum het_pipeline_draft_share {
    HET_PIPELINE_DRAFT_SHARED,   /* every replica has its samples */
    HET_PIPELINE_DRAFT_CROWDED,  /* more replicas than samples, or than the job allows */
    HET_PIPELINE_DRAFT_OVERFULL, /* samples that no replica can take (profile, allowed
                                    sizes), or fewer replicas than the job asks */
    HET_PIPELINE_DRAFT_UNUSABLE, /* GPUs without a degree */
};
/* Shares the micro-batch out among the replicas of `stage` (het_balance_samples, by the
 * time they take for the whole model). */
enum het_pipeline_draft_share het_pipeline_draft_share(struct het_pipeline_draft *draft,
                                                       uint32_t stage);

/* Seconds that an iteration of this draft cannot fall below, whatever the split of
 * layers; memory and the optimizer aside. All stages must be shared. The larger of
 *
 *   (m - 1) * (B(t) + C) + sum_l min_s t_s(l) + 2 sum_s c_s + B(y)
 *   sum_l min_s ((m - 1) t_s(l) + y_s(l)) / T_s / sum_s (1 / T_s) + (m - 1) * C
 *     + sum_l min_s t_s(l) + 2 sum_s c_s
 *
 *   B(x)  sum_l min_s x_s(l) / X_s  /  sum_s (1 / X_s)
 *   C     sum_s 2 (c_{s-1} + c_s) / T_s  /  sum_s (1 / T_s)
 *   t_s(l), T_s  seconds that layer l, all layers take on the slowest replica of stage s
 *   y_s(l), Y_s  seconds that their gradients load the slowest uplink of stage s (or the
 *                GPU links, if it does not leave its node)
 *   c_s   least seconds of a send behind stage s, over all cuts
 *
 * since a weighted mean over the stages, here with weights (1 / X_s) / sum (1 / X), is
 * never above the maximum. Sends are computed only if the rest is below `worth_s`. */
double het_pipeline_draft_bound(struct het_pipeline_draft *draft, double worth_s);

/* The split of the layers with the least T_p + max_s Y_s, where stages with
 * `limited[stage]` must fit in memory; the draft keeps it. False, with the split kept
 * before unchanged, if none is below `worth_s`. T_p is het_balance_layers'; the room for
 * gradients is narrowed for at most HET_PIPELINE_DRAFT_MAX_ROUNDS splits. Only
 * het_cost_plan accounts for stages that share uplinks. */
#define HET_PIPELINE_DRAFT_MAX_ROUNDS 16
bool het_pipeline_draft_balance(struct het_pipeline_draft *draft, const bool *limited,
                                double worth_s, double *ret_seconds);
/* Of the split kept: the first stage that does not fit in memory, and the type of its
 * replicas that is shortest of it; false if all fit. */
bool het_pipeline_draft_short(struct het_pipeline_draft *draft, uint32_t *ret_stage,
                              uint32_t *ret_type);

/* The same, of the stage that is short of most bytes on one GPU. */
bool het_pipeline_draft_shortest(struct het_pipeline_draft *draft, uint32_t *ret_stage,
                                 uint32_t *ret_type);

/* When no split fits: the nearest one, and its worst replica. */
struct het_pipeline_draft_miss {
    double needed_bytes;        /* on one GPU */
    uint32_t type, tp, samples; /* of a micro-batch, on one replica */
    uint32_t first_layer, layer_count, stage, in_flight;
};
struct het_pipeline_draft_miss
het_pipeline_draft_nearest(struct het_pipeline_draft *draft);

/* The draft with the split kept, as a bound plan (pipelines only); valid until the next
 * call. */
const struct het_plan *het_pipeline_draft_plan(struct het_pipeline_draft *draft);

#endif
