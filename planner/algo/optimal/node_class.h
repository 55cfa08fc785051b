/* node_class.h - classes of interchangeable nodes: nodes with the same GPU type, GPU
 * count and links are one class, and inside a class they are only counted. */
#ifndef HET_ALGO_OPTIMAL_NODE_CLASS_H
#define HET_ALGO_OPTIMAL_NODE_CLASS_H

#include "planner/model/plan.h"

/* Classes kept apart, at most. If there are more, nodes of one type and GPU count are one
 * class with the worst links among them; if there are still more, the classes with the
 * fewest GPUs are left out. */
#define HET_MAX_NODE_CLASSES 24u

struct het_node_class {
    uint32_t type; /* cluster type, in the profile */
    uint32_t gpu_count;
    double intra_bytes_per_s, uplink_bytes_per_s;
    double flow_bytes_per_s; /* HUGE_VAL: no limit */
    double latency_s;
    const uint32_t *nodes; /* cluster indices, in input order */
    uint32_t node_count;
};

struct het_node_classes {
    const struct het_node_class *classes; /* the one with the most GPUs first */
    uint32_t class_count;
    uint32_t node_count; /* of all classes */
};

/* Classes of the nodes of `cluster` (the problem's, or some of its GPUs) that have GPUs
 * of a type in the profile. In `arena`. */
struct het_node_classes het_node_classes_of(struct het_arena *arena,
                                            const struct het_problem *problem,
                                            const struct het_cluster *cluster);

#endif
