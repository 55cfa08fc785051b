/* The command as a user runs it: files in, text, exit code and messages out. */
#include "planner/modules.h"

#include "tests/planner/command.h"
#include "tests/planner/files.h"
#include "tests/scale.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define PROFILE "tests/data/sailor/opt-350"
#define CLUSTER "tests/data/clusters/a100x8_v100x8.json"

static char folder[64];

static void setup(void)
{
    command_folder(folder);
}

static void teardown(void)
{
    command_remove(folder);
}

/* ---- plan, cost, check ---- */

START_TEST(plan_is_json_the_same_every_time_and_valid)
{
    struct command_result first = command_run(folder, NULL, "plan", "--profile", PROFILE,
                                              "--cluster", CLUSTER, "--global-batch-size",
                                              "256", NULL);
    ck_assert_msg(first.exit_code == 0, "%s", first.err);
    ck_assert_str_eq(first.err, "");
    struct command_result second =
        command_run(folder, NULL, "plan", "--global-batch-size=256", "--cluster=" CLUSTER,
                    "--profile=" PROFILE, "--output=json", NULL);
    ck_assert_str_eq(first.out, second.out);
    /* One line of canonical JSON. */
    json_auto_t *plan = json_loads(first.out, 0, NULL);
    auto_free char *canonical = het_json_canonical(plan);
    auto_free char *line = xasprintf("%s\n", canonical);
    ck_assert_str_eq(first.out, line);

    auto_free char *file =
        command_write(folder, "plan.json", first.out, first.out_length);
    struct command_result check = command_run(folder, NULL, "check", "--profile", PROFILE,
                                              "--cluster", CLUSTER, file, NULL);
    ck_assert_str_eq(check.out, "{\"valid\":true,\"violations\":[]}\n");
    ck_assert_int_eq(check.exit_code, 0);
    struct command_result cost = command_run(folder, first.out, "cost", "--profile",
                                             PROFILE, "--cluster", CLUSTER, "-", NULL);
    ck_assert_int_eq(cost.exit_code, 0);
    json_auto_t *verdict = json_loads(cost.out, 0, NULL);
    ck_assert_double_eq(json_real_value(json_object_get(verdict, "iterationSeconds")),
                        json_real_value(json_object_get(
                            json_object_get(plan, "predicted"), "iterationSeconds")));
    command_result_fini(&first);
    command_result_fini(&second);
    command_result_fini(&check);
    command_result_fini(&cost);
}
END_TEST

/* Seconds of an iteration of Llama 3.1 8B on 72 GPUs of three types. */
static double seconds_by(const char *algorithm)
{
    struct command_result result = command_run(
        folder, NULL, "plan", "--profile", "tests/data/models/llama-3.1-8b.json",
        "--cluster", "tests/data/clusters/by_table/h100x24_a100x16_l40sx32.json",
        "--sequence-length", "4096", "--precision", "bf16", "--global-batch-size", "256",
        "--output", "json", "--algorithm", algorithm, NULL);
    ck_assert_msg(result.exit_code == 0, "%s", result.err);
    json_auto_t *plan = json_loads(result.out, 0, NULL);
    command_result_fini(&result);
    return json_real_value(
        json_object_get(json_object_get(plan, "predicted"), "iterationSeconds"));
}

START_TEST(auto_on_many_gpus_is_as_good_as_the_best_of_its_parts)
{
    static const char *const parts[] = { "megatron", "amp",   "amp-sa",
                                         "autohet",  "metis", "oomfirst" };
    double best_s = seconds_by("auto");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ck_assert_msg(best_s <= seconds_by(parts[i]), "%s alone is faster", parts[i]);
}
END_TEST

