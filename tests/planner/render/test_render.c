#include "planner/format/document/plan_json.h"
#include "planner/render/people/table.h"
#include "planner/render/runtime/torchrun.h"
#include "tests/planner/toy.h"

#include <check.h>
#include <string.h>

/* ---- torchrun ---- */

static const struct het_render_job job = {
    .job = "demo",
    .ns = "team",
    .service = "demo-svc",
    .generation = 7,
    .plan_hash = "sha256:00",
    .plan_path = "/etc/hetplan/plan.json",
    .checkpoint_dir = "/ckpt",
    .master_port = 29500,
};

static const char *find(const struct het_env *env, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(env[i].name, name))
            return env[i].value;
    return NULL;
}

/* One stage: 2 ranks on s0, then 3 on f0. */
static struct het_plan uneven_plan(struct toy *toy)
{
    return TOY_PLAN(
        toy, TOY_PIPELINE(toy, 2, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_S0, 0, 2, 4)),
                          TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 0, 2, 2),
                                    toy_replica(toy, TOY_F0, 2, 1, 2))));
}

START_TEST(each_rank_node_gets_its_environment)
{
    struct toy *toy = toy_new();
    struct het_plan plan = uneven_plan(toy);
    plan.sequence_length = 4096;
    struct het_env *env;
    size_t count = het_render_torchrun(toy->arena, &plan, &job, 1, &env);
    static const struct het_env expected[] = {
        { "MASTER_ADDR", "demo-7-0.demo-svc.team.svc" },
        { "MASTER_PORT", "29500" },
        { "NNODES", "2" },
        { "NODE_RANK", "1" },
        { "NPROC_PER_NODE", "3" },
        { "PET_NNODES", "2" },
        { "PET_NPROC_PER_NODE", "3" },
        { "PET_NODE_RANK", "1" },
        { "PET_MASTER_ADDR", "demo-7-0.demo-svc.team.svc" },
        { "PET_MASTER_PORT", "29500" },
        { "PET_RDZV_BACKEND", "static" },
        { "PET_RDZV_ID", "demo-g7" },
        { "HETPLAN_FILE", "/etc/hetplan/plan.json" },
        { "HETPLAN_REVISION", "7" },
        { "HETPLAN_HASH", "sha256:00" },
        { "HETPLAN_RANK_OFFSET", "2" },
        { "HETPLAN_WORLD_SIZE", "5" },
        { "HETPLAN_GPU_TYPE", "fast" },
        { "HETPLAN_GLOBAL_BATCH_SIZE", "8" },
        { "HETPLAN_SEQUENCE_LENGTH", "4096" },
        { "CHECKPOINT_DIR", "/ckpt" },
    };
    ck_assert_uint_eq(count, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < count; i++) {
        ck_assert_str_eq(env[i].name, expected[i].name);
        ck_assert_str_eq(env[i].value, expected[i].value);
        ck_assert(het_render_is_reserved(env[i].name));
    }
    ck_assert_uint_eq(het_render_torchrun(toy->arena, &plan, &job, 2, &env), 0);
    toy_free(toy);
}
END_TEST

START_TEST(degrees_are_written_only_for_a_grid)
{
    struct toy *toy = toy_new();
    struct het_plan grid = toy_two_pipelines(toy), uneven = uneven_plan(toy);
    struct het_env *env;
    size_t count = het_render_torchrun(toy->arena, &grid, &job, 0, &env);
    ck_assert_str_eq(find(env, count, "TP_SIZE"), "1");
    ck_assert_str_eq(find(env, count, "PP_SIZE"), "2");
    ck_assert_str_eq(find(env, count, "DP_SIZE"), "2");
    count = het_render_torchrun(toy->arena, &uneven, &job, 0, &env);
    ck_assert_ptr_null(find(env, count, "TP_SIZE"));
    ck_assert_ptr_null(find(env, count, "PP_SIZE"));
    ck_assert_ptr_null(find(env, count, "DP_SIZE"));
    toy_free(toy);
}
END_TEST

START_TEST(names_that_would_turn_ranks_around_are_reserved)
{
    ck_assert(het_render_is_reserved("RANK"));
    ck_assert(het_render_is_reserved("WORLD_SIZE"));
    ck_assert(het_render_is_reserved("PET_RDZV_ENDPOINT"));
    ck_assert(het_render_is_reserved("HETPLAN_ANYTHING"));
    ck_assert(het_render_is_reserved("TP_SIZE"));
    ck_assert(!het_render_is_reserved("PET_REDIRECTS"));
    ck_assert(!het_render_is_reserved("NCCL_DEBUG"));
    ck_assert(!het_render_is_reserved("HETPLAN"));
}
END_TEST

START_TEST(hostfile_has_a_line_a_node)
{
    struct toy *toy = toy_new();
    struct het_plan plan = uneven_plan(toy);
    ck_assert_str_eq(het_render_hostfile(toy->arena, &plan, &job),
                     "demo-7-0.demo-svc.team.svc slots=2 type=slow\n"
                     "demo-7-1.demo-svc.team.svc slots=3 type=fast\n");
    toy_free(toy);
}
END_TEST

