#include "planner/format/profile/timers.h"

#include "planner/format/profile/megatron_log.h"
#include "planner/model/cluster.h"
#include "planner/model/estimate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIZE       (1u << 24)
#define MAX_STAGES     1024u
#define MAX_RANKS      65536u
#define SECONDS_PER_MS 1e-3
/* What a type counts as that the hardware table does not know: only the ratio of its
 * parts matters. */
#define USUAL_TYPE     "A100-SXM4-80GB"

/* What one stage of a run measured: seconds of one micro-batch. */
struct stage {
    const char *type;
    uint32_t tp, microbatch;
    double embeddings, blocks, heads;
    double seconds[2]; /* forward, backward */
};

/* How the ranks of a run are arranged. */
struct grid {
    uint32_t tp, pp, dp, microbatch, global_batch;
    bool is_pipeline_first; /* --use-tp-pp-dp-mapping */
    uint32_t blocks[MAX_STAGES];
};

struct run {
    struct het_megatron_log log;
    const char *type;
    struct het_transformer model;
    struct grid grid;
    double optimizer_s; /* of all parameters of a rank of each stage; 0: not printed */
};

struct reader {
    struct het_arena *arena;
    const struct het_hardware *hardware;
    struct run *runs;
    size_t run_count;
    struct stage *stages;
    size_t stage_count, stage_capacity;
};

static int fail(const struct run *run, const char *argument, const char *what,
                struct het_error *err)
{
    return het_fail(err, HET_BAD_INPUT, "%.300s: argument %s: %s", run->log.name,
                    argument, what);
}

/* ---- what is refused ---- */

static int refuse_others(const struct run *run, struct het_error *err)
{
    static const struct {
        const char *argument, *why;
    } absent[] = {
        { "recompute_granularity",
          "times with recomputation are not those of the layers; run without" },
        { "virtual_pipeline_model_parallel_size", "virtual stages are not read" },
        { "num_layers_per_virtual_pipeline_stage", "virtual stages are not read" },
        { "num_virtual_stages_per_pipeline_rank", "virtual stages are not read" },
        { "rampup_batch_size", "the number of micro-batches changes; run without" },
        { "hybrid_layer_pattern", "hybrid models are not read" },
    };
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (het_megatron_argument(&run->log, absent[i].argument))
            return fail(run, absent[i].argument, absent[i].why, err);
    static const char *const ones[] = { "context_parallel_size",
                                        "expert_model_parallel_size" };
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        uint32_t size = 1;
        if (het_megatron_number_if(&run->log, ones[i], MAX_RANKS, &size, err) < 0)
            return -1;
        if (size != 1)
            return fail(run, ones[i], "must be 1: plans do not have it", err);
    }
    static const char *const unset[] = { "multi_latent_attention",
                                         "account_for_embedding_in_pipeline_split",
                                         "account_for_loss_in_pipeline_split",
                                         "standalone_embedding_stage" };
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++)
        if (het_megatron_is_set(&run->log, unset[i]))
            return fail(run, unset[i], "is not read; run without", err);
    return 0;
}

/* ---- shape ---- */

static bool is_text(const struct run *run, const char *argument, const char *text)
{
    const char *value = het_megatron_argument(&run->log, argument);
    return value && !strcmp(value, text);
}

static bool is_above_zero(const struct run *run, const char *argument)
{
    const char *value = het_megatron_argument(&run->log, argument);
    return value && strtod(value, NULL) > 0;
}

static int read_sizes(struct run *run, struct het_error *err)
{
    struct het_transformer *model = &run->model;
    const struct het_megatron_log *log = &run->log;
    if (het_megatron_number(log, "num_layers", HET_MAX_LAYERS, &model->block_count, err) <
            0 ||
        het_megatron_number(log, "hidden_size", MAX_SIZE, &model->hidden, err) < 0 ||
        het_megatron_number(log, "num_attention_heads", MAX_SIZE, &model->head_count,
                            err) < 0 ||
        het_megatron_number(log, "seq_length", MAX_SIZE, &model->sequence, err) < 0 ||
        het_megatron_number(log, "padded_vocab_size", MAX_SIZE, &model->vocabulary, err) <
            0)
        return -1;
    model->mlp = 4 * model->hidden;
    model->key_value_head_count = model->head_count;
    model->head_size = model->hidden / model->head_count;
    if (het_megatron_number_if(log, "ffn_hidden_size", MAX_SIZE, &model->mlp, err) < 0 ||
        het_megatron_number_if(log, "kv_channels", MAX_SIZE, &model->head_size, err) < 0)
        return -1;
    return het_megatron_is_set(log, "group_query_attention")
               ? het_megatron_number(log, "num_query_groups", MAX_SIZE,
                                     &model->key_value_head_count, err)
               : 0;
}

