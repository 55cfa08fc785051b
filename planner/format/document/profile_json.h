/* profile_json.h - a profile in any of its forms -> struct het_profile. */
#ifndef HET_FORMAT_DOCUMENT_PROFILE_JSON_H
#define HET_FORMAT_DOCUMENT_PROFILE_JSON_H

#include "planner/model/profile.h"

#include <jansson.h>

/* A ModelProfile or ClusterModelProfile object (profile/model.h), { "files": { NAME:
 * CONTENT } } of a Metis-format directory (profile/metis.h), or { "layerTimes", "llmInfo"
 * } of one in Sailor's form (profile/sailor.h). */
int het_profile_json_read(struct het_arena *arena, const json_t *json,
                          const struct het_profile **ret, struct het_error *err);

#endif
