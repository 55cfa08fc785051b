#include "controller/object.h"

#include "planner/hetplan.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_KEY = 64 }; /* in a path, with its NUL */

/* Copies the first key of `path` into `key`; returns the rest, NULL at the end. */
static const char *first_key(const char *path, char key[LONGEST_KEY])
{
    size_t length = strcspn(path, ".");
    assert(length < LONGEST_KEY);
    memcpy(key, path, length);
    key[length] = '\0';
    return path[length] ? path + length + 1 : NULL;
}

json_t *object_pack(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    json_t *json = json_vpack_ex(NULL, 0, format, arguments);
    va_end(arguments);
    if (!json)
        abort();
    return json;
}

json_t *object_at(const json_t *object, const char *path)
{
    char key[LONGEST_KEY];
    json_t *value = NULL;
    do {
        path = first_key(path, key);
        value = json_object_get(object, key);
        object = value;
    } while (path && value);
    return value;
}

const char *object_text(const json_t *object, const char *path)
{
    const char *text = json_string_value(object_at(object, path));
    return text ? text : "";
}

int64_t object_integer(const json_t *object, const char *path, int64_t fallback)
{
    json_t *value = object_at(object, path);
    return json_is_integer(value) ? json_integer_value(value) : fallback;
}

bool object_is_true(const json_t *object, const char *path)
{
    return json_is_true(object_at(object, path));
}

char *object_key(const json_t *object)
{
    const char *ns = object_text(object, "metadata.namespace");
    return xasprintf("%s%s%s", ns, *ns ? "/" : "", object_text(object, "metadata.name"));
}

json_t *object_find(const json_t *list, const char *field, const char *text)
{
    size_t i;
    json_t *element;
    json_array_foreach (list, i, element) {
        if (!strcmp(object_text(element, field), text))
            return element;
    }
    return NULL;
}

json_t *object_find_condition(const json_t *object, const char *type)
{
    return object_find(object_at(object, "status.conditions"), "type", type);
}

const char *object_condition(const json_t *object, const char *type)
{
    return object_text(object_find_condition(object, type), "status");
}

bool object_condition_is_true(const json_t *object, const char *type)
{
    return !strcmp(object_condition(object, type), "True");
}

/* ---- building ---- */

/* The map that holds the last key of `path`, which goes to `key`; NULL if `object` is no
 * map (jansson then refuses the value that is put there, and frees it). */
static json_t *parent_of(json_t *object, const char *path, char key[LONGEST_KEY])
{
    while ((path = first_key(path, key))) {
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
    char key[LONGEST_KEY];
    json_t *parent = parent_of(object, path, key);
    json_object_set_new(parent, key, value);
}

void object_remove(json_t *object, const char *path)
{
    char key[LONGEST_KEY];
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
