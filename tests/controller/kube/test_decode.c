#include "controller/kube/decode.h"

#include "planner/modules.h"
#include "tests/controller/objects.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void count_item(void *context, const char *item, size_t length)
{
    char *found = context;
    strncat(found, item, length);
    strcat(found, ";");
}

static int split(const char *text, size_t length, char *found, char *version,
                 char *next_page, struct het_error *err)
{
    char *ret_version, *ret_continue;
    *found = '\0';
    if (kube_split_list(&kube_pod, text, length, count_item, found, &ret_version,
                        &ret_continue, err) < 0)
        return -1;
    strcpy(version, ret_version);
    strcpy(next_page, ret_continue);
    free(ret_version);
    free(ret_continue);
    return 0;
}

static const struct {
    const char *text;
    const char *items; /* NULL: refused */
    const char *version, *next_page;
} lists[] = {
    /* Members in the order of a typed list, and of a custom resource. */
    { "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"12\"},"
      "\"items\":[{\"a\":1},{\"b\":\"]}\"}]}",
      "{\"a\":1};{\"b\":\"]}\"};", "12", "" },
    { "{\"apiVersion\":\"v1\",\"items\":[ {} , {} ],\"kind\":\"PodList\",\"metadata\":"
      "{\"continue\":\"abc\",\"remainingItemCount\":3,\"resourceVersion\":\"12\"}}\n",
      "{};{};", "12", "abc" },
    { "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"12\"},\"items\":[]}", "",
      "12", "" },
    /* Items that nobody can decode are still found, one by one. */
    { "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[1e999,"
      "{\"\\u0000\":\"\\ud800\"},{\"x\":18446744073709551615}]}",
      "1e999;{\"\\u0000\":\"\\ud800\"};{\"x\":18446744073709551615};", "1", "" },
    { "", NULL, NULL, NULL },
    { "null", NULL, NULL, NULL },
    { "{}", NULL, NULL, NULL },
    { "Too many requests", NULL, NULL, NULL },
    { "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"code\":200,\"reason\":\"x\",\"message\":\"y\"}",
      NULL, NULL, NULL },
    { "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":null}",
      NULL, NULL, NULL },
    { "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"}}", NULL, NULL,
      NULL },
    { "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":{}}",
      NULL, NULL, NULL },
    { "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{} {}]}",
      NULL, NULL, NULL },
    { "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{},]}",
      NULL, NULL, NULL },
    { "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[],"
      "\"items\":[]}",
      NULL, NULL, NULL },
    { "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[]}", NULL, NULL, NULL },
    { "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"\"},\"items\":[]}", NULL,
      NULL, NULL },
    { "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":12},\"items\":[]}", NULL,
      NULL, NULL },
    { "{\"kind\":\"PodList\",\"metadata\":null,\"items\":[]}", NULL, NULL, NULL },
    { "{\"kind\":\"PodList\",\"items\":[]}", NULL, NULL, NULL },
    { "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}",
      NULL, NULL, NULL },
    { "{\"kind\":\"Table\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}", NULL,
      NULL, NULL },
    { "{\"kind\":\"PodList\",\"apiVersion\":\"v2\",\"metadata\":{\"resourceVersion\":\"1\"},"
      "\"items\":[]}",
      NULL, NULL, NULL },
    { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}", NULL, NULL, NULL },
    { "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}}",
      NULL, NULL, NULL },
};

START_TEST(list_is_split_or_refused)
{
    char found[1000], version[100], next_page[100];
    struct het_error err = { 0 };
    int result =
        split(lists[_i].text, strlen(lists[_i].text), found, version, next_page, &err);
    ck_assert_int_eq(result, lists[_i].items ? 0 : -1);
    ck_assert_str_eq(found, lists[_i].items ? lists[_i].items : "");
    if (lists[_i].items) {
        ck_assert_str_eq(version, lists[_i].version);
        ck_assert_str_eq(next_page, lists[_i].next_page);
    } else {
        ck_assert_int_eq(err.code, HET_BAD_INPUT);
        ck_assert_int_eq(strncmp(err.message, "list of pods: ", 14), 0);
    }
}
END_TEST

