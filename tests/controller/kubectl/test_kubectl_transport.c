/* Runs of kubectl as a transport; a script stands in for kubectl. */
#include "controller/base/object.h"
#include "controller/kubectl/kubectl_transport.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/heterotrain-kubectl-XXXXXX";
static char *program, *said;
static size_t said_length;
static FILE *words;
static struct transport *transport;

static const char *const login[] = { "--context=c d", "--as=$HOME" };

static void setup(void)
{
    signal(SIGPIPE, SIG_IGN);
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    program = xasprintf("%s/kubectl", folder);
    words = open_memstream(&said, &said_length);
    transport = kubectl_transport_new(program, login, 2, "kubectl-htj", words);
}

static void teardown(void)
{
    transport_free(transport);
    fclose(words);
    free(said);
    unlink(program);
    auto_free char *count = xasprintf("%s/count", folder);
    unlink(count);
    rmdir(folder);
    free(program);
}

/* What kubectl does, in sh; it finds its arguments in "$@", and "$folder". */
static void script(const char *body)
{
    FILE *file = fopen(program, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "#!/bin/sh\nfolder=%s\n%s\n", folder, body);
    fclose(file);
    ck_assert_int_eq(chmod(program, 0700), 0);
}

/* ---- asking ---- */

struct answer {
    int count, status;
    bool maybe_sent;
    char *body, *message;
    enum het_error_code code;
};

static void on_done(void *context, const struct http_reply *reply)
{
    struct answer *answer = context;
    answer->count++;
    answer->status = reply->status;
    answer->maybe_sent = reply->maybe_sent;
    answer->body = xasprintf("%.*s", (int)reply->body_length, reply->body);
    answer->message = xstrdup(reply->status ? "" : reply->error.message);
    answer->code = reply->status ? HET_OK : reply->error.code;
}

static void answer_fini(struct answer *answer)
{
    free(answer->body);
    free(answer->message);
}
#define auto_answer __attribute__((cleanup(answer_fini))) struct answer

static uint64_t start(const struct http_request *request, struct answer *answer)
{
    const struct http_handler handler = { .on_done = on_done, .context = answer };
    return transport_start(transport, request, &handler);
}

static void wait_for(struct answer *answer)
{
    for (int i = 0; i < 2000 && !answer->count; i++)
        transport_poll(transport, NULL, 0, 10);
    ck_assert_int_eq(answer->count, 1);
}

static void ask(const struct http_request *request, struct answer *answer)
{
    start(request, answer);
    ck_assert_int_eq(answer->count, 0); /* callbacks run in transport_poll alone */
    wait_for(answer);
}

#define PATH "/api/v1/pods?limit=500&labelSelector=a%3Db"
#define JOB  "/apis/heterotrain.io/v1alpha1/namespaces/ns/heterotrainingjobs/train"

static void get(struct answer *answer)
{
    ask(&(struct http_request){ .method = "GET", .path = PATH, .timeout_ms = 20000 },
        answer);
}

static void patch(const char *path, const char *body, struct answer *answer)
{
    ask(&(struct http_request){ .method = "PATCH",
                                .path = path,
                                .content_type = "application/merge-patch+json",
                                .body = body,
                                .body_length = strlen(body),
                                .timeout_ms = 20000 },
        answer);
}

/* ---- command lines ---- */

START_TEST(get_is_get_raw)
{
    auto_answer answer = { 0 };
    script("for word in \"$@\"; do echo \"[$word]\"; done");
    get(&answer);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(answer.body, "[--context=c d]\n[--as=$HOME]\n[get]\n[--raw=" PATH
                                  "]\n"); /* no shell is in between */
}
END_TEST

START_TEST(patch_is_patch_of_that_object)
{
    auto_answer answer = { 0 };
    script("shift 2; for word in \"$@\"; do echo \"[$word]\"; done");
    patch(JOB, "{\"a\": \"'$(id)\"}", &answer);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(
        answer.body,
        "[patch]\n[--type=merge]\n[--field-manager=kubectl-htj]\n[--namespace=ns]\n"
        "[--patch={\"a\": \"'$(id)\"}]\n[--output=json]\n[--]\n"
        "[heterotrainingjobs.v1alpha1.heterotrain.io]\n[train]\n");
}
END_TEST

