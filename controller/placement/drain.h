/* drain.h - asks the program of healthy pods for a checkpoint before they are stopped
 * (spec.checkpoint.onDisruption). Pure.
 *
 * The request and its answer are recorded on the plan's ConfigMap
 * (ANNOTATION_CHECKPOINT_*), so a new leader continues from there. Method HTTP: the
 * request is recorded first, then sent (checkpoint_hook.h), and the pods stay until it is
 * acknowledged, refused, or times out. Method Signal: deleting the pods, with a longer
 * grace period, is the request. */
#ifndef CONTROLLER_PLACEMENT_DRAIN_H
#define CONTROLLER_PLACEMENT_DRAIN_H

#include "controller/decision/pass.h"

/* Whether the pods of the generation of `plan` may be deleted now. If not, asks or waits
 * for the answer, and sets when to look again. A gang that is not whole (a pod failed, is
 * missing, is being deleted, does not run yet, or is on a dead node) cannot write a
 * checkpoint and is not asked. */
bool drain_is_over(struct pass *pass, const struct snapshot_plan *plan);
/* Grace period in seconds for deleting the pods of `plan`; -1: their own. Call after
 * drain_is_over. */
int64_t drain_grace_s(const struct pass *pass, const struct snapshot_plan *plan);
/* For a current plan on a node that will go, with no other place for its pods: asks for a
 * checkpoint, once per notice. */
void drain_before_loss(struct pass *pass);
/* That notice is over: the next one asks again. */
void drain_forget_notice(struct pass *pass);

#endif
