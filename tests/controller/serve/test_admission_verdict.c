/* What the API server is told about jobs that somebody wants to create or change. */
#include "controller/serve/admission_verdict.h"

#include "controller/base/object.h"
#include "controller/reconcile/reconcile.h"
#include "tests/controller/objects.h"
#include "tests/controller/world.h"

#include <check.h>
#include <string.h>

static struct het_arena *arena;

static void setup(void)
{
    arena = het_arena_new();
}

static void teardown(void)
{
    het_arena_free(arena);
}

/* A job as the API server would send it: a valid one, with `patch` merged over it. */
static json_t *job_with(const char *patch)
{
    json_t *job = quoted(
        "{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'HeteroTrainingJob', "
        "'metadata': {'name': 'job', 'namespace': 'ns', 'uid': 'u'}, 'spec': {'model': "
        "{'profileRef': {'name': 'p'}}, 'training': {'globalBatchSize': 64}, "
        "'podTemplate': {'spec': {'containers': [{'name': 'trainer'}]}}}}");
    json_auto_t *extra = quoted("%s", patch);
    json_object_update_recursive(job, extra);
    return make_restricted(job);
}

static json_t *review_of(const char *before, const char *after)
{
    json_t *review = quoted(
        "{'apiVersion': 'admission.k8s.io/v1', 'kind': 'AdmissionReview', 'request': "
        "{'uid': '705ab4f5', 'namespace': 'ns', 'name': 'job', 'operation': '%s', "
        "'resource': {'group': 'heterotrain.io', 'version': 'v1alpha1', 'resource': "
        "'heterotrainingjobs'}, 'userInfo': {'username': 'ann', 'uid': '7', 'groups': "
        "['a', 'b'], 'extra': {'scopes': ['x', 'y']}}}}",
        before ? "UPDATE" : "CREATE");
    json_t *request = json_object_get(review, "request");
    json_object_set_new(request, "object", job_with(after));
    if (before)
        json_object_set_new(request, "oldObject", job_with(before));
    return review;
}

static int64_t server_minor = 34;

static struct admission_verdict judge_by(const struct settings *settings,
                                         const json_t *review)
{
    struct admission_verdict verdict;
    struct het_error err = { 0 };
    struct tenancy tenancy = { .settings = settings,
                               .server_minor = server_minor,
                               .namespace_policy = { POD_SECURITY_PRIVILEGED, 0 } };
    ck_assert_msg(!admission_verdict_review(arena, &tenancy, review, &verdict, &err),
                  "%s", err.message);
    ck_assert_str_eq(verdict.uid, "705ab4f5");
    ck_assert_int_eq(verdict.question != NULL, verdict.decision == ADMISSION_VERDICT_ASK);
    return verdict;
}

static struct admission_verdict judge(const char *before, const char *after)
{
    json_auto_t *review = review_of(before, after);
    return judge_by(settings_default(), review);
}

/* ---- what is checked ---- */

#define TEMPLATE(text) "{'spec': {'podTemplate': {'spec': " text "}}}"

static const struct {
    const char *patch, *reason, *message;
} invalid[] = {
    { "{'spec': {'resources': {'minGPUs': 5, 'maxGPUs': 2}}}", "InvalidSpec",
      "spec.resources: minGPUs (5) is above maxGPUs (2)" },
    { "{'spec': {'training': {'globalBatchSize': null}}}", "InvalidSpec",
      "spec.training.globalBatchSize: " },
    { TEMPLATE("{'containers': []}"), "InvalidSpec",
      "spec.podTemplate.spec.containers: " },
    { TEMPLATE("{'restartPolicy': 'Always'}"), "InvalidSpec",
      "spec.podTemplate.spec.restartPolicy: " },
    { "{'spec': {'perGPUResources': {'cpu': '1x'}}}", "InvalidSpec",
      "spec.perGPUResources.cpu: " },
    { "{'spec': {'perGPUResources': {'memory': -1}}}", "InvalidSpec",
      "spec.perGPUResources.memory: " },
    { TEMPLATE("{'tolerationz': []}"), "InvalidSpec",
      "spec.podTemplate.spec.tolerationz: is no field of PodSpec in Kubernetes 1.30 to "
      "1.34; did you mean tolerations?" },
    { TEMPLATE("{'ephemeralContainers': [{'name': 'e'}]}"), "PodSecurity",
      "spec.podTemplate.spec.ephemeralContainers: " },
    { TEMPLATE("{'serviceAccountName': 'admin'}"), "ServiceAccountNotAllowed",
      "spec.podTemplate.spec.serviceAccountName: " },
    { TEMPLATE("{'runtimeClassName': 'kata'}"), "RuntimeClassNotAllowed",
      "spec.podTemplate.spec.runtimeClassName: " },
    { "{'spec': {'scheduling': {'priorityClassName': 'system-node-critical'}}}",
      "PriorityClassNotAllowed", "spec.scheduling.priorityClassName: " },
};

