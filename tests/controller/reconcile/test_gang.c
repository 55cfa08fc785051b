#include "controller/reconcile/gang.h"
#include "tests/controller/world.h"

#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct world *world;

static void setup(void)
{
    world = world_of("a:4 b:4 c:4");
}

static void teardown(void)
{
    world_free(world);
}

/* A job whose plan on a:4 and b:4 is written; its pods are not. */
static void commit_job(const char *spec)
{
    world_job(world, spec);
    world_settle(world);
    world_answer_nodes(world, "a:4 b:4", 2.0);
    world_step(world);
    ck_assert_ptr_nonnull(store_find(world->store, &kube_config_map, "ns", "job-plan-1"));
    ck_assert_str_eq(world_pods(world), "");
}

static json_t *pod(const char *name)
{
    return store_find(world->store, &kube_pod, "ns", name);
}

static size_t gates_of(const char *name)
{
    ck_assert_msg(pod(name) != NULL, "no pod %s", name);
    return world_gates(pod(name));
}

/* A pod of somebody else takes GPUs of a node. */
static void occupy(const char *node, int gpus)
{
    world_put(world, &kube_pod,
              quoted("{'metadata': {'name': 'foreign-%s', 'namespace': 'x'}, 'spec': "
                     "{'nodeName': '%s', 'containers': [{'name': 'c', 'resources': "
                     "{'limits': {'nvidia.com/gpu': '%d'}}}]}, 'status': {'phase': "
                     "'Running'}}",
                     node, node, gpus));
}

START_TEST(pods_are_gated_until_their_nodes_were_read_anew)
{
    commit_job("{}");
    world_step(world);
    ck_assert_uint_eq(gates_of("job-1-0"), 1);
    ck_assert_uint_eq(gates_of("job-1-1"), 1);
    ck_assert_ptr_null(store_find(world->store, &kube_service, "ns", "job"));
    ck_assert_str_eq(world_reason(world, "Placed"), "PodsPending");
    world_step(world);
    ck_assert_int_eq(world->refreshes, 2);
    ck_assert_uint_eq(gates_of("job-1-0"), 1);
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_RELEASED), "");
    world_step(world);
    ck_assert_uint_eq(gates_of("job-1-0"), 0);
    ck_assert_uint_eq(gates_of("job-1-1"), 0);
    ck_assert_ptr_nonnull(store_find(world->store, &kube_service, "ns", "job"));
    ck_assert_str_ne(world_plan_annotation(world, 1, ANNOTATION_RELEASED), "");
    ck_assert_int_eq(world->refreshes, 2);
}
END_TEST

START_TEST(a_plan_that_does_not_fit_any_more_never_holds_a_gpu)
{
    commit_job("{}");
    world_step(world);
    world->is_contested = true;
    occupy("b", 1);
    world_settle(world);
    ck_assert_uint_eq(gates_of("job-1-0"), 1);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "CapacityLost");
    world->now_ms += 5000;
    world_settle(world);
    world_answer_nodes(world, "a:4 c:4", 2.0);
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-2-0@ job-2-1@ foreign-b@b");
    ck_assert_uint_eq(gates_of("job-2-0"), 0);
}
END_TEST

START_TEST(gates_of_somebody_else_are_waited_for)
{
    commit_job("{}");
    world_step(world);
    json_t *gated = json_deep_copy(pod("job-1-1"));
    json_array_insert_new(
        json_object_get(json_object_get(gated, "spec"), "schedulingGates"), 0,
        json_pack("{s:s}", "name", "kueue.x-k8s.io/admission"));
    world_put(world, &kube_pod, gated);
    world_settle(world);
    world->now_ms += 3600000; /* a quota has no time-out of ours */
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Placed"), "WaitingForAdmission");
    ck_assert_uint_eq(gates_of("job-1-0"), 1);
    json_t *admitted = json_deep_copy(pod("job-1-1"));
    json_array_remove(
        json_object_get(json_object_get(admitted, "spec"), "schedulingGates"), 0);
    world_put(world, &kube_pod, admitted);
    world_settle(world);
    ck_assert_uint_eq(gates_of("job-1-0") + gates_of("job-1-1"), 0);
}
END_TEST

START_TEST(gates_that_a_dead_controller_left_are_lifted)
{
    commit_job("{}");
    world_step(world);
    json_t *lifted = json_deep_copy(pod("job-1-0"));
    json_object_del(json_object_get(lifted, "spec"), "schedulingGates");
    world_put(world, &kube_pod, lifted);
    world->memory = (struct job_memory){ 0 };
    world_settle(world);
    ck_assert_uint_eq(gates_of("job-1-1"), 0);
}
END_TEST

