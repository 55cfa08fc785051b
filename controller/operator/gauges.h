/* gauges.h - what is in the stores, counted for metrics.h: GPUs by type and state, jobs
 * by state, and what their iterations take, as plans say and as pods do. Decides
 * nothing. */
#ifndef CONTROLLER_OPERATOR_GAUGES_H
#define CONTROLLER_OPERATOR_GAUGES_H

#include "controller/base/metrics.h"
#include "controller/base/object_store.h"
#include "controller/cluster/capacity_view.h"

/* A runtime may write the seconds of its last iterations there, on its own pod, as a
 * number: "0.182". */
#define ANNOTATION_STEP_SECONDS "heterotrain.io/step-seconds"

/* Counts all anew. One look at each node and each job, and at each pod of those that
 * run. */
void gauges_take(struct metrics *metrics, const struct store *store,
                 const struct capacity *capacity);

/* A job changed: counts a plan that took the place of another one ("Replaced"), and a
 * better one that was turned down ("Rejected"). */
void gauges_note_job(struct metrics *metrics, const json_t *before, const json_t *after);

#endif
