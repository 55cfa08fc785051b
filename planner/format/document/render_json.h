/* render_json.h - what `hetplan render` prints: a plan file as one training runtime reads
 * it, as JSON. */
#ifndef HET_FORMAT_DOCUMENT_RENDER_JSON_H
#define HET_FORMAT_DOCUMENT_RENDER_JSON_H

#include "planner/render/runtime/runtime_files.h"

#include <jansson.h>

/* { "runtime", "plan" (as it is expressed for the runtime), "files": { NAME: TEXT },
 *   "pods": [ { "host", "node", "gpus", "arguments": [...], "environment": {...} } ] }
 *
 * `job->plan_hash` is filled in here. Errors: HET_BAD_INPUT for a plan that is not well
 * formed (the first violation is named); HET_NO_PLAN when the runtime cannot run it. */
int het_render_json(struct het_arena *arena, const struct het_runtime *runtime,
                    const json_t *plan_json, struct het_render_job job, json_t **ret,
                    struct het_error *err);

#endif
