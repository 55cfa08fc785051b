#include "planner/format/document/question.h"

#include "planner/format/document/plan_json.h"
#include "tests/controller/quoted.h"
#include "tests/planner/files.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* The document of OPT-350M on a cluster of tests/data. */
static json_t *question_json(const char *cluster)
{
    return json_pack("{s:o, s:{s:o}, s:{s:i}}", "cluster", test_read_json(cluster),
                     "profile", "files", test_read_directory("tests/data/sailor/opt-350"),
                     "job", "globalBatchSize", 256);
}

static struct het_question read_question(struct het_arena *arena, const json_t *document)
{
    struct het_question question;
    struct het_error err;
    ck_assert_msg(!het_question_read(arena, document, &question, &err), "%s",
                  err.message);
    return question;
}

START_TEST(planned_plan_is_judged_valid_at_its_own_price)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *document = question_json("tests/data/clusters/a100x8_v100x8.json");
    struct het_question question = read_question(arena, document);
    const struct het_plan *plan;
    struct het_error err;
    ck_assert_msg(!het_question_plan(arena, &question, &plan, &err), "%s", err.message);
    json_auto_t *json = het_plan_json(plan);
    json_auto_t *verdict = het_question_judge(arena, &question, json);
    ck_assert(json_is_true(json_object_get(verdict, "valid")));
    ck_assert_double_eq(json_real_value(json_object_get(verdict, "iterationSeconds")),
                        json_real_value(json_object_get(
                            json_object_get(json, "predicted"), "iterationSeconds")));
    ck_assert(json_equal(json_object_get(verdict, "parts"),
                         json_object_get(json_object_get(json, "predicted"), "parts")));
    /* The verdict says of each peak too what it is made of. */
    json_t *peaks = json_object_get(verdict, "peakMemoryBytes"), *peak;
    size_t i;
    json_array_foreach (peaks, i, peak) {
        static const char *const parts[] = { "stateBytes", "activationBytes",
                                             "workspaceBytes" };
        json_int_t sum = 0;
        for (size_t k = 0; k < 3; k++) {
            sum += json_integer_value(json_object_get(peak, parts[k]));
            json_object_del(peak, parts[k]);
        }
        ck_assert_int_le(llabs(sum - json_integer_value(json_object_get(peak, "bytes"))),
                         2);
    }
    ck_assert(json_equal(
        peaks, json_object_get(json_object_get(json, "predicted"), "peakMemoryBytes")));

    /* The same input gives the same bytes. */
    struct het_arena *other = het_arena_new();
    const struct het_plan *again;
    struct het_question second = read_question(other, document);
    ck_assert_int_eq(het_question_plan(other, &second, &again, &err), 0);
    json_auto_t *json_again = het_plan_json(again);
    auto_free char *a = het_json_canonical(json), *b = het_json_canonical(json_again);
    ck_assert_str_eq(a, b);
    het_arena_free(other);
    het_arena_free(arena);
}
END_TEST

/* What a plan for 8 A100 and 8 V100 takes under constraints, as freedoms. */
static uint32_t freedoms_under(const char *constraints)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *document = question_json("tests/data/clusters/a100x8_v100x8.json");
    json_t *job = json_object_get(document, "job");
    json_object_set_new(job, "constraints", quoted("%s", constraints));
    json_object_set_new(job, "effort", json_integer(20000));
    json_object_set_new(job, "algorithm", json_string("optimal"));
    json_object_set_new(job, "stateReserveBytes", json_integer(8));
    struct het_question question = read_question(arena, document);
    const struct het_plan *plan;
    struct het_error err = { 0 };
    ck_assert_msg(!het_question_plan(arena, &question, &plan, &err), "%s", err.message);
    const struct het_plan *bound;
    ck_assert_int_eq(het_plan_bind(arena, plan, question.problem.cluster, &bound, &err),
                     0);
    uint32_t freedoms = het_runtime_freedoms_of(bound);
    het_arena_free(arena);
    return freedoms;
}

