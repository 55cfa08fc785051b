#include "controller/operator/apply.h"
#include "tests/controller/objects.h"
#include "tests/controller/script_transport.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct script *script;
static struct kube *kube;
static struct apply *apply;
static int seen, gone, done;
static bool failed;
static char error[1024];

static void on_object(void *context, const struct kube_resource *resource, const char *ns,
                      const char *name, const char *uid, json_t *object)
{
    (void)context, (void)resource, (void)ns, (void)name, (void)uid;
    *(object ? &seen : &gone) += 1;
}

static uint64_t on_reading(void *context)
{
    (void)context;
    return 7;
}

static void on_read(void *context, const struct kube_resource *resource, json_t *object,
                    uint64_t reading)
{
    (void)context, (void)resource, (void)object;
    ck_assert_uint_eq(reading, 7);
    seen++;
}

static void on_done(void *context, const char *key, const struct apply_outcome *outcome)
{
    const struct het_error *err = outcome->err;
    (void)context;
    ck_assert_str_eq(key, "ns/job");
    ck_assert_int_eq(outcome->failed != NULL, err != NULL);
    done++;
    failed = err != NULL;
    snprintf(error, sizeof error, "%s", err ? err->message : "");
}

static void setup(void)
{
    script = script_new();
    kube = kube_new(script_transport(script), "tester/1");
    kube_step(kube, 1000);
    struct apply_callbacks callbacks = { .on_reading = on_reading,
                                         .on_read = on_read,
                                         .on_object = on_object,
                                         .on_done = on_done };
    apply = apply_new(kube, &callbacks);
    seen = gone = done = 0;
    failed = false;
}

static void teardown(void)
{
    kube_free(kube);
    apply_free(apply);
    script_free(script);
}

static struct action pod_action(enum action_kind kind, int phase, const char *name)
{
    return (struct action){
        .kind = kind,
        .phase = phase,
        .resource = &kube_pod,
        .ns = "ns",
        .name = name,
        .uid = "u1",
        .grace_s = -1,
        .object = kind == ACTION_DELETE
                      ? NULL
                      : make_object(&kube_pod, "ns", name, "", 0, "owner"),
    };
}

static void start(struct action *actions, size_t count)
{
    struct decision decision = { .actions = actions, .action_count = count };
    apply_start(apply, "ns/job", &decision);
    decision_fini(&decision);
}

static void reply_object(struct script_request *request, int status, const char *name,
                         const char *owner)
{
    json_auto_t *object = make_object(&kube_pod, "ns", name, "u1", 5, owner);
    auto_free char *text = json_dumps(object, 0);
    script_reply(request, status, -1, text);
}

START_TEST(phases_run_one_after_the_other_and_grow_inside)
{
    struct action actions[6];
    actions[0] = pod_action(ACTION_DELETE, 0, "old");
    static const char *const names[] = { "p0", "p1", "p2", "p3", "p4" };
    for (int i = 0; i < 5; i++)
        actions[i + 1] = pod_action(ACTION_CREATE, 1, names[i]);
    start(actions, 6);
    struct script_request *request = script_expect(script, "DELETE", "*/pods/old");
    script_expect_nothing(script);
    script_reply(request, 200, -1, "{\"kind\":\"Status\",\"status\":\"Success\"}");
    ck_assert_int_eq(gone, 1);
    request = script_expect(script, "POST", "*/pods*");
    script_expect_nothing(script); /* slow start: one, then two, then four */
    reply_object(request, 201, "p0", "owner");
    struct script_request *second = script_expect(script, "POST", "*/pods*");
    struct script_request *third = script_expect(script, "POST", "*/pods*");
    script_expect_nothing(script);
    reply_object(second, 201, "p1", "owner");
    reply_object(third, 201, "p2", "owner");
    second = script_expect(script, "POST", "*/pods*");
    third = script_expect(script, "POST", "*/pods*");
    reply_object(second, 201, "p3", "owner");
    ck_assert_int_eq(done, 0);
    reply_object(third, 201, "p4", "owner");
    ck_assert_int_eq(done, 1);
    ck_assert(!failed);
    ck_assert_int_eq(seen, 5);
    ck_assert_uint_eq(apply_running(apply), 0);
}
END_TEST

