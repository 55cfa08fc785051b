#include "planner/format/profile/sailor.h"

#include "planner/format/document/profile_json.h"
#include "tests/planner/command.h"
#include "tests/planner/files.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define ck_near(a, b) ck_assert_double_eq_tol((a) / (b), 1, 1e-12)

#define FOLDER "tests/data/sailor/layer_times/opt-350"

static json_t *layer_times(void)
{
    return json_pack("{s:o, s:o}", "A100", test_read_json(FOLDER "/A100.json"), "V100",
                     test_read_json(FOLDER "/V100.json"));
}

static json_t *opt_350(void)
{
    return json_pack("{s:o, s:o}", "layerTimes", layer_times(), "llmInfo",
                     test_read_json("tests/data/sailor/llm_info.json"));
}

/* Two layers of one type, micro-batch 2, degree 1. */
static const char *const SMALL =
    "{'layerTimes': {'G': {'2': {'1': {'0': [0.001, 0.002, 0.01], '1': [0.003, 0.004]}}}},"
    " 'llmInfo': {'m': {'1': {"
    "   '0': {'params_floats': 100, 'act_mem_floats': 20, 'act_output_floats': 5},"
    "   '1': {'params_floats': 300, 'act_mem_floats': 40, 'act_output_floats': 7}}}}}";

/* Single quotes stand for double ones. */
static json_t *parse(const char *text)
{
    char *copy = strdup(text);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json_t *json = json_loads(copy, 0, NULL);
    ck_assert_ptr_nonnull(json);
    free(copy);
    return json;
}

static const struct het_profile *read_profile(struct het_arena *arena, const json_t *json)
{
    const struct het_profile *profile = NULL;
    struct het_error err;
    ck_assert_msg(!het_profile_json_read(arena, json, &profile, &err), "%s", err.message);
    return profile;
}

START_TEST(layer_times_and_sizes_become_a_profile)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *json = parse(SMALL);
    const struct het_profile *profile = read_profile(arena, json);
    ck_assert_str_eq(profile->model, "m");
    ck_assert_uint_eq(profile->layer_count, 2);
    const struct het_measurement *m = het_profile_find(profile, 0, 1, 2);
    ck_near(m->forward_s[2], 0.001 + 0.003);
    ck_near(m->backward_s[1], 0.002);
    ck_near(m->optimizer_s, 0.01);
    const struct het_layer_bytes *bytes = het_profile_bytes(profile, 1);
    ck_near(bytes->parameters[2], 100 + 300);
    ck_near(bytes->state[2], 20 * (100.0 + 300));
    ck_near(bytes->activations[2], 4 * (20.0 + 40));
    ck_near(profile->boundary_bytes[0], 4 * 5.0);
    het_arena_free(arena);
}
END_TEST

START_TEST(both_forms_of_the_same_measurements_agree)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *sailor = opt_350();
    json_auto_t *metis = json_pack("{s:o, s:o}", "files",
                                   test_read_directory("tests/data/sailor/opt-350"),
                                   "layerTimes", layer_times());
    const struct het_profile *a = read_profile(arena, sailor);
    const struct het_profile *b = read_profile(arena, metis);
    ck_assert_uint_eq(a->layer_count, b->layer_count);
    for (size_t i = 0; i < b->measurement_count; i++) {
        const struct het_measurement *m = &b->measurements[i];
        const struct het_measurement *same =
            het_profile_find(a, m->type, m->tp, m->microbatch);
        ck_assert_ptr_nonnull(same);
        for (uint32_t l = 1; l <= b->layer_count; l++) {
            ck_near(same->forward_s[l], m->forward_s[l]);
            ck_near(same->backward_s[l], m->backward_s[l]);
        }
        ck_near(same->optimizer_s, m->optimizer_s);
    }
    for (size_t i = 0; i < b->bytes_count; i++) {
        const struct het_layer_bytes *bytes = &b->bytes[i];
        const struct het_layer_bytes *same = het_profile_bytes(a, bytes->tp);
        for (uint32_t l = 1; l <= b->layer_count; l++) {
            ck_near(same->parameters[l], bytes->parameters[l]);
            /* A fit over micro-batch sizes on the one side. */
            ck_assert_double_eq_tol(same->state[l] / bytes->state[l], 1, 1e-3);
            ck_assert_double_eq_tol(same->activations[l] / bytes->activations[l], 1,
                                    0.02);
        }
    }
    for (uint32_t l = 0; l < b->layer_count; l++)
        ck_near(a->boundary_bytes[l], b->boundary_bytes[l]);
    het_arena_free(arena);
}
END_TEST

