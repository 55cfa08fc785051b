/* What a job's spec makes of the question to the planner. */
#include "controller/decision/children.h"
#include "tests/controller/world.h"

#include <check.h>

static struct world *world;
static json_t *asked;

static void setup(void)
{
    world = world_new();
    world_node(world, "a", "NVIDIA-A100-SXM4-40GB", 4);
}

static void teardown(void)
{
    json_decref(asked);
    world_free(world);
}

/* What the planner is asked for a job of that spec, until the end of the test; NULL:
 * nothing. */
static const json_t *question(const char *spec)
{
    json_decref(asked);
    asked = NULL;
    world_job(world, spec);
    struct decision decision;
    world_decide(world, world->arena, &decision);
    for (size_t i = 0; i < decision.action_count; i++)
        if (decision.actions[i].kind == ACTION_PLAN)
            asked = json_incref(decision.actions[i].object);
    decision_fini(&decision);
    return asked;
}

#define ARCHITECTURE                                                                     \
    "'model': {'profileRef': null, 'architecture': {'layers': 32, 'hiddenSize': 4096, "  \
    "'heads': 32, 'kvHeads': 8, 'ffnHiddenSize': 14336, 'vocabSize': 128256, "           \
    "'sequenceLength': 4096, 'precision': 'FP16'}}"

START_TEST(architecture_is_asked_about_as_a_config)
{
    json_auto_t *expected = quoted(
        "{'config': {'num_hidden_layers': 32, 'hidden_size': 4096, "
        "'num_attention_heads': 32, 'num_key_value_heads': 8, 'intermediate_size': "
        "14336, 'vocab_size': 128256, 'rms_norm_eps': 0.00001, 'tie_word_embeddings': "
        "false}, 'sequenceLength': 4096, 'precision': 'fp16'}");
    const json_t *profile = json_object_get(question("{" ARCHITECTURE "}"), "profile");
    ck_assert(json_equal(profile, expected));
}
END_TEST

START_TEST(sequence_length_of_the_training_goes_before_that_of_the_architecture)
{
    const json_t *profile = json_object_get(
        question("{" ARCHITECTURE ", 'training': {'sequenceLength': 512}}"), "profile");
    ck_assert_int_eq(json_integer_value(json_object_get(profile, "sequenceLength")), 512);
}
END_TEST

/* What the planner makes of them is tested there (test_instance). */
START_TEST(instance_type_of_a_node_is_handed_on)
{
    world_put(
        world, &kube_node,
        quoted(
            "{'metadata': {'name': 'a', 'uid': 'another machine', 'labels': "
            "{'nvidia.com/gpu.product': 'NVIDIA-A10G', "
            "'node.kubernetes.io/instance-type': 'lab-box'}}, 'spec': {}, 'status': {'allocatable': "
            "{'nvidia.com/gpu': '4'}, 'conditions': [{'type': 'Ready', "
            "'status': 'True'}]}}"));
    const json_t *cluster = json_object_get(question("{}"), "cluster");
    const json_t *node = json_array_get(json_object_get(cluster, "nodes"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(node, "instance_type")),
                     "lab-box");
}
END_TEST

static const char *vendor_of_node(const char *labels, const char *resource)
{
    world_put(world, &kube_node,
              quoted("{'metadata': {'name': 'a', 'labels': {%s}}, 'spec': {}, 'status': "
                     "{'allocatable': {'%s': '4'}, 'conditions': [{'type': 'Ready', "
                     "'status': 'True'}]}}",
                     labels, resource));
    const json_t *cluster = json_object_get(question("{}"), "cluster");
    const json_t *node = json_array_get(json_object_get(cluster, "nodes"), 0);
    ck_assert_ptr_nonnull(node);
    return json_string_value(json_object_get(node, "vendor"));
}

START_TEST(vendor_is_handed_on_where_the_type_does_not_say_it)
{
    ck_assert_str_eq(vendor_of_node("'heterotrain.io/gpu-type': 'Z9'", "amd.com/gpu"),
                     "amd");
    ck_assert_ptr_null(
        vendor_of_node("'heterotrain.io/gpu-type': 'Z9'", "nvidia.com/gpu"));
    ck_assert_ptr_null(
        vendor_of_node("'amd.com/gpu.product-name': 'MI300X'", "amd.com/gpu"));
}
END_TEST