/* Of eight types with many shares each only some combinations are looked at. */
START_TEST(few_gpus_of_many_types_are_found)
{
    static const char *const types[] = { "T4",   "L4",
                                         "A10G", "V100-SXM2-32GB",
                                         "L40S", "A100-SXM4-40GB",
                                         "H20",  "H100-SXM5-80GB" };
    json_t *nodes = json_array();
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        json_array_append_new(nodes, json_pack("{s:s, s:i, s:i}", "type", types[i],
                                               "gpus", 8, "repeat", 20));
    json_auto_t *cluster = json_pack("{s:o}", "nodes", nodes);
    auto_free char *text = json_dumps(cluster, 0);
    auto_free char *file = command_write(folder, "eight.json", text, strlen(text));
    struct command_result result = command_run(
        folder, NULL, "plan", "--profile", "tests/data/models/llama-3.1-8b.json",
        "--cluster", file, "--sequence-length", "4096", "--precision", "bf16",
        "--global-batch-size", "256", "--max-gpus", "32", "--algorithm", "megatron",
        "--output", "json", NULL);
    ck_assert_msg(result.exit_code == 0, "%s", result.err);
    json_auto_t *plan = json_loads(result.out, 0, NULL);
    /* The fastest type, though it comes last. */
    const json_t *stage = json_array_get(
        json_object_get(json_array_get(json_object_get(plan, "pipelines"), 0), "stages"),
        0);
    const json_t *replica = json_array_get(json_object_get(stage, "replicas"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(replica, "gpuType")),
                     "H100-SXM5-80GB");
    command_result_fini(&result);
}
END_TEST

START_TEST(document_on_standard_input_gives_the_same_plan)
{
    json_auto_t *document = json_pack(
        "{s:o, s:{s:o}, s:{s:i}}", "cluster", test_read_json(CLUSTER), "profile", "files",
        test_read_directory(PROFILE), "job", "globalBatchSize", 256);
    auto_free char *text = het_json_canonical(document);
    struct command_result piped = command_run(folder, text, "plan", "-", NULL);
    ck_assert_int_eq(piped.exit_code, 0);
    struct command_result files = command_run(folder, NULL, "plan", "--profile", PROFILE,
                                              "--cluster", CLUSTER, "--global-batch-size",
                                              "256", NULL);
    ck_assert_str_eq(piped.out, files.out);
    command_result_fini(&piped);
    command_result_fini(&files);
}
END_TEST

