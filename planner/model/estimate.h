/* estimate.h - a profile worked out from the shape of a transformer and the data sheets
 * of GPUs, for models that have not been measured. A roofline: the matrix products at a
 * share of the peak rate, or their operands at a share of the memory bandwidth, whichever
 * takes longer; all other memory traffic; the collectives of tensor parallelism; and a
 * fixed time a layer. Every constant is defined below.
 *
 *   forward  = sum_k max(F_k / (e_c P), Q_k / (e_m M)) + S / (e_m M) + R / N + o
 *   backward = the same with the products twice (flash attention 2.5 times), S twice
 *
 *   F_k, Q_k   FLOPs of product k, and bytes of its three matrices
 *   S          bytes that norms, activation functions, residual sums and, if its scores
 *              are stored, attention read and write
 *   R          bytes that a rank sends for two all-reduces: 2 * 2 (t-1)/t * b s h bytes
 *   P, M       peak FLOP/s of the precision, bytes/s of memory
 *   N          bytes/s between t GPUs of a node for messages of b s h bytes: measured,
 *              where the cluster has curves
 *   e_c        share of the peak that products reach: the one number that calibration
 *              fits (het_estimate_calibrate)
 *
 * b samples of s tokens, hidden size h, a heads of size d, g key-value heads, f the size
 * of the MLP, t the tensor-parallel degree; matrices are split over t as Megatron-LM
 * does. Products of a block: queries, keys and values b s x h x (a + 2g) d / t; scores
 * and context, each 2 b s^2 a d / t FLOPs (flash attention with a causal mask: half);
 * output b s x a d / t x h; MLP up (twice as wide if gated) and down; with experts the
 * MLP of the k experts of each token, the weights of all of them read. Head: b s x h x V
 * / t.
 *
 * Bytes kept for the backward pass, a sample and rank, with E bytes an element:
 *   block      s E (4 h + (2 a d + 2 g d + w f) / t), w = 2, or 3 if the MLP is gated (of
 *              the k experts of a token); stored scores add a s^2 E / t, flash attention
 *              4 s a / t; dropout a byte for each element it drops (2 s h, and a s^2 / t)
 *   embedding  s h E;  head  2 s h E + s (V / t) (E + 4), the 4 a softmax in fp32
 * Each layer passes s h E to the next. State and gradients follow from the parameters
 * (het_workload_state_bytes).
 *
 * Sources: V. Korthikanti et al., Reducing Activation Recomputation in Large Transformer
 * Models, 2022, table 2 and appendix A (FLOPs, activations; here for any f, g, V, gate
 * and precision); S. Williams et al., Roofline, 2009. docs/planner.md says how far this
 * is from measured profiles. */
#ifndef HET_MODEL_ESTIMATE_H
#define HET_MODEL_ESTIMATE_H

#include "planner/model/cluster.h"
#include "planner/model/profile.h"

/* e_c before calibration: of units for 16-bit and TF32 products, and of plain fp32. */
#define HET_ESTIMATE_TENSOR_SHARE 0.5
#define HET_ESTIMATE_PLAIN_SHARE  0.8
/* e_m. */
#define HET_ESTIMATE_MEMORY_SHARE 0.8
/* o: launching the kernels of a layer in one direction, and whatever else does not grow
 * with the samples. Measured profiles have 0.4 to 0.6 ms (OPT-350M, forward, one sample
 * less half of two). */
#define HET_ESTIMATE_LAYER_S      0.5e-3
/* What calibration may find for e_c. It may exceed 1: the table's peak may be that of
 * another mode than the one that ran. */
#define HET_ESTIMATE_LEAST_SHARE  0.01
#define HET_ESTIMATE_MOST_SHARE   2.0

/* A decoder, or an encoder: layer 0 embeds, 1 .. block_count are blocks, the last is the
 * head with the final norm and the loss. */
