#include "controller/cluster/hardware_map.h"

#include <string.h>

#define HARDWARE_KEY "hardware.json"

/* Curves in a key of their own: their content takes the place of the key's name. */
static int add_network(json_t *hardware, const json_t *data, struct het_error *err)
{
    const char *key = json_string_value(json_object_get(hardware, "network"));
    json_t *network;
    if (!key)
        return 0;
    const char *text = json_string_value(json_object_get(data, key));
    if (!text)
        return het_fail(err, HET_BAD_INPUT,
                        HARDWARE_KEY ": network: there is no data.%.60s", key);
    if (het_json_decode(text, strlen(text), "network", &network, err) < 0)
        return -1;
    json_object_set_new(hardware, "network", network);
    return 0;
}

int hardware_map_read(const json_t *config_map, json_t **ret, struct het_error *err)
{
    const json_t *data = json_object_get(config_map, "data");
    const char *text = json_string_value(json_object_get(data, HARDWARE_KEY));
    json_auto_t *json = NULL;
    if (!text)
        return het_fail(err, HET_BAD_INPUT, "there is no data." HARDWARE_KEY);
    if (het_json_decode(text, strlen(text), HARDWARE_KEY, &json, err) < 0 ||
        add_network(json, data, err) < 0)
        return -1;
    *ret = TAKE(json);
    return 0;
}
