#include "planner/format/profile/model.h"

#include <check.h>
#include <string.h>

#define ck_near(a, b) ck_assert_double_eq_tol((a) / (b), 1, 1e-12)

/* Embedding, two blocks, head; one type, degrees 1 and 2. */
static json_t *object(void)
{
    json_error_t problem;
    json_t *json = json_loads(
        "{\"kind\":\"ModelProfile\",\"metadata\":{\"name\":\"m\"},\"spec\":{"
        "\"model\":{\"name\":\"m\",\"precision\":\"BF16\",\"optimizer\":\"AdamW\"},"
        "\"layerGroups\":["
        "{\"name\":\"embedding\",\"parameterBytes\":1001,\"activationOutputBytes\":50,"
        "\"parameterBytesPerRank\":[{\"tensorParallel\":2,\"bytes\":600}]},"
        "{\"name\":\"block\",\"count\":2,\"parameterBytes\":400,"
        "\"activationOutputBytes\":60},"
        "{\"name\":\"head\",\"parameterBytes\":800,\"activationOutputBytes\":70}],"
        "\"gpuTypes\":[{\"name\":\"A100\",\"memoryMiB\":40000,"
        "\"costPerHourMilliUSD\":3670,"
        "\"optimizerMicroseconds\":[{\"tensorParallel\":1,\"microseconds\":90}],"
        "\"measurements\":["
        "{\"layerGroup\":\"head\",\"tensorParallel\":1,\"microBatchSize\":2,"
        "\"forwardMicroseconds\":30,\"backwardMicroseconds\":40,\"activationBytes\":14},"
        "{\"layerGroup\":\"block\",\"tensorParallel\":1,\"microBatchSize\":2,"
        "\"forwardMicroseconds\":10,\"backwardMicroseconds\":20,\"activationBytes\":8,"
        "\"workspaceBytes\":77},"
        "{\"layerGroup\":\"embedding\",\"tensorParallel\":1,\"microBatchSize\":2,"
        "\"forwardMicroseconds\":1,\"backwardMicroseconds\":2,\"activationBytes\":4},"
        "{\"layerGroup\":\"block\",\"tensorParallel\":1,\"microBatchSize\":2,"
        "\"recompute\":\"Full\",\"forwardMicroseconds\":99,\"backwardMicroseconds\":99,"
        "\"activationBytes\":99},"
        "{\"layerGroup\":\"embedding\",\"tensorParallel\":2,\"microBatchSize\":1,"
        "\"forwardMicroseconds\":1,\"backwardMicroseconds\":1,\"activationBytes\":1},"
        "{\"layerGroup\":\"block\",\"tensorParallel\":2,\"microBatchSize\":1,"
        "\"forwardMicroseconds\":2,\"backwardMicroseconds\":2,\"activationBytes\":2},"
        "{\"layerGroup\":\"head\",\"tensorParallel\":2,\"microBatchSize\":1,"
        "\"forwardMicroseconds\":3,\"backwardMicroseconds\":3,\"activationBytes\":3}"
        "]}]}}",
        0, &problem);
    ck_assert_msg(json != NULL, "%d: %s", problem.column, problem.text);
    return json;
}

START_TEST(groups_expand_to_layers_and_units_to_ours)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *json = object();
    const struct het_profile *profile;
    struct het_error err;
    ck_assert_msg(!het_profile_model_read(arena, json, &profile, &err), "%s",
                  err.message);
    ck_assert_str_eq(profile->model, "m");
    ck_assert_uint_eq(profile->layer_count, 1 + 2 + 1);
    ck_assert_int_eq(profile->precision, HET_BF16);
    ck_assert_int_eq(profile->optimizer, HET_ADAM);
    ck_assert_uint_eq(profile->measurement_count, 2);
    const struct het_measurement *m = het_profile_find(profile, 0, 1, 2);
    ck_near(m->forward_s[4], (1 + 2 * 10 + 30) * 1e-6);
    ck_near(m->backward_s[4] - m->backward_s[1], (2 * 20 + 40) * 1e-6);
    ck_near(m->optimizer_s, 90e-6);
    ck_assert_double_eq(het_profile_find(profile, 0, 2, 1)->optimizer_s, 0);

    /* Two bytes a parameter; a rank of two: 600 as given, then 400 / 2, 800 / 2. */
    const struct het_layer_bytes *one = het_profile_bytes(profile, 1);
    const struct het_layer_bytes *two = het_profile_bytes(profile, 2);
    ck_assert_double_eq(one->parameters[4], (1001 + 2 * 400 + 800) / 2.0);
    ck_assert_double_eq(two->parameters[4], (600 + 2 * 200 + 400) / 2.0);
    ck_assert_ptr_null(one->state);
    /* A sample: 4 / 2, 8 / 2, 14 / 2. */
    ck_assert_double_eq(one->activations[4], 2 + 2 * 4 + 7);
    ck_assert_double_eq(one->workspace_bytes, 77);
    ck_assert_double_eq(two->workspace_bytes, 0);
    ck_assert_double_eq(profile->boundary_bytes[2], 60);
    het_arena_free(arena);
}
END_TEST

