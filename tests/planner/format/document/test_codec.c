#include "planner/format/document/codec.h"

#include "tests/controller/quoted.h"
#include "tests/planner/files.h"
#include "tests/planner/toy.h"

#include <check.h>
#include <string.h>

static json_t *parse(const char *text)
{
    json_error_t problem;
    json_t *json = json_loads(text, JSON_DECODE_ANY, &problem);
    ck_assert_msg(json != NULL, "%d: %s: %s", problem.column, problem.text, text);
    return json;
}

/* ---- hardware ---- */

START_TEST(hardware_file_is_laid_over_the_table)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *json = parse(
        "{\"gpuTypes\":[{\"name\":\"A100-SXM4-40GB\",\"aliases\":[\"lab-card\"],"
        "\"memoryGiB\":39.5,\"intraGBs\":200,\"interGBs\":12.5,\"workspaceGiB\":3,"
        "\"pricePerHour\":\"3.67\",\"fp16TFLOPS\":250,\"memoryGBs\":1400}],\"levels\":[{\"label\":\"rack\",\"uplinkGBs\":20}],"
        "\"network\":{\"A100-40\":{\"2\":[[0,0,9],9e9]}}}");
    const struct het_hardware *hardware;
    ck_assert_int_eq(
        het_codec_hardware(arena, json, het_hardware_builtin(), &hardware, NULL), 0);
    const struct het_gpu_type *type = het_hardware_find(hardware, "LAB_CARD");
    ck_assert_uint_eq(type->memory_bytes, (uint64_t)79 << 29);
    ck_assert_uint_eq(type->workspace_bytes, (uint64_t)3 << 30);
    ck_assert_double_eq(type->intra_bytes_per_s, 200e9);
    ck_assert_double_eq(type->inter_bytes_per_s, 12.5e9);
    ck_assert_double_eq(type->price_per_hour, 3.67);
    ck_assert_str_eq(type->profile, "A100");
    ck_assert_str_eq(hardware->levels[0].label, "rack");
    ck_assert_double_eq(hardware->levels[0].uplink_bytes_per_s, 20e9);
    ck_assert_uint_eq(hardware->network->curve_count, 1);
    ck_assert_double_eq(type->fp16_flops, 250e12);
    ck_assert_double_eq(type->bf16_flops, 312e12); /* the table's */
    ck_assert_double_eq(type->memory_bytes_per_s, 1400e9);

    struct het_error err;
    json_auto_t *bad = parse("{\"gpuTypes\":[{\"name\":\"X\",\"intraGBs\":0}]}");
    ck_assert_int_eq(
        het_codec_hardware(arena, bad, het_hardware_builtin(), &hardware, &err), -1);
    ck_assert_str_eq(err.message, "gpuTypes[0].intraGBs: must be 1e-06 to 1e+06, is 0");
    json_auto_t *misspelt = parse("{\"gpuTypes\":[{\"name\":\"X\",\"intraGbs\":1}]}");
    ck_assert_int_eq(
        het_codec_hardware(arena, misspelt, het_hardware_builtin(), &hardware, &err), -1);
    ck_assert_str_eq(
        err.message,
        "gpuTypes[0].intraGbs: unknown field; known are name, aliases, "
        "profile, memoryGiB, intraGBs, interGBs, workspaceGiB, pricePerHour, "
        "bf16TFLOPS, fp16TFLOPS, tf32TFLOPS, fp32TFLOPS, memoryGBs, vendor");
    json_auto_t *part = parse("{\"gpuType\":[]}");
    ck_assert_int_eq(
        het_codec_hardware(arena, part, het_hardware_builtin(), &hardware, &err), -1);
    ck_assert_str_eq(err.message,
                     "gpuType: unknown field; known are gpuTypes, instanceTypes, levels, "
                     "network, storageGBs");
    het_arena_free(arena);
}
END_TEST

/* ---- cluster ---- */

