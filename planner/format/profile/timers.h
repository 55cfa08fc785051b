/* timers.h - logs of training runs of Megatron-LM (megatron_log.h) -> profile.
 *
 * A run gives the seconds of each of its stages for one micro-batch: forward-compute and
 * backward-compute by the micro-batches of an iteration, global / (size * dp). Of one GPU
 * type, degree and size there may be several runs, with fewer layers than the model has
 * too. With e, n, h for embedding, blocks and head of a stage, for each direction:
 *
 *   block      where a stage has blocks only: sum of seconds / sum of n; else where two
 *              stages differ in n alone: the slope; else seconds / (n + e E/B + h H/B)
 *   embedding  what the blocks leave of a stage with e and not h
 *   head       the same of h and not e; what stages with both leave is split as E : H
 *
 * E, B and H are what an estimate (estimate.h) gives for embedding, block and head on
 * that type; what no stage has is estimated from the block, as B is to it. One run of a
 * whole model so says what the model takes, and the estimate says how it is divided. Runs
 * of two numbers of layers say both.
 *
 * Sizes are worked out from the shape, which the arguments say, as for an estimate. The
 * model has as many blocks as the run with the most. The optimizer's seconds are those of
 * all stages, in proportion to the parameters; of a distributed one dp times as many.
 *
 * Refused, as their times are of something else: recomputation, virtual stages, context
 * and expert parallelism, a batch that ramps up, latent attention; several stages without
 * --timing-log-option all, as then nothing says which took what. */
#ifndef HET_FORMAT_PROFILE_TIMERS_H
#define HET_FORMAT_PROFILE_TIMERS_H

#include "planner/model/hardware.h"
#include "planner/model/profile.h"

/* One log, and the GPU type it ran on. */
struct het_timers_run {
    const char *type, *name, *text;
};

/* `ret_sequence` is the tokens of a sample. Errors: HET_BAD_INPUT names log and argument,
 * also where two runs are of different models. */
int het_profile_timers_read(struct het_arena *arena, const struct het_timers_run *runs,
                            size_t count, const struct het_hardware *hardware,
                            const struct het_profile **ret, uint32_t *ret_sequence,
                            struct het_error *err);

#endif