START_TEST(constraints_keep_plans_uniform)
{
    ck_assert_uint_ne(freedoms_under("{}") & HET_FREEDOMS_OF_SHARES, 0);
    ck_assert_uint_eq(freedoms_under("{'dataParallel': {'sharePolicy': 'Equal'}}") &
                          HET_FREEDOMS_OF_SHARES,
                      0);
    ck_assert_uint_ne(freedoms_under("{}") & HET_FREEDOMS_OF_TENSOR_PARALLEL, 0);
    ck_assert_uint_eq(freedoms_under("{'tensorParallel': {'degreePolicy': 'Uniform'}}") &
                          HET_FREEDOMS_OF_TENSOR_PARALLEL,
                      0);
}
END_TEST

/* The judgement of a plan with one GPU of each of two vendors, for `runtime`. */
static char *judge_mix(const char *job, const char *mixed)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *document = quoted(
        "{'cluster': {'nodes': [{'name': 'a', 'type': 'X', 'gpus': 1, 'memory_gb': 24}, "
        "{'name': 'b', 'type': 'Y', 'gpus': 1, 'memory_gb': 24, 'vendor': 'AMD'}]}, "
        "'job': {'globalBatchSize': 2 %s}, 'mixedVendorRuntimes': %s, 'profile': "
        "{'kind': 'ModelProfile', 'spec': {'model': {'name': 'm', 'precision': 'BF16', "
        "'optimizer': 'Adam'}, 'layerGroups': [{'name': 'all', 'count': 1, "
        "'parameterBytes': 1000000, 'activationOutputBytes': 1000}], 'gpuTypes': "
        "[{'name': 'X', 'measurements': [{'layerGroup': 'all', 'tensorParallel': 1, "
        "'microBatchSize': 1, 'forwardMicroseconds': 1000, 'backwardMicroseconds': 1000, "
        "'activationBytes': 5000000}]}, {'name': 'Y', 'measurements': [{'layerGroup': "
        "'all', 'tensorParallel': 1, 'microBatchSize': 1, 'forwardMicroseconds': 1000, "
        "'backwardMicroseconds': 1000, 'activationBytes': 5000000}]}]}}}",
        job, mixed);
    json_auto_t *plan = quoted(
        "{'globalBatchSize': 2, 'layerCount': 1, 'precision': 'bf16', 'optimizer': "
        "'adam', 'pipelines': [{'microBatches': 1, 'stages': [{'firstLayer': 0, "
        "'layerCount': 1, 'recompute': 'none', 'replicas': [{'gpuType': 'X', 'node': "
        "'a', 'gpus': [0], 'microBatchSize': 1}, {'gpuType': 'Y', 'node': 'b', 'gpus': "
        "[0], 'microBatchSize': 1}]}]}]}");
    struct het_question question = read_question(arena, document);
    json_auto_t *verdict = het_question_judge(arena, &question, plan);
    char *text = json_dumps(json_object_get(verdict, "violations"), 0);
    het_arena_free(arena);
    return text;
}

START_TEST(only_runtimes_that_join_vendors_may_mix_them)
{
    static const struct {
        const char *job, *mixed;
        bool is_refused;
    } cases[] = {
        { "", "[]", true },
        { "", "['generic']", false },
        { ", 'runtime': 'torchrun'", "['flagscale', 'custom']", true },
        { ", 'runtime': 'custom'", "['flagscale', 'custom']", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        auto_free char *found = judge_mix(cases[i].job, cases[i].mixed);
        ck_assert_msg(!strstr(found, "node b has Y of AMD, node a has X of NVIDIA") ==
                          !cases[i].is_refused,
                      "%s %s: %s", cases[i].job, cases[i].mixed, found);
    }
}
END_TEST

START_TEST(runtimes_that_mix_vendors_must_be_known)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *document = question_json("tests/data/clusters/a100x8_v100x8.json");
    json_object_set_new(document, "mixedVendorRuntimes", quoted("['flagscal']"));
    struct het_question question;
    struct het_error err = { 0 };
    ck_assert_int_eq(het_question_read(arena, document, &question, &err), -1);
    ck_assert_msg(!strncmp(err.message, "mixedVendorRuntimes[0]: ", 24), "%s",
                  err.message);
    het_arena_free(arena);
}
END_TEST

