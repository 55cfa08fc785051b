#include "planner/format/yaml_read.h"

#include "planner/base/arena.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* The documents as compact JSON; an error as its message. The caller frees. */
static char *convert(const char *text, size_t length)
{
    struct het_error err = { 0 };
    json_t *documents;
    if (het_yaml_parse(text, length, &documents, &err) < 0) {
        ck_assert_int_eq(err.code, HET_BAD_INPUT);
        return xstrdup(err.message);
    }
    ck_assert_str_eq(err.message, "");
    char *json = json_dumps(documents, JSON_COMPACT);
    json_decref(documents);
    return json;
}

static const struct {
    const char *yaml, *json;
} conversions[] = {
    /* Scalars as kubectl reads them. */
    { "[~, null, Null, NULL, ]", "[[null,null,null,null]]" },
    { "{a: , b: ''}", "[{\"a\":null,\"b\":\"\"}]" },
    { "[true, True, TRUE, yes, Yes, YES, on, y]",
      "[[true,true,true,true,true,true,true,true]]" },
    { "[false, False, FALSE, no, No, NO, off, n]",
      "[[false,false,false,false,false,false,false,false]]" },
    { "[tRue, nULL, yES, nan, inf]", "[[\"tRue\",\"nULL\",\"yES\",\"nan\",\"inf\"]]" },
    { "['true', \"null\", '1', \"~\"]", "[[\"true\",\"null\",\"1\",\"~\"]]" },
    { "[0, 12, -3, +4, 1_000, -0]", "[[0,12,-3,4,1000,0]]" },
    { "[0x1F, 0XfF, -0x10, 0o17, 017, 0b101, 08, 0x, 0b2, 0o8]",
      "[[31,255,-16,15,15,5,8,\"0x\",\"0b2\",\"0o8\"]]" },
    { "[9223372036854775807, -9223372036854775808]",
      "[[9223372036854775807,-9223372036854775808]]" },
    { "[9223372036854775808, -9223372036854775809, 18446744073709551616]",
      "[[9.2233720368547758e18,-9.2233720368547758e18,1.8446744073709552e19]]" },
    { "[1.5, -.5, .25, 1., 1e3, 1.5E-1, +.5]",
      "[[1.5,-0.5,0.25,1.0,1000.0,0.14999999999999999,0.5]]" },
    { "[1e400, 1.2.3, 1e, ., +, '-', 1-2, 12Gi, 500m, 1 2]",
      "[[\"1e400\",\"1.2.3\",\"1e\",\".\",\"+\",\"-\",\"1-2\",\"12Gi\",\"500m\",\"1 2\"]]" },
    { "[2001-01-01, 2001-01-01T10:00:00Z, 12:30:45, v1, 1.27.3]",
      "[[\"2001-01-01\",\"2001-01-01T10:00:00Z\",\"12:30:45\",\"v1\",\"1.27.3\"]]" },
    { "[!!str 12, !!int 12, !!float 12, !!float 1.5, !!bool yes, !!null ~, ! 12]",
      "[[\"12\",12,12.0,1.5,true,null,\"12\"]]" },
    { "[\"a\\tb\\u00e9\\x41\", 'it''s', \"\\U0001F600\"]",
      "[[\"a\\tb\xc3\xa9"
      "A\",\"it's\",\"\xf0\x9f\x98\x80\"]]" },

    /* Structure. */
    { "a: 1\nb:\n  - x\n  - y: 2\n    z: 3\n",
      "[{\"a\":1,\"b\":[\"x\",{\"y\":2,\"z\":3}]}]" },
    { "- - 1\n  - 2\n- {}\n- []\n", "[[[1,2],{},[]]]" },
    { "z: 1\na: 2\nm: 3\n", "[{\"z\":1,\"a\":2,\"m\":3}]" },
    { "a: |\n  one\n  two\nb: >-\n  one\n  two\n",
      "[{\"a\":\"one\\ntwo\\n\",\"b\":\"one two\"}]" },
    { "# only\n# comments\n", "[]" },
    { "", "[]" },
    { "a: 1 # why\n", "[{\"a\":1}]" },
    { "{\"apiVersion\": \"v1\", \"n\": [1, 2.5, null, true]}",
      "[{\"apiVersion\":\"v1\",\"n\":[1,2.5,null,true]}]" },
    { "!!map {a: !!seq [1]}", "[{\"a\":[1]}]" },
    { "\xef\xbb\xbf"
      "a: 1\n",
      "[{\"a\":1}]" }, /* byte order mark */
    { "a: 1\r\nb: 2\r\n", "[{\"a\":1,\"b\":2}]" },

    /* Keys are their text. */
    { "{1: a, yes: b, 1.50: c, '': d}",
      "[{\"1\":\"a\",\"yes\":\"b\",\"1.50\":\"c\",\"\":\"d\"}]" },

    /* Documents. */
    { "a: 1\n---\nb: 2\n", "[{\"a\":1},{\"b\":2}]" },
    { "---\na: 1\n---\n---\n# nothing\n---\nb: 2\n...\n", "[{\"a\":1},{\"b\":2}]" },
    { "%YAML 1.2\n---\na: 1\n", "[{\"a\":1}]" },
    { "--- x\n--- 1\n", "[\"x\",1]" },

    /* Anchors, aliases, merges. */
    { "a: &x [1, 2]\nb: *x\nc: *x\n", "[{\"a\":[1,2],\"b\":[1,2],\"c\":[1,2]}]" },
    { "[&a 1, *a, &a 2, *a]", "[[1,1,2,2]]" },
    { "a: &x {p: 1, q: 2}\nb:\n  q: 3\n  <<: *x\n",
      "[{\"a\":{\"p\":1,\"q\":2},\"b\":{\"q\":3,\"p\":1}}]" },
    { "a: &x {p: 1}\nb: &y {p: 2, q: 2}\nc: {<<: [*x, *y], r: 3}\n",
      "[{\"a\":{\"p\":1},\"b\":{\"p\":2,\"q\":2},\"c\":{\"r\":3,\"p\":1,\"q\":2}}]" },
    { "{'<<': 1}", "[{\"<<\":1}]" },
    { "a: &x {<<: {p: 1}}\nb: *x\n", "[{\"a\":{\"p\":1},\"b\":{\"p\":1}}]" },

    /* Errors say where. */
    { "a: 1\na: 2\n", "line 2, column 1: key \"a\" comes twice" },
    { "{<<: {}, <<: {}}", "line 1, column 10: key \"<<\" comes twice" },
    { "a: .nan\n",
      "line 1, column 4: .nan cannot be written in JSON: quote it, or give a number" },
    { "a:\n  - -.INF\n",
      "line 2, column 5: -.INF cannot be written in JSON: quote it, or give a number" },
    { "a: !!int x\n", "line 1, column 4: \"x\" is no !!int" },
    { "a: !!bool 1\n", "line 1, column 4: \"1\" is no !!bool" },
    { "a: !!binary aGk=\n",
      "line 1, column 4: tag tag:yaml.org,2002:binary is not supported" },
    { "a: !Ref x\n", "line 1, column 4: tag !Ref is not supported" },
    { "a: !!set {x}\n",
      "line 1, column 4: tag tag:yaml.org,2002:set is not supported here" },
    { "a: !!seq {x: 1}\n",
      "line 1, column 4: tag tag:yaml.org,2002:seq is not supported here" },
    { "[a]: 1\n", "line 1, column 1: a key must be a plain value" },
    { "? {a: 1}\n: 1\n", "line 1, column 3: a key must be a plain value" },
    { "~: 1\n", "line 1, column 1: a key must not be null" },
    { "a: *x\n", "line 1, column 4: alias *x without an anchor" },
    { "a: &x [1, *x]\n", "line 1, column 11: alias *x inside its own anchor" },
    { "a: &x 1\n---\nb: *x\n", "line 3, column 4: alias *x without an anchor" },
    { "{<<: 1}", "line 1, column 7: << needs a mapping or a sequence of mappings" },
    { "{<<: [{}, 1]}",
      "line 1, column 13: << needs a mapping or a sequence of mappings" },
    { "a: \"x\\0y\"\n", "line 1, column 4: NUL character in a string" },
    { "a: b: c\n", "line 1, column 5: mapping values are not allowed in this context" },
    { "a: [1, 2\n",
      "line 2, column 1: did not find expected ',' or ']', while parsing a flow sequence" },
    { "a:\n\tb: 1\n",
      "line 2, column 1: found character that cannot start any token, while "
      "scanning for the next token" },
    { "a: \"x\n",
      "line 2, column 1: found unexpected end of stream, while scanning a quoted scalar" },
    { "a: 'x\xff'\n", "line 1, byte 6 of the text: invalid leading UTF-8 octet" },
    { "a: x\x01\n", "line 1, byte 5 of the text: control characters are not allowed" },
    { "%YAML 3.0\n---\n1\n", "line 1, column 1: found incompatible YAML document" },
};

