#include "controller/cluster/measurement.h"

#include "controller/base/object.h"
#include "controller/job/pod_security.h"
#include "tests/controller/profiler.h"
#include "tests/controller/world.h"

#include <check.h>
#include <string.h>

#define T4 "Tesla-T4"

static struct world *world;

static void put_growing_job(void)
{
    json_auto_t *architecture = profiler_architecture();
    auto_free char *text = json_dumps(architecture, JSON_COMPACT);
    auto_free char *spec = xasprintf(
        "{\"model\": {\"profilePolicy\": \"OnDemand\", \"architecture\": %s}}", text);
    world_job(world, spec);
}

static void setup(void)
{
    world = world_of("a:4 b:4 c:2");
    world->settings = profiler_settings();
    world_remove(world, &kube_model_profile, "ns", "p");
    put_growing_job();
}

static void teardown(void)
{
    world_free(world);
}

/* ---- what a pod says ---- */

static struct job_spec spec;

static const struct measurement of_t4 = { .type = T4, .name = "m" };

static void read_spec(void)
{
    struct het_error err;
    const char *reason;
    ck_assert_msg(!job_spec_parse(world_get_job(world), &spec, &reason, &err), "%s",
                  err.message);
}

static int read_text(const char *text, struct measurement_result *ret,
                     struct het_error *err)
{
    read_spec();
    return measurement_read(text, strlen(text), &spec, &of_t4, ret, err);
}

START_TEST(result_becomes_an_entry_of_the_profile)
{
    auto_free char *text = profiler_result(T4, 2);
    struct measurement_result result;
    struct het_error err;
    ck_assert_msg(!read_text(text, &result, &err), "%s", err.message);
    ck_assert_str_eq(object_text(result.entry, "name"), T4);
    ck_assert_int_eq(object_integer(result.entry, "memoryMiB", 0), 16384);
    const json_t *list = object_at(result.entry, "measurements");
    ck_assert_uint_eq(json_array_size(list), 2 * 3 * 3); /* degrees, sizes, groups */
    const json_t *last = json_array_get(list, 17);
    ck_assert_str_eq(object_text(last, "layerGroup"), "head");
    ck_assert_int_eq(object_integer(last, "tensorParallel", 0), 2);
    ck_assert_int_eq(object_integer(last, "microBatchSize", 0), 4);
    ck_assert_int_eq(object_integer(last, "backwardMicroseconds", 0), 4 * 2000 * 4 / 2);
    json_auto_t *profile = measurement_profile(&spec, &result);
    struct het_arena *arena = het_arena_new();
    const struct het_profile *read;
    ck_assert_msg(!het_profile_json_read(arena, profile, &read, &err), "%s", err.message);
    ck_assert_uint_eq(read->layer_count, 4 + 2);
    het_arena_free(arena);
    measurement_result_fini(&result);
}
END_TEST

/* All that the profiler may say besides. */
START_TEST(what_a_result_says_of_the_model_goes_into_a_new_profile)
{
    auto_free char *good = profiler_result(T4, 2);
    json_auto_t *json = json_loads(good, 0, NULL);
    json_auto_t *more =
        quoted("{'name': 'llama', 'hiddenSize': 64, 'vocabSize': 1000, "
               "'embeddingWeights': 'Separate', "
               "'stateBytesPerParameter': 20, 'oom': [[1, 8]], 'cut': 2}");
    json_object_update(json, more);
    json_t *group = json_array_get(json_object_get(json, "groups"), 1);
    json_object_set_new(group, "parameterBytesPerRank", quoted("[[2, 600000]]"));
    auto_free char *text = json_dumps(json, JSON_COMPACT);
    struct measurement_result result;
    struct het_error err;
    ck_assert_msg(!read_text(text, &result, &err), "%s", err.message);
    json_auto_t *profile = measurement_profile(&spec, &result);
    measurement_result_fini(&result);
    const json_t *model = object_at(profile, "spec.model");
    ck_assert_str_eq(object_text(model, "name"), "p");
    ck_assert_int_eq(object_integer(model, "stateBytesPerParameter", 0), 20);
    ck_assert_int_eq(object_integer(model, "vocabSize", 0), 1000);
    const json_t *ranks =
        object_at(json_array_get(object_at(profile, "spec.layerGroups"), 1),
                  "parameterBytesPerRank");
    ck_assert_int_eq(object_integer(json_array_get(ranks, 0), "bytes", 0), 600000);
    struct het_arena *arena = het_arena_new();
    const struct het_profile *read;
    ck_assert_msg(!het_profile_json_read(arena, profile, &read, &err), "%s", err.message);
    het_arena_free(arena);
}
END_TEST

