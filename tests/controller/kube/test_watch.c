#include "controller/kube/watch.h"

#include "controller/cluster/kept_fields.h"

#include "tests/controller/objects.h"
#include "tests/controller/script_transport.h"

#include "tests/scale.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct script *script;
static struct kube *kube;
static struct store *store;
static struct watch *watch;
static struct watch_config config;
static int64_t now_ms;
/* "+a@5 " for an object that came, "~a@5>6 " for one that changed, "-a@6 " for one that
 * went, since the last assert_changes. */
static char changes[100000];

static void on_change(void *context, const struct kube_resource *resource, json_t *before,
                      json_t *after)
{
    ck_assert_ptr_eq(context, &watch);
    ck_assert_ptr_eq(resource, config.resource);
    char *end = changes + strlen(changes);
    size_t left = sizeof changes - (size_t)(end - changes);
    if (before && after)
        snprintf(end, left, "~%s@%s>%s ", kube_name(after), kube_resource_version(before),
                 kube_resource_version(after));
    else
        snprintf(end, left, "%c%s@%s ", after ? '+' : '-',
                 kube_name(after ? after : before),
                 kube_resource_version(after ? after : before));
    const json_t *held = store_find(store, resource,
                                    kube_namespace(after ? after : before),
                                    kube_name(after ? after : before));
    ck_assert_ptr_eq(held, after);
}

static void assert_changes(const char *expected)
{
    ck_assert_str_eq(changes, expected);
    changes[0] = '\0';
}

static void begin(uint64_t seed)
{
    watch_free(watch);
    watch = watch_new(kube, store, &config, seed, on_change, &watch);
}

static void set_up(void)
{
    script = script_new();
    kube = kube_new(script_transport(script), "tester/1");
    kube_set_rate(kube, 1000, 1000);
    store = store_new();
    config = (struct watch_config){ .resource = &kube_pod, .ns = "" };
    now_ms = 1000;
    changes[0] = '\0';
    begin(1);
}

static void tear_down(void)
{
    watch_free(watch);
    watch = NULL;
    kube_free(kube);
    script_free(script);
    store_free(store);
}

static void step(void)
{
    kube_step(kube, now_ms);
    watch_step(watch, now_ms);
}

/* Lets time pass in one leap, as a loop does that wakes when something is due. */
static void pass(int64_t ms)
{
    step();
    now_ms += ms;
    step();
}

/* ---- texts of a server: objects are given as "name:uid:version ..." ---- */

static char *served_text(const char *spec, size_t length)
{
    char name[64], uid[64];
    long long version;
    auto_free char *copy = xasprintf("%.*s", (int)length, spec);
    ck_assert_int_eq(sscanf(copy, "%63[^:]:%63[^:]:%lld", name, uid, &version), 3);
    return make_object_text(config.resource, "ns", name, uid, version);
}

static char *list_text(const char *version, const char *next_page, const char *objects)
{
    char *items = xstrdup("");
    while (*objects) {
        size_t length = strcspn(objects, " ");
        auto_free char *object = served_text(objects, length);
        auto_free char *old = items;
        items = xasprintf("%s%s%s", old, *old ? "," : "", object);
        objects += length + strspn(objects + length, " ");
    }
    auto_free char *all = items;
    return xasprintf("{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{"
                     "\"resourceVersion\":\"%s\",\"continue\":\"%s\"},\"items\":[%s]}",
                     config.resource->kind, config.resource->group_version, version,
                     next_page, all);
}

static char *event_text(const char *type, const char *object)
{
    auto_free char *text = served_text(object, strlen(object));
    return xasprintf("{\"type\":\"%s\",\"object\":%s}\n", type, text);
}

#define BOOKMARK(version)                                                                \
    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\","         \
    "\"metadata\":{\"resourceVersion\":\"" version "\",\"creationTimestamp\":null}}}\n"
#define STATUS(code, reason, message)                                                    \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"code\":" #code ",\"reason\":\"" reason \
    "\",\"message\":\"" message "\"}"
#define ERROR_EVENT(code, reason, message)                                               \
    "{\"type\":\"ERROR\",\"object\":" STATUS(code, reason, message) "}\n"
#define TOO_LARGE STATUS(504, "Timeout", "Too large resource version: 9, current: 5")

static void answer_list(const char *path, const char *version, const char *objects)
{
    auto_free char *text = list_text(version, "", objects);
    script_reply(script_expect(script, "GET", path), 200, -1, text);
}

static struct script_request *expect_watch(const char *version)
{
    auto_free char *pattern =
        xasprintf("/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=*"
                  "&resourceVersion=%s",
                  version);
    return script_expect(script, "GET", pattern);
}

static void send_event(struct script_request *stream, const char *type,
                       const char *object)
{
    auto_free char *text = event_text(type, object);
    script_send_text(stream, text);
}

/* Lists `objects` at `version` and opens the watch. */
static struct script_request *synchronise(const char *version, const char *objects)
{
    step();
    answer_list("/api/v1/pods?limit=500&resourceVersion=0", version, objects);
    step();
    changes[0] = '\0';
    return expect_watch(version);
}

static void assert_backs_off(void)
{
    step();
    script_expect_nothing(script);
    ck_assert_int_ge(watch_next_ms(watch), now_ms + 800);
}

/* Jumps to the next thing that is due. */
static void wait_until_due(void)
{
    step();
    int64_t next_ms = watch_next_ms(watch);
    ck_assert_int_lt(next_ms, INT64_MAX);
    pass(next_ms > now_ms ? next_ms - now_ms : 0);
}

/* ---- list, then watch ---- */

START_TEST(lists_from_the_cache_then_watches_from_there)
{
    ck_assert(!watch_is_synced(watch));
    ck_assert_int_le(watch_next_ms(watch), now_ms);
    step();
    ck_assert_int_eq(watch_next_ms(watch), INT64_MAX);
    answer_list("/api/v1/pods?limit=500&resourceVersion=0", "10", "a:u1:5 b:u2:7");
    ck_assert(watch_is_synced(watch));
    assert_changes("+a@5 +b@7 ");
    step();
    struct script_request *stream = expect_watch("10");
    ck_assert_int_eq(stream->timeout_ms, 0);
    ck_assert(stream->is_stream);
    ck_assert_uint_eq(watch_statistics(watch).lists, 1);
    ck_assert_uint_eq(watch_statistics(watch).watches, 1);
}
END_TEST

START_TEST(pages_are_read_to_the_end)
{
    step();
    auto_free char *first = list_text("10", "p/2=", "a:u1:5");
    auto_free char *second = list_text("10", "p3", "b:u2:6");
    script_reply(script_expect(script, "GET", "/api/v1/pods?limit=500&resourceVersion=0"),
                 200, -1, first);
    assert_changes("");
    ck_assert(!watch_is_synced(watch));
    script_reply(script_expect(script, "GET", "/api/v1/pods?limit=500&continue=p%2F2%3D"),
                 200, -1, second);
    answer_list("/api/v1/pods?limit=500&continue=p3", "10", "c:u3:7");
    assert_changes("+a@5 +b@6 +c@7 ");
    step();
    expect_watch("10");
}
END_TEST

START_TEST(expired_page_is_read_again_as_one_list)
{
    step();
    auto_free char *first = list_text("10", "p2", "a:u1:5");
    script_reply(script_expect(script, "GET", "/api/v1/pods?limit=500&resourceVersion=0"),
                 200, -1, first);
    script_reply(script_expect(script, "GET", "/api/v1/pods?limit=500&continue=p2"), 410,
                 -1, STATUS(410, "Expired", "x"));
    answer_list("/api/v1/pods?resourceVersion=0", "12", "a:u1:5 b:u2:11");
    assert_changes("+a@5 +b@11 ");
}
END_TEST

