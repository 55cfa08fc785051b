#include "controller/base/object.h"
#include "tests/controller/world.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct world *world;

static void setup(void)
{
    world = world_new();
}

static void teardown(void)
{
    world_free(world);
}

/* The least job that is valid, with `extra` merged over its spec. */
static json_t *job_with(const char *extra)
{
    json_t *job =
        quoted("{'metadata': {'name': 'j', 'namespace': 'ns', 'uid': 'u'}, 'spec': "
               "{'model': {'profileRef': {'name': 'p'}}, 'training': "
               "{'globalBatchSize': 64}, 'podTemplate': {'spec': {'containers': []}}}}");
    json_auto_t *more = quoted("%s", extra);
    json_object_update_recursive(json_object_get(job, "spec"), more);
    return job;
}

/* `node` as a job of that spec sees it; its texts that are borrowed from the job are not
 * to be read. */
static struct capacity_node see_as(const char *job_key, const char *node,
                                   const char *extra)
{
    json_auto_t *job = job_with(extra);
    struct job_spec spec;
    const char *reason;
    struct het_error err;
    ck_assert_msg(!job_spec_parse(job, &spec, &reason, &err), "%s", err.message);
    job_spec_name_types(&spec, capacity_hardware(world->capacity));
    struct capacity_node *nodes;
    size_t count =
        capacity_view(world->capacity, world->arena, job_key, &spec, NULL, &nodes);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(nodes[i].name, node))
            return nodes[i];
    ck_abort_msg("node %s is not in the view", node);
}

static struct capacity_node see(const char *job_key, const char *node)
{
    return see_as(job_key, node, "{}");
}

/* Tells of a living job with that spec. */
static bool set_job(const char *job_key, const char *extra)
{
    json_auto_t *job = job_with(extra);
    return capacity_set_job(world->capacity, job_key, job);
}