static void check_denied(const struct admission_verdict *verdict, int i)
{
    ck_assert_int_eq(verdict->decision, ADMISSION_VERDICT_DENY);
    ck_assert_str_eq(verdict->reason, invalid[i].reason);
    ck_assert_msg(strstr(verdict->message, invalid[i].message) == verdict->message, "%s",
                  verdict->message);
}

START_TEST(an_invalid_new_job_is_denied_by_the_name_of_its_field)
{
    struct admission_verdict verdict = judge(NULL, invalid[_i].patch);
    check_denied(&verdict, _i);
}
END_TEST

START_TEST(a_job_is_not_changed_into_an_invalid_one)
{
    struct admission_verdict verdict =
        judge("{'spec': {'resources': {'minGPUs': 1}}}", invalid[_i].patch);
    check_denied(&verdict, _i);
}
END_TEST

START_TEST(the_reconciler_says_the_same)
{
    struct world *world = world_new();
    world_put(world, &kube_job, job_with(invalid[_i].patch));
    world_settle(world);
    const json_t *accepted = object_find_condition(world_get_job(world), "Accepted");
    ck_assert_str_eq(object_text(accepted, "status"), "False");
    ck_assert_str_eq(object_text(accepted, "reason"), invalid[_i].reason);
    const char *message = object_text(accepted, "message");
    ck_assert_msg(strstr(message, invalid[_i].message) == message, "%s", message);
    world_free(world);
}
END_TEST

/* Which one says whether it has the field, the API server tells when pods are created. */
START_TEST(a_field_that_a_newer_server_may_have_is_warned_about)
{
    const char *job = TEMPLATE("{'tolerationz': []}");
    const char *warning = "spec.podTemplate.spec.tolerationz: is no field of PodSpec";
    static const int64_t newer[] = { 0, 35 };
    struct world *world = world_new();
    server_minor = newer[_i];
    struct admission_verdict verdict = judge(NULL, job);
    server_minor = 34;
    ck_assert_int_eq(verdict.decision, ADMISSION_VERDICT_ASK);
    json_auto_t *yes = quoted("{'status': {'allowed': true}}");
    admission_verdict_hear(arena, yes, &verdict);
    json_auto_t *answer = admission_verdict_answer(&verdict);
    ck_assert_int_eq(json_array_size(object_at(answer, "response.warnings")), 1);
    ck_assert_ptr_nonnull(strstr(
        json_string_value(json_array_get(object_at(answer, "response.warnings"), 0)),
        warning));

    world->server_minor = newer[_i];
    world_put(world, &kube_job, job_with(job));
    world_settle(world);
    const json_t *accepted = object_find_condition(world_get_job(world), "Accepted");
    ck_assert_str_eq(object_text(accepted, "status"), "True");
    ck_assert_str_eq(object_text(accepted, "reason"), "UnknownPodField");
    ck_assert_ptr_nonnull(strstr(object_text(accepted, "message"), warning));
    world_free(world);
}
END_TEST

START_TEST(a_name_that_pods_cannot_have_is_denied)
{
    struct admission_verdict verdict = judge(NULL, "{'metadata': {'name': 'Job'}}");
    ck_assert_int_eq(verdict.decision, ADMISSION_VERDICT_DENY);
    ck_assert_ptr_nonnull(strstr(verdict.message, "metadata.name: "));
}
END_TEST

