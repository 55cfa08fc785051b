/* pipeline_grouping.h - unequal GPUs shared out among the pipelines of a plan, so that as
 * many as possible are as strong as possible. The caller defines a member's power and
 * memory; a member is a GPU or a tensor-parallel group of them.
 *
 *   maximize D z,  z = min_j G_j        over D and all ways to form D groups
 *   G_j = sum_i g_i (1 - rho_j),        rho_j = (n_j - 1) / (K + n_j - 1)
 *   sum_i m_i >= MIN_mem                in every group, and every member is in one
 *
 *   g_i, m_i  power and memory of member i       n_j  members of group j: its stages
 *   K         micro-batches an iteration of one pipeline
 *
 * Source: AutoHet, eq. 2 and 3; it leaves the bubble ratio rho open, here it is that of
 * one-forward-one-backward with even stages. With K = B / D, B micro-batches of w units
 * of work in all, a group takes (K + n - 1) w / sum g = K w / G_j, so that D z largest is
 * the least B w / (D z).
 *
 * Exact, by branch and bound over how many members of each type a group has. At a target
 * z a group is strong enough if sum_i (g_i - z / K) >= z (K - 1) / K: a linear covering.
 * Members with g_i >= z / K and m_i >= 0 never harm a group, so only groups that need all
 * of theirs are looked at and what is left over joins any. The next group always has a
 * member of the first type left, and a remainder that led to nothing is remembered; so
 * only counts distinguish equal members and equal groups. */
#ifndef HET_ALGO_AUTOHET_PIPELINE_GROUPING_H
#define HET_ALGO_AUTOHET_PIPELINE_GROUPING_H

#include "planner/base/arena.h"
#include "planner/model/cluster.h"

#include <stdbool.h>
#include <stdint.h>

struct het_pipeline_grouping_type {
    uint32_t count;
    double power;  /* g > 0 */
    double memory; /* m, in the unit of least_memory */
};

struct het_pipeline_grouping_question {
    const struct het_pipeline_grouping_type *types;
    size_t type_count; /* at most HET_MAX_TYPES */
    const double
        *microbatches; /* [most_groups + 1]: K with so many groups; 0: not asked */
    uint32_t most_groups;
    uint32_t size_limit; /* members of a group; 0: any number */
    bool is_even;        /* all groups have equally many */
    double least_memory; /* MIN_mem */
    uint64_t work_limit; /* groups looked at; 0: none */
};

/* Smaller relative differences count as none: a proof of the best holds within it. */
#define HET_PIPELINE_GROUPING_TOLERANCE 1e-9

struct het_pipeline_grouping {
    double objective;        /* D z; 0: there is no way */
    double bound;            /* no way has more */
    uint32_t group_count;    /* D */
    const uint32_t *members; /* [group * type_count + type] */
    bool is_proved;          /* the work limit left nothing out */
    uint64_t nodes, work;    /* of the search; groups looked at */
};

/* G of a group with counts[type] members; 0 for none. */
double het_pipeline_grouping_power(const struct het_pipeline_grouping_question *question,
                                   const uint32_t *counts, double microbatches);

/* The best grouping, in `arena`; of equal ones that of more groups, as their pipelines
 * are shorter. False: there is none, or none was found within the limit. */
bool het_pipeline_grouping_find(struct het_arena *arena,
                                const struct het_pipeline_grouping_question *question,
                                struct het_pipeline_grouping *ret);

#endif