START_TEST(first_failure_ends_the_run)
{
    struct action actions[] = { pod_action(ACTION_CREATE, 0, "a"),
                                pod_action(ACTION_CREATE, 0, "b") };
    start(actions, 2);
    script_reply(script_expect(script, "POST", "*/pods*"), 403, -1,
                 "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Forbidden\","
                 "\"message\":\"exceeded quota\",\"code\":403}");
    script_expect_nothing(script);
    ck_assert_int_eq(done, 1);
    ck_assert(failed);
    ck_assert_ptr_nonnull(strstr(error, "exceeded quota"));
}
END_TEST

static const char exists[] = "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":"
                             "\"AlreadyExists\",\"message\":\"exists\",\"code\":409}";

START_TEST(existing_object_of_ours_is_success)
{
    struct action action = pod_action(ACTION_CREATE, 0, "a");
    start(&action, 1);
    script_reply(script_expect(script, "POST", "*/pods*"), 409, -1, exists);
    reply_object(script_expect(script, "GET", "*/pods/a"), 200, "a", "owner");
    ck_assert_int_eq(done, 1);
    ck_assert(!failed);
    ck_assert_int_eq(seen, 1);
}
END_TEST

START_TEST(existing_object_of_somebody_else_is_never_adopted)
{
    struct action action = pod_action(ACTION_CREATE, 0, "a");
    start(&action, 1);
    script_reply(script_expect(script, "POST", "*/pods*"), 409, -1, exists);
    reply_object(script_expect(script, "GET", "*/pods/a"), 200, "a", "another");
    ck_assert(failed);
    ck_assert_int_eq(seen, 0);
    ck_assert_ptr_nonnull(strstr(error, "somebody else"));
}
END_TEST

START_TEST(unknown_outcome_is_read_back)
{
    struct action action = pod_action(ACTION_CREATE, 0, "a");
    start(&action, 1);
    script_fail(script_expect(script, "POST", "*/pods*"), true);
    reply_object(script_expect(script, "GET", "*/pods/a"), 200, "a", "owner");
    ck_assert_int_eq(done, 1);
    ck_assert(!failed);
}
END_TEST

START_TEST(deletion_names_the_uid_and_tolerates_what_is_gone)
{
    struct action actions[] = { pod_action(ACTION_DELETE, 0, "a"),
                                pod_action(ACTION_DELETE, 1, "b") };
    actions[1].grace_s = 0;
    start(actions, 2);
    struct script_request *request = script_expect(script, "DELETE", "*/pods/a");
    ck_assert_ptr_nonnull(strstr(request->body, "\"uid\":\"u1\""));
    script_reply(request, 404, -1,
                 "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"NotFound\","
                 "\"message\":\"gone\",\"code\":404}");
    request = script_expect(script, "DELETE", "*/pods/b");
    ck_assert_ptr_nonnull(strstr(request->body, "\"gracePeriodSeconds\":0"));
    script_reply(request, 409, -1,
                 "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Conflict\","
                 "\"message\":\"uid\",\"code\":409}");
    json_auto_t *another = make_object(&kube_pod, "ns", "b", "u2", 5, "owner");
    auto_free char *text = json_dumps(another, 0);
    script_reply(script_expect(script, "GET", "*/pods/b"), 200, -1, text);
    ck_assert_int_eq(done, 1);
    ck_assert(!failed);
    ck_assert_int_eq(gone, 2);
}
END_TEST

START_TEST(deletion_that_meets_a_conflict_is_tried_again_if_the_object_is_there)
{
    struct action action = pod_action(ACTION_DELETE, 0, "a");
    start(&action, 1);
    script_reply(script_expect(script, "DELETE", "*/pods/a"), 409, -1,
                 "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Conflict\","
                 "\"message\":\"try again\",\"code\":409}");
    reply_object(script_expect(script, "GET", "*/pods/a"), 200, "a", "owner");
    ck_assert_int_eq(done, 1);
    ck_assert(failed);
    ck_assert_int_eq(gone, 0);
}
END_TEST