static int read_experts(struct run *run, struct het_error *err)
{
    struct het_transformer *model = &run->model;
    const struct het_megatron_log *log = &run->log;
    if (het_megatron_number_if(log, "num_experts", MAX_SIZE, &model->expert_count, err) <
        0)
        return -1;
    if (!model->expert_count)
        return 0;
    model->expert_mlp = model->mlp;
    return het_megatron_number(log, "moe_router_topk", MAX_SIZE,
                               &model->experts_per_token, err) < 0 ||
                   het_megatron_number_if(log, "moe_ffn_hidden_size", MAX_SIZE,
                                          &model->expert_mlp, err) < 0 ||
                   het_megatron_number_if(log, "moe_shared_expert_intermediate_size",
                                          MAX_SIZE, &model->shared_mlp, err) < 0
               ? -1
               : 0;
}

static int read_shape(struct run *run, struct het_error *err)
{
    struct het_transformer *model = &run->model;
    const struct het_megatron_log *log = &run->log;
    model->name = "";
    if (read_sizes(run, err) < 0 || read_experts(run, err) < 0)
        return -1;
    if (is_text(run, "position_embedding_type", "learned_absolute") &&
        het_megatron_number(log, "max_position_embeddings", MAX_SIZE, &model->positions,
                            err) < 0)
        return -1;
    model->precision = het_megatron_is_set(log, "bf16")   ? HET_BF16
                       : het_megatron_is_set(log, "fp16") ? HET_FP16
                                                          : HET_FP32;
    model->optimizer = is_text(run, "optimizer", "sgd") ? HET_SGD : HET_ADAM;
    model->gated_mlp = het_megatron_is_set(log, "swiglu");
    model->rms_norm = is_text(run, "normalization", "RMSNorm");
    model->biases = het_megatron_is_set(log, "add_bias_linear");
    model->tied_embedding =
        !het_megatron_is_set(log, "untie_embeddings_and_output_weights");
    model->stored_scores = model->precision == HET_FP32 ||
                           is_text(run, "attention_backend", "AttnBackend.unfused") ||
                           is_text(run, "attention_backend", "AttnBackend.local");
    model->hidden_dropout = is_above_zero(run, "hidden_dropout");
    model->attention_dropout = is_above_zero(run, "attention_dropout");
    if (het_transformer_check(model, err) < 0)
        return het_wrap(err, "%.300s", log->name);
    return 0;
}

/* Whether two runs are of one model but for the number of blocks, and for the vocabulary,
 * which is padded to what the degree divides. */
static bool is_same_model(const struct het_transformer *a,
                          const struct het_transformer *b)
{
    bool same_sizes = a->hidden == b->hidden && a->head_count == b->head_count &&
                      a->key_value_head_count == b->key_value_head_count &&
                      a->head_size == b->head_size && a->mlp == b->mlp &&
                      a->positions == b->positions && a->sequence == b->sequence;
    bool same_experts = a->expert_count == b->expert_count &&
                        a->experts_per_token == b->experts_per_token &&
                        a->expert_mlp == b->expert_mlp && a->shared_mlp == b->shared_mlp;
    return same_sizes && same_experts && a->gated_mlp == b->gated_mlp &&
           a->rms_norm == b->rms_norm && a->biases == b->biases &&
           a->tied_embedding == b->tied_embedding && a->precision == b->precision &&
           a->optimizer == b->optimizer;
}

static int check_alike(const struct run *run, const struct run *first,
                       struct het_error *err)
{
    if (is_same_model(&run->model, &first->model))
        return 0;
    return het_fail(err, HET_BAD_INPUT,
                    "%.300s: is of another model than %.300s; only the number of layers "
                    "may differ",
                    run->log.name, first->log.name);
}

/* ---- stages ---- */

/* Blocks of the stages of a layout like "Et*9|t*8|t*7L"; 0 if it is not of that form with
 * `stages` stages. */
