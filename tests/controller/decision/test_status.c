#include "controller/decision/status.h"

#include "tests/controller/quoted.h"

#include <check.h>
#include <string.h>

/* ---- the state ---- */

static const struct {
    const char *conditions, *state;
} states[] = {
    { "", "Pending" },
    { "{'type': 'Accepted', 'status': 'True'}", "Pending" },
    { "{'type': 'Running'}, {'status': 'True'}, 7", "Pending" },
    { "{'type': 'Accepted', 'status': 'False'}, {'type': 'PlanFeasible', 'status': "
      "'True'}",
      "NotAccepted" },
    { "{'type': 'PlanFeasible', 'status': 'Unknown', 'reason': 'Planning'}, {'type': "
      "'QuotaReserved', 'status': 'False'}",
      "Planning" },
    { "{'type': 'PlanFeasible', 'status': 'Unknown', 'reason': 'Pending'}", "Pending" },
    { "{'type': 'PlanFeasible', 'status': 'Unknown', 'reason': 'Measuring'}",
      "Measuring" },
    { "{'type': 'PlanFeasible', 'status': 'Unknown', 'reason': 'WaitingForGPUs'}",
      "Pending" },
    { "{'type': 'PlanFeasible', 'status': 'False', 'reason': 'NoPlanFits'}", "Pending" },
    { "{'type': 'PlanFeasible', 'status': 'True', 'reason': 'PlanOnly'}, {'type': "
      "'Running', 'status': 'False', 'reason': 'PlanOnly'}",
      "Planned" },
    { "{'type': 'PlanFeasible', 'status': 'True'}, {'type': 'QuotaReserved', 'status': "
      "'False', 'reason': 'Pending'}",
      "Queued" },
    { "{'type': 'PlanFeasible', 'status': 'True'}, {'type': 'QuotaReserved', 'status': "
      "'Unknown', 'reason': 'NoQueue'}",
      "Starting" },
    { "{'type': 'PlanFeasible', 'status': 'True'}, {'type': 'Placed', 'status': 'True'}, "
      "{'type': 'Running', 'status': 'False', 'reason': 'PodsNotReady'}",
      "Starting" },
    { "{'type': 'PlanFeasible', 'status': 'True'}, {'type': 'Running', 'status': "
      "'False', 'reason': 'RestartBackOff'}",
      "Restarting" },
    { "{'type': 'Running', 'status': 'True'}, {'type': 'Accepted', 'status': 'False'}, "
      "{'type': 'PlanFeasible', 'status': 'False'}",
      "Running" },
    { "{'type': 'Running', 'status': 'True'}, {'type': 'Suspended', 'status': 'True'}",
      "Suspended" },
    { "{'type': 'Running', 'status': 'True'}, {'type': 'Suspended', 'status': 'False'}",
      "Running" },
    { "{'type': 'Placed', 'status': 'True'}, {'type': 'Complete', 'status': 'True'}",
      "Complete" },
    { "{'type': 'Failed', 'status': 'True'}, {'type': 'Suspended', 'status': 'True'}",
      "Failed" },
};

START_TEST(state_is_what_the_conditions_say)
{
    json_auto_t *status = quoted("{'conditions': [%s]}", states[_i].conditions);
    ck_assert_str_eq(status_state(status), states[_i].state);
}
END_TEST

START_TEST(every_state_is_said_of_some_conditions)
{
    for (size_t i = 0; i < STATUS_STATES; i++) {
        size_t k = 0;
        while (k < sizeof states / sizeof *states &&
               strcmp(states[k].state, status_state_name(i)) != 0)
            k++;
        ck_assert_msg(k < sizeof states / sizeof *states, "%s", status_state_name(i));
    }
    ck_assert_str_eq(status_state(NULL), "Pending");
}
END_TEST

Suite *test_status_suite(void)
{
    Suite *suite = suite_create("status");
    TCase *cases = tcase_create("state");
    tcase_add_loop_test(cases, state_is_what_the_conditions_say, 0,
                        sizeof states / sizeof *states);
    tcase_add_test(cases, every_state_is_said_of_some_conditions);
    suite_add_tcase(suite, cases);
    return suite;
}
