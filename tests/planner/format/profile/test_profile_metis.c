#include "planner/format/profile/metis.h"

#include "tests/planner/files.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ck_near(a, b) ck_assert_double_eq_tol((a) / (b), 1, 1e-12)

/* The OPT-350M files as a document. */
static json_t *opt_350(void)
{
    return json_pack("{s:o}", "files", test_read_directory("tests/data/sailor/opt-350"));
}

static const struct het_profile *read_profile(struct het_arena *arena, const json_t *json)
{
    const struct het_profile *profile = NULL;
    struct het_error err;
    ck_assert_msg(!het_profile_metis_read(arena, json, &profile, &err), "%s",
                  err.message);
    return profile;
}

START_TEST(measured_files_become_a_profile)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *json = opt_350();
    const struct het_profile *profile = read_profile(arena, json);
    ck_assert_uint_eq(profile->layer_count, 26);
    ck_assert_uint_eq(profile->type_count, 2);
    ck_assert_str_eq(profile->type_names[0], "A100");
    ck_assert_str_eq(profile->type_names[1], "V100");
    ck_assert_uint_eq(profile->measurement_count, 12 + 11);
    ck_assert_uint_eq(profile->bytes_count, 3);

    /* A100, tp 1, one sample: all layers 206.721 ms, a third of it forward; layer 1
     * 8.692 ms; the optimizer 76.388 ms. */
    const struct het_measurement *m = het_profile_find(profile, 0, 1, 1);
    ck_near(m->forward_s[26], 0.206721 / 3);
    ck_near(m->backward_s[26], 0.206721 * 2 / 3);
    ck_near(m->forward_s[2] - m->forward_s[1], 0.008692 / 3);
    ck_near(m->optimizer_s, 0.076388);

    /* 50384896 bytes of fp32 parameters; memory 584.26953125 MiB with one sample, of
     * which 5 * 50384896 bytes stay with any number of samples. */
    const struct het_layer_bytes *bytes = het_profile_bytes(profile, 1);
    ck_near(bytes->parameters[2] - bytes->parameters[1], 50384896.0 / 4);
    ck_near(bytes->state[2] - bytes->state[1], 5 * 50384896.0);
    ck_near(bytes->activations[2] - bytes->activations[1],
            584.26953125 * 1048576 - 5 * 50384896.0);
    /* Outputs: 8 MiB a sample; the logits of the head whole, from tp 1. */
    ck_assert_double_eq(profile->boundary_bytes[0], 8388608);
    ck_assert_double_eq(profile->boundary_bytes[25], 412090372);
    ck_assert_double_eq(profile->parameter_element_bytes, 4);
    ck_assert(!profile->shared_embedding);
    het_arena_free(arena);
}
END_TEST

static uint64_t digest(const void *bytes, size_t count, uint64_t hash)
{
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

START_TEST(order_of_files_does_not_matter)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *json = opt_350(), *turned = json_object();
    json_t *files = json_object_get(json, "files"), *value;
    size_t count = json_object_size(files);
    const char **names = HET_ARENA_ARRAY(arena, const char *, count), *name;
    size_t i = 0;
    json_object_foreach (files, name, value)
        names[i++] = name;
    json_t *other = json_object();
    json_object_set_new(turned, "files", other);
    while (i--)
        json_object_set(other, names[i], json_object_get(files, names[i]));
    const struct het_profile *a = read_profile(arena, json);
    const struct het_profile *b = read_profile(arena, turned);
    ck_assert_uint_eq(a->bytes_count, b->bytes_count);
    for (size_t k = 0; k < a->bytes_count; k++) {
        size_t size = 27 * sizeof(double);
        ck_assert_uint_eq(digest(a->bytes[k].state, size, 1),
                          digest(b->bytes[k].state, size, 1));
        ck_assert_uint_eq(digest(a->bytes[k].activations, size, 1),
                          digest(b->bytes[k].activations, size, 1));
    }
    for (size_t k = 0; k < a->measurement_count; k++)
        ck_assert_uint_eq(a->measurements[k].microbatch, b->measurements[k].microbatch);
    het_arena_free(arena);
}
END_TEST

START_TEST(layer_times_replace_the_two_thirds)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *json = opt_350();
    json_t *times =
        json_pack("{s:o}", "A100",
                  test_read_json("tests/data/sailor/layer_times/opt-350/A100.json"));
    json_object_set_new(json, "layerTimes", times);
    const struct het_profile *profile = read_profile(arena, json);
    /* Embedding: 0.4 ms forward, 3 us backward. */
    const struct het_measurement *m = het_profile_find(profile, 0, 1, 1);
    ck_near(m->forward_s[1], 0.0004);
    ck_near(m->backward_s[1], 3e-6);
    /* Layer 1: 2.786 and 5.906 ms. 26 layers of 2.938 ms optimizer. */
    ck_near(m->forward_s[2] - m->forward_s[1], 0.002786);
    ck_near(m->optimizer_s, 26 * 0.002938);
    /* V100 keeps the thirds. */
    m = het_profile_find(profile, 1, 1, 1);
    ck_near(m->backward_s[26] / m->forward_s[26], 2);
    het_arena_free(arena);
}
END_TEST

