#include "controller/cluster/kueue_quota.h"

#include "tests/controller/world.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define GPU     "nvidia.com/gpu"
#define PRODUCT "nvidia.com/gpu.product"
#define QUEUE_JOB                                                                        \
    "{'podTemplate': {'metadata': {'labels': {'" KUEUE_LABEL_QUEUE "': 'lq'}}}}"

static struct world *world;

static void setup(void)
{
    world = world_new();
    world->kueue = KUEUE_PRESENT;
}

static void teardown(void)
{
    world_free(world);
}

static void put_flavor(const char *name, const char *product)
{
    world_put(world, &kube_resource_flavor,
              quoted("{'metadata': {'name': '%s'}, 'spec': {'nodeLabels': {'" PRODUCT
                     "': '%s'}}}",
                     name, product));
}

/* ClusterQueue with one flavor "f" whose quota has the fields `quota`; `used` of it is
 * reserved. */
static void put_cluster_queue(const char *name, const char *quota, int used,
                              const char *spec)
{
    world_put(world, &kube_cluster_queue,
              quoted("{'metadata': {'name': '%s'}, 'spec': {%s 'resourceGroups': "
                     "[{'coveredResources': ['cpu', '" GPU "'], 'flavors': [{'name': "
                     "'f', 'resources': [{'name': 'cpu', 'nominalQuota': '9'}, "
                     "{'name': '" GPU "', %s}]}]}]}, 'status': "
                     "{'flavorsReservation': [{'name': 'f', 'resources': [{'name': '" GPU
                     "', 'total': '%d'}]}]}}",
                     name, spec, quota, used));
}

static void put_local_queue(const char *spec)
{
    world_put(world, &kube_local_queue,
              quoted("{'metadata': {'name': 'lq', 'namespace': 'ns'}, 'spec': "
                     "{'clusterQueue': 'cq' %s}}",
                     spec));
}

static struct kueue_quota read_quota(enum kueue_presence presence)
{
    struct kueue_quota quota;
    kueue_read_quota(world->arena, world->store, presence, world_get_job(world), NULL, 0,
                     &quota);
    return quota;
}

/* GPUs that the job may have of flavor f. */
static int64_t available(void)
{
    struct kueue_quota quota = read_quota(KUEUE_PRESENT);
    ck_assert_uint_eq(quota.flavor_count, 2);
    ck_assert_str_eq(quota.flavors[1].resource, GPU);
    return quota.flavors[1].available;
}

static void put_queues(const char *quota, int used, const char *spec)
{
    world_job(world, QUEUE_JOB);
    put_flavor("f", "NVIDIA-" A100);
    put_local_queue("");
    put_cluster_queue("cq", quota, used, spec);
}

/* ---- quota ---- */

START_TEST(without_kueue_or_a_queue_label_there_is_no_quota)
{
    world_job(world, QUEUE_JOB);
    ck_assert_ptr_null(read_quota(KUEUE_ABSENT).queue);
    ck_assert_str_eq(read_quota(KUEUE_PRESENT).queue, "lq");
    world_job(world, "{}");
    ck_assert_ptr_null(read_quota(KUEUE_PRESENT).queue);
}
END_TEST

START_TEST(label_of_the_job_goes_before_that_of_its_pods)
{
    json_auto_t *job = quoted(
        "{'metadata': {'labels': {'%s': 'own'}}, 'spec': {'podTemplate': {'metadata': "
        "{'labels': {'%s': 'template'}}}}}",
        KUEUE_LABEL_QUEUE, KUEUE_LABEL_QUEUE);
    ck_assert_str_eq(kueue_queue_of(job), "own");
    json_object_del(json_object_get(job, "metadata"), "labels");
    ck_assert_str_eq(kueue_queue_of(job), "template");
}
END_TEST

START_TEST(what_others_hold_is_not_available)
{
    put_queues("'nominalQuota': 8", 3, "");
    ck_assert_int_eq(available(), 8 - 3);
    put_cluster_queue("cq", "'nominalQuota': '8'", 11, "");
    ck_assert_int_eq(available(), 0);
}
END_TEST

/* Each row: quota of cq and what is used of it, the same of another queue of the cohort,
 * what is available to cq. */
static const struct {
    const char *quota;
    int used;
    const char *others;
    int others_used;
    int64_t expected;
} cohorts[] = {
    { "'nominalQuota': 8", 2, "'nominalQuota': 4", 1, 8 + 4 - 2 - 1 },
    { "'nominalQuota': 8, 'borrowingLimit': 1", 2, "'nominalQuota': 4", 0, 8 + 1 - 2 },
    { "'nominalQuota': 8, 'borrowingLimit': 0", 8, "'nominalQuota': 4", 0, 0 },
    { "'nominalQuota': 8", 0, "'nominalQuota': 4, 'lendingLimit': 1", 0, 8 + 1 },
    /* the other one has borrowed: 9 used of its 4 */
    { "'nominalQuota': 8", 0, "'nominalQuota': 4", 9, 8 + 4 - 9 },
    /* what is not lent is ours whatever the cohort has left: 8 - 6 lent = 2 */
    { "'nominalQuota': 8, 'lendingLimit': 6", 0, "'nominalQuota': 4", 10, 2 },
    { "'nominalQuota': 0", 0, "'nominalQuota': 4", 1, 3 },
};