START_TEST(a_gang_that_is_not_bound_in_time_gives_its_gpus_back_and_avoids_the_node)
{
    commit_job("{'scheduling': {'gangTimeoutSeconds': 60}}");
    world_settle(world);
    json_t *bound = json_deep_copy(pod("job-1-0"));
    json_object_set_new(json_object_get(bound, "spec"), "nodeName", json_string("a"));
    world_put(world, &kube_pod, bound);
    world->now_ms += 59000;
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Placed"), "PodsPending");
    world->now_ms += 1000;
    world_settle(world);
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_RETIRED), "GangTimeout");
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_AVOID), "b");
    ck_assert_str_eq(world_pods(world), "");
    world_answer_nodes(world, "a:4 c:4", 2.0);
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-2-0@ job-2-1@");
    ck_assert_str_eq(world_plan_annotation(world, 2, ANNOTATION_TRIGGER), "GangTimeout");
}
END_TEST

enum { MANY_NODES = 80 };

/* "NAME:1 NAME:1 ..." of nodes with names as long as clouds give them. */
static char *many_nodes(void)
{
    char *list = xstrdup("");
    for (int i = 0; i < MANY_NODES; i++) {
        auto_free char *before = list;
        list = xasprintf("%s%sgke-research-heterogeneous-training-pool-eu-west4-a-%02d:1",
                         before, *before ? " " : "", i);
    }
    return list;
}

START_TEST(every_node_that_kept_a_large_gang_waiting_is_avoided_by_its_whole_name)
{
    auto_free char *nodes = many_nodes();
    world_free(world);
    world = world_of(nodes);
    world_job(world, "{'scheduling': {'gangTimeoutSeconds': 60}}");
    world_settle(world);
    world_answer_nodes(world, nodes, 2.0);
    world_settle(world);
    world->now_ms += 60000;
    world_settle(world);
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_RETIRED), "GangTimeout");
    auto_free char *list = xstrdup(world_plan_annotation(world, 1, ANNOTATION_AVOID));
    char *rest = list;
    size_t named = 0;
    for (char *name; (name = strsep(&rest, ","));) {
        ck_assert_msg(store_find(world->store, &kube_node, "", name), "\"%s\"", name);
        named++;
    }
    ck_assert_uint_eq(named, MANY_NODES);
    ck_assert_str_eq(world_reason(world, "PlanFeasible"), "NoUsableGPUs");
}
END_TEST

START_TEST(an_avoided_node_comes_back_by_itself)
{
    world_remove(world, &kube_node, "", "c");
    commit_job("{'scheduling': {'gangTimeoutSeconds': 60}}");
    world_settle(world);
    world->now_ms += 60000;
    world_settle(world); /* both nodes are left out: nothing can be asked */
    ck_assert_str_eq(world_reason(world, "PlanFeasible"), "NoUsableGPUs");
    ck_assert_int_eq(world->plans_asked, 1);
    world->now_ms += GANG_AVOID_MS;
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-2-0@ job-2-1@");
}
END_TEST

START_TEST(without_gates_pods_are_created_after_the_fit_check)
{
    commit_job("{'scheduling': {'gang': 'None', 'gangTimeoutSeconds': 60}}");
    world_step(world);
    ck_assert_int_eq(world->refreshes, 2);
    ck_assert_str_eq(world_pods(world), "");
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-1-0@ job-1-1@");
    ck_assert_uint_eq(gates_of("job-1-0"), 0);
    world->now_ms += 60000;
    world_settle(world);
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_RETIRED), "GangTimeout");
}
END_TEST

START_TEST(an_old_server_gets_no_gates)
{
    world->server_minor = 26; /* no scheduling gates */
    commit_job("{}");
    world_settle(world);
    ck_assert_int_eq(world->refreshes, 2);
    ck_assert_str_eq(world_pods(world), "job-1-0@ job-1-1@");
    ck_assert_uint_eq(gates_of("job-1-0"), 0);
}
END_TEST

/* A job on more nodes than are read, whose gated pods have just been created. */
static void commit_large_job(void)
{
    const char *nodes = "";
    for (int i = 0; i <= GANG_NODE_READS; i++) {
        const char *name = het_arena_printf(world->arena, "n%02d", i);
        world_node(world, name, "NVIDIA-" A100, 4);
        nodes = het_arena_printf(world->arena, "%s%s%s:4", nodes, i ? " " : "", name);
    }
    world_job(world, "{}");
    world_settle(world);
    world_answer_nodes(world, nodes, 2.0);
    world_step(world);
    world_step(world);
    ck_assert_uint_eq(gates_of("job-1-0"), 1);
}

static const char *version_now(void)
{
    return het_arena_printf(world->arena, "%" PRIu64, world->next_version - 1);
}

START_TEST(gates_of_a_large_gang_are_lifted_once_the_watch_has_come_to_its_mark)
{
    commit_large_job();
    world->pods_version = version_now();
    world_step(world); /* the mark is written */
    ck_assert_str_ne(kube_annotation(pod("job-1-0"), ANNOTATION_FIT_MARK), "");
    int writes = world->writes;
    for (int i = 0; i < 3; i++) {
        world->now_ms += GANG_MARK_LOOK_MS;
        world_step(world);
    }
    ck_assert_uint_eq(gates_of("job-1-0"), 1);
    ck_assert_int_eq(world->writes, writes);
    ck_assert_str_eq(world_reason(world, "Placed"), "CheckingFit");
    world->pods_version = kube_resource_version(pod("job-1-0"));
    world_step(world);
    ck_assert_uint_eq(gates_of("job-1-0"), 0);
    ck_assert_uint_eq(gates_of("job-1-4"), 0);
    ck_assert_int_eq(world->refreshes, 0);
}
END_TEST

