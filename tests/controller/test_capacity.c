#include "tests/controller/world.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct world *world;
static struct het_arena *arena;

static void setup(void)
{
    world = world_new();
    arena = het_arena_new();
}

static void teardown(void)
{
    het_arena_free(arena);
    world_free(world);
}

static struct capacity_node see(const char *job_key, const char *node)
{
    struct capacity_node *nodes;
    size_t count = capacity_view(world->capacity, arena, job_key, NULL, NULL, &nodes);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(nodes[i].name, node))
            return nodes[i];
    ck_abort_msg("node %s is not in the view", node);
}

static json_t *foreign_pod(const char *uid, const char *node, const char *phase,
                           const char *containers)
{
    return world_json(
        "{'metadata': {'name': '%s', 'namespace': 'x', 'uid': '%s'}, 'spec': "
        "{'nodeName': '%s', %s}, 'status': {'phase': '%s'}}",
        uid, uid, node, containers, phase);
}

#define GPUS(n) "'containers': [{'resources': {'limits': {'nvidia.com/gpu': '" #n "'}}}]"

static bool set_pod(json_t *pod)
{
    bool changed = capacity_set_pod(world->capacity, kube_uid(pod), pod);
    json_decref(pod);
    return changed;
}

/* A pod of job `uid` of namespace ns, not bound yet, pinned to `node`. */
static json_t *our_pod(const char *uid, const char *job_uid, int generation,
                       const char *node, int gpus)
{
    return world_json(
        "{'metadata': {'name': '%s', 'namespace': 'ns', 'uid': '%s', 'labels': "
        "{'heterotrain.io/plan-generation': '%d'}, 'ownerReferences': [{'kind': "
        "'HeteroTrainingJob', 'controller': true, 'uid': '%s'}]}, 'spec': {'affinity': "
        "{'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': "
        "{'nodeSelectorTerms': [{'matchFields': [{'key': 'metadata.name', 'operator': "
        "'In', 'values': ['%s']}]}]}}}, 'containers': [{'resources': {'limits': "
        "{'nvidia.com/gpu': '%d'}}}]}, 'status': {'phase': 'Pending'}}",
        uid, uid, generation, job_uid, node, gpus);
}

static json_t *plan_map(const char *uid, const char *job_uid, int generation,
                        const char *nodes)
{
    json_t *map =
        world_json("{'metadata': {'name': '%s', 'namespace': 'ns', 'uid': '%s', "
                   "'labels': {'heterotrain.io/plan-generation': '%d'}, "
                   "'ownerReferences': [{'kind': 'HeteroTrainingJob', 'controller': "
                   "true, 'uid': '%s'}]}, 'data': {}}",
                   uid, uid, generation, job_uid);
    auto_free char *plan = world_plan(nodes, "Tesla-T4", 1.0);
    json_object_set_new(json_object_get(map, "data"), "plan.json", json_string(plan));
    return map;
}

START_TEST(live_foreign_pods_take_gpus_and_finished_ones_do_not)
{
    world_node(world, "a", "Tesla-T4", 8);
    ck_assert(set_pod(foreign_pod("1", "a", "Running", GPUS(3))));
    ck_assert_int_eq(see("ns/j", "a").free, 5);
    ck_assert(
        !set_pod(foreign_pod("1", "a", "Running", GPUS(3)))); /* again: nothing new */
    ck_assert(!set_pod(foreign_pod("2", "a", "Succeeded", GPUS(2))));
    ck_assert(!set_pod(foreign_pod("3", "a", "Running", "'containers': [{}]")));
    ck_assert_int_eq(see("ns/j", "a").free, 5);
    ck_assert(set_pod(foreign_pod("1", "a", "Failed", GPUS(3))));
    ck_assert_int_eq(see("ns/j", "a").free, 8);
    ck_assert(!capacity_set_pod(world->capacity, "1", NULL));
}
END_TEST

START_TEST(pod_bound_before_its_node_is_seen_counts_when_the_node_comes)
{
    set_pod(foreign_pod("1", "a", "Running", GPUS(3)));
    world_node(world, "a", "Tesla-T4", 8);
    ck_assert_int_eq(see("ns/j", "a").free, 5);
}
END_TEST

