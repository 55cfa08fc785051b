#include "planner/cost/infeasible.h"

#include "planner/cost/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define GIB 0x1p30

static struct het_memory_question ask(uint32_t type, uint32_t tp, uint32_t layer)
{
    return (struct het_memory_question){ .type = type,
                                         .tp = tp,
                                         .first_layer = layer,
                                         .layer_count = 1,
                                         .in_flight = 1,
                                         .holders = 1 };
}

/* The least micro-batch that (type, tp) was measured with and that the job allows; 0:
 * none. */
static uint32_t least_samples(const struct het_problem *problem, uint32_t type,
                              uint32_t tp)
{
    const struct het_profile *profile = problem->profile;
    uint32_t of = problem->profile_type[type];
    uint32_t most = het_profile_max_microbatch(profile, of, tp);
    for (uint32_t samples = 1; samples <= most; samples++)
        if (het_profile_covers(profile, of, tp, samples) &&
            het_workload_allows_microbatch(problem->workload, samples))
            return samples;
    return 0;
}

static double least_bytes(const struct het_problem *problem,
                          struct het_memory_question question)
{
    static const enum het_recompute choices[] = { HET_RECOMPUTE_NONE,
                                                  HET_RECOMPUTE_SELECTIVE,
                                                  HET_RECOMPUTE_FULL };
    size_t count = problem->workload->no_recompute ? 1 : 3;
    double least = HUGE_VAL;
    for (size_t c = 0; c < count; c++) {
        question.recompute = choices[c];
        least = fmin(least, het_memory_replica_bytes(problem, &question));
    }
    return least;
}

/* ---- a layer ---- */

/* What the layer needs where it comes nearest to fit. */
struct nearest {
    uint32_t type, tp, samples;
    double needed_bytes, ratio; /* of what is usable; at most 1: it fits */
};

static void try_degree(const struct het_problem *problem, uint32_t type, uint32_t tp,
                       uint32_t layer, struct nearest *nearest)
{
    struct het_memory_question question = ask(type, tp, layer);
    question.samples = least_samples(problem, type, tp);
    question.holders = UINT32_MAX;
    if (!question.samples)
        return;
    double bytes = least_bytes(problem, question);
    double ratio = bytes / het_memory_usable_bytes(problem, type);
    if (ratio < nearest->ratio)
        *nearest = (struct nearest){ type, tp, question.samples, bytes, ratio };
}

static bool can_use(const struct het_problem *problem, uint32_t type, uint32_t tp)
{
    return problem->profile_type[type] != HET_NO_TYPE &&
           tp <= het_cluster_largest_node_gpus(problem->cluster, type) &&
           het_workload_allows_tensor_parallel(problem->workload, tp) &&
           het_profile_max_microbatch(problem->profile, problem->profile_type[type], tp);
}

static bool layer_fits_nowhere(const struct het_problem *problem, uint32_t layer,
                               char *ret_text, size_t size)
{
    struct nearest nearest = { .ratio = HUGE_VAL };
    for (uint32_t t = 0; t < problem->cluster->type_count; t++)
        for (size_t i = 0; i < problem->profile->bytes_count; i++)
            if (can_use(problem, t, problem->profile->bytes[i].tp))
                try_degree(problem, t, problem->profile->bytes[i].tp, layer, &nearest);
    if (nearest.ratio <= 1 || !(nearest.ratio < HUGE_VAL))
        return false;
    snprintf(ret_text, size,
             "layer %u alone fits on no GPU; it comes nearest on %.100s, which has %.1f "
             "GiB to use, where it needs %.1f GiB with tensor-parallel degree %u and a "
             "micro-batch of %u. GPUs with more memory, or a profile of higher degrees "
             "or smaller micro-batches, would help",
             layer, problem->cluster->types[nearest.type].name,
             het_memory_usable_bytes(problem, nearest.type) / GIB,
             nearest.needed_bytes / GIB, nearest.tp, nearest.samples);
    return true;
}

/* Whether some layer fits with the degree; false too if there is no such degree. */
static bool any_layer_fits(const struct het_problem *problem, uint32_t type, uint32_t tp,
                           bool *ret_is_allowed)
{
    if (!can_use(problem, type, tp) || !least_samples(problem, type, tp))
        return false;
    *ret_is_allowed = true;
    for (uint32_t l = 0; l < problem->profile->layer_count; l++) {
        struct nearest nearest = { .ratio = HUGE_VAL };
        try_degree(problem, type, tp, l, &nearest);
        if (nearest.ratio <= 1)
            return true;
    }
    return false;
}

enum het_type_fit het_infeasible_type(const struct het_problem *problem, uint32_t type)
{
    bool is_allowed = false;
    for (size_t i = 0; i < problem->profile->bytes_count; i++)
        if (any_layer_fits(problem, type, problem->profile->bytes[i].tp, &is_allowed))
            return HET_TYPE_FITS;
    return is_allowed ? HET_TYPE_IS_SMALL : HET_TYPE_IS_LIMITED;
}

/* ---- all states ---- */

/* Bytes of one copy of the layer's state over the ranks of a group, in the degree in
 * which they are least: what a replica needs without samples, less what it needs without
 * the layer too. */
static double least_state(const struct het_problem *problem, uint32_t type,
                          uint32_t layer)
{
    double least = HUGE_VAL;
    for (size_t i = 0; i < problem->profile->bytes_count; i++) {
        uint32_t tp = problem->profile->bytes[i].tp;
        struct het_memory_question question = ask(type, tp, layer), none = question;
        none.layer_count = 0;
        if (het_workload_allows_tensor_parallel(problem->workload, tp))
            least = fmin(least, tp * (het_memory_replica_bytes(problem, &question) -
                                      het_memory_replica_bytes(problem, &none)));
    }
    return least;
}

static bool states_fit_nowhere(const struct het_problem *problem, char *ret_text,
                               size_t size)
{
    uint32_t gpus = 0, any_type = HET_NO_TYPE, most = problem->workload->max_gpus;
    double room = 0, largest = 0, states = 0;
    for (uint32_t t = 0; t < problem->cluster->type_count; t++) {
        if (problem->profile_type[t] == HET_NO_TYPE)
            continue;
        double bytes = fmax(het_memory_usable_bytes(problem, t) -
                                (double)problem->cluster->types[t].workspace_bytes,
                            0);
        any_type = t;
        gpus += het_problem_usable_gpus(problem, t);
        room += het_problem_usable_gpus(problem, t) * bytes;
        largest = fmax(largest, bytes);
    }
    if (most && most < gpus) {
        gpus = most;
        room = fmin(room, most * largest);
    }
    for (uint32_t l = 0; any_type != HET_NO_TYPE && l < problem->profile->layer_count;
         l++)
        states += least_state(problem, any_type, l);
    if (!(states > room) || !(states < HUGE_VAL) || !(largest > 0))
        return false;
    snprintf(ret_text, size,
             "one copy of the model's weights, gradients and optimizer state needs %.1f "
             "GiB, and the GPUs that the job may use (%u) have %.1f GiB for it. At least "
             "%.0f more of the largest, or another optimizer or precision, would help",
             states / GIB, gpus, room / GIB, ceil((states - room) / largest));
    return true;
}

bool het_infeasible_memory(const struct het_problem *problem, char *ret_text, size_t size)
{
    for (uint32_t l = 0; l < problem->profile->layer_count; l++)
        if (layer_fits_nowhere(problem, l, ret_text, size))
            return true;
    return states_fit_nowhere(problem, ret_text, size);
}
