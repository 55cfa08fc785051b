/* replan_rule.h - whether a better plan is worth the move: arithmetic alone. Pure.
 *
 *   gain    = seconds of an iteration now / seconds with the candidate - 1
 *   horizon = the time over which the move has to pay: the amortisation horizon, or what
 *             is left until the job's deadline, if that is less
 *   cost    = checkpoint + restart + migration + lost work, all in seconds
 *   benefit = gain * horizon: how much longer the present plan would take for what the
 *             candidate does in the horizon
 *
 * It is worth it if gain - cost / horizon is above 0 and not below the least improvement:
 * the improvement that is left once the cost is charged against it. Then the benefit
 * exceeds the cost, too. */
#ifndef CONTROLLER_DECISION_REPLAN_RULE_H
#define CONTROLLER_DECISION_REPLAN_RULE_H

#include "planner/modules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From the decision to all pods ready, where no generation of the job has been measured:
 * an image that is on the node, a process group, a checkpoint read. Our estimate. */
#define REPLAN_RULE_RESTART_S 60.0

#define REPLAN_RULE_MAX_TIMES ((size_t)3600) /* the largest maxReplansPerHour */

struct replan_rule_input {
    double current_s, candidate_s; /* of an iteration */
    double min_improvement;        /* 0.15: 15 % */
    double amortization_s;
    double remaining_s;  /* until the deadline; HUGE_VAL: none */
    double checkpoint_s; /* to write one before the stop; 0: none is written */
    double restart_s, migration_s;
    double lost_work_s; /* done since the last checkpoint, and done again */
};

struct replan_rule_verdict {
    bool is_worth_it;
    /* "BetterPlan"; "BelowThreshold", if even the gain alone is below the least
     * improvement; "NotWorthTheRestart", if what is left of it is. */
    const char *reason;
    double gain; /* 0.15: 15 % more samples a second */
    double horizon_s, cost_s, benefit_s;
};

struct replan_rule_verdict replan_rule_judge(const struct replan_rule_input *input);

/* Work that a restart loses: a program that says when its checkpoint is written
 * (`acknowledges`) loses none, another one half of `interval_s` on average; if that is
 * not known (0), all since the start if nobody even asks for a checkpoint, else none. At
 * most `running_s`, since when it runs. */
double replan_rule_lost_work_s(bool acknowledges, bool is_asked, double interval_s,
                               double running_s);

/* The times in `text`, "1767225600 1767225900": seconds since 1970, as ms in
 * `ret_times_ms` (in `arena`), at most REPLAN_RULE_MAX_TIMES of them. */
size_t replan_rule_read_times(struct het_arena *arena, const char *text,
                              int64_t **ret_times_ms);
/* `text` without what is more than an hour before `now_ms` or after it, and with `now_ms`
 * if it `is_new`; in `arena`. */
const char *replan_rule_add_time(struct het_arena *arena, const char *text,
                                 int64_t now_ms, bool is_new);

/* When one more voluntary re-plan is allowed, by the times of the last ones (ms since
 * 1970, ascending; those after `now_ms` are of a clock that was wrong): at most `most` in
 * an hour. 0: now. */
int64_t replan_rule_allowed_ms(const int64_t *times_ms, size_t count, int64_t most,
                               int64_t now_ms);

#endif