static bool read_layout(const char *text, uint32_t stages, uint32_t *ret_blocks)
{
    uint32_t stage = 0;
    ret_blocks[0] = 0;
    for (const char *c = text; *c;) {
        char item = *c++, *end = NULL;
        unsigned long times = *c == '*' ? strtoul(c + 1, &end, 10) : 1;
        c = end ? end : c;
        if (item == '|' && !end) {
            if (++stage == stages)
                return false;
            ret_blocks[stage] = 0;
        } else if (item == 't' && times <= HET_MAX_LAYERS) {
            ret_blocks[stage] += (uint32_t)times;
        } else if (!strchr("EL,", item)) {
            return false;
        }
    }
    return stage + 1 == stages;
}

/* Even, or with their own numbers of the first and the last stage. */
static bool split_evenly(struct run *run, uint32_t first, uint32_t last)
{
    struct grid *grid = &run->grid;
    uint32_t others = grid->pp - (first > 0) - (last > 0), all = run->model.block_count;
    if (first + last > all ||
        (others ? (all - first - last) % others : all - first - last))
        return false;
    for (uint32_t s = 0; s < grid->pp; s++)
        grid->blocks[s] = s == 0 && first             ? first
                          : s + 1 == grid->pp && last ? last
                                                      : (all - first - last) / others;
    return true;
}

static int read_stages(struct run *run, struct het_error *err)
{
    struct grid *grid = &run->grid;
    const char *layout =
        het_megatron_argument(&run->log, "pipeline_model_parallel_layout");
    uint32_t first = 0, last = 0, sum = 0;
    if (layout) {
        bool is_read = read_layout(layout, grid->pp, grid->blocks);
        for (uint32_t s = 0; is_read && s < grid->pp; s++)
            sum += grid->blocks[s];
        return sum == run->model.block_count
                   ? 0
                   : fail(run, "pipeline_model_parallel_layout",
                          "must be stages of E, t, t*N and L with all layers", err);
    }
    if (het_megatron_number_if(&run->log, "decoder_first_pipeline_num_layers",
                               HET_MAX_LAYERS, &first, err) < 0 ||
        het_megatron_number_if(&run->log, "decoder_last_pipeline_num_layers",
                               HET_MAX_LAYERS, &last, err) < 0)
        return -1;
    if (!split_evenly(run, first, last))
        return fail(run, "num_layers", "is not divided by the stages", err);
    return 0;
}

static int read_grid(struct run *run, struct het_error *err)
{
    struct grid *grid = &run->grid;
    const struct het_megatron_log *log = &run->log;
    if (het_megatron_number(log, "tensor_model_parallel_size", HET_MAX_NODE_GPUS,
                            &grid->tp, err) < 0 ||
        het_megatron_number(log, "pipeline_model_parallel_size", MAX_STAGES, &grid->pp,
                            err) < 0 ||
        het_megatron_number(log, "data_parallel_size", MAX_RANKS, &grid->dp, err) < 0 ||
        het_megatron_number(log, "micro_batch_size", HET_MAX_MICROBATCH,
                            &grid->microbatch, err) < 0 ||
        het_megatron_number(log, "global_batch_size", HET_MAX_GLOBAL_BATCH,
                            &grid->global_batch, err) < 0)
        return -1;
    if ((uint64_t)grid->tp * grid->pp * grid->dp > MAX_RANKS)
        return fail(run, "data_parallel_size", "more ranks than are read", err);
    if (grid->global_batch % ((uint64_t)grid->microbatch * grid->dp))
        return fail(run, "global_batch_size",
                    "is no multiple of micro_batch_size and data_parallel_size", err);
    if (!het_estimate_splits(&run->model, grid->tp))
        return fail(run, "tensor_model_parallel_size", "does not divide the model", err);
    grid->is_pipeline_first = het_megatron_is_set(log, "use_tp_pp_dp_mapping");
    if (grid->pp > 1 && !het_megatron_has_ranks(log))
        return fail(run, "pipeline_model_parallel_size",
                    "is above 1: only --timing-log-option all says which stage took what",
                    err);
    return read_stages(run, err);
}

/* Ranks go tp, dp, pp from the fastest; or tp, pp, dp. */
static uint32_t rank_of(const struct grid *grid, uint32_t stage, uint32_t replica,
                        uint32_t shard)
{
    uint32_t group = grid->is_pipeline_first ? replica * grid->pp + stage
                                             : stage * grid->dp + replica;
    return group * grid->tp + shard;
}

