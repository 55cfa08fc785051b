/* The question of a preview, of the embedded server. */
#include "controller/preview.h"

#include "controller/embedded.h"
#include "planner/hetplan.h"
#include "tests/controller/api.h"

#include <check.h>
#include <string.h>

static struct embedded *server;

static void put(json_t *object)
{
    struct het_error err = { 0 };
    ck_assert_msg(embedded_put(server, object, &err) == 0, "%s", err.message);
}

static json_t *job(const char *name, const char *profile)
{
    return quoted(
        "{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'HeteroTrainingJob', "
        "'metadata': {'name': '%s'}, 'spec': {'model': {'profileRef': {'kind': "
        "'ModelProfile', 'name': '%s'}}, 'training': {'globalBatchSize': 32}, "
        "'podTemplate': {'spec': {'containers': [{'name': 'trainer', 'image': "
        "'train:1'}]}}}}",
        name, profile);
}

static void setup(void)
{
    server = embedded_new(1);
    put(quoted("{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'a', 'labels': "
               "{'nvidia.com/gpu.product': 'NVIDIA-A100-SXM4-40GB'}}, 'status': "
               "{'capacity': {'nvidia.com/gpu': '4'}, 'allocatable': {'nvidia.com/gpu': "
               "'4'}, 'conditions': [{'type': 'Ready', 'status': 'True'}]}}"));
    put(quoted("{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'other', "
               "'namespace': 'default'}, 'spec': {'nodeName': 'a', 'containers': "
               "[{'name': 'c', 'image': 'x', 'resources': {'limits': {'nvidia.com/gpu': "
               "'1'}}}]}, 'status': {'phase': 'Running'}}"));
    put(quoted("{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'ModelProfile', "
               "'metadata': {'name': 'small'}, 'spec': {'model': {'name': 'small', "
               "'precision': 'BF16', 'optimizer': 'Adam'}, 'layerGroups': [{'name': "
               "'all', 'count': 1, 'parameterBytes': 1000000, 'activationOutputBytes': "
               "1000000}], 'gpuTypes': [{'name': 'A100-SXM4-40GB', 'memoryMiB': 40960, "
               "'measurements': [{'layerGroup': 'all', 'tensorParallel': 1, "
               "'microBatchSize': 1, 'forwardMicroseconds': 1, 'backwardMicroseconds': "
               "2, 'activationBytes': 1}]}]}}"));
    put(job("j", "small"));
}

static void teardown(void)
{
    embedded_free(server);
}

/* What comes of it; `ret` is the question if that is 0. Nothing may be written. */
static int preview(const struct preview_config *config, json_t **ret,
                   struct het_error *err)
{
    struct transport *transport = embedded_transport(server);
    struct preview *asked = preview_new(transport, config, err);
    ck_assert_ptr_nonnull(asked);
    uint64_t writes = embedded_statistics(server).writes;
    int64_t now_ms = embedded_now_ms(server), end_ms = now_ms + 60000;
    for (; !preview_is_synced(asked) && now_ms < end_ms; now_ms += 10) {
        embedded_advance(server, now_ms);
        preview_step(asked, now_ms);
        ck_assert_int_ge(preview_next_ms(asked), 0);
        transport_poll(transport, NULL, 0, 0);
    }
    ck_assert(preview_is_synced(asked));
    int result = preview_question(asked, now_ms, EMBEDDED_START_MS, ret, err);
    preview_free(asked);
    ck_assert_uint_eq(embedded_statistics(server).writes, writes);
    return result;
}

START_TEST(question_is_about_the_gpus_that_are_free)
{
    struct preview_config config = { .ns = "default", .name = "j" };
    struct het_error err = { 0 };
    json_t *question;
    ck_assert_msg(preview(&config, &question, &err) == 0, "%s", err.message);
    json_t *node =
        json_array_get(json_object_get(json_object_get(question, "cluster"), "nodes"), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(node, "gpus")), 3);
    ck_assert_str_eq(json_string_value(json_object_get(node, "name")), "a");
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(question, "job"),
                                                        "globalBatchSize")),
                     32);
    json_decref(question);
}
END_TEST

START_TEST(job_of_a_file_need_not_be_there)
{
    json_auto_t *other = job("other", "small");
    struct preview_config config = { .ns = "default", .job = other };
    struct het_error err = { 0 };
    json_t *question;
    ck_assert_msg(preview(&config, &question, &err) == 0, "%s", err.message);
    ck_assert_ptr_nonnull(json_object_get(question, "profile"));
    json_decref(question);
    /* It takes the place of one of its name. */
    json_auto_t *same = job("j", "none");
    config.job = same;
    ck_assert_int_eq(preview(&config, &question, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "there is no profile none"));
}
END_TEST

START_TEST(what_is_missing_is_named)
{
    struct preview_config config = { .ns = "default", .name = "nobody" };
    struct het_error err = { 0 };
    json_t *question;
    ck_assert_int_eq(preview(&config, &question, &err), -1);
    ck_assert_int_eq(err.code, HET_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "there is no job default/nobody"));
    embedded_drop(server, "nodes", "", "a");
    config.name = "j";
    ck_assert_int_eq(preview(&config, &question, &err), -1);
    ck_assert_int_eq(err.code, HET_NO_PLAN);
}
END_TEST

Suite *test_preview_suite(void)
{
    Suite *suite = suite_create("preview");
    TCase *tests = tcase_create("preview");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, question_is_about_the_gpus_that_are_free);
    tcase_add_test(tests, job_of_a_file_need_not_be_there);
    tcase_add_test(tests, what_is_missing_is_named);
    suite_add_tcase(suite, tests);
    return suite;
}