START_TEST(failure_on_standard_input_is_json_too)
{
    static const struct {
        const char *input;
        int exit_code;
        const char *out;
    } cases[] = {
        { "", 2,
          "{\"error\":{\"code\":\"BadInput\",\"message\":\"standard input: line 1" },
        { "[]", 2,
          "{\"error\":{\"code\":\"BadInput\",\"message\":\"standard input: must be an object" },
        { "{\"cluster\":{\"nodes\":[{\"type\":\"A\\u0007\",\"gpus\":1}]}}", 2,
          "{\"error\":{\"code\":\"BadInput\",\"message\":\"cluster: nodes[0].type: must "
          "not contain control characters\"}}\n" },
        { "{\"cluster\":{\"items\":[]},\"profile\":{},\"job\":{}}", 1,
          "{\"error\":{\"code\":\"NoPlan\",\"message\":\"cluster: no node has GPUs" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct command_result result =
            command_run(folder, cases[i].input, "plan", "-", NULL);
        ck_assert_int_eq(result.exit_code, cases[i].exit_code);
        ck_assert_msg(!strncmp(result.out, cases[i].out, strlen(cases[i].out)), "%s",
                      result.out);
        ck_assert_str_eq(result.err, "");
        command_result_fini(&result);
    }
}
END_TEST

START_TEST(table_is_for_people)
{
    struct command_result plan = command_run(folder, NULL, "plan", "--profile", PROFILE,
                                             "--cluster", CLUSTER, "--global-batch-size",
                                             "256", "--output", "table", NULL);
    ck_assert_int_eq(plan.exit_code, 0);
    ck_assert_ptr_nonnull(strstr(plan.out, " s a step, "));
    ck_assert_ptr_nonnull(strstr(plan.out, "A100"));
    struct command_result bad = command_run(folder, "{}", "cost", "--profile", PROFILE,
                                            "--cluster", CLUSTER, "-", "--output",
                                            "table", NULL);
    ck_assert_int_eq(bad.exit_code, 1);
    ck_assert_str_eq(bad.out, "The plan is not valid:\n  globalBatchSize: is missing\n");
    command_result_fini(&plan);
    command_result_fini(&bad);
}
END_TEST

START_TEST(yaml_profiles_and_kubernetes_nodes_are_read)
{
    struct command_result result = command_run(
        folder, NULL, "plan", "--profile", "docs/examples/opt-350-profile.yaml",
        "--cluster", "docs/examples/nodes-mixed.json", "--hardware",
        "docs/examples/hardware.json", "--global-batch-size", "128", "--effort", "20000",
        NULL);
    ck_assert_msg(result.exit_code == 0, "%s", result.err);
    ck_assert_ptr_nonnull(strstr(result.out, "A100-SXM4-40GB"));
    command_result_fini(&result);
}
END_TEST

/* ---- messages ---- */

static void expect(int exit_code, const char *message, struct command_result result)
{
    ck_assert_int_eq(result.exit_code, exit_code);
    ck_assert_str_eq(result.out, "");
    ck_assert_msg(!strcmp(result.err, message) ||
                      (message[strlen(message) - 1] != '\n' &&
                       !strncmp(result.err, message, strlen(message))),
                  "%s", result.err);
    command_result_fini(&result);
}

/* `hetplan plan` with one more option. */
#define PLAN_WITH(...)                                                                   \
    command_run(folder, NULL, "plan", "--profile", PROFILE, "--cluster", CLUSTER,        \
                __VA_ARGS__, NULL)

START_TEST(bad_options_are_named)
{
    expect(2, "Usage: hetplan COMMAND", command_run(folder, NULL, NULL));
    expect(2, "hetplan: no command \"plant\"", command_run(folder, NULL, "plant", NULL));
    expect(2, "hetplan plan: --profile DIR|FILE is missing; see --help\n",
           command_run(folder, NULL, "plan", NULL));
    expect(2, "hetplan plan: --global-batch-size N is missing; see --help\n",
           PLAN_WITH("--seed", "1"));
    expect(2, "hetplan plan: unknown option --sede; see --help\n",
           PLAN_WITH("--sede", "1"));
    expect(2, "hetplan plan: unknown option -x; see --help\n", PLAN_WITH("-x"));
    expect(2,
           "hetplan plan: --seed: must be a whole number from 0 to 9007199254740992, is "
           "\"-1\"\n",
           PLAN_WITH("--seed", "-1"));
    expect(2,
           "hetplan plan: --memory-headroom-percent: must be a number from 0 to 90, is "
           "\"nan\"\n",
           PLAN_WITH("--memory-headroom-percent", "nan"));
    expect(2,
           "hetplan plan: --tensor-parallel: must be a whole number from 1 to 1024, is "
           "\"\"\n",
           PLAN_WITH("--tensor-parallel", "1,,2"));
    expect(2, "hetplan plan: --output: must be one of: json table; is \"xml\"\n",
           PLAN_WITH("--output", "xml"));
    expect(2, "hetplan plan: --effort: needs a value (N)\n", PLAN_WITH("--effort"));
    expect(2, "hetplan plan: --quiet: takes no value\n", PLAN_WITH("--quiet=1"));
    expect(2, "hetplan plan: --seed: is given twice\n",
           PLAN_WITH("--seed", "1", "--seed=1"));
    expect(2, "hetplan plan: \"-\" takes no options", PLAN_WITH("-"));
    expect(2, "hetplan cost: PLAN.json is missing; see --help\n",
           command_run(folder, NULL, "cost", NULL));
}
END_TEST

START_TEST(bad_files_are_named_with_their_field)
{
    static const struct {
        const char *text, *message;
    } clusters[] = {
        { "", "c.json: line 1, column 0: " },
        { "{\"nodes\": [}", "c.json: line 1, column 12: " },
        { "{\"nodes\": []}", "c.json: nodes: must have at least one node\n" },
        { "{\"nodes\": [{\"type\": \"A100\", \"gpus\": 1, \"intra_gb_s\": \"fast\"}]}",
          "c.json: nodes[0].intra_gb_s: must be a number, is a text\n" },
        { "{\"nodes\": [{\"type\": \"A100\", \"gpus\": 1e99}]}",
          "c.json: nodes[0].gpus: must be 1 to 1024, is 1e+99\n" },
    };
    for (size_t i = 0; i < sizeof clusters / sizeof *clusters; i++) {
        auto_free char *file =
            command_write(folder, "c.json", clusters[i].text, strlen(clusters[i].text));
        auto_free char *message =
            xasprintf("hetplan plan: %s/%s", folder, clusters[i].message);
        expect(2, message,
               command_run(folder, NULL, "plan", "--profile", PROFILE, "--cluster", file,
                           "--global-batch-size", "8", NULL));
    }
    expect(2, "hetplan plan: nowhere.json: No such file or directory\n",
           command_run(folder, NULL, "plan", "--profile", PROFILE, "--cluster",
                       "nowhere.json", "--global-batch-size", "8", NULL));
    expect(2, "hetplan plan: tests: no file here is called DeviceType.",
           command_run(folder, NULL, "plan", "--profile", "tests", "--cluster", CLUSTER,
                       "--global-batch-size", "8", NULL));
    auto_free char *broken =
        command_write(folder, "DeviceType.A100_tp1_bs1.json", "{}", 2);
    auto_free char *message =
        xasprintf("hetplan plan: %s: DeviceType.A100_tp1_bs1.json: "
                  "execution_time.layer_compute_total_ms: is missing\n",
                  folder);
    expect(2, message,
           command_run(folder, NULL, "plan", "--profile", folder, "--cluster", CLUSTER,
                       "--global-batch-size", "8", NULL));
    (void)broken;
}
END_TEST

START_TEST(what_does_not_fit_is_exit_1_with_the_nearest_miss)
{
    const char *tiny =
        "{\"nodes\": [{\"type\": \"A100\", \"gpus\": 1, \"memory_gb\": 6}]}";
    auto_free char *file = command_write(folder, "c.json", tiny, strlen(tiny));
    struct command_result result = command_run(folder, NULL, "plan", "--profile", PROFILE,
                                               "--cluster", file, "--global-batch-size",
                                               "8", NULL);
    ck_assert_int_eq(result.exit_code, 1);
    ck_assert_str_eq(result.out, "");
    ck_assert_ptr_nonnull(
        strstr(result.err, "nearest on A100, which has 5.5 GiB to use"));
    command_result_fini(&result);
}
END_TEST

START_TEST(write_that_fails_is_said)
{
    auto_free char *line =
        xasprintf("%s plan --profile " PROFILE " --cluster " CLUSTER
                  " --global-batch-size 8 > /dev/full 2> %s/err",
                  getenv("HETPLAN") ? getenv("HETPLAN") : "build/hetplan", folder);
    ck_assert_int_eq(WEXITSTATUS(system(line)), 2);
}
END_TEST

START_TEST(help_says_all_there_is)
{
    static const char *const commands[] = { "plan",    "cost",    "check", "simulate",
                                            "explain", "compare", "diff",  "render" };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        struct command_result result =
            command_run(folder, NULL, commands[i], "--help", NULL);
        ck_assert_msg(result.exit_code == 0, "%s: %s", commands[i], result.err);
        ck_assert_str_eq(result.err, "");
        static const char *const sections[] = { "NAME\n",          "\nSYNOPSIS\n",
                                                "\nDESCRIPTION\n", "\nOPTIONS\n",
                                                "\nOUTPUT\n",      "\nEXIT STATUS\n",
                                                "\nEXAMPLES\n",    "--help\n" };
        for (size_t k = 0; k < sizeof sections / sizeof *sections; k++)
            ck_assert_msg(strstr(result.out, sections[k]) != NULL, "%s", sections[k]);
        for (const char *text = result.out; *text;) {
            size_t length = strcspn(text, "\n");
            ck_assert_msg(length < 90, "%.*s", (int)length, text);
            text += length + (text[length] == '\n');
        }
        command_result_fini(&result);
    }
    struct command_result all = command_run(folder, NULL, "--help", NULL);
    ck_assert_int_eq(all.exit_code, 0);
    ck_assert_ptr_nonnull(strstr(all.out, "hetplan COMMAND --help"));
    command_result_fini(&all);
}
END_TEST

