/* cluster_json.h - a cluster file -> struct het_cluster. */
#ifndef HET_FORMAT_DOCUMENT_CLUSTER_JSON_H
#define HET_FORMAT_DOCUMENT_CLUSTER_JSON_H

#include "planner/format/json.h"
#include "planner/model/cluster.h"

/* The short form (docs/planner.md, Cluster), or a Kubernetes NodeList or Node
 * (kubernetes_node.h). Facts that it lacks come from `hardware`, which must live as long
 * as the cluster. Beside the fields there an entry may have "profile" (name of its
 * type in profiles) and "workspace_gb". Where nodes of a type differ in memory the least
 * counts for all. "levels" and "network" are those of the hardware, or replace them; an
 * entry says in "levels" { LABEL: name } where it is. Unknown fields are refused. */
int het_cluster_json_read(struct het_arena *arena, const json_t *json,
                          const struct het_hardware *hardware,
                          const struct het_cluster **ret, struct het_error *err);

#endif
