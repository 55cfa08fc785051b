#include "planner/model/workload.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* Bytes of weights, gradients and optimizer state of one parameter (planner.md, Memory;
 * fp32: 4 + 4 + 8; mixed: 2-byte weights, 4-byte gradients, fp32 master copy and two
 * moments). `sharded` is the part that a distributed optimizer spreads over the holders.
 */
struct state_bytes {
    double whole, sharded;
};

static const struct state_bytes state_table[][2] = {
    /*                          fp32        mixed */
    [HET_ADAM] = { { 16, 0 }, { 18, 0 } },
    [HET_ADAM_DISTRIBUTED] = { { 8, 8 }, { 6, 12 } },
    [HET_SGD] = { { 8, 0 }, { 10, 0 } },
};

static const char *const precision_names[] = { "fp32", "bf16", "fp16" };
static const char *const optimizer_names[] = { "adam", "adam-distributed", "sgd" };

struct synonym {
    const char *name;
    int value;
};
static const struct synonym precisions[] = {
    { "fp32", HET_FP32 }, { "float32", HET_FP32 },
    { "bf16", HET_BF16 }, { "bfloat16", HET_BF16 },
    { "fp16", HET_FP16 }, { "float16", HET_FP16 },
    { NULL, 0 },
};
static const struct synonym optimizers[] = {
    { "adam", HET_ADAM },
    { "adamw", HET_ADAM },
    { "adam-distributed", HET_ADAM_DISTRIBUTED },
    { "adamw-distributed", HET_ADAM_DISTRIBUTED },
    { "distributedadam", HET_ADAM_DISTRIBUTED },
    { "sgd", HET_SGD },
    { NULL, 0 },
};

const char *het_precision_name(enum het_precision precision)
{
    return precision_names[precision];
}

const char *het_optimizer_name(enum het_optimizer optimizer)
{
    return optimizer_names[optimizer];
}

static const struct synonym *find_synonym(const struct synonym *table, const char *name)
{
    for (; table->name; table++)
        if (!strcasecmp(table->name, name))
            return table;
    return NULL;
}

int het_precision_parse(const char *name, enum het_precision *ret, struct het_error *err)
{
    const struct synonym *found = find_synonym(precisions, name);
    if (!found)
        return het_fail(err, HET_BAD_INPUT,
                        "precision \"%.40s\": must be fp32, bf16 or fp16", name);
    *ret = (enum het_precision)found->value;
    return 0;
}

int het_optimizer_parse(const char *name, enum het_optimizer *ret, struct het_error *err)
{
    const struct synonym *found = find_synonym(optimizers, name);
    if (!found)
        return het_fail(err, HET_BAD_INPUT,
                        "optimizer \"%.40s\": must be adam, adam-distributed or sgd",
                        name);
    *ret = (enum het_optimizer)found->value;
    return 0;
}

double het_precision_bytes(enum het_precision precision)
{
    return precision == HET_FP32 ? 4 : 2;
}

double het_workload_state_bytes(const struct het_workload *workload, uint32_t holders)
{
    const struct state_bytes *bytes =
        &state_table[workload->optimizer][workload->precision != HET_FP32];
    return bytes->whole + bytes->sharded / (holders ? holders : 1);
}

double het_workload_gradient_bytes(const struct het_workload *workload)
{
    const double reduced = 4;
    double gathered = workload->optimizer == HET_ADAM_DISTRIBUTED
                          ? het_precision_bytes(workload->precision)
                          : 4;
    return (reduced + gathered) / 2 * (1 - workload->gradient_overlap);
}

static int is_listed(const uint32_t *list, size_t count, uint32_t value)
{
    if (!count)
        return 1;
    for (size_t i = 0; i < count; i++)
        if (list[i] == value)
            return 1;
    return 0;
}

int het_workload_allows_tensor_parallel(const struct het_workload *workload, uint32_t tp)
{
    return is_listed(workload->tensor_parallel, workload->tensor_parallel_count, tp);
}

int het_workload_allows_microbatch(const struct het_workload *workload, uint32_t size)
{
    return is_listed(workload->microbatch_sizes, workload->microbatch_size_count, size);
}

const struct het_type_limit *het_workload_find_limit(const struct het_workload *workload,
                                                     const char *type)
{
    for (size_t i = 0; i < workload->type_limit_count; i++)
        if (!strcmp(workload->type_limits[i].type, type))
            return &workload->type_limits[i];
    return NULL;
}

int het_workload_allows_type(const struct het_workload *workload, const char *type)
{
    return !workload->type_limit_count || het_workload_find_limit(workload, type);
}

/* ---- check ---- */

static int check_list(const uint32_t *list, size_t count, const char *what,
                      struct het_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (!list[i])
            return het_fail(err, HET_BAD_INPUT, "%s: entry %zu must be at least 1", what,
                            i);
    return 0;
}

static int check_range(uint32_t low, uint32_t high, const char *what,
                       struct het_error *err)
{
    if (high && low > high)
        return het_fail(err, HET_BAD_INPUT, "%s: the least (%u) is above the most (%u)",
                        what, low, high);
    return 0;
}

int het_workload_check(const struct het_workload *workload, struct het_error *err)
{
    if (!workload->global_batch || workload->global_batch > HET_MAX_GLOBAL_BATCH)
        return het_fail(err, HET_BAD_INPUT, "global batch size: must be 1 to %u, is %u",
                        HET_MAX_GLOBAL_BATCH, workload->global_batch);
    if (!(workload->memory_headroom <= 0.9))
        return het_fail(err, HET_BAD_INPUT, "memory headroom: must be 0 to 90 percent");
    if (!(workload->gradient_overlap >= 0 && workload->gradient_overlap <= 1))
        return het_fail(err, HET_BAD_INPUT, "gradient overlap: must be 0 to 100 percent");
    if (check_list(workload->microbatch_sizes, workload->microbatch_size_count,
                   "micro-batch sizes", err) < 0 ||
        check_list(workload->tensor_parallel, workload->tensor_parallel_count,
                   "tensor-parallel degrees", err) < 0 ||
        check_range(workload->min_data_parallel, workload->max_data_parallel,
                    "data-parallel degree", err) < 0 ||
        check_range(workload->min_gpus, workload->max_gpus, "GPUs", err) < 0)
        return -1;
    for (size_t i = 0; i < workload->type_limit_count; i++) {
        const struct het_type_limit *limit = &workload->type_limits[i];
        if (check_range(limit->min_gpus, limit->max_gpus, limit->type, err) < 0)
            return -1;
    }
    return 0;
}

double het_workload_default_reserve(const struct het_workload *workload)
{
    return workload->precision == HET_FP32 ? 8 : 0;
}

double het_workload_checkpoint_bytes(const struct het_workload *workload)
{
    /* Mixed: with the fp32 copy. */
    double weights = workload->precision == HET_FP32 ? 4 : 2 + 4;
    return workload->optimizer == HET_SGD ? weights : weights + 8;
}