/* What must not be believed: a member of the result, another value of it (NULL: none),
 * and what is said. */
static const struct {
    const char *member, *value, *message;
} forged[] = {
    { "v", "2", "v: must be" },
    { "v", NULL, "v: is missing" },
    { "gpuType", "'H100'", "asked for was " T4 },
    { "precision", "'FP16'", "asked for was BF16" },
    { "optimizer", "'SGD'", "asked for was Adam" },
    { "sequenceLength", "256", "sequenceLength" },
    { "memoryMiB", "-1", "memoryMiB" },
    { "memoryMiB", "1e300", "memoryMiB" },
    { "spec", "{}", "spec" },
    { "hiddenSize", "128", "hiddenSize" },
    { "stateBytesPerParameter", "65", "stateBytesPerParameter" },
    { "embeddingWeights", "'Shared'", "asked for was Separate" },
    { "groups",
      "[{'name': 'a', 'count': 6, 'parameterBytes': 1, 'activationOutputBytes': 1, "
      "'parameterBytesPerRank': [[3, 1]]}]",
      "powers of two" },
    { "groups", "[]", "have 0 layers, the model has 6" },
    { "groups", "{}", "groups" },
    { "groups",
      "[{'name': 'a', 'count': 6, 'parameterBytes': 1, 'activationOutputBytes': 1, "
      "'x': 1}]",
      "groups[0]" },
    { "groups",
      "[{'name': 'A', 'count': 6, 'parameterBytes': 1, 'activationOutputBytes': 1}]",
      "lower-case letters" },
    { "groups",
      "[{'name': 'a', 'count': 5000, 'parameterBytes': 1, 'activationOutputBytes': 1}]",
      "groups[0].count" },
    { "groups",
      "[{'name': 'a', 'count': 3, 'parameterBytes': 1, 'activationOutputBytes': 1}, "
      "{'name': 'a', 'count': 3, 'parameterBytes': 1, 'activationOutputBytes': 1}]",
      "another group is called a" },
    { "optimizerMicroseconds", "[[3, 1]]", "powers of two" },
    { "optimizerMicroseconds", "[[2, 1], [1, 1]]", "in their order" },
    { "optimizerMicroseconds", "[[1]]", "fewer than 2" },
    { "m", "[]", "m: is empty" },
    { "m", "[[1, 1]]", "m[0][2]" },
    { "m", "[[16, 1, [[1, 1, 1], [1, 1, 1], [1, 1, 1]]]]", "m[0][0]" },
    { "m", "[[3, 1, [[1, 1, 1], [1, 1, 1], [1, 1, 1]]]]", "powers of two" },
    { "m", "[[1, 1, [[1, 1, 1]]]]", "each of 3 groups" },
    { "m", "[[1, 1, [[1, 1], [1, 1, 1], [1, 1, 1]]]]", "fewer than 3" },
    { "m", "[[1, 1, [[-1, 1, 1], [1, 1, 1], [1, 1, 1]]]]", "m[0][2][0][0]" },
    { "m", "[[1, 1, [[1, 0.5, 1], [1, 1, 1], [1, 1, 1]]]]", "m[0][2][0][1]" },
    { "m", "[[1, 1, [[1, 1, 1e17], [1, 1, 1], [1, 1, 1]]]]", "m[0][2][0][2]" },
    { "m", "[[1, 1, [[0, 0, 1], [0, 0, 1], [0, 0, 1]]]]", "no layer takes any time" },
    { "m",
      "[[1, 1, [[1, 1, 1], [1, 1, 1], [1, 1, 1]]], [1, 1, [[1, 1, 1], [1, 1, 1], [1, 1, "
      "1]]]]",
      "was given before" },
};

