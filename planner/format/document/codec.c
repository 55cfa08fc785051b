#include "planner/format/document/codec.h"

#include "planner/base/vendor.h"
#include "planner/cost/migrate.h"
#include "planner/format/kubernetes_node.h"
#include "planner/format/network_json.h"
#include "planner/format/profile/metis.h"
#include "planner/format/profile/model.h"
#include "planner/format/profile/sailor.h"
#include "planner/model/instance_type.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
/* EVP, which replaces SHA256_Init, loads modules: a static program has no loader. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_PER_GIB    0x1p30
#define BYTES_PER_GB     1e9
#define SECONDS_PER_US   1e-6
#define MAX_MEMORY_GIB   16384.0
#define MAX_GB_S         1e6
#define MAX_LATENCY_US   1e7
#define MAX_TFLOPS       1e6
#define FLOPS_PER_TFLOPS 1e12
#define MAX_PRICE        1e9
#define MAX_LIST         4096u
#define MAX_ALIASES      64u
#define MAX_PLAN_GPUS    1048576u
#define MAX_MICROBATCH   UINT32_MAX
#define API_VERSION      "heterotrain.io/v1alpha1"

/* ---- hardware ---- */

static const char *const hardware_fields[] = { "gpuTypes", "instanceTypes", "levels",
                                               "network",  "storageGBs",    NULL };
static const char *const gpu_type_fields[] = {
    "name",       "aliases",      "profile",      "memoryGiB",  "intraGBs",
    "interGBs",   "workspaceGiB", "pricePerHour", "bf16TFLOPS", "fp16TFLOPS",
    "tf32TFLOPS", "fp32TFLOPS",   "memoryGBs",    "vendor",     NULL
};

static int read_bandwidth(const struct het_view *object, const char *key, double *ret,
                          struct het_error *err)
{
    struct het_view view = het_view_get(object, key);
    double gigabytes = 0;
    if (het_view_number(&view, 1e-6, MAX_GB_S, &gigabytes, err) < 0)
        return -1;
    if (view.json)
        *ret = gigabytes * BYTES_PER_GB;
    return 0;
}

static int read_gibibytes(const struct het_view *object, const char *key, double low,
                          uint64_t *ret, struct het_error *err)
{
    struct het_view view = het_view_get(object, key);
    double gibibytes = 0;
    if (het_view_number(&view, low, MAX_MEMORY_GIB, &gibibytes, err) < 0)
        return -1;
    if (view.json)
        *ret = (uint64_t)(gibibytes * BYTES_PER_GIB);
    return 0;
}

static int read_aliases(struct het_arena *arena, const struct het_view *entry,
                        struct het_gpu_type *type, struct het_error *err)
{
    struct het_view list = het_view_get(entry, "aliases");
    size_t count = 0;
    if (het_view_array(&list, MAX_ALIASES, &count, err) < 0)
        return -1;
    const char **aliases = HET_ARENA_ARRAY(arena, const char *, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        if (het_view_need(&item, err) < 0 ||
            het_view_name(&item, arena, &aliases[i], err) < 0)
            return -1;
    }
    type->aliases = aliases;
    type->alias_count = count;
    return 0;
}

/* In small letters, as vendor.h has them; what is absent leaves `ret` alone. */
static int read_vendor(struct het_arena *arena, const struct het_view *object,
                       const char **ret, struct het_error *err)
{
    struct het_view view = het_view_get(object, "vendor");
    const char *name = NULL;
    if (het_view_name(&view, arena, &name, err) < 0)
        return -1;
    if (!name)
        return 0;
    char *small = het_arena_strdup(arena, name);
    for (char *c = small; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    *ret = small;
    return 0;
}

/* TFLOP/s. */
static int read_rate(const struct het_view *object, const char *key, double *ret,
                     struct het_error *err)
{
    struct het_view view = het_view_get(object, key);
    double rate = 0;
    if (het_view_number(&view, 1e-3, MAX_TFLOPS, &rate, err) < 0)
        return -1;
    *ret = rate * FLOPS_PER_TFLOPS;
    return 0;
}

static int read_gpu_type(struct het_arena *arena, const struct het_view *entry,
                         struct het_gpu_type *type, struct het_error *err)
{
    struct het_view name = het_view_get(entry, "name");
    struct het_view profile = het_view_get(entry, "profile");
    struct het_view price = het_view_get(entry, "pricePerHour");
    if (het_view_need(entry, err) < 0 || het_view_object(entry, err) < 0 ||
        het_view_members(entry, gpu_type_fields, err) < 0 ||
        het_view_need(&name, err) < 0 ||
        het_view_name(&name, arena, &type->name, err) < 0 ||
        het_view_name(&profile, arena, &type->profile, err) < 0 ||
        read_vendor(arena, entry, &type->vendor, err) < 0 ||
        read_aliases(arena, entry, type, err) < 0 ||
        read_gibibytes(entry, "memoryGiB", 0.0625, &type->memory_bytes, err) < 0 ||
        read_gibibytes(entry, "workspaceGiB", 0, &type->workspace_bytes, err) < 0 ||
        read_bandwidth(entry, "intraGBs", &type->intra_bytes_per_s, err) < 0 ||
        read_bandwidth(entry, "interGBs", &type->inter_bytes_per_s, err) < 0 ||
        read_bandwidth(entry, "memoryGBs", &type->memory_bytes_per_s, err) < 0 ||
        read_rate(entry, "bf16TFLOPS", &type->bf16_flops, err) < 0 ||
        read_rate(entry, "fp16TFLOPS", &type->fp16_flops, err) < 0 ||
        read_rate(entry, "tf32TFLOPS", &type->tf32_flops, err) < 0 ||
        read_rate(entry, "fp32TFLOPS", &type->fp32_flops, err) < 0)
        return -1;
    return het_view_number(&price, 0, MAX_PRICE, &type->price_per_hour, err);
}

static const char *const instance_type_fields[] = { "name", "intraGBs", "interGBs",
                                                    NULL };

static int read_instance_type(struct het_arena *arena, const struct het_view *entry,
                              struct het_instance *ret, struct het_error *err)
{
    struct het_view name = het_view_get(entry, "name");
    if (het_view_need(entry, err) < 0 || het_view_object(entry, err) < 0 ||
        het_view_members(entry, instance_type_fields, err) < 0 ||
        het_view_need(&name, err) < 0 ||
        het_view_name(&name, arena, &ret->name, err) < 0 ||
        read_bandwidth(entry, "intraGBs", &ret->intra_bytes_per_s, err) < 0 ||
        read_bandwidth(entry, "interGBs", &ret->uplink_bytes_per_s, err) < 0)
        return -1;
    if (!(ret->intra_bytes_per_s > 0) && !(ret->uplink_bytes_per_s > 0))
        return het_view_fail(entry, err, "must state intraGBs or interGBs of %s",
                             ret->name);
    return 0;
}

static const struct het_instance *find_instance(const struct het_instance *instances,
                                                size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(instances[i].name, name))
            return &instances[i];
    return NULL;
}

static int read_instance_types(struct het_arena *arena, const struct het_view *root,
                               const struct het_instance **ret, size_t *ret_count,
                               struct het_error *err)
{
    struct het_view list = het_view_get(root, "instanceTypes");
    size_t count = 0;
    if (het_view_array(&list, MAX_LIST, &count, err) < 0)
        return -1;
    struct het_instance *instances = HET_ARENA_ARRAY(arena, struct het_instance, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view entry = het_view_at(&list, i);
        if (read_instance_type(arena, &entry, &instances[i], err) < 0)
            return -1;
        if (find_instance(instances, i, instances[i].name))
            return het_view_fail(&entry, err, "two instance types are named %s",
                                 instances[i].name);
    }
    *ret = instances;
    *ret_count = count;
    return 0;
}

static const char *const level_fields[] = { "label", "uplinkGBs", "uplink_gb_s", NULL };

