/* Profiles of other forms as ModelProfile objects: they read back as the same to the last
 * bit, and plans made with them are the same bytes. */
#include "planner/format/profile/object.h"

#include "planner/base/random.h"
#include "planner/format/document/cluster_json.h"
#include "planner/format/document/profile_json.h"
#include "planner/format/profile/config.h"
#include "planner/format/profile/model.h"
#include "planner/format/yaml_read.h"
#include "tests/planner/command.h"
#include "tests/planner/files.h"

#include <check.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#define SAILOR  "tests/data/sailor/layer_times/"
#define METIS   "tests/data/sailor/opt-350"
#define CLUSTER "tests/data/clusters/a100x8_v100x8.json"

static const struct het_profile_facts facts = { .name = "m", .sequence = 2048 };

/* ---- the same profile again ---- */

static void assert_sums(const char *what, const double *a, const double *b,
                        uint32_t count)
{
    ck_assert_msg(!a == !b, "%s: only one has them", what);
    for (uint32_t i = 0; a && i < count; i++)
        ck_assert_msg(!memcmp(&a[i], &b[i], sizeof *a), "%s: layer %u: %.17g, then %.17g",
                      what, i, a[i], b[i]);
}

static void assert_same(const struct het_profile *a, const struct het_profile *b)
{
    uint32_t layers = a->layer_count;
    ck_assert_uint_eq(b->layer_count, layers);
    ck_assert_uint_eq(b->type_count, a->type_count);
    ck_assert_uint_eq(b->measurement_count, a->measurement_count);
    ck_assert_uint_eq(b->bytes_count, a->bytes_count);
    ck_assert_int_eq(b->origin, a->origin);
    ck_assert_int_eq(b->precision, a->precision);
    ck_assert_int_eq(b->shared_embedding, a->shared_embedding);
    for (size_t i = 0; i < a->measurement_count; i++) {
        const struct het_measurement *x = &a->measurements[i], *y = &b->measurements[i];
        ck_assert_str_eq(b->type_names[y->type], a->type_names[x->type]);
        ck_assert_uint_eq(y->tp, x->tp);
        ck_assert_uint_eq(y->microbatch, x->microbatch);
        assert_sums("forward", x->forward_s, y->forward_s, layers + 1);
        assert_sums("backward", x->backward_s, y->backward_s, layers + 1);
        ck_assert(het_profile_optimizer_s(a, x->type, x->tp, 0, layers) ==
                  het_profile_optimizer_s(b, y->type, y->tp, 0, layers));
    }
    for (size_t i = 0; i < a->bytes_count; i++) {
        const struct het_layer_bytes *x = &a->bytes[i], *y = &b->bytes[i];
        ck_assert_uint_eq(y->tp, x->tp);
        assert_sums("parameters", x->parameters, y->parameters, layers + 1);
        assert_sums("state", x->state, y->state, layers + 1);
        assert_sums("activations", x->activations, y->activations, layers + 1);
    }
    assert_sums("outputs", a->boundary_bytes, b->boundary_bytes, layers);
}

/* The object of a profile, which must read back as the same profile. A new reference. */
static json_t *convert(struct het_arena *arena, const struct het_profile *profile)
{
    const struct het_profile *again;
    struct het_error err;
    json_t *object;
    ck_assert_msg(!het_profile_object(profile, &facts, &object, &err), "%s", err.message);
    ck_assert_msg(!het_profile_model_read(arena, object, &again, &err), "%s",
                  err.message);
    assert_same(profile, again);
    return object;
}

static const struct het_profile *read_profile(struct het_arena *arena, const json_t *json)
{
    const struct het_profile *profile = NULL;
    struct het_error err;
    ck_assert_msg(!het_profile_json_read(arena, json, &profile, &err), "%s", err.message);
    return profile;
}

