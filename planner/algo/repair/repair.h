/* repair.h - the running plan, kept as far as its nodes still exist (surviving_plan.h).
 * Needs a running plan (options->from). */
#ifndef HET_ALGO_REPAIR_REPAIR_H
#define HET_ALGO_REPAIR_REPAIR_H

#include "planner/search/search.h"

extern const struct het_algorithm het_algo_repair;

#endif