static const struct het_cluster *read_cluster(struct het_arena *arena, const char *text)
{
    json_auto_t *json = parse(text);
    const struct het_cluster *cluster = NULL;
    struct het_error err;
    ck_assert_msg(!het_codec_cluster(arena, json, het_hardware_builtin(), &cluster, &err),
                  "%s: %s", text, err.message);
    return cluster;
}

START_TEST(short_form_expands_copies_and_names)
{
    struct het_arena *arena = het_arena_new();
    const struct het_cluster *cluster = read_cluster(
        arena,
        "{\"nodes\":[{\"name\":\"v\",\"type\":\"V100\",\"gpus\":4,\"memory_gb\":16,"
        "\"intra_gb_s\":60,\"inter_gb_s\":3,\"inter_flow_gb_s\":1.5,\"latency_us\":"
        "20,\"repeat\":2},"
        "{\"type\":\"A100\",\"gpus\":8,\"repeat\":1},"
        "{\"name\":\"x\",\"type\":\"V100\",\"gpus\":2,\"memory_gb\":15.5},"
        "{\"type\":\"A100\",\"gpus\":8,\"profile\":\"A100-fast\"}]}");
    ck_assert_uint_eq(cluster->node_count, 5);
    ck_assert_str_eq(cluster->nodes[0].name, "v-0");
    ck_assert_str_eq(cluster->nodes[1].name, "v-1");
    ck_assert_str_eq(cluster->nodes[2].name, "a100-0");
    ck_assert_str_eq(cluster->nodes[3].name, "x");
    ck_assert_str_eq(cluster->nodes[4].name, "a100-1");
    ck_assert_double_eq(cluster->nodes[1].intra_bytes_per_s, 60e9);
    ck_assert_double_eq(cluster->nodes[1].uplink_bytes_per_s, 3e9);
    ck_assert_double_eq(cluster->nodes[1].flow_bytes_per_s, 1.5e9);
    ck_assert_double_eq_tol(cluster->nodes[1].latency_s, 20e-6, 1e-18);
    /* Types are sorted by name; nodes point at them. */
    ck_assert_str_eq(cluster->types[0].name, "A100");
    ck_assert_str_eq(cluster->types[1].name, "V100");
    ck_assert_uint_eq(cluster->nodes[0].type, 1);
    ck_assert_uint_eq(cluster->nodes[2].type, 0);
    /* What was not said comes from the table: 40 GiB, 240 GB/s, workspace. */
    ck_assert_uint_eq(cluster->types[0].memory_bytes, (uint64_t)40 << 30);
    ck_assert_uint_eq(cluster->types[0].workspace_bytes, HET_DEFAULT_WORKSPACE_BYTES);
    ck_assert_double_eq(cluster->nodes[2].intra_bytes_per_s, 240e9);
    ck_assert_double_eq(cluster->nodes[2].uplink_bytes_per_s, 3e9);
    ck_assert_str_eq(cluster->types[0].profile_name, "A100-fast");
    /* The least memory of a type counts for all its nodes. */
    ck_assert_uint_eq(cluster->types[1].memory_bytes, (uint64_t)31 << 29);
    het_arena_free(arena);
}
END_TEST

START_TEST(unknown_type_needs_only_its_memory)
{
    struct het_arena *arena = het_arena_new();
    const struct het_cluster *cluster =
        read_cluster(arena, "{\"nodes\":[{\"type\":\"Z9\",\"gpus\":1,\"memory_gb\":8}]}");
    ck_assert_str_eq(cluster->types[0].profile_name, "Z9");
    ck_assert_uint_eq(cluster->types[0].workspace_bytes, (uint64_t)4 << 30); /* 8 / 2 */
    ck_assert_double_eq(cluster->nodes[0].intra_bytes_per_s,
                        HET_DEFAULT_INTRA_BYTES_PER_S);
    het_arena_free(arena);
}
END_TEST

