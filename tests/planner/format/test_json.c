#include "planner/format/json.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_t *decode(const char *text)
{
    json_t *json = NULL;
    struct het_error err;
    ck_assert_msg(!het_json_decode(text, strlen(text), "test", &json, &err), "%s",
                  err.message);
    return json;
}

START_TEST(canonical_text_is_sorted_and_compact)
{
    json_auto_t *json = decode(
        " {\"b\": [1, 2.50, -0.0, 1e3, true, null],\n \"a\": {\"z\": \"x\\u0001\\\"\\n"
        "\xc3\xa9\\/\", \"y\": {}}} ");
    auto_free char *text = het_json_canonical(json);
    ck_assert_str_eq(text,
                     "{\"a\":{\"y\":{},\"z\":\"x\\u0001\\\"\\n\xc3\xa9/\"},\"b\":[1,2.5,"
                     "0,1000,true,null]}");
    auto_free char *pretty = het_json_pretty(json);
    ck_assert_str_eq(pretty,
                     "{\n  \"a\": {\n    \"y\": {},\n    \"z\": "
                     "\"x\\u0001\\\"\\n\xc3\xa9/\"\n  },\n  \"b\": [\n    1,\n    "
                     "2.5,\n    0,\n    1000,\n    true,\n    null\n  ]\n}\n");
}
END_TEST

START_TEST(numbers_are_the_shortest_that_read_back)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        { 0.1, "0.1" },
        { 1.0 / 3, "0.3333333333333333" },
        { 123456.789, "123456.789" },
        { 1e300, "1e+300" },
        { 5e-324, "5e-324" },
        { DBL_MAX, "1.7976931348623157e+308" },
        { 9007199254740992.0, "9007199254740992" },
        { -2.5e-7, "-2.5e-07" },
        { 100, "100" },
        { 299792458.25, "299792458.25" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_auto_t *json = json_real(cases[i].value);
        auto_free char *text = het_json_canonical(json);
        ck_assert_str_eq(text, cases[i].text);
        ck_assert(strtod(text, NULL) == cases[i].value);
    }
}
END_TEST

static void refuses(const char *text, const char *message)
{
    json_t *json = NULL;
    struct het_error err;
    ck_assert_int_eq(het_json_decode(text, strlen(text), "x.json", &json, &err), -1);
    ck_assert_int_eq(err.code, HET_BAD_INPUT);
    ck_assert_msg(strstr(err.message, message), "%s", err.message);
    ck_assert_ptr_null(json);
}

START_TEST(broken_text_is_refused_with_its_place)
{
    refuses("{\n \"a\": }", "x.json: line 2, column 7: ");
    refuses("", "x.json: line 1");
    refuses("{\"a\":1,\"a\":2}", "give each field of an object once");
    refuses("{\"a\":", "the text ends too early; complete it");
    refuses("[\"a\\u0000\"]", "texts must not contain \\u0000; take it out");
    refuses("{\"a\\u0000\":1}", "must not contain \\u0000; take it out");
    refuses("1e999", "give a number that fits 64 bits");
    refuses("[NaN]", "invalid token");
    refuses("\"\xff\"", "unable to decode byte 0xff near");
    refuses("\"\xff\"", "; save the text as UTF-8");
    auto_free char *deep = xcalloc(5001, 1);
    memset(deep, '[', 5000);
    refuses(deep, "lists and objects are nested deeper than 2048");
}
END_TEST

START_TEST(complaints_name_the_path)
{
    json_auto_t *json =
        decode("{\"nodes\":[{\"gpus\":4},{\"gpus\":-1,\"name\":\"\",\"m\":"
               "\"x\",\"n\":2.5,\"o\":null,\"p\":\"3.67\",\"t\":"
               "\"a\\u0007\"}]}");
    struct het_arena *arena = het_arena_new();
    struct het_view root = het_view_root(json), list = het_view_get(&root, "nodes");
    struct het_view node = het_view_at(&list, 1), field;
    struct het_error err;
    uint32_t number = 7;
    double real = 7;
    const char *name = "unset";

    field = het_view_get(&node, "gpus");
    ck_assert_int_eq(het_view_u32(&field, 1, 1024, &number, &err), -1);
    ck_assert_str_eq(err.message, "nodes[1].gpus: must be 1 to 1024, is -1");
    ck_assert_uint_eq(number, 7);
    field = het_view_get(&node, "name");
    ck_assert_int_eq(het_view_name(&field, arena, &name, &err), -1);
    ck_assert_str_eq(err.message, "nodes[1].name: must be 1 to 253 bytes long, is 0");
    field = het_view_get(&node, "t");
    ck_assert_int_eq(het_view_name(&field, arena, &name, &err), -1);
    ck_assert_str_eq(err.message, "nodes[1].t: must not contain control characters");
    field = het_view_get(&node, "m");
    ck_assert_int_eq(het_view_number(&field, 0, 1, &real, &err), -1);
    ck_assert_str_eq(err.message, "nodes[1].m: must be a number, is a text");
    field = het_view_get(&node, "n");
    ck_assert_int_eq(het_view_u32(&field, 0, 9, &number, &err), -1);
    ck_assert_str_eq(err.message, "nodes[1].n: must be a whole number");
    field = het_view_get(&node, "p");
    ck_assert_int_eq(het_view_number(&field, 0, 10, &real, &err), 0);
    ck_assert_double_eq(real, 3.67);
    field = het_view_get(&node, "o"); /* null is absent */
    ck_assert_int_eq(het_view_u32(&field, 0, 9, &number, &err), 0);
    ck_assert_uint_eq(number, 7);
    ck_assert_int_eq(het_view_need(&field, &err), -1);
    ck_assert_str_eq(err.message, "nodes[1].o: is missing");
    size_t count = 0;
    ck_assert_int_eq(het_view_array(&list, 1, &count, &err), -1);
    ck_assert_str_eq(err.message, "nodes: has 2 entries, at most 1 are allowed");
    ck_assert_int_eq(het_view_array(&node, 1, &count, &err), -1);
    ck_assert_str_eq(err.message, "nodes[1]: must be a list, is an object");
    het_arena_free(arena);
}
END_TEST

START_TEST(text_that_was_cut_inside_a_letter_still_prints)
{
    json_auto_t *json = het_json_text("caf\xc3...");
    ck_assert_str_eq(json_string_value(json), "caf?...");
}
END_TEST

Suite *test_json_suite(void)
{
    Suite *suite = suite_create("json");
    TCase *cases = tcase_create("json");
    tcase_add_test(cases, canonical_text_is_sorted_and_compact);
    tcase_add_test(cases, numbers_are_the_shortest_that_read_back);
    tcase_add_test(cases, broken_text_is_refused_with_its_place);
    tcase_add_test(cases, complaints_name_the_path);
    tcase_add_test(cases, text_that_was_cut_inside_a_letter_still_prints);
    suite_add_tcase(suite, cases);
    return suite;
}