static int read_level(struct het_arena *arena, const struct het_view *entry,
                      struct het_level *level, struct het_error *err)
{
    struct het_view label = het_view_get(entry, "label");
    struct het_view uplink = het_view_get(entry, "uplinkGBs");
    if (het_view_need(entry, err) < 0 || het_view_object(entry, err) < 0 ||
        het_view_members(entry, level_fields, err) < 0 ||
        het_view_need(&label, err) < 0 ||
        het_view_name(&label, arena, &level->label, err) < 0 ||
        read_bandwidth(entry, "uplinkGBs", &level->uplink_bytes_per_s, err) < 0 ||
        read_bandwidth(entry, "uplink_gb_s", &level->uplink_bytes_per_s, err) < 0)
        return -1;
    return level->uplink_bytes_per_s > 0 ? 0 : het_view_need(&uplink, err);
}

static int read_levels(struct het_arena *arena, const struct het_view *root,
                       const struct het_level **ret, size_t *ret_count,
                       struct het_error *err)
{
    struct het_view list = het_view_get(root, "levels");
    size_t count = 0;
    if (!list.json)
        return 0;
    if (het_view_array(&list, HET_MAX_LEVELS, &count, err) < 0)
        return -1;
    struct het_level *levels = HET_ARENA_ARRAY(arena, struct het_level, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view entry = het_view_at(&list, i);
        if (read_level(arena, &entry, &levels[i], err) < 0)
            return -1;
        for (size_t k = 0; k < i; k++)
            if (!strcmp(levels[k].label, levels[i].label))
                return het_view_fail(&entry, err, "two levels have the label %s",
                                     levels[i].label);
    }
    *ret = levels;
    *ret_count = count;
    return 0;
}

/* Measured curves; a file's name is for those who can read files. */
static int read_network(struct het_arena *arena, const struct het_view *root,
                        const struct het_network **ret, struct het_error *err)
{
    struct het_view network = het_view_get(root, "network");
    if (!network.json)
        return 0;
    if (json_is_string(network.json))
        return het_view_fail(&network, err,
                             "\"%.60s\" is the name of a file; its content must stand "
                             "here",
                             json_string_value(network.json));
    return het_network_read(arena, network.json, ret, err) < 0
               ? het_view_wrap(&network, err)
               : 0;
}

int het_codec_hardware(struct het_arena *arena, const json_t *json,
                       const struct het_hardware *base, const struct het_hardware **ret,
                       struct het_error *err)
{
    struct het_view root = het_view_root(json);
    struct het_view list = het_view_get(&root, "gpuTypes");
    size_t count = 0;
    if (!json_is_object(json))
        return het_fail(err, HET_BAD_INPUT, "must be an object with a list \"gpuTypes\"");
    if (het_view_members(&root, hardware_fields, err) < 0 ||
        het_view_array(&list, MAX_LIST, &count, err) < 0)
        return -1;
    struct het_gpu_type *types = HET_ARENA_ARRAY(arena, struct het_gpu_type, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view entry = het_view_at(&list, i);
        if (read_gpu_type(arena, &entry, &types[i], err) < 0)
            return -1;
    }
    struct het_hardware extra = { .types = types, .type_count = count };
    if (read_instance_types(arena, &root, &extra.instances, &extra.instance_count, err) <
            0 ||
        read_levels(arena, &root, &extra.levels, &extra.level_count, err) < 0 ||
        read_network(arena, &root, &extra.network, err) < 0 ||
        read_bandwidth(&root, "storageGBs", &extra.storage_bytes_per_s, err) < 0)
        return -1;
    *ret = het_hardware_merge(arena, base, &extra);
    return 0;
}

/* ---- cluster ---- */

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
        read_vendor(arena, view, &entry->vendor, err) < 0 ||
        het_view_need(&gpus, err) < 0 ||
        het_view_u32(&gpus, 1, HET_MAX_NODE_GPUS, &entry->gpus, err) < 0 ||
        het_view_u32(&repeat, 1, HET_MAX_NODES, &entry->repeat, err) < 0 ||
        read_gibibytes(view, "memory_gb", 0.0625, &entry->memory_bytes, err) < 0 ||
        read_gibibytes(view, "workspace_gb", 0, &entry->workspace_bytes, err) < 0 ||
        read_bandwidth(view, "intra_gb_s", &entry->intra, err) < 0 ||
        read_bandwidth(view, "inter_gb_s", &entry->inter, err) < 0 ||
        read_bandwidth(view, "inter_flow_gb_s", &entry->flow, err) < 0 ||
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
    const double large_bytes = BYTES_PER_GB;
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

/* The administrator's figures come first, of the machine before those of the GPU type;
 * then what is known of the instance type and of the GPU type, then the defaults. */
