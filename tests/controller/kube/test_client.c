#include "controller/kube/client.h"

#include "tests/controller/objects.h"
#include "tests/controller/script_transport.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* ---- verbs against a scripted server ---- */

static struct script *script;
static struct kube *kube;

/* The last result, copied. */
static struct {
    int count;
    enum kube_outcome outcome;
    int status;
    int64_t retry_after_ms;
    char reason[64], message[1100], body[1100], object_name[64];
} last;

static char streamed[4096];

static void set_up(void)
{
    script = script_new();
    kube = kube_new(script_transport(script), "tester/1");
    kube_step(kube, 1000);
    memset(&last, 0, sizeof last);
    streamed[0] = '\0';
}

static void tear_down(void)
{
    kube_free(kube);
    script_free(script);
}

static void record(void *context, const struct kube_result *result)
{
    ck_assert_ptr_eq(context, &last);
    last.count++;
    last.outcome = result->outcome;
    last.status = result->status;
    last.retry_after_ms = result->retry_after_ms;
    snprintf(last.reason, sizeof last.reason, "%s", result->reason);
    snprintf(last.message, sizeof last.message, "%s", result->message);
    snprintf(last.body, sizeof last.body, "%.*s", (int)result->body_length, result->body);
    snprintf(last.object_name, sizeof last.object_name, "%s", kube_name(result->object));
}

static void assert_outcome(enum kube_outcome outcome)
{
    ck_assert_int_eq(last.count, 1);
    ck_assert_str_eq(kube_outcome_name(last.outcome), kube_outcome_name(outcome));
}

static const struct {
    const struct kube_resource *resource;
    const char *ns, *name, *path;
} paths[] = {
    { &kube_pod, "ns", "a", "/api/v1/namespaces/ns/pods/a" },
    { &kube_pod, "ns", NULL, "/api/v1/namespaces/ns/pods" },
    { &kube_pod, "", NULL, "/api/v1/pods" },
    { &kube_pod, NULL, NULL, "/api/v1/pods" },
    { &kube_node, "", "n1", "/api/v1/nodes/n1" },
    { &kube_node, "ignored", "n1", "/api/v1/nodes/n1" },
    { &kube_service, "ns", "a", "/api/v1/namespaces/ns/services/a" },
    { &kube_config_map, "ns", "a", "/api/v1/namespaces/ns/configmaps/a" },
    { &kube_event, "ns", "a.b", "/apis/events.k8s.io/v1/namespaces/ns/events/a.b" },
    { &kube_job, "ns", "j",
      "/apis/heterotrain.io/v1alpha1/namespaces/ns/heterotrainingjobs/j" },
    { &kube_model_profile, "ns", "m",
      "/apis/heterotrain.io/v1alpha1/namespaces/ns/modelprofiles/m" },
    { &kube_cluster_model_profile, NULL, "m",
      "/apis/heterotrain.io/v1alpha1/clustermodelprofiles/m" },
    { &kube_pod, "n/s", "a?b#c%d e\xc3\xa9",
      "/api/v1/namespaces/n%2Fs/pods/a%3Fb%23c%25d%20e%C3%A9" },
};

START_TEST(path_of_a_resource)
{
    auto_free char *path = kube_path(paths[_i].resource, paths[_i].ns, paths[_i].name);
    ck_assert_str_eq(path, paths[_i].path);
}
END_TEST

START_TEST(get_gives_the_decoded_object)
{
    kube_get(kube, &kube_pod, "ns", "a", record, &last);
    ck_assert_uint_eq(kube_in_flight(kube), 1);
    struct script_request *request =
        script_expect(script, "GET", "/api/v1/namespaces/ns/pods/a");
    ck_assert_int_eq(request->timeout_ms, 65000);
    ck_assert_str_eq(request->user_agent, "tester/1");
    ck_assert_ptr_null(request->body);
    auto_free char *body = make_object_text(&kube_pod, "ns", "a", "u1", 5);
    script_reply(request, 200, -1, body);
    assert_outcome(KUBE_OK);
    ck_assert_str_eq(last.object_name, "a");
    ck_assert_str_eq(last.message, "GET /api/v1/namespaces/ns/pods/a: 200");
    ck_assert_uint_eq(kube_in_flight(kube), 0);
}
END_TEST

