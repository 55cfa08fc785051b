/* drain.h - before pods that run well are stopped, their program is asked for a
 * checkpoint (spec.checkpoint.onDisruption). Pure.
 *
 * What was asked and answered stands on the plan's ConfigMap (ANNOTATION_CHECKPOINT_*):
 * whoever takes over goes on from there. Method HTTP: the request is written first, then
 * carried out (checkpoint_hook.h), and the pods stay until it is acknowledged, refused,
 * or out of time. Method Signal: deleting the pods is the request, with more grace. */
#ifndef CONTROLLER_PLACEMENT_DRAIN_H
#define CONTROLLER_PLACEMENT_DRAIN_H

#include "controller/decision/pass.h"

/* Whether the pods of the generation of `plan` may be deleted now. Else asks, or waits
 * for the answer, and says when to look again. A gang that is not whole (a pod failed, is
 * missing, is being deleted, does not run yet, or is on a dead node) can write no
 * checkpoint: it is not asked. */
bool drain_is_over(struct pass *pass, const struct snapshot_plan *plan);
/* Seconds that the deleted pods of `plan` get to end by themselves; -1: their own. To be
 * asked for after drain_is_over. */
int64_t drain_grace_s(const struct pass *pass, const struct snapshot_plan *plan);
/* The pods of the current plan may die with a node that will go, and stay for want of
 * another place: asks for a checkpoint, once for each such time. */
void drain_before_loss(struct pass *pass);
/* That time is over: the next one is asked for again. */
void drain_forget_notice(struct pass *pass);

#endif