START_TEST(pages_of_two_versions_are_not_mixed)
{
    step();
    auto_free char *first = list_text("10", "p2", "a:u1:5");
    script_reply(script_expect(script, "GET", "*"), 200, -1, first);
    answer_list("*continue=p2", "11", "b:u2:6");
    assert_changes("");
    answer_list("/api/v1/pods?resourceVersion=0", "12", "c:u3:12");
    assert_changes("+c@12 ");
}
END_TEST

START_TEST(page_that_repeats_itself_ends)
{
    step();
    auto_free char *page = list_text("10", "p2", "a:u1:5");
    script_reply(script_expect(script, "GET", "*"), 200, -1, page);
    script_reply(script_expect(script, "GET", "*continue=p2"), 200, -1, page);
    script_reply(script_expect(script, "GET", "/api/v1/pods?resourceVersion=0"), 200, -1,
                 page);
    assert_backs_off();
    assert_changes("");
}
END_TEST

START_TEST(events_change_the_store)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    send_event(stream, "ADDED", "b:u2:11");
    send_event(stream, "MODIFIED", "a:u1:12");
    send_event(stream, "DELETED", "b:u2:13");
    assert_changes("+b@11 ~a@5>12 -b@11 ");
    ck_assert_uint_eq(store_count(store, &kube_pod), 1);
    ck_assert_uint_eq(watch_statistics(watch).events, 3);
    pass(5000);
    script_end(stream);
    step();
    expect_watch("13");
}
END_TEST

/* Of the version and nothing else: those of 10 to 19 have the same. */
static uint64_t digest_tens(const char *text, size_t length)
{
    struct kube_identity identity;
    kube_scan_identity(config.resource, text, length, &identity);
    return strtoull(identity.version, NULL, 10) / 10;
}

START_TEST(event_that_changes_nothing_that_is_kept_is_not_decoded)
{
    config.digest = digest_tens;
    begin(1);
    struct script_request *stream = synchronise("7", "a:u1:5");
    send_event(stream, "MODIFIED", "a:u1:11"); /* the list's text is not known any more */
    send_event(stream, "MODIFIED", "a:u1:12");
    send_event(stream, "MODIFIED", "a:u1:19");
    assert_changes("~a@5>11 ");
    ck_assert_uint_eq(watch_statistics(watch).unchanged, 2);
    send_event(stream, "MODIFIED", "a:u1:23");
    assert_changes("~a@11>23 ");
    send_event(stream, "DELETED", "a:u1:24");
    send_event(stream, "ADDED", "a:u2:25"); /* another one of that name */
    assert_changes("-a@23 +a@25 ");
    ck_assert_uint_eq(watch_statistics(watch).unchanged, 2);
}
END_TEST

static uint64_t digest_node(const char *label, const char *beat, const char *ready,
                            const char *gpus, const char *spec, const char *image)
{
    auto_free char *text = xasprintf(
        "{\"metadata\":{\"name\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"%s\",\"labels\":"
        "{\"a\":\"%s\"}},\"spec\":{\"podCIDR\":\"x\"%s},\"status\":{\"allocatable\":{"
        "\"nvidia.com/gpu\":\"%s\"},\"images\":[\"%s\"],\"conditions\":[{\"type\":\"Ready\","
        "\"status\":\"%s\",\"lastHeartbeatTime\":\"%s\"}]}}",
        beat, label, spec, gpus, image, ready, beat);
    uint64_t digest = kept_fields_node_digest(text, strlen(text));
    ck_assert_uint_eq(kept_fields_node_digest(text, strlen(text) - 1), 0); /* cut short */
    return digest;
}

START_TEST(heartbeat_of_a_node_is_known_by_its_text)
{
    uint64_t digest = digest_node("x", "1", "True", "8", "", "i");
    ck_assert_uint_ne(digest, 0);
    ck_assert_uint_eq(digest_node("x", "2", "True", "8", "", "i"), digest);
    ck_assert_uint_eq(digest_node("x", "2", "True", "8", "", "j\\\"}"), digest);
    ck_assert_uint_ne(digest_node("y", "2", "True", "8", "", "i"), digest);
    ck_assert_uint_ne(digest_node("x", "2", "False", "8", "", "i"), digest);
    ck_assert_uint_ne(digest_node("x", "2", "True", "7", "", "i"), digest);
    ck_assert_uint_ne(digest_node("x", "2", "True", "8", ",\"unschedulable\":true", "i"),
                      digest);
    ck_assert_uint_ne(digest_node("x", "2", "True", "8", ",\"taints\":[{}]", "i"),
                      digest);
}
END_TEST

START_TEST(which_start_of_a_machine_it_is_is_kept_of_a_node)
{
    static const char *const texts[] = {
        "{\"status\":{\"nodeInfo\":{\"bootID\":\"1\",\"kernelVersion\":\"5\"}}}",
        "{\"status\":{\"nodeInfo\":{\"bootID\":\"1\",\"kernelVersion\":\"6\"}}}",
        "{\"status\":{\"nodeInfo\":{\"bootID\":\"2\",\"kernelVersion\":\"6\"}}}",
    };
    uint64_t digests[3];
    for (size_t i = 0; i < 3; i++)
        digests[i] = kept_fields_node_digest(texts[i], strlen(texts[i]));
    ck_assert_uint_eq(digests[0], digests[1]);
    ck_assert_uint_ne(digests[1], digests[2]);
    json_auto_t *node = json_loads(texts[2], 0, NULL), *trimmed = kept_fields_node(node);
    const json_t *info = json_object_get(json_object_get(trimmed, "status"), "nodeInfo");
    ck_assert_uint_eq(json_object_size(info), 1);
    ck_assert_str_eq(json_string_value(json_object_get(info, "bootID")), "2");
}
END_TEST

START_TEST(object_of_a_typed_list_gets_its_kind)
{
    step();
    script_reply(
        script_expect(script, "GET", "*"), 200, -1,
        "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"9\"},\"items\":["
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u\","
        "\"resourceVersion\":\"5\"}}]}");
    json_t *pod = store_find(store, &kube_pod, "ns", "a");
    ck_assert_str_eq(json_string_value(json_object_get(pod, "kind")), "Pod");
    ck_assert_str_eq(json_string_value(json_object_get(pod, "apiVersion")), "v1");
}
END_TEST

START_TEST(selectors_and_namespace_are_in_every_request)
{
    config.ns = "ns";
    config.label_selector = "a=b,c in (d)";
    config.field_selector = "status.phase!=Failed";
    begin(1);
    step();
    const char *selectors = "labelSelector=a%3Db%2Cc%20in%20%28d%29&"
                            "fieldSelector=status.phase%21%3DFailed";
    auto_free char *list =
        xasprintf("/api/v1/namespaces/ns/pods?%s&limit=500&resourceVersion=0", selectors);
    answer_list(list, "10", "");
    step();
    auto_free char *stream =
        xasprintf("/api/v1/namespaces/ns/pods?%s&watch=1&*", selectors);
    script_expect(script, "GET", stream);
    pass(91000);
    script_expect(script, "GET",
                  "/api/v1/namespaces/ns/pods?labelSelector=*&fieldSelector="
                  "status.phase%21%3DFailed%2Cmetadata.name%3Dsilence-probe&"
                  "resourceVersion=10");
}
END_TEST