/* A file of two layers. */
static json_t *small_file(double memory_mib)
{
    return json_pack("{s:{s:i, s:{s:[i, i], s:[i, i]}}, s:{s:[f, f], s:f}, s:{s:[f, f]}}",
                     "model", "num_layers", 2, "parameters", "parameters_per_layer_bytes",
                     4 << 20, 8 << 20, "activation_parameters_bytes", 1000, 2000,
                     "execution_time", "layer_compute_total_ms", 3.0, 6.0,
                     "optimizer_time_ms", 1.0, "execution_memory",
                     "layer_memory_total_mb", memory_mib, memory_mib);
}

START_TEST(type_may_contain_dashes_and_underscores)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *json = json_pack("{s:{s:o, s:o}, s:s, s:s, s:b}", "files",
                                  "DeviceType.NVIDIA_tp4-X_y_tp2_bs16.json",
                                  small_file(100), "DeviceType.B_tp1_bs1.json",
                                  small_file(100), "precision", "bf16", "optimizer",
                                  "sgd", "sharedEmbedding", 1);
    const struct het_profile *profile = read_profile(arena, json);
    ck_assert_str_eq(profile->type_names[1], "NVIDIA_tp4-X_y");
    ck_assert_ptr_nonnull(het_profile_find(profile, 1, 2, 16));
    ck_assert_int_eq(profile->precision, HET_BF16);
    ck_assert_int_eq(profile->optimizer, HET_SGD);
    ck_assert(profile->shared_embedding);
    ck_assert_double_eq(profile->bytes[0].parameters[1], (4 << 20) / 2);
    het_arena_free(arena);
}
END_TEST

