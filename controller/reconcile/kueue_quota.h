/* kueue_quota.h - a job in a queue of Kueue: what its pods wait for, what Kueue ended,
 * and what generations that are over still hold. Pure. A job that is in no queue, or in a
 * cluster without Kueue, is left alone by all of this. */
#ifndef CONTROLLER_RECONCILE_KUEUE_QUOTA_H
#define CONTROLLER_RECONCILE_KUEUE_QUOTA_H

#include "controller/reconcile/pass.h"

/* Whether Kueue has admitted the whole current generation, so that its pods may be
 * placed; always, if the job is in no queue. */
bool quota_admits(const struct pass *pass);
/* Kueue took the quota of the current generation away: that is no failure. The generation
 * is stopped, and a new one follows when the queue can give GPUs enough again. True if
 * that is the case and the pass is over. */
bool quota_evicted(struct pass *pass);
/* Deletes the Workloads of generations that are over while a pod of them can not end by
 * itself (never bound, or on a dead node): Kueue then lets go of the pods, and their
 * quota is free. `live` is the generation that goes on, 0: none. */
void quota_release(struct pass *pass, int64_t live);
/* Condition QuotaReserved. */
void quota_report(struct pass *pass);

#endif
