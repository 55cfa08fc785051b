/* kueue_admission.h - a job in a queue of Kueue: what its pods wait for, what Kueue ended,
 * and what generations that are over still hold. Pure. A job that is in no queue, or in a
 * cluster without Kueue, is left alone by all of this. */
#ifndef CONTROLLER_RECONCILE_KUEUE_ADMISSION_H
#define CONTROLLER_RECONCILE_KUEUE_ADMISSION_H

#include "controller/decision/pass.h"

/* Whether Kueue has admitted the whole current generation, so that its pods may be
 * placed; always, if the job is in no queue. */
bool kueue_admission_admits(const struct pass *pass);
/* Kueue took the quota of the current generation away: that is no failure. The generation
 * is stopped, and a new one follows when the queue can give GPUs enough again. True if
 * that is the case and the pass is over. */
bool kueue_admission_evicted(struct pass *pass);
/* Deletes the Workloads of generations that are over while a pod of them can not end by
 * itself (never bound, or on a dead node): Kueue then lets go of the pods, and their
 * quota is free. `live` is the generation that goes on, 0: none. */
void kueue_admission_release(struct pass *pass, int64_t live);
/* Condition QuotaReserved. */
void kueue_admission_report(struct pass *pass);

#endif
