#include "controller/serve/admission_verdict.h"

#include "controller/base/object.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define USER_REASON "UserNotAllowed"

/* What is asked about, and how it was before; `before` is NULL for a new job. */
struct edit {
    const json_t *request, *job, *before;
};

/* ---- what changes ---- */

static bool is_same(const struct edit *edit, const char *path)
{
    json_t *now = object_at(edit->job, path), *before = object_at(edit->before, path);
    return now ? json_equal(now, before) : !before;
}

/* The fields by which a person lets a job start. */
static const char *const permissions[] = { "spec.suspend", "spec.planOnly",
                                           "spec.replanPolicy.approvedPlanHash" };
#define PERMISSIONS (sizeof permissions / sizeof *permissions)

static bool has_same_permissions(const struct edit *edit)
{
    for (size_t i = 0; i < PERMISSIONS; i++)
        if (!is_same(edit, permissions[i]))
            return false;
    return true;
}

/* A job of nothing but the spec, without them. A new reference. */
static json_t *without_permissions(const json_t *job)
{
    json_t *copy = json_object();
    object_set(copy, "spec", json_deep_copy(object_at(job, "spec")));
    for (size_t i = 0; i < PERMISSIONS; i++)
        object_remove(copy, permissions[i]);
    return copy;
}

/* Whether the spec is unchanged except for fields that let the job start. */
static bool has_same_spec(const struct edit *edit)
{
    if (!edit->before)
        return false;
    json_auto_t *now = without_permissions(edit->job);
    json_auto_t *before = without_permissions(edit->before);
    return json_equal(now, before);
}

/* Nothing that the edit does could start a pod. */
static bool starts_nothing(const struct edit *edit)
{
    if (kube_is_deleting(edit->job) || !job_spec_is_ours(edit->job))
        return true;
    return has_same_spec(edit) &&
           (object_is_true(edit->job, "spec.suspend") || has_same_permissions(edit));
}

/* ---- the verdict ---- */

static void deny(struct admission_verdict *verdict, const char *reason,
                 const char *message)
{
    verdict->decision = ADMISSION_VERDICT_DENY;
    verdict->reason = reason;
    verdict->message = message;
}

/* As reconcile will see the job. */
static int check_job(const struct tenancy *tenancy, const json_t *job,
                     const char **ret_reason, struct het_error *err)
{
    struct job_spec spec;
    if (job_spec_parse(job, &spec, ret_reason, err) < 0)
        return -1;
    return children_check_job(tenancy, &spec, job, ret_reason, err);
}

/* May the user create pods in the namespace? Authorizers also use groups and extra. */
static json_t *make_question(const json_t *request)
{
    static const char *const keys[][2] = { { "username", "user" },
                                           { "uid", "uid" },
                                           { "groups", "groups" },
                                           { "extra", "extra" } };
    const json_t *user = json_object_get(request, "userInfo");
    json_t *question = json_pack("{s:s, s:s, s:{s:{s:O, s:s, s:s, s:s}}}", "apiVersion",
                                 "authorization.k8s.io/v1", "kind", "SubjectAccessReview",
                                 "spec", "resourceAttributes", "namespace",
                                 json_object_get(request, "namespace"), "verb", "create",
                                 "version", "v1", "resource", "pods");
    assert(question);
    json_t *spec = json_object_get(question, "spec");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *value = json_object_get(user, keys[i][0]);
        if (value)
            json_object_set(spec, keys[i][1], value);
    }
    return question;
}

static bool is_filled_text(const json_t *json)
{
    return json_string_length(json) &&
           strlen(json_string_value(json)) == json_string_length(json);
}

static bool is_about_jobs(const json_t *request)
{
    const char *operation = object_text(request, "operation");
    return !strcmp(object_text(request, "resource.group"), "heterotrain.io") &&
           !strcmp(object_text(request, "resource.resource"), kube_job.plural) &&
           !*object_text(request, "subResource") &&
           (!strcmp(operation, "CREATE") || !strcmp(operation, "UPDATE"));
}

static int read_change(const json_t *request, struct edit *ret, struct het_error *err)
{
    json_t *before = json_object_get(request, "oldObject");
    ret->request = request;
    ret->job = json_object_get(request, "object");
    ret->before = json_is_object(before) ? before : NULL;
    bool is_new = !strcmp(object_text(request, "operation"), "CREATE");
    if (!json_is_object(ret->job) || is_new != !ret->before)
        return het_fail(err, HET_BAD_INPUT,
                        "request: a job needs its object and, if it is changed, its "
                        "oldObject");
    if (!is_filled_text(json_object_get(request, "namespace")) ||
        strcmp(object_text(request, "namespace"), kube_namespace(ret->job)))
        return het_fail(err, HET_BAD_INPUT,
                        "request.namespace: is not that of the object");
    if (!is_filled_text(object_at(request, "userInfo.username")))
        return het_fail(err, HET_BAD_INPUT, "request.userInfo.username: is missing");
    return 0;
}

