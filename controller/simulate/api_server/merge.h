/* merge.h - the ways of writing a part of an object: JSON merge patch, JSON patch, and
 * server-side apply. Pure. */
#ifndef CONTROLLER_SIMULATE_API_SERVER_MERGE_H
#define CONTROLLER_SIMULATE_API_SERVER_MERGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* RFC 7396: a new object, `target` with `patch` merged in; null removes a field. */
json_t *merge_patch(const json_t *target, json_t *patch);

/* RFC 6902: a new object, `target` after the operations of `patch` (an array) in their
 * order; "test", "add", "remove" and "replace" are served. NULL if an operation is
 * impossible or a test fails; `ret_why` (freed by the caller) then says which. */
json_t *merge_operations(const json_t *target, const json_t *patch, char **ret_why);

/* Merges what `manager` applies into `live` (an object, may be empty). Returns a new
 * object with updated metadata.managedFields.
 *
 *   - maps merge field by field; lists that Kubernetes keys (conditions by type, env and
 *     containers by name, ownerReferences by uid, ...) merge element by element;
 *     finalizers merge as a set; every other list is replaced whole
 *   - what the manager applied before and no longer does is removed, unless another
 *     manager applied it too
 *   - a field that another manager applied with another value is a conflict: without
 *     `force` the result is NULL and `ret_conflict` (freed by the caller) names the
 *     field; with it the other manager loses the field
 *
 * `subresource` is "" or "status": one manager has one entry for each. Differs from a
 * real server: only managers that apply are tracked; a field written by other means stays
 * owned by the manager that applied it. */
json_t *merge_apply(const json_t *live, json_t *applied, const char *manager,
                    const char *subresource, bool force, int64_t now_ms,
                    char **ret_conflict);

#endif