static void choose_rates(const struct het_hardware *hardware,
                         const struct het_gpu_type *part, const struct node_entry *entry,
                         struct het_node *node)
{
    static const struct het_gpu_type no_part = { 0 };
    static const struct het_instance no_instance = { 0 };
    const char *name = entry->instance_type ? entry->instance_type : "";
    const struct het_instance *own =
        find_instance(hardware->instances, hardware->instance_count, name);
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
    if (read_levels(arena, &root, &reader->levels, &reader->level_count, err) < 0 ||
        read_network(arena, &root, &reader->network, err) < 0)
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

int het_codec_cluster(struct het_arena *arena, const json_t *json,
                      const struct het_hardware *hardware, const struct het_cluster **ret,
                      struct het_error *err)
{
    if (!het_node_is_list(json))
        return read_short_form(arena, json, hardware, ret, err);
    json_auto_t *short_form = NULL;
    if (het_node_list_cluster(arena, json, NULL, hardware, &short_form, NULL, err) < 0)
        return -1;
    return read_short_form(arena, short_form, hardware, ret, err);
}

/* ---- profile ---- */

int het_codec_profile(struct het_arena *arena, const json_t *json,
                      const struct het_profile **ret, struct het_error *err)
{
    if (json_object_get(json, "files"))
        return het_profile_metis_read(arena, json, ret, err);
    if (json_object_get(json, "layerTimes"))
        return het_profile_sailor_read(arena, json, ret, err);
    const char *kind = json_string_value(json_object_get(json, "kind"));
    if (kind && (!strcmp(kind, "ModelProfile") || !strcmp(kind, "ClusterModelProfile")))
        return het_profile_model_read(arena, json, ret, err);
    return het_fail(
        err, HET_BAD_INPUT,
        "kind: must be ModelProfile or ClusterModelProfile, is %.60s (or give "
        "a folder of measurements: DeviceType.*_tp*_bs*.json or <TYPE>.json files)",
        kind ? kind : "missing");
}

/* ---- workload ---- */

static const char *const job_fields[] = { "globalBatchSize",
                                          "sequenceLength",
                                          "precision",
                                          "optimizer",
                                          "memoryHeadroomPercent",
                                          "stateReserveBytes",
                                          "gradientOverlapPercent",
                                          "microBatchSizes",
                                          "minGPUs",
                                          "maxGPUs",
                                          "gpuTypes",
                                          "constraints",
                                          "runtime",
                                          "algorithm",
                                          "effort",
                                          "seed",
                                          "from",
                                          "extrapolate",
                                          "migration",
                                          "metisVariance",
                                          "metisPermute",
                                          "metisSizes",
                                          "ampSpeeds",
                                          "ampSends",
                                          "dittoFolding",
                                          "metisRows",
                                          "memoryModel",
                                          "statistics",
                                          NULL };
static const char *const type_limit_fields[] = { "name", "minGPUs", "maxGPUs",
                                                 "preference", NULL };
/* The headroom is for the controller, which hands it on beside them. */
static const char *const constraint_fields[] = { "dataParallel",
                                                 "tensorParallel",
                                                 "pipelineParallel",
                                                 "memoryHeadroomPercent",
                                                 "uniformTensorParallel",
                                                 "nonUniformDataParallel",
                                                 "recompute",
                                                 NULL };
static const char *const data_parallel_fields[] = { "min", "max", NULL };
static const char *const tensor_parallel_fields[] = { "allowed", NULL };
static const char *const pipeline_parallel_fields[] = { "max", NULL };

static const char *const recompute_constraints[] = { "Auto", "None" };

static int read_u32_list(struct het_arena *arena, const struct het_view *list,
                         uint32_t most, const uint32_t **ret, size_t *ret_count,
                         struct het_error *err)
{
    size_t count = 0;
    if (het_view_array(list, MAX_LIST, &count, err) < 0)
        return -1;
    uint32_t *values = HET_ARENA_ARRAY(arena, uint32_t, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(list, i);
        if (het_view_need(&item, err) < 0 ||
            het_view_u32(&item, 1, most, &values[i], err) < 0)
            return -1;
    }
    *ret = values;
    *ret_count = count;
    return 0;
}

static int read_type_limits(struct het_arena *arena, const struct het_view *job,
                            struct het_workload *workload, struct het_error *err)
{
    struct het_view list = het_view_get(job, "gpuTypes");
    size_t count = 0;
    if (het_view_array(&list, HET_MAX_TYPES, &count, err) < 0)
        return -1;
    struct het_type_limit *limits = HET_ARENA_ARRAY(arena, struct het_type_limit, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        struct het_view name = het_view_get(&item, "name");
        struct het_view least = het_view_get(&item, "minGPUs");
        struct het_view most = het_view_get(&item, "maxGPUs");
        struct het_view preference = het_view_get(&item, "preference");
        if (het_view_need(&item, err) < 0 || het_view_object(&item, err) < 0 ||
            het_view_members(&item, type_limit_fields, err) < 0 ||
            het_view_need(&name, err) < 0 ||
            het_view_name(&name, arena, &limits[i].type, err) < 0 ||
            het_view_u32(&least, 0, UINT32_MAX, &limits[i].min_gpus, err) < 0 ||
            het_view_u32(&most, 0, UINT32_MAX, &limits[i].max_gpus, err) < 0 ||
            het_view_i32(&preference, INT32_MIN, INT32_MAX, &limits[i].preference, err) <
                0)
            return -1;
    }
    workload->type_limits = limits;
    workload->type_limit_count = count;
    return 0;
}

static int read_constraints(struct het_arena *arena, const struct het_view *job,
                            struct het_workload *workload, struct het_error *err)
{
    struct het_view constraints = het_view_get(job, "constraints");
    struct het_view data = het_view_get(&constraints, "dataParallel");
    struct het_view data_min = het_view_get(&data, "min");
    struct het_view data_max = het_view_get(&data, "max");
    struct het_view tensor = het_view_get(&constraints, "tensorParallel");
    struct het_view allowed = het_view_get(&tensor, "allowed");
    struct het_view pipeline = het_view_get(&constraints, "pipelineParallel");
    struct het_view pipeline_max = het_view_get(&pipeline, "max");
    if (het_view_object(&constraints, err) < 0 || het_view_object(&data, err) < 0 ||
        het_view_object(&tensor, err) < 0 || het_view_object(&pipeline, err) < 0 ||
        het_view_members(&constraints, constraint_fields, err) < 0 ||
        het_view_members(&data, data_parallel_fields, err) < 0 ||
        het_view_members(&tensor, tensor_parallel_fields, err) < 0 ||
        het_view_members(&pipeline, pipeline_parallel_fields, err) < 0 ||
        het_view_u32(&data_min, 0, UINT32_MAX, &workload->min_data_parallel, err) < 0 ||
        het_view_u32(&data_max, 0, UINT32_MAX, &workload->max_data_parallel, err) < 0 ||
        het_view_u32(&pipeline_max, 0, UINT32_MAX, &workload->max_pipeline_parallel,
                     err) < 0)
        return -1;
    return read_u32_list(arena, &allowed, HET_MAX_NODE_GPUS, &workload->tensor_parallel,
                         &workload->tensor_parallel_count, err);
}

/* Constraints that programs have which cannot run every plan. */
static int read_freedoms(struct het_arena *arena, const struct het_view *job,
                         struct het_workload *workload, struct het_error *err)
{
    struct het_view constraints = het_view_get(job, "constraints");
    struct het_view uniform = het_view_get(&constraints, "uniformTensorParallel");
    struct het_view uneven = het_view_get(&constraints, "nonUniformDataParallel");
    struct het_view recompute = het_view_get(&constraints, "recompute");
    bool is_uniform = false, may_differ = true;
    const char *name = recompute_constraints[0];
    if (het_view_bool(&uniform, &is_uniform, err) < 0 ||
        het_view_bool(&uneven, &may_differ, err) < 0 ||
        het_view_name(&recompute, arena, &name, err) < 0)
        return -1;
    workload->no_recompute = !strcmp(name, recompute_constraints[1]);
    if (!workload->no_recompute && strcmp(name, recompute_constraints[0]))
        return het_view_fail(&recompute, err, "must be Auto or None");
    workload->runtime =
        het_runtime_without(arena, workload->runtime,
                            (is_uniform ? HET_FREEDOMS_OF_TENSOR_PARALLEL : 0) |
                                (may_differ ? 0 : HET_FREEDOMS_OF_SHARES));
    return 0;
}

/* Tokens of a sample, by default the profile's. */
static int read_sequence_length(const struct het_view *job,
                                const struct het_profile *profile,
                                struct het_workload *workload, struct het_error *err)
{
    struct het_view length = het_view_get(job, "sequenceLength");
    workload->sequence_length = profile->sequence_length;
    if (het_view_u32(&length, 1, INT32_MAX, &workload->sequence_length, err) < 0)
        return -1;
    if (profile->sequence_length && workload->sequence_length != profile->sequence_length)
        return het_view_fail(&length, err,
                             "is %u, but the profile was measured with %u; leave it out, "
                             "or give a profile of %u tokens",
                             workload->sequence_length, profile->sequence_length,
                             workload->sequence_length);
    return 0;
}

/* Precision and optimizer, by default the profile's. */
static int read_training(struct het_arena *arena, const struct het_view *job,
                         const struct het_profile *profile, struct het_workload *workload,
                         struct het_error *err)
{
    struct het_view precision = het_view_get(job, "precision");
    struct het_view optimizer = het_view_get(job, "optimizer");
    const char *name = NULL;
    workload->precision = profile->precision;
    workload->optimizer = profile->optimizer;
    if (het_view_name(&precision, arena, &name, err) < 0 ||
        (name && het_precision_parse(name, &workload->precision, err) < 0))
        return -1;
    if (workload->precision != profile->precision)
        return het_view_fail(
            &precision, err,
            "is %s, but the profile was measured in %s; leave it out, or "
            "give a profile in %s",
            het_precision_name(workload->precision),
            het_precision_name(profile->precision),
            het_precision_name(workload->precision));
    name = NULL;
    if (het_view_name(&optimizer, arena, &name, err) < 0 ||
        (name && het_optimizer_parse(name, &workload->optimizer, err) < 0))
        return -1;
    return 0;
}

static int read_runtime(struct het_arena *arena, const struct het_view *job,
                        struct het_workload *workload, struct het_error *err)
{
    struct het_view view = het_view_get(job, "runtime");
    const char *name = NULL;
    struct het_error unknown;
    if (het_view_name(&view, arena, &name, err) < 0)
        return -1;
    if (!name)
        return 0;
    workload->runtime = het_runtime_find(name, &unknown);
    return workload->runtime ? 0 : het_view_fail(&view, err, "%s", unknown.message);
}

static int read_metis_sizes(struct het_arena *arena, const struct het_view *job,
                            enum het_metis_sizes *ret, struct het_error *err)
{
    static const char *const names[] = { "auto", "powers", "any" };
    struct het_view sizes = het_view_get(job, "metisSizes");
    const char *name = names[HET_METIS_DEFAULT_SIZES];
    if (het_view_name(&sizes, arena, &name, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) {
            *ret = (enum het_metis_sizes)i;
            return 0;
        }
    return het_view_fail(&sizes, err, "must be auto, powers or any");
}

/* One of the two names, or the first where the field is left out. */
static int read_either(struct het_arena *arena, const struct het_view *job,
                       const char *field, const char *const names[2], bool *ret_second,
                       struct het_error *err)
{
    struct het_view view = het_view_get(job, field);
    const char *name = names[0];
    if (het_view_name(&view, arena, &name, err) < 0)
        return -1;
    if (strcmp(name, names[0]) != 0 && strcmp(name, names[1]) != 0)
        return het_view_fail(&view, err, "must be %s or %s", names[0], names[1]);
    *ret_second = !strcmp(name, names[1]);
    return 0;
}

static int read_metis_options(struct het_arena *arena, const struct het_view *job,
                              struct het_search_options *options, struct het_error *err)
{
    static const char *const rows[] = { "types", "mixed" };
    static const char *const memories[] = { "own", "metis" };
    struct het_view variance = het_view_get(job, "metisVariance");
    struct het_view permute = het_view_get(job, "metisPermute");
    bool is_mixed, is_metis;
    if (het_view_number(&variance, 0, 1, &options->metis_variance, err) < 0 ||
        het_view_u32(&permute, 0, HET_MAX_LAYERS, &options->metis_permute, err) < 0 ||
        read_metis_sizes(arena, job, &options->metis_sizes, err) < 0 ||
        read_either(arena, job, "metisRows", rows, &is_mixed, err) < 0 ||
        read_either(arena, job, "memoryModel", memories, &is_metis, err) < 0)
        return -1;
    options->metis_rows = is_mixed ? HET_METIS_MIXED_ROWS : HET_METIS_TYPE_ROWS;
    options->walk_memory = is_metis ? HET_WALK_MEMORY_METIS : HET_WALK_MEMORY_OURS;
    return 0;
}

static int read_amp_options(struct het_arena *arena, const struct het_view *job,
                            struct het_search_options *options, struct het_error *err)
{
    static const char *const speeds[] = { "own", "mean" };
    static const char *const sends[] = { "exposed", "hidden" };
    bool is_mean, is_hidden;
    if (read_either(arena, job, "ampSpeeds", speeds, &is_mean, err) < 0 ||
        read_either(arena, job, "ampSends", sends, &is_hidden, err) < 0)
        return -1;
    options->amp_speeds = is_mean ? HET_AMP_MEAN_SPEEDS : HET_AMP_OWN_SPEEDS;
    options->amp_sends = is_hidden ? HET_AMP_HIDDEN : HET_AMP_EXPOSED;
    return 0;
}

static int read_ditto_folding(struct het_arena *arena, const struct het_view *job,
                              enum het_ditto_folding *ret, struct het_error *err)
{
    static const char *const names[] = { "plain", "communication", "none" };
    struct het_view folding = het_view_get(job, "dittoFolding");
    const char *name = names[HET_DITTO_FOLD];
    if (het_view_name(&folding, arena, &name, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) {
            *ret = (enum het_ditto_folding)i;
            return 0;
        }
    return het_view_fail(&folding, err, "must be plain, communication or none");
}

static int read_search_options(struct het_arena *arena, const struct het_view *job,
                               struct het_search_options *options, struct het_error *err)
{
    struct het_view algorithm = het_view_get(job, "algorithm");
    struct het_view effort = het_view_get(job, "effort");
    struct het_view seed = het_view_get(job, "seed");
    struct het_view statistics = het_view_get(job, "statistics");
    options->algorithm = "auto";
    if (het_view_name(&algorithm, arena, &options->algorithm, err) < 0 ||
        het_view_u64(&effort, 0, UINT64_C(1) << 53, &options->effort, err) < 0 ||
        het_view_u64(&seed, 0, UINT64_C(1) << 53, &options->seed, err) < 0 ||
        het_view_bool(&statistics, &options->statistics, err) < 0 ||
        read_amp_options(arena, job, options, err) < 0 ||
        read_ditto_folding(arena, job, &options->ditto_folding, err) < 0)
        return -1;
    return read_metis_options(arena, job, options, err);
}

int het_codec_workload(struct het_arena *arena, const json_t *json,
                       const struct het_profile *profile, struct het_workload *ret,
                       struct het_search_options *ret_options, struct het_error *err)
{
    struct het_view job = het_view_root(json);
    struct het_view batch = het_view_get(&job, "globalBatchSize");
    struct het_view headroom = het_view_get(&job, "memoryHeadroomPercent");
    struct het_view reserve = het_view_get(&job, "stateReserveBytes");
    struct het_view overlap = het_view_get(&job, "gradientOverlapPercent");
    struct het_view sizes = het_view_get(&job, "microBatchSizes");
    struct het_view least = het_view_get(&job, "minGPUs");
    struct het_view most = het_view_get(&job, "maxGPUs");
    struct het_workload workload = { .state_reserve_bytes = -1 };
    struct het_search_options options = { 0 };
    double percent = -1, overlap_percent = 0;
    if (!json_is_object(json))
        return het_fail(err, HET_BAD_INPUT, "must be an object");
    if (het_view_members(&job, job_fields, err) < 0 || het_view_need(&batch, err) < 0 ||
        het_view_u32(&batch, 1, HET_MAX_GLOBAL_BATCH, &workload.global_batch, err) < 0 ||
        het_view_number(&headroom, 0, 90, &percent, err) < 0 ||
        het_view_number(&reserve, 0, 1e3, &workload.state_reserve_bytes, err) < 0 ||
        het_view_number(&overlap, 0, 100, &overlap_percent, err) < 0 ||
        read_u32_list(arena, &sizes, HET_MAX_MICROBATCH, &workload.microbatch_sizes,
                      &workload.microbatch_size_count, err) < 0 ||
        het_view_u32(&least, 0, UINT32_MAX, &workload.min_gpus, err) < 0 ||
        het_view_u32(&most, 0, UINT32_MAX, &workload.max_gpus, err) < 0 ||
        read_sequence_length(&job, profile, &workload, err) < 0 ||
        read_training(arena, &job, profile, &workload, err) < 0 ||
        read_type_limits(arena, &job, &workload, err) < 0 ||
        read_constraints(arena, &job, &workload, err) < 0 ||
        read_runtime(arena, &job, &workload, err) < 0 ||
        read_freedoms(arena, &job, &workload, err) < 0 ||
        read_search_options(arena, &job, &options, err) < 0)
        return -1;
    workload.memory_headroom = percent / 100;
    workload.gradient_overlap = overlap_percent / 100;
    if (het_workload_check(&workload, err) < 0)
        return -1;
    *ret = workload;
    *ret_options = options;
    return 0;
}

/* ---- plan in ---- */

static const char *const recompute_names[] = { "none", "selective", "full" };
#define RECOMPUTE_NAMES (sizeof recompute_names / sizeof *recompute_names)

static int read_gpus(struct het_arena *arena, const struct het_view *list,
                     const uint32_t **ret, size_t *ret_count, struct het_error *err)
{
    size_t count = 0;
    if (het_view_need(list, err) < 0 ||
        het_view_array(list, HET_MAX_NODE_GPUS, &count, err) < 0)
        return -1;
    uint32_t *gpus = HET_ARENA_ARRAY(arena, uint32_t, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(list, i);
        if (het_view_need(&item, err) < 0 ||
            het_view_u32(&item, 0, HET_MAX_NODE_GPUS - 1, &gpus[i], err) < 0)
            return -1;
    }
    *ret = gpus;
    *ret_count = count;
    return 0;
}

static int read_replica(struct het_arena *arena, const struct het_view *view,
                        struct het_replica *replica, struct het_error *err)
{
    struct het_view node = het_view_get(view, "node");
    struct het_view type = het_view_get(view, "gpuType");
    struct het_view size = het_view_get(view, "microBatchSize");
    struct het_view gpus = het_view_get(view, "gpus");
    size_t tp = 0;
    replica->node = replica->type = HET_UNBOUND;
    if (het_view_need(view, err) < 0 || het_view_object(view, err) < 0 ||
        het_view_need(&node, err) < 0 ||
        het_view_name(&node, arena, &replica->node_name, err) < 0 ||
        het_view_need(&type, err) < 0 ||
        het_view_name(&type, arena, &replica->type_name, err) < 0 ||
        het_view_need(&size, err) < 0 ||
        het_view_u32(&size, 0, MAX_MICROBATCH, &replica->microbatch_size, err) < 0 ||
        read_gpus(arena, &gpus, &replica->gpus, &tp, err) < 0)
        return -1;
    replica->tp = (uint32_t)tp;
    return 0;
}

static int read_recompute(struct het_arena *arena, const struct het_view *view,
                          enum het_recompute *ret, struct het_error *err)
{
    struct het_view field = het_view_get(view, "recompute");
    const char *name = recompute_names[HET_RECOMPUTE_NONE];
    if (het_view_name(&field, arena, &name, err) < 0)
        return -1;
    for (size_t i = 0; i < RECOMPUTE_NAMES; i++)
        if (!strcmp(name, recompute_names[i])) {
            *ret = (enum het_recompute)i;
            return 0;
        }
    return het_view_fail(&field, err, "must be none, selective or full");
}

static int read_stage(struct het_arena *arena, const struct het_view *view,
                      struct het_stage *stage, struct het_error *err)
{
    struct het_view first = het_view_get(view, "firstLayer");
    struct het_view layers = het_view_get(view, "layerCount");
    struct het_view list = het_view_get(view, "replicas");
    size_t count = 0;
    if (het_view_need(view, err) < 0 || het_view_object(view, err) < 0 ||
        het_view_need(&first, err) < 0 ||
        het_view_u32(&first, 0, HET_MAX_LAYERS, &stage->first_layer, err) < 0 ||
        het_view_need(&layers, err) < 0 ||
        het_view_u32(&layers, 0, HET_MAX_LAYERS, &stage->layer_count, err) < 0 ||
        read_recompute(arena, view, &stage->recompute, err) < 0 ||
        het_view_need(&list, err) < 0 ||
        het_view_array(&list, MAX_PLAN_GPUS, &count, err) < 0)
        return -1;
    struct het_replica *replicas = HET_ARENA_ARRAY(arena, struct het_replica, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        if (read_replica(arena, &item, &replicas[i], err) < 0)
            return -1;
    }
    stage->replicas = replicas;
    stage->replica_count = count;
    return 0;
}

static int read_pipeline(struct het_arena *arena, const struct het_view *view,
                         struct het_pipeline *pipeline, struct het_error *err)
{
    struct het_view microbatches = het_view_get(view, "microBatches");
    struct het_view list = het_view_get(view, "stages");
    size_t count = 0;
    if (het_view_need(view, err) < 0 || het_view_object(view, err) < 0 ||
        het_view_need(&microbatches, err) < 0 ||
        het_view_u32(&microbatches, 0, UINT32_MAX, &pipeline->microbatch_count, err) <
            0 ||
        het_view_need(&list, err) < 0 ||
        het_view_array(&list, HET_MAX_LAYERS, &count, err) < 0)
        return -1;
    struct het_stage *stages = HET_ARENA_ARRAY(arena, struct het_stage, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        if (read_stage(arena, &item, &stages[i], err) < 0)
            return -1;
    }
    pipeline->stages = stages;
    pipeline->stage_count = count;
    return 0;
}

static int read_pipelines(struct het_arena *arena, const struct het_view *root,
                          struct het_plan *plan, struct het_error *err)
{
    struct het_view list = het_view_get(root, "pipelines");
    size_t count = 0;
    if (het_view_need(&list, err) < 0 ||
        het_view_array(&list, MAX_PLAN_GPUS, &count, err) < 0)
        return -1;
    struct het_pipeline *pipelines = HET_ARENA_ARRAY(arena, struct het_pipeline, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        if (read_pipeline(arena, &item, &pipelines[i], err) < 0)
            return -1;
    }
    plan->pipelines = pipelines;
    plan->pipeline_count = count;
    return 0;
}

static int read_idle(struct het_arena *arena, const struct het_view *root,
                     struct het_plan *plan, struct het_error *err)
{
    struct het_view list = het_view_get(root, "idle");
    size_t count = 0;
    if (het_view_array(&list, HET_MAX_NODES, &count, err) < 0)
        return -1;
    struct het_idle *idle = HET_ARENA_ARRAY(arena, struct het_idle, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        struct het_view node = het_view_get(&item, "node");
        struct het_view gpus = het_view_get(&item, "gpus");
        if (het_view_need(&item, err) < 0 || het_view_object(&item, err) < 0 ||
            het_view_need(&node, err) < 0 ||
            het_view_name(&node, arena, &idle[i].node_name, err) < 0 ||
            read_gpus(arena, &gpus, &idle[i].gpus, &idle[i].gpu_count, err) < 0)
            return -1;
    }
    plan->idle = idle;
    plan->idle_count = count;
    return 0;
}

static int read_group(struct het_arena *arena, const struct het_view *item,
                      struct het_unused *ret, struct het_error *err)
{
    struct het_view reason = het_view_get(item, "reason");
    struct het_view type = het_view_get(item, "gpuType");
    struct het_view detail = het_view_get(item, "detail");
    struct het_view gpus = het_view_get(item, "gpus");
    struct het_view count = het_view_get(item, "nodeCount");
    struct het_view nodes = het_view_get(item, "nodes");
    const char *name = "", *unused;
    size_t names = 0;
    struct het_unused group = { .type = "", .detail = "" };
    if (het_view_need(item, err) < 0 || het_view_object(item, err) < 0 ||
        het_view_name(&reason, arena, &name, err) < 0 ||
        het_view_name(&type, arena, &group.type, err) < 0 ||
        het_view_name(&detail, arena, &group.detail, err) < 0 ||
        het_view_u32(&gpus, 1, HET_UNUSED_MOST, &group.gpus, err) < 0 ||
        het_view_u32(&count, 1, HET_UNUSED_MOST, &group.node_count, err) < 0 ||
        het_view_array(&nodes, HET_UNUSED_NODES, &names, err) < 0)
        return -1;
    /* A later version may know more reasons. */
    if (!het_unused_parse(arena, name, &group.reason, &unused))
        return 0;
    if (names != het_unused_name_count(&group))
        return het_view_fail(&nodes, err, "must have %zu names",
                             het_unused_name_count(&group));
    for (size_t i = 0; i < names; i++) {
        struct het_view node = het_view_at(&nodes, i);
        if (het_view_need(&node, err) < 0 ||
            het_view_name(&node, arena, &group.nodes[i], err) < 0)
            return -1;
    }
    *ret = group;
    return 0;
}

int het_codec_unused(struct het_arena *arena, const struct het_view *list,
                     struct het_unused_list *ret, struct het_error *err)
{
    size_t count = 0;
    if (het_view_array(list, HET_UNUSED_GROUPS, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(list, i);
        struct het_unused group = { 0 };
        if (read_group(arena, &item, &group, err) < 0)
            return -1;
        het_unused_merge(arena, ret, &group, 1);
    }
    return 0;
}

static int read_unused(struct het_arena *arena, const struct het_view *root,
                       struct het_plan *plan, struct het_error *err)
{
    struct het_view view = het_view_get(root, "unused");
    struct het_unused_list list = { 0 };
    if (het_codec_unused(arena, &view, &list, err) < 0)
        return -1;
    plan->unused = list.groups;
    plan->unused_count = list.count;
    return 0;
}

static int read_peak_memory(struct het_arena *arena, const struct het_view *predicted,
                            struct het_prediction *ret, struct het_error *err)
{
    struct het_view list = het_view_get(predicted, "peakMemoryBytes");
    size_t count = 0;
    if (het_view_array(&list, MAX_PLAN_GPUS, &count, err) < 0)
        return -1;
    struct het_peak_memory *peaks = HET_ARENA_ARRAY(arena, struct het_peak_memory, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        struct het_view pipeline = het_view_get(&item, "pipeline");
        struct het_view stage = het_view_get(&item, "stage");
        struct het_view replica = het_view_get(&item, "replica");
        struct het_view bytes = het_view_get(&item, "bytes");
        struct het_view capacity = het_view_get(&item, "capacityBytes");
        if (het_view_object(&item, err) < 0 ||
            het_view_u32(&pipeline, 0, UINT32_MAX, &peaks[i].pipeline, err) < 0 ||
            het_view_u32(&stage, 0, UINT32_MAX, &peaks[i].stage, err) < 0 ||
            het_view_u32(&replica, 0, UINT32_MAX, &peaks[i].replica, err) < 0 ||
            het_view_u64(&bytes, 0, INT64_MAX, &peaks[i].bytes, err) < 0 ||
            het_view_u64(&capacity, 0, INT64_MAX, &peaks[i].capacity_bytes, err) < 0)
            return -1;
    }
    ret->peak_memory = peaks;
    ret->peak_memory_count = count;
    return 0;
}

static int read_assumed_link(struct het_arena *arena, const struct het_view *item,
                             struct het_assumed_link *ret, struct het_error *err)
{
    struct het_view type = het_view_get(item, "gpuType");
    struct het_view instance = het_view_get(item, "instanceType");
    struct het_view link = het_view_get(item, "link");
    struct het_view from = het_view_get(item, "from");
    const char *where = "", *who = "";
    *ret = (struct het_assumed_link){ .type = "" };
    if (het_view_object(item, err) < 0 ||
        het_view_name(&type, arena, &ret->type, err) < 0 ||
        het_view_name(&instance, arena, &ret->instance_type, err) < 0 ||
        het_view_name(&link, arena, &where, err) < 0 ||
        het_view_name(&from, arena, &who, err) < 0 ||
        read_bandwidth(item, "GBs", &ret->bytes_per_s, err) < 0)
        return -1;
    ret->leaves_node = !strcmp(where, "BetweenNodes");
    ret->source = HET_LINK_DEFAULT;
    while (ret->source > HET_LINK_STATED &&
           strcmp(het_link_source_name(ret->source), who) != 0)
        ret->source--;
    return 0;
}

static int read_assumed_links(struct het_arena *arena, const struct het_view *predicted,
                              struct het_prediction *ret, struct het_error *err)
{
    struct het_view list = het_view_get(predicted, "assumedLinks");
    size_t count = 0;
    if (het_view_array(&list, HET_MAX_ASSUMED_LINKS, &count, err) < 0)
        return -1;
    struct het_assumed_link *links =
        HET_ARENA_ARRAY(arena, struct het_assumed_link, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        if (read_assumed_link(arena, &item, &links[i], err) < 0)
            return -1;
    }
    ret->assumed_links = links;
    ret->assumed_link_count = count;
    return 0;
}

/* Names that are not known are left out: a later version may know more. */
static int read_unrestricted(struct het_arena *arena, const struct het_view *predicted,
                             struct het_prediction *ret, struct het_error *err)
{
    struct het_view view = het_view_get(predicted, "unrestricted");
    struct het_view seconds = het_view_get(&view, "iterationSeconds");
    struct het_view needs = het_view_get(&view, "needs");
    size_t count = 0;
    if (het_view_object(&view, err) < 0 ||
        het_view_number(&seconds, 0, 1e300, &ret->unrestricted_s, err) < 0 ||
        het_view_array(&needs, MAX_LIST, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&needs, i);
        const char *name = "";
        if (het_view_name(&item, arena, &name, err) < 0)
            return -1;
        for (int f = 0; f < HET_FREEDOM_COUNT; f++)
            if (!strcmp(name, het_freedom_reason((enum het_freedom)f)))
                ret->unrestricted_needs |= 1u << f;
    }
    return 0;
}

static int read_origin(struct het_arena *arena, const struct het_view *predicted,
                       struct het_prediction *ret, struct het_error *err)
{
    struct het_view profile = het_view_get(predicted, "profile");
    struct het_view extrapolated = het_view_get(predicted, "extrapolated");
    const char *name = NULL;
    if (het_view_name(&profile, arena, &name, err) < 0 ||
        het_view_bool(&extrapolated, &ret->extrapolated, err) < 0)
        return -1;
    if (name && het_profile_origin_parse(name, &ret->profile_origin, err) < 0)
        return het_view_wrap(&profile, err);
    return 0;
}

static int read_prediction(struct het_arena *arena, const struct het_view *root,
                           struct het_prediction *ret, struct het_error *err)
{
    const double most = 1e300;
    struct het_view predicted = het_view_get(root, "predicted");
    struct het_view iteration = het_view_get(&predicted, "iterationSeconds");
    struct het_view rate = het_view_get(&predicted, "samplesPerSecond");
    struct het_view bound = het_view_get(&predicted, "lowerBoundSeconds");
    struct het_view closed_form = het_view_get(&predicted, "closedFormSeconds");
    struct het_view from = het_view_get(&predicted, "fromIterationSeconds");
    struct het_view parts = het_view_get(&predicted, "parts");
    struct het_view pipeline = het_view_get(&parts, "pipelineSeconds");
    struct het_view sync = het_view_get(&parts, "gradientSyncSeconds");
    struct het_view optimizer = het_view_get(&parts, "optimizerSeconds");
    if (het_view_object(&predicted, err) < 0 ||
        het_view_number(&iteration, 0, most, &ret->iteration_s, err) < 0 ||
        het_view_number(&rate, 0, most, &ret->samples_per_s, err) < 0 ||
        het_view_number(&bound, 0, most, &ret->lower_bound_s, err) < 0 ||
        het_view_number(&closed_form, 0, most, &ret->closed_form_s, err) < 0 ||
        het_view_number(&from, 0, most, &ret->from_iteration_s, err) < 0 ||
        het_view_number(&pipeline, 0, most, &ret->pipeline_s, err) < 0 ||
        het_view_number(&sync, 0, most, &ret->gradient_sync_s, err) < 0 ||
        het_view_number(&optimizer, 0, most, &ret->optimizer_s, err) < 0 ||
        read_origin(arena, &predicted, ret, err) < 0 ||
        read_unrestricted(arena, &predicted, ret, err) < 0 ||
        read_assumed_links(arena, &predicted, ret, err) < 0)
        return -1;
    return read_peak_memory(arena, &predicted, ret, err);
}

static int read_report(const struct het_view *root, struct het_search_report *ret,
                       struct het_error *err)
{
    struct het_view search = het_view_get(root, "search");
    struct het_view effort = het_view_get(&search, "effort");
    struct het_view priced = het_view_get(&search, "plansPriced");
    struct het_view seed = het_view_get(&search, "seed");
    struct het_view optimal = het_view_get(&search, "optimal");
    struct het_view ran_out = het_view_get(&search, "ranOut");
    bool is_optimal = false, has_run_out = false;
    struct het_view cut_short = het_view_get(&search, "cutShort");
    if (het_view_object(&search, err) < 0 ||
        het_view_u64(&effort, 0, INT64_MAX, &ret->effort, err) < 0 ||
        het_view_u64(&priced, 0, INT64_MAX, &ret->plans_priced, err) < 0 ||
        het_view_u64(&seed, 0, INT64_MAX, &ret->seed, err) < 0 ||
        het_view_bool(&optimal, &is_optimal, err) < 0 ||
        het_view_bool(&ran_out, &has_run_out, err) < 0 ||
        het_view_bool(&cut_short, &ret->is_cut_short, err) < 0)
        return -1;
    ret->optimal = is_optimal;
    ret->has_run_out = has_run_out;
    return 0;
}

/* A field of which only one value is known; it may be left out. */
static int read_fixed(struct het_arena *arena, const struct het_view *root,
                      const char *key, const char *known, struct het_error *err)
{
    struct het_view field = het_view_get(root, key);
    const char *name = known;
    if (het_view_name(&field, arena, &name, err) < 0)
        return -1;
    return strcmp(name, known)
               ? het_view_fail(&field, err, "must be %s, is %s", known, name)
               : 0;
}

static int read_plan_header(struct het_arena *arena, const struct het_view *root,
                            struct het_plan *plan, struct het_error *err)
{
    struct het_view algorithm = het_view_get(root, "algorithm");
    struct het_view batch = het_view_get(root, "globalBatchSize");
    struct het_view layers = het_view_get(root, "layerCount");
    struct het_view length = het_view_get(root, "sequenceLength");
    struct het_view precision = het_view_get(root, "precision");
    struct het_view optimizer = het_view_get(root, "optimizer");
    const char *name = NULL;
    plan->algorithm = "";
    if (!json_is_object(root->json))
        return het_fail(err, HET_BAD_INPUT, "must be an object");
    if (read_fixed(arena, root, "apiVersion", API_VERSION, err) < 0 ||
        read_fixed(arena, root, "kind", "Plan", err) < 0 ||
        read_fixed(arena, root, "schedule", "1F1B", err) < 0 ||
        het_view_name(&algorithm, arena, &plan->algorithm, err) < 0 ||
        het_view_need(&batch, err) < 0 ||
        het_view_u32(&batch, 0, UINT32_MAX, &plan->global_batch, err) < 0 ||
        het_view_need(&layers, err) < 0 ||
        het_view_u32(&layers, 0, UINT32_MAX, &plan->layer_count, err) < 0 ||
        het_view_u32(&length, 1, INT32_MAX, &plan->sequence_length, err) < 0 ||
        het_view_name(&precision, arena, &name, err) < 0 ||
        (name && het_precision_parse(name, &plan->precision, err) < 0))
        return -1;
    name = NULL;
    if (het_view_name(&optimizer, arena, &name, err) < 0 ||
        (name && het_optimizer_parse(name, &plan->optimizer, err) < 0))
        return -1;
    return 0;
}

int het_codec_plan(struct het_arena *arena, const json_t *json,
                   const struct het_plan **ret, struct het_error *err)
{
    struct het_view root = het_view_root(json);
    struct het_plan *plan = het_arena_alloc(arena, sizeof *plan);
    if (read_plan_header(arena, &root, plan, err) < 0 ||
        read_pipelines(arena, &root, plan, err) < 0 ||
        read_idle(arena, &root, plan, err) < 0 ||
        read_unused(arena, &root, plan, err) < 0 ||
        read_prediction(arena, &root, &plan->predicted, err) < 0 ||
        read_report(&root, &plan->search, err) < 0)
        return -1;
    plan->predicted.is_read = true;
    *ret = plan;
    return 0;
}

int het_codec_plan_text(struct het_arena *arena, const char *text, const char *what,
                        const struct het_plan **ret, struct het_error *err)
{
    json_auto_t *json = NULL;
    if (het_json_decode(text, strlen(text), what, &json, err) < 0)
        return -1;
    return het_codec_plan(arena, json, ret, err);
}

/* ---- plan out ---- */

/* json_pack of what we made ourselves cannot fail. */
static json_t *sure(json_t *json)
{
    assert(json);
    return json;
}

static json_t *number(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *gpus_json(const uint32_t *gpus, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, number(gpus[i]));
    return list;
}

static json_t *stage_json(const struct het_stage *stage)
{
    json_t *replicas = json_array();
    for (size_t r = 0; r < stage->replica_count; r++) {
        const struct het_replica *replica = &stage->replicas[r];
        json_array_append_new(
            replicas,
            sure(json_pack("{s:s, s:o, s:s, s:o}", "gpuType", replica->type_name,
                           "microBatchSize", number(replica->microbatch_size), "node",
                           replica->node_name, "gpus",
                           gpus_json(replica->gpus, replica->tp))));
    }
    return sure(json_pack("{s:o, s:o, s:s, s:o}", "firstLayer",
                          number(stage->first_layer), "layerCount",
                          number(stage->layer_count), "recompute",
                          recompute_names[stage->recompute], "replicas", replicas));
}

static json_t *pipelines_json(const struct het_plan *plan)
{
    json_t *pipelines = json_array();
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        const struct het_pipeline *pipeline = &plan->pipelines[p];
        json_t *stages = json_array();
        for (size_t s = 0; s < pipeline->stage_count; s++)
            json_array_append_new(stages, stage_json(&pipeline->stages[s]));
        json_array_append_new(
            pipelines,
            sure(json_pack("{s:o, s:o}", "microBatches",
                           number(pipeline->microbatch_count), "stages", stages)));
    }
    return pipelines;
}

static json_t *idle_json(const struct het_plan *plan)
{
    json_t *list = json_array();
    for (size_t i = 0; i < plan->idle_count; i++)
        json_array_append_new(
            list,
            sure(json_pack("{s:s, s:o}", "node", plan->idle[i].node_name, "gpus",
                           gpus_json(plan->idle[i].gpus, plan->idle[i].gpu_count))));
    return list;
}

/* What cannot be read back is left out. */
static void set_name(json_t *object, const char *key, const char *text)
{
    bool is_name = *text && strlen(text) <= HET_MAX_NAME_BYTES;
    for (const char *c = text; is_name && *c; c++)
        is_name = (unsigned char)*c >= ' ' && *c != 127;
    if (is_name)
        json_object_set_new(object, key, het_json_text(text));
}

json_t *het_codec_unused_json(const struct het_unused *groups, size_t count)
{
    struct het_arena *arena = het_arena_new();
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct het_unused *group = &groups[i];
        json_t *nodes = json_array();
        for (size_t k = 0; k < het_unused_name_count(group); k++)
            json_array_append_new(nodes, het_json_text(group->nodes[k]));
        json_t *item = sure(json_pack(
            "{s:s, s:o, s:o, s:o, s:o}", "reason", het_unused_name(group->reason), "gpus",
            number(group->gpus), "nodeCount", number(group->node_count), "nodes", nodes,
            "message", het_json_text(het_unused_text(arena, group))));
        set_name(item, "gpuType", group->type);
        set_name(item, "detail", group->detail);
        json_array_append_new(list, item);
    }
    het_arena_free(arena);
    return list;
}

json_t *het_codec_peak_memory_json(const struct het_peak_memory *peaks, size_t count,
                                   bool with_parts)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct het_peak_memory *peak = &peaks[i];
        json_t *item = sure(json_pack(
            "{s:o, s:o, s:o, s:o, s:o}", "pipeline", number(peak->pipeline), "stage",
            number(peak->stage), "replica", number(peak->replica), "bytes",
            number(peak->bytes), "capacityBytes", number(peak->capacity_bytes)));
        if (with_parts) {
            json_object_set_new(item, "stateBytes", number(peak->state_bytes));
            json_object_set_new(item, "activationBytes", number(peak->activation_bytes));
            json_object_set_new(item, "workspaceBytes", number(peak->workspace_bytes));
        }
        json_array_append_new(list, item);
    }
    return list;
}