/* F9 */
START_TEST(list_cut_at_any_byte_is_never_accepted)
{
    char text[9000], found[9000], version[100], next_page[100];
    strcpy(text, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":[");
    while (strlen(text) < 8000) {
        auto_free char *item = make_object_text(&kube_pod, "ns", "a\\\"]}", "u1", 5);
        strcat(text, item);
        strcat(text, strlen(text) < 8000 ? "," : "");
    }
    strcat(text, "],\"metadata\":{\"resourceVersion\":\"12\"}}");
    size_t length = strlen(text);
    ck_assert_int_eq(split(text, length, found, version, next_page, NULL), 0);
    for (size_t cut = 0; cut < length; cut++) {
        ck_assert_msg(split(text, cut, found, version, next_page, NULL) < 0, "cut at %zu",
                      cut);
        ck_assert_str_eq(found, "");
    }
}
END_TEST

/* 0.2: texts that jansson alone refuses as a whole. */
static const struct {
    const char *text;
    const char *written; /* compact, keys sorted; NULL: refused */
} decodings[] = {
    { "{}", "{}" },
    { "{\"a\":\"x\\u0000y\"}", "{\"a\":\"x\\u0000y\"}" },
    { "{\"a\":9223372036854775807}", "{\"a\":9223372036854775807}" },
    { "{\"a\":-9223372036854775808}", "{\"a\":-9223372036854775808}" },
    { "{\"a\":9223372036854775808,\"b\":1}", "{\"a\":9.2233720368547758e18,\"b\":1}" },
    { "{\"a\":-9223372036854775809}", "{\"a\":-9.2233720368547758e18}" },
    { "{\"a\":[18446744073709552000,7,99999999999999999999]}",
      "{\"a\":[1.8446744073709552e19,7,1e20]}" },
    { "{\"a\":\"18446744073709552000\"}", "{\"a\":\"18446744073709552000\"}" },
    { "{\"a\":2.5e20}", "{\"a\":2.5e20}" },
    { "{\"a\":1,\"a\":2}", "{\"a\":2}" },
    { "{\"a\":1e400}", NULL },
    { "{\"a\":\"\\ud800\"}", NULL },
    { "{\"a\":\"\xff\"}", NULL },
    { "{\"\\u0000\":1}", NULL },
    { "{\"a\":1", NULL },
    { "{\"a\":1} {}", NULL },
    { "[]", NULL },
    { "null", NULL },
    { "\"a\"", NULL },
    { "12", NULL },
    { "", NULL },
    { "{\"a\":-}", NULL },
    { "{\"a\":01}", NULL },
};

START_TEST(object_is_decoded_or_refused_alone)
{
    struct het_error err = { 0 };
    json_auto_t *object =
        kube_decode(decodings[_i].text, strlen(decodings[_i].text), &err);
    ck_assert_int_eq(object != NULL, decodings[_i].written != NULL);
    if (!object) {
        ck_assert_int_eq(err.code, HET_BAD_INPUT);
        return;
    }
    auto_free char *written = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);
    ck_assert_str_eq(written, decodings[_i].written);
}
END_TEST

START_TEST(nesting_is_bounded_at_512)
{
    for (int depth = 511; depth <= 513; depth++) {
        char text[2000] = "{\"a\":";
        for (int i = 1; i < depth; i++)
            strcat(text, "[");
        for (int i = 1; i < depth; i++)
            strcat(text, "]");
        strcat(text, "}");
        json_auto_t *object = kube_decode(text, strlen(text), NULL);
        ck_assert_int_eq(object != NULL, depth <= 512);
    }
    static const char brackets_in_text[] = "{\"a\":\"[[{{\",\"b\":[]}";
    json_auto_t *flat = kube_decode(brackets_in_text, strlen(brackets_in_text), NULL);
    ck_assert_ptr_nonnull(flat);
}
END_TEST

/* AddressSanitizer sees a byte read behind the text. */
START_TEST(wide_integer_may_end_the_text)
{
    static const char number[] = "12345678901234567890";
    size_t length = strlen(number);
    char *text = xmalloc(length);
    memcpy(text, number, length);
    ck_assert_ptr_null(kube_decode(text, length, NULL));
    free(text);
}
END_TEST