/* ---- whatever comes in ---- */

static uint32_t next_random(uint64_t *state, size_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % below);
}

/* A whole question in little: two layers, two types. */
static const char small_question[] =
    "{\"cluster\":{\"nodes\":[{\"name\":\"a\",\"type\":\"A100\",\"gpus\":2,"
    "\"memory_gb\":40,\"intra_gb_s\":240,\"inter_gb_s\":3,\"repeat\":2},{\"type\":"
    "\"V100\",\"gpus\":1,\"memory_gb\":16,\"latency_us\":5}]},\"hardware\":{\"gpuTypes\":[{"
    "\"name\":\"V100\",\"aliases\":[\"v\"],\"workspaceGiB\":2}]},\"job\":{"
    "\"globalBatchSize\":8,\"effort\":300,\"constraints\":{\"tensorParallel\":{"
    "\"allowedDegrees\":[1,2]}},\"gpuTypes\":[{\"name\":\"A100\",\"maxGPUs\":3},{\"name\":"
    "\"v\"}]},\"profile\":{\"files\":{\"DeviceType.A100_tp1_bs1.json\":{\"model\":{"
    "\"num_layers\":2,\"parameters\":{\"parameters_per_layer_bytes\":[4000000,8000000],"
    "\"activation_parameters_bytes\":[1000,2000]}},\"execution_time\":{"
    "\"layer_compute_total_ms\":[3,6],\"optimizer_time_ms\":1},\"execution_memory\":{"
    "\"layer_memory_total_mb\":[100,200]}},\"DeviceType.V100_tp1_bs2.json\":{\"model\":{"
    "\"num_layers\":2,\"parameters\":{\"parameters_per_layer_bytes\":[4000000,8000000],"
    "\"activation_parameters_bytes\":[2000,4000]}},\"execution_time\":{"
    "\"layer_compute_total_ms\":[8,9],\"optimizer_time_ms\":1},\"execution_memory\":{"
    "\"layer_memory_total_mb\":[110,210]}}}}}";

