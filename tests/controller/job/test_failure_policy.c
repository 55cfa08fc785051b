#include "controller/job/failure_policy.h"
#include "tests/controller/quoted.h"

#include <check.h>
#include <string.h>

/* A pod whose containers ended with these codes; -1: it has not ended. */
static json_t *pod_of(int init, int trainer, int logger, const char *conditions)
{
    json_t *pod = quoted("{'status': {'conditions': %s}}", conditions);
    const struct {
        const char *list, *name;
        int code;
    } containers[] = { { "initContainerStatuses", "fetch", init },
                       { "containerStatuses", "trainer", trainer },
                       { "containerStatuses", "logger", logger } };
    for (size_t i = 0; i < 3; i++) {
        json_t *status = json_object_get(pod, "status");
        json_t *list = json_object_get(status, containers[i].list);
        if (!list)
            json_object_set_new(status, containers[i].list, list = json_array());
        json_array_append_new(
            list,
            containers[i].code < 0
                ? quoted("{'name': '%s', 'state': {'running': {}}}", containers[i].name)
                : quoted("{'name': '%s', 'state': {'terminated': {'exitCode': "
                         "%d}}}",
                         containers[i].name, containers[i].code));
    }
    return pod;
}

#define CODES(more)     "{'action': 'Ignore', 'onExitCodes': {" more "}}"
#define CONDITION(more) "{'action': 'Count', 'onPodConditions': [" more "]}"
#define DISRUPTED       "[{'type': 'DisruptionTarget', 'status': 'True'}]"
#define WELL            "[{'type': 'DisruptionTarget', 'status': 'False'}]"

static const struct {
    const char *rule;
    int init, trainer, logger;
    const char *conditions;
    const char *why; /* NULL: it does not match */
} matches[] = {
    { CODES("'operator': 'In', 'values': [3, 78]"), 0, 78, 0, "[]",
      "container trainer ended with exit code 78" },
    { CODES("'operator': 'In', 'values': [3, 78]"), 0, 79, 0, "[]", NULL },
    { CODES("'operator': 'In', 'values': [3]"), 0, 0, 3, "[]",
      "container logger ended with exit code 3" },
    { CODES("'operator': 'In', 'values': [3]"), 3, -1, -1, "[]",
      "container fetch ended with exit code 3" },
    { CODES("'operator': 'In', 'values': [3], 'containerName': 'trainer'"), 3, 1, 3, "[]",
      NULL },
    { CODES("'operator': 'In', 'values': [3], 'containerName': 'fetch'"), 3, -1, -1, "[]",
      "container fetch ended with exit code 3" },
    { CODES("'operator': 'NotIn', 'values': [3]"), 0, 4, 0, "[]",
      "container trainer ended with exit code 4" },
    { CODES("'operator': 'NotIn', 'values': [3]"), 0, 3, 0, "[]", NULL },
    /* What has not ended, or well, is no failure. */
    { CODES("'operator': 'NotIn', 'values': [3]"), 0, 0, -1, "[]", NULL },
    { CONDITION("{'type': 'DisruptionTarget'}"), 0, 1, 0, DISRUPTED,
      "condition DisruptionTarget is True" },
    { CONDITION("{'type': 'DisruptionTarget'}"), 0, 1, 0, WELL, NULL },
    { CONDITION("{'type': 'DisruptionTarget', 'status': 'False'}"), 0, 1, 0, WELL,
      "condition DisruptionTarget is False" },
    { CONDITION("{'type': 'Other'}, {'type': 'DisruptionTarget'}"), 0, 1, 0, DISRUPTED,
      "condition DisruptionTarget is True" },
    { CONDITION("{'type': 'Other', 'status': 'Unknown'}"), 0, 1, 0, DISRUPTED, NULL },
};

START_TEST(rules_match_as_those_of_a_job_do)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *rule = quoted("%s", matches[_i].rule);
    json_auto_t *rules = json_pack("[O]", rule);
    json_auto_t *spec = quoted("{'containers': [{'name': 'trainer'}], 'initContainers': "
                               "[{'name': 'fetch'}]}");
    json_auto_t *pod = pod_of(matches[_i].init, matches[_i].trainer, matches[_i].logger,
                              matches[_i].conditions);
    struct het_error err = { 0 };
    ck_assert_msg(failure_policy_check(rules, spec, &err) == 0, "%s", err.message);
    const char *why = failure_policy_match(arena, rule, pod);
    ck_assert_pstr_eq(why, matches[_i].why);
    het_arena_free(arena);
}
END_TEST

