#include "tests/controller/world.h"

#include <check.h>
#include <string.h>

#define GPU "nvidia.com/gpu"

static struct world *world;

/* The quota of the job's queue: `nominal` GPUs, of which `used` are reserved. */
static void set_quota(int nominal, int used)
{
    world_put(world, &kube_cluster_queue,
              quoted("{'metadata': {'name': 'cq'}, 'spec': {'resourceGroups': "
                     "[{'coveredResources': ['" GPU "'], 'flavors': [{'name': 'f', "
                     "'resources': [{'name': '" GPU "', 'nominalQuota': '%d'}]}]}]}, "
                     "'status': {'flavorsReservation': [{'name': 'f', 'resources': "
                     "[{'name': '" GPU "', 'total': '%d'}]}]}}",
                     nominal, used));
}

static void setup(void)
{
    world = world_of("a:4 b:4");
    world->kueue = KUEUE_PRESENT;
    world_put(world, &kube_resource_flavor,
              quoted("{'metadata': {'name': 'f'}, 'spec': {'nodeLabels': {}}}"));
    world_put(world, &kube_local_queue,
              quoted("{'metadata': {'name': 'lq', 'namespace': 'ns'}, 'spec': "
                     "{'clusterQueue': 'cq'}}"));
    set_quota(8, 0);
    world_job(world, "{'podTemplate': {'metadata': {'labels': "
                     "{'kueue.x-k8s.io/queue-name': 'lq'}}}}");
}

static void teardown(void)
{
    world_free(world);
}

/* What Kueue's webhook does to a pod that was created, and what it does when it admits.
 */
static void manage(const char *name, bool is_admitted)
{
    json_t *pod = world_copy(world, &kube_pod, "ns", name);
    json_object_set_new(json_object_get(json_object_get(pod, "metadata"), "labels"),
                        KUEUE_LABEL_MANAGED, json_string("true"));
    json_object_set_new(
        json_object_get(pod, "spec"), "schedulingGates",
        quoted(is_admitted ? "[]" : "[{'name': '%s'}]", "kueue.x-k8s.io/admission"));
    world_put(world, &kube_pod, pod);
}

/* The Workload of job-1: two pods with 4 GPUs each. */
static void put_workload(const char *conditions)
{
    world_put(
        world, &kube_workload,
        quoted("{'metadata': {'name': 'job-1', 'namespace': 'ns', 'ownerReferences': "
               "[{'kind': 'Pod', 'name': 'job-1-0', 'uid': '%s'}]}, 'status': "
               "{'conditions': [%s], 'admission': {'podSetAssignments': [{'flavors': "
               "{'" GPU "': 'f'}, 'resourceUsage': {'" GPU "': '8'}}]}}}",
               kube_uid(store_find(world->store, &kube_pod, "ns", "job-1-0")),
               conditions));
}

#define RESERVED "{'type': 'QuotaReserved', 'status': 'True'}"
#define PREEMPTED                                                                        \
    RESERVED ", {'type': 'Evicted', 'status': 'True', 'reason': 'Preempted', "           \
             "'message': 'somebody more important'}"

/* Generation 1 on a:4 and b:4, created and known to Kueue. */
static void create_pods(void)
{
    world_settle(world);
    world_answer_nodes(world, "a:4 b:4", 2.0);
    world_settle(world);
    manage("job-1-0", false);
    manage("job-1-1", false);
    put_workload("{'type': 'QuotaReserved', 'status': 'False', 'message': 'no room'}");
    world_settle(world);
}

static void run_job(void)
{
    create_pods();
    manage("job-1-0", true);
    manage("job-1-1", true);
    put_workload(RESERVED);
    set_quota(8, 8);
    world_run_pods(world);
    manage("job-1-0", true);
    manage("job-1-1", true);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Running"), "AllPodsReady");
    ck_assert_str_eq(world_reason(world, "QuotaReserved"), "Admitted");
}