/* Milliseconds of an iteration: the mean over the ranks of a stage. */
static bool stage_ms(const struct run *run, enum het_megatron_timer timer, uint32_t stage,
                     double *ret_ms)
{
    const struct grid *grid = &run->grid;
    double sum = 0, ms;
    if (!het_megatron_has_ranks(&run->log))
        return het_megatron_ms(&run->log, timer, HET_MEGATRON_ALL_RANKS, ret_ms);
    for (uint32_t r = 0; r < grid->dp; r++)
        for (uint32_t k = 0; k < grid->tp; k++) {
            if (!het_megatron_ms(&run->log, timer, rank_of(grid, stage, r, k), &ms))
                return false;
            sum += ms;
        }
    *ret_ms = sum / (grid->dp * grid->tp);
    return true;
}

static int add_stage(struct reader *reader, struct run *run, uint32_t s,
                     struct het_error *err)
{
    const struct grid *grid = &run->grid;
    double batches = grid->global_batch / ((double)grid->microbatch * grid->dp);
    struct stage stage = { .type = run->type,
                           .tp = grid->tp,
                           .microbatch = grid->microbatch,
                           .embeddings = s == 0,
                           .blocks = grid->blocks[s],
                           .heads = s + 1 == grid->pp };
    double ms[2], optimizer_ms;
    if (!stage_ms(run, HET_MEGATRON_FORWARD, s, &ms[0]) ||
        !stage_ms(run, HET_MEGATRON_BACKWARD, s, &ms[1]))
        return het_fail(
            err, HET_BAD_INPUT,
            "%.300s: forward-compute, backward-compute: a rank of stage %u of "
            "%u has no times",
            run->log.name, s, grid->pp);
    for (int d = 0; d < 2; d++)
        stage.seconds[d] = ms[d] * SECONDS_PER_MS / batches;
    if (stage_ms(run, HET_MEGATRON_OPTIMIZER, s, &optimizer_ms))
        run->optimizer_s +=
            optimizer_ms * SECONDS_PER_MS *
            (het_megatron_is_set(&run->log, "use_distributed_optimizer") ? grid->dp : 1);
    ARRAY_RESERVE(reader->stages, &reader->stage_capacity, reader->stage_count + 1);
    reader->stages[reader->stage_count++] = stage;
    return 0;
}

static int read_run(struct reader *reader, const struct het_timers_run *from,
                    struct het_error *err)
{
    struct run *run = &reader->runs[reader->run_count];
    run->type = from->type;
    if (het_megatron_log_read(reader->arena, from->name, from->text, &run->log, err) <
            0 ||
        refuse_others(run, err) < 0 || read_shape(run, err) < 0 ||
        read_grid(run, err) < 0 || check_alike(run, &reader->runs[0], err) < 0)
        return -1;
    for (uint32_t s = 0; s < run->grid.pp; s++)
        if (add_stage(reader, run, s, err) < 0)
            return -1;
    reader->run_count++;
    return 0;
}

/* ---- what the layers take ---- */

struct layer_times {
    double embedding, block, head;
};

/* The estimate of one direction, for its ratios. */
static void estimate(const struct reader *reader, const struct het_transformer *model,
                     const struct stage *point, struct layer_times ret[2])
{
    const struct het_gpu_type *part = het_hardware_find(reader->hardware, point->type);
    struct het_estimate_gpu gpu;
    if (!part || !het_estimate_gpu_init(part, model->precision, &gpu)) {
        part = het_hardware_find(reader->hardware, USUAL_TYPE);
        if (!part || !het_estimate_gpu_init(part, model->precision, &gpu))
            gpu = (struct het_estimate_gpu){ .flops = 1e14,
                                             .share = 1,
                                             .memory_bytes_per_s = 1e12,
                                             .intra_bytes_per_s = 1e11 };
    }
    if (!(gpu.intra_bytes_per_s > 0))
        gpu.intra_bytes_per_s = 1e11;
    het_estimate_layer(model, &gpu, 0, point->tp, point->microbatch, &ret[0].embedding,
                       &ret[1].embedding);
    het_estimate_layer(model, &gpu, 1, point->tp, point->microbatch, &ret[0].block,
                       &ret[1].block);
    het_estimate_layer(model, &gpu, model->block_count + 1, point->tp, point->microbatch,
                       &ret[0].head, &ret[1].head);
}