START_TEST(nothing_else_is_asked)
{
    static const char *const paths[] = { JOB "/status", "/api/v1/namespaces/ns/pods/a",
                                         JOB "%20x" };
    script("touch \"$folder/count\"");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        auto_answer answer = { 0 };
        patch(paths[i], "{}", &answer);
        ck_assert_int_eq(answer.status, 0);
        ck_assert_int_eq(answer.code, HET_BAD_INPUT);
    }
    auto_answer outside = { 0 }, removal = { 0 };
    ask(&(struct http_request){ .method = "GET", .path = "http://10.0.0.1/x" }, &outside);
    ask(&(struct http_request){ .method = "DELETE", .path = JOB }, &removal);
    ck_assert_int_eq(outside.code, HET_BAD_INPUT);
    ck_assert_int_eq(removal.code, HET_BAD_INPUT);
    auto_free char *trace = xasprintf("%s/count", folder);
    ck_assert_int_eq(access(trace, F_OK), -1);
}
END_TEST

/* ---- failures, in kubectl's words ---- */

static const struct {
    const char *complaint;
    int status;
    const char *reason, *message;
} refusals[] = {
    { "Error from server (NotFound): heterotrainingjobs.heterotrain.io \"x\" not found",
      404, "NotFound", "heterotrainingjobs.heterotrain.io \"x\" not found" },
    { "Error from server (Forbidden): pods is forbidden: User \"bob\" cannot list", 403,
      "Forbidden", "pods is forbidden: User \"bob\" cannot list" },
    { "error: You must be logged in to the server (Unauthorized)", 401, "Unauthorized",
      "You must be logged in to the server (Unauthorized)" },
    { "Error from server (Conflict): Operation cannot be fulfilled on x", 409, "Conflict",
      "Operation cannot be fulfilled on x" },
    { "Error from server (Expired): The provided continue parameter is too old", 410,
      "Expired", "The provided continue parameter is too old" },
    { "The HeteroTrainingJob \"x\" is invalid: \n* spec.suspend: Invalid value", 422,
      "Invalid",
      "The HeteroTrainingJob \"x\" is invalid:  * spec.suspend: Invalid value" },
    { "Error from server (TooManyRequests): later", 429, "TooManyRequests", "later" },
    { "Error from server (ServiceUnavailable): not now", 503, "ServiceUnavailable",
      "not now" },
    { "Error from server (Strange): what", 500, "Strange", "what" },
    { "Error from server: admission webhook \"w\" denied the request: no", 500,
      "InternalError", "admission webhook \"w\" denied the request: no" },
};

static void complain(const char *complaint)
{
    auto_free char *body =
        xasprintf("echo 'half an answer'\ncat >&2 <<'END'\n%s\nEND\nexit 1", complaint);
    script(body);
}

START_TEST(refusal_of_the_server_is_a_status)
{
    auto_answer answer = { 0 };
    complain(refusals[_i].complaint);
    get(&answer);
    ck_assert_int_eq(answer.status, refusals[_i].status);
    json_auto_t *status = json_loads(answer.body, 0, NULL);
    ck_assert_ptr_nonnull(status);
    ck_assert_str_eq(json_string_value(json_object_get(status, "kind")), "Status");
    ck_assert_str_eq(json_string_value(json_object_get(status, "reason")),
                     refusals[_i].reason);
    ck_assert_str_eq(json_string_value(json_object_get(status, "message")),
                     refusals[_i].message);
    fflush(words);
    ck_assert_str_eq(said, "");
}
END_TEST

START_TEST(path_that_the_server_does_not_know_has_no_status)
{
    auto_answer answer = { 0 };
    complain("Error from server (NotFound): the server could not find the requested "
             "resource");
    get(&answer);
    ck_assert_int_eq(answer.status, 404);
    ck_assert_str_eq(answer.body, "");
}
END_TEST