/* Of pods strictly: the author of their fields is another than who creates them. */
START_TEST(create_posts_the_object)
{
    json_auto_t *pod = make_object(&kube_pod, "ns", "a", "", 0, NULL);
    kube_create(kube, &kube_pod, "ns", pod, record, &last);
    struct script_request *request = script_expect(
        script, "POST", "/api/v1/namespaces/ns/pods?fieldValidation=Strict");
    ck_assert_str_eq(request->content_type, "application/json");
    json_auto_t *sent = json_loads(request->body, 0, NULL);
    ck_assert(json_equal(sent, pod));
    auto_free char *body = make_object_text(&kube_pod, "ns", "a", "u1", 5);
    script_reply(request, 201, -1, body);
    assert_outcome(KUBE_OK);
}
END_TEST

START_TEST(apply_is_forced_under_its_manager)
{
    json_auto_t *pod = make_object(&kube_pod, "ns", "a", "", 0, NULL);
    kube_apply(kube, &kube_pod, "ns", "a", "status", "heterotrain.io/controller", pod,
               record, &last);
    struct script_request *request = script_expect(
        script, "PATCH",
        "/api/v1/namespaces/ns/pods/a/status?fieldManager=heterotrain.io%2Fcontroller&force=true");
    ck_assert_str_eq(request->content_type, "application/apply-patch+yaml");
}
END_TEST

START_TEST(patch_is_a_merge_patch)
{
    json_auto_t *patch = json_pack("{s:{s:n}}", "metadata", "labels");
    kube_patch(kube, &kube_pod, "ns", "a", NULL, patch, record, &last);
    struct script_request *request =
        script_expect(script, "PATCH", "/api/v1/namespaces/ns/pods/a");
    ck_assert_str_eq(request->content_type, "application/merge-patch+json");
    ck_assert_str_eq(request->body, "{\"metadata\":{\"labels\":null}}");
}
END_TEST

START_TEST(delete_names_the_uid)
{
    kube_delete(kube, &kube_pod, "ns", "a", "u1", -1, record, &last);
    struct script_request *request =
        script_expect(script, "DELETE", "/api/v1/namespaces/ns/pods/a");
    ck_assert_str_eq(request->body, "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\","
                                    "\"preconditions\":{\"uid\":\"u1\"},"
                                    "\"propagationPolicy\":\"Background\"}");
    script_reply(request, 200, -1, "{\"kind\":\"Status\",\"status\":\"Success\"}");
    assert_outcome(KUBE_OK);
    kube_delete(kube, &kube_pod, "ns", "a", "u1", 0, record, &last);
    request = script_expect(script, "DELETE", "/api/v1/namespaces/ns/pods/a");
    ck_assert_ptr_nonnull(strstr(request->body, "\"gracePeriodSeconds\":0"));
}
END_TEST

#define STATUS(code, reason, message)                                                    \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"code\":" #code  \
    ",\"reason\":\"" reason "\",\"message\":\"" message "\"}"