START_TEST(server_is_asked_to_end_the_watch_in_5_to_10_minutes)
{
    long long least = 1000, most = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        begin(seed);
        step();
        answer_list("*", "10", "");
        step();
        const char *text = strstr(expect_watch("10")->path, "timeoutSeconds=");
        long long timeout_s = atoll(text + strlen("timeoutSeconds="));
        least = timeout_s < least ? timeout_s : least;
        most = timeout_s > most ? timeout_s : most;
    }
    ck_assert_int_ge(least, 300);
    ck_assert_int_le(least, 310);
    ck_assert_int_ge(most, 590);
    ck_assert_int_le(most, 600);
}
END_TEST

START_TEST(freed_watch_leaves_nothing_open)
{
    step();
    watch_free(watch);
    watch = NULL;
    ck_assert_uint_eq(script_open_count(script), 0);
    begin(1);
    script_expect(script, "GET", "*");
    synchronise("10", "");
    pass(91000);
    ck_assert_uint_eq(script_open_count(script), 2); /* watch and probe */
    watch_free(watch);
    watch = NULL;
    ck_assert_uint_eq(script_open_count(script), 0);
}
END_TEST

/* ---- ends of a watch ---- */

START_TEST(end_of_a_watch_is_followed_by_the_next)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    send_event(stream, "MODIFIED", "a:u1:11");
    if (_i == 0)
        script_end(stream);
    else
        script_fail(stream, true); /* unexpected EOF, reset, timeout */
    step();
    expect_watch("11");
    ck_assert_uint_eq(watch_statistics(watch).failures, 0);
}
END_TEST

START_TEST(short_watch_without_events_is_a_failure)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    now_ms += 999;
    script_end(stream);
    assert_backs_off();
    wait_until_due();
    answer_list("/api/v1/pods?resourceVersion=10", "11", "a:u1:5");
    step();
    stream = expect_watch("11");
    now_ms += 1000;
    script_end(stream);
    step();
    expect_watch("11");
}
END_TEST

static const struct {
    const char *name;
    int status; /* 0: refused connection */
    const char *body;
    const char *event; /* NULL: the answer to the request itself */
    bool lists_again;
} watch_ends[] = {
    { "refused", 0, NULL, NULL, false },
    { "busy", 429, "Too many requests", NULL, false },
    { "busy event", 0, NULL, ERROR_EVENT(429, "TooManyRequests", "x"), false },
    { "internal error", 500, STATUS(500, "InternalError", "x"), NULL, false },
    { "internal error event", 0, NULL, ERROR_EVENT(500, "InternalError", "x"), false },
    { "410", 410, STATUS(410, "Expired", "x"), NULL, true },
    { "410 of old servers", 410, STATUS(410, "Gone", "x"), NULL, true },
    { "410 event", 0, NULL, ERROR_EVENT(410, "Expired", "x"), true },
    { "410 event of old servers", 0, NULL, ERROR_EVENT(410, "Gone", "x"), true },
    { "forbidden", 403, STATUS(403, "Forbidden", "x"), NULL, true },
    { "unauthorized", 401, STATUS(401, "Unauthorized", "x"), NULL, true },
    { "not found", 404, "404 page not found", NULL, true },
    { "unavailable", 503, "", NULL, true },
    { "too large event", 0, NULL,
      ERROR_EVENT(504, "Timeout", "Too large resource version: 9"), true },
    { "odd event", 0, NULL, "{\"type\":\"ERROR\",\"object\":{\"x\":1}}\n", true },
    { "unreadable event", 0, NULL,
      "{\"type\":\"ERROR\",\"object\":{\"x\":\"\\ud800\"}}\n", true },
    { "garbage", 0, NULL, "<html>gateway timeout</html>\n", true },
    { "half an event", 0, NULL, "{\"type\":\"MODIFIED\",\"object\":{\n", true },
    { "no object", 0, NULL, "{\"type\":\"MODIFIED\"}\n", true },
};

START_TEST(refused_watch_backs_off)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    if (watch_ends[_i].event)
        script_send_text(stream, watch_ends[_i].event);
    else if (watch_ends[_i].status)
        script_reply(stream, watch_ends[_i].status, -1, watch_ends[_i].body);
    else
        script_fail(stream, false);
    ck_assert_msg(!stream->is_open, "%s", watch_ends[_i].name);
    assert_backs_off();
    wait_until_due();
    if (watch_ends[_i].lists_again)
        script_expect(script, "GET", "/api/v1/pods?resourceVersion=10");
    else
        expect_watch("10");
    script_expect_nothing(script);
    ck_assert_uint_eq(watch_statistics(watch).failures, 1);
    bool is_expired = strstr(watch_ends[_i].name, "410") != NULL;
    ck_assert_uint_eq(watch_statistics(watch).expired, is_expired);
    assert_changes("");
}
END_TEST

START_TEST(retry_after_of_a_watch_is_waited_for)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    script_reply(stream, 429, 30, "");
    step();
    ck_assert_int_eq(watch_next_ms(watch), now_ms + 30000);
}
END_TEST

START_TEST(internal_errors_lead_to_a_list_after_30_s)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    int64_t first_ms = now_ms;
    while (now_ms - first_ms < 30000) {
        script_reply(stream, 500, -1, STATUS(500, "InternalError", "x"));
        wait_until_due();
        stream = expect_watch("10");
    }
    script_reply(stream, 500, -1, STATUS(500, "InternalError", "x"));
    wait_until_due();
    script_expect(script, "GET", "/api/v1/pods?resourceVersion=10");
}
END_TEST

START_TEST(nothing_after_an_error_event_counts)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    auto_free char *event = event_text("MODIFIED", "a:u1:12");
    auto_free char *text = xasprintf("%s%s", ERROR_EVENT(410, "Expired", "x"), event);
    script_send_text(stream, text);
    assert_changes("");
    ck_assert_uint_eq(watch_statistics(watch).events, 0);
}
END_TEST

/* ---- frames ---- */

static char *three_events(void)
{
    auto_free char *a = event_text("MODIFIED", "a:u1:11");
    auto_free char *b = event_text("ADDED", "b:u2:12");
    return xasprintf("%s%s%s", a, b, BOOKMARK("20"));
}

/* F10 */
START_TEST(lines_may_be_split_at_any_byte)
{
    auto_free char *text = three_events();
    for (size_t cut = 0; cut <= strlen(text); cut++) {
        tear_down();
        set_up();
        struct script_request *stream = synchronise("10", "a:u1:5");
        script_send(stream, text, cut);
        script_send(stream, text + cut, strlen(text) - cut);
        assert_changes("~a@5>11 +b@12 ");
        pass(2000);
        script_end(stream);
        step();
        expect_watch("20");
    }
}
END_TEST

START_TEST(lines_may_come_byte_by_byte)
{
    auto_free char *text = three_events();
    struct script_request *stream = synchronise("10", "a:u1:5");
    for (size_t i = 0; i < strlen(text); i++)
        script_send(stream, text + i, 1);
    assert_changes("~a@5>11 +b@12 ");
}
END_TEST

START_TEST(line_without_its_end_is_dropped)
{
    auto_free char *text = three_events();
    size_t first = strcspn(text, "\n") + 1;
    size_t second = first + strcspn(text + first, "\n") + 1;
    for (size_t cut = 1; cut < strlen(text); cut++) {
        tear_down();
        set_up();
        struct script_request *stream = synchronise("10", "a:u1:5");
        script_send(stream, text, cut);
        assert_changes(cut < first ? "" : cut < second ? "~a@5>11 " : "~a@5>11 +b@12 ");
        pass(2000);
        script_fail(stream, true);
        step();
        expect_watch(cut < first ? "10" : cut < second ? "11" : "12");
    }
}
END_TEST

