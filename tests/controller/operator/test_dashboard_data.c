/* What the dashboard shows, of stores that are filled by hand. */
#include "controller/operator/dashboard_data.h"

#include "controller/base/object.h"
#include "controller/operator/dashboard_plan.h"
#include "tests/controller/world.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct world *world;
static struct dashboard_data *overview;
static json_t *document;
static size_t document_length;

static void setup(void)
{
    world = world_of("a:4 b:4 c:2");
    overview = dashboard_data_new();
    document = NULL;
}

static void teardown(void)
{
    json_decref(document);
    dashboard_data_free(overview);
    world_free(world);
}

static void build(void)
{
    struct snapshot_sources sources = { .store = world->store,
                                        .capacity = world->capacity,
                                        .now_ms = world->now_ms,
                                        .wall_ms = world->now_ms };
    char *text = dashboard_data_build(overview, &sources, &document_length);
    json_decref(document);
    document = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(document);
    free(text);
}

/* What stands at the path of keys, as compact JSON. */
static const char *shown(const json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS)
                      : strdup("");
    const char *copy = het_arena_strdup(world->arena, text);
    free(text);
    return copy;
}
static const json_t *member(const char *key)
{
    return json_object_get(document, key);
}
static const json_t *job_member(const char *path)
{
    return object_at(json_array_get(member("jobs"), 0), path);
}
#define check(json, expected) ck_assert_str_eq(shown(json), expected)

START_TEST(empty_cluster_is_shown_as_such)
{
    world_free(world);
    world = world_new();
    build();
    check(document,
          "{\"jobs\":[],\"left\":[0,0],\"nodes\":[],\"reasons\":[],\"types\":[],"
          "\"version\":1}");
}
END_TEST

START_TEST(nodes_have_their_gpus_and_whose_they_are)
{
    world_run_job(world, "{}"); /* a:4 b:4 */
    build();
    check(member("types"), "[\"" A100 "\"]");
    /* name, type 0, GPUs, usable, none of others, job 0, its GPUs */
    check(member("nodes"),
          "[[\"a\",0,4,-1,0,0,4],[\"b\",0,4,-1,0,0,4],[\"c\",0,2,-1,0]]");
}
END_TEST

START_TEST(unusable_nodes_say_why)
{
    world_node_ready(world, "c", false);
    build();
    check(member("reasons"), "[\"NotReady\"]");
    check(json_array_get(member("nodes"), 2), "[\"c\",0,2,0,0]");
}
END_TEST

START_TEST(pods_of_others_are_told_from_jobs)
{
    world_put(world, &kube_pod,
              quoted("{'metadata': {'name': 'x', 'namespace': 'other'}, 'spec': "
                     "{'nodeName': 'c', 'containers': [{'name': 'c', 'resources': "
                     "{'limits': {'nvidia.com/gpu': '1'}}}]}, 'status': {'phase': "
                     "'Running'}}"));
    build();
    check(json_array_get(member("nodes"), 2), "[\"c\",0,2,-1,1]");
}
END_TEST

START_TEST(gpus_on_a_node_that_is_gone_are_shown)
{
    world_run_job(world, "{}");
    world_remove(world, &kube_node, "", "b");
    build();
    check(member("reasons"), "[\"Gone\"]");
    check(json_array_get(member("nodes"), 1), "[\"b\",0,0,0,0,0,4]");
}
END_TEST

START_TEST(job_has_its_plan_as_lanes)
{
    world_run_job(world, "{}");
    build();
    check(job_member("name"), "\"job\"");
    check(job_member("state"), "\"Running\"");
    check(job_member("plan.revision"), "1");
    check(job_member("plan.types"), "[\"" A100 "\",8]");
    check(job_member("plan.nodes"), "[\"a\",\"b\"]");
    const json_t *lane = json_array_get(job_member("plan.lanes"), 0);
    /* One stage: GPUs 0 to 3 of the first node, then of the second. */
    check(json_object_get(lane, "at"), "[[[0,0,4,1,0,4]]]");
}
END_TEST

START_TEST(history_has_plans_that_were_stopped)
{
    world_run_job(world, "{}");
    build();
    check(json_array_get(json_array_get(job_member("history"), 0), 2), "\"JobCreated\"");
    ck_assert_int_eq(json_array_size(job_member("history")), 1);
    ck_assert_ptr_nonnull(job_member("plan"));
    json_t *map = world_copy(world, &kube_config_map, "ns", "job-plan-1");
    json_object_set_new(object_map(map, "metadata.annotations"), ANNOTATION_RETIRED,
                        json_string("NodeLost"));
    world_put(world, &kube_config_map, map);
    build();
    check(json_array_get(json_array_get(job_member("history"), 0), 6), "\"NodeLost\"");
    ck_assert_ptr_null(job_member("plan")); /* it holds nothing any more */
}
END_TEST

