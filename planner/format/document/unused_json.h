/* unused_json.h - GPUs that are not used <-> [ { "reason", "gpuType", "detail", "gpus",
 * "nodeCount", "nodes", "message" } ], "nodes" with the first HET_UNUSED_NODES names. */
#ifndef HET_FORMAT_DOCUMENT_UNUSED_JSON_H
#define HET_FORMAT_DOCUMENT_UNUSED_JSON_H

#include "planner/format/json.h"
#include "planner/model/unused_gpus.h"

/* Adds the list to `ret`, with strings in `arena`. */
int het_unused_json_read(struct het_arena *arena, const struct het_view *list,
                         struct het_unused_list *ret, struct het_error *err);
/* A new reference. */
json_t *het_unused_json(const struct het_unused *groups, size_t count);

#endif
