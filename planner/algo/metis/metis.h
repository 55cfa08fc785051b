/* metis/metis.h - Metis: one pipeline over device groups of unequal GPUs.
 *
 * Source: T. Um et al., "Metis: Fast Automatic Distributed Training on Heterogeneous
 * GPUs", USENIX ATC 2024: Algorithm 1 and sections 3 to 4.3. `metis` is the search of
 * metis_search.h, which says where it differs; `metis-walk` the paper's own, to count its
 * steps (paper_walk.h). */
#ifndef HET_ALGO_METIS_METIS_H
#define HET_ALGO_METIS_METIS_H

#include "planner/search/search.h"

extern const struct het_algorithm het_algo_metis, het_algo_metis_walk;

#endif
