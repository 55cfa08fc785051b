#include "planner/model/cluster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint32_t het_cluster_gpu_count(const struct het_cluster *cluster)
{
    uint32_t count = 0;
    for (size_t i = 0; i < cluster->node_count; i++)
        count += cluster->nodes[i].gpu_count;
    return count;
}

uint32_t het_cluster_type_gpu_count(const struct het_cluster *cluster, uint32_t type)
{
    uint32_t count = 0;
    for (size_t i = 0; i < cluster->node_count; i++)
        if (cluster->nodes[i].type == type)
            count += cluster->nodes[i].gpu_count;
    return count;
}

/* ---- what is assumed ---- */

const char *het_link_source_name(enum het_link_source source)
{
    static const char *const names[] = { "Stated", "Measured", "InstanceType", "GPUType",
                                         "Default" };
    return names[source];
}

static int compare_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

static int compare_assumed(const void *a, const void *b)
{
    const struct het_assumed_link *left = a, *right = b;
    int order = strcmp(left->type, right->type);
    if (!order)
        order = (int)right->leaves_node - (int)left->leaves_node;
    if (!order)
        order = (int)left->source - (int)right->source;
    if (!order)
        order = compare_text(left->instance_type, right->instance_type);
    if (order)
        return order;
    return (left->bytes_per_s > right->bytes_per_s) -
           (left->bytes_per_s < right->bytes_per_s);
}

/* Of the instance type only if the rate is known of it. */
static void add_assumed(struct het_assumed_link *links, size_t *count,
                        struct het_assumed_link link)
{
    if (link.source <= HET_LINK_MEASURED || *count == HET_MAX_ASSUMED_LINKS)
        return;
    if (link.source != HET_LINK_INSTANCE)
        link.instance_type = NULL;
    for (size_t i = *count; i--;)
        if (!compare_assumed(&links[i], &link))
            return;
    links[(*count)++] = link;
}

size_t het_cluster_assumed_links(struct het_arena *arena,
                                 const struct het_cluster *cluster,
                                 const struct het_assumed_link **ret)
{
    struct het_assumed_link *links =
        HET_ARENA_ARRAY(arena, struct het_assumed_link, HET_MAX_ASSUMED_LINKS);
    size_t count = 0;
    for (size_t i = 0; i < cluster->node_count; i++) {
        const struct het_node *node = &cluster->nodes[i];
        const char *type = cluster->types[node->type].name;
        if (cluster->node_count > 1)
            add_assumed(links, &count,
                        (struct het_assumed_link){
                            .type = type,
                            .instance_type = node->instance_type,
                            .leaves_node = true,
                            .bytes_per_s = node->uplink_bytes_per_s,
                            .source = node->uplink_source,
                        });
        if (node->gpu_count > 1)
            add_assumed(links, &count,
                        (struct het_assumed_link){
                            .type = type,
                            .instance_type = node->instance_type,
                            .bytes_per_s = node->intra_bytes_per_s,
                            .source = node->intra_source,
                        });
    }
    if (count)
        qsort(links, count, sizeof *links, compare_assumed);
    *ret = links;
    return count;
}

#define ORDER(a, b)                                                                      \
    do {                                                                                 \
        if ((a) != (b))                                                                  \
            return (a) < (b) ? -1 : 1;                                                   \
    } while (0)

int het_node_compare(const struct het_node *a, const struct het_node *b)
{
    ORDER(a->type, b->type);
    ORDER(a->gpu_count, b->gpu_count);
    ORDER(a->intra_bytes_per_s, b->intra_bytes_per_s);
    ORDER(a->uplink_bytes_per_s, b->uplink_bytes_per_s);
    ORDER(a->flow_bytes_per_s, b->flow_bytes_per_s);
    ORDER(a->latency_s, b->latency_s);
    ORDER(a->place, b->place);
    int order = compare_text(a->vendor, b->vendor);
    return order ? order : memcmp(a->domain, b->domain, sizeof a->domain);
}

const struct het_node *het_cluster_largest_node(const struct het_cluster *cluster,
                                                uint32_t type)
{
    const struct het_node *largest = NULL;
    for (size_t n = 0; n < cluster->node_count; n++) {
        const struct het_node *node = &cluster->nodes[n];
        if (node->type == type && (!largest || node->gpu_count > largest->gpu_count))
            largest = node;
    }
    return largest;
}

