/* prediction_json.h - what a plan predicts of itself ("predicted" of a plan file) <->
 * JSON; and members of it, which `hetplan cost` prints as well. What is written is a new
 * reference. */
#ifndef HET_FORMAT_DOCUMENT_PREDICTION_JSON_H
#define HET_FORMAT_DOCUMENT_PREDICTION_JSON_H

#include "planner/format/json.h"
#include "planner/model/plan.h"

/* Member "predicted" of a plan file, if it is there. */
int het_prediction_json_read(struct het_arena *arena, const struct het_view *plan,
                             struct het_prediction *ret, struct het_error *err);
/* All but predicted.stable, which is a plan of its own. */
json_t *het_prediction_json(const struct het_prediction *predicted);

/* The plan's bandwidths that are neither measured nor stated. */
json_t *het_prediction_json_links(const struct het_assumed_link *links, size_t count);
json_t *het_prediction_json_parts(double pipeline_s, double gradient_sync_s,
                                  double optimizer_s);
/* Where not everything was measured, says so. */
void het_prediction_json_add_origin(json_t *object, enum het_profile_origin origin,
                                    bool extrapolated);
json_t *het_prediction_json_peak_memory(const struct het_peak_memory *peaks, size_t count,
                                        bool with_parts);
/* { "seconds", "writeSeconds", "bottleneck": { "resource" }, "bytes": { "local", "peer",
 * "cloud", "state" }, "ranksKept", "rankCount" }. */
json_t *het_prediction_json_migration(const struct het_migration *migration);

#endif
