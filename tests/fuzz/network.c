/* A file of measured curves: what is read is whole, and gives bandwidths above zero and
 * within what was measured. */
#include "tests/fuzz/fuzz.h"

#include "planner/format/network_json.h"

static void assert_curve(const struct het_curve *curve)
{
    for (double bytes = 1; bytes < 1e15; bytes *= 1e3) {
        double now = het_curve_bandwidth(curve, bytes);
        assert(now > 0 && now <= curve->most_bytes_per_s);
    }
}

void fuzz_one(const char *bytes, size_t length)
{
    json_auto_t *json = fuzz_decode(bytes, length);
    if (!json)
        return;
    struct het_arena *arena = het_arena_new();
    const struct het_network *network;
    struct het_error err;
    if (het_network_read(arena, json, &network, &err) < 0)
        fuzz_assert_error(&err);
    else
        for (size_t i = 0; i < network->curve_count; i++)
            assert_curve(&network->curves[i]);
    het_arena_free(arena);
}