START_TEST(plan_reserves_its_gpus_for_its_own_job_only)
{
    capacity_set_job(world->capacity, "ns/j1", true);
    world_node(world, "a", "Tesla-T4", 8);
    json_auto_t *map = plan_map("m1", "j1", 1, "a:6");
    ck_assert(capacity_set_plan(world->capacity, "m1", map));
    ck_assert_int_eq(see("ns/j1", "a").free, 8);
    ck_assert_int_eq(see("ns/j2", "a").free, 2);
    ck_assert_int_eq(see("other/j1", "a").free,
                     2); /* same uid, other namespace: not it */
    /* Its pods take what was reserved, not more. */
    ck_assert(!set_pod(our_pod("p1", "j1", 1, "a", 6)));
    ck_assert_int_eq(see("ns/j2", "a").free, 2);
    /* Retired: the plan holds nothing, its pods still do. */
    json_auto_t *retired = json_deep_copy(map);
    json_object_set_new(json_object_get(retired, "metadata"), "annotations",
                        world_json("{'heterotrain.io/retired': 'NodeLost'}"));
    ck_assert(!capacity_set_plan(world->capacity, "m1", retired));
    ck_assert(capacity_set_pod(world->capacity, "p1", NULL));
    ck_assert_int_eq(see("ns/j2", "a").free, 8);
}
END_TEST

START_TEST(pods_of_older_generations_count_beside_the_newest_plan)
{
    capacity_set_job(world->capacity, "ns/j1", true);
    world_node(world, "a", "Tesla-T4", 8);
    json_auto_t *first = plan_map("m1", "j1", 1, "a:2");
    json_auto_t *second = plan_map("m2", "j1", 2, "a:3");
    capacity_set_plan(world->capacity, "m1", first);
    set_pod(our_pod("p1", "j1", 1, "a", 2));
    capacity_set_plan(world->capacity, "m2", second);
    /* 8 - 2 (old pod) - 3 (new plan) */
    ck_assert_int_eq(see("ns/j2", "a").free, 3);
    capacity_set_pod(world->capacity, "p1", NULL);
    ck_assert_int_eq(see("ns/j2", "a").free, 5);
    ck_assert(capacity_set_job(world->capacity, "ns/j1", false)); /* finished */
    ck_assert_int_eq(see("ns/j2", "a").free, 8);
}
END_TEST

START_TEST(heartbeats_and_timestamps_change_nothing)
{
    world_node(world, "a", "Tesla-T4", 8);
    json_auto_t *node = json_deep_copy(store_find(world->store, &kube_node, "", "a"));
    json_object_set_new(json_object_get(json_object_get(node, "metadata"), "labels"),
                        "nvidia.com/gfd.timestamp", json_string("1"));
    ck_assert(!capacity_set_node(world->capacity, "a", node, 5));
    json_object_set_new(
        json_array_get(json_object_get(json_object_get(node, "status"), "conditions"), 0),
        "lastHeartbeatTime", json_string("2026-01-01T00:00:00Z"));
    ck_assert(!capacity_set_node(world->capacity, "a", node, 6));
    ck_assert(capacity_set_node(world->capacity, "a", NULL, 7));
}
END_TEST

START_TEST(unready_cordoned_tainted_and_unselected_nodes_have_nothing_free)
{
    static const char *const changes[] = {
        "{'spec': {'unschedulable': true}}",
        "{'spec': {'taints': [{'key': 'x', 'effect': 'NoSchedule'}]}}",
        "{'spec': {'taints': [{'key': 'x', 'effect': 'NoExecute'}]}}",
        "{'status': {'conditions': [{'type': 'Ready', 'status': 'False'}]}}",
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        world_node(world, "a", "Tesla-T4", 8);
        json_t *node = json_deep_copy(store_find(world->store, &kube_node, "", "a"));
        json_auto_t *change = world_json("%s", changes[i]);
        json_object_update_recursive(node, change);
        world_put(world, &kube_node, node);
        struct capacity_node seen = see("ns/j", "a");
        ck_assert_int_eq(seen.free, 0);
        ck_assert_ptr_nonnull(seen.unusable);
    }
    world_node(world, "a", "Tesla-T4", 8);
    struct capacity_node *nodes;
    json_auto_t *selector = world_json("{'pool': 'train'}");
    capacity_view(world->capacity, arena, "ns/j", selector, NULL, &nodes);
    ck_assert_str_eq(nodes[0].unusable, "NotSelected");
}
END_TEST

