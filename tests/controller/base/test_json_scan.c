#include "controller/base/json_scan.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* "key=value;" for each member, and whether the walk was complete. */
static bool walk_members(const char *text, char *ret_found, size_t size)
{
    struct json_walk walk = json_walk_object(text, strlen(text));
    struct json_span key, value;
    *ret_found = '\0';
    while (json_next_member(&walk, &key, &value)) {
        size_t used = strlen(ret_found);
        snprintf(ret_found + used, size - used, "%.*s=%.*s;", (int)key.length, key.text,
                 (int)value.length, value.text);
    }
    return json_walk_is_complete(&walk);
}

static const struct {
    const char *text, *members;
    bool is_complete;
} objects[] = {
    { "{}", "", true },
    { " { } \n", "", true },
    { "{\"a\":1}", "a=1;", true },
    { " {\t\"a\" : -1.5e+3 , \"b\" : null\r\n} ", "a=-1.5e+3;b=null;", true },
    { "{\"a\":{\"b\":[1,{}]},\"c\":[]}", "a={\"b\":[1,{}]};c=[];", true },
    { "{\"a\":\"}\\\"]\",\"b\":\"\\\\\"}", "a=\"}\\\"]\";b=\"\\\\\";", true },
    { "{\"a\":1,\"a\":2}", "a=1;a=2;", true },
    { "{\"a\\\"b\":1}", "a\\\"b=1;", true },
    { "", "", false },
    { "   ", "", false },
    { "[]", "", false },
    { "null", "", false },
    { "{", "", false },
    { "{\"a\"", "", false },
    { "{\"a\":", "", false },
    { "{\"a\":1", "a=1;", false },
    { "{\"a\":1,", "a=1;", false },
    { "{\"a\":1,}", "a=1;", false },
    { "{\"a\":1 \"b\":2}", "a=1;", false },
    { "{,\"a\":1}", "", false },
    { "{\"a\":}", "", false },
    { "{\"a\" 1}", "", false },
    { "{a:1}", "", false },
    { "{\"a\":1}x", "a=1;", false },
    { "{\"a\":1}{}", "a=1;", false },
    { "{\"a\":\"x}", "", false },
    { "{\"a\":\"x\\\"}", "", false },
    { "{\"a\":[1,2}", "a=[1,2};", false },
    { "{\"a\":#}", "", false },
};

START_TEST(members_of_an_object)
{
    char found[200];
    ck_assert_int_eq(walk_members(objects[_i].text, found, sizeof found),
                     objects[_i].is_complete);
    ck_assert_str_eq(found, objects[_i].members);
}
END_TEST

START_TEST(object_cut_anywhere_is_never_complete)
{
    static const char text[] =
        "{\"a\":{\"b\":[\"x\\\"\",{\"c\":null}]},\"d\":-12.5,\"e\":\"\"}";
    char found[200];
    ck_assert(walk_members(text, found, sizeof found));
    for (size_t length = 0; length < sizeof text - 1; length++) {
        struct json_walk walk = json_walk_object(text, length);
        struct json_span key, value;
        while (json_next_member(&walk, &key, &value))
            ;
        ck_assert_msg(!json_walk_is_complete(&walk), "cut at %zu", length);
        ck_assert(!json_find_member(text, length, "a", &value));
    }
}
END_TEST

START_TEST(elements_of_an_array)
{
    static const char text[] = " [ 1 , \"a,]\" , [2,[3]] , {\"x\":[]} ] ";
    static const char *const expected[] = { "1", "\"a,]\"", "[2,[3]]", "{\"x\":[]}" };
    struct json_walk walk = json_walk_array(text, strlen(text));
    struct json_span value;
    for (size_t i = 0; i < 4; i++) {
        ck_assert(json_next_element(&walk, &value));
        ck_assert(json_span_is(value, expected[i]));
    }
    ck_assert(!json_next_element(&walk, &value));
    ck_assert(json_walk_is_complete(&walk));
    ck_assert(!json_next_element(&walk, &value));
}
END_TEST

START_TEST(deep_nesting_needs_no_stack)
{
    enum { DEPTH = 1000000 };
    static char text[2 * DEPTH];
    memset(text, '[', DEPTH);
    memset(text + DEPTH, ']', DEPTH);
    struct json_walk walk = json_walk_array(text, sizeof text);
    struct json_span value;
    ck_assert(json_next_element(&walk, &value));
    ck_assert_uint_eq(value.length, sizeof text - 2);
    ck_assert(!json_next_element(&walk, &value));
    ck_assert(json_walk_is_complete(&walk));
}
END_TEST

START_TEST(last_member_of_a_name_is_found)
{
    static const char text[] = "{\"a\":1,\"b\":2,\"a\":3}";
    struct json_span value;
    ck_assert(json_find_member(text, strlen(text), "a", &value));
    ck_assert(json_span_is(value, "3"));
    ck_assert(!json_find_member(text, strlen(text), "c", &value));
}
END_TEST

static const struct {
    const char *value;
    const char *copied; /* NULL: refused */
} strings[] = {
    { "\"abc\"", "abc" },     { "\"\"", "" },           { "\"1234567\"", "1234567" },
    { "\"12345678\"", NULL }, { "\"a\\u0062\"", NULL }, { "\"a\nb\"", NULL },
    { "12", NULL },           { "null", NULL },         { "", NULL },
};

START_TEST(plain_strings_are_copied)
{
    char text[8] = "before";
    struct json_span span = { strings[_i].value, strlen(strings[_i].value) };
    bool is_copied = json_copy_plain_string(span, text, sizeof text);
    ck_assert_int_eq(is_copied, strings[_i].copied != NULL);
    ck_assert_str_eq(text, is_copied ? strings[_i].copied : "before");
}
END_TEST

Suite *test_json_scan_suite(void)
{
    Suite *suite = suite_create("json_scan");
    TCase *cases = tcase_create("json_scan");
    tcase_add_loop_test(cases, members_of_an_object, 0, sizeof objects / sizeof *objects);
    tcase_add_test(cases, object_cut_anywhere_is_never_complete);
    tcase_add_test(cases, elements_of_an_array);
    tcase_add_test(cases, deep_nesting_needs_no_stack);
    tcase_add_test(cases, last_member_of_a_name_is_found);
    tcase_add_loop_test(cases, plain_strings_are_copied, 0,
                        sizeof strings / sizeof *strings);
    suite_add_tcase(suite, cases);
    return suite;
}