START_TEST(text_becomes_json_or_a_message)
{
    auto_free char *json = convert(conversions[_i].yaml, strlen(conversions[_i].yaml));
    ck_assert_str_eq(json, conversions[_i].json);
}
END_TEST

/* Billion laughs: each level is nine of the one before. */
START_TEST(aliases_of_aliases_are_bounded)
{
    char text[4000] = "a0: &a0 lol\n";
    for (int i = 1; i < 12; i++) {
        char line[200];
        snprintf(line, sizeof line, "a%d: &a%d [", i, i);
        strcat(text, line);
        for (int j = 0; j < 9; j++) {
            snprintf(line, sizeof line, "*a%d,", i - 1);
            strcat(text, line);
        }
        strcat(text, "]\n");
    }
    auto_free char *result = convert(text, strlen(text));
    ck_assert_ptr_nonnull(strstr(result, "aliases expand to more than 100000 values"));
}
END_TEST

START_TEST(aliases_of_long_strings_are_bounded)
{
    enum { STRING = 1 << 20 };
    char *text = xmalloc(STRING + 200);
    strcpy(text, "a: &a \"");
    memset(text + 7, 'x', STRING);
    strcpy(text + 7 + STRING, "\"\nb: [");
    for (int i = 0; i < 17; i++)
        strcat(text + 7 + STRING, "*a,");
    strcat(text + 7 + STRING, "]\n");
    auto_free char *result = convert(text, strlen(text));
    ck_assert_ptr_nonnull(strstr(result, "aliases expand to more than"));
    free(text);
}
END_TEST

