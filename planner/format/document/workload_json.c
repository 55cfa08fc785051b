#include "planner/format/document/workload_json.h"

#include "planner/model/runtime.h"

#include <string.h>

#define MAX_LIST 4096u

static const char *const job_fields[] = { "globalBatchSize",
                                          "sequenceLength",
                                          "precision",
                                          "optimizer",
                                          "memoryHeadroomPercent",
                                          "stateReserveBytes",
                                          "gradientOverlapPercent",
                                          "microBatchSizes",
                                          "minGPUs",
                                          "maxGPUs",
                                          "gpuTypes",
                                          "constraints",
                                          "runtime",
                                          "algorithm",
                                          "effort",
                                          "seed",
                                          "from",
                                          "extrapolate",
                                          "migration",
                                          "metisVariance",
                                          "metisPermute",
                                          "metisSizes",
                                          "ampSpeeds",
                                          "ampSends",
                                          "dittoFolding",
                                          "metisRows",
                                          "memoryModel",
                                          "statistics",
                                          NULL };
static const char *const type_limit_fields[] = { "name", "minGPUs", "maxGPUs",
                                                 "preference", NULL };
/* The headroom is for the controller, which hands it on beside them. */
static const char *const constraint_fields[] = {
    "dataParallel",          "tensorParallel", "pipelineParallel",
    "memoryHeadroomPercent", "recompute",      NULL
};
static const char *const data_parallel_fields[] = { "minReplicas", "maxReplicas",
                                                    "sharePolicy", NULL };
static const char *const tensor_parallel_fields[] = { "allowedDegrees", "degreePolicy",
                                                      NULL };
static const char *const pipeline_parallel_fields[] = { "maxStages", NULL };

static int read_u32_list(struct het_arena *arena, const struct het_view *list,
                         uint32_t most, const uint32_t **ret, size_t *ret_count,
                         struct het_error *err)
{
    size_t count = 0;
    if (het_view_array(list, MAX_LIST, &count, err) < 0)
        return -1;
    uint32_t *values = HET_ARENA_ARRAY(arena, uint32_t, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(list, i);
        if (het_view_need(&item, err) < 0 ||
            het_view_u32(&item, 1, most, &values[i], err) < 0)
            return -1;
    }
    *ret = values;
    *ret_count = count;
    return 0;
}

static int read_type_limits(struct het_arena *arena, const struct het_view *job,
                            struct het_workload *workload, struct het_error *err)
{
    struct het_view list = het_view_get(job, "gpuTypes");
    size_t count = 0;
    if (het_view_array(&list, HET_MAX_TYPES, &count, err) < 0)
        return -1;
    struct het_type_limit *limits = HET_ARENA_ARRAY(arena, struct het_type_limit, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        struct het_view name = het_view_get(&item, "name");
        struct het_view least = het_view_get(&item, "minGPUs");
        struct het_view most = het_view_get(&item, "maxGPUs");
        struct het_view preference = het_view_get(&item, "preference");
        if (het_view_need(&item, err) < 0 || het_view_object(&item, err) < 0 ||
            het_view_members(&item, type_limit_fields, err) < 0 ||
            het_view_need(&name, err) < 0 ||
            het_view_name(&name, arena, &limits[i].type, err) < 0 ||
            het_view_u32(&least, 0, UINT32_MAX, &limits[i].min_gpus, err) < 0 ||
            het_view_u32(&most, 0, UINT32_MAX, &limits[i].max_gpus, err) < 0 ||
            het_view_i32(&preference, INT32_MIN, INT32_MAX, &limits[i].preference, err) <
                0)
            return -1;
    }
    workload->type_limits = limits;
    workload->type_limit_count = count;
    return 0;
}