static json_t *foreign_pod(const char *uid, const char *node, const char *phase,
                           const char *containers)
{
    return quoted("{'metadata': {'name': '%s', 'namespace': 'x', 'uid': '%s'}, 'spec': "
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

/* Pod `index` of a generation of job "j", whose uid is `job_uid`: not bound yet, and
 * pinned to `node`. */
static json_t *our_pod(const char *uid, const char *job_uid, int generation, int index,
                       const char *node, int gpus)
{
    return quoted(
        "{'metadata': {'name': 'j-%d-%d', 'namespace': 'ns', 'uid': '%s', 'labels': "
        "{'heterotrain.io/plan-revision': '%d', 'heterotrain.io/pod-index': '%d'}, "
        "'ownerReferences': [{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': "
        "'HeteroTrainingJob', 'name': 'j', 'controller': true, 'uid': '%s'}]}, "
        "'spec': {'affinity': {'nodeAffinity': "
        "{'requiredDuringSchedulingIgnoredDuringExecution': {'nodeSelectorTerms': "
        "[{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': "
        "['%s']}]}]}}}, 'containers': [{'resources': {'limits': {'nvidia.com/gpu': "
        "'%d'}}}]}, 'status': {'phase': 'Pending'}}",
        generation, index, uid, generation, index, job_uid, node, gpus);
}

static json_t *bind(json_t *pod, const char *node)
{
    json_object_set_new(json_object_get(pod, "spec"), "nodeName", json_string(node));
    return pod;
}

static json_t *plan_map_of(const char *uid, const char *job_uid, int generation,
                           const char *nodes, const char *type)
{
    auto_free char *plan = world_plan(nodes, type, 1.0);
    json_auto_t *json = json_loads(plan, 0, NULL);
    const struct het_plan *read;
    struct het_error err = { 0 };
    ck_assert_msg(!het_plan_json_read(world->arena, json, &read, &err), "%s",
                  err.message);
    json_t *map = quoted(
        "{'metadata': {'name': 'j-plan-%d', 'namespace': 'ns', 'uid': '%s', 'labels': "
        "{'heterotrain.io/job-name': 'j', 'heterotrain.io/plan-revision': '%d'}, "
        "'annotations': {'heterotrain.io/plan-hash': '%s'}, 'ownerReferences': "
        "[{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'HeteroTrainingJob', 'name': "
        "'j', 'controller': true, 'uid': '%s'}]}, 'immutable': true, 'data': {}}",
        generation, uid, generation, het_plan_json_hash(world->arena, read), job_uid);
    json_object_set_new(json_object_get(map, "data"), "plan.json", json_string(plan));
    return map;
}

static json_t *plan_map(const char *uid, const char *job_uid, int generation,
                        const char *nodes)
{
    return plan_map_of(uid, job_uid, generation, nodes, "Tesla-T4");
}

/* Puts the node with `change` merged over what world_node makes. */
static void change_node(const char *name, const char *change)
{
    json_t *node = json_deep_copy(store_find(world->store, &kube_node, "", name));
    json_auto_t *more = quoted("%s", change);
    json_object_update_recursive(node, more);
    world_put(world, &kube_node, node);
}

#define ALLOCATABLE(text) "{'status': {'allocatable': {" text "}}}"

START_TEST(what_is_not_written_like_a_plan_reserves_nothing)
{
    world_node(world, "a", "Tesla-T4", 8);
    set_job("ns/j1", "{}");
    static const char *const changes[] = {
        "{'immutable': false}",
        "{'metadata': {'name': 'j-plan-01'}}",
        "{'metadata': {'labels': {'heterotrain.io/plan-revision': '2'}}}",
        "{'metadata': {'labels': {'heterotrain.io/plan-revision': '-1'}}}",
        "{'metadata': {'labels': {'heterotrain.io/job-name': 'k'}}}",
        "{'metadata': {'annotations': {'heterotrain.io/plan-hash': 'sha256:0'}}}",
        "{'data': {'plan.json': '{}'}}",
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        json_auto_t *map = plan_map("m1", "j1", 1, "a:6");
        json_auto_t *change = quoted("%s", changes[i]);
        json_object_update_recursive(map, change);
        capacity_set_plan(world->capacity, "m1", map);
        ck_assert_msg(see("ns/other", "a").free == 8, "%s", changes[i]);
        capacity_set_plan(world->capacity, "m1", NULL);
    }
    json_auto_t *map = plan_map("m1", "j1", 1, "a:6");
    capacity_set_plan(world->capacity, "m1", map);
    ck_assert_int_eq(see("ns/other", "a").free, 2);
}
END_TEST

START_TEST(pods_that_ask_for_absurdly_many_gpus_do_not_overflow_the_sum)
{
    world_node(world, "a", "Tesla-T4", 8);
    world_node(world, "b", "Tesla-T4", 8);
    for (int i = 0; i < 3; i++) {
        char uid[8];
        snprintf(uid, sizeof uid, "%d", i);
        set_pod(foreign_pod(uid, "a", "Running", GPUS(9000000000000000000)));
    }
    ck_assert_int_eq(see("ns/j", "a").free, 0);
    ck_assert_int_eq(see("ns/j", "b").free, 8);
}
END_TEST

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
    set_job("ns/j1", "{}");
    world_node(world, "a", "Tesla-T4", 8);
    json_auto_t *map = plan_map("m1", "j1", 1, "a:6");
    ck_assert(capacity_set_plan(world->capacity, "m1", map));
    ck_assert_int_eq(see("ns/j1", "a").free, 8);
    ck_assert_int_eq(see("ns/j2", "a").free, 2);
    ck_assert_int_eq(see("other/j1", "a").free,
                     2); /* same uid, other namespace: not it */
    /* Its pods take what was reserved, not more. */
    ck_assert(!set_pod(our_pod("p1", "j1", 1, 0, "a", 6)));
    ck_assert_int_eq(see("ns/j2", "a").free, 2);
    /* Retired: the plan holds nothing, its pods still do. */
    json_auto_t *retired = json_deep_copy(map);
    json_object_set_new(json_object_get(retired, "metadata"), "annotations",
                        quoted("{'heterotrain.io/retired': 'NodeLost'}"));
    ck_assert(!capacity_set_plan(world->capacity, "m1", retired));
    ck_assert(capacity_set_pod(world->capacity, "p1", NULL));
    ck_assert_int_eq(see("ns/j2", "a").free, 8);
}
END_TEST

START_TEST(pods_of_older_generations_count_beside_the_newest_plan)
{
    set_job("ns/j1", "{}");
    world_node(world, "a", "Tesla-T4", 8);
    json_auto_t *first = plan_map("m1", "j1", 1, "a:2");
    json_auto_t *second = plan_map("m2", "j1", 2, "a:3");
    capacity_set_plan(world->capacity, "m1", first);
    set_pod(our_pod("p1", "j1", 1, 0, "a", 2));
    capacity_set_plan(world->capacity, "m2", second);
    /* 8 - 2 (old pod) - 3 (new plan) */
    ck_assert_int_eq(see("ns/j2", "a").free, 3);
    capacity_set_pod(world->capacity, "p1", NULL);
    ck_assert_int_eq(see("ns/j2", "a").free, 5);
    ck_assert(capacity_set_job(world->capacity, "ns/j1", NULL)); /* finished */
    ck_assert_int_eq(see("ns/j2", "a").free, 8);
}
END_TEST

/* What somebody can write who may create jobs and pods: as many pods as he likes, with a
 * pin to a node, the ownerReference, and without the admission policy the labels. */
START_TEST(pods_that_are_not_bound_hold_no_more_than_a_plan_says)
{
    static const struct {
        const char *what, *change;
        int64_t gpus, cpu; /* that are taken */
    } cases[] = {
        { "as it is, but greedy", "{}", 2, 20 },
        { "another name", "{'metadata': {'name': 'phantom'}}", 0, 0 },
        { "another job's name", "{'metadata': {'name': 'k-1-0'}}", 0, 0 },
        { "no labels",
          "{'metadata': {'labels': {'heterotrain.io/plan-revision': '', "
          "'heterotrain.io/pod-index': ''}}}",
          0, 0 },
        { "a place that the plan lacks",
          "{'metadata': {'name': 'j-1-1', 'labels': {'heterotrain.io/pod-index': '1'}}}",
          0, 0 },
        { "a revision without a plan",
          "{'metadata': {'name': 'j-9-0', 'labels': {'heterotrain.io/plan-revision': "
          "'9'}}}",
          0, 0 },
        { "a second name of the place",
          "{'metadata': {'name': 'j-01-00', 'labels': {'heterotrain.io/plan-revision': "
          "'01', 'heterotrain.io/pod-index': '00'}}}",
          0, 0 },
        { "another node",
          "{'spec': {'affinity': {'nodeAffinity': "
          "{'requiredDuringSchedulingIgnoredDuringExecution': {'nodeSelectorTerms': "
          "[{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': "
          "['b']}]}]}}}}}",
          0, 0 },
        { "the job's uid under another kind",
          "{'metadata': {'ownerReferences': [{'apiVersion': 'x.io/v1', 'kind': "
          "'HeteroTrainingJob', 'name': 'j', 'controller': true, 'uid': 'j1'}]}}",
          0, 0 },
        { "bound: Kubernetes gave it what it asks for",
          "{'spec': {'nodeName': 'a', 'containers': [{'resources': {'requests': "
          "{'nvidia.com/gpu': '3', 'cpu': '40'}}}]}}",
          3, 40 },
    };
    set_job("ns/j1", "{'perGPUResources': {'cpu': '10'}}");
    world_node(world, "a", "Tesla-T4", 8);
    world_node(world, "b", "Tesla-T4", 8);
    change_node("a", ALLOCATABLE("'cpu': '96'"));
    change_node("b", ALLOCATABLE("'cpu': '96'"));
    json_auto_t *map = plan_map("m1", "j1", 1, "a:2");
    json_object_set_new(object_at(map, "metadata.annotations"), "heterotrain.io/retired",
                        json_string("JobSuspended"));
    capacity_set_plan(world->capacity, "m1", map);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *pod = our_pod("p1", "j1", 1, 0, "a", 1000);
        json_auto_t *greed = quoted("{'nvidia.com/gpu': '1000', 'cpu': '100000', "
                                    "'memory': '1Pi', 'invented.io/x': '1'}");
        object_set(json_array_get(object_at(pod, "spec.containers"), 0),
                   "resources.requests", json_incref(greed));
        json_auto_t *change = quoted("%s", cases[i].change);
        json_object_update_recursive(pod, change);
        set_pod(pod);
        ck_assert_msg(see("ns/other", "a").free == 8 - cases[i].gpus, "%s: %d",
                      cases[i].what, (int)see("ns/other", "a").free);
        auto_free char *spec = xasprintf(
            "{'podTemplate': {'spec': {'containers': [{'name': 'c', 'resources': {'requests': {'cpu': '%d'}}}]}}}",
            (int)(96 - cases[i].cpu));
        ck_assert_msg(see_as("ns/other", "a", spec).free > 0, "%s", cases[i].what);
        ck_assert_int_eq(see("ns/other", "b").free, 8);
        capacity_set_pod(world->capacity, "p1", NULL);
        ck_assert_int_eq(see("ns/other", "a").free, 8);
    }
}
END_TEST