START_TEST(what_a_finalizer_holds_is_not_gone_whatever_the_grace)
{
    for (int held = 0; held < 2; held++) {
        struct action action = pod_action(ACTION_DELETE, 0, "a");
        action.uid = "u1";
        action.grace_s = 0;
        start(&action, 1);
        json_auto_t *pod = make_object(&kube_pod, "ns", "a", "u1", 7, NULL);
        json_t *metadata = json_object_get(pod, "metadata");
        json_object_set_new(metadata, "deletionTimestamp",
                            json_string("2026-01-01T00:00:00Z"));
        json_object_set_new(metadata, "finalizers",
                            json_pack(held ? "[s]" : "[]", "kueue.x-k8s.io/managed"));
        auto_free char *text = json_dumps(pod, 0);
        script_reply(script_expect(script, "DELETE", "*/pods/a"), 200, -1, text);
        ck_assert_int_eq(seen, held);
        ck_assert_int_eq(gone, 1);
        ck_assert(!failed);
    }
}
END_TEST

START_TEST(event_that_cannot_be_written_fails_nothing)
{
    struct action action = pod_action(ACTION_EVENT, 0, "e");
    action.resource = &kube_event;
    start(&action, 1);
    script_reply(script_expect(script, "POST", "*/events*"), 403, -1, "no");
    ck_assert_int_eq(done, 1);
    ck_assert(!failed);
}
END_TEST

START_TEST(a_patch_is_sent_by_its_kind_and_what_is_gone_is_left_alone)
{
    struct action actions[] = { pod_action(ACTION_PATCH, 0, "a"),
                                pod_action(ACTION_PATCH, 0, "b") };
    json_decref(actions[1].object);
    actions[1].object = json_pack("[{s:s, s:s, s:s}]", "op", "test", "path",
                                  "/metadata/uid", "value", "u1");
    start(actions, 2);
    struct script_request *merge = script_expect(script, "PATCH", "*/pods/a");
    struct script_request *json = script_expect(script, "PATCH", "*/pods/b");
    ck_assert_ptr_nonnull(strstr(merge->content_type, "merge-patch"));
    ck_assert_ptr_nonnull(strstr(json->content_type, "json-patch"));
    reply_object(merge, 200, "a", "owner");
    script_reply(json, 404, -1,
                 "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"NotFound\","
                 "\"message\":\"gone\",\"code\":404}");
    ck_assert_int_eq(done, 1);
    ck_assert(!failed);
    ck_assert_int_eq(seen, 1);
    ck_assert_int_eq(gone, 1);
}
END_TEST

/* What a write says of an object that we know wrongly, what is there when it is read, and
 * what is told of that. */
static const struct {
    enum action_kind kind;
    int status, read_status;
    const char *reason, *uid;
    int gone, seen;
} surprises[] = {
    { ACTION_STATUS, 404, 404, "NotFound", "", 1, 0 },
    { ACTION_STATUS, 404, 200, "NotFound", "u2", 1, 1 },
    { ACTION_STATUS, 404, 200, "NotFound", "u1", 0, 1 },
    { ACTION_STATUS, 409, 200, "Conflict", "u2", 1, 1 },
    { ACTION_APPLY, 404, 404, "NotFound", "", 1, 0 },
    { ACTION_PATCH, 409, 200, "Conflict", "u1", 0, 1 },
    { ACTION_PATCH, 409, 404, "Conflict", "", 1, 0 },
    { ACTION_STATUS, 404, 404, "", "", 0, 0 }, /* the kind is not served now */
    { ACTION_STATUS, 409, 500, "Conflict", "", 0, 0 },
};

static char *failure(int status, const char *reason)
{
    return xasprintf(
        "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"%s\",\"code\":%d}",
        reason, status);
}

