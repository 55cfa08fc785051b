/* what_if.h - asks the planner about GPUs that are not free: those of other jobs
 * (preemption.h), and those that do not exist yet (demand.h). The last answer is kept
 * beside the one about free GPUs. Pure. */
#ifndef CONTROLLER_PLACEMENT_WHAT_IF_H
#define CONTROLLER_PLACEMENT_WHAT_IF_H

#include "controller/decision/pass.h"

struct what_if {
    const struct capacity_node *nodes; /* by name */
    size_t node_count;
    int64_t max_gpus; /* of the plan; 0: no limit */
    uint64_t digest;  /* of all this and the input */
};

/* Asks the question, unless the planner already works for the job. If the planner works
 * for others, registers that the job wants to ask (pass_may_ask). */
void what_if_ask(struct pass *pass, const struct what_if *question, bool is_urgent);
/* Whether the last answer is for this question. */
bool what_if_is_answered(const struct pass *pass, const struct what_if *question);
/* The plan in the answer; NULL: none, or one that uses other nodes than those offered or
 * cannot load the job's checkpoint. */
const struct het_plan *what_if_plan(struct pass *pass, const struct what_if *question);

#endif
