/* profile/metis.h - a directory of Metis-format measurements -> profile. One file for
 * each (GPU type, tensor-parallel degree, micro-batch size), called
 * DeviceType.<TYPE>_tp<T>_bs<B>.json; a type may contain '-' and '_'.
 *
 *   model.num_layers, model.parameters.parameters_per_layer_bytes (of one rank),
 *   model.parameters.activation_parameters_bytes (output of a layer for B samples,
 * whole), execution_time.layer_compute_total_ms (forward and backward),
 * .optimizer_time_ms, execution_memory.layer_memory_total_mb (MiB of one GPU, optimizer
 * state included)
 *
 * Each list has an entry a layer. One entry more than model.num_layers (a final norm and
 * a head that were measured as one) belongs to the last layer.
 *
 * Times are only forward and backward together: backward is taken as two thirds, unless
 * layerTimes has them apart. Memory is fitted over the micro-batch sizes of a degree,
 * layer by layer, as fixed + samples * slope (least squares, neither below zero, both in
 * whole bytes): fixed is the training state, slope the activations. With a single size,
 * fixed is five times the parameter bytes (20 bytes a parameter, as in all files we know
 * with several sizes), at most the figure itself. Nothing depends on the order of the
 * files. */
#ifndef HET_FORMAT_PROFILE_METIS_H
#define HET_FORMAT_PROFILE_METIS_H

#include "planner/format/json.h"
#include "planner/model/profile.h"

/* Reads
 *
 *   { "files": { NAME: CONTENT, ... }, "precision": "fp32", "optimizer": "adam",
 *     "sharedEmbedding": false,
 *     "layerTimes": { TYPE: { B: { T: { LAYER: [forward s, backward s, update s] } } } }
 * }
 *
 * All but "files" is optional; precision is the one that was measured in, and fp32 if not
 * given. Errors: HET_BAD_INPUT names the file and the field. */
int het_profile_metis_read(struct het_arena *arena, const json_t *json,
                           const struct het_profile **ret, struct het_error *err);

/* Whether a file name has the form above. */
bool het_profile_metis_is_name(const char *file_name);

#endif
