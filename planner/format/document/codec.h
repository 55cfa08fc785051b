/* codec.h - JSON <-> the structs of the planner (docs/planner.md, Files). Units are
 * converted here and nowhere else (GiB and MiB to bytes, GB/s to bytes/s, ms and us to
 * seconds). What comes in is bounded and checked; every error names the field (JSON path)
 * and what to change. Unknown fields of what people write (cluster, hardware, job) are
 * refused; plan files may carry more than is read here. */
#ifndef HET_FORMAT_DOCUMENT_CODEC_H
#define HET_FORMAT_DOCUMENT_CODEC_H

#include "planner/format/json.h"
#include "planner/model/hardware.h"
#include "planner/search/search.h"

/* A hardware file laid over `base`. "network" is the content of the file of curves
 * (network_json.h); who reads files puts it in the place of a name. */
int het_codec_hardware(struct het_arena *arena, const json_t *json,
                       const struct het_hardware *base, const struct het_hardware **ret,
                       struct het_error *err);
/* The short form (docs/planner.md, Cluster), or a Kubernetes NodeList or Node
 * (kubernetes_node.h). Facts that it lacks come from `hardware`, which must live as long
 * as the cluster. Beside the fields there an entry may have "profile" (name of its
 * type in profiles) and "workspace_gb". Where nodes of a type differ in memory the least
 * counts for all. "levels" and "network" are those of the hardware, or replace them; an
 * entry says in "levels" { LABEL: name } where it is. */
int het_codec_cluster(struct het_arena *arena, const json_t *json,
                      const struct het_hardware *hardware, const struct het_cluster **ret,
                      struct het_error *err);
/* A ModelProfile or ClusterModelProfile object (profile/model.h), { "files": { NAME:
 * CONTENT } } of a Metis-format directory (profile/metis.h), or { "layerTimes", "llmInfo"
 * } of one in Sailor's form (profile/sailor.h). */
int het_codec_profile(struct het_arena *arena, const json_t *json,
                      const struct het_profile **ret, struct het_error *err);
/* The "job" part of hetplan's input document, all but the batch optional:
 *
 *   { "globalBatchSize": 256, "precision": "bf16", "optimizer": "adam",
 *     "memoryHeadroomPercent": 8, "microBatchSizes": [1, 2], "minGPUs": 1, "maxGPUs": 32,
 *     "gpuTypes": [ { "name": "A100", "minGPUs": 0, "maxGPUs": 16, "preference": 0 } ],
 *     "constraints": { "dataParallel": { "min": 1, "max": 8 },
 *                      "tensorParallel": { "allowed": [1, 2] },
 *                      "pipelineParallel": { "max": 4 },
 *                      "uniformTensorParallel": false, "nonUniformDataParallel": true,
 *                      "recompute": "Auto" },
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
 * search.statistics. "recompute" is Auto or None; "constraints" may
 * hold "memoryHeadroomPercent", as in the custom resource, which is passed over. Any
 * other unknown member is refused. */
int het_codec_workload(struct het_arena *arena, const json_t *json,
                       const struct het_profile *profile, struct het_workload *ret,
                       struct het_search_options *ret_options, struct het_error *err);

/* Reads a plan file; unbound. Another apiVersion, kind or schedule than
 * het_codec_plan_json writes is refused; they may be left out. What is out of order is
 * the checker's question; here only what cannot be held in the struct is refused. What it
 * says of itself is marked as such (predicted.is_read). */
int het_codec_plan(struct het_arena *arena, const json_t *json,
                   const struct het_plan **ret, struct het_error *err);
/* The same of a JSON text; `what` names it in errors. */
int het_codec_plan_text(struct het_arena *arena, const char *text, const char *what,
                        const struct het_plan **ret, struct het_error *err);
/* A new reference. */
json_t *het_codec_plan_json(const struct het_plan *plan);
/* Members of `predicted`, which `hetplan cost` prints as well. New references; what
 * het_codec_add_origin says is left out where everything was measured. */
/* A list of what the plan's bandwidths are that nobody measured or stated: a new
 * reference. */
json_t *het_codec_assumed_links_json(const struct het_assumed_link *links, size_t count);
/* GPUs that are not used, as [ { "reason", "gpuType", "detail", "gpus", "nodeCount",
 * "nodes", "message" } ], "nodes" with the first HET_UNUSED_NODES names: a new reference;
 * and back, added to `ret`, with strings in `arena`. */
json_t *het_codec_unused_json(const struct het_unused *groups, size_t count);
int het_codec_unused(struct het_arena *arena, const struct het_view *list,
                     struct het_unused_list *ret, struct het_error *err);
json_t *het_codec_parts_json(double pipeline_s, double gradient_sync_s,
                             double optimizer_s);
void het_codec_add_origin(json_t *object, enum het_profile_origin origin,
                          bool extrapolated);
json_t *het_codec_peak_memory_json(const struct het_peak_memory *peaks, size_t count,
                                   bool with_parts);
/* { "seconds", "writeSeconds", "bottleneck": { "resource" }, "bytes": { "local", "peer",
 * "cloud", "state" }, "ranksKept", "rankCount" }. */
json_t *het_codec_migration_json(const struct het_migration *migration);
/* "sha256:" and 64 hex digits of the canonical plan without `unused`, `predicted` and
 * `search`; in `arena`. */
const char *het_codec_plan_hash(struct het_arena *arena, const struct het_plan *plan);
/* rankmap.json: { "worldSize", "ranks": [ { "rank", "node", "localIndex", "gpuType",
 * "pipeline", "stage", "replica", "tensorParallelIndex", "tensorParallel", "firstLayer",
 * "layerCount", "microBatchSize" }, ... ] }, in the order of ranks. A new reference. */
json_t *het_codec_rankmap(const struct het_plan *plan);

#endif