/* Four layers of 5 GB activations a sample on 24 GiB: only if they are computed again, as
 * the backward pass of a layer needs twice as much beside it. */
static int plan_in_little_memory(const char *constraints, enum het_recompute *ret)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *document = quoted(
        "{'cluster': {'nodes': [{'type': 'X', 'gpus': 1, 'memory_gb': 24}]}, 'job': "
        "{'globalBatchSize': 1, 'constraints': %s}, 'profile': {'kind': 'ModelProfile', "
        "'spec': {'model': {'name': 'm', 'precision': 'BF16', 'optimizer': 'Adam'}, "
        "'layerGroups': [{'name': 'all', 'count': 4, 'parameterBytes': 1000000, "
        "'activationOutputBytes': 1000}], 'gpuTypes': [{'name': 'X', 'measurements': "
        "[{'layerGroup': 'all', 'tensorParallel': 1, 'microBatchSize': 1, "
        "'forwardMicroseconds': 1000, 'backwardMicroseconds': 1000, 'activationBytes': "
        "5000000000}]}]}}}",
        constraints);
    struct het_question question = read_question(arena, document);
    const struct het_plan *plan;
    struct het_error err = { 0 };
    int result = het_question_plan(arena, &question, &plan, &err);
    if (result == 0)
        *ret = plan->pipelines[0].stages[0].recompute;
    else
        ck_assert_int_eq(err.code, HET_NO_PLAN);
    het_arena_free(arena);
    return result;
}

START_TEST(activations_are_kept_if_the_job_says_so)
{
    enum het_recompute recompute;
    ck_assert_int_eq(plan_in_little_memory("{'recompute': 'Auto'}", &recompute), 0);
    ck_assert_int_eq(recompute, HET_RECOMPUTE_FULL);
    ck_assert_int_eq(plan_in_little_memory("{'recompute': 'None'}", &recompute), -1);
}
END_TEST

/* One A100 of node a100-0 with all layers; parts may be replaced. */
static json_t *one_gpu_plan(const char *node, int microbatches, int microbatch)
{
    return json_pack("{s:i, s:i, s:[{s:i, s:[{s:i, s:i, s:[{s:s, s:s, s:i, s:[i]}]}]}]}",
                     "globalBatchSize", 256, "layerCount", 26, "pipelines",
                     "microBatches", microbatches, "stages", "firstLayer", 0,
                     "layerCount", 26, "replicas", "node", node, "gpuType", "A100",
                     "microBatchSize", microbatch, "gpus", 0);
}

static const char *first_violation(const json_t *verdict)
{
    ck_assert(json_is_false(json_object_get(verdict, "valid")));
    return json_string_value(json_array_get(json_object_get(verdict, "violations"), 0));
}

