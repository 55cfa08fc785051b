/* equal_gpus.h - views a cluster of unequal GPUs as one of equal, weakest ones, and turns
 * a pipeline for those back into one for the real GPUs. Memory enters as the layers that
 * fit (`ends`); nodes and plans are the caller's.
 *
 * Source: Ditto (2024), sections 3, 5 and 6. */
#ifndef HET_ALGO_DITTO_EQUAL_GPUS_H
#define HET_ALGO_DITTO_EQUAL_GPUS_H

#include "planner/algo/ditto/pipeline_template.h"

/* GPUs of the weakest type that one GPU is worth, at least 1: the weakest type's seconds
 * for the whole model over this type's, rounded (section 5.3.1). */
uint32_t het_equal_gpus_weight(double weakest_s, double type_s);

/* Seconds of a layer's communication on the weakest type, as the mean over layers. */
struct het_equal_gpus_communication {
    uint32_t layer_count;
    uint32_t node_gpus;     /* M */
    const double *inside_s; /* [M + 1]: all-reduce over so many GPUs of a node */
    double across_s;        /* a send between nodes */
};

/* The same, where d weakest GPUs take
 *
 *   p(d) = weakest_s / d + n' across_s + L (d' inside_s[d'] + n'' M inside_s[M]) / d
 *
 *   n'' = floor(d / M) full nodes, d' = d - n'' M GPUs of one more, n' = nodes - 1
 *
 * and the weight is the d from 1 to het_equal_gpus_weight whose p(d) is nearest to
 * `type_s`; the smallest of equal ones (section 5.3.2). Differs: the paper's formula
 * multiplies across_s by n'', its text by the nodes less one; they differ when d' = 0,
 * where the formula has a node send to itself. */
uint32_t het_equal_gpus_weight_with_communication(
    double weakest_s, double type_s,
    const struct het_equal_gpus_communication *communication);

struct het_equal_gpus_type {
    uint32_t gpu_count;
    uint32_t weight; /* d_i >= 1 */
};

/* GPUs of one type, on one node, that run a stage. */
struct het_equal_gpus_kind {
    uint32_t type, gpus;
    const double *seconds; /* as in het_template_kind */
    const uint32_t *ends;
};

struct het_equal_gpus_question {
    uint32_t layer_count;
    const struct het_equal_gpus_type *types;
    size_t type_count;
    uint32_t weakest; /* type */
    const struct het_equal_gpus_kind *kinds;
    size_t kind_count;
    /* As in het_template_question; of real GPUs, and of all tables together. */
    uint32_t microbatch_count, stage_limit;
    double pace_s;
    uint64_t cell_limit;
};

/* Weakest GPUs that all GPUs are worth. */
uint64_t het_equal_gpus_gpu_count(const struct het_equal_gpus_question *question);

/* In all three, kinds of the template are those of `question`; T is its `seconds`; cells
 * worked on are added to `*cells`; false means that no template was found. */

/* By dynamic program (section 6.2): a template for virtual GPUs, one a stage; then x GPUs
 * of type i take up to x d_i of its stages together, such that T is least. GPUs may be
 * left over. Virtual GPUs have no memory limit: they do not exist.
 *
 * The paper's template has as many stages as there are virtual GPUs, and its choices have
 * exactly x d_i of them, though the text says "up to". With both as printed all GPUs are
 * used, and a layer that is longer than others (the head) makes its whole stage late.
 * Here templates of fewer stages, down to half, are recovered as well, and the best is
 * taken; so there may also be fewer layers than virtual GPUs.
 *
 * Differs: the paper keeps, for the first i stages, the one assignment with the least
 * time, which may have taken the GPUs that the rest needs; and T is not a sum over
 * stages. Here the table is over the GPUs used of each type, so that the assignment is
 * the best one for each template. */
bool het_equal_gpus_recover(struct het_arena *arena,
                            const struct het_equal_gpus_question *question,
                            struct het_pipeline_template *ret, uint64_t *cells);

/* Greedily (section 6.1, Algorithm 1): the template's stages, each of one or more GPUs of
 * a virtual node, are given to real GPUs, the strongest type first: while it has GPUs
 * left, ceil(v_j / d_i) of them take the stage j (of v_j virtual GPUs) with which T is
 * then least; stages not yet given are on weakest GPUs.
 *
 * The paper recovers the template with the least T of all numbers of stages. That may
 * have more stages than there are real GPUs; then the next best is taken, until one is
 * recovered in whole, and if none is, templates that leave virtual GPUs over (as those
 * for fewer nodes do). A virtual stage has a power of two of GPUs, as in Oobleck. */
bool het_equal_gpus_recover_greedily(struct het_arena *arena,
                                     const struct het_equal_gpus_question *question,
                                     struct het_pipeline_template *ret, uint64_t *cells);

/* Without folding: the best template of all assignments of GPUs to stages, which is what
 * folding approximates (section 3). GPUs may be left over. */
bool het_equal_gpus_extend(struct het_arena *arena,
                           const struct het_equal_gpus_question *question,
                           struct het_pipeline_template *ret, uint64_t *cells);

#endif
