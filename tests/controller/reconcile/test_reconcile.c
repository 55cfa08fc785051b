#include "controller/base/object.h"
#include "controller/cluster/plan_object.h"
#include "controller/decision/children.h"
#include "controller/decision/status.h"
#include "tests/controller/world.h"

#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct world *world;

static void setup(void)
{
    world = world_of("a:4 b:4 c:2");
}

static void teardown(void)
{
    world_free(world);
}

START_TEST(new_job_is_planned_placed_and_then_left_alone)
{
    world_run_job(world, "{}");
    ck_assert_int_eq(world->plans_asked, 1);
    ck_assert_ptr_nonnull(store_find(world->store, &kube_config_map, "ns", "job-plan-1"));
    ck_assert_ptr_nonnull(store_find(world->store, &kube_service, "ns", "job"));
    ck_assert_int_eq(json_integer_value(world_status(world, "allocatedGPUs")), 8);
    ck_assert_str_eq(world_reason(world, "Placed"), "AllPodsScheduled");
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "UpToDate");
    int writes = world->writes;
    for (int hour = 0; hour < 5; hour++) {
        world->now_ms += 3600000;
        ck_assert_uint_eq(world_step(world), 0);
    }
    ck_assert_int_eq(world->writes, writes);
}
END_TEST

/* Gives a node more labels (JSON with '). */
static void label_node(const char *name, const char *labels)
{
    json_t *node = json_deep_copy(store_find(world->store, &kube_node, "", name));
    json_auto_t *more = quoted("%s", labels);
    json_object_update(json_object_get(json_object_get(node, "metadata"), "labels"),
                       more);
    world_put(world, &kube_node, node);
}

START_TEST(pods_carry_pin_limits_environment_and_plan)
{
    label_node("a", "{'x': '', 'pool': 'train', 'free': 'yes'}");
    label_node("b", "{'y': '', 'pool': 'train', 'free': 'yes'}");
    world_job(world,
              "{'resources': {'nodeSelector': {'pool': 'train'}, 'nodeAffinity': "
              "{'nodeSelectorTerms': [{'matchExpressions': [{'key': 'free', 'operator': "
              "'In', 'values': ['yes']}]}]}}, "
              "'perGPUResources': {'cpu': '1500m', 'memory': '10Gi'}, 'podTemplate': "
              "{'spec': {'affinity': {'nodeAffinity': "
              "{'requiredDuringSchedulingIgnoredDuringExecution': {'nodeSelectorTerms': "
              "[{'matchExpressions': [{'key': 'x', 'operator': 'Exists'}]}, "
              "{'matchExpressions': [{'key': 'y', 'operator': 'Exists'}]}]}}}}}}");
    world_settle(world);
    world_answer_nodes(world, "b:2 a:4", 1.0);
    world_settle(world);
    const json_t *pod = store_find(world->store, &kube_pod, "ns", "job-1-0");
    const json_t *spec = json_object_get(pod, "spec");
    const json_t *terms =
        json_object_get(json_object_get(json_object_get(json_object_get(spec, "affinity"),
                                                        "nodeAffinity"),
                                        "requiredDuringSchedulingIgnoredDuringExecution"),
                        "nodeSelectorTerms");
    ck_assert_uint_eq(json_array_size(terms), 2);
    json_auto_t *pin =
        quoted("[{'key': 'metadata.name', 'operator': 'In', 'values': ['b']}]");
    for (size_t i = 0; i < 2; i++) {
        const json_t *term = json_array_get(terms, i);
        ck_assert(json_equal(json_object_get(term, "matchFields"), pin));
        /* nodeSelector, nodeAffinity, the template's own */
        ck_assert_uint_eq(json_array_size(json_object_get(term, "matchExpressions")), 3);
    }
    const json_t *container = json_array_get(json_object_get(spec, "containers"), 0);
    json_auto_t *resources = quoted(
        "{'requests': {'cpu': '3', 'memory': '21474836480', 'nvidia.com/gpu': '2'}, "
        "'limits': {'nvidia.com/gpu': '2'}}"); /* 2 x 1.5 cpu, 2 x 10 x 2^30 */
    ck_assert(json_equal(json_object_get(container, "resources"), resources));
    ck_assert_str_eq(json_string_value(json_object_get(spec, "hostname")), "job-1-0");
    ck_assert_str_eq(json_string_value(json_object_get(spec, "subdomain")), "job");
    ck_assert_str_eq(json_string_value(json_object_get(spec, "restartPolicy")), "Never");
    bool found = false;
    size_t i;
    json_t *variable;
    json_array_foreach (json_object_get(container, "env"), i, variable)
        found |= !strcmp(json_string_value(json_object_get(variable, "name")),
                         "PET_NPROC_PER_NODE") &&
                 !strcmp(json_string_value(json_object_get(variable, "value")), "2");
    ck_assert(found);
    ck_assert_str_eq(kube_controller_uid(pod), kube_uid(world_get_job(world)));
}
END_TEST

