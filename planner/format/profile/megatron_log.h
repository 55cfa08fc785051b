/* profile/megatron_log.h - what a training run of Megatron-LM printed: the list of its
 * arguments
 * ("  num_layers ......... 24", once, by rank 0) and its timers, which
 * --timing-log-level 2 has in every report:
 *
 *   --timing-log-option minmax      (min, max) time across ranks (ms):
 *                                       forward-compute .........: (10.25, 10.31)
 *   max                             max time across ranks (ms):
 *                                       forward-compute .........: 10.31
 *   all                             times across ranks (ms):
 *                                     forward-compute:
 *                                        rank  0: 10.25
 *   until 2022                      time (ms) | forward-compute: 10.31 | ...
 *
 * Milliseconds of one iteration, over all of its micro-batches. Lines may have something
 * before them, as launchers put it ("[default0]:"); all other lines are passed over.
 * Source: megatron/core/timers.py and megatron/training/arguments.py of Megatron-LM. */
#ifndef HET_FORMAT_PROFILE_MEGATRON_LOG_H
#define HET_FORMAT_PROFILE_MEGATRON_LOG_H

#include "planner/base/arena.h"
#include "planner/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum het_megatron_timer {
    HET_MEGATRON_FORWARD,
    HET_MEGATRON_BACKWARD,
    HET_MEGATRON_OPTIMIZER,
};

/* The rank of what was printed for all of them together. */
#define HET_MEGATRON_ALL_RANKS UINT32_MAX

struct het_megatron_argument {
    const char *name, *value;
};

struct het_megatron_report {
    enum het_megatron_timer timer;
    uint32_t rank;
    size_t order; /* of the line in the log */
    double ms;
};

struct het_megatron_log {
    const char *name; /* of the file */
    const struct het_megatron_argument *arguments;
    size_t argument_count;
    const struct het_megatron_report *reports; /* by timer, rank and order */
    size_t report_count;
};

/* Everything lives in `arena`, and `name` as long. Errors: HET_BAD_INPUT, if the text has
 * no list of arguments or no timers of forward and backward. */
int het_megatron_log_read(struct het_arena *arena, const char *name, const char *text,
                          struct het_megatron_log *ret, struct het_error *err);

/* The text behind the name; NULL, if it is not there or None. Of an argument that is
 * printed twice the first counts. */
const char *het_megatron_argument(const struct het_megatron_log *log, const char *name);
/* A whole number up to `most` that must be there; HET_BAD_INPUT names file and argument.
 */
int het_megatron_number(const struct het_megatron_log *log, const char *name,
                        uint32_t most, uint32_t *ret, struct het_error *err);
/* The same where it may be missing or None: `ret` is left alone. */
int het_megatron_number_if(const struct het_megatron_log *log, const char *name,
                           uint32_t most, uint32_t *ret, struct het_error *err);
/* Whether the argument is True. */
bool het_megatron_is_set(const struct het_megatron_log *log, const char *name);

/* Milliseconds of a timer on a rank: the median of the reports but the first, which warms
 * up. Where the log has only the least and the most of all ranks, their mean, or the most
 * where it has only that. False if the rank has none. */
bool het_megatron_ms(const struct het_megatron_log *log, enum het_megatron_timer timer,
                     uint32_t rank, double *ret_ms);
/* Whether times are printed rank by rank. */
bool het_megatron_has_ranks(const struct het_megatron_log *log);

#endif
