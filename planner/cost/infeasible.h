/* infeasible.h - proofs that no plan fits, however it is cut: used when a search finds
 * none, or uses no GPU of a type. What is not proved here may fit or not. */
#ifndef HET_COST_INFEASIBLE_H
#define HET_COST_INFEASIBLE_H

#include "planner/model/plan.h"

#include <stdbool.h>

/* Whether one of these shows that no plan fits; `ret_text` (of `size` bytes) then says
 * which, in numbers, and what would help:
 *
 *   - a layer alone, with the least micro-batch and any recomputation that the job allows
 *     and as many holders as possible, needs more than any GPU that the job may use has,
 *     in every degree that its node has room for
 *   - one copy of the model's state, in the degree that takes the fewest bytes, needs
 *     more than all GPUs that the job may use have together */
bool het_infeasible_memory(const struct het_problem *problem, char *ret_text,
                           size_t size);

/* Whether a type of the profile can hold any layer at all. */
enum het_type_fit {
    HET_TYPE_FITS,
    HET_TYPE_IS_LIMITED, /* no measured degree and micro-batch is within the limits */
    HET_TYPE_IS_SMALL    /* no layer fits, in any of these */
};
enum het_type_fit het_infeasible_type(const struct het_problem *problem, uint32_t type);

#endif
