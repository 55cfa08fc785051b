#include "planner/model/estimate.h"

#include <math.h>
#include <string.h>

#define MAX_SIZE     (1u << 24) /* of hidden, MLP, vocabulary, sequence */
#define MAX_HEADS    65536u
#define MAX_BLOCKS   1022u
#define MAX_DEGREES  11u /* 1 .. 1024 */
#define MAX_SIZES    17u /* 1 .. HET_MAX_MICROBATCH */
#define MAX_PRODUCTS 10u

/* Bytes that one step of Adam moves for each parameter: it reads gradient, master weight
 * and two moments, writes the last three, and in mixed precision the 16-bit weight. */
#define STEP_BYTES_FP32  28.0
#define STEP_BYTES_MIXED 30.0
/* Times the forward's that flash attention takes backward: five products for two. */
#define FLASH_BACKWARD   2.5

bool het_estimate_gpu_init(const struct het_gpu_type *type, enum het_precision precision,
                           struct het_estimate_gpu *ret)
{
    struct het_estimate_gpu gpu = {
        .name = type->name,
        .share = HET_ESTIMATE_TENSOR_SHARE,
        .memory_bytes_per_s = type->memory_bytes_per_s,
        .intra_bytes_per_s = type->intra_bytes_per_s,
        .most_tp = 1,
    };
    switch (precision) {
    case HET_FP32:
        gpu.flops = type->tf32_flops;
        if (!(gpu.flops > 0)) {
            gpu.flops = type->fp32_flops;
            gpu.share = HET_ESTIMATE_PLAIN_SHARE;
        }
        break;
    case HET_BF16:
        gpu.flops = type->bf16_flops;
        break;
    case HET_FP16:
        gpu.flops = type->fp16_flops;
        break;
    }
    if (!(gpu.flops > 0) || !(gpu.memory_bytes_per_s > 0))
        return false;
    *ret = gpu;
    return true;
}

/* ---- shape ---- */

static int check_size(const char *what, uint32_t size, uint32_t most,
                      struct het_error *err)
{
    if (size && size <= most)
        return 0;
    return het_fail(err, HET_BAD_INPUT, "%s: must be 1 to %u, is %u", what, most, size);
}

int het_transformer_check(const struct het_transformer *model, struct het_error *err)
{
    if (check_size("blocks", model->block_count, MAX_BLOCKS, err) < 0 ||
        check_size("hidden size", model->hidden, MAX_SIZE, err) < 0 ||
        check_size("attention heads", model->head_count, MAX_HEADS, err) < 0 ||
        check_size("key-value heads", model->key_value_head_count, model->head_count,
                   err) < 0 ||
        check_size("size of a head", model->head_size, MAX_SIZE, err) < 0 ||
        check_size("MLP size", model->mlp, MAX_SIZE, err) < 0 ||
        check_size("vocabulary", model->vocabulary, MAX_SIZE, err) < 0 ||
        check_size("sequence length", model->sequence, MAX_SIZE, err) < 0)
        return -1;
    if (model->positions > MAX_SIZE || model->shared_mlp > MAX_SIZE)
        return het_fail(err, HET_BAD_INPUT, "positions, shared experts: at most %u",
                        MAX_SIZE);
    if (!model->expert_count)
        return 0;
    if (check_size("experts", model->expert_count, MAX_HEADS, err) < 0 ||
        check_size("experts of a token", model->experts_per_token, model->expert_count,
                   err) < 0)
        return -1;
    return check_size("MLP size of an expert", model->expert_mlp, MAX_SIZE, err);
}

uint32_t het_transformer_layer_count(const struct het_transformer *model)
{
    return model->block_count + 2;
}

static bool is_head(const struct het_transformer *model, uint32_t layer)
{
    return layer == model->block_count + 1;
}

/* Blocks count from layer 1. */
static bool has_experts(const struct het_transformer *model, uint32_t layer)
{
    return model->expert_count && layer > model->dense_block_count;
}

bool het_estimate_splits(const struct het_transformer *model, uint32_t tp)
{
    uint32_t key_values = model->key_value_head_count;
    bool heads = model->head_count % tp == 0 &&
                 (key_values % tp == 0 || tp % key_values == 0); /* or they are copied */
    bool mlp = model->mlp % tp == 0 && model->shared_mlp % tp == 0 &&
               (!model->expert_count || model->expert_mlp % tp == 0);
    return heads && mlp;
}