static int read_constraints(struct het_arena *arena, const struct het_view *job,
                            struct het_workload *workload, struct het_error *err)
{
    struct het_view constraints = het_view_get(job, "constraints");
    struct het_view data = het_view_get(&constraints, "dataParallel");
    struct het_view data_min = het_view_get(&data, "minReplicas");
    struct het_view data_max = het_view_get(&data, "maxReplicas");
    struct het_view tensor = het_view_get(&constraints, "tensorParallel");
    struct het_view allowed = het_view_get(&tensor, "allowedDegrees");
    struct het_view pipeline = het_view_get(&constraints, "pipelineParallel");
    struct het_view pipeline_max = het_view_get(&pipeline, "maxStages");
    if (het_view_object(&constraints, err) < 0 || het_view_object(&data, err) < 0 ||
        het_view_object(&tensor, err) < 0 || het_view_object(&pipeline, err) < 0 ||
        het_view_members(&constraints, constraint_fields, err) < 0 ||
        het_view_members(&data, data_parallel_fields, err) < 0 ||
        het_view_members(&tensor, tensor_parallel_fields, err) < 0 ||
        het_view_members(&pipeline, pipeline_parallel_fields, err) < 0 ||
        het_view_u32(&data_min, 0, UINT32_MAX, &workload->min_data_parallel, err) < 0 ||
        het_view_u32(&data_max, 0, UINT32_MAX, &workload->max_data_parallel, err) < 0 ||
        het_view_u32(&pipeline_max, 0, UINT32_MAX, &workload->max_pipeline_parallel,
                     err) < 0)
        return -1;
    return read_u32_list(arena, &allowed, HET_MAX_NODE_GPUS, &workload->tensor_parallel,
                         &workload->tensor_parallel_count, err);
}

/* Constraints that programs have which cannot run every plan. */
static int read_freedoms(struct het_arena *arena, const struct het_view *job,
                         struct het_workload *workload, struct het_error *err)
{
    static const char *const share_names[] = { "Weighted", "Equal", NULL };
    static const char *const degree_names[] = { "Mixed", "Uniform", NULL };
    static const char *const recompute_names[] = { "Auto", "None", NULL };
    struct het_view constraints = het_view_get(job, "constraints");
    struct het_view data = het_view_get(&constraints, "dataParallel");
    struct het_view tensor = het_view_get(&constraints, "tensorParallel");
    struct het_view shares = het_view_get(&data, "sharePolicy");
    struct het_view degrees = het_view_get(&tensor, "degreePolicy");
    struct het_view recompute = het_view_get(&constraints, "recompute");
    int is_equal = 0, is_uniform = 0, no_recompute = 0;
    if (het_view_choice(&shares, share_names, &is_equal, err) < 0 ||
        het_view_choice(&degrees, degree_names, &is_uniform, err) < 0 ||
        het_view_choice(&recompute, recompute_names, &no_recompute, err) < 0)
        return -1;
    workload->no_recompute = no_recompute;
    workload->runtime =
        het_runtime_without(arena, workload->runtime,
                            (is_uniform ? HET_FREEDOMS_OF_TENSOR_PARALLEL : 0) |
                                (is_equal ? HET_FREEDOMS_OF_SHARES : 0));
    return 0;
}

/* Tokens of a sample, by default the profile's. */
static int read_sequence_length(const struct het_view *job,
                                const struct het_profile *profile,
                                struct het_workload *workload, struct het_error *err)
{
    struct het_view length = het_view_get(job, "sequenceLength");
    workload->sequence_length = profile->sequence_length;
    if (het_view_u32(&length, 1, INT32_MAX, &workload->sequence_length, err) < 0)
        return -1;
    if (profile->sequence_length && workload->sequence_length != profile->sequence_length)
        return het_view_fail(&length, err,
                             "is %u, but the profile was measured with %u; leave it out, "
                             "or give a profile of %u tokens",
                             workload->sequence_length, profile->sequence_length,
                             workload->sequence_length);
    return 0;
}