START_TEST(selective_recomputation_is_as_measured)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *json = object();
    json_t *type =
        json_array_get(json_object_get(json_object_get(json, "spec"), "gpuTypes"), 0);
    json_array_append_new(
        json_object_get(type, "measurements"),
        json_loads("{\"layerGroup\":\"block\",\"tensorParallel\":1,\"microBatchSize\":2,"
                   "\"recompute\":\"Selective\",\"forwardMicroseconds\":10,"
                   "\"backwardMicroseconds\":26,\"activationBytes\":6}",
                   0, NULL));
    const struct het_profile *profile;
    ck_assert(!het_profile_model_read(arena, json, &profile, NULL));
    double backward;
    /* Of embedding and head there is nothing else: 2 and 40 us as without. */
    ck_assert(het_profile_selective_s(profile, 0, 1, 2, 0, 4, &backward));
    ck_near(backward, (2 + 2 * 26 + 40) * 1e-6);
    ck_near(het_profile_bytes(profile, 1)->selective_activations[4], 2 + 2 * 3 + 7);
    ck_near(het_profile_bytes(profile, 1)->activations[4], 2 + 2 * 4 + 7);
    /* Degree 2 was not measured so. */
    ck_assert(!het_profile_selective_s(profile, 0, 2, 1, 0, 4, &backward));
    ck_assert_ptr_null(het_profile_bytes(profile, 2)->selective_activations);
    het_arena_free(arena);
}
END_TEST

START_TEST(state_and_shared_weights_are_options_of_the_model)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *json = object();
    json_t *model = json_object_get(json_object_get(json, "spec"), "model");
    json_object_set_new(model, "stateBytesPerParameter", json_integer(20));
    json_object_set_new(model, "embeddingWeights", json_string("Shared"));
    const struct het_profile *profile;
    ck_assert_int_eq(het_profile_model_read(arena, json, &profile, NULL), 0);
    ck_assert(profile->shared_embedding);
    ck_assert_double_eq(het_profile_bytes(profile, 1)->state[4],
                        20 * (1001 + 2 * 400 + 800) / 2.0);
    het_arena_free(arena);
}
END_TEST

START_TEST(memory_and_price_are_laid_over_the_table)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *json = object();
    const struct het_hardware *known = het_hardware_builtin();
    const struct het_hardware *hardware = het_profile_model_hardware(arena, json, known);
    /* 40000 MiB of an A100: the 40 GB one. The others stay as they were. */
    const struct het_gpu_type *type = het_hardware_find(hardware, "A100-SXM4-40GB");
    ck_assert_uint_eq(type->memory_bytes, (uint64_t)40000 << 20);
    ck_assert_double_eq(type->price_per_hour, 3.67);
    ck_assert_uint_eq(het_hardware_find(hardware, "A100-SXM4-80GB")->memory_bytes,
                      (uint64_t)80 << 30);
    ck_assert_uint_eq(hardware->type_count, known->type_count);

    json_t *gpu_types = json_object_get(json_object_get(json, "spec"), "gpuTypes");
    json_object_set_new(json_array_get(gpu_types, 0), "name", json_string("Z9"));
    hardware = het_profile_model_hardware(arena, json, known);
    ck_assert_uint_eq(hardware->type_count, known->type_count + 1);
    ck_assert_uint_eq(het_hardware_find(hardware, "z9")->memory_bytes,
                      (uint64_t)40000 << 20);
    het_arena_free(arena);
}
END_TEST

