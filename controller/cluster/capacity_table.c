#include "controller/cluster/capacity_table.h"

#include <stdlib.h>
#include <string.h>

uint32_t capacity_find_resource(const struct capacity *capacity, const char *name)
{
    char **slot = strmap_find(&capacity->resources, name);
    return slot ? (uint32_t)(slot - capacity->resource_names) : NO_RESOURCE;
}

struct stock *capacity_find_stock(const struct node *node, uint32_t resource)
{
    for (size_t i = 0; i < node->stock_count; i++)
        if (node->stocks[i].resource == resource)
            return &node->stocks[i];
    return NULL;
}

int64_t capacity_unreported(uint32_t resource)
{
    return resource <= PODS ? INT64_MAX : 0;
}

size_t capacity_node_position(const struct capacity *capacity, const char *name,
                              bool *found)
{
    size_t low = 0, high = capacity->node_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(capacity->nodes[middle]->name, name);
        if (!order) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = false;
    return low;
}

struct node *capacity_find_node(const struct capacity *capacity, const char *name)
{
    bool found;
    size_t position = capacity_node_position(capacity, name, &found);
    return found ? capacity->nodes[position] : NULL;
}

struct share *capacity_find_share(const struct job *job, const struct node *node)
{
    for (size_t i = 0; i < node->share_count; i++)
        if (node->shares[i]->job == job)
            return node->shares[i];
    return NULL;
}

int64_t capacity_counted(const struct share *share, uint32_t resource)
{
    for (size_t i = 0; share && i < share->counted_count; i++)
        if (share->counted[i].resource == resource)
            return share->counted[i].amount;
    return 0;
}

int64_t capacity_left(const struct node *node, const struct share *share,
                      enum others others, uint32_t resource)
{
    const struct stock *stock = capacity_find_stock(node, resource);
    if (!stock)
        return capacity_unreported(resource);
    if (stock->allocatable == INT64_MAX)
        return INT64_MAX;
    int64_t of_jobs =
        others == ALL_OTHERS ? stock->reserved - capacity_counted(share, resource) : 0;
    return stock->allocatable - stock->foreign - of_jobs;
}

int64_t capacity_fit(const struct node *node, const struct share *share,
                     enum others others, const struct shape *shape, int64_t most,
                     const char **ret_limit)
{
    for (size_t i = 0; i < shape->need_count; i++) {
        uint32_t resource = shape->needs[i].resource;
        int64_t left = capacity_left(node, share, others, resource);
        int64_t fit = pod_need_fit(&shape->needs[i].need, left, most);
        if (fit < most) {
            most = fit;
            *ret_limit = shape->needs[i].name;
        }
    }
    return most;
}

void capacity_shape_fini(struct shape *shape)
{
    for (size_t i = 0; i < shape->rule_count; i++) {
        free(shape->rules[i].type);
        free(shape->rules[i].name);
    }
    for (size_t i = 0; i < shape->need_count; i++)
        free(shape->needs[i].name);
    free(shape->rules);
    free(shape->needs);
    *shape = (struct shape){ 0 };
}

bool capacity_shape_resolve(const struct capacity *capacity, struct shape *shape)
{
    bool changed = false;
    for (size_t i = 0; i < shape->need_count; i++) {
        uint32_t resource = capacity_find_resource(capacity, shape->needs[i].name);
        changed = changed || resource != shape->needs[i].resource;
        shape->needs[i].resource = resource;
    }
    for (size_t i = 0; i < shape->rule_count; i++) {
        const char *name = shape->rules[i].name;
        uint32_t resource = name ? capacity_find_resource(capacity, name) : NO_RESOURCE;
        changed = changed || resource != shape->rules[i].resource;
        shape->rules[i].resource = resource;
    }
    return changed;
}

void capacity_shape_init(struct shape *shape, const struct capacity *capacity,
                         const struct job_spec *spec)
{
    struct het_arena *arena = het_arena_new();
    struct pod_need *needs;
    *shape = (struct shape){ .need_count = pod_need_read(arena, spec, &needs),
                             .rule_count = spec->gpu_type_count };
    shape->needs = xcalloc(shape->need_count, sizeof *shape->needs);
    for (size_t i = 0; i < shape->need_count; i++) {
        shape->needs[i].name = xstrdup(needs[i].resource);
        shape->needs[i].need = needs[i];
        shape->needs[i].need.resource = NULL; /* it lives in the arena */
    }
    shape->rules = xcalloc(shape->rule_count, sizeof *shape->rules);
    for (size_t i = 0; i < shape->rule_count; i++) {
        const struct job_gpu_type *rule = &spec->gpu_types[i];
        shape->rules[i].type = xstrdup(rule->name);
        shape->rules[i].name = rule->resource ? xstrdup(rule->resource) : NULL;
    }
    capacity_shape_resolve(capacity, shape);
    het_arena_free(arena);
}

const json_t *capacity_taints(const json_t *node)
{
    return json_object_get(json_object_get(node, "spec"), "taints");
}

const json_t *capacity_labels(const json_t *node)
{
    return json_object_get(json_object_get(node, "metadata"), "labels");
}