START_TEST(blank_lines_are_nothing)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    script_send_text(stream, "\n \r\n\n");
    send_event(stream, "ADDED", "b:u2:12");
    assert_changes("+b@12 ");
}
END_TEST

START_TEST(line_of_more_than_16_mib_ends_the_watch)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    size_t length = 1 << 20;
    auto_free char *chunk = xmalloc(length);
    memset(chunk, 'x', length);
    for (int i = 0; i < 16; i++)
        script_send(stream, chunk, length);
    ck_assert(stream->is_open);
    script_send(stream, chunk, 1);
    ck_assert(!stream->is_open);
    wait_until_due();
    script_expect(script, "GET", "/api/v1/pods?resourceVersion=10");
}
END_TEST

/* ---- versions ---- */

START_TEST(bookmark_advances_the_version)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    script_send_text(stream, BOOKMARK("77"));
    ck_assert_uint_eq(watch_statistics(watch).bookmarks, 1);
    assert_changes("");
    pass(2000);
    script_end(stream);
    step();
    expect_watch("77");
}
END_TEST

START_TEST(version_never_goes_back_within_a_watch)
{
    struct script_request *stream = synchronise("100", "a:u1:5");
    script_send_text(stream, BOOKMARK("99"));
    send_event(stream, "MODIFIED", "a:u1:98");
    pass(2000);
    script_end(stream);
    step();
    expect_watch("100");
}
END_TEST

START_TEST(first_events_of_a_watch_begun_anywhere_do_not_advance)
{
    struct script_request *stream = synchronise("0", "");
    send_event(stream, "ADDED", "b:u2:30");
    send_event(stream, "ADDED", "a:u1:20");
    pass(2000);
    script_end(stream);
    step();
    stream = expect_watch("0");
    send_event(stream, "ADDED", "b:u2:30");
    send_event(stream, "MODIFIED", "a:u1:31");
    send_event(stream, "ADDED", "c:u3:32");
    pass(2000);
    script_end(stream);
    step();
    expect_watch("32");
}
END_TEST

/* F16 */
START_TEST(events_told_twice_change_nothing)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    for (int i = 0; i < 2; i++) {
        send_event(stream, "ADDED", "b:u2:11");
        send_event(stream, "MODIFIED", "b:u2:12");
        send_event(stream, "DELETED", "b:u2:13");
        send_event(stream, "ADDED", "b:u3:14");
        send_event(stream, "MODIFIED", "a:u1:15");
        assert_changes(i ? "" : "+b@11 ~b@11>12 -b@12 +b@14 ~a@5>15 ");
    }
}
END_TEST

START_TEST(list_that_goes_back_is_refused)
{
    struct script_request *stream = synchronise("100", "a:u1:5");
    script_reply(stream, 410, -1, STATUS(410, "Expired", "x"));
    wait_until_due();
    answer_list("/api/v1/pods?resourceVersion=100", "99", "b:u2:7");
    assert_changes("");
    assert_backs_off();
    wait_until_due();
    answer_list("/api/v1/pods?resourceVersion=100", "101", "a:u1:5");
    assert_changes("");
    step();
    expect_watch("101");
}
END_TEST

/* F18: etcd was restored from an older copy. */
START_TEST(history_that_went_back_is_followed)
{
    struct script_request *stream =
        synchronise("100", "a:u1:90 b:u2:20 c:u3:30 d:u4:40 e:u5:95 f:u6:50");
    script_reply(stream, 410, -1, STATUS(410, "Expired", "x"));
    wait_until_due();
    script_reply(script_expect(script, "GET", "/api/v1/pods?resourceVersion=100"), 504, 1,
                 TOO_LARGE);
    step();
    answer_list("/api/v1/pods?limit=500", "60",
                "a:u1:10 b:u2:20 c:u3:30 d:u4:40 f:u6:50 g:u7:55");
    assert_changes("-e@95 ~a@90>10 +g@55 ");
    step();
    stream = expect_watch("60");
    send_event(stream, "MODIFIED", "a:u1:61");
    assert_changes("~a@10>61 ");
}
END_TEST

/* An expired list, a quorum list that is older: only then "too large" is heard. */
START_TEST(history_that_went_back_is_noticed_after_a_quorum_list)
{
    struct script_request *stream = synchronise("100", "a:u1:90");
    script_reply(stream, 410, -1, STATUS(410, "Expired", "x"));
    wait_until_due();
    script_reply(script_expect(script, "GET", "/api/v1/pods?resourceVersion=100"), 410,
                 -1, STATUS(410, "Expired", "x"));
    step();
    answer_list("/api/v1/pods?limit=500", "60", "a:u1:10");
    assert_changes("");
    wait_until_due();
    script_reply(script_expect(script, "GET", "/api/v1/pods?resourceVersion=100"), 504, 1,
                 TOO_LARGE);
    step();
    answer_list("/api/v1/pods?limit=500", "60", "a:u1:10");
    assert_changes("~a@90>10 ");
}
END_TEST

/* ---- freshness ---- */

START_TEST(what_must_be_fresh_is_listed_from_quorum_at_first)
{
    watch_require_fresh(watch);
    ck_assert(!watch_is_fresh(watch));
    step();
    answer_list("/api/v1/pods?limit=500", "10", "a:u1:5");
    ck_assert(watch_is_fresh(watch));
    step();
    expect_watch("10");
}
END_TEST

START_TEST(what_must_be_fresh_is_listed_from_quorum_again)
{
    synchronise("100", "a:u1:90");
    ck_assert(watch_is_fresh(watch));
    watch_require_fresh(watch);
    ck_assert(watch_is_synced(watch) && !watch_is_fresh(watch));
    step();
    answer_list("/api/v1/pods?limit=500", "120", "a:u1:90 b:u2:110");
    ck_assert(watch_is_fresh(watch));
    assert_changes("+b@110 ");
    step();
    expect_watch("120");
}
END_TEST

/* A list that was asked for before says nothing about now. */
START_TEST(list_under_way_is_not_fresh)
{
    step();
    script_expect(script, "GET", "/api/v1/pods?limit=500&resourceVersion=0");
    watch_require_fresh(watch);
    step();
    answer_list("/api/v1/pods?limit=500", "10", "a:u1:5");
    ck_assert(watch_is_fresh(watch));
}
END_TEST

/* A list that is older than what was seen is no proof, nor is the one that follows. */
START_TEST(older_list_is_not_fresh)
{
    synchronise("100", "a:u1:90");
    watch_require_fresh(watch);
    step();
    answer_list("/api/v1/pods?limit=500", "60", "a:u1:10");
    ck_assert(!watch_is_fresh(watch));
    wait_until_due();
    answer_list("/api/v1/pods?resourceVersion=100", "100", "a:u1:90");
    ck_assert(!watch_is_fresh(watch));
    step();
    answer_list("/api/v1/pods?limit=500", "101", "a:u1:90");
    ck_assert(watch_is_fresh(watch));
    assert_changes("");
}
END_TEST

/* ---- lists again ---- */

/* Ends the watch so that the next request is a list from `version`. */
static void force_list(struct script_request *stream)
{
    script_reply(stream, 410, -1, STATUS(410, "Expired", "x"));
    wait_until_due();
}