START_TEST(cohort_lends_within_its_limits)
{
    put_queues(cohorts[_i].quota, cohorts[_i].used, "'cohortName': 'all',");
    put_cluster_queue("other", cohorts[_i].others, cohorts[_i].others_used,
                      "'cohortName': 'all',");
    put_cluster_queue("stranger", "'nominalQuota': 100", 0, "'cohortName': 'else',");
    ck_assert_int_eq(available(), cohorts[_i].expected);
}
END_TEST

static json_t *workload(const char *conditions, int gpus)
{
    return quoted("{'metadata': {'name': 'job-1', 'namespace': 'ns'}, 'status': "
                  "{'conditions': [%s], 'admission': {'podSetAssignments': [{'flavors': "
                  "{'" GPU "': 'f'}, 'resourceUsage': {'" GPU "': '%d'}}]}}}",
                  conditions, gpus);
}

#define RESERVED "{'type': 'QuotaReserved', 'status': 'True'}"

START_TEST(own_workload_counts_as_available_until_it_is_evicted)
{
    static const char *const conditions[] = {
        RESERVED, RESERVED ", {'type': 'Evicted', 'status': 'True'}",
        "{'type': 'QuotaReserved', 'status': 'False'}"
    };
    static const int64_t expected[] = { 8 - 7 + 4, 8 - 7, 8 - 7 };
    put_queues("'nominalQuota': 8", 7, "");
    for (size_t i = 0; i < 3; i++) {
        json_auto_t *own = workload(conditions[i], 4);
        const json_t *list[] = { own };
        struct kueue_quota quota;
        kueue_read_quota(world->arena, world->store, KUEUE_PRESENT, world_get_job(world),
                         list, 1, &quota);
        ck_assert_int_eq(quota.flavors[1].available, expected[i]);
    }
}
END_TEST

START_TEST(queue_that_cannot_admit_says_why)
{
    world_job(world, QUEUE_JOB);
    ck_assert_str_eq(read_quota(KUEUE_UNREADABLE).reason, "QueuesUnreadable");
    ck_assert_str_eq(read_quota(KUEUE_PRESENT).reason, "QueueNotFound");
    ck_assert_str_eq(read_quota(KUEUE_PRESENT).message, "there is no LocalQueue ns/lq");
    put_local_queue("");
    ck_assert_str_eq(read_quota(KUEUE_PRESENT).message, "there is no ClusterQueue cq");
    put_queues("'nominalQuota': 8", 0, "");
    ck_assert_ptr_null(read_quota(KUEUE_PRESENT).reason);
    put_local_queue(", 'stopPolicy': 'Hold'");
    ck_assert_str_eq(read_quota(KUEUE_PRESENT).reason, "QueueInactive");
    ck_assert_int_eq(available(), 0);
}
END_TEST

/* ---- nodes ---- */

static struct capacity_node node(const char *name, int64_t free)
{
    return (struct capacity_node){
        .name = name, .type = A100, .resource = GPU, .allocatable = 8, .free = free
    };
}

START_TEST(kept_nodes_come_first_then_those_with_most_gpus)
{
    put_queues("'nominalQuota': 11", 0, "");
    struct capacity_node nodes[] = { node("a", 2), node("b", 8), node("c", 4),
                                     node("d", 4), node("e", 8) };
    for (size_t i = 0; i < 4; i++)
        world_node(world, nodes[i].name, "NVIDIA-" A100, 8);
    world_node(world, "e", "NVIDIA-V100", 8); /* no flavor covers it */
    struct het_rank_node kept[] = { { .node_name = "c", .gpu_count = 2 } };
    struct kueue_quota quota = read_quota(KUEUE_PRESENT);
    kueue_limit_nodes(world->arena, world->store, &quota, kept, 1, nodes, 5);
    /* c has its 2 first, b with its 8 next, then c gets the last of 11 */
    static const int64_t expected[] = { 0, 8, 3, 0, 0 };
    for (size_t i = 0; i < 5; i++)
        ck_assert_int_eq(nodes[i].free, expected[i]);
}
END_TEST

