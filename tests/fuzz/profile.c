/* Profiles: a ModelProfile object, the files of a Metis-format folder, or Sailor's. */
#include "tests/fuzz/fuzz.h"

#include "planner/profile_model.h"

#include <math.h>

static void assert_profile(const struct het_profile *profile)
{
    assert(profile->layer_count && profile->layer_count <= HET_MAX_LAYERS);
    for (size_t i = 0; i < profile->measurement_count; i++) {
        const struct het_measurement *one = &profile->measurements[i];
        assert(one->type < profile->type_count);
        for (uint32_t l = 0; l < profile->layer_count; l++) {
            assert(one->forward_s[l + 1] >= one->forward_s[l]);
            assert(one->backward_s[l + 1] >= one->backward_s[l]);
        }
        assert(isfinite(one->forward_s[profile->layer_count]));
        assert(isfinite(one->backward_s[profile->layer_count]));
        assert(isfinite(one->optimizer_s));
    }
}

void fuzz_one(const char *bytes, size_t length)
{
    json_auto_t *json = fuzz_decode(bytes, length);
    if (!json)
        return;
    struct het_arena *arena = het_arena_new();
    const struct het_profile *profile;
    struct het_error err;
    het_profile_model_hardware(arena, json, het_hardware_builtin());
    if (het_codec_profile(arena, json, &profile, &err) < 0)
        fuzz_assert_error(&err);
    else
        assert_profile(profile);
    het_arena_free(arena);
}