START_TEST(faults_of_a_cluster_name_the_field)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "[]", "must be an object with a list \"nodes\"" },
        { "{}", "must be an object with a list \"nodes\"" },
        { "{\"nodes\":[]}", "nodes: must have at least one node" },
        { "{\"nodes\":[null]}", "nodes[0]: is missing" },
        { "{\"nodes\":[3]}", "nodes[0]: must be an object, is a number" },
        { "{\"nodes\":[{\"gpus\":1}]}", "nodes[0].type: is missing" },
        { "{\"nodes\":[{\"type\":\"A100\"}]}", "nodes[0].gpus: is missing" },
        { "{\"nodes\":[{\"type\":\"A100\",\"gpus\":0}]}",
          "nodes[0].gpus: must be 1 to 1024, is 0" },
        { "{\"nodes\":[{\"type\":\"A100\",\"gpus\":2.5}]}",
          "nodes[0].gpus: must be a whole number" },
        { "{\"nodes\":[{\"type\":\"A100\",\"gpus\":1,\"memory_gb\":-1}]}",
          "nodes[0].memory_gb: must be 0.0625 to 16384, is -1" },
        { "{\"nodes\":[{\"type\":\"A100\",\"gpus\":1,\"inter_gb_s\":0}]}",
          "nodes[0].inter_gb_s: must be 1e-06" },
        { "{\"nodes\":[{\"type\":\"A100\",\"gpus\":1,\"repeat\":65536},{\"type\":"
          "\"A100\",\"gpus\":1}]}",
          "nodes[1]: more than 65536 nodes together" },
        { "{\"nodes\":[{\"type\":\"A100\",\"gpus\":1,\"name\":\"a\"},{\"type\":"
          "\"A100\",\"gpus\":1,\"name\":\"a\"}]}",
          "nodes[1].name: two nodes are called a, this one and one of nodes[0]; rename one "
          "of them" },
        { "{\"nodes\":[{\"type\":\"A100\",\"gpus\":1,\"repeat\":2},{\"type\":\"V100\",\"gpus\":"
          "1},{\"type\":\"A100\",\"gpus\":1,\"name\":\"a100-1\"}]}",
          "nodes[2].name: two nodes are called a100-1, this one and one of nodes[0]" },
        { "{\"nodes\":[{\"type\":\"A100\",\"gpus\":1,\"inter_gbs\":3}]}",
          "nodes[0].inter_gbs: unknown field; known are name, type, gpus, memory_gb, "
          "intra_gb_s, inter_gb_s, inter_flow_gb_s, latency_us, instance_type, workspace_gb, profile, "
          "repeat, levels" },
        { "{\"nodes\":[{\"type\":\"A100\",\"gpus\":1}],\"node\":[]}",
          "node: unknown field; known are nodes, levels, network" },
        { "{\"items\":7}", "items: must be a list" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct het_arena *arena = het_arena_new();
        json_auto_t *json = parse(cases[i].text);
        const struct het_cluster *cluster;
        struct het_error err = { 0 };
        ck_assert_int_eq(
            het_codec_cluster(arena, json, het_hardware_builtin(), &cluster, &err), -1);
        ck_assert_int_eq(err.code, HET_BAD_INPUT);
        ck_assert_msg(strstr(err.message, cases[i].message), "%s: %s", cases[i].text,
                      err.message);
        het_arena_free(arena);
    }
}
END_TEST