START_TEST(pods_ask_for_gpus_by_the_resource_that_the_job_names)
{
    world_put(world, &kube_node,
              quoted("{'metadata': {'name': 'm', 'labels': {'nvidia.com/gpu.product': "
                     "'NVIDIA-A100-SXM4-40GB'}}, 'status': {'allocatable': "
                     "{'nvidia.com/mig-3g.20gb': '4', 'rdma/hca': '8'}, "
                     "'conditions': [{'type': 'Ready', 'status': 'True'}]}}"));
    world_job(world, "{'resources': {'sharedGPUPolicy': 'Allow', 'gpuTypes': [{'name': "
                     "'A100-SXM4-40GB-MIG-3g.20gb', 'resourceName': "
                     "'nvidia.com/mig-3g.20gb'}]}, 'perGPUResources': {'rdma/hca': 2}}");
    world_settle(world);
    auto_free char *plan = world_plan("m:4", "A100-SXM4-40GB-MIG-3g.20gb", 1.0);
    world_answer(world, plan);
    world_settle(world);
    const json_t *spec =
        json_object_get(store_find(world->store, &kube_pod, "ns", "job-1-0"), "spec");
    const json_t *container = json_array_get(json_object_get(spec, "containers"), 0);
    json_auto_t *resources =
        quoted("{'requests': {'rdma/hca': '8', 'nvidia.com/mig-3g.20gb': '4'}, 'limits': "
               "{'rdma/hca': '8', 'nvidia.com/mig-3g.20gb': '4'}}");
    ck_assert(json_equal(json_object_get(container, "resources"), resources));
    ck_assert_str_eq(json_string_value(json_object_get(
                         json_array_get(json_object_get(spec, "tolerations"), 1), "key")),
                     "nvidia.com/mig-3g.20gb");
}
END_TEST

/* The question that a pass would ask. */
static json_t *take_question(const json_t *hardware, const struct settings *settings)
{
    struct snapshot_sources sources = { .store = world->store,
                                        .capacity = world->capacity,
                                        .hardware = hardware,
                                        .settings = settings,
                                        .now_ms = world->now_ms };
    struct snapshot snapshot;
    ck_assert(snapshot_take(world->arena, &sources, "ns", "job", NULL, &snapshot));
    return children_question(&snapshot);
}

/* How long the status that would be written now may wait; -1: there is none. */
static int64_t status_patience(void)
{
    struct het_arena *arena = het_arena_new();
    struct decision decision;
    int64_t patience_ms = -1;
    world_decide(world, arena, &decision);
    for (size_t i = 0; i < decision.action_count; i++)
        if (decision.actions[i].kind == ACTION_STATUS)
            patience_ms = decision.actions[i].patience_ms;
    decision_fini(&decision);
    het_arena_free(arena);
    return patience_ms;
}

START_TEST(status_of_a_step_on_the_way_may_wait_and_no_other)
{
    world_job(world, "{}");
    ck_assert_int_eq(status_patience(), STATUS_PROGRESS_MS); /* it is planned */
    world_settle(world);
    world_answer_no_plan(world, "too little");
    ck_assert_int_eq(status_patience(), 0);
    world_job(world, "{'training': {'globalBatchSize': 0}}"); /* refused */
    ck_assert_int_eq(status_patience(), 0);
}
END_TEST

START_TEST(status_that_a_job_runs_is_written_at_once)
{
    world_job(world, "{}");
    world_settle(world);
    world_answer_nodes(world, "a:4", 1);
    world_settle(world);
    world_run_pods(world);
    ck_assert_int_eq(status_patience(), 0);
}
END_TEST

/* What the job sees, with `memo` and with nothing remembered. */
static void take_twice(struct snapshot_memo *memo)
{
    struct snapshot_sources sources = { .store = world->store,
                                        .capacity = world->capacity,
                                        .now_ms = world->now_ms };
    struct snapshot anew, kept;
    ck_assert(snapshot_take(world->arena, &sources, "ns", "job", NULL, &anew));
    sources.memo = memo;
    ck_assert(snapshot_take(world->arena, &sources, "ns", "job", NULL, &kept));
    ck_assert(snapshot_is_same(&anew, &kept));
}

START_TEST(what_has_not_changed_is_not_read_again)
{
    struct snapshot_memo memo = { 0 };
    world_node(world, "c", "NVIDIA-A100-SXM4-40GB", 4);
    world_job(world, "{}");
    take_twice(&memo);
    uint64_t nodes = memo.kept.viewed;
    ck_assert_uint_gt(nodes, 1);
    take_twice(&memo);
    ck_assert_uint_eq(memo.parses, 1);
    ck_assert_uint_eq(memo.kept.viewed, nodes);
    world_node_ready(world, "c", false); /* of one node */
    take_twice(&memo);
    ck_assert_uint_eq(memo.parses, 1);
    ck_assert_uint_eq(memo.kept.viewed, nodes + 1);
    world_settle(world); /* its status is written */
    take_twice(&memo);
    ck_assert_uint_eq(memo.parses, 2);
    ck_assert_uint_eq(memo.kept.viewed, nodes + 1);
    world_node(world, "b0", "NVIDIA-A100-SXM4-40GB", 4); /* in the middle */
    take_twice(&memo);
    world_remove(world, &kube_node, "", "b0");
    take_twice(&memo);
    world_job(world, "{'resources': {'minGPUs': 1, 'spotPolicy': 'Forbid'}}");
    take_twice(&memo);
    ck_assert_uint_eq(memo.parses, 3);
    snapshot_memo_fini(&memo);
}
END_TEST

