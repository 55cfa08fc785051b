/* oomfirst.h - OOM-first: Metis with another rule for which of several stages out of
 * memory comes first: the one that is short of most bytes.
 *
 * Source: J. Shong, B. Liu, Y. Yu, "Improved Intra-Operator Parallelism for Distributed
 * LLM Training", section 3.4. `oomfirst` is the search of metis_search.h with that rule;
 * `oomfirst-walk` the paper's own, to count its steps (paper_walk.h).
 *
 * Differs: the paper raises the tensor-parallel degree of that stage only; as in Metis,
 * fewer layers there are tried as well. */
#ifndef HET_ALGO_METIS_OOMFIRST_H
#define HET_ALGO_METIS_OOMFIRST_H

#include "planner/search/search.h"

extern const struct het_algorithm het_algo_oomfirst, het_algo_oomfirst_walk;

#endif