/* Columns of queries, and of keys and values together, on a rank. */
static double query_width(const struct het_transformer *model, uint32_t tp)
{
    return (double)model->head_count * model->head_size / tp;
}

static double key_value_width(const struct het_transformer *model, uint32_t tp)
{
    double heads = fmax((double)model->key_value_head_count / tp, 1);
    return 2 * heads * model->head_size;
}

/* Matrices of an MLP of one token: up and down, and the gate. */
static double mlp_matrices(const struct het_transformer *model)
{
    return model->gated_mlp ? 3 : 2;
}

/* Width of all MLPs that a token passes in a block, on a rank. */
static double active_mlp(const struct het_transformer *model, uint32_t layer, uint32_t tp)
{
    if (!has_experts(model, layer))
        return (double)model->mlp / tp;
    return ((double)model->experts_per_token * model->expert_mlp + model->shared_mlp) /
           tp;
}

/* ---- parameters ---- */

static double mlp_parameters(const struct het_transformer *model, uint32_t layer,
                             uint32_t tp)
{
    double h = model->hidden, width = (double)model->mlp / tp, router = 0, count = 1;
    if (has_experts(model, layer)) {
        width = ((double)model->expert_count * model->expert_mlp + model->shared_mlp) /
                tp;
        router = h * model->expert_count;
        count = model->expert_count + (model->shared_mlp ? 1.0 : 0.0);
    }
    double matrices = mlp_matrices(model);
    double biases = model->biases ? (matrices - 1) * width + count * h : 0;
    return matrices * h * width + router + biases;
}

static double block_parameters(const struct het_transformer *model, uint32_t layer,
                               uint32_t tp)
{
    double h = model->hidden;
    double inner = query_width(model, tp), wide = inner + key_value_width(model, tp);
    double norms = (model->rms_norm ? 2 : 4) * h;
    double biases = model->biases ? wide + h : 0;
    return h * wide + inner * h + biases + norms + mlp_parameters(model, layer, tp);
}

double het_estimate_parameters(const struct het_transformer *model, uint32_t layer,
                               uint32_t tp)
{
    double h = model->hidden, table = h * model->vocabulary / tp;
    if (!layer)
        return table + h * model->positions;
    if (is_head(model, layer))
        return (model->rms_norm ? 1 : 2) * h + (model->tied_embedding ? 0 : table);
    return block_parameters(model, layer, tp);
}

/* ---- activations ---- */

static double block_activations(const struct het_transformer *model, uint32_t layer,
                                uint32_t tp)
{
    double s = model->sequence, h = model->hidden;
    double element = het_precision_bytes(model->precision);
    double scores = (double)model->head_count / tp * s * s;
    double split = 2 * query_width(model, tp) + key_value_width(model, tp) +
                   mlp_matrices(model) * active_mlp(model, layer, tp);
    double bytes = s * element * (4 * h + split);
    bytes += model->stored_scores ? scores * element : 4 * s * model->head_count / tp;
    if (model->hidden_dropout)
        bytes += 2 * s * h;
    if (model->attention_dropout && model->stored_scores)
        bytes += scores;
    return bytes;
}

double het_estimate_activations(const struct het_transformer *model, uint32_t layer,
                                uint32_t tp)
{
    double s = model->sequence, h = model->hidden;
    double element = het_precision_bytes(model->precision);
    if (!layer)
        return s * h * element;
    if (is_head(model, layer))
        return 2 * s * h * element + s * model->vocabulary / tp * (element + 4);
    return block_activations(model, layer, tp);
}

/* ---- time ---- */

/* A product, how often it runs forward, and backward in terms of that. */
struct product {
    double flops, bytes, backward;
};

/* What a layer does for one micro-batch on one rank. */
struct work {
    struct product products[MAX_PRODUCTS];
    size_t product_count;
    double streamed_bytes; /* S */
    double all_reduces;    /* among the ranks, of so many bytes each */
    double message_bytes;
};

static void add_flops(struct work *work, double flops, double bytes, double backward)
{
    work->products[work->product_count++] = (struct product){ flops, bytes, backward };
}

/* rows x inner times inner x columns. */
static void add_product(struct work *work, double element, double rows, double inner,
                        double columns)
{
    add_flops(work, 2 * rows * inner * columns,
              element * (rows * inner + inner * columns + rows * columns), 2);
}