START_TEST(depth_is_bounded_also_through_aliases)
{
    for (int depth = 99; depth <= 102; depth++) {
        char text[300] = "";
        for (int i = 0; i < depth; i++)
            strcat(text, "[");
        for (int i = 0; i < depth; i++)
            strcat(text, "]");
        auto_free char *result = convert(text, strlen(text));
        ck_assert_int_eq(strstr(result, "nested deeper than 100") != NULL, depth > 100);
    }
    /* Each anchor is 40 deeper than the one it holds. */
    char text[1000] = "[";
    for (int level = 0; level < 4; level++) {
        char name[10];
        snprintf(name, sizeof name, "&a%d ", level);
        strcat(text, name);
        for (int i = 0; i < 40; i++)
            strcat(text, "[");
        if (level) {
            snprintf(name, sizeof name, "*a%d", level - 1);
            strcat(text, name);
        }
        for (int i = 0; i < 40; i++)
            strcat(text, "]");
        strcat(text, ",");
    }
    strcat(text, "]");
    auto_free char *result = convert(text, strlen(text));
    ck_assert_ptr_nonnull(strstr(result, "nested deeper than 100"));
}
END_TEST

START_TEST(very_deep_text_ends_at_once)
{
    size_t length = 10 << 20;
    char *text = xmalloc(length);
    memset(text, '[', length);
    auto_free char *result = convert(text, length);
    ck_assert_str_eq(result, "line 1, column 101: nested deeper than 100");
    free(text);
}
END_TEST