START_TEST(forged_result_is_refused)
{
    auto_free char *good = profiler_result(T4, 2);
    json_auto_t *json = json_loads(good, 0, NULL);
    struct measurement_result result;
    struct het_error err;
    if (forged[_i].value) {
        json_auto_t *holder = quoted("{'value': %s}", forged[_i].value);
        json_object_set(json, forged[_i].member, json_object_get(holder, "value"));
    } else {
        json_object_del(json, forged[_i].member);
    }
    auto_free char *text = json_dumps(json, JSON_COMPACT);
    ck_assert_int_eq(read_text(text, &result, &err), -1);
    ck_assert_msg(strstr(err.message, forged[_i].message) != NULL, "says: %s",
                  err.message);
}
END_TEST

START_TEST(result_that_is_no_json_or_too_long_is_refused)
{
    static const char *const texts[] = { "",
                                         "[]",
                                         "null",
                                         "{\"v\":1",
                                         "{\"v\":1}{}",
                                         "{\"v\":1,\"v\":1}",
                                         "{\"v\":\"\\u0000\"}" };
    struct measurement_result result;
    struct het_error err;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_int_eq(read_text(texts[i], &result, &err), -1);
    char text[MEASUREMENT_RESULT_BYTES + 2];
    memset(text, ' ', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ck_assert_int_eq(read_text(text, &result, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "longer than 4096"));
}
END_TEST

/* ---- the Job ---- */

static json_t *batch(void)
{
    ck_assert_uint_eq(store_count(world->store, &kube_batch_job), 1);
    return store_at(world->store, &kube_batch_job, 0);
}

START_TEST(measurement_takes_what_most_nodes_have)
{
    world_settle(world);
    const json_t *pod = object_at(batch(), "spec.template");
    const json_t *container = json_array_get(object_at(pod, "spec.containers"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(
                         object_at(container, "resources.limits"), "nvidia.com/gpu")),
                     "4");
    ck_assert_str_eq(world_reason(world, "ProfilesReady"), "Measuring");
    ck_assert_str_eq(world_reason(world, "PlanFeasible"), "Measuring");
    ck_assert_str_eq(world_reason(world, "Accepted"), "Valid");
}
END_TEST

START_TEST(pods_of_measurements_are_restricted)
{
    world_settle(world);
    struct het_error err;
    struct het_view view = het_view_root(object_at(batch(), "spec.template"));
    ck_assert_msg(!pod_security_check(&view, &(struct pod_security_policy){ 0 }, &err),
                  "%s", err.message);
    ck_assert(json_is_false(
        object_at(batch(), "spec.template.spec.automountServiceAccountToken")));
    /* Whoever makes the pods is Kubernetes, and not the controller. */
    const char *key;
    json_t *value;
    json_object_foreach (object_at(batch(), "spec.template.metadata.labels"), key, value)
        ck_assert_ptr_null(strstr(key, "heterotrain.io/"));
}
END_TEST

START_TEST(measurement_waits_for_a_node_with_enough_free)
{
    world_put(world, &kube_pod,
              quoted("{'metadata': {'name': 'x', 'namespace': 'n'}, 'spec': {'nodeName': "
                     "'a', 'containers': [{'resources': {'requests': {'nvidia.com/gpu': "
                     "'1'}}}]}, 'status': {'phase': 'Running'}}"));
    world_put(world, &kube_pod,
              quoted("{'metadata': {'name': 'y', 'namespace': 'n'}, 'spec': {'nodeName': "
                     "'b', 'containers': [{'resources': {'requests': {'nvidia.com/gpu': "
                     "'1'}}}]}, 'status': {'phase': 'Running'}}"));
    world_settle(world);
    ck_assert_uint_eq(store_count(world->store, &kube_batch_job), 0);
    ck_assert_str_eq(world_reason(world, "ProfilesReady"), "WaitingForGPUs");
    ck_assert_ptr_nonnull(strstr(world_message(world, "ProfilesReady"), "4 GPUs free"));
    world_remove(world, &kube_pod, "n", "y");
    world_settle(world);
    ck_assert_uint_eq(store_count(world->store, &kube_batch_job), 1);
}
END_TEST

START_TEST(refusal_is_told_and_tried_again_later)
{
    world->memory.profiling_refusals = 3;
    world->memory.profiling_refused_ms = world->now_ms;
    world->memory.profiling_refusal = "Job: exceeded quota";
    world_settle(world);
    ck_assert_uint_eq(store_count(world->store, &kube_batch_job), 0);
    ck_assert_str_eq(world_reason(world, "ProfilesReady"), "MeasurementRefused");
    ck_assert_str_eq(world_reason(world, "PlanFeasible"), "MeasurementRefused");
    ck_assert(world_has_event(world, "MeasurementRefused"));
    world_pass_s(world, 7);
    ck_assert_uint_eq(store_count(world->store, &kube_batch_job), 0);
    world_pass_s(world, 1); /* 1 s, doubled three times */
    ck_assert_uint_eq(store_count(world->store, &kube_batch_job), 1);
}
END_TEST

static void put_pod(const char *name, const char *status)
{
    world_put(world, &kube_pod,
              quoted("{'metadata': {'name': '%s', 'namespace': 'ns', 'ownerReferences': "
                     "[{'kind': 'Job', 'name': '%s', 'uid': '%s', 'controller': true}]}, "
                     "'spec': {'nodeName': 'a', 'containers': []}, 'status': %s}",
                     name, kube_name(batch()), kube_uid(batch()), status));
}

START_TEST(image_that_cannot_be_had_is_told)
{
    world_settle(world);
    put_pod("m-1", "{'phase': 'Pending', 'containerStatuses': [{'name': 'profiler', "
                   "'state': {'waiting': {'reason': 'ImagePullBackOff', 'message': "
                   "'no such image'}}}]}");
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "ProfilesReady"), "MeasurementFailed");
    ck_assert_ptr_nonnull(
        strstr(world_message(world, "ProfilesReady"), "ImagePullBackOff: no such image"));
    ck_assert(world_has_event(world, "MeasurementFailed"));
}
END_TEST

