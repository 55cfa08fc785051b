#include "controller/replan_rule.h"

#define HOUR_MS ((int64_t)3600000)

struct replan_rule_verdict replan_rule_judge(const struct replan_rule_input *input)
{
    struct replan_rule_verdict verdict = {
        .reason = "BelowThreshold",
        .horizon_s = input->remaining_s < input->amortization_s ? input->remaining_s
                                                                : input->amortization_s,
        .cost_s = input->checkpoint_s + input->restart_s + input->migration_s +
                  input->lost_work_s,
    };
    if (verdict.horizon_s < 0)
        verdict.horizon_s = 0;
    if (input->candidate_s > 0)
        verdict.gain = input->current_s / input->candidate_s - 1;
    verdict.benefit_s = verdict.gain * verdict.horizon_s;
    if (!(verdict.gain > 0) || verdict.gain < input->min_improvement)
        return verdict;
    /* Times the horizon, which may be 0. */
    double left_s = verdict.benefit_s - verdict.cost_s;
    verdict.is_worth_it = left_s > 0 &&
                          left_s >= input->min_improvement * verdict.horizon_s;
    verdict.reason = verdict.is_worth_it ? "BetterPlan" : "NotWorthTheRestart";
    return verdict;
}

double replan_rule_lost_work_s(bool acknowledges, bool is_asked, double interval_s,
                               double running_s)
{
    double lost_s = 0;
    if (!acknowledges && interval_s > 0)
        lost_s = interval_s / 2;
    else if (!acknowledges && !is_asked)
        lost_s = running_s;
    return lost_s < running_s ? lost_s : running_s;
}

int64_t replan_rule_allowed_ms(const int64_t *times_ms, size_t count, int64_t most,
                               int64_t now_ms)
{
    int64_t left = most;
    for (size_t i = count; i > 0 && times_ms[i - 1] > now_ms - HOUR_MS; i--)
        if (times_ms[i - 1] <= now_ms && --left == 0)
            return times_ms[i - 1] + HOUR_MS;
    return 0;
}