START_TEST(sailor_profiles_read_back_to_the_last_bit)
{
    static const struct {
        const char *folder, *model;
        size_t groups;
    } models[] = {
        /* Layer 1 was measured apart from those behind it; the 35 layers of the last have
           a final norm before the head. */
        { SAILOR "opt-350", "OPT-350", 4 },
        { SAILOR "gpt-neo-2.7", "GPT-Neo-2.7", 4 },
        { SAILOR "llama-3-8", "LLAMA-3-8", 5 },
    };
    struct het_arena *arena = het_arena_new();
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        json_t *times = test_read_directory(models[i].folder), *named = json_object();
        const char *name;
        json_t *content;
        json_object_foreach (times, name, content) {
            auto_free char *type = strndup(name, strlen(name) - strlen(".json"));
            if (strcmp(type, "llm_info") != 0)
                json_object_set(named, type, content);
        }
        json_decref(times);
        json_auto_t *json = json_pack("{s:o, s:o, s:s}", "layerTimes", named, "llmInfo",
                                      test_read_json("tests/data/sailor/llm_info.json"),
                                      "model", models[i].model);
        if (i)
            json_object_set_new(json, "llmInfo",
                                test_read_json(i == 1 ? SAILOR "gpt-neo-2.7/llm_info.json"
                                                      : SAILOR
                                                   "llama-3-8/llm_info.json"));
        json_auto_t *object = convert(arena, read_profile(arena, json));
        json_t *spec = json_object_get(object, "spec");
        ck_assert_uint_eq(json_array_size(json_object_get(spec, "layerGroups")),
                          models[i].groups);
        ck_assert_str_eq(
            json_string_value(json_object_get(json_object_get(spec, "model"), "name")),
            models[i].model);
    }
    het_arena_free(arena);
}
END_TEST

START_TEST(metis_profiles_read_back_to_the_last_bit)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *json = json_pack("{s:o, s:s, s:b}", "files", test_read_directory(METIS),
                                  "precision", "bf16", "sharedEmbedding", 1);
    json_auto_t *object = convert(arena, read_profile(arena, json));
    json_t *spec = json_object_get(object, "spec");
    json_t *model = json_object_get(spec, "model");
    ck_assert_str_eq(json_string_value(json_object_get(model, "precision")), "BF16");
    ck_assert_str_eq(json_string_value(json_object_get(model, "embeddingWeights")),
                     "Shared");
    ck_assert_int_eq(json_integer_value(json_object_get(model, "sequenceLength")), 2048);
    het_arena_free(arena);
}
END_TEST

START_TEST(estimates_read_back_and_say_that_they_are)
{
    static const char *const origins[] = { "Estimated", "Calibrated" };
    struct het_arena *arena = het_arena_new();
    json_auto_t *cluster_json = test_read_json(CLUSTER);
    const struct het_cluster *cluster;
    struct het_error err;
    ck_assert(!het_cluster_json_read(arena, cluster_json, het_hardware_builtin(),
                                     &cluster, &err));
    for (int calibrated = 0; calibrated < 2; calibrated++) {
        json_auto_t *question = json_pack(
            "{s:o, s:i, s:s}", "config", test_read_json("tests/data/models/opt-350.json"),
            "sequenceLength", 2048, "precision", "fp32");
        if (calibrated)
            json_object_set_new(question, "calibration",
                                json_pack("[{s:s, s:f, s:i}, {s:s, s:f, s:i}]", "gpuType",
                                          "A100", "seconds", 0.774, "microBatchSize", 4,
                                          "gpuType", "V100", "seconds", 1.25,
                                          "microBatchSize", 2));
        const struct het_profile *profile;
        ck_assert_msg(!het_profile_config_read(arena, question, cluster,
                                               het_hardware_builtin(), &profile, &err),
                      "%s", err.message);
        json_auto_t *object = convert(arena, profile);
        json_t *spec = json_object_get(object, "spec");
        /* All blocks are one group. */
        ck_assert_uint_eq(json_array_size(json_object_get(spec, "layerGroups")), 3);
        ck_assert_str_eq(
            json_string_value(json_object_get(json_object_get(spec, "model"), "origin")),
            origins[calibrated]);
    }
    het_arena_free(arena);
}
END_TEST