/* Precision and optimizer, by default the profile's. */
static int read_training(struct het_arena *arena, const struct het_view *job,
                         const struct het_profile *profile, struct het_workload *workload,
                         struct het_error *err)
{
    struct het_view precision = het_view_get(job, "precision");
    struct het_view optimizer = het_view_get(job, "optimizer");
    const char *name = NULL;
    workload->precision = profile->precision;
    workload->optimizer = profile->optimizer;
    if (het_view_name(&precision, arena, &name, err) < 0 ||
        (name && het_precision_parse(name, &workload->precision, err) < 0))
        return -1;
    if (workload->precision != profile->precision)
        return het_view_fail(
            &precision, err,
            "is %s, but the profile was measured in %s; leave it out, or "
            "give a profile in %s",
            het_precision_name(workload->precision),
            het_precision_name(profile->precision),
            het_precision_name(workload->precision));
    name = NULL;
    if (het_view_name(&optimizer, arena, &name, err) < 0 ||
        (name && het_optimizer_parse(name, &workload->optimizer, err) < 0))
        return -1;
    return 0;
}

static int read_runtime(struct het_arena *arena, const struct het_view *job,
                        struct het_workload *workload, struct het_error *err)
{
    struct het_view view = het_view_get(job, "runtime");
    const char *name = NULL;
    struct het_error unknown;
    if (het_view_name(&view, arena, &name, err) < 0)
        return -1;
    if (!name)
        return 0;
    workload->runtime = het_runtime_find(name, &unknown);
    return workload->runtime ? 0 : het_view_fail(&view, err, "%s", unknown.message);
}

static int read_search_options(struct het_arena *arena, const struct het_view *job,
                               struct het_search_options *options, struct het_error *err)
{
    struct het_view algorithm = het_view_get(job, "algorithm");
    struct het_view effort = het_view_get(job, "effort");
    struct het_view seed = het_view_get(job, "seed");
    struct het_view statistics = het_view_get(job, "statistics");
    options->algorithm = "auto";
    if (het_view_name(&algorithm, arena, &options->algorithm, err) < 0 ||
        het_view_u64(&effort, 0, UINT64_C(1) << 53, &options->effort, err) < 0 ||
        het_view_u64(&seed, 0, UINT64_C(1) << 53, &options->seed, err) < 0)
        return -1;
    return het_view_bool(&statistics, &options->statistics, err);
}

/* Options of single algorithms. */
static int read_variants(const struct het_view *job, struct het_search_options *options,
                         struct het_error *err)
{
    static const char *const speed_names[] = {
        [HET_AMP_OWN_SPEEDS] = "own", [HET_AMP_MEAN_SPEEDS] = "mean", NULL
    };
    static const char *const send_names[] = {
        [HET_AMP_EXPOSED] = "exposed", [HET_AMP_HIDDEN] = "hidden", NULL
    };
    static const char *const folding_names[] = { "plain", "communication", "none", NULL };
    static const char *const size_names[] = { "auto", "powers", "any", NULL };
    static const char *const row_names[] = {
        [HET_METIS_TYPE_ROWS] = "types", [HET_METIS_MIXED_ROWS] = "mixed", NULL
    };
    static const char *const memory_names[] = {
        [HET_WALK_MEMORY_OURS] = "own", [HET_WALK_MEMORY_METIS] = "metis", NULL
    };
    struct het_view speeds = het_view_get(job, "ampSpeeds");
    struct het_view sends = het_view_get(job, "ampSends");
    struct het_view folding = het_view_get(job, "dittoFolding");
    struct het_view variance = het_view_get(job, "metisVariance");
    struct het_view permute = het_view_get(job, "metisPermute");
    struct het_view sizes = het_view_get(job, "metisSizes");
    struct het_view rows = het_view_get(job, "metisRows");
    struct het_view memory = het_view_get(job, "memoryModel");
    int speed = HET_AMP_OWN_SPEEDS, send = HET_AMP_EXPOSED, fold = HET_DITTO_FOLD;
    int size = HET_METIS_DEFAULT_SIZES, row = HET_METIS_TYPE_ROWS;
    int walk_memory = HET_WALK_MEMORY_OURS;
    if (het_view_choice(&speeds, speed_names, &speed, err) < 0 ||
        het_view_choice(&sends, send_names, &send, err) < 0 ||
        het_view_choice(&folding, folding_names, &fold, err) < 0 ||
        het_view_number(&variance, 0, 1, &options->metis_variance, err) < 0 ||
        het_view_u32(&permute, 0, HET_MAX_LAYERS, &options->metis_permute, err) < 0 ||
        het_view_choice(&sizes, size_names, &size, err) < 0 ||
        het_view_choice(&rows, row_names, &row, err) < 0 ||
        het_view_choice(&memory, memory_names, &walk_memory, err) < 0)
        return -1;
    options->amp_speeds = (enum het_amp_speeds)speed;
    options->amp_sends = (enum het_amp_sends)send;
    options->ditto_folding = (enum het_ditto_folding)fold;
    options->metis_sizes = (enum het_metis_sizes)size;
    options->metis_rows = (enum het_metis_rows)row;
    options->walk_memory = (enum het_walk_memory)walk_memory;
    return 0;
}