/* Asks; a plan that comes must be valid. Returns 0 for a plan, else the error's code. */
static enum het_error_code ask(const char *text, size_t length)
{
    struct het_arena *arena = het_arena_new();
    struct het_error err = { 0 };
    struct het_question question;
    const struct het_plan *plan;
    json_auto_t *document = NULL;
    if (!het_json_decode(text, length, "fuzz", &document, &err) &&
        !het_question_read(arena, document, &question, &err)) {
        if (question.options.effort > 300)
            question.options.effort = 300;
        if (!het_question_plan(arena, &question, &plan, &err)) {
            json_auto_t *json = het_plan_json(plan);
            json_auto_t *verdict = het_question_judge(arena, &question, json);
            ck_assert_msg(json_is_true(json_object_get(verdict, "valid")), "%.*s",
                          (int)length, text);
        }
    }
    het_arena_free(arena);
    return err.code;
}

START_TEST(broken_questions_are_answered_not_crashed_on)
{
    static const char letters[] = "0123456789-.eE\"{}[],: axA";
    size_t length = strlen(small_question);
    ck_assert_int_eq(ask(small_question, length), HET_OK);
    size_t planned = 0;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        uint64_t state = seed;
        auto_free char *text = xstrdup(small_question);
        size_t changes = 1 + next_random(&state, 3);
        for (size_t i = 0; i < changes; i++)
            text[next_random(&state, length)] =
                next_random(&state, 8) ? letters[next_random(&state, sizeof letters - 1)]
                                       : (char)next_random(&state, 256);
        planned += ask(text, length) == HET_OK;
        ask(small_question, next_random(&state, length));
    }
    ck_assert_uint_gt(planned, 100); /* else the changes are too coarse to teach much */
}
END_TEST

