#include "planner/format/profile/config.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#define MAX_NUMBER       (1u << 24)
#define MAX_CALIBRATIONS 64u
#define MAX_SECONDS      86400.0

static const char *const hidden_names[] = { "hidden_size", "n_embd", "d_model", NULL };
static const char *const block_names[] = { "num_hidden_layers", "n_layer", "num_layers",
                                           NULL };
static const char *const head_names[] = { "num_attention_heads", "n_head", "num_heads",
                                          NULL };
static const char *const mlp_names[] = { "intermediate_size", "n_inner", "ffn_dim",
                                         NULL };
static const char *const expert_names[] = { "num_local_experts", "n_routed_experts",
                                            "num_experts", NULL };
static const char *const dropout_names[] = { "resid_pdrop",    "resid_dropout",
                                             "hidden_dropout", "hidden_dropout_prob",
                                             "dropout",        NULL };
static const char *const attention_dropout_names[] = { "attn_pdrop", "attention_dropout",
                                                       "attention_probs_dropout_prob",
                                                       NULL };

static struct het_view find_any(const struct het_view *config, const char *const *names)
{
    struct het_view view = { 0 };
    for (size_t i = 0; names[i]; i++) {
        view = het_view_get(config, names[i]);
        if (view.json)
            return view;
    }
    return het_view_get(config, names[0]);
}

bool het_profile_config_is_model(const json_t *json)
{
    const struct het_view root = het_view_root(json);
    return find_any(&root, hidden_names).json || json_object_get(json, "text_config");
}

/* ---- numbers of the config ---- */

static int read_number(const struct het_view *config, const char *const *names,
                       uint32_t *ret, struct het_error *err)
{
    struct het_view view = find_any(config, names);
    return het_view_u32(&view, 1, MAX_NUMBER, ret, err);
}

static int need_number(const struct het_view *config, const char *const *names,
                       uint32_t *ret, struct het_error *err)
{
    struct het_view view = find_any(config, names);
    return het_view_need(&view, err) < 0 ? -1 : read_number(config, names, ret, err);
}

static int read_one(const struct het_view *config, const char *name, uint32_t *ret,
                    struct het_error *err)
{
    return read_number(config, (const char *const[]){ name, NULL }, ret, err);
}

static int read_rate(const struct het_view *config, const char *const *names, bool *ret,
                     struct het_error *err)
{
    struct het_view view = find_any(config, names);
    double rate = 0;
    if (het_view_number(&view, 0, 1, &rate, err) < 0)
        return -1;
    *ret = rate > 0;
    return 0;
}

static int refuse_unknown(const struct het_view *config, struct het_error *err)
{
    struct het_view latent = het_view_get(config, "kv_lora_rank");
    struct het_view encoder = het_view_get(config, "is_encoder_decoder");
    bool has_encoder = false;
    if (latent.json)
        return het_view_fail(&latent, err,
                             "latent attention is not estimated; measure a profile");
    if (het_view_bool(&encoder, &has_encoder, err) < 0)
        return -1;
    if (has_encoder)
        return het_view_fail(&encoder, err,
                             "models of encoder and decoder are not estimated; measure a "
                             "profile");
    return 0;
}

static int read_attention(const struct het_view *config, struct het_transformer *model,
                          struct het_error *err)
{
    if (need_number(config, head_names, &model->head_count, err) < 0)
        return -1;
    model->key_value_head_count = model->head_count;
    model->head_size = model->hidden / model->head_count;
    return read_one(config, "num_key_value_heads", &model->key_value_head_count, err) < 0
               ? -1
               : read_one(config, "head_dim", &model->head_size, err);
}