START_TEST(judge_says_what_is_wrong_with_any_plan)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *document = question_json("tests/data/clusters/a100x8_v100x8.json");
    struct het_question question = read_question(arena, document);

    json_auto_t *good = one_gpu_plan("a100-0", 256, 1);
    json_auto_t *verdict = het_question_judge(arena, &question, good);
    ck_assert(json_is_true(json_object_get(verdict, "valid")));
    /* 256 micro-batches of 206.721 ms, one optimizer step of 76.388 ms. */
    ck_assert_double_eq_tol(json_real_value(json_object_get(verdict, "iterationSeconds")),
                            256 * 0.206721 + 0.076388, 1e-9);
    /* Five times 1629724672 bytes of parameters, the activations of one sample and twice
     * those of the head while it runs, 4 GiB for the framework and 3/8 for NCCL. */
    double activations = 8388608 + 24 * 360726528.0 + 834694144;
    json_t *peak = json_array_get(json_object_get(verdict, "peakMemoryBytes"), 0);
    ck_assert_double_eq_tol(
        (double)json_integer_value(json_object_get(peak, "bytes")),
        5.0 * 1629724672 + activations + 2 * 834694144.0 + 4.375 * 0x1p30, 100);

    /* Eight samples at once do not fit; the price is there all the same. */
    json_auto_t *large = one_gpu_plan("a100-0", 32, 8);
    json_auto_t *misfit = het_question_judge(arena, &question, large);
    ck_assert_ptr_nonnull(
        strstr(first_violation(misfit), "pipelines[0].stages[0].replicas[0]: needs "));
    ck_assert_ptr_nonnull(json_object_get(misfit, "iterationSeconds"));

    json_auto_t *short_of = one_gpu_plan("a100-0", 255, 1);
    json_auto_t *wrong = het_question_judge(arena, &question, short_of);
    ck_assert_str_eq(first_violation(wrong),
                     "pipelines: run 255 samples an iteration, the global batch is 256");
    ck_assert_ptr_null(json_object_get(wrong, "iterationSeconds"));

    json_auto_t *nowhere = one_gpu_plan("b", 256, 1);
    json_auto_t *lost = het_question_judge(arena, &question, nowhere);
    ck_assert_ptr_nonnull(strstr(first_violation(lost), "the cluster has no node b"));

    json_auto_t *no_plan = json_integer(3);
    json_auto_t *refused = het_question_judge(arena, &question, no_plan);
    ck_assert_str_eq(first_violation(refused), "must be an object");
    het_arena_free(arena);
}
END_TEST

/* What the answer to `document` says of job.from; 0: nothing. */
static double from_seconds(json_t *document, json_t *from)
{
    struct het_arena *arena = het_arena_new();
    json_t *job = json_object_get(document, "job");
    json_object_set_new(job, "effort", json_integer(2000));
    json_object_set_new(job, "from", from);
    struct het_question question = read_question(arena, document);
    const struct het_plan *plan;
    struct het_error err;
    ck_assert_msg(!het_question_plan(arena, &question, &plan, &err), "%s", err.message);
    json_auto_t *json = het_plan_json(plan);
    double seconds = json_number_value(
        json_object_get(json_object_get(json, "predicted"), "fromIterationSeconds"));
    het_arena_free(arena);
    return seconds;
}

START_TEST(running_plan_is_priced_with_the_present_input)
{
    json_auto_t *document = question_json("tests/data/clusters/a100x8_v100x8.json");
    /* 256 micro-batches of 206.721 ms, one optimizer step of 76.388 ms; what it predicted
     * and left idle before does not count. */
    json_t *from = one_gpu_plan("a100-0", 256, 1);
    json_object_set_new(from, "predicted", json_pack("{s:f}", "iterationSeconds", 1.0));
    json_object_set_new(from, "idle",
                        json_pack("[{s:s, s:[i]}]", "node", "a100-0", "gpus", 1));
    ck_assert_double_eq_tol(from_seconds(document, from), 256 * 0.206721 + 0.076388,
                            1e-9);
}
END_TEST

START_TEST(running_plan_that_cannot_run_has_no_price)
{
    json_auto_t *document = question_json("tests/data/clusters/a100x8_v100x8.json");
    ck_assert_double_eq(from_seconds(document, json_null()), 0);
    /* Its node is gone; it runs another batch; it does not fit; it was not profiled. */
    ck_assert_double_eq(from_seconds(document, one_gpu_plan("gone", 256, 1)), 0);
    ck_assert_double_eq(from_seconds(document, one_gpu_plan("a100-0", 255, 1)), 0);
    ck_assert_double_eq(from_seconds(document, one_gpu_plan("a100-0", 32, 8)), 0);
    ck_assert_double_eq(from_seconds(document, one_gpu_plan("a100-0", 1, 256)), 0);
}
END_TEST