START_TEST(examples_are_read)
{
    static const struct {
        const char *path;
        uint32_t gpus;
    } cases[] = {
        { "tests/data/clusters/a100x8_v100x8.json", 16 },
        { "tests/data/clusters/uneven_a100x8_v100x4_v100x2.json", 14 },
        { "tests/data/clusters/a100x32_v100x96.json", 128 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct het_arena *arena = het_arena_new();
        json_auto_t *json = test_read_json(cases[i].path);
        const struct het_cluster *cluster;
        ck_assert_int_eq(
            het_codec_cluster(arena, json, het_hardware_builtin(), &cluster, NULL), 0);
        ck_assert_uint_eq(het_cluster_gpu_count(cluster), cases[i].gpus);
        ck_assert_uint_eq(cluster->type_count, 2);
        het_arena_free(arena);
    }
}
END_TEST

/* ---- workload ---- */

static int read_workload(struct toy *toy, const char *text, struct het_workload *workload,
                         struct het_search_options *options, struct het_error *err)
{
    json_auto_t *json = parse(text);
    return het_codec_workload(toy->arena, json, &toy->profile, workload, options, err);
}

START_TEST(job_part_fills_workload_and_options)
{
    struct toy *toy = toy_new();
    struct het_workload workload;
    struct het_search_options options;
    struct het_error err;
    int result = read_workload(
        toy,
        "{\"globalBatchSize\":256,\"optimizer\":\"SGD\",\"memoryHeadroomPercent\":8,"
        "\"microBatchSizes\":[1,2],\"minGPUs\":1,\"maxGPUs\":32,\"gpuTypes\":[{\"name\":"
        "\"fast\",\"minGPUs\":2,\"maxGPUs\":16,\"preference\":-5}],\"constraints\":{"
        "\"dataParallel\":{\"min\":1,\"max\":8},\"tensorParallel\":{\"allowed\":[1,2]},"
        "\"pipelineParallel\":{\"max\":4},\"recompute\":\"Auto\"},\"runtime\":"
        "\"torchrun\",\"algorithm\":\"metis\",\"effort\":1000,\"seed\":7,"
        "\"metisVariance\":0.25,\"metisPermute\":6}",
        &workload, &options, &err);
    ck_assert_msg(!result, "%s", err.message);
    ck_assert_uint_eq(workload.global_batch, 256);
    ck_assert_int_eq(workload.optimizer, HET_SGD);
    ck_assert_int_eq(workload.precision, HET_FP32); /* the profile's */
    ck_assert_double_eq(workload.memory_headroom, 0.08);
    ck_assert_uint_eq(workload.microbatch_size_count, 2);
    ck_assert_uint_eq(workload.tensor_parallel[1], 2);
    ck_assert_uint_eq(workload.min_gpus, 1);
    ck_assert_uint_eq(workload.max_gpus, 32);
    ck_assert_uint_eq(workload.max_data_parallel, 8);
    ck_assert_uint_eq(workload.max_pipeline_parallel, 4);
    ck_assert_uint_eq(workload.type_limits[0].min_gpus, 2);
    ck_assert_int_eq(workload.type_limits[0].preference, -5);
    ck_assert_str_eq(options.algorithm, "metis");
    ck_assert_uint_eq(options.effort, 1000);
    ck_assert_uint_eq(options.seed, 7);
    ck_assert_double_eq(options.metis_variance, 0.25);
    ck_assert_uint_eq(options.metis_permute, 6);

    ck_assert_int_eq(
        read_workload(toy, "{\"globalBatchSize\":1}", &workload, &options, NULL), 0);
    ck_assert_str_eq(options.algorithm, "auto");
    toy_free(toy);
}
END_TEST

START_TEST(sequence_length_is_the_profiles_and_no_other)
{
    struct toy *toy = toy_new();
    struct het_workload workload;
    struct het_search_options options;
    struct het_error err;
    toy->profile.sequence_length = 4096;
    ck_assert_int_eq(
        read_workload(toy, "{\"globalBatchSize\":8}", &workload, &options, &err), 0);
    ck_assert_uint_eq(workload.sequence_length, 4096);
    ck_assert_int_eq(read_workload(toy,
                                   "{\"globalBatchSize\":8,\"sequenceLength\":131072}",
                                   &workload, &options, &err),
                     -1);
    ck_assert_ptr_nonnull(strstr(err.message,
                                 "sequenceLength: is 131072, but the profile "
                                 "was measured with 4096"));
    toy->profile.sequence_length = 0; /* it does not say: the job does */
    ck_assert_int_eq(read_workload(toy,
                                   "{\"globalBatchSize\":8,\"sequenceLength\":131072}",
                                   &workload, &options, &err),
                     0);
    ck_assert_uint_eq(workload.sequence_length, 131072);
    toy_free(toy);
}
END_TEST

START_TEST(faults_of_a_job_name_the_field)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "{}", "globalBatchSize: is missing" },
        { "{\"globalBatchSize\":0}", "globalBatchSize: must be 1 to 2147483647, is 0" },
        { "{\"globalBatchSize\":2147483648}", "globalBatchSize: must be 1 to" },
        { "{\"globalBatchSize\":\"8\"}", "globalBatchSize: must be a whole number" },
        { "{\"globalBatchSize\":8,\"precision\":\"bf16\"}",
          "precision: is bf16, but the profile was measured in fp32" },
        { "{\"globalBatchSize\":8,\"precision\":\"fp8\"}", "must be fp32, bf16 or fp16" },
        { "{\"globalBatchSize\":8,\"memoryHeadroomPercent\":91}",
          "memoryHeadroomPercent: must be 0 to 90" },
        { "{\"globalBatchSize\":8,\"microBatchSizes\":[0]}",
          "microBatchSizes[0]: must be 1 to" },
        { "{\"globalBatchSize\":8,\"minGPUs\":9,\"maxGPUs\":8}",
          "GPUs: the least (9) is above the most (8)" },
        { "{\"globalBatchSize\":8,\"gpuTypes\":[{}]}", "gpuTypes[0].name: is missing" },
        { "{\"globalBatchSize\":8,\"constraints\":[]}",
          "constraints: must be an object, is a list" },
        { "{\"globalBatchSize\":8,\"seed\":-1}", "seed: must be 0 to" },
        { "{\"globalBatchSize\":8,\"maxGpus\":4}",
          "maxGpus: unknown field; known are globalBatchSize, " },
        { "{\"globalBatchSize\":8,\"gpuTypes\":[{\"name\":\"a\",\"max\":4}]}",
          "gpuTypes[0].max: unknown field; known are name, minGPUs, maxGPUs, preference" },
        { "{\"globalBatchSize\":8,\"constraints\":{\"tensorparallel\":{}}}",
          "constraints.tensorparallel: unknown field; known are dataParallel, " },
        { "{\"globalBatchSize\":8,\"constraints\":{\"pipelineParallel\":{\"most\":2}}}",
          "constraints.pipelineParallel.most: unknown field; known are max" },
    };
    struct toy *toy = toy_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct het_workload workload;
        struct het_search_options options;
        struct het_error err = { 0 };
        ck_assert_int_eq(read_workload(toy, cases[i].text, &workload, &options, &err),
                         -1);
        ck_assert_msg(strstr(err.message, cases[i].message), "%s: %s", cases[i].text,
                      err.message);
    }
    toy_free(toy);
}
END_TEST

