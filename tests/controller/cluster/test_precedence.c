/* Who comes first, and that nobody waits long for those who do: jobs whose planner hangs,
 * dies or prints rubbish hold up the others for no longer than their time limit; jobs
 * with long searches for no longer than a turn. */
#include "controller/cluster/precedence.h"

#include "controller/base/object.h"
#include "controller/decision/snapshot.h"
#include "controller/operator/loop.h"
#include "controller/simulate/api_server/api_server.h"
#include "controller/simulate/api_server/condition.h"
#include "tests/controller/api.h"
#include "tests/controller/inside_planner.h"
#include "tests/controller/objects.h"

#include <check.h>
#include <inttypes.h>
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

static struct api_server *server;
static struct controller *controller;
static struct settings settings;
static char script[] = "/tmp/heterotrain-fake-XXXXXX";

static void put(json_t *object)
{
    struct het_error err = { 0 };
    ck_assert_msg(api_server_put(server, object, &err) == 0, "%s", err.message);
}

/* A server with nodes of two GPUs, and a profile. */
static void put_cluster(int nodes)
{
    server = api_server_new(1);
    for (int i = 0; i < nodes; i++)
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

    put_cluster(4);
    settings = *settings_default(); /* a script is no program that can be confined */
    settings.planner.confinement = PLANNER_UNCONFINED;
    struct controller_config config = { .planner = script,
                                        .settings = &settings,
                                        .seed = 1 };
    struct het_error err = { 0 };
    controller = controller_new(api_server_transport(server), &config, &err);
    ck_assert_msg(controller != NULL, "%s", err.message);
}

static void teardown_planners(void)
{
    controller_free(controller);
    api_server_free(server);
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
        int64_t now_ms = api_server_now_ms(server);
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
    int64_t until_ms = api_server_now_ms(server) + by_ms;
    while (api_server_now_ms(server) < until_ms) {
        api_server_advance(server, api_server_now_ms(server) + 500);
        settle();
    }
}

static const char *reason(const char *ns, const char *name, const char *type)
{
    const json_t *job = api_server_find(server, "heterotrainingjobs", ns, name);
    return object_text(object_find(object_at(job, "status.conditions"), "type", type),
                       "reason");
}

/* Its plan is there; the status may say so a little later. */
static bool has_plan(const char *ns, const char *name)
{
    auto_free char *plan = xasprintf("%s-plan-1", name);
    return api_server_find(server, "configmaps", ns, plan) != NULL;
}

START_TEST(planner_that_hangs_delays_others_by_its_time_limit_at_most)
{
    put_job("a", "hangs", 2);
    settle();
    advance(1000);
    put_job("b", "good", 1);
    advance(500);
    ck_assert(!has_plan("b", "good"));
    advance(TIME_LIMIT_MS + KILL_MS);
    ck_assert(has_plan("b", "good"));
    /* Its search was cut short: nobody waits for it any more, though it is asked again.
     */
    put_job("b", "next", 1);
    advance(1000);
    ck_assert(has_plan("b", "next"));
    ck_assert_str_eq(reason("a", "hangs", "PlanFeasible"), "Planning");
    /* With nobody waiting it has all of its wall time, for this question and the one
     * about the GPUs that are left. */
    for (int64_t gone_ms = 0; gone_ms <= 2 * PLANNER_CHILD_WALL_MS; gone_ms += 10000) {
        api_server_advance(server, api_server_now_ms(server) + 10000);
        settle();
    }
    ck_assert_str_eq(reason("a", "hangs", "PlanFeasible"), "PlannerFailed");
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
    ck_assert(has_plan("b", "good"));
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
    ck_assert(has_plan("b", "good"));
}
END_TEST

/* ---- turns ---- */

/* Searches of High effort take all the time that they are given, on a clock of their own,
 * and have a first plan after 3 s; others take 100 ms. */
enum { FIRST_MS = 3000, SHORT_MS = 100, HOGS = 30 };