START_TEST(condition_says_what_the_pods_wait_for)
{
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "QuotaReserved"), "Pending");
    ck_assert_str_eq(world_message(world, "QuotaReserved"),
                     "queue lq (ClusterQueue cq) can give f nvidia.com/gpu: 8");
    world_answer_nodes(world, "a:4 b:4", 2.0);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "QuotaReserved"), "NotManaged");
    manage("job-1-0", false);
    manage("job-1-1", false);
    put_workload("{'type': 'QuotaReserved', 'status': 'False', 'message': 'no room'}");
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "QuotaReserved"), "Pending");
    ck_assert_str_eq(world_message(world, "QuotaReserved"), "no room");
    put_workload(RESERVED);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "QuotaReserved"), "QuotaReserved");
    manage("job-1-0", true);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "QuotaReserved"), "QuotaReserved");
    manage("job-1-1", true);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "QuotaReserved"), "Admitted");
}
END_TEST

START_TEST(job_that_leaves_its_queue_waits_for_none)
{
    world_settle(world);
    ck_assert_str_eq(json_string_value(world_status(world, "state")), "Planning");
    json_t *job = world_copy(world, &kube_job, "ns", "job");
    json_object_set_new(object_map(job, "spec.podTemplate.metadata"), "labels",
                        json_object());
    world_put(world, &kube_job, job);
    world_answer_nodes(world, "a:4 b:4", 2.0);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "QuotaReserved"), "NoQueue");
    ck_assert_str_eq(object_condition(world_get_job(world), "QuotaReserved"), "Unknown");
    ck_assert_str_eq(json_string_value(world_status(world, "state")), "Starting");
}
END_TEST

START_TEST(without_kueue_a_queue_label_does_nothing)
{
    world->kueue = KUEUE_ABSENT;
    world_settle(world);
    world_answer_nodes(world, "a:4 b:4", 2.0);
    world_settle(world);
    world_run_pods(world);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Running"), "AllPodsReady");
    ck_assert_str_eq(world_reason(world, "QuotaReserved"), "");
    const json_t *pod = store_find(world->store, &kube_pod, "ns", "job-1-0");
    ck_assert_str_eq(kube_label(pod, KUEUE_LABEL_GROUP), "");
    ck_assert_str_eq(kube_annotation(pod, KUEUE_ANNOTATION_ROLE), "");
}
END_TEST

START_TEST(no_quota_no_question_and_no_pods)
{
    set_quota(8, 8);
    world_settle(world);
    ck_assert_int_eq(world->plans_asked, 0);
    ck_assert_str_eq(world_reason(world, "PlanFeasible"), "NoUsableGPUs");
    ck_assert_str_eq(world_message(world, "QuotaReserved"),
                     "queue lq (ClusterQueue cq) can give f nvidia.com/gpu: 0");
    set_quota(8, 2);
    world_settle(world);
    ck_assert_int_eq(world->plans_asked, 1);
}
END_TEST

/* The queue gave to somebody else what the generation waits for. */
START_TEST(generation_that_can_not_be_admitted_any_more_is_given_up)
{
    create_pods();
    set_quota(8, 6);
    world_settle(world); /* settling */
    world->now_ms += 6000;
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "");
    ck_assert_str_eq(world_reason(world, "Failed"), "InProgress");
}
END_TEST

START_TEST(admitted_generation_stays_though_all_quota_is_in_use)
{
    run_job();
    world->now_ms += 3600000;
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-1-0@a job-1-1@b");
}
END_TEST

