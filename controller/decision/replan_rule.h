/* replan_rule.h - whether a better plan is worth the move; arithmetic only. Pure.
 *
 *   gain    = seconds of an iteration now / seconds with the candidate - 1
 *   horizon = the time over which the move has to pay: the amortisation horizon, or what
 *             is left until the job's deadline, if that is less
 *   cost    = checkpoint + restart + migration + lost work, all in seconds
 *   benefit = gain * horizon: how much longer the present plan would take for what the
 *             candidate does in the horizon
 *
 * The move is worth it if gain - cost / horizon, the improvement net of the cost, is
 * above 0 and at least the minimum improvement. The benefit then exceeds the cost,
 * too. */
#ifndef CONTROLLER_DECISION_REPLAN_RULE_H
#define CONTROLLER_DECISION_REPLAN_RULE_H

#include "planner/modules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Time from the decision until all pods are ready, used until a generation of the job has
 * been measured: start from an image already on the node, form the process group, read a
 * checkpoint. Our estimate. */
#define REPLAN_RULE_RESTART_S 60.0

#define REPLAN_RULE_MAX_TIMES ((size_t)3600) /* the largest maxReplansPerHour */

struct replan_rule_input {
    double current_s, candidate_s; /* of an iteration */
    double min_improvement;        /* 0.15: 15 % */
    double amortization_s;
    double remaining_s;  /* until the deadline; HUGE_VAL: none */
    double checkpoint_s; /* to write a checkpoint before the stop; 0: none is written */
    double restart_s, migration_s;
    double lost_work_s; /* work since the last checkpoint, which is repeated */
};

struct replan_rule_verdict {
    bool is_worth_it;
    /* "BetterPlan"; "BelowThreshold", if the gain before cost is below the minimum
     * improvement; "NotWorthTheRestart", if the gain net of cost is. */
    const char *reason;
    double gain; /* 0.15: 15 % more samples a second */
    double horizon_s, cost_s, benefit_s;
};

struct replan_rule_verdict replan_rule_judge(const struct replan_rule_input *input);

/* Work that a restart loses. A program that reports when its checkpoint is written
 * (`acknowledges`) loses none; another loses half of `interval_s` on average. If the
 * interval is not known (0), it loses everything since the start when it is not asked for
 * a checkpoint (`is_asked` false), else nothing. At most `running_s`, the time it has
 * run. */
double replan_rule_lost_work_s(bool acknowledges, bool is_asked, double interval_s,
                               double running_s);

/* Reads the times in `text` ("1767225600 1767225900", seconds since 1970) into
 * `ret_times_ms` in ms (in `arena`), at most REPLAN_RULE_MAX_TIMES of them. Returns how
 * many. */
size_t replan_rule_read_times(struct het_arena *arena, const char *text,
                              int64_t **ret_times_ms);
/* `text` without the times that lie after `now_ms` or more than an hour before it, and
 * with `now_ms` added if `is_new`; in `arena`. */
const char *replan_rule_add_time(struct het_arena *arena, const char *text,
                                 int64_t now_ms, bool is_new);

/* When the next voluntary re-plan is allowed, with at most `most` in an hour; 0: now.
 * `times_ms` are those of the last ones (ms since 1970, ascending); times after `now_ms`
 * come from a wrong clock and do not count. */
int64_t replan_rule_allowed_ms(const int64_t *times_ms, size_t count, int64_t most,
                               int64_t now_ms);

#endif