static const struct {
    const char *complaint;
    enum het_error_code code;
    const char *message;
    bool maybe_sent; /* had it been a patch */
} failures[] = {
    { "error: context \"nope\" does not exist", HET_BAD_INPUT,
      "context \"nope\" does not exist", true },
    { "error: unknown flag: --x\nSee 'kubectl get --help' for usage.", HET_BAD_INPUT,
      "unknown flag: --x See 'kubectl get --help' for usage.", true },
    { "Error in configuration: context was not found", HET_BAD_INPUT,
      "Error in configuration: context was not found", true },
    { "The connection to the server 127.0.0.1:1 was refused - did you specify the right "
      "host or port?",
      HET_IO,
      "The connection to the server 127.0.0.1:1 was refused - did you specify the right "
      "host or port?",
      false },
    { "Unable to connect to the server: EOF", HET_IO,
      "Unable to connect to the server: EOF", true },
};

START_TEST(failure_to_ask_is_told)
{
    auto_answer answer = { 0 }, of_patch = { 0 };
    complain(failures[_i].complaint);
    get(&answer);
    ck_assert_int_eq(answer.status, 0);
    ck_assert_int_eq(answer.code, failures[_i].code);
    ck_assert_str_eq(answer.message, failures[_i].message);
    ck_assert(!answer.maybe_sent);
    patch(JOB, "{}", &of_patch);
    ck_assert_int_eq(of_patch.maybe_sent,
                     failures[_i].maybe_sent && failures[_i].code == HET_IO);
}
END_TEST

START_TEST(nobody_is_asked_for_a_password)
{
    static const char *const ends[] = { "exec sleep 1000",
                                        "echo error: EOF >&2; exit 1" };
    for (size_t i = 0; i < 2; i++) {
        auto_answer answer = { 0 };
        auto_free char *body = xasprintf("printf 'Please enter Username: '\n%s", ends[i]);
        script(body);
        get(&answer);
        ck_assert_int_eq(answer.status, 401);
        ck_assert_msg(strstr(answer.body, "the kubeconfig has no credentials") != NULL,
                      "%s", answer.body);
    }
}
END_TEST

START_TEST(end_without_a_word_is_told)
{
    auto_answer first = { 0 }, second = { 0 };
    script("exit 7");
    get(&first);
    ck_assert_str_eq(first.message, "kubectl ended with exit status 7");
    script("kill -SEGV $$");
    patch(JOB, "{}", &second);
    ck_assert_str_eq(second.message, "kubectl ended by signal 11");
    ck_assert(second.maybe_sent);
}
END_TEST

START_TEST(missing_kubectl_is_told)
{
    auto_answer answer = { 0 };
    char *ns = NULL;
    struct het_error err;
    get(&answer);
    ck_assert_int_eq(answer.code, HET_BAD_INPUT);
    ck_assert_msg(strstr(answer.message, "there is no ") &&
                      strstr(answer.message, ", through which the API server is asked"),
                  "%s", answer.message);
    struct transport *other =
        kubectl_transport_new("no-such-kubectl", NULL, 0, "kubectl-htj", words);
    ck_assert_int_eq(kubectl_transport_namespace(other, &ns, &err), -1);
    ck_assert_int_eq(err.code, HET_BAD_INPUT);
    ck_assert_str_eq(err.message, "there is no no-such-kubectl in PATH, through which "
                                  "the API server is asked");
    transport_free(other);
}
END_TEST

/* ---- what else it says ---- */

