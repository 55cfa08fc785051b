#include "planner/format/profile/config.h"

#include "tests/planner/command.h"
#include "tests/planner/files.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLUSTER "tests/data/clusters/a100x8_v100x8.json"

static json_t *question(const char *model, int sequence)
{
    char path[128];
    snprintf(path, sizeof path, "tests/data/models/%s.json", model);
    return json_pack("{s:o, s:i}", "config", test_read_json(path), "sequenceLength",
                     sequence);
}

static struct het_transformer read_shape(struct het_arena *arena, const json_t *json)
{
    struct het_transformer model;
    struct het_error err;
    ck_assert_msg(!het_profile_config_shape(arena, json, &model, &err), "%s",
                  err.message);
    ck_assert(het_profile_config_is_model(json_object_get(json, "config")));
    return model;
}

static double all_parameters(const struct het_transformer *model)
{
    double sum = 0;
    for (uint32_t l = 0; l < het_transformer_layer_count(model); l++)
        sum += het_estimate_parameters(model, l, 1);
    return sum;
}

START_TEST(published_models_have_their_parameters)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *llama = question("llama-3.1-8b", 8192);
    struct het_transformer model = read_shape(arena, llama);
    ck_assert(model.gated_mlp && model.rms_norm && !model.biases && !model.positions);
    ck_assert(!model.tied_embedding && !model.stored_scores);
    ck_assert_int_eq(model.precision, HET_BF16);
    ck_assert_uint_eq(model.key_value_head_count, 8);
    ck_assert_double_eq(all_parameters(&model), 8030261248.0); /* as published */
    json_auto_t *mixtral = question("mixtral-8x7b", 8192);
    model = read_shape(arena, mixtral);
    ck_assert_double_eq(all_parameters(&model), 46702792704.0);
    het_arena_free(arena);
}
END_TEST

START_TEST(older_names_are_known)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *neo = question("gpt-neo-2.7", 2048);
    struct het_transformer model = read_shape(arena, neo);
    ck_assert_uint_eq(model.block_count, 32);
    ck_assert_uint_eq(model.head_size, 128);
    ck_assert_uint_eq(model.mlp, 4 * 2560); /* null is not there */
    ck_assert_uint_eq(model.positions, 2048);
    ck_assert(model.biases && !model.gated_mlp && !model.rms_norm);
    ck_assert(model.tied_embedding && model.hidden_dropout && model.attention_dropout);
    ck_assert(model.stored_scores); /* fp32 */
    json_auto_t *gpt2 =
        json_pack("{s:{s:i, s:i, s:i, s:i, s:i}, s:i, s:s, s:s}", "config", "n_embd", 768,
                  "n_layer", 12, "n_head", 12, "vocab_size", 50257, "n_positions", 1024,
                  "sequenceLength", 1024, "precision", "fp16", "attention", "eager");
    model = read_shape(arena, gpt2);
    ck_assert_double_eq(all_parameters(&model), 124439808); /* GPT-2 small */
    ck_assert(model.stored_scores);
    ck_assert_int_eq(model.precision, HET_FP16);
    het_arena_free(arena);
}
END_TEST

/* Members put into the llama question, at its top or into its config. */
struct wrong {
    const char *key;
    bool in_config;
    const char *value; /* JSON */
    const char *complaint;
};
static const struct wrong WRONGS[] = {
    { "sequenceLength", false, "0", "sequenceLength: " },
    { "attention", false, "\"sparse\"", "attention: must be flash or eager" },
    { "atention", false, "\"flash\"", "atention" },
    { "precision", false, "\"int8\"", "precision: " },
    { "hidden_size", true, "\"x\"", "config.hidden_size: " },
    { "hidden_size", true, "null", "config.hidden_size: is missing" },
    { "num_attention_heads", true, "0", "config.num_attention_heads: " },
    { "num_key_value_heads", true, "64", "config: key-value heads: must be 1 to 32" },
    { "num_hidden_layers", true, "5000", "config: blocks: must be 1 to" },
    { "kv_lora_rank", true, "512", "config.kv_lora_rank: latent attention is not" },
    { "is_encoder_decoder", true, "true", "config.is_encoder_decoder: " },
    { "num_local_experts", true, "8", "config.num_experts_per_tok: is missing" },
    { "text_config", true, "[]", "config.text_config: " },
    { "vision_config", true, "{}", "config.vision_config: only the text model" },
};

START_TEST(what_is_wrong_is_named)
{
    const struct wrong *wrong = &WRONGS[_i];
    struct het_arena *arena = het_arena_new();
    json_auto_t *json = question("llama-3.1-8b", 4096);
    json_t *value = json_loads(wrong->value, JSON_DECODE_ANY, NULL);
    json_object_set_new(wrong->in_config ? json_object_get(json, "config") : json,
                        wrong->key, value);
    struct het_transformer model;
    struct het_error err;
    ck_assert_int_eq(het_profile_config_shape(arena, json, &model, &err), -1);
    ck_assert_int_eq(err.code, HET_BAD_INPUT);
    ck_assert_msg(strstr(err.message, wrong->complaint) != NULL, "%s", err.message);
    het_arena_free(arena);
}
END_TEST