/* ---- table ---- */

START_TEST(table_shows_stages_memory_and_time)
{
    struct toy *toy = toy_new();
    struct het_plan plan = uneven_plan(toy);
    het_plan_fill_idle(toy->arena, &toy->cluster, &plan);
    plan.predicted = (struct het_prediction){ .iteration_s = 0.5,
                                              .pipeline_s = 0.25,
                                              .gradient_sync_s = 0.2,
                                              .optimizer_s = 0.05,
                                              .lower_bound_s = 0.25 };
    /* GiB a GPU: layers 0-1 on two slow ranks, 4 samples, 2 in flight: 300e6 parameters
     * * 16 + 150e6 * 8 + 1 GiB = 6.6; layers 2-3 on two fast ones, 2 samples, 1 in
     * flight: 250e6 * 16 + 150e6 * 2 + 1 GiB = 5.0; on one alone: 500e6
     * 16 + 300e6 * 2 + 1 GiB = 9.0. */
    const char *expected =
        "0.5 s a step, 16 samples a second (by toy)\n"
        "4 layers, global batch 8, fp32, adam\n"
        "1 pipeline on 5 of 10 GPUs\n"
        "\n"
        "pipe  stage  layers  replicas  GPU type  nodes  samples  GiB\n"
        "0     0      0-1     1 x tp 2  slow      s0     4        7.3 of 10\n"
        "      1      2-3     1 x tp 2  fast      f0     2        5.4 of 20\n"
        "                     1 x tp 1  fast      f0     2        9.8 of 20\n"
        "\n"
        "pipeline 0: 2 micro-batches of 4 samples\n"
        "+----------------------------------+----------------------------------+\n"
        "| stage 0                          | stage 1                          |\n"
        "| layers 0-1                       | layers 2-3                       |\n"
        "| 2 slow                           | 2 fast                           |\n"
        "| dp 1, tp 2                       | dp 1, tp 2                       |\n"
        "|                                  | 1 fast                           |\n"
        "|                                  | dp 1, tp 1                       |\n"
        "+----------------------------------+----------------------------------+\n"
        "\n"
        "step time\n"
        "  pipeline             0.25 s   50.0 %  ################\n"
        "  gradients             0.2 s   40.0 %  #############\n"
        "  optimizer            0.05 s   10.0 %  ###\n"
        "  together              0.5 s  100.0 %  ################################\n"
        "  lower bound          0.25 s   50.0 %  ################\n"
        "  no plan for this input is below the bound; this one is 100.0 % above it\n"
        "\n"
        "idle: 5 GPUs on f0..1, s0\n";
    ck_assert_str_eq(het_render_table(toy->arena, &toy->problem, &plan, 72, HET_ASCII),
                     expected);

    /* With what is known of the whole cluster. */
    const struct het_unused unused[] = {
        { HET_UNUSED_NO_GPU_LABEL, "", "", 1, 1, { "bare" } },
        { HET_UNUSED_NOT_READY,
          "slow",
          "",
          72,
          9,
          { "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8" } },
        { HET_UNUSED_NOT_CHOSEN, "fast", "", 3, 2, { "f0", "f1" } },
    };
    plan.unused = unused;
    plan.unused_count = 3;
    const char *text = het_render_table(toy->arena, &toy->problem, &plan, 72, HET_ASCII);
    ck_assert_str_eq(
        strstr(text, "\nnot used\n"),
        "\nnot used\n"
        "  1 GPU on bare: no label says in plain characters what they are: run\n"
        "    GPU Feature Discovery, or label their nodes heterotrain.io/gpu-type\n"
        "  72 slow GPUs on s1..8 and 1 more: their node is not ready\n"
        "  3 fast GPUs on f0..1: the best plan found does not use them\n");
    ck_assert_ptr_null(strstr(text, "idle:"));
    toy_free(toy);
}
END_TEST

START_TEST(equal_pipelines_are_shown_once)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    const char *text = het_render_table(toy->arena, NULL, &plan, 80, HET_UTF8);
    ck_assert_ptr_nonnull(strstr(text, "0 (x 2)"));
    ck_assert_ptr_nonnull(strstr(text, "x 1 more pipeline like this"));
    ck_assert_ptr_null(strstr(text, "pipeline 1:"));
    ck_assert_ptr_nonnull(strstr(text, "┌─"));
    /* Nothing is known of its time. */
    ck_assert_ptr_null(strstr(text, "step time"));
    text = het_render_table(toy->arena, &toy->problem, &plan, 80, HET_UTF8);
    ck_assert_ptr_nonnull(strstr(text, "step time"));
    toy_free(toy);
}
END_TEST

/* One that says it takes a microsecond, is proved best and needs nothing; bound to the
 * toy's cluster. */