/* A profile of random times, some layers alike, summed up in order. */
static const struct het_profile *random_profile(struct het_arena *arena, uint64_t seed)
{
    uint64_t state = seed;
    uint32_t layers = 2 + het_random_below(&state, 60);
    struct het_profile *profile = HET_ARENA_ARRAY(arena, struct het_profile, 1);
    struct het_measurement *points = HET_ARENA_ARRAY(arena, struct het_measurement, 3);
    struct het_layer_bytes *bytes = HET_ARENA_ARRAY(arena, struct het_layer_bytes, 1);
    static const char *const names[] = { "A", "B" };
    for (uint32_t i = 0; i < 3; i++) {
        double *sums[2];
        for (int d = 0; d < 2; d++) {
            sums[d] = HET_ARENA_ARRAY(arena, double, layers + 1);
            double layer_s = 0;
            for (uint32_t l = 0; l < layers; l++) {
                if (!l || !het_random_below(&state, 4))
                    layer_s = (double)het_random_below(&state, 1u << 30) /
                              (double)(1 + het_random_below(&state, 1u << 30)) *
                              (het_random_below(&state, 2) ? 1e-3 : 1e-9);
                sums[d][l + 1] = sums[d][l] + layer_s;
            }
        }
        points[i] = (struct het_measurement){ .type = i / 2,
                                              .tp = 1,
                                              .microbatch = i == 1 ? 3 : 1,
                                              .forward_s = sums[0],
                                              .backward_s = sums[1],
                                              .optimizer_s = sums[0][1] / 3 };
    }
    double *whole = HET_ARENA_ARRAY(arena, double, layers + 1);
    for (uint32_t l = 0; l < layers; l++)
        whole[l + 1] = whole[l] + 4 * het_random_below(&state, 3);
    bytes[0] = (struct het_layer_bytes){
        .tp = 1, .parameters = whole, .state = whole, .activations = whole
    };
    *profile = (struct het_profile){
        .model = "",
        .layer_count = layers,
        .type_names = names,
        .type_count = 2,
        .measurements = points,
        .measurement_count = 3,
        .bytes = bytes,
        .bytes_count = 1,
        .boundary_bytes = whole,
        .parameter_element_bytes = 2,
        .precision = HET_FP16,
    };
    return profile;
}

START_TEST(random_times_read_back_to_the_last_bit)
{
    const char *given = getenv("HET_SEED");
    uint64_t first = given ? strtoull(given, NULL, 10) : 1, last = given ? first : 200;
    for (uint64_t seed = first; seed <= last; seed++) {
        struct het_arena *arena = het_arena_new();
        const struct het_profile *profile = random_profile(arena, seed);
        struct het_error err;
        json_t *object = NULL;
        if (het_profile_check(profile, &err) < 0 ||
            het_profile_object(profile, &facts, &object, &err) < 0)
            ck_abort_msg("HET_SEED=%llu: %s", (unsigned long long)seed, err.message);
        json_decref(object);
        json_decref(convert(arena, profile));
        het_arena_free(arena);
    }
}
END_TEST

/* ---- what has no room ---- */

static void assert_refused(const struct het_profile *profile, const char *words)
{
    struct het_error err = { 0 };
    json_t *object;
    ck_assert_int_eq(het_profile_object(profile, &facts, &object, &err), -1);
    ck_assert_int_eq(err.code, HET_BAD_INPUT);
    ck_assert_msg(strstr(err.message, words) != NULL, "%s", err.message);
}

START_TEST(what_the_schema_cannot_hold_is_refused)
{
    struct het_arena *arena = het_arena_new();
    struct het_profile profile = *random_profile(arena, 7);
    struct het_measurement points[3];
    memcpy(points, profile.measurements, sizeof points);
    profile.measurements = points;
    static const char *const names[] = { "A", "-B" };

    points[2].microbatch = 4097;
    assert_refused(&profile, "B, degree 1, micro-batch 4097: ");
    points[2].microbatch = 1;
    points[2].optimizer_s = 86401;
    assert_refused(&profile, "times to a day");
    points[2].optimizer_s = 0;
    profile.optimizer = HET_ADAM_DISTRIBUTED;
    assert_refused(&profile, "optimizer: ");
    profile.optimizer = HET_SGD;
    profile.type_names = names;
    assert_refused(&profile, "GPU type \"-B\": ");
    het_arena_free(arena);
}
END_TEST

START_TEST(more_than_64_unequal_layers_are_refused)
{
    struct het_arena *arena = het_arena_new();
    struct het_profile profile = *random_profile(arena, 7);
    double *sums = HET_ARENA_ARRAY(arena, double, 67);
    for (int l = 0; l < 66; l++)
        sums[l + 1] = sums[l] + (l + 1) * 0.001;
    struct het_measurement point = {
        .tp = 1, .microbatch = 1, .forward_s = sums, .backward_s = sums
    };
    const struct het_layer_bytes bytes = { .tp = 1,
                                           .parameters = sums,
                                           .activations = sums };
    profile.measurements = &point;
    profile.measurement_count = 1;
    profile.bytes = &bytes;
    profile.layer_count = 66;
    profile.boundary_bytes = sums;
    assert_refused(&profile, "from layer 64 of 66 on: ");
    het_arena_free(arena);
}
END_TEST