/* Sets the member at `path`, a list of keys and indices, to the JSON text `value`;
 * "delete" deletes it. */
static void refuses(const char *path, const char *value, const char *message)
{
    json_auto_t *json = object();
    json_t *parent = json;
    char words[200], *key = words;
    strcpy(words, path);
    for (char *dot; (dot = strchr(key, '.')); key = dot + 1) {
        *dot = '\0';
        parent = json_is_array(parent) ? json_array_get(parent, (size_t)(*key - '0'))
                                       : json_object_get(parent, key);
        ck_assert_ptr_nonnull(parent);
    }
    if (!strcmp(value, "delete"))
        json_object_del(parent, key);
    else if (json_is_array(parent))
        json_array_append_new(parent, json_loads(value, JSON_DECODE_ANY, NULL));
    else
        json_object_set_new(parent, key, json_loads(value, JSON_DECODE_ANY, NULL));

    struct het_arena *arena = het_arena_new();
    const struct het_profile *profile;
    struct het_error err = { 0 };
    ck_assert_int_eq(het_profile_model_read(arena, json, &profile, &err), -1);
    ck_assert_int_eq(err.code, HET_BAD_INPUT);
    ck_assert_msg(strstr(err.message, message), "%s", err.message);
    het_arena_free(arena);
}

START_TEST(faults_name_the_field)
{
    const char *measurement = "spec.gpuTypes.0.measurements.0.";
    char path[100];
    refuses("spec", "delete", "spec: is missing");
    refuses("spec.model", "delete", "spec.model: is missing");
    refuses("spec.model.precision", "\"FP8\"",
            "spec.model.precision: precision \"FP8\": must be fp32");
    refuses("spec.model.embeddingWeights", "\"x\"", "must be Separate or Shared");
    refuses("spec.layerGroups", "[]", "spec.layerGroups: must have at least one");
    refuses("spec.layerGroups.0.count", "4096", "more than 4096 layers together");
    refuses("spec.layerGroups.0.name", "\"head\"",
            "spec.layerGroups[2]: another layer group is called head");
    refuses("spec.layerGroups.0.parameterBytes", "-1",
            "spec.layerGroups[0].parameterBytes: must be 0 to");
    refuses("spec.gpuTypes", "delete", "spec.gpuTypes: is missing");
    refuses("spec.gpuTypes.0.measurements", "[]", "no measurements");
    snprintf(path, sizeof path, "%slayerGroup", measurement);
    refuses(path, "\"tail\"",
            "spec.gpuTypes[0].measurements[0].layerGroup: no layer group is called tail");
    refuses(path, "\"block\"", "A100, tensorParallel 1, microBatchSize 2: layer group");
    snprintf(path, sizeof path, "%stensorParallel", measurement);
    refuses(path, "0",
            "spec.gpuTypes[0].measurements[0].tensorParallel: must be 1 to 64");
    refuses(path, "4", "layer group head is not measured");
    refuses("spec.gpuTypes.1", "{\"name\":\"A100\",\"measurements\":[]}",
            "spec.gpuTypes: two entries are called A100");
    refuses("spec.gpuTypes.0.measurements.9",
            "{\"layerGroup\":\"head\",\"tensorParallel\":2,\"microBatchSize\":1,"
            "\"forwardMicroseconds\":3,\"backwardMicroseconds\":3,\"activationBytes\":3}",
            "A100, tensorParallel 2, microBatchSize 1: layer group head is measured "
            "twice");
}
END_TEST

static json_t *first_measurement(json_t *json)
{
    json_t *spec = json_object_get(json, "spec");
    json_t *type = json_array_get(json_object_get(spec, "gpuTypes"), 0);
    return json_array_get(json_object_get(type, "measurements"), 0);
}