static const struct het_plan *boasting_plan(const struct toy *toy)
{
    struct het_plan plan = toy_two_pipelines(toy);
    const struct het_plan *read;
    json_auto_t *json = het_plan_json(&plan);
    json_auto_t *boast = json_loads(
        "{\"iterationSeconds\": 1e-6, \"samplesPerSecond\": 8e6, \"lowerBoundSeconds\": 1e-6,"
        " \"parts\": {\"pipelineSeconds\": 1e-6}, \"profile\": \"estimated\","
        " \"unrestricted\": {\"iterationSeconds\": 1e-7},"
        " \"assumedLinks\": [{\"gpuType\": \"fast\", \"link\": \"BetweenNodes\","
        " \"GBs\": 999, \"from\": \"Default\"}],"
        " \"peakMemoryBytes\": [{\"pipeline\": 0, \"stage\": 0, \"replica\": 0,"
        " \"bytes\": 1073741824, \"capacityBytes\": 1099511627776}]}",
        0, NULL);
    ck_assert_ptr_nonnull(boast);
    json_object_set(json, "predicted", boast);
    json_object_set_new(json, "search",
                        json_pack("{s:b, s:i}", "ranOut", 1, "effort", 7));
    ck_assert_int_eq(het_plan_json_read(toy->arena, json, &read, NULL), 0);
    ck_assert_int_eq(het_plan_bind(toy->arena, read, &toy->cluster, &read, NULL), 0);
    return read;
}

START_TEST(table_of_a_plan_that_was_read_believes_nothing_it_says)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    const struct het_plan *read = boasting_plan(toy);
    /* As if the file had said nothing. */
    ck_assert_str_eq(het_render_table(toy->arena, &toy->problem, read, 80, HET_ASCII),
                     het_render_table(toy->arena, &toy->problem, &plan, 80, HET_ASCII));
    /* Where there is nothing to judge it by, its words are its own. */
    const char *text = het_render_table(toy->arena, NULL, read, 80, HET_ASCII);
    ck_assert_ptr_nonnull(strstr(
        text, "1e-06 s a step, 8e+06 samples a second (by toy, as its file says)\n"));
    toy_free(toy);
}
END_TEST

START_TEST(large_plans_stay_inside_the_width)
{
    /* 40 pipelines of 20 different shapes, long names. */
    struct toy *toy = toy_new();
    enum { PIPELINES = 40, STAGES = 40 };
    struct het_pipeline *pipelines =
        HET_ARENA_ARRAY(toy->arena, struct het_pipeline, PIPELINES);
    for (uint32_t p = 0; p < PIPELINES; p++) {
        struct het_stage *stages = HET_ARENA_ARRAY(toy->arena, struct het_stage, STAGES);
        for (uint32_t s = 0; s < STAGES; s++) {
            struct het_replica replica = toy_replica(toy, TOY_F0, 0, 1, 1);
            replica.node_name =
                het_arena_printf(toy->arena, "gke-pool-a100-with-a-long-name-%u", p);
            replica.type_name = "A100-SXM4-80GB-with-a-long-name";
            stages[s] = TOY_STAGE(toy, s, 1, replica);
        }
        pipelines[p] = (struct het_pipeline){ 1 + p / 2, stages, STAGES };
    }
    struct het_plan plan = { .pipelines = pipelines, .pipeline_count = PIPELINES };
    for (int width = 70; width <= 110; width += 20) {
        char *text = het_render_table(toy->arena, NULL, &plan, width, HET_ASCII);
        ck_assert_ptr_nonnull(strstr(text, "28 more pipelines of other shapes"));
        ck_assert_ptr_nonnull(strstr(text, "8 more stages"));
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
            ck_assert_msg((int)strlen(line) <= width, "%s", line);
    }
    toy_free(toy);
}
END_TEST

START_TEST(summary_is_one_short_line)
{
    struct toy *toy = toy_new();
    struct het_plan plan = uneven_plan(toy);
    ck_assert_str_eq(het_render_summary(toy->arena, &plan),
                     "slowx2:tp2 fastx3:tp1-2 pp2 dp2");
    toy_free(toy);
}
END_TEST

Suite *test_render_suite(void)
{
    Suite *suite = suite_create("render");
    TCase *torchrun = tcase_create("torchrun");
    tcase_add_test(torchrun, each_rank_node_gets_its_environment);
    tcase_add_test(torchrun, degrees_are_written_only_for_a_grid);
    tcase_add_test(torchrun, names_that_would_turn_ranks_around_are_reserved);
    tcase_add_test(torchrun, hostfile_has_a_line_a_node);
    suite_add_tcase(suite, torchrun);
    TCase *table = tcase_create("table");
    tcase_add_test(table, table_shows_stages_memory_and_time);
    tcase_add_test(table, equal_pipelines_are_shown_once);
    tcase_add_test(table, table_of_a_plan_that_was_read_believes_nothing_it_says);
    tcase_add_test(table, large_plans_stay_inside_the_width);
    tcase_add_test(table, summary_is_one_short_line);
    suite_add_tcase(suite, table);
    return suite;
}
