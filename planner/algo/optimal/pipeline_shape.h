/* pipeline_shape.h - a pipeline on a few nodes of given classes, a cell: plans on many
 * equal nodes are built of them. A cell takes whole nodes of some classes (node_class.h),
 * or some GPUs of one node; its stages are fixed, and the layers are split over them in
 * all useful ways (layer_front.h). */
#ifndef HET_ALGO_OPTIMAL_PIPELINE_SHAPE_H
#define HET_ALGO_OPTIMAL_PIPELINE_SHAPE_H

#include "planner/algo/optimal/batch_share.h"
#include "planner/algo/optimal/layer_front.h"
#include "planner/algo/optimal/node_class.h"
#include "planner/search/stage_times.h"

#define HET_PIPELINE_SHAPE_MAX_STAGES 16u
#define HET_PIPELINE_SHAPE_MAX_PARTS  2u

/* Replicas of a stage that are alike: on nodes first_node .. first_node + node_count - 1
 * of the cell's nodes of the class, on each gpu_count GPUs from first_gpu on (counted
 * from the cell's first GPU if it takes no whole nodes), in gpu_count / tp replicas. */
struct het_pipeline_shape_part {
    uint32_t class, first_node, node_count;
    uint32_t first_gpu, gpu_count, tp;
    uint32_t samples; /* of a micro-batch, on one replica */
};

struct het_pipeline_shape_stage {
    struct het_pipeline_shape_part parts[HET_PIPELINE_SHAPE_MAX_PARTS];
    uint32_t part_count;
};

struct het_pipeline_shape {
    struct het_pipeline_shape_stage stages[HET_PIPELINE_SHAPE_MAX_STAGES];
    uint32_t stage_count;
    uint32_t samples; /* of a micro-batch: the sum over any stage's replicas */
    enum het_recompute recompute;
    uint32_t nodes[HET_MAX_NODE_CLASSES]; /* whole nodes of each class; or */
    uint32_t gpus, gpu_class; /* GPUs on one node of a class; 0: whole nodes */
    uint32_t replicas;        /* of the stage with most */
};

/* A cell with its layers split. */
struct het_pipeline_shape_split {
    const struct het_pipeline_shape *cell;
    uint32_t signature;         /* index of what it takes in the catalogue
                                   (shape_catalog.h) */
    double sum_s, bottleneck_s; /* layer_front.h */
    double sync_s; /* its busiest uplink or GPU link, if the gradients are summed over
                      many holders */
    double step_s; /* optimizer of its slowest replica */
    const uint32_t *cuts;
    bool is_simulated; /* bottleneck_s is what the simulation takes, by build_plan.h */
};

/* The inputs for pricing cells. */
struct het_pipeline_shape_market {
    const struct het_problem *problem;
    const struct het_node_classes *inventory;
    struct het_stage_table *table;
    struct het_arena *arena; /* splits live in it */
};

uint32_t het_pipeline_shape_part_replicas(const struct het_pipeline_shape_part *part);
/* Sets `samples` and `replicas` from the parts. */
void het_pipeline_shape_count(struct het_pipeline_shape *cell);

/* The splits of `cell` whose nodes' uplinks are busy for at most `sync_limit_s` each with
 * gradients (HUGE_VAL: no limit). Stages that share a node get equal shares of that
 * limit. Returns how many, at most HET_LAYER_FRONT_MAX_POINTS; 0 if the cell does not fit
 * or is not in the profile. */
size_t het_pipeline_shape_splits(const struct het_pipeline_shape_market *market,
                                 const struct het_pipeline_shape *cell,
                                 double sync_limit_s,
                                 struct het_pipeline_shape_split *ret_splits,
                                 uint64_t *ret_work);

/* The split as a lane of `count` micro-batches (batch_share.h). */
struct het_batch_share_lane
het_pipeline_shape_split_lane(const struct het_pipeline_shape_split *split,
                              uint32_t count);
/* Micro-batches that the split can run in `seconds`; 0 if not even one. */
uint32_t
het_pipeline_shape_split_microbatches(const struct het_pipeline_shape_split *split,
                                      double seconds);
/* Seconds for `count` micro-batches. */
double het_pipeline_shape_split_seconds(const struct het_pipeline_shape_split *split,
                                        uint32_t count);

/* The same split with micro-batches of `samples` < cell->samples, shared out evenly over
 * the replicas of each stage, into `ret_split` (with a cell of its own in the market's
 * arena, `parts` kept whole: a part with an uneven share takes the time of the largest).
 * False if it is impossible: each stage needs a sample for every replica. */
bool het_pipeline_shape_split_shrink(const struct het_pipeline_shape_market *market,
                                     const struct het_pipeline_shape_split *split,
                                     uint32_t samples,
                                     struct het_pipeline_shape_split *ret_split);

#endif
