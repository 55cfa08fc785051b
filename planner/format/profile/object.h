/* object.h - a profile -> the ModelProfile object that says the same, for
 * profiles that were read from measurements of another form, or estimated.
 *
 * het_profile_model_read of the object gives the same sums of times and bytes, to the
 * last bit, so that it leads to the same plans. A profile holds sums over layers only.
 * The time of a layer is the shortest decimal number of microseconds that leads from sum
 * to sum; layers in a row that can all have the same ones at each measured point, and
 * have the same sizes, become one layer group. Bytes are whole numbers there, as the
 * readers leave them.
 *
 * Profiles with workspace or selective recomputation have no form but ModelProfile, and
 * are not written. */
#ifndef HET_FORMAT_PROFILE_OBJECT_H
#define HET_FORMAT_PROFILE_OBJECT_H

#include "planner/model/profile.h"

#include <jansson.h>

/* What the object says and the profile does not. */
struct het_profile_facts {
    const char *name;  /* of the object */
    const char *ns;    /* NULL: it has none */
    const char *model; /* for people; NULL: the profile's name of it, or the object's */
    uint32_t sequence; /* tokens of a sample; 0: not said */
};

/* A new reference. Errors: HET_BAD_INPUT, where the schema of ModelProfile has no room:
 * more than 64 layer groups, 32 GPU types, 16 degrees; a degree above 64, a micro-batch
 * above 4096, a step above a day; a name that is none of Kubernetes'; a distributed
 * optimizer. */
int het_profile_object(const struct het_profile *profile,
                       const struct het_profile_facts *facts, json_t **ret,
                       struct het_error *err);

#endif
