#include "planner/format/document/cluster_json.h"

#include "planner/base/vendor.h"
#include "planner/format/document/hardware_json.h"
#include "planner/format/kubernetes_node.h"
#include "planner/model/instance_type.h"
#include "planner/model/network.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS_PER_US 1e-6
#define MAX_LATENCY_US 1e7

static const char *const cluster_fields[] = { "nodes", "levels", "network", NULL };
static const char *const node_fields[] = { "name",
                                           "type",
                                           "gpus",
                                           "memory_gb",
                                           "intra_gb_s",
                                           "inter_gb_s",
                                           "inter_flow_gb_s",
                                           "latency_us",
                                           "instance_type",
                                           "workspace_gb",
                                           "profile",
                                           "repeat",
                                           "levels",
                                           "preference",
                                           "vendor",
                                           NULL };

/* What one entry of the short form says; zero means nothing. */
struct node_entry {
    const char *name, *type, *profile, *instance_type, *vendor;
    uint32_t gpus, repeat; /* repeat 0: no suffix */
    int32_t preference;
    uint64_t memory_bytes, workspace_bytes;
    double intra, inter, flow, latency_s;
    uint32_t domain[HET_MAX_LEVELS]; /* as in struct het_node */
};

static int read_node_entry(struct het_arena *arena, const struct het_view *view,
                           struct node_entry *entry, struct het_error *err)
{
    struct het_view name = het_view_get(view, "name");
    struct het_view type = het_view_get(view, "type");
    struct het_view profile = het_view_get(view, "profile");
    struct het_view instance = het_view_get(view, "instance_type");
    struct het_view gpus = het_view_get(view, "gpus");
    struct het_view repeat = het_view_get(view, "repeat");
    struct het_view latency = het_view_get(view, "latency_us");
    struct het_view preference = het_view_get(view, "preference");
    double latency_us = 0;
    if (het_view_need(view, err) < 0 || het_view_object(view, err) < 0 ||
        het_view_members(view, node_fields, err) < 0 ||
        het_view_name(&name, arena, &entry->name, err) < 0 ||
        het_view_need(&type, err) < 0 ||
        het_view_name(&type, arena, &entry->type, err) < 0 ||
        het_view_name(&profile, arena, &entry->profile, err) < 0 ||
        het_view_name(&instance, arena, &entry->instance_type, err) < 0 ||
        het_hardware_json_vendor(arena, view, &entry->vendor, err) < 0 ||
        het_view_need(&gpus, err) < 0 ||
        het_view_u32(&gpus, 1, HET_MAX_NODE_GPUS, &entry->gpus, err) < 0 ||
        het_view_u32(&repeat, 1, HET_MAX_NODES, &entry->repeat, err) < 0 ||
        het_view_gibibytes(view, "memory_gb", 0.0625, &entry->memory_bytes, err) < 0 ||
        het_view_gibibytes(view, "workspace_gb", 0, &entry->workspace_bytes, err) < 0 ||
        het_view_bandwidth(view, "intra_gb_s", &entry->intra, err) < 0 ||
        het_view_bandwidth(view, "inter_gb_s", &entry->inter, err) < 0 ||
        het_view_bandwidth(view, "inter_flow_gb_s", &entry->flow, err) < 0 ||
        het_view_number(&latency, 0, MAX_LATENCY_US, &latency_us, err) < 0 ||
        het_view_i32(&preference, -100, 100, &entry->preference, err) < 0)
        return -1;
    entry->latency_s = latency_us * SECONDS_PER_US;
    return 0;
}

struct cluster_reader {
    struct het_arena *arena;
    const struct het_hardware *hardware;
    struct het_cluster_type types[HET_MAX_TYPES];
    /* Found in `hardware` or NULL; next number of an unnamed node. */
    const struct het_gpu_type *parts[HET_MAX_TYPES];
    uint32_t next_number[HET_MAX_TYPES];
    size_t type_count;
    const struct het_level *levels;
    size_t level_count;
    const struct het_network *network;
    struct het_domain *domains; /* [HET_MAX_DOMAINS], if there are levels */
    size_t domain_count;
};

/* Position of the type; HET_MAX_TYPES if there are too many. What entries of one type say
 * is merged: the least memory, the first profile name and workspace. */
