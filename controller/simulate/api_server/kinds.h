/* kinds.h - the kinds of object that the embedded server serves: one row each, with what
 * a real server fills in on creation and what it refuses. Pure.
 *
 * Defaults and rules cover what our clients can run into. Custom resources are accepted
 * as they are (their schemas are in crds/ and a real server checks them). */
#ifndef CONTROLLER_SIMULATE_API_SERVER_KINDS_H
#define CONTROLLER_SIMULATE_API_SERVER_KINDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum name_rule { NAME_SUBDOMAIN, NAME_LABEL, NAME_LABEL_1035 };

struct kind {
    const char *group, *version; /* "", "v1" */
    const char *plural, *name;   /* "pods", "Pod" */
    bool namespaced;
    bool has_status; /* status is a subresource */
    bool is_custom;  /* a custom resource: metadata.generation follows the spec, an update
                        needs a resourceVersion, items of a list carry their kind */
    bool shows_deleted; /* a deletion answers with the object, not with a Status */
    enum name_rule name_rule;
    const char *const *fields; /* field selectors beyond metadata.name, .namespace */
    /* Fills in what a creator may omit. NULL: nothing. */
    void (*fill)(json_t *object, int64_t now_ms);
    /* Adds errors to `causes` (refusal_add_cause); `before` is NULL on creation. NULL: no
     * checks. */
    void (*check)(const json_t *before, const json_t *object, json_t *causes);
};

extern const struct kind kinds[];
extern const size_t kind_count;

/* NULL if there is no such kind. */
const struct kind *kind_find(const char *group, const char *version, const char *plural);
const struct kind *kind_find_plural(const char *plural);
/* Finds the kind by an object's apiVersion and kind. */
const struct kind *kind_of(const json_t *object);
/* "v1", "heterotrain.io/v1alpha1"; the caller frees it. */
char *kind_api_version(const struct kind *kind);
/* The fields by which a list of this kind may be selected; ends with NULL. */
const char *const *kind_selectable_fields(const struct kind *kind);

/* Fills the defaults of a new object. */
void kind_fill(const struct kind *kind, json_t *object, int64_t now_ms);
/* Checks `object` (`before`: NULL on creation). Returns a new list of causes, empty if it
 * is valid. */
json_t *kind_check(const struct kind *kind, const json_t *before, const json_t *object);

#endif