START_TEST(what_is_settled_for_a_namespace_holds_here)
{
    json_auto_t *review = review_of(NULL, TEMPLATE("{'serviceAccountName': 'admin'}"));
    json_auto_t *json = quoted("{'serviceAccounts': {'ns': ['admin']}}");
    struct settings settings;
    struct het_error err;
    ck_assert_int_eq(settings_parse(arena, json, &settings, &err), 0);
    struct admission_verdict verdict = judge_by(&settings, review);
    ck_assert_int_eq(verdict.decision, ADMISSION_VERDICT_ASK);
    json_decref(verdict.question);
}
END_TEST

/* ---- who is asked for ---- */

START_TEST(the_question_is_whether_the_user_may_create_pods_there)
{
    struct admission_verdict verdict = judge(NULL, "{}");
    ck_assert_int_eq(verdict.decision, ADMISSION_VERDICT_ASK);
    json_auto_t *expected = quoted(
        "{'apiVersion': 'authorization.k8s.io/v1', 'kind': 'SubjectAccessReview', "
        "'spec': {'user': 'ann', 'uid': '7', 'groups': ['a', 'b'], 'extra': {'scopes': "
        "['x', 'y']}, 'resourceAttributes': {'namespace': 'ns', 'verb': 'create', "
        "'version': 'v1', 'resource': 'pods'}}}");
    ck_assert(json_equal(verdict.question, expected));
    json_decref(verdict.question);
}
END_TEST

static const struct {
    const char *status;
    enum admission_decision decision;
} answers[] = {
    { "{'status': {'allowed': true}}", ADMISSION_VERDICT_ALLOW },
    { "{'status': {'allowed': true, 'denied': false}}", ADMISSION_VERDICT_ALLOW },
    { "{'status': {'allowed': false}}", ADMISSION_VERDICT_DENY },
    { "{'status': {'allowed': true, 'denied': true}}", ADMISSION_VERDICT_DENY },
    { "{'status': {'allowed': 'true'}}", ADMISSION_VERDICT_DENY },
    { "{'status': {'allowed': 1}}", ADMISSION_VERDICT_DENY },
    { "{'allowed': true}", ADMISSION_VERDICT_DENY },
    { "{}", ADMISSION_VERDICT_DENY },
};

START_TEST(only_a_plain_yes_is_one)
{
    struct admission_verdict verdict = judge(NULL, "{}");
    json_auto_t *answer = quoted("%s", answers[_i].status);
    admission_verdict_hear(arena, answer, &verdict);
    ck_assert_int_eq(verdict.decision, answers[_i].decision);
    ck_assert_ptr_null(verdict.question);
    if (verdict.decision == ADMISSION_VERDICT_DENY) {
        ck_assert_str_eq(verdict.reason, "UserNotAllowed");
        ck_assert_ptr_nonnull(strstr(verdict.message, "user ann may not create pods in "
                                                      "namespace ns"));
    }
}
END_TEST

START_TEST(no_answer_is_a_no_that_says_why)
{
    struct admission_verdict verdict = judge(NULL, "{}");
    admission_verdict_give_up(arena, "it took too long", &verdict);
    json_auto_t *answer = admission_verdict_answer(&verdict);
    ck_assert(json_is_false(object_at(answer, "response.allowed")));
    ck_assert_int_eq(object_integer(answer, "response.status.code", 0), 503);
    ck_assert_ptr_nonnull(
        strstr(object_text(answer, "response.status.message"), "it took too long"));
}
END_TEST

/* ---- what is not held up ---- */

#define BAD(more_spec, more)                                                             \
    "{'spec': {'resources': {'minGPUs': 5, 'maxGPUs': 2}" more_spec "}" more "}"
#define BEING_DELETED ", 'metadata': {'deletionTimestamp': '2026-01-01T00:00:00Z'}"
#define HASH          "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define NO_POLICY     ", 'replanPolicy': {}"
#define APPROVED      ", 'replanPolicy': {'approvedPlanHash': '" HASH "'}"
#define AUTOMATIC                                                                        \
    ", 'replanPolicy': {'approvedPlanHash': '" HASH "', 'mode': 'Automatic'}"

