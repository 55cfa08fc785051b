/* A model's config.json, estimated on a cluster: { "cluster": ..., "profile": { "config":
 * ... } }. Whatever is accepted has finite times. */
#include "tests/fuzz/fuzz.h"

#include "planner/format/profile/config.h"

#include <math.h>

static void assert_profile(const struct het_profile *profile)
{
    uint32_t layers = profile->layer_count;
    assert(layers >= 3 && profile->origin != HET_PROFILE_MEASURED);
    for (size_t i = 0; i < profile->measurement_count; i++) {
        const struct het_measurement *one = &profile->measurements[i];
        assert(one->type < profile->type_count);
        assert(isfinite(one->forward_s[layers]) && one->forward_s[layers] > 0);
        assert(isfinite(one->backward_s[layers]) && one->optimizer_s >= 0);
    }
}

void fuzz_one(const char *bytes, size_t length)
{
    json_auto_t *json = fuzz_decode(bytes, length);
    if (!json)
        return;
    struct het_arena *arena = het_arena_new();
    const struct het_hardware *hardware = het_hardware_builtin();
    const struct het_cluster *cluster;
    const struct het_profile *profile;
    struct het_error err;
    if (het_cluster_json_read(arena, json_object_get(json, "cluster"), hardware, &cluster,
                              &err) < 0 ||
        het_profile_config_read(arena, json_object_get(json, "profile"), cluster,
                                hardware, &profile, &err) < 0)
        fuzz_assert_error(&err);
    else
        assert_profile(profile);
    het_arena_free(arena);
}