/* A change to SMALL, and what the complaint names. */
struct wrong {
    const char *old, *new, *complaint;
};
static const struct wrong WRONGS[] = {
    { "'llmInfo'", "'other'", "llmInfo: is missing" },
    { "'1': [0.003, 0.004]", "'2': [0.003, 0.004]", "layerTimes.G.2.1.1: is missing" },
    { ", '1': [0.003, 0.004]", "", "has 1 layers, but llmInfo has 2" },
    { "[0.003, 0.004]", "[0.003]", "must be [forward s, backward s, update s]" },
    { "'2': {'1'", "'0': {'1'", "a micro-batch size must be" },
    { "'2': {'1'", "'2': {'x'", "a tensor-parallel degree must be" },
    { "'2': {'1'", "'2': {'4'", "llmInfo.m.4: is missing" },
    { "'params_floats': 300, ", "", "llmInfo.m.1.1.params_floats: is missing" },
    { "{'m'", "{'a': {}, 'm'", "name one of: a, m" },
    { "{'layerTimes': {'G': {'2': {'1': {'0': [0.001, 0.002, 0.01], '1': [0.003, 0.004]}}}}",
      "{'layerTimes': {'G': {}}", "has no measured point" },
};

START_TEST(what_is_wrong_is_named)
{
    const struct wrong *wrong = &WRONGS[_i];
    struct het_arena *arena = het_arena_new();
    const char *found = strstr(SMALL, wrong->old);
    ck_assert_ptr_nonnull(found);
    char text[1024];
    snprintf(text, sizeof text, "%.*s%s%s", (int)(found - SMALL), SMALL, wrong->new,
             found + strlen(wrong->old));
    json_auto_t *json = parse(text);
    const struct het_profile *profile = NULL;
    struct het_error err;
    ck_assert_int_eq(het_profile_json_read(arena, json, &profile, &err), -1);
    ck_assert_int_eq(err.code, HET_BAD_INPUT);
    ck_assert_msg(strstr(err.message, wrong->complaint) != NULL, "%s", err.message);
    ck_assert_ptr_null(profile);
    het_arena_free(arena);
}
END_TEST

START_TEST(model_is_chosen_by_name_whatever_its_case)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *json = parse(SMALL);
    json_t *info = json_object_get(json, "llmInfo");
    json_object_set_new(info, "other", json_object());
    json_object_set_new(json, "model", json_string("M"));
    ck_assert_str_eq(read_profile(arena, json)->model, "m");
    /* Or what llm_info.json has of one model. */
    json_object_set(json, "llmInfo", json_object_get(info, "m"));
    ck_assert_uint_eq(read_profile(arena, json)->layer_count, 2);
    het_arena_free(arena);
}
END_TEST

START_TEST(folder_is_recognised_and_finds_its_sizes)
{
    char folder[64];
    command_folder(folder);
    struct command_result result =
        command_run(folder, NULL, "plan", "--profile", FOLDER, "--cluster",
                    "tests/data/clusters/a100x8_v100x8.json", "--global-batch-size", "64",
                    "--algorithm", "megatron", NULL);
    ck_assert_msg(result.exit_code == 0, "%s", result.err);
    ck_assert_ptr_nonnull(strstr(result.out, "\"layerCount\":26"));
    command_result_fini(&result);
    result = command_run(folder, NULL, "plan", "--profile", FOLDER, "--model", "none",
                         "--cluster", "tests/data/clusters/a100x8_v100x8.json",
                         "--global-batch-size", "64", NULL);
    ck_assert_int_eq(result.exit_code, 2);
    ck_assert_msg(
        strstr(result.err, "has no model called \"none\"; name one of: OPT-350") != NULL,
        "%s", result.err);
    command_result_fini(&result);
    command_remove(folder);
}
END_TEST

Suite *test_profile_sailor_suite(void)
{
    Suite *suite = suite_create("profile_sailor");
    TCase *tests = tcase_create("profile_sailor");
    tcase_add_test(tests, layer_times_and_sizes_become_a_profile);
    tcase_add_test(tests, both_forms_of_the_same_measurements_agree);
    tcase_add_loop_test(tests, what_is_wrong_is_named, 0, sizeof WRONGS / sizeof *WRONGS);
    tcase_add_test(tests, model_is_chosen_by_name_whatever_its_case);
    tcase_add_test(tests, folder_is_recognised_and_finds_its_sizes);
    suite_add_tcase(suite, tests);
    return suite;
}
