/* Profiles: a ModelProfile object, the files of a Metis-format folder, or Sailor's. What
 * can be written as a ModelProfile has the same times when it is read again. */
#include "tests/fuzz/fuzz.h"

#include "planner/format/profile/model.h"
#include "planner/format/profile/object.h"

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

/* Whether a profile is of the kind that is converted. */
static bool is_plain(const struct het_profile *profile)
{
    bool plain = true;
    for (size_t i = 0; i < profile->measurement_count; i++)
        plain &= !profile->measurements[i].selective_backward_s;
    for (size_t i = 0; i < profile->bytes_count; i++)
        plain &= !(profile->bytes[i].workspace_bytes > 0) &&
                 !profile->bytes[i].selective_activations;
    return plain;
}

static void assert_converted(struct het_arena *arena, const struct het_profile *profile)
{
    const struct het_profile_facts facts = { .name = "m" };
    const struct het_profile *again;
    struct het_error err;
    json_t *object;
    if (het_profile_object(profile, &facts, &object, &err) < 0) {
        fuzz_assert_error(&err);
        return;
    }
    assert(!het_profile_model_read(arena, object, &again, &err));
    json_decref(object);
    assert(again->measurement_count == profile->measurement_count);
    for (size_t i = 0; i < profile->measurement_count; i++)
        for (uint32_t l = 0; l <= profile->layer_count; l++) {
            const struct het_measurement *a = &profile->measurements[i];
            const struct het_measurement *b = &again->measurements[i];
            assert(a->forward_s[l] == b->forward_s[l]);
            assert(a->backward_s[l] == b->backward_s[l]);
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
    if (het_profile_json_read(arena, json, &profile, &err) < 0) {
        fuzz_assert_error(&err);
    } else {
        assert_profile(profile);
        if (is_plain(profile))
            assert_converted(arena, profile);
    }
    het_arena_free(arena);
}
