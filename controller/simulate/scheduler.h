/* scheduler.h - kube-scheduler's filters: node selector and required affinity, taints,
 * and whether the requests fit into what the node has left. Pure.
 *
 * Of the nodes that pass, the first by name is taken; there is no preemption. */
#ifndef CONTROLLER_SIMULATE_SCHEDULER_H
#define CONTROLLER_SIMULATE_SCHEDULER_H

#include <jansson.h>
#include <stdbool.h>

/* `node` is NULL when none passes; `message` then says why, as the condition PodScheduled
 * does. Both are borrowed for the call. */
typedef void scheduler_verdict(void *context, json_t *pod, const char *node,
                               const char *message);

/* Finds nodes for `pending` pods in their order, each counting at once for the next.
 * `nodes` and `pods` are arrays of all objects; pods that are bound and not finished use
 * up their node. */
void scheduler_run(const json_t *nodes, const json_t *pods, const json_t *pending,
                   scheduler_verdict *verdict, void *context);

/* Whether one of a pod's tolerations (an array, may be NULL) tolerates `taint`; then
 * `ret_toleration` (may be NULL) is the one. */
bool scheduler_tolerates(const json_t *tolerations, const json_t *taint,
                         json_t **ret_toleration);
/* Thousandths of each resource that `pod` requests: {"cpu": 500, "pods": 1000}. Sum of
 * the containers, or the largest init container if that is more, plus overhead. */
json_t *scheduler_requests(const json_t *pod);

#endif
