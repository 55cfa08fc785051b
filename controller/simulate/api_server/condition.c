#include "controller/simulate/api_server/condition.h"

#include "controller/base/timestamp.h"

#include <string.h>

void condition_set(json_t *object, const char *type, const char *status,
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
