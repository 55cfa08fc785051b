/* hardware_map.h - reads the hardware settings from the key `hardware.json` of the
 * ConfigMap that --hardware-configmap names. Pure. */
#ifndef CONTROLLER_CLUSTER_HARDWARE_MAP_H
#define CONTROLLER_CLUSTER_HARDWARE_MAP_H

#include "planner/modules.h"

#include <jansson.h>

/* The settings in the form of het_hardware_json_read. Curves that they name by another
 * key of the ConfigMap are inserted. Returns a new reference. Errors: HET_BAD_INPUT. */
int hardware_map_read(const json_t *config_map, json_t **ret, struct het_error *err);

#endif