static struct inside_planner inside;
static int64_t longest_ms; /* that a search was given */
static int64_t largest_effort;

static void plan_slowly(void *context, const json_t *question, int64_t timeout_ms,
                        struct planner_child_reply *ret)
{
    int64_t effort = json_integer_value(object_at(question, "job.effort"));
    inside_planner_answer(context, question, timeout_ms, ret);
    ret->took_ms = effort == EFFORT_HIGH ? timeout_ms : SHORT_MS;
    ret->first_ms = effort == EFFORT_HIGH ? FIRST_MS : 0;
    longest_ms = timeout_ms > longest_ms ? timeout_ms : longest_ms;
    largest_effort = effort > largest_effort ? effort : largest_effort;
}

static void start_with_planners(size_t planners)
{
    struct controller_config config = { .inside = plan_slowly,
                                        .inside_context = &inside,
                                        .settings = &settings,
                                        .planner = "",
                                        .planners = planners,
                                        .seed = 1 };
    struct het_error err = { 0 };
    controller_free(controller);
    controller = controller_new(api_server_transport(server), &config, &err);
    ck_assert_msg(controller != NULL, "%s", err.message);
}

static void setup_turns(void)
{
    put_cluster(40);
    inside = (struct inside_planner){ 0 };
    settings = *settings_default();
    longest_ms = largest_effort = 0;
    controller = NULL;
    start_with_planners(0);
}

static void teardown_turns(void)
{
    controller_free(controller);
    api_server_free(server);
    inside_planner_fini(&inside);
}

/* Does all that is due, and goes on by 50 ms until the time is over. */
static void advance_turns(int64_t by_ms)
{
    int64_t until_ms = api_server_now_ms(server) + by_ms;
    for (;;) {
        int64_t now_ms = api_server_now_ms(server);
        controller_step(controller, now_ms, now_ms);
        controller_poll(controller, 0);
        if (controller_next_ms(controller) <= now_ms)
            continue;
        if (now_ms >= until_ms)
            return;
        api_server_advance(server, now_ms + 50 < until_ms ? now_ms + 50 : until_ms);
    }
}

static void put_hog(const char *ns, const char *name, int timeout_s, bool is_plan_only)
{
    json_t *job = make_restricted(
        quoted("{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'HeteroTrainingJob', "
               "'metadata': {'name': '%s', 'namespace': '%s'}, 'spec': {'model': "
               "{'profileRef': {'kind': 'ClusterModelProfile', 'name': 'p'}}, "
               "'training': {'globalBatchSize': 8}, 'resources': {'minGPUs': 2, "
               "'maxGPUs': 2}, 'planner': {'effort': 'High', 'timeoutSeconds': %d}, "
               "'podTemplate': {'spec': {'containers': [{'name': 'trainer', 'image': "
               "'train:1'}]}}}}",
               name, ns, timeout_s));
    object_set(job, "spec.planOnly", json_boolean(is_plan_only));
    put(job);
}

static void put_hogs(bool are_plan_only)
{
    for (int i = 0; i < HOGS; i++) {
        auto_free char *name = xasprintf("hog-%d", i);
        put_hog("flood", name, 600, are_plan_only);
    }
}

/* Milliseconds until the job has a plan. */
static int64_t time_to_plan(const char *ns, const char *name, int64_t most_ms)
{
    for (int64_t waited_ms = 0; waited_ms <= most_ms; waited_ms += 100) {
        if (has_plan(ns, name))
            return waited_ms;
        advance_turns(100);
    }
    return INT64_MAX;
}

START_TEST(plan_only_jobs_of_another_tenant_delay_a_job_by_no_more_than_its_own_search)
{
    put_hogs(true);
    advance_turns(60000);
    put_job("b", "small", 1);
    /* A planner is kept for those who need it. */
    ck_assert_int_le(time_to_plan("b", "small", 60000), SHORT_MS + 300);
}
END_TEST

