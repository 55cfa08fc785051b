#include "controller/simulate/api_server/merge.h"

#include "controller/base/timestamp.h"
#include "controller/simulate/api_server/condition.h"
#include "planner/modules.h"

#include <stdlib.h>
#include <string.h>

json_t *merge_patch(const json_t *target, json_t *patch)
{
    if (!json_is_object(patch))
        return json_deep_copy(patch);
    json_t *result = json_is_object(target) ? json_deep_copy(target) : json_object();
    const char *key;
    json_t *value;
    json_object_foreach (patch, key, value) {
        if (json_is_null(value))
            json_object_del(result, key);
        else
            json_object_set_new(result, key,
                                merge_patch(json_object_get(result, key), value));
    }
    return result;
}

/* ---- operations ---- */

/* The next reference token of a JSON pointer (RFC 6901), without its escapes; `pointer`
 * goes on behind it. The caller frees it. */
static char *next_token(const char **pointer)
{
    const char *text = *pointer + 1;
    size_t length = strcspn(text, "/");
    char *token = xmalloc(length + 1);
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        bool is_escape = text[i] == '~' && i + 1 < length;
        if (is_escape)
            i++;
        token[used++] = !is_escape ? text[i] : text[i] == '1' ? '/' : '~';
    }
    token[used] = '\0';
    *pointer = text + length;
    return token;
}

/* The position in `list` that `token` names; its size for "-", and for what is none. */
static size_t position_of(const json_t *list, const char *token)
{
    size_t size = json_array_size(list);
    char *end;
    unsigned long long position = strtoull(token, &end, 10);
    return *token && !*end && position < size ? (size_t)position : size;
}

/* The map or list that holds what `pointer` points at, whose last token goes to
 * `ret_token`; NULL if there is none. */
static json_t *holder_of(json_t *object, const char *pointer, char **ret_token)
{
    for (;;) {
        if (*pointer != '/' || !object)
            return NULL;
        auto_free char *token = next_token(&pointer);
        if (!*pointer) {
            *ret_token = TAKE(token);
            return object;
        }
        object = json_is_array(object)
                     ? json_array_get(object, position_of(object, token))
                     : json_object_get(object, token);
    }
}

static json_t *held_at(const json_t *holder, const char *token)
{
    return json_is_array(holder) ? json_array_get(holder, position_of(holder, token))
                                 : json_object_get(holder, token);
}

/* 0, or -1 if it cannot be done. */
static int put_at(json_t *holder, const char *token, json_t *value, bool is_new)
{
    if (json_is_object(holder))
        return json_object_set_new(holder, token, json_deep_copy(value));
    size_t position = position_of(holder, token);
    if (!is_new)
        return json_array_set_new(holder, position, json_deep_copy(value));
    return json_array_insert_new(holder, position, json_deep_copy(value));
}

static int remove_at(json_t *holder, const char *token)
{
    return json_is_object(holder) ? json_object_del(holder, token)
                                  : json_array_remove(holder, position_of(holder, token));
}

static int operate(json_t *object, const json_t *operation)
{
    const char *verb = json_string_value(json_object_get(operation, "op"));
    const char *pointer = json_string_value(json_object_get(operation, "path"));
    json_t *value = json_object_get(operation, "value");
    auto_free char *token = NULL;
    json_t *holder = verb && pointer ? holder_of(object, pointer, &token) : NULL;
    if (!holder)
        return -1;
    const json_t *held = held_at(holder, token);
    if (!strcmp(verb, "test"))
        return held && json_equal(held, value) ? 0 : -1;
    if (!strcmp(verb, "add"))
        return value ? put_at(holder, token, value, true) : -1;
    if (!strcmp(verb, "replace"))
        return held && value ? put_at(holder, token, value, false) : -1;
    return held && !strcmp(verb, "remove") ? remove_at(holder, token) : -1;
}

json_t *merge_operations(const json_t *target, const json_t *patch, char **ret_why)
{
    json_t *result = json_deep_copy(target);
    size_t i;
    json_t *operation;
    json_array_foreach (patch, i, operation) {
        if (operate(result, operation) == 0)
            continue;
        auto_free char *text = json_dumps(operation, JSON_COMPACT);
        *ret_why = xasprintf("operation %zu cannot be done: %s", i, text);
        json_decref(result);
        return NULL;
    }
    return result;
}

/* ---- lists ---- */