/* ---- the commands ---- */

static char folder[64];

static void setup(void)
{
    command_folder(folder);
}

static void teardown(void)
{
    command_remove(folder);
}

/* What `hetplan plan` prints with options that are separated by blanks. */
static char *plan_with(const char *profile, const char *options)
{
    auto_free char *words = xstrdup(options);
    char *list[8] = { NULL }, *rest = words;
    for (size_t i = 0; i < 7 && (list[i] = strsep(&rest, " ")); i++)
        ;
    struct command_result result =
        command_run(folder, NULL, "plan", "--cluster", CLUSTER, "--global-batch-size",
                    "64", "--effort", "100000", "--profile", profile, list[0], list[1],
                    list[2], list[3], list[4], list[5], NULL);
    ck_assert_msg(!result.exit_code, "%s: %s", profile, result.err);
    char *out = xstrdup(result.out);
    command_result_fini(&result);
    return out;
}

START_TEST(plans_with_what_was_converted_are_the_same_bytes)
{
    static const struct {
        const char *command, *source;
        const char *options[6];   /* of the conversion */
        const char *plan_options; /* with the source, with the object */
        const char *object_options;
    } cases[] = {
        { "from-metis", METIS, { NULL }, "--seed 0", "--seed 0" },
        { "from-metis",
          METIS,
          { "--layer-times", SAILOR "opt-350", "--shared-embedding", NULL },
          "--layer-times " SAILOR "opt-350 --shared-embedding",
          "--seed 0" },
        { "from-sailor", SAILOR "opt-350", { NULL }, "--seed 0", "--seed 0" },
        { "from-sailor", SAILOR "gpt-neo-2.7", { NULL }, "--seed 0", "--seed 0" },
        { "from-config",
          "tests/data/models/llama-3.1-8b.json",
          { "--sequence-length=2048", "--precision=fp16", "--cluster", CLUSTER,
            "--largest-microbatch=8", NULL },
          "--sequence-length 2048 --precision fp16 --largest-microbatch 8",
          "--seed 0" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const *o = cases[i].options;
        auto_free char *file = xasprintf("%s/profile-%zu.yaml", folder, i);
        struct command_result result =
            command_run(folder, NULL, "profile", cases[i].command, cases[i].source,
                        "--name", "m", "--output-file", file, o[0], o[0] ? o[1] : NULL,
                        o[0] && o[1] ? o[2] : NULL, o[0] && o[1] && o[2] ? o[3] : NULL,
                        o[0] && o[1] && o[2] && o[3] ? o[4] : NULL, NULL);
        ck_assert_msg(!result.exit_code, "%s: %s", cases[i].source, result.err);
        ck_assert_str_eq(result.out, "");
        auto_free char *before = plan_with(cases[i].source, cases[i].plan_options);
        auto_free char *after = plan_with(file, cases[i].object_options);
        ck_assert_str_eq(before, after);
        command_result_fini(&result);
    }
}
END_TEST

START_TEST(yaml_and_json_hold_the_same_object)
{
    struct command_result yaml =
        command_run(folder, NULL, "profile", "from-sailor", SAILOR "opt-350", "--name",
                    "opt-350", "--namespace", "team", "--model-name", "OPT 350M", NULL);
    struct command_result json = command_run(
        folder, NULL, "profile", "from-sailor", SAILOR "opt-350", "--name", "opt-350",
        "--namespace", "team", "--model-name", "OPT 350M", "--output", "json", NULL);
    json_auto_t *first = NULL, *second = json_loads(json.out, 0, NULL);
    struct het_error err;
    ck_assert(!het_yaml_parse_one(yaml.out, strlen(yaml.out), &first, &err));
    ck_assert(json_equal(first, second));
    ck_assert(!strncmp(yaml.out,
                       "apiVersion: heterotrain.io/v1alpha1\nkind: "
                       "ModelProfile\nmetadata:\n  name: opt-350\n  namespace: "
                       "team\nspec:\n  model:\n    name: \"OPT 350M\"\n",
                       120));
    command_result_fini(&yaml);
    command_result_fini(&json);
}
END_TEST

START_TEST(errors_name_file_field_or_option)
{
    auto_free char *broken =
        command_write(folder, "DeviceType.A_tp1_bs1.json", "{\"model\": {}}", 13);
    const struct {
        const char *arguments[5], *message;
    } cases[] = {
        { { "from-metis", folder }, "--name NAME is missing" },
        { { "from-metis", folder, "--name", "m" },
          "DeviceType.A_tp1_bs1.json: execution_time.layer_compute_total_ms: is missing" },
        { { "from-metis", SAILOR "opt-350", "--name", "m" },
          "opt-350: is no folder of files called DeviceType." },
        { { "from-sailor", METIS, "--name", "m" },
          "opt-350: is no folder of Sailor's <TYPE>.json files" },
        { { "from-sailor", SAILOR "opt-350", "--name", "No" },
          "--name: \"No\" is no name of an object" },
        { { "from-config", "tests/data/models/opt-350.json", "--name", "m" },
          "--sequence-length N is missing" },
        { { "from-config", "tests/data/models/opt-350.json", "--name=m",
            "--sequence-length=8" },
          "give one of --cluster FILE and --gpu-types LIST" },
        { { "from-config", "tests/data/models/opt-350.json", "--name=m",
            "--sequence-length=8", "--gpu-types=Z80" },
          "no GPU type of the cluster has a known rate" },
        { { "from-config", broken, "--name=m", "--gpu-types=A100" },
          "DeviceType.A_tp1_bs1.json: is no config.json of a model" },
        { { "from-sailor", "--name", "m" }, "the file to convert is missing" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const *a = cases[i].arguments;
        struct command_result result =
            command_run(folder, NULL, "profile", a[0], a[1], a[2], a[3], a[4], NULL);
        ck_assert_int_eq(result.exit_code, 2);
        ck_assert_str_eq(result.out, "");
        ck_assert_msg(strstr(result.err, cases[i].message) != NULL, "%s", result.err);
        command_result_fini(&result);
    }
}
END_TEST

START_TEST(an_estimate_without_a_cluster_is_of_the_types_named)
{
    struct command_result result = command_run(
        folder, NULL, "profile", "from-config", "tests/data/models/llama-3.1-8b.json",
        "--name", "llama", "--sequence-length", "2048", "--gpu-types",
        "A100-SXM4-80GB:4,H100-SXM5-80GB", "--output", "json", NULL);
    ck_assert_msg(!result.exit_code, "%s", result.err);
    json_auto_t *object = json_loads(result.out, 0, NULL);
    struct het_arena *arena = het_arena_new();
    const struct het_profile *profile = read_profile(arena, object);
    ck_assert_uint_eq(profile->type_count, 2);
    ck_assert_str_eq(profile->type_names[0], "A100-SXM4-80GB");
    /* As many GPUs as a node has. */
    ck_assert_uint_eq(het_profile_max_microbatch(profile, 0, 4), 64);
    ck_assert_uint_eq(het_profile_max_microbatch(profile, 0, 8), 0);
    ck_assert_uint_eq(het_profile_max_microbatch(profile, 1, 8), 64);
    ck_assert_int_eq(profile->origin, HET_PROFILE_ESTIMATED);
    het_arena_free(arena);
    command_result_fini(&result);
}
END_TEST

Suite *test_profile_object_suite(void)
{
    Suite *suite = suite_create("profile_object");
    TCase *object = tcase_create("object");
    tcase_add_test(object, sailor_profiles_read_back_to_the_last_bit);
    tcase_add_test(object, metis_profiles_read_back_to_the_last_bit);
    tcase_add_test(object, estimates_read_back_and_say_that_they_are);
    tcase_add_test(object, random_times_read_back_to_the_last_bit);
    tcase_add_test(object, what_the_schema_cannot_hold_is_refused);
    tcase_add_test(object, more_than_64_unequal_layers_are_refused);
    suite_add_tcase(suite, object);
    TCase *command = tcase_create("command");
    tcase_add_checked_fixture(command, setup, teardown);
    tcase_add_test(command, plans_with_what_was_converted_are_the_same_bytes);
    tcase_add_test(command, yaml_and_json_hold_the_same_object);
    tcase_add_test(command, errors_name_file_field_or_option);
    tcase_add_test(command, an_estimate_without_a_cluster_is_of_the_types_named);
    suite_add_tcase(suite, command);
    return suite;
}