/* Whether the answer offers the running plan, which is far slower than the best one, to
 * a question with this `migration`. */
static bool offers_running_plan(const char *migration)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *document = question_json("tests/data/clusters/a100x8_v100x8.json");
    json_t *job = json_object_get(document, "job");
    json_object_set_new(job, "effort", json_integer(2000));
    json_object_set_new(job, "from", one_gpu_plan("a100-0", 256, 1));
    json_object_set_new(job, "migration", json_loads(migration, 0, NULL));
    struct het_question question = read_question(arena, document);
    const struct het_plan *plan;
    struct het_error err;
    ck_assert_msg(!het_question_plan(arena, &question, &plan, &err), "%s", err.message);
    const struct het_plan *stable = plan->predicted.stable;
    bool offered = stable != NULL;
    if (stable) {
        ck_assert_str_eq(stable->pipelines[0].stages[0].replicas[0].node_name, "a100-0");
        ck_assert_double_eq(stable->predicted.migration->peer_bytes, 0);
        ck_assert_double_gt(plan->predicted.migration->peer_bytes, 0);
        ck_assert_double_gt(stable->predicted.iteration_s, plan->predicted.iteration_s);
    }
    het_arena_free(arena);
    return offered;
}

/* What it takes from a100-0 to a100-1, with these hardware settings and this
 * `migration`; a new reference. */
static json_t *move_json(struct het_arena *arena, const char *hardware,
                         const char *migration)
{
    json_auto_t *document = question_json("tests/data/clusters/a100x8_v100x8.json");
    json_auto_t *to = one_gpu_plan("a100-1", 256, 1);
    json_t *job = json_object_get(document, "job"), *move;
    struct het_error err;
    json_object_set_new(document, "hardware", json_loads(hardware, 0, NULL));
    json_object_set_new(job, "from", one_gpu_plan("a100-0", 256, 1));
    json_object_set_new(job, "migration", json_loads(migration, 0, NULL));
    struct het_question question = read_question(arena, document);
    ck_assert_msg(!het_question_diff(arena, &question, to, &move, &err), "%s",
                  err.message);
    return move;
}

/* One GPU reads all that one GPU wrote: both take the state at the storage's rate. */
static void check_storage(const char *hardware, const char *migration, double gb_per_s)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *move = move_json(arena, hardware, migration);
    double state =
        json_number_value(json_object_get(json_object_get(move, "bytes"), "state"));
    ck_assert_double_gt(state, 1e9);
    ck_assert_double_eq_tol(json_number_value(json_object_get(move, "seconds")),
                            state / (gb_per_s * 1e9), 1e-9);
    ck_assert_double_eq_tol(json_number_value(json_object_get(move, "writeSeconds")),
                            state / (gb_per_s * 1e9), 1e-9);
    het_arena_free(arena);
}

START_TEST(storage_is_as_fast_as_the_question_says_else_the_administrator)
{
    check_storage("{}", "{}", HET_MIGRATE_CLOUD_BYTES_PER_S / 1e9);
    check_storage("{\"storageGBs\": 0.25}", "{}", 0.25);
    check_storage("{\"storageGBs\": 0.25}", "{\"cloudGBs\": 0.5}", 0.5);
}
END_TEST

START_TEST(stable_plan_is_one_that_moves_less_and_is_nearly_as_good)
{
    ck_assert(!offers_running_plan("{}"));
    ck_assert(!offers_running_plan("{\"maxSlowdownPercent\": 15}"));
    ck_assert(offers_running_plan("{\"maxSlowdownPercent\": 100000}"));
    /* Nodes that keep checkpoints on their disks are asked to read them, which takes a
     * while; else nothing is read if nothing changes. */
    ck_assert(!offers_running_plan("{\"maxSeconds\": 0, \"diskGBs\": 3.5}"));
    ck_assert(offers_running_plan("{\"maxSeconds\": 0}"));
}
END_TEST

