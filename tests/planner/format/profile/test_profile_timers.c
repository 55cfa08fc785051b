/* Logs as Megatron-LM writes them, of runs whose layers take known times, become the
 * profile with those times. */
#include "planner/format/profile/timers.h"

#include "planner/model/estimate.h"
#include "tests/planner/command.h"

#include <check.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define ck_near(a, b) ck_assert_double_eq_tol((a) / (b), 1, 1e-9)

/* What the layers take in ms for a micro-batch: embedding, block, head. */
static const double forward_ms[] = { 1, 4, 6 }, backward_ms[] = { 2, 8, 11 };

struct setting {
    int layers, tp, pp, dp, microbatch, batches;
    bool all_ranks;
    const char *more; /* further lines of arguments */
};

/* Milliseconds of an iteration on a stage. */
static double stage_ms(const struct setting *s, int stage, const double ms[3])
{
    double sum = (double)s->layers / s->pp * ms[1];
    sum += stage == 0 ? ms[0] : 0;
    sum += stage + 1 == s->pp ? ms[2] : 0;
    return sum * s->batches;
}

static void put_timer(char **text, const struct setting *s, const char *name,
                      const double ms[3])
{
    char *before = *text;
    if (!s->all_ranks) {
        *text = xasprintf("%s    %s ............................: (%.2f, %.2f)\n", before,
                          name, stage_ms(s, 0, ms), stage_ms(s, 0, ms));
        free(before);
        return;
    }
    *text = xasprintf("%s  %s:\n", before, name);
    free(before);
    for (int rank = 0; rank < s->tp * s->pp * s->dp; rank++) {
        before = *text;
        *text = xasprintf("%s     rank %2d: %.2f\n", before, rank,
                          stage_ms(s, rank / (s->tp * s->dp), ms));
        free(before);
    }
}

static char *make_log(const struct setting *s)
{
    char *text = xasprintf(
        "  num_layers ........ %d\n  hidden_size ........ 1024\n"
        "  num_attention_heads ........ 16\n  seq_length ........ 512\n"
        "  padded_vocab_size ........ 50304\n  tensor_model_parallel_size ........ %d\n"
        "  pipeline_model_parallel_size ........ %d\n  data_parallel_size ........ %d\n"
        "  micro_batch_size ........ %d\n  global_batch_size ........ %d\n"
        "  bf16 ........ True\n  optimizer ........ adam\n"
        "  untie_embeddings_and_output_weights ........ True\n%s"
        "times:\n",
        s->layers, s->tp, s->pp, s->dp, s->microbatch, s->microbatch * s->dp * s->batches,
        s->more ? s->more : "");
    put_timer(&text, s, "forward-compute", forward_ms);
    put_timer(&text, s, "backward-compute", backward_ms);
    put_timer(&text, s, "optimizer", forward_ms);
    return text;
}

#define MAX_RUNS 4

/* The profile of so many runs on A100; NULL and the error. */
static const struct het_profile *read_runs(struct het_arena *arena,
                                           const struct setting *settings, size_t count,
                                           struct het_error *err)
{
    static const char *const names[MAX_RUNS] = { "0.log", "1.log", "2.log", "3.log" };
    struct het_timers_run runs[MAX_RUNS];
    const struct het_profile *profile;
    uint32_t sequence;
    for (size_t i = 0; i < count; i++) {
        auto_free char *text = make_log(&settings[i]);
        runs[i] =
            (struct het_timers_run){ "A100", names[i], het_arena_strdup(arena, text) };
    }
    if (het_profile_timers_read(arena, runs, count, het_hardware_builtin(), &profile,
                                &sequence, err) < 0)
        return NULL;
    ck_assert_uint_eq(sequence, 512);
    return profile;
}

static const struct het_profile *need_runs(struct het_arena *arena,
                                           const struct setting *settings, size_t count)
{
    struct het_error err;
    const struct het_profile *profile = read_runs(arena, settings, count, &err);
    ck_assert_msg(profile != NULL, "%s", err.message);
    return profile;
}

static void assert_layers(const double *sums, uint32_t layers, const double ms[3])
{
    ck_near(sums[1], ms[0] * 1e-3);
    for (uint32_t l = 1; l + 1 < layers; l++)
        ck_near(sums[l + 1] - sums[l], ms[1] * 1e-3);
    ck_near(sums[layers] - sums[layers - 1], ms[2] * 1e-3);
}

