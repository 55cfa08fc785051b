/* workload.h - what is trained and what the user allows: batch, precision, optimizer,
 * limits on the plan. */
#ifndef HET_MODEL_WORKLOAD_H
#define HET_MODEL_WORKLOAD_H

#include "planner/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct het_runtime;

#define HET_MAX_GLOBAL_BATCH ((uint32_t)INT32_MAX)

enum het_precision { HET_FP32, HET_BF16, HET_FP16 };
enum het_optimizer { HET_ADAM, HET_ADAM_DISTRIBUTED, HET_SGD };

struct het_type_limit {
    const char *type;            /* cluster type name */
    uint32_t min_gpus, max_gpus; /* max 0: no limit */
    int32_t preference;          /* tie-break, higher first */
};

struct het_workload {
    uint32_t global_batch;    /* samples an iteration, >= 1 */
    uint32_t sequence_length; /* tokens of a sample; 0: not stated */
    enum het_precision precision;
    enum het_optimizer optimizer;
    double memory_headroom;  /* share of a GPU's memory kept free, at most 0.9; not above
                                0: none */
    double gradient_overlap; /* share of the gradient exchange that the backward pass
                                hides, [0, 1] */
    /* A plan must also fit if frameworks hold this many bytes a parameter beside
     * het_workload_state_bytes (gradient buckets, temporaries of the optimizer); not
     * above 0: no reserve. Predictions do not include it. */
    double state_reserve_bytes;
    const struct het_runtime *runtime; /* plans must be expressible for it (runtime.h);
                                          NULL: one that runs every plan */

    bool mixes_vendors; /* the runtime joins GPUs of different vendors (vendor_group.h)
                         */

    /* Limits; 0 or NULL mean none. */
    const uint32_t *microbatch_sizes; /* allowed sizes of a replica's micro-batch */
    size_t microbatch_size_count;
    const uint32_t *tensor_parallel; /* allowed degrees */
    size_t tensor_parallel_count;
    uint32_t min_data_parallel, max_data_parallel;
    uint32_t max_pipeline_parallel;
    uint32_t min_gpus, max_gpus; /* of the whole plan */
    bool no_recompute;           /* all activations are kept */
    /* If there are any, types without an entry are not used (het_problem_init takes
     * their profile away). */
    const struct het_type_limit *type_limits;
    size_t type_limit_count;
};

const char *het_precision_name(enum het_precision precision); /* "fp32", "bf16", "fp16" */
const char *
het_optimizer_name(enum het_optimizer optimizer); /* "adam", "adam-distributed", "sgd" */
/* Case does not matter; AdamW is adam. -1 and HET_BAD_INPUT for an unknown name. */
int het_precision_parse(const char *name, enum het_precision *ret, struct het_error *err);
int het_optimizer_parse(const char *name, enum het_optimizer *ret, struct het_error *err);

/* Bytes of a weight: 4 or 2. */
double het_precision_bytes(enum het_precision precision);

/* Bytes that training holds of one parameter (weights, gradients, optimizer state), with
 * `holders` ranks holding the layer: fp32 Adam 16, bf16 mixed Adam 18, distributed
 * 6 + 12/h (planner.md, Memory). */
double het_workload_state_bytes(const struct het_workload *workload, uint32_t holders);
/* memory_headroom for planning, if the user does not say: what an allocator loses to
 * fragmentation; and what activations may be above an estimate (planner.md, Memory). */
#define HET_DEFAULT_HEADROOM           0.08
#define HET_DEFAULT_HEADROOM_ESTIMATED 0.12
/* state_reserve_bytes for planning, if the user does not say: in fp32, frameworks hold 16
 * to 24 bytes a parameter with Adam, so 8; in mixed precision 0. */
double het_workload_default_reserve(const struct het_workload *workload);
/* Bytes that a checkpoint holds of one parameter: weights and optimizer state, without
 * gradients. fp32 Adam 12; bf16 mixed Adam 14 (AutoHet, section V.C: 180 GB for 13
 * billion parameters). */
double het_workload_checkpoint_bytes(const struct het_workload *workload);
/* Bytes of a parameter that each half of a gradient exchange moves, on average: gradients
 * are fp32, also under mixed precision, and summed by reduce-scatter and all-gather, 4
 * bytes each. A distributed optimizer gathers updated weights instead of gradients: bf16
 * (4 + 2) / 2. Less the share stated to overlap with the backward pass. */
double het_workload_gradient_bytes(const struct het_workload *workload);

int het_workload_allows_tensor_parallel(const struct het_workload *workload, uint32_t tp);
int het_workload_allows_microbatch(const struct het_workload *workload, uint32_t size);
int het_workload_allows_type(const struct het_workload *workload, const char *type);
/* The limits of a type; NULL: it has none of its own. */
const struct het_type_limit *het_workload_find_limit(const struct het_workload *workload,
                                                     const char *type);
/* Refuses (HET_BAD_INPUT) a batch of 0, zeros in lists, empty ranges, a headroom above
 * 0.9, an overlap outside [0, 1]. */
int het_workload_check(const struct het_workload *workload, struct het_error *err);

#endif
