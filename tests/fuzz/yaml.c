/* YAML text: every document that comes out is JSON, and if its JSON text is read as YAML,
 * it means the same. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

static bool is_printable_ascii(const char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}

void fuzz_one(const char *bytes, size_t length)
{
    json_t *parsed;
    struct het_error err;
    if (het_yaml_parse(bytes, length, &parsed, &err) < 0) {
        fuzz_assert_error(&err);
        return;
    }
    json_auto_t *documents = parsed;
    fuzz_assert_round_trip(documents);
    auto_free char *text = het_json_canonical(documents);
    json_t *again;
    /* It may be refused: libyaml takes keys of up to 1024 bytes, for example. */
    if (!is_printable_ascii(text) ||
        het_yaml_parse_one(text, strlen(text), &again, NULL) < 0)
        return;
    auto_free char *same = het_json_canonical(again);
    json_decref(again);
    assert(!strcmp(text, same));
}