/* ---- plan ---- */

static struct het_plan priced_plan(struct toy *toy)
{
    struct het_plan plan = toy_two_pipelines(toy);
    het_plan_fill_idle(toy->arena, &toy->cluster, &plan);
    static const struct het_peak_memory peaks[] = {
        { .stage = 1, .bytes = 5, .capacity_bytes = 9 }
    };
    plan.predicted = (struct het_prediction){ .iteration_s = 1.5,
                                              .samples_per_s = 8 / 1.5,
                                              .closed_form_s = 1.625,
                                              .lower_bound_s = 1,
                                              .from_iteration_s = 1.75,
                                              .pipeline_s = 1.25,
                                              .gradient_sync_s = 0.125,
                                              .optimizer_s = 0.125,
                                              .peak_memory = peaks,
                                              .peak_memory_count = 1 };
    plan.search = (struct het_search_report){ .effort = 10, .plans_priced = 3 };
    static const struct het_unused unused[] = {
        { HET_UNUSED_NO_GPU_LABEL, "", "", 4, 1, { "bare" } },
        { HET_UNUSED_TAINTED,
          "slow",
          "sku",
          72,
          9,
          { "a", "b", "c", "d", "e", "f", "g", "h" } },
    };
    plan.unused = unused;
    plan.unused_count = 2;
    return plan;
}

