/* profile/sailor.h - measurements in the form of Sailor (SOSP'25) -> profile: the layers'
 * times of each GPU type, and the sizes of the model's layers beside them.
 *
 *   layerTimes  { TYPE: { B: { T: { LAYER: [forward s, backward s, update s] } } } }, the
 *               contents of files called <TYPE>.json; B samples, tensor-parallel degree T
 *   llmInfo     { MODEL: { T: { LAYER: { params_floats, act_output_floats,
 * act_mem_floats,
 *               ... } } } }, the content of llm_info.json, or what it has of one model;
 * one sample, one tensor-parallel rank
 *
 * Layers are called "0" to "L-1"; all points have as many as llmInfo has. Each entry is a
 * layer of its own: a final norm that was measured apart from the head can be cut from
 * it. The optimizer's time is the sum of the layers' updates.
 *
 * Bytes: parameters are params_floats, what a layer sends on is act_output_floats (of the
 * least degree, whose head does not split its logits), what the backward pass keeps is
 * act_mem_floats, each in elements of the precision that was measured in. The training
 * state is not in these files: it is HET_MEASURED_STATE_PER_PARAMETER times the bytes of
 * the parameters, as in the Metis-format files of the same measurements. */
#ifndef HET_FORMAT_PROFILE_SAILOR_H
#define HET_FORMAT_PROFILE_SAILOR_H

#include "planner/format/json.h"
#include "planner/model/profile.h"

/* Times the bytes of a parameter that training holds of it, beside activations: weights,
 * gradients, two moments, and a buffer as large (20 bytes for fp32). So it is in all
 * Metis-format files we know that have several micro-batch sizes. */
#define HET_MEASURED_STATE_PER_PARAMETER 5.0

/* Reads
 *
 *   { "layerTimes": ..., "llmInfo": ..., "model": NAME, "precision": "fp32",
 *     "optimizer": "adam", "sharedEmbedding": false }
 *
 * All but the first two is optional. "model" says which of llmInfo's models is meant, if
 * it has several (the case of letters does not matter); precision is the one that was
 * measured in, and fp32 if not given. Errors: HET_BAD_INPUT names the field. */
int het_profile_sailor_read(struct het_arena *arena, const json_t *json,
                            const struct het_profile **ret, struct het_error *err);

/* The three members that this form and the Metis format share, into `profile`. */
int het_profile_sailor_options(struct het_arena *arena, const struct het_view *root,
                               struct het_profile *profile, struct het_error *err);

/* One `[forward s, backward s, update s]`, of which the last may be missing (0). */
struct het_layer_seconds {
    double forward, backward, update;
};
int het_profile_sailor_layer(const struct het_view *view, struct het_layer_seconds *ret,
                             struct het_error *err);

#endif
