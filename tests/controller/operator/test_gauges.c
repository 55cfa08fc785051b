/* What the metrics say of the real controller's work, on the embedded server. */
#include "controller/operator/gauges.h"

#include "controller/decision/status.h"

#include "controller/simulate/simulation.h"
#include "tests/controller/exposition.h"
#include "tests/controller/inside_planner.h"
#include "tests/controller/objects.h"
#include "tests/controller/quoted.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct metrics *metrics;
static struct simulation *simulation;
static struct api_server *server;
static struct inside_planner planner;

static void put(json_t *object)
{
    struct het_error err = { 0 };
    ck_assert_msg(api_server_put(server, object, &err) == 0, "%s", err.message);
}

static void put_node(const char *name, const char *type, int gpus)
{
    put(quoted("{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': '%s', 'labels':"
               " {'nvidia.com/gpu.product': '%s'}}, 'status': {'capacity': "
               "{'nvidia.com/gpu': '%d', 'cpu': '64', 'memory': '256Gi', 'pods': '110'}, "
               "'allocatable': {'nvidia.com/gpu': '%d', 'cpu': '64', 'memory': '256Gi', "
               "'pods': '110'}, 'conditions': [{'type': 'Ready', 'status': 'True'}]}}",
               name, type, gpus, gpus));
}

static void put_job(const char *name)
{
    put(make_restricted(
        quoted("{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'HeteroTrainingJob', "
               "'metadata': {'name': '%s'}, 'spec': {'model': {'profileRef': {'kind': "
               "'ModelProfile', 'name': 'small'}}, 'training': {'globalBatchSize': 32}, "
               "'resources': {'minGPUs': 2, 'maxGPUs': 4}, 'podTemplate': {'spec': "
               "{'containers': [{'name': 'trainer', 'image': 'train:1', 'command': "
               "['torchrun']}]}}}}",
               name)));
}

/* `more` is taken over the object that is there. */
static void change(const char *plural, const char *ns, const char *name, json_t *more)
{
    json_t *object = json_deep_copy(api_server_find(server, plural, ns, name));
    ck_assert_ptr_nonnull(object);
    json_object_update_recursive(object, more);
    json_decref(more);
    put(object);
}

static double clock_s(void *context)
{
    (void)context;
    return server ? (double)api_server_now_ms(server) / 1000 : 0;
}

static void set_up(void)
{
    struct het_error err = { 0 };
    server = NULL;
    metrics = metrics_new(clock_s, NULL);
    planner = (struct inside_planner){ .latency_ms = 100 };
    struct simulation_config config = { .inside = inside_planner_answer,
                                        .inside_context = &planner,
                                        .seed = 1,
                                        .metrics = metrics,
                                        .cluster = simulated_cluster_defaults };
    simulation = simulation_new(&config, &err);
    ck_assert_msg(simulation != NULL, "%s", err.message);
    server = simulation_server(simulation);
    put_node("a-0", "NVIDIA-A100-SXM4-40GB", 4);
    put_node("v-0", "Tesla-V100-SXM2-16GB", 3);
    put(make_profile("default", 2, 1));
}

static void tear_down(void)
{
    simulation_free(simulation);
    inside_planner_fini(&planner);
    metrics_free(metrics);
}

static void run_s(int64_t seconds)
{
    struct het_error err = { 0 };
    ck_assert_msg(simulation_run(simulation,
                                 simulation_now_ms(simulation) + seconds * 1000, NULL,
                                 NULL, &err) == 0,
                  "%s", err.message);
}

static double value(const char *series)
{
    size_t length;
    auto_free char *text = metrics_render(metrics, &length);
    struct exposition *exposition = exposition_read(text);
    double result = exposition_value(exposition, series);
    exposition_free(exposition);
    return result;
}

#define check(series, expected)                                                          \
    do {                                                                                 \
        double is_ = value(series);                                                      \
        ck_assert_msg(is_ == (expected), "%s is %g, not %g", series, is_,                \
                      (double)(expected));                                               \
    } while (0)

START_TEST(gpus_are_free_used_or_unusable)
{
    run_s(20);
    check("heterotrain_gpus{type=\"A100-SXM4-40GB\",state=\"free\"}", 4);
    check("heterotrain_gpus{type=\"V100-SXM2-16GB\",state=\"free\"}", 3);
    put_job("j");
    run_s(60);
    double a100 = value("heterotrain_gpus{type=\"A100-SXM4-40GB\",state=\"used\"}");
    double v100 = value("heterotrain_gpus{type=\"V100-SXM2-16GB\",state=\"used\"}");
    const json_t *status = json_object_get(
        api_server_find(server, "heterotrainingjobs", "default", "j"), "status");
    ck_assert_double_gt(a100 + v100, 0);
    ck_assert_double_eq(a100 + v100, (double)json_integer_value(
                                         json_object_get(status, "allocatedGPUs")));
    put_node("v-1", "Tesla-V100-SXM2-16GB", 2);
    change("nodes", "", "v-1", quoted("{'spec': {'unschedulable': true}}"));
    run_s(20);
    check("heterotrain_gpus{type=\"V100-SXM2-16GB\",state=\"unusable\"}", 2);
}
END_TEST