static void add_attention(const struct het_transformer *model, uint32_t tp,
                          double samples, double element, struct work *work)
{
    double s = model->sequence, rows = samples * s,
           heads = (double)model->head_count / tp;
    double inner = query_width(model, tp), wide = inner + key_value_width(model, tp);
    double flops = 2 * rows * s * inner, scores = samples * heads * s * s;
    add_product(work, element, rows, model->hidden, wide);
    if (model->stored_scores) {
        /* Scale and mask, softmax: each reads and writes the scores; dropout too. */
        double passes = 4 + (model->attention_dropout ? 2 : 0);
        add_flops(work, flops, element * (2 * rows * inner + scores), 2);
        add_flops(work, flops, element * (2 * rows * inner + scores), 2);
        work->streamed_bytes += passes * scores * element;
    } else {
        add_flops(work, flops, element * rows * (inner + wide), FLASH_BACKWARD);
    }
    add_product(work, element, rows, inner, model->hidden);
}

static void add_mlp(const struct het_transformer *model, uint32_t layer, uint32_t tp,
                    double rows, double element, struct work *work)
{
    double h = model->hidden, ups = mlp_matrices(model) - 1;
    double active = active_mlp(model, layer, tp);
    if (has_experts(model, layer)) {
        double weights =
            h * ((double)model->expert_count * model->expert_mlp + model->shared_mlp) /
            tp;
        double moved = rows * (h * model->experts_per_token + active);
        add_product(work, element, rows, h, model->expert_count);
        add_flops(work, 2 * rows * h * ups * active, element * (ups * weights + moved),
                  2);
        add_flops(work, 2 * rows * h * active, element * (weights + moved), 2);
        /* Tokens are gathered for the experts and put back. */
        work->streamed_bytes += 4 * element * rows * h * model->experts_per_token;
    } else {
        add_product(work, element, rows, h, ups * active);
        add_product(work, element, rows, active, h);
    }
    work->streamed_bytes += (ups + 1) * element * rows * active;
}

static struct work block_work(const struct het_transformer *model, uint32_t layer,
                              uint32_t tp, double samples)
{
    double element = het_precision_bytes(model->precision);
    double rows = samples * model->sequence,
           hidden_bytes = element * rows * model->hidden;
    struct work work = { 0 };
    add_attention(model, tp, samples, element, &work);
    add_mlp(model, layer, tp, rows, element, &work);
    /* Two norms read and write; two sums read twice and write. */
    work.streamed_bytes += 10 * hidden_bytes;
    work.all_reduces = 2;
    work.message_bytes = hidden_bytes;
    return work;
}

static struct work layer_work(const struct het_transformer *model, uint32_t layer,
                              uint32_t tp, double samples)
{
    double element = het_precision_bytes(model->precision);
    double rows = samples * model->sequence,
           hidden_bytes = element * rows * model->hidden;
    struct work work = { 0 };
    if (layer && !is_head(model, layer))
        return block_work(model, layer, tp, samples);
    work.streamed_bytes = 2 * hidden_bytes;
    if (layer) {
        double logits = (double)model->vocabulary / tp;
        add_product(&work, element, rows, model->hidden, logits);
        /* The loss reads and writes them twice. */
        work.streamed_bytes += 4 * element * rows * logits;
    } else {
        work.all_reduces = 1;
        work.message_bytes = hidden_bytes;
    }
    return work;
}

/* Seconds of the all-reduces of one direction: rings over the ranks. */
static double reduce_s(const struct het_estimate_gpu *gpu, const struct work *work,
                       uint32_t tp)
{
    if (tp == 1 || !(work->all_reduces > 0))
        return 0;
    double link = gpu->cluster ? het_cluster_gpu_link(gpu->cluster, gpu->node, tp,
                                                      work->message_bytes)
                               : gpu->intra_bytes_per_s;
    return work->all_reduces * 2 * (tp - 1) / tp * work->message_bytes / link;
}