uint32_t het_cluster_largest_node_gpus(const struct het_cluster *cluster, uint32_t type)
{
    const struct het_node *largest = het_cluster_largest_node(cluster, type);
    return largest ? largest->gpu_count : 0;
}

static int compare_names(const void *left, const void *right)
{
    const struct het_node_name *a = left, *b = right;
    return strcmp(a->name, b->name);
}

const struct het_node_name *het_cluster_sort_names(struct het_arena *arena,
                                                   const struct het_cluster *cluster)
{
    struct het_node_name *names =
        HET_ARENA_ARRAY(arena, struct het_node_name, cluster->node_count);
    for (size_t n = 0; n < cluster->node_count; n++)
        names[n] = (struct het_node_name){ cluster->nodes[n].name, (uint32_t)n };
    qsort(names, cluster->node_count, sizeof *names, compare_names);
    return names;
}

uint32_t het_cluster_find_node(const struct het_cluster *cluster,
                               const struct het_node_name *names, const char *name)
{
    const struct het_node_name key = { .name = name };
    const struct het_node_name *found =
        bsearch(&key, names, cluster->node_count, sizeof key, compare_names);
    return found ? found->node : HET_NO_NODE;
}

uint32_t het_cluster_find_type(const struct het_cluster *cluster, const char *name)
{
    for (size_t i = 0; i < cluster->type_count; i++)
        if (!strcmp(cluster->types[i].name, name))
            return (uint32_t)i;
    return HET_NO_TYPE;
}

/* ---- bandwidth ---- */

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

double het_cluster_uplink(const struct het_cluster *cluster, uint32_t node, uint32_t gpus,
                          double message_bytes)
{
    const struct het_node *of = &cluster->nodes[node];
    double curve = 0;
    if (cluster->network && of->place)
        curve = het_network_between(cluster->network, of->place - 1, of->place - 1,
                                    least(gpus, of->gpu_count), message_bytes);
    return curve > 0 ? curve : of->uplink_bytes_per_s;
}

static double flow_limit(const struct het_node *node)
{
    return node->flow_bytes_per_s > 0 ? node->flow_bytes_per_s : HUGE_VAL;
}

double het_cluster_pair(const struct het_cluster *cluster, uint32_t from, uint32_t to,
                        uint32_t flows, double message_bytes)
{
    const struct het_node *a = &cluster->nodes[from], *b = &cluster->nodes[to];
    double there = 0, back = 0;
    if (cluster->network && a->place && b->place) {
        uint32_t gpus = least(flows, least(a->gpu_count, b->gpu_count));
        there = het_network_between(cluster->network, a->place - 1, b->place - 1, gpus,
                                    message_bytes);
        back = het_network_between(cluster->network, b->place - 1, a->place - 1, gpus,
                                   message_bytes);
    }
    if (there > 0 && back > 0)
        return fmin(there, back);
    if (there > 0 || back > 0)
        return fmax(there, back);
    return flows * fmin(flow_limit(a), flow_limit(b));
}

double het_cluster_gpu_link(const struct het_cluster *cluster, uint32_t node,
                            uint32_t gpus, double message_bytes)
{
    const struct het_node *of = &cluster->nodes[node];
    double curve = 0;
    if (cluster->network && of->place)
        curve = het_network_inside(cluster->network, of->place - 1,
                                   least(gpus, of->gpu_count), message_bytes);
    return curve > 0 ? curve : of->intra_bytes_per_s;
}

/* ---- check ---- */

static int check_positive(double value, const char *owner, const char *field,
                          struct het_error *err)
{
    if (isfinite(value) && value > 0)
        return 0;
    return het_fail(err, HET_BAD_INPUT, "%s: %s must be a positive number", owner, field);
}