START_TEST(stages_of_a_pipeline_tell_embedding_blocks_and_head)
{
    static const struct setting settings[] = {
        { 24, 2, 4, 2, 4, 8, true, NULL },
        { 24, 2, 4, 2, 4, 8, true, "  use_tp_pp_dp_mapping ...... False\n" },
    };
    for (size_t i = 0; i < 2; i++) {
        struct het_arena *arena = het_arena_new();
        const struct het_profile *profile = need_runs(arena, &settings[i], 1);
        const struct het_measurement *m = het_profile_find(profile, 0, 2, 4);
        ck_assert_uint_eq(profile->layer_count, 26);
        assert_layers(m->forward_s, 26, forward_ms);
        assert_layers(m->backward_s, 26, backward_ms);
        /* All stages together: 1 + 24 * 4 + 6 for each of 8. */
        ck_near(m->optimizer_s, (1 + 24 * 4 + 6) * 8e-3);
        ck_assert_int_eq(profile->precision, HET_BF16);
        ck_assert_int_eq(profile->origin, HET_PROFILE_MEASURED);
        het_arena_free(arena);
    }
}
END_TEST

START_TEST(runs_of_two_depths_tell_blocks_from_the_rest)
{
    static const struct setting settings[] = { { 2, 1, 1, 1, 1, 4, false, NULL },
                                               { 6, 1, 1, 1, 1, 4, false, NULL } };
    struct het_arena *arena = het_arena_new();
    const struct het_profile *profile = need_runs(arena, settings, 2);
    const struct het_measurement *m = het_profile_find(profile, 0, 1, 1);
    ck_assert_uint_eq(profile->layer_count, 6 + 2);
    ck_near(m->forward_s[2] - m->forward_s[1], 4e-3);
    /* What is left, 1 + 6, is divided by an estimate. */
    ck_near(m->forward_s[8], (1 + 6 * 4 + 6) * 1e-3);
    ck_assert(m->forward_s[1] > 0 && m->forward_s[1] < 3.5e-3);
    ck_near(m->backward_s[8], (2 + 6 * 8 + 11) * 1e-3);
    /* The optimizer's time of the shallow run grows with the parameters. */
    ck_assert_double_gt(m->optimizer_s, (1 + 2 * 4 + 6) * 4e-3);
    het_arena_free(arena);
}
END_TEST

START_TEST(one_run_says_the_whole_and_an_estimate_its_parts)
{
    static const struct setting setting = { 6, 1, 1, 2, 2, 4, false, NULL };
    struct het_arena *arena = het_arena_new();
    const struct het_profile *profile = need_runs(arena, &setting, 1);
    const struct het_measurement *m = het_profile_find(profile, 0, 1, 2);
    ck_near(m->forward_s[8], (1 + 6 * 4 + 6) * 1e-3);
    ck_near(m->backward_s[8], (2 + 6 * 8 + 11) * 1e-3);
    double block = m->forward_s[2] - m->forward_s[1];
    ck_assert(block > m->forward_s[1] && block < 31e-3 / 6);
    het_arena_free(arena);
}
END_TEST

START_TEST(runs_of_several_degrees_and_sizes_become_one_profile)
{
    static const struct setting settings[] = { { 8, 1, 2, 1, 1, 4, true, NULL },
                                               { 8, 2, 2, 1, 1, 4, true, NULL },
                                               { 8, 2, 2, 1, 2, 4, true, NULL } };
    struct het_arena *arena = het_arena_new();
    const struct het_profile *profile = need_runs(arena, settings, 3);
    ck_assert_uint_eq(profile->measurement_count, 3);
    ck_assert_uint_eq(profile->bytes_count, 2);
    /* Sizes are those of the shape: h V / t of the embedding. */
    ck_assert_double_eq(profile->bytes[1].parameters[1], 1024.0 * 50304 / 2);
    ck_assert_double_eq(profile->boundary_bytes[3], 512 * 1024 * 2);
    het_arena_free(arena);
}
END_TEST

START_TEST(uneven_stages_are_those_of_the_layout)
{
    /* 4 blocks on each stage, said by all three ways; the log's times are even. */
    static const char *const ways[] = {
        "  pipeline_model_parallel_layout ...... Et*4|t*4L\n",
        "  pipeline_model_parallel_layout ...... Etttt|,t*2tt,L\n",
        "  decoder_first_pipeline_num_layers ...... 4\n",
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct het_arena *arena = het_arena_new();
        const struct setting setting = { 8, 1, 2, 1, 1, 4, true, ways[i] };
        const struct het_profile *profile = need_runs(arena, &setting, 1);
        const struct het_measurement *m = het_profile_find(profile, 0, 1, 1);
        ck_near(m->forward_s[10], (1 + 8 * 4 + 6) * 1e-3);
        het_arena_free(arena);
    }
}
END_TEST

