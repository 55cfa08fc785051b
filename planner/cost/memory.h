/* memory.h - peak bytes of each GPU of a plan. How fast a plan is, is cost.h's question.
 *
 *   bytes = state(layers, tp, h) + activations(layers, tp) * samples * in_flight
 *           + passing(layers, tp, samples) + workspace
 *
 *   state      as measured, if the profile says and was measured with the workload's
 *              precision and optimizer; else het_workload_state_bytes a parameter
 *   in_flight  min(m_p, S_p - s) micro-batches (1F1B; planner.md, Memory)
 *   passing    what is needed only while a layer runs (gradients of activations, buffers
 *              of the products): as measured, if the profile says; else the activations
 *              of HET_MEMORY_BACKWARD_BATCHES micro-batches of the largest layer
 *
 * With full recomputation a micro-batch keeps the layers' inputs; the activations of the
 * largest layer are held once. With selective recomputation it keeps what the profile
 * measured, or, if it did not, as much as without recomputation.
 *
 * A plan fits when bytes <= capacity * (1 - headroom) on each of its GPUs; with a reserve
 * (workload.h), the state counts as at least het_workload_state_bytes plus that
 * reserve. */
#ifndef HET_COST_MEMORY_H
#define HET_COST_MEMORY_H

#include "planner/model/plan.h"

/* In 15 measured runs of OPT-350M on GH200 (planner.md, Memory) the peak exceeds what is
 * kept by bytes that grow like 2 micro-batches of the largest layer: without them the
 * largest error is 12 %. */
#define HET_MEMORY_BACKWARD_BATCHES 2

struct het_memory_question {
    uint32_t type; /* cluster type */
    uint32_t tp;
    uint32_t first_layer, layer_count;
    uint32_t samples;   /* of a micro-batch, on this replica */
    uint32_t in_flight; /* micro-batches whose activations are held */
    uint32_t holders;   /* replicas that hold the layers (distributed optimizer) */
    enum het_recompute recompute;
};

/* Bytes that each GPU of a replica needs, reserve included. HUGE_VAL when the profile
 * lacks the degree. */
double het_memory_replica_bytes(const struct het_problem *problem,
                                const struct het_memory_question *question);
/* Usable bytes of a GPU of cluster type `type`: memory less the headroom, if that is
 * above 0. */
double het_memory_usable_bytes(const struct het_problem *problem, uint32_t type);

/* Peak memory of each replica of a bound, well-formed plan, in plan order, in `arena`.
 * Here each layer's state is spread over its own number of holders. Adds a violation for
 * each replica that does not fit (`violations` may be NULL) and returns their count. */
size_t het_memory_plan(struct het_arena *arena, const struct het_problem *problem,
                       const struct het_plan *plan, struct het_peak_memory **ret_peaks,
                       size_t *ret_count, struct het_violations *violations);

#endif
