/* The question of a preview, out of objects. */
#include "controller/kubectl/preview.h"

#include "controller/simulate/api_server/api_server.h"
#include "tests/controller/quoted.h"

#include <check.h>
#include <string.h>

#define SMALL_PROFILE                                                                    \
    "{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'ModelProfile', 'metadata': "     \
    "{'name': 'small', 'namespace': 'ns', 'uid': 'p'}, 'spec': {'model': {'name': "      \
    "'small', 'precision': 'BF16', 'optimizer': 'Adam'}, 'layerGroups': [{'name': "      \
    "'all', 'count': 1, 'parameterBytes': 1000000, 'activationOutputBytes': 1000000}], " \
    "'gpuTypes': [{'name': 'A100-SXM4-40GB', 'memoryMiB': 40960, 'measurements': "       \
    "[{'layerGroup': 'all', 'tensorParallel': 1, 'microBatchSize': 1, "                  \
    "'forwardMicroseconds': 1, 'backwardMicroseconds': 2, 'activationBytes': 1}]}]}}"

static struct preview *preview;
static struct het_error err;
static json_t *question;

static void add(const struct kube_resource *resource, json_t *object)
{
    preview_add(preview, resource, object);
    json_decref(object);
}

static json_t *job(const char *name, const char *profile)
{
    return quoted(
        "{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'HeteroTrainingJob', "
        "'metadata': {'name': '%s', 'namespace': 'ns', 'uid': 'uid-%s', "
        "'resourceVersion': '7'}, 'spec': {'model': {'profileRef': {'kind': "
        "'ModelProfile', 'name': '%s'}}, 'training': {'globalBatchSize': 32}, "
        "'podTemplate': {'spec': {'containers': [{'name': 'trainer', 'image': "
        "'train:1'}]}}}}",
        name, name, profile);
}

static void add_node(const char *name, const char *more)
{
    add(&kube_node,
        quoted("{'metadata': {'name': '%s', 'uid': '%s', 'labels': "
               "{'nvidia.com/gpu.product': 'NVIDIA-A100-SXM4-40GB'}}, 'spec': {%s}, "
               "'status': {'allocatable': {'nvidia.com/gpu': '4'}, 'conditions': "
               "[{'type': 'Ready', 'status': 'True'}]}}",
               name, name, more));
}

static void begin(const struct settings *settings)
{
    preview = preview_new(settings, NULL, &err);
    ck_assert_msg(preview != NULL, "%s", err.message);
    add(&kube_model_profile, quoted(SMALL_PROFILE));
    add(&kube_job, job("j", "small"));
}

static void setup(void)
{
    question = NULL;
    begin(settings_default());
    add_node("a", "");
    add(&kube_pod, quoted("{'metadata': {'name': 'other', 'namespace': 'ns', 'uid': 'o'},"
                          " 'spec': {'nodeName': 'a', 'containers': [{'name': 'c', "
                          "'resources': {'limits': {'nvidia.com/gpu': '1'}}}]}, 'status':"
                          " {'phase': 'Running'}}"));
}

static void teardown(void)
{
    json_decref(question);
    preview_free(preview);
}

static int ask(const char *name, const struct het_plan *plan)
{
    struct preview_request request = {
        .ns = "ns", .name = name, .plan = plan, .wall_ms = API_SERVER_START_MS
    };
    return preview_question(preview, &request, &question, &err);
}

static json_t *node_at(size_t index)
{
    return json_array_get(json_object_get(json_object_get(question, "cluster"), "nodes"),
                          index);
}

static int64_t gpus_at(size_t index)
{
    return json_integer_value(json_object_get(node_at(index), "gpus"));
}

START_TEST(question_is_about_the_gpus_that_are_free)
{
    ck_assert_msg(ask("j", NULL) == 0, "%s", err.message);
    ck_assert_int_eq(gpus_at(0), 3); /* 4 - 1 */
    ck_assert_str_eq(json_string_value(json_object_get(node_at(0), "name")), "a");
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(question, "job"),
                                                        "globalBatchSize")),
                     32);
}
END_TEST