int admission_verdict_review(struct het_arena *arena, const struct tenancy *tenancy,
                             const json_t *review, struct admission_verdict *ret,
                             struct het_error *err)
{
    const json_t *request = json_object_get(review, "request");
    struct admission_verdict verdict = { .decision = ADMISSION_VERDICT_ALLOW };
    struct edit edit;
    struct het_error why;
    const char *reason;
    if (strcmp(object_text(review, "apiVersion"), ADMISSION_VERDICT_API_VERSION) ||
        strcmp(object_text(review, "kind"), "AdmissionReview"))
        return het_fail(err, HET_BAD_INPUT, "must be an AdmissionReview of %s",
                        ADMISSION_VERDICT_API_VERSION);
    if (!is_filled_text(json_object_get(request, "uid")))
        return het_fail(err, HET_BAD_INPUT, "request.uid: is missing");
    verdict.uid = het_arena_strdup(arena, object_text(request, "uid"));
    if (is_about_jobs(request)) {
        if (read_change(request, &edit, err) < 0)
            return -1;
        if (starts_nothing(&edit))
            verdict.decision = ADMISSION_VERDICT_ALLOW;
        else if (!has_same_spec(&edit) && check_job(tenancy, edit.job, &reason, &why) < 0)
            deny(&verdict, reason, het_arena_strdup(arena, why.message));
        else {
            verdict.decision = ADMISSION_VERDICT_ASK;
            verdict.question = make_question(request);
            if (!has_same_spec(&edit) && tenancy_doubts_fields(tenancy, edit.job, &why))
                verdict.warning = het_arena_strdup(arena, why.message);
        }
    }
    *ret = verdict;
    return 0;
}

/* ---- what the API server says to the question ---- */

/* Ends the question. */
static void drop_question(struct admission_verdict *verdict)
{
    json_decref(verdict->question);
    verdict->question = NULL;
}

void admission_verdict_hear(struct het_arena *arena, const json_t *answer,
                            struct admission_verdict *verdict)
{
    assert(verdict->decision == ADMISSION_VERDICT_ASK);
    const json_t *spec = json_object_get(verdict->question, "spec");
    verdict->decision = ADMISSION_VERDICT_ALLOW;
    if (!object_is_true(answer, "status.allowed") ||
        object_is_true(answer, "status.denied")) {
        struct het_error said;
        het_fail(
            &said, HET_DENIED,
            "user %.253s may not create pods in namespace %.63s, which is what a job "
            "does; ask for that right, or have somebody create the job who has it",
            object_text(spec, "user"), object_text(spec, "resourceAttributes.namespace"));
        deny(verdict, USER_REASON, het_arena_strdup(arena, said.message));
    }
    drop_question(verdict);
}

void admission_verdict_give_up(struct het_arena *arena, const char *why,
                               struct admission_verdict *verdict)
{
    assert(verdict->decision == ADMISSION_VERDICT_ASK);
    struct het_error said;
    het_fail(&said, HET_IO,
             "whether user %.253s may create pods in namespace %.63s could not be found "
             "out: %.500s; try again",
             object_text(verdict->question, "spec.user"),
             object_text(verdict->question, "spec.resourceAttributes.namespace"), why);
    deny(verdict, "UserNotKnown", het_arena_strdup(arena, said.message));
    drop_question(verdict);
}

/* ---- the answer ---- */

/* Why, as an HTTP status: the user must ask for less, come back later, or write the job
 * anew. */
static json_t *make_status(const struct admission_verdict *verdict)
{
    static const struct {
        const char *reason, *status_reason;
        int code;
    } known[] = {
        { "InvalidSpec", "Invalid", 422 },
        { "UserNotKnown", "ServiceUnavailable", 503 },
    };
    const char *status_reason = "Forbidden";
    int code = 403;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(verdict->reason, known[i].reason)) {
            status_reason = known[i].status_reason;
            code = known[i].code;
        }
    return json_pack("{s:s, s:i, s:s, s:s}", "status", "Failure", "code", code, "reason",
                     status_reason, "message", verdict->message);
}

json_t *admission_verdict_answer(const struct admission_verdict *verdict)
{
    assert(verdict->decision != ADMISSION_VERDICT_ASK);
    bool is_allowed = verdict->decision == ADMISSION_VERDICT_ALLOW;
    json_t *response =
        json_pack("{s:s, s:b}", "uid", verdict->uid, "allowed", is_allowed);
    if (is_allowed && verdict->warning)
        json_object_set_new(response, "warnings", json_pack("[s]", verdict->warning));
    if (!is_allowed) {
        json_object_set_new(response, "status", make_status(verdict));
        /* In the audit log: heterotrain.io's reason beside the API server's. */
        json_object_set_new(response, "auditAnnotations",
                            json_pack("{s:s}", "reason", verdict->reason));
    }
    json_t *answer = json_pack("{s:s, s:s, s:o}", "apiVersion",
                               ADMISSION_VERDICT_API_VERSION, "kind", "AdmissionReview",
                               "response", response);
    assert(answer);
    return answer;
}