static const struct {
    int status;
    const char *body;
    enum kube_outcome outcome;
    const char *reason, *message;
} refusals[] = {
    { 404, STATUS(404, "NotFound", "pods x not found"), KUBE_NOT_FOUND, "NotFound",
      "404 NotFound: pods x not found" },
    { 404, "404 page not found\n", KUBE_NOT_FOUND, "", "404: 404 page not found" },
    { 409, STATUS(409, "AlreadyExists", "x"), KUBE_EXISTS, "AlreadyExists",
      "409 AlreadyExists: x" },
    { 409, STATUS(409, "Conflict", "x"), KUBE_CONFLICT, "Conflict", "409 Conflict: x" },
    { 410, STATUS(410, "Expired", "x"), KUBE_EXPIRED, "Expired", "410 Expired: x" },
    { 410, STATUS(410, "Gone", "x"), KUBE_EXPIRED, "Gone", "410 Gone: x" },
    { 410, "gone", KUBE_EXPIRED, "", "410: gone" },
    { 504,
      "{\"kind\":\"Status\",\"code\":504,\"reason\":\"Timeout\",\"message\":\"x\","
      "\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\"}]}}",
      KUBE_RV_TOO_LARGE, "Timeout", "504 Timeout: x" },
    { 504,
      "{\"kind\":\"Status\",\"code\":504,\"reason\":\"Timeout\",\"message\":\"x\","
      "\"details\":{\"causes\":[{\"message\":\"Too large resource version\"}]}}",
      KUBE_RV_TOO_LARGE, "Timeout", "504 Timeout: x" },
    { 504, STATUS(504, "Timeout", "Too large resource version: 9, current: 7"),
      KUBE_RV_TOO_LARGE, "Timeout",
      "504 Timeout: Too large resource version: 9, current: 7" },
    { 504, STATUS(504, "Timeout", "request did not complete"), KUBE_SERVER_ERROR,
      "Timeout", "504 Timeout: request did not complete" },
    { 400, STATUS(400, "BadRequest", "x"), KUBE_INVALID, "BadRequest",
      "400 BadRequest: x" },
    { 413, STATUS(413, "RequestEntityTooLarge", "x"), KUBE_INVALID,
      "RequestEntityTooLarge", "413 RequestEntityTooLarge: x" },
    { 422, STATUS(422, "Invalid", "a\\nb"), KUBE_INVALID, "Invalid", "422 Invalid: a b" },
    { 405, "", KUBE_INVALID, "", "405" },
    { 401, STATUS(401, "Unauthorized", "Unauthorized"), KUBE_DENIED, "Unauthorized",
      "401 Unauthorized: Unauthorized" },
    { 403, STATUS(403, "Forbidden", "no"), KUBE_DENIED, "Forbidden",
      "403 Forbidden: no" },
    { 429, "Too many requests, please try again later.\n", KUBE_BUSY, "",
      "429: Too many requests, please try again later." },
    { 500, STATUS(500, "InternalError", "x"), KUBE_SERVER_ERROR, "InternalError",
      "500 InternalError: x" },
    { 502, "<html>\r\n<body>bad gateway</body></html>", KUBE_SERVER_ERROR, "",
      "502: <html>  <body>bad gateway</body></html>" },
    { 503, "", KUBE_SERVER_ERROR, "", "503" },
    { 302, "elsewhere", KUBE_SERVER_ERROR, "", "302: elsewhere" },
    { 500, "{\"kind\":\"Pod\",\"reason\":\"Expired\"}", KUBE_SERVER_ERROR, "",
      "500: {\"kind\":\"Pod\",\"reason\":\"Expired\"}" },
    { 500, "{\"kind\":\"Status\",\"reason\":7}", KUBE_SERVER_ERROR, "",
      "500: {\"kind\":\"Status\",\"reason\":7}" },
};

START_TEST(refusal_has_its_outcome)
{
    kube_get(kube, &kube_pod, "ns", "x", record, &last);
    script_reply(script_expect(script, "GET", "*"), refusals[_i].status, -1,
                 refusals[_i].body);
    assert_outcome(refusals[_i].outcome);
    ck_assert_int_eq(last.status, refusals[_i].status);
    ck_assert_str_eq(last.reason, refusals[_i].reason);
    ck_assert_str_eq(last.body, refusals[_i].body);
    auto_free char *message =
        xasprintf("GET /api/v1/namespaces/ns/pods/x: %s", refusals[_i].message);
    ck_assert_str_eq(last.message, message);
    script_expect_nothing(script);
}
END_TEST

/* 2xx replies that are not what was asked for (0.3, F20). */
static const char *const wrong_bodies[] = {
    "",
    "{",
    "null",
    "[]",
    "{}",
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Success\"}",
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":[]}",
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"b\",\"namespace\":\"ns\"}}",
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":\"mars\"}}",
    "{\"kind\":\"Pod\",\"apiVersion\":\"v2\",\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\"}}",
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\\u0000\",\"namespace\":\"ns\"}}",
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\"}} x",
};

START_TEST(success_of_another_kind_is_none)
{
    kube_get(kube, &kube_pod, "ns", "a", record, &last);
    script_reply(script_expect(script, "GET", "*"), 200, -1, wrong_bodies[_i]);
    assert_outcome(KUBE_SERVER_ERROR);
    ck_assert_str_eq(last.object_name, "");
    last.count = 0;
    json_auto_t *pod = make_object(&kube_pod, "ns", "a", "", 0, NULL);
    kube_create(kube, &kube_pod, "ns", pod, record, &last);
    script_reply(script_expect(script, "POST", "*"), 201, -1, wrong_bodies[_i]);
    assert_outcome(KUBE_UNKNOWN);
}
END_TEST