static int check_types(const struct het_cluster *cluster, struct het_error *err)
{
    if (cluster->type_count > HET_MAX_TYPES)
        return het_fail(err, HET_BAD_INPUT, "cluster: %zu GPU types, at most %u",
                        cluster->type_count, HET_MAX_TYPES);
    for (size_t i = 0; i < cluster->type_count; i++) {
        const struct het_cluster_type *type = &cluster->types[i];
        if (!type->name || !*type->name)
            return het_fail(err, HET_BAD_INPUT, "cluster: GPU type %zu has no name", i);
        if (i && strcmp(cluster->types[i - 1].name, type->name) >= 0)
            return het_fail(err, HET_BAD_INPUT,
                            "cluster: GPU types %s and %s: not sorted, or twice",
                            cluster->types[i - 1].name, type->name);
        if (type->memory_bytes && type->workspace_bytes >= type->memory_bytes)
            return het_fail(err, HET_BAD_INPUT,
                            "GPU type %s: the workspace takes all of the memory",
                            type->name);
        if (!isfinite(type->price_per_hour) || type->price_per_hour < 0)
            return het_fail(err, HET_BAD_INPUT, "GPU type %s: price must not be negative",
                            type->name);
    }
    return 0;
}

static int check_node(const struct het_cluster *cluster, size_t index,
                      struct het_error *err)
{
    const struct het_node *node = &cluster->nodes[index];
    if (!node->name || !*node->name)
        return het_fail(err, HET_BAD_INPUT, "cluster: node %zu has no name", index);
    if (node->type >= cluster->type_count)
        return het_fail(err, HET_BAD_INPUT, "node %s: GPU type is missing", node->name);
    if (!node->gpu_count || node->gpu_count > HET_MAX_NODE_GPUS)
        return het_fail(err, HET_BAD_INPUT, "node %s: gpus must be 1 to %u, is %u",
                        node->name, HET_MAX_NODE_GPUS, node->gpu_count);
    if (!isfinite(node->latency_s) || node->latency_s < 0)
        return het_fail(err, HET_BAD_INPUT, "node %s: latency must not be negative",
                        node->name);
    if (!isfinite(node->flow_bytes_per_s) || node->flow_bytes_per_s < 0)
        return het_fail(err, HET_BAD_INPUT,
                        "node %s: bandwidth of one flow must not be negative",
                        node->name);
    for (uint32_t level = 0; level < cluster->level_count; level++)
        if (node->domain[level] > cluster->domain_count)
            return het_fail(err, HET_BAD_INPUT, "node %s: level %u: no such domain",
                            node->name, level);
    if (cluster->network && node->place > cluster->network->place_count)
        return het_fail(err, HET_BAD_INPUT, "node %s: no such place in the network",
                        node->name);
    if (check_positive(node->intra_bytes_per_s, node->name, "bandwidth inside the node",
                       err) < 0)
        return -1;
    return check_positive(node->uplink_bytes_per_s, node->name, "bandwidth between nodes",
                          err);
}

static int check_domains(const struct het_cluster *cluster, struct het_error *err)
{
    if (cluster->level_count > HET_MAX_LEVELS || cluster->domain_count > HET_MAX_DOMAINS)
        return het_fail(err, HET_BAD_INPUT,
                        "cluster: more than %u levels or %u zones and racks",
                        HET_MAX_LEVELS, HET_MAX_DOMAINS);
    for (size_t i = 0; i < cluster->domain_count; i++)
        if (check_positive(cluster->domains[i].uplink_bytes_per_s,
                           cluster->domains[i].name, "uplink", err) < 0)
            return -1;
    return 0;
}

static int check_names_differ(const struct het_cluster *cluster, struct het_error *err)
{
    struct het_arena *arena = het_arena_new();
    const struct het_node_name *names = het_cluster_sort_names(arena, cluster);
    int result = 0;
    for (size_t i = 1; i < cluster->node_count && result == 0; i++)
        if (!strcmp(names[i - 1].name, names[i].name))
            result = het_fail(err, HET_BAD_INPUT, "cluster: two nodes are called %s",
                              names[i].name);
    het_arena_free(arena);
    return result;
}

int het_cluster_check(const struct het_cluster *cluster, struct het_error *err)
{
    if (!cluster->node_count)
        return het_fail(err, HET_BAD_INPUT,
                        "cluster: no nodes; at least one node with GPUs is needed");
    if (cluster->node_count > HET_MAX_NODES)
        return het_fail(err, HET_BAD_INPUT, "cluster: %zu nodes, at most %u",
                        cluster->node_count, HET_MAX_NODES);
    if (check_types(cluster, err) < 0 || check_domains(cluster, err) < 0 ||
        (cluster->network && het_network_check(cluster->network, err) < 0))
        return -1;
    for (size_t i = 0; i < cluster->node_count; i++)
        if (check_node(cluster, i, err) < 0)
            return -1;
    return check_names_differ(cluster, err);
}
