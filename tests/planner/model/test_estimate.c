#include "planner/model/estimate.h"

#include "tests/planner/files.h"

#include "planner/format/profile/config.h"
#include "planner/format/profile/sailor.h"

#include <check.h>
#include <math.h>
#include <string.h>

#define ck_near(a, b) ck_assert_double_eq_tol((a) / (b), 1, 1e-12)

enum { EMBEDDING, BLOCK, HEAD };

/* One gated block with RMS norms, fp32, scores stored. */
static struct het_transformer small(void)
{
    return (struct het_transformer){
        .name = "small",
        .block_count = 1,
        .hidden = 8,
        .head_count = 2,
        .key_value_head_count = 1,
        .head_size = 4,
        .mlp = 16,
        .vocabulary = 32,
        .sequence = 4,
        .gated_mlp = true,
        .rms_norm = true,
        .tied_embedding = true,
        .stored_scores = true,
    };
}

/* Fast in everything but what a test slows down. */
static struct het_estimate_gpu fast(void)
{
    return (struct het_estimate_gpu){
        .name = "G",
        .flops = 1e30,
        .share = 0.5,
        .memory_bytes_per_s = 1e30,
        .intra_bytes_per_s = 1e30,
        .most_tp = 4,
    };
}

START_TEST(parameters_of_a_rank_add_up)
{
    struct het_transformer model = small();
    /* Queries, keys and values 8 x (8 + 8), output 8 x 8, MLP 3 * 8 x 16, two norms. */
    ck_near(het_estimate_parameters(&model, BLOCK, 1), 128 + 64 + 384 + 16);
    /* The one key-value head is on both ranks: 8 x (4 + 8), 4 x 8, half of the MLP. */
    ck_near(het_estimate_parameters(&model, BLOCK, 2), 96 + 32 + 192 + 16);
    ck_near(het_estimate_parameters(&model, EMBEDDING, 2), 32 * 8 / 2);
    ck_near(het_estimate_parameters(&model, HEAD, 1), 8);
    model.tied_embedding = false;
    ck_near(het_estimate_parameters(&model, HEAD, 2), 8 + 32 * 8 / 2);
    model.positions = 4;
    ck_near(het_estimate_parameters(&model, EMBEDDING, 2), 128 + 4 * 8);
}
END_TEST

START_TEST(experts_count_whole_in_memory_and_active_in_time)
{
    struct het_transformer model = small();
    model.block_count = 2;
    model.expert_count = 4;
    model.experts_per_token = 2;
    model.expert_mlp = 16;
    model.shared_mlp = 8;
    model.dense_block_count = 1;
    ck_near(het_estimate_parameters(&model, 1, 1), 592);
    /* MLPs of 4 experts and the shared one, and the router 8 x 4. */
    ck_near(het_estimate_parameters(&model, 2, 1),
            128 + 64 + 3 * 8 * (4 * 16 + 8) + 8 * 4 + 16);
    /* Two experts and the shared one of 4 tokens: gate and up, then down; dense: 16. */
    struct het_estimate_gpu gpu = fast();
    double forward[2], backward;
    gpu.flops = 1;
    het_estimate_layer(&model, &gpu, 1, 1, 1, &forward[0], &backward);
    het_estimate_layer(&model, &gpu, 2, 1, 1, &forward[1], &backward);
    double dense = 2 * 4 * 8 * 3 * 16, mixed = 2 * 4 * 8 * (3 * (2 * 16 + 8) + 4);
    ck_near((forward[1] - forward[0]) * 0.5, mixed - dense);
}
END_TEST

START_TEST(time_is_that_of_the_slower_resource)
{
    const struct het_transformer model = small();
    struct het_estimate_gpu gpu = fast();
    double forward, backward;
    /* Logits: 2 * 4 x 8 x 32 FLOPs at half of 1e6 a second; twice that backward. */
    gpu.flops = 1e6;
    het_estimate_layer(&model, &gpu, HEAD, 1, 1, &forward, &backward);
    ck_near(forward, 0.5e-3 + 2048 / 0.5e6);
    ck_near(backward, 0.5e-3 + 2 * 2048 / 0.5e6);
    /* In memory: 4 x 8, 8 x 32 and 4 x 32 of 4 bytes; the norm moves 2 * 4 x 8, the loss
     * 4 * 4 x 32. */
    gpu = fast();
    gpu.memory_bytes_per_s = 1e6;
    het_estimate_layer(&model, &gpu, HEAD, 1, 1, &forward, &backward);
    ck_near(forward, 0.5e-3 + (4 * (32 + 256 + 128) + 4 * (64 + 512)) / 0.8e6);
    /* Two all-reduces of 4 x 8 x 4 bytes over two ranks: each sends 2 * 1/2 of it. */
    gpu = fast();
    gpu.intra_bytes_per_s = 1e3;
    het_estimate_layer(&model, &gpu, BLOCK, 2, 1, &forward, &backward);
    ck_near(forward, 0.5e-3 + 2 * 128 / 1e3);
    ck_near(backward, forward);
}
END_TEST

