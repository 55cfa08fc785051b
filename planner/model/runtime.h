/* runtime.h - what training runtimes can run. A runtime is a set of freedoms; a plan that
 * takes one that its runtime lacks cannot be expressed for it, however fast it is.
 * Source: the runtimes' own code and arguments; docs/planner.md, Runtimes.
 *
 * A LANE is one data-parallel copy of the model as runtimes count them: replica r of
 * every stage of a pipeline whose stages have equally many replicas. A pipeline of d such
 * replicas and d pipelines of one replica are the same lanes. */
#ifndef HET_MODEL_RUNTIME_H
#define HET_MODEL_RUNTIME_H

#include "planner/model/plan.h"

#include <stdbool.h>

/* What a plan may need of a runtime. */
enum het_freedom {
    HET_UNEVEN_LAYERS,           /* stages of unequal numbers of layers */
    HET_TP_PER_STAGE,            /* tensor-parallel degrees that differ over stages */
    HET_TP_PER_REPLICA,          /* ... between replicas of a stage, or over pipelines */
    HET_DP_PER_STAGE,            /* numbers of replicas that differ over stages */
    HET_UNEVEN_SHARES,           /* replicas of a stage take unequal samples */
    HET_MICROBATCH_PER_PIPELINE, /* micro-batch sizes of lanes that differ */
    HET_COUNT_PER_PIPELINE,      /* pipelines of different numbers of micro-batches */
    HET_LAYERS_PER_PIPELINE,     /* pipelines cut at different layers */
    HET_STAGES_PER_PIPELINE,     /* pipelines of different numbers of stages */
    HET_RECOMPUTE_PER_STAGE,     /* stages that recompute beside stages that do not */
    HET_SELECTIVE_PER_STAGE,     /* selective recomputation in some stages only */
    HET_ANY_RANK_ORDER,          /* ranks in an order that is no grid over the nodes */
    HET_EMPTY_STAGES,            /* stages of the embedding or the head alone */
    HET_ANY_TP,                  /* tensor-parallel degrees that the runtime lacks */
    HET_FREEDOM_COUNT
};

/* Orders of ranks that a runtime without HET_ANY_RANK_ORDER knows. */
enum het_rank_order {
    HET_STAGE_MAJOR = 1, /* rank = tp index + tp * (lane + lanes * stage) */
    HET_LANE_MAJOR = 2,  /* rank = tp index + tp * (stage + stages * lane) */
};

struct het_runtime {
    const char *name;     /* "megatron" */
    const char *title;    /* "Megatron-LM" */
    const char *version;  /* of the program that reads the rendered files; NULL: none
                             does, or it reads the plan itself */
    uint32_t freedoms;    /* bits 1 << enum het_freedom */
    uint32_t rank_orders; /* bits of enum het_rank_order */
    bool mesh_a_node;     /* a node's GPUs are all in stages of one tp and dp */
    uint32_t max_tp;      /* of a runtime without HET_ANY_TP: powers of two up to it */
};

/* All runtimes; ends with one without a name. The first runs every plan. */
const struct het_runtime *het_runtimes(void);
/* By name; "torchrun" and "custom" are the generic one. NULL and HET_BAD_INPUT with the
 * names for an unknown one. */
const struct het_runtime *het_runtime_find(const char *name, struct het_error *err);

/* `runtime` (NULL: the generic one) less the freedoms `without`, bits; in `arena`. */
const struct het_runtime *het_runtime_without(struct het_arena *arena,
                                              const struct het_runtime *runtime,
                                              uint32_t without);

/* Freedoms that a job's constraints remove: one tensor-parallel degree for all; and
 * equally many samples for all replicas of all stages. */
#define HET_FREEDOMS_OF_TENSOR_PARALLEL                                                  \
    (1u << HET_TP_PER_STAGE | 1u << HET_TP_PER_REPLICA)
#define HET_FREEDOMS_OF_SHARES                                                           \
    (1u << HET_DP_PER_STAGE | 1u << HET_UNEVEN_SHARES |                                  \
     1u << HET_MICROBATCH_PER_PIPELINE | 1u << HET_COUNT_PER_PIPELINE)

bool het_runtime_runs_all(const struct het_runtime *runtime); /* NULL does */
bool het_runtime_has(const struct het_runtime *runtime, enum het_freedom freedom);
/* "PerStageTensorParallel"; "a tensor-parallel degree for each stage". */
const char *het_freedom_reason(enum het_freedom freedom);
const char *het_freedom_text(enum het_freedom freedom);
/* "Megatron-LM has no way to run ... (PerStageTensorParallel)"; in `arena`. */
const char *het_runtime_lack(struct het_arena *arena, const struct het_runtime *runtime,
                             enum het_freedom missing);

/* The freedoms that a bound plan takes, as bits (rank order apart, as it depends on the
 * runtime's orders). */
uint32_t het_runtime_freedoms_of(const struct het_plan *plan);

/* The freedoms that the plan takes and the runtime lacks, as bits. */
uint32_t het_runtime_needs(const struct het_runtime *runtime,
                           const struct het_plan *plan);

/* `plan` as `runtime` can run it, in `arena`: the plan itself, or the same with other
 * local indices of the nodes' GPUs, or with its pipelines written as one, so that its
 * ranks stand in an order that the runtime knows. NULL if it cannot be expressed; the
 * first freedom that is missing then goes into `ret_missing` (may be NULL). */
const struct het_plan *het_runtime_express(struct het_arena *arena,
                                           const struct het_runtime *runtime,
                                           const struct het_plan *plan,
                                           enum het_freedom *ret_missing);

/* The same for a plan that is unbound or bound to another cluster: it is bound to the
 * nodes that it names. NULL, with HET_FREEDOM_COUNT as what is missing, if that fails. */
const struct het_plan *het_runtime_express_alone(struct het_arena *arena,
                                                 const struct het_runtime *runtime,
                                                 const struct het_plan *plan,
                                                 enum het_freedom *ret_missing);

/* Layers of stage `stage` when `layer_count` layers are cut evenly: the first stages have
 * one more where they cannot all be equal (as DeepSpeed's partition_method uniform). */
uint32_t het_runtime_even_layers(uint32_t layer_count, uint32_t stage_count,
                                 uint32_t stage);

#endif
