/* kueue_admission.h - a job in one of Kueue's queues: what its pods wait for, what Kueue
 * has evicted, and what past generations still hold. Pure. Nothing here affects a job
 * that is in no queue, or a cluster without Kueue. */
#ifndef CONTROLLER_RECONCILE_KUEUE_ADMISSION_H
#define CONTROLLER_RECONCILE_KUEUE_ADMISSION_H

#include "controller/decision/pass.h"

/* Whether Kueue has admitted the whole current generation, so that its pods may be
 * placed. Always true for a job in no queue. */
bool kueue_admission_admits(const struct pass *pass);
/* Handles Kueue withdrawing the quota of the current generation, which is not a failure:
 * the generation is stopped, and a new one follows when the queue has enough GPUs again.
 * True if so; the pass is then over. */
bool kueue_admission_evicted(struct pass *pass);
/* Deletes the Workloads of past generations that have a pod which cannot end by itself
 * (never bound, or on a dead node): Kueue then releases the pods and their quota. `live`
 * is the generation that continues; 0: none. */
void kueue_admission_release(struct pass *pass, int64_t live);
/* Sets the condition QuotaReserved. */
void kueue_admission_report(struct pass *pass);

#endif
