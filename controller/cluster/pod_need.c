#include "controller/cluster/pod_need.h"

#include "controller/base/quantity.h"

#include <stdlib.h>
#include <string.h>

bool pod_need_is_milli(const char *resource)
{
    return !strcmp(resource, "cpu");
}

static int compare_needs(const void *a, const void *b)
{
    const struct pod_need *left = a, *right = b;
    return strcmp(left->resource, right->resource);
}

/* Quantities are at most a sixteenth of the integers, so that a few can be added. */
static int64_t bounded(int64_t amount)
{
    return amount < INT64_MAX / 16 ? amount : INT64_MAX / 16;
}

static int64_t per_gpu_of(const struct job_spec *spec, const char *resource)
{
    const json_t *value = json_object_get(spec->per_gpu_resources, resource);
    int64_t milli = value ? quantity_of(value, 0) : 0;
    if (pod_need_is_milli(resource))
        return bounded(milli);
    return bounded(milli / 1000 + (milli % 1000 != 0));
}

size_t pod_need_read(struct het_arena *arena, const struct job_spec *spec,
                     struct pod_need **ret)
{
    /* Every name once, in an object: { NAME: true }. */
    json_auto_t *names = json_object();
    const char *name;
    json_t *value;
    json_object_set_new(names, POD_NEED_PODS, json_true());
    het_pod_resources(spec->pod_template, names);
    json_object_foreach ((json_t *)(uintptr_t)spec->per_gpu_resources, name, value)
        json_object_set_new(names, name, json_true());

    struct pod_need *needs =
        HET_ARENA_ARRAY(arena, struct pod_need, json_object_size(names));
    size_t count = 0;
    json_object_foreach (names, name, value) {
        if (job_spec_is_gpu_resource(spec, name))
            continue;
        struct het_pod_request request =
            het_pod_request_parts(spec->pod_template, name, pod_need_is_milli(name));
        struct pod_need *need = &needs[count++];
        *need = (struct pod_need){
            .resource = het_arena_strdup(arena, name),
            .running = bounded(request.running),
            .starting = bounded(request.starting),
            .overhead = bounded(request.overhead),
            .per_gpu = request.is_whole ? 0 : per_gpu_of(spec, name),
        };
        if (!strcmp(name, POD_NEED_PODS))
            *need = (struct pod_need){ .resource = POD_NEED_PODS, .running = 1 };
    }
    qsort(needs, count, sizeof *needs, compare_needs);
    *ret = needs;
    return count;
}

int64_t pod_need_amount(const struct pod_need *need, int64_t gpus)
{
    int64_t running;
    if (__builtin_mul_overflow(need->per_gpu, gpus, &running))
        return INT64_MAX;
    running = quantity_add(running, need->running);
    return quantity_add(running > need->starting ? running : need->starting,
                        need->overhead);
}

int64_t pod_need_fit(const struct pod_need *need, int64_t left, int64_t most)
{
    if (pod_need_amount(need, 0) > left)
        return 0;
    if (!need->per_gpu)
        return most;
    int64_t gpus = (left - need->overhead - need->running) / need->per_gpu;
    return gpus < most ? gpus : most;
}
