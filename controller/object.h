/* object.h - reads Kubernetes objects as JSON. Pure.
 *
 * A path is keys joined by dots: "metadata.name". A key that itself holds a dot (labels,
 * resource names) is read from its map with json_object_get. */
#ifndef CONTROLLER_OBJECT_H
#define CONTROLLER_OBJECT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { OBJECT_LONGEST_KEY = 64 }; /* in a path, with its NUL */

/* Copies the first key of `path` into `key`; returns the rest, NULL at the end. */
const char *object_first_key(const char *path, char key[OBJECT_LONGEST_KEY]);
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

#endif