START_TEST(list_tells_what_was_missed)
{
    struct script_request *stream =
        synchronise("10", "a:u1:5 b:u2:6 c:u3:7 d:u4:8 e:u5:9");
    force_list(stream);
    answer_list("/api/v1/pods?resourceVersion=10", "20",
                "a:u1:5 b:u2:16 d:u9:18 e:u5:9 f:u6:19");
    /* c is gone, with its last known state; d was made again under its name. */
    assert_changes("-c@7 -d@8 ~b@6>16 +d@18 +f@19 ");
    ck_assert_uint_eq(store_count(store, &kube_pod), 5);
}
END_TEST

START_TEST(namesake_in_a_watch_is_another_object)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    send_event(stream, "ADDED", "a:u2:11"); /* the deletion was not told */
    assert_changes("-a@5 +a@11 ");
    send_event(stream, "DELETED", "a:u1:10"); /* late */
    assert_changes("");
    send_event(stream, "MODIFIED", "a:u1:9");
    assert_changes("");
}
END_TEST

START_TEST(deletion_older_than_what_is_held_is_ignored)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    send_event(stream, "DELETED", "a:u1:4"); /* it had left a selector, and came back */
    assert_changes("");
    send_event(stream, "DELETED", "a:u1:5"); /* old servers: the last version, no newer */
    assert_changes("-a@5 ");
}
END_TEST

START_TEST(own_write_newer_than_the_list_stays)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    json_auto_t *own = make_object(&kube_pod, "ns", "own", "u7", 25, NULL);
    store_put(store, &kube_pod, own);
    force_list(stream);
    answer_list("*", "20", "a:u1:5");
    assert_changes("");
    ck_assert_uint_eq(store_count(store, &kube_pod), 2);
    step();
    stream = expect_watch("20");
    send_event(stream, "ADDED", "own:u7:25");
    assert_changes(""); /* it is there already */
}
END_TEST

START_TEST(object_of_another_namespace_is_not_ours)
{
    config.ns = "ns";
    begin(1);
    json_auto_t *other = make_object(&kube_pod, "mars", "x", "u7", 5, NULL);
    store_put(store, &kube_pod, other);
    step();
    answer_list("/api/v1/namespaces/ns/pods?*", "10", "a:u1:5");
    step();
    struct script_request *stream = script_expect(script, "GET", "*watch=1*");
    auto_free char *alien = make_object_text(&kube_pod, "mars", "y", "u8", 11);
    auto_free char *added = xasprintf("{\"type\":\"ADDED\",\"object\":%s}\n", alien);
    script_send_text(stream, added);
    auto_free char *known = make_object_text(&kube_pod, "mars", "x", "u7", 12);
    auto_free char *deleted = xasprintf("{\"type\":\"DELETED\",\"object\":%s}\n", known);
    script_send_text(stream, deleted);
    script_reply(stream, 410, -1, STATUS(410, "Expired", "x"));
    wait_until_due();
    answer_list("*", "20", "a:u1:5");
    assert_changes("+a@5 ");
    ck_assert_uint_eq(store_count(store, &kube_pod), 2);
    ck_assert_uint_eq(watch_statistics(watch).quarantined, 1);
}
END_TEST

START_TEST(expired_list_is_read_from_quorum_once_and_at_once)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    force_list(stream);
    script_reply(script_expect(script, "GET", "/api/v1/pods?resourceVersion=10"), 410, -1,
                 STATUS(410, "Expired", "x"));
    step(); /* no time passes */
    script_reply(script_expect(script, "GET", "/api/v1/pods?limit=500"), 410, -1,
                 STATUS(410, "Expired", "x"));
    assert_backs_off();
    wait_until_due();
    answer_list("/api/v1/pods?limit=500", "30", "a:u1:5");
    step();
    stream = expect_watch("30");
    force_list(stream);
    script_expect(script, "GET", "/api/v1/pods?resourceVersion=30"); /* flag is clear */
}
END_TEST

/* F20, F8, F9: whatever comes instead of a list leaves the store alone. */
static const struct {
    int status;
    const char *body;
} no_lists[] = {
    { 200, "" },
    { 200,
      "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"20\"},"
      "\"items\":[" },
    { 200,
      "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"20\"},\"items\":null}" },
    { 200, "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"20\"}}" },
    { 200, "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[]}" },
    { 200,
      "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"20\"},\"items\":[]}" },
    { 200, STATUS(200, "x", "y") },
    { 200, "<html></html>" },
    { 500, STATUS(500, "InternalError", "x") },
    { 502, "<html>bad gateway</html>" },
    { 503, "" },
    { 403, STATUS(403, "Forbidden", "x") },
    { 401, STATUS(401, "Unauthorized", "x") },
    { 404, "404 page not found" },
    { 0, NULL },
};

START_TEST(what_is_no_list_changes_nothing)
{
    struct script_request *stream = synchronise("10", "a:u1:5 b:u2:6");
    force_list(stream);
    struct script_request *list = script_expect(script, "GET", "*");
    if (no_lists[_i].status)
        script_reply(list, no_lists[_i].status, -1, no_lists[_i].body);
    else
        script_fail(list, false);
    assert_changes("");
    ck_assert_uint_eq(store_count(store, &kube_pod), 2);
    assert_backs_off();
    wait_until_due();
    answer_list("/api/v1/pods?resourceVersion=10", "20", "a:u1:5 b:u2:16");
    assert_changes("~b@6>16 ");
}
END_TEST

/* ---- back-off ---- */

START_TEST(back_off_doubles_to_30_s_with_jitter)
{
    begin((uint64_t)_i);
    step();
    int64_t base_ms = 800;
    for (int i = 0; i < 12; i++) {
        script_fail(script_expect(script, "GET", "*"), false);
        step();
        int64_t delay_ms = watch_next_ms(watch) - now_ms;
        ck_assert_msg(delay_ms >= base_ms && delay_ms < 2 * base_ms,
                      "seed %d, failure %d: %lld ms", _i, i, (long long)delay_ms);
        pass(delay_ms - 1);
        script_expect_nothing(script);
        pass(1);
        base_ms = base_ms * 2 > 30000 ? 30000 : base_ms * 2;
    }
    /* Quiet for two minutes: from the start again. */
    answer_list("*", "10", "");
    step();
    struct script_request *stream = expect_watch("10");
    pass(60000);
    script_send_text(stream, BOOKMARK("11"));
    pass(60001);
    script_fail(stream, true);
    step();
    script_fail(expect_watch("11"), false);
    step();
    int64_t delay_ms = watch_next_ms(watch) - now_ms;
    ck_assert_int_ge(delay_ms, 800);
    ck_assert_int_lt(delay_ms, 1600);
}
END_TEST

START_TEST(loop_of_expired_watches_is_slow)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    int64_t start_ms = now_ms;
    for (int i = 0; i < 10; i++) {
        force_list(stream);
        answer_list("/api/v1/pods?resourceVersion=10", "10", "a:u1:5");
        step();
        stream = expect_watch("10");
    }
    /* 800 (1 + 2 + 4 + 8 + 16 + 32) + 4 * 30000 ms, at least. */
    ck_assert_int_ge(now_ms - start_ms, 800 * 63 + 4 * 30000);
    ck_assert_uint_eq(watch_statistics(watch).expired, 10);
}
END_TEST

/* ---- silence ---- */

