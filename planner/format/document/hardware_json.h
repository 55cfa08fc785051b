/* hardware_json.h - the hardware file (docs/planner.md, Hardware) -> struct het_hardware;
 * and those of its fields that a cluster file has as well. */
#ifndef HET_FORMAT_DOCUMENT_HARDWARE_JSON_H
#define HET_FORMAT_DOCUMENT_HARDWARE_JSON_H

#include "planner/format/json.h"
#include "planner/model/hardware.h"

/* A hardware file laid over `base`. Unknown fields are refused. */
int het_hardware_json_read(struct het_arena *arena, const json_t *json,
                           const struct het_hardware *base,
                           const struct het_hardware **ret, struct het_error *err);

/* Fields of `object`; one that is absent leaves `ret` alone. */

/* "vendor", in small letters, as vendor.h has them. */
int het_hardware_json_vendor(struct het_arena *arena, const struct het_view *object,
                             const char **ret, struct het_error *err);
/* "levels": each label once. */
int het_hardware_json_levels(struct het_arena *arena, const struct het_view *object,
                             const struct het_level **ret, size_t *ret_count,
                             struct het_error *err);
/* "network": the content of the file of curves (network_json.h); who reads files puts it
 * in the place of a name. */
int het_hardware_json_network(struct het_arena *arena, const struct het_view *object,
                              const struct het_network **ret, struct het_error *err);

#endif
