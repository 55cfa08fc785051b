/* demand.h - GPUs that are missing (status.unmetDemand), for whoever can add some. Pure.
 *
 * For a job that no plan fits, whatever others give up, the planner is asked with new
 * nodes added: for at most as many GPUs as its minimum, then twice as many each time,
 * until there is a plan. What that takes of the new nodes is missing: with it, the job
 * would run. The new nodes are of each type that the job may use, enough for all its
 * GPUs, and as large as the largest node of the type in the cluster. */
#ifndef CONTROLLER_PLACEMENT_DEMAND_H
#define CONTROLLER_PLACEMENT_DEMAND_H

#include "controller/decision/pass.h"

#define DEMAND_QUESTIONS 8    /* about one state of the cluster */
#define DEMAND_MAX_NODES 1024 /* new ones, in one question */
#define DEMAND_NODE_GPUS 8    /* of a new node, where the cluster has none of its type */

/* Looks for it. `asked` is the digest of what else was asked about this state of the
 * cluster, and answered with no. What was found before stands while the planner is at
 * work, and until the cluster has been quiet for debounceSeconds. */
void demand_seek(struct pass *pass, uint64_t asked);
/* Whether the last answer is to a question of demand_seek. */
bool demand_is_sought(const struct pass *pass, uint64_t asked);

/* Of a job that runs and may grow by itself: what is missing up to its maxGPUs, of the
 * type that its plan uses most (of equals the first by name). GPUs of types that it may
 * use and that are free are not missing. */
void demand_growth(struct pass *pass);

#endif
