/* toy.h - a small problem whose numbers can be added up by hand, for the planner's tests.
 *
 * Cluster: nodes f0 (4 fast), f1 (2 fast), s0 (4 slow).
 *
 *   type   memory   workspace   node link     uplink
 *   fast   20 GiB   1 GiB       100 GB/s      10 GB/s
 *   slow   10 GiB   1 GiB        50 GB/s       5 GB/s
 *
 * Profile: layers 0..3, micro-batches 1, 2, 4, degrees 1 and 2, fp32.
 *
 *   fast, tp 1, one sample   forward 1 2 3 4 ms, backward 2 4 6 8 ms, optimizer 11 ms
 *   two, four samples        1.5 and 2.5 times that
 *   tp 2                     0.6 times that
 *   slow                     2 times that
 *   parameters               400 200 200 300 million a rank; tp 2: half
 *   activations a sample     100 200 200 100 MB a rank; tp 2: half
 *   output of a layer        10 10 10 40 MB a sample */
#ifndef TEST_TOY_H
#define TEST_TOY_H

#include "planner/model/plan.h"

struct toy {
    struct het_arena *arena;
    struct het_cluster_type types[2];
    struct het_node nodes[3];
    struct het_cluster cluster;
    struct het_profile profile;
    struct het_workload workload; /* batch 8, fp32, adam */
    struct het_problem problem;
};
enum { TOY_F0, TOY_F1, TOY_S0 };

struct toy *toy_new(void);
void toy_free(struct toy *toy);

/* tp GPUs of `node` from `first_gpu` on. */
struct het_replica toy_replica(const struct toy *toy, uint32_t node, uint32_t first_gpu,
                               uint32_t tp, uint32_t microbatch_size);

/* Arrays in the toy's arena: TOY_ARRAY(toy, struct het_stage, { ... }, { ... }). */
void *toy_copy(const struct toy *toy, const void *array, size_t bytes);
#define TOY_ARRAY(toy, type, ...)                                                        \
    toy_copy((toy), (const type[]){ __VA_ARGS__ }, sizeof((const type[]){ __VA_ARGS__ }))
#define TOY_STAGE(toy, first, layers, ...)                                               \
    ((struct het_stage){                                                                 \
        .first_layer = (first),                                                          \
        .layer_count = (layers),                                                         \
        .replicas = TOY_ARRAY((toy), struct het_replica, __VA_ARGS__),                   \
        .replica_count = sizeof((const struct het_replica[]){ __VA_ARGS__ }) /           \
                         sizeof(struct het_replica) })
#define TOY_PIPELINE(toy, microbatches, ...)                                             \
    ((struct het_pipeline){                                                              \
        .microbatch_count = (microbatches),                                              \
        .stages = TOY_ARRAY((toy), struct het_stage, __VA_ARGS__),                       \
        .stage_count = sizeof((const struct het_stage[]){ __VA_ARGS__ }) /               \
                       sizeof(struct het_stage) })
#define TOY_PLAN(toy, ...)                                                               \
    ((struct het_plan){                                                                  \
        .algorithm = "toy",                                                              \
        .global_batch = (toy)->workload.global_batch,                                    \
        .layer_count = 4,                                                                \
        .pipelines = TOY_ARRAY((toy), struct het_pipeline, __VA_ARGS__),                 \
        .pipeline_count = sizeof((const struct het_pipeline[]){ __VA_ARGS__ }) /         \
                          sizeof(struct het_pipeline) })

/* Batch 8 on f0 and s0: 2 pipelines of 2 micro-batches of 2 samples; each has layers 0-1
 * on one slow GPU and 2-3 on one fast. */
struct het_plan toy_two_pipelines(const struct toy *toy);

#endif
