/* model.h - a ModelProfile or ClusterModelProfile object -> profile. What its
 * fields mean stands in crds/heterotrain.io_modelprofiles.yaml.
 *
 * Bytes that a measurement keeps are turned into bytes a sample; of several types and
 * sizes the most counts. A layer group that was not measured with selective recomputation
 * beside others of its (type, degree, size) is without it what it is with it.
 * Measurements with full recomputation are left aside: it is the forward pass again. */
#ifndef HET_FORMAT_PROFILE_MODEL_H
#define HET_FORMAT_PROFILE_MODEL_H

#include "planner/format/json.h"
#include "planner/model/hardware.h"
#include "planner/model/profile.h"

/* Errors: HET_BAD_INPUT names the field. */
int het_profile_model_read(struct het_arena *arena, const json_t *json,
                           const struct het_profile **ret, struct het_error *err);

/* `known` with the memory and prices that the object says of its GPU types. What is
 * malformed is passed over (het_profile_model_read refuses it). */
const struct het_hardware *het_profile_model_hardware(struct het_arena *arena,
                                                      const json_t *json,
                                                      const struct het_hardware *known);

#endif
