/* hardware_map.h - the hardware settings that a ConfigMap holds, under `hardware.json`:
 * what --hardware-configmap names. Pure. */
#ifndef CONTROLLER_CLUSTER_HARDWARE_MAP_H
#define CONTROLLER_CLUSTER_HARDWARE_MAP_H

#include "planner/modules.h"

#include <jansson.h>

/* The settings, as het_hardware_json_read reads them; curves that they name by another key of
 * the ConfigMap are in their place. A new reference. Errors: HET_BAD_INPUT. */
int hardware_map_read(const json_t *config_map, json_t **ret, struct het_error *err);

#endif