START_TEST(planner_is_told_of_levels_in_the_order_of_the_topology_keys)
{
    json_auto_t *hardware = quoted(
        "{'levels': [{'label': 'zone', 'uplinkGBs': 5}, {'label': 'rack', 'uplinkGBs': "
        "20}]}");
    label_node("a", "{'zone': 'z1', 'rack': 'r1', 'block': 'b1'}");
    world_job(world, "{}");
    json_auto_t *plain = take_question(hardware, NULL);
    json_auto_t *cluster =
        quoted("{'nodes': [{'name': 'a', 'type': 'T4', 'gpus': 4, 'levels': {'zone': "
               "'z1', 'rack': 'r1'}}], 'levels': [{'label': 'zone', 'uplinkGBs': 5}, "
               "{'label': 'rack', 'uplinkGBs': 20}]}");
    const json_t *asked = json_object_get(plain, "cluster");
    ck_assert(
        json_equal(json_object_get(asked, "levels"), json_object_get(cluster, "levels")));
    ck_assert(json_equal(
        json_object_get(json_array_get(json_object_get(asked, "nodes"), 0), "levels"),
        json_object_get(json_array_get(json_object_get(cluster, "nodes"), 0), "levels")));

    /* Those of the installation; those of the job; a key without a bandwidth. */
    static const char *const installed[] = { "rack" };
    struct settings settings = *settings_default();
    settings.topology_keys = installed;
    settings.topology_key_count = 1;
    json_auto_t *of_settings = take_question(hardware, &settings);
    json_auto_t *rack = quoted("[{'label': 'rack', 'uplinkGBs': 20}]");
    ck_assert(json_equal(
        json_object_get(json_object_get(of_settings, "cluster"), "levels"), rack));
    world_job(world, "{'planner': {'topologyKeys': ['block', 'rack', 'zone']}}");
    json_auto_t *of_job = take_question(hardware, &settings);
    json_auto_t *both = quoted("[{'label': 'rack', 'uplinkGBs': 20}, {'label': "
                               "'zone', 'uplinkGBs': 5}]");
    ck_assert(
        json_equal(json_object_get(json_object_get(of_job, "cluster"), "levels"), both));
    /* A planner takes all of it. */
    const struct het_cluster *read;
    const struct het_hardware *merged;
    struct het_error err;
    ck_assert(!het_hardware_json_read(world->arena, hardware, het_hardware_builtin(),
                                      &merged, &err));
    ck_assert_msg(!het_cluster_json_read(world->arena, json_object_get(of_job, "cluster"),
                                         merged, &read, &err),
                  "%s", err.message);
    ck_assert_uint_eq(read->level_count, 2);
}
END_TEST

START_TEST(spot_nodes_are_asked_about_last_where_the_job_prefers_others)
{
    label_node("a", "{'cloud.google.com/gke-spot': 'true'}");
    world_job(world, "{'resources': {'spotPolicy': 'PreferOnDemand'}}");
    json_auto_t *question = take_question(NULL, NULL);
    const json_t *nodes = json_object_get(json_object_get(question, "cluster"), "nodes");
    ck_assert_int_eq(
        json_integer_value(json_object_get(json_array_get(nodes, 0), "preference")), -1);
    ck_assert_ptr_null(json_object_get(json_array_get(nodes, 1), "preference"));
    const struct het_cluster *read;
    struct het_error err;
    ck_assert_msg(!het_cluster_json_read(world->arena,
                                         json_object_get(question, "cluster"),
                                         het_hardware_builtin(), &read, &err),
                  "%s", err.message);
    ck_assert_int_eq(read->nodes[0].preference, -1);
}
END_TEST

START_TEST(resources_for_each_gpu_come_on_top_of_the_containers_own)
{
    world_job(world,
              "{'perGPUResources': {'cpu': '1500m', 'memory': '10Gi'}, "
              "'podTemplate': {'spec': {'containers': [{'name': 'trainer', 'image': "
              "'x', 'resources': {'requests': {'cpu': 8, 'memory': '1Gi'}, "
              "'limits': {'cpu': '64', 'memory': '2Gi'}}}]}}}");
    world_settle(world);
    world_answer_nodes(world, "a:2", 1.0);
    world_settle(world);
    const json_t *pod = store_find(world->store, &kube_pod, "ns", "job-1-0");
    const json_t *container =
        json_array_get(json_object_get(json_object_get(pod, "spec"), "containers"), 0);
    /* cpu 8 + 2 x 1.5; memory (1 + 2 x 10) x 2^30, above its limit, which is raised. */
    json_auto_t *resources =
        quoted("{'requests': {'cpu': '11', 'memory': '22548578304', 'nvidia.com/gpu': "
               "'2'}, 'limits': {'cpu': '64', 'memory': '22548578304', "
               "'nvidia.com/gpu': '2'}}");
    ck_assert(json_equal(json_object_get(container, "resources"), resources));
}
END_TEST

