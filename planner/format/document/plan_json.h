/* plan_json.h - plan files and rank maps <-> struct het_plan. */
#ifndef HET_FORMAT_DOCUMENT_PLAN_JSON_H
#define HET_FORMAT_DOCUMENT_PLAN_JSON_H

#include "planner/format/json.h"
#include "planner/model/plan.h"

/* Reads a plan file; unbound. Another apiVersion, kind or schedule than
 * het_plan_json writes is refused; they may be left out. What is out of order is
 * the checker's question; here only what cannot be held in the struct is refused. What it
 * says of itself is marked as such (predicted.is_read). */
int het_plan_json_read(struct het_arena *arena, const json_t *json,
                       const struct het_plan **ret, struct het_error *err);
/* The same of a JSON text; `what` names it in errors. */
int het_plan_json_text(struct het_arena *arena, const char *text, const char *what,
                       const struct het_plan **ret, struct het_error *err);
/* A new reference. */
json_t *het_plan_json(const struct het_plan *plan);
/* "sha256:" and 64 hex digits of the canonical plan without `unused`, `predicted` and
 * `search`; in `arena`. */
const char *het_plan_json_hash(struct het_arena *arena, const struct het_plan *plan);
/* rankmap.json: { "worldSize", "ranks": [ { "rank", "node", "localIndex", "gpuType",
 * "pipeline", "stage", "replica", "tensorParallelIndex", "tensorParallel", "firstLayer",
 * "layerCount", "microBatchSize" }, ... ] }, in the order of ranks. A new reference. */
json_t *het_plan_json_rankmap(const struct het_plan *plan);

#endif
