/* network_json.h - JSON -> network.h, in the three forms of Sailor's published
 * measurements (docs/planner.md, Network):
 *
 *   { GPU: { N: CURVE } }                                   inside a node
 *   { "intra": { GPU: { N: CURVE } }, "inter": { GPU: { N: CURVE } } }
 *   { ZONE: { GPU: { N: { ZONE: { GPU: { N: CURVE } } } } } }     sender, then receiver
 *
 *   CURVE = [[a, b, c], most bytes a second], bandwidth in GB/s
 *
 * or a list of these, of which the first that has a curve decides. */
#ifndef HET_FORMAT_NETWORK_JSON_H
#define HET_FORMAT_NETWORK_JSON_H

#include "planner/base/arena.h"
#include "planner/model/network.h"

#include <jansson.h>

/* Errors: HET_BAD_INPUT names the place in the document. */
int het_network_read(struct het_arena *arena, const json_t *json,
                     const struct het_network **ret, struct het_error *err);

#endif