void het_codec_add_origin(json_t *object, enum het_profile_origin origin,
                          bool extrapolated)
{
    if (origin != HET_PROFILE_MEASURED)
        json_object_set_new(object, "profile",
                            json_string(het_profile_origin_name(origin)));
    if (extrapolated)
        json_object_set_new(object, "extrapolated", json_true());
}

json_t *het_codec_parts_json(double pipeline_s, double gradient_sync_s,
                             double optimizer_s)
{
    return sure(json_pack("{s:f, s:f, s:f}", "pipelineSeconds", pipeline_s,
                          "gradientSyncSeconds", gradient_sync_s, "optimizerSeconds",
                          optimizer_s));
}

static json_t *unrestricted_json(const struct het_prediction *predicted)
{
    json_t *needs = json_array();
    for (int f = 0; f < HET_FREEDOM_COUNT; f++)
        if (predicted->unrestricted_needs & 1u << f)
            json_array_append_new(needs,
                                  json_string(het_freedom_reason((enum het_freedom)f)));
    return sure(json_pack("{s:f, s:o}", "iterationSeconds", predicted->unrestricted_s,
                          "needs", needs));
}

json_t *het_codec_migration_json(const struct het_migration *migration)
{
    return sure(json_pack(
        "{s:f, s:f, s:{s:s}, s:{s:f, s:f, s:f, s:f}, s:o, s:o}", "seconds",
        migration->seconds, "writeSeconds", migration->write_s, "bottleneck", "resource",
        het_migrate_resource_name(migration->bottleneck), "bytes", "local",
        migration->local_bytes, "peer", migration->peer_bytes, "cloud",
        migration->cloud_bytes, "state", migration->state_bytes, "ranksKept",
        number(migration->ranks_kept), "rankCount", number(migration->rank_count)));
}

