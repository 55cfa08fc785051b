/* dashboard_plan.h - a plan as the dashboard draws it: lanes of pipelines, with the time
 * and place of each stage. Pure.
 *
 *   { "nodes": ["a100-0", ...],      of the plan, in the order of its ranks
 *     "lanes": [
 *       { "microbatches": 24,
 *         "stages": [ { "layers": [FIRST, COUNT], "recompute": "full",   (left out: none)
 *                       "gpus": [TYPE, REPLICAS, TP, MICROBATCH, TYPE, ...],
 *                       "us": [FORWARD, BACKWARD, SEND] } ],  (left out: not known)
 *         "at": [ [ [NODE, FIRST_GPU, GPUS, NODE, ...], ... ] ] } ] }
 *
 * A lane stands for consecutive equal pipelines, one per entry of "at"; an entry has a
 * list for each stage. NODE is an index into "nodes", FIRST_GPU one into the job's own
 * GPUs on that node. FORWARD, BACKWARD and SEND are microseconds per micro-batch. */
#ifndef CONTROLLER_OPERATOR_DASHBOARD_PLAN_H
#define CONTROLLER_OPERATOR_DASHBOARD_PLAN_H

#include "planner/modules.h"

#include <jansson.h>

/* `times` by pipeline and stage (het_question_stage_times); NULL: not known. A new
 * reference. */
json_t *dashboard_plan_json(struct het_arena *arena, const struct het_plan *plan,
                            const struct het_stage_parts *times);

#endif