struct het_transformer {
    const char *name;
    uint32_t block_count;
    uint32_t hidden, head_count, key_value_head_count, head_size;
    uint32_t mlp; /* of dense blocks */
    uint32_t vocabulary;
    uint32_t positions; /* rows of a learned position table; 0: none */
    uint32_t sequence;  /* tokens of a sample */
    /* Mixture of experts; expert_count 0: none. */
    uint32_t expert_count, experts_per_token, expert_mlp;
    uint32_t shared_mlp;        /* of the MLP that all tokens pass beside the experts; 0:
                                   none */
    uint32_t dense_block_count; /* first blocks that have no experts */
    bool gated_mlp;             /* up, gate and down (SwiGLU), not up and down */
    bool rms_norm;              /* a vector a norm, not two */
    bool biases;                /* of the linear layers */
    bool tied_embedding;        /* the head has no weights of its own */
    bool stored_scores; /* attention keeps its scores; else flash attention, causal */
    bool hidden_dropout, attention_dropout;
    enum het_precision precision;
    enum het_optimizer optimizer;
};

/* A GPU type as the estimate sees it. */
struct het_estimate_gpu {
    const char *name;
    double flops;              /* P */
    double share;              /* e_c */
    double memory_bytes_per_s; /* M */
    double intra_bytes_per_s;  /* N, if cluster is NULL */
    /* N is the link between GPUs of this node (het_cluster_gpu_link). */
    const struct het_cluster *cluster;
    uint32_t node;
    uint32_t most_tp; /* GPUs of the largest node */
    bool calibrated;
};

/* Facts of `type` for `precision`: fp32 uses TF32 units where there are some, as the
 * frameworks' containers do. False if the table lacks the rate or the bandwidth, as for
 * bf16 on parts that do not have it. */
bool het_estimate_gpu_init(const struct het_gpu_type *type, enum het_precision precision,
                           struct het_estimate_gpu *ret);

/* Refuses (HET_BAD_INPUT) incomplete shapes: sizes of 0 or too large to represent, more
 * experts per token than there are. */
int het_transformer_check(const struct het_transformer *model, struct het_error *err);

/* Embedding, blocks and head. */
uint32_t het_transformer_layer_count(const struct het_transformer *model);
/* Parameters of a layer on one rank. */
double het_estimate_parameters(const struct het_transformer *model, uint32_t layer,
                               uint32_t tp);
/* Bytes that one rank keeps of a layer for the backward pass of one sample. */
double het_estimate_activations(const struct het_transformer *model, uint32_t layer,
                                uint32_t tp);
/* Bytes of one sample that go from each layer to the next; in `arena`. */
const double *het_estimate_boundaries(struct het_arena *arena,
                                      const struct het_transformer *model);
/* Parameters and activations of all layers, rounded up; in `arena`. */
struct het_layer_bytes het_estimate_bytes(struct het_arena *arena,
                                          const struct het_transformer *model,
                                          uint32_t tp);
/* Seconds of one layer for one micro-batch on one rank of degree `tp`. */
void het_estimate_layer(const struct het_transformer *model,
                        const struct het_estimate_gpu *gpu, uint32_t layer, uint32_t tp,
                        uint32_t microbatch, double *ret_forward_s,
                        double *ret_backward_s);
/* Whether the heads and the MLP can be split over `tp` ranks. */
bool het_estimate_splits(const struct het_transformer *model, uint32_t tp);

/* What was measured on one tensor-parallel group of `tp` GPUs that holds embedding, head
 * and `block_count` blocks (0: all; fewer where the whole does not fit). */
struct het_calibration {
    uint32_t tp, microbatch, block_count;
    double seconds; /* forward and backward of one micro-batch, without the optimizer */
};

/* Fits gpu->share so that the estimate of that case is `seconds`, by bisection to the
 * last bit. Errors: HET_BAD_INPUT, if no share within the limits gives that time; the
 * message says which times they give. */
int het_estimate_calibrate(const struct het_transformer *model,
                           const struct het_calibration *measured,
                           struct het_estimate_gpu *gpu, struct het_error *err);

/* The profile of `gpus` (sorted by name): degrees 1, 2, 4, .. as far as node and heads
 * allow, micro-batches 1, 2, 4, .. largest. The optimizer moves parameters, gradients and
 * moments once through memory. Origin HET_PROFILE_CALIBRATED if every GPU is. */
int het_estimate_profile(struct het_arena *arena, const struct het_transformer *model,
                         const struct het_estimate_gpu *gpus, size_t gpu_count,
                         uint32_t largest_microbatch, const struct het_profile **ret,
                         struct het_error *err);

#endif