START_TEST(plan_reads_back_as_it_was_written)
{
    struct toy *toy = toy_new();
    struct het_plan plan = priced_plan(toy);
    plan.sequence_length = 2048;
    json_auto_t *json = het_codec_plan_json(&plan);
    auto_free char *text = het_json_canonical(json);
    ck_assert_ptr_nonnull(
        strstr(text, "\"pipelines\":[{\"microBatches\":2,\"stages\":[{\"firstLayer\":0,"
                     "\"layerCount\":2,\"recompute\":\"none\",\"replicas\":[{\"gpuType\":"
                     "\"slow\",\"gpus\":[0],\"microBatchSize\":2,\"node\":\"s0\"}]}"));
    ck_assert_ptr_nonnull(strstr(text, "\"gap\":0.5,"));
    ck_assert_ptr_nonnull(strstr(
        text,
        "{\"detail\":\"sku\",\"gpuType\":\"slow\",\"gpus\":72,\"message\":\"their "
        "node has a taint that is not tolerated (sku)\",\"nodeCount\":9,\"nodes\":["
        "\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\"],\"reason\":\"Tainted\"}"));
    ck_assert_ptr_nonnull(strstr(text, "\"closedFormSeconds\":1.625,"));
    ck_assert_ptr_nonnull(strstr(text, "\"fromIterationSeconds\":1.75,"));
    ck_assert_ptr_nonnull(strstr(text, "\"idle\":[{\"gpus\":[2,3],\"node\":\"f0\"}"));

    json_t *decoded = NULL;
    ck_assert_int_eq(het_json_decode(text, strlen(text), "plan", &decoded, NULL), 0);
    const struct het_plan *again;
    struct het_error err;
    ck_assert_msg(!het_codec_plan(toy->arena, decoded, &again, &err), "%s", err.message);
    ck_assert_int_eq(het_plan_compare(&plan, again), 0);
    ck_assert_uint_eq(again->pipelines[0].stages[0].replicas[0].node, HET_UNBOUND);
    json_auto_t *json_again = het_codec_plan_json(again);
    auto_free char *text_again = het_json_canonical(json_again);
    ck_assert_str_eq(text, text_again);
    json_decref(decoded);

    /* What was measured is not said; what was not is. */
    ck_assert_ptr_null(strstr(text, "extrapolated"));
    ck_assert_int_eq(again->predicted.profile_origin, HET_PROFILE_MEASURED);
    plan.predicted.profile_origin = HET_PROFILE_CALIBRATED;
    plan.predicted.extrapolated = true;
    json_auto_t *marked = het_codec_plan_json(&plan);
    ck_assert_int_eq(het_codec_plan(toy->arena, marked, &again, &err), 0);
    ck_assert_int_eq(again->predicted.profile_origin, HET_PROFILE_CALIBRATED);
    ck_assert(again->predicted.extrapolated);

    plan.predicted.from_iteration_s = 0;
    json_auto_t *without = het_codec_plan_json(&plan);
    ck_assert_ptr_null(
        json_object_get(json_object_get(without, "predicted"), "fromIterationSeconds"));
    toy_free(toy);
}
END_TEST

START_TEST(plan_without_an_algorithm_reads_back_as_it_was_written)
{
    struct toy *toy = toy_new();
    struct het_plan plan = priced_plan(toy);
    plan.algorithm = "";
    json_auto_t *json = het_codec_plan_json(&plan);
    ck_assert_ptr_null(json_object_get(json, "algorithm"));
    const struct het_plan *again;
    struct het_error err;
    ck_assert_msg(!het_codec_plan(toy->arena, json, &again, &err), "%s", err.message);
    ck_assert_str_eq(again->algorithm, "");
    ck_assert_str_eq(het_codec_plan_hash(toy->arena, again),
                     het_codec_plan_hash(toy->arena, &plan));
    toy_free(toy);
}
END_TEST