START_TEST(what_was_bound_before_the_mark_keeps_a_large_gang_behind_its_gates)
{
    commit_large_job();
    world->pods_version = version_now();
    world_step(world);
    world->is_contested = true;
    occupy("n03", 1); /* the watch tells of it before it comes to the mark */
    world->pods_version = version_now();
    world_step(world);
    ck_assert_uint_eq(gates_of("job-1-0"), 1);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "CapacityLost");
}
END_TEST

START_TEST(all_bound_pods_are_read_if_the_watch_does_not_come_to_the_mark)
{
    commit_large_job();
    world->pods_version = version_now();
    world_step(world);
    world->now_ms += GANG_MARK_MS - 1;
    world_step(world);
    ck_assert_int_eq(world->refreshes, 0);
    world->now_ms++;
    world_step(world);
    ck_assert_int_eq(world->refreshes, 1);
    ck_assert_uint_eq(gates_of("job-1-0"), 1);
    world_step(world);
    ck_assert_uint_eq(gates_of("job-1-0"), 0);
    ck_assert_int_eq(world->refreshes, 1);
}
END_TEST

START_TEST(mark_of_before_lifts_no_gates)
{
    commit_large_job();
    world->pods_version = version_now();
    world_step(world);
    world->memory = (struct job_memory){ 0 }; /* another replica goes on */
    world->now_ms += 60000;
    world->pods_version = version_now();
    world_step(world);
    ck_assert_uint_eq(gates_of("job-1-0"), 1);
    world_step(world);
    ck_assert_uint_eq(gates_of("job-1-0"), 1);
    world->pods_version = version_now();
    world_step(world);
    ck_assert_uint_eq(gates_of("job-1-0"), 0);
}
END_TEST

/* ---- what is missing ---- */

static void place_job(void)
{
    commit_job("{}");
    world_settle(world);
    world_run_pods(world);
    world_settle(world);
}

START_TEST(pods_that_are_missing_are_looked_for_before_they_count_as_lost)
{
    place_job();
    int refreshes = world->refreshes;
    world_remove(world, &kube_pod, "ns", "job-1-0");
    world_step(world);
    ck_assert_int_eq(world->refreshes, refreshes + 1);
    ck_assert_ptr_nonnull(pod("job-1-1"));
    world_settle(world);
    ck_assert_int_eq(world->refreshes, refreshes + 1);
    ck_assert_ptr_null(pod("job-1-1"));
    ck_assert_str_eq(world_reason(world, "Placed"), "PodLost");
}
END_TEST

START_TEST(pods_that_are_found_again_were_never_lost)
{
    place_job();
    json_t *found = json_deep_copy(pod("job-1-0"));
    world_remove(world, &kube_pod, "ns", "job-1-0");
    world_step(world);
    json_object_set_new(json_object_get(found, "metadata"), "uid", json_string("again"));
    world_put(world, &kube_pod, found);
    world_settle(world);
    ck_assert_ptr_nonnull(pod("job-1-1"));
    ck_assert_str_eq(world_reason(world, "Placed"), "AllPodsScheduled");
}
END_TEST

Suite *test_gang_suite(void)
{
    Suite *suite = suite_create("gang");
    TCase *cases = tcase_create("gang");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, pods_are_gated_until_their_nodes_were_read_anew);
    tcase_add_test(cases, a_plan_that_does_not_fit_any_more_never_holds_a_gpu);
    tcase_add_test(cases, gates_of_somebody_else_are_waited_for);
    tcase_add_test(cases, gates_that_a_dead_controller_left_are_lifted);
    tcase_add_test(
        cases, a_gang_that_is_not_bound_in_time_gives_its_gpus_back_and_avoids_the_node);
    tcase_add_test(
        cases, every_node_that_kept_a_large_gang_waiting_is_avoided_by_its_whole_name);
    tcase_add_test(cases, an_avoided_node_comes_back_by_itself);
    tcase_add_test(cases, without_gates_pods_are_created_after_the_fit_check);
    tcase_add_test(cases, an_old_server_gets_no_gates);
    tcase_add_test(cases,
                   gates_of_a_large_gang_are_lifted_once_the_watch_has_come_to_its_mark);
    tcase_add_test(cases,
                   what_was_bound_before_the_mark_keeps_a_large_gang_behind_its_gates);
    tcase_add_test(cases, all_bound_pods_are_read_if_the_watch_does_not_come_to_the_mark);
    tcase_add_test(cases, mark_of_before_lifts_no_gates);
    tcase_add_test(cases, pods_that_are_missing_are_looked_for_before_they_count_as_lost);
    tcase_add_test(cases, pods_that_are_found_again_were_never_lost);
    suite_add_tcase(suite, cases);
    return suite;
}
