/* gauges.h - counts the content of the stores for metrics.h: GPUs by type and state, jobs
 * by state, and iteration times as predicted by plans and reported by pods. Decides
 * nothing. */
#ifndef CONTROLLER_OPERATOR_GAUGES_H
#define CONTROLLER_OPERATOR_GAUGES_H

#include "controller/base/metrics.h"
#include "controller/base/object_store.h"
#include "controller/cluster/capacity_view.h"

/* A runtime may report the seconds of its last iterations in this annotation of its own
 * pod, as a number: "0.182". */
#define ANNOTATION_STEP_SECONDS "heterotrain.io/step-seconds"

/* Counts everything again: visits each node, each job, and each pod of running jobs. */
void gauges_take(struct metrics *metrics, const struct store *store,
                 const struct capacity *capacity);

/* After a job has changed: counts a plan that replaced another ("Replaced") and a
 * candidate that was rejected ("Rejected"). */
void gauges_note_job(struct metrics *metrics, const json_t *before, const json_t *after);

#endif