/* The pods run; their user makes the spec ask for more than there is. */
START_TEST(spec_that_outgrows_its_running_pods_reserves_what_they_have)
{
    static const char want_8[] = "{'perGPUResources': {'cpu': '8'}}";
    world_node(world, "a", "Tesla-T4", 8);
    change_node("a", ALLOCATABLE("'cpu': '64'"));
    set_job("ns/j1", "{'perGPUResources': {'cpu': '8'}}");
    json_auto_t *map = plan_map("m1", "j1", 1, "a:1");
    capacity_set_plan(world->capacity, "m1", map);
    json_t *pod = our_pod("p1", "j1", 1, 0, "a", 1);
    object_set(json_array_get(object_at(pod, "spec.containers"), 0), "resources.requests",
               quoted("{'cpu': '8'}"));
    set_pod(bind(pod, "a"));
    ck_assert_int_eq(see_as("ns/j2", "a", want_8).free, 7);
    set_job("ns/j1", "{'perGPUResources': {'cpu': '60'}}");
    ck_assert_int_eq(see_as("ns/j2", "a", want_8).free, 7);
    set_job("ns/j1", "{'perGPUResources': {'cpu': '100000'}}");
    ck_assert_int_eq(see_as("ns/j2", "a", want_8).free, 7);
    /* Nor without its pods what the node does not have at all; what it has, yes. */
    capacity_set_pod(world->capacity, "p1", NULL);
    ck_assert_int_eq(see_as("ns/j2", "a", want_8).free, 7);
    set_job("ns/j1", "{'perGPUResources': {'cpu': '60'}}");
    ck_assert_int_eq(see_as("ns/j2", "a", want_8).free, 0);
    /* The node is larger than was thought. */
    set_job("ns/j1", "{'perGPUResources': {'cpu': '100'}}");
    ck_assert_int_eq(see_as("ns/j2", "a", want_8).free, 7);
    change_node("a", ALLOCATABLE("'cpu': '104'"));
    ck_assert_int_eq(see_as("ns/j2", "a", want_8).free, 0);
}
END_TEST

/* A pod on `node` that asks for `count` resources with names of its own. */
static json_t *inventive_pod(const char *uid, const char *node, int count)
{
    json_t *pod = foreign_pod(uid, node, "Pending", GPUS(1));
    json_t *requests = json_object();
    for (int i = 0; i < count; i++) {
        auto_free char *name = xasprintf("invented.io/%s-%d", uid, i);
        json_object_set_new(requests, name, json_string("1"));
    }
    object_set(json_array_get(object_at(pod, "spec.containers"), 0), "resources.requests",
               requests);
    return pod;
}

START_TEST(invented_resources_leave_room_for_those_of_nodes)
{
    for (int i = 0; i < 12; i++) {
        auto_free char *uid = xasprintf("p%d", i);
        set_pod(inventive_pod(uid, "elsewhere", 400));
    }
    for (int i = 0; i < 300; i++) { /* one after the other, and all that stay */
        auto_free char *key = xasprintf("ns/j%d", i);
        auto_free char *spec = xasprintf(
            "{'perGPUResources': {'invented.io/a%d': '1', 'invented.io/b%d': '1'}, "
            "'resources': {'gpuTypes': [{'name': 'Tesla-T4', 'resourceName': "
            "'invented.io/c%d'}]}}",
            i, i, i);
        set_job(key, spec);
        if (i % 2)
            capacity_set_job(world->capacity, key, NULL);
    }
    ck_assert_uint_eq(capacity_size(world->capacity).resources, 0);
    world_node(world, "a", "Tesla-T4", 8);
    change_node("a", ALLOCATABLE("'rdma/hca': '4'"));
    ck_assert_int_eq(see("ns/j", "a").free, 8);
    static const char wants_rdma[] = "{'perGPUResources': {'rdma/hca': '1'}}";
    static const char wants_more[] = "{'perGPUResources': {'invented.io/a0': '1'}}";
    ck_assert_int_eq(see_as("ns/j", "a", wants_rdma).free, 4);
    ck_assert_int_eq(see_as("ns/j", "a", wants_more).free, 0);
    ck_assert_str_eq(see_as("ns/j", "a", wants_more).limited_by, "invented.io/a0");
    ck_assert_uint_eq(capacity_size(world->capacity).resources, 1);
}
END_TEST

START_TEST(what_is_held_counts_when_a_node_begins_to_offer_it)
{
    static const char wants[] = "{'perGPUResources': {'rdma/hca': '1'}}";
    world_node(world, "a", "Tesla-T4", 8);
    set_pod(
        foreign_pod("1", "a", "Running",
                    "'containers': [{'resources': {'requests': {'rdma/hca': '1'}}}]"));
    set_job("ns/j1", wants);
    json_auto_t *map = plan_map("m1", "j1", 1, "a:2");
    capacity_set_plan(world->capacity, "m1", map);
    for (int i = 0; i < 2; i++) {
        change_node("a", ALLOCATABLE("'rdma/hca': '8'"));
        /* 8 - 1 of the pod - 2 of the plan */
        ck_assert_int_eq(see_as("ns/j2", "a", wants).free, 5);
        world_node(world, "a", "Tesla-T4", 8); /* its plugin is gone for a while */
        ck_assert_int_eq(see_as("ns/j2", "a", wants).free, 0);
        ck_assert_int_eq(see("ns/j2", "a").free, 6);
    }
    capacity_set_pod(world->capacity, "1", NULL);
    ck_assert_uint_eq(capacity_size(world->capacity).resources, 0);
}
END_TEST

START_TEST(node_that_offers_thousands_of_things_offers_its_gpus_too)
{
    world_node(world, "a", "Tesla-T4", 8);
    json_t *node = json_deep_copy(store_find(world->store, &kube_node, "", "a"));
    json_t *allocatable = json_object();
    for (int i = 0; i < 5000; i++) {
        auto_free char *name = xasprintf("a.io/r%d", i);
        json_object_set_new(allocatable, name, json_string("1"));
    }
    json_object_set_new(allocatable, "nvidia.com/gpu", json_string("8"));
    object_set(node, "status.allocatable", allocatable);
    world_put(world, &kube_node, node);
    world_node(world, "b", "Tesla-T4", 8);
    change_node("b", ALLOCATABLE("'rdma/hca': '4'"));
    ck_assert_int_eq(see("ns/j", "a").free, 8);
    ck_assert_int_eq(see_as("ns/j", "b", "{'perGPUResources': {'rdma/hca': '1'}}").free,
                     4);
    ck_assert_uint_eq(capacity_size(world->capacity).resources,
                      CAPACITY_MAX_NODE_RESOURCES + 1);
}
END_TEST

