/* condition.h - writes conditions into objects. Stored objects are shared and never
 * changed; to change one, take a deep copy. */
#ifndef CONTROLLER_SIMULATE_API_SERVER_CONDITION_H
#define CONTROLLER_SIMULATE_API_SERVER_CONDITION_H

#include "controller/base/object.h"

/* Sets a condition in status.conditions. lastTransitionTime becomes `now_ms` only when
 * the status changes. */
void condition_set(json_t *object, const char *type, const char *status,
                   const char *reason, const char *message, int64_t now_ms);

#endif