static int read_experts(const struct het_view *config, struct het_transformer *model,
                        struct het_error *err)
{
    uint32_t shared = 0;
    struct het_view dense = het_view_get(config, "first_k_dense_replace");
    if (read_number(config, expert_names, &model->expert_count, err) < 0)
        return -1;
    if (!model->expert_count)
        return 0;
    model->expert_mlp = model->mlp;
    struct het_view each = het_view_get(config, "num_experts_per_tok");
    if (het_view_need(&each, err) < 0 ||
        het_view_u32(&each, 1, MAX_NUMBER, &model->experts_per_token, err) < 0 ||
        read_one(config, "moe_intermediate_size", &model->expert_mlp, err) < 0 ||
        read_one(config, "n_shared_experts", &shared, err) < 0 ||
        het_view_u32(&dense, 0, HET_MAX_LAYERS, &model->dense_block_count, err) < 0)
        return -1;
    if ((uint64_t)shared * model->expert_mlp > MAX_NUMBER)
        return het_view_fail(config, err, "n_shared_experts: too many");
    model->shared_mlp = shared * model->expert_mlp;
    return read_one(config, "shared_expert_intermediate_size", &model->shared_mlp, err);
}

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && !strcasecmp(text + length - tail, ending);
}

/* Norms, activation, positions, embedding: what kinds of layers there are. */
static int read_kinds(struct het_arena *arena, const struct het_view *config,
                      struct het_transformer *model, struct het_error *err)
{
    static const char *const activation_names[] = { "hidden_act", "activation_function",
                                                    "hidden_activation", NULL };
    static const char *const learned[] = { "gpt2", "gpt_neo", "opt", "bert", NULL };
    struct het_view activation = find_any(config, activation_names);
    struct het_view type = het_view_get(config, "model_type");
    struct het_view tied = het_view_get(config, "tie_word_embeddings");
    const char *act = "", *kind = "";
    bool has_positions = het_view_get(config, "n_positions").json;
    model->tied_embedding = true;
    if (het_view_name(&activation, arena, &act, err) < 0 ||
        het_view_name(&type, arena, &kind, err) < 0 ||
        het_view_bool(&tied, &model->tied_embedding, err) < 0 ||
        read_rate(config, dropout_names, &model->hidden_dropout, err) < 0 ||
        read_rate(config, attention_dropout_names, &model->attention_dropout, err) < 0)
        return -1;
    model->rms_norm = het_view_get(config, "rms_norm_eps").json;
    model->biases = !model->rms_norm;
    model->gated_mlp = model->rms_norm || !strcasecmp(act, "silu") ||
                       !strcasecmp(act, "swish") || ends_with(act, "glu");
    for (size_t i = 0; learned[i]; i++)
        has_positions |= !strcmp(kind, learned[i]);
    static const char *const rows[] = { "max_position_embeddings", "n_positions", NULL };
    return has_positions ? read_number(config, rows, &model->positions, err) : 0;
}

static int read_model(struct het_arena *arena, const struct het_view *config,
                      struct het_transformer *model, struct het_error *err)
{
    static const char *const vocabulary[] = { "vocab_size", NULL };
    struct het_view name = het_view_get(config, "_name_or_path");
    model->name = "";
    if (json_string_length(name.json) &&
        het_view_name(&name, arena, &model->name, err) < 0)
        return -1;
    if (het_view_need(config, err) < 0 || het_view_object(config, err) < 0 ||
        refuse_unknown(config, err) < 0 ||
        need_number(config, hidden_names, &model->hidden, err) < 0 ||
        need_number(config, block_names, &model->block_count, err) < 0 ||
        need_number(config, vocabulary, &model->vocabulary, err) < 0 ||
        read_attention(config, model, err) < 0)
        return -1;
    model->mlp = 4 * model->hidden;
    return read_number(config, mlp_names, &model->mlp, err) < 0 ||
                   read_experts(config, model, err) < 0
               ? -1
               : read_kinds(arena, config, model, err);
}

/* ---- the question's part ---- */

static int read_precision(struct het_arena *arena, const struct het_view *root,
                          const struct het_view *config, struct het_transformer *model,
                          struct het_error *err)
{
    static const char *const dtypes[] = { "torch_dtype", "dtype", NULL };
    struct het_view own = het_view_get(root, "precision");
    struct het_view view = own.json ? own : find_any(config, dtypes);
    const char *name = "bf16";
    if (het_view_name(&view, arena, &name, err) < 0)
        return -1;
    if (het_precision_parse(name, &model->precision, err) < 0)
        return het_view_wrap(&view, err);
    return 0;
}