void het_estimate_layer(const struct het_transformer *model,
                        const struct het_estimate_gpu *gpu, uint32_t layer, uint32_t tp,
                        uint32_t microbatch, double *ret_forward_s,
                        double *ret_backward_s)
{
    const struct work work = layer_work(model, layer, tp, microbatch);
    double memory = HET_ESTIMATE_MEMORY_SHARE * gpu->memory_bytes_per_s;
    double fixed = HET_ESTIMATE_LAYER_S + reduce_s(gpu, &work, tp);
    double forward = fixed + work.streamed_bytes / memory;
    double backward = fixed + 2 * work.streamed_bytes / memory;
    for (size_t i = 0; i < work.product_count; i++) {
        const struct product *product = &work.products[i];
        double seconds =
            fmax(product->flops / (gpu->share * gpu->flops), product->bytes / memory);
        forward += seconds;
        backward += seconds * product->backward;
    }
    *ret_forward_s = forward;
    *ret_backward_s = backward;
}

/* ---- calibration ---- */

static double case_seconds(const struct het_transformer *model,
                           const struct het_calibration *measured,
                           const struct het_estimate_gpu *gpu, double share)
{
    struct het_estimate_gpu at = *gpu;
    at.share = share;
    double seconds = 0;
    uint32_t blocks = measured->block_count ? measured->block_count : model->block_count;
    uint32_t last = het_transformer_layer_count(model) - 1;
    for (uint32_t layer = 0; layer <= last; layer++) {
        double forward, backward;
        if (layer > blocks && layer < last)
            continue;
        het_estimate_layer(model, &at, layer, measured->tp, measured->microbatch,
                           &forward, &backward);
        seconds += forward + backward;
    }
    return seconds;
}

int het_estimate_calibrate(const struct het_transformer *model,
                           const struct het_calibration *measured,
                           struct het_estimate_gpu *gpu, struct het_error *err)
{
    double low = HET_ESTIMATE_LEAST_SHARE, high = HET_ESTIMATE_MOST_SHARE;
    double longest = case_seconds(model, measured, gpu, low);
    double shortest = case_seconds(model, measured, gpu, high);
    if (!(measured->seconds >= shortest && measured->seconds <= longest))
        return het_fail(
            err, HET_BAD_INPUT,
            "calibration of %s: %.6g s cannot be: at %g to %g of its peak this "
            "case takes %.6g to %.6g s; look at micro-batch size, degree, "
            "blocks and sequence length",
            gpu->name, measured->seconds, high, low, shortest, longest);
    /* The time never rises with the share: halve until no number is between. */
    for (;;) {
        double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high)
            break;
        if (case_seconds(model, measured, gpu, middle) > measured->seconds)
            low = middle;
        else
            high = middle;
    }
    gpu->share = high;
    gpu->calibrated = true;
    return 0;
}

/* ---- profile ---- */

struct builder {
    struct het_arena *arena;
    const struct het_transformer *model;
    struct het_profile *profile;
    struct het_measurement *measurements;
};

/* All parameters of the model on one rank, once through memory. */
static double optimizer_s(const struct builder *builder,
                          const struct het_estimate_gpu *gpu, uint32_t tp)
{
    double each = builder->model->precision == HET_FP32 ? STEP_BYTES_FP32
                                                        : STEP_BYTES_MIXED;
    const struct het_layer_bytes *bytes = het_profile_bytes(builder->profile, tp);
    return each * bytes->parameters[builder->profile->layer_count] /
           (HET_ESTIMATE_MEMORY_SHARE * gpu->memory_bytes_per_s);
}

static void add_measurement(struct builder *builder, const struct het_estimate_gpu *gpu,
                            uint32_t type, uint32_t tp, uint32_t microbatch)
{
    uint32_t layers = builder->profile->layer_count;
    double *forward = HET_ARENA_ARRAY(builder->arena, double, layers + 1);
    double *backward = HET_ARENA_ARRAY(builder->arena, double, layers + 1);
    for (uint32_t l = 0; l < layers; l++) {
        double layer_forward, layer_backward;
        het_estimate_layer(builder->model, gpu, l, tp, microbatch, &layer_forward,
                           &layer_backward);
        forward[l + 1] = forward[l] + layer_forward;
        backward[l + 1] = backward[l] + layer_backward;
    }
    builder->measurements[builder->profile->measurement_count++] =
        (struct het_measurement){
            .type = type,
            .tp = tp,
            .microbatch = microbatch,
            .forward_s = forward,
            .backward_s = backward,
            .optimizer_s = optimizer_s(builder, gpu, tp),
        };
}

