/* node_selector.h - which nodes a selector admits, by the rules of Kubernetes
 * (k8s.io/component-helpers scheduling/corev1/nodeaffinity, apimachinery
 * labels.Requirement). Pure.
 *
 * A v1.NodeSelector is { "nodeSelectorTerms": [ ... ] }: the terms are alternatives, all
 * matchExpressions and matchFields of one term must hold, and a term without any admits
 * no node. matchFields supports only metadata.name, with In and NotIn. */
#ifndef CONTROLLER_JOB_NODE_SELECTOR_H
#define CONTROLLER_JOB_NODE_SELECTOR_H

#include "planner/modules.h"

#include <jansson.h>
#include <stdbool.h>

/* The most terms of a selector joined from several. */
#define NODE_SELECTOR_MAX_TERMS ((size_t)256)

/* Whether `node` (a Node object) has all of `labels` ({ KEY: VALUE }; NULL: any node). */
bool node_selector_matches_labels(const json_t *labels, const json_t *node);
/* Whether `selector` admits `node`. NULL, and an object whose terms are absent or null,
 * admit all nodes; an empty list of terms admits none. */
bool node_selector_matches(const json_t *selector, const json_t *node);

/* Refuses what the API server would: unknown operators, values invalid for the operator,
 * fields other than metadata.name. Errors: HET_BAD_INPUT names the path below `what`. */
int node_selector_check(const json_t *selector, const char *what, struct het_error *err);

/* How many terms node_selector_join makes. */
size_t node_selector_join_count(const json_t *a, const json_t *b);
/* A selector that admits the node `name` if both selectors (NULL: any node) admit it and
 * it has all of `labels` (NULL: any). It joins each term of one with each of the other,
 * with the name first in matchFields. Returns a new reference. The result may have at
 * most NODE_SELECTOR_MAX_TERMS terms. */
json_t *node_selector_join(const json_t *a, const json_t *b, const json_t *labels,
                           const char *name);

#endif