json_t *het_codec_assumed_links_json(const struct het_assumed_link *links, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(
            list, sure(json_pack("{s:s, s:s*, s:s, s:f, s:s}", "gpuType", links[i].type,
                                 "instanceType", links[i].instance_type, "link",
                                 links[i].leaves_node ? "BetweenNodes" : "InsideNode",
                                 "GBs", links[i].bytes_per_s / BYTES_PER_GB, "from",
                                 het_link_source_name(links[i].source))));
    return list;
}

static json_t *prediction_json(const struct het_prediction *predicted)
{
    json_t *json = sure(
        json_pack("{s:f, s:f, s:o, s:o}", "iterationSeconds", predicted->iteration_s,
                  "samplesPerSecond", predicted->samples_per_s, "parts",
                  het_codec_parts_json(predicted->pipeline_s, predicted->gradient_sync_s,
                                       predicted->optimizer_s),
                  "peakMemoryBytes",
                  het_codec_peak_memory_json(predicted->peak_memory,
                                             predicted->peak_memory_count, false)));
    if (predicted->lower_bound_s > 0) {
        double gap = predicted->iteration_s / predicted->lower_bound_s - 1;
        json_object_set_new(json, "lowerBoundSeconds",
                            json_real(predicted->lower_bound_s));
        json_object_set_new(json, "gap", json_real(gap));
    }
    het_codec_add_origin(json, predicted->profile_origin, predicted->extrapolated);
    if (predicted->assumed_link_count)
        json_object_set_new(json, "assumedLinks",
                            het_codec_assumed_links_json(predicted->assumed_links,
                                                         predicted->assumed_link_count));
    if (predicted->closed_form_s > 0)
        json_object_set_new(json, "closedFormSeconds",
                            json_real(predicted->closed_form_s));
    if (predicted->from_iteration_s > 0)
        json_object_set_new(json, "fromIterationSeconds",
                            json_real(predicted->from_iteration_s));
    if (predicted->migration)
        json_object_set_new(json, "migration",
                            het_codec_migration_json(predicted->migration));
    if (predicted->stable)
        json_object_set_new(json, "stable", het_codec_plan_json(predicted->stable));
    if (predicted->unrestricted_s > 0)
        json_object_set_new(json, "unrestricted", unrestricted_json(predicted));
    return json;
}

