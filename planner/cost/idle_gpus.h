/* idle_gpus.h - why a plan leaves GPUs of its problem idle, as far as the planner
 * knows. */
#ifndef HET_COST_IDLE_GPUS_H
#define HET_COST_IDLE_GPUS_H

#include "planner/model/plan.h"

/* Adds the idle GPUs of a bound plan (het_plan_fill_idle) to `list`, each with the first
 * of these reasons that applies:
 *
 *   TypeNotAllowed       the type limits leave the type out
 *   UnknownProduct       neither the profile nor the hardware table has the type
 *   NoRates, PrecisionUnsupported
 *                        the profile is estimated, and no rate of the type is known, or
 *                        none in the job's precision
 *   NotMeasured          the profile does not have the type
 *   NotWithinLimits, TooLittleMemory
 *                        as of het_infeasible_type
 *   OtherVendor          the plan is on the GPUs of another vendor (vendor_group.h)
 *   TypeLimit, GPULimit  the plan uses all GPUs, of the type or in total, that it may
 *   NotChosen            none of all these */
void het_idle_gpus_explain(struct het_arena *arena, const struct het_problem *problem,
                           const struct het_plan *plan, struct het_unused_list *list);

#endif
