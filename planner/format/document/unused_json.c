#include "planner/format/document/unused_json.h"

#include <string.h>

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

int het_unused_json_read(struct het_arena *arena, const struct het_view *list,
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

/* What cannot be read back is left out. */
static void set_name(json_t *object, const char *key, const char *text)
{
    bool is_name = *text && strlen(text) <= HET_MAX_NAME_BYTES;
    for (const char *c = text; is_name && *c; c++)
        is_name = (unsigned char)*c >= ' ' && *c != 127;
    if (is_name)
        json_object_set_new(object, key, het_json_text(text));
}

json_t *het_unused_json(const struct het_unused *groups, size_t count)
{
    struct het_arena *arena = het_arena_new();
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct het_unused *group = &groups[i];
        json_t *nodes = json_array();
        for (size_t k = 0; k < het_unused_name_count(group); k++)
            json_array_append_new(nodes, het_json_text(group->nodes[k]));
        json_t *item = het_json_pack(
            "{s:s, s:o, s:o, s:o, s:o}", "reason", het_unused_name(group->reason), "gpus",
            het_json_u64(group->gpus), "nodeCount", het_json_u64(group->node_count),
            "nodes", nodes, "message", het_json_text(het_unused_text(arena, group)));
        set_name(item, "gpuType", group->type);
        set_name(item, "detail", group->detail);
        json_array_append_new(list, item);
    }
    het_arena_free(arena);
    return list;
}