START_TEST(broken_plans_are_judged_not_crashed_on)
{
    struct het_arena *arena = het_arena_new();
    struct het_question question;
    struct het_error err;
    const struct het_plan *plan;
    json_auto_t *document = NULL;
    ck_assert_int_eq(
        het_json_decode(small_question, strlen(small_question), "test", &document, &err),
        0);
    ck_assert_int_eq(het_question_read(arena, document, &question, &err), 0);
    ck_assert_int_eq(het_question_plan(arena, &question, &plan, &err), 0);
    json_auto_t *json = het_plan_json(plan);
    auto_free char *good = het_json_canonical(json);
    size_t length = strlen(good), judged = 0;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        uint64_t state = seed;
        auto_free char *text = xstrdup(good);
        for (size_t i = 0; i < 2; i++)
            text[next_random(&state, length)] = "0123456789"[next_random(&state, 10)];
        json_auto_t *changed = json_loads(text, 0, NULL);
        if (!changed)
            continue;
        struct het_arena *scratch = het_arena_new();
        json_auto_t *verdict = het_question_judge(scratch, &question, changed);
        judged += json_is_false(json_object_get(verdict, "valid"));
        het_arena_free(scratch);
    }
    ck_assert_uint_gt(judged, 100);
    het_arena_free(arena);
}
END_TEST

START_TEST(timeline_is_printed_in_each_form)
{
    static const char *const begins[][2] = {
        { "--output=text", "4.31177 s a step; a column is " },
        { "--output=svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"" },
        { "--output=trace", "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[" },
    };
    for (size_t i = 0; i < 3; i++) {
        struct command_result result =
            command_run(folder, NULL, "simulate", "--profile", PROFILE, "--cluster",
                        "tests/data/clusters/a100x16_v100x16.json", begins[i][0],
                        "tests/data/plans/timeline.json", NULL);
        ck_assert_msg(result.exit_code == 0, "%s", result.err);
        ck_assert_msg(!strncmp(result.out, begins[i][1], strlen(begins[i][1])), "%.100s",
                      result.out);
        command_result_fini(&result);
    }
    /* A plan for other nodes. */
    struct command_result result =
        command_run(folder, NULL, "simulate", "--profile", PROFILE, "--cluster",
                    "tests/data/clusters/uneven_a100x8_v100x4_v100x2.json",
                    "tests/data/plans/timeline.json", NULL);
    ck_assert_int_eq(result.exit_code, 2);
    ck_assert_str_ne(result.err, "");
    command_result_fini(&result);
}
END_TEST

START_TEST(truncated_files_are_refused)
{
    json_auto_t *cluster = test_read_json(CLUSTER);
    auto_free char *text = het_json_canonical(cluster);
    for (size_t length = 0; length < strlen(text); length += 1 + strlen(text) / 12) {
        auto_free char *file = command_write(folder, "c.json", text, length);
        struct command_result result = command_run(folder, NULL, "plan", "--profile",
                                                   PROFILE, "--cluster", file,
                                                   "--global-batch-size", "8", NULL);
        ck_assert_int_eq(result.exit_code, 2);
        ck_assert_ptr_nonnull(strstr(result.err, "c.json: line 1, column"));
        command_result_fini(&result);
    }
}
END_TEST

Suite *test_hetplan_suite(void)
{
    Suite *suite = suite_create("hetplan");
    TCase *cases = tcase_create("hetplan");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, plan_is_json_the_same_every_time_and_valid);
    if (!is_check_run())
        tcase_add_test(cases, auto_on_many_gpus_is_as_good_as_the_best_of_its_parts);
    tcase_add_test(cases, few_gpus_of_many_types_are_found);
    tcase_add_test(cases, document_on_standard_input_gives_the_same_plan);
    tcase_add_test(cases, failure_on_standard_input_is_json_too);
    tcase_add_test(cases, table_is_for_people);
    tcase_add_test(cases, yaml_profiles_and_kubernetes_nodes_are_read);
    tcase_add_test(cases, bad_options_are_named);
    tcase_add_test(cases, bad_files_are_named_with_their_field);
    tcase_add_test(cases, what_does_not_fit_is_exit_1_with_the_nearest_miss);
    tcase_add_test(cases, write_that_fails_is_said);
    tcase_add_test(cases, help_says_all_there_is);
    tcase_add_test(cases, broken_questions_are_answered_not_crashed_on);
    tcase_add_test(cases, broken_plans_are_judged_not_crashed_on);
    tcase_add_test(cases, timeline_is_printed_in_each_form);
    tcase_add_test(cases, truncated_files_are_refused);
    suite_add_tcase(suite, cases);
    return suite;
}