/* As months of a cluster that scales, and of tenants who invent nodes, jobs and names. */
START_TEST(nothing_is_remembered_of_what_is_gone)
{
    world_node(world, "a", "Tesla-T4", 8);
    struct capacity_size before = capacity_size(world->capacity);
    for (int i = 0; i < 3000; i++) {
        auto_free char *node = xasprintf("n%d", i);
        auto_free char *bound = xasprintf("bound-%d", i);
        auto_free char *pinned = xasprintf("pinned-%d", i);
        auto_free char *job = xasprintf("u%d", i);
        auto_free char *key = xasprintf("ns/%s", job);
        auto_free char *resource =
            xasprintf("{'status': {'allocatable': {'x.io/%d': '1'}}}", i);
        auto_free char *places = xasprintf("planned-%d:1", i);
        world_node(world, node, "Tesla-T4", 8);
        change_node(node, resource);
        set_pod(inventive_pod(bound, i % 2 ? node : "nowhere", 3));
        set_pod(our_pod(pinned, job, 1, 0, i % 3 ? node : pinned, 1));
        set_job(key, "{'perGPUResources': {'x.io/1': '1'}}");
        json_auto_t *map = plan_map(job, job, 1, places);
        capacity_set_plan(world->capacity, job, map);
        /* They go in some order. */
        for (int k = 0; k < 5; k++)
            switch ((i + k) % 5) {
            case 0:
                world_remove(world, &kube_node, "", node);
                break;
            case 1:
                capacity_set_pod(world->capacity, bound, NULL);
                break;
            case 2:
                capacity_set_pod(world->capacity, pinned, NULL);
                break;
            case 3:
                capacity_set_job(world->capacity, key, NULL);
                break;
            default:
                capacity_set_plan(world->capacity, job, NULL);
                break;
            }
    }
    struct capacity_size after = capacity_size(world->capacity);
    ck_assert_uint_eq(after.nodes, before.nodes);
    ck_assert_uint_eq(after.pods, before.pods);
    ck_assert_uint_eq(after.plans, before.plans);
    ck_assert_uint_eq(after.jobs, before.jobs);
    ck_assert_uint_eq(after.resources, before.resources);
    ck_assert_int_eq(see("ns/j", "a").free, 8);
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
        json_auto_t *change = quoted("%s", changes[i]);
        json_object_update_recursive(node, change);
        world_put(world, &kube_node, node);
        struct capacity_node seen = see("ns/j", "a");
        ck_assert_int_eq(seen.free, 0);
        ck_assert_ptr_nonnull(seen.unusable);
    }
    world_node(world, "a", "Tesla-T4", 8);
}
END_TEST

