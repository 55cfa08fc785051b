/* dashboard_data.h - the controller's state for the dashboard: one JSON document, built
 * from the stores and the capacity table. Pure: the same stores give the same text.
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
 *                           "lanes", "nodes" (dashboard_plan.h) },
 *                 "history": [ [REVISION, TIME, TRIGGER, PLANNER_MS, ITERATION_US,
 *                               GPUS, RETIRED, RETIRED_TIME] ] } ],
 *     "left": [NODES, JOBS] }
 *
 * TYPE is an index into "types" (-1: not known), WHY into "reasons" (why the node's GPUs
 * are unusable; -1: they are usable), JOB into "jobs" (-1: a job that is not listed).
 * OTHERS are GPUs of foreign pods. The rest of GPUS is free if WHY is -1. A node that
 * does not exist has no GPUS, but jobs may still be counted on it. ITERATION_US is 0 if
 * not known. "left" counts what did not fit.
 *
 * Bounds: DASHBOARD_DATA_NODES nodes, DASHBOARD_DATA_JOBS jobs, DASHBOARD_DATA_HISTORY
 * plans of each, DASHBOARD_DATA_MESSAGE_BYTES of a message. Texts are unchecked user
 * input. */
#ifndef CONTROLLER_OPERATOR_DASHBOARD_DATA_H
#define CONTROLLER_OPERATOR_DASHBOARD_DATA_H

#include "controller/decision/snapshot.h"

enum {
    DASHBOARD_DATA_NODES = 10000,
    DASHBOARD_DATA_JOBS = 1000,
    DASHBOARD_DATA_HISTORY = 6,
    DASHBOARD_DATA_MESSAGE_BYTES = 400,
    DASHBOARD_DATA_PLAN_BYTES = 20000, /* of plans read for one document */
    DASHBOARD_DATA_DRAWN = 4,          /* plans drawn for one document */
};

/* Caches plans, so that each is read once. */
struct dashboard_data;

struct dashboard_data *dashboard_data_new(void);
void dashboard_data_free(struct dashboard_data *overview);

/* Builds the document; the caller frees it. It shows the lanes of the plans read so far;
 * each call reads up to DASHBOARD_DATA_PLAN_BYTES and DASHBOARD_DATA_DRAWN more plans,
 * newest first. `sources->memo` is not used. */
char *dashboard_data_build(struct dashboard_data *overview,
                           const struct snapshot_sources *sources, size_t *ret_length);
/* Whether the last document lacks a plan that can still be read. */
bool dashboard_data_is_partial(const struct dashboard_data *overview);

#endif