const double *het_estimate_boundaries(struct het_arena *arena,
                                      const struct het_transformer *model)
{
    uint32_t layer_count = het_transformer_layer_count(model);
    double *bytes = HET_ARENA_ARRAY(arena, double, layer_count);
    for (uint32_t l = 0; l < layer_count; l++)
        bytes[l] = (double)model->sequence * model->hidden *
                   het_precision_bytes(model->precision);
    return bytes;
}

struct het_layer_bytes het_estimate_bytes(struct het_arena *arena,
                                          const struct het_transformer *model,
                                          uint32_t tp)
{
    uint32_t layers = het_transformer_layer_count(model);
    double *parameters = HET_ARENA_ARRAY(arena, double, layers + 1);
    double *activations = HET_ARENA_ARRAY(arena, double, layers + 1);
    for (uint32_t l = 0; l < layers; l++) {
        parameters[l + 1] = parameters[l] + ceil(het_estimate_parameters(model, l, tp));
        activations[l + 1] = activations[l] +
                             ceil(het_estimate_activations(model, l, tp));
    }
    return (struct het_layer_bytes){
        .tp = tp,
        .parameters = parameters,
        .activations = activations,
    };
}

static void fill_bytes(struct builder *builder, uint32_t most_tp)
{
    struct het_profile *profile = builder->profile;
    const struct het_transformer *model = builder->model;
    struct het_layer_bytes *bytes =
        HET_ARENA_ARRAY(builder->arena, struct het_layer_bytes, MAX_DEGREES);
    for (uint32_t tp = 1; tp <= most_tp && profile->bytes_count < MAX_DEGREES; tp *= 2)
        if (het_estimate_splits(model, tp))
            bytes[profile->bytes_count++] = het_estimate_bytes(builder->arena, model, tp);
    profile->bytes = bytes;
    profile->boundary_bytes = het_estimate_boundaries(builder->arena, model);
}

static void fill_measurements(struct builder *builder,
                              const struct het_estimate_gpu *gpus, size_t gpu_count,
                              uint32_t largest_microbatch)
{
    struct het_profile *profile = builder->profile;
    const char **names = HET_ARENA_ARRAY(builder->arena, const char *, gpu_count);
    builder->measurements = HET_ARENA_ARRAY(builder->arena, struct het_measurement,
                                            gpu_count * profile->bytes_count * MAX_SIZES);
    profile->origin = HET_PROFILE_CALIBRATED;
    for (size_t g = 0; g < gpu_count; g++) {
        names[g] = gpus[g].name;
        if (!gpus[g].calibrated)
            profile->origin = HET_PROFILE_ESTIMATED;
        for (size_t d = 0; d < profile->bytes_count; d++) {
            uint32_t tp = profile->bytes[d].tp;
            for (uint32_t b = 1; b <= largest_microbatch && tp <= gpus[g].most_tp; b *= 2)
                add_measurement(builder, &gpus[g], (uint32_t)g, tp, b);
        }
    }
    profile->type_names = names;
    profile->type_count = gpu_count;
    profile->measurements = builder->measurements;
}

int het_estimate_profile(struct het_arena *arena, const struct het_transformer *model,
                         const struct het_estimate_gpu *gpus, size_t gpu_count,
                         uint32_t largest_microbatch, const struct het_profile **ret,
                         struct het_error *err)
{
    struct het_profile *profile = het_arena_alloc(arena, sizeof *profile);
    *profile = (struct het_profile){
        .model = model->name,
        .layer_count = het_transformer_layer_count(model),
        .parameter_element_bytes = het_precision_bytes(model->precision),
        .sequence_length = model->sequence,
        .precision = model->precision,
        .optimizer = model->optimizer,
        .shared_embedding = model->tied_embedding,
    };
    struct builder builder = { .arena = arena, .model = model, .profile = profile };
    uint32_t most_tp = 0;
    for (size_t g = 0; g < gpu_count; g++)
        most_tp = gpus[g].most_tp > most_tp ? gpus[g].most_tp : most_tp;
    fill_bytes(&builder, most_tp);
    if (largest_microbatch > HET_MAX_MICROBATCH)
        largest_microbatch = HET_MAX_MICROBATCH;
    fill_measurements(&builder, gpus, gpu_count, largest_microbatch);
    if (het_profile_check(profile, err) < 0)
        return -1;
    *ret = profile;
    return 0;
}