/* A plan written by hand need not say what algorithm found it. */
static json_t *body_json(const struct het_plan *plan)
{
    const char *algorithm = *plan->algorithm ? plan->algorithm : NULL;
    json_t *length = plan->sequence_length ? number(plan->sequence_length) : NULL;
    return sure(json_pack("{s:s, s:s, s:s*, s:o, s:o*, s:o, s:s, s:s, s:s, s:o, s:o}",
                          "apiVersion", API_VERSION, "kind", "Plan", "algorithm",
                          algorithm, "globalBatchSize", number(plan->global_batch),
                          "sequenceLength", length, "layerCount",
                          number(plan->layer_count), "schedule", "1F1B", "precision",
                          het_precision_name(plan->precision), "optimizer",
                          het_optimizer_name(plan->optimizer), "pipelines",
                          pipelines_json(plan), "idle", idle_json(plan)));
}

static json_t *statistics_json(const struct het_search_statistics *statistics)
{
    json_t *json = sure(json_pack(
        "{s:o, s:o, s:o, s:o}", "groupLists", number(statistics->groups_enumerated),
        "strategies", number(statistics->strategies_tried), "failedPartitions",
        number(statistics->partitions_failed), "plansPriced",
        number(statistics->plans_priced)));
    if (statistics->walk_best)
        json_object_set_new(
            json, "walk",
            sure(json_pack("{s:o, s:o, s:o, s:s, s:f}", "steps",
                           number(statistics->walk_steps), "plans",
                           number(statistics->walk_plans), "brokenPlans",
                           number(statistics->walk_broken), "best", statistics->walk_best,
                           "bestSeconds", statistics->walk_best_s)));
    return json;
}