START_TEST(other_words_are_passed_on_as_they_come)
{
    auto_answer answer = { 0 };
    /* A plugin asks, and waits: the question must be heard before the line ends. */
    script("printf 'Warning: old\\nEnter the code: ' >&2\n"
           "until [ -e \"$folder/count\" ]; do sleep 0.01; done\n"
           "echo thanks >&2\n"
           "echo 'Error from server (Forbidden): no' >&2\nexit 1");
    start(&(struct http_request){ .method = "GET", .path = PATH }, &answer);
    for (int i = 0; i < 2000 && !(said && strstr(said, "Enter the code: ")); i++)
        transport_poll(transport, NULL, 0, 10);
    ck_assert_str_eq(said, "Warning: old\nEnter the code: ");
    auto_free char *path = xasprintf("%s/count", folder);
    fclose(fopen(path, "w"));
    wait_for(&answer);
    ck_assert_str_eq(said, "Warning: old\nEnter the code: thanks\n");
    ck_assert_int_eq(answer.status, 403);
}
END_TEST

START_TEST(complaint_of_a_success_is_passed_on)
{
    auto_answer answer = { 0 };
    script("echo '{}'; printf 'error: never mind\\nErr' >&2");
    get(&answer);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_str_eq(answer.body, "{}\n");
    ck_assert_str_eq(said, "error: never mind\nErr");
}
END_TEST

/* ---- limits ---- */

START_TEST(long_answers_are_whole_or_none)
{
    auto_answer whole = { 0 }, none = { 0 };
    script("head -c 3000000 /dev/zero | tr '\\0' x");
    get(&whole);
    ck_assert_uint_eq(strlen(whole.body), 3000000);
    ask(&(struct http_request){ .method = "GET",
                                .path = PATH,
                                .max_response_bytes = 2999999 },
        &none);
    ck_assert_int_eq(none.status, 0);
    ck_assert_str_eq(none.message, "the answer is longer than 2999999 bytes");
}
END_TEST

START_TEST(long_complaint_is_cut)
{
    auto_answer answer = { 0 };
    script("printf 'Error from server (NotFound): ' >&2\n"
           "head -c 1000000 /dev/zero | tr '\\0' x >&2\nexit 1");
    get(&answer);
    ck_assert_int_eq(answer.status, 404);
    ck_assert_uint_lt(strlen(answer.body), 2 * KUBECTL_MAX_COMPLAINT);
}
END_TEST

START_TEST(what_takes_too_long_is_killed)
{
    auto_answer answer = { 0 };
    script("exec sleep 1000");
    ask(&(struct http_request){ .method = "GET", .path = PATH, .timeout_ms = 100 },
        &answer);
    ck_assert_int_eq(answer.status, 0);
    ck_assert_int_eq(answer.code, HET_IO);
    ck_assert_msg(strstr(answer.message, "has not answered"), "%s", answer.message);
}
END_TEST

/* Something that kubectl leaves behind holds its ends open. */
START_TEST(end_is_that_of_kubectl_alone)
{
    auto_answer answer = { 0 };
    script("sleep 1000 & echo $! >\"$folder/count\"; echo '{}'");
    get(&answer);
    ck_assert_str_eq(answer.body, "{}\n");
    auto_free char *path = xasprintf("%s/count", folder);
    FILE *file = fopen(path, "r");
    int pid = 0;
    ck_assert_int_eq(fscanf(file, "%d", &pid), 1);
    fclose(file);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
}
END_TEST

/* ---- several at once ---- */