START_TEST(lost_node_moves_the_job_after_a_short_wait)
{
    world_run_job(world, "{}");
    world_remove(world, &kube_node, "", "b");
    world_settle(world);
    ck_assert_int_eq(world->plans_asked, 1); /* simultaneous failures are collected */
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "NodeLost");
    world->now_ms += 5000;
    world_settle(world);
    ck_assert_int_eq(world->plans_asked, 2);
    world_answer_nodes(world, "a:4 c:2", 3.0);
    world_settle(world);
    world_run_pods(world);
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-2-0@a job-2-1@c");
    ck_assert_int_eq(json_integer_value(world_status(world, "replans")), 1);
    ck_assert_int_eq(json_integer_value(world_status(world, "restarts")), 0);
    ck_assert_str_eq(world_reason(world, "Running"), "AllPodsReady");
}
END_TEST

START_TEST(no_plan_after_a_loss_stops_the_rest_and_starts_again_by_itself)
{
    world_run_job(world, "{}");
    world_remove(world, &kube_node, "", "b");
    world_settle(world);
    world->now_ms += 5000;
    world_settle(world);
    world_answer_no_plan(world, "needs 8 GPUs");
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "");
    ck_assert_str_eq(world_reason(world, "PlanFeasible"), "NoPlanFits");
    ck_assert_int_eq(json_integer_value(world_status(world, "allocatedGPUs")), 0);

    /* The node is back: the plan fits again, but its generation never starts twice. */
    world_node(world, "b", "NVIDIA-" A100, 4);
    world_settle(world);
    world_run_pods(world);
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-2-0@a job-2-1@b");
    ck_assert_int_eq(world->plans_asked, 2);
}
END_TEST

START_TEST(not_ready_node_is_tolerated_for_its_grace)
{
    world_run_job(world, "{}");
    world_node_ready(world, "b", false);
    world->now_ms += 29000;
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-1-0@a job-1-1@b");
    ck_assert_str_ne(world_reason(world, "PlanOutdated"), "NodeNotReady");
    world_node_ready(world, "b", true);
    world->now_ms += 100000;
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-1-0@a job-1-1@b");

    world_node_ready(world, "b", false);
    world_settle(world);
    world->now_ms += 31000;
    world_settle(world);
    world_answer_nodes(world, "a:4 c:2", 3.0);
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-2-0@ job-2-1@");
}
END_TEST

START_TEST(nothing_better_is_looked_for_while_a_node_may_come_back)
{
    world_run_job(world,
                  "{'replanPolicy': {'debounceSeconds': 0, 'cooldownSeconds': 0}}");
    world_node_ready(world, "b", false);
    world_settle(world);
    world->now_ms += 20000;
    world_settle(world);
    ck_assert_int_eq(world->plans_asked, 1);
    world->now_ms += 10000; /* the grace of 30 s is over */
    world_settle(world);
    ck_assert_int_eq(world->plans_asked, 2);
}
END_TEST

START_TEST(better_plan_is_taken_only_past_the_threshold_and_after_the_waits)
{
    world_run_job(world, "{'replanPolicy': {'minImprovementPercent': 15}}");
    world_node(world, "d", "NVIDIA-" A100, 4);
    world_settle(world);
    world->now_ms += 30000; /* debounce over, cool-down of 600 s not */
    world_settle(world);
    ck_assert_int_eq(world->plans_asked, 1);
    world->now_ms += 600000;
    world_settle(world);
    ck_assert_int_eq(world->plans_asked, 2);
    world_answer_nodes(world, "a:4 b:4 c:2", 1.8); /* 2.0 / 1.8 - 1 = 11 % */
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-1-0@a job-1-1@b");
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "BelowThreshold");
    ck_assert_int_eq(json_integer_value(json_object_get(
                         world_status(world, "lastReplanDecision"), "gainPercent")),
                     11);

    world_node(world, "e", "NVIDIA-" A100, 4);
    world_settle(world);
    world->now_ms += 30000;
    world_settle(world);
    world_answer_nodes(world, "a:4 b:4 d:4 e:4", 1.25); /* 60 % */
    world_settle(world);
    world_run_pods(world);
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-2-0@a job-2-1@b job-2-2@d job-2-3@e");
    ck_assert_int_eq(json_integer_value(world_status(world, "replans")), 1);
}
END_TEST

START_TEST(manual_mode_reports_a_better_plan_and_does_nothing)
{
    world_run_job(world, "{'replanPolicy': {'mode': 'Manual', 'cooldownSeconds': 0}}");
    world_node(world, "d", "NVIDIA-" A100, 4);
    world_settle(world);
    world->now_ms += 30000;
    world_settle(world);
    world_answer_nodes(world, "a:4 b:4 d:4", 1.0);
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-1-0@a job-1-1@b");
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "ApprovalNeeded");
}
END_TEST

START_TEST(failed_pod_restarts_the_generation_until_the_limit)
{
    world_run_job(world, "{'failurePolicy': {'maxRestarts': 1, 'backoffSeconds': 10}}");
    world_pod_phase(world, "job-1-1", "Failed", 3);
    world_settle(world);
    world_run_pods(
        world); /* the failed one of generation 1 is a record, not a pod to run */
    ck_assert_int_eq(
        json_integer_value(json_object_get(world_status(world, "plan"), "revision")), 2);
    ck_assert_int_eq(json_integer_value(world_status(world, "restarts")), 1);
    ck_assert_int_eq(world->plans_asked, 1);
    world_settle(world);
    world_pod_phase(world, "job-2-0", "Failed", 3);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Failed"), "RestartLimitReached");
    ck_assert_str_eq(world->last_event, "RestartLimitReached");
    world->now_ms += 3600000;
    ck_assert_uint_eq(world_step(world), 0);
}
END_TEST