START_TEST(job_of_a_file_need_not_be_there)
{
    json_auto_t *other = job("other", "small");
    preview_add_job(preview, "ns", other);
    ck_assert_msg(ask("other", NULL) == 0, "%s", err.message);
    ck_assert_ptr_nonnull(json_object_get(question, "profile"));
}
END_TEST

START_TEST(job_of_a_file_takes_the_place_of_one_of_its_name)
{
    json_auto_t *same = job("j", "none");
    preview_add_job(preview, "ns", same);
    ck_assert_int_eq(ask("j", NULL), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "there is no profile none"));
}
END_TEST

START_TEST(settings_decide_which_nodes_leave)
{
    static const char *const going[] = { "example.org/going" };
    struct settings settings = *settings_default();
    settings.leaving_taints = going;
    settings.leaving_taint_count = 1;
    preview_free(preview);
    begin(&settings);
    add_node("b", "'taints': [{'key': 'example.org/going', 'effect': "
                  "'PreferNoSchedule'}]");
    ck_assert_int_eq(ask("j", NULL), -1);
    ck_assert_int_eq(err.code, HET_NO_PLAN);
    ck_assert_ptr_nonnull(strstr(err.message, "1 node Leaving"));
}
END_TEST

START_TEST(nodes_of_a_plan_count_as_there)
{
    static const uint32_t gpus[] = { 0, 1, 2, 3 };
    const struct het_replica replicas[] = {
        { .node_name = "a", .type_name = "A100-SXM4-40GB", .gpus = gpus, .tp = 4 },
        { .node_name = "gone", .type_name = "A100-SXM4-40GB", .gpus = gpus, .tp = 2 }
    };
    const struct het_stage stage = { .layer_count = 1,
                                     .replicas = replicas,
                                     .replica_count = 2 };
    const struct het_pipeline pipeline = { .stages = &stage, .stage_count = 1 };
    const struct het_plan plan = { .pipelines = &pipeline, .pipeline_count = 1 };
    add_node("b", "");
    ck_assert_msg(ask("j", &plan) == 0, "%s", err.message);
    ck_assert_int_eq(gpus_at(0), 4); /* a: 3 are free, 4 taken by the plan */
    ck_assert_int_eq(gpus_at(1), 4); /* b */
    ck_assert_int_eq(gpus_at(2), 2); /* gone */
    ck_assert_str_eq(json_string_value(json_object_get(node_at(2), "type")),
                     "A100-SXM4-40GB");
}
END_TEST

START_TEST(what_is_missing_is_named)
{
    ck_assert_int_eq(ask("nobody", NULL), -1);
    ck_assert_int_eq(err.code, HET_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "there is no job ns/nobody"));
    preview_free(preview);
    begin(settings_default());
    ck_assert_int_eq(ask("j", NULL), -1);
    ck_assert_int_eq(err.code, HET_NO_PLAN);
    ck_assert_ptr_nonnull(strstr(err.message, "there is no node with GPUs"));
    preview_free(preview);
    begin(settings_default());
    add_node("c", "'unschedulable': true");
    add_node("d", "'unschedulable': true");
    ck_assert_int_eq(ask("j", NULL), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "2 nodes Unschedulable"));
}
END_TEST

Suite *test_preview_suite(void)
{
    Suite *suite = suite_create("preview");
    TCase *tests = tcase_create("preview");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, question_is_about_the_gpus_that_are_free);
    tcase_add_test(tests, job_of_a_file_need_not_be_there);
    tcase_add_test(tests, job_of_a_file_takes_the_place_of_one_of_its_name);
    tcase_add_test(tests, settings_decide_which_nodes_leave);
    tcase_add_test(tests, nodes_of_a_plan_count_as_there);
    tcase_add_test(tests, what_is_missing_is_named);
    suite_add_tcase(suite, tests);
    return suite;
}