START_TEST(busy_server_is_waited_for)
{
    kube_get(kube, &kube_pod, "ns", "a", record, &last);
    script_reply(script_expect(script, "GET", "*"), 429, 7, "Too many requests");
    ck_assert_int_eq(last.count, 0);
    ck_assert_int_le(kube_next_ms(kube), 1000); /* wants to know the time */
    kube_step(kube, 2000);
    ck_assert_int_eq(kube_next_ms(kube), 9000); /* 2000 + 7 s */
    kube_step(kube, 8999);
    script_expect_nothing(script);
    ck_assert_uint_eq(kube_in_flight(kube), 1);
    kube_step(kube, 9000);
    auto_free char *body = make_object_text(&kube_pod, "ns", "a", "u1", 5);
    script_reply(script_expect(script, "GET", "*"), 200, -1, body);
    assert_outcome(KUBE_OK);
}
END_TEST

/* Whoever says Retry-After is asked again, 10 times. */
START_TEST(retries_end_after_ten)
{
    static const struct {
        int status;
        enum kube_outcome outcome;
    } cases[] = { { 429, KUBE_BUSY },
                  { 500, KUBE_SERVER_ERROR },
                  { 503, KUBE_SERVER_ERROR } };
    json_auto_t *pod = make_object(&kube_pod, "ns", "a", "", 0, NULL);
    kube_create(kube, &kube_pod, "ns", pod, record, &last);
    int64_t now_ms = 1000;
    for (int i = 0; i < 11; i++) {
        ck_assert_int_eq(last.count, 0);
        script_reply(script_expect(script, "POST", "*"), cases[_i].status, 1, "");
        kube_step(kube, now_ms);
        now_ms += 1000;
        kube_step(kube, now_ms);
    }
    assert_outcome(cases[_i].outcome);
    ck_assert_int_eq(last.retry_after_ms, 1000);
    script_expect_nothing(script);
}
END_TEST

START_TEST(very_long_retry_after_is_the_callers)
{
    kube_get(kube, &kube_pod, "ns", "a", record, &last);
    script_reply(script_expect(script, "GET", "*"), 503, 121, "");
    assert_outcome(KUBE_SERVER_ERROR);
    ck_assert_int_eq(last.retry_after_ms, 121000);
}
END_TEST

START_TEST(version_too_large_is_told_at_once)
{
    kube_list(kube, &kube_pod, "", "resourceVersion=9", record, &last);
    script_reply(script_expect(script, "GET", "*"), 504, 1,
                 STATUS(504, "Timeout", "Too large resource version: 9"));
    assert_outcome(KUBE_RV_TOO_LARGE);
}
END_TEST

START_TEST(get_is_repeated_three_times_after_a_lost_connection)
{
    kube_get(kube, &kube_pod, "ns", "a", record, &last);
    int64_t now_ms = 1000;
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(last.count, 0);
        script_fail(script_expect(script, "GET", "*"), true);
        kube_step(kube, now_ms);
        script_expect_nothing(script);
        now_ms += 1000;
        kube_step(kube, now_ms);
    }
    assert_outcome(KUBE_UNREACHABLE);
    ck_assert_str_eq(last.message, "GET /api/v1/namespaces/ns/pods/a: connection reset");
}
END_TEST

START_TEST(refused_connection_is_told_at_once)
{
    kube_get(kube, &kube_pod, "ns", "a", record, &last);
    script_fail(script_expect(script, "GET", "*"), false);
    assert_outcome(KUBE_UNREACHABLE);
}
END_TEST

START_TEST(too_long_reply_is_not_asked_for_again)
{
    kube_get(kube, &kube_pod, "ns", "a", record, &last);
    script_fail_too_long(script_expect(script, "GET", "*"));
    assert_outcome(KUBE_INVALID);
}
END_TEST

/* Each verb that changes something. */
static void start_write(int write)
{
    json_auto_t *pod = make_object(&kube_pod, "ns", "a", "u1", 7, NULL);
    switch (write) {
    case 0:
        kube_create(kube, &kube_pod, "ns", pod, record, &last);
        break;
    case 1:
        kube_apply(kube, &kube_pod, "ns", "a", NULL, "m", pod, record, &last);
        break;
    case 2:
        kube_patch(kube, &kube_pod, "ns", "a", NULL, pod, record, &last);
        break;
    case 3:
        kube_update(kube, &kube_pod, "ns", "a", pod, record, &last);
        break;
    case 4:
        kube_delete(kube, &kube_pod, "ns", "a", "u1", -1, record, &last);
        break;
    }
}

static const char *const write_methods[] = { "POST", "PATCH", "PATCH", "PUT", "DELETE" };
enum { WRITES = sizeof write_methods / sizeof *write_methods };