START_TEST(silence_is_probed_on_a_new_connection)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    int64_t due_ms = watch_next_ms(watch);
    ck_assert_int_ge(due_ms, now_ms + 75000);
    ck_assert_int_le(due_ms, now_ms + 90000);
    pass(due_ms - now_ms - 1);
    script_expect_nothing(script);
    pass(1);
    struct script_request *probe = script_expect(
        script, "GET",
        "/api/v1/pods?fieldSelector=metadata.name%3Dsilence-probe&resourceVersion=10");
    ck_assert(probe->new_connection);
    ck_assert(stream->is_open);
    ck_assert_uint_eq(watch_statistics(watch).probes, 1);
    pass(100000);
    script_expect_nothing(script); /* one is enough */
}
END_TEST

START_TEST(any_byte_breaks_the_silence)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    for (int i = 0; i < 10; i++) {
        pass(60000);
        script_send_text(stream, "\n");
    }
    script_expect_nothing(script);
    ck_assert_uint_eq(watch_statistics(watch).probes, 0);
}
END_TEST

START_TEST(word_from_the_watch_ends_the_probe)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    pass(91000);
    struct script_request *probe = script_expect(script, "GET", "*silence-probe*");
    send_event(stream, "MODIFIED", "a:u1:11");
    step();
    ck_assert(!probe->is_open);
    ck_assert(stream->is_open);
}
END_TEST

static const struct {
    const char *name;
    int status; /* 0: no connection */
    const char *body;
    bool is_immediate;
    const char *next; /* NULL: a watch from 10 */
} probe_ends[] = {
    { "alive", 200, NULL, true, NULL },
    { "history went back", 504, TOO_LARGE, true, "/api/v1/pods?limit=500" },
    { "expired", 410, STATUS(410, "Expired", "x"), true, "/api/v1/pods?limit=500" },
    { "unreachable", 0, NULL, false, NULL },
    { "broken", 500, STATUS(500, "InternalError", "x"), false, NULL },
    { "denied", 401, STATUS(401, "Unauthorized", "x"), false, NULL },
    { "busy", 429, "slow down", false, NULL },
};

START_TEST(probe_replaces_the_silent_watch)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    pass(91000);
    struct script_request *probe = script_expect(script, "GET", "*silence-probe*");
    auto_free char *empty = list_text("10", "", "");
    if (probe_ends[_i].status)
        script_reply(probe, probe_ends[_i].status, -1,
                     probe_ends[_i].body ? probe_ends[_i].body : empty);
    else
        script_fail(probe, true);
    ck_assert_msg(!stream->is_open, "%s", probe_ends[_i].name);
    assert_changes("");
    step();
    if (!probe_ends[_i].is_immediate) {
        assert_backs_off();
        wait_until_due();
    }
    if (probe_ends[_i].next)
        script_expect(script, "GET", probe_ends[_i].next);
    else
        expect_watch("10");
}
END_TEST

/* ---- I12 ---- */

static char *pods(int first, int count)
{
    char *text = xstrdup("");
    for (int i = first; i < first + count; i++) {
        auto_free char *old = text;
        text = xasprintf("%s%sp%03d:u%d:5", old, *old ? " " : "", i, i);
    }
    return text;
}

static const struct {
    int held, left;
    bool is_doubted;
} breakers[] = {
    { 100, 80, false }, /* exactly a fifth */
    { 100, 79, true },  { 100, 100, false }, { 100, 0, true },
    { 10, 6, false }, /* more than a fifth, but less than 5 */
    { 10, 5, true },    { 25, 20, false },   { 24, 19, true },
    { 4, 2, false },    { 4, 1, true },      { 1, 0, true }, /* more than half */
    { 4, 0, true },
};

START_TEST(mass_deletion_is_confirmed_10_s_later)
{
    auto_free char *held = pods(0, breakers[_i].held);
    auto_free char *left = pods(0, breakers[_i].left);
    size_t held_count = (size_t)breakers[_i].held, left_count = (size_t)breakers[_i].left;
    struct script_request *stream = synchronise("10", held);
    force_list(stream);
    answer_list("/api/v1/pods?resourceVersion=10", "20", left);
    if (!breakers[_i].is_doubted) {
        ck_assert_uint_eq(store_count(store, &kube_pod), left_count);
        return;
    }
    ck_assert_uint_eq(watch_statistics(watch).doubted, 1);
    ck_assert_uint_eq(store_count(store, &kube_pod), held_count);
    pass(9999);
    script_expect_nothing(script);
    pass(1);
    answer_list("/api/v1/pods?limit=500", "21", left);
    ck_assert_uint_eq(store_count(store, &kube_pod), left_count);
    step();
    expect_watch("21");
}
END_TEST

START_TEST(mass_deletion_that_is_not_confirmed_was_none)
{
    auto_free char *held = pods(0, 30);
    struct script_request *stream = synchronise("10", held);
    force_list(stream);
    answer_list("*", "20", "");
    assert_changes("");
    pass(10000);
    answer_list("/api/v1/pods?limit=500", "21", held);
    assert_changes("");
    ck_assert_uint_eq(store_count(store, &kube_pod), 30);
}
END_TEST

START_TEST(mass_deletion_is_not_confirmed_by_a_failure)
{
    auto_free char *held = pods(0, 30);
    struct script_request *stream = synchronise("10", held);
    force_list(stream);
    answer_list("*", "20", "");
    pass(10000);
    script_reply(script_expect(script, "GET", "/api/v1/pods?limit=500"), 503, -1, "");
    assert_backs_off();
    wait_until_due();
    answer_list("/api/v1/pods?limit=500", "21", "");
    ck_assert_uint_eq(store_count(store, &kube_pod), 0);
}
END_TEST

START_TEST(mass_deletion_is_not_confirmed_by_a_list_that_lacks_others)
{
    auto_free char *held = pods(0, 30), *first = pods(0, 15), *second = pods(15, 15);
    struct script_request *stream = synchronise("10", held);
    force_list(stream);
    answer_list("*", "20", first);
    pass(10000);
    answer_list("/api/v1/pods?limit=500", "21", second);
    assert_changes("");
    ck_assert_uint_eq(store_count(store, &kube_pod), 30);
    ck_assert_uint_eq(watch_statistics(watch).doubted, 2);
    pass(10000);
    answer_list("/api/v1/pods?limit=500", "22", first);
    ck_assert_uint_eq(store_count(store, &kube_pod), 30);
    pass(10000);
    /* The same as the one before, but for three that were deleted since. */
    auto_free char *third = pods(0, 12);
    answer_list("/api/v1/pods?limit=500", "23", third);
    ck_assert_uint_eq(store_count(store, &kube_pod), 12);
}
END_TEST

START_TEST(all_made_again_under_their_names_is_a_mass_deletion)
{
    struct script_request *stream =
        synchronise("10", "a:u1:5 b:u2:5 c:u3:5 d:u4:5 e:u5:5");
    force_list(stream);
    answer_list("*", "20", "a:v1:15 b:v2:15 c:v3:15 d:v4:15 e:v5:15");
    assert_changes("");
    ck_assert_uint_eq(watch_statistics(watch).doubted, 1);
}
END_TEST

START_TEST(deletions_told_one_by_one_are_believed)
{
    auto_free char *held = pods(0, 30);
    struct script_request *stream = synchronise("10", held);
    for (int i = 0; i < 30; i++) {
        auto_free char *pod = xasprintf("p%03d:u%d:%d", i, i, 11 + i);
        send_event(stream, "DELETED", pod);
    }
    ck_assert_uint_eq(store_count(store, &kube_pod), 0);
}
END_TEST

/* ---- objects that cannot be read (F21) ---- */