START_TEST(anchors_are_bounded)
{
    char *text = xmalloc(20000);
    strcpy(text, "[");
    size_t used = 1;
    for (int i = 0; i <= HET_YAML_MAX_ANCHORS; i++)
        used += (size_t)sprintf(text + used, "&a%d 1,", i);
    strcpy(text + used, "]");
    auto_free char *result = convert(text, strlen(text));
    ck_assert_ptr_nonnull(strstr(result, "more than 1000 anchors"));
    free(text);
}
END_TEST

START_TEST(size_is_bounded)
{
    struct het_error err = { 0 };
    json_t *documents = NULL;
    ck_assert_int_eq(het_yaml_parse("", (size_t)HET_YAML_MAX_BYTES + 1, &documents, &err),
                     -1);
    ck_assert_ptr_null(documents);
    ck_assert_str_eq(err.message, "YAML of 67108865 bytes: at most 67108864 are read");
}
END_TEST

START_TEST(copies_by_alias_are_separate)
{
    json_t *document;
    const char *text = "a: &x {p: 1}\nb: *x\n";
    ck_assert_int_eq(het_yaml_parse_one(text, strlen(text), &document, NULL), 0);
    json_object_set_new(json_object_get(document, "a"), "p", json_integer(2));
    ck_assert_int_eq(
        json_integer_value(json_object_get(json_object_get(document, "b"), "p")), 1);
    json_decref(document);
}
END_TEST

START_TEST(one_document_is_one)
{
    struct het_error err = { 0 };
    json_t *document = NULL;
    ck_assert_int_eq(het_yaml_parse_one("a: 1\n---\n", 9, &document, &err), 0);
    json_decref(document);
    document = NULL;
    ck_assert_int_eq(het_yaml_parse_one("", 0, &document, &err), -1);
    ck_assert_str_eq(err.message, "expected one document, found 0");
    ck_assert_int_eq(het_yaml_parse_one("1\n---\n2\n", 8, &document, &err), -1);
    ck_assert_str_eq(err.message, "expected one document, found 2");
    ck_assert_int_eq(het_yaml_parse_one("a: [", 4, &document, &err), -1);
    ck_assert_ptr_null(document);
}
END_TEST

/* Every prefix of a text with everything in it is read or refused, and nothing else. */
START_TEST(text_cut_anywhere_is_harmless)
{
    static const char text[] =
        "%YAML 1.2\n---\na: &x {p: [1, 0x2, 'x', \"y\\u00e9\"], <<: {q: 1}}\nb: *x\n"
        "c: |\n  text\n  more\n? d\n: !!str 5\n---\n- ~\n- caf\xc3\xa9\n...\n";
    for (size_t length = 0; length < sizeof text; length++) {
        auto_free char *result = convert(text, length);
        ck_assert_ptr_nonnull(result);
    }
}
END_TEST

START_TEST(many_values_take_moments)
{
    enum { COUNT = 300000 };
    char *text = xmalloc(COUNT * 20);
    size_t used = 0;
    for (int i = 0; i < COUNT; i++)
        used += (size_t)sprintf(text + used, "key%d: v%d\n", i, i);
    json_t *document;
    ck_assert_int_eq(het_yaml_parse_one(text, used, &document, NULL), 0);
    ck_assert_uint_eq(json_object_size(document), COUNT);
    json_decref(document);
    free(text);
}
END_TEST

Suite *test_yaml_read_suite(void)
{
    Suite *suite = suite_create("yaml_read");
    TCase *cases = tcase_create("yaml");
    tcase_add_loop_test(cases, text_becomes_json_or_a_message, 0,
                        sizeof conversions / sizeof *conversions);
    tcase_add_test(cases, aliases_of_aliases_are_bounded);
    tcase_add_test(cases, aliases_of_long_strings_are_bounded);
    tcase_add_test(cases, depth_is_bounded_also_through_aliases);
    tcase_add_test(cases, very_deep_text_ends_at_once);
    tcase_add_test(cases, anchors_are_bounded);
    tcase_add_test(cases, size_is_bounded);
    tcase_add_test(cases, copies_by_alias_are_separate);
    tcase_add_test(cases, one_document_is_one);
    tcase_add_test(cases, text_cut_anywhere_is_harmless);
    tcase_add_test(cases, many_values_take_moments);
    suite_add_tcase(suite, cases);
    return suite;
}