START_TEST(memory_is_fitted_within_reason)
{
    static const struct {
        double one, four; /* MiB with one and four samples; 0: not measured */
        double state, activations;
    } cases[] = {
        { 100, 160, 80, 20 }, /* a line */
        { 100, 0, 20, 80 },   /* one size: 5 times 4 MiB of parameters stay */
        { 10, 0, 10, 0 },     /* less than that */
        { 100, 40, 70, 0 },   /* falls: the mean stays */
        /* Would stay below zero: through the origin, (1*10 + 4*100) / (1 + 16). */
        { 10, 100, 0, 410.0 / 17 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct het_arena *arena = het_arena_new();
        json_auto_t *json = json_pack("{s:{s:o}}", "files", "DeviceType.B_tp1_bs1.json",
                                      small_file(cases[i].one));
        if (cases[i].four > 0)
            json_object_set_new(json_object_get(json, "files"),
                                "DeviceType.B_tp1_bs4.json", small_file(cases[i].four));
        const struct het_profile *profile = read_profile(arena, json);
        ck_assert_double_eq_tol(profile->bytes[0].state[1] / 0x1p20, cases[i].state,
                                1e-9);
        /* In whole bytes. */
        ck_assert_double_eq(profile->bytes[0].activations[1],
                            round(cases[i].activations * 0x1p20));
        het_arena_free(arena);
    }
}
END_TEST

START_TEST(one_entry_more_belongs_to_the_last_layer)
{
    struct het_arena *arena = het_arena_new();
    json_t *file = small_file(100);
    json_t *parameters = json_object_get(json_object_get(file, "model"), "parameters");
    json_array_append_new(json_object_get(parameters, "parameters_per_layer_bytes"),
                          json_integer(4000));
    json_auto_t *json =
        json_pack("{s:{s:o}, s:{s:{s:{s:{s:[f, f, f], s:[f, f, f], s:[f, f]}}}}}",
                  "files", "DeviceType.B_tp1_bs1.json", file, "layerTimes", "B", "1", "1",
                  "0", 1.0, 2.0, 0.5, "1", 3.0, 4.0, 0.25, "2", 10.0, 20.0);
    const struct het_profile *profile = read_profile(arena, json);
    ck_assert_uint_eq(profile->layer_count, 2);
    ck_assert_double_eq(profile->bytes[0].parameters[2],
                        ((4 << 20) + (8 << 20) + 4000) / 4);
    ck_assert_double_eq(profile->measurements[0].forward_s[2], 1 + 3 + 10);
    ck_assert_double_eq(profile->measurements[0].backward_s[2], 2 + 4 + 20);
    ck_assert_double_eq(profile->measurements[0].optimizer_s, 0.75);
    het_arena_free(arena);
}
END_TEST

static void refuses(json_t *files, const char *message)
{
    struct het_arena *arena = het_arena_new();
    const struct het_profile *profile;
    struct het_error err = { 0 };
    json_auto_t *json = json_pack("{s:o}", "files", files);
    ck_assert_int_eq(het_profile_metis_read(arena, json, &profile, &err), -1);
    ck_assert_int_eq(err.code, HET_BAD_INPUT);
    ck_assert_msg(strstr(err.message, message), "%s", err.message);
    het_arena_free(arena);
}

/* A file with `path` ("a.b") replaced by the JSON text `value`. */
static json_t *bad_file(const char *object, const char *inner, const char *key,
                        const char *value)
{
    json_t *file = small_file(100);
    json_t *parent = json_object_get(file, object);
    if (inner)
        parent = json_object_get(parent, inner);
    json_object_set_new(parent, key, json_loads(value, JSON_DECODE_ANY, NULL));
    return json_pack("{s:o}", "DeviceType.B_tp1_bs1.json", file);
}

START_TEST(faults_name_file_and_field)
{
    refuses(json_object(), "files: has 0 files");
    refuses(json_pack("{s:{}}", "A100.json"), "A100.json: must be called DeviceType.");
    refuses(json_pack("{s:{}}", "DeviceType._tp1_bs1.json"), "must be called");
    refuses(json_pack("{s:{}}", "DeviceType.A_tp0_bs1.json"), "must be called");
    refuses(json_pack("{s:{}}", "DeviceType.A_tp1_bs99999999999.json"), "must be called");
    refuses(json_pack("{s:[]}", "DeviceType.A_tp1_bs1.json"), "must be an object");
    refuses(json_pack("{s:{}}", "DeviceType.A_tp1_bs1.json"),
            "DeviceType.A_tp1_bs1.json: execution_time.layer_compute_total_ms: is "
            "missing");
    refuses(bad_file("model", NULL, "num_layers", "3"),
            "DeviceType.B_tp1_bs1.json: execution_time.layer_compute_total_ms: has 2 "
            "entries, expected 3");
    refuses(bad_file("execution_memory", NULL, "layer_memory_total_mb", "[1]"),
            "execution_memory.layer_memory_total_mb: has 1 entries, expected 2");
    refuses(bad_file("execution_time", NULL, "layer_compute_total_ms", "[1,-1]"),
            "execution_time.layer_compute_total_ms[1]: must be 0 to");
    refuses(bad_file("execution_time", NULL, "layer_compute_total_ms", "[1,1e300]"),
            "execution_time.layer_compute_total_ms[1]: must be 0 to");
    refuses(bad_file("execution_time", NULL, "layer_compute_total_ms", "[0,0]"),
            "no layer takes any time");
    refuses(bad_file("model", "parameters", "parameters_per_layer_bytes", "[1,\"x\"]"),
            "model.parameters.parameters_per_layer_bytes[1]: must be a number");
    json_t *three = json_loads(
        "{\"execution_time\":{\"layer_compute_total_ms\":[1]},\"model\":{\"parameters\":{"
        "\"parameters_per_layer_bytes\":[1],\"activation_parameters_bytes\":[1]}},"
        "\"execution_memory\":{\"layer_memory_total_mb\":[1]}}",
        0, NULL);
    refuses(json_pack("{s:o, s:o}", "DeviceType.B_tp1_bs1.json", small_file(1),
                      "DeviceType.B_tp1_bs2.json", three),
            "DeviceType.B_tp1_bs2.json: model.num_layers: has 1 layers, but "
            "DeviceType.B_tp1_bs1.json has 2");
    refuses(json_pack("{s:o, s:o}", "DeviceType.B_tp1_bs1.json", small_file(1),
                      "d/DeviceType.B_tp1_bs1.json", small_file(1)),
            "measure the same");
}
END_TEST

Suite *test_profile_metis_suite(void)
{
    Suite *suite = suite_create("profile_metis");
    TCase *cases = tcase_create("profile_metis");
    tcase_add_test(cases, measured_files_become_a_profile);
    tcase_add_test(cases, order_of_files_does_not_matter);
    tcase_add_test(cases, layer_times_replace_the_two_thirds);
    tcase_add_test(cases, type_may_contain_dashes_and_underscores);
    tcase_add_test(cases, memory_is_fitted_within_reason);
    tcase_add_test(cases, one_entry_more_belongs_to_the_last_layer);
    tcase_add_test(cases, faults_name_file_and_field);
    suite_add_tcase(suite, cases);
    return suite;
}