/* In place of an annotation's value. */
static const char *const poisons[] = {
    "\"\\ud800\"", "1e400", "\"\xff\"", "{\"\\u0000\":1}", "tru", "01",
};

static char *poisoned(const char *object, const char *poison)
{
    auto_free char *text = served_text(object, strlen(object));
    return xasprintf("%.*s,\"annotations\":%s}}", (int)strlen(text) - 2, text, poison);
}

START_TEST(poisoned_item_of_a_list_keeps_its_old_version)
{
    struct script_request *stream = synchronise("10", "a:u1:5 b:u2:6 c:u3:7");
    force_list(stream);
    auto_free char *bad = poisoned("b:u2:16", poisons[_i]);
    auto_free char *good = served_text("c:u3:17", 7);
    auto_free char *text =
        xasprintf("{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"20\"},"
                  "\"items\":[%s,%s]}",
                  bad, good);
    script_reply(script_expect(script, "GET", "*"), 200, -1, text);
    assert_changes("-a@5 ~c@7>17 ");
    ck_assert_uint_eq(watch_statistics(watch).quarantined, 1);
    ck_assert_str_eq(kube_resource_version(store_find(store, &kube_pod, "ns", "b")), "6");
}
END_TEST

START_TEST(poisoned_event_keeps_the_old_version_and_advances)
{
    struct script_request *stream = synchronise("10", "a:u1:5 b:u2:6");
    auto_free char *bad = poisoned("b:u2:16", poisons[_i]);
    auto_free char *event = xasprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", bad);
    script_send_text(stream, event);
    send_event(stream, "MODIFIED", "a:u1:15");
    assert_changes("~a@5>15 ");
    ck_assert_uint_eq(watch_statistics(watch).quarantined, 1);
    pass(2000);
    script_end(stream);
    step();
    stream = expect_watch("16");
    auto_free char *deleted = xasprintf("{\"type\":\"DELETED\",\"object\":%s}\n", bad);
    script_send_text(stream, deleted);
    assert_changes("-b@6 ");
}
END_TEST

START_TEST(item_that_cannot_be_named_holds_deletions_back)
{
    struct script_request *stream = synchronise("10", "a:u1:5 b:u2:6");
    force_list(stream);
    auto_free char *good = served_text("b:u2:16", 7);
    auto_free char *text =
        xasprintf("{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"20\"},"
                  "\"items\":[{\"metadata\":{\"name\":7}},%s]}",
                  good);
    script_reply(script_expect(script, "GET", "*"), 200, -1, text);
    assert_changes("~b@6>16 ");
}
END_TEST

static const char *const odd_objects[] = {
    "{}",
    "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u1\"}}",
    "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"resourceVersion\":\"12\"}}",
    "{\"metadata\":{\"name\":\"a\",\"uid\":\"u1\",\"resourceVersion\":\"12\"}}",
    "{\"metadata\":{\"name\":\"a\\u0000\",\"namespace\":\"ns\",\"uid\":\"u1\",\"resourceVersion\":\"12\"}}",
    "{\"kind\":7,\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u1\",\"resourceVersion\":\"12\"}}",
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u1\",\"resourceVersion\":\"12\"}}",
    "{\"metadata\":null}",
};

START_TEST(odd_object_changes_nothing)
{
    static const char *const types[] = { "ADDED", "MODIFIED" };
    struct script_request *stream = synchronise("10", "a:u1:5");
    for (size_t i = 0; i < 2; i++) {
        auto_free char *event =
            xasprintf("{\"type\":\"%s\",\"object\":%s}\n", types[i], odd_objects[_i]);
        script_send_text(stream, event);
    }
    assert_changes("");
    ck_assert(stream->is_open);
}
END_TEST

START_TEST(unknown_types_and_kinds_are_ignored)
{
    struct script_request *stream = synchronise("10", "a:u1:5");
    send_event(stream, "FROBBED", "a:u1:11");
    script_send_text(stream,
                     "{\"type\":\"DELETED\",\"object\":{\"kind\":\"Node\",\"metadata\":{"
                     "\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u1\","
                     "\"resourceVersion\":\"12\"}}}\n");
    assert_changes("");
    ck_assert_uint_eq(watch_statistics(watch).events, 0);
    pass(2000);
    script_end(stream);
    step();
    expect_watch("10");
}
END_TEST

/* Keeps the metadata of objects whose name does not start with 'x'. */
static json_t *trim(json_t *object)
{
    if (*kube_name(object) == 'x')
        return NULL;
    return json_pack("{s:O, s:b}", "metadata", json_object_get(object, "metadata"),
                     "trimmed", 1);
}

START_TEST(what_is_kept_is_trimmed_or_refused)
{
    config.trim = trim;
    begin(1);
    struct script_request *stream = synchronise("10", "a:u1:5 x1:u2:6");
    send_event(stream, "ADDED", "x2:u3:11");
    send_event(stream, "ADDED", "b:u4:12");
    assert_changes("+b@12 ");
    ck_assert_uint_eq(watch_statistics(watch).quarantined, 2);
    for (size_t i = 0; i < store_count(store, &kube_pod); i++)
        ck_assert(
            json_is_true(json_object_get(store_at(store, &kube_pod, i), "trimmed")));
}
END_TEST

/* ---- a server with a history, and faults by seed ---- */

enum { SERVER_NAMES = 12, SERVER_EVENTS = 400 };

static struct {
    unsigned seed;
    long long version, first_kept; /* events before it are compacted */
    struct {
        bool exists;
        long long uid, version;
    } objects[SERVER_NAMES];
    struct {
        const char *type;
        int name;
        long long uid, version;
    } history[SERVER_EVENTS + 1]; /* by version */
} server;

static int dice(int sides)
{
    return rand_r(&server.seed) % sides;
}

static void server_change(void)
{
    if (server.version == SERVER_EVENTS)
        return;
    int name = dice(SERVER_NAMES);
    bool existed = server.objects[name].exists;
    bool goes = existed && !dice(3);
    server.version++;
    server.objects[name].exists = !goes;
    if (!existed)
        server.objects[name].uid = server.version;
    server.objects[name].version = server.version;
    server.history[server.version].type = goes      ? "DELETED"
                                          : existed ? "MODIFIED"
                                                    : "ADDED";
    server.history[server.version].name = name;
    server.history[server.version].uid = server.objects[name].uid;
    server.history[server.version].version = server.version;
}

static void server_list(struct script_request *request)
{
    char *objects = xstrdup("");
    for (int i = 0; i < SERVER_NAMES; i++) {
        if (!server.objects[i].exists)
            continue;
        auto_free char *old = objects;
        objects = xasprintf("%s%so%02d:u%lld:%lld", old, *old ? " " : "", i,
                            server.objects[i].uid, server.objects[i].version);
    }
    auto_free char *all = objects;
    auto_free char *version = xasprintf("%lld", server.version);
    auto_free char *text = list_text(version, "", all);
    script_reply(request, 200, -1, text);
}

/* The events behind `*from`, cut at a random byte once in a while. */
static void server_stream(struct script_request *request, long long *from)
{
    while (request->is_open && *from < server.version) {
        ++*from;
        auto_free char *object = xasprintf("o%02d:u%lld:%lld", server.history[*from].name,
                                           server.history[*from].uid,
                                           server.history[*from].version);
        auto_free char *text = event_text(server.history[*from].type, object);
        size_t length = strlen(text);
        if (!dice(15)) {
            script_send(request, text, (size_t)dice((int)length));
            script_fail(request, true);
        } else {
            size_t cut = (size_t)dice((int)length);
            script_send(request, text, cut);
            script_send(request, text + cut, length - cut);
        }
    }
}