START_TEST(plan_only_search_is_cut_short_when_a_job_waits_and_asked_again)
{
    start_with_planners(1);
    put_hog("flood", "only", 40, true);
    advance_turns(100);
    put_job("b", "small", 1);
    ck_assert_int_le(time_to_plan("b", "small", 60000),
                     CONTROLLER_LATER_TURN_MS + SHORT_MS + 300);
    /* Nobody waits: it has its time, all of it. */
    advance_turns(35000);
    ck_assert_str_eq(reason("flood", "only", "PlanFeasible"), "Planning");
    /* Once more, as the other job has taken what it had planned with. */
    advance_turns(60000);
    ck_assert_str_eq(reason("flood", "only", "PlanFeasible"), "PlanOnly");
}
END_TEST

START_TEST(long_searches_of_a_tenant_delay_another_one_by_a_turn)
{
    put_hogs(false);
    advance_turns(5000);
    put_job("b", "small", 1);
    ck_assert_int_le(time_to_plan("b", "small", 600000),
                     CONTROLLER_PATIENCE_MS + CONTROLLER_TURN_MS + SHORT_MS + 500);
}
END_TEST

START_TEST(first_answer_comes_first_where_others_wait)
{
    put_hog("a", "first", 600, false);
    advance_turns(2000);
    put_job("b", "small", 1);
    /* Both have a plan when the turn is over. */
    advance_turns(CONTROLLER_TURN_MS + SHORT_MS + 500);
    ck_assert(has_plan("a", "first"));
    ck_assert(has_plan("b", "small"));
}
END_TEST

/* All have waited for longer than one waits for another, and wait for a planner. While
 * one takes GPUs, which is some writes long, the others keep their places. */
START_TEST(jobs_that_have_waited_long_are_not_looked_at_each_time_one_starts)
{
    enum { JOBS = 40, SEARCH_S = 3, LATENCY_MS = 200, DECISIONS = 28 };
    advance_turns(1000);
    api_server_set_random_faults(server, 1, 0, LATENCY_MS);
    struct controller_statistics before = controller_statistics(controller);
    for (int i = 0; i < JOBS; i++) {
        auto_free char *name = xasprintf("slow-%02d", i);
        put_hog("a", name, SEARCH_S, false);
    }
    advance_turns((int64_t)2 * JOBS * SEARCH_S * 1000);
    for (int i = 0; i < JOBS; i++) {
        auto_free char *name = xasprintf("slow-%02d", i);
        ck_assert_msg(has_plan("a", name), "%s has no plan", name);
    }
    uint64_t decisions = controller_statistics(controller).passes - before.passes;
    ck_assert_msg(decisions <= DECISIONS * JOBS, "%d jobs took %" PRIu64 " decisions",
                  JOBS, decisions);
}
END_TEST

START_TEST(administrator_caps_effort_and_time)
{
    settings.planner.most_effort = EFFORT_NORMAL;
    settings.planner.most_timeout_ms = 20000;
    put_hog("a", "hog", 600, false);
    advance_turns(5000);
    ck_assert_int_eq(largest_effort, EFFORT_NORMAL);
    ck_assert_int_eq(longest_ms, 20000);
    ck_assert(has_plan("a", "hog"));
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

    TCase *turns = tcase_create("turns");
    tcase_add_checked_fixture(turns, setup_turns, teardown_turns);
    tcase_add_test(
        turns,
        plan_only_jobs_of_another_tenant_delay_a_job_by_no_more_than_its_own_search);
    tcase_add_test(turns, plan_only_search_is_cut_short_when_a_job_waits_and_asked_again);
    tcase_add_test(turns, long_searches_of_a_tenant_delay_another_one_by_a_turn);
    tcase_add_test(turns, first_answer_comes_first_where_others_wait);
    tcase_add_test(turns,
                   jobs_that_have_waited_long_are_not_looked_at_each_time_one_starts);
    tcase_add_test(turns, administrator_caps_effort_and_time);
    suite_add_tcase(suite, turns);
    return suite;
}
