/* demand.h - the GPUs that a job lacks (status.unmetDemand), for autoscalers and people
 * who can add some. Pure.
 *
 * If no plan fits a job, whatever others give up, the planner is asked again with
 * hypothetical new nodes: for at most the job's minimum of GPUs, then for twice as many
 * each time, until there is a plan. What the plan takes of the new nodes is the unmet
 * demand. New nodes are added for each type that the job may use, enough for all its
 * GPUs, each as large as the largest node of its type in the cluster. */
#ifndef CONTROLLER_PLACEMENT_DEMAND_H
#define CONTROLLER_PLACEMENT_DEMAND_H

#include "controller/decision/pass.h"

#define DEMAND_QUESTIONS 8    /* for one state of the cluster */
#define DEMAND_MAX_NODES 1024 /* new ones, in one question */
#define DEMAND_NODE_GPUS 8    /* of a new node, where the cluster has none of its type */

/* Looks for the unmet demand. `asked` is the digest of the other questions about this
 * state of the cluster that were answered with no plan. The demand found before stays
 * while the planner works and until the cluster has been quiet for debounceSeconds. */
void demand_seek(struct pass *pass, uint64_t asked);
/* Whether the last answer is to a question of demand_seek. */
bool demand_is_sought(const struct pass *pass, uint64_t asked);

/* For a running job that may grow by itself: reports what it lacks up to its maxGPUs, in
 * the type that its plan uses most (first by name where equal). Free GPUs of types that
 * it may use are not counted as missing. */
void demand_growth(struct pass *pass);

#endif
