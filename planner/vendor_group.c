#include "planner/vendor_group.h"

#include <string.h>

static bool is_of(const struct het_cluster_type *type, const char *vendor)
{
    return type->vendor && !strcmp(type->vendor, vendor);
}

/* Whether the job may use GPUs of the type, if there are any. */
static bool is_usable(const struct het_problem *problem, uint32_t type)
{
    return problem->profile_type[type] != HET_NO_TYPE &&
           problem->cluster->types[type].vendor;
}

static bool has_gpus(const struct het_problem *problem, uint32_t type)
{
    return is_usable(problem, type) &&
           het_cluster_type_gpu_count(problem->cluster, type) > 0;
}

bool het_vendor_is_split(const struct het_problem *problem)
{
    const struct het_cluster *cluster = problem->cluster;
    const char *vendor = NULL;
    bool differ = false;
    for (uint32_t t = 0; t < cluster->type_count; t++) {
        if (!is_usable(problem, t))
            continue;
        vendor = vendor ? vendor : cluster->types[t].vendor;
        differ = differ || strcmp(cluster->types[t].vendor, vendor) != 0;
    }
    if (!differ || problem->workload->mixes_vendors)
        return false;
    vendor = NULL;
    for (uint32_t t = 0; t < cluster->type_count; t++) {
        if (!has_gpus(problem, t))
            continue;
        vendor = vendor ? vendor : cluster->types[t].vendor;
        if (!is_of(&cluster->types[t], vendor))
            return true;
    }
    return false;
}

/* The nodes of one vendor, and of types of which nobody says whose they are. */
static const struct het_cluster *
nodes_of(struct het_arena *arena, const struct het_cluster *cluster, const char *vendor)
{
    struct het_cluster *part = het_arena_alloc(arena, sizeof *part);
    struct het_node *nodes = HET_ARENA_ARRAY(arena, struct het_node, cluster->node_count);
    *part = *cluster;
    part->nodes = nodes;
    part->node_count = 0;
    for (size_t n = 0; n < cluster->node_count; n++) {
        const struct het_cluster_type *type = &cluster->types[cluster->nodes[n].type];
        if (!type->vendor || is_of(type, vendor))
            nodes[part->node_count++] = cluster->nodes[n];
    }
    return part;
}

static struct het_vendor_group
make_group(struct het_arena *arena, const struct het_problem *problem, const char *vendor)
{
    const struct het_cluster *cluster = problem->cluster;
    uint32_t *types = HET_ARENA_ARRAY(arena, uint32_t, cluster->type_count);
    for (uint32_t t = 0; t < cluster->type_count; t++)
        types[t] = !cluster->types[t].vendor || is_of(&cluster->types[t], vendor)
                       ? problem->profile_type[t]
                       : HET_NO_TYPE;
    struct het_vendor_group group = { .vendor = vendor, .problem = *problem };
    group.problem.cluster = nodes_of(arena, cluster, vendor);
    group.problem.profile_type = types;
    group.gpus = het_cluster_gpu_count(group.problem.cluster);
    return group;
}

size_t het_vendor_groups(struct het_arena *arena, const struct het_problem *problem,
                         const struct het_vendor_group **ret)
{
    const struct het_cluster *cluster = problem->cluster;
    struct het_vendor_group *groups =
        HET_ARENA_ARRAY(arena, struct het_vendor_group, cluster->type_count + 1);
    size_t count = 0;
    *ret = groups;
    if (!het_vendor_is_split(problem)) {
        groups[0] = (struct het_vendor_group){ .problem = *problem,
                                               .gpus = het_cluster_gpu_count(cluster) };
        return 1;
    }
    for (uint32_t t = 0; t < cluster->type_count; t++) {
        size_t g = 0;
        while (g < count && !is_of(&cluster->types[t], groups[g].vendor))
            g++;
        if (g == count && has_gpus(problem, t))
            groups[count++] = make_group(arena, problem, cluster->types[t].vendor);
    }
    return count;
}
