/* Who comes first, and that nobody waits long for those who do: jobs whose planner hangs,
 * dies or prints rubbish hold up the others for no longer than their time limit. */
#include "controller/precedence.h"

#include "controller/controller.h"
#include "controller/embedded.h"
#include "controller/embedded/object.h"
#include "controller/kube.h"
#include "controller/snapshot.h"
#include "tests/controller/api.h"
#include "tests/controller/objects.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the order ---- */

static struct store *store;

static void setup_store(void)
{
    store = store_new();
}

static void teardown_store(void)
{
    store_free(store);
}

static void put_class(const char *name, int value, const char *more)
{
    json_auto_t *class = quoted("{'metadata': {'name': '%s', 'uid': '%s', "
                                "'resourceVersion': '1'}, 'value': %d%s}",
                                name, name, value, more);
    ck_assert(store_put(store, &kube_priority_class, class));
}

static struct precedence precedence(const char *class)
{
    json_t *job = quoted("{'metadata': {'uid': 'u', 'creationTimestamp': "
                         "'1970-01-01T00:00:01Z'}, 'spec': {'scheduling': "
                         "{'priorityClassName': '%s'}}}",
                         class);
    struct precedence result = precedence_of(store, job);
    ck_assert_int_eq(result.created_ms, 1000);
    json_decref(job);
    result.uid = "u";
    return result;
}

START_TEST(class_of_a_job_gives_its_priority)
{
    put_class("high", 1000, "");
    put_class("polite", 500, ", 'preemptionPolicy': 'Never'");
    ck_assert_int_eq(precedence("high").priority, 1000);
    ck_assert(!precedence("high").never_claims);
    ck_assert_int_eq(precedence("polite").priority, 500);
    ck_assert(precedence("polite").never_claims);
    ck_assert_int_eq(precedence("missing").priority, 0);
    ck_assert_int_eq(precedence("").priority, 0);
    put_class("usual", 7, ", 'globalDefault': true");
    put_class("other", 9, ", 'globalDefault': true");
    ck_assert_int_eq(precedence("").priority, 7); /* the lower, as for pods */
    ck_assert_int_eq(precedence("missing").priority, 0);
}
END_TEST

START_TEST(priority_goes_before_age_and_age_before_uid)
{
    struct precedence old = { .created_ms = 1, .uid = "b" };
    struct precedence young = { .created_ms = 2, .uid = "a" };
    struct precedence urgent = { .priority = 1, .created_ms = 3, .uid = "c" };
    struct precedence twin = { .created_ms = 1, .uid = "c" };
    ck_assert_int_lt(precedence_compare(&old, &young), 0);
    ck_assert_int_lt(precedence_compare(&urgent, &old), 0);
    ck_assert_int_gt(precedence_compare(&young, &urgent), 0);
    ck_assert_int_lt(precedence_compare(&old, &twin), 0);
    ck_assert_int_eq(precedence_compare(&old, &old), 0);
}
END_TEST

/* ---- planners that misbehave ---- */

enum { TIME_LIMIT_MS = 2000, KILL_MS = 2000 }; /* planner.timeoutSeconds, and its slack */

static struct embedded *server;
static struct controller *controller;
static char script[] = "/tmp/heterotrain-fake-XXXXXX";

static void put(json_t *object)
{
    struct het_error err = { 0 };
    ck_assert_msg(embedded_put(server, object, &err) == 0, "%s", err.message);
}

/* Jobs with seed 1 are answered; 2: their planner hangs, 3: it dies, 4: it prints
 * rubbish.
 */
static void setup_planners(void)
{
    signal(SIGPIPE, SIG_IGN);
    strcpy(script + strlen(script) - 6, "XXXXXX");
    int fd = mkstemp(script);
    ck_assert_int_ge(fd, 0);
    FILE *file = fdopen(fd, "w");
    const char *hetplan = getenv("HETPLAN");
    fprintf(file,
            "#!/bin/bash\nread -r question\ncase $question in\n"
            "*'\"seed\":2'*) exec sleep 1000 ;;\n*'\"seed\":3'*) kill -SEGV $$ ;;\n"
            "*'\"seed\":4'*) echo rubbish; exit 0 ;;\nesac\n"
            "printf '%%s' \"$question\" | %s plan -\n",
            hetplan ? hetplan : "build/hetplan");
    fclose(file);
    ck_assert_int_eq(chmod(script, 0700), 0);

    server = embedded_new(1);
    static struct settings settings; /* a script is no program that can be confined */
    settings = *settings_default();
    settings.planner.confinement = PLANNER_UNCONFINED;
    struct controller_config config = { .planner = script,
                                        .settings = &settings,
                                        .seed = 1 };
    struct het_error err = { 0 };
    controller = controller_new(embedded_transport(server), &config, &err);
    ck_assert_msg(controller != NULL, "%s", err.message);
    for (int i = 0; i < 4; i++)
        put(quoted("{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'n-%d', "
                   "'labels': {'nvidia.com/gpu.product': 'NVIDIA-A100-SXM4-40GB'}}, "
                   "'status': {'allocatable': {'nvidia.com/gpu': '2', 'cpu': '64', "
                   "'memory': '256Gi', 'pods': '110'}, 'conditions': [{'type': 'Ready', "
                   "'status': 'True'}]}}",
                   i));
    put(quoted("{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'ClusterModelProfile', "
               "'metadata': {'name': 'p'}, 'spec': {'model': {'name': 'p', 'precision': "
               "'BF16', 'optimizer': 'Adam', 'sequenceLength': 128}, 'layerGroups': "
               "[{'name': 'layer', 'count': 4, 'parameterBytes': 1000000, "
               "'activationOutputBytes': 1000000}], 'gpuTypes': [{'name': "
               "'A100-SXM4-40GB', 'memoryMiB': 40960, 'measurements': [{'layerGroup': "
               "'layer', 'tensorParallel': 1, 'microBatchSize': 1, "
               "'forwardMicroseconds': 1000, 'backwardMicroseconds': 2000, "
               "'activationBytes': 100000000}]}]}}"));
}