START_TEST(pods_that_succeed_complete_the_job)
{
    world_run_job(world, "{}");
    world_pod_phase(world, "job-1-0", "Succeeded", 0);
    world_settle(world);
    ck_assert_str_eq(object_condition(world_get_job(world), "Complete"), "False");
    world_pod_phase(world, "job-1-1", "Succeeded", 0);
    world_settle(world);
    ck_assert_str_eq(object_condition(world_get_job(world), "Complete"), "True");
    ck_assert_ptr_nonnull(world_status(world, "completionTime"));
    world_remove(world, &kube_node, "", "b");
    world->now_ms += 3600000;
    ck_assert_uint_eq(world_step(world), 0);
}
END_TEST

START_TEST(new_pods_wait_until_old_ones_are_gone)
{
    world_run_job(world, "{}");
    /* An old pod that ends slowly: deleted, and still there. */
    world_remove(world, &kube_node, "", "b");
    json_t *old = json_deep_copy(store_find(world->store, &kube_pod, "ns", "job-1-0"));
    json_object_set_new(json_object_get(old, "metadata"), "deletionTimestamp",
                        json_string("2026-01-01T00:10:00Z"));
    world_put(world, &kube_pod, old);
    world_settle(world);
    world->now_ms += 5000;
    world_settle(world);
    world_answer_nodes(world, "a:4 c:2", 3.0);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Placed"), "WaitingForOldPods");
    const json_t *pod = store_find(world->store, &kube_pod, "ns", "job-2-0");
    ck_assert_uint_eq(world_gates(pod), 1);
    world_remove(world, &kube_pod, "ns", "job-1-0");
    world_settle(world);
    pod = store_find(world->store, &kube_pod, "ns", "job-2-0");
    ck_assert_uint_eq(world_gates(pod), 0);
}
END_TEST

START_TEST(cordoned_node_is_left_only_for_a_place_to_go)
{
    world_run_job(world, "{}");
    json_t *node = json_deep_copy(store_find(world->store, &kube_node, "", "b"));
    json_object_set_new(json_object_get(node, "spec"), "unschedulable", json_true());
    world_put(world, &kube_node, node);
    world_settle(world);
    world->now_ms += 31000;
    world_settle(world);
    world_answer_no_plan(world, "needs 8 GPUs");
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-1-0@a job-1-1@b");
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "NodeUnusable");
    ck_assert_str_eq(world_reason(world, "Running"), "AllPodsReady");
    world_node(world, "d", "NVIDIA-" A100, 4);
    world_settle(world);
    world->now_ms += 31000;
    world_settle(world);
    world_answer_nodes(world, "a:4 d:4", 2.0);
    world_settle(world);
    world_run_pods(world);
    ck_assert_str_eq(world_pods(world), "job-2-0@a job-2-1@d");
}
END_TEST

/* Answers with a plan after a change of what it predicts. */
static void answer_predicting(const char *nodes, json_t *changes)
{
    auto_free char *text = world_plan(nodes, A100, 1.0);
    json_auto_t *plan = json_loads(text, 0, NULL);
    json_object_update_new(json_object_get(plan, "predicted"), changes);
    auto_free char *changed = json_dumps(plan, JSON_COMPACT);
    world_answer(world, changed);
}

/* 0 / 0 - 1 is no gain. */
START_TEST(plan_of_no_time_is_no_better_than_another_of_no_time)
{
    world_job(world, "{'replanPolicy': {'minImprovementPercent': 15}}");
    world_settle(world);
    answer_predicting("a:4 b:4", quoted("{'iterationSeconds': 0}"));
    world_settle(world);
    world_run_pods(world);
    world_node(world, "d", "NVIDIA-" A100, 4);
    world_settle(world);
    world->now_ms += 630000;
    world_settle(world);
    answer_predicting("a:4 b:4 c:2", quoted("{'iterationSeconds': 0}"));
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "BelowThreshold");
}
END_TEST

START_TEST(status_of_a_plan_with_absurd_figures_keeps_to_the_schema)
{
    world_job(world, "{}");
    world_settle(world);
    answer_predicting("a:4 b:4",
                      quoted("{'iterationSeconds': 1e300, 'peakMemoryBytes': [{"
                             "'pipeline': 0, 'stage': 0, 'replica': 0, 'bytes': "
                             "9000000000, 'capacityBytes': 0}]}"));
    world_settle(world);
    const json_t *predicted = json_object_get(world_status(world, "plan"), "predicted");
    ck_assert_int_eq(
        json_integer_value(json_object_get(predicted, "iterationMilliseconds")),
        (int64_t)1 << 53);
    ck_assert_int_eq(json_integer_value(json_object_get(predicted, "peakMemoryPercent")),
                     1000);
}
END_TEST

START_TEST(missing_profile_and_bad_spec_are_conditions)
{
    world_job(world, "{'model': {'profileRef': {'name': 'other'}}}");
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Accepted"), "ProfileNotFound");
    ck_assert_int_eq(world->plans_asked, 0);
    world_job(world, "{'podTemplate': {'spec': {'containers': [{'name': 'x', 'env': "
                     "[{'name': 'PET_NNODES', 'value': '2'}]}]}}}");
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Accepted"), "InvalidSpec");
    world_job(world, "{'runtime': {'masterPort': 80}}");
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Accepted"), "InvalidSpec");
    world_job(world, "{}");
    world_settle(world);
    ck_assert_int_eq(world->plans_asked, 1);
}
END_TEST