static bool is_point(const struct stage *stage, const struct stage *point)
{
    return !strcmp(stage->type, point->type) && stage->tp == point->tp &&
           stage->microbatch == point->microbatch;
}

/* Seconds of a block from stages without embedding and head; 0: there are none. */
static double block_alone(const struct stage *stages, size_t count, int direction)
{
    double seconds = 0, blocks = 0;
    for (size_t i = 0; i < count; i++)
        if (stages[i].embeddings + stages[i].heads == 0) {
            seconds += stages[i].seconds[direction];
            blocks += stages[i].blocks;
        }
    return blocks > 0 ? seconds / blocks : 0;
}

/* The mean slope between stages that differ in blocks alone; 0: there are none. */
static double block_slope(const struct stage *stages, size_t count, int direction)
{
    double rise = 0, run = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++) {
            double blocks = stages[i].blocks - stages[j].blocks;
            if (stages[i].embeddings != stages[j].embeddings ||
                stages[i].heads != stages[j].heads)
                continue;
            rise += (stages[i].seconds[direction] - stages[j].seconds[direction]) *
                    blocks;
            run += blocks * blocks;
        }
    return run > 0 ? rise / run : 0;
}

/* By the ratios of the estimate. */
static double block_share(const struct stage *stages, size_t count, int direction,
                          const struct layer_times *usual)
{
    double seconds = 0, parts = 0;
    for (size_t i = 0; i < count; i++) {
        seconds += stages[i].seconds[direction];
        parts += stages[i].blocks +
                 stages[i].embeddings * usual->embedding / usual->block +
                 stages[i].heads * usual->head / usual->block;
    }
    return parts > 0 ? seconds / parts : 0;
}

/* The mean of what blocks leave of the stages with so many embeddings and heads;
 * negative: there are none. */
static double rest_of(const struct stage *stages, size_t count, int direction,
                      double embeddings, double heads, double block)
{
    double rest = 0, found = 0;
    for (size_t i = 0; i < count; i++)
        if (stages[i].embeddings == embeddings && stages[i].heads == heads) {
            rest += fmax(stages[i].seconds[direction] - stages[i].blocks * block, 0);
            found++;
        }
    return found > 0 ? rest / found : -1;
}

/* The rules of the header, for the stages of one point. */
static struct layer_times solve(const struct stage *stages, size_t count, int direction,
                                const struct layer_times *usual)
{
    struct layer_times times = { .block = block_alone(stages, count, direction) };
    if (!(times.block > 0))
        times.block = block_slope(stages, count, direction);
    if (!(times.block > 0))
        times.block = block_share(stages, count, direction, usual);
    times.embedding = rest_of(stages, count, direction, 1, 0, times.block);
    times.head = rest_of(stages, count, direction, 0, 1, times.block);
    double both = rest_of(stages, count, direction, 1, 1, times.block);
    double share = usual->embedding / (usual->embedding + usual->head);
    if (times.embedding < 0)
        times.embedding = both < 0 ? usual->embedding / usual->block * times.block
                                   : share * both;
    if (times.head < 0)
        times.head = both < 0 ? usual->head / usual->block * times.block
                              : (1 - share) * both;
    return times;
}

/* ---- the profile ---- */

static int compare_stages(const void *a, const void *b)
{
    const struct stage *left = a, *right = b;
    return het_profile_compare_points(
        (struct het_profile_point){ left->type, left->tp, left->microbatch },
        (struct het_profile_point){ right->type, right->tp, right->microbatch });
}

static double all_parameters(const struct het_transformer *model, uint32_t tp)
{
    double sum = 0;
    for (uint32_t l = 0; l < het_transformer_layer_count(model); l++)
        sum += het_estimate_parameters(model, l, tp);
    return sum;
}

/* Seconds of the optimizer, of the first run of the type and degree that has them. */
static double optimizer_of(const struct reader *reader,
                           const struct het_transformer *model, const struct stage *point)
{
    for (size_t i = 0; i < reader->run_count; i++) {
        const struct run *run = &reader->runs[i];
        if (run->optimizer_s > 0 && run->grid.tp == point->tp &&
            !strcmp(run->type, point->type))
            return run->optimizer_s * all_parameters(model, point->tp) /
                   all_parameters(&run->model, point->tp);
    }
    return 0;
}