START_TEST(hash_is_of_the_plan_not_of_what_is_predicted)
{
    struct toy *toy = toy_new();
    struct het_plan plan = priced_plan(toy);
    const char *hash = het_codec_plan_hash(toy->arena, &plan);
    ck_assert_uint_eq(strlen(hash), strlen("sha256:") + 64);
    ck_assert_int_eq(strncmp(hash, "sha256:", 7), 0);
    plan.predicted.iteration_s = 2;
    plan.predicted.from_iteration_s = 3;
    plan.search.seed = 5;
    ck_assert_str_eq(het_codec_plan_hash(toy->arena, &plan), hash);
    plan.global_batch++;
    ck_assert_str_ne(het_codec_plan_hash(toy->arena, &plan), hash);
    toy_free(toy);
}
END_TEST

START_TEST(rankmap_follows_nodes_and_local_indices)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    json_auto_t *json = het_codec_rankmap(&plan);
    auto_free char *text = het_json_canonical(json);
    ck_assert_str_eq(
        text,
        "{\"ranks\":["
        "{\"firstLayer\":0,\"gpuType\":\"slow\",\"layerCount\":2,\"localIndex\":0,"
        "\"microBatchSize\":2,\"node\":\"s0\",\"pipeline\":0,\"rank\":0,\"replica\":0,"
        "\"stage\":0,\"tensorParallel\":1,\"tensorParallelIndex\":0},"
        "{\"firstLayer\":0,\"gpuType\":\"slow\",\"layerCount\":2,\"localIndex\":1,"
        "\"microBatchSize\":2,\"node\":\"s0\",\"pipeline\":1,\"rank\":1,\"replica\":0,"
        "\"stage\":0,\"tensorParallel\":1,\"tensorParallelIndex\":0},"
        "{\"firstLayer\":2,\"gpuType\":\"fast\",\"layerCount\":2,\"localIndex\":0,"
        "\"microBatchSize\":2,\"node\":\"f0\",\"pipeline\":0,\"rank\":2,\"replica\":0,"
        "\"stage\":1,\"tensorParallel\":1,\"tensorParallelIndex\":0},"
        "{\"firstLayer\":2,\"gpuType\":\"fast\",\"layerCount\":2,\"localIndex\":1,"
        "\"microBatchSize\":2,\"node\":\"f0\",\"pipeline\":1,\"rank\":3,\"replica\":0,"
        "\"stage\":1,\"tensorParallel\":1,\"tensorParallelIndex\":0}],"
        "\"worldSize\":4}");
    toy_free(toy);
}
END_TEST

START_TEST(faults_of_a_plan_name_the_field)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "[]", "must be an object" },
        { "{\"kind\":\"Job\"}", "kind: must be Plan, is Job" },
        { "{\"apiVersion\":\"heterotrain.io/v2\"}",
          "apiVersion: must be heterotrain.io/v1alpha1, is heterotrain.io/v2" },
        { "{\"schedule\":\"GPipe\"}", "schedule: must be 1F1B, is GPipe" },
        { "{\"globalBatchSize\":1,\"layerCount\":2}", "pipelines: is missing" },
        { "{\"globalBatchSize\":1,\"layerCount\":2,\"pipelines\":[{}]}",
          "pipelines[0].microBatches: is missing" },
        { "{\"globalBatchSize\":1,\"layerCount\":2,\"pipelines\":[{\"microBatches\":1,"
          "\"stages\":[{\"firstLayer\":0,\"layerCount\":4097}]}]}",
          "pipelines[0].stages[0].layerCount: must be 0 to 4096, is 4097" },
        { "{\"globalBatchSize\":1,\"layerCount\":2,\"pipelines\":[{\"microBatches\":1,"
          "\"stages\":[{\"firstLayer\":0,\"layerCount\":4,\"recompute\":\"some\"}]}]}",
          "pipelines[0].stages[0].recompute: must be none, selective or full" },
        { "{\"globalBatchSize\":1,\"layerCount\":2,\"pipelines\":[{\"microBatches\":1,"
          "\"stages\":[{\"firstLayer\":0,\"layerCount\":4,\"replicas\":[{\"node\":\"a\","
          "\"gpuType\":\"t\",\"microBatchSize\":1,\"gpus\":[1024]}]}]}]}",
          "pipelines[0].stages[0].replicas[0].gpus[0]: must be 0 to 1023, is 1024" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct het_arena *arena = het_arena_new();
        json_auto_t *json = parse(cases[i].text);
        const struct het_plan *plan;
        struct het_error err = { 0 };
        ck_assert_int_eq(het_codec_plan(arena, json, &plan, &err), -1);
        ck_assert_msg(strstr(err.message, cases[i].message), "%s", err.message);
        het_arena_free(arena);
    }
}
END_TEST