/* The node's GPUs are amd.com/gpu, of which the queue has 3. */
START_TEST(quota_of_a_node_is_that_of_the_resource_its_gpus_are_asked_for_by)
{
    world_job(world, QUEUE_JOB);
    world_node(world, "a", "NVIDIA-" A100, 8);
    world_node(world, "b", "MI300X", 8);
    struct kueue_flavor flavors[] = {
        { .name = "f", .resource = GPU, .available = 5 },
        { .name = "f", .resource = "amd.com/gpu", .available = 3 },
    };
    struct kueue_quota quota = { .queue = "lq", .flavors = flavors, .flavor_count = 2 };
    struct capacity_node nodes[] = { node("a", 8), node("b", 8) };
    nodes[1].resource = "amd.com/gpu";
    kueue_limit_nodes(world->arena, world->store, &quota, NULL, 0, nodes, 2);
    ck_assert_int_eq(nodes[0].free, 5);
    ck_assert_int_eq(nodes[1].free, 3);
}
END_TEST

START_TEST(limited_nodes_never_have_more_than_the_quota)
{
    unsigned seed = (unsigned)_i;
    for (int round = 0; round < 200; round++) {
        struct kueue_flavor flavors[3];
        struct kueue_quota quota = { .queue = "lq",
                                     .flavors = flavors,
                                     .flavor_count = 3 };
        int64_t sum = 0;
        for (size_t i = 0; i < 3; i++) {
            flavors[i] = (struct kueue_flavor){ .name = "f",
                                                .resource = GPU,
                                                .available = rand_r(&seed) % 12 };
            sum += flavors[i].available;
        }
        struct capacity_node nodes[6];
        int64_t before[6], given = 0, wanted = 0;
        static const char *const names[] = { "a", "b", "c", "d", "e", "f" };
        for (size_t i = 0; i < 6; i++) {
            nodes[i] = node(names[i], rand_r(&seed) % 9);
            before[i] = nodes[i].free;
            wanted += before[i];
        }
        struct het_rank_node kept[] = { { .node_name = "b",
                                          .gpu_count = (uint32_t)(rand_r(&seed) % 9) } };
        kueue_limit_nodes(world->arena, world->store, &quota, kept, 1, nodes, 6);
        for (size_t i = 0; i < 6; i++) {
            ck_assert_int_le(nodes[i].free, before[i]);
            given += nodes[i].free;
        }
        ck_assert_int_le(given, sum);
        if (quota.flavor_count == 1)
            ck_assert_int_eq(given, sum < wanted ? sum : wanted);
    }
}
END_TEST

/* ---- pods ---- */

static json_t *decorated(const struct kueue_quota *quota, const char *product,
                         const char *type, int64_t gpus)
{
    json_auto_t *job =
        quoted("{'metadata': {'labels': {'%s': 'high'}}}", KUEUE_LABEL_PRIORITY);
    json_auto_t *object =
        quoted("{'metadata': {'labels': {'" PRODUCT "': '%s'}}}", product);
    json_t *pod = json_object();
    kueue_decorate_pod(quota, job, object, "job-3", 5, type, gpus, pod);
    return pod;
}

START_TEST(pods_of_a_queue_are_one_group_with_a_role_for_each_shape)
{
    put_queues("'nominalQuota': 8", 0, "");
    struct kueue_quota quota = read_quota(KUEUE_PRESENT);
    json_auto_t *pod = decorated(&quota, "NVIDIA-" A100, "A100.SXM4", 8);
    ck_assert_str_eq(kube_label(pod, KUEUE_LABEL_QUEUE), "lq");
    ck_assert_str_eq(kube_label(pod, KUEUE_LABEL_GROUP), "job-3");
    ck_assert_str_eq(kube_label(pod, KUEUE_LABEL_PRIORITY), "high");
    ck_assert_str_eq(kube_annotation(pod, KUEUE_ANNOTATION_COUNT), "5");
    ck_assert_str_eq(kube_annotation(pod, KUEUE_ANNOTATION_RETRIABLE), "false");
    const json_t *selector =
        json_object_get(json_object_get(pod, "spec"), "nodeSelector");
    ck_assert_str_eq(json_string_value(json_object_get(selector, PRODUCT)),
                     "NVIDIA-" A100);
    const char *role = kube_annotation(pod, KUEUE_ANNOTATION_ROLE);
    ck_assert(!strncmp(role, "a100-sxm4-8-", strlen("a100-sxm4-8-")));
    ck_assert_uint_eq(strspn(role, "abcdefghijklmnopqrstuvwxyz0123456789-"),
                      strlen(role));

    json_auto_t *same = decorated(&quota, "NVIDIA-" A100, "A100.SXM4", 8);
    json_auto_t *fewer = decorated(&quota, "NVIDIA-" A100, "A100.SXM4", 4);
    json_auto_t *elsewhere = decorated(&quota, "spot", "A100.SXM4", 8);
    ck_assert_str_eq(role, kube_annotation(same, KUEUE_ANNOTATION_ROLE));
    ck_assert_str_ne(role, kube_annotation(fewer, KUEUE_ANNOTATION_ROLE));
    ck_assert_str_ne(role, kube_annotation(elsewhere, KUEUE_ANNOTATION_ROLE));
}
END_TEST