static size_t get_type(struct cluster_reader *reader, const struct node_entry *entry)
{
    size_t t = 0;
    while (t < reader->type_count && strcmp(reader->types[t].name, entry->type))
        t++;
    if (t == HET_MAX_TYPES)
        return t;
    struct het_cluster_type *type = &reader->types[t];
    if (t == reader->type_count) {
        reader->type_count++;
        *type = (struct het_cluster_type){ .name = entry->type };
        reader->parts[t] =
            het_hardware_find_sized(reader->hardware, entry->type, entry->memory_bytes);
        reader->next_number[t] = 0;
    }
    if (entry->memory_bytes &&
        (!type->memory_bytes || entry->memory_bytes < type->memory_bytes))
        type->memory_bytes = entry->memory_bytes;
    if (!type->profile_name)
        type->profile_name = entry->profile;
    if (!type->workspace_bytes)
        type->workspace_bytes = entry->workspace_bytes;
    return t;
}

/* Fills what no entry said. */
static void complete_type(const struct cluster_reader *reader, size_t t,
                          struct het_cluster_type *type)
{
    const struct het_gpu_type *part = reader->parts[t];
    if (part) {
        if (!type->memory_bytes)
            type->memory_bytes = part->memory_bytes;
        if (!type->profile_name)
            type->profile_name = part->profile ? part->profile : part->name;
        if (!type->workspace_bytes)
            type->workspace_bytes = part->workspace_bytes;
        type->price_per_hour = part->price_per_hour;
    }
    if (!type->profile_name)
        type->profile_name = type->name;
    if (!type->workspace_bytes)
        type->workspace_bytes = het_hardware_default_workspace(type->memory_bytes);
}

static const char *node_name(struct cluster_reader *reader,
                             const struct node_entry *entry, size_t type, uint32_t copy)
{
    if (entry->name && !entry->repeat)
        return entry->name;
    if (entry->name)
        return het_arena_printf(reader->arena, "%s-%u", entry->name, copy);
    char *name = het_arena_printf(reader->arena, "%s-%u", entry->type,
                                  reader->next_number[type]++);
    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return name;
}

/* What the network calls the type: its own name, the profile's, or another name of the
 * part; NULL if it has none. */
static const char *name_in_network(const struct cluster_reader *reader, size_t type)
{
    const struct het_network *network = reader->network;
    const struct het_cluster_type *own = &reader->types[type];
    const char *names[] = { own->name, own->profile_name };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (size_t i = 0; names[n] && i < network->place_count; i++)
            if (!strcmp(network->places[i].type, names[n]))
                return names[n];
    for (size_t i = 0; reader->parts[type] && i < network->place_count; i++)
        if (het_hardware_find_sized(reader->hardware, network->places[i].type,
                                    own->memory_bytes) == reader->parts[type])
            return network->places[i].type;
    return NULL;
}

/* Puts the most that the curves say of a large message in the place of a node's figures:
 * searches that look at one number a link see the measured one, and bounds no less than
 * any send gets. */
static void use_curves(const struct het_network *network, struct het_node *node)
{
    const double large_bytes = 1e9;
    uint32_t place = node->place - 1;
    double all = 0, inside = 0;
    for (uint32_t gpus = 1; gpus <= node->gpu_count; gpus++) {
        all = fmax(all, het_network_between(network, place, place, gpus, large_bytes));
        inside = fmax(inside, het_network_inside(network, place, gpus, large_bytes));
    }
    double one = het_network_between(network, place, place, 1, large_bytes);
    if (all > 0) {
        node->uplink_bytes_per_s = all;
        node->uplink_source = HET_LINK_MEASURED;
        node->flow_bytes_per_s = one < all ? one : 0;
    }
    if (inside > 0) {
        node->intra_bytes_per_s = inside;
        node->intra_source = HET_LINK_MEASURED;
    }
}

/* Points the nodes at their places: their types', in the zone that one of their domains
 * names. */
