/* scheduler.h - kube-scheduler's filters: node selector and required affinity, taints,
 * and whether the requests fit into what the node has left. Pure.
 *
 * It takes the first passing node by name and never preempts. */
#ifndef CONTROLLER_SIMULATE_SCHEDULER_H
#define CONTROLLER_SIMULATE_SCHEDULER_H

#include <jansson.h>
#include <stdbool.h>

/* `node` is NULL when none passes; `message` then says why, as the condition PodScheduled
 * does. Both are borrowed for the call. */
typedef void scheduler_verdict(void *context, json_t *pod, const char *node,
                               const char *message);

/* Finds nodes for the `pending` pods in order; each placement counts for the next pod.
 * `nodes` and `pods` are arrays of all objects; bound unfinished pods use their node's
 * resources. */
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
