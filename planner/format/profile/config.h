/* config.h - a Hugging Face config.json -> shape of the model, and with the GPUs
 * of a cluster an estimated profile (estimate.h).
 *
 * Names of the same thing in different configs are all known: hidden_size, n_embd,
 * d_model; num_hidden_layers, n_layer, num_layers; num_attention_heads, n_head,
 * num_heads; num_key_value_heads; head_dim; intermediate_size, n_inner, ffn_dim (else 4
 * times the hidden size); vocab_size; num_local_experts, n_routed_experts, num_experts;
 * num_experts_per_tok; moe_intermediate_size; n_shared_experts or
 * shared_expert_intermediate_size; first_k_dense_replace. "text_config" is taken, where
 * there is one. What follows from others:
 *
 *   norms       RMS where rms_norm_eps is there, else LayerNorm
 *   gated MLP   with RMS norms, or where the activation is silu, swish or *glu
 *   biases      with LayerNorm
 *   positions   learned where n_positions is there or model_type is gpt2, gpt_neo, opt or
 *               bert: max_position_embeddings rows
 *   embedding   tied unless tie_word_embeddings is false, which is that format's default
 *   dropout     where a *drop* rate is above 0
 *   precision   that of the question, else torch_dtype or dtype, else bf16
 *   attention   flash with 16-bit precision; with fp32, for which there are no such
 *               kernels, scores are stored. "attention" of the question wins.
 *
 * Not estimated, and refused: latent attention (kv_lora_rank), encoder-decoder models. */
#ifndef HET_FORMAT_PROFILE_CONFIG_H
#define HET_FORMAT_PROFILE_CONFIG_H

#include "planner/format/json.h"
#include "planner/model/cluster.h"
#include "planner/model/estimate.h"

/* Largest micro-batch of the profile, if the question says nothing. */
#define HET_CONFIG_LARGEST_MICROBATCH 64u

/* Whether an object looks like a config.json. */
bool het_profile_config_is_model(const json_t *json);

/* The shape that
 *
 *   { "config": CONFIG, "sequenceLength": 2048, "precision": "bf16", "optimizer": "adam",
 *     "attention": "flash" or "eager", "largestMicroBatch": 64, "calibration": [ ... ] }
 *
 * says; only the first two must be there. Errors: HET_BAD_INPUT names the field. */
int het_profile_config_shape(struct het_arena *arena, const json_t *json,
                             struct het_transformer *ret, struct het_error *err);

/* The profile of that shape on the GPU types of `cluster`, called as there; `hardware`
 * has their rates, the nodes the bandwidth inside. Types whose rate in that precision the
 * table lacks are left out; if none is left, HET_BAD_INPUT. Each entry of "calibration",
 *
 *   { "gpuType": "A100", "seconds": 0.21, "microBatchSize": 1, "tensorParallel": 1,
 *     "blocks": 24 }
 *
 * is a measured step of one type: forward and backward of one micro-batch, without the
 * optimizer, on one tensor-parallel group that holds embedding, head and so many blocks
 * (all but the first two optional: 1, 1, all). The type may be called by any alias; of
 * types that the cluster lacks it is an error. */
int het_profile_config_read(struct het_arena *arena, const json_t *json,
                            const struct het_cluster *cluster,
                            const struct het_hardware *hardware,
                            const struct het_profile **ret, struct het_error *err);

#endif
