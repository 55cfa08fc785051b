/* Logs of Megatron-LM: whatever is accepted becomes a profile with finite times. */
#include "tests/fuzz/fuzz.h"

#include "planner/format/profile/timers.h"

#include <math.h>

void fuzz_one(const char *bytes, size_t length)
{
    auto_free char *text = fuzz_text(bytes, length);
    const struct het_timers_run runs[] = { { "A100", "a.log", text },
                                           { "Z80", "b.log", text } };
    struct het_arena *arena = het_arena_new();
    const struct het_profile *profile;
    struct het_error err;
    uint32_t sequence;
    if (het_profile_timers_read(arena, runs, 2, het_hardware_builtin(), &profile,
                                &sequence, &err) < 0) {
        fuzz_assert_error(&err);
    } else {
        assert(profile->type_count == 2 && profile->measurement_count == 2 && sequence);
        for (size_t i = 0; i < profile->measurement_count; i++) {
            const struct het_measurement *one = &profile->measurements[i];
            assert(isfinite(one->forward_s[profile->layer_count]));
            assert(isfinite(one->backward_s[profile->layer_count]));
            assert(isfinite(one->optimizer_s));
        }
    }
    het_arena_free(arena);
}
