#include "planner/format/document/workload_json.h"

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

static int read_workload(struct toy *toy, const char *text, struct het_workload *workload,
                         struct het_search_options *options, struct het_error *err)
{
    json_auto_t *json = parse(text);
    return het_workload_json_read(toy->arena, json, &toy->profile, workload, options,
                                  err);
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
        "\"dataParallel\":{\"minReplicas\":1,\"maxReplicas\":8},\"tensorParallel\":{"
        "\"allowedDegrees\":[1,2]},\"pipelineParallel\":{\"maxStages\":4},"
        "\"recompute\":\"None\"},\"runtime\":"
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
    ck_assert(workload.no_recompute);
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
          "constraints.pipelineParallel.most: unknown field; known are maxStages" },
        { "{\"globalBatchSize\":8,\"constraints\":{\"tensorParallel\":{\"degreePolicy\":"
          "true}}}",
          "constraints.tensorParallel.degreePolicy: must be a" },
        { "{\"globalBatchSize\":8,\"constraints\":{\"dataParallel\":{\"sharePolicy\":"
          "\"Even\"}}}",
          "constraints.dataParallel.sharePolicy: must be Weighted or Equal" },
        { "{\"globalBatchSize\":8,\"constraints\":{\"recompute\":\"Full\"}}",
          "constraints.recompute: must be Auto or None" },
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

Suite *test_workload_json_suite(void)
{
    Suite *suite = suite_create("workload_json");
    TCase *cases = tcase_create("workload_json");
    tcase_add_test(cases, job_part_fills_workload_and_options);
    tcase_add_test(cases, sequence_length_is_the_profiles_and_no_other);
    tcase_add_test(cases, faults_of_a_job_name_the_field);
    suite_add_tcase(suite, cases);
    return suite;
}