static void find_places(struct cluster_reader *reader, struct het_node *nodes,
                        size_t node_count)
{
    const struct het_network *network = reader->network;
    const char *names[HET_MAX_TYPES] = { NULL };
    for (size_t t = 0; t < reader->type_count; t++)
        names[t] = name_in_network(reader, t);
    for (size_t i = 0; i < node_count; i++) {
        const char *type = names[nodes[i].type];
        if (!type)
            continue;
        uint32_t place = het_network_find_place(network, NULL, type);
        for (size_t level = 0; level < reader->level_count; level++) {
            uint32_t domain = nodes[i].domain[level];
            const char *zone = domain ? reader->domains[domain - 1].name : NULL;
            uint32_t exact = het_network_find_place(network, zone, type);
            const char *found = network->places[exact].zone;
            if (zone && found && !strcmp(found, zone))
                place = exact;
        }
        nodes[i].place = place + 1;
        use_curves(network, &nodes[i]);
    }
}

/* What somebody says of a link; not above 0: nothing. */
struct rate {
    double bytes_per_s;
    enum het_link_source source;
};

static struct rate first_rate(const struct rate *rates, size_t count)
{
    size_t i = 0;
    while (i + 1 < count && !(rates[i].bytes_per_s > 0))
        i++;
    return rates[i];
}

static const struct het_instance *find_instance(const struct het_hardware *hardware,
                                                const char *name)
{
    for (size_t i = 0; i < hardware->instance_count; i++)
        if (!strcmp(hardware->instances[i].name, name))
            return &hardware->instances[i];
    return NULL;
}

/* The administrator's figures come first, of the machine before those of the GPU type;
 * then what is known of the instance type and of the GPU type, then the defaults. */
static void choose_rates(const struct het_hardware *hardware,
                         const struct het_gpu_type *part, const struct node_entry *entry,
                         struct het_node *node)
{
    static const struct het_gpu_type no_part = { 0 };
    static const struct het_instance no_instance = { 0 };
    const char *name = entry->instance_type ? entry->instance_type : "";
    const struct het_instance *own = find_instance(hardware, name);
    const struct het_instance *known = het_instance_find(name);
    part = part ? part : &no_part;
    own = own ? own : &no_instance;
    known = known ? known : &no_instance;
    const struct rate inside[] = {
        { entry->intra, HET_LINK_STATED },
        { own->intra_bytes_per_s, HET_LINK_STATED },
        { part->intra_is_stated ? part->intra_bytes_per_s : 0, HET_LINK_STATED },
        { known->intra_bytes_per_s, HET_LINK_INSTANCE },
        { part->intra_bytes_per_s, HET_LINK_GPU_TYPE },
        { HET_DEFAULT_INTRA_BYTES_PER_S, HET_LINK_DEFAULT },
    };
    const struct rate out[] = {
        { entry->inter, HET_LINK_STATED },
        { own->uplink_bytes_per_s, HET_LINK_STATED },
        { part->inter_bytes_per_s, HET_LINK_STATED },
        { known->uplink_bytes_per_s, HET_LINK_INSTANCE },
        { HET_DEFAULT_INTER_BYTES_PER_S, HET_LINK_DEFAULT },
    };
    struct rate intra = first_rate(inside, sizeof inside / sizeof *inside);
    struct rate uplink = first_rate(out, sizeof out / sizeof *out);
    node->intra_bytes_per_s = intra.bytes_per_s;
    node->intra_source = intra.source;
    node->uplink_bytes_per_s = uplink.bytes_per_s;
    node->uplink_source = uplink.source;
}

/* Whose GPUs the entry has: the entry's word, the hardware's, or what the name says. */
static const char *vendor_of(const struct node_entry *entry,
                             const struct het_gpu_type *part)
{
    if (entry->vendor)
        return entry->vendor;
    if (part && part->vendor)
        return part->vendor;
    return het_vendor_of_type(part ? part->name : entry->type);
}

static void fill_nodes(struct cluster_reader *reader, const struct node_entry *entry,
                       size_t type, struct het_node *nodes)
{
    struct het_node node = {
        .type = (uint32_t)type,
        .gpu_count = entry->gpus,
        .instance_type = entry->instance_type,
        .vendor = vendor_of(entry, reader->parts[type]),
        .flow_bytes_per_s = entry->flow,
        .latency_s = entry->latency_s,
        .preference = entry->preference,
    };
    for (uint32_t level = 0; level < reader->level_count; level++)
        node.domain[level] = entry->domain[level];
    choose_rates(reader->hardware, reader->parts[type], entry, &node);
    uint32_t copies = entry->repeat ? entry->repeat : 1;
    for (uint32_t i = 0; i < copies; i++) {
        nodes[i] = node;
        nodes[i].name = node_name(reader, entry, type, i);
    }
}

