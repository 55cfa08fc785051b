/* Events of a simulation's script: "60s delete node/NAME". */
#include "tests/fuzz/fuzz.h"

#include "controller/simulate/simulated_cluster.h"

static json_t *load(const char *path, struct het_error *err)
{
    if (path[0] == '!')
        het_fail(err, HET_BAD_INPUT, "no such file");
    return path[0] == '!' ? NULL : json_pack("[{}]");
}

void fuzz_one(const char *bytes, size_t length)
{
    auto_free char *text = fuzz_text(bytes, length);
    struct scenario_event event;
    struct het_error err;
    assert(scenario_duration_ms(text) >= -1);
    if (scenario_event_parse(text, load, &event, &err) < 0) {
        fuzz_assert_error(&err);
        return;
    }
    assert(event.after_ms >= 0 && event.text);
    scenario_event_fini(&event);
}