static int read_choices(struct het_arena *arena, const struct het_view *root,
                        struct het_transformer *model, struct het_error *err)
{
    struct het_view optimizer = het_view_get(root, "optimizer");
    struct het_view attention = het_view_get(root, "attention");
    const char *name = "adam", *kind = model->precision == HET_FP32 ? "eager" : "flash";
    if (het_view_name(&optimizer, arena, &name, err) < 0 ||
        het_view_name(&attention, arena, &kind, err) < 0)
        return -1;
    if (het_optimizer_parse(name, &model->optimizer, err) < 0)
        return het_view_wrap(&optimizer, err);
    model->stored_scores = !strcmp(kind, "eager");
    if (!model->stored_scores && strcmp(kind, "flash"))
        return het_view_fail(&attention, err, "must be flash or eager");
    return 0;
}

static const char *const question_fields[] = { "config",      "sequenceLength",
                                               "precision",   "optimizer",
                                               "attention",   "largestMicroBatch",
                                               "calibration", NULL };

/* Towers that a text model is a part of would be left out of every time and byte. */
static int refuse_towers(const struct het_view *whole, struct het_error *err)
{
    static const char *const towers[] = { "vision_config", "audio_config", NULL };
    struct het_view tower = find_any(whole, towers);
    return tower.json ? het_view_fail(&tower, err,
                                      "only the text model is estimated; give its "
                                      "text_config by itself, or measure a profile")
                      : 0;
}

int het_profile_config_shape(struct het_arena *arena, const json_t *json,
                             struct het_transformer *ret, struct het_error *err)
{
    struct het_view root = het_view_root(json);
    struct het_view whole = het_view_get(&root, "config");
    struct het_view text = het_view_get(&whole, "text_config");
    const struct het_view *config = text.json ? &text : &whole;
    struct het_view sequence = het_view_get(&root, "sequenceLength");
    struct het_transformer model = { 0 };
    if (het_view_object(&root, err) < 0 ||
        het_view_members(&root, question_fields, err) < 0 ||
        refuse_towers(&whole, err) < 0 || read_model(arena, config, &model, err) < 0 ||
        het_view_need(&sequence, err) < 0 ||
        het_view_u32(&sequence, 1, MAX_NUMBER, &model.sequence, err) < 0 ||
        read_precision(arena, &root, config, &model, err) < 0 ||
        read_choices(arena, &root, &model, err) < 0)
        return -1;
    if (het_transformer_check(&model, err) < 0)
        return het_view_wrap(&whole, err);
    *ret = model;
    return 0;
}

/* ---- GPUs ---- */

/* GPUs of the largest node of a type, and the node whose GPUs have the slowest link. */
static void add_nodes(const struct het_cluster *cluster, size_t type,
                      struct het_estimate_gpu *gpu)
{
    gpu->cluster = cluster;
    gpu->intra_bytes_per_s = HUGE_VAL;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        const struct het_node *node = &cluster->nodes[i];
        if (node->type != type)
            continue;
        if (node->gpu_count > gpu->most_tp)
            gpu->most_tp = node->gpu_count;
        if (node->intra_bytes_per_s < gpu->intra_bytes_per_s) {
            gpu->intra_bytes_per_s = node->intra_bytes_per_s;
            gpu->node = i;
        }
    }
}

static size_t find_gpus(struct het_arena *arena, const struct het_cluster *cluster,
                        const struct het_hardware *hardware, enum het_precision precision,
                        struct het_estimate_gpu **ret)
{
    struct het_estimate_gpu *gpus =
        HET_ARENA_ARRAY(arena, struct het_estimate_gpu, cluster->type_count);
    size_t count = 0;
    for (size_t t = 0; t < cluster->type_count; t++) {
        const struct het_cluster_type *type = &cluster->types[t];
        const struct het_gpu_type *part =
            het_hardware_find_sized(hardware, type->name, type->memory_bytes);
        if (!part || !het_estimate_gpu_init(part, precision, &gpus[count]))
            continue;
        gpus[count].name = type->name;
        add_nodes(cluster, t, &gpus[count++]);
    }
    *ret = gpus;
    return count;
}