START_TEST(job_that_runs_is_counted_and_predicted)
{
    put_job("j");
    run_s(60);
    check("heterotrain_jobs{state=\"Running\"}", 1);
    check("heterotrain_jobs{state=\"Pending\"}", 0);
    const json_t *plan = json_object_get(
        json_object_get(api_server_find(server, "heterotrainingjobs", "default", "j"),
                        "status"),
        "plan");
    double milliseconds = (double)json_integer_value(
        json_object_get(json_object_get(plan, "predicted"), "iterationMilliseconds"));
    ck_assert_double_gt(milliseconds, 0);
    check("heterotrain_predicted_iteration_seconds{namespace=\"default\",job=\"j\"}",
          milliseconds / 1000);
    ck_assert(isnan(value(
        "heterotrain_reported_iteration_seconds{namespace=\"default\",job=\"j\"}")));
}
END_TEST

START_TEST(slowest_pod_says_what_an_iteration_takes)
{
    static const char *const reports[] = { "0.25", "rubbish", "-1", "inf", "0.1" };
    put_job("j");
    run_s(60);
    size_t pods = api_server_count(server, "pods");
    for (size_t i = 0; i < 5; i++) {
        const char *name = kube_name(api_server_at(server, "pods", i % pods));
        change("pods", "default", name,
               quoted("{'metadata': {'annotations': {'%s': '%s'}}}",
                      ANNOTATION_STEP_SECONDS, reports[i]));
        run_s(10);
        double is = value(
            "heterotrain_reported_iteration_seconds{namespace=\"default\",job=\"j\"}");
        if (i == 0 || (i < 4 && pods > 1 && i % pods))
            ck_assert_double_eq(is, 0.25);
    }
    ck_assert_double_eq(
        value("heterotrain_reported_iteration_seconds{namespace=\"default\",job=\"j\"}"),
        pods == 1 || 4 % pods == 0 ? 0.1 : 0.25);
}
END_TEST

START_TEST(replaced_plan_is_counted_with_its_trigger)
{
    struct het_error err = { 0 };
    put_job("j");
    run_s(60);
    ck_assert(isnan(
        value("heterotrain_replans_total{trigger=\"NodeLost\",result=\"Replaced\"}")));
    const char *node = NULL;
    json_unpack(api_server_find(server, "pods", "default", "j-1-0"), "{s:{s:s}}", "spec",
                "nodeName", &node);
    ck_assert_ptr_nonnull(node);
    auto_free char *lost = xstrdup(node);
    ck_assert_int_eq(api_server_delete(server, "nodes", "", lost, 0, &err), 0);
    run_s(120);
    check("heterotrain_replans_total{trigger=\"NodeLost\",result=\"Replaced\"}", 1);
    check("heterotrain_plan_duration_seconds_count{outcome=\"plan\"}", 2);
    check("heterotrain_plan_gap_count", 2);
}
END_TEST

START_TEST(work_is_counted_where_it_is_done)
{
    put_job("j");
    run_s(70); /* the server's version is asked after a minute */
    check("heterotrain_leader", 1);
    check("heterotrain_synced", 1);
    check("heterotrain_requests_in_flight", 0);
    check("watch_restarts_total{resource=\"nodes\"}", 1);
    check("heterotrain_request_duration_seconds_count{verb=\"POST\",resource="
          "\"configmaps\",code=\"2xx\"}",
          1);
    ck_assert_double_ge(value("workqueue_adds_total{name=\"jobs\"}"), 3);
    ck_assert_double_eq(value("workqueue_queue_duration_seconds_count{name=\"jobs\"}"),
                        value("workqueue_work_duration_seconds_count{name=\"jobs\"}"));
    ck_assert_double_eq(value("heterotrain_decisions_total"),
                        value("heterotrain_reconcile_duration_seconds_count"));
    ck_assert_double_ge(value("watch_events_total{resource=\"pods\"}"), 1);
}
END_TEST

Suite *test_gauges_suite(void)
{
    Suite *suite = suite_create("gauges");
    TCase *cases = tcase_create("census");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, gpus_are_free_used_or_unusable);
    tcase_add_test(cases, job_that_runs_is_counted_and_predicted);
    tcase_add_test(cases, slowest_pod_says_what_an_iteration_takes);
    tcase_add_test(cases, replaced_plan_is_counted_with_its_trigger);
    tcase_add_test(cases, work_is_counted_where_it_is_done);
    suite_add_tcase(suite, cases);
    return suite;
}