START_TEST(kubernetes_nodes_bind_to_short_profile_names)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *document = json_pack(
        "{s:{s:[{s:s, s:s, s:i, s:f}, {s:s, s:s, s:i}]}, s:{s:o}, s:{s:i, s:[{s:s}]}}",
        "cluster", "nodes", "name", "n0", "type", "A100-SXM4-80GB", "gpus", 2,
        "memory_gb", 79.5, "name", "n1", "type", "V100-SXM2-16GB", "gpus", 4, "profile",
        "files", test_read_directory("tests/data/sailor/opt-350"), "job",
        "globalBatchSize", 64, "gpuTypes", "name", "NVIDIA-A100-SXM4-80GB");
    struct het_question question = read_question(arena, document);
    const struct het_problem *problem = &question.problem;
    ck_assert_uint_eq(problem->profile_type[0],
                      het_profile_find_type(problem->profile, "A100"));
    /* The job's limit, under another name of the type, leaves the V100 out. */
    ck_assert_str_eq(problem->workload->type_limits[0].type, "A100-SXM4-80GB");
    ck_assert_uint_eq(problem->profile_type[1], HET_NO_TYPE);
    const struct het_plan *plan;
    struct het_error err;
    ck_assert_msg(!het_question_plan(arena, &question, &plan, &err), "%s", err.message);
    het_arena_free(arena);
}
END_TEST

/* One node, ready, with 4 GPUs; "": no label. */
static json_t *node_json(const char *name, const char *product)
{
    json_t *node = quoted("{'metadata': {'name': '%s', 'labels': {}}, 'status': "
                          "{'allocatable': {'nvidia.com/gpu': '4'}, 'conditions': "
                          "[{'type': 'Ready', 'status': 'True'}]}}",
                          name);
    if (*product)
        json_object_set_new(json_object_get(json_object_get(node, "metadata"), "labels"),
                            "nvidia.com/gpu.product", json_string(product));
    return node;
}

START_TEST(every_gpu_that_the_plan_does_not_use_has_its_reason)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *document = json_pack(
        "{s:{s:[o, o, o, o]}, s:{s:o}, s:{s:i, s:i}, s:[o]}", "cluster", "items",
        node_json("a0", "NVIDIA-A100-SXM4-40GB"), node_json("foo", "NVIDIA-H100-FOO"),
        node_json("l40s", "NVIDIA-L40S"), node_json("bare", ""), "profile", "files",
        test_read_directory("tests/data/sailor/opt-350"), "job", "globalBatchSize", 64,
        "maxGPUs", 2, "unused",
        quoted("{'reason': 'Quota', 'gpuType': 'T4', 'gpus': 3, 'nodeCount': 1, 'nodes': "
               "['t4']}"));
    struct het_question question = read_question(arena, document);
    const struct het_plan *plan;
    struct het_error err;
    ck_assert_msg(!het_question_plan(arena, &question, &plan, &err), "%s", err.message);
    const char *text = "";
    for (size_t i = 0; i < plan->unused_count; i++)
        text = het_arena_printf(
            arena, "%s%s: %u %s on %s\n", text, het_unused_name(plan->unused[i].reason),
            plan->unused[i].gpus, plan->unused[i].type, plan->unused[i].nodes[0]);
    ck_assert_str_eq(text, "UnknownProduct: 4 H100-FOO on foo\n"
                           "NoGPULabel: 4  on bare\n"
                           "NotMeasured: 4 L40S on l40s\n"
                           "GPULimit: 2 A100-SXM4-40GB on a0\n"
                           "Quota: 3 T4 on t4\n");
    /* Plans that do the same have the same hash, whatever else is in the cluster. */
    const char *hash = het_plan_json_hash(arena, plan);
    struct het_plan *alone = het_plan_copy(arena, plan);
    alone->unused_count = 0;
    ck_assert_str_eq(hash, het_plan_json_hash(arena, alone));
    het_arena_free(arena);
}
END_TEST

