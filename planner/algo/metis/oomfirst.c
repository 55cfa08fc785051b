#include "planner/algo/metis/oomfirst.h"

#include "planner/algo/metis/metis_search.h"

static int oomfirst_run(struct het_search *search, struct het_error *err)
{
    (void)err;
    return het_metis_search(search, HET_METIS_SHORTEST_STAGE);
}

static int walk_run(struct het_search *search, struct het_error *err)
{
    (void)err;
    return het_metis_search_walk(search, HET_METIS_SHORTEST_STAGE);
}

const struct het_algorithm het_algo_oomfirst = {
    .name = "oomfirst",
    .source = "Improved Intra-Operator Parallelism for Distributed LLM Training, 3.4",
    .summary = "metis, with the stage that is shortest of memory dealt with first",
    .run = oomfirst_run,
    .repeats_metis = true,
};

const struct het_algorithm het_algo_oomfirst_walk = {
    .name = "oomfirst-walk",
    .source = "Improved Intra-Operator Parallelism for Distributed LLM Training, 3.4",
    .summary = "metis-walk, with the stage that is shortest of memory dealt with first",
    .run = walk_run,
    .is_whole = true,
    .is_apart = true,
};