/* What Kueue does to a pod of an evicted Workload, before it is gone. */
static void evict(const char *name)
{
    json_t *pod = world_copy(world, &kube_pod, "ns", name);
    json_object_set_new(json_object_get(pod, "metadata"), "deletionTimestamp",
                        json_string("2026-01-01T00:00:00Z"));
    json_object_set_new(json_object_get(pod, "metadata"), "deletionGracePeriodSeconds",
                        json_integer(30));
    json_array_append_new(
        json_object_get(json_object_get(pod, "status"), "conditions"),
        quoted("{'type': 'TerminationTarget', 'status': 'True', 'reason': "
               "'WorkloadEvicted', 'message': 'somebody more important'}"));
    world_put(world, &kube_pod, pod);
}

START_TEST(preemption_is_no_restart_and_the_job_comes_back)
{
    run_job();
    put_workload(PREEMPTED);
    evict("job-1-0");
    evict("job-1-1");
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "QuotaReserved"), "Preempted");
    ck_assert_str_eq(world_reason(world, "Running"), "Evicted");
    ck_assert_ptr_nonnull(
        strstr(world_message(world, "QuotaReserved"), "somebody more important"));
    ck_assert_str_eq(
        kube_annotation(store_find(world->store, &kube_config_map, "ns", "job-plan-1"),
                        ANNOTATION_RETIRED),
        "Evicted");
    world_remove(world, &kube_pod, "ns", "job-1-0");
    world_remove(world, &kube_pod, "ns", "job-1-1");
    world_remove(world, &kube_workload, "ns", "job-1");
    world->now_ms += 60000; /* it does not come back while somebody else has the quota */
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "");
    ck_assert_str_eq(world_reason(world, "QuotaReserved"), "Preempted");
    set_quota(8, 0);
    world_settle(world); /* settling */
    ck_assert_str_eq(world_pods(world), "");
    world->now_ms += 6000;
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-2-0@ job-2-1@");
    const json_t *status = json_object_get(world_get_job(world), "status");
    ck_assert_int_eq(json_integer_value(json_object_get(status, "restarts")), 0);
}
END_TEST

/* A pod of the generation before can end by nobody: it was never bound. */
START_TEST(workload_of_a_stuck_generation_is_deleted_once_all_else_has_ended)
{
    create_pods();
    world_put(world, &kube_node,
              quoted("{'metadata': {'name': 'c', 'labels': {'nvidia.com/gpu.product': "
                     "'NVIDIA-" A100 "'}}, 'spec': {}, 'status': {'allocatable': "
                     "{'nvidia.com/gpu': '8'}, 'conditions': [{'type': 'Ready', "
                     "'status': 'True'}]}}"));
    json_t *pod = world_copy(world, &kube_pod, "ns", "job-1-0");
    json_t *metadata = json_object_get(pod, "metadata");
    json_object_set_new(metadata, "deletionTimestamp",
                        json_string("2026-01-01T00:00:00Z"));
    json_object_set_new(metadata, "deletionGracePeriodSeconds", json_integer(0));
    world_put(world, &kube_pod, pod);
    world->now_ms += 60000;
    ck_assert_ptr_nonnull(store_find(world->store, &kube_workload, "ns", "job-1"));
    world_settle(world);
    ck_assert_ptr_null(store_find(world->store, &kube_workload, "ns", "job-1"));
}
END_TEST

Suite *test_kueue_admission_suite(void)
{
    Suite *suite = suite_create("kueue_admission");
    TCase *cases = tcase_create("quota");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, condition_says_what_the_pods_wait_for);
    tcase_add_test(cases, job_that_leaves_its_queue_waits_for_none);
    tcase_add_test(cases, without_kueue_a_queue_label_does_nothing);
    tcase_add_test(cases, no_quota_no_question_and_no_pods);
    tcase_add_test(cases, generation_that_can_not_be_admitted_any_more_is_given_up);
    tcase_add_test(cases, admitted_generation_stays_though_all_quota_is_in_use);
    tcase_add_test(cases, preemption_is_no_restart_and_the_job_comes_back);
    tcase_add_test(cases,
                   workload_of_a_stuck_generation_is_deleted_once_all_else_has_ended);
    suite_add_tcase(suite, cases);
    return suite;
}
