/* device_group.h - which GPUs form a stage: device groups and node sequences.
 *
 * Nodes are laid out in a row, those of one GPU type together; a device group is a run of
 * GPUs in that row. A plan's stages are then a list of group sizes that sums to the
 * number of GPUs. Neither a list nor a row says how a group is used (dp, tp): that is the
 * algorithm's part.
 *
 * Everything is enumerated in a fixed order. A visitor returns false to stop. */
#ifndef HET_ALGO_METIS_DEVICE_GROUP_H
#define HET_ALGO_METIS_DEVICE_GROUP_H

#include "planner/base/arena.h"
#include "planner/model/cluster.h"

#include <stdbool.h>

/* Sorted, distinct sizes that a device group may have. */
struct het_device_group_sizes {
    const uint32_t *sizes;
    size_t count;
};

/* Sizes for groups of `cluster`: every size if `any_size`; else the powers of two, and
 * what the cluster itself suggests when its counts are no powers of two: the GPU count of
 * a type and of the whole cluster, and multiples of a node's size up to them. In `arena`.
 * Source: Metis, 4.2.2 (powers of two, section 2.2). Differs: the sizes besides powers of
 * two, so that any GPU count can be cut into stages. */
struct het_device_group_sizes het_device_group_sizes_of(struct het_arena *arena,
                                                        const struct het_cluster *cluster,
                                                        bool any_size);

struct het_device_group_question {
    uint32_t gpu_count;                  /* sum of a list */
    uint32_t group_count;                /* length of a list = stages */
    struct het_device_group_sizes sizes; /* to choose from */
    double variance;  /* no group is smaller than variance * gpu_count / group_count */
    uint32_t permute; /* longest list that is permuted, >= 1 */
};

#define HET_DEVICE_GROUP_MAX_STEPS 1000000

typedef bool (*het_device_group_visit)(void *context, const uint32_t *sizes,
                                       uint32_t count);

/* All lists of group sizes, each once for one order of its (fused) entries: the lists
 * without order from the most even down in lexicographic order of their rising sizes,
 * each in all its permutations. A list longer than `permute` is shortened first, by
 * fusing its two smallest entries until it is short enough; fused groups stay neighbours.
 * If no sizes of `sizes` add up to gpu_count, the even split is the only list. At most
 * HET_DEVICE_GROUP_MAX_STEPS entries are tried for the lists without order. Returns false
 * if the visitor stopped the enumeration. Source: Metis, section 4.2.2, part 1 (its 1 -
 * var is `variance`). Differs: the even split if there is no list. */
bool het_device_group_lists(const struct het_device_group_question *question,
                            het_device_group_visit visit, void *context);

/* GPUs of one node in a row. */
struct het_device_group_slot {
    uint32_t node; /* cluster index */
    uint32_t type;
    uint32_t first_gpu; /* local index on the node */
    uint32_t gpu_count;
};

/* A row of nodes: slots of whole nodes (as many GPUs as `cluster` gives them). */
struct het_device_group_row {
    const struct het_device_group_slot *slots;
    size_t slot_count;
    uint32_t gpu_count;
};

/* All orders of the types that have GPUs, in lexicographic order; at most
 * HET_DEVICE_GROUP_MAX_ORDERS. Returns how many, each `*ret_type_count` long, in one
 * array. */
#define HET_DEVICE_GROUP_MAX_ORDERS 120
size_t het_device_group_type_orders(struct het_arena *arena,
                                    const struct het_cluster *cluster,
                                    const uint32_t **ret_orders, size_t *ret_type_count);

/* The row for one order of types. Inside a type the larger nodes come first (so that
 * groups of even sizes end where nodes end), then input order. Nodes without GPUs are
 * left out. */
struct het_device_group_row het_device_group_row_of(struct het_arena *arena,
                                                    const struct het_cluster *cluster,
                                                    const uint32_t *types,
                                                    size_t type_count);

/* The same with the nodes of the types taking turns: the next node is of the type with
 * the smallest share laid out so far; of equal types, the first in `types`. */
struct het_device_group_row het_device_group_row_mixed(struct het_arena *arena,
                                                       const struct het_cluster *cluster,
                                                       const uint32_t *types,
                                                       size_t type_count);

/* The slots of GPUs [start, start + count) of `row`, cut at node borders, into
 * `ret_slots` (room for row->slot_count); returns how many. */
size_t het_device_group_cut(const struct het_device_group_row *row, uint32_t start,
                            uint32_t count, struct het_device_group_slot *ret_slots);

#endif