/* Lists that merge element by element, and by which field: x-kubernetes-list-map-keys of
 * the built-in types and of crds/. Ports have a second key, the protocol; nothing here
 * has two ports that differ in that alone. */
static const struct {
    const char *list, *key;
} keyed_lists[] = {
    { "conditions", "type" },
    { "ownerReferences", "uid" },
    { "containers", "name" },
    { "initContainers", "name" },
    { "env", "name" },
    { "volumes", "name" },
    { "volumeMounts", "mountPath" },
    { "imagePullSecrets", "name" },
    { "schedulingGates", "name" },
    { "ports", "containerPort" },
    { "ports", "port" },
    { "gpuTypes", "name" },
    { "layerGroups", "name" },
    { "stages", "index" },
    { "allocation", "gpuType" },
    { "unmetDemand", "gpuType" },
};

static const char *const set_lists[] = { "finalizers", "microBatchSizes" };

/* The key of list `name`, if `list` is one that is keyed; else NULL. */
static const char *list_key(const char *name, const json_t *list)
{
    const json_t *first = json_array_get(list, 0);
    for (size_t i = 0; i < sizeof keyed_lists / sizeof *keyed_lists; i++)
        if (!strcmp(name, keyed_lists[i].list) &&
            json_object_get(first, keyed_lists[i].key))
            return keyed_lists[i].key;
    return NULL;
}

static bool is_set(const char *name)
{
    for (size_t i = 0; i < sizeof set_lists / sizeof *set_lists; i++)
        if (!strcmp(name, set_lists[i]))
            return true;
    return false;
}

/* The position in `list` of the element whose `key` is `value`; its size if none. */
static size_t keyed_index(const json_t *list, const char *key, const json_t *value)
{
    size_t i;
    json_t *element;
    json_array_foreach (list, i, element) {
        if (json_equal(json_object_get(element, key), value))
            return i;
    }
    return json_array_size(list);
}

static size_t value_index(const json_t *list, const json_t *value)
{
    size_t i;
    json_t *element;
    json_array_foreach (list, i, element) {
        if (json_equal(element, value))
            return i;
    }
    return json_array_size(list);
}

/* ---- merging ---- */

static json_t *merge(const json_t *live, json_t *applied, const char *name);

static json_t *merge_map(const json_t *live, json_t *applied)
{
    json_t *result = json_is_object(live) ? json_deep_copy(live) : json_object();
    const char *key;
    json_t *value;
    json_object_foreach (applied, key, value) {
        if (!json_is_null(value))
            json_object_set_new(result, key,
                                merge(json_object_get(live, key), value, key));
    }
    return result;
}

static json_t *merge_keyed(const json_t *live, const json_t *applied, const char *key)
{
    json_t *result = json_is_array(live) ? json_deep_copy(live) : json_array();
    size_t i;
    json_t *element;
    json_array_foreach (applied, i, element) {
        size_t at = keyed_index(result, key, json_object_get(element, key));
        if (at < json_array_size(result))
            json_array_set_new(result, at, merge_map(json_array_get(live, at), element));
        else
            json_array_append_new(result, json_deep_copy(element));
    }
    return result;
}

static json_t *merge_set(const json_t *live, const json_t *applied)
{
    json_t *result = json_is_array(live) ? json_deep_copy(live) : json_array();
    size_t i;
    json_t *element;
    json_array_foreach (applied, i, element) {
        if (value_index(result, element) == json_array_size(result))
            json_array_append(result, element);
    }
    return result;
}

static json_t *merge(const json_t *live, json_t *applied, const char *name)
{
    if (json_is_object(applied))
        return merge_map(live, applied);
    if (json_is_array(applied) && is_set(name))
        return merge_set(live, applied);
    const char *key = json_is_array(applied) ? list_key(name, applied) : NULL;
    return key ? merge_keyed(live, applied, key) : json_deep_copy(applied);
}

/* ---- sets of fields, in the form of metadata.managedFields[].fieldsV1 ----
 * {"f:spec": {"f:a": {}, "f:env": {"k:{\"name\":\"X\"}": {".": {}, "f:value": {}}}}} */

static json_t *fields_of(json_t *value, const char *name);

static json_t *fields_of_map(json_t *map)
{
    json_t *fields = json_object();
    const char *key;
    json_t *value;
    json_object_foreach (map, key, value) {
        auto_free char *field = xasprintf("f:%s", key);
        if (!json_is_null(value))
            json_object_set_new(fields, field, fields_of(value, key));
    }
    return fields;
}

