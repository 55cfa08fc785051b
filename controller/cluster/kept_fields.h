/* kept_fields.h - what the store keeps of nodes and pods: as much as decisions read, so
 * that thousands of them fit a small process. Pure. The results are for watch.h's
 * trim. */
#ifndef CONTROLLER_CLUSTER_KEPT_FIELDS_H
#define CONTROLLER_CLUSTER_KEPT_FIELDS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Node annotations with longer values are not kept. */
#define KEPT_FIELDS_MAX_ANNOTATION ((size_t)256)

/* A new object with those members of `from` that `names`, which end with NULL, call. */
json_t *kept_fields_pick(const json_t *from, const char *const *names);
/* New references. Of pods that no HeteroTrainingJob controls that is the place and the
 * effective request, as pod-level resources; of those that measure (measurement.h) also
 * how they are, and what they say. */
json_t *kept_fields_node(json_t *node);
/* A number that is the same for two texts of a node only if kept_fields_node keeps the same of
 * them besides the resourceVersion: those that differ in times of heartbeats, or images,
 * need not be decoded. 0: the text is malformed. */
uint64_t kept_fields_node_digest(const char *text, size_t length);
json_t *kept_fields_pod(json_t *pod);

#endif
