/* JSON text: what is decoded is written canonically and for people, and reads back as
 * the same. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

void fuzz_one(const char *bytes, size_t length)
{
    json_t *decoded;
    struct het_error err;
    if (het_json_decode(bytes, length, "input", &decoded, &err) < 0) {
        assert(err.code == HET_BAD_INPUT);
        fuzz_assert_error(&err);
        return;
    }
    json_auto_t *json = decoded;
    fuzz_assert_round_trip(json);
    auto_free char *pretty = het_json_pretty(json);
    json_auto_t *read = fuzz_decode(pretty, strlen(pretty));
    assert(read);
    auto_free char *text = het_json_canonical(json), *same = het_json_canonical(read);
    assert(!strcmp(text, same));
}
