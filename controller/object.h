/* object.h - reads and builds Kubernetes objects as JSON. Pure.
 *
 * A path is keys of at most 63 bytes joined by dots: "metadata.name". A key that itself
 * holds a dot (labels, resource names) is read from its map with json_object_get. */
#ifndef CONTROLLER_OBJECT_H
#define CONTROLLER_OBJECT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* json_pack of our own objects, which cannot fail but for lack of memory or a wrong
 * format: a defect of ours, which ends the process. */
json_t *object_pack(const char *format, ...);

/* The value at `path`, borrowed; NULL if there is none. */
json_t *object_at(const json_t *object, const char *path);
/* The text at `path`, "" if there is none. */
const char *object_text(const json_t *object, const char *path);
int64_t object_integer(const json_t *object, const char *path, int64_t fallback);
bool object_is_true(const json_t *object, const char *path);

/* "namespace/name", or "name" without a namespace; the caller frees it. */
char *object_key(const json_t *object);
/* The element of `list` whose `field` is `text`; NULL if there is none. */
json_t *object_find(const json_t *list, const char *field, const char *text);
/* The entry of `type` in status.conditions; NULL if there is none. */
json_t *object_find_condition(const json_t *object, const char *type);
/* Its status ("True", "False", "Unknown"); "" if there is none. */
const char *object_condition(const json_t *object, const char *type);
bool object_condition_is_true(const json_t *object, const char *type);

/* Puts `value` (a reference that is taken) at `path`, with the maps on the way. */
void object_set(json_t *object, const char *path, json_t *value);
void object_remove(json_t *object, const char *path);
/* As object_set, only if nothing is there. */
void object_default(json_t *object, const char *path, json_t *value);
/* The map or list at `path`, made empty if there is none. */
json_t *object_map(json_t *object, const char *path);
json_t *object_list(json_t *object, const char *path);

#endif