static void teardown_planners(void)
{
    controller_free(controller);
    embedded_free(server);
    unlink(script);
}

static void put_job(const char *ns, const char *name, int planner_seed)
{
    put(make_restricted(
        quoted("{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'HeteroTrainingJob', "
               "'metadata': {'name': '%s', 'namespace': '%s'}, 'spec': {'model': "
               "{'profileRef': {'kind': 'ClusterModelProfile', 'name': 'p'}}, "
               "'training': {'globalBatchSize': 8}, 'resources': {'minGPUs': 2, "
               "'maxGPUs': 2}, 'planner': {'seed': %d, 'timeoutSeconds': %d}, "
               "'podTemplate': {'spec': {'containers': [{'name': 'trainer', 'image': "
               "'train:1'}]}}}}",
               name, ns, planner_seed, TIME_LIMIT_MS / 1000)));
}

/* Does what is due, until nothing is and no planner has said anything for 200 ms of real
 * time; a good one takes a few, on an idle machine. The clock stands still. */
static void settle(void)
{
    for (int quiet = 0; quiet < 20;) {
        int64_t now_ms = embedded_now_ms(server);
        size_t planners = controller_planners(controller);
        controller_step(controller, now_ms, now_ms);
        controller_poll(controller, 0);
        if (planners)
            controller_poll_planners(controller, 10);
        bool is_over = controller_planners(controller) == planners &&
                       controller_next_ms(controller) > now_ms;
        quiet = !is_over ? 0 : planners ? quiet + 1 : 20;
    }
}

static void advance(int64_t by_ms)
{
    int64_t until_ms = embedded_now_ms(server) + by_ms;
    while (embedded_now_ms(server) < until_ms) {
        embedded_advance(server, embedded_now_ms(server) + 500);
        settle();
    }
}

static const char *reason(const char *ns, const char *name, const char *type)
{
    const json_t *job = embedded_find(server, "heterotrainingjobs", ns, name);
    return object_text(object_find(object_at(job, "status.conditions"), "type", type),
                       "reason");
}

START_TEST(planner_that_hangs_delays_others_by_its_time_limit_at_most)
{
    put_job("a", "hangs", 2);
    settle();
    advance(1000);
    put_job("b", "good", 1);
    advance(500);
    ck_assert_str_eq(reason("b", "good", "PlanFeasible"), "Planning");
    advance(TIME_LIMIT_MS + KILL_MS);
    ck_assert_str_eq(reason("b", "good", "PlanFeasible"), "PlanComputed");
    ck_assert_str_eq(reason("a", "hangs", "PlanFeasible"), "PlannerFailed");
    /* Known by then: nobody waits for it any more, though it is asked again. */
    put_job("b", "next", 1);
    advance(1000);
    ck_assert_str_eq(reason("b", "next", "PlanFeasible"), "PlanComputed");
}
END_TEST

START_TEST(planner_that_dies_or_prints_rubbish_delays_nobody)
{
    put_job("a", "dies", 3);
    put_job("a", "raves", 4);
    settle();
    advance(1000);
    put_job("b", "good", 1);
    advance(500);
    ck_assert_str_eq(reason("b", "good", "PlanFeasible"), "PlanComputed");
    ck_assert_str_eq(reason("a", "dies", "PlanFeasible"), "PlannerFailed");
    ck_assert_str_eq(reason("a", "raves", "PlanFeasible"), "PlannerFailed");
}
END_TEST

START_TEST(many_jobs_that_hang_delay_another_namespace_by_two_time_limits_at_most)
{
    for (int i = 0; i < 12; i++) {
        auto_free char *name = xasprintf("hangs-%d", i);
        put_job("flood", name, 2);
    }
    settle();
    advance(1000);
    put_job("b", "good", 1);
    /* One limit until it may go before them, one until a planner is free. */
    advance(2 * (TIME_LIMIT_MS + KILL_MS) + 1000);
    ck_assert_str_eq(reason("b", "good", "PlanFeasible"), "PlanComputed");
}
END_TEST

Suite *test_precedence_suite(void)
{
    Suite *suite = suite_create("precedence");
    TCase *order = tcase_create("order");
    tcase_add_checked_fixture(order, setup_store, teardown_store);
    tcase_add_test(order, class_of_a_job_gives_its_priority);
    tcase_add_test(order, priority_goes_before_age_and_age_before_uid);
    suite_add_tcase(suite, order);

    TCase *planners = tcase_create("planners");
    tcase_add_checked_fixture(planners, setup_planners, teardown_planners);
    tcase_add_test(planners, planner_that_hangs_delays_others_by_its_time_limit_at_most);
    tcase_add_test(planners, planner_that_dies_or_prints_rubbish_delays_nobody);
    tcase_add_test(
        planners, many_jobs_that_hang_delay_another_namespace_by_two_time_limits_at_most);
    suite_add_tcase(suite, planners);
    return suite;
}
