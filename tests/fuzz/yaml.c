/* YAML text: every document that comes out is JSON, and if its JSON text is read as YAML,
 * or what is written of it as YAML, it means the same. */
#include "tests/fuzz/fuzz.h"

#include "planner/format/yaml_write.h"

#include <string.h>

static bool is_printable_ascii(const char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}

static void assert_same(const char *yaml, const char *json)
{
    json_t *again;
    /* It may be refused: libyaml takes keys of up to 1024 bytes, for example. */
    if (het_yaml_parse_one(yaml, strlen(yaml), &again, NULL) < 0)
        return;
    auto_free char *same = het_json_canonical(again);
    json_decref(again);
    assert(!strcmp(json, same));
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
    if (!is_printable_ascii(text))
        return;
    assert_same(text, text);
    json_t *document;
    size_t i;
    json_array_foreach (documents, i, document) {
        auto_free char *json = het_json_canonical(document);
        auto_free char *yaml = json_is_object(document) ? het_yaml_text(document)
                                                        : xstrdup(json);
        assert_same(yaml, json);
    }
}
