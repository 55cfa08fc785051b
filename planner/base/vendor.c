#include "planner/base/vendor.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

#define NVIDIA "nvidia"
#define AMD    "amd"
#define INTEL  "intel"
#define HABANA "habana"

const char *het_vendor_of_resource(const char *resource)
{
    static const struct {
        const char *domain, *vendor;
    } domains[] = { { "nvidia.com", NVIDIA },
                    { "amd.com", AMD },
                    { "gpu.intel.com", INTEL },
                    { "habana.ai", HABANA } };
    size_t length = strcspn(resource, "/");
    for (size_t i = 0; i < COUNT(domains); i++)
        if (strlen(domains[i].domain) == length &&
            !strncmp(domains[i].domain, resource, length))
            return domains[i].vendor;
    return NULL;
}

const char *het_vendor_of_type(const char *type)
{
    /* Beginnings of names; `number`: digits follow. */
    static const struct {
        const char *begins, *vendor;
        bool number;
    } names[] = {
        { "AMD", AMD, false },    { "Instinct", AMD, false }, { "Radeon", AMD, false },
        { "MI", AMD, true },      { "Gaudi", HABANA, false }, { "Habana", HABANA, false },
        { "HL-", HABANA, true },  { "Intel", INTEL, false },  { "Max-", INTEL, true },
        { "Flex-", INTEL, true },
    };
    for (size_t i = 0; i < COUNT(names); i++) {
        size_t length = strlen(names[i].begins);
        if (!strncasecmp(type, names[i].begins, length) &&
            (!names[i].number || isdigit((unsigned char)type[length])))
            return names[i].vendor;
    }
    return NVIDIA;
}

const char *het_vendor_title(const char *vendor)
{
    static const char *const titles[][2] = {
        { NVIDIA, "NVIDIA" }, { AMD, "AMD" }, { INTEL, "Intel" }, { HABANA, "Habana" }
    };
    for (size_t i = 0; i < COUNT(titles); i++)
        if (!strcmp(titles[i][0], vendor))
            return titles[i][1];
    return vendor;
}