START_TEST(few_run_at_once_and_all_are_answered)
{
    enum { COUNT = 3 * KUBECTL_MAX_RUNS };
    struct answer answers[COUNT] = { 0 };
    auto_free char *body =
        xasprintf("for word in \"$@\"; do :; done\n"
                  "echo + >>\"$folder/count\"\n"
                  "until [ $(grep -c + \"$folder/count\") -ge %d ]; do sleep 0.01; done\n"
                  "sleep 0.05; echo - >>\"$folder/count\"; echo \"$word\"",
                  KUBECTL_MAX_RUNS); /* one by one they would wait for ever */
    script(body);
    for (int i = 0; i < COUNT; i++) {
        auto_free char *path = xasprintf("/%d", i);
        start(&(struct http_request){ .method = "GET", .path = path }, &answers[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        wait_for(&answers[i]);
        auto_free char *expected = xasprintf("--raw=/%d\n", i);
        ck_assert_str_eq(answers[i].body, expected);
        answer_fini(&answers[i]);
    }
    auto_free char *path = xasprintf("%s/count", folder);
    FILE *file = fopen(path, "r");
    int going = 0, begun = 0;
    for (int c; (c = getc(file)) != EOF;) {
        begun += c == '+';
        going += c == '+' ? 1 : c == '-' ? -1 : 0;
        ck_assert_int_le(going, KUBECTL_MAX_RUNS);
    }
    fclose(file);
    ck_assert_int_eq(begun, COUNT);
}
END_TEST

START_TEST(cancelled_request_is_not_answered)
{
    auto_answer gone = { 0 }, other = { 0 };
    script("exec sleep 1000");
    uint64_t id = start(&(struct http_request){ .method = "GET", .path = PATH }, &gone);
    script("echo '{}'");
    transport_cancel(transport, id);
    transport_cancel(transport, id);
    get(&other);
    ck_assert_int_eq(gone.count, 0);
    start(&(struct http_request){ .method = "GET", .path = PATH }, &gone);
    transport_free(transport); /* with one under way */
    transport = kubectl_transport_new(program, login, 2, "kubectl-htj", words);
    ck_assert_int_eq(gone.count, 0);
}
END_TEST

/* ---- the context ---- */

START_TEST(namespace_is_that_of_the_context)
{
    char *ns = NULL;
    struct het_error err = { 0 };
    script("[ \"$*\" = '--context=c d --as=$HOME config view --minify "
           "--output=jsonpath={.contexts[0].context.namespace}' ] && printf research");
    ck_assert_msg(kubectl_transport_namespace(transport, &ns, &err) == 0, "%s",
                  err.message);
    ck_assert_str_eq(ns, "research");
    free(ns);
    script("");
    ck_assert_int_eq(kubectl_transport_namespace(transport, &ns, &err), 0);
    ck_assert_str_eq(ns, "default");
    free(ns);
    complain("error: current-context must exist in order to minify");
    ck_assert_int_eq(kubectl_transport_namespace(transport, &ns, &err), 0);
    ck_assert_ptr_null(ns);
    complain("error: cannot locate context nope");
    ck_assert_int_eq(kubectl_transport_namespace(transport, &ns, &err), -1);
    ck_assert_int_eq(err.code, HET_BAD_INPUT);
    ck_assert_str_eq(err.message, "cannot locate context nope");
}
END_TEST

Suite *test_kubectl_transport_suite(void)
{
    Suite *suite = suite_create("kubectl_transport");
    TCase *tests = tcase_create("kubectl_transport");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, get_is_get_raw);
    tcase_add_test(tests, patch_is_patch_of_that_object);
    tcase_add_test(tests, nothing_else_is_asked);
    tcase_add_loop_test(tests, refusal_of_the_server_is_a_status, 0,
                        sizeof refusals / sizeof *refusals);
    tcase_add_test(tests, path_that_the_server_does_not_know_has_no_status);
    tcase_add_loop_test(tests, failure_to_ask_is_told, 0,
                        sizeof failures / sizeof *failures);
    tcase_add_test(tests, nobody_is_asked_for_a_password);
    tcase_add_test(tests, end_without_a_word_is_told);
    tcase_add_test(tests, missing_kubectl_is_told);
    tcase_add_test(tests, other_words_are_passed_on_as_they_come);
    tcase_add_test(tests, complaint_of_a_success_is_passed_on);
    tcase_add_test(tests, long_answers_are_whole_or_none);
    tcase_add_test(tests, long_complaint_is_cut);
    tcase_add_test(tests, what_takes_too_long_is_killed);
    tcase_add_test(tests, end_is_that_of_kubectl_alone);
    tcase_add_test(tests, few_run_at_once_and_all_are_answered);
    tcase_add_test(tests, cancelled_request_is_not_answered);
    tcase_add_test(tests, namespace_is_that_of_the_context);
    suite_add_tcase(suite, tests);
    return suite;
}
