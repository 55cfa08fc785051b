/* workload_json.h - the "job" part of hetplan's input document -> what is trained, and
 * how the plan is searched. */
#ifndef HET_FORMAT_DOCUMENT_WORKLOAD_JSON_H
#define HET_FORMAT_DOCUMENT_WORKLOAD_JSON_H

#include "planner/format/json.h"
#include "planner/search/search.h"

/* All but the batch is optional:
 *
 *   { "globalBatchSize": 256, "precision": "bf16", "optimizer": "adam",
 *     "memoryHeadroomPercent": 8, "microBatchSizes": [1, 2], "minGPUs": 1, "maxGPUs": 32,
 *     "gpuTypes": [ { "name": "A100", "minGPUs": 0, "maxGPUs": 16, "preference": 0 } ],
 *     "constraints": { "dataParallel": { "minReplicas": 1, "maxReplicas": 8,
 *                                        "sharePolicy": "Weighted" },
 *                      "tensorParallel": { "allowedDegrees": [1, 2],
 *                                          "degreePolicy": "Mixed" },
 *                      "pipelineParallel": { "maxStages": 4 }, "recompute": "Auto" },
 *     "extrapolate": 1, "runtime": "torchrun", "algorithm": "auto", "effort": 1000000,
 * "seed": 1, "from": PLAN }
 *
 * "stateReserveBytes" is -1 in `ret` where it is not given, which keeps nothing in
 * reserve. With "gpuTypes" only those types are used; 0 as a maximum means no limit.
 * Precision and optimizer default to the profile's; another precision than the profile's
 * is refused, as its times would be wrong. "metisVariance", "metisPermute", "metisSizes"
 * (auto, powers, any), "metisRows" (types, mixed), "memoryModel" (own, metis),
 * "ampSpeeds" (own, mean), "ampSends" (exposed, hidden) and "dittoFolding" (plain,
 * communication, none) are options of those algorithms (search.h); "statistics" asks for
 * search.statistics. "sharePolicy" is Weighted or Equal, "degreePolicy" Mixed or Uniform,
 * "recompute" Auto or None; "constraints" may
 * hold "memoryHeadroomPercent", as in the custom resource, which is passed over. Any
 * other unknown member is refused. */
int het_workload_json_read(struct het_arena *arena, const json_t *json,
                           const struct het_profile *profile, struct het_workload *ret,
                           struct het_search_options *ret_options, struct het_error *err);

#endif
