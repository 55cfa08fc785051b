/* what_if.h - asks the planner about GPUs that are not free: those of other jobs
 * (claim.h), and such as are not there yet (demand.h). The last answer is remembered
 * beside that about what is free. Pure. */
#ifndef CONTROLLER_PLACEMENT_WHAT_IF_H
#define CONTROLLER_PLACEMENT_WHAT_IF_H

#include "controller/decision/pass.h"

struct what_if {
    const struct capacity_node *nodes; /* in the order of their names */
    size_t node_count;
    int64_t max_gpus; /* of the plan; 0: as many as there are */
    uint64_t digest;  /* of all this, and of the input */
};

/* Asks, unless the planner is at work for the job; or says that it wants to, if the
 * planner is at work for others (pass_may_ask). */
void what_if_ask(struct pass *pass, const struct what_if *question, bool is_urgent);
/* Whether the last answer is to this question. */
bool what_if_is_answered(const struct pass *pass, const struct what_if *question);
/* The plan that it was answered with; NULL: with none, or with one that does not keep to
 * the nodes it was offered or cannot load the job's checkpoint. */
const struct het_plan *what_if_plan(struct pass *pass, const struct what_if *question);

#endif