START_TEST(profile_that_the_planner_refuses_is_not_asked_about_again)
{
    world_job(world, "{}");
    world_settle(world);
    world_answer_refused(world, "profile: spec.gpuTypes[0]: is wrong");
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Accepted"), "ProfileInvalid");
    world->now_ms += 3600000;
    ck_assert_uint_eq(world_step(world), 0);
    world_put(world, &kube_model_profile,
              quoted("{'kind': 'ModelProfile', 'metadata': {'name': 'p', 'namespace': "
                     "'ns', 'generation': 2}, 'spec': {'layers': 2}}"));
    world_settle(world);
    ck_assert_int_eq(world->plans_asked, 2);
}
END_TEST

START_TEST(rejected_change_leaves_the_running_job_as_it_was)
{
    world_run_job(world, "{}");
    json_t *job = json_deep_copy(world_get_job(world));
    json_object_set_new(json_object_get(job, "spec"), "training", json_true());
    world_put(world, &kube_job, job);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Accepted"), "InvalidSpec");
    ck_assert_str_eq(world_pods(world), "job-1-0@a job-1-1@b");
    ck_assert_int_eq(json_integer_value(world_status(world, "allocatedGPUs")), 8);
}
END_TEST

START_TEST(loss_is_answered_however_restless_the_cluster_is)
{
    world_run_job(world, "{}");
    world_remove(world, &kube_node, "", "b");
    for (int second = 0; second < 5; second++) { /* another node changes each second */
        world_node(world, "c", "NVIDIA-" A100, second % 2);
        world_settle(world);
        ck_assert_int_eq(world->plans_asked, 1);
        world->now_ms += 1000;
    }
    world_node(world, "c", "NVIDIA-" A100, 2);
    world_settle(world);
    ck_assert_int_eq(world->plans_asked, 2);
    /* The cluster has changed again when the answer comes; it still fits. */
    world_node(world, "d", "NVIDIA-" A100, 4);
    world_answer_nodes(world, "a:4 c:2", 3.0);
    world_settle(world);
    world_run_pods(world);
    ck_assert_str_eq(world_pods(world), "job-2-0@a job-2-1@c");
}
END_TEST

START_TEST(node_that_loses_its_labels_is_not_gone)
{
    world_run_job(world, "{}");
    json_t *node = json_deep_copy(store_find(world->store, &kube_node, "", "b"));
    json_object_set_new(json_object_get(node, "metadata"), "labels", json_object());
    world_put(world, &kube_node, node);
    for (int i = 0; i < 6; i++) {
        world_settle(world);
        world->now_ms += 4000;
    }
    ck_assert_str_eq(world_pods(world), "job-1-0@a job-1-1@b");
    ck_assert_int_eq(world->plans_asked, 1);
    world_node(world, "b", "NVIDIA-" A100, 4);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "UpToDate");
}
END_TEST

START_TEST(restart_with_the_same_plan_forgets_no_better_one)
{
    world_run_job(world, "{'replanPolicy': {'cooldownSeconds': 0}}");
    world_node(world, "d", "NVIDIA-" A100, 4);
    world_settle(world);
    world_pod_phase(world, "job-1-0", "Failed", 1);
    world_settle(world);
    world_remove(world, &kube_pod, "ns", "job-1-0");
    world_run_pods(world);
    world->now_ms += 60000;
    world_settle(world);
    ck_assert_int_eq(world->plans_asked, 2);
    world_answer_nodes(world, "a:4 b:4 d:4", 1.0);
    world_settle(world);
    ck_assert_int_eq(
        json_integer_value(json_object_get(world_status(world, "plan"), "revision")), 3);
}
END_TEST

START_TEST(refused_pods_are_told_and_hold_no_gpus)
{
    world_job(world, "{}");
    world_settle(world);
    world_answer_nodes(world, "a:4 b:4", 2.0);
    world_step(world); /* the plan is written */
    world->memory.refusals = 1;
    world->memory.refused_ms = world->now_ms;
    world->memory.refused_generation = 1;
    world->memory.refusal = "Pod ns/job-1-0: imagePullPolicy: Unsupported value";
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "PlanFeasible"), "PodsRefused");
    ck_assert_str_eq(world_pods(world), "");
    ck_assert_int_eq(world_free_on(world, "a"), 4);
    world->now_ms += 5000; /* once more, as another generation */
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-2-0@ job-2-1@");
}
END_TEST

START_TEST(running_job_with_a_spec_that_is_refused_still_completes)
{
    world_run_job(world, "{}");
    json_t *job = json_deep_copy(world_get_job(world));
    json_object_set_new(json_object_get(job, "spec"), "training", json_true());
    world_put(world, &kube_job, job);
    world_settle(world);
    world_pod_phase(world, "job-1-0", "Succeeded", 0);
    world_pod_phase(world, "job-1-1", "Failed", 1);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Running"), "PodsNotReady");
    world_pod_phase(world, "job-1-1", "Succeeded", 0);
    world_settle(world);
    ck_assert_str_eq(object_condition(world_get_job(world), "Complete"), "True");
}
END_TEST

