#include "planner/format/yaml_write.h"

#include "planner/base/arena.h"
#include "planner/format/yaml_read.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* The text of a JSON, which must read back as the same. The caller frees it. */
static char *write_text(const char *json_text)
{
    json_auto_t *json = json_loads(json_text, 0, NULL), *again = NULL;
    struct het_error err = { 0 };
    ck_assert_msg(json != NULL, "%s", json_text);
    char *text = het_yaml_text(json);
    ck_assert_msg(!het_yaml_parse_one(text, strlen(text), &again, &err), "%s: %s", text,
                  err.message);
    ck_assert_msg(json_equal(json, again), "%s", text);
    return text;
}

START_TEST(members_are_lines_and_flat_entries_are_too)
{
    auto_free char *text = write_text(
        "{\"kind\":\"A\",\"metadata\":{\"name\":\"a-1\"},\"spec\":{\"list\":["
        "{\"a\":1,\"b\":\"1.5\"},{\"c\":\"x\",\"deep\":[{\"d\":true}],"
        "\"e\":{\"f\":null}}],\"words\":[\"x\",\"y\"],\"none\":[],\"no\":{}}}");
    ck_assert_str_eq(text, "kind: A\n"
                           "metadata:\n"
                           "  name: a-1\n"
                           "spec:\n"
                           "  list:\n"
                           "  - {a: 1, b: \"1.5\"}\n"
                           "  - c: x\n"
                           "    deep:\n"
                           "    - {d: true}\n"
                           "    e:\n"
                           "      f: null\n"
                           "  words: [x, \"y\"]\n"
                           "  none: []\n"
                           "  \"no\": {}\n");
}
END_TEST

START_TEST(whatever_could_be_read_otherwise_is_quoted)
{
    static const char *const values[] = {
        "{\"a\":\"yes\"}",
        "{\"a\":\"No\"}",
        "{\"a\":\"~\"}",
        "{\"a\":\"\"}",
        "{\"a\":\"12\"}",
        "{\"a\":\"-x\"}",
        "{\"a\":\"b: c\"}",
        "{\"a\":\"# d\"}",
        "{\"a\":\"two\\nlines\"}",
        "{\"a\":\"\\u00e9\\t\"}",
        "{\"a: b\":1}",
        "{\"\":[[],[1,[2,{\"x\":[]}]]]}",
        "{\"a\":[{},[{\"b\":1}]]}",
        "{\"a\":-0.5,\"b\":1e300}",
        "{\"null\":null}",
        "{}",
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        free(write_text(values[i]));
}
END_TEST

Suite *test_yaml_write_suite(void)
{
    Suite *suite = suite_create("yaml_write");
    TCase *all = tcase_create("all");
    tcase_add_test(all, members_are_lines_and_flat_entries_are_too);
    tcase_add_test(all, whatever_could_be_read_otherwise_is_quoted);
    suite_add_tcase(suite, all);
    return suite;
}
