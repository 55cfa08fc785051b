/* What the pod of a measurement says: a result of anything goes, in a whole and valid
 * entry of a profile, or not at all. */
#include "tests/fuzz/fuzz.h"

#include "controller/base/object.h"
#include "controller/cluster/measurement.h"

static const struct job_spec spec = {
    .ns = "ns",
    .profile_name = "p",
    .architecture = { .layers = 4,
                      .hidden = 64,
                      .heads = 4,
                      .kv_heads = 4,
                      .ffn_hidden = 128,
                      .vocabulary = 1000,
                      .sequence_length = 128,
                      .precision = "bf16" },
};

void fuzz_one(const char *bytes, size_t length)
{
    const struct measurement measurement = { .type = "Tesla-T4", .name = "m" };
    struct measurement_result result;
    struct het_error err = { 0 };
    if (measurement_read(bytes, length, &spec, &measurement, &result, &err) < 0) {
        fuzz_assert_error(&err);
        return;
    }
    json_auto_t *profile = measurement_profile(&spec, &result);
    measurement_result_fini(&result);
    fuzz_assert_round_trip(profile);
    struct het_arena *arena = het_arena_new();
    const struct het_profile *read = NULL;
    int failed = het_profile_json_read(arena, profile, &read, &err);
    if (failed)
        fuzz_assert_error(&err);
    else
        assert(read->layer_count == 6);
    het_arena_free(arena);
}