static char *item_of(char prefix, json_t *value)
{
    auto_free char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    return xasprintf("%c:%s", prefix, text);
}

static json_t *fields_of_list(const json_t *list, const char *key)
{
    json_t *fields = json_object();
    size_t i;
    json_t *element;
    json_array_foreach (list, i, element) {
        if (!key) {
            auto_free char *item = item_of('v', element);
            json_object_set_new(fields, item, json_object());
            continue;
        }
        json_auto_t *identity = json_pack("{s:O}", key, json_object_get(element, key));
        auto_free char *item = item_of('k', identity);
        json_t *inner = fields_of_map(element);
        json_object_set_new(inner, ".", json_object());
        json_object_set_new(fields, item, inner);
    }
    return fields;
}

static json_t *fields_of(json_t *value, const char *name)
{
    if (json_is_object(value))
        return fields_of_map(value);
    if (json_is_array(value) && is_set(name))
        return fields_of_list(value, NULL);
    const char *key = json_is_array(value) ? list_key(name, value) : NULL;
    return key ? fields_of_list(value, key) : json_object();
}

/* No manager owns the identity of an object or fields that the server itself writes. */
static json_t *owned_fields(json_t *applied)
{
    static const char *const not_owned[] = { "name",         "namespace",
                                             "uid",          "resourceVersion",
                                             "generation",   "creationTimestamp",
                                             "managedFields" };
    json_auto_t *copy = json_copy(applied);
    json_object_del(copy, "apiVersion");
    json_object_del(copy, "kind");
    json_auto_t *metadata = json_deep_copy(json_object_get(applied, "metadata"));
    for (size_t i = 0; i < sizeof not_owned / sizeof *not_owned; i++)
        json_object_del(metadata, not_owned[i]);
    if (json_object_size(metadata))
        json_object_set(copy, "metadata", metadata);
    else
        json_object_del(copy, "metadata");
    return fields_of_map(copy);
}

static bool is_leaf(const json_t *fields)
{
    return json_object_size(fields) == 0;
}

/* What `item` of a set of fields stands for in `value`; NULL if it is not there. */
static json_t *value_of(const json_t *value, const char *item)
{
    if (item[0] == 'f')
        return json_object_get(value, item + 2);
    json_auto_t *identity = json_loads(item + 2, JSON_DECODE_ANY, NULL);
    if (item[0] == 'v')
        return json_array_get(value, value_index(value, identity));
    const char *key = json_object_iter_key(json_object_iter(identity));
    json_t *wanted = json_object_iter_value(json_object_iter(identity));
    return key ? json_array_get(value, keyed_index(value, key, wanted)) : NULL;
}

static void remove_value(json_t *value, const char *item)
{
    if (item[0] == 'f') {
        json_object_del(value, item + 2);
        return;
    }
    json_t *element = value_of(value, item);
    size_t i;
    json_t *other;
    json_array_foreach (value, i, other) {
        if (other == element) {
            json_array_remove(value, i);
            return;
        }
    }
}

/* ---- taking away ---- */

static bool is_empty(const json_t *value)
{
    return (json_is_object(value) && !json_object_size(value)) ||
           (json_is_array(value) && !json_array_size(value));
}

/* Removes from `value` what is in `before` and neither in `after` nor in `others`. */
static void prune(json_t *value, json_t *before, const json_t *after,
                  const json_t *others)
{
    const char *item;
    json_t *fields;
    json_object_foreach (before, item, fields) {
        json_t *child = *item == '.' ? NULL : value_of(value, item);
        if (!child)
            continue;
        json_t *kept = json_object_get(after, item);
        json_t *of_others = json_object_get(others, item);
        bool is_ours_alone = !kept && !of_others;
        if (!is_leaf(fields) && !(is_ours_alone && *item == 'k'))
            prune(child, fields, kept, of_others);
        if (is_ours_alone && (is_leaf(fields) || *item == 'k' || is_empty(child)))
            remove_value(value, item);
    }
}

/* Finds a leaf of `fields` that `theirs` has too, where the values differ. With `force`
 * takes it out of `theirs` and goes on; else returns its path. */