START_TEST(tolerated_taints_do_not_matter)
{
    world_node(world, "a", "Tesla-T4", 8);
    json_t *node = json_deep_copy(store_find(world->store, &kube_node, "", "a"));
    json_object_set_new(json_object_get(node, "spec"), "taints",
                        quoted("[{'key': 'nvidia.com/gpu', 'value': 'present', 'effect': "
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
        auto_free char *extra = xasprintf(
            "{'podTemplate': {'spec': {'tolerations': %s}}}", cases[i].tolerations);
        ck_assert_msg(see_as("ns/j", "a", extra).free == cases[i].free, "%s", extra);
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

START_TEST(gpus_are_limited_by_what_is_left_of_all_else)
{
    static const struct {
        const char *allocatable, *foreign, *spec;
        int64_t free;
        const char *limited_by;
    } cases[] = {
        /* 8 GPUs; (32 - 4) cpu / 6 a GPU */
        { "'cpu': '32'", "'cpu': '4'", "{'perGPUResources': {'cpu': '6'}}", 4, "cpu" },
        /* the template's own 2 once: (32 - 4 - 2) / 6 */
        { "'cpu': '32'", "'cpu': '4'",
          "{'perGPUResources': {'cpu': '6'}, 'podTemplate': {'spec': {'containers': "
          "[{'name': 'a', 'resources': {'requests': {'cpu': '1500m'}}}, {'name': 'b', "
          "'resources': {'requests': {'cpu': '500m'}}}]}}}",
          4, "cpu" },
        { "'cpu': '32'", "'cpu': '5'",
          "{'perGPUResources': {'cpu': '6'}, 'podTemplate': {'spec': {'containers': "
          "[{'name': 'a', 'resources': {'requests': {'cpu': '4'}}}]}}}",
          3, "cpu" },
        { "'memory': '512Gi'", "'memory': '12Gi'",
          "{'perGPUResources': {'memory': "
          "'100Gi'}}",
          5, "memory" },
        { "'ephemeral-storage': '100G'", "'ephemeral-storage': '1G'",
          "{'perGPUResources': {'ephemeral-storage': '33G'}}", 3, "ephemeral-storage" },
        { "'rdma/hca': '2'", "'rdma/hca': '1'", "{'perGPUResources': {'rdma/hca': '1'}}",
          1, "rdma/hca" },
        /* A device that the node lacks; cpu that it does not report. */
        { "'x': '1'", "'cpu': '1'", "{'perGPUResources': {'rdma/hca': '1'}}", 0,
          "rdma/hca" },
        { "'x': '1'", "'cpu': '1'", "{'perGPUResources': {'cpu': '1'}}", 8, NULL },
        { "'pods': '1'", "'cpu': '1'", "{}", 0, "pods" },
        { "'pods': '2'", "'cpu': '1'", "{}", 8, NULL },
        /* An init container that needs more than is left keeps the pod away. */
        { "'cpu': '32'", "'cpu': '4'",
          "{'podTemplate': {'spec': {'initContainers': [{'name': 'i', 'resources': "
          "{'requests': {'cpu': '29'}}}]}}}",
          0, "cpu" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world_node(world, "a", "Tesla-T4", 8);
        auto_free char *change =
            xasprintf("{'status': {'allocatable': {%s}}}", cases[i].allocatable);
        change_node("a", change);
        auto_free char *containers = xasprintf(
            "'containers': [{'resources': {'requests': {%s}}}]", cases[i].foreign);
        set_pod(foreign_pod("1", "a", "Running", containers));
        set_job("ns/j", cases[i].spec); /* so that every resource has a name */
        struct capacity_node seen = see_as("ns/j", "a", cases[i].spec);
        ck_assert_msg(seen.free == cases[i].free, "case %zu: %d", i, (int)seen.free);
        ck_assert_pstr_eq(seen.limited_by, cases[i].limited_by);
        ck_assert_ptr_null(seen.unusable);
    }
}
END_TEST

START_TEST(plan_reserves_cpu_as_well_as_gpus)
{
    const char *spec = "{'perGPUResources': {'cpu': '8'}}";
    world_node(world, "a", "Tesla-T4", 8);
    change_node("a", ALLOCATABLE("'cpu': '64', 'pods': '10'"));
    set_job("ns/j1", spec);
    json_auto_t *map = plan_map("m1", "j1", 1, "a:2");
    capacity_set_plan(world->capacity, "m1", map);
    /* 64 - 2 * 8 left for another; the job itself has all */
    ck_assert_int_eq(see_as("ns/j2", "a", "{'perGPUResources': {'cpu': '12'}}").free, 4);
    ck_assert_int_eq(see_as("ns/j1", "a", spec).free, 8);
    /* A spec that asks for more reserves more: 64 - 2 * 20. */
    ck_assert(set_job("ns/j1", "{'perGPUResources': {'cpu': '20'}}") == false);
    ck_assert_int_eq(see_as("ns/j2", "a", "{'perGPUResources': {'cpu': '12'}}").free, 2);
    capacity_set_job(world->capacity, "ns/j1", NULL);
    ck_assert_int_eq(see_as("ns/j2", "a", "{'perGPUResources': {'cpu': '8'}}").free, 8);
}
END_TEST

START_TEST(what_other_jobs_hold_might_come_free_and_what_tenants_hold_not)
{
    const char *spec = "{'perGPUResources': {'cpu': '6'}}";
    world_node(world, "a", "Tesla-T4", 8);
    change_node("a", ALLOCATABLE("'cpu': '32'"));
    set_job("ns/j", spec);
    set_job("ns/k", "{}");
    json_auto_t *map = plan_map("m1", "k", 1, "a:8");
    capacity_set_plan(world->capacity, "m1", map);
    ck_assert_int_eq(see_as("ns/j", "a", spec).free, 0);
    ck_assert_int_eq(see_as("ns/j", "a", spec).most_free, 5); /* 32 / 6 */
    /* Nothing is free, before and after: that a claim is in vain is news all the same. */
    ck_assert(set_pod(
        foreign_pod("1", "a", "Running",
                    "'containers': [{'resources': {'requests': {'cpu': '27'}}}]")));
    ck_assert_int_eq(see_as("ns/j", "a", spec).most_free, 0);
    ck_assert_int_eq(see_as("ns/k", "a", "{}").most_free, 8);
    change_node("a", "{'spec': {'unschedulable': true}}");
    ck_assert_int_eq(see_as("ns/k", "a", "{}").most_free, 0);
}
END_TEST

START_TEST(pods_without_gpus_matter_only_where_they_cost_a_job_gpus)
{
    world_node(world, "a", "Tesla-T4", 8);
    world_put(world, &kube_node,
              quoted("{'metadata': {'name': 'plain'}, 'status': {'allocatable': "
                     "{'cpu': '64'}}}"));
    change_node("a", ALLOCATABLE("'cpu': '64'"));
    set_job("ns/j1", "{'perGPUResources': {'cpu': '6'}}");
    const char *four = "'containers': [{'resources': {'requests': {'cpu': '4'}}}]";
    /* 8 GPUs want 48: 60 and 52 are enough, 48 just so, 44 is not */
    ck_assert(!set_pod(foreign_pod("1", "a", "Running", four)));
    ck_assert(!set_pod(foreign_pod("2", "plain", "Running", four)));
    ck_assert(!set_pod(foreign_pod("3", "a", "Running", four)));
    ck_assert(!set_pod(foreign_pod("4", "a", "Running", four)));
    ck_assert(!set_pod(foreign_pod("5", "a", "Running", four)));
    ck_assert(set_pod(foreign_pod("6", "a", "Running", four)));
    ck_assert(set_pod(foreign_pod("6", "a", "Succeeded", four)));
}
END_TEST

START_TEST(resource_name_decides_what_is_seen_of_a_node)
{
    world_node(world, "a", "NVIDIA-A100-SXM4-40GB", 2);
    change_node("a", ALLOCATABLE("'nvidia.com/mig-3g.20gb': '4', 'nvidia.com/gpu': '2'"));
    static const char slices[] =
        "{'resources': {'sharedGPUPolicy': '%s', 'gpuTypes': [{'name': "
        "'A100-SXM4-40GB-MIG-3g.20gb', 'resourceName': 'nvidia.com/mig-3g.20gb'}]}}";
    struct capacity_node whole = see("ns/j", "a");
    ck_assert_str_eq(whole.resource, "nvidia.com/gpu");
    ck_assert_str_eq(whole.type, "A100-SXM4-40GB");
    ck_assert_int_eq(whole.free, 2);
    auto_free char *allowed = xasprintf(slices, "Allow");
    auto_free char *forbidden = xasprintf(slices, "Forbid");
    struct capacity_node slice = see_as("ns/j", "a", allowed);
    ck_assert_str_eq(slice.resource, "nvidia.com/mig-3g.20gb");
    ck_assert_str_eq(slice.type, "A100-SXM4-40GB-MIG-3g.20gb");
    ck_assert_int_eq(slice.free, 4);
    ck_assert_str_eq(see_as("ns/j", "a", forbidden).unusable, "SharedGPU");
    /* The same type by a resource that the node does not have. */
    ck_assert_str_eq(see_as("ns/j", "a",
                            "{'resources': {'gpuTypes': [{'name': 'A100-SXM4-40GB', "
                            "'resourceName': 'x.io/gpu'}]}}")
                         .unusable,
                     "OtherResource");
    ck_assert_str_eq(see_as("ns/j", "a",
                            "{'resources': {'gpuTypes': [{'name': 'A100', "
                            "'resourceName': 'x.io/gpu'}]}}")
                         .unusable,
                     "OtherResource");
    /* What a plan of slices reserves are slices. */
    set_job("ns/j1", allowed);
    json_auto_t *map = plan_map_of("m1", "j1", 1, "a:3", "A100-SXM4-40GB-MIG-3g.20gb");
    ck_assert(capacity_set_plan(world->capacity, "m1", map));
    ck_assert_int_eq(see_as("ns/j2", "a", allowed).free, 1);
    ck_assert_int_eq(see("ns/j2", "a").free, 2);
    ck_assert_ptr_null(capacity_find_overcommit(world->capacity));
}
END_TEST

#define LABEL(name, value) "{'metadata': {'labels': {'" name "': '" value "'}}}"

/* Why "a" cannot be used after `change`; NULL: it can. */
static const char *after(const char *change)
{
    change_node("a", change);
    return see("ns/j", "a").unusable;
}

START_TEST(gpus_that_change_their_label_and_not_themselves_are_of_several_types)
{
    world_node(world, "a", "Tesla-T4", 4);
    change_node("a",
                "{'metadata': {'uid': 'u'}, 'status': {'nodeInfo': {'bootID': '1'}}}");
    ck_assert_ptr_null(see("ns/j", "a").unusable);
    /* Another name of the same type, and none, say nothing. */
    ck_assert_ptr_null(after(LABEL("nvidia.com/gpu.product", "NVIDIA-T4")));
    ck_assert_str_eq(after(LABEL("nvidia.com/gpu.product", "")), "NoGPULabel");
    /* Who changes a label once puts it right. */
    ck_assert_ptr_null(after(LABEL("nvidia.com/gpu.product", "NVIDIA-L4")));
    ck_assert_str_eq(see("ns/j", "a").type, "L4");
    /* GPU Feature Discovery looks again, and finds the first cards first. */
    ck_assert_str_eq(after(LABEL("nvidia.com/gpu.product", "")), "NoGPULabel");
    ck_assert_str_eq(after(LABEL("nvidia.com/gpu.product", "Tesla-T4")), "MixedGPUs");
    ck_assert_int_eq(see("ns/j", "a").free, 0);
    struct capacity_place *places;
    ck_assert_uint_eq(capacity_places(world->capacity, world->arena, &places), 1);
    ck_assert_str_eq(places[0].unusable, "MixedGPUs");
    /* They stay so, whatever the label says next, unless an administrator speaks. */
    ck_assert_str_eq(after(LABEL("nvidia.com/gpu.product", "NVIDIA-A10")), "MixedGPUs");
    ck_assert_ptr_null(after(LABEL("heterotrain.io/gpu-type", "L4")));
    ck_assert_str_eq(see("ns/j", "a").type, "L4");
    ck_assert_str_eq(after(LABEL("heterotrain.io/gpu-type", "")), "MixedGPUs");
    /* Until the machine boots, or the GPUs were gone. */
    ck_assert_ptr_null(after("{'status': {'nodeInfo': {'bootID': '2'}}}"));
    ck_assert_ptr_null(after(LABEL("nvidia.com/gpu.product", "NVIDIA-L4")));
    ck_assert_str_eq(after(LABEL("nvidia.com/gpu.product", "NVIDIA-A10")), "MixedGPUs");
    ck_assert_ptr_null(after("{'status': {'nodeInfo': {'bootID': '3'}}}"));
    ck_assert_ptr_null(after(LABEL("nvidia.com/gpu.product", "NVIDIA-L4")));
    ck_assert_str_eq(after(ALLOCATABLE("'nvidia.com/gpu': '0'")), "NoGPU");
    ck_assert_ptr_null(after(ALLOCATABLE("'nvidia.com/gpu': '4'")));
    ck_assert_str_eq(see("ns/j", "a").type, "L4");
    /* A new node of the old name. */
    change_node("a", "{'metadata': {'uid': 'v', 'labels': {'nvidia.com/gpu.product': "
                     "'Tesla-T4'}}}");
    ck_assert_ptr_null(see("ns/j", "a").unusable);
}
END_TEST

START_TEST(labels_that_count_fewer_gpus_than_there_are_speak_of_one_type_of_several)
{
    world_node(world, "a", "Tesla-T4", 4);
    ck_assert_str_eq(after(LABEL("nvidia.com/gpu.count", "2")), "MixedGPUs");
    struct capacity_total *totals;
    ck_assert_uint_eq(capacity_totals(world->capacity, world->arena, &totals), 1);
    ck_assert_int_eq(totals[0].unusable, 4);
    ck_assert_ptr_null(after(LABEL("heterotrain.io/gpu-type", "Tesla-T4")));
}
END_TEST

/* A card is cut up, and made whole again. */
START_TEST(gpus_that_are_cut_anew_are_not_of_several_types)
{
    world_node(world, "a", "NVIDIA-A100-SXM4-40GB", 4);
    ck_assert_str_eq(
        after(LABEL("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb")),
        "SharedGPU");
    ck_assert_ptr_null(after(LABEL("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB")));
}
END_TEST

START_TEST(a_node_whose_gpus_no_label_names_is_seen)
{
    world_node(world, "a", "", 4);
    ck_assert_str_eq(see("ns/j", "a").unusable, "NoGPULabel");
    ck_assert_str_eq(see("ns/j", "a").type, "");
    ck_assert_int_eq(see("ns/j", "a").allocatable, 4);
}
END_TEST

/* As where the table comes after the jobs: nobody has to change them. */
START_TEST(jobs_call_types_by_the_names_of_the_table_that_holds)
{
    json_auto_t *json = quoted("{'gpuTypes': [{'name': 'Card', 'aliases': ['mine'], "
                               "'memoryGiB': 16}]}");
    const struct het_hardware *hardware;
    struct het_error err = { 0 };
    ck_assert_msg(!het_hardware_json_read(world->arena, json, het_hardware_builtin(),
                                          &hardware, &err),
                  "%s", err.message);
    world_node(world, "a", "Card", 4);
    change_node("a", ALLOCATABLE("'nvidia.com/gpu': '4', 'x.io/gpu': '4'"));
    static const char mine[] =
        "{'resources': {'gpuTypes': [{'name': 'mine', 'resourceName': 'x.io/gpu'}]}}";
    set_job("ns/j1", mine);
    json_auto_t *map = plan_map_of("m1", "j1", 1, "a:3", "Card");
    capacity_set_plan(world->capacity, "m1", map);
    capacity_set_hardware(world->capacity, hardware, world->now_ms);
    ck_assert_int_eq(see("ns/j2", "a").free, 4);
    ck_assert_int_eq(see_as("ns/j2", "a", mine).free, 1);
}
END_TEST

START_TEST(amd_nodes_need_no_resource_name)
{
    world_put(world, &kube_node,
              quoted("{'metadata': {'name': 'm', 'labels': {'amd.com/gpu.product-name': "
                     "'AMD_Instinct_MI210'}}, 'spec': {'taints': [{'key': "
                     "'amd.com/gpu', 'effect': 'NoSchedule'}]}, 'status': "
                     "{'allocatable': {'amd.com/gpu': '4'}, 'conditions': [{'type': "
                     "'Ready', 'status': 'True'}]}}"));
    set_pod(
        foreign_pod("1", "m", "Running",
                    "'containers': [{'resources': {'limits': {'amd.com/gpu': '1'}}}]"));
    struct capacity_node seen = see("ns/j", "m");
    ck_assert_str_eq(seen.resource, "amd.com/gpu");
    ck_assert_str_eq(seen.type, "MI210");
    ck_assert_int_eq(seen.free, 3);
    set_job("ns/j1", "{}");
    json_auto_t *map = plan_map("m1", "j1", 1, "m:2");
    capacity_set_plan(world->capacity, "m1", map);
    ck_assert_int_eq(see("ns/j2", "m").free, 1);
}
END_TEST

START_TEST(policies_and_selectors_keep_nodes_out)
{
    static const struct {
        const char *node, *spec, *unusable;
        int preference;
    } cases[] = {
        { "{}", "{'resources': {'nodeSelector': {'pool': 'train'}}}", "NotSelected", 0 },
        { "{'metadata': {'labels': {'pool': 'train'}}}",
          "{'resources': {'nodeSelector': {'pool': 'train'}}}", NULL, 0 },
        { "{}", "{'podTemplate': {'spec': {'nodeSelector': {'pool': 'x'}}}}",
          "NotSelected", 0 },
        { "{}",
          "{'resources': {'nodeAffinity': {'nodeSelectorTerms': [{'matchFields': [{'key': "
          "'metadata.name', 'operator': 'NotIn', 'values': ['a']}]}]}}}",
          "NotSelected", 0 },
        { "{}",
          "{'podTemplate': {'spec': {'affinity': {'nodeAffinity': "
          "{'requiredDuringSchedulingIgnoredDuringExecution': {'nodeSelectorTerms': "
          "[{'matchExpressions': [{'key': 'zone', 'operator': 'Exists'}]}]}}}}}}",
          "NotSelected", 0 },
        { "{'metadata': {'labels': {'karpenter.sh/capacity-type': 'spot'}}}",
          "{'resources': {'spotPolicy': 'Forbid'}}", "SpotForbidden", 0 },
        { "{'metadata': {'labels': {'karpenter.sh/capacity-type': 'spot'}}}",
          "{'resources': {'spotPolicy': 'PreferOnDemand'}}", NULL, -1 },
        { "{'metadata': {'labels': {'karpenter.sh/capacity-type': 'on-demand'}}}",
          "{'resources': {'spotPolicy': 'PreferOnDemand'}}", NULL, 0 },
        { "{'metadata': {'labels': {'karpenter.sh/capacity-type': 'spot'}}}", "{}", NULL,
          0 },
        { "{'metadata': {'labels': {'nvidia.com/gpu.replicas': '4'}}}", "{}", "SharedGPU",
          0 },
        { "{'metadata': {'labels': {'nvidia.com/gpu.replicas': '4'}}}",
          "{'resources': {'sharedGPUPolicy': 'Allow'}}", NULL, 0 },
        { "{'metadata': {'labels': {'nvidia.com/mig.config.state': 'pending'}}}", "{}",
          "Repartitioning", 0 },
        { "{'metadata': {'labels': {'nvidia.com/gpu.workload.config': 'vm-vgpu'}}}", "{}",
          "VirtualMachine", 0 },
        { "{'status': {'conditions': [{'type': 'Ready', 'status': 'True'}, {'type': "
          "'AcceleratedHardwareReady', 'status': 'False'}]}}",
          "{}", "GPUUnhealthy", 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world_node(world, "a", "Tesla-T4", 8);
        change_node("a", cases[i].node);
        struct capacity_node seen = see_as("ns/j", "a", cases[i].spec);
        ck_assert_pstr_eq(seen.unusable, cases[i].unusable);
        ck_assert_int_eq(seen.free, cases[i].unusable ? 0 : 8);
        ck_assert_int_eq(seen.preference, cases[i].preference);
    }
}
END_TEST

START_TEST(node_that_says_that_it_goes_is_leaving_whatever_is_tolerated)
{
    static const char *const notices[] = {
        "{'spec': {'taints': [{'key': 'aws-node-termination-handler/spot-itn', 'effect': "
        "'NoSchedule'}]}}",
        "{'spec': {'taints': [{'key': 'karpenter.sh/disrupted', 'effect': "
        "'NoSchedule'}]}}",
        "{'metadata': {'annotations': {'quarantineHealthEvent': '[]'}}}",
    };
    static const char tolerant[] =
        "{'podTemplate': {'spec': {'tolerations': [{'operator': 'Exists'}]}}}";
    for (size_t i = 0; i < sizeof notices / sizeof *notices; i++) {
        world_node(world, "a", "Tesla-T4", 8);
        ck_assert(!see_as("ns/j", "a", tolerant).is_leaving);
        world->now_ms += 1000;
        change_node("a", notices[i]);
        struct capacity_node seen = see_as("ns/j", "a", tolerant);
        ck_assert(seen.is_leaving);
        ck_assert_int_eq(seen.leaving_since_ms, world->now_ms);
        ck_assert_int_eq(strncmp(seen.unusable, "Leaving (", 9), 0);
        /* When it was announced stays when it was announced. */
        int64_t since = world->now_ms;
        world->now_ms += 1000;
        change_node("a", "{'metadata': {'labels': {'x': 'y'}}}");
        ck_assert_int_eq(see_as("ns/j", "a", tolerant).leaving_since_ms, since);
    }
}
END_TEST

START_TEST(settings_say_what_is_unhealthy_leaving_and_spot)
{
    json_auto_t *json = quoted(
        "{'unhealthyNodeConditions': [{'type': 'Hot', 'status': 'True'}], "
        "'leavingTaints': ['bye'], 'spotLabels': [{'key': 'cheap', 'value': 'yes'}]}");
    static struct settings settings;
    struct het_error err;
    ck_assert_int_eq(settings_parse(world->arena, json, &settings, &err), 0);
    world_node(world, "a", "Tesla-T4", 8);
    change_node("a", "{'status': {'conditions': [{'type': 'Ready', 'status': 'True'}, "
                     "{'type': 'Hot', 'status': 'True'}]}, 'metadata': {'labels': "
                     "{'cheap': 'yes'}}, 'spec': {'taints': [{'key': 'bye', 'effect': "
                     "'PreferNoSchedule'}]}}");
    ck_assert_ptr_null(see("ns/j", "a").unusable);
    capacity_set_settings(world->capacity, &settings, world->now_ms);
    struct capacity_node seen = see("ns/j", "a");
    ck_assert_str_eq(seen.unusable, "GPUUnhealthy");
    ck_assert(seen.is_leaving);
    ck_assert(seen.is_spot);
}
END_TEST

/* Our pods and plans, against a recount from nothing after each event. */
START_TEST(shares_of_jobs_equal_a_recount)
{
    unsigned seed = (unsigned)_i + 1;
    static const char *const places[] = { "a", "b" };
    static const char *const jobs[] = { "j0", "j1" };
    for (int i = 0; i < 2; i++) {
        world_node(world, places[i], "Tesla-T4", 64);
        auto_free char *key = xasprintf("ns/%s", jobs[i]);
        set_job(key, "{}");
    }
    struct {
        int gpus, place, generation;
        bool is_bound;
    } pods[2][6] = { 0 };
    int planned[2] = { 0 }, generation[2] = { 0 };
    for (int step = 0; step < 200; step++) {
        int job = rand_r(&seed) % 2, pod = rand_r(&seed) % 6;
        auto_free char *uid = xasprintf("%s-%d", jobs[job], pod);
        auto_free char *map_uid = xasprintf("%s-map", jobs[job]);
        int what = rand_r(&seed) % 4;
        if (what == 0) {
            capacity_set_pod(world->capacity, uid, NULL);
            pods[job][pod].gpus = 0;
        } else if (what < 3) {
            pods[job][pod].gpus = 1 + rand_r(&seed) % 3;
            pods[job][pod].place = rand_r(&seed) % 2;
            pods[job][pod].generation = 1 + rand_r(&seed) % 2;
            pods[job][pod].is_bound = rand_r(&seed) % 2;
            const char *place = places[pods[job][pod].place];
            json_t *object = our_pod(uid, jobs[job], pods[job][pod].generation, pod,
                                     place, pods[job][pod].gpus);
            set_pod(pods[job][pod].is_bound ? bind(object, place) : object);
        } else {
            capacity_set_plan(world->capacity, map_uid, NULL);
            planned[job] = rand_r(&seed) % 5;
            generation[job] = planned[job] ? 1 + rand_r(&seed) % 2 : -1;
            auto_free char *nodes = xasprintf("a:%d", planned[job]);
            json_auto_t *map = planned[job]
                                   ? plan_map(map_uid, jobs[job], generation[job], nodes)
                                   : NULL;
            capacity_set_plan(world->capacity, map_uid, map);
        }
        int64_t reserved[2][2] = { 0 };
        for (int j = 0; j < 2; j++)
            for (int n = 0; n < 2; n++) {
                int64_t older = 0, newest = 0, plan = n == 0 ? planned[j] : 0;
                for (int p = 0; p < 6; p++) {
                    if (!pods[j][p].gpus || pods[j][p].place != n)
                        continue;
                    /* Unbound, only the pod of the plan's one place counts. */
                    bool is_newest = pods[j][p].generation == generation[j];
                    int64_t most = is_newest && p == 0 ? plan : 0;
                    int64_t gpus = pods[j][p].gpus;
                    if (!pods[j][p].is_bound && gpus > most)
                        gpus = most;
                    *(is_newest ? &newest : &older) += gpus;
                }
                reserved[j][n] = older + (newest > plan ? newest : plan);
            }
        for (int n = 0; n < 2; n++) {
            ck_assert_int_eq(see("ns/j0", places[n]).free, 64 - reserved[1][n]);
            ck_assert_int_eq(see("ns/j1", places[n]).free, 64 - reserved[0][n]);
            ck_assert_int_eq(see("ns/other", places[n]).free,
                             64 - reserved[0][n] - reserved[1][n]);
        }
    }
}
END_TEST

Suite *test_capacity_suite(void)
{
    Suite *suite = suite_create("capacity");
    TCase *cases = tcase_create("capacity");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, what_is_not_written_like_a_plan_reserves_nothing);
    tcase_add_test(cases, pods_that_ask_for_absurdly_many_gpus_do_not_overflow_the_sum);
    tcase_add_test(cases, live_foreign_pods_take_gpus_and_finished_ones_do_not);
    tcase_add_test(cases, pod_bound_before_its_node_is_seen_counts_when_the_node_comes);
    tcase_add_test(cases, plan_reserves_its_gpus_for_its_own_job_only);
    tcase_add_test(cases, pods_of_older_generations_count_beside_the_newest_plan);
    tcase_add_test(cases, pods_that_are_not_bound_hold_no_more_than_a_plan_says);
    tcase_add_test(cases, spec_that_outgrows_its_running_pods_reserves_what_they_have);
    tcase_add_test(cases, invented_resources_leave_room_for_those_of_nodes);
    tcase_add_test(cases, what_is_held_counts_when_a_node_begins_to_offer_it);
    tcase_add_test(cases, node_that_offers_thousands_of_things_offers_its_gpus_too);
    tcase_add_test(cases, nothing_is_remembered_of_what_is_gone);
    tcase_add_test(cases, heartbeats_and_timestamps_change_nothing);
    tcase_add_test(cases,
                   unready_cordoned_tainted_and_unselected_nodes_have_nothing_free);
    tcase_add_test(cases, tolerated_taints_do_not_matter);
    tcase_add_loop_test(cases, incremental_sums_equal_a_recount, 0, 10);
    tcase_add_test(cases, gpus_are_limited_by_what_is_left_of_all_else);
    tcase_add_test(cases, plan_reserves_cpu_as_well_as_gpus);
    tcase_add_test(cases, what_other_jobs_hold_might_come_free_and_what_tenants_hold_not);
    tcase_add_test(cases, pods_without_gpus_matter_only_where_they_cost_a_job_gpus);
    tcase_add_test(cases, resource_name_decides_what_is_seen_of_a_node);
    tcase_add_test(cases,
                   gpus_that_change_their_label_and_not_themselves_are_of_several_types);
    tcase_add_test(
        cases, labels_that_count_fewer_gpus_than_there_are_speak_of_one_type_of_several);
    tcase_add_test(cases, gpus_that_are_cut_anew_are_not_of_several_types);
    tcase_add_test(cases, a_node_whose_gpus_no_label_names_is_seen);
    tcase_add_test(cases, jobs_call_types_by_the_names_of_the_table_that_holds);
    tcase_add_test(cases, amd_nodes_need_no_resource_name);
    tcase_add_test(cases, policies_and_selectors_keep_nodes_out);
    tcase_add_test(cases, node_that_says_that_it_goes_is_leaving_whatever_is_tolerated);
    tcase_add_test(cases, settings_say_what_is_unhealthy_leaving_and_spot);
    tcase_add_loop_test(cases, shares_of_jobs_equal_a_recount, 0, 10);
    suite_add_tcase(suite, cases);
    return suite;
}
