/* The library as others see it: nothing but its public header. */
#include "planner/hetplan.h"
#include "planner/modules.h"
#include "tests/planner/command.h"
#include "tests/planner/files.h"

#include <check.h>
#include <locale.h>
#include <pthread.h>
#include <string.h>

/* The cluster and the profile of the demo: OPT-350M. */
static struct het_planner *new_planner(const char *job)
{
    static const struct {
        const char *part, *file;
    } parts[] = { { "cluster", "docs/examples/nodes-mixed.json" },
                  { "hardware", "docs/examples/hardware.json" },
                  { "profile", "docs/examples/opt-350-profile.yaml" } };
    struct het_planner *planner = het_planner_new();
    ck_assert_ptr_nonnull(planner);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *text;
        size_t length;
        ck_assert(!het_read_file_text(parts[i].file, &text, &length, NULL));
        ck_assert_int_eq(het_planner_set(planner, parts[i].part, text), HET_STATUS_DONE);
        xfree(text);
    }
    ck_assert_int_eq(het_planner_set(planner, "job", job), HET_STATUS_DONE);
    return planner;
}

#define SMALL_JOB "globalBatchSize: 64\neffort: 20000"

static const char *ok(struct het_planner *planner, const char *text)
{
    ck_assert_msg(text != NULL, "%s", het_planner_message(planner));
    ck_assert_int_eq(het_planner_status(planner), HET_STATUS_DONE);
    ck_assert_str_eq(het_planner_message(planner), "");
    return text;
}

START_TEST(plan_is_that_of_the_program)
{
    struct het_planner *planner = new_planner(SMALL_JOB);
    char folder[64];
    command_folder(folder);
    struct command_result result = command_run(
        folder, NULL, "plan", "--cluster", "docs/examples/nodes-mixed.json", "--hardware",
        "docs/examples/hardware.json", "--profile", "docs/examples/opt-350-profile.yaml",
        "--global-batch-size", "64", "--effort", "20000", NULL);
    ck_assert_int_eq(result.exit_code, 0);
    result.out[strcspn(result.out, "\n")] = '\0';
    ck_assert_str_eq(ok(planner, het_planner_plan(planner, HET_FORM_JSON)), result.out);
    command_result_fini(&result);
    command_remove(folder);
    het_planner_free(planner);
}
END_TEST

/* A text is valid until the next answer, and may be given to the call that makes it. */
START_TEST(answers_are_taken_as_plans)
{
    struct het_planner *planner = new_planner(SMALL_JOB);
    const char *answer = ok(planner, het_planner_plan(planner, HET_FORM_JSON));
    char *plan = xstrdup(answer);
    answer = ok(planner, het_planner_check(planner, answer, HET_FORM_JSON));
    ck_assert_str_eq(answer, "{\"valid\":true,\"violations\":[]}");
    answer = ok(planner, het_planner_cost(planner, plan, HET_FORM_TEXT));
    ck_assert_ptr_nonnull(strstr(answer, "The plan is valid.\n"));
    answer = ok(planner, het_planner_explain(planner, plan, 0, HET_FORM_JSON));
    ck_assert_ptr_nonnull(strstr(answer, "\"bottleneckStage\""));
    answer = ok(planner, het_planner_diff(planner, plan, plan, HET_FORM_TEXT));
    ck_assert_ptr_nonnull(strstr(answer, "s a step now"));
    answer = ok(planner, het_planner_simulate(planner, plan, HET_FORM_SVG));
    ck_assert(!strncmp(answer, "<svg", 4));
    answer = ok(planner, het_planner_simulate(planner, plan, HET_FORM_TRACE));
    ck_assert(answer[0] == '{' || answer[0] == '[');
    answer = ok(planner,
                het_planner_render(planner, plan, "generic",
                                   "{\"job\": \"opt\", \"revision\": 3}", HET_FORM_TEXT));
    ck_assert_ptr_nonnull(strstr(answer, "# opt-3-0."));
    xfree(plan);
    het_planner_free(planner);
}
END_TEST

START_TEST(text_is_as_wide_as_it_may_be)
{
    struct het_planner *planner = new_planner(SMALL_JOB);
    size_t widest[2] = { 0 };
    for (int i = 0; i < 2; i++) {
        het_planner_set_width(planner, i ? 140 : 0, 0);
        const char *text = ok(planner, het_planner_plan(planner, HET_FORM_TEXT));
        for (; *text; text += strcspn(text, "\n") + 1)
            if (strcspn(text, "\n") > widest[i])
                widest[i] = strcspn(text, "\n");
    }
    ck_assert_uint_lt(widest[0], widest[1]);
    het_planner_set_width(planner, 100, 1);
    const char *text = ok(planner, het_planner_plan(planner, HET_FORM_TEXT));
    ck_assert_ptr_nonnull(strstr(text, "\xe2\x94\x80"));
    het_planner_free(planner);
}
END_TEST

