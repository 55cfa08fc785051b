/* algo/repair.h - the running plan, kept as it is where that still can be, and with what
 * is gone left out (repair.h). Needs a running plan (options->from). */
#ifndef HET_ALGO_REPAIR_H
#define HET_ALGO_REPAIR_H

#include "planner/algo.h"

extern const struct het_algorithm het_algo_repair;

#endif
