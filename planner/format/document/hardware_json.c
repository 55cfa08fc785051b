#include "planner/format/document/hardware_json.h"

#include "planner/format/network_json.h"
#include "planner/model/cluster.h"
#include "planner/model/instance_type.h"

#include <ctype.h>
#include <string.h>

#define MAX_TFLOPS       1e6
#define FLOPS_PER_TFLOPS 1e12
#define MAX_PRICE        1e9
#define MAX_TYPES        4096u /* of GPUs, of instances */
#define MAX_ALIASES      64u

static const char *const hardware_fields[] = { "gpuTypes", "instanceTypes", "levels",
                                               "network",  "storageGBs",    NULL };
static const char *const gpu_type_fields[] = {
    "name",       "aliases",      "profile",      "memoryGiB",  "intraGBs",
    "interGBs",   "workspaceGiB", "pricePerHour", "bf16TFLOPS", "fp16TFLOPS",
    "tf32TFLOPS", "fp32TFLOPS",   "memoryGBs",    "vendor",     NULL
};

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

int het_hardware_json_vendor(struct het_arena *arena, const struct het_view *object,
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
        het_hardware_json_vendor(arena, entry, &type->vendor, err) < 0 ||
        read_aliases(arena, entry, type, err) < 0 ||
        het_view_gibibytes(entry, "memoryGiB", 0.0625, &type->memory_bytes, err) < 0 ||
        het_view_gibibytes(entry, "workspaceGiB", 0, &type->workspace_bytes, err) < 0 ||
        het_view_bandwidth(entry, "intraGBs", &type->intra_bytes_per_s, err) < 0 ||
        het_view_bandwidth(entry, "interGBs", &type->inter_bytes_per_s, err) < 0 ||
        het_view_bandwidth(entry, "memoryGBs", &type->memory_bytes_per_s, err) < 0 ||
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
        het_view_bandwidth(entry, "intraGBs", &ret->intra_bytes_per_s, err) < 0 ||
        het_view_bandwidth(entry, "interGBs", &ret->uplink_bytes_per_s, err) < 0)
        return -1;
    if (!(ret->intra_bytes_per_s > 0) && !(ret->uplink_bytes_per_s > 0))
        return het_view_fail(entry, err, "must state intraGBs or interGBs of %s",
                             ret->name);
    return 0;
}

static int read_instance_types(struct het_arena *arena, const struct het_view *root,
                               const struct het_instance **ret, size_t *ret_count,
                               struct het_error *err)
{
    struct het_view list = het_view_get(root, "instanceTypes");
    size_t count = 0;
    if (het_view_array(&list, MAX_TYPES, &count, err) < 0)
        return -1;
    struct het_instance *instances = HET_ARENA_ARRAY(arena, struct het_instance, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view entry = het_view_at(&list, i);
        if (read_instance_type(arena, &entry, &instances[i], err) < 0)
            return -1;
        for (size_t k = 0; k < i; k++)
            if (!strcmp(instances[k].name, instances[i].name))
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
        het_view_bandwidth(entry, "uplinkGBs", &level->uplink_bytes_per_s, err) < 0 ||
        het_view_bandwidth(entry, "uplink_gb_s", &level->uplink_bytes_per_s, err) < 0)
        return -1;
    return level->uplink_bytes_per_s > 0 ? 0 : het_view_need(&uplink, err);
}

int het_hardware_json_levels(struct het_arena *arena, const struct het_view *root,
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

int het_hardware_json_network(struct het_arena *arena, const struct het_view *root,
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

int het_hardware_json_read(struct het_arena *arena, const json_t *json,
                           const struct het_hardware *base,
                           const struct het_hardware **ret, struct het_error *err)
{
    struct het_view root = het_view_root(json);
    struct het_view list = het_view_get(&root, "gpuTypes");
    size_t count = 0;
    if (!json_is_object(json))
        return het_fail(err, HET_BAD_INPUT, "must be an object with a list \"gpuTypes\"");
    if (het_view_members(&root, hardware_fields, err) < 0 ||
        het_view_array(&list, MAX_TYPES, &count, err) < 0)
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
        het_hardware_json_levels(arena, &root, &extra.levels, &extra.level_count, err) <
            0 ||
        het_hardware_json_network(arena, &root, &extra.network, err) < 0 ||
        het_view_bandwidth(&root, "storageGBs", &extra.storage_bytes_per_s, err) < 0)
        return -1;
    *ret = het_hardware_merge(arena, base, &extra);
    return 0;
}
