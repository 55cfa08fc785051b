#include "controller/decision/replan_rule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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

size_t replan_rule_read_times(struct het_arena *arena, const char *text,
                              int64_t **ret_times_ms)
{
    size_t most = 1, count = 0;
    for (const char *c = text; *c; c++)
        most += *c == ' ';
    if (most > REPLAN_RULE_MAX_TIMES)
        most = REPLAN_RULE_MAX_TIMES;
    int64_t *times = HET_ARENA_ARRAY(arena, int64_t, most);
    while (count < most) {
        char *end;
        long long seconds = strtoll(text, &end, 10);
        if (end == text || seconds < 0 || seconds > INT32_MAX * 100LL)
            break; /* edited by hand */
        times[count++] = seconds * 1000;
        text = end;
    }
    *ret_times_ms = times;
    return count;
}

const char *replan_rule_add_time(struct het_arena *arena, const char *text,
                                 int64_t now_ms, bool is_new)
{
    int64_t *times;
    size_t count = replan_rule_read_times(arena, text, &times);
    const size_t digits = 24; /* of an int64_t, a blank, and some */
    char *result = het_arena_alloc(arena, (count + 1) * digits);
    size_t length = 0;
    result[0] = '\0';
    for (size_t i = 0; i <= count; i++) {
        bool keeps = i < count ? times[i] > now_ms - HOUR_MS && times[i] <= now_ms
                               : is_new;
        int64_t seconds = (i < count ? times[i] : now_ms) / 1000;
        if (keeps)
            length += (size_t)snprintf(result + length, digits, "%s%" PRId64,
                                       length ? " " : "", seconds);
    }
    return result;
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