START_TEST(flash_attention_keeps_no_scores)
{
    struct het_transformer model = small();
    /* 4 tokens x 4 bytes x (4 * 8 + 2 * 8 + 8 + 3 * 16); scores 2 heads x 4 x 4. */
    ck_near(het_estimate_activations(&model, BLOCK, 1), 16 * 104 + 4 * 32);
    /* Half of all but the inputs of norms and matrices, and all of the key-value head. */
    ck_near(het_estimate_activations(&model, BLOCK, 2), 16 * (32 + 8 + 8 + 24) + 4 * 16);
    model.stored_scores = false;
    ck_near(het_estimate_activations(&model, BLOCK, 1), 16 * 104 + 4 * 4 * 2);
    ck_near(het_estimate_activations(&model, EMBEDDING, 1), 4 * 8 * 4);
    ck_near(het_estimate_activations(&model, HEAD, 1), 2 * 4 * 8 * 4 + 4 * 32 * (4 + 4));
}
END_TEST

START_TEST(plain_fp32_is_used_where_there_is_no_tf32)
{
    const struct het_hardware *hardware = het_hardware_builtin();
    struct het_estimate_gpu gpu;
    ck_assert(het_estimate_gpu_init(het_hardware_find(hardware, "A100"), HET_FP32, &gpu));
    ck_assert_double_eq(gpu.flops, 156e12);
    ck_assert_double_eq(gpu.share, HET_ESTIMATE_TENSOR_SHARE);
    ck_assert(het_estimate_gpu_init(het_hardware_find(hardware, "V100"), HET_FP32, &gpu));
    ck_assert_double_eq(gpu.flops, 15.7e12);
    ck_assert_double_eq(gpu.share, HET_ESTIMATE_PLAIN_SHARE);
    ck_assert(
        !het_estimate_gpu_init(het_hardware_find(hardware, "V100"), HET_BF16, &gpu));
    ck_assert(het_estimate_gpu_init(het_hardware_find(hardware, "V100"), HET_FP16, &gpu));
}
END_TEST

static double whole_s(const struct het_profile *profile, uint32_t type, uint32_t tp,
                      uint32_t microbatch)
{
    double forward, backward;
    struct het_error err;
    ck_assert_msg(!het_profile_times(profile, type, tp, microbatch, 0,
                                     profile->layer_count, &forward, &backward, &err),
                  "%s", err.message);
    return forward + backward;
}

/* OPT-350M as it was measured on A100 and V100. */
static struct het_transformer opt_350(struct het_arena *arena)
{
    json_auto_t *json = json_pack("{s:o, s:i}", "config",
                                  test_read_json("tests/data/models/opt-350.json"),
                                  "sequenceLength", 2048);
    struct het_transformer model;
    struct het_error err;
    ck_assert_msg(!het_profile_config_shape(arena, json, &model, &err), "%s",
                  err.message);
    return model;
}

static const struct het_profile *measured_opt_350(struct het_arena *arena)
{
    json_auto_t *json = json_pack(
        "{s:{s:o, s:o}, s:o}", "layerTimes", "A100",
        test_read_json("tests/data/sailor/layer_times/opt-350/A100.json"), "V100",
        test_read_json("tests/data/sailor/layer_times/opt-350/V100.json"), "llmInfo",
        test_read_json("tests/data/sailor/llm_info.json"));
    const struct het_profile *profile = NULL;
    struct het_error err;
    ck_assert_msg(!het_profile_sailor_read(arena, json, &profile, &err), "%s",
                  err.message);
    return profile;
}

