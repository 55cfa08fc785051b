/* batch_share.h - a global batch over pipelines that take different times for a
 * micro-batch: how many micro-batches each runs. */
#ifndef HET_ALGO_OPTIMAL_BATCH_SHARE_H
#define HET_ALGO_OPTIMAL_BATCH_SHARE_H

#include "planner/base/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* A pipeline: m micro-batches of `samples` take sum_s + (m - 1) * bottleneck_s. */
struct het_batch_share_lane {
    uint32_t samples;
    double sum_s, bottleneck_s;
    uint32_t count; /* micro-batches */
};

double
het_batch_share_lane_seconds(const struct het_batch_share_lane *lane); /* 0 without any */
/* Micro-batches that fit into `seconds`. */
uint32_t het_batch_share_lane_fit(const struct het_batch_share_lane *lane,
                                  double seconds);

/* Removes exactly `excess` samples in whole micro-batches, from the slowest lanes where
 * there is a choice. False, with the counts unchanged, if that is impossible. The last
 * HET_BATCH_SHARE_EXACT samples are removed exactly, those before them one micro-batch at
 * a time. */
#define HET_BATCH_SHARE_EXACT 1024u
bool het_batch_share_take(struct het_batch_share_lane *lanes, size_t lane_count,
                          uint64_t excess);

/* The parts of that.
 *
 * Removes the part of `excess` beyond HET_BATCH_SHARE_EXACT; returns the rest, which is
 * more than HET_BATCH_SHARE_EXACT if no lane has as few samples. */
uint64_t het_batch_share_take_bulk(struct het_batch_share_lane *lanes, size_t lane_count,
                                   uint64_t excess);
/* How to take exactly n samples, n up to HET_BATCH_SHARE_EXACT: the size of the last
 * micro-batch, 0 if it is impossible (or n is 0); and how many of that size. */
struct het_batch_share_change {
    uint32_t last[HET_BATCH_SHARE_EXACT + 1], used[HET_BATCH_SHARE_EXACT + 1];
};
void het_batch_share_find_change(const struct het_batch_share_lane *lanes,
                                 size_t lane_count, uint32_t limit,
                                 struct het_batch_share_change *change);
/* Removes `samples` as `change` says; `change` must have a way. */
void het_batch_share_take_change(struct het_batch_share_lane *lanes, size_t lane_count,
                                 const struct het_batch_share_change *change,
                                 uint32_t samples);

/* Sets the counts so that exactly `batch` samples are done and the slowest lane is as
 * fast as possible (within 1e-4 of it, plus what an exact batch adds); its seconds into
 * `ret_seconds`. Lanes may get no micro-batch. False: no counts give exactly `batch`. */
bool het_batch_share(struct het_batch_share_lane *lanes, size_t lane_count,
                     uint64_t batch, double *ret_seconds);

#endif
