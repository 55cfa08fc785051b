/* victims.h - which other jobs a job that waits may take GPUs from, and in what order.
 * Arithmetic on values; nothing is decided here. Pure.
 *
 * First come jobs that have more than their minGPUs: of lower priority, or of the same if
 * their own rules allow a move now (mode, cool-down); they keep their minimum. Then jobs
 * of lower priority, whole. Within both the lowest priority first, and of equals the
 * youngest. Jobs that are part of a claim already are left alone until it is served, and
 * so are GPUs that would come without the CPU, memory, ... which the asking job's pods
 * need with them, as other tenants have it or the node has not so much. */
#ifndef CONTROLLER_PLACEMENT_VICTIMS_H
#define CONTROLLER_PLACEMENT_VICTIMS_H

#include "controller/decision/snapshot.h"

/* What one job could give up. */
struct victims_offer {
    const struct other_job *peer;
    const struct capacity_share *shares;
    size_t share_count;
    int64_t usable; /* GPUs of it on nodes and of types that the asking job may use */
};

/* All that may be taken, in the order in which it is. A later offer of the same peer (all
 * that it holds) stands for its earlier one. */
size_t victims_offers(struct het_arena *arena, const struct snapshot *snapshot,
                      struct victims_offer **ret);
/* GPUs that are free for the job now, of types that it may use. */
int64_t victims_free(const struct snapshot *snapshot);
/* The nodes with the first `count` offers free. */
const struct capacity_node *victims_view(struct het_arena *arena,
                                         const struct snapshot *snapshot,
                                         const struct victims_offer *offers,
                                         size_t count);
/* Of the first `count` offers those that `plan` needs: earlier ones cover what they can.
 * `shares` are cut to what it takes. Returns how many, in `ret`. */
size_t victims_find(struct het_arena *arena, const struct snapshot *snapshot,
                    const struct victims_offer *offers, size_t count,
                    const struct het_plan *plan, struct victims_offer **ret);

/* The worth of a better plan to its job, for each GPU that it takes: ln(throughput then /
 * throughput now) / GPUs that it uses and the running plan does not, at least 1. Samples
 * a second of different models cannot be compared; the logarithm makes growth go where
 * the product of all throughputs rises most (proportional fairness), and a job's bid
 * smaller the more it has. `gain` is throughput then / now - 1, above 0. */
double victims_bid(struct het_arena *arena, const struct het_plan *now,
                   const struct het_plan *then, double gain);
/* Whether a job of bid `value` may take free GPUs before its rivals: all that may bid
 * have bidden, and none has bidden more. */
bool victims_wins(const struct snapshot *snapshot, double value);

/* Whether somebody of higher priority has laid claim to GPUs of this job: then it gives
 * them up even if it cannot run with what is left. */
bool victims_must_yield(const struct snapshot *snapshot);

#endif