START_TEST(rule_says_what_it_asks_for_and_what_follows)
{
    json_auto_t *codes = quoted("{'action': 'FailJob', 'onExitCodes': {}}");
    json_auto_t *conditions = quoted("%s", CONDITION(""));
    ck_assert(failure_policy_asks_exit_code(codes));
    ck_assert(!failure_policy_asks_exit_code(conditions));
    ck_assert_int_eq(failure_policy_action(codes), FAILURE_FAIL_JOB);
    ck_assert_int_eq(failure_policy_action(conditions), FAILURE_COUNT);
}
END_TEST

#define RULES "spec.failurePolicy.rules"

static const struct {
    const char *rules, *message;
} refused[] = {
    { "{}", RULES ": must be a list of at most 20 rules" },
    { "[{'action': 'Count'}]",
      RULES "[0]: give exactly one of onExitCodes and onPodConditions" },
    { "[{'action': 'Count', 'onExitCodes': {}, 'onPodConditions': []}]",
      RULES "[0]: give exactly one of onExitCodes and onPodConditions" },
    { "[" CONDITION("{'type': 'A'}") ", {'action': 'FailIndex', 'onExitCodes': {}}]",
      RULES "[1].action: must be FailJob, Ignore or Count" },
    { "[3]", RULES "[0].action: must be FailJob, Ignore or Count" },
    { "[" CODES("'values': [1]") "]",
      RULES "[0].onExitCodes.operator: must be In or NotIn" },
    { "[" CODES("'operator': 'In', 'values': []") "]", RULES
      "[0].onExitCodes.values: must be a list of 1 to 255 whole numbers from 1 to" },
    { "[" CODES("'operator': 'In', 'values': [0]") "]",
      RULES "[0].onExitCodes.values: " },
    { "[" CODES("'operator': 'NotIn', 'values': [256]") "]", RULES
      "[0].onExitCodes.values: must be a list of 1 to 255 whole numbers from 0 to" },
    { "[" CODES("'operator': 'In', 'values': ['1']") "]",
      RULES "[0].onExitCodes.values" },
    { "[" CODES("'operator': 'In', 'values': [1], 'containerName': 'none'") "]",
      RULES "[0].onExitCodes.containerName: none is no container of podTemplate.spec" },
    { "[" CONDITION("") "]",
      RULES "[0].onPodConditions: must be a list of 1 to 20 conditions" },
    { "[" CONDITION("{'status': 'True'}") "]",
      RULES "[0].onPodConditions[0].type: is missing" },
    { "[" CONDITION("{'type': 'A', 'status': 'Yes'}") "]",
      RULES "[0].onPodConditions[0].status: must be True, False or Unknown" },
};

START_TEST(rule_that_cannot_be_is_refused_by_field)
{
    json_auto_t *rules = quoted("%s", refused[_i].rules);
    json_auto_t *spec = quoted("{'containers': [{'name': 'trainer'}]}");
    struct het_error err = { 0 };
    ck_assert_int_eq(failure_policy_check(rules, spec, &err), -1);
    ck_assert_int_eq(err.code, HET_BAD_INPUT);
    ck_assert_msg(strstr(err.message, refused[_i].message) == err.message, "%s",
                  err.message);
}
END_TEST

START_TEST(at_most_twenty_rules_are_taken)
{
    json_auto_t *rules = json_array();
    struct het_error err = { 0 };
    for (int i = 0; i < 21; i++) {
        ck_assert_int_eq(failure_policy_check(rules, NULL, &err), 0);
        json_array_append_new(rules, quoted("%s", CONDITION("{'type': 'A'}")));
    }
    ck_assert_int_eq(failure_policy_check(rules, NULL, &err), -1);
}
END_TEST

Suite *test_failure_policy_suite(void)
{
    Suite *suite = suite_create("failure_policy");
    TCase *tests = tcase_create("rules");
    suite_add_tcase(suite, tests);
    tcase_add_loop_test(tests, rules_match_as_those_of_a_job_do, 0,
                        sizeof matches / sizeof *matches);
    tcase_add_test(tests, rule_says_what_it_asks_for_and_what_follows);
    tcase_add_loop_test(tests, rule_that_cannot_be_is_refused_by_field, 0,
                        sizeof refused / sizeof *refused);
    tcase_add_test(tests, at_most_twenty_rules_are_taken);
    return suite;
}