static void assert_store_is_the_servers(int seed)
{
    size_t count = 0;
    for (int i = 0; i < SERVER_NAMES; i++) {
        char name[8];
        snprintf(name, sizeof name, "o%02d", i);
        json_t *held = store_find(store, &kube_pod, "ns", name);
        ck_assert_msg((held != NULL) == server.objects[i].exists, "seed %d: %s", seed,
                      name);
        if (!held)
            continue;
        count++;
        ck_assert_msg(atoll(kube_resource_version(held)) == server.objects[i].version,
                      "seed %d: %s has version %s", seed, name,
                      kube_resource_version(held));
    }
    ck_assert_uint_eq(store_count(store, &kube_pod), count);
}

START_TEST(store_becomes_what_the_server_has_whatever_fails)
{
    memset(&server, 0, sizeof server);
    server.seed = (unsigned)_i;
    begin((uint64_t)_i);
    struct script_request *stream = NULL;
    long long sent = 0;
    /* Faults end after a while; then the store must come right. */
    for (int turn = 0; turn < 600; turn++) {
        bool is_calm = turn >= 400;
        if (!is_calm && dice(2))
            server_change();
        if (!is_calm && !dice(20))
            server.first_kept = server.version;
        pass(dice(2000));
        if (stream && stream->is_open) {
            server_stream(stream, &sent);
            if (!is_calm && stream->is_open && !dice(20))
                script_send_text(stream, ERROR_EVENT(410, "Expired", "x"));
            continue;
        }
        if (!script_open_count(script))
            continue;
        struct script_request *request = script_expect(script, "GET", "*");
        const char *from = strstr(request->path, "&resourceVersion=");
        if (!is_calm && !dice(6)) {
            script_fail(request, dice(2));
        } else if (!is_calm && !dice(10)) {
            script_reply(request, 503, -1, "");
        } else if (!strstr(request->path, "watch=1")) {
            server_list(request);
        } else if (atoll(from + 17) < server.first_kept) {
            script_reply(request, 410, -1, STATUS(410, "Expired", "x"));
        } else {
            stream = request;
            sent = atoll(from + 17);
        }
    }
    assert_store_is_the_servers(_i);
}
END_TEST

#define ADD_TABLE(cases, test, table)                                                    \
    tcase_add_loop_test((cases), test, 0, sizeof(table) / sizeof *(table))

Suite *test_watch_suite(void)
{
    Suite *suite = suite_create("watch");
    TCase *cases = tcase_create("watch");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, lists_from_the_cache_then_watches_from_there);
    tcase_add_test(cases, pages_are_read_to_the_end);
    tcase_add_test(cases, event_that_changes_nothing_that_is_kept_is_not_decoded);
    tcase_add_test(cases, heartbeat_of_a_node_is_known_by_its_text);
    tcase_add_test(cases, which_start_of_a_machine_it_is_is_kept_of_a_node);
    tcase_add_test(cases, expired_page_is_read_again_as_one_list);
    tcase_add_test(cases, pages_of_two_versions_are_not_mixed);
    tcase_add_test(cases, page_that_repeats_itself_ends);
    tcase_add_test(cases, events_change_the_store);
    tcase_add_test(cases, object_of_a_typed_list_gets_its_kind);
    tcase_add_test(cases, selectors_and_namespace_are_in_every_request);
    tcase_add_test(cases, server_is_asked_to_end_the_watch_in_5_to_10_minutes);
    tcase_add_test(cases, freed_watch_leaves_nothing_open);
    tcase_add_loop_test(cases, end_of_a_watch_is_followed_by_the_next, 0, 2);
    tcase_add_test(cases, short_watch_without_events_is_a_failure);
    ADD_TABLE(cases, refused_watch_backs_off, watch_ends);
    tcase_add_test(cases, retry_after_of_a_watch_is_waited_for);
    tcase_add_test(cases, internal_errors_lead_to_a_list_after_30_s);
    tcase_add_test(cases, nothing_after_an_error_event_counts);
    tcase_add_test(cases, lines_may_be_split_at_any_byte);
    tcase_add_test(cases, lines_may_come_byte_by_byte);
    tcase_add_test(cases, line_without_its_end_is_dropped);
    tcase_add_test(cases, blank_lines_are_nothing);
    tcase_add_test(cases, line_of_more_than_16_mib_ends_the_watch);
    tcase_add_test(cases, bookmark_advances_the_version);
    tcase_add_test(cases, version_never_goes_back_within_a_watch);
    tcase_add_test(cases, first_events_of_a_watch_begun_anywhere_do_not_advance);
    tcase_add_test(cases, events_told_twice_change_nothing);
    tcase_add_test(cases, list_that_goes_back_is_refused);
    tcase_add_test(cases, history_that_went_back_is_followed);
    tcase_add_test(cases, history_that_went_back_is_noticed_after_a_quorum_list);
    tcase_add_test(cases, what_must_be_fresh_is_listed_from_quorum_at_first);
    tcase_add_test(cases, what_must_be_fresh_is_listed_from_quorum_again);
    tcase_add_test(cases, list_under_way_is_not_fresh);
    tcase_add_test(cases, older_list_is_not_fresh);
    tcase_add_test(cases, list_tells_what_was_missed);
    tcase_add_test(cases, namesake_in_a_watch_is_another_object);
    tcase_add_test(cases, deletion_older_than_what_is_held_is_ignored);
    tcase_add_test(cases, own_write_newer_than_the_list_stays);
    tcase_add_test(cases, object_of_another_namespace_is_not_ours);
    tcase_add_test(cases, expired_list_is_read_from_quorum_once_and_at_once);
    ADD_TABLE(cases, what_is_no_list_changes_nothing, no_lists);
    tcase_add_loop_test(cases, back_off_doubles_to_30_s_with_jitter, 0, 20);
    tcase_add_test(cases, loop_of_expired_watches_is_slow);
    tcase_add_test(cases, silence_is_probed_on_a_new_connection);
    tcase_add_test(cases, any_byte_breaks_the_silence);
    tcase_add_test(cases, word_from_the_watch_ends_the_probe);
    ADD_TABLE(cases, probe_replaces_the_silent_watch, probe_ends);
    ADD_TABLE(cases, mass_deletion_is_confirmed_10_s_later, breakers);
    tcase_add_test(cases, mass_deletion_that_is_not_confirmed_was_none);
    tcase_add_test(cases, mass_deletion_is_not_confirmed_by_a_failure);
    tcase_add_test(cases, mass_deletion_is_not_confirmed_by_a_list_that_lacks_others);
    tcase_add_test(cases, all_made_again_under_their_names_is_a_mass_deletion);
    tcase_add_test(cases, deletions_told_one_by_one_are_believed);
    ADD_TABLE(cases, poisoned_item_of_a_list_keeps_its_old_version, poisons);
    ADD_TABLE(cases, poisoned_event_keeps_the_old_version_and_advances, poisons);
    tcase_add_test(cases, item_that_cannot_be_named_holds_deletions_back);
    ADD_TABLE(cases, odd_object_changes_nothing, odd_objects);
    tcase_add_test(cases, unknown_types_and_kinds_are_ignored);
    tcase_add_test(cases, what_is_kept_is_trimmed_or_refused);
    tcase_add_loop_test(cases, store_becomes_what_the_server_has_whatever_fails, 0,
                        SCALED(100));
    suite_add_tcase(suite, cases);
    return suite;
}