START_TEST(write_with_unknown_end_is_never_repeated)
{
    for (int write = 0; write < WRITES; write++) {
        for (int maybe_sent = 0; maybe_sent < 2; maybe_sent++) {
            last.count = 0;
            start_write(write);
            script_fail(script_expect(script, write_methods[write], "*"), maybe_sent);
            assert_outcome(maybe_sent ? KUBE_UNKNOWN : KUBE_UNREACHABLE);
            kube_step(kube, 100000);
            script_expect_nothing(script);
        }
    }
}
END_TEST

START_TEST(update_puts_what_was_read)
{
    json_auto_t *pod = make_object(&kube_pod, "ns", "a", "u1", 7, NULL);
    kube_update(kube, &kube_pod, "ns", "a", pod, record, &last);
    struct script_request *request =
        script_expect(script, "PUT", "/api/v1/namespaces/ns/pods/a");
    ck_assert_str_eq(request->content_type, "application/json");
    ck_assert(strstr(request->body, "\"resourceVersion\":\"7\"") != NULL);
    script_reply(request, 409, -1,
                 "{\"kind\":\"Status\",\"code\":409,\"reason\":\"Conflict\"}");
    assert_outcome(KUBE_CONFLICT);
}
END_TEST

static bool fence_is_open(void *context)
{
    return *(bool *)context;
}

START_TEST(write_waits_while_the_fence_is_closed)
{
    bool is_open = false;
    kube_set_fence(kube, fence_is_open, &is_open);
    start_write(_i);
    kube_get(kube, &kube_pod, "ns", "b", record, &last);
    kube_list(kube, &kube_pod, "", "limit=1", record, &last);
    script_reply(script_expect(script, "GET", "*/b"), 404, -1, "");
    script_reply(script_expect(script, "GET", "*limit=1"), 404, -1, "");
    kube_step(kube, 100000);
    script_expect_nothing(script);
    ck_assert_int_eq(kube_next_ms(kube), INT64_MAX);
    ck_assert_uint_eq(kube_writes_in_flight(kube), 0);

    is_open = true;
    kube_step(kube, 100001);
    struct script_request *request = script_expect(
        script, write_methods[_i], _i <= 1 ? "*&timeout=5s" : "*?timeout=5s");
    ck_assert_int_eq(request->timeout_ms, KUBE_FENCED_TIMEOUT_MS);
    ck_assert_uint_eq(kube_writes_in_flight(kube), 1);
    /* Once more after a while, unless the fence has closed. */
    is_open = false;
    script_reply(request, 429, 1, "");
    kube_step(kube, 100002);
    kube_step(kube, 101002);
    script_expect_nothing(script);
    ck_assert_uint_eq(kube_writes_in_flight(kube), 0);
}
END_TEST

/* The fence may close between two writes of one burst, or in an answer's callback. */
static bool fence_closes_after(void *context)
{
    int *left = context;
    return (*left)-- > 0;
}

START_TEST(fence_is_asked_before_each_write)
{
    int left = 3;
    kube_set_fence(kube, fence_closes_after, &left);
    for (int i = 0; i < 5; i++)
        start_write(0);
    ck_assert_uint_eq(script_open_count(script), 3);
}
END_TEST

START_TEST(limiter_allows_30_at_once_and_20_a_second)
{
    kube_set_rate(kube, 20, 30);
    /* Answered at once, so that only the bucket holds them back. */
    int answered = 0;
    for (int i = 0; i < 40; i++)
        kube_get(kube, &kube_pod, "ns", "a", record, &last);
    while (script_open_count(script)) {
        script_reply(script_expect(script, "GET", "*"), 404, -1, "");
        answered++;
    }
    ck_assert_int_eq(answered, 30);
    ck_assert_int_eq(kube_next_ms(kube), 1050); /* 1 / 20 s later */
    for (int i = 1; i <= 10; i++) {
        kube_step(kube, 1000 + 50 * i - 1);
        script_expect_nothing(script);
        kube_step(kube, 1000 + 50 * i);
        script_reply(script_expect(script, "GET", "*"), 404, -1, "");
    }
    ck_assert_int_eq(last.count, 40);
    ck_assert_int_eq(kube_next_ms(kube), INT64_MAX);
}
END_TEST

/* Two tellings wait, and five creations that were asked for later: three of these go
 * first, then the telling that waited longest. */
