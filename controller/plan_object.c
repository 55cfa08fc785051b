#include "controller/plan_object.h"

#include "controller/kube.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int64_t plan_object_number(const char *text)
{
    char *end;
    long long number = strtoll(text, &end, 10);
    return *text && !*end && number >= 0 && number <= INT32_MAX ? number : 0;
}

int64_t plan_object_generation(const json_t *config_map)
{
    int64_t generation =
        plan_object_number(kube_label(config_map, LABEL_PLAN_GENERATION));
    if (!generation || !json_is_true(json_object_get(config_map, "immutable")))
        return 0;
    auto_free char *name =
        xasprintf("%s-plan-%" PRId64, kube_label(config_map, LABEL_JOB_NAME), generation);
    return strcmp(kube_name(config_map), name) ? 0 : generation;
}

const struct het_plan *plan_object_read(struct het_arena *arena, const json_t *config_map)
{
    const char *text = json_string_value(
        json_object_get(json_object_get(config_map, "data"), "plan.json"));
    const struct het_plan *plan;
    if (!text || het_codec_plan_text(arena, text, "plan.json", &plan, NULL) < 0 ||
        strcmp(het_codec_plan_hash(arena, plan),
               kube_annotation(config_map, ANNOTATION_PLAN_HASH)))
        return NULL;
    return plan;
}