/* A result that nobody can read any more is measured again. */
START_TEST(complete_job_without_its_pod_is_made_again)
{
    world_settle(world);
    json_t *job = json_deep_copy(batch());
    auto_free char *uid = xstrdup(kube_uid(job));
    json_object_set_new(job, "status",
                        quoted("{'conditions': [{'type': 'Complete', 'status': 'True'}], "
                               "'completionTime': '2026-01-01T00:16:40Z'}"));
    world_put(world, &kube_batch_job, job); /* now is 00:16:40 */
    world_settle(world);
    ck_assert_str_eq(kube_uid(batch()), uid);
    world_pass_s(world, 60);
    ck_assert_str_ne(kube_uid(batch()), uid);
}
END_TEST

/* The pod of the measurement has ended well, with a result for A100. */
static void end_pod(void)
{
    auto_free char *text = profiler_result(A100, 2);
    put_pod("m-1", "{'phase': 'Succeeded', 'containerStatuses': [{'name': 'profiler', "
                   "'state': {'terminated': {'exitCode': 0}}}]}");
    json_t *pod = world_copy(world, &kube_pod, "ns", "m-1");
    json_t *status = json_array_get(object_at(pod, "status.containerStatuses"), 0);
    object_set(status, "state.terminated.message", json_string(text));
    world_put(world, &kube_pod, pod);
}

START_TEST(result_makes_the_profile_and_ends_the_measurement)
{
    world_settle(world);
    end_pod();
    world_settle(world);
    const json_t *profile = store_find(world->store, &kube_model_profile, "ns", "p");
    ck_assert_str_eq(
        object_text(json_array_get(object_at(profile, "spec.gpuTypes"), 0), "name"),
        A100);
    ck_assert_uint_eq(store_count(world->store, &kube_batch_job), 0);
    ck_assert_str_eq(world_reason(world, "ProfilesReady"), "AllMeasured");
    ck_assert_int_eq(world->plans_asked, 1);
}
END_TEST

