#include "planner/model/vendor_group.h"

#include <string.h>

static bool is_of(const struct het_node *node, const char *vendor)
{
    return node->vendor && (node->vendor == vendor || !strcmp(node->vendor, vendor));
}

/* Whether the job may use the node's GPUs, and somebody says whose they are. */
static bool counts(const struct het_problem *problem, const struct het_node *node)
{
    return node->vendor && node->gpu_count &&
           problem->profile_type[node->type] != HET_NO_TYPE;
}

bool het_vendor_is_split(const struct het_problem *problem)
{
    const struct het_cluster *cluster = problem->cluster;
    const char *vendor = NULL;
    if (problem->workload->mixes_vendors)
        return false;
    for (size_t n = 0; n < cluster->node_count; n++) {
        const struct het_node *node = &cluster->nodes[n];
        if (!counts(problem, node))
            continue;
        vendor = vendor ? vendor : node->vendor;
        if (!is_of(node, vendor))
            return true;
    }
    return false;
}

/* The nodes of one vendor, and those of unknown vendor. */
static const struct het_cluster *
nodes_of(struct het_arena *arena, const struct het_cluster *cluster, const char *vendor)
{
    struct het_cluster *part = het_arena_alloc(arena, sizeof *part);
    struct het_node *nodes = HET_ARENA_ARRAY(arena, struct het_node, cluster->node_count);
    *part = *cluster;
    part->nodes = nodes;
    part->node_count = 0;
    for (size_t n = 0; n < cluster->node_count; n++)
        if (!cluster->nodes[n].vendor || is_of(&cluster->nodes[n], vendor))
            nodes[part->node_count++] = cluster->nodes[n];
    return part;
}

static struct het_vendor_group
make_group(struct het_arena *arena, const struct het_problem *problem, const char *vendor)
{
    struct het_vendor_group group = { .vendor = vendor, .problem = *problem };
    group.problem.cluster = nodes_of(arena, problem->cluster, vendor);
    group.gpus = het_cluster_gpu_count(group.problem.cluster);
    return group;
}

size_t het_vendor_groups(struct het_arena *arena, const struct het_problem *problem,
                         const struct het_vendor_group **ret)
{
    const struct het_cluster *cluster = problem->cluster;
    struct het_vendor_group *groups =
        HET_ARENA_ARRAY(arena, struct het_vendor_group, HET_MAX_VENDORS);
    size_t count = 0;
    *ret = groups;
    if (!het_vendor_is_split(problem)) {
        groups[0] = (struct het_vendor_group){ .problem = *problem,
                                               .gpus = het_cluster_gpu_count(cluster) };
        return 1;
    }
    for (size_t n = 0; n < cluster->node_count && count < HET_MAX_VENDORS; n++) {
        const struct het_node *node = &cluster->nodes[n];
        size_t g = 0;
        while (g < count && !is_of(node, groups[g].vendor))
            g++;
        if (g == count && counts(problem, node))
            groups[count++] = make_group(arena, problem, node->vendor);
    }
    return count;
}
