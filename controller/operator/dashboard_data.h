/* dashboard_data.h - what the controller knows, as the dashboard shows it: one JSON document,
 * out of the stores and the table of capacity. Pure: the same stores give the same text.
 *
 *   { "version": 1,
 *     "nodes": [ [NAME, TYPE, GPUS, WHY, OTHERS, JOB, GPUS, JOB, GPUS, ...] ],
 *     "types": [...], "reasons": [...],
 *     "jobs": [ { "namespace", "name", "state", "created", "gpus", "limits": [MIN, MAX],
 *                 "algorithm",  (asked for)
 *                 "pods", "demand": [TYPE, GPUS, ...],
 *                 "conditions": [ [TYPE, STATUS, REASON, MESSAGE, TIME] ],
 *                 "decision": status.lastReplanDecision, "candidate": its summary,
 *                 "plan": { "revision", "hash", "algorithm", "summary", "trigger",
 *                           "time", "us": [ITERATION, BOUND, PIPELINE, GRADIENTS, STEP],
 *                           "samples", "estimated", "types": [TYPE, GPUS, ...],
 *                           "lanes", "nodes" (overview_plan.h) },
 *                 "history": [ [REVISION, TIME, TRIGGER, PLANNER_MS, ITERATION_US,
 *                               GPUS, RETIRED, RETIRED_TIME] ] } ],
 *     "left": [NODES, JOBS] }
 *
 * TYPE counts in "types" (-1: not known), WHY in "reasons" (why none of its GPUs can be
 * had; -1: they can), JOB in "jobs" (-1: one that is not listed), OTHERS are GPUs of pods
 * that are nobody's here. What is left over of GPUS is free, if WHY is -1. A node that is
 * not there has no GPUS, and jobs are still counted on it. ITERATION_US is 0 where it is
 * not known. "left" counts what did not fit.
 *
 * Bounds: DASHBOARD_DATA_NODES nodes, DASHBOARD_DATA_JOBS jobs, DASHBOARD_DATA_HISTORY plans of each,
 * DASHBOARD_DATA_MESSAGE_BYTES of a message. Texts are whatever people wrote. */
#ifndef CONTROLLER_OPERATOR_DASHBOARD_DATA_H
#define CONTROLLER_OPERATOR_DASHBOARD_DATA_H

#include "controller/decision/snapshot.h"

enum {
    DASHBOARD_DATA_NODES = 10000,
    DASHBOARD_DATA_JOBS = 1000,
    DASHBOARD_DATA_HISTORY = 6,
    DASHBOARD_DATA_MESSAGE_BYTES = 400,
    DASHBOARD_DATA_PLAN_BYTES = 20000, /* of plans that are read for one document */
    DASHBOARD_DATA_DRAWN = 4,          /* plans that are drawn for one */
};

/* Plans that have been read, so that each is read once. */
struct dashboard_data;

struct dashboard_data *dashboard_data_new(void);
void dashboard_data_free(struct dashboard_data *overview);

/* The document; the caller frees. It shows the lanes of the plans that have been read so
 * far: DASHBOARD_DATA_PLAN_BYTES and DASHBOARD_DATA_DRAWN plans more each time, the newest ones
 * first. `sources->memo` is not used. */
char *dashboard_data_build(struct dashboard_data *overview,
                           const struct snapshot_sources *sources, size_t *ret_length);
/* Whether the document that was built last lacks a plan that can be read. */
bool dashboard_data_is_partial(const struct dashboard_data *overview);

#endif