START_TEST(refusal_of_the_profile_is_told)
{
    world_settle(world);
    world->memory.profiling_refusals = 1;
    world->memory.profiling_refused_ms = world->now_ms;
    world->memory.profiling_refusal = "ModelProfile: forbidden";
    end_pod();
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "ProfilesReady"), "MeasurementRefused");
    ck_assert_ptr_null(store_find(world->store, &kube_model_profile, "ns", "p"));
    world_pass_s(world, 2);
    ck_assert_ptr_nonnull(store_find(world->store, &kube_model_profile, "ns", "p"));
}
END_TEST

START_TEST(profile_of_another_model_is_not_added_to)
{
    world_put(
        world, &kube_model_profile,
        quoted("{'kind': 'ModelProfile', 'metadata': {'name': 'p', 'namespace': "
               "'ns'}, 'spec': {'model': {'name': 'p', 'precision': 'BF16', "
               "'optimizer': 'AdamW'}, 'layerGroups': [{'name': 'embedding', "
               "'count': 1, 'parameterBytes': 5}], 'gpuTypes': [{'name': 'H100'}]}}"));
    world_settle(world);
    end_pod();
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "ProfilesReady"), "MeasurementFailed");
    ck_assert_ptr_nonnull(strstr(world_message(world, "ProfilesReady"),
                                 "spec.layerGroups: has 1, measured were 3"));
    ck_assert_uint_eq(
        json_array_size(object_at(
            store_find(world->store, &kube_model_profile, "ns", "p"), "spec.gpuTypes")),
        1);
}
END_TEST

START_TEST(without_a_profiler_such_jobs_are_refused)
{
    world->settings = NULL;
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Accepted"), "ProfilerNotConfigured");
    ck_assert_uint_eq(store_count(world->store, &kube_batch_job), 0);
}
END_TEST

START_TEST(entries_are_known_by_all_names_of_the_type)
{
    const struct het_hardware *hardware = het_hardware_builtin();
    static const char *const names[] = { A100, "A100", "NVIDIA-A100-SXM4-40GB" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_auto_t *profile =
            quoted("{'spec': {'gpuTypes': [{'name': '%s'}]}}", names[i]);
        ck_assert(measurement_is_profiled(hardware, profile, A100));
        ck_assert(!measurement_is_profiled(hardware, profile, T4));
    }
    ck_assert(!measurement_is_profiled(hardware, NULL, A100));
}
END_TEST

Suite *test_measurement_suite(void)
{
    Suite *suite = suite_create("measurement");
    TCase *cases = tcase_create("measurement");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, result_becomes_an_entry_of_the_profile);
    tcase_add_test(cases, what_a_result_says_of_the_model_goes_into_a_new_profile);
    tcase_add_loop_test(cases, forged_result_is_refused, 0,
                        sizeof forged / sizeof *forged);
    tcase_add_test(cases, result_that_is_no_json_or_too_long_is_refused);
    tcase_add_test(cases, measurement_takes_what_most_nodes_have);
    tcase_add_test(cases, pods_of_measurements_are_restricted);
    tcase_add_test(cases, measurement_waits_for_a_node_with_enough_free);
    tcase_add_test(cases, refusal_is_told_and_tried_again_later);
    tcase_add_test(cases, image_that_cannot_be_had_is_told);
    tcase_add_test(cases, complete_job_without_its_pod_is_made_again);
    tcase_add_test(cases, result_makes_the_profile_and_ends_the_measurement);
    tcase_add_test(cases, refusal_of_the_profile_is_told);
    tcase_add_test(cases, profile_of_another_model_is_not_added_to);
    tcase_add_test(cases, without_a_profiler_such_jobs_are_refused);
    tcase_add_test(cases, entries_are_known_by_all_names_of_the_type);
    suite_add_tcase(suite, cases);
    return suite;
}