/* The vendor of the last node of a cluster. */
static const char *vendor_by(struct het_arena *arena, const char *nodes,
                             const char *hardware_text, struct het_error *err)
{
    json_auto_t *json = quoted("{'nodes': [%s]}", nodes);
    json_auto_t *extra = quoted("%s", hardware_text);
    const struct het_hardware *hardware;
    const struct het_cluster *cluster;
    if (het_codec_hardware(arena, extra, het_hardware_builtin(), &hardware, err) < 0 ||
        het_codec_cluster(arena, json, hardware, &cluster, err) < 0)
        return NULL;
    return cluster->nodes[cluster->node_count - 1].vendor;
}

START_TEST(vendor_is_stated_or_known_by_name)
{
    struct het_arena *arena = het_arena_new();
    struct het_error err = { 0 };
    static const char stated[] = "{'gpuTypes': [{'name': 'X', 'vendor': 'Ascend'}]}";
    ck_assert_str_eq(vendor_by(arena, "{'type': 'X', 'gpus': 1}", "{}", &err), "nvidia");
    ck_assert_str_eq(
        vendor_by(arena, "{'type': 'Instinct-MI250X', 'gpus': 1}", "{}", &err), "amd");
    ck_assert_str_eq(vendor_by(arena, "{'type': 'X', 'gpus': 1}", stated, &err),
                     "ascend");
    ck_assert_str_eq(
        vendor_by(arena, "{'type': 'X', 'gpus': 1, 'vendor': 'AMD'}", stated, &err),
        "amd");
    /* Nodes that call their GPUs alike may have them of two vendors. */
    ck_assert_str_eq(vendor_by(arena,
                               "{'name': 'a', 'type': 'X', 'gpus': 1}, {'name': 'b', "
                               "'type': 'X', 'gpus': 1, 'vendor': 'amd'}",
                               "{}", &err),
                     "amd");
    het_arena_free(arena);
}
END_TEST

Suite *test_codec_suite(void)
{
    Suite *suite = suite_create("codec");
    TCase *cases = tcase_create("codec");
    tcase_add_test(cases, hardware_file_is_laid_over_the_table);
    tcase_add_test(cases, short_form_expands_copies_and_names);
    tcase_add_test(cases, unknown_type_needs_only_its_memory);
    tcase_add_test(cases, faults_of_a_cluster_name_the_field);
    tcase_add_test(cases, examples_are_read);
    tcase_add_test(cases, job_part_fills_workload_and_options);
    tcase_add_test(cases, sequence_length_is_the_profiles_and_no_other);
    tcase_add_test(cases, faults_of_a_job_name_the_field);
    tcase_add_test(cases, plan_reads_back_as_it_was_written);
    tcase_add_test(cases, plan_without_an_algorithm_reads_back_as_it_was_written);
    tcase_add_test(cases, hash_is_of_the_plan_not_of_what_is_predicted);
    tcase_add_test(cases, rankmap_follows_nodes_and_local_indices);
    tcase_add_test(cases, faults_of_a_plan_name_the_field);
    tcase_add_test(cases, vendor_is_stated_or_known_by_name);
    suite_add_tcase(suite, cases);
    return suite;
}