START_TEST(runtimes_that_mix_vendors_are_the_administrators_word)
{
    static const char *const names[] = { "custom" };
    struct settings settings = *settings_default();
    ck_assert_ptr_null(json_object_get(question("{}"), "mixedVendorRuntimes"));
    settings.planner.mixed_vendor_runtimes = names;
    settings.planner.mixed_vendor_runtime_count = 1;
    world->settings = &settings;
    json_auto_t *expected = quoted("['custom']");
    ck_assert(json_equal(json_object_get(question("{'runtime': {'type': 'custom'}}"),
                                         "mixedVendorRuntimes"),
                         expected));
}
END_TEST

START_TEST(gpus_that_cannot_be_had_are_told_with_their_reasons)
{
    world_node(world, "bare", "", 8);
    world_node(world, "cordoned", "NVIDIA-L40S", 4);
    json_t *node = world_copy(world, &kube_node, "", "cordoned");
    json_object_set_new(json_object_get(node, "spec"), "unschedulable", json_true());
    world_put(world, &kube_node, node);
    const json_t *unused = json_object_get(question("{}"), "unused");
    ck_assert_uint_eq(json_array_size(unused), 2);
    auto_free char *text = het_json_canonical(unused);
    ck_assert_ptr_nonnull(strstr(text, "\"nodes\":[\"bare\"],\"reason\":\"NoGPULabel\""));
    ck_assert_ptr_nonnull(strstr(
        text, "{\"gpuType\":\"L40S\",\"gpus\":4,\"message\":\"their node is cordoned\","
              "\"nodeCount\":1,\"nodes\":[\"cordoned\"],\"reason\":\"Unschedulable\"}"));
}
END_TEST

START_TEST(limits_on_plans_are_asked_for)
{
    json_auto_t *constraints = quoted(
        "{'dataParallel': {'minReplicas': 2, 'maxReplicas': 8, 'sharePolicy': 'Equal'}, "
        "'tensorParallel': {'allowedDegrees': [1, 2], 'degreePolicy': 'Uniform'}, "
        "'pipelineParallel': {'maxStages': 3}, 'memoryHeadroomPercent': 20, 'recompute': "
        "'None'}");
    json_auto_t *resources =
        quoted("{'gpuTypes': [{'name': 'A100-SXM4-40GB', 'minGPUs': 2, 'maxGPUs': 4, "
               "'preference': 7}]}");
    json_auto_t *whole = json_pack("{s:{s:O}, s:O}", "planner", "constraints",
                                   constraints, "resources", resources);
    auto_free char *spec = json_dumps(whole, 0);
    const json_t *job = json_object_get(question(spec), "job");
    ck_assert(json_equal(json_object_get(job, "constraints"), constraints));
    ck_assert(json_equal(json_object_get(job, "gpuTypes"),
                         json_object_get(resources, "gpuTypes")));
    ck_assert_int_eq(json_integer_value(json_object_get(job, "memoryHeadroomPercent")),
                     20);
}
END_TEST

START_TEST(profile_of_another_sequence_length_is_refused)
{
    world_put(world, &kube_model_profile,
              quoted("{'metadata': {'name': 'p', 'namespace': 'ns'}, 'spec': "
                     "{'model': {'sequenceLength': 2048}}}"));
    ck_assert_ptr_nonnull(question("{'training': {'sequenceLength': 2048}}"));
    ck_assert_ptr_null(question("{'training': {'sequenceLength': 4096}}"));
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Accepted"), "SequenceLengthDiffers");
}
END_TEST

Suite *test_children_suite(void)
{
    Suite *suite = suite_create("children");
    TCase *cases = tcase_create("desired");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, architecture_is_asked_about_as_a_config);
    tcase_add_test(cases,
                   sequence_length_of_the_training_goes_before_that_of_the_architecture);
    tcase_add_test(cases, instance_type_of_a_node_is_handed_on);
    tcase_add_test(cases, vendor_is_handed_on_where_the_type_does_not_say_it);
    tcase_add_test(cases, runtimes_that_mix_vendors_are_the_administrators_word);
    tcase_add_test(cases, gpus_that_cannot_be_had_are_told_with_their_reasons);
    tcase_add_test(cases, limits_on_plans_are_asked_for);
    tcase_add_test(cases, profile_of_another_sequence_length_is_refused);
    suite_add_tcase(suite, cases);
    return suite;
}
