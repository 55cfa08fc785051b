#include "planner/algo/optimal/node_class.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

struct grown_class {
    struct het_node_class class;
    uint32_t *nodes;
    size_t capacity;
};

struct grown {
    struct grown_class *classes;
    size_t count, capacity;
};

/* Bytes of a message for which measured bandwidths stand in the classes: some layers'
 * gradients. */
#define MESSAGE_BYTES 64e6

static struct het_node_class class_of(const struct het_cluster *cluster, uint32_t index)
{
    const struct het_node *node = &cluster->nodes[index];
    return (struct het_node_class){
        .type = node->type,
        .gpu_count = node->gpu_count,
        .intra_bytes_per_s = node->intra_bytes_per_s,
        .uplink_bytes_per_s =
            het_cluster_uplink(cluster, index, node->gpu_count, MESSAGE_BYTES),
        .flow_bytes_per_s = node->flow_bytes_per_s > 0 ? node->flow_bytes_per_s
                                                       : HUGE_VAL,
        .latency_s = node->latency_s,
    };
}

static bool has_same_gpus(const struct het_node_class *a, const struct het_node_class *b)
{
    return a->type == b->type && a->gpu_count == b->gpu_count;
}

static bool has_same_links(const struct het_node_class *a, const struct het_node_class *b)
{
    return a->intra_bytes_per_s == b->intra_bytes_per_s &&
           a->uplink_bytes_per_s == b->uplink_bytes_per_s &&
           a->flow_bytes_per_s == b->flow_bytes_per_s && a->latency_s == b->latency_s;
}

static void take_worst_links(struct het_node_class *class,
                             const struct het_node_class *other)
{
    class->intra_bytes_per_s = fmin(class->intra_bytes_per_s, other->intra_bytes_per_s);
    class->uplink_bytes_per_s =
        fmin(class->uplink_bytes_per_s, other->uplink_bytes_per_s);
    class->flow_bytes_per_s = fmin(class->flow_bytes_per_s, other->flow_bytes_per_s);
    class->latency_s = fmax(class->latency_s, other->latency_s);
}

static void add_node(struct grown *grown, const struct het_cluster *cluster,
                     uint32_t index, bool by_links)
{
    struct het_node_class class = class_of(cluster, index);
    size_t at = 0;
    while (at < grown->count &&
           !(has_same_gpus(&grown->classes[at].class, &class) &&
             (!by_links || has_same_links(&grown->classes[at].class, &class))))
        at++;
    if (at == grown->count) {
        ARRAY_RESERVE(grown->classes, &grown->capacity, grown->count + 1);
        grown->classes[grown->count++] = (struct grown_class){ .class = class };
    }
    struct grown_class *into = &grown->classes[at];
    take_worst_links(&into->class, &class);
    ARRAY_RESERVE(into->nodes, &into->capacity, into->class.node_count + (size_t)1);
    into->nodes[into->class.node_count++] = index;
}

static void grown_fini(struct grown *grown)
{
    for (size_t i = 0; i < grown->count; i++)
        xfree(grown->classes[i].nodes);
    xfree(grown->classes);
}

static struct grown find_classes(const struct het_problem *problem,
                                 const struct het_cluster *cluster, bool by_links)
{
    struct grown grown = { 0 };
    for (uint32_t n = 0; n < cluster->node_count; n++) {
        const struct het_node *node = &cluster->nodes[n];
        if (node->gpu_count && problem->profile_type[node->type] != HET_NO_TYPE)
            add_node(&grown, cluster, n, by_links);
    }
    return grown;
}

static uint64_t class_gpus(const struct grown_class *grown)
{
    return (uint64_t)grown->class.gpu_count * grown->class.node_count;
}

/* Insertion keeps equal classes in input order. */
static void sort_classes(struct grown *grown)
{
    for (size_t i = 1; i < grown->count; i++) {
        struct grown_class moved = grown->classes[i];
        size_t at = i;
        for (; at && class_gpus(&grown->classes[at - 1]) < class_gpus(&moved); at--)
            grown->classes[at] = grown->classes[at - 1];
        grown->classes[at] = moved;
    }
}

struct het_node_classes het_node_classes_of(struct het_arena *arena,
                                            const struct het_problem *problem,
                                            const struct het_cluster *cluster)
{
    struct grown grown = find_classes(problem, cluster, true);
    if (grown.count > HET_MAX_NODE_CLASSES) {
        grown_fini(&grown);
        grown = find_classes(problem, cluster, false);
    }
    sort_classes(&grown);
    struct het_node_classes inventory = { .class_count = (uint32_t)grown.count };
    if (inventory.class_count > HET_MAX_NODE_CLASSES)
        inventory.class_count = HET_MAX_NODE_CLASSES;
    struct het_node_class *classes =
        HET_ARENA_ARRAY(arena, struct het_node_class, inventory.class_count);
    for (uint32_t c = 0; c < inventory.class_count; c++) {
        classes[c] = grown.classes[c].class;
        uint32_t *nodes = HET_ARENA_ARRAY(arena, uint32_t, classes[c].node_count);
        for (uint32_t n = 0; n < classes[c].node_count; n++)
            nodes[n] = grown.classes[c].nodes[n];
        classes[c].nodes = nodes;
        inventory.node_count += classes[c].node_count;
    }
    inventory.classes = classes;
    grown_fini(&grown);
    return inventory;
}