static const struct {
    const char *before, *after;
    enum admission_decision decision;
} changes[] = {
    /* Nothing starts: nobody is asked, nothing is checked. */
    { BAD("", ""), BAD("", ""), ADMISSION_VERDICT_ALLOW },
    { BAD("", ", 'metadata': {'finalizers': ['a/b']}"), BAD("", ""),
      ADMISSION_VERDICT_ALLOW },
    { BAD("", ""), BAD("", ", 'metadata': {'labels': {'a': 'b'}}"),
      ADMISSION_VERDICT_ALLOW },
    { BAD("", ""), BAD("", ", 'metadata': {'annotations': {'a': 'b'}}"),
      ADMISSION_VERDICT_ALLOW },
    { BAD("", ""), BAD(", 'suspend': true", ""), ADMISSION_VERDICT_ALLOW },
    { BAD(", 'suspend': false", ""), BAD(", 'suspend': true", ""),
      ADMISSION_VERDICT_ALLOW },
    { "{}", BAD("", BEING_DELETED), ADMISSION_VERDICT_ALLOW },
    { "{}", "{'spec': {'managedBy': 'other.io/x', 'training': null}}",
      ADMISSION_VERDICT_ALLOW },
    { NULL, "{'spec': {'managedBy': 'other.io/x', 'training': null}}",
      ADMISSION_VERDICT_ALLOW },
    /* A start: the user is asked for, even if the job's mistakes are older. */
    { BAD(", 'suspend': true", ""), BAD(", 'suspend': false", ""),
      ADMISSION_VERDICT_ASK },
    { BAD(", 'suspend': true", ""), BAD("", ""), ADMISSION_VERDICT_ASK },
    { BAD(", 'planOnly': true", ""), BAD(", 'planOnly': false", ""),
      ADMISSION_VERDICT_ASK },
    { BAD(NO_POLICY, ""), BAD(APPROVED, ""), ADMISSION_VERDICT_ASK },
    { BAD(APPROVED, ""), BAD(NO_POLICY, ""), ADMISSION_VERDICT_ASK },
    { BAD(APPROVED, ""), BAD(APPROVED, ""), ADMISSION_VERDICT_ALLOW },
    { "{}", "{'spec': {'replanPolicy': {'approvedPlanHash': 'h'}}}",
      ADMISSION_VERDICT_DENY },
    { "{}", "{'spec': {'resources': {'maxGPUs': 4}}}", ADMISSION_VERDICT_ASK },
    /* A mistake that was there does not excuse another change. */
    { BAD("", ""), BAD(", 'planner': {'seed': 2}", ""), ADMISSION_VERDICT_DENY },
    { BAD("", ""), BAD(", 'suspend': true, 'planner': {'seed': 2}", ""),
      ADMISSION_VERDICT_DENY },
    { BAD(APPROVED, ""), BAD(AUTOMATIC, ""), ADMISSION_VERDICT_DENY },
    { BAD("", ""), "{}", ADMISSION_VERDICT_ASK },
    { "{'spec': {'managedBy': 'other.io/x'}}", BAD("", ""), ADMISSION_VERDICT_DENY },
};

START_TEST(only_what_could_start_pods_is_asked_about)
{
    struct admission_verdict verdict = judge(changes[_i].before, changes[_i].after);
    ck_assert_int_eq(verdict.decision, changes[_i].decision);
    json_decref(verdict.question);
}
END_TEST

static const struct {
    const char *path, *value;
} others[] = {
    { "operation", "DELETE" },        { "operation", "CONNECT" },
    { "subResource", "status" },      { "resource.resource", "modelprofiles" },
    { "resource.group", "other.io" },
};

START_TEST(what_is_not_about_jobs_is_let_through)
{
    json_auto_t *review = review_of(NULL, BAD("", ""));
    object_set(json_object_get(review, "request"), others[_i].path,
               json_string(others[_i].value));
    struct admission_verdict verdict = judge_by(settings_default(), review);
    ck_assert_int_eq(verdict.decision, ADMISSION_VERDICT_ALLOW);
}
END_TEST

/* ---- what is no question ---- */

static const struct {
    const char *path, *value; /* NULL: removed */
    const char *message;
} broken[] = {
    { "apiVersion", "'admission.k8s.io/v1beta1'", "must be an AdmissionReview" },
    { "kind", "'Pod'", "must be an AdmissionReview" },
    { "request", NULL, "request.uid: " },
    { "request.uid", "''", "request.uid: " },
    { "request.uid", "7", "request.uid: " },
    { "request.object", NULL, "request: " },
    { "request.object", "[]", "request: " },
    { "request.oldObject", "{'spec': {}}", "request: " },
    { "request.operation", "'UPDATE'", "request: " },
    { "request.namespace", "'other'", "request.namespace: " },
    { "request.namespace", NULL, "request.namespace: " },
    { "request.userInfo", NULL, "request.userInfo.username: " },
    { "request.userInfo.username", "''", "request.userInfo.username: " },
    { "request.userInfo.username", "['ann']", "request.userInfo.username: " },
};