START_TEST(what_only_tells_is_overtaken_a_while)
{
    static const char *const order[] = { "POST", "POST", "POST", "PATCH",
                                         "POST", "POST", "PATCH" };
    json_auto_t *pod = make_object(&kube_pod, "ns", "a", "u1", 7, NULL);
    kube_set_rate(kube, 1, 1);
    kube_get(kube, &kube_pod, "ns", "a", record, &last); /* takes the one token */
    script_reply(script_expect(script, "GET", "*"), 404, -1, "");
    for (int i = 0; i < 2; i++)
        kube_patch(kube, &kube_pod, "ns", "a", "status", pod, record, &last);
    for (int i = 0; i < 5; i++)
        kube_create(kube, &kube_pod, "ns", pod, record, &last);
    script_expect_nothing(script);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        kube_step(kube, 1000 * (2 + (int64_t)i));
        ck_assert_uint_eq(script_open_count(script), 1);
        script_reply(script_expect(script, order[i], "*"), 404, -1, "");
    }
    ck_assert_int_eq(last.count, 8);
}
END_TEST

START_TEST(sixteen_requests_run_at_once)
{
    for (int i = 0; i < 20; i++)
        kube_get(kube, &kube_pod, "ns", "a", record, &last);
    ck_assert_uint_eq(script_open_count(script), 16);
    ck_assert_uint_eq(kube_in_flight(kube), 20);
    ck_assert_int_eq(kube_next_ms(kube), INT64_MAX);
    script_reply(script_expect(script, "GET", "*"), 404, -1, "");
    ck_assert_uint_eq(script_open_count(script), 16);
    ck_assert_uint_eq(kube_in_flight(kube), 19);
}
END_TEST

START_TEST(clock_that_goes_back_gives_no_tokens)
{
    kube_set_rate(kube, 1, 1);
    kube_get(kube, &kube_pod, "ns", "a", record, &last);
    kube_get(kube, &kube_pod, "ns", "b", record, &last);
    script_expect(script, "GET", "*");
    kube_step(kube, 500);
    script_expect_nothing(script);
    kube_step(kube, 1500);
    script_expect(script, "GET", "*/b");
}
END_TEST

START_TEST(cancelled_request_has_no_callback)
{
    kube_set_rate(kube, 1, 2);
    uint64_t running = kube_get(kube, &kube_pod, "ns", "a", record, &last);
    uint64_t waiting = kube_get(kube, &kube_pod, "ns", "b", record, &last);
    uint64_t queued = kube_get(kube, &kube_pod, "ns", "c", record, &last);
    struct script_request *first = script_expect(script, "GET", "*/a");
    script_reply(script_expect(script, "GET", "*/b"), 429, 5, "");
    kube_cancel(kube, waiting);
    kube_cancel(kube, queued);
    kube_cancel(kube, running);
    kube_cancel(kube, running);
    kube_cancel(kube, 12345);
    ck_assert(!first->is_open);
    ck_assert_uint_eq(kube_in_flight(kube), 0);
    kube_step(kube, 100000);
    script_expect_nothing(script);
    ck_assert_int_eq(last.count, 0);
}
END_TEST

START_TEST(freed_client_cancels_what_runs)
{
    kube_get(kube, &kube_pod, "ns", "a", record, &last);
    kube_free(kube);
    kube = NULL;
    ck_assert_uint_eq(script_open_count(script), 0);
    ck_assert_int_eq(last.count, 0);
}
END_TEST

/* Starts the next request from the callback of the last. */
static void chain(void *context, const struct kube_result *result)
{
    (void)result;
    int *left = context;
    if ((*left)--)
        kube_get(kube, &kube_pod, "ns", "a", chain, left);
}

START_TEST(callback_may_start_requests)
{
    int left = 5;
    kube_get(kube, &kube_pod, "ns", "a", chain, &left);
    for (int i = 0; i < 6; i++)
        script_reply(script_expect(script, "GET", "*"), 404, -1, "");
    script_expect_nothing(script);
    ck_assert_int_eq(left, -1);
}
END_TEST

static void collect(void *context, const char *bytes, size_t length)
{
    ck_assert_ptr_eq(context, &last);
    strncat(streamed, bytes, length);
}