START_TEST(calibration_is_exact_on_its_own_case)
{
    struct het_arena *arena = het_arena_new();
    const struct het_transformer model = opt_350(arena);
    struct het_estimate_gpu gpu;
    struct het_error err;
    het_estimate_gpu_init(het_hardware_find(het_hardware_builtin(), "A100"), HET_FP32,
                          &gpu);
    gpu.most_tp = 4;
    const struct het_calibration measured = { .tp = 2, .microbatch = 4, .seconds = 0.5 };
    ck_assert_int_eq(het_estimate_calibrate(&model, &measured, &gpu, &err), 0);
    const struct het_profile *profile;
    ck_assert_int_eq(het_estimate_profile(arena, &model, &gpu, 1, 8, &profile, &err), 0);
    ck_assert_double_eq_tol(whole_s(profile, 0, 2, 4), 0.5, 1e-12);
    ck_assert_int_eq(profile->origin, HET_PROFILE_CALIBRATED);

    /* 12 of the 24 blocks take less, and so the share fitted to the same time is less. */
    struct het_estimate_gpu half = gpu;
    const struct het_calibration fewer = {
        .tp = 2, .microbatch = 4, .block_count = 12, .seconds = 0.5
    };
    ck_assert_int_eq(het_estimate_calibrate(&model, &fewer, &half, &err), 0);
    ck_assert_double_lt(half.share, gpu.share / 2);

    /* What no share explains is refused. */
    const struct het_calibration wrong = { .tp = 2, .microbatch = 4, .seconds = 1e-3 };
    ck_assert_int_eq(het_estimate_calibrate(&model, &wrong, &half, &err), -1);
    ck_assert_int_eq(err.code, HET_BAD_INPUT);
    het_arena_free(arena);
}
END_TEST

START_TEST(estimate_is_near_what_was_measured)
{
    struct het_arena *arena = het_arena_new();
    const struct het_transformer model = opt_350(arena);
    const struct het_profile *measured = measured_opt_350(arena);
    struct het_estimate_gpu gpus[2];
    struct het_error err;
    for (uint32_t t = 0; t < 2; t++) {
        const struct het_gpu_type *part =
            het_hardware_find(het_hardware_builtin(), measured->type_names[t]);
        ck_assert(het_estimate_gpu_init(part, HET_FP32, &gpus[t]));
        gpus[t].name = measured->type_names[t];
        gpus[t].most_tp = 4;
    }
    for (int calibrated = 0; calibrated < 2; calibrated++) {
        const struct het_profile *profile;
        for (uint32_t t = 0; calibrated && t < 2; t++) {
            const struct het_calibration step = { .tp = 1,
                                                  .microbatch = 1,
                                                  .seconds = whole_s(measured, t, 1, 1) };
            ck_assert_int_eq(het_estimate_calibrate(&model, &step, &gpus[t], &err), 0);
        }
        ck_assert_int_eq(het_estimate_profile(arena, &model, gpus, 2, 8, &profile, &err),
                         0);
        double worst = 0;
        for (size_t i = 0; i < measured->measurement_count; i++) {
            const struct het_measurement *m = &measured->measurements[i];
            if (m->tp > 2)
                continue;
            double there = whole_s(measured, m->type, m->tp, m->microbatch);
            double here = whole_s(profile, m->type, m->tp, m->microbatch);
            worst = fmax(worst, fabs(here / there - 1));
        }
        /* 14.5 % and 8.1 %, with the bandwidths of the built-in table. */
        ck_assert_double_lt(worst, calibrated ? 0.085 : 0.15);
        /* Parameters are those of the measured model, but for the vectors of a rank. */
        const struct het_layer_bytes *here = het_profile_bytes(profile, 2);
        const struct het_layer_bytes *there = het_profile_bytes(measured, 2);
        ck_assert_double_eq_tol(here->parameters[26] / there->parameters[26], 1, 1e-3);
        ck_assert_double_eq_tol(here->activations[26] / there->activations[26], 1.12,
                                0.01);
        ck_assert_double_eq(profile->boundary_bytes[1], measured->boundary_bytes[1]);
    }
    het_arena_free(arena);
}
END_TEST

START_TEST(impossible_shapes_are_refused)
{
    struct het_error err;
    struct het_transformer model = small();
    ck_assert_int_eq(het_transformer_check(&model, &err), 0);
    model.key_value_head_count = 3;
    ck_assert_int_eq(het_transformer_check(&model, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "key-value heads: must be 1 to 2, is 3"));
    model = small();
    model.expert_count = 2;
    model.experts_per_token = 3;
    ck_assert_int_eq(het_transformer_check(&model, &err), -1);
    ck_assert(het_estimate_splits(&model, 2));
    ck_assert(!het_estimate_splits(&model, 4)); /* two heads */
}
END_TEST

Suite *test_estimate_suite(void)
{
    Suite *suite = suite_create("estimate");
    TCase *tests = tcase_create("estimate");
    tcase_add_test(tests, parameters_of_a_rank_add_up);
    tcase_add_test(tests, experts_count_whole_in_memory_and_active_in_time);
    tcase_add_test(tests, time_is_that_of_the_slower_resource);
    tcase_add_test(tests, flash_attention_keeps_no_scores);
    tcase_add_test(tests, plain_fp32_is_used_where_there_is_no_tf32);
    tcase_add_test(tests, calibration_is_exact_on_its_own_case);
    tcase_add_test(tests, estimate_is_near_what_was_measured);
    tcase_add_test(tests, impossible_shapes_are_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
