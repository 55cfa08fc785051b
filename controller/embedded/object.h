/* object.h - builds and changes Kubernetes objects as JSON, for the embedded server;
 * paths are those of controller/object.h, which reads them. Objects that the server holds
 * are shared and never changed; who wants to change one takes a deep copy. */
#ifndef CONTROLLER_EMBEDDED_OBJECT_H
#define CONTROLLER_EMBEDDED_OBJECT_H

#include "controller/object.h"

/* Puts `value` (a reference that is taken) at `path`, with the maps on the way. */
void object_set(json_t *object, const char *path, json_t *value);
void object_remove(json_t *object, const char *path);
/* As object_set, only if nothing is there. */
void object_default(json_t *object, const char *path, json_t *value);
/* The map or list at `path`, made empty if there is none. */
json_t *object_map(json_t *object, const char *path);
json_t *object_list(json_t *object, const char *path);

/* Sets a condition in status.conditions. lastTransitionTime becomes `now_ms` only when
 * the status changes. */
void object_set_condition(json_t *object, const char *type, const char *status,
                          const char *reason, const char *message, int64_t now_ms);

#endif