START_TEST(a_review_that_cannot_be_answered_is_refused)
{
    json_auto_t *review = review_of(NULL, "{}");
    if (broken[_i].value) {
        json_auto_t *value = quoted("[%s]", broken[_i].value);
        object_set(review, broken[_i].path, json_incref(json_array_get(value, 0)));
    } else
        object_remove(review, broken[_i].path);
    struct admission_verdict verdict;
    struct het_error err = { 0 };
    ck_assert_int_eq(admission_verdict_review(
                         arena, &(struct tenancy){ .settings = settings_default() },
                         review, &verdict, &err),
                     -1);
    ck_assert_int_eq(err.code, HET_BAD_INPUT);
    ck_assert_msg(strstr(err.message, broken[_i].message) == err.message, "%s",
                  err.message);
}
END_TEST

/* ---- the answer ---- */

START_TEST(an_allowed_request_is_answered_with_no_more_than_that)
{
    struct admission_verdict verdict = judge("{}", "{}");
    json_auto_t *answer = admission_verdict_answer(&verdict);
    json_auto_t *expected = quoted(
        "{'apiVersion': 'admission.k8s.io/v1', 'kind': 'AdmissionReview', 'response': "
        "{'uid': '705ab4f5', 'allowed': true}}");
    ck_assert(json_equal(answer, expected));
}
END_TEST

START_TEST(a_denied_request_is_answered_with_a_status)
{
    struct admission_verdict verdict = judge(NULL, BAD("", ""));
    json_auto_t *answer = admission_verdict_answer(&verdict);
    json_auto_t *expected = quoted(
        "{'apiVersion': 'admission.k8s.io/v1', 'kind': 'AdmissionReview', 'response': "
        "{'uid': '705ab4f5', 'allowed': false, 'auditAnnotations': {'reason': "
        "'InvalidSpec'}, 'status': {'status': 'Failure', 'code': 422, 'reason': "
        "'Invalid', 'message': 'spec.resources: minGPUs (5) is above maxGPUs (2)'}}}");
    auto_free char *text = json_dumps(answer, JSON_COMPACT);
    ck_assert_msg(json_equal(answer, expected), "%s", text);

    struct admission_verdict refused =
        judge(NULL, TEMPLATE("{'runtimeClassName': 'kata'}"));
    json_auto_t *other = admission_verdict_answer(&refused);
    ck_assert_int_eq(object_integer(other, "response.status.code", 0), 403);
    ck_assert_str_eq(object_text(other, "response.status.reason"), "Forbidden");
}
END_TEST

Suite *test_admission_verdict_suite(void)
{
    Suite *suite = suite_create("admission_verdict");
    TCase *tests = tcase_create("webhook");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
#define LOOP(test, table)                                                                \
    tcase_add_loop_test(tests, test, 0, (int)(sizeof table / sizeof *table))
    LOOP(an_invalid_new_job_is_denied_by_the_name_of_its_field, invalid);
    LOOP(a_job_is_not_changed_into_an_invalid_one, invalid);
    LOOP(the_reconciler_says_the_same, invalid);
    tcase_add_loop_test(tests, a_field_that_a_newer_server_may_have_is_warned_about, 0,
                        2);
    tcase_add_test(tests, a_name_that_pods_cannot_have_is_denied);
    tcase_add_test(tests, what_is_settled_for_a_namespace_holds_here);
    tcase_add_test(tests, the_question_is_whether_the_user_may_create_pods_there);
    LOOP(only_a_plain_yes_is_one, answers);
    tcase_add_test(tests, no_answer_is_a_no_that_says_why);
    LOOP(only_what_could_start_pods_is_asked_about, changes);
    LOOP(what_is_not_about_jobs_is_let_through, others);
    LOOP(a_review_that_cannot_be_answered_is_refused, broken);
    tcase_add_test(tests, an_allowed_request_is_answered_with_no_more_than_that);
    tcase_add_test(tests, a_denied_request_is_answered_with_a_status);
    return suite;
}