START_TEST(object_that_is_not_what_a_write_took_it_for_is_read_anew)
{
    struct action action = pod_action(surprises[_i].kind, 0, "a");
    json_object_set_new(json_object_get(action.object, "metadata"), "uid",
                        json_string("u1"));
    start(&action, 1);
    auto_free char *refusal = failure(surprises[_i].status, surprises[_i].reason);
    script_reply(script_expect(script, "PATCH", "*/pods/a*"), surprises[_i].status, -1,
                 refusal);
    json_auto_t *object =
        make_object(&kube_pod, "ns", "a", surprises[_i].uid, 5, "owner");
    auto_free char *text =
        surprises[_i].read_status == 200
            ? json_dumps(object, 0)
            : failure(surprises[_i].read_status, *surprises[_i].reason ? "NotFound" : "");
    script_reply(script_expect(script, "GET", "*/pods/a"), surprises[_i].read_status, -1,
                 text);
    ck_assert_int_eq(gone, surprises[_i].gone);
    ck_assert_int_eq(seen, surprises[_i].seen);
    ck_assert_int_eq(done, 1);
    ck_assert(failed);
}
END_TEST

START_TEST(a_change_of_unknown_outcome_is_read_back_and_decided_on_anew)
{
    static const struct {
        enum action_kind kind;
        const char *method;
    } changes[] = { { ACTION_PATCH, "PATCH" },
                    { ACTION_APPLY, "PATCH" },
                    { ACTION_STATUS, "PATCH" },
                    { ACTION_DELETE, "DELETE" } };
    struct action action = pod_action(changes[_i].kind, 0, "a");
    start(&action, 1);
    script_fail(script_expect(script, changes[_i].method, "*/pods/a*"), true);
    reply_object(script_expect(script, "GET", "*/pods/a"), 200, "a", "owner");
    ck_assert_int_eq(seen, 1);
    ck_assert_int_eq(done, 1);
    ck_assert(failed);
}
END_TEST

START_TEST(a_refresh_takes_what_the_server_holds_now)
{
    struct action action = { .kind = ACTION_REFRESH,
                             .resource = &kube_pod,
                             .query = "fieldSelector=spec.nodeName%3Dn",
                             .grace_s = -1 };
    start(&action, 1);
    struct script_request *request =
        script_expect(script, "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn");
    json_auto_t *list = json_pack("{s:s, s:s, s:{s:s}, s:[o, o]}", "kind", "PodList",
                                  "apiVersion", "v1", "metadata", "resourceVersion", "9",
                                  "items",
                                  make_object(&kube_pod, "x", "a", "u1", 5, NULL),
                                  make_object(&kube_pod, "y", "b", "u2", 6, NULL));
    auto_free char *text = json_dumps(list, 0);
    script_reply(request, 200, -1, text);
    ck_assert_int_eq(seen, 2);
    ck_assert_int_eq(done, 1);
    ck_assert(!failed);
}
END_TEST

START_TEST(nothing_to_write_is_done_at_once)
{
    struct action action = pod_action(ACTION_PLAN, 0, "p");
    start(&action, 1);
    ck_assert_int_eq(done, 1);
    script_expect_nothing(script);
}
END_TEST

Suite *test_apply_suite(void)
{
    Suite *suite = suite_create("apply");
    TCase *cases = tcase_create("apply");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, phases_run_one_after_the_other_and_grow_inside);
    tcase_add_test(cases, first_failure_ends_the_run);
    tcase_add_test(cases, existing_object_of_ours_is_success);
    tcase_add_test(cases, existing_object_of_somebody_else_is_never_adopted);
    tcase_add_test(cases, unknown_outcome_is_read_back);
    tcase_add_test(cases, deletion_names_the_uid_and_tolerates_what_is_gone);
    tcase_add_test(cases,
                   deletion_that_meets_a_conflict_is_tried_again_if_the_object_is_there);
    tcase_add_test(cases, what_a_finalizer_holds_is_not_gone_whatever_the_grace);
    tcase_add_test(cases, event_that_cannot_be_written_fails_nothing);
    tcase_add_test(cases, a_patch_is_sent_by_its_kind_and_what_is_gone_is_left_alone);
    tcase_add_loop_test(cases, object_that_is_not_what_a_write_took_it_for_is_read_anew,
                        0, sizeof surprises / sizeof *surprises);
    tcase_add_loop_test(
        cases, a_change_of_unknown_outcome_is_read_back_and_decided_on_anew, 0, 4);
    tcase_add_test(cases, a_refresh_takes_what_the_server_holds_now);
    tcase_add_test(cases, nothing_to_write_is_done_at_once);
    suite_add_tcase(suite, cases);
    return suite;
}