START_TEST(watch_is_a_stream_that_nothing_holds_back)
{
    kube_set_rate(kube, 1, 1);
    kube_get(kube, &kube_pod, "ns", "a", chain, &(int){ 0 });
    script_expect(script, "GET", "*");
    kube_watch(kube, &kube_pod, "ns", "watch=1", collect, record, &last);
    struct script_request *watch =
        script_expect(script, "GET", "/api/v1/namespaces/ns/pods?watch=1");
    ck_assert_int_eq(watch->timeout_ms, 0);
    ck_assert_uint_eq(kube_in_flight(kube), 1);
    script_send_text(watch, "abc");
    script_send_text(watch, "def");
    script_end(watch);
    ck_assert_str_eq(streamed, "abcdef");
    assert_outcome(KUBE_OK);
}
END_TEST

START_TEST(watch_is_not_repeated)
{
    kube_watch(kube, &kube_pod, "ns", "watch=1", collect, record, &last);
    script_reply(script_expect(script, "GET", "*"), 429, 1, "slow down");
    assert_outcome(KUBE_BUSY);
    ck_assert_int_eq(last.retry_after_ms, 1000);
    last.count = 0;
    kube_watch(kube, &kube_pod, "ns", "watch=1", collect, record, &last);
    script_fail(script_expect(script, "GET", "*"), true);
    assert_outcome(KUBE_UNREACHABLE);
    kube_step(kube, 100000);
    script_expect_nothing(script);
}
END_TEST

START_TEST(probe_takes_a_new_connection_and_is_not_repeated)
{
    kube_probe(kube, &kube_pod, "", "resourceVersion=5", record, &last);
    struct script_request *probe =
        script_expect(script, "GET", "/api/v1/pods?resourceVersion=5");
    ck_assert(probe->new_connection);
    ck_assert_int_eq(probe->timeout_ms, 20000);
    script_fail(probe, true);
    assert_outcome(KUBE_UNREACHABLE);
    kube_step(kube, 100000);
    script_expect_nothing(script);
}
END_TEST

#define ADD_TABLE(cases, test, table)                                                    \
    tcase_add_loop_test((cases), test, 0, sizeof(table) / sizeof *(table))

Suite *test_client_suite(void)
{
    Suite *suite = suite_create("client");
    TCase *verbs = tcase_create("verbs");
    tcase_add_checked_fixture(verbs, set_up, tear_down);
    ADD_TABLE(verbs, path_of_a_resource, paths);
    tcase_add_test(verbs, get_gives_the_decoded_object);
    tcase_add_test(verbs, create_posts_the_object);
    tcase_add_test(verbs, apply_is_forced_under_its_manager);
    tcase_add_test(verbs, patch_is_a_merge_patch);
    tcase_add_test(verbs, delete_names_the_uid);
    ADD_TABLE(verbs, refusal_has_its_outcome, refusals);
    ADD_TABLE(verbs, success_of_another_kind_is_none, wrong_bodies);
    tcase_add_test(verbs, busy_server_is_waited_for);
    tcase_add_loop_test(verbs, retries_end_after_ten, 0, 3);
    tcase_add_test(verbs, very_long_retry_after_is_the_callers);
    tcase_add_test(verbs, version_too_large_is_told_at_once);
    tcase_add_test(verbs, get_is_repeated_three_times_after_a_lost_connection);
    tcase_add_test(verbs, refused_connection_is_told_at_once);
    tcase_add_test(verbs, too_long_reply_is_not_asked_for_again);
    tcase_add_test(verbs, write_with_unknown_end_is_never_repeated);
    tcase_add_test(verbs, update_puts_what_was_read);
    tcase_add_loop_test(verbs, write_waits_while_the_fence_is_closed, 0, 5);
    tcase_add_test(verbs, fence_is_asked_before_each_write);
    tcase_add_test(verbs, limiter_allows_30_at_once_and_20_a_second);
    tcase_add_test(verbs, what_only_tells_is_overtaken_a_while);
    tcase_add_test(verbs, sixteen_requests_run_at_once);
    tcase_add_test(verbs, clock_that_goes_back_gives_no_tokens);
    tcase_add_test(verbs, cancelled_request_has_no_callback);
    tcase_add_test(verbs, freed_client_cancels_what_runs);
    tcase_add_test(verbs, callback_may_start_requests);
    tcase_add_test(verbs, watch_is_a_stream_that_nothing_holds_back);
    tcase_add_test(verbs, watch_is_not_repeated);
    tcase_add_test(verbs, probe_takes_a_new_connection_and_is_not_repeated);
    suite_add_tcase(suite, verbs);
    return suite;
}