static double *sums_of(struct het_arena *arena, const struct het_transformer *model,
                       const struct layer_times *times)
{
    uint32_t layers = het_transformer_layer_count(model);
    double *sums = HET_ARENA_ARRAY(arena, double, layers + 1);
    for (uint32_t l = 0; l < layers; l++)
        sums[l + 1] = sums[l] + (!l                ? times->embedding
                                 : l + 1 == layers ? times->head
                                                   : times->block);
    return sums;
}

static void fill_points(const struct reader *reader, const struct het_transformer *model,
                        struct het_profile *profile)
{
    struct het_measurement *points =
        HET_ARENA_ARRAY(reader->arena, struct het_measurement, reader->stage_count);
    const char **names =
        HET_ARENA_ARRAY(reader->arena, const char *, reader->stage_count);
    for (size_t i = 0, end; i < reader->stage_count; i = end) {
        const struct stage *point = &reader->stages[i];
        struct layer_times usual[2], times;
        for (end = i; end < reader->stage_count && is_point(&reader->stages[end], point);)
            end++;
        if (!i || strcmp(point->type, names[profile->type_count - 1]))
            names[profile->type_count++] = point->type;
        struct het_measurement *m = &points[profile->measurement_count++];
        m->type = (uint32_t)profile->type_count - 1;
        m->tp = point->tp;
        m->microbatch = point->microbatch;
        m->optimizer_s = optimizer_of(reader, model, point);
        estimate(reader, model, point, usual);
        times = solve(point, end - i, 0, &usual[0]);
        m->forward_s = sums_of(reader->arena, model, &times);
        times = solve(point, end - i, 1, &usual[1]);
        m->backward_s = sums_of(reader->arena, model, &times);
    }
    profile->type_names = names;
    profile->measurements = points;
}

static void fill_sizes(const struct reader *reader, const struct het_transformer *model,
                       struct het_profile *profile)
{
    bool measured[HET_MAX_NODE_GPUS + 1] = { false };
    size_t degrees = 0;
    for (size_t i = 0; i < reader->stage_count; i++) {
        degrees += !measured[reader->stages[i].tp];
        measured[reader->stages[i].tp] = true;
    }
    struct het_layer_bytes *bytes =
        HET_ARENA_ARRAY(reader->arena, struct het_layer_bytes, degrees);
    for (uint32_t tp = 1; tp <= HET_MAX_NODE_GPUS; tp++)
        if (measured[tp])
            bytes[profile->bytes_count++] = het_estimate_bytes(reader->arena, model, tp);
    profile->bytes = bytes;
    profile->boundary_bytes = het_estimate_boundaries(reader->arena, model);
}

/* The model of the run with the most blocks. */
static const struct het_transformer *largest_model(const struct reader *reader)
{
    const struct run *largest = &reader->runs[0];
    for (size_t i = 1; i < reader->run_count; i++)
        if (reader->runs[i].model.block_count > largest->model.block_count)
            largest = &reader->runs[i];
    return &largest->model;
}

int het_profile_timers_read(struct het_arena *arena, const struct het_timers_run *runs,
                            size_t count, const struct het_hardware *hardware,
                            const struct het_profile **ret, uint32_t *ret_sequence,
                            struct het_error *err)
{
    struct reader reader = { .arena = arena,
                             .hardware = hardware,
                             .runs = HET_ARENA_ARRAY(arena, struct run, count) };
    for (size_t i = 0; i < count; i++)
        if (read_run(&reader, &runs[i], err) < 0) {
            xfree(reader.stages);
            return -1;
        }
    qsort(reader.stages, reader.stage_count, sizeof *reader.stages, compare_stages);
    const struct het_transformer *model = largest_model(&reader);
    struct het_profile *profile = HET_ARENA_ARRAY(arena, struct het_profile, 1);
    profile->model = "";
    profile->layer_count = het_transformer_layer_count(model);
    profile->sequence_length = model->sequence;
    profile->precision = model->precision;
    profile->optimizer = model->optimizer;
    profile->parameter_element_bytes = het_precision_bytes(model->precision);
    profile->shared_embedding = model->tied_embedding;
    fill_points(&reader, model, profile);
    fill_sizes(&reader, model, profile);
    xfree(reader.stages);
    if (het_profile_check(profile, err) < 0)
        return -1;
    *ret = profile;
    *ret_sequence = model->sequence;
    return 0;
}