START_TEST(conditions_come_with_their_reasons)
{
    world_job(world, "{}");
    world_settle(world);
    world_answer_no_plan(world, "8 GPUs are not enough");
    world_settle(world);
    build();
    const json_t *conditions = job_member("conditions"), *condition;
    size_t i;
    bool is_found = false;
    json_array_foreach (conditions, i, condition) {
        const char *text = shown(condition);
        is_found = is_found ||
                   (strstr(text, "PlanFeasible") && strstr(text, "not enough"));
    }
    ck_assert_msg(is_found, "%s", shown(conditions));
    check(job_member("state"), "\"Pending\"");
    ck_assert_ptr_null(job_member("plan"));
}
END_TEST

START_TEST(long_messages_are_cut_between_characters)
{
    world_job(world, "{}");
    json_t *job = world_copy(world, &kube_job, "ns", "job");
    char message[2 * DASHBOARD_DATA_MESSAGE_BYTES + 2] = "x"; /* then 2-byte characters */
    for (int i = 0; i < DASHBOARD_DATA_MESSAGE_BYTES; i++)
        memcpy(message + 1 + 2 * i, "\xc3\xa9", 3);
    object_set(job, "status.conditions",
               json_pack("[{s:s, s:s, s:s}]", "type", "T", "status", "True", "message",
                         message));
    world_put(world, &kube_job, job);
    build();
    const json_t *condition = json_array_get(job_member("conditions"), 0);
    ck_assert_int_eq(json_string_length(json_array_get(condition, 3)),
                     DASHBOARD_DATA_MESSAGE_BYTES - 1); /* 1 + 199 * 2 */
}
END_TEST

START_TEST(same_stores_give_the_same_text)
{
    world_run_job(world, "{}");
    build();
    build();
    const char *before = shown(document);
    struct dashboard_data *fresh = dashboard_data_new();
    dashboard_data_free(overview);
    overview = fresh;
    build();
    ck_assert_str_eq(shown(document), before);
}
END_TEST

/* ---- lanes ---- */

static struct het_replica replicas[4];
static const uint32_t gpu_numbers[] = { 0, 1, 2, 3 };

static struct het_stage stage_at(int replica, uint32_t first_layer)
{
    return (struct het_stage){ .first_layer = first_layer,
                               .layer_count = 2,
                               .replicas = &replicas[replica],
                               .replica_count = 1 };
}

START_TEST(pipelines_that_are_alike_share_a_lane)
{
    for (int i = 0; i < 4; i++)
        replicas[i] = (struct het_replica){ .node_name = i < 3 ? "a" : "b",
                                            .type_name = "A100",
                                            .gpus = &gpu_numbers[i < 3 ? i : 0],
                                            .tp = 1,
                                            .microbatch_size = 2 };
    struct het_stage stages[4];
    struct het_pipeline pipelines[4];
    for (int i = 0; i < 4; i++) {
        stages[i] = stage_at(i, 0);
        pipelines[i] = (struct het_pipeline){ .microbatch_count = i < 3 ? 7 : 8,
                                              .stages = &stages[i],
                                              .stage_count = 1 };
    }
    struct het_plan plan = { .pipelines = pipelines, .pipeline_count = 4 };
    struct het_stage_parts times[4] = { { 0.001, 0.002, 0 } };
    times[3] = (struct het_stage_parts){ 0.003, 0.004, 0.0005 };
    json_auto_t *json = dashboard_plan_json(world->arena, &plan, times);
    check(json, "{\"lanes\":["
                "{\"at\":[[[0,0,1]],[[0,1,1]],[[0,2,1]]],\"microbatches\":7,\"stages\":"
                "[{\"gpus\":[\"A100\",1,1,2],\"layers\":[0,2],\"us\":[1000,2000,0]}]},"
                "{\"at\":[[[1,0,1]]],\"microbatches\":8,\"stages\":"
                "[{\"gpus\":[\"A100\",1,1,2],\"layers\":[0,2],\"us\":[3000,4000,500]}]}],"
                "\"nodes\":[\"a\",\"b\"]}");
}
END_TEST

/* ---- size and speed ---- */

enum { MANY_NODES = 1000, MANY_JOBS = 100 };