static struct het_estimate_gpu *find_gpu(struct het_estimate_gpu *gpus, size_t count,
                                         const struct het_hardware *hardware,
                                         const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(gpus[i].name, name))
            return &gpus[i];
    const struct het_gpu_type *part = het_hardware_find(hardware, name);
    for (size_t i = 0; part && i < count; i++)
        if (het_hardware_find(hardware, gpus[i].name) == part)
            return &gpus[i];
    return NULL;
}

static int calibrate(struct het_arena *arena, const struct het_transformer *model,
                     const struct het_view *entry, const struct het_hardware *hardware,
                     struct het_estimate_gpu *gpus, size_t count, struct het_error *err)
{
    static const char *const fields[] = { "gpuType",        "seconds", "microBatchSize",
                                          "tensorParallel", "blocks",  NULL };
    struct het_view type = het_view_get(entry, "gpuType");
    struct het_view seconds = het_view_get(entry, "seconds");
    struct het_view size = het_view_get(entry, "microBatchSize");
    struct het_view degree = het_view_get(entry, "tensorParallel");
    struct het_view blocks = het_view_get(entry, "blocks");
    struct het_calibration measured = { .tp = 1, .microbatch = 1 };
    const char *name = NULL;
    if (het_view_need(entry, err) < 0 || het_view_object(entry, err) < 0 ||
        het_view_members(entry, fields, err) < 0 || het_view_need(&type, err) < 0 ||
        het_view_name(&type, arena, &name, err) < 0 || het_view_need(&seconds, err) < 0 ||
        het_view_number(&seconds, 0, MAX_SECONDS, &measured.seconds, err) < 0 ||
        het_view_u32(&size, 1, HET_MAX_MICROBATCH, &measured.microbatch, err) < 0 ||
        het_view_u32(&degree, 1, HET_MAX_NODE_GPUS, &measured.tp, err) < 0 ||
        het_view_u32(&blocks, 1, model->block_count, &measured.block_count, err) < 0)
        return -1;
    struct het_estimate_gpu *gpu = find_gpu(gpus, count, hardware, name);
    if (!gpu)
        return het_view_fail(&type, err,
                             "the cluster has no %.60s whose rate in this precision is "
                             "known",
                             name);
    if (gpu->calibrated)
        return het_view_fail(&type, err, "%.60s is calibrated twice", name);
    if (!het_estimate_splits(model, measured.tp))
        return het_view_fail(&degree, err, "the model cannot be split over %u GPUs",
                             measured.tp);
    if (het_estimate_calibrate(model, &measured, gpu, err) < 0)
        return het_view_wrap(entry, err);
    return 0;
}

int het_profile_config_read(struct het_arena *arena, const json_t *json,
                            const struct het_cluster *cluster,
                            const struct het_hardware *hardware,
                            const struct het_profile **ret, struct het_error *err)
{
    struct het_view root = het_view_root(json);
    struct het_view largest = het_view_get(&root, "largestMicroBatch");
    struct het_view list = het_view_get(&root, "calibration");
    uint32_t largest_microbatch = HET_CONFIG_LARGEST_MICROBATCH;
    size_t calibrations = 0;
    struct het_transformer model;
    struct het_estimate_gpu *gpus;
    if (het_profile_config_shape(arena, json, &model, err) < 0 ||
        het_view_u32(&largest, 1, HET_MAX_MICROBATCH, &largest_microbatch, err) < 0 ||
        het_view_array(&list, MAX_CALIBRATIONS, &calibrations, err) < 0)
        return -1;
    size_t count = find_gpus(arena, cluster, hardware, model.precision, &gpus);
    if (!count)
        return het_fail(err, HET_BAD_INPUT,
                        "no GPU type of the cluster has a known rate in %s; give "
                        "%sTFLOPS and memoryGBs of its types in a hardware file",
                        het_precision_name(model.precision),
                        het_precision_name(model.precision));
    for (size_t i = 0; i < calibrations; i++) {
        struct het_view entry = het_view_at(&list, i);
        if (calibrate(arena, &model, &entry, hardware, gpus, count, err) < 0)
            return -1;
    }
    return het_estimate_profile(arena, &model, gpus, count, largest_microbatch, ret, err);
}