json_t *het_codec_plan_json(const struct het_plan *plan)
{
    json_t *json = body_json(plan);
    if (plan->unused_count)
        json_object_set_new(json, "unused",
                            het_codec_unused_json(plan->unused, plan->unused_count));
    if (plan->predicted.iteration_s > 0)
        json_object_set_new(json, "predicted", prediction_json(&plan->predicted));
    if (plan->search.effort)
        json_object_set_new(
            json, "search",
            sure(json_pack("{s:o, s:o, s:o, s:b}", "effort", number(plan->search.effort),
                           "plansPriced", number(plan->search.plans_priced), "seed",
                           number(plan->search.seed), "optimal", plan->search.optimal)));
    if (plan->search.effort && plan->search.has_run_out)
        json_object_set_new(json_object_get(json, "search"), "ranOut", json_true());
    if (plan->search.effort && plan->search.is_cut_short)
        json_object_set_new(json_object_get(json, "search"), "cutShort", json_true());
    if (plan->search.effort && plan->search.has_statistics)
        json_object_set_new(json_object_get(json, "search"), "statistics",
                            statistics_json(&plan->search.statistics));
    return json;
}

const char *het_codec_plan_hash(struct het_arena *arena, const struct het_plan *plan)
{
    static const char prefix[] = "sha256:";
    json_auto_t *body = body_json(plan);
    auto_free char *text = het_json_canonical(body);
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256_CTX context;
    SHA256_Init(&context);
    SHA256_Update(&context, text, strlen(text));
    SHA256_Final(digest, &context);
    char *hash = het_arena_alloc(arena, sizeof prefix + 2 * sizeof digest);
    char *out = stpcpy(hash, prefix);
    for (size_t i = 0; i < sizeof digest; i++) {
        *out++ = "0123456789abcdef"[digest[i] >> 4];
        *out++ = "0123456789abcdef"[digest[i] & 15];
    }
    return hash;
}

