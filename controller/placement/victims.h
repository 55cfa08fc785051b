/* victims.h - which jobs a waiting job may take GPUs from, and in what order. Arithmetic
 * on values; it decides nothing. Pure.
 *
 * First come jobs with more than their minGPUs: those of lower priority, and those of the
 * same priority whose own rules allow a move now (mode, cool-down); they keep their
 * minimum. Then come whole jobs of lower priority. In both groups the lowest priority
 * comes first, and of equals the youngest. Jobs already part of a claim are left alone
 * until it is served. So are GPUs on nodes that lack the CPU, memory, ... which the
 * asking job's pods need with them, because other tenants hold it or the node is too
 * small. */
#ifndef CONTROLLER_PLACEMENT_VICTIMS_H
#define CONTROLLER_PLACEMENT_VICTIMS_H

#include "controller/decision/snapshot.h"

/* What one job could give up. */
struct victims_offer {
    const struct other_job *peer;
    const struct capacity_share *shares;
    size_t share_count;
    int64_t usable; /* its GPUs on nodes and of types that the asking job may use */
};

/* Everything that may be taken, in order. A later offer of the same peer (all that it
 * holds) replaces its earlier one. */
size_t victims_offers(struct het_arena *arena, const struct snapshot *snapshot,
                      struct victims_offer **ret);
/* GPUs of types that the job may use and that are free for it now. */
int64_t victims_free(const struct snapshot *snapshot);
/* The nodes as if the first `count` offers were free. */
const struct capacity_node *victims_view(struct het_arena *arena,
                                         const struct snapshot *snapshot,
                                         const struct victims_offer *offers,
                                         size_t count);
/* Selects those of the first `count` offers that `plan` needs; earlier offers cover as
 * much as they can. `shares` are cut to what the plan takes. Returns how many are in
 * `ret`. */
size_t victims_find(struct het_arena *arena, const struct snapshot *snapshot,
                    const struct victims_offer *offers, size_t count,
                    const struct het_plan *plan, struct victims_offer **ret);

/* The value of a better plan to its job per GPU taken: ln(throughput then / throughput
 * now) / GPUs that it uses and the running plan does not, at least 1. Samples per second
 * of different models cannot be compared. With the logarithm, GPUs go where they raise
 * the product of all throughputs most (proportional fairness), and a job bids less the
 * more it has. `gain` is throughput then / now - 1, above 0. */
double victims_bid(struct het_arena *arena, const struct het_plan *now,
                   const struct het_plan *then, double gain);
/* Whether a job that bids `value` may take free GPUs before its rivals: all that may bid
 * have done so, and none has bid more. */
bool victims_wins(const struct snapshot *snapshot, double value);

/* Whether a job of higher priority claims GPUs of this one, which then gives them up even
 * if it cannot run on the rest. */
bool victims_must_yield(const struct snapshot *snapshot);

#endif