int het_workload_json_read(struct het_arena *arena, const json_t *json,
                           const struct het_profile *profile, struct het_workload *ret,
                           struct het_search_options *ret_options, struct het_error *err)
{
    struct het_view job = het_view_root(json);
    struct het_view batch = het_view_get(&job, "globalBatchSize");
    struct het_view headroom = het_view_get(&job, "memoryHeadroomPercent");
    struct het_view reserve = het_view_get(&job, "stateReserveBytes");
    struct het_view overlap = het_view_get(&job, "gradientOverlapPercent");
    struct het_view sizes = het_view_get(&job, "microBatchSizes");
    struct het_view least = het_view_get(&job, "minGPUs");
    struct het_view most = het_view_get(&job, "maxGPUs");
    struct het_workload workload = { .state_reserve_bytes = -1 };
    struct het_search_options options = { 0 };
    double percent = -1, overlap_percent = 0;
    if (!json_is_object(json))
        return het_fail(err, HET_BAD_INPUT, "must be an object");
    if (het_view_members(&job, job_fields, err) < 0 || het_view_need(&batch, err) < 0 ||
        het_view_u32(&batch, 1, HET_MAX_GLOBAL_BATCH, &workload.global_batch, err) < 0 ||
        het_view_number(&headroom, 0, 90, &percent, err) < 0 ||
        het_view_number(&reserve, 0, 1e3, &workload.state_reserve_bytes, err) < 0 ||
        het_view_number(&overlap, 0, 100, &overlap_percent, err) < 0 ||
        read_u32_list(arena, &sizes, HET_MAX_MICROBATCH, &workload.microbatch_sizes,
                      &workload.microbatch_size_count, err) < 0 ||
        het_view_u32(&least, 0, UINT32_MAX, &workload.min_gpus, err) < 0 ||
        het_view_u32(&most, 0, UINT32_MAX, &workload.max_gpus, err) < 0 ||
        read_sequence_length(&job, profile, &workload, err) < 0 ||
        read_training(arena, &job, profile, &workload, err) < 0 ||
        read_type_limits(arena, &job, &workload, err) < 0 ||
        read_constraints(arena, &job, &workload, err) < 0 ||
        read_runtime(arena, &job, &workload, err) < 0 ||
        read_freedoms(arena, &job, &workload, err) < 0 ||
        read_search_options(arena, &job, &options, err) < 0 ||
        read_variants(&job, &options, err) < 0)
        return -1;
    workload.memory_headroom = percent / 100;
    workload.gradient_overlap = overlap_percent / 100;
    if (het_workload_check(&workload, err) < 0)
        return -1;
    *ret = workload;
    *ret_options = options;
    return 0;
}
