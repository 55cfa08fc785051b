/* kept_fields.h - the fields of nodes and pods that the store keeps: only those that
 * decisions read, so that thousands of objects fit a small process. Pure. watch.h's trim
 * uses them. */
#ifndef CONTROLLER_CLUSTER_KEPT_FIELDS_H
#define CONTROLLER_CLUSTER_KEPT_FIELDS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Node annotations with longer values are not kept. */
#define KEPT_FIELDS_MAX_ANNOTATION ((size_t)256)

/* A new object with the members of `from` listed in `names`, which ends with NULL. */
json_t *kept_fields_pick(const json_t *from, const char *const *names);
/* Return new references. For pods that no HeteroTrainingJob controls, kept_fields_pod
 * keeps the place and the effective request, as pod-level resources; for measuring pods
 * (measurement.h) also their state and result. */
json_t *kept_fields_node(json_t *node);
/* A digest that is equal for two texts of a node only if kept_fields_node keeps the same
 * of both, apart from the resourceVersion. Texts that differ only in heartbeat times or
 * images need not be decoded. 0: the text is malformed. */
uint64_t kept_fields_node_digest(const char *text, size_t length);
json_t *kept_fields_pod(json_t *pod);

#endif