/* Sorts the types by name and points the nodes at their new places. */
static const struct het_cluster_type *
sort_types(struct cluster_reader *reader, struct het_node *nodes, size_t node_count)
{
    struct het_cluster_type *sorted =
        HET_ARENA_ARRAY(reader->arena, struct het_cluster_type, reader->type_count);
    uint32_t place[HET_MAX_TYPES] = { 0 };
    for (size_t t = 0; t < reader->type_count; t++) {
        for (size_t other = 0; other < reader->type_count; other++)
            place[t] += strcmp(reader->types[other].name, reader->types[t].name) < 0;
        sorted[place[t]] = reader->types[t];
        complete_type(reader, t, &sorted[place[t]]);
    }
    for (size_t i = 0; i < node_count; i++)
        nodes[i].type = place[nodes[i].type];
    return sorted;
}

/* The zone or rack of that name, plus one; 0 if there are too many. */
static uint32_t get_domain(struct cluster_reader *reader, uint32_t level,
                           const char *name)
{
    for (size_t i = reader->domain_count; i; i--)
        if (reader->domains[i - 1].level == level &&
            !strcmp(reader->domains[i - 1].name, name))
            return (uint32_t)i;
    if (reader->domain_count == HET_MAX_DOMAINS)
        return 0;
    reader->domains[reader->domain_count++] = (struct het_domain){
        .name = name,
        .level = level,
        .uplink_bytes_per_s = reader->levels[level].uplink_bytes_per_s,
    };
    return (uint32_t)reader->domain_count;
}

/* { LABEL: zone or rack }, of labels that are levels. */
static int read_domains(struct cluster_reader *reader, const struct het_view *view,
                        struct node_entry *entry, struct het_error *err)
{
    struct het_view domains = het_view_get(view, "levels");
    const char *labels[HET_MAX_LEVELS + 1] = { NULL };
    for (size_t i = 0; i < reader->level_count; i++)
        labels[i] = reader->levels[i].label;
    if (!domains.json)
        return 0;
    if (!reader->level_count)
        return het_view_fail(&domains, err,
                             "the cluster and the hardware have no \"levels\"");
    if (het_view_object(&domains, err) < 0 || het_view_members(&domains, labels, err) < 0)
        return -1;
    for (uint32_t i = 0; i < reader->level_count; i++) {
        struct het_view view_of_name = het_view_get(&domains, labels[i]);
        const char *name = NULL;
        if (het_view_name(&view_of_name, reader->arena, &name, err) < 0)
            return -1;
        if (name && !(entry->domain[i] = get_domain(reader, i, name)))
            return het_view_fail(&view_of_name, err, "more than %u zones and racks",
                                 HET_MAX_DOMAINS);
    }
    return 0;
}

static int read_entries(struct cluster_reader *reader, const struct het_view *list,
                        size_t count, struct node_entry *entries, size_t *ret_nodes,
                        struct het_error *err)
{
    size_t node_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct het_view view = het_view_at(list, i);
        if (read_node_entry(reader->arena, &view, &entries[i], err) < 0 ||
            read_domains(reader, &view, &entries[i], err) < 0)
            return -1;
        node_count += entries[i].repeat ? entries[i].repeat : 1;
        if (node_count > HET_MAX_NODES)
            return het_view_fail(&view, err, "more than %u nodes together",
                                 HET_MAX_NODES);
    }
    *ret_nodes = node_count;
    return 0;
}

/* A node's name and the entry that it comes from. */
struct named_entry {
    const char *name;
    size_t entry;
};

static int compare_named_entries(const void *a, const void *b)
{
    const struct named_entry *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->entry > y->entry) - (x->entry < y->entry);
}