START_TEST(what_would_be_times_of_something_else_is_refused)
{
    static const struct {
        struct setting setting;
        const char *message;
    } cases[] = {
        { { 8, 1, 1, 1, 1, 4, false, "  recompute_granularity ...... full\n" },
          "0.log: argument recompute_granularity: " },
        { { 8, 1, 1, 1, 1, 4, false, "  context_parallel_size ...... 2\n" },
          "0.log: argument context_parallel_size: must be 1" },
        { { 8, 1, 1, 1, 1, 4, false, "  multi_latent_attention ...... True\n" },
          "0.log: argument multi_latent_attention: " },
        { { 8, 1, 2, 1, 1, 4, false, NULL },
          "0.log: argument pipeline_model_parallel_size: is above 1: only "
          "--timing-log-option all" },
        { { 8, 1, 3, 1, 1, 4, true, NULL },
          "0.log: argument num_layers: is not divided by the stages" },
        { { 8, 3, 1, 1, 1, 4, false, NULL },
          "0.log: argument tensor_model_parallel_size: does not divide the model" },
        { { 8, 1, 2, 1, 1, 4, true, "  pipeline_model_parallel_layout ... E(t|)*4L\n" },
          "0.log: argument pipeline_model_parallel_layout: " },
        { { 8, 1, 2, 1, 1, 4, true, "  pipeline_model_parallel_layout ... Et*4|t*3L\n" },
          "0.log: argument pipeline_model_parallel_layout: " },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct het_arena *arena = het_arena_new();
        struct het_error err = { 0 };
        ck_assert_ptr_null(read_runs(arena, &cases[i].setting, 1, &err));
        ck_assert_int_eq(err.code, HET_BAD_INPUT);
        ck_assert_msg(!strncmp(err.message, cases[i].message, strlen(cases[i].message)),
                      "%s", err.message);
        het_arena_free(arena);
    }
}
END_TEST

START_TEST(runs_of_two_models_are_refused)
{
    static const struct setting settings[] = { { 8, 1, 1, 1, 1, 4, false, NULL },
                                               { 8, 1, 1, 1, 1, 4, false,
                                                 "  swiglu ...... True\n" } };
    struct het_arena *arena = het_arena_new();
    struct het_error err = { 0 };
    ck_assert_ptr_null(read_runs(arena, settings, 2, &err));
    ck_assert(!strncmp(err.message, "1.log: is of another model than 0.log", 37));
    het_arena_free(arena);
}
END_TEST

START_TEST(the_command_merges_logs_into_an_object_to_plan_with)
{
    static const struct setting settings[] = { { 8, 1, 2, 1, 1, 4, true, NULL },
                                               { 8, 1, 2, 1, 2, 4, true, NULL } };
    static const char cluster[] =
        "{\"nodes\":[{\"type\":\"A100\",\"gpus\":4,\"memory_gb\":80}]}";
    char folder[64];
    command_folder(folder);
    auto_free char *first = make_log(&settings[0]), *second = make_log(&settings[1]);
    auto_free char *a = command_write(folder, "a.log", first, strlen(first));
    auto_free char *b = command_write(folder, "b.log", second, strlen(second));
    auto_free char *c = command_write(folder, "c.json", cluster, strlen(cluster));
    auto_free char *run_a = xasprintf("A100=%s", a), *run_b = xasprintf("A100=%s", b);
    struct command_result object = command_run(folder, NULL, "profile",
                                               "from-megatron-timers", run_a, run_b,
                                               "--name", "gpt", NULL);
    ck_assert_msg(!object.exit_code, "%s", object.err);
    ck_assert_ptr_nonnull(strstr(object.out, "sequenceLength: 512\n"));
    ck_assert_ptr_nonnull(strstr(object.out, "  - {name: layers-1-8, count: 8, "));
    ck_assert_ptr_nonnull(strstr(object.out, "microBatchSize: 2, "));
    auto_free char *profile =
        command_write(folder, "p.yaml", object.out, object.out_length);
    struct command_result plan = command_run(folder, NULL, "plan", "--profile", profile,
                                             "--cluster", c, "--global-batch-size", "8",
                                             NULL);
    ck_assert_msg(!plan.exit_code, "%s", plan.err);
    struct command_result wrong = command_run(
        folder, NULL, "profile", "from-megatron-timers", a, "--name", "gpt", NULL);
    ck_assert_int_eq(wrong.exit_code, 2);
    ck_assert_ptr_nonnull(strstr(wrong.err, "must be TYPE=LOG"));
    command_result_fini(&object);
    command_result_fini(&plan);
    command_result_fini(&wrong);
    command_remove(folder);
}
END_TEST

Suite *test_profile_timers_suite(void)
{
    Suite *suite = suite_create("profile_timers");
    TCase *all = tcase_create("all");
    tcase_add_test(all, stages_of_a_pipeline_tell_embedding_blocks_and_head);
    tcase_add_test(all, runs_of_two_depths_tell_blocks_from_the_rest);
    tcase_add_test(all, one_run_says_the_whole_and_an_estimate_its_parts);
    tcase_add_test(all, runs_of_several_degrees_and_sizes_become_one_profile);
    tcase_add_test(all, uneven_stages_are_those_of_the_layout);
    tcase_add_test(all, what_would_be_times_of_something_else_is_refused);
    tcase_add_test(all, runs_of_two_models_are_refused);
    tcase_add_test(all, the_command_merges_logs_into_an_object_to_plan_with);
    suite_add_tcase(suite, all);
    return suite;
}