static struct command_result plan(const char *folder, const char *model,
                                  const char *extra, const char *value)
{
    return command_run(folder, NULL, "plan", "--profile", model, "--cluster", CLUSTER,
                       "--global-batch-size", "64", "--algorithm", "megatron",
                       "--sequence-length", "2048", extra, value, NULL);
}

START_TEST(plan_says_that_its_profile_is_estimated)
{
    char folder[64];
    command_folder(folder);
    const char *model = "tests/data/models/opt-350.json";
    struct command_result result = plan(folder, model, "--output", "json");
    ck_assert_msg(result.exit_code == 0, "%s", result.err);
    ck_assert_ptr_nonnull(strstr(result.out, "\"profile\":\"estimated\""));
    command_result_fini(&result);
    result = plan(folder, model, "--output", "table");
    ck_assert_ptr_nonnull(strstr(result.out, "warning: times are estimated"));
    command_result_fini(&result);
    result = plan(folder, model, "--calibrate", "A100=0.207,V100-SXM2-16GB=0.638@1x1x24");
    ck_assert_msg(result.exit_code == 0, "%s", result.err);
    ck_assert_ptr_nonnull(strstr(result.out, "\"profile\":\"calibrated\""));

    /* Cost says so too. */
    char *path = command_write(folder, "plan.json", result.out, result.out_length);
    command_result_fini(&result);
    result = command_run(folder, NULL, "cost", "--profile", model, "--sequence-length",
                         "2048", "--cluster", CLUSTER, path, NULL);
    ck_assert_msg(result.exit_code == 0, "%s %s", result.out, result.err);
    ck_assert_ptr_nonnull(strstr(result.out, "\"profile\":\"estimated\""));
    command_result_fini(&result);
    free(path);
    command_remove(folder);
}
END_TEST

START_TEST(extrapolation_is_asked_for_and_marked)
{
    char folder[64];
    command_folder(folder);
    for (int allowed = 0; allowed < 2; allowed++) {
        struct command_result result = command_run(
            folder, NULL, "plan", "--profile", "tests/data/models/opt-350.json",
            "--sequence-length", "512", "--precision", "fp16", "--largest-microbatch",
            "2", "--microbatch-sizes", "6", "--cluster", CLUSTER, "--global-batch-size",
            "96", "--algorithm", "metis", "--extrapolate", allowed ? "3" : "2", NULL);
        ck_assert_int_eq(result.exit_code, allowed ? 0 : 1);
        if (allowed)
            ck_assert_ptr_nonnull(strstr(result.out, "\"extrapolated\":true"));
        command_result_fini(&result);
    }
    command_remove(folder);
}
END_TEST

START_TEST(command_line_refuses_what_makes_no_sense)
{
    static const struct {
        const char *extra, *value, *complaint;
    } cases[] = {
        { "--calibrate", "A100", "must be TYPE=SECONDS" },
        { "--calibrate", "A100=x", "must be TYPE=SECONDS" },
        { "--calibrate", "A100=1@1x1x1x1", "more than BxTxN" },
        { "--calibrate", "A100=1@0", "must be a whole number" },
        { "--calibrate", "H100=1", "calibration[0].gpuType: the cluster has no H100" },
        { "--calibrate", "A100=1e-6", "cannot be" },
        { "--calibrate", "A100=0.2,A100=0.3", "calibrated twice" },
        { "--calibrate", "A100=0.2@1x3", "cannot be split over 3" },
        { "--precision", "bf16", NULL }, /* V100 has none; A100 has */
    };
    char folder[64];
    command_folder(folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct command_result result = plan(folder, "tests/data/models/opt-350.json",
                                            cases[i].extra, cases[i].value);
        if (cases[i].complaint) {
            ck_assert_int_eq(result.exit_code, 2);
            ck_assert_msg(strstr(result.err, cases[i].complaint) != NULL, "%s",
                          result.err);
        } else {
            ck_assert_msg(result.exit_code == 0, "%s", result.err);
            ck_assert_ptr_null(strstr(result.out, "\"gpuType\":\"V100\",\"gpus\":["));
        }
        command_result_fini(&result);
    }
    struct command_result result =
        command_run(folder, NULL, "plan", "--profile", "tests/data/models/opt-350.json",
                    "--cluster", CLUSTER, "--global-batch-size", "64", NULL);
    ck_assert_int_eq(result.exit_code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "--sequence-length N is missing"));
    command_result_fini(&result);
    result = plan(folder, "tests/data/sailor/opt-350", "--output", "json");
    ck_assert_int_eq(result.exit_code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "are for a model's config.json"));
    command_result_fini(&result);
    command_remove(folder);
}
END_TEST

Suite *test_profile_config_suite(void)
{
    Suite *suite = suite_create("profile_config");
    TCase *tests = tcase_create("profile_config");
    tcase_add_test(tests, published_models_have_their_parameters);
    tcase_add_test(tests, older_names_are_known);
    tcase_add_loop_test(tests, what_is_wrong_is_named, 0, sizeof WRONGS / sizeof *WRONGS);
    tcase_add_test(tests, plan_says_that_its_profile_is_estimated);
    tcase_add_test(tests, extrapolation_is_asked_for_and_marked);
    tcase_add_test(tests, command_line_refuses_what_makes_no_sense);
    suite_add_tcase(suite, tests);
    return suite;
}
