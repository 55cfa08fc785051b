#include "planner/algo/metis/metis.h"

#include "planner/algo/metis/metis_search.h"

static int metis_run(struct het_search *search, struct het_error *err)
{
    (void)err;
    return het_metis_search(search, HET_METIS_FIRST_STAGE);
}

static int walk_run(struct het_search *search, struct het_error *err)
{
    (void)err;
    return het_metis_search_walk(search, HET_METIS_FIRST_STAGE);
}

const struct het_algorithm het_algo_metis = {
    .name = "metis",
    .source = "Metis (USENIX ATC 2024), Algorithm 1, sections 3 to 4.3",
    .summary = "one pipeline over device groups; data parallelism first, tensor "
               "parallelism where memory asks for it; layers and samples balanced",
    .run = metis_run,
};

const struct het_algorithm het_algo_metis_walk = {
    .name = "metis-walk",
    .source = "Metis (USENIX ATC 2024), Algorithm 1, as its released program walks it",
    .summary = "metis step by step, layers in proportion, to count its steps",
    .run = walk_run,
    .is_whole = true,
    .is_apart = true,
};