START_TEST(tolerated_taints_do_not_matter)
{
    world_node(world, "a", "Tesla-T4", 8);
    json_t *node = json_deep_copy(store_find(world->store, &kube_node, "", "a"));
    json_object_set_new(
        json_object_get(node, "spec"), "taints",
        world_json("[{'key': 'nvidia.com/gpu', 'value': 'present', 'effect': "
                   "'NoSchedule'}, {'key': 'team', 'value': 'red', 'effect': "
                   "'NoSchedule'}, {'key': 'y', 'effect': "
                   "'PreferNoSchedule'}]"));
    world_put(world, &kube_node, node);
    static const struct {
        const char *tolerations;
        int64_t free;
    } cases[] = {
        { "[]", 0 },
        { "[{'key': 'team', 'operator': 'Exists'}]", 8 },
        { "[{'key': 'team', 'value': 'red'}]", 8 },
        { "[{'key': 'team', 'value': 'blue'}]", 0 },
        { "[{'key': 'team', 'operator': 'Exists', 'effect': 'NoExecute'}]", 0 },
        { "[{'operator': 'Exists'}]", 8 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_auto_t *tolerations = world_json("%s", cases[i].tolerations);
        struct capacity_node *nodes;
        capacity_view(world->capacity, arena, "ns/j", NULL, tolerations, &nodes);
        ck_assert_msg(nodes[0].free == cases[i].free, "%s", cases[i].tolerations);
    }
}
END_TEST

/* Random events against a recount from nothing. */
START_TEST(incremental_sums_equal_a_recount)
{
    unsigned seed = (unsigned)_i + 1;
    static const char *const places[] = { "a", "b", "c" };
    for (int i = 0; i < 3; i++)
        world_node(world, places[i], "Tesla-T4", 64);
    int64_t foreign[3] = { 0 };
    int held[40] = { 0 }, place[40] = { 0 };
    for (int step = 0; step < 400; step++) {
        int pod = rand_r(&seed) % 40;
        char uid[16];
        snprintf(uid, sizeof uid, "u%d", pod);
        foreign[place[pod]] -= held[pod];
        held[pod] = 0;
        if (rand_r(&seed) % 3 == 0) {
            capacity_set_pod(world->capacity, uid, NULL);
        } else {
            place[pod] = rand_r(&seed) % 3;
            held[pod] = rand_r(&seed) % 2;
            foreign[place[pod]] += held[pod];
            set_pod(foreign_pod(uid, places[place[pod]], "Running",
                                held[pod] ? GPUS(1) : "'containers': [{}]"));
        }
        for (int i = 0; i < 3; i++)
            ck_assert_int_eq(see("ns/j", places[i]).free, 64 - foreign[i]);
    }
}
END_TEST

Suite *test_capacity_suite(void)
{
    Suite *suite = suite_create("capacity");
    TCase *cases = tcase_create("capacity");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, live_foreign_pods_take_gpus_and_finished_ones_do_not);
    tcase_add_test(cases, pod_bound_before_its_node_is_seen_counts_when_the_node_comes);
    tcase_add_test(cases, plan_reserves_its_gpus_for_its_own_job_only);
    tcase_add_test(cases, pods_of_older_generations_count_beside_the_newest_plan);
    tcase_add_test(cases, heartbeats_and_timestamps_change_nothing);
    tcase_add_test(cases,
                   unready_cordoned_tainted_and_unselected_nodes_have_nothing_free);
    tcase_add_test(cases, tolerated_taints_do_not_matter);
    tcase_add_loop_test(cases, incremental_sums_equal_a_recount, 0, 10);
    suite_add_tcase(suite, cases);
    return suite;
}