static char *take_over(json_t *fields, json_t *theirs, const json_t *live,
                       const json_t *applied, bool force)
{
    const char *item;
    json_t *inner;
    json_object_foreach (fields, item, inner) {
        json_t *other = json_object_get(theirs, item);
        if (!other || *item == '.')
            continue;
        json_t *there = value_of(live, item);
        json_t *here = value_of(applied, item);
        if (!is_leaf(inner) && !is_leaf(other)) {
            auto_free char *path = take_over(inner, other, there, here, force);
            if (path)
                return xasprintf(".%s%s", item + 2, path);
            if (is_leaf(other))
                json_object_del(theirs, item);
        } else if (!json_equal(there, here)) {
            if (!force)
                return xasprintf(".%s", item + 2);
            json_object_del(theirs, item);
        }
    }
    return NULL;
}

/* ---- managers ---- */

/* The position in `entries` of this manager's own; their number if it has none. */
static size_t entry_index(const json_t *entries, const char *manager,
                          const char *subresource)
{
    size_t i;
    json_t *entry;
    json_array_foreach (entries, i, entry) {
        if (!strcmp(object_text(entry, "manager"), manager) &&
            !strcmp(object_text(entry, "subresource"), subresource))
            return i;
    }
    return json_array_size(entries);
}

static json_t *make_entry(const char *manager, const char *subresource,
                          const json_t *applied, json_t *fields, int64_t now_ms)
{
    char now[TIMESTAMP_SIZE];
    timestamp_format(now_ms, now);
    json_t *entry = json_pack("{s:s, s:s, s:s, s:s, s:s, s:O}", "manager", manager,
                              "operation", "Apply", "apiVersion",
                              object_text(applied, "apiVersion"), "time", now,
                              "fieldsType", "FieldsV1", "fieldsV1", fields);
    if (*subresource)
        object_set(entry, "subresource", json_string(subresource));
    return entry;
}

/* take_over against every entry but that at `mine`; a message if there is a conflict. */
static char *take_over_all(json_t *entries, size_t mine, json_t *fields,
                           const json_t *live, const json_t *applied, bool force)
{
    size_t i;
    json_t *entry;
    json_array_foreach (entries, i, entry) {
        if (i == mine)
            continue;
        json_t *theirs = json_object_get(entry, "fieldsV1");
        auto_free char *path = take_over(fields, theirs, live, applied, force);
        if (path)
            return xasprintf("conflict with \"%s\": %s", object_text(entry, "manager"),
                             path);
    }
    return NULL;
}

static json_t *fields_of_others(const json_t *entries, size_t mine)
{
    json_t *all = json_object();
    size_t i;
    json_t *entry;
    json_array_foreach (entries, i, entry) {
        if (i == mine)
            continue;
        json_auto_t *fields = json_deep_copy(json_object_get(entry, "fieldsV1"));
        json_object_update_recursive(all, fields);
    }
    return all;
}

/* Puts `entry` (taken) in its place, and drops entries that own nothing any more. */
static void set_entry(json_t *entries, size_t mine, json_t *entry)
{
    if (mine < json_array_size(entries))
        json_array_set_new(entries, mine, entry);
    else
        json_array_append_new(entries, entry);
    for (size_t i = json_array_size(entries); i-- > 0;)
        if (is_leaf(json_object_get(json_array_get(entries, i), "fieldsV1")))
            json_array_remove(entries, i);
}

json_t *merge_apply(const json_t *live, json_t *applied, const char *manager,
                    const char *subresource, bool force, int64_t now_ms,
                    char **ret_conflict)
{
    json_t *held = object_at(live, "metadata.managedFields");
    json_auto_t *entries = held ? json_deep_copy(held) : json_array();
    size_t mine = entry_index(entries, manager, subresource);
    json_auto_t *fields = owned_fields(applied);
    char *conflict = take_over_all(entries, mine, fields, live, applied, force);
    if (conflict) {
        *ret_conflict = conflict;
        return NULL;
    }
    json_t *result = merge_map(live, applied);
    json_t *before = json_object_get(json_array_get(entries, mine), "fieldsV1");
    if (before) {
        json_auto_t *of_others = fields_of_others(entries, mine);
        prune(result, before, fields, of_others);
    }
    if (!before || !json_equal(before, fields))
        set_entry(entries, mine,
                  make_entry(manager, subresource, applied, fields, now_ms));
    if (json_array_size(entries))
        object_set(result, "metadata.managedFields", json_incref(entries));
    else
        object_remove(result, "metadata.managedFields");
    return result;
}
