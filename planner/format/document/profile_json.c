#include "planner/format/document/profile_json.h"

#include "planner/format/profile/metis.h"
#include "planner/format/profile/model.h"
#include "planner/format/profile/sailor.h"

#include <string.h>

int het_profile_json_read(struct het_arena *arena, const json_t *json,
                          const struct het_profile **ret, struct het_error *err)
{
    if (json_object_get(json, "files"))
        return het_profile_metis_read(arena, json, ret, err);
    if (json_object_get(json, "layerTimes"))
        return het_profile_sailor_read(arena, json, ret, err);
    const char *kind = json_string_value(json_object_get(json, "kind"));
    if (kind && (!strcmp(kind, "ModelProfile") || !strcmp(kind, "ClusterModelProfile")))
        return het_profile_model_read(arena, json, ret, err);
    return het_fail(
        err, HET_BAD_INPUT,
        "kind: must be ModelProfile or ClusterModelProfile, is %.60s (or give "
        "a folder of measurements: DeviceType.*_tp*_bs*.json or <TYPE>.json files)",
        kind ? kind : "missing");
}