START_TEST(longest_role_is_a_name_that_kueue_takes)
{
    struct kueue_quota quota = { .queue = "lq" };
    json_auto_t *pod = decorated(
        &quota, "x", "__NVIDIA_RTX_6000_Ada_Generation_MIG_1g.12gb.shared_and_more_yet",
        INT64_C(1) << 31);
    const char *role = kube_annotation(pod, KUEUE_ANNOTATION_ROLE);
    ck_assert_uint_le(strlen(role), 63);
    ck_assert(role[0] >= 'a' && role[0] <= 'z');
    ck_assert_ptr_null(json_object_get(json_object_get(pod, "spec"), "nodeSelector"));
}
END_TEST

START_TEST(pods_without_a_queue_are_left_as_they_are)
{
    struct kueue_quota quota = { 0 };
    json_auto_t *pod = decorated(&quota, "x", A100, 8);
    ck_assert_uint_eq(json_object_size(pod), 0);
}
END_TEST

START_TEST(gates_of_kueue_alone_say_whether_a_pod_is_admitted)
{
    static const struct {
        const char *labels, *gates;
        enum kueue_admission expected;
    } rows[] = {
        { "", "{'name': 'heterotrain.io/placement'}", KUEUE_UNMANAGED },
        { "'kueue.x-k8s.io/managed': 'true'",
          "{'name': 'heterotrain.io/placement'}, {'name': 'kueue.x-k8s.io/admission'}",
          KUEUE_WAITING },
        { "'kueue.x-k8s.io/managed': 'true'", "{'name': 'kueue.x-k8s.io/topology'}",
          KUEUE_WAITING },
        { "'kueue.x-k8s.io/managed': 'true'", "{'name': 'heterotrain.io/placement'}",
          KUEUE_ADMITTED },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_auto_t *pod =
            quoted("{'metadata': {'labels': {%s}}, 'spec': {'schedulingGates': [%s]}}",
                   rows[i].labels, rows[i].gates);
        ck_assert_int_eq(kueue_pod_admission(pod), rows[i].expected);
    }
}
END_TEST

START_TEST(pod_is_stuck_when_only_a_finalizer_holds_it)
{
    static const struct {
        const char *metadata, *phase;
        bool expected;
    } rows[] = {
        { "", "Running", false },
        { "'deletionTimestamp': 'x', 'deletionGracePeriodSeconds': 30", "Running",
          false },
        { "'deletionTimestamp': 'x', 'deletionGracePeriodSeconds': 0", "Running", true },
        { "'deletionTimestamp': 'x', 'deletionGracePeriodSeconds': 0", "Pending", true },
        { "'deletionTimestamp': 'x', 'deletionGracePeriodSeconds': 0", "Failed", false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_auto_t *pod = quoted("{'metadata': {%s}, 'status': {'phase': '%s'}}",
                                  rows[i].metadata, rows[i].phase);
        ck_assert_int_eq(kueue_pod_is_stuck(pod), rows[i].expected);
    }
}
END_TEST

Suite *test_kueue_quota_suite(void)
{
    Suite *suite = suite_create("kueue_quota");
    TCase *cases = tcase_create("kueue");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, without_kueue_or_a_queue_label_there_is_no_quota);
    tcase_add_test(cases, label_of_the_job_goes_before_that_of_its_pods);
    tcase_add_test(cases, what_others_hold_is_not_available);
    tcase_add_loop_test(cases, cohort_lends_within_its_limits, 0,
                        (int)(sizeof cohorts / sizeof *cohorts));
    tcase_add_test(cases, own_workload_counts_as_available_until_it_is_evicted);
    tcase_add_test(cases, queue_that_cannot_admit_says_why);
    tcase_add_test(cases, kept_nodes_come_first_then_those_with_most_gpus);
    tcase_add_test(cases,
                   quota_of_a_node_is_that_of_the_resource_its_gpus_are_asked_for_by);
    tcase_add_loop_test(cases, limited_nodes_never_have_more_than_the_quota, 0, 10);
    tcase_add_test(cases, pods_of_a_queue_are_one_group_with_a_role_for_each_shape);
    tcase_add_test(cases, longest_role_is_a_name_that_kueue_takes);
    tcase_add_test(cases, pods_without_a_queue_are_left_as_they_are);
    tcase_add_test(cases, gates_of_kueue_alone_say_whether_a_pod_is_admitted);
    tcase_add_test(cases, pod_is_stuck_when_only_a_finalizer_holds_it);
    suite_add_tcase(suite, cases);
    return suite;
}