/* Its pods wait behind their gates when the spec is refused: nobody could make one anew.
 */
START_TEST(generation_that_has_not_begun_goes_while_the_spec_is_refused)
{
    world_job(world, "{}");
    world_settle(world);
    world_answer_nodes(world, "a:4 b:4", 2.0);
    world_step(world); /* the plan is written */
    world_step(world); /* its pods, with gates */
    ck_assert_str_eq(world_pods(world), "job-1-0@ job-1-1@");
    json_t *good = json_deep_copy(world_get_job(world));
    json_t *bad = json_deep_copy(good);
    json_object_set_new(json_object_get(bad, "spec"), "training", json_true());
    world_put(world, &kube_job, bad);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Placed"), "SpecRefused");
    ck_assert_str_eq(world_pods(world), "");
    ck_assert_int_eq(world_free_on(world, "a"), 4);
    world_put(world, &kube_job, good);
    world->now_ms += 5000;
    world_settle(world); /* the same plan again */
    world_run_pods(world);
    ck_assert_str_eq(world_pods(world), "job-2-0@a job-2-1@b");
}
END_TEST

START_TEST(plan_on_a_type_that_the_spec_no_longer_names_is_replaced)
{
    world_run_job(world, "{'resources': {'gpuTypes': [{'name': '" A100 "'}]}}");
    json_t *job = json_deep_copy(world_get_job(world));
    json_object_set_new(json_object_get(json_object_get(job, "spec"), "resources"),
                        "gpuTypes", quoted("[{'name': '" A100 "', 'maxGPUs': 4}]"));
    world_put(world, &kube_job, job);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "SpecChanged");
    world->now_ms += 5000;
    world_settle(world);
    world_answer_nodes(world, "a:4", 4.0);
    world_settle(world);
    world_run_pods(world);
    ck_assert_str_eq(world_pods(world), "job-2-0@a");
}
END_TEST

START_TEST(type_may_be_named_by_an_alias)
{
    world_run_job(world, "{'resources': {'gpuTypes': [{'name': 'A100', 'maxGPUs': 8}]}}");
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "UpToDate");
    ck_assert_int_eq(world->plans_asked, 1);
    json_t *job = json_deep_copy(world_get_job(world));
    json_object_set_new(json_object_get(json_object_get(job, "spec"), "resources"),
                        "gpuTypes", quoted("[{'name': 'A100', 'maxGPUs': 4}]"));
    world_put(world, &kube_job, job);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "SpecChanged");
}
END_TEST

START_TEST(forged_generation_is_no_generation)
{
    world_run_job(world, "{}");
    json_t *forged =
        json_deep_copy(store_find(world->store, &kube_config_map, "ns", "job-plan-1"));
    json_t *metadata = json_object_get(forged, "metadata");
    json_object_set_new(metadata, "name", json_string("job-plan-x"));
    json_object_set_new(metadata, "uid", json_string("forged"));
    json_object_set_new(json_object_get(metadata, "labels"), LABEL_PLAN_REVISION,
                        json_string("9223372036854775807"));
    world_put(world, &kube_config_map, forged);
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-1-0@a job-1-1@b");
    ck_assert_int_eq(
        json_integer_value(json_object_get(world_status(world, "plan"), "revision")), 1);
}
END_TEST

/* A copy of an object of generation 1, called `name`, as of generation `generation`. */
static json_t *forge(const struct kube_resource *resource, const char *from,
                     const char *name, int64_t generation)
{
    json_t *forged = world_copy(world, resource, "ns", from);
    json_t *metadata = json_object_get(forged, "metadata");
    json_object_set_new(metadata, "name", json_string(name));
    json_object_set_new(metadata, "uid", json_string(name));
    json_object_set_new(json_object_get(metadata, "labels"), LABEL_PLAN_REVISION,
                        json_sprintf("%" PRId64, generation));
    return forged;
}

START_TEST(forged_generation_far_ahead_neither_counts_nor_lifts_the_next)
{
    world_run_job(world, "{}");
    int64_t last = PLAN_OBJECT_LAST;
    json_t *pod = forge(&kube_pod, "job-1-0", "job-2147483647-0", last);
    object_set(pod, "status.phase", json_string("Failed"));
    world_put(world, &kube_pod, pod);
    world_put(world, &kube_config_map,
              forge(&kube_config_map, "job-plan-1", "job-plan-2147483647", last));
    json_t *far = forge(&kube_pod, "job-1-0", "job-9000-0", 9000);
    world_put(world, &kube_pod, far);
    world_settle(world);
    ck_assert_int_eq(world_generation(world), 1);
    ck_assert_str_eq(world_reason(world, "Running"), "AllPodsReady");
    /* What can run is ended all the same. */
    ck_assert_ptr_null(store_find(world->store, &kube_pod, "ns", "job-9000-0"));
    world_remove(world, &kube_node, "", "a");
    world_settle(world);
    world->now_ms += 5000;
    world_settle(world);
    world_answer_nodes(world, "b:4", 4.0);
    world_settle(world);
    ck_assert_int_eq(world_generation(world), 2);
}
END_TEST