START_TEST(microseconds_may_be_decimals_in_quotes)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *json = object();
    const struct het_profile *profile;
    struct het_error err;
    json_t *head = first_measurement(json);
    json_object_set_new(head, "forwardMicroseconds", json_string("5581.25"));
    json_object_set_new(head, "backwardMicroseconds", json_integer(5581));
    ck_assert(!het_profile_model_read(arena, json, &profile, &err));
    const struct het_measurement *m = het_profile_find(profile, 0, 1, 2);
    /* As if the seconds had been written: no other rounding. */
    ck_assert(m->forward_s[4] == m->forward_s[3] + 0.00558125);
    ck_assert(m->backward_s[4] == m->backward_s[3] + 5581 * 1e-6);
    json_object_set_new(head, "forwardMicroseconds", json_string("5 ms"));
    ck_assert(het_profile_model_read(arena, json, &profile, &err) < 0);
    ck_assert_msg(strstr(err.message, "measurements[0].forwardMicroseconds: ") != NULL,
                  "%s", err.message);
    het_arena_free(arena);
}
END_TEST

START_TEST(origin_of_times_is_read)
{
    static const struct {
        const char *name;
        enum het_profile_origin origin;
    } origins[] = { { "Measured", HET_PROFILE_MEASURED },
                    { "Estimated", HET_PROFILE_ESTIMATED },
                    { "Calibrated", HET_PROFILE_CALIBRATED } };
    struct het_arena *arena = het_arena_new();
    json_auto_t *json = object();
    json_t *model = json_object_get(json_object_get(json, "spec"), "model");
    const struct het_profile *profile;
    struct het_error err;
    ck_assert(!het_profile_model_read(arena, json, &profile, &err));
    ck_assert_int_eq(profile->origin, HET_PROFILE_MEASURED);
    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++) {
        json_object_set_new(model, "origin", json_string(origins[i].name));
        ck_assert(!het_profile_model_read(arena, json, &profile, &err));
        ck_assert_int_eq(profile->origin, origins[i].origin);
    }
    json_object_set_new(model, "origin", json_string("Guessed"));
    ck_assert(het_profile_model_read(arena, json, &profile, &err) < 0);
    ck_assert_str_eq(err.message,
                     "spec.model.origin: must be Measured, Estimated or Calibrated");
    het_arena_free(arena);
}
END_TEST

/* The embedding's state was measured for degree 2 only; the rest follows from 18 bytes a
 * parameter, those of Adam in bf16. */
START_TEST(measured_state_stands_before_bytes_a_parameter)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *json = object();
    const struct het_profile *profile;
    struct het_error err;
    json_t *spec = json_object_get(json, "spec");
    json_t *embedding = json_array_get(json_object_get(spec, "layerGroups"), 0);
    json_object_set_new(embedding, "stateBytesPerRank",
                        json_pack("[{s:i, s:i}]", "tensorParallel", 2, "bytes", 5000));
    ck_assert(!het_profile_model_read(arena, json, &profile, &err));
    ck_assert_ptr_null(het_profile_bytes(profile, 1)->state);
    const double *state = het_profile_bytes(profile, 2)->state;
    ck_assert_double_eq(state[1], 5000);
    ck_assert_double_eq(state[2] - state[1], 400 / 2 / 2.0 * 18);

    json_object_set_new(json_object_get(spec, "model"), "stateBytesPerParameter",
                        json_integer(20));
    ck_assert(!het_profile_model_read(arena, json, &profile, &err));
    ck_assert_double_eq(het_profile_bytes(profile, 1)->state[1], 1001 / 2.0 * 20);
    state = het_profile_bytes(profile, 2)->state;
    ck_assert_double_eq(state[1], 5000);
    ck_assert_double_eq(state[2] - state[1], 400 / 2 / 2.0 * 20);
    het_arena_free(arena);
}
END_TEST

Suite *test_profile_model_suite(void)
{
    Suite *suite = suite_create("profile_model");
    TCase *cases = tcase_create("profile_model");
    tcase_add_test(cases, microseconds_may_be_decimals_in_quotes);
    tcase_add_test(cases, origin_of_times_is_read);
    tcase_add_test(cases, measured_state_stands_before_bytes_a_parameter);
    tcase_add_test(cases, selective_recomputation_is_as_measured);
    tcase_add_test(cases, groups_expand_to_layers_and_units_to_ours);
    tcase_add_test(cases, state_and_shared_weights_are_options_of_the_model);
    tcase_add_test(cases, memory_and_price_are_laid_over_the_table);
    tcase_add_test(cases, faults_name_the_field);
    suite_add_tcase(suite, cases);
    return suite;
}
