#include "controller/object.h"

#include "planner/hetplan.h"

#include <assert.h>
#include <string.h>

const char *object_first_key(const char *path, char key[OBJECT_LONGEST_KEY])
{
    size_t length = strcspn(path, ".");
    assert(length < OBJECT_LONGEST_KEY);
    memcpy(key, path, length);
    key[length] = '\0';
    return path[length] ? path + length + 1 : NULL;
}

json_t *object_at(const json_t *object, const char *path)
{
    char key[OBJECT_LONGEST_KEY];
    json_t *value = NULL;
    do {
        path = object_first_key(path, key);
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