static void refuses(json_t *document, enum het_error_code code, const char *message)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *owned = document;
    struct het_question question;
    struct het_error err = { 0 };
    ck_assert_int_eq(het_question_read(arena, owned, &question, &err), -1);
    ck_assert_int_eq(err.code, code);
    ck_assert_msg(strstr(err.message, message), "%s", err.message);
    het_arena_free(arena);
}

/* The question with `part` set to the JSON text `value`. */
static json_t *with_part(const char *part, const char *value)
{
    json_t *document = question_json("tests/data/clusters/a100x8_v100x8.json");
    json_object_set_new(document, part, json_loads(value, JSON_DECODE_ANY, NULL));
    return document;
}

START_TEST(faults_name_part_and_field)
{
    refuses(json_integer(1), HET_BAD_INPUT, "must be an object with cluster, profile");
    refuses(with_part("clusters", "{}"), HET_BAD_INPUT,
            "clusters: unknown field; known are cluster, pods, profile, hardware, "
            "network, job");
    refuses(json_object(), HET_BAD_INPUT, "cluster: is missing");
    refuses(with_part("cluster", "{\"nodes\":[{}]}"), HET_BAD_INPUT,
            "cluster: nodes[0].type: is missing");
    refuses(with_part("profile", "{\"kind\":\"Pod\"}"), HET_BAD_INPUT,
            "profile: kind: must be ModelProfile or ClusterModelProfile, is Pod");
    refuses(with_part("profile", "{\"files\":{\"DeviceType.A_tp1_bs1.json\":{}}}"),
            HET_BAD_INPUT,
            "profile: DeviceType.A_tp1_bs1.json: "
            "execution_time.layer_compute_total_ms: is missing");
    refuses(with_part("hardware", "{\"gpuTypes\":[{}]}"), HET_BAD_INPUT,
            "hardware: gpuTypes[0].name: is missing");
    refuses(with_part("job", "{}"), HET_BAD_INPUT, "job: globalBatchSize: is missing");
    refuses(with_part("job", "{\"globalBatchSize\":8,\"from\":{}}"), HET_BAD_INPUT,
            "job: from: globalBatchSize: is missing");
    refuses(with_part("cluster", "{\"items\":[]}"), HET_NO_PLAN,
            "cluster: no node has GPUs");

    json_t *named = with_part("cluster", "{\"nodes\":[{}]}");
    json_object_set_new(named, "sources", json_pack("{s:s}", "cluster", "nodes.json"));
    refuses(named, HET_BAD_INPUT, "nodes.json: nodes[0].type: is missing");
}
END_TEST

Suite *test_question_suite(void)
{
    Suite *suite = suite_create("question");
    TCase *cases = tcase_create("answer");
    tcase_add_test(cases, planned_plan_is_judged_valid_at_its_own_price);
    tcase_add_test(cases, constraints_keep_plans_uniform);
    tcase_add_test(cases, only_runtimes_that_join_vendors_may_mix_them);
    tcase_add_test(cases, runtimes_that_mix_vendors_must_be_known);
    tcase_add_test(cases, activations_are_kept_if_the_job_says_so);
    tcase_add_test(cases, judge_says_what_is_wrong_with_any_plan);
    tcase_add_test(cases, running_plan_is_priced_with_the_present_input);
    tcase_add_test(cases, running_plan_that_cannot_run_has_no_price);
    tcase_add_test(cases, stable_plan_is_one_that_moves_less_and_is_nearly_as_good);
    tcase_add_test(cases, storage_is_as_fast_as_the_question_says_else_the_administrator);
    tcase_add_test(cases, kubernetes_nodes_bind_to_short_profile_names);
    tcase_add_test(cases, every_gpu_that_the_plan_does_not_use_has_its_reason);
    tcase_add_test(cases, faults_name_part_and_field);
    suite_add_tcase(suite, cases);
    return suite;
}
