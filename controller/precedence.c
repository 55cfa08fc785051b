#include "controller/precedence.h"

#include "controller/kube.h"
#include "controller/timestamp.h"

#include <string.h>

static int64_t value_of(const json_t *class)
{
    return json_integer_value(json_object_get(class, "value"));
}

static const json_t *default_class(const struct store *store)
{
    const json_t *lowest = NULL;
    for (size_t i = 0; i < store_count(store, &kube_priority_class); i++) {
        const json_t *class = store_at(store, &kube_priority_class, i);
        if (json_is_true(json_object_get(class, "globalDefault")) &&
            (!lowest || value_of(class) < value_of(lowest)))
            lowest = class;
    }
    return lowest;
}

struct precedence precedence_of(const struct store *store, const json_t *job)
{
    const json_t *spec = json_object_get(job, "spec");
    const char *name = json_string_value(
        json_object_get(json_object_get(spec, "scheduling"), "priorityClassName"));
    const json_t *class = name && *name
                              ? store_find(store, &kube_priority_class, "", name)
                              : default_class(store);
    const char *policy = json_string_value(json_object_get(class, "preemptionPolicy"));
    struct precedence precedence = {
        .priority = value_of(class),
        .never_claims = policy && !strcmp(policy, "Never"),
        .uid = kube_uid(job),
    };
    const json_t *metadata = json_object_get(job, "metadata");
    timestamp_parse(json_string_value(json_object_get(metadata, "creationTimestamp")),
                    &precedence.created_ms);
    return precedence;
}

int precedence_compare(const struct precedence *a, const struct precedence *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    if (a->created_ms != b->created_ms)
        return a->created_ms < b->created_ms ? -1 : 1;
    return strcmp(a->uid, b->uid);
}