/* ---- ranks ---- */

struct rank_place {
    const struct het_rank_node *node;
    const struct het_stage *stage;
    const struct het_replica *replica;
    size_t pipeline_index, stage_index, replica_index;
    uint32_t tensor_index;
};

static int compare_rank_nodes(const void *a, const void *b)
{
    const struct het_rank_node *left = a, *right = b;
    return strcmp(left->node_name, right->node_name);
}

/* Which place of the plan each rank has; [ret_count]. A GPU index beyond those that the
 * node's replicas use together is no rank and left out. */
static struct rank_place *place_ranks(struct het_arena *arena,
                                      const struct het_plan *plan, size_t *ret_count)
{
    struct het_rank_node *nodes;
    size_t node_count = het_plan_rank_nodes(arena, plan, &nodes);
    size_t world = node_count ? nodes[node_count - 1].rank_offset +
                                    nodes[node_count - 1].gpu_count
                              : 0;
    qsort(nodes, node_count, sizeof *nodes, compare_rank_nodes);
    struct rank_place *ranks = HET_ARENA_ARRAY(arena, struct rank_place, world);
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++) {
                const struct het_replica *replica = &stage->replicas[r];
                const struct het_rank_node key = { .node_name = replica->node_name };
                const struct het_rank_node *node =
                    bsearch(&key, nodes, node_count, sizeof *nodes, compare_rank_nodes);
                for (uint32_t t = 0; t < replica->tp; t++)
                    if (replica->gpus[t] < node->gpu_count)
                        ranks[node->rank_offset + replica->gpus[t]] =
                            (struct rank_place){ node, stage, replica, p, s, r, t };
            }
        }
    *ret_count = world;
    return ranks;
}

json_t *het_codec_rankmap(const struct het_plan *plan)
{
    struct het_arena *arena = het_arena_new();
    size_t world;
    const struct rank_place *ranks = place_ranks(arena, plan, &world);
    json_t *list = json_array();
    for (size_t i = 0; i < world; i++) {
        const struct rank_place *place = &ranks[i];
        if (!place->replica)
            continue;
        json_array_append_new(
            list,
            sure(json_pack(
                "{s:o, s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "rank",
                number(i), "node", place->node->node_name, "localIndex",
                number(i - place->node->rank_offset), "gpuType",
                place->replica->type_name, "pipeline", number(place->pipeline_index),
                "stage", number(place->stage_index), "replica",
                number(place->replica_index), "tensorParallelIndex",
                number(place->tensor_index), "tensorParallel", number(place->replica->tp),
                "firstLayer", number(place->stage->first_layer), "layerCount",
                number(place->stage->layer_count), "microBatchSize",
                number(place->replica->microbatch_size))));
    }
    het_arena_free(arena);
    return sure(json_pack("{s:o, s:o}", "worldSize", number(world), "ranks", list));
}