static void expect(struct het_planner *planner, const char *answer,
                   enum het_status status, const char *path, const char *message)
{
    ck_assert_int_eq(het_planner_status(planner), status);
    ck_assert_int_eq(answer != NULL, status == HET_STATUS_DONE);
    ck_assert_str_eq(het_planner_path(planner), path);
    ck_assert_msg(strstr(het_planner_message(planner), message) != NULL, "%s",
                  het_planner_message(planner));
}

START_TEST(what_is_wrong_is_named)
{
    static const struct {
        const char *part, *text, *path, *message;
    } cases[] = {
        { "job", NULL, "job", "is missing" },
        { "job", "{}", "job.globalBatchSize", "is missing" },
        { "job", "{ \"globalBatchSize\": 64, ", "job", "job: line 1" },
        { "job", "a: b: c", "job", "job: line 1" },
        { "job", "globalBatchSize: 64\nconstraints: { dataParallel: { minReplicas: x } }",
          "job.constraints.dataParallel.minReplicas", "must be a whole number" },
        { "job", "[]", "job", "" },
        { "job", "globalBatchSize: 64\nalgorithm: magic", "", "magic" },
        { "cluster", "{ \"nodes\": [ { \"type\": \"A100\", \"gpus\": 0 } ] }",
          "cluster.nodes[0].gpus", "must be 1 to" },
        { "profile", "kind: Pod", "profile", "profile: " },
        { "pods", "7", "pods", "" },
        { "hardware", "{ \"gpuTypes\": 7 }", "hardware.gpuTypes", "must be a list" },
        { "network", "7", "network", "" },
        { "unused", "7", "unused", "must be a list" },
        { "mixedVendorRuntimes", "[ \"abc\" ]", "mixedVendorRuntimes[0]", "abc" },
        { "question", "7", "question", "must be an object" },
        { "question", "{ \"clusters\": {} }", "clusters", "unknown field" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct het_planner *planner = new_planner(SMALL_JOB);
        ck_assert_int_eq(het_planner_set(planner, cases[i].part, cases[i].text),
                         HET_STATUS_DONE);
        const char *plan = het_planner_plan(planner, HET_FORM_JSON);
        expect(planner, plan, HET_STATUS_BAD_INPUT, cases[i].path, cases[i].message);
        het_planner_free(planner);
    }
}
END_TEST

START_TEST(what_is_given_to_a_call_is_checked)
{
    struct het_planner *planner = new_planner(SMALL_JOB);
    ck_assert_str_eq(het_planner_message(planner), "");
    ck_assert_int_eq(het_planner_set(planner, "jobs", "{}"), HET_STATUS_BAD_INPUT);
    expect(planner, NULL, HET_STATUS_BAD_INPUT, "", "parts are question, profile");
    ck_assert_int_eq(het_planner_set(planner, NULL, NULL), HET_STATUS_BAD_INPUT);
    const enum het_form json = HET_FORM_JSON;
    static const char plan[] = "{}";
    expect(planner, het_planner_cost(planner, NULL, json), HET_STATUS_BAD_INPUT, "plan",
           "plan: is missing");
    expect(planner, het_planner_explain(planner, "[]", 1, json), HET_STATUS_BAD_INPUT,
           "plan", "must be an object");
    expect(planner, het_planner_diff(planner, NULL, plan, json), HET_STATUS_BAD_INPUT, "",
           "from: the running plan is missing");
    expect(planner, het_planner_simulate(planner, plan, json), HET_STATUS_BAD_INPUT,
           "form", "HET_FORM_SVG");
    expect(planner, het_planner_plan(planner, (enum het_form)99), HET_STATUS_BAD_INPUT,
           "form", "HET_FORM_JSON");
    expect(planner, het_planner_render(planner, plan, NULL, NULL, json),
           HET_STATUS_BAD_INPUT, "runtime", "runtime: is missing");
    expect(planner, het_planner_render(planner, plan, "abc", NULL, json),
           HET_STATUS_BAD_INPUT, "runtime", "abc");
    expect(planner, het_planner_render(planner, plan, "torchrun", "job: 7", json),
           HET_STATUS_BAD_INPUT, "pods.job", "pods: job: must be a text");
    /* A plan that is not valid is an answer. */
    const char *verdict = het_planner_check(planner, plan, json);
    ck_assert_int_eq(het_planner_status(planner), HET_STATUS_NO);
    ck_assert_ptr_nonnull(strstr(verdict, "\"valid\":false"));
    het_planner_free(planner);
    het_planner_free(NULL);
}
END_TEST

START_TEST(no_plan_is_no_error_of_the_input)
{
    struct het_planner *planner = new_planner("globalBatchSize: 64\nminGPUs: 1000");
    const char *plan = het_planner_plan(planner, HET_FORM_JSON);
    ck_assert_ptr_null(plan);
    ck_assert_int_eq(het_planner_status(planner), HET_STATUS_NO);
    ck_assert_str_ne(het_planner_message(planner), "");
    het_planner_free(planner);
}
END_TEST

/* ---- while it searches ---- */

struct watcher {
    struct het_planner *planner;
    int calls, cancel_at;
    double best_s;
};

static void watch(void *context, const struct het_progress *progress)
{
    struct watcher *watcher = context;
    /* Another planner may be used meanwhile. */
    struct het_planner *other = het_planner_new();
    ck_assert_ptr_null(het_planner_plan(other, HET_FORM_JSON));
    het_planner_free(other);
    watcher->calls++;
    if (progress->best_s > 0)
        ck_assert_double_ge(progress->best_s, progress->bound_s);
    if (progress->best_s > 0 && watcher->cancel_at &&
        watcher->calls >= watcher->cancel_at)
        het_planner_cancel(watcher->planner);
}

START_TEST(search_is_watched_and_cancelled)
{
    struct het_planner *planner = new_planner("globalBatchSize: 256");
    struct watcher watcher = { .planner = planner, .cancel_at = 1 };
    het_planner_on_progress(planner, watch, &watcher);
    const char *plan = ok(planner, het_planner_plan(planner, HET_FORM_JSON));
    ck_assert_ptr_nonnull(strstr(plan, "\"cutShort\":true"));
    ck_assert_int_ge(watcher.calls, 1);
    /* The next one is whole again. */
    watcher = (struct watcher){ 0 };
    het_planner_set(planner, "job", SMALL_JOB);
    plan = ok(planner, het_planner_plan(planner, HET_FORM_JSON));
    ck_assert_ptr_null(strstr(plan, "cutShort"));
    ck_assert_int_ge(watcher.calls, 1);
    /* Nobody watches; cancelled before it began. */
    het_planner_on_progress(planner, NULL, NULL);
    het_planner_cancel(planner);
    plan = het_planner_plan(planner, HET_FORM_JSON);
    ck_assert(plan ? strstr(plan, "\"cutShort\":true") != NULL
                   : het_planner_status(planner) == HET_STATUS_CUT_SHORT);
    plan = ok(planner, het_planner_plan(planner, HET_FORM_JSON));
    ck_assert_ptr_null(strstr(plan, "cutShort"));
    het_planner_free(planner);
}
END_TEST

static void *plan_in_thread(void *job)
{
    struct het_planner *planner = new_planner(job);
    char *plan = xstrdup(ok(planner, het_planner_plan(planner, HET_FORM_JSON)));
    het_planner_free(planner);
    return plan;
}

#define STACK_BYTES (512 << 10)

/* With the stack that the header promises to be enough. */
START_TEST(planners_work_at_the_same_time)
{
    pthread_t threads[4];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (int i = 0; i < 4; i++)
        ck_assert(!pthread_create(&threads[i], &attributes, plan_in_thread,
                                  i % 2 ? SMALL_JOB : "globalBatchSize: 32"));
    void *plans[4];
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], &plans[i]);
    ck_assert_str_eq(plans[0], plans[2]);
    ck_assert_str_eq(plans[1], plans[3]);
    ck_assert_str_ne(plans[0], plans[1]);
    for (int i = 0; i < 4; i++)
        xfree(plans[i]);
    pthread_attr_destroy(&attributes);
}
END_TEST

static void setup(void)
{
    json_set_alloc_funcs(xmalloc, xfree);
}

Suite *test_library_suite(void)
{
    Suite *suite = suite_create("library");
    TCase *tcase = tcase_create("library");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, plan_is_that_of_the_program);
    tcase_add_test(tcase, answers_are_taken_as_plans);
    tcase_add_test(tcase, text_is_as_wide_as_it_may_be);
    tcase_add_test(tcase, what_is_wrong_is_named);
    tcase_add_test(tcase, what_is_given_to_a_call_is_checked);
    tcase_add_test(tcase, no_plan_is_no_error_of_the_input);
    tcase_add_test(tcase, search_is_watched_and_cancelled);
    tcase_add_test(tcase, planners_work_at_the_same_time);
    suite_add_tcase(suite, tcase);
    return suite;
}
