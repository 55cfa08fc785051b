/* The program `heterotrain-simulate`, on the examples. */
#include "controller/simulate/simulate_command.h"

#include "controller/simulate/api_server/condition.h"
#include "planner/modules.h"

#include "tests/scale.h"

#include <check.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define EXAMPLES "docs/examples/"
#define CLUSTER                                                                          \
    "--nodes", EXAMPLES "nodes-mixed.json", "--hardware", EXAMPLES "hardware.json"
#define JOB                                                                              \
    "--profile", EXAMPLES "opt-350-profile.yaml", "--job", EXAMPLES "opt-350-job.yaml"

static char *out, *err;
static size_t out_length, err_length;

/* Runs with the arguments up to NULL; what it printed is in `out` and `err`. */
static int run(const char *first, ...)
{
    char *arguments[64] = { NULL };
    int count = 0;
    va_list args;
    va_start(args, first);
    arguments[count++] = xstrdup("heterotrain-simulate");
    for (const char *text = first; text; text = va_arg(args, const char *))
        arguments[count++] = xstrdup(text);
    va_end(args);
    const char *hetplan = getenv("SIMULATION_HETPLAN");
    struct simulate_terminal terminal = { .out = open_memstream(&out, &out_length),
                                          .err = open_memstream(&err, &err_length),
                                          .is_utf8 = true,
                                          .width = 100,
                                          .hetplan = hetplan ? hetplan
                                                             : "build/hetplan" };
    signal(SIGPIPE, SIG_IGN);
    int status = simulate_command_main(count, arguments, &terminal);
    fclose(terminal.out);
    fclose(terminal.err);
    while (count)
        free(arguments[--count]);
    return status;
}

static void teardown(void)
{
    free(out);
    free(err);
    out = err = NULL;
}

#define check_out(text)                                                                  \
    ck_assert_msg(strstr(out, text) != NULL, "no '%s' in:\n%s", text, out)

START_TEST(story_tells_what_happens_and_why)
{
    ck_assert_int_eq(
        run(CLUSTER, JOB, "--event", "120s delete node/v100-1", "--until", "300s", NULL),
        0);
    check_out("The cluster: 34 GPUs on 7 nodes");
    check_out("a100-2        8  A100-SXM4-40GB   40  ready");
    check_out("plan 1 of job default/opt-350, because: JobCreated");
    check_out("step time");
    check_out("pods created: opt-350-1-0,");
    check_out("opt-350-1-0 on ");
    check_out("NPROC_PER_NODE");
    check_out("in all of them:");
    check_out("120.0 s  ==> delete node/v100-1");
    check_out("because: NodeLost");
    check_out("v100-1 leaves (");
    check_out("default/opt-350  Running     2 ");
    ck_assert_str_eq(err, "");
    for (char *line = strtok(out, "\n"); line; line = strtok(NULL, "\n")) {
        size_t length = strlen(line);
        ck_assert_msg(!length || line[length - 1] != ' ' || strchr(line, '%'), "'%s'",
                      line);
    }
}
END_TEST

START_TEST(same_input_gives_the_same_output)
{
    ck_assert_int_eq(run(CLUSTER, JOB, "--event", "60s cordon node/a100-0", NULL), 0);
    auto_free char *first = TAKE(out);
    free(err);
    ck_assert_int_eq(run(CLUSTER, JOB, "--event", "60s cordon node/a100-0", NULL), 0);
    ck_assert_str_eq(out, first);
}
END_TEST

START_TEST(json_output_is_one_document)
{
    ck_assert_int_eq(run(CLUSTER, JOB, "--output", "json", "--event",
                         "100s succeed job/opt-350", NULL),
                     0);
    json_auto_t *document = json_loads(out, 0, NULL);
    ck_assert_ptr_nonnull(document);
    ck_assert_uint_eq(json_array_size(object_at(document, "cluster")), 7);
    const json_t *job = json_array_get(object_at(document, "jobs"), 0);
    ck_assert_str_eq(object_text(job, "state"), "Complete");
    const json_t *plan = object_find(object_at(document, "timeline"), "what", "plan");
    ck_assert_str_eq(object_text(plan, "trigger"), "JobCreated");
    ck_assert(json_is_array(object_at(plan, "plan.pipelines")));
}
END_TEST

START_TEST(job_that_waits_at_the_end_makes_exit_status_1)
{
    ck_assert_int_eq(run("--nodes", EXAMPLES "nodes-mixed.json", "--job",
                         EXAMPLES "opt-350-job.yaml", "--quiet", NULL),
                     1);
    check_out("NotAccepted");
    check_out("there is no ModelProfile default/opt-350");
}
END_TEST

START_TEST(help_explains_every_event)
{
    ck_assert_int_eq(run("--help", NULL), 0);
    static const char *const verbs[] = { "delete",      "restore", "cordon",
                                         "uncordon",    "ready",   "notready",
                                         "gpus",        "apply",   "delete job",
                                         "succeed job", "fail pod" };
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        check_out(verbs[i]);
}
END_TEST

START_TEST(bad_input_is_named_with_what_to_change)
{
    static const char *const cases[][4] = {
        { "--nodes", "none.json", NULL, "none.json: No such file" },
        { "--nodes", EXAMPLES "cluster-mixed.json", NULL,
          "cluster-mixed.json: expected Nodes, as `kubectl get nodes -o json` prints" },
        { "--job", EXAMPLES "nodes-mixed.json", NULL, "expected a HeteroTrainingJob" },
        { "--nodes", EXAMPLES "nodes-mixed.json", NULL, "--job is missing" },
        { "--until", "5", NULL, "not a time like 600s" },
        { "--output", "xml", NULL, "expected text or json" },
        { "--event", "5s explode node/a", NULL, "is not one of" },
        { "--hardware", EXAMPLES "README.md", NULL, "README.md" },
        { "--seed", "x", NULL, "expected a number" },
        { "extra", NULL, NULL, "extra: not an option" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(run(cases[i][0], cases[i][1], NULL) == 2, "%s", cases[i][0]);
        ck_assert_msg(strstr(err, cases[i][3]) != NULL, "%s", err);
        teardown();
    }
}
END_TEST

Suite *test_simulate_command_suite(void)
{
    Suite *suite = suite_create("simulate_command");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_test(cases, story_tells_what_happens_and_why);
    if (!is_check_run())
        tcase_add_test(cases, same_input_gives_the_same_output);
    tcase_add_test(cases, json_output_is_one_document);
    tcase_add_test(cases, job_that_waits_at_the_end_makes_exit_status_1);
    tcase_add_test(cases, help_explains_every_event);
    tcase_add_test(cases, bad_input_is_named_with_what_to_change);
    suite_add_tcase(suite, cases);
    return suite;
}