/* Copies count as their entry. */
static int check_names(const struct het_view *list, const struct node_entry *entries,
                       const struct het_node *nodes, size_t node_count,
                       struct het_error *err)
{
    auto_free struct named_entry *names = xcalloc(node_count, sizeof *names);
    for (size_t i = 0, entry = 0, copy = 0; i < node_count; i++, copy++) {
        if (copy && copy >= entries[entry].repeat) {
            entry++;
            copy = 0;
        }
        names[i] = (struct named_entry){ nodes[i].name, entry };
    }
    qsort(names, node_count, sizeof *names, compare_named_entries);
    for (size_t i = 1; i < node_count; i++)
        if (!strcmp(names[i - 1].name, names[i].name)) {
            struct het_view item = het_view_at(list, names[i].entry);
            struct het_view name = het_view_get(&item, "name");
            return het_view_fail(&name, err,
                                 "two nodes are called %s, this one and one of "
                                 "nodes[%zu]; rename one of them",
                                 names[i].name, names[i - 1].entry);
        }
    return 0;
}

static struct het_cluster *make_cluster(struct cluster_reader *reader,
                                        struct het_node *nodes, size_t node_count)
{
    struct het_cluster *cluster = het_arena_alloc(reader->arena, sizeof *cluster);
    struct het_domain *domains =
        HET_ARENA_ARRAY(reader->arena, struct het_domain, reader->domain_count);
    for (size_t i = 0; i < reader->domain_count; i++)
        domains[i] = reader->domains[i];
    if (reader->network)
        find_places(reader, nodes, node_count);
    *cluster = (struct het_cluster){
        .types = sort_types(reader, nodes, node_count),
        .type_count = reader->type_count,
        .nodes = nodes,
        .node_count = node_count,
        .domains = domains,
        .domain_count = reader->domain_count,
        .level_count = (uint32_t)reader->level_count,
        .network = reader->network,
        .hardware = reader->hardware,
    };
    return cluster;
}

static int read_short_form(struct het_arena *arena, const json_t *json,
                           const struct het_hardware *hardware,
                           const struct het_cluster **ret, struct het_error *err)
{
    struct het_view root = het_view_root(json);
    struct het_view list = het_view_get(&root, "nodes");
    size_t count = 0, node_count = 0;
    if (!json_is_object(json) || !list.json)
        return het_fail(err, HET_BAD_INPUT,
                        "must be an object with a list \"nodes\", or the output of "
                        "kubectl get nodes -o json");
    if (het_view_members(&root, cluster_fields, err) < 0 ||
        het_view_array(&list, HET_MAX_NODES, &count, err) < 0)
        return -1;
    if (!count)
        return het_view_fail(&list, err, "must have at least one node");
    struct cluster_reader *reader = het_arena_alloc(arena, sizeof *reader);
    reader->arena = arena;
    reader->hardware = hardware;
    reader->levels = hardware->levels;
    reader->level_count = hardware->level_count;
    reader->network = hardware->network;
    if (het_hardware_json_levels(arena, &root, &reader->levels, &reader->level_count,
                                 err) < 0 ||
        het_hardware_json_network(arena, &root, &reader->network, err) < 0)
        return -1;
    reader->domains = HET_ARENA_ARRAY(arena, struct het_domain,
                                      reader->level_count ? HET_MAX_DOMAINS : 0);
    struct node_entry *entries = HET_ARENA_ARRAY(arena, struct node_entry, count);
    if (read_entries(reader, &list, count, entries, &node_count, err) < 0)
        return -1;
    struct het_node *nodes = HET_ARENA_ARRAY(arena, struct het_node, node_count);
    size_t filled = 0;
    for (size_t i = 0; i < count; i++) {
        size_t type = get_type(reader, &entries[i]);
        if (type == HET_MAX_TYPES)
            return het_view_fail(&list, err, "more than %u GPU types", HET_MAX_TYPES);
        fill_nodes(reader, &entries[i], type, nodes + filled);
        filled += entries[i].repeat ? entries[i].repeat : 1;
    }
    struct het_cluster *cluster = make_cluster(reader, nodes, node_count);
    if (check_names(&list, entries, nodes, node_count, err) < 0)
        return -1;
    if (het_cluster_check(cluster, err) < 0)
        return -1;
    *ret = cluster;
    return 0;
}

int het_cluster_json_read(struct het_arena *arena, const json_t *json,
                          const struct het_hardware *hardware,
                          const struct het_cluster **ret, struct het_error *err)
{
    if (!het_node_is_list(json))
        return read_short_form(arena, json, hardware, ret, err);
    json_auto_t *short_form = NULL;
    if (het_node_list_cluster(arena, json, NULL, hardware, &short_form, NULL, err) < 0)
        return -1;
    return read_short_form(arena, short_form, hardware, ret, err);
}