START_TEST(pod_is_what_its_name_says_whatever_its_labels)
{
    world_run_job(world, "{}");
    json_t *pod = world_copy(world, &kube_pod, "ns", "job-1-0");
    json_t *labels = object_at(pod, "metadata.labels");
    json_object_set_new(labels, LABEL_PLAN_REVISION, json_string("7"));
    json_object_set_new(labels, LABEL_POD_INDEX, json_string("1"));
    world_put(world, &kube_pod, pod);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Running"), "AllPodsReady");
    ck_assert_int_eq(world_generation(world), 1);
}
END_TEST

static const char *const other_owners[][2] = { { "name", "other" },
                                               { "apiVersion", "example.com/v1" },
                                               { "kind", "Job" } };

START_TEST(plan_that_changes_owner_is_nobodys)
{
    world_run_job(world, "{}");
    json_t *forged = forge(&kube_config_map, "job-plan-1", "job-plan-2", 2);
    json_t *owner = json_array_get(object_at(forged, "metadata.ownerReferences"), 0);
    json_object_set_new(owner, other_owners[_i][0], json_string(other_owners[_i][1]));
    world_put(world, &kube_config_map, forged);
    world_settle(world);
    ck_assert_int_eq(world_generation(world), 1);
}
END_TEST

START_TEST(job_whose_generations_are_used_up_says_so)
{
    world_job(world, "{}");
    json_t *job = json_deep_copy(world_get_job(world));
    object_set(job, "status.lastStart.revision", json_integer(PLAN_OBJECT_LAST));
    world_put(world, &kube_job, job);
    world_settle(world);
    world_answer_nodes(world, "a:4 b:2", 4.0);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "PlanFeasible"), "RevisionsUsedUp");
    ck_assert_str_eq(world_pods(world), "");
}
END_TEST

Suite *test_reconcile_suite(void)
{
    Suite *suite = suite_create("reconcile");
    TCase *cases = tcase_create("reconcile");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, new_job_is_planned_placed_and_then_left_alone);
    tcase_add_test(cases, status_of_a_step_on_the_way_may_wait_and_no_other);
    tcase_add_test(cases, status_that_a_job_runs_is_written_at_once);
    tcase_add_test(cases, what_has_not_changed_is_not_read_again);
    tcase_add_test(cases, pods_carry_pin_limits_environment_and_plan);
    tcase_add_test(cases, pods_ask_for_gpus_by_the_resource_that_the_job_names);
    tcase_add_test(cases, planner_is_told_of_levels_in_the_order_of_the_topology_keys);
    tcase_add_test(cases, spot_nodes_are_asked_about_last_where_the_job_prefers_others);
    tcase_add_test(cases, resources_for_each_gpu_come_on_top_of_the_containers_own);
    tcase_add_test(cases, lost_node_moves_the_job_after_a_short_wait);
    tcase_add_test(cases, no_plan_after_a_loss_stops_the_rest_and_starts_again_by_itself);
    tcase_add_test(cases, not_ready_node_is_tolerated_for_its_grace);
    tcase_add_test(cases,
                   better_plan_is_taken_only_past_the_threshold_and_after_the_waits);
    tcase_add_test(cases, manual_mode_reports_a_better_plan_and_does_nothing);
    tcase_add_test(cases, failed_pod_restarts_the_generation_until_the_limit);
    tcase_add_test(cases, pods_that_succeed_complete_the_job);
    tcase_add_test(cases, new_pods_wait_until_old_ones_are_gone);
    tcase_add_test(cases, cordoned_node_is_left_only_for_a_place_to_go);
    tcase_add_test(cases, missing_profile_and_bad_spec_are_conditions);
    tcase_add_test(cases, status_of_a_plan_with_absurd_figures_keeps_to_the_schema);
    tcase_add_test(cases, plan_of_no_time_is_no_better_than_another_of_no_time);
    tcase_add_test(cases, profile_that_the_planner_refuses_is_not_asked_about_again);
    tcase_add_test(cases, loss_is_answered_however_restless_the_cluster_is);
    tcase_add_test(cases, node_that_loses_its_labels_is_not_gone);
    tcase_add_test(cases, restart_with_the_same_plan_forgets_no_better_one);
    tcase_add_test(cases, refused_pods_are_told_and_hold_no_gpus);
    tcase_add_test(cases, running_job_with_a_spec_that_is_refused_still_completes);
    tcase_add_test(cases, generation_that_has_not_begun_goes_while_the_spec_is_refused);
    tcase_add_test(cases, plan_on_a_type_that_the_spec_no_longer_names_is_replaced);
    tcase_add_test(cases, type_may_be_named_by_an_alias);
    tcase_add_test(cases, forged_generation_is_no_generation);
    tcase_add_test(cases, forged_generation_far_ahead_neither_counts_nor_lifts_the_next);
    tcase_add_test(cases, pod_is_what_its_name_says_whatever_its_labels);
    tcase_add_loop_test(cases, plan_that_changes_owner_is_nobodys, 0,
                        sizeof other_owners / sizeof *other_owners);
    tcase_add_test(cases, job_whose_generations_are_used_up_says_so);
    tcase_add_test(cases, rejected_change_leaves_the_running_job_as_it_was);
    suite_add_tcase(suite, cases);
    return suite;
}
