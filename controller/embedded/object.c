#include "controller/embedded/object.h"

#include "controller/timestamp.h"

#include <string.h>

/* The map that holds the last key of `path`, which goes to `key`; NULL if `object` is no
 * map (jansson then refuses the value that is put there, and frees it). */
static json_t *parent_of(json_t *object, const char *path, char key[OBJECT_LONGEST_KEY])
{
    while ((path = object_first_key(path, key))) {
        json_t *child = json_object_get(object, key);
        if (!json_is_object(child)) {
            child = json_object();
            if (json_object_set_new(object, key, child) < 0)
                return NULL;
        }
        object = child;
    }
    return object;
}

void object_set(json_t *object, const char *path, json_t *value)
{
    char key[OBJECT_LONGEST_KEY];
    json_t *parent = parent_of(object, path, key);
    json_object_set_new(parent, key, value);
}

void object_remove(json_t *object, const char *path)
{
    char key[OBJECT_LONGEST_KEY];
    if (!object_at(object, path))
        return;
    json_t *parent = parent_of(object, path, key);
    json_object_del(parent, key);
}

void object_default(json_t *object, const char *path, json_t *value)
{
    if (object_at(object, path))
        json_decref(value);
    else
        object_set(object, path, value);
}

json_t *object_map(json_t *object, const char *path)
{
    if (!json_is_object(object_at(object, path)))
        object_set(object, path, json_object());
    return object_at(object, path);
}

json_t *object_list(json_t *object, const char *path)
{
    if (!json_is_array(object_at(object, path)))
        object_set(object, path, json_array());
    return object_at(object, path);
}

void object_set_condition(json_t *object, const char *type, const char *status,
                          const char *reason, const char *message, int64_t now_ms)
{
    json_t *conditions = object_list(object, "status.conditions");
    json_t *condition = object_find(conditions, "type", type);
    if (!condition) {
        condition = json_pack("{s:s}", "type", type);
        json_array_append_new(conditions, condition);
    }
    if (strcmp(object_text(condition, "status"), status)) {
        char now[TIMESTAMP_SIZE];
        timestamp_format(now_ms, now);
        object_set(condition, "lastTransitionTime", json_string(now));
    }
    object_set(condition, "status", json_string(status));
    object_remove(condition, "reason");
    object_remove(condition, "message");
    if (reason)
        object_set(condition, "reason", json_string(reason));
    if (message)
        object_set(condition, "message", json_string(message));
}