/* Job `index` on ten nodes of its own, with plans of 80 GPUs. */
static void put_many_job(int index)
{
    char name[16], nodes[200] = "";
    snprintf(name, sizeof name, "job-%03d", index);
    for (int i = 0; i < 10; i++)
        snprintf(nodes + strlen(nodes), sizeof nodes - strlen(nodes), "%sn%04d:8",
                 i ? " " : "", index * 10 + i);
    world_put(world, &kube_job,
              quoted("{'metadata': {'name': '%s', 'namespace': 'ns', 'uid': 'u-%s', "
                     "'creationTimestamp': '2026-01-01T00:00:00Z'}, 'spec': {'model': "
                     "{'profileRef': {'kind': 'ModelProfile', 'name': 'p'}}, 'training': "
                     "{'globalBatchSize': 32}}, 'status': {'allocatedGPUs': 80, "
                     "'conditions': [{'type': 'Running', 'status': 'True', 'reason': "
                     "'AllPodsReady', 'message': '10 pods run', 'lastTransitionTime': "
                     "'2026-01-01T00:00:00Z'}, {'type': 'PlanFeasible', 'status': 'True',"
                     " 'reason': 'PlanComputed', 'message': '" A100 "x80:tp8 pp1 dp10', "
                     "'lastTransitionTime': '2026-01-01T00:00:00Z'}]}}",
                     name, name));
    char *plan = world_plan(nodes, A100, 1.5);
    for (int generation = 1; generation <= DASHBOARD_DATA_HISTORY; generation++) {
        const struct het_plan *read;
        ck_assert_int_eq(het_plan_json_text(world->arena, plan, "plan", &read, NULL), 0);
        json_t *map = quoted(
            "{'immutable': true, 'metadata': {'name': '%s-plan-%d', 'namespace': 'ns', "
            "'uid': 'm-%s-%d', 'labels': {'heterotrain.io/job-name': '%s', "
            "'heterotrain.io/plan-revision': '%d'}, 'annotations': "
            "{'heterotrain.io/plan-hash': '%s', 'heterotrain.io/trigger': 'NodeLost', "
            "'heterotrain.io/computed-at': '2026-01-01T00:00:00Z', "
            "'heterotrain.io/planner-milliseconds': '120'}, 'ownerReferences': "
            "[{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'HeteroTrainingJob', "
            "'name': '%s', 'uid': 'u-%s', 'controller': true}]}, 'data': {}}",
            name, generation, name, generation, name, generation,
            het_plan_json_hash(world->arena, read), name, name);
        object_set(map, "data", json_pack("{s:s}", "plan.json", plan));
        world_put(world, &kube_config_map, map);
    }
    free(plan);
}

static double cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

START_TEST(thousand_nodes_and_hundred_jobs_stay_small_and_quick)
{
    world_free(world);
    world = world_new();
    for (int i = 0; i < MANY_NODES; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%04d", i);
        world_node(world, name, "NVIDIA-A100-SXM4-40GB", 8);
    }
    for (int i = 0; i < MANY_JOBS; i++)
        put_many_job(i);
    double begin_ms = cpu_ms(), most_ms = 0, before_ms;
    int rounds = 0;
    do {
        before_ms = cpu_ms();
        build();
        most_ms = cpu_ms() - before_ms > most_ms ? cpu_ms() - before_ms : most_ms;
        ck_assert_int_lt(++rounds, 1000);
    } while (dashboard_data_is_partial(overview));
    double read_ms = cpu_ms() - begin_ms;
    before_ms = cpu_ms();
    for (int i = 0; i < 10; i++) {
        struct snapshot_sources sources = { .store = world->store,
                                            .capacity = world->capacity };
        size_t length;
        free(dashboard_data_build(overview, &sources, &length));
    }
    double again_ms = (cpu_ms() - before_ms) / 10;
    if (getenv("OVERVIEW_FIGURES"))
        fprintf(stderr,
                "%zu bytes; read in %d rounds, %.0f ms, %.1f ms at most; then "
                "%.2f ms\n",
                document_length, rounds, read_ms, most_ms, again_ms);
    ck_assert_int_lt(document_length, 300000);
    ck_assert_ptr_nonnull(job_member("plan.lanes"));
    ck_assert_int_gt(
        json_integer_value(json_array_get(json_array_get(job_member("history"), 5), 4)),
        0);
#ifndef __SANITIZE_ADDRESS__
    ck_assert_double_lt(again_ms, 50); /* 10 on a machine that has nothing else to do */
#endif
}
END_TEST

Suite *test_dashboard_data_suite(void)
{
    Suite *suite = suite_create("dashboard_data");
    TCase *shown_case = tcase_create("shown");
    tcase_add_checked_fixture(shown_case, setup, teardown);
    tcase_add_test(shown_case, empty_cluster_is_shown_as_such);
    tcase_add_test(shown_case, nodes_have_their_gpus_and_whose_they_are);
    tcase_add_test(shown_case, unusable_nodes_say_why);
    tcase_add_test(shown_case, pods_of_others_are_told_from_jobs);
    tcase_add_test(shown_case, gpus_on_a_node_that_is_gone_are_shown);
    tcase_add_test(shown_case, job_has_its_plan_as_lanes);
    tcase_add_test(shown_case, history_has_plans_that_were_stopped);
    tcase_add_test(shown_case, conditions_come_with_their_reasons);
    tcase_add_test(shown_case, long_messages_are_cut_between_characters);
    tcase_add_test(shown_case, same_stores_give_the_same_text);
    tcase_add_test(shown_case, pipelines_that_are_alike_share_a_lane);
    tcase_add_test(shown_case, thousand_nodes_and_hundred_jobs_stay_small_and_quick);
    suite_add_tcase(suite, shown_case);
    return suite;
}
