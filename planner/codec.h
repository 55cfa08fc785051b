/* codec.h - JSON <-> structs of plan-format.md. Units are converted here and nowhere else
 * (GiB and MiB to bytes, GB/s to bytes/s, ms and us to seconds). What comes in is bounded
 * and checked; every error names the field (JSON path) and what to change. */
#ifndef HET_CODEC_H
#define HET_CODEC_H

#include "planner/algo.h"
#include "planner/hardware.h"

#include <jansson.h>

/* Decodes one JSON text; HET_BAD_INPUT with line and column. `what` names it in errors.
 */
int het_json_decode(const char *text, size_t length, const char *what, json_t **ret,
                    struct het_error *err);
/* Canonical text: keys sorted, no white space, shortest round-trip numbers. The caller
 * frees it. */
char *het_json_canonical(const json_t *json);

/* A hardware file laid over `base`. */
int het_codec_hardware(struct het_arena *arena, const json_t *json,
                       const struct het_hardware *base, const struct het_hardware **ret,
                       struct het_error *err);
/* The short form (plan-format.md, Cluster), or a Kubernetes NodeList (node_list.h). Facts
 * that it lacks come from `hardware`. */
int het_codec_cluster(struct het_arena *arena, const json_t *json,
                      const struct het_hardware *hardware, const struct het_cluster **ret,
                      struct het_error *err);
/* A ModelProfile or ClusterModelProfile object, or { "files": { NAME: CONTENT } } of a
 * Metis-format directory. */
int het_codec_profile(struct het_arena *arena, const json_t *json,
                      const struct het_profile **ret, struct het_error *err);
/* The "job" part of hetplan's input document, all but the batch optional:
 *
 *   { "globalBatchSize": 256, "precision": "bf16", "optimizer": "adam",
 *     "memoryHeadroomPercent": 8, "microBatchSizes": [1, 2], "minGPUs": 1, "maxGPUs": 32,
 *     "gpuTypes": [ { "name": "A100", "minGPUs": 0, "maxGPUs": 16, "preference": 0 } ],
 *     "constraints": { "dataParallel": { "min": 1, "max": 8 },
 *                      "tensorParallel": { "allowed": [1, 2] },
 *                      "pipelineParallel": { "max": 4 } },
 *     "runtime": "torchrun", "algorithm": "auto", "effort": 1000000, "seed": 1,
 *     "from": PLAN }
 *
 * With "gpuTypes" only those types are used; 0 as a maximum means no limit. Precision and
 * optimizer default to the profile's. Members of "constraints" that are not named here
 * are those of the custom resource that the controller has judged already; they are
 * ignored. */
int het_codec_workload(struct het_arena *arena, const json_t *json,
                       const struct het_profile *profile, struct het_workload *ret,
                       struct het_search_options *ret_options, struct het_error *err);

/* Reads a plan file; unbound. */
int het_codec_plan(struct het_arena *arena, const json_t *json,
                   const struct het_plan **ret, struct het_error *err);
/* A new reference. */
json_t *het_codec_plan_json(const struct het_plan *plan);
/* "sha256:" and 64 hex digits of the canonical plan without `predicted` and `search`; in
 * `arena`. */
const char *het_codec_plan_hash(struct het_arena *arena, const struct het_plan *plan);
/* rankmap.json: rank -> node, local index, pipeline, stage, replica, tp index, layers,
 * micro-batch size. A new reference. */
json_t *het_codec_rankmap(const struct het_plan *plan);

#endif
