#include "controller/cluster/precedence.h"

#include "controller/base/object.h"
#include "controller/base/timestamp.h"

#include <string.h>

static int64_t value_of(const json_t *class)
{
    return object_integer(class, "value", 0);
}

static const json_t *default_class(const struct store *store)
{
    const json_t *lowest = NULL;
    for (size_t i = 0; i < store_count(store, &kube_priority_class); i++) {
        const json_t *class = store_at(store, &kube_priority_class, i);
        if (object_is_true(class, "globalDefault") &&
            (!lowest || value_of(class) < value_of(lowest)))
            lowest = class;
    }
    return lowest;
}

struct precedence precedence_of(const struct store *store, const json_t *job)
{
    const char *name = object_text(job, "spec.scheduling.priorityClassName");
    const json_t *class = *name ? store_find(store, &kube_priority_class, "", name)
                                : default_class(store);
    struct precedence precedence = {
        .priority = value_of(class),
        .never_claims = !strcmp(object_text(class, "preemptionPolicy"), "Never"),
        .uid = kube_uid(job),
    };
    timestamp_parse(object_text(job, "metadata.creationTimestamp"),
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
