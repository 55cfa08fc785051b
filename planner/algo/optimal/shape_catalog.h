/* shape_catalog.h - the cells (pipeline_shape.h) worth knowing for a cluster: pipelines
 * inside a node, pipelines over several nodes of a class, with stages that fill nodes,
 * and pipelines over nodes of two or three classes. How many there are does not depend on
 * the number of nodes. */
#ifndef HET_ALGO_OPTIMAL_SHAPE_CATALOG_H
#define HET_ALGO_OPTIMAL_SHAPE_CATALOG_H

#include "planner/algo/optimal/pipeline_shape.h"
#include "planner/search/search.h"

/* What a cell takes: whole nodes of classes, or GPUs on a node of one class. */
struct het_signature {
    uint32_t nodes[HET_MAX_NODE_CLASSES];
    uint32_t gpus, gpu_class;
};

struct het_shape_catalog {
    struct het_pipeline_shape_market market;
    struct het_search *search; /* whose effort is spent */
    struct het_pipeline_shape_split *splits;
    size_t split_count, split_capacity;
    struct het_signature *signatures;
    size_t signature_count, signature_capacity;
    uint64_t spent;     /* effort */
    uint32_t gpu_count; /* of the inventory */
};

void het_shape_catalog_init(struct het_shape_catalog *catalog, struct het_search *search,
                            const struct het_node_classes *inventory,
                            struct het_stage_table *table, struct het_arena *arena);
void het_shape_catalog_fini(struct het_shape_catalog *catalog);

/* Adds a cell with all micro-batch sizes, whatever the size in `pattern`; with
 * recomputation if it does not fit without. Drops a split if another is as good in every
 * respect. */
void het_shape_catalog_add(struct het_shape_catalog *catalog,
                           struct het_pipeline_shape *pattern);

/* Adds pipelines on 1 .. HET_SHAPE_CATALOG_MAX_GPUS GPUs of a node: all lists of stages
 * up to HET_SHAPE_CATALOG_MIXED_GPUS, beyond only lists of like stages. Then those over 2
 * .. HET_SHAPE_CATALOG_MAX_NODES nodes of a class, one, two or four stages a node; then
 * those over several classes. All stop, and return false, when `effort` units are
 * spent. */
#define HET_SHAPE_CATALOG_MAX_GPUS   16u
#define HET_SHAPE_CATALOG_MIXED_GPUS 4u
#define HET_SHAPE_CATALOG_MAX_NODES  8u
bool het_shape_catalog_fill_nodes(struct het_shape_catalog *catalog, uint64_t effort);
bool het_shape_catalog_fill_chains(struct het_shape_catalog *catalog, uint64_t effort);
bool het_shape_catalog_fill_mixed(struct het_shape_catalog *catalog, uint64_t effort);

#endif