START_TEST(size_is_bounded_at_4_mib)
{
    size_t length = KUBE_MAX_OBJECT_BYTES;
    char *text = xmalloc(length + 1);
    memset(text, ' ', length + 1);
    text[0] = '{';
    text[length - 1] = '}';
    json_auto_t *object = kube_decode(text, length, NULL);
    ck_assert_ptr_nonnull(object);
    ck_assert_ptr_null(kube_decode(text, length + 1, NULL));
    free(text);
}
END_TEST

static const struct {
    const char *text, *type, *object;
} events[] = {
    { "{\"type\":\"ADDED\",\"object\":{\"a\":1}}", "ADDED", "{\"a\":1}" },
    { "{\"object\":{\"a\":\"\\ud800\"},\"type\":\"MODIFIED\"}", "MODIFIED",
      "{\"a\":\"\\ud800\"}" },
    { "{\"type\":\"\",\"object\":{}}", "", "{}" },
    { "{\"type\":\"ADDED\",\"object\":{\"a\":1}", NULL, NULL },
    { "{\"type\":\"ADDED\"}", NULL, NULL },
    { "{\"object\":{}}", NULL, NULL },
    { "{\"type\":\"ADDED\",\"object\":[]}", NULL, NULL },
    { "{\"type\":7,\"object\":{}}", NULL, NULL },
    { "{\"type\":\"A_VERY_LONG_TYPE\",\"object\":{}}", NULL, NULL },
    { "hello", NULL, NULL },
    { "", NULL, NULL },
};

START_TEST(event_is_split_or_refused)
{
    char type[16];
    const char *object;
    size_t length;
    struct het_error err = { 0 };
    int result = kube_split_event(events[_i].text, strlen(events[_i].text), type, &object,
                                  &length, &err);
    ck_assert_int_eq(result, events[_i].type ? 0 : -1);
    if (result < 0) {
        ck_assert_int_eq(err.code, HET_BAD_INPUT);
        return;
    }
    ck_assert_str_eq(type, events[_i].type);
    auto_free char *copy = xasprintf("%.*s", (int)length, object);
    ck_assert_str_eq(copy, events[_i].object);
}
END_TEST

START_TEST(identity_of_a_poisoned_object_is_found)
{
    static const char text[] =
        "{\"spec\":{\"metadata\":{\"name\":\"wrong\"},\"x\":\"\\ud800\"},\"metadata\":"
        "{\"labels\":{\"name\":\"wrong\"},\"name\":\"a\",\"namespace\":\"ns\","
        "\"uid\":\"u1\",\"resourceVersion\":\"12\",\"annotations\":{\"k\":\"\\u0000\"}}}";
    struct kube_identity identity;
    ck_assert_int_eq(kube_scan_identity(&kube_pod, text, strlen(text), &identity), 0);
    ck_assert_str_eq(identity.ns, "ns");
    ck_assert_str_eq(identity.name, "a");
    ck_assert_str_eq(identity.uid, "u1");
    ck_assert_str_eq(identity.version, "12");
    static const char *const bad[] = {
        "{}",
        "{\"metadata\":{}}",
        "{\"metadata\":{\"name\":\"a\"}}",
        "{\"metadata\":7}",
        "{\"metadata\":{\"name\":\"\\u0061\",\"namespace\":\"ns\"}}",
        "[",
        "",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_int_eq(kube_scan_identity(&kube_pod, bad[i], strlen(bad[i]), &identity),
                         -1);
    ck_assert_int_eq(kube_scan_identity(&kube_node, bad[2], strlen(bad[2]), &identity),
                     0);
}
END_TEST

#define ADD_TABLE(cases, test, table)                                                    \
    tcase_add_loop_test((cases), test, 0, sizeof(table) / sizeof *(table))

Suite *test_decode_suite(void)
{
    Suite *suite = suite_create("decode");
    TCase *text = tcase_create("text");
    ADD_TABLE(text, list_is_split_or_refused, lists);
    tcase_add_test(text, list_cut_at_any_byte_is_never_accepted);
    ADD_TABLE(text, object_is_decoded_or_refused_alone, decodings);
    tcase_add_test(text, nesting_is_bounded_at_512);
    tcase_add_test(text, wide_integer_may_end_the_text);
    tcase_add_test(text, size_is_bounded_at_4_mib);
    ADD_TABLE(text, event_is_split_or_refused, events);
    tcase_add_test(text, identity_of_a_poisoned_object_is_found);
    suite_add_tcase(suite, text);
    return suite;
}
